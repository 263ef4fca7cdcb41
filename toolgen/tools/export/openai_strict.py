"""OpenAI function tools in strict mode, and the way back from a strict model's arguments.

Strict mode takes a subset of JSON Schema (https://developers.openai.com/api/docs/guides/structured-outputs,
"Supported schemas"): objects are closed, every property is required, and an optional one is written
as nullable. A tool whose schema has no such form is named in a note and exported as it is, with
`strict: false`: free-form objects and maps, values without a type, tuples, combinations that do not
merge, and whatever passes the documented sizes.

The nulls a strict model has to write for what it leaves out are taken out again by
`toolgen.tools.export.strict_nulls.strip_strict_nulls`.
"""

from __future__ import annotations

from typing import Any

from toolgen.tools.export.described import Described
from toolgen.tools.export.limits import passed
from toolgen.tools.export.merge import NEVER, Impossible, Unmergeable
from toolgen.tools.export.normal import ANNOTATIONS, Normal
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.pointers import escape, target_of
from toolgen.tools.export.sizes import MAX_SCHEMAS, schemas_in
from toolgen.tools.export.words import described, sentence

Schema = dict[str, Any]

FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_KEYWORDS = frozenset({"pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"})
_KEYWORDS |= {"minItems", "maxItems"}
_STRUCTURE = frozenset({"type", "enum", "properties", "required", "additionalProperties", "items", "title"})


