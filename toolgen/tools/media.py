"""Which media type of a body is sent, and what the model writes for it.

JSON first wherever it stands, then forms, then text, then what is sent as the model wrote it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolgen.openapi.encoding import MEDIA_TYPE
from toolgen.openapi.model import MediaType
from toolgen.openapi.parameters import is_json
from toolgen.openapi.upgrade import FORM, MULTIPART

Kind = Literal["json", "form", "multipart", "text", "xml", "opaque", "binary"]
_ORDER: tuple[Kind, ...] = ("json", "form", "multipart", "text", "xml", "opaque", "binary")
_BY_SHAPE: dict[str, tuple[Kind, str]] = {
    "text": ("text", "text/plain"),
    "binary": ("binary", "application/octet-stream"),
    "file": ("multipart", MULTIPART),
}
_BINARY_TYPES = ("application/octet-stream", "application/pdf", "application/zip", "application/gzip")
_BINARY_FAMILIES = ("image/", "audio/", "video/", "font/", "model/")
_TYPING = frozenset("$ref allOf anyOf oneOf not if properties items enum const pattern format contentEncoding".split())
BASE64 = {"type": "string", "contentEncoding": "base64"}
FILE = {
    "anyOf": [
        BASE64,
        {
            "type": "object",
            "properties": {"filename": {"type": "string"}, "contentType": {"type": "string"}, "data": BASE64},
            "required": ["data"],
            "additionalProperties": False,
        },
    ]
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The media type to send (never a range), how its body is written, and what else was declared."""

    media: MediaType
    media_type: str
    kind: Kind
    alternatives: tuple[str, ...]


def choose(content: list[MediaType], shape_of: Callable[[MediaType], str]) -> Choice:
    """The media type a body is sent as. `shape_of(media)` tells `object`, `text`, `binary`, `file` or ``."""
    ranked = [(_kind(media, shape_of), media) for media in content]
    kinds = {kind for (kind, _), _ in ranked}
    both = "form" in kinds and "multipart" in kinds
    has_file = both and any(shape_of(media) == "file" for (kind, _), media in ranked if kind in ("form", "multipart"))

    def rank(entry: tuple[tuple[Kind, str], MediaType]) -> tuple[int, bool, int]:
        (kind, media_type), media = entry
        # A JSON Patch is a list of edits, which few of the schemas beside it describe.
        ranks = {"application/json": 0, "application/json-patch+json": 2}
        is_range, other = "*" in _essence(media.name), ranks.get(_essence(media_type), 1)
        if kind == "form" and has_file:
            return _ORDER.index("multipart"), True, other  # only multipart carries a file
        return _ORDER.index(kind), is_range, other

    (kind, media_type), media = min(ranked, key=rank)
    return Choice(media, media_type, kind, tuple(m.name for m in content if m is not media))


def _kind(media: MediaType, shape_of: Callable[[MediaType], str]) -> tuple[Kind, str]:
    name, essence = media.name, _essence(media.name)
    if is_json(name):
        return "json", "application/json" if "*" in essence else name
    if essence == FORM:
        return "form", name
    if essence in (MULTIPART, "multipart/*"):
        return "multipart", MULTIPART if "*" in essence else name
    if essence in ("*/*", "application/*"):
        return _BY_SHAPE.get(shape_of(media), ("json", "application/json"))
    if essence in ("text/xml", "application/xml") or essence.endswith("+xml"):
        return "xml", "application/xml" if "*" in essence else name
    if "*" in essence and not essence.startswith("text/"):
        return "binary", "application/octet-stream"
    if essence.startswith("text/"):
        return "text", "text/plain" if "*" in essence else name
    if essence in _BINARY_TYPES or essence.startswith(_BINARY_FAMILIES) or shape_of(media) == "binary":
        return "binary", name
    return "opaque", name


def _essence(media_type: str) -> str:
    """The media type without its parameters."""
    return media_type.partition(";")[0].strip().lower()


def is_binary(schema: Any) -> bool:
    """Whether a schema (no reference) is raw bytes in a body that can carry them.

    OpenAPI 3.0 says `format: binary`; 3.1 ("Working With Binary Data") `contentMediaType` without `contentEncoding`.
    """
    if not isinstance(schema, dict) or schema.get("type") not in ("string", "file", None, ["string", "null"]):
        return False
    if schema.get("format") == "binary" or schema.get("type") == "file":
        return True
    named = schema.get("contentMediaType")
    if not isinstance(named, str) or "contentEncoding" in schema or is_textual(named):
        return False
    return MEDIA_TYPE.fullmatch(named) is not None


def is_untyped(schema: Any) -> bool:
    """Whether a schema leaves to the part's media type whether it is bytes or text."""
    if not isinstance(schema, dict) or not _TYPING.isdisjoint(schema):
        return False
    return schema.get("type") in (None, "string")


def is_textual(media_type: str) -> bool:
    """Whether what a media type names can be written as text."""
    essence = _essence(media_type)
    return (
        essence.startswith("text/")
        or is_json(essence)
        or essence in (FORM, "application/xml")
        or essence[-4:] == "+xml"
    )


def text_schema(schema: Any) -> dict[str, Any]:
    """What the model writes for a body of text, whatever the document says it stands for."""
    kept = isinstance(schema, dict) and schema.get("type") == "string" and schema.get("format") != "binary"
    return dict(schema) if kept else {"type": "string"}


def binary_schema(schema: Any) -> dict[str, Any]:
    """What the model writes for a body of bytes: base64 text."""
    description = schema.get("description") if isinstance(schema, dict) else None
    return {**BASE64, "description": description} if description else dict(BASE64)
