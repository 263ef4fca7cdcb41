"""The sizes of a schema that providers count: each definition once, cycles included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolgen.openapi.schema.keywords import subschemas
from toolgen.tools.export.pointers import target_of


@dataclass(slots=True)
class Measure:
    """`text` counts characters of property names, definition names, enum and const values."""

    nesting: int = 0
    properties: int = 0
    enum_values: int = 0
    enum_text: int = 0
    text: int = 0


def measure(schema: dict[str, Any], large_enum: int) -> Measure:
    """Measure a self-contained schema; `enum_text` looks at string enums with more than `large_enum` values."""
    found = Measure(nesting=_nesting(schema))
    found.text += sum(map(len, schema.get("$defs", ())))
    waiting: list[Any] = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            _count(here, found, large_enum)
            waiting.extend(subschemas(here))
    return found


def _count(schema: dict[str, Any], found: Measure, large_enum: int) -> None:
    properties = schema.get("properties", {})
    found.properties += len(properties)
    found.text += sum(map(len, properties))
    values = schema.get("enum", [])
    found.enum_values += len(values)
    characters = sum(len(value) for value in values if isinstance(value, str))
    found.text += characters
    if len(values) > large_enum:
        found.enum_text = max(found.enum_text, characters)
    if isinstance(schema.get("const"), str):
        found.text += len(schema["const"])


def _nesting(schema: dict[str, Any]) -> int:
    """The longest chain of objects and arrays, references followed, a cycle entered once."""
    definitions = schema.get("$defs", {})
    heights: dict[int, int] = {}
    entered: set[int] = set()
    stack: list[tuple[Any, bool]] = [(schema, False)]
    while stack:
        here, done = stack.pop()
        if not isinstance(here, dict) or (not done and id(here) in entered):
            continue
        below = _below(here, definitions)
        if done:
            level = int(here.get("type") in ("object", "array"))
            heights[id(here)] = level + max((heights.get(id(child), 0) for child in below), default=0)
        else:
            entered.add(id(here))
            stack.append((here, True))
            stack.extend((child, False) for child in below)
    return heights[id(schema)]


def _below(schema: dict[str, Any], definitions: dict[str, Any]) -> list[Any]:
    own = {key: value for key, value in schema.items() if key != "$defs"}
    target = target_of(schema)
    return [*subschemas(own), *([definitions[target]] if target in definitions else [])]
