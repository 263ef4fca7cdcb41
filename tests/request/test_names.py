"""Names that servers act on, and names that are spoken for: no value of a model becomes one."""

from __future__ import annotations

from typing import Any

import pytest
from small_requests import edited, header, one, query_of, sent, tool

from toolgen.errors import ArgumentsError
from toolgen.request.names import header_fault, key_fault

KEY_SCHEME = {"components": {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "api_key"},
                                                 "c": {"type": "apiKey", "in": "cookie", "name": "session"}}},
              "security": [{"k": [], "c": []}]}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "Connection", "Keep-Alive", "Transfer-Encoding", "TE", "Trailer", "Upgrade", "Content-Length", "Expect", "Via",
        "Proxy", "Proxy-Authorization", "Proxy-Anything", "Host", "Forwarded", "X-Forwarded-For", "X_FORWARDED_HOST",
        "X-Forwarded-Anything", "X-Forwarded", "X-Envoy-Original-Path", "X-Real-IP", "X-Original-URL", "X-Rewrite-URL",
        "Authorization", "Cookie", "Set-Cookie", "Accept", "Content-Type", "Sec-Fetch-Site",
        "X-HTTP-Method-Override", "x_http_method", "X-Method-Override", ":path",
    ],
)  # fmt: skip
def test_headers_that_no_model_fills(name: str) -> None:
    made = edited(tool(one("a")), query=[], header=[(name, "{{ a }}")])
    with pytest.raises(ArgumentsError) as caught:
        sent(made, {"a": "x"})
    assert [problem.where for problem in caught.value.problems] == ["/a"]
    assert name in caught.value.problems[0].message


@pytest.mark.parametrize(
    "name", ["X-Request-Id", "If-Match", "Idempotency-Key", "X-Api-Version", "Content-Encoding", "Range"]
)
def test_other_headers_are_the_models(name: str) -> None:
    assert header(sent(tool(one(name, "header")), {name: "x"}), name) == "x"
    assert not header_fault(name)


def test_a_person_may_write_a_constant_where_a_model_may_not() -> None:
    made = edited(tool(one("a")), header=[("X-Forwarded-For", "192.0.2.1")])
    assert header(sent(made, {"a": 1}), "x-forwarded-for") == "192.0.2.1"


@pytest.mark.parametrize(
    "name", ["_method", "_METHOD", "_HttpMethod", " _method ", ".method", "_method\0[]", "X-HTTP-Method"]
)
@pytest.mark.parametrize("location", ["query", "cookie"])
def test_no_parameter_overrides_the_method(name: str, location: str) -> None:
    assert key_fault(name)
    made = tool(one("a", location, {"type": ["object", "string"]}))
    with pytest.raises(ArgumentsError, match=r"another method|a cookie's name"):
        sent(made, {"a": {name: "DELETE"}})
    with pytest.raises(ArgumentsError, match="another method"):
        sent(edited(made, **{"query": [], location: [(name, "{{ a }}")]}), {"a": "DELETE"})


def test_a_whole_query_does_not_override_the_method_nor_take_a_credentials_name() -> None:
    made = tool({"name": "q", "in": "querystring", "content": {"application/x-www-form-urlencoded": {"schema": True}}},
                **KEY_SCHEME)  # fmt: skip
    for value in ({"_method": "PUT"}, {"api_key": "x"}, {"API.key": "x"}, "_method", "api_key"):
        with pytest.raises(ArgumentsError):
            sent(made, {"q": value})
    assert query_of(sent(made, {"q": {"method": "x", "key": 1}})) == "method=x&key=1"


@pytest.mark.parametrize(
    "key",
    [
        "limit",
        "LIMIT",
        "limit[]",
        "limit[0]",
        "tenant",
        "api_key",
        "api.key",
        " api_key",
        "api key",
        "API_KEY",
        "fixed",
        "filter[x]",
    ],
)
def test_an_exploded_object_does_not_become_another_parameter_or_a_credential(key: str) -> None:
    made = tool(one("limit"), one("extra"), one("filter[x]"), path="/x?fixed=1",
                servers=[{"url": "https://api.example?tenant=7"}], **KEY_SCHEME)  # fmt: skip
    with pytest.raises(ArgumentsError, match="is the name of another parameter or of a credential"):
        sent(made, {"extra": {key: "stolen"}})
    request = sent(made, {"extra": {"other": 1, "extra": 2}, "limit": 3})
    assert query_of(request) == "tenant=7&fixed=1&limit=3&other=1&extra=2"


def test_a_deep_object_does_not_become_another_parameter() -> None:
    made = tool(one("filter", style="deepObject", explode=True), one("filter[tenant]"))
    with pytest.raises(ArgumentsError, match=r"'filter\[tenant\]' is the name of another parameter"):
        sent(made, {"filter": {"tenant": "other"}})
    assert query_of(sent(made, {"filter": {"a": 1}})) == "filter%5Ba%5D=1"


@pytest.mark.parametrize("style", ["form", "cookie"])
def test_an_exploded_object_does_not_become_another_cookie(style: str) -> None:
    made = tool(one("c", "cookie", style=style), one("own", "cookie"), **KEY_SCHEME)
    for key in ("session", "own", "SESSION"):
        with pytest.raises(ArgumentsError, match="is the name of another parameter or of a credential"):
            sent(made, {"c": {key: "x"}})
    assert header(sent(made, {"c": {"a": 1}, "own": 2}), "cookie") == "a=1; own=2"


@pytest.mark.parametrize(
    "value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\x7fb", "é", "\u2028", " a", "a ", "\t", "a\x0bb"]
)
def test_a_header_holds_printable_ascii_only(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="header X-A: a header holds printable ASCII"):
        sent(tool(one("X-A", "header")), {"X-A": value})
    with pytest.raises(ArgumentsError, match="a header holds printable ASCII"):
        sent(tool(one("X-A", "header", explode=True)), {"X-A": {value: "x"} if value.strip() == value else [value]})


def test_the_text_around_a_secret_in_a_header_is_checked_as_well() -> None:
    made = edited(tool(one("a")), query=[], header=[("X-Key", "{{ a }}:${env:K}")])
    assert sent(made, {"a": "ok"}).deferred[0].name == "X-Key"
    for value in ("a\r\nX-Evil: 1", "é", "\ud800"):
        with pytest.raises(ArgumentsError):
            sent(made, {"a": value})


@pytest.mark.parametrize("name", ["a b", "a;b", "a=b", "é", 'a"'])
def test_a_cookies_name_is_a_token(name: str) -> None:
    made = edited(tool(one("a")), query=[], cookie=[(name, "{{ a }}")])
    with pytest.raises(ArgumentsError, match="a cookie's name is"):
        sent(made, {"a": "x"})
    with pytest.raises(ArgumentsError, match="a cookie's name is"):
        sent(edited(tool(one("a")), query=[], cookie=[(name, "{{ a }}${env:K}")]), {"a": "x"})
