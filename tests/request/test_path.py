"""Path values stay where they are: one segment each, of the operation that was classified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_documents import OK, document, made
from small_requests import SERVER, edited, one, path_of, sent, tool

from toolgen.errors import ArgumentsError
from toolgen.tools.model import Tool

PATHS = [
    "/users",
    "/users/{id}",
    "/users/me",
    "/users/{id}/posts",
    "/users/{id}/posts/{post}",
    "/users/admin/posts",
    "/files/{name}.{ext}",
    "/files/all.zip",
    "/files/raw-{name}.txt",
    "/calc/{a}-{b}/{c}",
    "/calc/sum-all/{c}",
    "/.well/{x}",
    "/.well/.x{x}",
    "/label/{label}",
    "/label/.all",
    "/matrix/{matrix}",
    "/slashed//{id}",
    "/slashed/top",
    "/dir/{id}/",
    "/dir/index",
    "/notes/{note}",
    "/notes/all/",
    "/contents/{path}",
    "/teams/{team}/members/{member}",
    "/teams/{team}/admins/{admin}/revoke",
    "/odata('{id}')",
    "/odata('all')",
    "/v1/{name}:run",
    "/v1/any:run",
]
STYLES = {"label": {"style": "label"}, "matrix": {"style": "matrix"}}


def operation(path: str) -> dict[str, Any]:
    names = dict.fromkeys(re.findall(r"\{([^{}]+)\}", path))
    parameters = [one(name, "path", {"type": ["string", "array"]}, **STYLES.get(name, {})) for name in names]
    return {"get": {"parameters": parameters, "responses": OK}}


TOOLS = {
    (made_tool.request.template or made_tool.endpoint.path): made_tool
    for made_tool in made(document({path: operation(path) for path in PATHS}, servers=[{"url": SERVER}])).tools
}


def steered(template: str, **values: Any) -> str:
    """The path that is sent, or why none is."""
    try:
        return path_of(sent(TOOLS[template], values))
    except ArgumentsError as error:
        return f"refused: {error.problems[0].message}"


@pytest.mark.parametrize(
    "value",
    [
        "", " ", ".", "..", ". ", "..;", ";x", "../x", "a/../b", "a/..", "./a", "/a", "a/", "a//b", "..\\x", "\\", "a\\..",
        "%2e%2e", "%2E", "a%2fb", "a%5Cb", "%252e%252e", "a%252Fb", "%25252e", "..%2f", "..%3b", "a%00b", "a\0b",
        "%c0%ae%c0%ae", "%c0%af", "%e0%80%af", "%u002e", "\uff0e\uff0e", "\u2025", "a\u2215..", "a\uff0f\uff0e", "...",
        ["a", ""], ["a", ".."], ["a%2fb"],
    ],
)  # fmt: skip
def test_a_value_that_leads_elsewhere_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentsError) as caught:
        sent(TOOLS["/contents/{path}"], {"path": value})
    assert [problem.where for problem in caught.value.problems] == ["/path"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a/b c?d#e", "a%2Fb%20c%3Fd%23e"),
        ("src/main.py", "src%2Fmain.py"),
        ("50%", "50%25"),
        ("100%25", "100%2525"),
        ("a;b", "a%3Bb"),
        ("a\r\nX: y", "a%0D%0AX%3A%20y"),
        (".hidden", ".hidden"),
        ("a..b", "a..b"),
        ("東京／大阪", "%E6%9D%B1%E4%BA%AC%EF%BC%8F%E5%A4%A7%E9%98%AA"),
        ("{path}", "%7Bpath%7D"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_other_values_are_one_segment(value: str, expected: str) -> None:
    assert steered("/contents/{path}", path=value) == "/contents/" + expected
    assert unquote(expected) == value


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("/users/{id}", {"id": "me"}),
        ("/users/{id}", {"id": "ME"}),
        ("/users/{id}", {"id": "me;v=1"}),
        ("/users/{id}", {"id": "me.json"}),
        ("/users/{id}", {"id": "me.json;x"}),
        ("/users/{id}", {"id": "m%65"}),
        ("/users/{id}", {"id": "m%2565"}),
        ("/users/{id}", {"id": "me "}),
        ("/users/{id}", {"id": "me."}),
        ("/users/{id}", {"id": "me?x"}),
        ("/users/{id}", {"id": "me#x"}),
        ("/users/{id}", {"id": "\uff4d\uff45"}),
        ("/users/{id}/posts", {"id": "admin"}),
        ("/files/{name}.{ext}", {"name": "all", "ext": "zip"}),
        ("/files/{name}.{ext}", {"name": "raw-x", "ext": "txt"}),
        ("/calc/{a}-{b}/{c}", {"a": "sum", "b": "all", "c": "1"}),
        ("/.well/{x}", {"x": ".xy"}),
        ("/label/{label}", {"label": "all"}),
        ("/slashed//{id}", {"id": "top"}),
        ("/dir/{id}/", {"id": "index"}),
        ("/notes/{note}", {"note": "all"}),
        ("/odata('{id}')", {"id": "all"}),
        ("/v1/{name}:run", {"name": "any"}),
    ],
)
def test_a_value_that_spells_a_sibling_is_refused(template: str, values: dict[str, str]) -> None:
    assert steered(template, **values) == "refused: a value of the path leads to another operation of this API"


@pytest.mark.parametrize(
    ("template", "values", "wins"),
    [
        ("/users/{id}", {"id": "7/posts"}, False),
        ("/users/{id}", {"id": "7\\posts"}, False),
        ("/users/{id}", {"id": "7\u2215posts"}, False),
        ("/users/{id}/posts", {"id": "7/x"}, False),
        ("/teams/{team}/members/{member}", {"team": "1/admins/2", "member": "revoke"}, False),
        ("/teams/{team}/members/{member}", {"team": "1", "member": "2/revoke"}, True),
        ("/contents/{path}", {"path": "src/main.py"}, True),
    ],
)
def test_a_slash_is_refused_where_a_longer_path_could_be_reached(template: str, values: Any, wins: bool) -> None:
    assert steered(template, **values).startswith("refused: ") is not wins


def test_siblings_that_were_filtered_out_count_and_so_do_longer_paths() -> None:
    paths = {path: operation(path) for path in ("/a/{id}", "/a/all", "/a/{id}/purge")}
    (kept,) = made(document(paths, servers=[{"url": SERVER}]), include=["GET /a/{id}"]).tools
    for value in ("all", "1/purge"):
        with pytest.raises(ArgumentsError):
            sent(kept, {"id": value})
    assert path_of(sent(kept, {"id": "1"})) == "/a/1"


@pytest.mark.parametrize(
    ("template", "values"),
    [("/files/{name}.{ext}", {"name": "a.b", "ext": "c"}), ("/calc/{a}-{b}/{c}", {"a": "1-2", "b": "3", "c": "4"})],
)
def test_values_that_could_be_told_apart_in_two_ways_are_refused(template: str, values: dict[str, str]) -> None:
    assert "separates it from another value" in steered(template, **values)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"a": None, "b": "x"}, ["/a: it is required in the path, and null, which is not sent at all"]),
        ({"a": [], "b": ".."}, ["/a: it is required in the path, and empty", "/b: the value for {b} of the path has"]),
    ],
)
def test_every_fault_of_a_path_is_told_at_once(arguments: dict[str, Any], said: list[str]) -> None:
    made_tool = tool(one("a", "path"), one("b", "path"), path="/p/{a}/{b}")
    with pytest.raises(ArgumentsError) as caught:
        sent(made_tool, arguments)
    assert len(caught.value.problems) == len(said)
    for problem, expected in zip(caught.value.problems, said, strict=True):
        assert str(problem).startswith(expected)


def test_a_value_that_is_missing_is_told_beside_the_fault_of_another() -> None:
    made_tool = edited(tool(one("a", "path"), one("b", "path"), one("q"), path="/p/{a}/{b}"), query=[],
                       path=[("a", "{{ a }}"), ("b", "{{ b }}{{ q }}")])  # fmt: skip
    with pytest.raises(ArgumentsError, match=r"the path needs a value for \{b\}") as caught:
        sent(made_tool, {"a": "..", "b": "x"})
    assert len(caught.value.problems) == 2


def test_a_path_without_expressions_is_sent_as_it_is() -> None:
    assert sent(tool(path="/a%20b/(c)")).url == f"{SERVER}/a%20b/(c)"


# The judge: how lenient servers read a path, and which operation of the document they find then.

SHAPES = {
    path: re.compile(re.sub(r"\\\{[^{}]+\\\}", "[^/]+", re.escape(path.rstrip("/"))), re.DOTALL) for path in PATHS
}


def readings(path: str, matrix: bool) -> Iterator[str]:
    """What a server may take a path for: decoded up to three times, dots resolved, parameters cut off, case folded."""
    for _ in range(4):
        for text in (path, path.replace("\\", "/")):
            for read in (text,) if matrix else (text, "/".join(s.partition(";")[0] for s in text.split("/"))):
                yield resolved(read)
                yield resolved(read).casefold()
        path = unquote(path)


def resolved(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            kept = kept[:-1]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept)


def literal(template: str) -> int:
    """How exact a template is."""
    return len(re.sub(r"\{[^{}]+\}", "", template))


def found(path: str) -> set[str]:
    """The operations a path could be of: the most exact ones."""
    fitting = {template for template in PATHS if SHAPES[template].fullmatch(path.replace("//", "/")) or
               re.fullmatch(SHAPES[template].pattern.replace("//", "/"), path, re.DOTALL)}  # fmt: skip
    exact = {template for template in fitting if "{" not in template}
    return exact or fitting


PIECES = st.sampled_from(
    ["..", ".", "/", "\\", ";", "%2e", "%2F", "%252e", "%252f", "%25252E", "%5c", "%00", "\0", "\r\n", "?", "#", "%", "&", "=",
     "a", "me", "admin", "posts", "all", "zip", "json", "-", "+", " ", ":", "run", "x", "\uff0e", "\u2215", "\uff0f", "é",
     "0", "revoke", "admins", "index", "top", "'", ")", "", "L" * 300]
)  # fmt: skip
VALUES = st.lists(PIECES, min_size=1, max_size=5).map("".join) | st.text(max_size=6)


@settings(max_examples=300)
@given(st.sampled_from([path for path in TOOLS if "{" in path]), st.data())
def test_whatever_a_server_makes_of_a_path_it_is_no_other_operation(template: str, data: st.DataObject) -> None:
    used: Tool = TOOLS[template]
    values = {leaf.name: data.draw(VALUES, leaf.name) for leaf in used.request.path}
    try:
        path = path_of(sent(used, values))
    except ArgumentsError:
        return
    expected = template
    for name, value in values.items():
        encoded = quote(value, safe="")
        start = {"label": ".", "matrix": f";{name}="}.get(name, "")
        expected = expected.replace("{" + name + "}", start + encoded)
    assert path == expected  # the same template, the same values
    for read in readings(path, name == "matrix"):
        fitting = found(read)
        assert not fitting or template in fitting, (path, read, fitting)
        assert all(literal(other) <= literal(template) for other in fitting), (path, read, fitting)


def test_the_judge_sees_what_a_careless_client_would_send() -> None:
    for template, path in (
        ("/users/{id}", "/users/x%2F..%2Fme"),
        ("/users/{id}", "/users/7%2Fposts"),
        ("/users/{id}", "/users/ME"),
        ("/users/{id}/posts", "/users/%2E%2E/posts"),
        ("/users/{id}", "/users/me;a"),
    ):
        assert any(template not in found(read) for read in readings(path, False)), path
