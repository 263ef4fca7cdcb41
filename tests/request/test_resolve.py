"""A call becomes one request, the same each time; what a model wrote is data wherever it stands."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_requests import KEY, SERVER, SMUGGLED, edited, header, one, path_of, query_of, sent, tool

from toolgen.errors import ArgumentsError, RequestError
from toolgen.identity.caller import Caller
from toolgen.identity.references import Reference
from toolgen.request.model import ResolvedRequest
from toolgen.tools.model import Body, Leaf

FORM = "application/x-www-form-urlencoded"
ANY = {"schema": {}}


def whole() -> Any:
    return tool(
        one("id", "path"),
        one("q"),
        one("filter", style="deepObject"),
        one("X-H", "header"),
        one("c", "cookie"),
        path="/users/{id}/x?fixed=1",
        method="put",
        body={"application/json": ANY},
        **{"components": {}},
    )


def test_a_whole_request() -> None:
    request = sent(
        whole(), {"id": "7", "q": [1, 2], "filter": {"a": "b"}, "X-H": "h", "c": 1, "requestBody": {"n": None}}
    )
    assert request.method == "PUT"
    assert request.url == f"{SERVER}/users/7/x?fixed=1&q=1&q=2&filter%5Ba%5D=b"
    assert request.headers == (
        ("Accept", "*/*"),
        ("Content-Type", "application/json"),
        ("X-H", "h"),
        ("Cookie", "c=1"),
    )
    assert request.body == b'{"n":null}'
    assert (request.server, str(request.origin), request.notes, request.deferred) == (
        SERVER,
        "https://api.example",
        (),
        (),
    )


@given(st.dictionaries(st.sampled_from(["id", "q", "filter", "X-H", "c", "requestBody"]), st.text() | st.integers() | st.none() |
       st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)))  # fmt: skip
def test_resolving_twice_gives_the_same_bytes_and_changes_nothing(arguments: dict[str, Any]) -> None:
    made, before = whole(), copy.deepcopy(arguments)

    def attempt(given_arguments: Any) -> Any:
        try:
            return sent(made, given_arguments)
        except ArgumentsError as error:
            return str(error)

    first, second, third = attempt(arguments), attempt(arguments), attempt(MappingProxyType(copy.deepcopy(arguments)))
    assert first == second == third
    assert arguments == before
    if isinstance(first, ResolvedRequest):
        assert first.fingerprint(KEY) == second.fingerprint(KEY)


PLACES: dict[str, tuple[Any, str, Callable[[ResolvedRequest], Any]]] = {
    "path": (lambda: tool(one("a", "path"), path="/x/{a}"), "a", lambda r: unquote(path_of(r)).removeprefix("/x/")),
    "query": (lambda: tool(one("a")), "a", lambda r: unquote(query_of(r)).removeprefix("a=")),
    "header": (lambda: tool(one("a", "header")), "a", lambda r: header(r, "a")),
    "cookie": (lambda: tool(one("a", "cookie")), "a", lambda r: unquote(header(r, "cookie") or "").removeprefix("a=")),
    "json": (lambda: tool(body={"application/json": ANY}), "requestBody", lambda r: json.loads(r.body or b"")),
    "text": (
        lambda: tool(body={"text/plain": {"schema": {"type": "string"}}}),
        "requestBody",
        lambda r: (r.body or b"").decode(),
    ),
    "form": (
        lambda: edited(tool(one("a")), query=[], body=Body(value={"a": "{{ a }}"}, media_type=FORM)),
        "a",
        lambda r: unquote_plus((r.body or b"").decode()).removeprefix("a="),
    ),
    "multipart": (
        lambda: edited(tool(one("a")), query=[], body=Body(value={"a": "{{ a }}"}, media_type="multipart/form-data")),
        "a",
        lambda r: r.parts[0].data.decode(),
    ),
    "querystring": (
        lambda: tool({"name": "a", "in": "querystring", "content": {"text/plain": {"schema": True}}}),
        "a",
        lambda r: unquote(query_of(r)),
    ),
}


@pytest.mark.parametrize("text", SMUGGLED)
@pytest.mark.parametrize("place", PLACES)
def test_text_that_looks_like_a_reference_or_a_template_is_sent_as_it_is(place: str, text: str) -> None:
    made, argument, read = PLACES[place]
    request = sent(made(), {argument: text}, caller=Caller("me", "token-of-a-caller", context={"x": 1}))
    assert read(request) == text
    assert request.deferred == ()


@pytest.mark.parametrize("place", ["query", "header", "cookie"])
@pytest.mark.parametrize("text", SMUGGLED)
def test_text_beside_a_reference_is_data_too(place: str, text: str) -> None:
    made = edited(tool(one("a")), **{"query": [], place: [("a", "${env:KEY}-{{ a }}")]})
    (deferred,) = sent(made, {"a": text}).deferred
    assert deferred.value.pieces == (Reference("env", "KEY"), f"-{text}")
    assert (deferred.location, deferred.name) == (place, "a")


def context_tool(place: str, leaf: str) -> Any:
    if place == "body":
        return edited(tool(), body=Body(value={"a": leaf}, media_type="application/json"))
    if place == "path":
        made = tool(one("a", "path"), path="/x/{a}")
        bare = made.model_copy(update={"parameters": {"type": "object"}})
        bare.__dict__["home"] = made.home
        return edited(bare, path=[("a", leaf)])
    return edited(tool(), **{place: [("a", leaf)]})


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("path", "acme", f"{SERVER}/x/acme"),
        ("path", 7, f"{SERVER}/x/7"),
        ("query", ["a", "b&c"], f"{SERVER}/x?a=a&a=b%26c"),
        ("query", {"k": 1}, f"{SERVER}/x?k=1"),
        ("header", False, "false"),
        ("cookie", "a b", "a=a%20b"),
        ("body", {"deep": [1, None]}, b'{"a":{"deep":[1,null]}}'),
        ("body", "${env:HOME}", b'{"a":"${env:HOME}"}'),
    ],
)
def test_a_context_value_keeps_its_type_and_counts(place: str, value: Any, expected: Any) -> None:
    made = context_tool(place, "${context:v}")
    request = sent(made, caller=Caller("me", context={"v": value}))
    found = {"header": header(request, "a"), "cookie": header(request, "cookie"), "body": request.body}.get(
        place, request.url
    )
    assert found == expected
    other = sent(made, caller=Caller("me", context={"v": "other"}))
    assert other.fingerprint(KEY) != request.fingerprint(KEY)
    for nobody in (None, Caller("me"), Caller("me", context={"v": None})):
        with pytest.raises(RequestError, match="the caller's context does not have 'v'"):
            sent(made, caller=nobody)


@pytest.mark.parametrize("value", ["..", "a/../b", "", "%2e", "me"])
def test_a_context_value_in_a_path_is_held_to_the_rules_of_paths(value: str) -> None:
    made = context_tool("path", "${context:v}")
    siblings = made.request.model_copy(update={"siblings": ("/x/me",)})
    steered = made.model_copy(update={"request": siblings})
    steered.__dict__["home"] = made.home
    with pytest.raises(RequestError) as caught:
        sent(steered, caller=Caller("me", context={"v": value}))
    assert type(caught.value) is RequestError, "a model cannot mend it"


def test_a_context_value_that_no_header_can_hold_is_not_told_as_a_fault_of_the_arguments() -> None:
    with pytest.raises(RequestError, match="header a: a header holds printable ASCII") as caught:
        sent(context_tool("header", "${context:v}"), caller=Caller("me", context={"v": "x\r\ny"}))
    assert type(caught.value) is RequestError


@pytest.mark.parametrize("reference", ["${env:K}", "${file:/k}", "${caller:userId}"])
@pytest.mark.parametrize("place", ["path", "body"])
def test_a_secret_in_a_path_or_a_body_is_refused(place: str, reference: str) -> None:
    for leaf in (reference, f"x{reference}"):
        with pytest.raises(RequestError, match=r"cannot stand in a path|never stands in a body"):
            sent(context_tool(place, leaf))


@pytest.mark.parametrize("place", ["query", "header", "cookie"])
def test_references_are_deferred_and_never_resolved_here(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "a-secret-of-the-process")
    request = sent(context_tool(place, "k-${env:KEY}"), caller=Caller("me", "a-token"))
    assert [str(one.value) for one in request.deferred] == ["k-${env:KEY}"]
    assert "a-secret-of-the-process" not in repr(request)
    assert (request.url, [name for name, _ in request.headers]) == (f"{SERVER}/x", ["Accept"])


@pytest.mark.parametrize(
    ("place", "reference", "said"),
    [
        ("query", "${caller:token}", "cannot stand in the query"),
        ("cookie", "${caller:token}", "cannot stand in the cookie"),
        ("cookie", "${caller:userId}", "cannot stand in the cookie"),
    ],
)
def test_a_reference_where_it_must_not_stand_is_refused_also_in_a_tool_made_by_hand(
    place: str, reference: str, said: str
) -> None:
    with pytest.raises(RequestError, match=said):
        sent(context_tool(place, reference))


def test_a_secret_inside_an_object_or_a_whole_query_is_refused() -> None:
    for changed in (
        edited(tool(), query=[{"name": "a", "value": {"k": "${env:K}"}}]),
        edited(tool(), querystring=Leaf(name="q", value="${env:K}", media_type="text/plain")),
    ):
        with pytest.raises(RequestError) as caught:
            sent(changed)
        assert not isinstance(caught.value, ArgumentsError)


def test_the_name_of_a_deferred_query_value_is_encoded() -> None:
    (deferred,) = sent(edited(tool(), query=[("a&b", "${env:K}")])).deferred
    assert deferred.name == "a%26b"


@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Idempotency-Key", "idempotency-key"])
def test_a_declared_idempotency_header_is_filled_when_it_is_sent(name: str) -> None:
    made = tool(one(name, "header"))
    request = sent(made)
    assert (request.idempotency, header(request, name)) == (name, None)
    given_by_the_model = sent(made, {name: "k"})
    assert (given_by_the_model.idempotency, header(given_by_the_model, name)) == (None, "k")


@pytest.mark.parametrize(
    ("types", "accept"),
    [
        ([], "*/*"),
        (["text/csv", "application/json"], "application/json, text/csv, */*;q=0.5"),
        (["application/problem+json", "*/*"], "application/problem+json, */*;q=0.5"),
    ],
)
def test_accept_names_what_the_document_describes(types: list[str], accept: str) -> None:
    responses = {"200": {"description": "ok", "content": {name: {} for name in types}}}
    from small_documents import tool_of

    made = tool_of({"responses": responses}, servers=[{"url": SERVER}])
    assert header(sent(made), "accept") == accept


@pytest.mark.parametrize(("method", "wire"), [("get", "GET"), ("delete", "DELETE"), ("query", "QUERY")])
def test_the_method_is_the_operations(method: str, wire: str) -> None:
    assert sent(tool(method=method)).method == wire


def test_a_method_with_a_case_of_its_own_keeps_it() -> None:
    assert sent(edited(tool(), method="copyTo")).method == "copyTo"


def test_every_argument_goes_to_exactly_one_place() -> None:
    made = tool(
        one("id", "path"), one("id", "query"), one("id", "header"), path="/x/{id}", body={"application/json": ANY}
    )
    names = {binding.location: binding.argument for binding in made.bindings}
    request = sent(made, {names["path"]: 1, names["query"]: 2, names["header"]: 3, names["body"]: {"id": 4}})
    assert request.url == f"{SERVER}/x/1?id=2"
    assert (header(request, "id"), request.body) == ("3", b'{"id":4}')


def test_all_faults_are_told_at_once_each_with_its_argument() -> None:
    made = tool(
        one("p", "path"), one("h", "header"), one("c", "cookie", style="cookie"), one("q", required=True), path="/{p}"
    )
    with pytest.raises(ArgumentsError) as caught:
        sent(made, {"p": "..", "h": "a\nb", "c": "a;b", "q": []})
    assert sorted(problem.where for problem in caught.value.problems) == ["/c", "/h", "/p", "/q"]
    assert "nothing was sent" in str(caught.value)


def test_a_comma_inside_an_item_of_a_header_is_said() -> None:
    made = tool(one("X-Ids", "header", {"type": "array"}))
    assert header(sent(made, {"X-Ids": ["bl,ack", "b"]}), "X-Ids") == "bl,ack,b"
    assert any("comma" in note for note in sent(made, {"X-Ids": ["bl,ack", "b"]}).notes)
    assert sent(made, {"X-Ids": ["black", "b"]}).notes == ()
