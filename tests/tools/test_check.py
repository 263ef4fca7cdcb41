from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.openapi.operations import OWNED_HEADERS
from toolgen.tools.files.check import check_toolset
from toolgen.tools.files.form import from_dict
from toolgen.tools.naming import RESERVED_SOURCES
from toolgen.tools.template import leaf_of


def data(**changes: Any) -> dict[str, Any]:
    """A sound toolset's file form with something changed in its one tool."""
    one: dict[str, Any] = {
        "name": "getPet",
        "description": "",
        "group": "pets",
        "endpoint": {"method": "post", "path": "/pets/{id}"},
        "annotations": {
            "title": "",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": True,
        },
        "parameters": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "requestBody": {"$ref": "#/schemas/Pet"}},
            "required": ["id"],
            "additionalProperties": False,
        },
        "request": {
            "path": [{"name": "id", "value": "{{ id }}", "style": "simple"}],
            "body": {"value": "{{ requestBody }}", "mediaType": "application/json"},
        },
        "response": {"schema": {"$ref": "#/schemas/Pet"}},
    }
    schemas = {"Pet": {"type": "object", "properties": {"next": {"$ref": "#/schemas/Pet"}}}}
    return {
        "toolgen": 1,
        "api": "petstore",
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        "schemas": schemas,
        "tools": [{**one, **changes}],
    }


def faults(content: dict[str, Any]) -> list[tuple[str, str]]:
    return [(problem.where, problem.message) for problem in check_toolset(from_dict(content))]


def faults_with(**request: Any) -> list[tuple[str, str]]:
    """The faults of the sound toolset with something changed in its request."""
    content = data()
    content["tools"][0]["request"].update(request)
    return faults(content)


def test_a_sound_toolset_has_no_faults() -> None:
    assert faults(data()) == []


@pytest.mark.parametrize("api", ["Petstore", "1a", "a_b", "", "a" * 33, "a\n", *sorted(RESERVED_SOURCES)])
def test_an_api_name_follows_the_grammar_and_is_no_reserved_source(api: str) -> None:
    assert [where for where, _ in faults({**data(), "api": api})] == ["api"]


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "a" * 65, "a\n"])
def test_tool_and_argument_names_follow_the_grammar(name: str) -> None:
    assert [where for where, _ in faults(data(name=name))] == ["tools[0].name"]
    content = data()
    content["tools"][0]["parameters"]["properties"][name] = True
    assert any("is no argument name" in message for _, message in faults(content))


def test_tool_names_are_unique() -> None:
    content = data()
    content["tools"] *= 2
    assert faults(content) == [("tools[1].name", "the name 'getPet' is taken by tools[0]")]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"type": "array"}, "type"),
        ({"type": ["object", "null"]}, "type"),
        ({"properties": None}, "properties"),
        ({"$ref": "#/schemas/Pet"}, "$ref"),
        ({"allOf": [{"type": "object"}]}, "allOf"),
        ({"$defs": {"x": {}}}, "$defs"),
        ({"patternProperties": {"^x": {}}}, "patternProperties"),
    ],
)
def test_the_input_is_a_plain_object_schema(change: dict[str, Any], where: str) -> None:
    content = data()
    content["tools"][0]["parameters"].update(change)
    if change.get("properties", ...) is None:
        del content["tools"][0]["parameters"]["properties"]
    assert any(place.startswith("tools[0].parameters") and where in place for place, _ in faults(content))


@pytest.mark.parametrize("additional", [True, False, None])
def test_additional_properties_may_be_closed_or_not(additional: bool | None) -> None:
    content = data()
    content["tools"][0]["parameters"]["additionalProperties"] = additional
    if additional is None:
        del content["tools"][0]["parameters"]["additionalProperties"]
    assert faults(content) == []


