"""Operations: what path items, documents and references add to them, and what a broken one costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openapi.documents import document, one, operation, operations, said, tool, write

from toolgen import generate
from toolgen.errors import SelectionError
from toolgen.openapi.model import Operation
from toolgen.openapi.operations import OWNED_HEADERS


def arguments(source: Any) -> dict[tuple[str, str], Any]:
    """(location, wire name) -> schema of every argument."""
    made = tool(source)
    return {(b.location, b.name): made.parameters["properties"][b.argument] for b in made.bindings}


# Parameters of path items


def test_parameters_of_the_path_item_belong_to_every_operation_below() -> None:
    made = generate(
        document(
            """
            /x/{id}:
              parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
              get: {responses: {}}
              delete: {responses: {}}
            """
        )
    )
    assert [t.parameters["properties"]["id"]["type"] for t in made.tools] == ["integer", "integer"]
    assert [t.parameters["required"] for t in made.tools] == [["id"], ["id"]]
    assert said(made) == []


def test_an_operation_overrides_a_parameter_of_the_same_name_and_place_only() -> None:
    found = arguments(
        document(
            """
            /x:
              parameters:
              - {name: a, in: query, schema: {type: integer}}
              - {name: b, in: query, schema: {type: integer}}
              - {name: X-H, in: header, schema: {type: integer}}
              get:
                parameters:
                - {name: a, in: query, schema: {type: string}}
                - {name: b, in: header, schema: {type: string}}
                - {name: x-h, in: header, schema: {type: string}}
                responses: {}
            """
        )
    )
    assert {where: schema["type"] for where, schema in found.items()} == {
        ("query", "a"): "string",
        ("query", "b"): "integer",
        ("header", "b"): "string",
        ("header", "x-h"): "string",  # header names have no case
    }


def test_a_parameter_declared_twice_in_one_list_counts_once_and_is_noted() -> None:
    made = generate(
        one("parameters: [{name: a, in: query, schema: {type: string}}, {name: a, in: query, schema: {type: integer}}]")
    )
    assert made.tools[0].parameters["properties"]["a"]["type"] == "string"
    assert said(made) == ["note: the query parameter 'a' is declared twice at /paths/~1x/post/parameters/1"]


def test_one_name_in_two_places_is_two_arguments() -> None:
    made = tool(
        document(
            """
            /x/{id}:
              put:
                parameters:
                - {name: id, in: path, required: true, schema: {type: string}}
                - {name: id, in: query, schema: {type: string}}
                - {name: id, in: header, schema: {type: string}}
                - {name: id, in: cookie, schema: {type: string}}
                - {name: requestBody, in: query, schema: {type: string}}
                requestBody: {content: {application/json: {schema: {type: object, properties: {id: {}}}}}}
            """
        )
    )
    assert {(b.location, b.name): b.argument for b in made.bindings} == {
        ("path", "id"): "id",
        ("query", "id"): "id_query",
        ("header", "id"): "id_header",
        ("cookie", "id"): "id_cookie",
        ("query", "requestBody"): "requestBody",
        ("body", ""): "requestBodyBody",
    }


# Path items


def test_a_path_item_reference_has_siblings_that_win(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        root="""
openapi: 3.1.0
servers: [{url: https://a.test}]
paths:
  /x:
    $ref: item.yaml
    summary: ours
    servers: [{url: https://ours.test}]
    parameters: [{name: q, in: query, schema: {type: string}}]
    post: {operationId: ours, responses: {}}
""",
        item="""
summary: theirs
servers: [{url: https://theirs.test}]
parameters: [{name: q, in: query, schema: {type: integer}}, {name: r, in: query, schema: {type: integer}}]
get: {operationId: get, responses: {}}
post: {operationId: theirs, responses: {}}
""",
    )
    made = generate(root)
    assert [t.name for t in made.tools] == ["get", "ours"]
    for found in made.tools:
        assert found.parameters["properties"]["q"]["type"] == "string"
        assert found.parameters["properties"]["r"]["type"] == "integer"
        assert found.request.server == "https://ours.test"
        assert found.description == "ours"
    assert made.tools[0].pointer == "/paths/~1x/get"


def test_a_path_item_that_leads_nowhere_keeps_its_siblings() -> None:
    made = generate(document({"/x": {"$ref": "#/nope", "get": {"responses": {}}}}))
    assert [t.endpoint.key for t in made.tools] == ["get:/x"]
    lost = next(op for op in made.report.operations if op.tool is None)
    assert (lost.method, lost.path, lost.pointer, lost.status) == ("*", "/x", "/paths/~1x", "skipped")
    assert lost.diagnostics[0].message.startswith("the path item cannot be read: '#/nope' leads nowhere")


def test_only_methods_are_operations() -> None:
    found = operations(
        document(
            """
            /x:
              summary: s
              description: d
              servers: [{url: https://b.test}]
              parameters: []
              x-thing: {responses: {}}
              get: {responses: {}}
              POST: {responses: {}}
              unknown: {responses: {}}
              put: null
            x-hidden: {get: {responses: {}}}
            """
        )
    )
    assert [(o.method, o.path) for o in found] == [("get", "/x"), ("post", "/x")]


def test_an_operation_by_reference_is_read_and_one_that_leads_nowhere_is_skipped() -> None:
    made = generate(
        document(
            """
            /a: {get: {operationId: one, responses: {}}}
            /b: {get: {$ref: '#/paths/~1a/get'}}
            /c: {get: {$ref: '#/paths/~1nope/get'}}
            """
        )
    )
    assert made.report is not None
    assert [o.status for o in made.report.operations] == ["ok", "ok", "skipped"]
    assert len({t.name for t in made.tools}) == 2


# Names


@pytest.mark.parametrize("written", ["", "   ", None, 3, [], {}])
def test_an_operation_id_that_is_none_is_missing(written: Any) -> None:
    made = tool(document({"/users/{id}/posts": {"get": {"operationId": written, "responses": {}}}}))
    assert (made.name, made.operation.operation_id) == ("get_users_id_posts", None)


def test_the_original_operation_id_is_kept() -> None:
    made = tool(one("{operationId: repos/get, responses: {}}"))
    assert (made.name, made.operation.operation_id) == ("repos_get", "repos/get")


# Path expressions


def test_an_undeclared_path_expression_becomes_a_required_text_argument() -> None:
    made = generate(document("/x/{id}: {get: {responses: {}}}"))
    assert made.tools[0].parameters == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    assert said(made) == [
        "degraded: the path parameter 'id' is not declared; a text argument is added at /paths/~1x~1{id}/get"
    ]


def test_a_declared_path_parameter_that_the_path_has_not_is_left_out() -> None:
    made = generate(one("parameters: [{name: id, in: path, required: true, schema: {type: string}}]"))
    assert made.tools[0].parameters["properties"] == {}
    assert "the path has no {id}" in said(made)[0]


def test_a_path_parameter_is_required_whatever_it_says() -> None:
    made = generate(document("/x/{id}: {get: {parameters: [{name: id, in: path, schema: {}}]}}"))
    assert made.tools[0].parameters["required"] == ["id"]
    assert "is not marked as required" in said(made)[0]


def test_an_expression_in_a_constant_query_is_filled_by_the_query_parameter() -> None:
    made = tool(document("'/x?a={a}&b=1': {get: {parameters: [{name: a, in: query, schema: {type: string}}]}}"))
    assert made.request.template == "/x?b=1"
    assert [(b.location, b.name) for b in made.bindings] == [("query", "a")]


# Parts by reference


def test_parameters_bodies_and_responses_are_found_by_reference() -> None:
    made = generate(
        one(
            """
            parameters: [{$ref: '#/components/parameters/Limit'}]
            requestBody: {$ref: '#/components/requestBodies/Pet'}
            responses: {'200': {$ref: '#/components/responses/Ok'}, '404': {$ref: '#/components/responses/Gone'}}
            """,
            components={
                "parameters": {"Limit": {"name": "limit", "in": "query", "schema": {"type": "integer"}}},
                "requestBodies": {
                    "Pet": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
                },
                "responses": {
                    "Ok": {"description": "ok", "content": {"application/json": {"schema": {"type": "boolean"}}}},
                    "Gone": {"description": "no such pet"},
                },
            },
        )
    )
    (found,) = made.tools
    assert said(made) == []
    assert found.parameters["properties"]["limit"]["type"] == "integer"
    assert found.parameters["required"] == ["requestBody"]
    assert found.response.schema_ == {"type": "boolean"}
    assert "404 no such pet" in found.description


def test_headers_that_carry_the_answer_are_named_and_cookies_never() -> None:
    made = tool(
        one(
            """
            responses:
              '200': {content: {application/json: {}}, headers: {X-Rate: {}}}
              '201': {content: {application/json: {}}, headers: {Location: {}, Set-Cookie: {}}}
              '202': {headers: {Operation-Location: {}}}
              '302': {headers: {location: {}}}
              '400': {headers: {X-Error: {}}}
            """
        )
    )
    assert made.response.headers == ("Location", "Operation-Location", "location")


# Owned parameters


def test_headers_that_belong_to_the_message_are_never_arguments() -> None:
    names = [name.title() for name in sorted(OWNED_HEADERS)] + ["AUTHORIZATION", "X-Kept"]
    found = arguments(one({"parameters": [{"name": n, "in": "header", "schema": {}} for n in names]}))
    assert list(found) == [("header", "X-Kept")]
    assert len(OWNED_HEADERS) == 9


def test_parameters_that_a_security_scheme_owns_are_never_arguments() -> None:
    schemes = {
        "h": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "q": {"type": "apiKey", "in": "query", "name": "key"},
        "c": {"type": "apiKey", "in": "cookie", "name": "sid"},
    }
    given = [("header", "x-KEY"), ("query", "key"), ("query", "KEY"), ("cookie", "sid"), ("header", "key")]
    found = arguments(
        one(
            {"parameters": [{"name": name, "in": where, "schema": {}} for where, name in given]},
            components={"securitySchemes": schemes},
        )
    )
    assert set(found) == {("query", "KEY"), ("header", "key")}


# Trouble


@pytest.mark.parametrize(
    "broken",
    [None, "text", 3, [], {"parameters": 3}, {"parameters": [None, 3, {"name": "a"}, {"in": "query"}]}, {"tags": 3}],
)
def test_a_broken_operation_costs_itself_only(broken: Any) -> None:
    made = generate(document({"/bad": {"get": broken}, "/good": {"get": {"responses": {}}}}))
    assert "get:/good" in {t.endpoint.key for t in made.tools}


@pytest.mark.parametrize("broken", [None, "text", 3, [], True])
def test_a_broken_path_item_costs_itself_only(broken: Any) -> None:
    made = generate(document({"/bad": broken, "/good": {"get": {"responses": {}}}}))
    assert [t.endpoint.key for t in made.tools] == ["get:/good"]


@pytest.mark.parametrize("paths", [None, [], "text", 3, {}])
def test_a_document_without_operations_says_so(paths: Any) -> None:
    with pytest.raises(SelectionError, match="the document has none"):
        generate({**document(), "paths": paths})


def test_text_of_operations_falls_back_to_the_path_item() -> None:
    found = operation(document("/x: {summary: s, description: d, get: {deprecated: true, tags: [a, 3, b]}}"))
    assert (found.summary, found.description, found.deprecated, found.tags) == ("s", "d", True, ("a", "b"))


def test_pointers_lead_to_the_operation() -> None:
    (found,) = operations(document({"/a~b/{c}": {"get": {}}}))
    assert isinstance(found, Operation)
    assert found.pointer == "/paths/~1a~0b~1{c}/get"
