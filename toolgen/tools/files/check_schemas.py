"""Whether the schemas of a toolset are JSON Schema 2020-12, and whether their references lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from toolgen.errors import Problem, did_you_mean
from toolgen.openapi.schema.keywords import LIST, MAP, ONE, PREFIX, references
from toolgen.tools.files.places import Place, written

_NAME = re.compile(r"[A-Za-z0-9._-]+")  # as OpenAPI's component names
# Beside `properties` these would declare or refuse arguments in a second way.
_NOT_AT_ROOT = (
    "$ref",
    "$dynamicRef",
    "$defs",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "patternProperties",
    "propertyNames",
)


class SchemaCheck:
    """Checks schemas against the shared ones they may point to."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._known = frozenset(schemas)
        self._patterns: dict[str, bool] = {}

    def shared(self) -> Iterator[Problem]:
        """Faults of the shared schemas."""
        for name, schema in self._schemas.items():
            if not _NAME.fullmatch(name):
                hint = "A-Z, a-z, 0-9, '.', _ and -: a reference to it needs no escapes"
                yield Problem(f"{name!r} is no name of a shared schema", written(("schemas", name)), hint=hint)
            yield from self._schema(schema, ("schemas", name))

    def of(self, schema: Any, place: Place) -> Iterator[Problem]:
        """Faults of one tool's schema; None is no schema."""
        if schema is None:
            return
        if place[-1] == "parameters":
            yield from _input(schema, place)
        yield from self._schema(schema, place)

    def _schema(self, schema: Any, place: Place) -> Iterator[Problem]:
        validator = _metaschema()
        if not validator.is_valid(schema):
            for error in validator.iter_errors(schema):
                where = (*place, *error.instance_path)
                hint = "see JSON Schema 2020-12"
                yield Problem(f"this is no valid schema: {_reason(error)}", written(where), hint=hint)
        elif not self._sound(schema):
            for where, here in _walk(schema, place):
                yield from self._faults(where, here)

    def _sound(self, schema: Any) -> bool:
        """Whether every reference and every pattern of a valid schema is good; most are."""
        waiting = [schema]
        while waiting:
            here = waiting.pop()
            if not isinstance(here, dict):
                continue
            for key, value in here.items():
                if key in MAP:
                    waiting.extend(value.values())
                    if key == "patternProperties" and not all(map(self._compiles, value)):
                        return False
                elif key in ONE:
                    waiting.append(value)
                elif key in LIST:
                    waiting.extend(value)
                elif (key == "$ref" and not self._leads(value)) or (key == "pattern" and not self._compiles(value)):
                    return False
        return True

    def _faults(self, place: Place, schema: dict[str, Any]) -> Iterator[Problem]:
        ref = schema.get("$ref")
        if ref is not None and not self._leads(ref):
            names = references({"$ref": ref})
            shown = "#/schemas/" + ref[len(PREFIX) :] if names else ref
            near = "".join(did_you_mean(name, self._known) for name in names)
            hint = "references point to the file's own schemas: #/schemas/NAME"
            yield Problem(f"{shown!r} leads nowhere{near}", written((*place, "$ref")), hint=hint)
        for key in ("pattern", "patternProperties"):
            value = schema.get(key)
            for pattern in [value] if isinstance(value, str) else value or ():
                if not self._compiles(pattern):
                    yield Problem(f"{pattern!r} is no regular expression", written((*place, key)))

    def _leads(self, ref: str) -> bool:
        return not references({"$ref": ref}).isdisjoint(self._known)

    def _compiles(self, pattern: str) -> bool:
        known = self._patterns.get(pattern)
        if known is None:
            known = self._patterns[pattern] = _compiles(pattern)
        return known


def _input(schema: dict[str, Any], place: Place) -> Iterator[Problem]:
    """Faults of a tool's input schema: arguments are declared in `properties` and nowhere else."""
    if schema.get("type") != "object":
        yield Problem("the input is an object", written((*place, "type")), hint="type: object")
    if not isinstance(schema.get("properties"), dict):
        yield Problem("arguments are declared in properties", written((*place, "properties")), hint="properties: {...}")
        return
    for key in _NOT_AT_ROOT:
        if key in schema:
            hint = "declare arguments in properties, shared schemas in schemas"
            yield Problem(f"{key!r} cannot stand at the root of parameters", written((*place, key)), hint=hint)
    required = schema.get("required")
    for index, name in enumerate(required if isinstance(required, list) else ()):
        if name not in schema["properties"]:
            message = f"the required argument {name!r} is not declared" + did_you_mean(str(name), schema["properties"])
            yield Problem(message, written((*place, "required", index)))


def _walk(schema: Any, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Every schema inside a valid schema, itself included, with its place."""
    waiting: list[tuple[Place, Any]] = [(place, schema)]
    while waiting:
        where, here = waiting.pop()
        if not isinstance(here, dict):
            continue
        yield where, here
        inner: list[tuple[Place, Any]] = []
        for key, value in here.items():
            if key in MAP:
                inner += [((*where, key, name), child) for name, child in value.items()]
            elif key in LIST:
                inner += [((*where, key, index), child) for index, child in enumerate(value)]
            elif key in ONE:
                inner.append(((*where, key), value))
        waiting += reversed(inner)


@cache
def _metaschema() -> Any:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(
        {"$ref": "https://json-schema.org/draft/2020-12/schema"}, mask="[value]", offline=True
    )


def _compiles(pattern: str) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True)
    except ValueError:
        return False
    return True


def _reason(error: Any) -> str:
    message = str(error.message)
    return message if len(message) <= 120 else message[:117] + "..."
