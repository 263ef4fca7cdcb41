from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import (
    OBJECT,
    OK,
    body_schema,
    document,
    leaf,
    leaves,
    made,
    parameter,
    properties,
    said,
    tool_of,
    with_body,
)

from toolgen.request.resolve import resolve
from toolgen.tools.model import Leaf, Tool
from toolgen.tools.template import arguments_in


def accepts(tool: Tool, arguments: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(tool.input_schema(), offline=True).is_valid(arguments)


# Arguments


def test_each_parameter_is_one_typed_argument_in_its_own_place() -> None:
    parameters = [
        parameter("id", "path", schema={"type": "integer"}),
        parameter("limit", schema={"type": "integer", "maximum": 100}),
        parameter("X-Trace", "header"),
        parameter("sid", "cookie", required=True),
    ]
    tool = tool_of({"parameters": parameters}, path="/x/{id}")
    assert leaves(tool) == [
        ("path", "id", "{{ id }}"),
        ("query", "limit", "{{ limit }}"),
        ("header", "X-Trace", "{{ arguments['X-Trace'] }}"),
        ("cookie", "sid", "{{ sid }}"),
    ]
    assert properties(tool)["limit"] == {"type": "integer", "maximum": 100}
    assert tool.parameters["required"] == ["id", "sid"]
    assert tool.parameters["additionalProperties"] is False


def test_a_whole_query_string_is_one_argument() -> None:
    whole = {"name": "q", "in": "querystring", "content": {"application/x-www-form-urlencoded": {"schema": OBJECT}}}
    tool = tool_of({"parameters": [whole]}, version="3.2.0")
    assert tool.request.querystring == Leaf(name="q", value="{{ q }}", media_type="application/x-www-form-urlencoded")
    assert properties(tool)["q"]["properties"] == OBJECT["properties"]


@pytest.mark.parametrize(
    ("location", "keys", "style", "explode"),
    [
        ("query", {}, "form", True),
        ("query", {"explode": False}, "form", False),
        ("query", {"style": "deepObject", "explode": True}, "deepObject", True),
        ("query", {"style": "pipeDelimited"}, "pipeDelimited", False),
        ("query", {"style": "spaceDelimited"}, "spaceDelimited", False),
        ("header", {}, "simple", False),
        ("cookie", {}, "form", True),
        ("path", {}, "simple", False),
        ("path", {"style": "matrix", "explode": True}, "matrix", True),
        ("path", {"style": "label"}, "label", False),
    ],
)
def test_styles_are_kept_with_their_defaults(location: str, keys: dict[str, Any], style: str, explode: bool) -> None:
    array = {"type": "array", "items": {"type": "string"}}
    tool = tool_of({"parameters": [parameter("p", location, schema=array, **keys)]}, path="/x/{p}")
    found = leaf(tool, location, "p")
    assert (found.style, found.explode, found.media_type) == (style, explode, None)


def test_reserved_characters_are_allowed_where_the_document_says_so() -> None:
    tool = tool_of({"parameters": [parameter("a", allowReserved=True), parameter("b")]})
    assert [one.allow_reserved for one in tool.request.query] == [True, False]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ({"application/json": {"schema": OBJECT}}, "application/json"),
        ({"text/csv": {}, "application/vnd.x+json": {"schema": OBJECT}}, "application/vnd.x+json"),
        ({"*/*": {"schema": OBJECT}}, "application/json"),
        ({"*/*": {"schema": {"type": "string"}}}, "text/plain"),
    ],
)
def test_a_parameter_by_content_is_written_as_its_media_type(content: Any, media_type: str) -> None:
    tool = tool_of({"parameters": [{"name": "filter", "in": "query", "content": content}]})
    (found,) = tool.request.query
    assert (found.media_type, found.style, found.explode) == (media_type, None, None)


def test_required_is_exactly_what_the_document_says() -> None:
    parameters = [parameter("a"), parameter("b", required=True), parameter("c", required=False, schema={"default": 1})]
    tool = tool_of({"parameters": parameters, "requestBody": {"content": {"application/json": {"schema": OBJECT}}}})
    assert tool.parameters["required"] == ["b"]
    assert accepts(tool, {"b": "x"})
    assert not accepts(tool, {"a": "x"})


