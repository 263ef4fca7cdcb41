"""multipart/form-data: the parts of a value, and their bytes under a boundary that follows from them.

Sources: RFC 7578; RFC 2046 section 5.1.1; the HTML standard, "multipart/form-data encoding algorithm"
(escapes in names); OpenAPI 3.2 "Encoding Object".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from toolgen.openapi.encoding import MEDIA_TYPE
from toolgen.openapi.parameters import is_json
from toolgen.request.model import Part
from toolgen.request.names import as_taken, check_spread
from toolgen.request.styles import plain_pairs
from toolgen.request.text import NotWritable, from_base64, json_text, spelled, utf8
from toolgen.tools.model import Encoding, Leaf

_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_BOUNDARY = re.compile(r""";\s*boundary\s*=\s*(?:"[^"]*"|[^;]*)""", re.IGNORECASE)
# A backslash would escape the quote that ends a name; line ends and quotes are escaped (`_ESCAPES`).
_NOT_IN_NAME = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f\\]")
_OWN_HEADERS: Final = ("content-disposition", "content-type", "content-transfer-encoding")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~]*")
_OCTETS = "application/octet-stream"


def parts_of(value: dict[str, Any], encoding: dict[str, Encoding]) -> tuple[Part, ...]:
    """The parts of a body's value: one for each property, of an array one for each item.

    Raises NotWritable for bytes that are no base64, for names that no header can hold or that are those of
    others, and for a file's content type that is none.
    """
    found: list[Part] = []
    taken = as_taken(value)
    for name, item in value.items():
        parts = list(_parts(name, item, encoding.get(name) or Encoding()))
        check_spread(name, (part.name for part in parts), taken)
        if any(_NOT_IN_NAME.search(part.name) for part in parts):
            raise NotWritable("a part's name has no backslash and no control character")
        found += parts
    return tuple(found)


def written(media_type: str, parts: Sequence[Part]) -> tuple[str, bytes]:
    """(Content-Type, body) of the parts. The boundary is derived from them, so that the same parts give the same bytes."""
    return _under_own_boundary(
        media_type, [b"\r\n%s\r\n\r\n%s" % (_head(part), part.data) for part in parts], b"--\r\n"
    )


def rewritten(media_type: str, body: bytes) -> tuple[str, bytes]:
    """(Content-Type, body) under a boundary that follows from the parts, of one that a client made up.

    As they are where the boundary stands anywhere but between parts, or is none.
    """
    found = _BOUNDARY.search(media_type)
    given = found[0].partition("=")[2].strip().strip('"').encode("latin-1", "replace") if found else b""
    if not given:
        return media_type, body
    first, *parts = (b"\r\n" + body).split(b"\r\n--" + given)
    end = parts.pop() if parts else b""
    if first or end not in (b"--", b"--\r\n") or not all(part.startswith(b"\r\n") for part in parts):
        return media_type, body
    return _under_own_boundary(media_type, parts, end)


def _under_own_boundary(media_type: str, texts: Sequence[bytes], end: bytes) -> tuple[str, bytes]:
    """The texts between the boundaries under one that follows from them, and is in none of them."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(len(text).to_bytes(8, "big") + text)
    boundary = digest.hexdigest()[:40].encode()
    while any(boundary in text for text in texts):  # then the next one that follows from it
        boundary = hashlib.sha256(boundary).hexdigest()[:40].encode()
    bare = _BOUNDARY.sub("", media_type)
    line = b"\r\n--" + boundary
    return f"{bare}; boundary={boundary.decode()}", line.join([b"", *texts, end])[2:]


def _head(part: Part) -> bytes:
    lines = [f'Content-Disposition: form-data; name="{part.name.translate(_ESCAPES)}"']
    if part.filename is not None:
        lines[0] += f'; filename="{part.filename.translate(_ESCAPES)}"'
    if part.content_type is not None:
        lines.append(f"Content-Type: {part.content_type}")
    return utf8("\r\n".join([*lines, *(f"{name}: {value}" for name, value in part.headers)]))


def _parts(name: str, value: Any, encoding: Encoding) -> Iterator[Part]:
    headers = tuple(_headers(encoding))
    if not encoding.binary and (encoding.style is not None or encoding.explode is not None):
        leaf = Leaf(name=name, value=None, style=encoding.style or "form", explode=encoding.explode)
        for key, text in plain_pairs(leaf, value):
            yield Part(key, utf8(text), headers=headers)
        return
    for item in value if isinstance(value, list | tuple) else [value]:
        if item is not None:
            yield _file(name, item, encoding, headers) if encoding.binary else _plain(name, item, encoding, headers)


def _headers(encoding: Encoding) -> Iterator[tuple[str, str]]:
    """The part's own headers; what the part is, is said elsewhere."""
    for name, value in encoding.headers.items():
        if name.lower() not in _OWN_HEADERS:
            if not _HEADER.fullmatch(f"{name}: {value}"):
                raise NotWritable(f"the header {name[:60]!r} of a part is no header")
            yield name, str(value)


def _content_type(encoding: Encoding) -> str | None:
    """The one type that the encoding names; of several, or of a range, the first that is none."""
    named = [part.strip() for part in (encoding.content_type or "").split(",")]
    return next((part for part in named if part and "*" not in part), None)


def _plain(name: str, value: Any, encoding: Encoding, headers: tuple[tuple[str, str], ...]) -> Part:
    named = _content_type(encoding)
    if isinstance(value, dict | list | tuple):
        if named is not None and not is_json(named):
            raise NotWritable(f"the part {name!r} is sent as {named}: give its text")
        return Part(name, utf8(json_text(value)), content_type=named or "application/json", headers=headers)
    text = json_text(value) if named is not None and is_json(named) else spelled(value)
    return Part(name, utf8(text), content_type=named, headers=headers)


def _file(name: str, value: Any, encoding: Encoding, headers: tuple[tuple[str, str], ...]) -> Part:
    given = value if isinstance(value, dict) else {"data": value}
    filename, named = given.get("filename", name), given.get("contentType")
    if not isinstance(filename, str) or not filename or re.search(r"[/\\\x00-\x1f\x7f]", filename):
        raise NotWritable("a file's name is not empty and has no slash, backslash or control character")
    if named is not None and not (isinstance(named, str) and MEDIA_TYPE.fullmatch(named)):
        raise NotWritable("a file's `contentType` is a media type, as in image/png")
    return Part(name, from_base64(given.get("data")), filename, named or _content_type(encoding) or _OCTETS, headers)
