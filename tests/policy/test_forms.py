"""What a pattern would match with one space of texts, and the patterns to write for the rest."""

from __future__ import annotations

import pytest
from glob_oracle import NORMAL_PATHS, glob_matches, starred
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgen.errors import PatternError
from toolgen.policy import forms
from toolgen.policy.address import KnownTool, Vocabulary
from toolgen.policy.forms import other_forms
from toolgen.policy.patterns import Pattern
from toolgen.tools.model import Endpoint

WORDS = Vocabulary(frozenset({"petstore"}), frozenset({"github"}), frozenset({"copy"}))
METHODS = ("get", "post", "delete", "copy")

_NAMES = st.text(st.sampled_from("aetphs_.-"), min_size=1, max_size=8)
_TOOLS = st.one_of(
    st.builds(
        lambda name, method, path: KnownTool(name, ("http", "petstore"), Endpoint(method=method, path=path)),
        _NAMES,
        st.sampled_from(METHODS),
        NORMAL_PATHS,
    ),
    st.builds(KnownTool, _NAMES, st.sampled_from([("mcp", "github"), ("mcp",), ("builtin",), ("a2a",)])),
)


@st.composite
def tools_and_patterns(draw: st.DrawFn) -> tuple[KnownTool, Pattern]:
    """A tool and a pattern, often made of one of its addresses."""
    tool = draw(_TOOLS)
    text = draw(st.sampled_from([str(address) for address in tool.addresses]) | _NAMES)
    before, colon, behind = text.partition(":")
    if draw(st.booleans()):
        text = draw(starred(text))
    elif colon:
        # A star has to cover the colon, and whatever else no name has.
        head, tail = before[: draw(st.integers(0, len(before)))], behind[len(behind) - draw(st.integers(0, 4)) :]
        text = draw(starred(head)) + "*" + (draw(starred(tail)) if not set(tail) & set("/{}%:~()'=@!$&+,;") else "")
    else:
        text = draw(starred(text))
    try:
        return tool, Pattern.of(text, WORDS)
    except PatternError:
        return tool, Pattern("*a*")


@settings(max_examples=800)
@given(tools_and_patterns())
def test_a_pattern_and_its_other_forms_match_the_tools_that_one_space_of_texts_would(
    made: tuple[KnownTool, Pattern],
) -> None:
    tool, pattern = made
    forms = [pattern, *(Pattern.of(text, WORDS) for text in other_forms(pattern, WORDS))]
    matched = any(form.matches(address) for form in forms for address in tool.addresses)
    assert matched == any(glob_matches(pattern.text, str(address)) for address in tool.addresses)


@settings(max_examples=500)
@given(tools_and_patterns())
def test_each_other_form_alone_matches_only_what_the_text_would(made: tuple[KnownTool, Pattern]) -> None:
    tool, pattern = made
    for text in other_forms(pattern, WORDS):
        for address in tool.addresses:
            assert not Pattern.of(text, WORDS).matches(address) or glob_matches(pattern.text, str(address))


@pytest.mark.parametrize(
    ("text", "forms", "by_source"),
    [
        ("http*", ["http*:*", "http*.*:*"], ["http*:*", "http*.*:*"]),
        ("*post*", ["*.*:*post*", "*.*post*:*"], ["*.*post*:*"]),
        ("mcp**", ["mcp*:*"], ["mcp*:*"]),
        ("github*", ["github*:*"], ["github*:*"]),
        ("pet*_x", ["pet*:*_x", "pet*.*:*_x"], ["pet*:*_x", "pet*.*:*_x"]),
        ("http.get*", ["http.get*:*"], ["http.get*:*"]),
        ("*_delete", ["*.*:*_delete"], []),  # how a path may end
        ("h*:*pets*", ["h*.*:*pets*", "h*.*:*:*pets*"], ["h*.*:*pets*"]),
        ("*:*pets", ["*.*:*pets", "*.*:*:*pets"], []),
        ("http*:cancel", ["http*.*:*:cancel"], []),  # a path with a colon
        ("http.*:/x", ["http.*:*:/x"], []),
        ("http.*:*", ["http.*:*:*"], []),
        *((text, [], []) for text in ("delete_*", "createPet", "*", "**", "*:*", "mcp:*", "http.get:*", "http.get:/x")),
    ],
)
def test_which_patterns_say_the_rest(text: str, forms: list[str], by_source: list[str]) -> None:
    pattern = Pattern.of(text, WORDS)
    assert other_forms(pattern, WORDS) == forms
    assert other_forms(pattern, WORDS, only_by_source=True) == by_source


def test_a_source_with_another_name_makes_no_form_of_its_own() -> None:
    assert other_forms(Pattern("petstore*"), Vocabulary()) == []
    assert other_forms(Pattern("petstore*"), WORDS) == ["petstore*:*", "petstore*.*:*"]


@pytest.mark.parametrize("text", ["*a" * 120, "h*t*t*p*" * 30, "*:*" + "a*" * 120])
def test_a_pattern_full_of_stars_makes_few_candidates(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    pattern = Pattern(text)
    monkeypatch.setattr(forms, "can_match", lambda candidate, _: bool(tried.append(candidate)))
    other_forms(pattern, Vocabulary())
    assert len(tried) < 50