def test_no_argument_is_required_where_none_is() -> None:
    assert "required" not in tool_of({"parameters": [parameter("a")]}).parameters


def test_parameters_of_one_component_are_one_schema_in_every_tool() -> None:
    shared = {"parameters": {"Page": parameter("page", schema={"type": "integer"}, description="Which.")}}
    use = {"parameters": [{"$ref": "#/components/parameters/Page"}], "responses": OK}
    toolset = made(document({"/a": {"get": use}, "/b": {"get": copy.deepcopy(use)}}, components=shared))
    first, second = (properties(tool)["page"] for tool in toolset.tools)
    assert first == second == {"type": "integer", "description": "Which."}


@pytest.mark.parametrize(
    "name",
    ["Accept", "content-type", "AUTHORIZATION", "Host", "Content-Length", "transfer-encoding", "Connection", "cookie"],
)
def test_headers_with_another_owner_are_never_arguments(name: str) -> None:
    tool = tool_of({"parameters": [parameter(name, "header", required=True), parameter("X-Ok", "header")]})
    assert list(properties(tool)) == ["X-Ok"]


def test_names_that_cannot_be_sent_raw_are_left_out_and_told() -> None:
    bad = [
        parameter("X Y", "header"),
        parameter("X\r\nY", "header"),
        parameter("a;b", "cookie"),
        parameter("c\r\n", "cookie"),
    ]
    toolset = made(document({"/x": {"get": {"parameters": [*bad, parameter("csrf[token]", "cookie")]}}}))
    assert [(b.location, b.name) for b in toolset.tools[0].bindings] == [("cookie", "csrf[token]")]
    assert [d.level for d in said(toolset)] == ["degraded"] * 4


# Parameters of security schemes

SCHEMES = {
    "key": {"type": "apiKey", "in": "query", "name": "api_key"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "bearer", "description": "prose"},
}


def test_parameters_that_a_security_scheme_owns_are_never_arguments() -> None:
    parameters = [
        parameter("api_key", required=True),
        parameter("x-api-key", "header"),
        parameter("sid", "cookie"),
        parameter("Authorization", "header"),
        parameter("api_key", "header"),
        parameter("API_KEY"),
    ]
    tool = tool_of({"parameters": parameters}, components={"securitySchemes": SCHEMES})
    assert {(b.location, b.name) for b in tool.bindings} == {("header", "api_key"), ("query", "API_KEY")}
    assert "required" not in tool.parameters


def test_the_same_holds_for_version_2() -> None:
    tool = tool_of(
        {"parameters": [{"name": "api_key", "in": "query", "type": "string"}]},
        version="2.0",
        securityDefinitions={"key": {"type": "apiKey", "in": "query", "name": "api_key"}},
    )
    assert properties(tool) == {}


@pytest.mark.parametrize(
    ("own", "whole", "expected"),
    [
        ([{"key": [], "bearer": []}, {"header": []}], None, (("key", "bearer"), ("header",))),
        ([], [{"key": []}], ()),
        (None, [{"key": []}], (("key",),)),
        (None, None, ()),
        ([{}], None, ((),)),
        ([{"bearer": ["read", "write"]}, {}], [{"key": []}], (("bearer",), ())),
    ],
)
def test_security_is_an_or_of_ands(own: Any, whole: Any, expected: Any) -> None:
    keys: dict[str, Any] = {"components": {"securitySchemes": SCHEMES}}
    if whole is not None:
        keys["security"] = whole
    tool = tool_of({} if own is None else {"security": own}, **keys)
    assert tool.request.security == expected


def test_security_schemes_are_kept_without_their_prose() -> None:
    toolset = made(document({"/x": {"get": {"responses": OK}}}, components={"securitySchemes": SCHEMES}))
    assert toolset.security_schemes["bearer"] == {"type": "http", "scheme": "bearer"}


