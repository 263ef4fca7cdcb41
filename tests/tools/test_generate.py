"""The whole way from a document to a toolset: what users of such tools have reported, with the right outcome."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from small_documents import OBJECT, OK, body_schema, document, made, parameter, properties, said, tool_of, with_body

from toolgen.errors import DocumentError, SelectionError, SourceError, ToolgenError, UsageError
from toolgen.openapi.source import Limits
from toolgen.tools.files import load_toolset, render
from toolgen.tools.generate import generate

NODE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}}}


def one_get(**keys: Any) -> dict[str, Any]:
    return document({"/x": {"get": {"operationId": "getX", "responses": OK}}}, **keys)


# Reading


def test_version_2_is_read_with_its_base_url() -> None:
    source = {
        "swagger": "2.0",
        "host": "a.test",
        "basePath": "/v1",
        "schemes": ["https"],
        "paths": {"/x": {"get": {"responses": OK}}},
    }
    toolset = made(source)
    assert toolset.server == "https://a.test/v1"
    assert [tool.endpoint.key for tool in toolset.tools] == ["get:/x"]


@pytest.mark.parametrize("version", ["3.0.0", "3.0.4", "3.1.0", "3.1.1", "3.2.0"])
def test_every_version_3_is_read(version: str) -> None:
    assert [tool.name for tool in made(one_get(version=version)).tools] == ["getX"]


def test_a_reference_into_another_file_is_read_from_the_documents_folder(tmp_path: Path) -> None:
    shared = {"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}}
    (tmp_path / "common.yaml").write_text(json.dumps(shared), encoding="utf-8")
    body = {"content": {"application/json": {"schema": {"$ref": "common.yaml#/Pet"}}}}
    source = document({"/x": {"post": {"operationId": "op", "requestBody": body, "responses": OK}}})
    (tmp_path / "api.json").write_text(json.dumps(source), encoding="utf-8")
    (tool,) = made(tmp_path / "api.json").tools
    assert body_schema(tool)["properties"] == {"name": {"type": "string"}}


def test_what_cannot_be_read_costs_its_own_operation_only_and_is_told(tmp_path: Path) -> None:
    paths = {
        "/a": {"get": {"operationId": "a", "responses": {"200": {"$ref": "common.yaml#/Ok"}}}},
        "/b": {"post": {"operationId": "b", "requestBody": {"$ref": "https://b.test/c.yaml#/Body"}, "responses": OK}},
        "/c": {"get": {"operationId": "c", "responses": OK}},
    }
    (tmp_path / "api.json").write_text(json.dumps(document(paths)), encoding="utf-8")
    report = made(tmp_path / "api.json").report
    assert report is not None
    assert [(o.path, o.status, o.tool) for o in report.operations] == [
        ("/a", "degraded", "a"),
        ("/b", "skipped", None),
        ("/c", "ok", "c"),
    ]
    assert [d.pointer for o in report.operations for d in o.diagnostics] == [
        "/paths/~1a/get/responses/200",
        "/paths/~1b/post/requestBody",
    ]


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_a_schema_that_holds_itself_stays_a_reference(version: str) -> None:
    text = json.dumps(
        {"Node": NODE, "A": {"allOf": [{"$ref": "#/components/schemas/B"}]}, "B": {"$ref": "#/components/schemas/C"}}
    )
    schemas = json.loads(text)
    schemas["C"] = {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}}
    body: dict[str, Any]
    if version == "2.0":
        schemas = json.loads(json.dumps(schemas).replace("#/components/schemas/", "#/definitions/"))
        body = {"parameters": [{"in": "body", "name": "b", "schema": {"$ref": "#/definitions/Node"}}]}
        keys: dict[str, Any] = {"definitions": schemas}
    else:
        body = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}}
        keys = {"components": {"schemas": schemas}}
    tool = tool_of(body, version=version, **keys)
    assert tool.input_schema()["$defs"] == {
        "Node": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
    }


def test_a_ring_of_references_to_nothing_else_is_told_and_ends() -> None:
    schemas = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}
    toolset = made(document({"/x": {"post": {"requestBody": body, "responses": OK}}}, components={"schemas": schemas}))
    assert [d.level for d in said(toolset)] == ["degraded"]


@pytest.mark.timeout(10)
def test_a_long_chain_and_a_wide_ring_of_schemas_are_read_in_no_time() -> None:
    count = 3000
    chain = {f"S{n}": {"properties": {"next": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(count)}
    chain[f"S{count}"] = {"properties": {f"p{n}": {"$ref": f"#/components/schemas/S{n}"} for n in range(count)}}
    tool = with_body({"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}, components=chain)
    assert len(tool.input_schema()["$defs"]) == count + 1


def test_parameters_of_the_path_item_belong_to_every_operation_below() -> None:
    item = {
        "parameters": [parameter("id", "path"), parameter("limit", schema={"type": "integer"})],
        "get": {"responses": OK},
        "patch": {
            "parameters": [parameter("limit", schema={"type": "string"})],
            "requestBody": {"content": {"application/merge-patch+json": {"schema": OBJECT}}},
            "responses": OK,
        },
    }
    get, patch = made(document({"/x/{id}": item})).tools
    assert set(properties(get)) == {"id", "limit"}
    assert set(properties(patch)) == {"id", "limit", "requestBody"}
    assert properties(get)["limit"] == {"type": "integer"}
    assert properties(patch)["limit"] == {"type": "string"}
    assert patch.request.body is not None
    assert patch.request.body.media_type == "application/merge-patch+json"


def test_only_methods_are_operations() -> None:
    item = {
        "servers": [{"url": "https://b.test"}],
        "summary": "s",
        "description": "d",
        "parameters": [],
        "x-extra": {"get": {}},
        "get": {"responses": {}},
    }
    (tool,) = made(document({"/x": item, "x-paths": {"get": {}}})).tools
    assert (tool.name, tool.endpoint.key, tool.request.server) == ("get_x", "get:/x", "https://b.test")


def test_a_method_that_is_there_in_two_cases_is_read_in_lower_case_and_the_other_told() -> None:
    item = {"get": {"operationId": "lower"}, "GET": {"operationId": "upper"}}
    toolset = made(document({"/x": item}))
    assert [tool.name for tool in toolset.tools] == ["lower"]
    assert toolset.report is not None
    assert [(d.level, d.pointer) for d in toolset.report.document] == [("degraded", "/paths/~1x/GET")]


def test_methods_of_a_documents_own_that_differ_in_case_are_two_tools() -> None:
    item = {"additionalOperations": {"COPY": {"responses": OK}, "copy": {"responses": OK}}}
    first, second = made(document({"/x": item}, "3.2.0")).tools
    assert first.endpoint.key == second.endpoint.key == "copy:/x"
    assert (first.request.method, second.request.method) == (None, "copy")
    assert first.name != second.name


@pytest.mark.parametrize("broken", [5, "x", {}, [5], [None], {"allOf": 5}])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "properties", "items", "required"])
@pytest.mark.parametrize("media_type", ["multipart/form-data", "*/*", "application/json", "application/xml"])
def test_a_broken_schema_of_a_body_is_read_as_far_as_it_goes(keyword: str, broken: Any, media_type: str) -> None:
    schema = {
        "type": "object",
        "properties": {"f": {"type": "string", "format": "binary", keyword: broken}},
        keyword: broken,
    }
    forms = {"application/x-www-form-urlencoded": {"schema": schema}} if media_type.startswith("multipart") else {}
    assert with_body({media_type: {"schema": schema}, **forms}).request.body is not None


@pytest.mark.parametrize("servers", [None, []])
def test_without_a_server_there_are_tools_and_no_made_up_host(servers: Any) -> None:
    source = one_get() if servers is None else one_get(servers=servers)
    toolset = made(source)
    assert toolset.server is None
    assert toolset.report is not None
    assert toolset.report.servers == ()


def test_an_expression_of_the_path_that_nobody_declares_is_a_required_text() -> None:
    toolset = made(document({"/x/{id}": {"get": {"responses": {}}}}))
    (tool,) = toolset.tools
    assert tool.parameters == {
        "type": "object",
        "properties": {"id": {"type": "string"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    assert [(leaf.name, leaf.value) for leaf in tool.request.path] == [("id", "{{ id }}")]
    assert [(d.level, d.message) for d in said(toolset)] == [
        ("degraded", "the path parameter 'id' is not declared; a text argument is added")
    ]


def test_yaml_and_json_are_told_apart_by_content_and_timestamps_stay_text(tmp_path: Path) -> None:
    text = """
