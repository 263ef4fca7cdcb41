"""Where schemas stand inside a JSON Schema 2020-12 schema, and where data does.

Source: JSON Schema 2020-12, core section 10 (applicators) and validation section 6. Whoever walks
a schema goes by these tables, so that a property *named* `$ref` or an example that looks like a
reference is never taken for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ONE = frozenset(
    {
        "items",
        "additionalProperties",
        "contains",
        "not",
        "if",
        "then",
        "else",
        "propertyNames",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
LIST = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
PREFIX = "#/$defs/"
MAP = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})


def subschemas(schema: dict[str, Any]) -> Iterator[Any]:
    """The schemas directly inside a valid schema, in the order they stand there."""
    for key, value in schema.items():
        if key in MAP:
            yield from value.values()
        elif key in LIST:
            yield from value
        elif key in ONE:
            yield value


def references(schema: Any) -> frozenset[str]:
    """Names of the definitions a converted schema points to directly (`#/$defs/NAME`)."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:  # every tool's schema comes through here: `subschemas` written out
        here = waiting.pop()
        if here.__class__ is not dict:
            continue
        for key, value in here.items():
            kind = value.__class__
            if kind is dict:
                if key in MAP:
                    waiting.extend(value.values())
                elif key in ONE:
                    waiting.append(value)
            elif kind is list:
                if key in LIST:
                    waiting.extend(value)
            elif key == "$ref" and kind is str and value.startswith(PREFIX):
                found.add(value[len(PREFIX) :])
    return frozenset(found)