def test_a_scheme_that_is_required_and_not_declared_stays_required() -> None:
    toolset = made(document({"/x": {"get": {"security": [{"ghost": []}, {"bearer": []}], "responses": OK}}}))
    assert toolset.tools[0].request.security == (("ghost",), ("bearer",))
    assert toolset.security_schemes == {"ghost": {}, "bearer": {}}
    assert [d.level for d in said(toolset)] == ["degraded", "degraded"]


# The body


def test_the_body_is_one_argument_with_its_real_schema() -> None:
    schema = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
        "additionalProperties": {"type": "string"},
    }
    tool = with_body({"application/json": {"schema": schema}}, required=True)
    assert list(properties(tool)) == ["requestBody"]
    assert {key: body_schema(tool)[key] for key in schema} == schema
    assert tool.request.body is not None
    assert (tool.request.body.value, tool.request.body.media_type) == ("{{ requestBody }}", "application/json")
    assert accepts(tool, {"requestBody": {"name": "x", "extra": "kept"}})
    assert not accepts(tool, {"requestBody": {"size": 3}})
    assert not accepts(tool, {})


def test_an_optional_body_may_be_left_out() -> None:
    assert accepts(with_body({"application/json": {"schema": OBJECT}}), {})


def test_one_name_in_path_and_body_can_have_two_values() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}
    tool = tool_of(
        {"parameters": [parameter("id", "path")], "requestBody": {"content": {"application/json": {"schema": schema}}}},
        path="/x/{id}",
        method="put",
    )
    assert accepts(tool, {"id": "1", "requestBody": {"id": "2", "name": "x"}})
    assert {(b.argument, b.location) for b in tool.bindings} == {("id", "path"), ("requestBody", "body")}


def test_a_query_and_a_body_are_both_sent() -> None:
    tool = tool_of(
        {"parameters": [parameter("dry")], "requestBody": {"content": {"application/json": {"schema": OBJECT}}}}
    )
    assert [(where, name) for where, name, _ in leaves(tool)] == [("query", "dry"), ("body", "")]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "array", "items": {"type": "string"}}, [["a"], []], [["a", 1], {}, "a"]),
        ({"type": "string"}, ["a"], [1]),
        ({"type": "integer"}, [1], ["1"]),
        ({"type": "boolean"}, [True], ["true"]),
        ({"type": ["object", "null"]}, [None, {}], [1]),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1}, {"b": 1}], [{"a": 1, "b": 1}, {}]),
        (True, [1, None, {}], []),
        (False, [], [1, None, {}]),
    ],
)
def test_a_body_may_be_anything_json_is(schema: Any, good: list[Any], bad: list[Any]) -> None:
    tool = with_body({"application/json": {"schema": schema}})
    assert [value for value in good if not accepts(tool, {"requestBody": value})] == []
    assert [value for value in bad if accepts(tool, {"requestBody": value})] == []


def test_null_is_kept_where_the_schema_allows_it_and_absent_stays_absent() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string", "nullable": True}, "n": {"type": "string"}}}
    tool = with_body({"application/merge-patch+json": {"schema": schema}}, version="3.0.3")
    assert accepts(tool, {"requestBody": {"name": None}})
    assert accepts(tool, {"requestBody": {}})
    assert not accepts(tool, {"requestBody": {"n": None}})


def test_defaults_stay_in_the_schema_and_fill_nothing() -> None:
    tool = with_body({"application/json": {"schema": {"type": "object", "properties": {"n": {"default": 5}}}}})
    assert body_schema(tool)["properties"] == {"n": {"default": 5}}
    assert [value for _, _, value in leaves(tool)] == ["{{ requestBody }}"]


def test_nested_properties_of_one_name_stay_where_they_are() -> None:
    city = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = with_body({"application/json": {"schema": {"type": "object", "properties": {"home": city, "work": city}}}})
    assert body_schema(tool)["properties"] == {"home": city, "work": city}


