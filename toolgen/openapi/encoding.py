"""Encoding Objects: how the properties of a form or multipart body are sent.

Source: OpenAPI 3.2 "Encoding Object".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolgen.openapi.text import one_line

# RFC 9110, section 8.3.1; `*` is a token character, so ranges are media types here.
MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*;[ -~]*)?")
STYLES = frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"})
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def read_encoding(node: Any, say: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """The Encoding Objects by property, with the keys that can be used; `say` hears of the others."""
    if not isinstance(node, dict):
        return {}
    return {name: entry for name, value in node.items() if (entry := _entry(name, value, say))}


def _entry(name: str, node: Any, say: Callable[[str], None]) -> dict[str, Any]:
    if not isinstance(node, dict):
        return {}
    entry = {key: node[key] for key in ("explode", "allowReserved") if isinstance(node.get(key), bool)}
    style, content_type = node.get("style"), node.get("contentType")
    if isinstance(style, str) and style in STYLES:
        entry["style"] = style
    elif style is not None:
        say(f"the encoding of {one_line(name, 60)!r} has no usable style: {one_line(str(style), 30)!r}")
    text = content_type.strip() if isinstance(content_type, str) else ""
    if text and all(MEDIA_TYPE.fullmatch(part.strip(" ")) for part in text.split(",")):
        entry["contentType"] = text
    elif content_type is not None:
        say(f"the encoding of {one_line(name, 60)!r} has no usable media type: {one_line(str(content_type), 30)!r}")
    headers = node.get("headers")
    fixed = {h: v for h, value in headers.items() if (v := _fixed(h, value))} if isinstance(headers, dict) else {}
    if fixed:
        entry["headers"] = fixed
    return entry


def _fixed(name: str, header: Any) -> str | None:
    """The value of a part's header where the document leaves no choice."""
    schema = header.get("schema") if isinstance(header, dict) else None
    schema = schema if isinstance(schema, dict) else {}
    values = schema.get("enum")
    only = values[0] if isinstance(values, list) and len(values) == 1 else None
    value = schema.get("const", schema.get("default", only))
    usable = isinstance(value, str) and value.isprintable() and value.isascii() and _TOKEN.fullmatch(name)
    return value if usable else None
