"""Documents of every version, read as one shape."""

from __future__ import annotations

from typing import Any

import pytest
from openapi.documents import answered, argument, document, one, operations, parsed, said, sent, tool, with_schema

from toolgen import generate
from toolgen.errors import DocumentError
from toolgen.openapi.model import Operation

VERSIONS = ["2.0", "3.0.3", "3.1.0", "3.2.0"]


@pytest.mark.parametrize(
    "version", ["3.0.0", "3.0.4", "3.1.1", "3.2.0", "3.1.0-rc1", " 3.0.3 ", "3.0", 3.0, 3.1, "3", 3]
)
def test_known_versions_are_read(version: Any) -> None:
    assert tool({**document("/x: {get: {responses: {}}}"), "openapi": version}).endpoint.key == "get:/x"


@pytest.mark.parametrize("version", ["2.0", 2.0, 2, "2"])
def test_known_versions_of_swagger_are_read(version: Any) -> None:
    assert tool({"swagger": version, "paths": {"/x": {"get": {"responses": {}}}}}).endpoint.key == "get:/x"


@pytest.mark.parametrize(
    "version", ["3.3.0", "3.9", "3.10.0", "30.1", "4.0.0", "1.2", "", "v3", None, [], {"a": 1}, True, "31", "3.x"]
)
def test_unknown_versions_are_refused_and_named(version: Any) -> None:
    with pytest.raises(DocumentError) as caught:
        generate({**document("/x: {get: {responses: {}}}"), "openapi": version})
    assert str(version)[:40] in str(caught.value)
    assert "2.0, 3.0, 3.1 and 3.2" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ({"swaggerVersion": "1.2", "apis": []}, "swaggerVersion"),
        ({"swagger": "3.0"}, "swagger: '3.0'"),
        ({"info": {}}, "no `openapi` and no `swagger`"),
        (b"[1]", "an array"),
        (b"3", "a number"),
        (b"some: {words: here}", "no `openapi`"),
    ],
)
def test_what_is_no_openapi_document_is_refused_and_says_what_it_is(source: Any, what: str) -> None:
    with pytest.raises(DocumentError) as caught:
        generate(source)
    assert what in str(caught.value)


# 3.2


def test_3_2_has_query_and_additional_operations() -> None:
    made = generate(
        document(
            """
            /x:
              query: {operationId: search, requestBody: {content: {application/json: {schema: {}}}}, responses: {}}
              additionalOperations:
                COPY: {operationId: copy, responses: {}}
                Purge: {operationId: purge, responses: {}}
            """,
            "3.2.0",
        )
    )
    assert [(t.name, t.endpoint.key, t.request.method) for t in made.tools] == [
        ("search", "query:/x", None),
        ("copy", "copy:/x", None),
        ("purge", "purge:/x", "Purge"),
    ]
    assert [t.annotations.read_only_hint for t in made.tools] == [True, False, False]
    assert made.tools[0].request.body is not None


def test_an_additional_operation_never_replaces_a_method_with_its_own_key() -> None:
    paths = "/x: {get: {operationId: a, responses: {}}, additionalOperations: {GET: {operationId: b, responses: {}}}}"
    made = generate(document(paths, "3.2.0"))
    assert [t.name for t in made.tools] == ["a"]
    assert said(made) == [
        "degraded: 'GET' in `additionalOperations` is left out: the method has its own key"
        " at /paths/~1x/additionalOperations/GET"
    ]


def test_methods_that_differ_only_in_case_are_two_tools() -> None:
    paths = "/x: {additionalOperations: {COPY: {responses: {}}, copy: {responses: {}}}}"
    made = generate(document(paths, "3.2.0"))
    assert [(t.endpoint.method, t.request.method) for t in made.tools] == [("copy", None), ("copy", "copy")]


def test_an_additional_operation_that_is_no_method_is_skipped() -> None:
    made = generate(document("/x: {get: {responses: {}}, additionalOperations: {'A B': {responses: {}}}}", "3.2.0"))
    assert made.report is not None
    assert made.report.counts() == {"ok": 1, "degraded": 0, "skipped": 1}