@pytest.mark.parametrize("media", [{}, {"schema": {}}, {"schema": None}, {"schema": "x"}, None])
def test_a_declared_body_without_a_schema_is_an_argument_all_the_same(media: Any) -> None:
    tool = with_body({"application/json": media}, required=True)
    assert tool.parameters["required"] == ["requestBody"]
    assert tool.request.body is not None


@pytest.mark.parametrize("body", [{}, {"content": {}}, {"content": {"application/json": {"$ref": "#/nowhere"}}}])
def test_a_declared_body_without_a_media_type_is_json_and_told(body: Any) -> None:
    toolset = made(document({"/x": {"put": {"requestBody": {**body, "required": True}, "responses": OK}}}))
    (tool,) = toolset.tools
    assert tool.parameters["required"] == ["requestBody"]
    assert tool.request.body is not None
    assert tool.request.body.media_type == "application/json"
    assert "degraded" in {d.level for d in said(toolset)}


@pytest.mark.parametrize("method", ["get", "head", "delete"])
@pytest.mark.parametrize(("version", "notes"), [("3.0.3", 1), ("3.1.0", 0), ("3.2.0", 0)])
def test_a_body_on_a_method_that_seldom_has_one_is_kept(method: str, version: str, notes: int) -> None:
    operation = {"requestBody": {"content": {"application/json": {"schema": OBJECT}}}, "responses": OK}
    toolset = made(document({"/x": {method: operation}}, version))
    assert [b.location for b in toolset.tools[0].bindings] == ["body"]
    found = said(toolset)
    assert [d.level for d in found] == ["note"] * notes
    assert all("shall be ignored; it is kept" in d.message for d in found)


# Every variable declared, every argument used, every body sent: whatever the document

names = st.sampled_from(["id", "requestBody", "a b", "$x", "self", "in", "ü", "{{ x }}", "X-Y", "requestBodyBody"])
locations = st.sampled_from(["query", "header", "cookie"])
schemas = st.sampled_from(
    [{"type": "string"}, {"type": "array", "items": {}}, OBJECT, {"$ref": "#/components/schemas/S"}, {}, True, None, 5]
)
media_types = st.sampled_from(
    ["application/json", "text/plain", "*/*", "application/xml", "multipart/form-data", "image/png", "a/b", "bad"]
)
bodies = st.fixed_dictionaries(
    {"content": st.dictionaries(media_types, st.fixed_dictionaries({"schema": schemas}), min_size=1, max_size=3)},
    optional={"required": st.booleans(), "description": st.text(max_size=5)},
)
operations = st.fixed_dictionaries(
    {
        "parameters": st.lists(
            st.fixed_dictionaries(
                {"name": names, "in": locations, "schema": schemas}, optional={"required": st.booleans()}
            ),
            max_size=5,
        )
    },
    optional={"requestBody": bodies, "operationId": st.sampled_from(["op", "", "a/b"]), "tags": st.just(["t"])},
)
paths = st.dictionaries(
    st.sampled_from(["/x", "/x/{id}", "/x/{requestBody}", "/{a}/{b}", "x?y={z}", "/x/{{ id }}"]),
    st.dictionaries(st.sampled_from(["get", "post", "put", "patch", "delete"]), operations, min_size=1, max_size=3),
    min_size=1,
    max_size=3,
)


@given(paths, st.sampled_from(["3.0.3", "3.1.0", "3.2.0"]))
def test_templates_and_arguments_agree_in_every_tool_of_every_document(items: Any, version: str) -> None:
    source = document(items, version, components={"schemas": {"S": {"type": "object", "title": "S"}}})
    before = copy.deepcopy(source)
    toolset = made(source)
    assert source == before
    assert toolset.report is not None
    assert toolset.report.counts()["skipped"] == 0
    declared = {op.pointer: op.tool for op in toolset.report.operations}
    for path, item in items.items():
        for method, operation in item.items():
            tool = toolset.tool(str(declared[f"/paths/{path.replace('/', '~1')}/{method}"]))
            used = [arguments_in(value) for _, _, value in leaves(tool)]
            assert frozenset().union(*used) == set(properties(tool))
            assert all(len(arguments) == 1 for arguments in used)
            assert len(used) == len(properties(tool)) == len(tool.bindings)
            assert [b.location for b in tool.bindings].count("body") == ("requestBody" in operation)
            jsonschema_rs.meta.validate(tool.input_schema())


