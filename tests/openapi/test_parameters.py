"""Parameters and bodies: locations, styles, media types, and what authors write instead."""

from __future__ import annotations

from typing import Any

import pytest
from openapi.documents import document, one, operation, said, tool

from toolgen import generate
from toolgen.openapi.model import Parameter
from toolgen.openapi.parameters import STYLES, is_json


def parameter(written: dict[str, Any], **rest: Any) -> Parameter:
    (found,) = operation(
        one({"parameters": [written]}, path="/x/{p}" if written.get("in") == "path" else "/x", **rest)
    ).parameters
    return found


@pytest.mark.parametrize(
    ("location", "style", "explode"),
    [("path", "simple", False), ("query", "form", True), ("header", "simple", False), ("cookie", "form", True)],
)
def test_each_location_has_its_default_style(location: str, style: str, explode: bool) -> None:
    found = parameter({"name": "p", "in": location, "schema": {}})
    assert (found.location, found.style, found.explode, found.allow_reserved) == (location, style, explode, False)


@pytest.mark.parametrize("location", STYLES)
def test_every_style_of_a_location_is_kept(location: str) -> None:
    for style in STYLES[location][1]:
        written = {"name": "p", "in": location, "style": style, "explode": False, "allowReserved": True, "schema": {}}
        found = parameter(written)
        assert (found.style, found.explode, found.allow_reserved) == (style, False, True)


@pytest.mark.parametrize(("style", "explode"), [("form", True), ("spaceDelimited", False), ("deepObject", True)])
def test_explode_follows_the_style(style: str, explode: bool) -> None:
    assert parameter({"name": "p", "in": "query", "style": style, "schema": {}}).explode is explode


@pytest.mark.parametrize("style", ["simple", "nonsense", 3, None, [], {}])
def test_a_style_its_location_has_not_is_replaced_and_reported(style: Any) -> None:
    made = generate(one({"parameters": [{"name": "p", "in": "query", "style": style, "schema": {}}]}))
    assert made.tools[0].request.query[0].style == "form"
    assert len(said(made)) == 1


def test_content_parameters_have_a_media_type_and_no_style() -> None:
    made = tool(
        one(
            """
            parameters:
            - {name: filter, in: query, content: {application/json: {schema: {type: object, properties: {a: {}}}}}}
            - {name: either, in: query, content: {text/plain: {}, application/vnd.x+json: {schema: {type: array}}}}
            """
        )
    )
    leaves = [(leaf.name, leaf.media_type, leaf.style, leaf.explode) for leaf in made.request.query]
    assert leaves == [("filter", "application/json", None, None), ("either", "application/vnd.x+json", None, None)]
    assert made.parameters["properties"]["filter"]["type"] == "object"
    assert made.parameters["properties"]["either"]["type"] == "array"


def test_a_content_parameter_without_a_media_type_is_text() -> None:
    made = generate(one("parameters: [{name: a, in: query, content: {}}]"))
    assert made.tools[0].parameters["properties"]["a"]["type"] == "string"
    assert made.tools[0].request.query[0].style == "form"
    assert "has no media type" in said(made)[0]


def test_a_parameter_without_a_schema_is_text_and_noted() -> None:
    made = generate(one("parameters: [{name: a, in: query}]"))
    assert made.tools[0].parameters["properties"]["a"] == {"type": "string"}
    assert said(made) == ["note: the parameter 'a' has no schema; it is read as text at /paths/~1x/post/parameters/0"]


@pytest.mark.parametrize("where", ["Query", " query ", "QUERY"])
def test_a_location_is_read_in_any_case(where: str) -> None:
    assert parameter({"name": "p", "in": where, "schema": {}}).location == "query"


@pytest.mark.parametrize(
    "written", [{"in": "nowhere"}, {"in": 3}, {}, {"in": "query", "name": ""}, {"in": "query", "name": []}]
)
def test_a_parameter_without_a_name_or_place_is_left_out_and_reported(written: dict[str, Any]) -> None:
    made = generate(one({"parameters": [{"name": "a", **written}, {"name": "b", "in": "query", "schema": {}}]}))
    assert list(made.tools[0].parameters["properties"]) == ["b"]
    assert said(made)[0].startswith("degraded: a parameter is left out")


def test_a_number_as_a_name_is_the_text_it_looks_like() -> None:
    assert parameter({"name": 5, "in": "query", "schema": {}}).name == "5"


def test_parameters_given_as_one_object_are_its_only_member() -> None:
    made = generate(one("parameters: {name: a, in: query, schema: {}}"))
    assert list(made.tools[0].parameters["properties"]) == ["a"]
    assert said(made)[0].startswith("note: `parameters` is an array")


def test_wire_names_are_kept_whatever_the_argument_is_called() -> None:
    names = ["$filter", "a[]", "a.b", "class", "from", "self", "in", "x=1", "ä", "user-id"]
    made = tool(one({"parameters": [{"name": n, "in": "query", "schema": {"type": "string"}} for n in names]}))
    assert [leaf.name for leaf in made.request.query] == names
    assert {b.name: b.argument for b in made.bindings} == {
        "$filter": "filter",
        "a[]": "a",
        "a.b": "a_b",
        "class": "class",
        "from": "from",
        "self": "self",
        "in": "in",
        "x=1": "x_1",
        "ä": "query",
        "user-id": "user-id",
    }


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"example": 1}, [1]),
        ({"example": {"$ref": "#/x"}}, [{"$ref": "#/x"}]),
        ({"examples": {"a": {"value": 1}, "b": {"summary": "s"}, "c": 3}}, [1]),
        ({"examples": [1, 2]}, [1, 2]),
        ({"example": None}, [None]),
    ],
)
def test_examples_of_a_parameter_are_kept(written: dict[str, Any], kept: list[Any]) -> None:
    made = tool(one({"parameters": [{"name": "p", "in": "query", "description": "d", "schema": {}, **written}]}))
    assert made.parameters["properties"]["p"]["examples"] == kept


