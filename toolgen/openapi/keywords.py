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
    while waiting:
        here = waiting.pop()
        if not isinstance(here, dict):
            continue
        target = here.get("$ref")
        if isinstance(target, str) and target.startswith(PREFIX):
            found.add(target[len(PREFIX) :].replace("~1", "/").replace("~0", "~"))
        waiting.extend(subschemas(here))
    return frozenset(found)
