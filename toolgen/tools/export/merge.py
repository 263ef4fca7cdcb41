"""What two normal schemas allow together, as one normal schema.

A merge is sound: it never allows a value that one of the two forbids, but for single keywords that
cannot be combined (two patterns), where the second is dropped and noted; the API's own schema is
still checked before a call is used. See `toolgen.tools.export.normal` for the form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from toolgen.tools.export.notes import Notes
from toolgen.tools.export.pointers import escape, target_of

Schema = dict[str, Any]

NEVER: Schema = {"not": {}}  # a property that cannot be there
MAX_VARIANTS = 50  # that unions in one place combine to
MAX_MERGES = 20_000  # for one tool
_ANNOTATIONS = ("title", "description", "default", "examples", "deprecated")
_GREATER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"})
_SMALLER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"})
_OWN_RULES = frozenset({"type", "properties", "required", "additionalProperties", "items", "enum"})


class Unmergeable(Exception):
    """Two schemas have no common form here; `reason` says why."""

    def __init__(self, reason: str, at: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


class Impossible(Exception):
    """No value satisfies the schema."""

    def __init__(self, reason: str, at: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


def annotate(schema: Schema, other: Schema) -> Schema:
    """The schema with the annotations of the other where it has none."""
    return {**{key: other[key] for key in _ANNOTATIONS if key in other}, **schema}


def distinct(schemas: list[Schema]) -> list[Schema]:
    """The schemas without leaves that repeat. Larger ones are not compared: parts are shared, comparing is not."""
    found: list[Schema] = []
    for schema in schemas:
        if not (_is_leaf(schema) and schema in found):
            found.append(schema)
    return found


def is_whole(value: float) -> bool:
    """Whether a number is an integer to JSON Schema."""
    return isinstance(value, int) or value.is_integer()


def _is_leaf(schema: Schema) -> bool:
    return not schema.keys() & {"properties", "items", "anyOf", "prefixItems"}


def _bare(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in _ANNOTATIONS}


class Merge:
    """Merges normal schemas; `resolve` gives a definition in normal form."""

    def __init__(self, resolve: Callable[[str], Schema], notes: Notes, variants: int) -> None:
        self._resolve = resolve
        self._notes = notes
        self._variants = variants
        self._merging: list[str] = []
        self._count = 0

    def __call__(self, left: Schema, right: Schema, at: str) -> Schema:
        """Both at once; the left one's annotations win."""
        if NEVER in (left, right):
            raise Impossible("nothing is allowed", at)
        self._count += 1
        if self._count > MAX_MERGES:
            raise Unmergeable("it combines too much", at)
        if not _bare(left) or (_is_leaf(left) and _bare(left) == _bare(right)):
            return annotate({**right, **left}, {})
        if not _bare(right):
            return annotate(left, right)
        for one, other in ((left, right), (right, left)):
            name = target_of(one)
            if name is not None:
                with self._inside(name, at):
                    meant = {**self._resolve(name), **{k: v for k, v in one.items() if k != "$ref"}}
                    return self(meant, other, at) if one is left else self(other, meant, at)
        if "anyOf" in left or "anyOf" in right:
            return self._distributed(left, right, at)
        return self._typed(left, right, at)

    @contextmanager
    def _inside(self, name: str, at: str) -> Iterator[None]:
        if name in self._merging:
            raise Unmergeable(f"{name!r} is combined with itself", at)
        self._merging.append(name)
        try:
            yield
        finally:
            self._merging.pop()

    def _distributed(self, left: Schema, right: Schema, at: str) -> Schema:
        """Every variant of the one with every variant of the other."""
        lefts, rights = left.get("anyOf", [_bare(left)]), right.get("anyOf", [_bare(right)])
        if len(lefts) * len(rights) > self._variants:
            raise Unmergeable(f"its unions combine to {len(lefts) * len(rights)} variants", at)
        found: list[Schema] = []
        for one in lefts:
            for other in rights:
                try:
                    found.append(self(one, other, at))
                except Impossible:
                    continue
        found = distinct(found)
        if not found:
            raise Impossible("no variant is possible", at)
        notes = {key: value for key, value in annotate(left, right).items() if key in _ANNOTATIONS}
        return annotate(found[0], notes) if len(found) == 1 else {"anyOf": found, **notes}

    def _typed(self, left: Schema, right: Schema, at: str) -> Schema:
        kinds = {left["type"], right["type"]}
        if len(kinds) > 1 and kinds != {"integer", "number"}:
            raise Impossible(f"it would be {left['type']} and {right['type']} at once", at)
        found: Schema = {"type": "integer" if len(kinds) > 1 else left["type"]}
        for key in dict.fromkeys([*left, *right]):
            if key not in _OWN_RULES:
                found[key] = self._keyword(key, left, right, at)
        if "enum" in left or "enum" in right:
            found["enum"] = self._enum(left, right, at)
        if found["type"] == "object":
            self._object(left, right, found, at)
        elif found["type"] == "array":
            self._array(left, right, found, at)
        return found

    def _array(self, left: Schema, right: Schema, found: Schema, at: str) -> None:
        if left.get("prefixItems") != right.get("prefixItems"):
            raise Unmergeable("a tuple meets another array", at)
        try:
            if "items" in left or "items" in right:
                found["items"] = self(left.get("items", {}), right.get("items", {}), f"{at}/items")
        except Impossible:
            length = len(found.get("prefixItems", ()))
            found["maxItems"] = min(length, found.get("maxItems", length))

    def _keyword(self, key: str, left: Schema, right: Schema, at: str) -> Any:
        if key not in right or key not in left or left[key] == right[key] or key in _ANNOTATIONS:
            return left[key] if key in left else right[key]
        if key in _GREATER:
            return max(left[key], right[key])
        if key in _SMALLER:
            return min(left[key], right[key])
        if key == "uniqueItems":
            return left[key] or right[key]
        if key == "multipleOf" and isinstance(left[key], int) and isinstance(right[key], int):
            return math.lcm(left[key], right[key])
        self._notes.add(f"two different {key} meet, only the first is kept", at)
        return left[key]

    def _enum(self, left: Schema, right: Schema, at: str) -> list[Any]:
        values: list[Any] = left["enum"] if "enum" in left else right["enum"]
        if "enum" in left and "enum" in right:
            values = [value for value in values if any(_same(value, other) for other in right["enum"])]
        whole = "integer" in (left["type"], right["type"])
        values = [value for value in values if not whole or is_whole(value)]
        if not values:
            raise Impossible("its enums have no value in common", at)
        return values

    def _object(self, left: Schema, right: Schema, found: Schema, at: str) -> None:
        """A property must satisfy, on each side, its own schema or else the one for further keys."""
        if "patternProperties" in left or "patternProperties" in right:
            raise Unmergeable("patternProperties meet other properties", at)
        required = list(dict.fromkeys([*left["required"], *right["required"]]))
        properties: Schema = {}
        for name in dict.fromkeys([*left["properties"], *right["properties"]]):
            where = f"{at}/properties/{escape(name)}"
            try:
                properties[name] = self(_property(left, name, where), _property(right, name, where), where)
            except Impossible as fault:
                if name in required:
                    raise
                self._notes.add(f"a property can never be there: {fault.reason}", where)
                properties[name] = NEVER
        found["properties"], found["required"] = properties, required
        rests = [s["additionalProperties"] for s in (left, right) if "additionalProperties" in s]
        if rests:
            found["additionalProperties"] = self._rest(rests, at)

    def _rest(self, rests: list[Schema | bool], at: str) -> Schema | bool:
        schemas = [rest for rest in rests if isinstance(rest, dict)]
        if False in rests:
            return False
        if len(schemas) < 2:
            return schemas[0] if schemas else True
        try:
            return self(schemas[0], schemas[1], f"{at}/additionalProperties")
        except Impossible:
            return False


def _property(schema: Schema, name: str, at: str) -> Schema:
    """What a side says about a property: its schema, or the one for keys it does not name."""
    if name in schema["properties"]:
        own: Schema = schema["properties"][name]
        return own
    rest = schema.get("additionalProperties", True)
    if rest is False:
        raise Impossible("a closed schema beside it does not name it", at)
    return rest if isinstance(rest, dict) else {}


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: True is not 1."""
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
