from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OK, document, made

from toolgen.openapi.endpoint import EXPRESSION
from toolgen.tools.siblings import Siblings


def siblings(path: str, *others: str) -> list[str]:
    return list(Siblings([path, *others]).of(path))


@pytest.mark.parametrize(
    ("path", "others", "expected"),
    [
        ("/users/{id}", ["/users/me"], ["/users/me"]),
        ("/users/{id}", ["/users/me", "/users", "/users/", "/admins/me"], ["/users/me"]),
        ("/users/{id}", ["/users/me/", "/users/{id}/"], ["/users/me/"]),
        ("/users/{id}/", ["/users/me", "/users/{id}"], ["/users/me"]),
        ("/users/me", ["/users/{id}"], []),
        ("/users/{id}", ["/users/{name}"], []),
        ("/users/{id}/posts", ["/users/me/posts", "/users/me"], ["/users/me/posts"]),
        ("/users/{id}/posts", ["/users/{id}/{what}"], []),
        ("/a/{x}/{y}", ["/a/b/{y}", "/a/{x}/c", "/a/b/c", "/{z}/b/c"], ["/a/b/c", "/a/b/{y}", "/a/{x}/c", "/{z}/b/c"]),
        ("/{x}", ["/a", "/b"], ["/a", "/b"]),
        ("/a", ["/b"], []),
    ],
)
def test_a_template_knows_the_paths_that_are_more_exact(path: str, others: list[str], expected: list[str]) -> None:
    assert siblings(path, *others) == sorted(expected)


@pytest.mark.parametrize(
    ("path", "others", "expected"),
    [
        ("/files/{name}", ["/files/{name}.json", "/files/all.json"], ["/files/all.json", "/files/{name}.json"]),
        (
            "/files/{name}.json",
            ["/files/all.json", "/files/all.xml", "/files/.json", "/files/{name}"],
            ["/files/all.json"],
        ),
        ("/{a}-{b}", ["/x-y", "/x-", "/-y", "/xy", "/--", "/---"], ["/---", "/x-y"]),
        ("/v1/{name}:run", ["/v1/all:run", "/v1/all:stop", "/v1/:run"], ["/v1/all:run"]),
        ("/users('{id}')", ["/users('me')", "/users('')", "/users(me)"], ["/users('me')"]),
        ("/{a}{b}", ["/x", "/xy", "/{c}"], ["/xy"]),
        ("/a{x}b{y}c", ["/a1b2c", "/abc", "/a1bc", "/a1b1b1c"], ["/a1b1b1c", "/a1b2c"]),
        ("/pre{x}", ["/prefix", "/prf", "/pre"], ["/prefix"]),
        ("/pre{x}fix", ["/prefix", "/pre-fix", "/prefixes", "/pre"], ["/pre-fix"]),
    ],
)
def test_expressions_within_a_segment_need_at_least_one_character(
    path: str, others: list[str], expected: list[str]
) -> None:
    assert siblings(path, *others) == sorted(expected)


@pytest.mark.parametrize(
    ("path", "others", "longer"),
    [
        ("/users/{id}", ["/users/{id}/posts", "/users/{id}/posts/{post}", "/teams/a/b/c"], "/users/{id}/posts/{post}"),
        ("/users/{id}", ["/users", "/teams/{id}/posts", "/"], None),
        ("/users/{id}/posts", ["/users/{id}/friends/{f}/posts"], "/users/{id}/friends/{f}/posts"),
        ("/users/{id}/posts", ["/users/{id}/friends/{f}"], "/users/{id}/friends/{f}"),
        ("/users/{id}/posts", ["/users/{id}/friends/all", "/users/{id}/posts/"], None),
        ("/a/{x}/b/{y}", ["/a/{x}/b/{y}/c", "/a/{x}/c/{y}/d/e"], "/a/{x}/b/{y}/c"),
        ("/a/{x}/b/{y}", ["/a/{x}/c/{y}/d"], "/a/{x}/c/{y}/d"),
        ("/a/b", ["/a/b/c"], None),
    ],
)
def test_of_the_paths_that_a_slash_would_reach_one_is_kept(path: str, others: list[str], longer: str | None) -> None:
    assert siblings(path, *others) == ([longer] if longer else [])


def test_siblings_are_kept_with_the_tool_also_those_that_were_filtered_out() -> None:
    paths: dict[str, Any] = {p: {"get": {"responses": OK}} for p in ("/users/{id}", "/users/me", "/users/all")}
    (tool,) = made(document(paths), include=["GET /users/{id}"]).tools
    assert tool.request.siblings == ("/users/all", "/users/me")