def test_a_required_argument_is_declared() -> None:
    content = data()
    content["tools"][0]["parameters"]["required"] = ["id", "requestbody"]
    assert faults(content) == [
        (
            "tools[0].parameters.required[1]",
            "the required argument 'requestbody' is not declared; did you mean 'requestBody'?",
        )
    ]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("{{ id", "not a template"),
        ("{{ id + 1 }}", "not allowed"),
        ("{% for a in id %}{% endfor %}", "not allowed"),
        ("{{ id | attr('x') }}", "no filter"),
        ("{{ id.__class__ }}", "only constant keys"),
        ("{{ identifier }}", "is not declared"),
        (["x", {"a": "{{ idd }}"}], "is not declared; did you mean 'id'?"),
    ],
)
def test_every_leaf_parses_and_reads_declared_arguments_only(value: Any, says: str) -> None:
    leaf = {"name": "x", "value": value}
    for location, where in [("query", "query[0]"), ("header", "header[0]"), ("cookie", "cookie[0]")]:
        ((place, message),) = faults_with(**{location: [leaf]})
        assert place == f"tools[0].request.{where}.value"
        assert says in message
    ((place, _),) = faults_with(querystring=leaf)
    assert place == "tools[0].request.querystring.value"


def test_a_value_nested_too_deep_to_be_read_is_a_fault_of_its_own() -> None:
    value: Any = "{{ id }}"
    for _ in range(1500):
        value = [value]
    assert faults_with(query=[{"name": "q", "value": value}]) == [
        ("tools[0].request.query[0].value", "the value is nested too deep")
    ]


def test_every_argument_is_used() -> None:
    assert faults_with(body=None) == [
        ("tools[0].parameters.properties.requestBody", "no leaf uses the argument 'requestBody'")
    ]
    assert faults_with(body=None, query=[{"name": "q", "value": ["a {{ requestBody.x | upper }}"]}]) == []


@pytest.mark.parametrize("method", ["POST", "po st", "", "post\n", "pöst"])
def test_a_method_is_a_token_in_lower_case(method: str) -> None:
    content = data(endpoint={"method": method, "path": "/pets/{id}"})
    assert [where for where, _ in faults(content)] == ["tools[0].endpoint.method"]


@pytest.mark.parametrize(
    "path", ["pets/{id}", "//pets/{id}", "/pets/{id}?a=b", "/p%65ts/{id}", "/a/../pets/{id}", "/pets%2F{id}"]
)
def test_a_path_is_in_its_normal_form(path: str) -> None:
    content = data(endpoint={"method": "post", "path": path})
    assert [where for where, _ in faults(content)] == ["tools[0].endpoint.path"]


def test_what_is_sent_is_what_approval_patterns_see() -> None:
    assert faults_with(template="/pets//{id}?a=b", method="POST") == []
    assert faults_with(template="/admin/{id}") == [("tools[0].request.template", "this is not the endpoint's path")]
    assert [where for where, _ in faults_with(template="/a/../pets/{id}")] == ["tools[0].request.template"]
    assert faults_with(method="DELETE") == [("tools[0].request.method", "'DELETE' is not the endpoint's method")]


def test_every_expression_of_the_path_has_exactly_one_leaf() -> None:
    leaf = {"name": "id", "value": "{{ id }}"}
    assert faults_with(path=[leaf, leaf]) == [("tools[0].request.path[1].name", "{id} of the path is filled twice")]
    assert faults_with(path=[{**leaf, "name": "idd"}]) == [
        ("tools[0].request.path[0].name", "the path has no {idd}; did you mean 'id'?"),
        ("tools[0].request.path", "nothing fills {id} of the path"),
    ]
    assert faults_with(template="/pets/{id}?also={id}") == []


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ä", "a\n"])
def test_a_header_name_is_a_token(name: str) -> None:
    assert faults_with(header=[{"name": name, "value": 1}]) == [
        ("tools[0].request.header[0].name", f"{name!r} is no header name")
    ]


@pytest.mark.parametrize("name", [*sorted(OWNED_HEADERS), "Content-Type", "HOST"])
def test_headers_of_the_client_and_of_credentials_are_no_leaves(name: str) -> None:
    assert [where for where, _ in faults_with(header=[{"name": name, "value": 1}])] == [
        "tools[0].request.header[0].name"
    ]


@pytest.mark.parametrize(
    ("location", "legal"),
    [
        ("query", {"form", "spaceDelimited", "pipeDelimited", "deepObject"}),
        ("header", {"simple"}),
        ("cookie", {"form", "cookie"}),
        ("path", {"simple", "label", "matrix"}),
    ],
)
def test_a_style_is_legal_where_it_stands(location: str, legal: set[str]) -> None:
    styles = ["form", "simple", "label", "matrix", "spaceDelimited", "pipeDelimited", "deepObject", "cookie", "x"]
    for style in styles:
        found = faults_with(**{location: [{"name": "id", "value": "{{ id }}", "style": style}]})
        assert [where for where, _ in found] == ([] if style in legal else [f"tools[0].request.{location}[0].style"])


