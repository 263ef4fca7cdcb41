"""Strict tools: what becomes strict, what is named instead, and what a strict model's nulls mean."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from toolgen.tools.export import Export, export
from toolgen.tools.export.strict_nulls import strip_strict_nulls
from toolgen.tools.model import Annotations, Endpoint, RequestTemplate, Tool, Toolset


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def obj(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def make(parameters: dict[str, Any], schemas: dict[str, Any] | None = None) -> Toolset:
    hints = Annotations(
        title="T", read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    tool = Tool(
        name="t",
        description="Does it",
        endpoint=Endpoint(method="patch", path="/"),
        annotations=hints,
        parameters={"additionalProperties": False, **parameters},
        request=RequestTemplate(),
    )
    return Toolset(api="x", schemas=schemas or {}, tools=(tool,))


def strict(parameters: dict[str, Any], schemas: dict[str, Any] | None = None) -> dict[str, Any]:
    function: dict[str, Any] = export(make(parameters, schemas), "openai-strict").data[0]["function"]
    assert function["strict"] is True
    schema: dict[str, Any] = function["parameters"]
    follow_rules(schema)
    return schema


def reasons(found: Export) -> list[str]:
    return [note.message for note in found.notes]


def follow_rules(schema: dict[str, Any]) -> None:
    """Fail unless every object is closed and requires all it names, and only supported keywords stand."""
    supported = {"type", "title", "description", "enum", "anyOf", "$ref", "$defs", "properties", "required"}
    supported |= {"additionalProperties", "items", "minItems", "maxItems", "pattern", "format", "multipleOf"}
    supported |= {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    assert set(schema) <= supported, set(schema) - supported
    assert "$ref" not in schema or set(schema) == {"$ref"}
    if "properties" in schema or schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    assert "type" in schema or "anyOf" in schema or "$ref" in schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    list(map(follow_rules, [*inner, *([schema["items"]] if "items" in schema else [])]))


def test_an_optional_property_is_nullable_and_required() -> None:
    schema = strict(
        obj("a", a={"type": "string"}, b={"type": "integer"}, c={"enum": ["x"]}, d=obj(e={"type": "string"}))
    )
    assert schema["required"] == ["a", "b", "c", "d"]
    assert schema["properties"]["a"] == {"type": "string"}
    assert schema["properties"]["b"] == {"type": ["integer", "null"]}
    assert schema["properties"]["c"] == {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]}
    assert schema["properties"]["d"]["anyOf"][1] == {"type": "null"}


def test_a_recursive_type_stays_a_reference() -> None:
    schema = strict(obj(a=ref("N")), {"N": obj("v", v={"type": "string"}, next=ref("N"))})
    assert schema["properties"]["a"] == {"anyOf": [ref("N"), {"type": "null"}]}
    assert schema["$defs"]["N"]["properties"]["next"] == {"anyOf": [ref("N"), {"type": "null"}]}


def test_one_of_becomes_any_of_and_a_discriminator_is_merged_into_each_variant() -> None:
    schemas = {"Cat": obj("kind", kind={"type": "string"}), "Dog": obj("kind", kind={"type": "string"})}
    variants = [{**ref(n), "properties": {"kind": {"const": n.lower()}}} for n in ("Cat", "Dog")]
    schema = strict(obj("a", a={"oneOf": variants}), schemas)
    kinds = [variant["properties"]["kind"]["enum"] for variant in schema["properties"]["a"]["anyOf"]]
    assert kinds == [["cat"], ["dog"]]


def test_all_of_is_merged_into_one_closed_object() -> None:
    parts = [ref("Base"), obj("n", n={"type": "integer"})]
    schema = strict(obj("a", a={"allOf": parts, "description": "Both"}), {"Base": obj("id", id={"type": "string"})})
    assert schema["properties"]["a"]["required"] == ["id", "n"]
    assert "$defs" not in schema


def test_unsupported_keywords_are_dropped_noted_and_said() -> None:
    found = export(
        make(obj("a", a={"type": "string", "minLength": 2, "format": "uri", "default": "x"})), "openai-strict"
    )
    argument = found.data[0]["function"]["parameters"]["properties"]["a"]
    assert argument["type"] == "string"
    assert set(argument) == {"type", "description"}
    for part in ("At least 2 characters.", "Format: uri.", 'Default: "x".'):
        assert part in argument["description"]
    assert reasons(found) == [
        "minLength is left out: this target does not have it",
        "format uri is left out: this target does not have it",
    ]


def test_a_description_beside_a_reference_is_kept() -> None:
    schema = strict(obj("a", a={**ref("P"), "description": "Mine"}), {"P": obj("x", x={"type": "string"})})
    assert schema["properties"]["a"] == {"anyOf": [ref("P")], "description": "Mine"}


DEEP: dict[str, Any] = {"type": "string"}
for _ in range(12):
    DEEP = obj("a", a=DEEP)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, "a map"),
        ({**obj(a={"type": "string"}), "additionalProperties": True}, "a map"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "a map"),
        ({"type": "object"}, "a free-form object"),
        ({}, "a value without a type"),
        (True, "a value without a type"),
        ({"description": "anything"}, "a value without a type"),
        ({"type": "array"}, "a value without a type"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "a tuple"),
        ({"enum": [{"a": 1}]}, "enum of objects"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "at once"),
        (DEEP, "nesting"),
        ({"enum": [f"v{i}" for i in range(1_001)]}, "enum values"),
        ({"enum": [f"{i}{'x' * 70}" for i in range(251)]}, "enum text"),
        (ref("Gone"), "points nowhere"),
    ],
)
def test_what_cannot_be_strict_is_named_and_exported_as_it_is(schema: Any, reason: str) -> None:
    tools = make({**obj("a", a=schema), "required": ["a"]})
    found = export(tools, "openai-strict")
    function = found.data[0]["function"]
    assert function["strict"] is False
    assert function["parameters"] == tools.tools[0].input_schema()
    assert any(message.startswith("not strict: ") and reason in message for message in reasons(found))
    assert strip_strict_nulls(tools.tools[0], {"a": {"b": None}}) == {"a": {"b": None}}


def test_a_root_that_is_a_union_is_not_strict() -> None:
    found = export(
        make({**obj(a={"type": "string"}, b={"type": "string"}), "anyOf": [obj("a"), obj("b")]}), "openai-strict"
    )
    assert found.data[0]["function"]["strict"] is False


def test_a_tool_without_arguments_is_strict() -> None:
    assert strict(obj()) == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def stripped(parameters: dict[str, Any], arguments: Any, schemas: dict[str, Any] | None = None) -> Any:
    tools = make(parameters, schemas)
    schema = export(tools, "openai-strict").data[0]["function"]["parameters"]
    jsonschema_rs.Draft202012Validator(schema, offline=True).validate(arguments)
    return strip_strict_nulls(tools.tools[0], arguments)


def test_stand_in_nulls_are_removed_at_every_depth() -> None:
    schemas = {"N": obj("v", v={"type": "string"}, next=ref("N"), tags={"type": "array", "items": {"type": "string"}})}
    arguments = {
        "a": {"v": "1", "next": {"v": "2", "next": None, "tags": []}, "tags": None},
        "list": [{"v": "3", "next": None, "tags": ["x"]}],
        "c": None,
    }
    parameters = obj("a", a=ref("N"), list={"type": "array", "items": ref("N")}, c={"type": "integer"})
    assert stripped(parameters, arguments, schemas) == {
        "a": {"v": "1", "next": {"v": "2", "tags": []}},
        "list": [{"v": "3", "tags": ["x"]}],
    }


def test_a_null_for_a_required_property_and_in_a_list_stays() -> None:
    nullable = {"type": ["string", "null"]}
    parameters = obj("a", "b", a=nullable, b={"type": "array", "items": nullable})
    assert stripped(parameters, {"a": None, "b": [None, "x"]}) == {"a": None, "b": [None, "x"]}


def test_an_optional_nullable_property_is_left_out_so_that_a_patch_clears_nothing_and_a_note_says_so() -> None:
    patch = obj(
        name={"type": ["string", "null"]},
        email={"anyOf": [{"type": "string"}, {"type": "null"}]},
        n={"type": "integer"},
    )
    parameters = obj("requestBody", requestBody=patch)
    arguments = {"requestBody": {"name": "new", "email": None, "n": None}}
    assert stripped(parameters, arguments) == {"requestBody": {"name": "new"}}
    note = export(make(parameters), "openai-strict").notes[0]
    assert "cannot set it to null (2 places)" in note.message
    assert note.pointer == "/properties/requestBody/properties/name"


def test_the_variant_that_accepts_the_value_decides() -> None:
    cat = obj("kind", kind={"const": "cat"}, lives={"type": "integer"}, owner={"type": "string"})
    dog = obj("kind", "lives", kind={"const": "dog"}, lives={"type": ["integer", "null"]}, owner={"type": "string"})
    parameters = obj("pet", pet={"oneOf": [cat, dog]})
    assert stripped(parameters, {"pet": {"kind": "cat", "lives": None, "owner": None}}) == {"pet": {"kind": "cat"}}
    expected = {"pet": {"kind": "dog", "lives": None}}
    assert stripped(parameters, {"pet": {"kind": "dog", "lives": None, "owner": None}}) == expected


def test_of_several_variants_that_accept_the_one_that_leaves_fewest_nulls_decides() -> None:
    keeps, drops = obj("a", a={"type": ["string", "null"]}), obj(a={"type": "string"})
    assert stripped(obj("x", x={"anyOf": [keeps, drops]}), {"x": {"a": None}}) == {"x": {}}


def test_arguments_that_fit_no_variant_keep_their_nulls_for_validation_to_report() -> None:
    parameters = obj("pet", pet={"oneOf": [obj("a", a={"type": "string"}), obj("b", b={"type": "string"})]})
    assert strip_strict_nulls(make(parameters).tools[0], {"pet": {"c": None}}) == {"pet": {"c": None}}


def test_the_arguments_given_are_not_changed() -> None:
    tools = make(obj("a", a=obj(b={"type": "string"})))
    arguments = {"a": {"b": None}}
    assert strip_strict_nulls(tools.tools[0], arguments) == {"a": {}}
    assert arguments == {"a": {"b": None}}


def test_a_deep_value_in_a_union_of_recursive_types_takes_bounded_time() -> None:
    node = obj("v", v={"type": "string"}, next={"anyOf": [ref("A"), ref("B")]})
    schemas = {"A": node, "B": {**node, "title": "B"}}
    value: dict[str, Any] = {"v": "x", "next": None}
    for _ in range(25):
        value = {"v": "x", "next": value}
    found = strip_strict_nulls(make(obj("a", a=ref("A")), schemas).tools[0], {"a": value})
    assert "None" not in str(found)


def nested_unions() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        variants = [obj(**{f"v{i}": {"const": i}}) for i in range(8)]
        schema = {**obj(x=schema), "anyOf": variants}
    return schema


def test_unions_that_combine_to_too_much_are_named_and_do_not_hang() -> None:
    found = export(make(obj(a=nested_unions())), "openai-strict")
    assert found.data[0]["function"]["strict"] is False
    assert reasons(found) == ["not strict: its variants combine to too much"]


def test_gemini_keeps_what_stands_beside_unions_that_combine_to_too_much() -> None:
    found = export(make(obj(a=nested_unions())), "gemini")
    assert any("combine to 8 variants" in message for message in reasons(found))
    assert "x" in found.data[0]["parameters"]["properties"]["a"]["properties"]


def test_a_type_that_is_nothing_but_itself_is_named() -> None:
    found = export(make(obj(a=ref("A")), {"A": ref("B"), "B": ref("A")}), "openai-strict")
    assert "nothing but a reference to itself" in reasons(found)[0]


def test_a_default_beside_a_union_or_a_reference_is_said() -> None:
    schema = strict(
        obj("a", a={"anyOf": [{"type": "string"}, {"type": "integer"}], "default": 3, "description": "Who"})
    )
    assert schema["properties"]["a"]["description"] == "Who. Default: 3."
