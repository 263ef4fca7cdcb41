"""What a model is told of arguments that are not valid: where, what was expected, what it gave."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from small_documents import parameter
from small_requests import one, sent, tool

from toolgen.errors import ArgumentsError, Problem, RequestError
from toolgen.request.resolve import resolve
from toolgen.tools.model import Tool

SECRET = "sk-ant-api03-" + "A1b2C3d4" * 8


def problems(made: Tool, arguments: Any) -> list[Problem]:
    with pytest.raises(ArgumentsError) as caught:
        sent(made, arguments)
    assert caught.value.message.startswith("the arguments of op ")
    return list(caught.value.problems)


def of(schema: Any, value: Any) -> list[str]:
    return [str(problem) for problem in problems(tool(one("a", schema=schema)), {"a": value})]


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, "x", '/a: expected integer, given a text "x"'),
        ({"type": ["integer", "boolean"]}, 1.5, "/a: expected boolean or integer, given a number 1.5"),
        ({"type": "string"}, True, "/a: expected string, given a boolean true"),
        ({"type": "string"}, None, "/a: expected string, given null"),
        ({"type": "string"}, [1], "/a: expected string, given an array"),
        ({"type": "array"}, {}, "/a: expected array, given an object"),
        ({"enum": ["red", "green"]}, "gren", '/a: expected one of "red", "green", given a text "gren"'),
        ({"const": 5}, 6, "/a: expected 5, given a number 6"),
        ({"minimum": 1}, 0, "/a: expected at least 1, given a number 0"),
        ({"maxLength": 2}, "abc", '/a: expected at most 2 characters, given a text "abc"'),
        ({"minItems": 1}, [], "/a: expected at least 1 items, given an array"),
        ({"multipleOf": 5}, 7, "/a: expected a multiple of 5, given a number 7"),
        ({"pattern": "^a"}, "b", '/a: expected text that matches ^a, given a text "b"'),
        ({"uniqueItems": True}, [1, 1], "/a: expected items that are all different, given an array"),
        ({"not": {}}, 1, "/a: expected something else, given a number 1"),
        (
            {"properties": {"b~/c": {"items": {"type": "null"}}}},
            {"b~/c": [1]},
            "/a/b~0~1c/0: expected null, given a number 1",
        ),
        ({"required": ["b"]}, {}, "/a/b: it is required and missing"),
    ],
)
def test_where_what_was_expected_and_what_was_given(schema: Any, value: Any, said: str) -> None:
    assert of(schema, value) == [said]


def test_a_key_that_is_not_known_gets_the_nearest_name_or_all_of_them() -> None:
    made = tool(parameter("petId"), parameter("limit"))
    near, far = problems(made, {"petid": "1"}), problems(made, {"zzz": "1"})
    assert [(p.where, p.hint, p.suggestion) for p in near] == [("/petid", "did you mean 'petId'?", "petId")]
    assert [(p.where, p.hint) for p in far] == [("/zzz", "known are petId, limit")]
    assert [p.hint for p in problems(tool(), {"a": 1})] == ["there are none here"]


def test_unknown_keys_inside_a_body_behind_references_know_their_neighbours() -> None:
    schema = {"$ref": "#/components/schemas/Pet"}
    pet = {"type": "object", "properties": {"name": {}}, "additionalProperties": False}
    made = tool(body={"application/json": {"schema": schema}}, components={"schemas": {"Pet": pet}})
    assert [(p.where, p.suggestion) for p in problems(made, {"requestBody": {"nam": 1}})] == [
        ("/requestBody/nam", "name")
    ]


def test_allowed_values_come_with_the_nearest_one_and_long_lists_are_cut() -> None:
    found = problems(tool(one("a", schema={"enum": ["red", "green"]})), {"a": "gren"})
    assert found[0].suggestion == "green"
    (said,) = of({"enum": [f"v{n}" for n in range(100)]}, "x")
    assert said.count('"v') == 30
    assert "and 70 more" in said


CHOICE = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
            "required": ["kind"],
        },
        {"type": "string"},
    ]
}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_of_alternatives_those_errors_are_told_that_fit_the_value(keyword: str) -> None:
    schema = {keyword: CHOICE["anyOf"]}
    assert of(schema, {"kind": "cat", "lives": "9"}) == ['/a/lives: expected integer, given a text "9"']
    assert of(schema, 5) == ["/a: a number 5 fits none of the 2 alternatives"]
    assert of({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 5) == [
        "/a: expected exactly one of the alternatives to fit, given a number 5: several do"
    ]


def test_every_problem_is_told_up_to_twenty() -> None:
    made = tool(*(parameter(f"p{n}", required=True) for n in range(3)), parameter("x", schema={"type": "integer"}))
    found = problems(made, {"x": "y", "p9": 1})
    assert {p.where for p in found} == {"/p0", "/p1", "/p2", "/x", "/p9"}
    many = problems(tool(), {f"k{n}": n for n in range(1000)})
    assert len(many) == 21
    assert many[-1].message == "there is more; the first 20 problems are listed"


@pytest.mark.parametrize("value", [None, [], "x", 5, True])
def test_arguments_are_an_object(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="the arguments of op are an object, this is"):
        resolve(tool(), value)


@pytest.mark.parametrize("value", [b"x", {1, 2}, object(), {"k": {1: 2}}, 1j])
def test_what_is_no_json_data_is_said_to_be_none(value: Any) -> None:
    found = problems(tool(one("a")), {"a": value})
    assert len(found) == 1
    assert (
        "only text, numbers" in str(found[0]) or "nothing that JSON has" in str(found[0]) or "no text" in str(found[0])
    )


@pytest.mark.parametrize(
    "arguments", [{"a": SECRET}, {"b": {SECRET: 1}}, {SECRET: 1}, {"b": {SECRET: {"x": 5}}}, {"a": f"Bearer {SECRET}"}]
)
def test_no_secret_is_repeated(arguments: Any) -> None:
    nested = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": False}}
    found = problems(tool(one("a", schema={"type": "integer"}), one("b", schema=nested)), arguments)
    assert found
    assert SECRET[:30] not in "".join(map(str, found))


def test_long_values_and_keys_are_cut_in_what_is_told() -> None:
    found = problems(tool(one("a", schema={"type": "integer"})), {"a": "x" * 10**6, "k" * 10**6: 1})
    assert all(len(str(problem)) < 400 for problem in found)


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"$ref": "#/components/schemas/Tree"}])
def test_nesting_without_end_is_refused_without_a_traceback(schema: Any) -> None:
    tree = {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}
    made = tool(body={"application/json": {"schema": schema}}, components={"schemas": {"Tree": tree}})
    for wrap in (lambda v: [v], lambda v: {"k": v}):
        value: Any = []
        for _ in range(10**5):
            value = wrap(value)
        (found,) = problems(made, {"requestBody": value})
        assert found.message == "they are nested 201 deep or more; 200 is the most"
    fine: Any = []
    for _ in range(150):
        fine = [fine]
    assert sent(made, {"requestBody": fine}).body == b"[" * 151 + b"]" * 151


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "integer"}}, ["x"] * 300_000),
        ({"type": "array", "items": CHOICE}, [7] * 300_000),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, dict.fromkeys(map(str, range(300_000)), "x")),
    ],
)
def test_the_errors_of_a_huge_input_are_few_and_cost_little(schema: Any, value: Any) -> None:
    made = tool(one("a", schema=schema))
    tracemalloc.start()
    try:
        found = problems(made, {"a": value})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 <= len(found) <= 21
    assert isinstance(value, dict) or str(found[0]).startswith("/a/0: ")
    assert peak < 200_000_000
    assert found[-1].message.startswith(("they are too large", "there is more"))


def test_a_huge_input_that_is_valid_is_sent() -> None:
    made = tool(body={"application/json": {"schema": {"type": "array", "items": {"type": "integer"}}}})
    assert len(sent(made, {"requestBody": [1] * 200_000}).body or b"") == 400_001


def test_a_schema_that_is_none_is_not_blamed_on_the_arguments() -> None:
    broken = tool(one("a")).model_copy(update={"parameters": {"type": "nonsense"}})
    with pytest.raises(RequestError, match="the input schema of op is none") as caught:
        sent(broken, {"a": 1})
    assert not isinstance(caught.value, ArgumentsError)


def test_a_body_that_is_one_text_says_why_an_object_is_refused() -> None:
    made = tool(body={"application/xml": {"schema": {"type": "object"}}}, required=True)
    with pytest.raises(ArgumentsError, match="sent as application/xml: write the document itself"):
        sent(made, {"requestBody": {"a": 1}})
