"""What a model reads about a tool and its arguments.

Text of the document is data: cleaned, capped, and never a template or a reference. Braces of path
templates are written `/:name` in prose, where other templating would take them for its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from toolgen.openapi.keywords import PREFIX
from toolgen.openapi.model import Operation
from toolgen.openapi.text import clean, one_line

TOOL_CAP = 1024
PROSE_CAP = 800
ARGUMENT_CAP = 600
BODY_CAP = 1000
_PROPERTIES_SHOWN = 30
_ERRORS_SHOWN = 8


def title(operation: Operation, name: str) -> str:
    """A tool's title: the summary, else its name in words."""
    return one_line(operation.summary, 120) or re.sub(r"[_-]+|(?<=[a-z0-9])(?=[A-Z])", " ", name).strip().capitalize()


def tool_description(operation: Operation) -> str:
    """What the operation does, then the errors the document tells of."""
    summary, prose = one_line(operation.summary, 300), clean(operation.description, PROSE_CAP)
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
        said = one_line(response.description.partition("\n")[0].partition(". ")[0], 60).rstrip(".")
        yield f"{response.status} {said}".strip()


def in_prose(path: str) -> str:
    """A path template without braces: `/pets/:petId`."""
    return one_line(re.sub(r"\{([^{}]+)\}", r":\1", path), 300)


def hints(schema: Any, definitions: Mapping[str, Any]) -> str:
    """What the schema says of an argument nobody described: values, default, format, example."""
    found = resolved(schema, definitions)
    if not isinstance(found, dict):
        return ""
    said = []
    values = found.get("enum") or (found["items"].get("enum") if isinstance(found.get("items"), dict) else None)
    if isinstance(values, list) and values:
        shown = ", ".join(_value(v) for v in values[:20])
        said.append(f"One of: {shown}" + (f" and {len(values) - 20} more" if len(values) > 20 else ""))
    if "default" in found:
        said.append(f"Default: {_value(found['default'])}")
    if isinstance(found.get("format"), str):
        said.append(f"Format: {one_line(found['format'], 40)}")
    if not values and isinstance(found.get("examples"), list):
        said.append(f"Example: {_value(found['examples'][0])}")
    return clean(". ".join(said) + "." if said else "", ARGUMENT_CAP)


def body_description(what: str, shape: str, prose: str) -> str:
    """What the body is (`JSON`, `Form`), its shape in words, and what the document says of it."""
    said = clean(f"{what} {shape}.", BODY_CAP)
    return f"{said}\n{clean(prose, 400)}" if prose.strip() else said


def body_shape(schema: Any, definitions: Mapping[str, Any]) -> str:
    """The container and its top-level properties with types, the required ones marked."""
    if schema == {} or schema is True:
        return "value; the document declares no schema"
    properties, required = top_level(schema, definitions)
    container = _container(resolved(schema, definitions))
    if not properties:
        return container
    shown = [
        f"{_name(name)} ({_type(value, definitions)}{', required' if name in required else ''})"
        for name, value in list(properties.items())[:_PROPERTIES_SHOWN]
    ]
    more = len(properties) - len(shown)
    return f"{container} with {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


def _name(name: str) -> str:
    return name if len(name) <= 60 and name.isidentifier() else one_line(name, 60)


def top_level(schema: Any, definitions: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The properties of an object and which are required, through references and `allOf`."""
    properties: dict[str, Any] = {}
    required: set[str] = set()
    waiting, seen = [schema], 0
    while waiting and seen < 50:
        here, seen = resolved(waiting.pop(0), definitions), seen + 1
        if isinstance(here, dict):
            properties = {**here.get("properties", {}), **properties} if properties else here.get("properties", {})
            required.update(here.get("required", ()))
            waiting.extend(here.get("allOf", ()))
    return properties, required


def resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema a chain of `$ref`s ends at (at most 20 steps)."""
    for _ in range(20):
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if ref is None:
            return schema
        schema = definitions.get(ref.removeprefix(PREFIX))
    return None


def _container(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), None)
    return kind if isinstance(kind, str) and kind != "null" else "object"


def _type(schema: Any, definitions: Mapping[str, Any]) -> str:
    found = resolved(schema, definitions)
    kind = found.get("type") if isinstance(found, dict) else None
    if isinstance(kind, str):
        if kind == "array" and isinstance(found.get("items"), dict):
            inner = resolved(found["items"], definitions)
            named = inner.get("type") if isinstance(inner, dict) else None
            return f"array of {named}" if isinstance(named, str) else "array"
        return kind
    if isinstance(kind, list):
        return " or ".join(str(k) for k in kind)
    if isinstance(found, dict) and ("properties" in found or "allOf" in found):
        return "object"
    return "enum" if isinstance(found, dict) and "enum" in found else "any"


def _value(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 60)
