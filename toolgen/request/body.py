"""Request bodies as their media types write them.

Sources: OpenAPI 3.2 "Media Type Object", "Encoding Object"; RFC 8259; the URL standard
(application/x-www-form-urlencoded); RFC 7578 (multipart/form-data).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from toolgen.openapi.parameters import is_json
from toolgen.openapi.upgrade import FORM, MULTIPART
from toolgen.request.model import Part
from toolgen.request.multipart import parts_of, written
from toolgen.request.names import as_taken, check_spread, key_fault
from toolgen.request.styles import Pair, content, form_pairs
from toolgen.request.text import NotWritable, form, from_base64, json_text, spelled, utf8
from toolgen.tools.model import Body, Encoding, Leaf

_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)', re.IGNORECASE)


class Written(NamedTuple):
    """A body's bytes with the Content-Type that describes them; `unsent` are the properties it has no way to say."""

    content_type: str
    data: bytes
    parts: tuple[Part, ...] = ()
    unsent: tuple[str, ...] = ()


def write_body(body: Body, value: Any) -> Written | None:
    """The body for a value; None for null where only JSON could say it.

    Raises NotWritable for a value the media type cannot hold.
    """
    essence = body.media_type.partition(";")[0].strip().lower()
    if is_json(body.media_type):
        _check_keys(value)
        return Written(body.media_type, _json(value, body.media_type))
    if value is None:
        return None
    if essence in (FORM, MULTIPART):
        if not isinstance(value, dict):
            raise NotWritable("a form is an object of fields")
        _check_keys(value)
    if body.binary:
        return Written(body.media_type, from_base64(value))
    if essence == FORM:
        return Written(body.media_type, _form(value, body.encoding), unsent=_unsent(value))
    if essence == MULTIPART:
        parts = parts_of(value, body.encoding)
        return Written(*written(body.media_type, parts), parts, _unsent(value))
    return _text(body.media_type, essence, value)


def _charset(media_type: str) -> str:
    match = _CHARSET.search(media_type)
    return match[1] if match else "utf-8"


def _json(value: Any, media_type: str) -> bytes:
    charset = _charset(media_type)
    return utf8(json_text(value, ascii_only=charset.lower().replace("-", "") != "utf8"), charset)


def _text(media_type: str, essence: str, value: Any) -> Written:
    if not isinstance(value, str):
        if isinstance(value, dict | list | tuple):
            raise NotWritable(f"a body of {essence} is one text: write the document itself, not its parts")
        value = spelled(value)
    named = _CHARSET.search(media_type) is not None
    content_type = media_type if named or not essence.startswith("text/") else f"{media_type}; charset=utf-8"
    return Written(content_type, utf8(value, _charset(media_type)))


def _unsent(value: Any) -> tuple[str, ...]:
    """The properties of a form that are null, an empty array or an array with null."""
    lost = [
        name for name, item in value.items() if item is None or item == [] or (item.__class__ is list and None in item)
    ]
    return tuple(name[:60] for name in lost[:20])


def _check_keys(value: Any) -> None:
    """Frameworks take the method from a property of the body; see `toolgen.request.names`."""
    for key in value if isinstance(value, dict) else ():
        if fault := key_fault(str(key)):
            raise NotWritable(fault)


def _form(value: dict[str, Any], encoding: dict[str, Encoding]) -> bytes:
    pairs: list[Pair] = []
    taken = as_taken(value)
    for name, item in value.items():
        fields = _field(name, item, encoding.get(name) or Encoding())
        check_spread(name, (unquote_plus(key) for key, _ in fields), taken)
        pairs += fields
    return "&".join(f"{name}={text}" for name, text in pairs).encode("ascii")


def _field(name: str, value: Any, encoding: Encoding) -> list[Pair]:
    """One property as fields: styled where the encoding has a style, else by its content type."""
    if encoding.binary:
        items = value if isinstance(value, list) else [value]
        return [(form(name), form(spelled(item))) for item in items if item is not None]
    if encoding.style is not None or encoding.explode is not None:
        leaf = Leaf(name=name, value=None, style=encoding.style or "form", explode=encoding.explode)
        return form_pairs(leaf, value)
    items = value if isinstance(value, list) else [value]
    return [(form(name), form(_item(item, encoding))) for item in items if item is not None]


def _item(value: Any, encoding: Encoding) -> str:
    media_type = (encoding.content_type or "").partition(",")[0].strip()
    return content(media_type, value) if media_type and "*" not in media_type else spelled(value)
