"""The gate against two classifiers written apart from it: what the design says, and the reference system's algorithm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from random_policies import TOOLS, calls_of, configs, lists_of, matching, patterns, texts, toolsets
from small_policies import api

from toolgen.errors import PatternError
from toolgen.policy.address import ToolList, known_tools
from toolgen.policy.config import ApprovalConfig, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import ToolCall
from toolgen.policy.patterns import Pattern
from toolgen.tools.model import Toolset

READS = {"get", "head", "options", "trace", "query"}


class Entry:
    """A tool as the naive classifiers see it: its name, its sources, and `method:path` or nothing."""

    def __init__(self, name: str, sources: list[str], endpoint: str = "") -> None:
        self.name, self.sources, self.endpoint = name, sources, endpoint

    def says(self, text: str) -> bool:
        """Whether a pattern matches, form by form."""
        before, colon, target = text.partition(":")
        if not colon:
            return bool(matching(text).fullmatch(self.name))
        if target.startswith("/") or "." in before:
            method, _, path = self.endpoint.partition(":")
            addresses = [(f"{source}.{method}", path) for source in self.sources if self.endpoint]
        else:
            addresses = [(source, self.name) for source in self.sources]
        return any(matching(before).fullmatch(one) and matching(target).fullmatch(two) for one, two in addresses)


def entries(chosen: Iterable[Toolset | ToolList]) -> list[Entry]:
    found = []
    for one in chosen:
        if isinstance(one, Toolset):
            found += [Entry(t.name, ["http", one.api], f"{t.endpoint.method}:{t.endpoint.path}") for t in one.tools]
        else:
            found += [Entry(name, [one.source, *([one.server] if one.server else [])]) for name in one.names]
    return found


def naive(config: ApprovalConfig, chosen: list[Entry], call: ToolCall) -> tuple[str, str]:
    """What happens to a call, and why, as it is written in the documentation."""
    meant = [one for one in chosen if one.name == call.name and call.source in (None, *one.sources)]
    if len(meant) != 1:
        return "denied", "unknown tool"
    (tool,) = meant
    lists = [("denied", config.deny), ("allowed", config.exempt), ("gated", config.require_approval or ())]
    for outcome, listed in lists:
        for pattern in listed:
            if tool.says(pattern.text):
                return outcome, pattern.text
    if config.unreadable_reason:
        return "gated", f"the approval config could not be read: {config.unreadable_reason}"
    unmatched = config.unmatched
    if unmatched is None:
        unmatched = "allow" if config.require_approval == () else "requireWrites"
    if unmatched == "requireWrites":
        reads = tool.endpoint.partition(":")[0] in READS and not any(tool.says(one.text) for one in config.destructive)
        return "allowed" if reads else "gated", "unmatched"
    return {"allow": "allowed", "require": "gated", "deny": "denied"}[unmatched], "unmatched"


@settings(max_examples=300)
@given(configs(), toolsets())
def test_the_gate_says_what_trying_every_pattern_says(config: ApprovalConfig, chosen: list[Any]) -> None:
    calls, tools = calls_of(TOOLS), entries(chosen)
    found = Gate(config, chosen).classify(calls)
    expected = [naive(config, tools, call) for call in calls]
    assert [(one.outcome.name, one.reason) for one in found.calls] == expected
    assert found.reasons == {call.id: reason for call, (_, reason) in zip(calls, expected, strict=True)}
    for outcome, listed in (("gated", found.gated), ("allowed", found.allowed), ("denied", found.denied)):
        assert listed == [call for call, one in zip(calls, expected, strict=True) if one[0] == outcome]


# The reference system: one space of texts, and calls that nothing speaks of run.

UNIQUE = (
    api("shop", listPets="get /pets", getPet="get /pets/{petId}", createPet="post /pets", putPet="put /pets/{petId}"),
    api("bank", pay="post /pay", history="get /accounts/{id}/history", close="delete /accounts/{id}"),
    ToolList("mcp", ["read_file", "pets", "http"]),
    ToolList("builtin", ["now", "delete_all"]),
)


def reference(require: Iterable[Pattern], exempt: Iterable[Pattern], tool: Entry) -> str:
    source = tool.sources[0]
    addresses = [f"{source}.{tool.endpoint}"] * bool(tool.endpoint) + [f"{source}:{tool.name}", tool.name]

    def named(patterns: Iterable[Pattern]) -> bool:
        return any(matching(pattern.text).fullmatch(address) for pattern in patterns for address in addresses)

    return "gated" if named(require) and not named(exempt) else "allowed"


def is_comparable(text: str) -> bool:
    """Whether both systems mean the same tools by it: a colon, of whose two sides none could stand for the other's.

    Where `*` stands before the colon and at the beginning of a name, one space of texts lets `*:*pets` match
    the end of a path; here it matches names. And there an API has no name that `b*` could stand for.
    """
    before, colon, target = text.partition(":")
    source = matching(before.partition(".")[0])
    if any(source.fullmatch(name) for name in ("shop", "bank")) and not source.fullmatch("http"):
        return False
    return bool(colon) and ("*" not in before or "." in before or target[:1] != "*" or not target.strip("*"))


def comparable() -> st.SearchStrategy[Pattern]:
    return texts().filter(is_comparable).flatmap(_pattern)


def _pattern(text: str) -> st.SearchStrategy[Pattern]:
    try:
        return st.just(Pattern(text))  # with the words of the reference system: it knows no APIs
    except PatternError:
        return st.nothing()


def test_a_pattern_that_stands_for_the_name_of_an_api_is_of_this_gate_alone() -> None:
    (pay,) = [tool for tool in known_tools(UNIQUE) if tool.name == "pay"]
    pattern = Pattern("b*:*")
    assert not is_comparable(pattern.text)
    assert Gate(ApprovalConfig(require_approval=(pattern,)), UNIQUE).outcome_of(pay).outcome.name == "gated"


@settings(max_examples=300)
@given(lists_of(comparable()), lists_of(comparable()))
def test_outcomes_of_patterns_with_a_colon_are_those_of_the_reference_system(
    require: tuple[Pattern, ...], exempt: tuple[Pattern, ...]
) -> None:
    gate = Gate(ApprovalConfig(unmatched=Unmatched.allow, require_approval=require, exempt=exempt), UNIQUE)
    for tool, entry in zip(known_tools(UNIQUE), entries(UNIQUE), strict=True):
        assert gate.outcome_of(tool).outcome.name == reference(require, exempt, entry)


@given(patterns().filter(lambda pattern: ":" not in pattern.text))
def test_a_pattern_without_a_colon_matches_names_only(pattern: Pattern) -> None:
    gate = Gate(ApprovalConfig(require_approval=(pattern,)), UNIQUE)
    found = {tool.name for tool in gate.tools if gate.outcome_of(tool).reason == pattern.text}
    assert found == {tool.name for tool in gate.tools if matching(pattern.text).fullmatch(tool.name)}
