"""From the arguments of a strict model to the arguments it meant.

A strict model must write every property, so it writes null for what it leaves out. Such a null is
removed where the property is optional, at every depth. A null for a required property, or inside a
list, was never a stand-in and stays.

An optional property that allows null itself is ambiguous: the model may have meant "leave it out" or
"set it to null". It is left out, always: the other reading would turn a PATCH that names one field
into one that clears all others. So a strict tool cannot set such a property to null; the export
says so in a note for each of them, and the non-strict targets have no such gap.

Where variants meet (`anyOf`, `oneOf`) the one whose strict form accepts the value decides; if there
are several, the one that leaves the fewest nulls.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

from toolgen.tools.export.described import Described
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.openai_strict import NotStrict, Schema, Strict
from toolgen.tools.export.pointers import target_of


def strip_strict_nulls(tool: Described, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments without the nulls strict mode asked for; unchanged for a tool that is not strict.

    The argument is not changed. Arguments that do not fit the strict schema come back with their
    nulls where no variant decides, so that validation reports them.
    """
    if not _has_null(arguments):
        return arguments
    try:
        strict = Strict(tool.input_schema(), Notes(tool.name))
    except NotStrict:
        return arguments
    found: dict[str, Any] = _Strip(strict).value(strict.plain, arguments)
    return found


def _has_null(value: Any) -> bool:
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if here is None:
            return True
        if isinstance(here, dict | list):
            waiting.extend(here.values() if isinstance(here, dict) else here)
    return False


def _nulls(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_nulls, value.values() if isinstance(value, dict) else value))
    return int(value is None)


class _Strip:
    """Walks a normal schema and a value together; each pair of the two once."""

    def __init__(self, strict: Strict) -> None:
        self._strict = strict
        self._known: dict[tuple[int, int], Any] = {}
        self._validators: dict[int, jsonschema_rs.Draft202012Validator | None] = {}

    def value(self, schema: Schema, value: Any) -> Any:
        """The value without stand-in nulls."""
        if not isinstance(value, dict | list):
            return value
        key = (id(schema), id(value))
        if key not in self._known:
            self._known[key] = value  # a definition that is nothing but itself
            self._known[key] = self._container(schema, value)
        return self._known[key]

    def _container(self, schema: Schema, value: dict[str, Any] | list[Any]) -> Any:
        name = target_of(schema)
        if name is not None:
            return self.value(self._strict.definitions[name], value)
        if "anyOf" in schema:
            return self._variant(schema["anyOf"], value)
        if isinstance(value, list):
            items = schema.get("items", {})
            return [self.value(items, each) for each in value]
        properties, required = schema.get("properties", {}), schema.get("required", ())
        return {
            key: self.value(properties.get(key, {}), each)
            for key, each in value.items()
            if each is not None or key in required or key not in properties
        }

    def _variant(self, variants: list[Schema], value: Any) -> Any:
        accepting = [variant for variant in variants if self._accepts(variant, value)]
        return min((self.value(variant, value) for variant in accepting), key=_nulls, default=value)

    def _accepts(self, variant: Schema, value: Any) -> bool:
        if id(variant) not in self._validators:
            self._validators[id(variant)] = self._validator(variant)
        validator = self._validators[id(variant)]
        return validator is None or validator.is_valid(value)

    def _validator(self, variant: Schema) -> jsonschema_rs.Draft202012Validator | None:
        tight = {**self._strict.tighten(variant), "$defs": self._strict.schema.get("$defs", {})}
        try:
            return jsonschema_rs.Draft202012Validator(tight, offline=True)
        except ValueError:  # a pattern this engine does not read
            return None
