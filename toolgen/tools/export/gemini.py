"""Gemini function declarations, whose `parameters` are a Schema of Google's own.

That Schema (https://ai.google.dev/api/caching#Schema) is a subset of OpenAPI 3.0's: one `type`, with
`nullable` beside it, enums of strings only, `anyOf`, no references, no `allOf`. References are
written out (`toolgen.tools.export.inline`), the rest is brought over as far as it goes; a demand
that has no keyword there is said in the description, and noted.

Types are in lower case, as Google's own examples have them; the enum is read in any case.
"""

from __future__ import annotations

from typing import Any

from toolgen.tools.export.inline import Inliner
from toolgen.tools.export.merge import NEVER, Impossible, Unmergeable
from toolgen.tools.export.normal import Normal
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.pointers import escape
from toolgen.tools.export.sizes import MAX_SCHEMAS, schemas_in
from toolgen.tools.export.words import described, one_of, sentence
from toolgen.tools.model import Tool

Schema = dict[str, Any]

KEYWORDS = frozenset(
    {"anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength", "maximum"}
    | {"maxProperties", "minItems", "minLength", "minProperties", "minimum", "nullable", "pattern", "properties"}
    | {"propertyOrdering", "required", "title", "type"}
)
FORMATS = {"number": {"float", "double"}, "integer": {"int32", "int64"}, "string": {"date-time"}}
_OBJECT: Schema = {"type": "object", "properties": {}, "required": []}
_PLAIN: tuple[Schema, ...] = ({"type": "string"}, {"type": "number"}, {"type": "boolean"}, _OBJECT)
_ANYTHING: tuple[Schema, ...] = (*_PLAIN, {"type": "array", "items": {"anyOf": list(_PLAIN)}}, {"type": "null"})
_HANDLED = frozenset({"type", "anyOf", "enum", "items", "prefixItems", "properties", "required", "examples"})
_HANDLED |= {"additionalProperties", "format", "description"}


def export_tool(tool: Tool, notes: Notes, inliner: Inliner) -> Schema:
    """A function declaration; `parameters` is left out for a tool without arguments."""
    found: Schema = {"name": tool.name, "description": tool.description}
    schema = inliner(tool.input_schema(), notes)
    try:
        parameters = Gemini(notes).schema(_normal(schema, notes))
    except (Impossible, Unmergeable) as fault:
        notes.add(f"its arguments cannot be described and are left open: {fault.reason}", fault.at)
        parameters = {"type": "object", "description": "Arguments as the description says"}
    if parameters.get("properties") or parameters.get("type") != "object" or "description" in parameters:
        found["parameters"] = parameters
    return found


def _normal(schema: Schema, notes: Notes) -> Schema:
    """The normal form; where unions combine to too much, they are not combined."""
    own = Notes(notes.tool)
    found = Normal({}, own, lenient=True)(schema)
    if schemas_in(found) > MAX_SCHEMAS:
        own = Notes(notes.tool)
        found = Normal({}, own, lenient=True, variants=1)(schema)
    notes.extend(own)
    return found


class Gemini:
    """Writes normal schemas as Gemini Schemas."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def schema(self, schema: Schema, at: str = "") -> Schema:
        """One schema and all in it."""
        if "anyOf" in schema:
            return self._union(schema, at)
        if "type" not in schema:
            return self._anything(schema, at)
        found: Schema = {"type": schema["type"]}
        said: list[str] = []
        if schema["type"] == "object":
            self._object(schema, found, said, at)
        elif schema["type"] == "array":
            self._array(schema, found, at)
        if "enum" in schema:
            self._enum(schema, found, said, at)
        self._rest(schema, found, said, at)
        return described(found, said)

    def _union(self, schema: Schema, at: str) -> Schema:
        """`anyOf` stands alone in its Schema: what is said beside it goes into each variant."""
        branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
        variants = [self.schema(branch, f"{at}/anyOf/{i}") for i, branch in enumerate(branches)]
        beside = {key: value for key, value in schema.items() if key in ("title", "default")}
        if len(branches) < len(schema["anyOf"]):
            beside["nullable"] = True
        flat = [inner for variant in variants for inner in variant.get("anyOf", [variant])]
        default = sentence("default", schema["default"]) if "default" in schema and len(flat) > 1 else ""
        text = " ".join(part for part in (schema.get("description", ""), default) if part)
        done: list[Schema] = []
        for variant in flat:
            parts = [part for part in (text, variant.get("description", "")) if part]
            own = {"description": "\n".join(dict.fromkeys(parts))} if parts else {}
            one = {**(beside if len(flat) == 1 else _only_null(beside)), **variant, **own}
            done += [one] if one not in done else []
        return done[0] if len(done) == 1 else {"anyOf": done}

    def _anything(self, schema: Schema, at: str) -> Schema:
        """A value of any type, as the union of all: a Schema has to say its type."""
        self._notes.add("any value is allowed; written as a union of all types", at)
        return self._union({**schema, "anyOf": list(_ANYTHING)}, at)

    def _object(self, schema: Schema, found: Schema, said: list[str], at: str) -> None:
        properties = {
            name: self.schema(value, f"{at}/properties/{escape(name)}")
            for name, value in schema["properties"].items()
            if value != NEVER
        }
        if properties:
            found["properties"] = properties
        if schema["required"]:
            found["required"] = list(schema["required"])
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict) or "patternProperties" in schema:
            self._notes.add("a map: its values are described in words only", at)
        if isinstance(rest, dict):
            kind = rest.get("type")
            said.append(f"Takes further keys, each with a value of type {kind}." if kind else "Takes further keys.")

    def _array(self, schema: Schema, found: Schema, at: str) -> None:
        """`items` has to be there; a tuple's places become one union."""
        if "prefixItems" in schema:
            self._notes.dropped("prefixItems", at)
            places = [*schema["prefixItems"], *([schema["items"]] if "items" in schema else [])]
            found["items"] = self.schema({"anyOf": places}, f"{at}/prefixItems")
        else:
            found["items"] = self.schema(schema.get("items", {}), f"{at}/items")

    def _enum(self, schema: Schema, found: Schema, said: list[str], at: str) -> None:
        if schema["type"] == "string":
            found["enum"] = list(schema["enum"])
            found["format"] = "enum"
            return
        self._notes.add(f"an enum of type {schema['type']} is said in the description", at)
        said.append(one_of(schema["enum"]))

    def _rest(self, schema: Schema, found: Schema, said: list[str], at: str) -> None:
        """Keywords that stay as they are, and those that become words."""
        kind = schema["type"]
        if "description" in schema:
            found["description"] = schema["description"]
        if schema.get("examples"):
            found["example"] = schema["examples"][0]
        if "format" in schema and "format" not in found:
            if schema["format"] in FORMATS.get(kind, ()):
                found["format"] = schema["format"]
            else:
                said.append(sentence("format", schema["format"]))
                self._notes.add(f"format {schema['format']} is said in the description", at)
        for key, value in schema.items():
            if key in KEYWORDS and key not in _HANDLED:
                found[key] = value
            elif key not in _HANDLED:
                said.append(sentence(key, value))
                if key != "deprecated":
                    how = "is said in the description" if said[-1] else "is left out: this target does not have it"
                    self._notes.add(f"{key} {how}", at)


def _only_null(beside: Schema) -> Schema:
    return {key: value for key, value in beside.items() if key == "nullable"}