# Annotations, group, provenance, endpoint


@pytest.mark.parametrize(
    ("method", "reads", "idempotent"),
    [
        ("get", True, True),
        ("head", True, True),
        ("options", True, True),
        ("trace", True, True),
        ("query", True, True),
        ("put", False, True),
        ("delete", False, True),
        ("post", False, False),
        ("patch", False, False),
    ],
)
def test_all_four_hints_follow_from_the_method(method: str, reads: bool, idempotent: bool) -> None:
    found = tool_of(method=method, version="3.2.0").annotations
    assert found.model_dump(by_alias=True, exclude={"title"}) == {
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "idempotentHint": idempotent,
        "openWorldHint": True,
    }


def test_a_method_of_its_own_is_a_write_that_may_destroy() -> None:
    item = {"additionalOperations": {"PURGE": {"responses": OK}, "mKcOl": {"responses": OK}}}
    purge, mkcol = made(document({"/x": item}, "3.2.0")).tools
    assert (purge.endpoint.key, purge.request.method) == ("purge:/x", None)
    assert (mkcol.endpoint.key, mkcol.request.method) == ("mkcol:/x", "mKcOl")
    assert not purge.annotations.read_only_hint
    assert purge.annotations.destructive_hint
    assert not purge.annotations.idempotent_hint


def test_nothing_generated_says_that_a_tool_is_destructive_for_policy() -> None:
    extra = {"destructive": True, "x-destructive": True, "x-toolgen-destructive": True}
    assert tool_of(extra, method="delete").destructive is None


def test_the_group_is_the_first_tag_or_general() -> None:
    assert tool_of({"tags": ["pets", "more"]}).group == "pets"
    for tags in (None, [], [""], "pets", [5]):
        assert tool_of({"tags": tags} if tags is not None else {}).group == "General"


def test_where_a_tool_comes_from_is_kept() -> None:
    tool = tool_of({"operationId": "a/b", "tags": ["x", "y"]}, path="/a/{b}~c")
    assert tool.operation.model_dump() == {
        "pointer": "/paths/~1a~1{b}~0c/post",
        "operation_id": "a/b",
        "tags": ("x", "y"),
    }
    assert tool_of({"operationId": ""}).operation.operation_id is None


@pytest.mark.parametrize(
    ("path", "key", "template"),
    [
        ("/pets/{petId}", "post:/pets/{petId}", None),
        ("pets", "post:/pets", None),
        ("", "post:/", None),
        ("/a/", "post:/a/", None),
        ("//a", "post:/a", "//a"),
        ("/a?x=1#top", "post:/a", "/a?x=1"),
        ("/%61/%c3%bc", "post:/a/%C3%BC", None),
        ("/ü b", "post:/%C3%BC%20b", None),
        ("https://b.test/v1/pets", "post:/v1/pets", None),
        ("/users('{id}')", "post:/users('{id}')", None),
        ("/v1/{name=projects/*}:run", "post:/v1/{name=projects/*}:run", None),
    ],
)
def test_the_endpoint_key_is_normalised_and_what_is_sent_stays(path: str, key: str, template: str | None) -> None:
    tool = tool_of(path=path)
    assert (tool.endpoint.key, tool.request.template) == (key, template)


def test_a_path_that_is_a_url_goes_to_its_own_host() -> None:
    assert tool_of(path="https://b.test/v1").request.server == "https://b.test"


def test_a_query_written_into_a_path_is_sent_once() -> None:
    tool = tool_of({"parameters": [parameter("x"), parameter("fixed", "query")]}, path="/a?x={x}&k=1")
    assert tool.request.template == "/a?k=1"
    assert {(b.argument, b.location) for b in tool.bindings} == {("x", "query"), ("fixed", "query")}


# Answers


def answer(responses: dict[str, Any], method: str = "post", **keys: Any) -> Any:
    return tool_of({"responses": responses}, method=method, **keys).response


