"""Schemas as openapi-core can work with them: what it would crash on or misread is restated, or left out and said.

A value that a style writes arrives as text, and openapi-core casts it by the `type` that stands at the top of a
schema: there must be one, and it must be one only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolgen.openapi.references import escape, unescape
from toolgen.openapi.schema.keywords import LIST, MAP, ONE, PREFIX

COMPONENTS: Final = "#/components/schemas/"
SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
SEVERAL_TYPES: Final = "several types are allowed, and text on the wire has none; only that it is there is checked"
NESTED: Final = "arrays and objects inside a styled value have no form in OpenAPI; they are not looked at"
PATTERN_NAMES: Final = "openapi-core reads `patternProperties` as Python's regular expressions; they are not checked"
_PROSE: Final = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "$schema", "$id", "$comment", "$defs"}
)
_MOST_HOPS: Final = 50


class Schemas:
    """Copies schemas into the one-operation document; `said` collects (reason) of what was left out of them."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self.components: dict[str, Any] = {}
        self.said: dict[str, None] = {}

    def copy(self, schema: Any) -> Any:
        """The whole schema, its references into the components, which are copied as they are met."""
        waiting: list[str] = []
        made = self._copy(schema, waiting)
        while waiting:
            name = waiting.pop()
            if name not in self.components:
                self.components[name] = {}
                self.components[name] = self._copy(self._definitions[name], waiting)
        return made

    def _copy(self, schema: Any, waiting: list[str]) -> Any:
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            return {"not": {}}  # openapi-core cannot read a schema that is `false`
        out: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _PROSE:
                continue
            if key == "$ref" and isinstance(value, str):
                name, _ = self._definition(value)
                waiting.append(name)
                out[key] = COMPONENTS + escape(name)
            elif key in MAP and isinstance(value, dict):
                out[key] = {name: self._copy(member, waiting) for name, member in value.items()}
            elif key in LIST and isinstance(value, list):
                out[key] = [self._copy(member, waiting) for member in value]
            elif key in ONE:
                out[key] = value if isinstance(value, bool) else self._copy(value, waiting)
            else:
                out[key] = value
        return self._without_patterns(out)

    def _definition(self, reference: str) -> tuple[str, Any]:
        """Name and schema a reference means. Raises ValueError for one that leads out of the definitions."""
        name = unescape(reference.removeprefix(PREFIX))
        if not reference.startswith(PREFIX) or name not in self._definitions:
            raise ValueError("a reference leads nowhere")
        return name, self._definitions[name]

    def _without_patterns(self, schema: dict[str, Any]) -> dict[str, Any]:
        if not schema.get("patternProperties"):
            return schema
        self.said[PATTERN_NAMES] = None
        gone = ("patternProperties", "additionalProperties", "unevaluatedProperties")
        return {key: value for key, value in schema.items() if key not in gone}

    # Values that are text on the wire

    def kind(self, schema: Any) -> str:
        """`scalar`, `array`, `object`, or `` for what could be several or anything."""
        flat = self.flat(schema)
        kind = flat.get("type")
        return "scalar" if kind in SCALARS else kind if kind in ("array", "object") else ""

    def flat(self, schema: Any) -> dict[str, Any]:
        """A schema with its references and single alternatives written out at the top, `type` one text or absent.

        null is left out: no style can write it.
        """
        here = dict(schema) if isinstance(schema, dict) else {}
        for _ in range(_MOST_HOPS):
            if isinstance(here.get("$ref"), str):
                target = self._definition(here["$ref"])[1]
                here = _merged(here, "$ref", target if isinstance(target, dict) else {})
                continue
            for key in ("allOf", "anyOf", "oneOf"):
                members = [m for m in here.get(key, ()) if not _is_null(m)]
                if key in here and len(members) == 1 and isinstance(members[0], dict):
                    here = _merged(here, key, members[0])
                    break
            else:
                return self._one_type(here)
        return {}

    def _one_type(self, schema: dict[str, Any]) -> dict[str, Any]:
        kinds = schema.get("type")
        kinds = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list) else kinds
        if isinstance(kinds, list):
            kinds = kinds[0] if len(kinds) == 1 else ""
        if kinds is None:
            kinds = self._implied(schema)
        rest = {key: value for key, value in schema.items() if key != "type"}
        return {**rest, "type": kinds} if kinds else rest

    def _implied(self, schema: dict[str, Any]) -> str:
        """The type a schema without `type` can only have."""
        if "properties" in schema or "items" in schema:
            return "object" if "properties" in schema else "array"
        members = [m for key in ("anyOf", "oneOf") for m in schema.get(key, ()) if not _is_null(m)]
        kinds = {str(self.flat(member).get("type", "")) for member in members}
        kinds |= {k for m in schema.get("allOf", ()) if (k := str(self.flat(m).get("type", "")))}
        values = [v for v in schema.get("enum", [schema.get("const")]) if v is not None]
        if values and all(isinstance(value, str) for value in values):
            kinds.add("string")
        return kinds.pop() if len(kinds) == 1 else ""

    def styled(self, schema: Any) -> dict[str, Any]:
        """What a style writes: text, or an array or object of texts, and what is inside these not looked at."""
        flat = self.flat(schema)
        kind = flat.get("type")
        if kind in SCALARS:
            return self._scalar(flat)
        if kind == "array":
            return {**self._sizes(flat), "type": "array", "items": self._inside(flat.get("items", True))}
        if kind == "object":
            properties = {name: self._inside(member) for name, member in flat.get("properties", {}).items()}
            if isinstance(flat.get("additionalProperties"), dict):
                self.said["openapi-core does not cast properties that have no name in the schema"] = None
            return {"type": "object", "properties": properties, "required": flat.get("required", [])}
        if _says(schema):
            self.said[SEVERAL_TYPES] = None
        return {}

    def _inside(self, schema: Any) -> dict[str, Any]:
        flat = self.flat(schema)
        if flat.get("type") in SCALARS:
            return self._scalar(flat)
        if _says(schema):
            self.said[NESTED if flat.get("type") else SEVERAL_TYPES] = None
        return {}

    def _scalar(self, flat: dict[str, Any]) -> dict[str, Any]:
        made = self.copy(flat)
        assert isinstance(made, dict)
        return made

    @staticmethod
    def _sizes(flat: dict[str, Any]) -> dict[str, Any]:
        return {key: flat[key] for key in ("minItems", "maxItems", "uniqueItems") if key in flat}


def _merged(schema: dict[str, Any], key: str, below: dict[str, Any]) -> dict[str, Any]:
    """A schema with one member of it written out; what both say stays in the member, as `allOf`."""
    rest = {k: v for k, v in schema.items() if k != key and k not in _PROSE}
    shared = {k for k in rest if k in below}
    if not shared or all(rest[k] == below[k] for k in shared):
        return {**below, **rest}
    kept = [*rest.pop("allOf", []), {k: below[k] for k in shared if k != "allOf"}, *below.get("allOf", [])]
    return {**below, **rest, "allOf": [member for member in kept if member]}


def _says(schema: Any) -> bool:
    """Whether a schema rules anything out."""
    return isinstance(schema, dict) and not _PROSE.issuperset(schema)


def _is_null(schema: Any) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "null" or schema.get("enum") == [None])