class NotStrict(Exception):
    """A schema has no strict form; `reason` says why and `at` where."""

    def __init__(self, reason: str, at: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


def export_tool(tool: Described, notes: Notes) -> Schema:
    """A chat completions tool, strict where that is possible."""
    function: Schema = {"name": tool.name, "description": tool.description}
    schema = tool.input_schema()
    own = Notes(tool.name)
    try:
        strict = Strict(schema, own)
    except NotStrict as fault:
        notes.add(f"not strict: {fault.reason}", fault.at)
        return {"type": "function", "function": {**function, "parameters": schema, "strict": False}}
    notes.extend(own)
    for pointer in strict.cannot_clear:
        notes.add("optional and nullable: null means 'leave it out', so this tool cannot set it to null", pointer)
    return {"type": "function", "function": {**function, "parameters": strict.schema, "strict": True}}


class Strict:
    """The strict form of a self-contained schema. Raises NotStrict where there is none.

    `plain` is the normal form it was tightened from: the same shape, in which optional properties
    are still optional. `definitions` has the normal form of every definition the result refers to.
    """

    def __init__(self, schema: Schema, notes: Notes) -> None:
        self._notes = notes
        self._normal = Normal(schema.get("$defs", {}), notes)
        self.definitions: dict[str, Schema] = {}
        self.cannot_clear: list[str] = []
        self._waiting: list[str] = []
        try:
            self.plain = self._normal({key: value for key, value in schema.items() if key != "$defs"})
            if self.plain.get("type") != "object":
                raise NotStrict("its root is not one object", "")
            _check_size(self.plain)
            self.schema = self._closed(self.tighten(self.plain))
        except (Unmergeable, Impossible) as fault:
            raise NotStrict(fault.reason, fault.at) from None
        too_much = passed(self.schema, "openai-strict")
        if too_much:
            raise NotStrict("; ".join(too_much), "")

    def _closed(self, schema: Schema) -> Schema:
        """The schema with the definitions it reaches, in alphabetical order."""
        made: dict[str, Schema] = {}
        while self._waiting:
            name = self._waiting.pop()
            if name not in made:
                self.definitions[name] = self._normal.definition(name)
                _check_size(self.definitions[name])
                made[name] = self.tighten(self.definitions[name], f"/$defs/{escape(name)}")
        for name in made:
            self._check_alias(name)
        return {**schema, "$defs": dict(sorted(made.items()))} if made else schema

    def _check_alias(self, name: str) -> None:
        seen: set[str] = set()
        target: str | None = name
        while target is not None:
            if target in seen:
                raise NotStrict(f"{name!r} is nothing but a reference to itself", f"/$defs/{escape(name)}")
            seen.add(target)
            target = target_of(self.definitions[target])

    def tighten(self, schema: Schema, at: str = "") -> Schema:
        """The strict form of one normal schema; a union keeps its variants in their order."""
        if "$ref" in schema or "anyOf" in schema:
            said = [sentence(key, schema[key]) for key in ("default", "deprecated") if key in schema]
            notes = _prose(described(schema, said))
        if "$ref" in schema:
            self._waiting.append(target_of(schema) or "")
            return {"anyOf": [{"$ref": schema["$ref"]}], **notes} if notes else {"$ref": schema["$ref"]}
        if "anyOf" in schema:
            variants = [self.tighten(branch, f"{at}/anyOf/{i}") for i, branch in enumerate(schema["anyOf"])]
            return {"anyOf": variants, **notes}
        if "type" not in schema:
            raise NotStrict("a value without a type", at)
        if any(isinstance(value, dict | list) for value in schema.get("enum", ())):
            raise NotStrict("an enum of objects or arrays", at)
        if schema["type"] == "object":
            return self._object(schema, at)
        return self._scalar_or_array(schema, at)

    def _object(self, schema: Schema, at: str) -> Schema:
        rest = schema.get("additionalProperties")
        if rest not in (None, False) or "patternProperties" in schema:
            raise NotStrict("a map: an object that takes keys it does not name", at)
        named = {name: value for name, value in schema["properties"].items() if value != NEVER}
        if rest is None and not named:
            raise NotStrict("a free-form object", at)
        properties: Schema = {}
        for name, value in named.items():
            where = f"{at}/properties/{escape(name)}"
            properties[name] = self.tighten(value, where)
            if name not in schema["required"]:
                if self.allows_null(value):
                    self.cannot_clear.append(where)
                properties[name] = nullable(properties[name])
        found = {"type": "object", "properties": properties, "required": list(properties)}
        return self._keywords(schema, {**found, "additionalProperties": False}, at)

    def _scalar_or_array(self, schema: Schema, at: str) -> Schema:
        found: Schema = {"type": schema["type"]}
        if schema["type"] == "array":
            if "prefixItems" in schema:
                raise NotStrict("a tuple", at)
            found["items"] = self.tighten(schema.get("items", {}), f"{at}/items")
        if "enum" in schema:
            found["enum"] = list(schema["enum"])
        return self._keywords(schema, found, at)

    def _keywords(self, schema: Schema, found: Schema, at: str) -> Schema:
        """Keep what strict mode has; what it does not have is noted, and said in the description."""
        said: list[str] = []
        for key, value in schema.items():
            if key in _KEYWORDS and not (key == "format" and (schema["type"] != "string" or value not in FORMATS)):
                found[key] = value
            elif key not in _STRUCTURE and key != "description":
                said.append(sentence(key, value))
                if key not in ANNOTATIONS:
                    self._notes.dropped(key if key != "format" else f"format {value}", at)
        return described({**found, **_prose(schema)}, said)

    def allows_null(self, schema: Schema, seen: frozenset[str] = frozenset()) -> bool:
        """Whether null is valid under a normal schema."""
        name = target_of(schema)
        if name is not None:
            return name not in seen and self.allows_null(self._normal.definition(name), seen | {name})
        if "anyOf" in schema:
            return any(self.allows_null(branch, seen) for branch in schema["anyOf"])
        return "type" not in schema or schema["type"] == "null"


def _check_size(schema: Schema) -> None:
    if schemas_in(schema) > MAX_SCHEMAS:
        raise NotStrict("its variants combine to too much", "")


def _prose(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key in ("title", "description")}


def nullable(schema: Schema) -> Schema:
    """A strict schema that takes null too."""
    null = {"type": "null"}
    if schema == null or null in schema.get("anyOf", ()):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], null]}
    if isinstance(schema.get("type"), str) and schema["type"] not in ("object", "array") and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    prose = _prose(schema)
    return {"anyOf": [{key: value for key, value in schema.items() if key not in prose}, null], **prose}
