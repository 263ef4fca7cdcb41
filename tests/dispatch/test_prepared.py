from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import httpx2
import pytest
from small_documents import parameter, tool_of

from toolgen.dispatch.prepared import Addition, Prepared, prepared
from toolgen.errors import DispatchRefused
from toolgen.request.model import ResolvedRequest
from toolgen.request.resolve import resolve

SERVER = "https://api.example"


def request(url: str | None = None, **changes: Any) -> ResolvedRequest:
    tool = tool_of({"parameters": [parameter("q"), parameter("X-A", "header"), parameter("c", "cookie")]})
    found = resolve(tool, {"q": "1 2", "X-A": "a", "c": "3"}, server=SERVER)
    return replace(found, **({"url": url} if url else {}), **changes)


def test_what_is_sent_is_what_was_resolved_with_the_additions_and_the_client_s_own_headers() -> None:
    added = [
        Addition("header", "Authorization", "Bearer t"),
        Addition("query", "key", "a%20b"),
        Addition("cookie", "s", "9"),
    ]
    found = prepared(request(), added)
    assert (found.method, str(found.url)) == ("POST", f"{SERVER}/x?q=1%202&key=a%20b")
    assert [(name.decode(), value.decode()) for name, value in found.headers.raw] == [
        ("Host", "api.example"),
        ("Content-Length", "0"),
        ("Accept", "*/*"),
        ("X-A", "a"),
        ("Authorization", "Bearer t"),
        ("Cookie", "c=3; s=9"),
        ("User-Agent", "toolgen"),
        ("Accept-Encoding", "gzip, deflate"),
    ]


def test_the_body_is_the_resolved_bytes() -> None:
    found = prepared(request(body=b"\x00{}", headers=(("Content-Type", "a/b"),)), [])
    assert (found.content, found.headers["content-length"], found.headers["content-type"]) == (b"\x00{}", "3", "a/b")
    assert "transfer-encoding" not in found.headers


def test_a_query_credential_starts_the_query_where_there_is_none() -> None:
    assert str(prepared(request(f"{SERVER}/x"), [Addition("query", "k", "v")]).url) == f"{SERVER}/x?k=v"


Location = Literal["header", "query", "cookie"]


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("header", "X-A"),
        ("header", "x-a"),
        ("header", "X_A"),  # the same header through CGI
        ("query", "q"),
        ("query", "Q"),
        ("query", "%71"),
        ("query", "q[0]"),
        ("query", "q%5B%5D"),
        ("cookie", "c"),
    ],
)
def test_a_credential_beside_a_value_of_the_same_name_is_refused(location: Location, name: str) -> None:
    with pytest.raises(DispatchRefused, match=f"the {location} .* filled twice") as caught:
        prepared(request(), [Addition(location, name, "s3cr3t-value")])
    assert "s3cr3t-value" not in str(caught.value)


@pytest.mark.parametrize("location", ["header", "query", "cookie"])
def test_two_credentials_of_one_name_are_refused(location: Location) -> None:
    with pytest.raises(DispatchRefused, match="filled twice"):
        prepared(request(), [Addition(location, "key", "1"), Addition(location, "key", "2")])


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example//evil.example/x",
        "https://api.example/x?a=%2F&&b==;",
        "https://api.example/%7e/%41/%zz?a|b`c",
        "https://api.example:8443/x?",
        "https://[2001:db8::1]:8443/x",
        "https://api.example:443/x",
        "http://api.example:80/x",
    ],
)
def test_a_url_is_sent_letter_by_letter(url: str) -> None:
    assert prepared(request(url), []).url.raw_path.decode() == "/" + url.partition("://")[2].partition("/")[2]


@pytest.mark.parametrize(
    "url",
    [
        'https://api.example/a"b',
        "https://api.example/a b",
        "https://api.example/ä",
        "https://api.example/a/../b",
        "https://api.example/a/./b",
        'https://api.example/a?b"c',
        "https://api.example/a#b",
        "https://api.example?b",
        "https://api.example",
        "https://API.example/a",
        "https://user:password@api.example/a",
        "https://user@api.example/a",
        "https://bücher.example/a",
        "https://api.example:0443/a",
        "https://api.example\\@evil.example/a",
        "https://api.example\n/a",
        "https://[::1]evil/a",
        "https://api.example:port/a",
    ],
)
def test_a_url_that_the_client_reads_differently_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(DispatchRefused, match="HTTP client") as caught:
        prepared(request(url), [])
    assert "example" not in str(caught.value)


def test_the_idempotency_header_is_filled_only_where_the_tool_has_one() -> None:
    filled = [prepared(request(idempotency="Idempotency-Key"), []).headers["idempotency-key"] for _ in range(2)]
    assert filled[0] != filled[1]
    assert prepared(request(idempotency="Idempotency-Key"), [], "mine").headers["idempotency-key"] == "mine"
    assert "idempotency-key" not in prepared(request(), [], "mine").headers


def test_neither_a_prepared_request_nor_an_addition_shows_its_value() -> None:
    addition = Addition("query", "key", "s3cr3t-value")
    found = prepared(request(), [addition])
    assert isinstance(found, Prepared)
    assert isinstance(found, httpx2.Request)
    assert "s3cr3t-value" not in f"{addition!r}{addition}{found!r}{found}"


def test_a_header_that_was_resolved_is_not_sent_a_second_time_by_the_client() -> None:
    found = prepared(request(headers=(("user-agent", "mine"),)), [Addition("header", "Accept-Encoding", "gzip")])
    assert found.headers.get_list("user-agent") == ["mine"]
    assert found.headers.get_list("accept-encoding") == ["gzip"]
