"""Gemini's Schema: what goes in is only what the reference documents, and the rest is said in words."""

from __future__ import annotations

from typing import Any

import pytest

from toolgen.tools.export import Export, export
from toolgen.tools.export.gemini import FORMATS, KEYWORDS
from toolgen.tools.model import Annotations, Endpoint, RequestTemplate, Tool, Toolset

TYPES = {"string", "number", "integer", "boolean", "array", "object", "null"}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def exported(properties: dict[str, Any], schemas: dict[str, Any] | None = None, **root: Any) -> Export:
    hints = Annotations(
        title="T", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
    )
    tool = Tool(
        name="t",
        description="Does it",
        endpoint=Endpoint(method="get", path="/"),
        annotations=hints,
        parameters={"type": "object", "properties": properties, "additionalProperties": False, **root},
        request=RequestTemplate(),
    )
    found = export(Toolset(api="x", schemas=schemas or {}, tools=(tool,)), "gemini")
    follow_grammar(found.data[0].get("parameters", {"type": "object"}))
    return found


def argument(schema: Any, schemas: dict[str, Any] | None = None) -> Any:
    return exported({"a": schema}, schemas).data[0]["parameters"]["properties"]["a"]


def messages(found: Export) -> list[str]:
    return [note.message for note in found.notes]


def follow_grammar(schema: dict[str, Any]) -> None:
    """Fail unless the schema is one of Google's Schema Objects."""
    assert set(schema) <= KEYWORDS, set(schema) - KEYWORDS
    if "anyOf" in schema:
        assert set(schema) == {"anyOf"}
        assert len(schema["anyOf"]) > 1
        list(map(follow_grammar, schema["anyOf"]))
        return
    assert schema["type"] in TYPES
    assert schema.get("nullable", True) is True
    if "enum" in schema:
        assert schema["type"] == "string"
        assert schema["format"] == "enum"
        assert all(isinstance(value, str) for value in schema["enum"])
    elif "format" in schema:
        assert schema["format"] in FORMATS[schema["type"]]
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    list(map(follow_grammar, schema.get("properties", {}).values()))
    if schema["type"] == "array":
        follow_grammar(schema["items"])


def test_a_tool_without_arguments_has_no_parameters() -> None:
    assert exported({}).data == [{"name": "t", "description": "Does it"}]


def test_references_are_written_out_and_a_property_of_the_name_stays() -> None:
    schemas = {"Pet": {"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]}}
    expected = {"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]}
    assert argument(ref("Pet"), schemas) == expected


def test_recursion_is_cut_and_noted() -> None:
    found = exported({"a": ref("N")}, {"N": {"type": "object", "properties": {"n": ref("N")}}})
    second = {"type": "object", "properties": {"n": {"type": "object", "description": "N, not expanded further"}}}
    assert found.data[0]["parameters"]["properties"]["a"] == {"type": "object", "properties": {"n": second}}
    assert messages(found) == ["'N' is not expanded further"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"nullable": True, "type": "string"}),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, {"nullable": True, "type": "integer"}),
        ({"enum": ["a", None]}, {"nullable": True, "type": "string", "enum": ["a"], "format": "enum"}),
        ({"const": "a"}, {"type": "string", "enum": ["a"], "format": "enum"}),
        ({"enum": [1, 2]}, {"type": "integer", "description": "One of: 1, 2."}),
        ({"type": "boolean", "enum": [True]}, {"type": "boolean", "description": "Always true."}),
        ({"const": 7, "description": "Seven"}, {"type": "integer", "description": "Seven. Always 7."}),
        ({"type": "null"}, {"type": "null"}),
        ({"type": "integer", "format": "int64"}, {"type": "integer", "format": "int64"}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "email"}, {"type": "string", "description": "Format: email."}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "description": "Greater than 0."}),
        (
            {"type": "number", "multipleOf": 2, "minimum": 1},
            {"type": "number", "minimum": 1, "description": "A multiple of 2."},
        ),
        ({"type": "string", "contentEncoding": "base64"}, {"type": "string", "description": "Encoded as base64."}),
        ({"type": "string", "examples": ["x"], "default": "y"}, {"type": "string", "default": "y", "example": "x"}),
        ({"type": "string", "deprecated": True}, {"type": "string", "description": "Deprecated."}),
    ],
)
def test_keywords_are_brought_over_or_put_into_words(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert argument(schema) == expected


def test_one_of_becomes_any_of_with_what_stands_beside_it_inside() -> None:
    schema = {
        "oneOf": [{"type": "string", "description": "A name"}, {"type": "integer"}, {"type": "null"}],
        "description": "Who",
    }
    assert argument(schema) == {
        "anyOf": [
            {"nullable": True, "type": "string", "description": "Who\nA name"},
            {"nullable": True, "type": "integer", "description": "Who"},
        ]
    }


def test_all_of_is_merged() -> None:
    schemas = {"Base": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}
    schema = {"allOf": [ref("Base"), {"properties": {"n": {"type": "integer"}}}], "description": "Both"}
    assert argument(schema, schemas) == {
        "type": "object",
        "properties": {"id": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["id"],
        "description": "Both",
    }


def test_what_cannot_be_merged_is_left_out_and_noted() -> None:
    found = exported({"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}})
    assert found.data[0]["parameters"]["properties"]["a"] == {"type": "string"}
    assert any("left out" in message for message in messages(found))


@pytest.mark.parametrize("schema", [True, {}, {"description": "Anything"}, {"not": {"type": "string"}}])
def test_a_value_of_any_type_is_a_union_of_all(schema: Any) -> None:
    kinds = [each["type"] for each in argument(schema)["anyOf"]]
    assert kinds == ["string", "number", "boolean", "object", "array"]


def test_an_array_always_has_items() -> None:
    assert "anyOf" in argument({"type": "array"})["items"]
    assert argument({"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]})["items"] == {
        "type": "string"
    }


def test_a_map_says_so_in_words_and_in_a_note() -> None:
    found = exported({"a": {"type": "object", "additionalProperties": {"type": "integer"}}})
    text = found.data[0]["parameters"]["properties"]["a"]["description"]
    assert text == "Takes further keys, each with a value of type integer."
    assert messages(found) == ["a map: its values are described in words only"]


def test_a_required_name_without_a_schema_gets_one() -> None:
    schema = argument({"type": "object", "properties": {}, "required": ["x"]})
    assert schema["required"] == ["x"]
    assert "x" in schema["properties"]


def test_a_property_that_allows_nothing_is_left_out() -> None:
    schema = argument({"type": "object", "properties": {"never": False, "b": {"type": "string"}}})
    assert list(schema["properties"]) == ["b"]


def test_dropped_keywords_are_noted_once_with_a_count() -> None:
    unique = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    found = exported({"a": unique, "b": unique, "c": {"type": "object", "propertyNames": {"maxLength": 3}}})
    assert messages(found) == [
        "uniqueItems is said in the description (2 places)",
        "propertyNames is left out: this target does not have it",
    ]
    assert found.notes[0].pointer == "/properties/a"


def test_a_long_list_of_values_is_cut_in_the_description() -> None:
    text = argument({"enum": list(range(10_000))})["description"]
    assert len(text) < 2_000
    assert text.endswith("more.")


def test_arguments_that_contradict_themselves_are_left_open_and_noted() -> None:
    found = exported({"a": False}, required=["a"])
    assert found.data[0]["parameters"]["type"] == "object"
    assert "left open" in messages(found)[0]