def test_one_shared_parameter_is_the_same_in_every_tool_and_its_faults_are_told_each_time() -> None:
    made = generate(
        document(
            {path: {"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}} for path in ("/a", "/b")},
            components={"parameters": {"P": {"name": "p", "in": "query", "schema": {"$ref": "#/nope"}}}},
        )
    )
    assert made.report is not None
    assert [o.status for o in made.report.operations] == ["degraded", "degraded"]
    assert made.tools[0].parameters == made.tools[1].parameters


# Bodies


@pytest.mark.parametrize(
    ("declared", "chosen"),
    [
        (["application/xml", "application/json"], "application/json"),
        (["text/plain", "application/json; charset=utf-8"], "application/json; charset=utf-8"),
        (["application/merge-patch+json"], "application/merge-patch+json"),
        (["application/x-www-form-urlencoded", "application/vnd.a+json"], "application/vnd.a+json"),
        (["multipart/form-data", "application/x-www-form-urlencoded"], "application/x-www-form-urlencoded"),
        (["*/*"], "application/json"),
        (["application/octet-stream", "text/csv"], "text/csv"),
    ],
)
def test_json_comes_first_wherever_it_stands(declared: list[str], chosen: str) -> None:
    content = {name: {"schema": {"type": "object", "properties": {"a": {"type": "string"}}}} for name in declared}
    made = tool(one({"requestBody": {"content": content}}))
    assert made.request.body is not None
    assert made.request.body.media_type == chosen
    assert set(made.request.body.alternatives) == set(declared) - {chosen} - {"*/*"}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("json", "application/json"),
        ("urlencoded", "application/x-www-form-urlencoded"),
        ("form-data", "multipart/form-data"),
    ],
)
def test_what_is_no_media_type_is_read_as_what_it_means(written: str, read: str) -> None:
    made = generate(one({"requestBody": {"content": {written: {"schema": {"type": "object"}}}}}))
    assert made.tools[0].request.body is not None
    assert made.tools[0].request.body.media_type == read
    assert f"is read as {read}" in said(made)[0]


def test_a_body_is_required_only_where_it_says_so() -> None:
    content = {"application/json": {"schema": {"type": "object"}}}
    assert "required" not in tool(one({"requestBody": {"content": content}})).parameters
    assert tool(one({"requestBody": {"content": content, "required": True}})).parameters["required"] == ["requestBody"]


@pytest.mark.parametrize("body", [{}, {"content": {}}, {"content": None}, {"content": 3}])
def test_a_body_without_a_media_type_is_json_and_reported(body: Any) -> None:
    made = generate(one({"requestBody": body}))
    assert made.tools[0].request.body is not None
    assert made.tools[0].request.body.media_type == "application/json"
    assert "declares no media type" in said(made)[0]


@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_what_is_no_body_is_none(body: Any) -> None:
    assert tool(one({"requestBody": body})).request.body is None


@pytest.mark.parametrize("schema", [{"type": "array", "items": {"type": "string"}}, {"type": "integer"}, True, {}])
def test_a_body_of_any_shape_is_one_argument(schema: Any) -> None:
    made = tool(one({"requestBody": {"content": {"application/json": {"schema": schema}}}}))
    given = made.parameters["properties"]["requestBody"]
    assert {k: v for k, v in given.items() if k != "description"} == (schema if isinstance(schema, dict) else {})


def test_a_multipart_schema_that_contains_itself_is_read() -> None:
    schemas = {
        "A": {
            "type": "object",
            "properties": {"f": {"type": "string", "format": "binary"}},
            "anyOf": [{"$ref": "#/components/schemas/A"}],
        },
        "L": {"type": "array", "items": {"$ref": "#/components/schemas/L"}},
    }
    for schema in (
        {"$ref": "#/components/schemas/A"},
        {"type": "object", "properties": {"l": {"$ref": "#/components/schemas/L"}}},
    ):
        source = one(
            {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}}}, components={"schemas": schemas}
        )
        assert tool(source).request.body is not None


@pytest.mark.parametrize(
    ("name", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("text/json", True),
        ("application/problem+json", True),
        ("application/xml", False),
        ("text/plain", False),
        ("application/jsonl", False),
    ],
)
def test_the_json_family(name: str, json: bool) -> None:
    assert is_json(name) is json


def test_faults_of_parameters_that_are_written_alike_are_reported_each_at_its_own_place() -> None:
    fault = {"name": "q", "in": "query", "style": "matrix", "schema": {"type": "string"}}
    inner = {"name": "q", "in": "query", "schema": {"type": "string", "pattern": "["}}
    for given, below in ((fault, ""), (inner, "/schema")):
        made = generate(document({path: {"get": {"parameters": [dict(given)]}} for path in ("/a", "/b", "/c")}))
        places = [text.rpartition(" at ")[2] for text in said(made)]
        assert places == [f"/paths/~1{name}/get/parameters/0{below}" for name in "abc"]


def test_parameters_that_are_written_alike_give_equal_tools_that_share_nothing_a_caller_can_change() -> None:
    given = {"name": "q", "in": "query", "schema": {"type": "array", "items": {"enum": ["a"]}}, "example": ["a"]}
    first, second = generate(document({path: {"get": {"parameters": [dict(given)]}} for path in ("/a", "/b")})).tools
    assert first.parameters == second.parameters
    first.input_schema()["properties"]["q"]["items"]["enum"].append("b")
    assert second.input_schema()["properties"]["q"]["items"]["enum"] == ["a"]