def test_the_whole_query_string_has_no_style_and_form_fields_have_those_of_a_query() -> None:
    assert [where for where, _ in faults_with(querystring={"name": "q", "value": 1, "style": "form"})] == [
        "tools[0].request.querystring.style"
    ]
    encoding = {"a": {"style": "form"}, "b": {"style": "matrix"}}
    body = {"value": "{{ requestBody }}", "mediaType": "multipart/form-data", "encoding": encoding}
    assert [where for where, _ in faults_with(body=body)] == ["tools[0].request.body.encoding.b.style"]


@pytest.mark.parametrize("text", ["json", "", "a/b/c", "a/b\r\nX: y", "/", "a b/c", "a/b\n"])
def test_a_media_type_looks_like_one(text: str) -> None:
    body = {"value": "{{ requestBody }}", "mediaType": text, "encoding": {"a": {"contentType": f"a/b, {text}"}}}
    found = faults_with(body=body, query=[{"name": "q", "value": 1, "mediaType": text}])
    assert {where.removeprefix("tools[0].request.") for where, _ in found} >= {
        "query[0].mediaType",
        "body.mediaType",
        "body.encoding.a.contentType",
    } - ({"body.encoding.a.contentType"} if text.strip() != text else set())


@pytest.mark.parametrize("text", ["application/json", "*/*", "text/plain; charset=utf-8", "application/vnd.a+json;v=1"])
def test_media_types_with_parameters_and_ranges_are_fine(text: str) -> None:
    assert faults_with(body={"value": "{{ requestBody }}", "mediaType": text}) == []


def test_a_security_scheme_is_declared() -> None:
    assert faults_with(security=[[], ["key"]]) == []
    assert faults_with(security=[["key", "kez"]]) == [
        ("tools[0].request.security[0][1]", "the security scheme 'kez' is not declared; did you mean 'key'?")
    ]


@pytest.mark.parametrize(
    "server",
    [
        "https://a.example/v1",
        "HTTP://a.example",
        "/v1",
        "v1",
        "",
        "//a.example",
        {
            "url": "{scheme}://{host}/v1",
            "variables": {"scheme": {"default": "https"}, "host": {"default": "a.example"}},
        },
    ],
)
def test_servers_may_be_absolute_relative_or_have_variables(server: Any) -> None:
    assert faults({**data(), "server": server}) == []
    assert faults_with(server=server) == []


@pytest.mark.parametrize(
    ("server", "where"),
    [
        ("ftp://a.example", ""),
        ("https://", ""),
        ("file:///etc/passwd", ""),
        ("https://[a", ""),
        ("https://a.example\r\nX: y", ""),
        ("https://{region}.example", ""),
        ({"url": "https://{a}.example", "variables": {"b": {"default": "x"}}}, ""),
        ({"url": "{s}://a.example", "variables": {"s": {"default": "ftp"}}}, ".url"),
        (
            {"url": "https://{a}.example", "variables": {"a": {"default": "x", "enum": ["y"]}}},
            ".variables.a.default",
        ),
    ],
)
def test_other_servers_are_refused(server: Any, where: str) -> None:
    assert [place for place, _ in faults({**data(), "server": server})] == [f"server{where}"]
    assert [place for place, _ in faults_with(server=server)] == [f"tools[0].request.server{where}"]


@pytest.mark.parametrize(
    "ref", ["#/schemas/Pets", "#/schemas/Pet/properties/next", "Pet", "#", "https://a.example/x", "file:///etc/passwd"]
)
def test_every_reference_leads_to_a_shared_schema(ref: str) -> None:
    content = data(response={"schema": {"items": {"$ref": ref}}})
    content["schemas"]["Pet"]["allOf"] = [True, {"$ref": ref}]
    content["tools"][0]["parameters"]["properties"]["requestBody"] = {"$ref": ref}
    found = faults(content)
    assert [where for where, _ in found] == [
        "schemas.Pet.allOf[1].$ref",
        "tools[0].parameters.properties.requestBody.$ref",
        "tools[0].response.schema.items.$ref",
    ]
    assert all(message.startswith(f"{ref!r} leads nowhere") for _, message in found)


