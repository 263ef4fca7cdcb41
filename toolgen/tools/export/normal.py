"""One plain form of schema that the targets with a schema language of their own are written from.

A normal schema is one of

- `{}`: anything;
- `{"$ref": ...}`: a definition, as it is;
- `{"anyOf": [...]}`: at least one of these, all normal;
- `{"type": T, ...}` with a single T: the keywords that concern that type. `properties`, `items` and
  the schemas in `prefixItems` and `additionalProperties` are normal; `const` is an `enum` of one. A
  property that cannot be there is NEVER.

Any of them may carry annotations. `allOf` is merged, `oneOf` becomes `anyOf` (every value that was
valid still is), and keywords neither target has (`not`, `if`) are dropped and noted. A schema that
does not say its type gets the one its keywords are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgen.tools.export.merge import MAX_VARIANTS, NEVER, Impossible, Merge, Unmergeable, annotate, distinct, is_whole
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.pointers import escape, target_of

Schema = dict[str, Any]

ANNOTATIONS = ("title", "description", "default", "examples", "deprecated")
MAX_DEPTH = 60
_SILENT = frozenset({"$comment", "$schema", "$id", "$anchor", "$defs", "readOnly", "writeOnly"})
_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_TYPE: dict[str, tuple[str, ...]] = {
    "object": (
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
        *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas"),
    ),
    "array": (
        *("items", "prefixItems", "contains", "minContains", "maxContains"),
        *("minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
    ),
    "string": ("pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType", "contentSchema", "format"),
    "number": (*_NUMERIC, "format"),
    "integer": (*_NUMERIC, "format"),
    "boolean": (),
    "null": (),
}
_KNOWN = _SILENT | frozenset(key for keys in _OF_TYPE.values() for key in keys) | frozenset(ANNOTATIONS)
_KNOWN |= {"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "unevaluatedProperties"}


class Normal:
    """Brings schemas into the normal form.

    `definitions` is what references mean. A schema that cannot be merged raises Unmergeable, one
    that no value satisfies raises Impossible; with `lenient` the part that cannot be merged is left
    out and noted instead, and closed objects are open: the result only allows more. `variants` limits
    what unions may combine to.
    """

    def __init__(
        self, definitions: Mapping[str, Any], notes: Notes, *, lenient: bool = False, variants: int = MAX_VARIANTS
    ) -> None:
        self._definitions = definitions
        self._notes = notes
        self._lenient = lenient
        self._depth = 0
        self._made: dict[str, Schema] = {}
        self._merge = Merge(self.definition, notes, variants)

    def __call__(self, schema: Any, at: str = "") -> Schema:
        """The normal form of a schema that stands at this JSON pointer."""
        if schema is False:
            raise Impossible("nothing is allowed", at)
        if not isinstance(schema, dict):
            return {}
        if self._depth >= MAX_DEPTH:
            return self._too_deep(at)
        self._depth += 1
        try:
            return self._schema(schema, at)
        finally:
            self._depth -= 1

    def definition(self, name: str) -> Schema:
        """The normal form of a definition, made once."""
        if name not in self._definitions:
            raise Unmergeable(f"the reference to {name!r} points nowhere", "")
        if name not in self._made:
            self._made[name] = self(self._definitions[name], f"/$defs/{escape(name)}")
        return self._made[name]

    def _too_deep(self, at: str) -> Schema:
        if not self._lenient:
            raise Unmergeable(f"it nests deeper than {MAX_DEPTH} schemas", at)
        self._notes.add(f"left open: it nests deeper than {MAX_DEPTH} schemas", at)
        return {}

    def _schema(self, schema: Schema, at: str) -> Schema:
        for key in schema:
            if key not in _KNOWN:
                self._notes.dropped(key, at)
        found = self._typed(schema, at)
        if target_of(schema) is not None:
            found = self._both(found, {"$ref": schema["$ref"]}, at)
        for i, member in enumerate(schema.get("allOf", ())):
            found = self._member(found, member, f"{at}/allOf/{i}")
        for key in ("anyOf", "oneOf"):
            if key in schema:
                found = self._both(found, self._union(schema[key], f"{at}/{key}"), at)
        if schema.get("unevaluatedProperties") is False and found.get("type") == "object":
            found.setdefault("additionalProperties", False)
        return found

    def _both(self, left: Schema, right: Schema, at: str) -> Schema:
        try:
            return self._merge(left, right, at)
        except (Unmergeable, Impossible) as fault:
            if not self._lenient:
                raise
            self._notes.add(f"part of it is left out: {fault.reason}", at)
            return annotate(left, right) if left.keys() - set(ANNOTATIONS) else right

    def _member(self, found: Schema, member: Any, at: str) -> Schema:
        return self._both(found, self(member, at), at)

    def _union(self, members: Iterable[Any], at: str) -> Schema:
        branches: list[Schema] = []
        for i, member in enumerate(members):
            try:
                branch = self(member, f"{at}/{i}")
            except Impossible:
                continue
            nested = branch.get("anyOf") if branch.keys() == {"anyOf"} else None
            branches += nested or [branch]
        if not branches:
            raise Impossible("no variant is possible", at)
        branches = distinct(branches)
        return branches[0] if len(branches) == 1 else {"anyOf": branches}

    def _typed(self, schema: Schema, at: str) -> Schema:
        """The schema by its own keywords, what it combines with left aside."""
        notes = {key: schema[key] for key in ANNOTATIONS if key in schema}
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if values == []:
            raise Impossible("an enum without values", at)
        types = _types_of(schema, values)
        if types is None:
            return notes
        branches = [self._one(schema, kind, values, at) for kind in types]
        branches = [branch for branch in branches if branch.get("enum") != []]
        if not branches:
            raise Impossible("no value fits both the type and the enum", at)
        return {**(branches[0] if len(branches) == 1 else {"anyOf": branches}), **notes}

    def _one(self, schema: Schema, kind: str, values: list[Any] | None, at: str) -> Schema:
        found: Schema = {"type": kind}
        if values is not None and kind != "null":
            found["enum"] = [value for value in values if is_of_type(value, kind)]
        elif values is not None and None not in values:
            found["enum"] = []
        for key in _OF_TYPE[kind]:
            if key in schema and key not in ("properties", "items", "prefixItems", "additionalProperties"):
                found[key] = schema[key]
        if kind == "object":
            self._object(schema, found, at)
        elif kind == "array":
            self._array(schema, found, at)
        return found

    def _object(self, schema: Schema, found: Schema, at: str) -> None:
        """Properties and what else an object may hold; a required name without a schema gets an open one."""
        required = list(dict.fromkeys(schema.get("required", ())))
        properties: Schema = {}
        for name, value in schema.get("properties", {}).items():
            try:
                properties[name] = self(value, f"{at}/properties/{escape(name)}")
            except Impossible:
                if name in required:
                    raise
                self._notes.add("a property can never be there", f"{at}/properties/{escape(name)}")
                properties[name] = NEVER
        rest = self._rest(schema, at)
        for name in required:
            if name not in properties:
                if rest is False:
                    raise Impossible(f"{name!r} is required and cannot be there", at)
                properties[name] = rest if isinstance(rest, dict) else {}
        found["properties"] = properties
        found["required"] = required
        if rest is not None:
            found["additionalProperties"] = rest

    def _rest(self, schema: Schema, at: str) -> Schema | bool | None:
        value = schema.get("additionalProperties", schema.get("unevaluatedProperties") or None)
        if not isinstance(value, dict):
            return value if isinstance(value, bool) and (value or not self._lenient) else None
        try:
            return self(value, f"{at}/additionalProperties") or True
        except Impossible:
            return False

    def _array(self, schema: Schema, found: Schema, at: str) -> None:
        if "prefixItems" in schema:
            found["prefixItems"] = [self(v, f"{at}/prefixItems/{i}") for i, v in enumerate(schema["prefixItems"])]
        try:
            if "items" in schema:
                found["items"] = self(schema["items"], f"{at}/items")
        except Impossible:
            found["maxItems"] = min(len(schema.get("prefixItems", ())), schema.get("maxItems", 2**31))


def is_of_type(value: Any, kind: str) -> bool:
    """Whether a JSON value is of a JSON Schema type; 1.0 is an integer, a boolean is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and is_whole(value))
    return isinstance(value, _PYTHON.get(kind, ()))


_PYTHON: dict[str, type] = {"string": str, "array": list, "object": dict, "null": type(None)}


def _types_of(schema: Schema, values: list[Any] | None) -> list[str] | None:
    """The types a schema names, or else the ones its values or keywords have; None for any."""
    declared = schema.get("type")
    if declared is None:
        kinds = _kinds_of_values(values) if values is not None else _kinds_of_keywords(schema)
    else:
        kinds = [declared] if isinstance(declared, str) else list(declared)
    kinds = [kind for kind in kinds if kind in _OF_TYPE and not (kind == "integer" and "number" in kinds)]
    return list(dict.fromkeys(kinds)) or None


def _kinds_of_values(values: list[Any]) -> list[str]:
    kinds = ("string", "boolean", "integer", "number", "null", "array", "object")
    return [next(kind for kind in kinds if is_of_type(value, kind)) for value in values]


def _kinds_of_keywords(schema: Schema) -> list[str]:
    kinds = ("object", "array", "string", "number")  # `format` alone tells nothing
    return [kind for kind in kinds if any(key in schema for key in _OF_TYPE[kind] if key != "format")]
