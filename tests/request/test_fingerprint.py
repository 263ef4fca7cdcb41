"""What must change the fingerprint of a request, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_requests import KEY, edited, one, sent, tool

from toolgen.identity.references import Reference, ReferenceText, parse
from toolgen.request.model import Deferred, ResolvedRequest

BASE = replace(
    sent(tool()),
    url="https://api.example/v1/x?a=1&b=2&a=3",
    headers=(("Accept", "*/*"), ("X-A", "1"), ("X-B", "2"), ("X-A", "3")),
    body=b"body",
    deferred=(Deferred("header", "X-Key", parse("k-${env:K}")), Deferred("query", "q", parse("${env:Q}"))),
)


def change(**changes: Any) -> ResolvedRequest:
    return replace(BASE, **changes)


SAME: dict[str, Callable[[], ResolvedRequest]] = {
    "order of headers": lambda: change(headers=(("X-B", "2"), ("X-A", "1"), ("X-A", "3"), ("Accept", "*/*"))),
    "case of header names": lambda: change(headers=tuple((name.upper(), value) for name, value in BASE.headers)),
    "case of the method": lambda: change(method="post"),
    "order of query parameters of different names": lambda: change(url="https://api.example/v1/x?b=2&a=1&a=3"),
    "order of deferred values": lambda: change(deferred=BASE.deferred[::-1]),
    "case of a deferred header's name": lambda: change(
        deferred=(Deferred("header", "x-key", parse("k-${env:K}")), BASE.deferred[1])
    ),
    "notes": lambda: change(notes=("said",)),
}
OTHER: dict[str, Callable[[], ResolvedRequest]] = {
    "the base": lambda: BASE,
    "method": lambda: change(method="PUT"),
    "host": lambda: change(url=BASE.url.replace("api", "other")),
    "scheme": lambda: change(url=BASE.url.replace("https", "http")),
    "path": lambda: change(url=BASE.url.replace("/x", "/y")),
    "case of the path": lambda: change(url=BASE.url.replace("/x", "/X")),
    "encoding of the path": lambda: change(url=BASE.url.replace("/x", "/%78")),
    "query value": lambda: change(url=BASE.url.replace("b=2", "b=3")),
    "query name": lambda: change(url=BASE.url.replace("b=2", "B=2")),
    "added query parameter": lambda: change(url=BASE.url + "&c=4"),
    "removed query parameter": lambda: change(url=BASE.url.replace("&b=2", "")),
    "order of repeated query values": lambda: change(url="https://api.example/v1/x?a=3&b=2&a=1"),
    "an empty value beside none": lambda: change(url=BASE.url.replace("b=2", "b=")),
    "no value beside an empty one": lambda: change(url=BASE.url.replace("b=2", "b")),
    "header value": lambda: change(headers=(*BASE.headers[:3], ("X-A", "4"))),
    "added header": lambda: change(headers=(*BASE.headers, ("X-C", "1"))),
    "order of repeated header values": lambda: change(headers=(("X-A", "3"), ("X-A", "1"), *BASE.headers[::2])),
    "one header with both values": lambda: change(headers=(*BASE.headers[:1], ("X-A", "1, 3"), ("X-B", "2"))),
    "two secrets in a header": lambda: change(headers=(*BASE.headers, ("Authorization", "Bearer a"))),
    "and another": lambda: change(headers=(*BASE.headers, ("Authorization", "Bearer b"))),
    "body": lambda: change(body=b"bodY"),
    "empty body": lambda: change(body=b""),
    "no body": lambda: change(body=None),
    "body that imitates a header": lambda: change(body=b"X-A: 3\r\n\r\nbody", headers=BASE.headers[:3]),
    "bytes from the URL to the body": lambda: change(url=BASE.url[:-1], body=b"3body"),
    "another reference": lambda: change(deferred=(Deferred("header", "X-Key", parse("k-${env:J}")), BASE.deferred[1])),
    "text around a reference": lambda: change(
        deferred=(Deferred("header", "X-Key", parse("${env:K}")), BASE.deferred[1])
    ),
    "the place of a reference": lambda: change(deferred=(BASE.deferred[0], Deferred("cookie", "q", parse("${env:Q}")))),
    "case of a deferred query name": lambda: change(
        deferred=(BASE.deferred[0], Deferred("query", "Q", parse("${env:Q}")))
    ),
    "no deferred values": lambda: change(deferred=()),
    "text that looks like the reference": lambda: change(
        deferred=(Deferred("header", "X-Key", ReferenceText(("k-${env:K}",))), BASE.deferred[1])
    ),
    "texts that look like the pieces": lambda: change(
        deferred=(Deferred("header", "X-Key", ReferenceText(("k-", "${env:K}"))), BASE.deferred[1])
    ),
    "a header": lambda: change(headers=(("x-a", "bc"),)),
    "a byte from its value to its name": lambda: change(headers=(("x-ab", "c"),)),
    "a reference split otherwise": lambda: change(
        deferred=(Deferred("header", "X-Key", ReferenceText(("k", "-", Reference("env", "K")))), BASE.deferred[1])
    ),
    "an idempotency header": lambda: change(idempotency="Idempotency-Key"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_makes_no_difference_to_a_server_makes_none_here(what: str) -> None:
    assert SAME[what]().fingerprint(KEY) == BASE.fingerprint(KEY)


def test_no_two_different_requests_have_the_same_fingerprint() -> None:
    found = {what: make().fingerprint(KEY) for what, make in OTHER.items()}
    assert [pair for pair in combinations(found, 2) if found[pair[0]] == found[pair[1]]] == []


def test_the_fingerprint_is_keyed_and_names_nothing() -> None:
    found = BASE.fingerprint(KEY)
    assert len(found) == 64
    assert int(found, 16) >= 0
    assert BASE.fingerprint(b"another key of sufficient length") != found
    with pytest.raises(ValueError, match="at least 16 bytes"):
        BASE.fingerprint(b"short")


def test_secrets_that_are_shown_alike_are_told_apart() -> None:
    made = tool(one("password"), one("token", "header"), body={"application/json": {"schema": {}}})
    calls = [{"password": "a"}, {"password": "b"}, {"token": "a"}, {"requestBody": {"password": "a"}},
             {"requestBody": {"password": "b"}}]  # fmt: skip
    assert len({sent(made, call).fingerprint(KEY) for call in calls}) == len(calls)


def test_the_order_of_repeated_deferred_values_counts() -> None:
    def both(first: str, second: str) -> str:
        return sent(edited(tool(), header=[("X-K", first), ("X-K", second)])).fingerprint(KEY)

    assert both("${env:A}", "${env:B}") != both("${env:B}", "${env:A}")


pieces = st.lists(st.text("ab:= \n0123", max_size=6), min_size=5, max_size=5)


@given(pieces, pieces)
def test_bytes_never_move_between_fields(first: list[str], second: list[str]) -> None:
    def request(words: list[str]) -> ResolvedRequest:
        name, value, other, path, body = words
        headers = (("x-" + name, value), ("y-", other))
        return change(headers=headers, url="https://api.example/" + path, body=body.encode())

    assert (request(first).fingerprint(KEY) == request(second).fingerprint(KEY)) == (first == second)