def test_a_sibling_has_whatever_methods_and_its_operations_may_be_broken() -> None:
    paths = {"/users/{id}": {"get": {"responses": OK}}, "/users/me": {"delete": 5}, "/users/x": None, "/users/y": {}}
    (tool,) = made(document(paths)).tools
    assert tool.request.siblings == ("/users/me", "/users/x", "/users/y")


def test_siblings_are_normalised_as_endpoints_are() -> None:
    paths = {"//users/{id}": {"get": {"responses": OK}}, "users/m%65?x=1": {}, "/a/../b": {}}
    assert [tool.request.siblings for tool in made(document(paths)).tools] == [("/users/me",)]


def test_literal_paths_have_no_siblings() -> None:
    paths: dict[str, Any] = {p: {"get": {"responses": OK}} for p in ("/users/me", "/users/{id}")}
    literal, template = made(document(paths)).tools
    assert (literal.request.siblings, template.request.siblings) == ((), ("/users/me",))


segments = st.sampled_from(
    ["a", "b", "ab", "a.b", "{x}", "{y}", "a{x}", "{x}b", "a{x}b", "a{x}.{y}b", "a.b.b", "{x}.{y}", "{x}{y}"]
)
paths = st.lists(st.lists(segments, min_size=1, max_size=3).map(lambda found: "/" + "/".join(found)), unique=True)


def spells(template: str, path: str) -> bool:
    """By trying: whether a template's segments can have the characters of a path's (its expressions as `x`)."""

    def segment(own: str, text: str) -> bool:
        if not own:
            return not text
        if own[0] == "{":
            rest = own.partition("}")[2]
            return any(segment(rest, text[used:]) for used in range(1, len(text) + 1))
        return text[:1] == own[0] and segment(own[1:], text[1:])

    own, other = template.split("/"), path.replace("{x}", "{}").replace("{y}", "{}").split("/")
    if len(own) != len(other):
        return False
    alike = template.replace("{x}", "{}").replace("{y}", "{}").split("/")
    fits = all(
        mine == theirs or theirs == "{}" or (("{" in mine) and segment(raw, theirs.replace("{}", "x")))
        for mine, raw, theirs in zip(alike, own, other, strict=True)
    )
    steered = any("{" in mine and theirs not in (mine, "{}") for mine, theirs in zip(alike, other, strict=True))
    return fits and steered


@given(paths)
def test_the_siblings_are_those_that_trying_every_pair_finds(found: list[str]) -> None:
    known = Siblings(found)
    for path in found:
        alike = [other for other in known.of(path) if other.count("/") == path.count("/")]
        assert alike == sorted(other for other in found if spells(path, other))


@given(paths)
def test_a_path_that_a_slash_would_reach_is_never_left_without_one_that_stands_for_it(found: list[str]) -> None:
    known = Siblings(found)
    for path in found:
        spanning = "".join(".+" if piece.startswith("{") else re.escape(piece) for piece in EXPRESSION.split(path))
        reached = [
            p for p in found if p.count("/") > path.count("/") and re.fullmatch(spanning, EXPRESSION.sub("x", p))
        ]
        assert not reached or any(other.count("/") > path.count("/") for other in known.of(path))


def test_many_expressions_in_one_segment_take_no_longer_than_few() -> None:
    path = "/" + "".join(f"{{p{n}}}" for n in range(40)) + "Z"
    assert siblings(path, "/" + "x" * 5000, "/" + "x" * 5000 + "Z") == ["/" + "x" * 5000 + "Z"]


def lines_run(paths: list[str]) -> int:
    """How many lines of the module are run to find the siblings of all paths: work that no clock disturbs."""
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.endswith("siblings.py"):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        known = Siblings(paths)
        for path in paths:
            known.of(path)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "shapes",
    [
        ("/{{t}}/r{}", "/s{}/x"),
        ("/{{t}}a{}", "/s{0}a{0}"),
        ("/x{}y{{t}}", "/x{}ys"),
        ("/a{}/{{x}}", "/a{}/me"),
        ("/a{}/{{x}}/b", "/{{x}}/me/b{}"),
    ],
)
def test_the_work_grows_with_the_paths_and_no_faster(shapes: tuple[str, ...]) -> None:
    few, many = ([shape.format(n) for n in range(count) for shape in shapes] for count in (100, 800))
    assert lines_run(many) < 12 * lines_run(few)