def test_3_2_querystring_is_one_argument_of_its_media_type() -> None:
    made = tool(
        one(
            """
            parameters:
            - {name: q, in: querystring, content: {application/x-www-form-urlencoded: {schema: {type: object}}}}
            responses: {}
            """,
            method="get",
            version="3.2.0",
        )
    )
    assert made.request.querystring is not None
    assert made.request.querystring.media_type == "application/x-www-form-urlencoded"
    assert made.request.query == ()
    assert made.parameters["properties"]["q"]["type"] == "object"


@pytest.mark.parametrize("content", [{}, None, {"application/json": {"$ref": "#/nope"}}])
def test_a_querystring_without_a_media_type_is_a_form(content: Any) -> None:
    made = tool(one({"parameters": [{"name": "q", "in": "querystring", "content": content}]}, version="3.2.0"))
    assert made.request.querystring is not None
    assert made.request.querystring.media_type == "application/x-www-form-urlencoded"
    assert made.request.querystring.style is None


def test_a_second_query_string_is_left_out() -> None:
    content = "content: {application/json: {schema: {}}}"
    made = generate(
        one(
            f"parameters: [{{name: a, in: querystring, {content}}}, {{name: b, in: querystring, {content}}}]",
            version="3.2.0",
        )
    )
    assert list(made.tools[0].parameters["properties"]) == ["a"]
    assert "one query string" in said(made)[0]


def test_3_2_media_types_are_components() -> None:
    source = one(
        "{requestBody: {content: {application/json: {$ref: '#/components/mediaTypes/Pet'}}}, responses: {}}",
        version="3.2.0",
        components={"mediaTypes": {"Pet": {"schema": {"type": "object", "properties": {"n": {}}}}}},
    )
    assert tool(source).parameters["properties"]["requestBody"]["properties"] == {"n": {}}


# Schemas of 2.0 and 3.0