def test_a_property_or_an_example_that_looks_like_a_reference_is_none() -> None:
    content = data()
    content["schemas"]["Pet"] = {"properties": {"$ref": {"type": "string"}}, "examples": [{"$ref": "nowhere"}]}
    assert faults(content) == []


@pytest.mark.parametrize("name", ["a/b", "a~b", "a b", "", "a%20b", "ä"])
def test_a_shared_schema_has_a_name_that_a_reference_can_carry_unescaped(name: str) -> None:
    content = data()
    content["schemas"][name] = {}
    assert faults(content) == [(f"schemas['{name}']", f"{name!r} is no name of a shared schema")]
    content["schemas"] = {"io.k8s.v1-Pod_2": {}, "Pet": {"$ref": "#/schemas/io.k8s.v1-Pod_2"}}
    assert faults(content) == []


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "strnig"}, ".type"),
        ({"properties": {"a": {"minimum": "1"}}}, ".properties.a.minimum"),
        ({"items": [{}]}, ".items"),
        ({"pattern": "("}, ".pattern"),
        ({"patternProperties": {"(": {}}}, ".patternProperties"),
    ],
)
def test_every_schema_is_json_schema(schema: dict[str, Any], where: str) -> None:
    content = data(response={"schema": schema})
    content["schemas"]["io.Pet"] = schema
    assert {place for place, _ in faults(content)} == {f"schemas['io.Pet']{where}", f"tools[0].response.schema{where}"}


def test_every_fault_is_found_at_once() -> None:
    content = {**data(name="a b", endpoint={"method": "GET", "path": "x"}), "api": "http", "server": "ftp://a"}
    content["schemas"]["Pet"]["$ref"] = "#/schemas/X"
    places = [where for where, _ in faults(content)]
    assert {"api", "server", "schemas.Pet.$ref", "tools[0].name"} <= set(places)
    assert all(problem.hint or problem.message for problem in check_toolset(from_dict(content)))


@given(st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_every_argument_name_can_be_read_by_its_leaf(name: str) -> None:
    parameters = {"type": "object", "properties": {name: True}, "required": [name]}
    request = {"path": [{"name": "id", "value": leaf_of(name)}]}
    assert faults(data(parameters=parameters, request=request)) == []


@pytest.mark.parametrize("value", ["..", ".", "", "a/../b", "a//b", "a/", "..\\x"])
def test_a_constant_in_the_path_cannot_lead_to_another_endpoint(value: str) -> None:
    found = faults_with(path=[{"name": "id", "value": value}])
    assert ("tools[0].request.path[0].value") in [where for where, message in found if "another endpoint" in message]


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\n", "a\x00", "a\x7f"])
@pytest.mark.parametrize("location", ["header", "cookie"])
def test_a_constant_in_a_header_cannot_start_another_one(value: str, location: str) -> None:
    found = faults_with(**{location: [{"name": "X-Tenant", "value": value}]})
    assert (
        f"tools[0].request.{location}[0].value",
        "the value has a control character, which no header can hold",
    ) in found


def test_constants_that_are_harmless_are_taken() -> None:
    assert (
        faults_with(header=[{"name": "X-Tenant", "value": "acme, inc"}], cookie=[{"name": "c", "value": "a/../b"}])
        == []
    )


def test_two_headers_that_differ_in_case_only_are_one_header() -> None:
    found = faults_with(header=[{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}])
    assert found == [("tools[0].request.header[1].name", "the header x-a is there twice")]


def test_an_argument_of_the_path_is_required() -> None:
    content = data()
    content["tools"][0]["parameters"] = {**content["tools"][0]["parameters"], "required": []}
    assert any("the path needs the argument" in message for _, message in faults(content))


@pytest.mark.parametrize("server", ["https://joe:SECRET@h.test", "https://SECRET@h.test/v1"])
def test_a_server_with_credentials_is_refused_without_showing_them(server: str) -> None:
    found = faults({**data(), "server": server})
    assert found == [("server", "the server URL holds a user name or password")]
