from __future__ import annotations

from typing import Any

import pytest
from small_documents import OK, document, made
from small_requests import edited, one, sent, tool

from toolgen.errors import ArgumentsError, ServerError
from toolgen.tools.model import Server, ServerVariable, Tool

REGION = {
    "url": "https://{region}.api.example:{port}/{base}",
    "variables": {
        "region": {"default": "eu", "enum": ["eu", "us"]},
        "port": {"default": "8443"},
        "base": {"default": "v2"},
    },
}


def of(servers: Any, path: str = "/x") -> Tool:
    return tool(servers=servers, path=path)


@pytest.mark.parametrize(
    ("levels", "url"),
    [
        ({"operation"}, "https://operation.example/x"),
        ({"path", "operation"}, "https://operation.example/x"),
        ({"path"}, "https://path.example/x"),
        (set(), "https://document.example/x"),
    ],
)
def test_the_nearest_level_counts(levels: set[str], url: str) -> None:
    servers = {level: [{"url": f"https://{level}.example"}] for level in ("operation", "path", "document")}
    operation = {"responses": OK, **({"servers": servers["operation"]} if "operation" in levels else {})}
    item = {"get": operation, **({"servers": servers["path"]} if "path" in levels else {})}
    (found,) = made(document({"/x": item}, servers=servers["document"])).tools
    assert sent(found).url == url
    assert sent(found, server="http://localhost:8080/base/").url == "http://localhost:8080/base/x"


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "https://eu.api.example:8443/v2/x"),
        ({"region": "us", "base": "a/b"}, "https://us.api.example:8443/a/b/x"),
        ({"port": 9000}, "https://eu.api.example:9000/v2/x"),
    ],
)
def test_variables_have_defaults_and_are_given_by_the_operator(variables: Any, url: str) -> None:
    assert sent(of([REGION]), server_variables=variables).url == url


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"region": "mars"}, "'region' is one of eu, us"),
        ({"regoin": "us"}, "no variable 'regoin'; did you mean 'region'"),
        ({"base": "../x"}, "cannot be called"),
        ({"base": "a b"}, "no URL that requests can go to"),
        ({"port": "8443@evil.example"}, "holds a user name"),
        ({"base": "x#"}, "no URL that requests can go to"),
    ],
)
def test_variables_that_make_no_server_are_refused(variables: Any, said: str) -> None:
    with pytest.raises(ServerError, match=said):
        sent(of([REGION]), server_variables=variables)


def test_a_variable_without_a_default_must_be_given() -> None:
    needs = Server(url="https://{t}.example", variables={"t": ServerVariable()})
    made_tool = edited(of([{"url": "https://a.example"}]), server=needs)
    with pytest.raises(ServerError, match="'t' has no value"):
        sent(made_tool)
    assert sent(made_tool, server_variables={"t": "x"}).url == "https://x.example/x"


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (None, "has no server to be sent to; set it with"),
        ("", "has no server to be sent to; set it with"),
        ("/v1", "is relative, and to what is not known; set it with"),
        ("api.example/v1", "is relative"),
        ("//api.example/v1", "is relative"),
        ("ftp://api.example", "no http\\(s\\) URL"),
        ("https://", "no URL that requests can go to"),
        ("https://user:pass@api.example", "holds a user name"),
        ("https://api.example\\@evil.example", "no URL|user name"),
        ("https://api.example/{x}", "no URL that requests can go to"),
        ("https://api.example:0", "no URL that requests can go to"),
        ("https://bücher.example", "no URL that requests can go to"),
        ("https://api.example/a/../b", "cannot be called"),
        ("https://api.example/a%2fb", "cannot be called"),
        ("https://api.example/#f", "no URL that requests can go to"),
    ],
)
def test_what_is_no_server_is_an_error_that_says_what_to_do(server: str | None, said: str) -> None:
    with pytest.raises(ServerError, match=said) as caught:
        sent(tool_without_server(), server=server)
    assert "pass" not in str(caught.value)


def tool_without_server() -> Tool:
    return tool(servers=[])


def test_an_override_that_is_empty_is_no_way_back_to_the_server_of_the_document() -> None:
    with pytest.raises(ServerError, match="no server"):
        sent(of([{"url": "https://production.example"}]), server="")


@pytest.mark.parametrize(
    ("server", "url", "origin"),
    [
        ("HTTPS://API.Example/V1/", "https://api.example/V1/x", "https://api.example"),
        ("https://api.example:443", "https://api.example:443/x", "https://api.example"),
        ("http://[::1]:8080//a//", "http://[::1]:8080//a/x", "http://[::1]:8080"),
        ("https://api.example/v1?key=1", "https://api.example/v1/x?key=1", "https://api.example"),
    ],
)
def test_how_a_server_stands_in_a_url(server: str, url: str, origin: str) -> None:
    request = sent(tool_without_server(), server=server)
    assert (request.url, str(request.origin)) == (url, origin)


@pytest.mark.parametrize("value", ["@evil.example", "https:evil.example", "{region}", "x{region}", "evil.example:1"])
def test_no_argument_chooses_the_server(value: str) -> None:
    made_tool = tool(one("id", "path"), one("server"), path="/{id}", servers=[REGION])
    request = sent(made_tool, {"id": value, "server": "https://evil.example"})
    assert str(request.origin) == "https://eu.api.example:8443"
    assert request.url.startswith("https://eu.api.example:8443/v2/")
    with pytest.raises(ArgumentsError):
        sent(made_tool, {"id": f"//{value}/x"})