@pytest.mark.parametrize("version", ["2.0", "3.0.3"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"nullable": True}, {}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a"]}),
        ({"type": "string", "enum": ["a", None], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"enum": ["a", None]}, {"enum": ["a", None]}),
        ({"oneOf": [{"type": "string"}], "nullable": True}, {"oneOf": [{"type": "string"}, {"type": "null"}]}),
        ({"anyOf": [{"type": "string"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"allOf": [{"type": "string"}], "nullable": True, "description": "d"},
            {"description": "d", "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 1}),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": True}, {"type": "number", "exclusiveMaximum": 1}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": False}, {"type": "number", "minimum": 1}),
        ({"type": "number", "exclusiveMinimum": True}, {"type": "number"}),
        ({"type": "object", "example": {"a": 1}}, {"type": "object", "examples": [{"a": 1}]}),
    ],
)
def test_old_keywords_become_those_of_2020_12(version: str, old: Any, new: Any) -> None:
    assert sent({"properties": {"a": old}}, version=version)["properties"]["a"] == new
    assert answered({"properties": {"a": old}}, version=version)["properties"]["a"] == new


def test_x_nullable_of_2_0_means_nullable() -> None:
    schema = {"properties": {"a": {"type": "integer", "x-nullable": True}}}
    assert sent(schema, version="2.0")["properties"]["a"] == {"type": ["integer", "null"]}


def test_nullable_counts_in_every_position() -> None:
    null = {"type": "string", "nullable": True}
    schema = {
        "type": "object",
        "properties": {"a": null},
        "additionalProperties": null,
        "allOf": [{"properties": {"b": null}}],
        "anyOf": [null],
        "not": {"type": "array", "items": null},
    }
    text = str(sent(schema, version="3.0.3"))
    assert text.count("['string', 'null']") == 5
    assert "nullable" not in text
    assert argument(null, version="3.0.3") == {"type": ["string", "null"]}


def test_a_discriminator_of_2_0_is_a_sentence() -> None:
    made = sent({"type": "object", "discriminator": "kind", "properties": {"kind": {"type": "string"}}}, version="2.0")
    assert "discriminator" not in made
    described = answered({"type": "object", "discriminator": "kind"}, version="2.0")
    assert described["description"] == "`kind` decides which shape it is."


# Requests of 2.0


def old(operation: str, **rest: Any) -> Any:
    return tool(one(operation, version="2.0", **rest))


def test_a_body_parameter_becomes_the_body() -> None:
    made = old(
        """
        consumes: [application/xml, application/json]
        parameters: [{name: pet, in: body, required: true, description: the pet, schema: {$ref: '#/definitions/Pet'}}]
        responses: {}
        """,
        definitions={"Pet": {"type": "object", "properties": {"name": {"type": "string"}}}},
    )
    assert made.request.body is not None
    assert made.request.body.media_type == "application/json"
    assert made.request.body.alternatives == ("application/xml",)
    assert made.parameters["required"] == ["requestBody"]
    assert made.parameters["properties"]["requestBody"]["$ref"] == "#/$defs/Pet"
    assert "the pet" in made.parameters["properties"]["requestBody"]["description"]


def test_a_body_without_consumes_is_json_and_consumes_of_the_document_count() -> None:
    body = "parameters: [{name: b, in: body, schema: {type: object}}]"
    assert old(body).request.body.media_type == "application/json"
    assert old(body, consumes=["text/xml"]).request.body.media_type == "text/xml"
    own = f"{body}\nconsumes: [text/plain]"
    assert old(own, consumes=["text/xml"]).request.body.media_type == "text/plain"


def test_form_fields_become_a_form() -> None:
    made = old(
        """
        parameters:
        - {name: a, in: formData, type: string, required: true, description: first}
        - {name: b, in: formData, type: array, items: {type: integer}, collectionFormat: multi}
        - {name: c, in: formData, type: array, items: {type: integer}, collectionFormat: pipes}
        - {name: d, in: formData, type: array, items: {type: integer}}
        """
    )
    assert made.request.body.media_type == "application/x-www-form-urlencoded"
    assert made.parameters["required"] == ["requestBody"]
    schema = made.parameters["properties"]["requestBody"]
    assert schema["properties"]["a"] == {"type": "string", "description": "first"}
    assert schema["required"] == ["a"]
    assert {name: (e.style, e.explode) for name, e in made.request.body.encoding.items()} == {
        "b": ("form", True),
        "c": ("pipeDelimited", False),
        "d": ("form", False),
    }


def test_a_file_makes_the_form_multipart_and_is_base64_or_an_object() -> None:
    made = old("parameters: [{name: f, in: formData, type: file}, {name: n, in: formData, type: string}]")
    assert made.request.body.media_type == "multipart/form-data"
    assert made.request.body.encoding["f"].binary
    text, whole = made.parameters["properties"]["requestBody"]["properties"]["f"]["anyOf"]
    assert text == {"type": "string", "contentEncoding": "base64"}
    assert set(whole["properties"]) == {"filename", "contentType", "data"}


@pytest.mark.parametrize(
    ("written", "style", "explode"),
    [
        ("", "form", False),
        ("csv", "form", False),
        ("ssv", "spaceDelimited", False),
        ("pipes", "pipeDelimited", False),
        ("multi", "form", True),
    ],
)
def test_collection_formats_become_styles(written: str, style: str, explode: bool) -> None:
    form = f", collectionFormat: {written}" if written else ""
    made = old(f"parameters: [{{name: a, in: query, type: array, items: {{type: string}}{form}}}]")
    assert (made.request.query[0].style, made.request.query[0].explode) == (style, explode)
    assert made.parameters["properties"]["a"]["items"] == {"type": "string"}


@pytest.mark.parametrize(("written", "where"), [("tsv", "query"), ("pipes", "header"), ("ssv", "path")])
def test_a_collection_format_without_a_style_is_sent_with_commas_and_reported(written: str, where: str) -> None:
    required = ", required: true" if where == "path" else ""
    source = one(
        f"parameters: [{{name: a, in: {where}, type: array, items: {{type: string}}, collectionFormat: {written}{required}}}]",
        path="/x/{a}" if where == "path" else "/x",
        version="2.0",
    )
    made = generate(source)
    assert said(made) == [
        f"degraded: collectionFormat {written!r} has no counterpart here; commas are sent"
        f" at /paths/{'~1x~1{a}' if where == 'path' else '~1x'}/post/parameters/0"
    ]


def test_types_of_2_0_parameters_are_schemas() -> None:
    made = old(
        "parameters: [{name: a, in: query, type: integer, minimum: 1, exclusiveMinimum: true, x-nullable: true, default: 3}]"
    )
    schema = made.parameters["properties"]["a"]
    assert {k: v for k, v in schema.items() if k != "description"} == {
        "type": ["integer", "null"],
        "exclusiveMinimum": 1,
        "default": 3,
    }


def test_shared_parameters_and_responses_of_2_0_are_found_by_reference() -> None:
    made = old(
        """
        produces: [application/json]
        parameters: [{$ref: '#/parameters/Body'}, {$ref: '#/parameters/Limit'}]
        responses: {'200': {$ref: '#/responses/Ok'}}
        """,
        parameters={
            "Body": {"name": "b", "in": "body", "schema": {"type": "array", "items": {"type": "string"}}},
            "Limit": {"name": "limit", "in": "query", "type": "integer"},
        },
        responses={"Ok": {"description": "ok", "schema": {"type": "boolean"}}},
    )
    assert set(made.parameters["properties"]) == {"limit", "requestBody"}
    assert made.response.media_types == ("application/json",)
    assert made.response.schema_ == {"type": "boolean"}


def test_an_operations_own_body_replaces_its_path_items() -> None:
    paths = """
    /x:
      parameters: [{name: outer, in: body, schema: {type: string}}]
      post: {parameters: [{name: inner, in: body, schema: {type: integer}}], responses: {}}
    """
    assert tool(document(paths, "2.0")).parameters["properties"]["requestBody"]["type"] == "integer"


def test_a_body_on_get_is_kept_and_noted_where_the_version_says_it_is_ignored() -> None:
    body = "{requestBody: {content: {application/json: {schema: {type: object}}}}, responses: {}}"
    old_made = generate(one(body, method="get", version="3.0.3"))
    assert old_made.tools[0].request.body is not None
    assert "shall be ignored" in said(old_made)[0]
    assert said(generate(one(body, method="get", version="3.1.0"))) == []


# Security of 2.0


def test_security_definitions_become_schemes() -> None:
    definitions = parsed(
        """
        basic: {type: basic, description: prose}
        key: {type: apiKey, in: header, name: X-Key}
        implicit: {type: oauth2, flow: implicit, authorizationUrl: https://a.test, scopes: {r: read}}
        password: {type: oauth2, flow: password, tokenUrl: https://t.test, scopes: {}}
        application: {type: oauth2, flow: application, tokenUrl: https://t.test}
        code: {type: oauth2, flow: accessCode, authorizationUrl: https://a.test, tokenUrl: https://t.test, scopes: {}}
        odd: {type: oauth2}
        """
    )
    made = generate(document("/x: {get: {responses: {}}}", "2.0", securityDefinitions=definitions))
    code = {"authorizationUrl": "https://a.test", "tokenUrl": "https://t.test", "scopes": {}}
    assert made.security_schemes == {
        "basic": {"type": "http", "scheme": "basic"},
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "implicit": {
            "type": "oauth2",
            "flows": {"implicit": {"authorizationUrl": "https://a.test", "scopes": {"r": "read"}}},
        },
        "password": {"type": "oauth2", "flows": {"password": {"tokenUrl": "https://t.test", "scopes": {}}}},
        "application": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://t.test"}}},
        "code": {"type": "oauth2", "flows": {"authorizationCode": code}},
        "odd": {"type": "oauth2", "flows": {}},
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gives_the_same_tool_for_the_same_thing(version: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    made = tool(with_schema(schema, version=version))
    assert made.parameters == {
        "type": "object",
        "properties": {"requestBody": {**schema, "description": "JSON object with a (string, required)."}},
        **({"required": made.parameters["required"]} if "required" in made.parameters else {}),
        "additionalProperties": False,
    }
    assert made.response.schema_ == schema


def test_in_body_is_left_out_of_3_x_and_reported() -> None:
    made = generate(one("parameters: [{name: b, in: body, schema: {}}]"))
    assert made.tools[0].request.body is None
    assert "2.0's" in said(made)[0]


def test_operations_of_a_document_without_paths_are_none() -> None:
    assert operations({"openapi": "3.1.0", "webhooks": {"w": {"post": {}}}}) == []
    assert all(isinstance(o, Operation) for o in operations(document("/x: {get: {}}")))
