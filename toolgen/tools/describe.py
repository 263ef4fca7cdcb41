"""What a model reads about a tool and its arguments.

Text of the document is data: cleaned, capped, and never a template or a reference. Braces of path
templates are written `/:name` in prose, where other templating would take them for its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from toolgen.openapi.model import Operation
from toolgen.openapi.schema.keywords import PREFIX
from toolgen.openapi.text import clean, one_line
from toolgen.openapi.upgrade import NULL
from toolgen.tools.media import FILE

TOOL_CAP = 1024
PROSE_CAP = 800
ARGUMENT_CAP = 600
BODY_CAP = 1000
_PROPERTIES_SHOWN = 30
_ERRORS_SHOWN = 8
_BODIES = {
    "json": "JSON",
    "form": "Form",
    "multipart": "Multipart form",
    "text": "Text, sent as is",
    "xml": "A whole {} document as text, sent as is;",
    "opaque": "A whole {} document as text, sent as is;",
    "binary": "Bytes, as base64 text",
}
_CHOICES = 10  # members of a choice whose types are named
_NESTED = 3  # levels of arrays and choices that a type in words goes into


def title(operation: Operation, name: str) -> str:
    """A tool's title: the summary, else its name in words."""
    words = re.sub(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).strip()
    return one_line(_plain(operation.summary, operation.path), 120) or words.capitalize() or name


def tool_description(operation: Operation) -> str:
    """What the operation does, then the errors the document tells of."""
    summary = one_line(_plain(operation.summary, operation.path), 300)
    prose = clean(_plain(operation.description, operation.path), PROSE_CAP)
    if summary and prose and not prose.startswith(summary.rstrip(".")):
        prose = f"{summary.rstrip('.')}.\n{prose}"
    prose = prose or summary or f"{operation.wire_method} {in_prose(operation.path)}"
    if operation.deprecated:
        prose = f"Deprecated. {prose}"
    errors = "; ".join(_errors(operation))
    return clean(prose, PROSE_CAP) + (f"\nErrors: {one_line(errors, TOOL_CAP - PROSE_CAP - 20)}" if errors else "")


def _errors(operation: Operation) -> Iterable[str]:
    errors = [r for r in operation.responses if r.status[:1] in "45" and r.status[:1]]
    for response in errors[:_ERRORS_SHOWN]:
        yield f"{response.status} {_first_sentence(response.description)}".strip()


@lru_cache(maxsize=1024)  # a document tells of the same few errors with every operation
def _first_sentence(text: str) -> str:
    return one_line(text.strip().partition("\n")[0].partition(". ")[0], 60).rstrip(".")


def in_prose(path: str) -> str:
    """A path template without braces: `/pets/:petId`."""
    return one_line(re.sub(r"[{}]", "", re.sub(r"\{([^{}]+)\}", r":\1", path)), 300)


def _plain(text: str, path: str) -> str:
    """The text; where it quotes the operation's own path, without that path's braces."""
    return text.replace(path, in_prose(path)) if "{" in path and path in text else text


def hints(schema: Any, definitions: Mapping[str, Any]) -> str:
    """What the schema says of an argument nobody described: values, default, format, example."""
    found = _keywords(schema, definitions)
    values = found.get("enum") or _keywords(found.get("items"), definitions).get("enum")
    values = [found["const"]] if "const" in found else values
    said = []
    if values:
        shown = ", ".join(_value(v) for v in values[:20])
        said.append(f"One of: {shown}" + (f" and {len(values) - 20} more" if len(values) > 20 else ""))
    if "default" in found:
        said.append(f"Default: {_value(found['default'])}")
    if "format" in found:
        said.append(f"Format: {one_line(found['format'], 40)}")
    if not values and found.get("examples"):
        said.append(f"Example: {_value(found['examples'][0])}")
    return clean(". ".join(said) + "." if said else "", ARGUMENT_CAP)


def _keywords(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that hold for a value unless it is null, nearest first: of the schema and of what it is made of."""
    found: dict[str, Any] = {}
    for layer in _layers(schema, definitions):
        found = {**layer, **found} if found else layer
    return found


def _layers(schema: Any, definitions: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema, then through references, `allOf` and choices between one schema and null (at most 50)."""
    waiting, seen = [schema], 0
    while waiting and seen < 50:
        here, seen = waiting.pop(0), seen + 1
        if not isinstance(here, dict):
            continue
        yield here
        if "$ref" in here:
            waiting.append(definitions.get(here["$ref"].removeprefix(PREFIX)))
        waiting.extend(here.get("allOf", ()))
        for key in ("anyOf", "oneOf"):
            members = [member for member in here.get(key, ()) if member != NULL]
            waiting.extend(members if len(members) == 1 else ())


def body_description(kind: str, media_type: str, shape: str, prose: str) -> str:
    """What the model writes for a body, its shape in words, and what the document says of it."""
    what = _BODIES[kind].format(one_line(media_type, 80))
    said = clean(f"{what} {shape}.", BODY_CAP) if shape not in ("", "string") or kind == "json" else f"{what}."
    return f"{said}\n{clean(prose, 400)}" if prose.strip() else said


def body_shape(schema: Any, definitions: Mapping[str, Any]) -> str:
    """The container and its top-level properties with types, the required ones marked."""
    if schema == {} or schema is True:
        return "value; the document declares no schema"
    properties, required = top_level(schema, definitions)
    container = _type(schema, definitions) or "object"
    if not properties:
        properties, required = top_level(_keywords(schema, definitions).get("items"), definitions)
        container += ", each"
    if not properties:
        return container.removesuffix(", each")
    first = (
        sorted(properties, key=lambda name: name not in required) if len(properties) > _PROPERTIES_SHOWN else properties
    )
    shown = [
        f"{_name(name)} ({_type(properties[name], definitions) or 'any'}{', required' if name in required else ''})"
        for name in list(first)[:_PROPERTIES_SHOWN]
    ]
    more = len(properties) - len(shown)
    return f"{container} with {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


def _name(name: str) -> str:
    return name if len(name) <= 60 and name.isidentifier() else one_line(name, 60)


def top_level(schema: Any, definitions: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The properties of an object and which are required, through references and `allOf`."""
    properties: dict[str, Any] = {}
    required: set[str] = set()
    for here in _layers(schema, definitions):
        properties = {**here.get("properties", {}), **properties} if properties else here.get("properties", {})
        required.update(here.get("required", ()))
    return properties, required


def resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema a chain of `$ref`s ends at (at most 20 steps)."""
    for _ in range(20):
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if ref is None:
            return schema
        schema = definitions.get(ref.removeprefix(PREFIX))
    return None


def _type(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> str:
    """The type in words, empty where the schema leaves it open."""
    found = _keywords(schema, definitions)
    kind = found.get("type")
    if found.get("anyOf") == FILE["anyOf"]:
        return "file"
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" or (kind is None and ("items" in found or "prefixItems" in found)):
        inner = _type(found.get("items"), definitions, depth + 1) if depth < _NESTED else ""
        return f"array of {inner}" if inner else "array"
    if kind is not None:
        return str(kind)
    if "properties" in found or "additionalProperties" in found:
        return "object"
    members = (found.get("anyOf") or found.get("oneOf") or [])[:_CHOICES]
    kinds = dict.fromkeys(_type(member, definitions, depth + 1) for member in members) if depth < _NESTED else {}
    if kinds and all(kinds):
        return " or ".join(kinds)
    return "enum" if "enum" in found or "const" in found else ""


def _value(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 60)
