"""The pattern language: what is a pattern, and what it matches."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from glob_oracle import NORMAL_PATHS, glob_matches, starred
from hypothesis import given, settings
from hypothesis import strategies as st
from small_policies import address

from toolgen.errors import ApprovalConfigError, PatternError, ToolgenError
from toolgen.policy import patterns
from toolgen.policy.address import Address, EndpointAddress, NameAddress, SourceAddress
from toolgen.policy.patterns import LONGEST, Form, Glob, Pattern, can_begin, vocabulary

WORDS: dict[str, Any] = {"sources": ["petstore"], "servers": ["github"], "methods": ["COPY"]}
METHODS = ["get", "post", "put", "delete", "copy"]


def matches(pattern: str, text: str) -> bool:
    return Pattern(pattern, **WORDS).matches(address(text))


# Which texts are patterns


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        (Form.name, "plainName delete_* * ** *a*b* a.b .. -x http* *post* http.* HTTP.post http.pots mcp-x"),
        (Form.source, "mcp:read_* http:* *:* builtin:a.b h*:x *http:x mem*:* petstore:createPet github:* *:http.get"),
        (Form.endpoint, "http.post:/a http.post:* http.*:/x *:/x http.po*:/x *.post:/x h*:/x h*.get:* http.post:/a/"),
        (Form.endpoint, "http.trace:/x http.query:/x http.get:*/x http.get:*{id} http.*:**/x *.*:* petstore.copy:/a"),
        (Form.endpoint, "http.get:/a:b http.get:/:/:a http.get:/http.get:/a http.get:/{a?b#c} pet*.c*py:/"),
    ],
)
def test_a_text_that_an_address_can_match_is_a_pattern_of_its_form(form: Form, texts: str) -> None:
    for text in texts.split():
        assert Pattern(text, **WORDS).form is form, text


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\n", "a b", "a\nb", "delete x", "a/b", "a?", "[ab]", "a\\b", "é", "{id}", "a\0"),
        *(":", "::", ":foo", "mcp:", "*:", "http.*:", ":*", "mcp:a:b", "*:a:b", "mcp: x", "mcp:x ", " mcp:x"),
        *("http", "mcp", "petstore", "github", "http.post", "petstore.copy", "http.query"),
        *("mpc:read_*", "htp:x", "Http:x", "HTTP:x", "mpc*:read_x", "other:x", "petstor*e*x:y", "?cp:x"),
        *("http.pots:/x", "http.POST:/x", "http.:/x", "http.:x", "http.pots*:foo", "*.pots:/x", "http.post.:/x"),
        *("mcp.post:*", "a2a.delete:*", "memory.put:x", "builtin.get:*", "github.post:*", "mc*.post:*"),
        *("http:/agentstore/agents", "mcp:/x", "mcp*:/x", "a2a*:/x", "petstore:/x", "github:/x"),
        *("/agents", "http.post/agents", "http.post:agents", "http.post:{id}", "http.post:x*", "http.*:foo"),
        *("http:http.post:/x", "http.post:http.post:/x", "http.post:https://h/x", "https://h/x"),
        *("http.post://a", "http.post:/a//b", "http.post:*//b", "http.post:/{a//b}"),
        *("http.post:/.", "http.post:/..", "http.post:/a/../b", "http.post:/*/./b", "http.post:/a/%2e%2e/b"),
        *("http.post:/a?x=1", "http.post:/*?x", "http.post:/a#b", "http.post:/a b", "http.post:/é", "http.post:/a\n"),
        *("http.post:/%41", "http.post:/%c3", "http.post:/%", "http.post:/%2", "http.post:/%2F", "http.post:/%zz"),
        *("http.post:/a\\b", "http.post:/%5C", "http.post:/%00", "http.post:/[a]", 'http.post:/"', "http.post:/a|b"),
        *("http.post:/{", "http.post:/}", "http.post:/{}", "http.post:/{a", "http.post:/a}", "http.post:/{{a}}"),
    ],
)
def test_a_text_that_no_address_can_match_is_no_pattern(text: str) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(text, **WORDS)
    assert isinstance(caught.value, ApprovalConfigError)
    assert isinstance(caught.value, ToolgenError)
    (problem,) = caught.value.problems
    assert json.loads(json.dumps(problem.to_dict()))["message"] == problem.message


def test_a_pattern_has_at_most_256_characters_and_a_name_at_most_128_that_are_no_star() -> None:
    assert len(Pattern("http.get:/" + "a" * 246).text) == LONGEST == 256
    assert len(Pattern("*" * 256).text) == 256
    assert Pattern("a" * 128).matches(NameAddress("a" * 128))
    assert Pattern("mcp:*" + "a" * 128).matches(SourceAddress("mcp", "a" * 128))
    for text in ("http.get:/" + "a" * 247, "*" * 257, "a" * 129, "mcp:" + "a" * 129, "a*" * 128 + "a"):
        with pytest.raises(PatternError):
            Pattern(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("petstore:x", {"sources": ["petstore"]}),
        ("petstore.post:/x", {"sources": ["petstore"]}),
        ("github:x", {"servers": ["github"]}),
        ("http.copy:/x", {"methods": ["COPY"]}),
        ("http.copy:*", {"methods": ["copy"]}),
        ("petstore.c*y:/x", {"sources": ["petstore"], "methods": ["copy"]}),
    ],
)
def test_words_in_play_make_patterns_that_do_not_exist_without_them(text: str, words: dict[str, Any]) -> None:
    assert Pattern(text, **words).text == text
    with pytest.raises(PatternError):
        Pattern(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mcp.post:/x", {"sources": ["mcp"]}),
        ("Pets:x", {"sources": ["Pets"]}),
        ("http.:/x", {"methods": [""]}),
        ("http.a b:/x", {"methods": ["a b"]}),
        ("petstore:x", {"sources": "petstore"}),
        ("x:y", {"servers": [None, 1, "X"]}),
    ],
)
def test_a_word_that_no_source_or_method_can_be_makes_no_pattern(text: str, words: dict[str, Any]) -> None:
    with pytest.raises(PatternError):
        Pattern(text, **words)


# What they match


@pytest.mark.parametrize(
    ("pattern", "matched", "missed"),
    [
        ("delete_*", "delete_account delete_", "undelete_x Delete_account delete delete-x"),
        ("Delete_*", "Delete_x", "delete_account"),
        ("a.b", "a.b", "axb a.b.c"),
        ("a**", "a ab", "ba"),
        ("*a*a", "aa aba", "a ab"),
        ("*", "a mcp .", "mcp:a http.get:/a"),
        ("http*", "http httpThing", "http:x http.get:/http"),
        ("*post*", "post a_post", "http.post:/post mcp:post"),
        ("*:*", "mcp:x http:createPet github:y", "x http.get:/x"),
        ("mcp:read_*", "mcp:read_x mcp:read_", "github:read_x mcp:Read_x read_x"),
        ("*:x", "mcp:x github:x", "x http.get:/x mcp:xx"),
        ("http:get*", "http:getPet", "http.get:/get petstore:getPet"),
        ("http.post:/agents/*", "http.post:/agents/{id} http.post:/agents/", "http.post:/agents http.put:/agents/x"),
        ("http.post:/agents*", "http.post:/agents http.post:/agentstore http.post:/agents/a/b", "http.post:/Agents"),
        ("http.post:/a", "http.post:/a", "http.post:/a/ http.post:/ab http.get:/a petstore.post:/a"),
        ("http.post:/a/", "http.post:/a/", "http.post:/a"),
        ("http.*:/x", "http.get:/x http.copy:/x", "petstore.get:/x http.get:/x/y"),
        ("*:/x", "http.get:/x petstore.copy:/x", "mcp:x"),
        ("*.delete:*", "http.delete:/a petstore.delete:/", "http.get:/delete mcp:delete"),
        ("h*.get:*", "http.get:/a:b", "petstore.get:/a"),
        ("http.get:/{id}", "http.get:/{id}", "http.get:/a http.get:/{petId} http.get:/id"),
        ("http.get:/a.b", "http.get:/a.b", "http.get:/aXb"),
        ("http.get:/a*:b", "http.get:/a/{x}:b http.get:/a:c/d:b http.get:/a:b", "http.get:/a/b"),
        ("http.get:/*{id}", "http.get:/{id} http.get:/a/b{id}", "http.get:/{id}/a"),
        (
            "http.get:/v1/{name=a/*}:run",
            "http.get:/v1/{name=a/*}:run http.get:/v1/{name=a/b}:run",
            "http.get:/v1/x:run",
        ),
        ("http.get:/(a+)$", "http.get:/(a+)$", "http.get:/a http.get:/aa"),
    ],
)
def test_what_a_pattern_matches(pattern: str, matched: str, missed: str) -> None:
    for text in matched.split():
        assert matches(pattern, text), text
    for text in missed.split():
        assert not matches(pattern, text), text


def test_a_star_matches_a_newline_in_a_path() -> None:
    assert Pattern("http.get:/*").matches(EndpointAddress("http", "get", "/{a\nb}"))
    assert Glob("a*b").matches("a\r\n\u2028b")


@pytest.mark.parametrize("name", ["http.get:x", "a\nb", "a\n", "a/b", "a?", "a[b]", "a\\b", "", "a b", "é", "a" * 129])
def test_what_is_no_name_of_a_tool_is_matched_by_nothing(name: str) -> None:
    for pattern in ("*", "**", "a*", "*b", "http.get*", "*x"):
        assert not Pattern(pattern).matches(NameAddress(name)), pattern
    for pattern in ("*:*", "mcp:*", "m*:a*"):
        assert not Pattern(pattern).matches(SourceAddress("mcp", name)), pattern
    assert not Pattern("http.get:*").matches(NameAddress(name))


_NAMES = st.text(st.sampled_from("aab.-_B"), min_size=1, max_size=8) | st.sampled_from(
    ["a" * 128, "http.get", "ab" * 64]
)
_GLOBS = st.text(st.sampled_from("aab*/.{}[]!?\\-^$|(é\n"), max_size=8)


@settings(max_examples=1500)
@given(_GLOBS, st.text(st.sampled_from("aab/.{}[]!?\\-^$|(é\n"), max_size=12))
def test_a_glob_matches_what_the_table_says(glob: str, text: str) -> None:
    assert Glob(glob).matches(text) == glob_matches(glob, text)


@settings(max_examples=600)
@given(st.text(st.sampled_from("aab"), max_size=12).flatmap(lambda text: st.tuples(starred(text), st.just(text))))
def test_a_glob_matches_the_text_it_was_made_of(made: tuple[str, str]) -> None:
    glob, text = made
    assert Glob(glob).matches(text)
    for other in (text + "b", "b" + text, text[1:], text.replace("a", "ab", 1)):
        assert Glob(glob).matches(other) == glob_matches(glob, other)


@settings(max_examples=1000)
@given(_NAMES.flatmap(starred), _NAMES, st.sampled_from(["mcp", "memory", "github"]), st.data())
def test_names_match_as_the_table_says_alone_and_with_their_source(
    glob: str, name: str, source: str, data: st.DataObject
) -> None:
    before = data.draw(starred(source))
    own = data.draw(st.sampled_from([name, glob.replace("*", "ab")[:128]]))
    if glob != "http.get":  # a forgotten colon
        assert Pattern(glob, **WORDS).matches(NameAddress(own)) == glob_matches(glob, own)
    assert Pattern(f"{before}:{glob}", **WORDS).matches(SourceAddress("mcp", own)) == (
        glob_matches(before, "mcp") and glob_matches(glob, own)
    )


@settings(max_examples=1000)
@given(NORMAL_PATHS, NORMAL_PATHS, st.sampled_from(METHODS), st.sampled_from(METHODS), st.data())
def test_endpoints_match_where_the_path_does_and_what_stands_before_the_colon(
    path: str, other: str, method: str, another: str, data: st.DataObject
) -> None:
    target = data.draw(starred(path))
    before = data.draw(
        st.sampled_from([f"http.{method}", "http.*", f"*.{method}", "petstore.*", "*.*", "h*t", "*.p*t"])
    )
    if before == "h*t" and not target.startswith("/"):
        return
    pattern = Pattern(f"{before}:{target}", **WORDS)
    for tried, verb in ((path, method), (other, another), (path, another)):
        expected = glob_matches(before, f"http.{verb}") and glob_matches(target, tried)
        assert pattern.matches(EndpointAddress("http", verb, tried)) == expected


_ADDRESSES = st.one_of(
    st.builds(EndpointAddress, st.sampled_from(["http", "petstore"]), st.sampled_from(METHODS), NORMAL_PATHS),
    st.builds(SourceAddress, st.sampled_from(["http", "mcp", "github"]), _NAMES),
    st.builds(NameAddress, _NAMES),
)
_FORM_OF = {EndpointAddress: Form.endpoint, SourceAddress: Form.source, NameAddress: Form.name}


@settings(max_examples=1000)
@given(_ADDRESSES, _ADDRESSES.map(str).flatmap(starred) | st.sampled_from(["*", "*:*", "*.*:*", "*:/*", "http*"]))
def test_a_pattern_never_matches_an_address_of_another_form(found: Address, text: str) -> None:
    try:
        pattern = Pattern(text, **WORDS)
    except PatternError:
        return
    assert not pattern.matches(found) or pattern.form is _FORM_OF[type(found)]


def test_a_many_starred_pattern_takes_time_linear_in_the_path() -> None:
    pattern = Pattern(f"http.get:/{'*a' * 119}*aab*c")
    assert len(pattern.text) > 250

    # Each more star or character tried again would multiply the time: a test has a minute.
    path = "/" + "a" * 3_000_000
    assert not pattern.matches(EndpointAddress("http", "get", path + "c"))
    assert pattern.matches(EndpointAddress("http", "get", path + "bc"))
    assert not Pattern("*a" * 127 + "*b").matches(NameAddress("a" * 128))


# What a pattern is


def test_patterns_that_match_the_same_by_their_stars_are_equal() -> None:
    assert Pattern("a**") == Pattern("a*")
    assert hash(Pattern("http.***:/a**")) == hash(Pattern("http.*:/a*"))
    assert len({Pattern("a*"), Pattern("a**"), Pattern("*a")}) == 2
    assert Pattern("a*") != Pattern("a")
    assert Pattern("a*") != "a*"
    assert (str(Pattern("a**")), repr(Pattern("a**")), Pattern("a**").says) == ("a**", "Pattern('a**')", "a*")


@pytest.mark.parametrize("text", ["a**", "mcp:read_*", "http.*:/pets/{petId}", "*:/x"])
def test_a_pattern_cannot_be_changed_and_survives_being_copied(text: str) -> None:
    pattern = Pattern(text)
    for name in ("text", "form", "before", "target", "specificity", "other"):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(pattern, name, "x")
    for other in (copy.copy(pattern), copy.deepcopy(pattern), pickle.loads(pickle.dumps(pattern))):
        assert (other, other.text, other.form, other.specificity) == (pattern, text, pattern.form, pattern.specificity)
        for tried in ("a", "mcp:read_x", "http.get:/pets/{petId}", "http.get:/x"):
            assert other.matches(address(tried)) == pattern.matches(address(tried))


def test_fewer_stars_are_more_specific_and_then_more_characters() -> None:
    ranked = ["http.get:/pets/{petId}", "http.get:/pets", "a", "http.get:/pets/*", "a**", "*", "*:*", "*.*:*"]
    specificities = [Pattern(text).specificity for text in ranked]
    assert specificities == sorted(set(specificities), reverse=True)
    assert Pattern("a*").specificity == Pattern("a***").specificity == 2 - 1024


@pytest.mark.parametrize("text", [None, 7, b"http:*", ["http:*"], {"http:*": 1}])
def test_what_is_no_text_is_no_pattern(text: Any) -> None:
    with pytest.raises(TypeError, match=f"^a pattern is a text, not {type(text).__name__}$"):
        Pattern(text)


def test_a_refused_pattern_says_so_first() -> None:
    with pytest.raises(PatternError, match=r"^no call could match this pattern\n"):
        Pattern("htp:*")


def test_a_beginning_without_a_star_is_tried_on_none_of_thousands_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    words = vocabulary([f"api-{number}" for number in range(3000)])
    monkeypatch.setattr(patterns, "Glob", None)
    assert can_begin("api-2999.post", Form.endpoint, words)
    assert can_begin("api-2999", Form.source, words)
    for before, form in [("api-3000", Form.source), ("api-1.pots", Form.endpoint), ("api-1", Form.endpoint)]:
        assert not can_begin(before, form, words)
