"""Which media type of a body is sent, and what the model writes for it.

JSON first wherever it stands, then forms, then text, then what is sent as the model wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from toolgen.openapi.model import MediaType
from toolgen.openapi.parameters import is_json
from toolgen.openapi.upgrade import FORM, MULTIPART

Kind = Literal["json", "form", "multipart", "text", "opaque", "binary"]
_ORDER: tuple[Kind, ...] = ("json", "form", "multipart", "text", "opaque", "binary")
_BINARY_TYPES = ("application/octet-stream", "application/pdf", "application/zip", "application/gzip")
_BINARY_FAMILIES = ("image/", "audio/", "video/", "font/", "model/")
_BASE64 = {"type": "string", "contentEncoding": "base64"}
FILE = {
    "anyOf": [
        _BASE64,
        {
            "type": "object",
            "properties": {"filename": {"type": "string"}, "contentType": {"type": "string"}, "data": _BASE64},
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


def choose(content: list[MediaType], shape_of: Any) -> Choice:
    """The media type a body is sent as. `shape_of(media)` tells `object`, `text`, `binary`, `file` or ``."""
    ranked = [(_kind(media, shape_of(media)), media) for media in content]
    kinds = {kind for (kind, _), _ in ranked}
    has_file = any(shape_of(media) == "file" for (kind, _), media in ranked if kind in ("form", "multipart"))

    def rank(entry: tuple[tuple[Kind, str], MediaType]) -> tuple[int, int]:
        (kind, media_type), _ = entry
        if kind == "form" and has_file and "multipart" in kinds:
            return _ORDER.index("multipart"), 1  # only multipart carries a file
        return _ORDER.index(kind), 0 if media_type.partition(";")[0].lower() == "application/json" else 1

    (kind, media_type), media = min(ranked, key=rank)
    return Choice(media, media_type, kind, tuple(m.name for m in content if m is not media))


def _kind(media: MediaType, shape: str) -> tuple[Kind, str]:
    name = media.name
    essence = name.partition(";")[0].strip().lower()
    if is_json(name):
        return "json", "application/json" if "*" in essence else name
    if essence == FORM:
        return "form", name
    if essence == MULTIPART:
        return "multipart", name
    if essence in ("*/*", "application/*"):
        return {"text": ("text", "text/plain"), "binary": ("binary", _BINARY_TYPES[0])}.get(shape) or (  # type: ignore[return-value]
            "json",
            "application/json",
        )
    if "*" in essence and not essence.startswith("text/"):
        return "binary", _BINARY_TYPES[0]
    if essence in ("text/xml", "application/xml") or essence.endswith("+xml"):
        return "opaque", name.replace("*+", "")
    if essence.startswith("text/"):
        return "text", "text/plain" if "*" in essence else name
    if essence in _BINARY_TYPES or essence.startswith(_BINARY_FAMILIES) or shape == "binary":
        return "binary", name
    return "opaque", name


def is_binary(schema: Any) -> bool:
    """Whether a converted schema (no reference) is raw bytes in a body that can carry them."""
    if not isinstance(schema, dict) or schema.get("type") not in ("string", None, ["string", "null"]):
        return False
    if schema.get("format") == "binary":
        return True
    return "contentMediaType" in schema and "contentEncoding" not in schema and schema.get("type") is not None


def text_schema(schema: Any, media_type: str, *, opaque: bool) -> dict[str, Any]:
    """What the model writes for a body of text; an opaque one is a document it writes itself."""
    if isinstance(schema, dict) and schema.get("type") == "string" and schema.get("format") != "binary":
        return dict(schema)
    said = f"A whole {media_type} document as text, sent as is." if opaque else "Text, sent as is."
    return {"type": "string", "description": said}


def binary_schema(schema: Any) -> dict[str, Any]:
    """What the model writes for a body of bytes: base64 text."""
    description = schema.get("description") if isinstance(schema, dict) else None
    return {**_BASE64, "description": description} if description else dict(_BASE64)
