"""Servers and security at every level that can have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openapi.documents import document, one, parsed, said, tool, write
from pytest_httpserver import HTTPServer

from toolgen import generate
from toolgen.tools.model import Server, ServerVariable

GET = {"/x": {"get": {"responses": {}}}}


def servers(*urls: str) -> list[dict[str, str]]:
    return [{"url": url} for url in urls]


# Servers


def test_the_first_server_of_the_nearest_level_counts() -> None:
    made = generate(
        document(
            {
                "/root": {"get": {}},
                "/item": {"servers": servers("https://item.test/i"), "get": {}},
                "/own": {
                    "servers": servers("https://item.test"),
                    "get": {"servers": servers("https://own.test", "https://b.test")},
                },
                "/empty": {"servers": [], "get": {"servers": []}},
                "/same": {"get": {"servers": servers("https://root.test/v1")}},
            },
            servers=servers("https://root.test/v1", "https://other.test"),
        )
    )
    assert made.server == "https://root.test/v1"
    assert [t.request.server for t in made.tools] == [None, "https://item.test/i", "https://own.test", None, None]


@pytest.mark.parametrize("given", [None, [], {}, "https://a.test", [None], [{}], [{"url": 3}]])
def test_without_a_usable_server_a_text_has_none_and_loads(given: Any) -> None:
    assert generate(document(GET, servers=given)).server is None


def test_a_server_can_be_given_instead() -> None:
    own = {"/own": {"get": {"servers": servers("https://own.test")}}}
    made = generate(document({**GET, **own}, servers=servers("https://a.test")), server="https://b.test/v2")
    assert made.server == "https://b.test/v2"
    assert [t.request.server for t in made.tools] == [None, "https://own.test"]


def test_variables_keep_their_defaults_and_values() -> None:
    written = {
        "url": "https://{region}.test:{port}/{base}/{free}",
        "variables": {
            "region": {"default": "eu", "enum": ["eu", "us"]},
            "port": {"default": 443},
            "base": {"enum": ["v1", "v2"]},
            "unused": {"default": "x"},
        },
    }
    made = generate(document(GET, servers=[written]))
    assert made.server == Server(
        url="https://{region}.test:{port}/{base}/{free}",
        variables={
            "region": ServerVariable(default="eu", enum=("eu", "us")),
            "port": ServerVariable(default="443"),
            "base": ServerVariable(default="v1", enum=("v1", "v2")),
            "free": ServerVariable(default=None),
        },
    )
    assert any("'free' has no default" in line for line in said(made))


@pytest.mark.parametrize(
    "variables", [3, [], {"a": 3}, {"a": {"enum": 5}}, {"a": {"enum": "xy"}}, {"a": {"default": {}}}]
)
def test_broken_variables_must_be_given(variables: Any) -> None:
    made = generate(document(GET, servers=[{"url": "https://{a}.test", "variables": variables}]))
    assert made.server == Server(url="https://{a}.test", variables={"a": ServerVariable(default=None)})


def test_a_default_outside_the_values_is_added_to_them() -> None:
    written = {"url": "https://{a}.test", "variables": {"a": {"default": "c", "enum": ["b"]}}}
    made = generate(document(GET, servers=[written]))
    assert isinstance(made.server, Server)
    assert made.server.variables["a"] == ServerVariable(default="c", enum=("c", "b"))


@pytest.mark.parametrize(
    "url", ["wss://a.test", "mqtt://a.test", "https://", "https://a b", "https://[::1", "ftp://x/y"]
)
def test_a_server_no_request_can_go_to_is_left_out_and_the_next_one_counts(url: str) -> None:
    made = generate(document(GET, servers=servers(url, "https://b.test")))
    assert made.server == "https://b.test"
    assert said(made)[0].startswith("note: a server is left out")


def test_an_operation_whose_own_servers_cannot_be_called_is_skipped() -> None:
    paths = {"/a": {"get": {}}, "/b": {"get": {"servers": servers("wss://a.test")}}}
    made = generate(document(paths, servers=servers("https://b.test")))
    assert [tool.endpoint.path for tool in made.tools] == ["/a"]
    assert any("none of its own servers can be called" in line for line in said(made))


@pytest.mark.parametrize(
    ("url", "absolute"),
    [
        ("/v1", "{origin}/v1"),
        ("v1", "{origin}/d/v1"),
        ("./", "{origin}/d/"),
        ("../v1", "{origin}/v1"),
        ("//cdn.test/v1", "http://cdn.test/v1"),
        ("https://a.test", "https://a.test"),
    ],
)
def test_relative_servers_are_relative_to_the_url_of_their_document(
    url: str, absolute: str, httpserver: HTTPServer
) -> None:
    source = document(
        {"/a": {"get": {}}, "/b": {"get": {"servers": servers(url)}}}, servers=servers("https://root.test")
    )
    httpserver.expect_request("/d/api.json").respond_with_json(source)
    httpserver.expect_request("/d/root.json").respond_with_json(document(GET, servers=servers(url)))
    expected = absolute.format(origin=httpserver.url_for("").rstrip("/"))
    assert generate(httpserver.url_for("/d/api.json")).tools[1].request.server == expected
    assert generate(httpserver.url_for("/d/root.json")).server == expected


def test_what_a_document_calls_itself_does_not_move_its_servers(httpserver: HTTPServer) -> None:
    source = {**document(GET, "3.2.0"), "$self": "https://x.test/api/openapi.json"}
    assert generate({**source, "servers": servers("v1")}).server == "v1"
    httpserver.expect_request("/d/own.json").respond_with_json({**source, "servers": servers("v1")})
    httpserver.expect_request("/d/none.json").respond_with_json(source)
    assert generate(httpserver.url_for("/d/own.json")).server == httpserver.url_for("/d/v1")
    assert generate(httpserver.url_for("/d/none.json")).server == httpserver.url_for("").rstrip("/")


def test_servers_in_another_file_are_relative_to_that_file(httpserver: HTTPServer) -> None:
    root = document({"/x": {"$ref": "parts/item.json"}}, servers=servers("https://root.test"))
    item = {"get": {"responses": {}}, "servers": servers("v2")}
    httpserver.expect_request("/d/root.json").respond_with_json(root)
    httpserver.expect_request("/d/parts/item.json").respond_with_json(item)
    made = generate(httpserver.url_for("/d/root.json"), allow_hosts=["localhost"])
    assert made.tools[0].request.server == httpserver.url_for("/d/parts/v2")


def test_a_document_from_a_url_without_servers_is_served_at_its_own_host(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/d/api.json").respond_with_json(document(GET))
    assert generate(httpserver.url_for("/d/api.json")).server == httpserver.url_for("").rstrip("/")


def test_a_document_from_a_file_keeps_its_relative_server(tmp_path: Path) -> None:
    root = write(tmp_path, root="openapi: 3.1.0\nservers: [{url: /v1}]\npaths: {/x: {get: {}}}")
    assert generate(root).server == "/v1"


# Servers of 2.0


@pytest.mark.parametrize(
    ("written", "server"),
    [
        ({"host": "a.test", "basePath": "/v1", "schemes": ["https"]}, "https://a.test/v1"),
        ({"host": "a.test", "basePath": "v1/"}, "https://a.test/v1/"),
        ({"host": "a.test:8080"}, "https://a.test:8080"),
        ({"host": "a.test", "schemes": ["http", "https"]}, "https://a.test"),
        ({"host": "a.test", "schemes": ["http"]}, "http://a.test"),
        ({"host": "a.test", "schemes": ["ws"]}, "https://a.test"),
        ({"host": "a.test", "schemes": 3}, "https://a.test"),
        ({"host": "http://a.test/", "basePath": "/v1"}, "https://a.test/v1"),
        ({"basePath": "/v1"}, "/v1"),
        ({"basePath": "/"}, "/"),
        ({"host": "a b"}, None),
        ({"host": "{tenant}.test"}, None),
        ({"host": ""}, None),
        ({}, None),
    ],
)
def test_host_base_path_and_schemes_are_a_server(written: dict[str, Any], server: str | None) -> None:
    assert generate(document(GET, "2.0", **written)).server == server


def test_a_2_0_document_from_a_url_has_its_host_and_scheme(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/d/api.json").respond_with_json(document(GET, "2.0", basePath="/v1"))
    httpserver.expect_request("/d/host.json").respond_with_json(document(GET, "2.0", host="a.test"))
    assert generate(httpserver.url_for("/d/api.json")).server == httpserver.url_for("/v1")
    assert generate(httpserver.url_for("/d/host.json")).server == "http://a.test"


def test_schemes_of_a_2_0_operation_are_its_server() -> None:
    paths = {"/a": {"get": {"schemes": ["http"]}}, "/b": {"get": {"schemes": ["https"]}}, "/c": {"get": {}}}
    made = generate(document(paths, "2.0", host="a.test", schemes=["https"]))
    assert [t.request.server for t in made.tools] == ["http://a.test", None, None]


# Security


SCHEMES = {name: {"type": "http", "scheme": "bearer"} for name in "abc"}


@pytest.mark.parametrize(
    ("root", "own", "security"),
    [
        (None, None, ()),
        ([{"a": []}], None, (("a",),)),
        ([{"a": []}], [], ()),
        ([{"a": []}], [{}], ((),)),
        ([{"a": []}], [{"b": []}, {}], (("b",), ())),
        (None, [{"a": [], "b": []}, {"c": []}], (("a", "b"), ("c",))),
        ([{"a": []}], "text", (("a",),)),
        ([{"a": []}], [None, 3], (("a",),)),
        ([{"a": []}], ["b"], (("b",),)),
        ([{"a": []}], [None, {"b": []}], (("b",),)),
    ],
)
def test_security_is_an_or_of_ands_and_the_operations_own_replaces_the_documents(
    root: Any, own: Any, security: tuple[tuple[str, ...], ...]
) -> None:
    operation = {"responses": {}} if own is None else {"responses": {}, "security": own}
    source = one(operation, components={"securitySchemes": SCHEMES})
    made = tool(source if root is None else {**source, "security": root})
    assert made.request.security == security


def test_a_scheme_nobody_declared_is_still_demanded_and_reported_each_time() -> None:
    paths = {"/a": {"get": {"security": [{"nope": []}]}}, "/b": {"get": {"security": [{"nope": []}]}}}
    made = generate(document(paths))
    assert [t.request.security for t in made.tools] == [(("nope",),), (("nope",),)]
    assert [line.partition(";")[0] for line in said(made)] == [
        "degraded: the security scheme 'nope' is not declared"
    ] * 2
    assert made.security_schemes == {"nope": {}}


def test_schemes_are_found_by_reference_and_without_prose() -> None:
    schemes = parsed(
        """
        bearer: {$ref: '#/components/securitySchemes/real'}
        real: {type: http, scheme: bearer, bearerFormat: JWT, description: long, x-y: 1}
        oidc: {type: openIdConnect, openIdConnectUrl: 'https://a.test'}
        tls: {type: mutualTLS}
        lost: {$ref: '#/nope'}
        typeless: {scheme: bearer}
        text: 3
        """
    )
    made = generate(document(GET, components={"securitySchemes": schemes}))
    assert made.security_schemes == {
        "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "real": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
        "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://a.test"},
        "tls": {"type": "mutualTLS"},
    }
    assert len(said(made)) == 3


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("servers", [{"url": "https://joe:SECRET@h.test/v1"}]),
        ("servers", [{"url": "//joe:SECRET@h.test/v1"}]),
        ("servers", [{"url": "https://SECRET@h.test:8443/v1"}]),
    ],
)
def test_a_server_keeps_no_user_name_and_no_password(key: str, given: Any) -> None:
    made = generate(one({}, **{key: given}))
    assert "SECRET" not in str(made.model_dump()) + str(said(made))
    assert str(made.server).partition("//")[2] in ("h.test/v1", "h.test:8443/v1")
    assert any("user name and password are left out" in text for text in said(made))


def test_a_2_0_host_keeps_no_user_name_and_no_password() -> None:
    made = generate(document({"/x": {"get": {}}}, "2.0", host="joe:SECRET@h.test", schemes=["https"]))
    assert made.server == "https://h.test"
    assert "SECRET" not in str(said(made))


@pytest.mark.parametrize("url", ["", "#", "?", "v2", "/v2"])
def test_the_query_of_a_documents_url_stays_out_of_its_servers(httpserver: HTTPServer, url: str) -> None:
    httpserver.expect_request("/d/api.json").respond_with_json(one({}, servers=[{"url": url}]))
    made = generate(httpserver.url_for("/d/api.json") + "?token=SECRET")
    assert "SECRET" not in str(made.server)
    assert str(made.server).startswith(httpserver.url_for("/"))


def test_the_query_of_a_documents_url_stays_out_of_its_default_server(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_json(one({}))
    assert generate(httpserver.url_for("/").rstrip("/") + "?token=SECRET").server == httpserver.url_for("/").rstrip("/")


@pytest.mark.parametrize("given", ["key", {"key": []}, 3])
def test_security_that_is_no_array_is_reported_and_sends_nothing_of_its_own(given: Any) -> None:
    schemes = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
    of_document = generate(one({}, components=schemes, security=given))
    assert of_document.tools[0].request.security == ()
    assert said(of_document)[0].startswith("degraded: `security` is an array of requirements, this is not")
    of_operation = generate(one({"security": given}, components=schemes, security=[{"key": []}]))
    assert of_operation.tools[0].request.security == (("key",),)
    assert said(of_operation)[0].endswith("the document's is used at /paths/~1x/post")
