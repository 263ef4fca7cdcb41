"""A pattern exists exactly where some address matches it: the grammars of paths and names, from both sides."""

from __future__ import annotations

from itertools import product

import pytest
from glob_oracle import NASTY_PATHS, NORMAL_PATHS, PIECES, glob_matches, is_normal, starred
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgen.policy.address import EndpointAddress, is_tool_name
from toolgen.policy.patterns import Pattern
from toolgen.policy.possible import impossible_in_name, impossible_in_path

# What a `*` may have to stand for, whatever is on its left and right: first out of a `%xx`, an expression or
# a segment, then into one.
_OUT = ["", "a", "}", "a}", "/a", "20", *"01AB"]
_INTO = ["", "/", "/.", "/..", "{", "{a", "{a/", "%", *(f"%{digit:X}" for digit in range(16))]
FILLINGS = [out + into for out in _OUT for into in _INTO]

near_normal = NORMAL_PATHS.flatmap(
    lambda path: st.tuples(st.integers(0, len(path)), st.integers(0, 2), st.sampled_from(["", *PIECES])).map(
        lambda change: path[: change[0]] + change[2] + path[change[0] + change[1] :]
    )
)
literal_paths = (NASTY_PATHS | NORMAL_PATHS | near_normal).filter(lambda path: "*" not in path)


def with_stars(count: int) -> st.SearchStrategy[str]:
    """Patterns of so many stars with up to three nasty pieces before, between and behind them."""
    between = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
    return st.tuples(st.sampled_from(["/", "/", ""]), *[between] * (count + 1)).map(lambda p: p[0] + "*".join(p[1:]))


def witnesses(pattern: str) -> bool:
    """Whether some normal path matches the pattern, found by trying what each `*` may stand for."""
    first, *rest = pattern.split("*")
    return any(
        is_normal(first + "".join(filling + piece for filling, piece in zip(fillings, rest, strict=True)))
        for fillings in product(FILLINGS, repeat=len(rest))
    )


@settings(max_examples=2000)
@given(literal_paths)
def test_a_literal_path_is_possible_exactly_where_an_endpoint_has_it(path: str) -> None:
    assert (impossible_in_path(path) is None) == is_normal(path)


@settings(max_examples=1500)
@given(NORMAL_PATHS.flatmap(starred))
def test_a_pattern_that_matches_a_normal_path_is_possible(pattern: str) -> None:
    assert impossible_in_path(pattern) is None


@settings(max_examples=1000)
@given(with_stars(1))
def test_a_path_with_one_star_is_possible_exactly_where_something_can_stand_for_it(pattern: str) -> None:
    assert (impossible_in_path(pattern) is None) == witnesses(pattern)


@settings(max_examples=300)
@given(with_stars(2))
def test_a_possible_path_with_two_stars_has_a_path_that_matches(pattern: str) -> None:
    assert impossible_in_path(pattern) is not None or witnesses(pattern)


@settings(max_examples=1000)
@given(NASTY_PATHS.flatmap(starred) | near_normal)
def test_the_fault_is_at_the_first_character_that_no_path_has_there(pattern: str) -> None:
    offset = impossible_in_path(pattern)
    if offset is None:
        return
    assert impossible_in_path(pattern[:offset] + "*") is None
    if "{" not in pattern and "*" not in pattern:
        assert impossible_in_path(pattern[: offset + 1] + "*") is not None or offset == len(pattern)


@pytest.mark.parametrize(
    ("path", "offset"),
    [
        ("", 0),
        ("a", 0),
        ("//a", 1),
        ("/a//b", 3),
        ("/./a", 2),
        ("/a/..", 5),
        ("/a/../b", 5),
        ("/*/../b", 5),
        ("/a?b", 2),
        ("/a*?b", 3),
        ("*#b", 1),
        ("/{a", 1),
        ("/{a}{b/c", 4),
        ("/{}", 2),
        ("/{a{b}", 3),
        ("/a}", 2),
        ("/%", 2),
        ("/%2", 3),
        ("/%41", 3),
        ("/%c3", 2),
        ("/%2F", 3),
        ("/a b", 2),
        ("/{\ud800}", 2),
    ],
)
def test_where_a_path_stops_being_one(path: str, offset: int) -> None:
    assert impossible_in_path(path) == offset


@pytest.mark.parametrize(
    "path", ["/a*?b}", "/%*F", "/%2*", "*", "**", "/{*", "/*}", "/{a*b}", "*/", "*/../b}", "/.*", "/..*", "*.", "*{a}"]
)
def test_a_star_stands_for_whatever_makes_a_path(path: str) -> None:
    assert impossible_in_path(path) is None
    assert witnesses(path)


@pytest.mark.parametrize(
    "path", ["*{", "%*", "/*//b", "/*%41", "/*%2F", "/*\\", "*{}", "/*}{", "*/.", "*/..", "/a*b/./"]
)
def test_a_star_cannot_mend_what_no_path_has(path: str) -> None:
    assert impossible_in_path(path) is not None
    assert not witnesses(path)


@settings(max_examples=1000)
@given(NORMAL_PATHS, st.sampled_from(["get", "post", "query"]))
def test_every_path_of_an_endpoint_is_its_own_pattern(path: str, method: str) -> None:
    pattern = Pattern(f"http.{method}:{path}")
    assert pattern.matches(EndpointAddress("http", method, path))


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a/",
        "/a/~b",
        "/users('{id}')",
        "/Products(Name='{name}',Size={size})/Rating",
        "/v1/{name=projects/*}:run",
        "/v1/{+resource}",
        "/me/drive/root:/{path}:/content",
        "/a%20b;v=1,2/@me/$count/100%25",
        "/.well-known/a...b",
        "/{a\nb}",
        "/" + "a" * 245,
    ],
)
def test_what_documents_write_into_paths_can_be_written_in_patterns(path: str) -> None:
    assert is_normal(path)
    assert Pattern(f"http.post:{path}").matches(EndpointAddress("http", "post", path))


@settings(max_examples=500)
@given(st.text(st.sampled_from("aZ0_.-*/: \n[?é"), max_size=6) | st.sampled_from(["a" * 128, "a" * 129, "*" * 300]))
def test_a_name_is_possible_exactly_where_a_tool_can_bear_it(pattern: str) -> None:
    nothing = pattern.replace("*", "")
    possible = is_tool_name(nothing or "a") and pattern != ""
    assert (impossible_in_name(pattern) is None) == possible
    assert not possible or glob_matches(pattern, nothing or "a" * ("*" in pattern))


def test_a_name_too_long_fails_at_its_first_character_too_many() -> None:
    assert impossible_in_name("a" * 128 + "*") is None
    assert impossible_in_name("a*" * 129) == 256
    assert impossible_in_name("ab/") == 2


def test_every_capital_may_stand_in_braces_and_only_these_close_them() -> None:
    assert impossible_in_path("/pets/{ABCDEFGHIJKLMNOPQRSTUVWXYZ}") is None
    assert impossible_in_path("/pets/{petX/y}/z") is None
    assert impossible_in_path("/pets/{a}}") == len("/pets/{a}")


def test_nothing_is_no_name_from_its_beginning_on() -> None:
    assert impossible_in_name("") == impossible_in_name("/") == 0
