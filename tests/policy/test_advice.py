"""What a text that is no pattern is told: the character at fault, and the nearest text that is one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from glob_oracle import PIECES
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgen.errors import PatternError, Problem
from toolgen.policy.advice import edits
from toolgen.policy.patterns import Pattern

WORDS: dict[str, Any] = {"sources": ["petstore"], "servers": ["github"], "methods": ["COPY"]}


def problem_of(text: str, **words: Any) -> Problem:
    with pytest.raises(PatternError) as caught:
        Pattern(text, **(words or WORDS))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "near"),
    [
        # the source
        ("mpc:read_*", "mcp:read_*"),
        ("htp:x", "http:x"),
        ("Http:x", "http:x"),
        ("HTTP:x", "http:x"),
        ("recal:x", "recall:x"),
        ("momory:x", "memory:x"),
        ("dynamik:x", "dynamic:x"),
        ("a2:x", "a2a:x"),
        ("dnamik:x", "dynamic:x"),
        ("dnamk:x", ""),  # three edits are a guess
        ("petstor:x", "petstore:x"),
        ("gihtub:x", "github:x"),
        ("mpc*:read_x", "mcp*:read_x"),
        ("htp.post:/x", "http.post:/x"),
        (":foo", "*:foo"),
        ("elsewhere:x", ""),
        ("x:y", ""),
        # the method
        ("http.POST:/x", "http.post:/x"),
        ("HTTP.POST:/x", "http.post:/x"),
        ("http.pots:/x", "http.post:/x"),
        ("http.delte:/x", "http.delete:/x"),
        ("petstore.copi:/x", "petstore.copy:/x"),
        ("http.pots*:foo", "http.post*:/foo"),
        ("h*.pots:*", "h*.post:*"),
        ("*.pots:/x", "*.post:/x"),
        ("http.:x", "http:x"),
        ("http.:/x", "http.*:/x"),
        ("mcp.post:*", "mcp:*"),
        ("github.get:x", "github:x"),
        ("http.subscribe:/x", ""),
        # the colon
        ("http", "http:*"),
        ("petstore", "petstore:*"),
        ("http.post", "http.post:*"),
        ("mcp:", "mcp:*"),
        ("http.*:", "http.*:*"),
        ("/agents", "http.*:/agents"),
        ("http.post/agents", "http.post:/agents"),
        ("http/post:/agents", "http.post:/agents"),
        ("http:/agents", "http.*:/agents"),
        ("petstore:/pets", "petstore.*:/pets"),
        ("mcp:/x", "mcp:x"),
        ("mcp*:/x", "mcp*:x"),
        ("a2a*:/x", "a2a*:x"),
        ("http:http.post:/x", "http.post:/x"),
        ("mcp:a:b", ""),
        # the path
        ("http.post:agents", "http.post:/agents"),
        ("http.post:{id}", "http.post:/{id}"),
        ("http.post://a", "http.post:/a"),
        ("http.post:/a//b", "http.post:/a/b"),
        ("http.post:/{a//b}", "http.post:/{a/b}"),
        ("http.post:/./a", "http.post:/a"),
        ("http.post:/a/../b", "http.post:/b"),
        ("http.post:/a/./../b", "http.post:/b"),
        ("http.post:/../../a", "http.post:/a"),
        ("http.post:/..", "http.post:/"),
        ("http.post:/a?x=1", "http.post:/a"),
        ("http.post:/a#b", "http.post:/a"),
        ("http.post:/a b", "http.post:/a%20b"),
        ("http.post:/é", "http.post:/%C3%A9"),
        ("http.post:/%41%c3", "http.post:/A%C3"),
        ("http.post:/100%", "http.post:/100%25"),
        ("http.post:/{id", "http.post:/{id}"),
        ("http.post:/{id/x", "http.post:/{id}/x"),
        ("http.post:/{id/{x}", "http.post:/{id}/{x}"),
        ("http.post:/a}", "http.post:/a%7D"),
        ("http.post:/a\nb", "http.post:/a%0Ab"),
        ("http.post:/a%2Fb", ""),
        ("http.post:/a\\b", ""),
        # other ways to name an endpoint, and what was copied with it
        ("POST /pets", "http.post:/pets"),
        ("* /pets", "http.*:/pets"),
        ("delete pets/{id}", "http.delete:/pets/{id}"),
        ("https://h.test/pets?x=1", "http.*:/pets"),
        ("http.post:https://h.test/pets", "http.post:/pets"),
        (" mcp:read_x\n", "mcp:read_x"),
        ("read x", ""),
        ("", ""),
        ("a" * 257, ""),
    ],
)
def test_the_nearest_pattern_is_proposed(text: str, near: str) -> None:
    problem = problem_of(text)
    assert problem.suggestion == near
    assert near == "" or problem.hint == f"write {near}"


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("mpc:x", 1, "no source is called 'mpc'"),
        ("Http:x", 0, "no source is called 'Http'"),
        ("recal:x", 5, "no source is called 'recal'"),
        (":x", 0, "nothing stands before the colon"),
        ("mcp:", 4, "nothing stands behind the colon"),
        ("http.pots:/x", 7, "no tool has the method 'pots'"),
        ("*.pots:/x", 4, "no tool has the method 'pots'"),
        ("http.:/x", 5, "no tool has the method ''"),
        ("mcp.post:*", 3, "tools of the source 'mcp' have no endpoint, so that it takes no method"),
        ("github.post:*", 6, "tools of the source 'github' have no endpoint, so that it takes no method"),
        ("mcp*:/x", 5, "tools of the source 'mcp*' have no endpoint, so that it takes no path"),
        ("http:/x", 4, "the method before the path is missing"),
        ("htp.get:/x", 2, "no source that has endpoints is called 'htp'"),
        ("http", 4, "http is a source: the colon behind it is missing"),
        ("http.post", 9, "http.post is a source with a method: the colon behind it is missing"),
        ("/agents", 0, "no tool's name has '/'"),
        ("http.post/x", 9, "no tool's name has '/'"),
        ("mcp:a:b", 5, "no tool's name has ':'"),
        ("http.post:agents", 10, "a path starts with /"),
        ("http.post:/a//b", 13, "runs of / count as one in the path of an endpoint"),
        ("http.post:/a/../b", 15, "a path has no . or .. segment"),
        ("http.post:/*/./b", 14, "a path has no . or .. segment"),
        ("http.post:/a/..", 15, "a path has no . or .. segment"),
        ("http.post:/a*?x", 13, "the path of an endpoint has no query"),
        ("http.post:/a#x", 12, "the path of an endpoint has no fragment"),
        ("http.post:/{a", 11, "braces stand in pairs around a name"),
        ("http.post:/a}", 12, "braces stand in pairs around a name"),
        ("http.post:/a\\b", 12, "no path of an endpoint has a backslash, NUL or an encoded slash"),
        ("http.post:/a%2fb", 14, "no path of an endpoint has a backslash, NUL or an encoded slash"),
        ("http.post:/%c3", 12, "this is not encoded as in the path of an endpoint"),
        ("http.post:/%41", 13, "this is not encoded as in the path of an endpoint"),
        ("http.post:/%2", 13, "no path of an endpoint ends like this"),
        ("http.post:/a b", 12, "' ' stands percent-encoded in the path of an endpoint"),
        ("http.post:/[", 11, "'[' stands percent-encoded in the path of an endpoint"),
    ],
)
def test_the_caret_stands_under_the_character_at_fault(text: str, at: int, message: str) -> None:
    problem = problem_of(text)
    assert (problem.message, problem.excerpt, problem.caret) == (message, text, at)
    assert str(problem).endswith(f"\n      {text}\n      {' ' * at}^")


@pytest.mark.parametrize(
    ("text", "excerpt", "under"),
    [
        ("http.post:/a\nb", "http.post:/a\\nb", "\\nb"),
        ("\thttp.post:/{a\nb}?", "\\thttp.post:/{a\\nb}?", "\\thttp"),
        ("http.post:/{a\tb}/\u200b", "http.post:/{a\\tb}/\\u200b", "\\u200b"),
        ("http.post:/{\ud800}?", "http.post:/{\\ud800}?", "\\ud800"),
        ("http.post:/{\U000e0041}?", "http.post:/{\\U000e0041}?", "?"),
        ("a" * 128 + "bcd" + "e" * 100, "..." + "a" * 60 + "bcd" + "e" * 57 + "...", "bcd"),
        ("http.get:/" + "a" * 105 + "?x=12", "http.get:/" + "a" * 105 + "?x=12", "?x=12"),
        ("http.get:/" + "a" * 110 + "?x", "..." + "a" * 60 + "?x", "?x"),
        ("a/" + "b" * 119, "a/" + "b" * 118 + "...", "/b"),
        ("http.get:/{" + "\n" * 120 + "}?", "..." + "\\n" * 59 + "}?", "?"),
        ("a" * 256 + "b" * 300, "..." + "a" * 60 + "b" * 60 + "...", "b"),
    ],
)
def test_hidden_characters_are_shown_and_long_texts_cut_around_the_caret(text: str, excerpt: str, under: str) -> None:
    problem = problem_of(text)
    assert problem.excerpt == excerpt
    assert problem.caret is not None
    assert problem.excerpt[problem.caret :].startswith(under)
    assert problem.excerpt.isprintable()
    assert problem.message.isprintable()
    assert problem.hint.isprintable()


def test_half_of_a_surrogate_pair_is_not_said_to_stand_encoded_somewhere() -> None:
    assert {problem_of(text).message for text in ("http.post:/\ud800", "http.post:/{\udfff}")} == {
        "half of a surrogate pair is no character"
    }


def test_what_is_blank_has_no_place_for_a_caret() -> None:
    assert problem_of("  ").to_dict() == {
        "message": "the pattern is empty",
        "hint": "leave it out, or write * for every tool",
    }


def test_without_a_near_pattern_the_hint_lists_what_is_known() -> None:
    assert problem_of("elsewhere:x").hint.startswith(
        "known are a2a, builtin, dynamic, http, mcp, memory, recall, github"
    )
    assert problem_of("elsewhere.get:/x").hint == "known are http, petstore; APIs are named under apis"
    assert problem_of("http.subscribe:/x").hint.startswith("known are get, put, post,")
    many = [f"api-{number}" for number in range(40)]
    assert ", ...; " in problem_of("elsewhere:x", sources=many).hint


def test_only_sources_in_play_are_proposed() -> None:
    assert problem_of("petstor:x").suggestion == "petstore:x"
    assert problem_of("petstor:x", sources=["other"]).suggestion == ""
    assert problem_of("petstor.get:/x", servers=["petstore"]).suggestion == ""


_TEXTS = st.lists(
    st.sampled_from(
        [
            "http",
            "htp",
            "petstore",
            "github",
            "mcp",
            ".",
            ":",
            ":",
            "post",
            "POST",
            "pots",
            "*",
            "x",
            "https://h",
            *PIECES,
        ]
    ),
    max_size=7,
).map("".join)


@settings(max_examples=1000)
@given(_TEXTS | st.text(max_size=12) | _TEXTS.map(lambda text: text * 40))
def test_a_problem_is_complete_and_its_suggestion_is_a_pattern(text: str) -> None:
    try:
        assert Pattern(text, **WORDS).text == text
        return
    except PatternError as error:
        (problem,) = error.problems
    assert problem.message
    json.dumps(problem.to_dict())
    if problem.suggestion:
        assert Pattern(problem.suggestion, **WORDS).text == problem.suggestion != text
    if text.strip():
        assert problem.caret is not None
        assert 0 <= problem.caret <= len(problem.excerpt)
        assert problem.excerpt.isprintable()
    else:
        assert problem.caret is None


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        *(("", "", 0), ("", "ab", 2), ("ab", "", 2), ("mpc", "mcp", 1), ("pots", "post", 1), ("a2", "a2a", 1)),
        *(("abc", "axc", 1), ("xb", "bc", 2), ("abcd", "badc", 2), ("http", "mcp", 3), ("kitten", "sitting", 3)),
    ],
)
def test_edits_count_what_is_added_dropped_changed_or_swapped(one: str, other: str, count: int) -> None:
    assert edits(one, other) == edits(other, one) == count