def test_the_answers_media_types_and_schema_are_those_of_good_answers() -> None:
    found = answer(
        {
            "200": {"content": {"text/csv": {}, "application/json": {"schema": OBJECT}}},
            "400": {"content": {"application/problem+json": {"schema": {"type": "integer"}}}},
            "default": {"content": {"text/html": {}}},
        }
    )
    assert found.media_types == ("text/csv", "application/json")
    assert found.schema_ == OBJECT


def test_without_a_good_answer_the_default_one_is_described() -> None:
    found = answer({"default": {"content": {"application/json": {"schema": OBJECT}}}, "404": {"description": ""}})
    assert found.schema_ == OBJECT


def test_good_answers_that_differ_are_alternatives() -> None:
    def one(schema: Any) -> Any:
        return {"content": {"application/json": {"schema": schema}}}

    assert answer({"200": one(OBJECT), "201": one(OBJECT)}).schema_ == OBJECT
    assert answer({"200": one(OBJECT), "202": one({"type": "string"})}).schema_ == {
        "anyOf": [OBJECT, {"type": "string"}]
    }


def test_what_only_requests_have_is_left_out_of_answers() -> None:
    user = {
        "type": "object",
        "required": ["id", "name", "secret"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": {"type": "string"},
            "secret": {"type": "string", "writeOnly": True},
        },
    }
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}
    tool = tool_of(
        {"requestBody": {"content": reference}, "responses": {"200": {"content": reference}}},
        components={"schemas": {"User": user}},
    )
    assert set(body_schema(tool)["properties"]) == {"name", "secret"}
    assert body_schema(tool)["required"] == ["name", "secret"]
    output = tool.output_schema()
    assert isinstance(output, dict)
    assert set(output["properties"]) == {"id", "name"}
    assert output["required"] == ["id", "name"]


HEADERS = {"Location": {"schema": {"type": "string"}}, "Set-Cookie": {}, "SET-COOKIE2": {}, "content-type": {}}


@pytest.mark.parametrize(
    ("status", "content", "method", "expected"),
    [
        ("201", {"application/json": {}}, "post", ("Location",)),
        ("202", None, "post", ("Location",)),
        ("204", None, "post", ("Location",)),
        ("200", None, "post", ("Location",)),
        ("2XX", None, "post", ("Location",)),
        ("303", {"text/html": {}}, "get", ("Location",)),
        ("3XX", None, "get", ("Location",)),
        ("200", {"application/json": {}}, "get", ()),
        ("200", {"application/json": {}}, "head", ("Location",)),
        ("404", None, "get", ()),
        ("default", None, "get", ()),
    ],
)
def test_headers_are_named_where_the_answer_is_in_them(status: str, content: Any, method: str, expected: Any) -> None:
    response = {"description": "", "headers": HEADERS, **({"content": content} if content else {})}
    assert answer({status: response}, method).headers == expected


@pytest.mark.parametrize("name", ["Set-Cookie", "set-cookie", "SET-COOKIE", "sEt-cOoKiE", "Set-Cookie2"])
def test_a_cookie_that_is_set_is_never_an_answer(name: str) -> None:
    assert answer({"201": {"headers": {name: {}, "ETag": {}}}}).headers == ("ETag",)


def test_headers_of_version_2_are_named_too() -> None:
    responses = {
        "201": {"description": "", "headers": {"Location": {"type": "string"}, "Set-Cookie": {"type": "string"}}}
    }
    assert answer(responses, version="2.0").headers == ("Location",)


# Servers


SERVERS = [{"url": "https://a.test/v1"}, {"url": "https://second.test"}]


