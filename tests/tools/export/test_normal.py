"""The normal form means what the schema means."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolgen.tools.export.merge import Impossible, Unmergeable
from toolgen.tools.export.normal import Normal
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.sizes import schemas_in

NAMES = ("a", "b", "c")
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number", "minimum": 1},
        {"type": "integer", "maximum": 2},
        {"type": ["string", "null"]},
        {"type": ["integer", "boolean"]},
        {"enum": ["x", 1, None, True]},
        {"enum": ["x", 2, 1.0]},
        {"const": 1},
        {"const": True},
        {"type": "string", "minLength": 1},
        {"type": "string", "maxLength": 1},
        {"$ref": "#/$defs/Open"},
        {"$ref": "#/$defs/Closed"},
        {"$ref": "#/$defs/Node"},
        {"$ref": "#/$defs/Open", "description": "an open one"},
    ]
)
DEFINITIONS = {
    "Open": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "Closed": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "additionalProperties": False},
    "Node": {"type": "object", "properties": {"c": {"$ref": "#/$defs/Node"}, "a": {"type": "integer"}}},
}


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    closings = st.sampled_from([{}, {}, {"additionalProperties": False}, {"additionalProperties": {"type": "string"}}])
    objects = st.builds(
        lambda properties, required, rest: {"type": "object", "properties": properties, "required": required, **rest},
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        closings,
    )
    members = st.lists(st.one_of(inner, objects), min_size=1, max_size=3)
    arrays = st.builds(lambda items: {"type": "array", "items": items}, inner)
    both = st.builds(lambda base, union: {**base, "anyOf": union}, objects, members)
    joined = st.builds(lambda parts: {"allOf": parts}, members)
    unions = st.builds(lambda parts: {"anyOf": parts}, members)
    return st.one_of(objects, objects, arrays, unions, joined, both)


VALUES = st.recursive(
    st.sampled_from(["", "x", "xy", 0, 1, 2, 1.0, 1.5, None, True, False]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from((*NAMES, "z")), inner, max_size=3), st.lists(inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=1500, deadline=None)
@given(st.recursive(LEAVES, nested, max_leaves=6), st.lists(VALUES, min_size=8, max_size=8))
def test_the_normal_form_accepts_exactly_what_the_schema_accepts(schema: dict[str, Any], values: list[Any]) -> None:
    original = jsonschema_rs.Draft202012Validator({"allOf": [schema], "$defs": DEFINITIONS})
    notes = Notes("t")
    try:
        found = Normal(DEFINITIONS, notes)(schema)
    except Impossible:
        assert not any(map(original.is_valid, values))
        return
    except Unmergeable:
        assume(False)
    normal = jsonschema_rs.Draft202012Validator({"allOf": [found], "$defs": DEFINITIONS})
    for value in values:
        assert normal.is_valid(value) == original.is_valid(value), (found, value)


def test_a_type_combined_with_itself_is_refused_and_does_not_hang() -> None:
    definitions = {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"x": {"type": "string"}}}]}}
    with pytest.raises(Unmergeable, match="combined with itself"):
        Normal(definitions, Notes("t"))({"$ref": "#/$defs/A", "properties": {"y": {}}})


def test_two_recursive_types_merged_into_each_other_are_refused() -> None:
    def node(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"next": {"$ref": f"#/$defs/{name}"}}}

    definitions = {"A": node("A"), "B": node("B")}
    with pytest.raises(Unmergeable, match="combined with itself"):
        Normal(definitions, Notes("t"))({"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]})


def test_unions_that_combine_to_too_many_variants_are_refused() -> None:
    union = {"anyOf": [{"type": "object", "properties": {f"p{i}": {"const": i}}} for i in range(10)]}
    other = {"anyOf": [{"type": "object", "properties": {f"q{i}": {"const": i}}} for i in range(10)]}
    with pytest.raises(Unmergeable, match="100 variants"):
        Normal({}, Notes("t"))({"allOf": [union, other]})


def test_depth_is_bounded() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"type": "array", "items": schema}
    with pytest.raises(Unmergeable, match="deeper"):
        Normal({}, Notes("t"))(schema)
    notes = Notes("t")
    Normal({}, notes, lenient=True)(schema)
    assert any("deeper" in note.message for note in notes.all())


def test_keywords_that_no_target_has_are_noted() -> None:
    notes = Notes("t")
    found = Normal({}, notes)({"type": "object", "properties": {"a": {"not": {"type": "null"}, "type": "string"}}})
    assert found["properties"] == {"a": {"type": "string"}}
    assert [(n.message, n.pointer) for n in notes.all()] == [
        ("not is left out: this target does not have it", "/properties/a")
    ]


def test_a_lenient_reading_ignores_that_objects_beside_each_other_are_closed() -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["b"],
        "additionalProperties": False,
    }
    extra = {"type": "object", "properties": {"b": {"type": "integer"}}}
    found = Normal({}, Notes("t"), lenient=True)({"allOf": [closed, extra]})
    assert found["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    with pytest.raises(Impossible):
        Normal({}, Notes("t"))({"allOf": [closed, extra]})


def test_nested_unions_beside_properties_take_bounded_time_and_memory() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(20):
        variants = [{"type": "object", "properties": {f"v{i}": {"const": i}}} for i in range(8)]
        schema = {"type": "object", "properties": {"x": schema}, "anyOf": variants}
    found = Normal({}, Notes("t"))(schema)
    assert schemas_in(found) > 10**15
    twice = {"allOf": [schema, copy.deepcopy(schema)]}
    with pytest.raises(Unmergeable):
        Normal({}, Notes("t"))(twice)
    Normal({}, Notes("t"), lenient=True)(twice)


def test_an_enum_without_values_allows_nothing() -> None:
    with pytest.raises(Impossible):
        Normal({}, Notes("t"))({"enum": []})


def test_an_integer_larger_than_any_float_is_an_integer() -> None:
    assert Normal({}, Notes("t"))({"enum": [10**400]}) == {"type": "integer", "enum": [10**400]}
