"""Keywords whose value is data: what a validator takes is kept, what it does not is mended or reported."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from openapi.documents import said, sent, with_schema

from toolgen import generate
from toolgen.openapi.schema.values import EXAMPLE_CAP, usable_pattern


def kept(schema: dict[str, Any]) -> Any:
    return sent({"items": schema})["items"]


def faults(schema: dict[str, Any]) -> list[str]:
    """What is said of the schema in a request; it is said of the answer again."""
    found = said(generate(with_schema({"items": schema})))
    return [line for line in found if line.startswith("degraded") and "/requestBody/" in line]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("any", {}),
        ("file", {"type": "string", "format": "binary"}),
        ("date", {"type": "string", "format": "date"}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("uuid", {"type": "string", "format": "uuid"}),
        ("int", {"type": "integer"}),
        ("Long", {"type": "integer"}),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("String", {"type": "string"}),
        ("list", {"type": "array"}),
        ("dict", {"type": "object"}),
        ("nonsense", {}),
        (["string", "nonsense"], {"type": "string"}),
        (["string", "string"], {"type": "string"}),
        (["string", "null"], {"type": ["string", "null"]}),
        ([], {}),
        (3, {}),
        (None, {}),
    ],
)
def test_types_are_what_authors_mean_by_them(written: Any, read: dict[str, Any]) -> None:
    assert kept({"type": written}) == read


def test_a_type_there_is_not_is_reported() -> None:
    assert "there is no type 'nonsense'; any is allowed" in faults({"type": "nonsense"})[0]
    assert "it is read as integer" in faults({"type": "long"})[0]
    assert faults({"type": ["string", "null"]}) == []


@pytest.mark.parametrize(
    ("keyword", "written", "read"),
    [
        ("minimum", 1, 1),
        ("minimum", "1", 1),
        ("minimum", "1.5", 1.5),
        ("minimum", "-9007199254740993", -9007199254740993),
        ("minimum", 0, 0),
        ("multipleOf", 0.01, 0.01),
        ("minLength", 0, 0),
        ("minLength", 2.0, 2),
        ("maxItems", "3", 3),
    ],
)
def test_numbers_are_kept_exactly(keyword: str, written: Any, read: Any) -> None:
    made = kept({keyword: written})[keyword]
    assert (made, type(made)) == (read, type(read))


@pytest.mark.parametrize(
    ("keyword", "written"),
    [
        ("minimum", True),
        ("minimum", "a lot"),
        ("minimum", "nan"),
        ("minimum", None),
        ("multipleOf", 0),
        ("multipleOf", -1),
        ("minLength", -1),
        ("minLength", 1.5),
        ("maxItems", [1]),
        ("pattern", 3),
        ("pattern", "(unclosed"),
        ("enum", None),
        ("enum", []),
        ("enum", {}),
        ("required", "name"),
        ("dependentRequired", []),
        ("dependentRequired", {"a": "b"}),
    ],
)
def test_what_no_validator_takes_is_left_out_and_reported(keyword: str, written: Any) -> None:
    assert keyword not in kept({keyword: written})
    assert len(faults({keyword: written})) == 1


@pytest.mark.parametrize("written", [False, "false", "no", None, 3])
def test_unique_items_is_kept_only_where_it_constrains(written: Any) -> None:
    assert kept({"uniqueItems": written}) == {}
    assert kept({"uniqueItems": True}) == {"uniqueItems": True}


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"type": "string", "enum": [1, True, "a", 1.5]}, ["1", "true", "a", "1.5"]),
        ({"type": ["string", "null"], "enum": [1, None]}, ["1", None]),
        ({"type": "string", "enum": ["a", None]}, ["a", None]),
        ({"type": "integer", "enum": ["1", 2, "x"]}, [1, 2, "x"]),
        ({"type": "number", "enum": ["0.5"]}, [0.5]),
        ({"type": "boolean", "enum": ["true", False]}, [True, False]),
        ({"type": ["string", "integer"], "enum": [1, "1"]}, [1, "1"]),
        ({"enum": [1, "1"]}, [1, "1"]),
        ({"enum": "only"}, ["only"]),
        ({"enum": 0}, [0]),
        ({"type": "object", "enum": [{"a": 1}]}, [{"a": 1}]),
    ],
)
def test_enums_are_values_of_their_type(schema: dict[str, Any], values: list[Any]) -> None:
    made = kept(schema)["enum"]
    assert made == values
    assert list(map(type, made)) == list(map(type, values))


def test_a_nullable_enum_of_the_wrong_type_is_mended_too() -> None:
    made = sent({"items": {"type": "string", "enum": [1, None], "nullable": True}}, version="3.0.3")["items"]
    assert made == {"type": ["string", "null"], "enum": ["1", None]}


# Patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "^[a-z]+$",
        "^\\d{3}-\\d{4}$",
        "^(?!x)a|b$",
        "^\\p{L}+$",
        "(?<year>\\d{4})",
        "^[^\\s]+@x\\.test$",
        "",
        "a{2,}",
        "[\\[\\]]",
    ],
)
def test_patterns_of_ecma_262_are_kept_as_they_are(pattern: str) -> None:
    assert usable_pattern(pattern) == pattern


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        ("^[\\w-.]+$", "^[\\w\\-.]+$"),
        ("\\Aabc\\Z", "^abc$"),
        ("^abc\\z", "^abc$"),
        ("[\\d-x]", "[\\d\\-x]"),
        ("(?P<n>a)", "(?<n>a)"),
        ("\\\\Z\\Z", "\\\\Z$"),
    ],
)
def test_patterns_of_other_dialects_are_mended(written: str, mended: str) -> None:
    assert usable_pattern(written) == mended
    assert jsonschema_rs.Draft202012Validator({"pattern": mended}, offline=True)


@pytest.mark.parametrize("pattern", ["(unclosed", "[z-a]", "*", "a{2,1}", "\\", "(?i)abc", "(?>a)", "^[b-a]$"])
def test_a_pattern_nobody_can_check_stands_in_the_description(pattern: str) -> None:
    assert usable_pattern(pattern) is None
    made = kept({"type": "string", "pattern": pattern, "description": "A code."})
    assert made == {"type": "string", "description": f"A code.\nPattern (not checked): {pattern}"}
    assert kept({"description": "A code.", "pattern": pattern}) == {
        "description": f"A code.\nPattern (not checked): {pattern}"
    }


# Examples


@pytest.mark.parametrize(
    ("schema", "examples"),
    [
        ({"example": "a"}, ["a"]),
        ({"example": None}, [None]),
        ({"examples": ["a", "b"]}, ["a", "b"]),
        ({"examples": {"one": {"value": "a"}, "two": "b"}}, ["a", "b"]),
        ({"examples": "a"}, ["a"]),
        ({"example": "a", "examples": ["b"]}, ["b"]),
        ({"examples": ["a", "x" * EXAMPLE_CAP]}, ["a"]),
    ],
)
def test_examples_are_kept_as_far_as_they_are_small(schema: dict[str, Any], examples: list[Any]) -> None:
    assert kept(schema)["examples"] == examples


@pytest.mark.parametrize("schema", [{"example": "x" * 2000}, {"examples": [list(range(1000))]}, {"examples": []}])
def test_large_examples_are_left_out(schema: dict[str, Any]) -> None:
    assert kept(schema) == {}


# Text


@pytest.mark.parametrize("value", [3, None, [], {}, True])
def test_text_that_is_none_is_left_out_without_a_word(value: Any) -> None:
    schema = {"title": value, "description": value, "format": value, "contentEncoding": value}
    assert kept(schema) == {}
    assert faults(schema) == []


def test_required_on_a_property_as_draft_3_had_it_means_nothing() -> None:
    assert kept({"properties": {"a": {"required": True}}}) == {"properties": {"a": {}}}
    assert faults({"properties": {"a": {"required": True}}}) == []
