"""The style table of OpenAPI 3.2 ("Style Examples"), row by row, and what it leaves open."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from small_requests import header, one, path_of, query_of, sent, tool

from toolgen.errors import ArgumentsError

TEXT, LIST = "blue", ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


def call(location: str, value: Any, style: str | None, explode: bool | None, **more: Any) -> Any:
    keys = {key: given for key, given in (("style", style), ("explode", explode)) if given is not None}
    path = "/x/{color}" if location == "path" else "/x"
    return sent(tool(one("color", location, **keys, **more), path=path), {"color": value})


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("matrix", False, TEXT, ";color=blue"),
        ("matrix", False, LIST, ";color=blue,black,brown"),
        ("matrix", False, OBJECT, ";color=R,100,G,200,B,150"),
        ("matrix", True, TEXT, ";color=blue"),
        ("matrix", True, LIST, ";color=blue;color=black;color=brown"),
        ("matrix", True, OBJECT, ";R=100;G=200;B=150"),
        ("label", False, TEXT, ".blue"),
        ("label", False, LIST, ".blue,black,brown"),
        ("label", False, OBJECT, ".R,100,G,200,B,150"),
        ("label", True, TEXT, ".blue"),
        ("label", True, LIST, ".blue.black.brown"),
        ("label", True, OBJECT, ".R=100.G=200.B=150"),
        ("simple", False, TEXT, "blue"),
        ("simple", False, LIST, "blue,black,brown"),
        ("simple", False, OBJECT, "R,100,G,200,B,150"),
        ("simple", True, LIST, "blue,black,brown"),
        ("simple", True, OBJECT, "R=100,G=200,B=150"),
        (None, None, OBJECT, "R,100,G,200,B,150"),
        ("matrix", None, LIST, ";color=blue,black,brown"),
        ("simple", False, "a b/c?d#e;f,g&h=i", "a%20b%2Fc%3Fd%23e%3Bf%2Cg%26h%3Di"),
        ("simple", False, ["a,b", "c"], "a%2Cb,c"),
        ("simple", True, {"a=b": "c,d"}, "a%3Db=c%2Cd"),
        ("matrix", True, ["a;b"], ";color=a%3Bb"),
        ("simple", False, "Zürich", "Z%C3%BCrich"),
        ("simple", False, False, "false"),
        ("simple", False, 0, "0"),
        ("simple", False, ["a", None, "b"], "a,b"),
    ],
)
def test_in_a_path(style: str | None, explode: bool | None, value: Any, expected: str) -> None:
    assert path_of(call("path", value, style, explode)) == "/x/" + expected


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", False, TEXT, "color=blue"),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("form", True, TEXT, "color=blue"),
        ("form", True, LIST, "color=blue&color=black&color=brown"),
        ("form", True, OBJECT, "R=100&G=200&B=150"),
        ("form", None, LIST, "color=blue&color=black&color=brown"),
        (None, None, OBJECT, "R=100&G=200&B=150"),
        ("spaceDelimited", False, LIST, "color=blue%20black%20brown"),
        ("spaceDelimited", False, OBJECT, "color=R%20100%20G%20200%20B%20150"),
        ("spaceDelimited", None, LIST, "color=blue%20black%20brown"),
        ("spaceDelimited", True, LIST, "color=blue&color=black&color=brown"),
        ("pipeDelimited", False, LIST, "color=blue%7Cblack%7Cbrown"),
        ("pipeDelimited", False, OBJECT, "color=R%7C100%7CG%7C200%7CB%7C150"),
        ("pipeDelimited", None, LIST, "color=blue%7Cblack%7Cbrown"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("deepObject", None, {"a": {"b": [1, {"c": 2}]}}, "color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D%5Bc%5D=2"),
        ("form", True, "", "color="),
        ("form", False, ["", "a"], "color=,a"),
        ("form", True, [""], "color="),
        ("form", True, False, "color=false"),
        ("form", True, True, "color=true"),
        ("form", True, 0, "color=0"),
        ("form", True, 5.0, "color=5"),
        ("form", True, 1e22, "color=1e%2B22"),
        ("form", True, 2**70, "color=1180591620717411303424"),
        ("form", False, ["a,b", "c"], "color=a%2Cb,c"),
        ("form", True, "a&b=c#d+e %", "color=a%26b%3Dc%23d%2Be%20%25"),
        ("form", True, {"a&x": "1"}, "a%26x=1"),
        ("form", True, {"a": {"b": 1}}, "a=%7B%22b%22%3A1%7D"),
        ("form", True, {"a": None, "b": 1}, "b=1"),
    ],
)  # fmt: skip
def test_in_a_query(style: str | None, explode: bool | None, value: Any, expected: str) -> None:
    assert query_of(call("query", value, style, explode)) == expected


@pytest.mark.parametrize(
    ("explode", "value", "expected"),
    [
        (False, TEXT, "blue"),
        (False, LIST, "blue,black,brown"),
        (False, OBJECT, "R,100,G,200,B,150"),
        (True, LIST, "blue,black,brown"),
        (True, OBJECT, "R=100,G=200,B=150"),
        (None, OBJECT, "R,100,G,200,B,150"),
        (None, "a b%20c;d=\"e\"", "a b%20c;d=\"e\""),
        (None, "", ""),
        (None, False, "false"),
    ],
)  # fmt: skip
def test_in_a_header_nothing_is_encoded(explode: bool | None, value: Any, expected: str) -> None:
    assert header(call("header", value, None, explode), "color") == expected


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", False, TEXT, "color=blue"),
        ("form", False, LIST, "color=blue,black,brown"),
        ("form", False, OBJECT, "color=R,100,G,200,B,150"),
        ("form", None, OBJECT, "R=100; G=200; B=150"),
        ("form", None, "a b;c", "color=a%20b%3Bc"),
        ("cookie", False, LIST, "color=blue,black,brown"),
        ("cookie", False, OBJECT, "color=R,100,G,200,B,150"),
        ("cookie", True, LIST, "color=blue; color=black; color=brown"),
        ("cookie", None, OBJECT, "R=100; G=200; B=150"),
        ("cookie", None, "a%20b", "color=a%20b"),
        ("cookie", None, "", "color="),
        ("form", None, False, "color=false"),
    ],
)
def test_in_a_cookie(style: str, explode: bool | None, value: Any, expected: str) -> None:
    assert header(call("cookie", value, style, explode), "cookie") == expected


@pytest.mark.parametrize("value", ["a b", "a;b=c", "a,b", 'a"b', "a\\b", "ü", "a\r\nX: y", ["ok", "a,b"], {"a;b": "c"}])
def test_the_style_cookie_refuses_what_a_cookie_cannot_hold(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="a cookie's"):
        call("cookie", value, "cookie", None if isinstance(value, dict) else False)


@pytest.mark.parametrize(
    ("location", "content", "value", "expected"),
    [
        ("query", "application/json", {"a": [1, None]}, "color=%7B%22a%22%3A%5B1%2Cnull%5D%7D"),
        ("query", "application/json", [], "color=%5B%5D"),
        ("query", "application/json", "x", "color=%22x%22"),
        ("query", "text/plain", "a&b", "color=a%26b"),
        ("path", "application/json", {"a": 1}, "/x/%7B%22a%22%3A1%7D"),
        ("header", "application/json", {"a": "ü😀"}, '{"a":"\\u00fc\\ud83d\\ude00"}'),
        ("cookie", "application/json", {"a": 1}, "color=%7B%22a%22%3A1%7D"),
    ],
)
def test_content_parameters(location: str, content: str, value: Any, expected: str) -> None:
    path = "/x/{color}" if location == "path" else "/x"
    request = sent(tool(one("color", location, content={content: {"schema": True}}), path=path), {"color": value})
    found = {"query": query_of, "path": path_of}.get(
        location, lambda r: header(r, {"header": "color"}.get(location, location))
    )
    assert found(request) == expected
    if location == "header":
        assert json.loads(expected) == value


@pytest.mark.parametrize("value", [{"a": "b"}, ["b"]])
def test_what_no_text_can_say_is_refused_with_a_reason(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="query color: an object or array cannot be written as text/plain"):
        sent(tool(one("color", content={"text/plain": {"schema": True}})), {"color": value})


@pytest.mark.parametrize(
    ("value", "explode", "expected"),
    [
        ("a/b?c:d@e!f$g'h(i)j*k,l=m", None, "color=a/b?c:d@e!f$g'h(i)j*k,l=m"),
        ("a&b=c", None, "color=a%26b=c"),
        ("a#b", None, "color=a%23b"),
        ("a+b c;d[e]|f%", None, "color=a%2Bb%20c%3Bd%5Be%5D%7Cf%25"),
        ("a%2Fb%zz", None, "color=a%2Fb%25zz"),
        (["a,b", "c"], False, "color=a%2Cb,c"),
        ("ü", None, "color=%C3%BC"),
    ],
)
def test_allow_reserved_lets_no_value_add_a_parameter_or_an_item(
    value: Any, explode: bool | None, expected: str
) -> None:
    request = call("query", value, None, explode, allowReserved=True)
    assert query_of(request) == expected
    assert [name for name, _ in parse_qsl(query_of(request), keep_blank_values=True)] == ["color"]


def test_allow_reserved_in_a_path_adds_no_segment_query_or_fragment() -> None:
    request = call("path", "a/b?c#d;e@f:g!h$i&j'k(l)m*n+o,p=q[r]", None, None, allowReserved=True)
    assert path_of(request) == "/x/a%2Fb%3Fc%23d%3Be@f:g!h$i&j'k(l)m*n+o%2Cp%3Dq%5Br%5D"


def test_allow_reserved_in_a_cookie_adds_no_cookie() -> None:
    request = call("cookie", "a,b;c=d", "form", None, allowReserved=True)
    assert header(request, "cookie") == "color=a%2Cb%3Bc=d"


@pytest.mark.parametrize("location", ["query", "header", "cookie"])
@pytest.mark.parametrize("value", [None, [], {}, [None], {"a": None}])
def test_null_and_what_is_empty_is_not_sent_and_the_reader_is_told(location: str, value: Any) -> None:
    request = call(location, value, None, None)
    assert (query_of(request), [name for name, _ in request.headers]) == ("", ["Accept"])
    assert len(request.notes) == 1
    assert request.notes[0].startswith("color is ")
    required = tool(one("color", location, required=True))
    with pytest.raises(ArgumentsError, match=f"/color: it is required in the {location}"):
        sent(required, {"color": value})


@pytest.mark.parametrize(
    ("style", "value", "lost"),
    [
        (None, ["a", None], True),
        (None, {"a": None, "b": 1}, True),
        (None, {"a": [], "b": 1}, False),
        ("deepObject", {"a": [], "b": 1}, True),
        ("deepObject", {"a": {"c": None}, "b": 1}, True),
        ("deepObject", {"a": {"c": ""}, "b": 0}, False),
    ],
)
def test_members_that_are_not_sent_are_told(style: str | None, value: Any, lost: bool) -> None:
    assert [note.startswith("color has members") for note in call("query", value, style, None).notes] == [True] * lost


def test_an_argument_that_is_not_given_is_not_sent_and_nothing_is_said() -> None:
    request = sent(tool(one("a"), one("b", "header"), one("c", "cookie")))
    assert (query_of(request), request.headers, request.notes) == ("", (("Accept", "*/*"),), ())


def test_names_are_sent_as_the_document_writes_them() -> None:
    made = tool(one("$filter"), one("ids[]"), one("a&b"), one("X-Trace", "header"))
    names = {binding.name: binding.argument for binding in made.bindings}
    request = sent(made, {names["$filter"]: "x", names["ids[]"]: [1, 2], names["a&b"]: 1, names["X-Trace"]: "t"})
    assert query_of(request) == "%24filter=x&ids%5B%5D=1&ids%5B%5D=2&a%26b=1"
    assert ("X-Trace", "t") in request.headers


@pytest.mark.parametrize(
    ("content", "value", "expected"),
    [
        ({"application/json": {"schema": True}}, {"a": 1}, "%7B%22a%22%3A1%7D"),
        (
            {"application/x-www-form-urlencoded": {"schema": True}},
            {"a": "b c", "d": [1, 2], "e": None},
            "a=b+c&d=1&d=2",
        ),
        ({"text/plain": {}}, "a=b&c", "a%3Db%26c"),
    ],
)
def test_a_whole_query(content: dict[str, Any], value: Any, expected: str) -> None:
    assert query_of(sent(tool({"name": "q", "in": "querystring", "content": content}), {"q": value})) == expected
    assert unquote(expected)


@pytest.mark.parametrize(
    ("servers", "path", "expected"),
    [
        ([{"url": "https://api.example/v1?tenant=7"}], "/x", "https://api.example/v1/x?tenant=7&a=1"),
        ([{"url": "https://api.example/v1/"}], "/x?b=2&c", "https://api.example/v1/x?b=2&c&a=1"),
        ([{"url": "https://api.example?t=1"}], "/x?b=2", "https://api.example/x?t=1&b=2&a=1"),
    ],
)
def test_constants_in_queries_of_templates_and_servers_are_kept(servers: Any, path: str, expected: str) -> None:
    assert sent(tool(one("a"), path=path, servers=servers), {"a": 1}).url == expected


def test_a_path_value_in_the_query_of_a_template_adds_no_parameter() -> None:
    made = tool(one("id", "path", allowReserved=True), path="/x?ref={id}")
    assert query_of(sent(made, {"id": "a&admin=1+2#f"})) == "ref=a%26admin%3D1%2B2%23f"