openapi: 3.1.0
info: {title: T, version: 2024-01-01}
paths:
  /x:
    get:
      operationId: op
      parameters:
      - {name: day, in: query, schema: {type: string, enum: [2024-01-01, no, 1e3], default: 2024-01-01}}
      responses: {200: {description: ok}}
"""
    (tmp_path / "api.json").write_text(text, encoding="utf-8")
    for source in (text, text.encode(), tmp_path / "api.json", str(tmp_path / "api.json")):
        toolset = made(source)
        assert toolset.document.version == "2024-01-01"
        found = properties(toolset.tools[0])["day"]
        assert (found["default"], found["enum"][:2]) == ("2024-01-01", ["2024-01-01", "no"])


def test_array_bodies_and_object_parameters_are_taken() -> None:
    tool = tool_of(
        {
            "parameters": [parameter("filter", schema=OBJECT, style="deepObject")],
            "requestBody": {
                "content": {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}
            },
        }
    )
    assert body_schema(tool)["items"] == {"type": "string"}
    assert properties(tool)["filter"]["properties"] == OBJECT["properties"]


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("openapi: 3.1.0\npaths: [", SourceError, "line|:2"),
        ({"info": {}}, DocumentError, "no `openapi`"),
        ({"openapi": "4.0.0"}, DocumentError, "4.0.0"),
        ("https://", SourceError, ""),
        ("file:///etc/passwd", SourceError, ""),
        ("no-such-file.yaml", SourceError, "no file"),
        (document({}), SelectionError, "no operation is left"),
    ],
)
def test_bad_sources_are_errors_a_person_can_act_on(source: Any, error: type[ToolgenError], says: str) -> None:
    with pytest.raises(error) as caught:
        generate(source)
    assert re.search(says, str(caught.value))


@pytest.mark.parametrize(
    "paths",
    [
        {"/x": 5, "/y": None, "/z": [], "/ok": {"get": {"operationId": "ok"}}},
        {"/x": {"get": 5, "post": None, "put": []}, "/ok": {"get": {"operationId": "ok"}}},
        {
            "/x": {"parameters": 5, "get": {"parameters": {}, "responses": 5, "tags": {}}},
            "/ok": {"get": {"operationId": "ok"}},
        },
        {"/x": {"get": {"requestBody": 5, "security": 5, "servers": 5}}, "/ok": {"get": {"operationId": "ok"}}},
        {"/x": {"$ref": "#/nowhere"}, "/ok": {"get": {"operationId": "ok"}}},
        {
            "/x": {"get": {"parameters": [None, 5, {}, {"name": 5}, {"in": "query"}]}},
            "/ok": {"get": {"operationId": "ok"}},
        },
    ],
)
def test_a_broken_operation_never_costs_another(paths: Any) -> None:
    assert "ok" in {tool.name for tool in made(document(paths)).tools}


# Schemas, as far as a toolset shows them


def test_a_body_behind_a_reference_has_its_properties() -> None:
    tool = with_body({"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}, components={"Pet": OBJECT})
    assert body_schema(tool) == OBJECT


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        (
            {"type": "string", "xml": {"name": "x"}, "externalDocs": {"url": "x"}, "example": "a"},
            {"type": "string", "examples": ["a"]},
        ),
    ],
)
def test_schemas_of_version_3_0_are_json_schema(schema: Any, expected: Any) -> None:
    whole = {"type": "object", "properties": {"p": schema}}
    tool = with_body({"application/json": {"schema": whole}}, version="3.0.3")
    assert body_schema(tool)["properties"]["p"] == expected
    jsonschema_rs.meta.validate(tool.input_schema())


def test_properties_only_answers_have_are_neither_offered_nor_required() -> None:
    schema = {
        "type": "object",
        "required": ["id", "id", "name"],
        "properties": {"id": {"type": "integer", "readOnly": True}, "name": {"type": "string"}},
    }
    found = body_schema(with_body({"application/json": {"schema": schema}}))
    assert found["properties"] == {"name": {"type": "string"}}
    assert found["required"] == ["name"]


def test_optional_parameters_stay_optional_and_keep_their_descriptions() -> None:
    tool = tool_of({"parameters": [parameter("a", description="What a is."), parameter("b", required=True)]})
    assert tool.parameters["required"] == ["b"]
    assert properties(tool)["a"]["description"] == "What a is."


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_the_root_is_a_plain_object_whatever_the_body_is_composed_of(keyword: str) -> None:
    tool = with_body({"application/json": {"schema": {keyword: [OBJECT, {"type": "object"}]}}})
    assert set(tool.input_schema()) == {"type", "properties", "additionalProperties"}
    assert keyword in body_schema(tool)


def test_definitions_used_only_inside_unions_and_odd_positions_are_kept() -> None:
    names = ["Any", "Not", "If", "Then", "Else", "Pattern", "Names", "Contains", "Prefix", "Depends", "Extra", "Items"]
    refs = {name: {"$ref": f"#/components/schemas/{name}"} for name in names}
    answer = {
        "anyOf": [refs["Any"]],
        "not": refs["Not"],
        "if": refs["If"],
        "then": refs["Then"],
        "else": refs["Else"],
        "patternProperties": {"^x": refs["Pattern"]},
        "propertyNames": refs["Names"],
        "contains": refs["Contains"],
        "prefixItems": [refs["Prefix"]],
        "dependentSchemas": {"x": refs["Depends"]},
        "additionalProperties": refs["Extra"],
        "items": refs["Items"],
    }
    schemas: dict[str, Any] = {name: {"title": name} for name in names} | {"Answer": answer, "Unused": {}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}
    tool = tool_of({"responses": {"200": {"content": content}}}, components={"schemas": schemas})
    output = tool.output_schema()
    assert isinstance(output, dict)
    assert set(output["$defs"]) == set(names)


def test_every_property_name_is_fine_and_none_is_code() -> None:
    wire = ['x=__import__("os")', "class", "from", "self", "a-b", "__class__", "{{ x }}"]
    tool = tool_of({"parameters": [parameter(name) for name in wire]})
    assert sorted(b.name for b in tool.bindings) == sorted(wire)


# Size


def test_a_schema_that_many_tools_use_is_in_the_file_once() -> None:
    big = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "x" * 50} for n in range(100)}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Big"}}}}
    answers = {"200": {"content": body["content"]}}
    paths = {f"/x{n}": {"put": {"requestBody": body, "responses": answers}} for n in range(30)}
    toolset = made(document(paths, components={"schemas": {"Big": big}}))
    assert list(toolset.schemas) == ["Big"]
    assert len(render(toolset, json=True)) < 4 * len(json.dumps(big)) + 30 * 1500
    assert "$defs" in toolset.tools[0].input_schema()


def test_a_paging_argument_is_an_argument_like_any_other() -> None:
    tool = tool_of({"parameters": [parameter("cursor"), parameter("limit", schema={"type": "integer"})]}, method="get")
    assert [(b.argument, b.location, b.name) for b in tool.bindings] == [
        ("cursor", "query", "cursor"),
        ("limit", "query", "limit"),
    ]


# The toolset as a whole


def test_the_document_is_named_and_digested() -> None:
    toolset = made(one_get())
    assert (toolset.api, toolset.document.title, toolset.document.version) == ("small-api", "Small API", "1")
    assert toolset.document.digest.startswith("sha256:")
    assert len(toolset.document.digest) == 71
    assert made(one_get(x=1)).document.digest != toolset.document.digest


@pytest.mark.parametrize(
    ("title", "name", "api"),
    [("Pet Store", "api.yaml", "pet-store"), ("", "My Pets.v1.yaml", "my-pets"), ("MCP", "http.yaml", "api")],
)
def test_the_api_is_named_after_the_title_or_the_file(tmp_path: Path, title: str, name: str, api: str) -> None:
    source = one_get()
    source["info"]["title"] = title
    (tmp_path / name).write_text(json.dumps(source), encoding="utf-8")
    assert made(tmp_path / name).api == api
    assert made(str(tmp_path / name)).api == api
    assert made(tmp_path / name, api="given").api == "given"


def test_a_text_is_no_file_to_name_an_api_after() -> None:
    source = one_get()
    source["info"] = {}
    assert made(json.dumps(source)).api == "api"
    assert made(json.dumps(source).encode()).api == "api"
    assert made(source).api == "api"


@pytest.mark.parametrize("api", ["", "Pets", "1a", "a_b", "a" * 33, "http", "mcp", "builtin", "a\n"])
def test_a_given_api_name_follows_the_grammar(api: str) -> None:
    with pytest.raises(UsageError, match="is no name for an API"):
        generate(one_get(), api=api)


@pytest.mark.parametrize(
    "server",
    [
        "/v1",
        "a.test",
        "ftp://a.test",
        "https://",
        "https://[a",
        "https://a.test#x",
        "https://a.test?x=1",
        "https://{region}.test",
        "https://a.test\r\nX: y",
        "https://a.test/a b",
        "https://a:99999",
        "",
    ],
)
def test_a_given_server_is_an_absolute_url(server: str) -> None:
    with pytest.raises(UsageError, match="server is an absolute"):
        generate(one_get(), server=server)


def test_a_given_server_holds_no_credentials_and_the_error_does_not_repeat_them() -> None:
    with pytest.raises(UsageError, match="security schemes") as caught:
        generate(one_get(), server="https://user:hunter2@a.test")
    assert "hunter2" not in str(caught.value)


def test_limits_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(one_get()), encoding="utf-8")
    with pytest.raises(SourceError, match="larger than 10 bytes"):
        generate(tmp_path / "api.json", limits=Limits(bytes=10))


def test_progress_is_told_from_nothing_to_all() -> None:
    paths = {f"/x{n}": {"get": {"responses": OK}} for n in range(150)}
    told: list[tuple[int, int]] = []
    made(document(paths), progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 150)
    assert told[-1] == (150, 150)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_mapping_is_left_as_it_is() -> None:
    source = document(
        {
            "/x/{id}": {
                "post": {
                    "parameters": [
                        parameter("tags", schema={"type": "array", "items": {"nullable": True, "type": "string"}})
                    ],
                    "requestBody": {
                        "content": {"multipart/form-data": {"schema": {"$ref": "#/components/schemas/Up"}}}
                    },
                    "responses": {
                        "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Up"}}}}
                    },
                }
            }
        },
        "3.0.3",
        components={
            "schemas": {
                "Up": {
                    "type": "object",
                    "required": ["id", "f"],
                    "discriminator": {"propertyName": "kind"},
                    "properties": {
                        "id": {"type": "string", "readOnly": True},
                        "f": {"type": "string", "format": "binary"},
                        "self": {"$ref": "#/components/schemas/Up"},
                        "n": {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
                    },
                }
            }
        },
    )
    old = {
        "swagger": "2.0",
        "info": {"title": "T", "version": "1"},
        "securityDefinitions": {"b": {"type": "basic"}},
        "paths": {"/x": {"post": {"parameters": [{"name": "f", "in": "formData", "type": "file"}], "responses": OK}}},
    }
    for given in (source, old):
        before = copy.deepcopy(given)
        toolset = made(given)
        toolset.tools[0].input_schema()["properties"].clear()
        assert given == before


def test_keys_that_are_numbers_are_read_as_text() -> None:
    tool = tool_of({"responses": {200: {"description": "ok"}, 404: {"description": "Gone"}}})
    assert tool.description.endswith("Errors: 404 Gone")


# The same input gives the same bytes

VARIED = document(
    {
        f"/p{n}/{{id}}": {
            "parameters": [parameter("id", "path"), parameter("$x"), parameter("x", "header")],
            "get": {
                "tags": ["b", "a"],
                "security": [{"k": [], "b": []}],
                "responses": {"404": {"description": "Gone"}, **OK},
            },
            "put": {
                "operationId": f"put.{n % 3}",
                "requestBody": {
                    "content": {
                        "multipart/form-data": {"schema": {"$ref": f"#/components/schemas/S{n % 4}"}},
                        "text/plain": {},
                    }
                },
                "responses": OK,
            },
        }
        for n in range(12)
    },
    components={
        "schemas": {
            f"S{n}": {
                "type": "object",
                "required": ["z", "a"],
                "properties": {"z": {"$ref": f"#/components/schemas/S{(n + 1) % 4}"}, "a": {"format": "binary"}},
            }
            for n in range(4)
        },
        "securitySchemes": {
            "k": {"type": "apiKey", "in": "header", "name": "X-K"},
            "b": {"type": "http", "scheme": "bearer"},
        },
    },
)


def test_the_same_document_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.yaml", "a.json"):
        made(VARIED).save(tmp_path / name)
        first = (tmp_path / name).read_bytes()
        made(copy.deepcopy(VARIED)).save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
        loaded = load_toolset(tmp_path / name)
        loaded.save(tmp_path / f"again-{name}")
        assert (tmp_path / f"again-{name}").read_bytes() == first


def test_the_same_document_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(VARIED), encoding="utf-8")
    code = "import sys; from toolgen import generate; generate(sys.argv[1]).save(sys.argv[2])"
    written = []
    for seed in ("0", "1", "4711"):
        out = tmp_path / f"{seed}.yaml"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / "api.json", out], check=True, env=environment)
        written.append(out.read_bytes())
    assert written[0] == written[1] == written[2]
    made(tmp_path / "api.json").save(tmp_path / "here.yaml")
    assert (tmp_path / "here.yaml").read_bytes() == written[0]
