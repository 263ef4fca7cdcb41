"""Discriminators: a sentence always, a constant only where the document proves it."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from openapi.documents import sent, tool, with_schema

from toolgen import generate

PLAIN = {"type": "object", "properties": {"kind": {"type": "string"}}}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def pet(mapping: Any, **more: Any) -> dict[str, Any]:
    return {"oneOf": [ref("Cat"), ref("Dog")], "discriminator": {"propertyName": "kind", "mapping": mapping}, **more}


def members(schema: dict[str, Any], **schemas: Any) -> list[Any]:
    given = {"Cat": PLAIN, "Dog": PLAIN, **schemas}
    made = generate(with_schema(ref("Pet"), Pet=schema, **given)).schemas["Pet"]
    return next(made[key] for key in ("oneOf", "anyOf") if key in made)


BOTH = {"cat": "#/components/schemas/Cat", "dog": "Dog"}
MARKED = [
    {"$ref": "#/$defs/Cat", "properties": {"kind": {"const": "cat"}}},
    {"$ref": "#/$defs/Dog", "properties": {"kind": {"const": "dog"}}},
]
BARE = [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]


def test_a_complete_mapping_gives_each_member_its_constant() -> None:
    assert members(pet(BOTH)) == MARKED
    assert members({"anyOf": [ref("Cat"), ref("Dog")], "discriminator": pet(BOTH)["discriminator"]}) == MARKED


@pytest.mark.parametrize(
    "mapping",
    [
        None,
        {},
        {"cat": "Cat"},
        {**BOTH, "kitten": "Cat"},
        {**BOTH, "fish": "Fish"},
        {"cat": 3, "dog": "Dog"},
        [],
        "Cat",
    ],
)
def test_a_mapping_that_proves_nothing_gives_no_constant(mapping: Any) -> None:
    assert members(pet(mapping)) == BARE


def test_inline_members_prevent_constants() -> None:
    schema = {"oneOf": [ref("Cat"), {"type": "object"}], "discriminator": {"propertyName": "kind", "mapping": BOTH}}
    assert members(schema) == [{"$ref": "#/$defs/Cat"}, {"type": "object"}]


@pytest.mark.parametrize(
    "cat",
    [
        {"type": "object", "properties": {"kind": {"enum": ["Cat", "cat"]}}},
        {"type": "object", "properties": {"kind": {"const": "CAT"}}},
        {"allOf": [ref("Base"), {"type": "object"}]},
        {"type": "object", "properties": {"kind": ref("Kind")}},
        {"type": "object", "additionalProperties": False},
    ],
)
def test_what_a_member_says_itself_is_right(cat: dict[str, Any]) -> None:
    base = {"type": "object", "properties": {"kind": {"enum": ["Cat"]}}}
    assert members(pet(BOTH), Cat=cat, Base=base, Kind={"enum": ["C"]}) == [BARE[0], MARKED[1]]


def test_constants_that_the_document_wrote_itself_always_stay() -> None:
    own = {**ref("Cat"), "properties": {"kind": {"const": "cat"}}}
    cat = {"type": "object", "properties": {"kind": {"enum": ["cat", "dog"]}}}
    schema = {"oneOf": [own, {**ref("Dog"), "properties": {}}, {**ref("Dog"), "properties": {"kind": False}}]}
    assert members(schema, Cat=cat) == [
        {"$ref": "#/$defs/Cat", "properties": {"kind": {"const": "cat"}}},
        {"$ref": "#/$defs/Dog", "properties": {}},
        {"$ref": "#/$defs/Dog", "properties": {"kind": False}},
    ]


def test_constants_tell_shapes_apart_that_were_alike() -> None:
    made = tool(with_schema(ref("Pet"), Pet=pet(BOTH), Cat=PLAIN, Dog=PLAIN)).input_schema()
    assert jsonschema_rs.is_valid(made, {"requestBody": {"kind": "cat"}})
    assert not jsonschema_rs.is_valid(made, {"requestBody": {"kind": "fish"}})


def test_the_deciding_property_and_its_values_are_told() -> None:
    made = generate(with_schema(ref("Pet"), Pet=pet(BOTH, description="A pet."), Cat=PLAIN, Dog=PLAIN)).schemas["Pet"]
    assert made["description"] == "A pet.\n`kind` decides which shape it is: cat, dog."
    assert "discriminator" not in made


def test_many_values_are_counted_not_listed() -> None:
    mapping = {f"v{i}": "Cat" for i in range(25)}
    made = generate(with_schema(ref("Pet"), Pet=pet(mapping), Cat={}, Dog={})).schemas["Pet"]
    assert made["description"].endswith("v19, and 5 more.")


@pytest.mark.parametrize("found", [None, 3, [], {}, {"propertyName": 3}, {"propertyName": ""}, ""])
def test_a_broken_discriminator_says_nothing(found: Any) -> None:
    assert sent({"items": {"type": "object", "discriminator": found}}) == {"items": {"type": "object"}}


def test_a_discriminator_of_2_0_is_its_property() -> None:
    made = sent({"items": {"type": "object", "discriminator": "kind"}}, version="2.0")
    assert made["items"]["description"] == "`kind` decides which shape it is."


def test_recursion_through_members_ends() -> None:
    schemas = {
        "Cat": {"allOf": [ref("Pet"), PLAIN]},
        "Dog": {"allOf": [ref("Dog")], "properties": {"kind": {"$ref": "#/components/schemas/Dog"}}},
    }
    assert len(members(pet(BOTH), **schemas)) == 2