@pytest.mark.parametrize(
    ("operation", "item", "expected"),
    [
        ({}, {}, None),
        ({"servers": [{"url": "https://op.test"}]}, {"servers": [{"url": "https://item.test"}]}, "https://op.test"),
        ({}, {"servers": [{"url": "https://item.test"}]}, "https://item.test"),
        ({"servers": []}, {"servers": []}, None),
        ({"servers": [{"url": "https://a.test/v1"}]}, {}, None),
        ({"servers": [{"url": "/v2"}]}, {}, "/v2"),
    ],
)
def test_an_operations_own_server_stands_with_it(operation: Any, item: Any, expected: Any) -> None:
    paths = {"/x": {**item, "get": {"responses": OK, **operation}}}
    toolset = made(document(paths, servers=SERVERS))
    assert toolset.server == "https://a.test/v1"
    assert toolset.tools[0].request.server == expected


def test_a_given_server_replaces_the_documents_and_not_an_operations_own() -> None:
    paths = {
        "/x": {"get": {"responses": OK}},
        "/y": {"servers": [{"url": "https://up.test"}], "get": {"responses": OK}},
    }
    toolset = made(document(paths, servers=SERVERS), server="http://localhost:8080/base")
    assert toolset.server == "http://localhost:8080/base"
    assert [tool.request.server for tool in toolset.tools] == [None, "https://up.test"]
    assert toolset.report is not None
    assert toolset.report.servers == ("http://localhost:8080/base", "https://up.test")


def server_of(*servers: Any) -> Any:
    toolset = made(document({"/x": {"get": {"responses": OK}}}, servers=list(servers)))
    return toolset.server if toolset.server is None or isinstance(toolset.server, str) else toolset.server.model_dump()


def test_variables_of_a_server_are_kept() -> None:
    variables = {"region": {"default": "eu", "enum": ["eu", "us"]}, "unused": {"default": "x"}}
    assert server_of({"url": "https://{region}.test", "variables": variables}) == {
        "url": "https://{region}.test",
        "variables": {"region": {"default": "eu", "enum": ("eu", "us")}},
    }


def test_a_variable_without_a_default_must_be_given() -> None:
    assert server_of({"url": "https://{tenant}.test"})["variables"] == {"tenant": {"default": None, "enum": ()}}
    first = server_of({"url": "https://{r}.test", "variables": {"r": {"enum": ["eu", "us"]}}})
    assert first["variables"]["r"]["default"] == "eu"


def test_a_default_that_is_none_of_the_values_is_added_to_them() -> None:
    found = server_of({"url": "https://{r}.test", "variables": {"r": {"default": "eu", "enum": ["us"]}}})
    assert found["variables"] == {"r": {"default": "eu", "enum": ("eu", "us")}}


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.test",
        "https://",
        "https://[a",
        "https://a b",
        "https://a\r\nX: y",
        "https://a.test/{}",
        "https://a:0x",
        5,
    ],
)
def test_a_server_no_request_can_go_to_is_left_out(url: Any) -> None:
    assert server_of({"url": url}, {"url": "https://b.test"}) == "https://b.test"
    assert server_of({"url": url}) is None


@pytest.mark.parametrize(
    "query", ["_method=delete", "a=1&_METHOD=put", "%5Fmethod=delete", "x-http-method-override=put"]
)
def test_a_path_whose_constant_query_says_another_method_is_skipped(query: str) -> None:
    toolset = made(document({f"/x?{query}": {"post": {"responses": OK}}, "/y?b=1": {"get": {"responses": OK}}}))
    assert [tool.endpoint.key for tool in toolset.tools] == ["get:/y"]
    assert any("another method" in d.message for d in said(toolset))


def test_data_that_looks_like_a_reference_stays_data() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}}, "example": {"$ref": "#/nowhere"}}
    tool = with_body({"application/json": {"schema": schema}})
    assert json.loads(json.dumps(body_schema(tool)["examples"])) == [{"$ref": "#/nowhere"}]
    assert list(body_schema(tool)["properties"]) == ["$ref"]


@pytest.mark.parametrize("name", ["Idempotency-Key", "x-idempotency-key"])
def test_a_required_idempotency_header_is_not_the_model_s_to_invent(name: str) -> None:
    key = {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
    paths = {"/x": {"post": {"parameters": [key], "responses": OK}}}
    tool = made(document(paths, servers=SERVERS)).tools[0]
    assert tool.parameters.get("required", []) == []
    assert resolve(tool, {}).idempotency == name
