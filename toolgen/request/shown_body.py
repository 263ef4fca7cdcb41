"""A body as a person reads it, made from its bytes."""

from __future__ import annotations

import codecs
import hashlib
import re
from typing import Any
from urllib.parse import unquote_plus

from toolgen.identity.redact import exact_json
from toolgen.identity.secret_names import is_secret_name
from toolgen.openapi.parameters import is_json
from toolgen.openapi.upgrade import FORM
from toolgen.request.model import Part
from toolgen.request.shown import Content, Field, Shower

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)
_TEXT = re.compile(r"text/|application/(?:xml|yaml|x-yaml|javascript|graphql|x-ndjson|jsonl|sql)$|.*\+(?:xml|yaml)$")
_ESCAPES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})  # in names, as browsers write them
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def body_content(show: Shower, data: bytes, media_type: str | None, parts: tuple[Part, ...]) -> Content:
    """The body of a request. `parts` are shown where they are what the bytes of a multipart body hold."""
    if media_type is None:
        show.flag("the body has no Content-Type")
    kind = _essence(media_type)
    if kind.startswith("multipart/") or parts:
        if kind.startswith("multipart/") and _holds(data, parts, media_type or ""):
            shown = tuple(_part(show, part, f"part {number}") for number, part in enumerate(parts, 1))
            return Content("multipart", _type(show, "body", media_type), len(data), None, parts=shown)
        show.flag("the body is not the multipart body that its Content-Type and its parts say")
        return _opaque(show, "body", data, media_type, "")
    return content_of(show, "body", data, media_type)


def content_of(show: Shower, place: str, data: bytes, media_type: str | None, name: str = "") -> Content:
    """Bytes of a media type; `name` is that of their part, by which they may be a secret as a whole."""
    kind = _essence(media_type)
    if not (is_json(kind) or kind == FORM or _TEXT.match(kind)):
        return _opaque(show, place, data, media_type, name)
    text = _decoded(data, media_type)
    if text is None:
        show.flag(f"{show.place(place)}: the bytes are no text of the charset that {kind} has")
        return _opaque(show, place, data, media_type, name)
    if is_json(kind):
        found = _json(show, place, text, data, media_type, name)
        if found is not None:
            return found
        show.flag(f"{show.place(place)}: this is not the JSON its Content-Type says, or readers would differ about it")
    if kind == FORM and not is_secret_name(name):
        hidden = show.redactor.query(text) != text
        return Content(
            "form", _type(show, place, media_type), len(data), _digest(data, hidden), fields=pairs(show, place, text)
        )
    return _text(show, place, text, data, media_type, name)


def pairs(show: Shower, place: str, text: str) -> tuple[Field, ...]:
    """The pairs of a query or a form (URL standard, application/x-www-form-urlencoded), decoded."""
    found = []
    for pair in text.split("&"):
        if not pair:
            continue
        name, _, value = (unquote_plus(piece, errors="surrogateescape") for piece in pair.partition("="))
        found.append(show.named(f"{place} {name}", name, value))
    return tuple(found)


def _part(show: Shower, part: Part, place: str) -> Content:
    place = f"{place} {part.name}"
    found = content_of(show, place, part.data, part.content_type or "text/plain", part.name)
    return Content(
        found.kind,
        found.media_type if part.content_type is not None else None,
        found.size,
        found.sha256,
        found.text,
        found.fields,
        name=show.text(f"name of {place}", part.name),
        filename=None if part.filename is None else show.text(f"file name of {place}", part.filename),
        headers=tuple(show.named(f"header {name} of {place}", name, value) for name, value in part.headers),
    )


def _holds(data: bytes, parts: tuple[Part, ...], media_type: str) -> bool:
    """Whether a multipart body (RFC 2046 section 5.1) has as many parts as these, with these bytes, in this order."""
    boundary = re.search(r';\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))', media_type, re.IGNORECASE)
    if boundary is None or not parts:
        return False
    pieces = (b"\r\n" + data).split(b"\r\n--" + (boundary[1] or boundary[2]).encode())
    if len(pieces) != len(parts) + 2 or pieces[0] or pieces[-1].rstrip(b"\r\n") != b"--":
        return False
    return all(map(_is_part, pieces[1:-1], parts))


def _is_part(piece: bytes, part: Part) -> bool:
    """Whether the bytes between two boundaries are this part, head (RFC 7578) and all."""
    head, _, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    disposition = f'Content-Disposition: form-data; name="{part.name.translate(_ESCAPES)}"'
    if part.filename is not None:
        disposition += f'; filename="{part.filename.translate(_ESCAPES)}"'
    media_type = () if part.content_type is None else (("Content-Type", part.content_type),)
    lines = [disposition, *(f"{name}: {value}" for name, value in (*media_type, *part.headers))]
    return data == part.data and head.decode("utf-8", "surrogateescape") == "\r\n".join(lines)


def _json(show: Shower, place: str, text: str, data: bytes, media_type: str | None, name: str) -> Content | None:
    try:
        value = exact_json(text)
    except ValueError:
        return None
    shown: Any = show.redactor.named(name, value)
    pretty = show.json(place, shown)
    return Content("json", _type(show, place, media_type), len(data), _digest(data, shown != value), pretty)


def _text(show: Shower, place: str, text: str, data: bytes, media_type: str | None, name: str) -> Content:
    shown, hidden = _shown_text(show, place, text, name)
    return Content("text", _type(show, place, media_type), len(data), _digest(data, hidden), shown)


def _opaque(show: Shower, place: str, data: bytes, media_type: str | None, name: str) -> Content:
    """Bytes: their size and digest, and their text where they are one."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or _CONTROLS.search(text):
        hidden = is_secret_name(name) or show.redactor.known(data.decode("latin-1")) != data.decode("latin-1")
        return Content("bytes", _type(show, place, media_type), len(data), _digest(data, hidden))
    shown, hidden = _shown_text(show, place, text, name)
    return Content("bytes", _type(show, place, media_type), len(data), _digest(data, hidden), shown)


def _shown_text(show: Shower, place: str, text: str, name: str) -> tuple[str, bool]:
    """The text with its own lines, and whether something of it is hidden."""
    redacted = str(show.redactor.named(name, text))
    lines = redacted.replace("\r\n", "\n").split("\n")
    return show.lines(place, "\n".join(_whole_line(show, place, line) for line in lines)), redacted != text


def _whole_line(show: Shower, place: str, line: str) -> str:
    limit, show.limit = show.limit, None  # `lines` cuts them, and knows the whole
    try:
        return show.safe(place, line, keep="\t")
    finally:
        show.limit = limit


def _decoded(data: bytes, media_type: str | None) -> str | None:
    """The bytes as text of their charset (UTF-8 without one); None where they are none, or not only that text."""
    match = _CHARSET.search(media_type or "")
    try:
        charset = codecs.lookup(match[1] if match else "utf-8").name
        text = data.decode(charset)
        return text if text.encode(charset) == data else None
    except (LookupError, ValueError):
        return None


def _digest(data: bytes, hidden: bool) -> str | None:
    return None if hidden else hashlib.sha256(data).hexdigest()


def _type(show: Shower, place: str, media_type: str | None) -> str | None:
    return None if media_type is None else show.text(f"Content-Type of {place}", media_type)


def _essence(media_type: str | None) -> str:
    return (media_type or "").partition(";")[0].strip().lower()
