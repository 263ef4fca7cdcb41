"""Configs of the reference system: what becomes of them, and that no call runs that waited there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_policies import api, outcomes, pets

from toolgen.errors import ApprovalConfigError
from toolgen.openapi.source.yaml12 import load_yaml
from toolgen.policy.address import KnownTool, ToolList, Vocabulary
from toolgen.policy.config import ApprovalConfig, TimeoutPolicy
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome
from toolgen.policy.reference import Imported, import_config
from toolgen.policy.reference.equivalents import equivalents

WORDS = Vocabulary()
HOUR = {"approvalTimeout": "PT1H"}


def files() -> ToolList:
    return ToolList("mcp", ["read_file", "delete_file", "http.post"], server="files", destructive=["delete_file"])


def imported(*require: str, tools: Any = (), **keys: Any) -> Imported:
    made = import_config({"requireApproval": list(require), **keys}, tools)
    ApprovalConfig.parse(made.mapping, tools)  # whatever becomes of it is a config
    return made


def said(made: Imported) -> dict[str, str]:
    """What is said of each place, with its hint."""
    found: dict[str, str] = {}
    for problem in made.changes:
        found[problem.where] = found.get(problem.where, "") + f"{problem.message} ({problem.hint})\n"
    return found


@pytest.mark.parametrize(
    ("text", "here"),
    [
        ("http.post:/pets", ["http.post:/pets"]),
        ("http.*:/admin/*", ["http.*:/admin/*"]),
        ("*:/x", ["*:/x"]),
        ("mcp:read_*", ["mcp:read_*"]),
        ("http:*", ["http:*"]),
        ("*", ["*"]),
        ("*:*", ["*:*"]),
        ("delete_account", ["delete_account"]),
        # A name pattern matches sources and endpoints, too.
        ("http*", ["http*", "http:*"]),
        ("http.post*", ["http.post*", "http.post*:*"]),
        ("*post*", ["*post*", "http.*:*post*", "http.*post*:*"]),
        ("*_delete", ["*_delete", "http.*:*_delete"]),
        # A `*` stands for the colon.
        ("http.post*:run", ["http.post*:*:run"]),
        ("*:run", ["*:run", "http.*:*:run"]),
        # No API called `maps` is meant, and no server called `hub`.
        ("m*:*", ["mcp:*", "memory:*"]),
        ("h*:*", ["http:*"]),
        ("*p*:read", ["*p*:read", "http.*:*:read"]),
        ("*post:/x", ["http.*post:/x"]),
        # A name that is refused here for its looks.
        ("http", ["*:http"]),
        ("http.post", ["*:http.post"]),
        # They match nothing there.
        ("http.pots*:foo", []),
        ("mpc*:read_x", []),
        ("petstore.post:/pets", []),
        ("pet*:x", []),
        ("/agents", []),
        ("http.post/agents", []),
    ],
)
def test_a_pattern_becomes_those_that_match_the_same_here(text: str, here: list[str]) -> None:
    found = equivalents(text, WORDS)
    assert sorted(found) == sorted(here)
    assert text not in here or found[0] == text


@pytest.mark.parametrize(
    ("text", "wider"),
    [
        ("mcp:a:b", ["mcp:a*b"]),  # no name has a colon here: the tool has to bear another
        ("m*:a/b", ["mcp:a*b", "memory:a*b"]),
        ("http.post://a", ["http.post:/a"]),
        ("http.post:/a/../b", ["http.post:/b"]),
        ("http:" + "*a" * 125 + "*", None),  # its forms are longer than patterns may be
    ],
)
def test_what_is_written_otherwise_here_still_waits_and_is_no_longer_exempt(text: str, wider: list[str] | None) -> None:
    made = imported("http.put:*", text)
    kept = made.mapping["requireApproval"][1:]
    assert kept == (wider or [text])
    assert ("requireApproval[1]" in said(made)) is (wider is not None)
    if wider is not None:
        assert "exempt" not in imported("http.put:*", exempt=[text]).mapping


def test_a_form_that_gets_too_long_is_cut_to_a_wider_one() -> None:
    text = "*" + "a" * 250 + "*post*"
    forms = equivalents(text, WORDS, wider=True)
    assert max(map(len, forms)) == 256
    assert [form for form in forms if form.startswith("http.*:*a") and form.endswith("a*")]


@pytest.mark.parametrize(
    "levels",
    [
        lambda inner, outer: {"hitlConfig": {"toolApprovals": inner, **outer}, "name": "agent"},
        lambda inner, outer: {"toolApprovals": inner, **outer},
        lambda inner, outer: {"hitlConfig": {**outer, **inner}},
        lambda inner, outer: {**outer, **inner},
    ],
)
def test_every_level_of_the_reference_system_is_read(levels: Any) -> None:
    inner = {
        "requireApproval": ["http.post:*", "http.delete:*"],
        "exempt": ["http.post:/pets"],
        "rules": [{"match": "http.delete:*", "pauseReason": "gone is gone", "timeoutPolicy": None}],
        "timeoutPolicy": "AUTO_REJECT",
        "maxPausesPerTurn": 4,
        "maxAutoApprovalsPerTurn": 0,
        "onNoProgress": "ABORT",
        "pendingMessage": None,
    }
    outer = {"approvalTimeout": "pt5m", "pauseReason": "look", "inGroupTurns": "REJECT"}
    made = import_config(levels(inner, outer), [pets()])
    assert made.mapping == {
        "requireApproval": ["http.post:*", "http.delete:*"],
        "exempt": ["http.post:/pets"],
        "unmatched": "allow",
        "rules": [{"match": "http.delete:*", "pauseReason": "gone is gone"}],
        "timeoutPolicy": "AUTO_REJECT",
        "approvalTimeout": "PT5M",
        "pauseReason": "look",
        "maxPausesPerTurn": 4,
        "maxAutoApprovalsPerTurn": 0,
        "onNoProgress": "ABORT",
    }
    told = "\n".join(map(str, made.changes))
    assert "inGroupTurns ('REJECT') is left out" in told
    assert ("name is left out" in told) is ("name" in levels(inner, outer))
    assert "remove it, so that writes wait" in made.changes[0].hint
    assert len(made.changes) == 2 + ("name" in levels(inner, outer))


def test_the_inner_level_beats_the_outer() -> None:
    outer = {"pauseReason": "outer", "approvalTimeout": "PT1H", "timeoutPolicy": "ABORT"}
    inner = {"requireApproval": ["*"], "pauseReason": "inner", "timeoutPolicy": "AUTO_REJECT"}
    mapping = import_config({**outer, "toolApprovals": inner}).mapping
    assert (mapping["pauseReason"], mapping["timeoutPolicy"], mapping["approvalTimeout"]) == (
        "inner",
        "AUTO_REJECT",
        "PT1H",
    )


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"hitlConfig": None},
        {"hitlConfig": {"toolApprovals": None, "pauseReason": "x"}},
        {"requireApproval": None, "exempt": ["http.get:*"], "rules": [{"match": "*"}]},
        {"requireApproval": [], "exempt": ["http.get:*"]},
    ],
)
def test_a_gate_that_is_off_there_is_off_here_and_says_so_first(data: dict[str, Any]) -> None:
    made = import_config(data, [pets()])
    config = ApprovalConfig.parse(made.mapping)
    assert config.is_off
    assert made.mapping["requireApproval"] == []
    assert made.changes[0].message.startswith("the gate is off there")
    assert "THE GATE IS OFF" in made.to_yaml()
    assert {problem.where for problem in made.changes[1:]} == {key for key in ("exempt", "rules") if data.get(key)}


@pytest.mark.parametrize(
    ("require", "exempt"),
    [(["mpc*:read_x", "/agents"], ["http.get:*"]), (["http.post:*"], ["http.post:*"]), (["http.pots*:x"], [])],
)
def test_a_gate_that_gates_nothing_there_gates_writes_here(require: list[str], exempt: list[str]) -> None:
    tools = [api("shop", listPets="get /pets", pay="put /pay")]
    made = import_config({"requireApproval": require, "exempt": exempt}, tools)
    assert "requireApproval" not in made.mapping
    assert made.mapping["unmatched"] == "requireWrites"
    assert outcomes(made.mapping, *tools) == {"listPets": "allowed", "pay": "gated"}
    assert "every write waits here instead" in made.changes[0].message
    assert "pay) runs there and is gated here" in made.changes[-1].message


def test_an_entry_that_is_no_pattern_is_told_with_the_character_and_what_may_be_meant() -> None:
    made = imported("http.put:*", "mpc*:read_x", "http.post")
    [dropped] = [problem for problem in made.changes if problem.where == "requireApproval[1]"]
    assert (dropped.excerpt, dropped.caret, dropped.suggestion) == ("mpc*:read_x", 1, "mcp*:read_x")
    assert "left out: no source is called" in dropped.message
    assert "*:http.post in place of http.post" in said(made)["requireApproval[2]"]
    assert "if http.post:* was meant, write that" in said(made)["requireApproval[2]"]


def test_what_is_exempt_never_waits_so_that_the_other_entry_goes() -> None:
    made = imported("http*", "http.put:*", "a", "a", exempt=["http:*"])
    assert made.mapping["requireApproval"] == ["http*", "http.put:*", "a"]
    assert "exempt[0] exempts the same calls" in said(made)["requireApproval[0]"]
    assert "requireApproval[2] says the same" in said(made)["requireApproval[3]"]


def test_a_rule_is_repeated_for_each_form_of_its_match() -> None:
    rules = [{"match": "*post*", "pauseReason": "a"}, {"match": "mpc*:x"}, {"match": "http*", "pauseReason": "b"}]
    made = imported("*", exempt=["http:*"], rules=rules)
    assert made.mapping["rules"] == [
        {"match": "*post*", "pauseReason": "a"},
        {"match": "http.*:*post*", "pauseReason": "a"},
        {"match": "http.*post*:*", "pauseReason": "a"},
        {"match": "http*", "pauseReason": "b"},
    ]
    assert "left out" in said(made)["rules[1].match"]
    assert "the rule for http:* is left out: the same calls are exempt" in said(made)["rules[2].match"]


def test_of_two_rules_that_come_to_one_match_the_one_that_came_first_there_is_kept() -> None:
    rules = [{"match": "http:*", "pauseReason": "broad"}, {"match": "http*", "pauseReason": "less specific"}]
    made = imported("*", rules=rules)
    assert made.mapping["rules"] == [
        {"match": "http:*", "pauseReason": "broad"},
        {"match": "http*", "pauseReason": "less specific"},
    ]
    assert "rules[0].match comes before it" in said(made)["rules[1].match"]


def test_auto_approve_for_every_call_has_no_place_here() -> None:
    explicit = imported("*", timeoutPolicy="AUTO_APPROVE", approvalTimeout="PT5M")
    inherited = import_config({"timeoutPolicy": "AUTO_APPROVE", "toolApprovals": {"requireApproval": ["*"]}})
    assert explicit.mapping == {"requireApproval": ["*"], "unmatched": "allow", "approvalTimeout": "PT5M"}
    assert inherited.mapping == {"requireApproval": ["*"], "unmatched": "allow"}
    assert "here calls wait" in said(explicit)["timeoutPolicy"]
    assert "there calls of tools wait all the same" in said(inherited)["timeoutPolicy"]


@pytest.mark.parametrize("match", ["*.delete:*", "http.delete:/pets/*", "http.*:/pets/*", "mcp:delete_*", "*"])
def test_time_never_approves_what_is_destructive(match: str) -> None:
    rules = [{"match": one, "timeoutPolicy": "AUTO_APPROVE", **HOUR} for one in ("http.put:*", match)]
    made = imported("*", rules=rules, tools=[pets(), files()])
    assert made.mapping["rules"] == [rules[0], {"match": match, "timeoutPolicy": "WAIT_INDEFINITELY"}]
    assert "WAIT_INDEFINITELY in place of AUTO_APPROVE" in said(made)["rules[1].timeoutPolicy"]
    assert "rules[0].timeoutPolicy" not in said(made)


@pytest.mark.parametrize("match", ["http.*:*", "http.*:/*"], ids=["less specific there", "as specific there"])
def test_auto_approve_does_not_come_before_a_rule_it_stood_behind(match: str) -> None:
    """`*creates*` gets a form with three wildcards, which loses to any with two."""
    rules = [
        {"match": match, "timeoutPolicy": "AUTO_APPROVE"},
        {"match": "*creates*", "timeoutPolicy": "WAIT_INDEFINITELY"},
    ]
    made = imported("*", rules=rules, **HOUR)
    assert made.mapping["rules"][0] == {"match": match, "timeoutPolicy": "WAIT_INDEFINITELY"}
    assert "comes before it there" in said(made)["rules[0].timeoutPolicy"]
    narrower = imported("*", rules=[rules[0], {**rules[1], "match": "mcp:creates"}], **HOUR)
    assert narrower.mapping["rules"][0]["timeoutPolicy"] == "AUTO_APPROVE"


def test_nothing_is_imported_of_a_config_the_reference_system_refuses() -> None:
    inner = {
        "requireApproval": ["http.post:*", None, " ", 7],
        "exempt": "http.get:*",
        "rules": [None, {"timeoutPolicy": "AUTO_REJECT"}, {"match": "*", "timeoutPolicy": "ABORT", "approvers": ["x"]}],
        "maxPausesPerTurn": 11,
        "onNoProgress": "WAIT",
        "requireAproval": [],
    }
    outer = {"approvalTimeout": "30m", "pauseReason": "x" * 501, "exempt": []}
    with pytest.raises(ApprovalConfigError) as caught:
        import_config({"hitlConfig": {"toolApprovals": inner, **outer}})
    at = "hitlConfig.toolApprovals"
    assert {problem.where for problem in caught.value.problems} == {
        f"{at}.requireApproval[1]",
        f"{at}.requireApproval[2]",
        f"{at}.requireApproval[3]",
        f"{at}.exempt",
        f"{at}.rules[0]",
        f"{at}.rules[1].match",
        f"{at}.rules[2].approvers",
        f"{at}.maxPausesPerTurn",
        f"{at}.onNoProgress",
        f"{at}.requireAproval",
        "hitlConfig.approvalTimeout",
        "hitlConfig.pauseReason",
        "hitlConfig.exempt",
    }


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (None, ""),
        ([], ""),
        ({"name": "an agent without approvals"}, ""),
        ({"hitlConfig": {"name": "the wrong level"}}, "hitlConfig"),
        ({"hitlConfig": ["x"]}, "hitlConfig"),
        ({"requireApproval": ["*"], "timeoutPolicy": "ABORT"}, "timeoutPolicy"),
        ({"timeoutPolicy": "ABORT", "toolApprovals": {"requireApproval": ["*"]}}, "timeoutPolicy"),
        (
            {"toolApprovals": {"requireApproval": ["*"], "rules": [{"match": "*", "timeoutPolicy": "ABORT"}]}},
            "toolApprovals.rules[0].timeoutPolicy",
        ),
        ({"requireApproval": ["a" * 257]}, "requireApproval[0]"),
        ({"requireApproval": ["*"], "timeoutPolicy": ""}, "timeoutPolicy"),
    ],
)
def test_each_refusal_has_its_place_in_the_config_to_import(data: Any, where: str) -> None:
    with pytest.raises(ApprovalConfigError) as caught:
        import_config(data)
    assert [problem.where for problem in caught.value.problems] == [where]


def test_the_text_of_a_config_is_read_back_as_that_config_with_a_key_a_line() -> None:
    reason = 'two\nlines: "quoted" # no comment \x85 {toolNames} ' + "é" * 200 + " " * 90 + "."
    rules = [{"match": "mcp:*", "pauseReason": reason}]
    made = imported("*", "null", "http.put:/{a}", exempt=["on"], rules=rules, pauseReason=reason)
    text = made.to_yaml()
    assert load_yaml(text, "x", nesting=100, nodes=10_000) == made.mapping
    assert text.startswith("# Approvals, imported from another system's")
    assert "- match: mcp:*\n  pauseReason: " in text
    assert max(map(len, text.split("\n"))) <= 100


# An oracle for the reference system, written against its description and nothing of toolgen's.


def _oracle_texts(tool: KnownTool) -> list[str]:
    texts = [f"{tool.sources[0]}:{tool.name}", tool.name]
    return texts if tool.endpoint is None else [f"http.{tool.endpoint.method}:{tool.endpoint.path}", *texts]


def _oracle_matches(pattern: str, tool: KnownTool) -> bool:
    regex = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    return any(re.fullmatch(regex, text) for text in _oracle_texts(tool))


def _oracle_gates(require: list[str], exempt: list[str], tool: KnownTool) -> bool:
    if any(_oracle_matches(pattern, tool) for pattern in exempt):
        return False
    return any(_oracle_matches(pattern, tool) for pattern in require)


def _oracle_approves_by_time(rules: list[dict[str, str]], tool: KnownTool) -> bool:
    """Whether time may approve by any rule that could be the most specific one."""
    own = [rule for rule in rules if _oracle_matches(rule["match"], tool)]
    ranks = [len(rule["match"]) - 1024 * rule["match"].count("*") for rule in own]
    return any(
        rule["timeoutPolicy"] == "AUTO_APPROVE" for rule, rank in zip(own, ranks, strict=True) if rank == max(ranks)
    )


PATHS = ["/a", "/a/", "/a/{id}", "/post", "/v1/{n}:run", "/http:/a", "/x.post:/a", "/a:b"]
METHODS = ["get", "post", "delete", "purge"]
NAMES = ["run", "a", "post_a", "a.b", "http.get", "http", "mcp", "a_delete"]


@st.composite
def toolsets(draw: Any) -> list[Any]:
    names = draw(st.permutations(NAMES))
    endpoints = draw(
        st.lists(st.tuples(st.sampled_from(METHODS), st.sampled_from(PATHS)), min_size=1, max_size=4, unique=True)
    )
    called = dict(zip([name for name in names if "." not in name], endpoints, strict=False))
    rest = [name for name in names if name not in called]
    first = api(draw(st.sampled_from(["maps", "pets", "hx"])), **{name: f"{m} {p}" for name, (m, p) in called.items()})
    server = draw(st.sampled_from(["hub", "a2", "files"]))
    return [first, ToolList("mcp", rest[:2], server=server), ToolList("builtin", rest[2:4])]


PIECES = [
    *(
        "*",
        "**",
        ":",
        "/",
        ".",
        "a",
        "h",
        "http",
        "http.",
        "http.post",
        "http.*",
        "mcp",
        "m",
        "p",
        "post",
        "run",
        "get",
    ),
    *(":/a", ":*", "*:", "/a", "{id}", "builtin", "hub", "maps", "purge", "delete", "_", "//"),
]
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
RULES = st.lists(
    st.fixed_dictionaries(
        {"match": PATTERNS, "timeoutPolicy": st.sampled_from(["AUTO_APPROVE", "WAIT_INDEFINITELY", "AUTO_REJECT"])}
    ),
    max_size=4,
    unique_by=lambda rule: rule["match"],
)


@given(toolsets(), st.lists(PATTERNS, max_size=4), st.lists(PATTERNS, max_size=3), RULES)
@settings(max_examples=150)
def test_outcomes_are_those_of_the_reference_system_or_told_and_stricter(
    tools: list[Any], require: list[str], exempt: list[str], rules: list[dict[str, str]]
) -> None:
    made = imported(*require, tools=tools, exempt=exempt, rules=rules, **HOUR)
    gate = Gate(ApprovalConfig.parse(made.mapping, tools), tools)
    told = [problem.message for problem in made.changes if " there and is " in problem.message]
    differing = 0
    for tool in gate.tools:
        result = gate.outcome_of(tool)
        if not _oracle_gates(require, exempt, tool):
            changed = result.outcome is not Outcome.allowed
            assert changed == any(f"({tool.name}) runs there" in message for message in told)
            differing += changed
        else:
            assert result.outcome is Outcome.gated
            assert result.terms is not None
            if result.terms.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
                assert _oracle_approves_by_time(rules, tool)
    assert len(told) == differing
    assert load_yaml(made.to_yaml(), "x", nesting=100, nodes=10_000) == made.mapping


@given(toolsets(), PATTERNS)
@settings(max_examples=150)
def test_a_pattern_matches_the_same_tools_as_there(tools: list[Any], text: str) -> None:
    """Alone, where nothing of another pattern hides what it matches."""
    made = imported("mcp:nothing", text, tools=tools)
    stated = set(made.mapping["requireApproval"])
    gate = Gate(ApprovalConfig.parse(made.mapping, tools), tools)
    for tool in gate.tools:
        there, here = _oracle_matches(text, tool), gate.outcome_of(tool).outcome is Outcome.gated
        assert here or not there
        assert here == there or "what that matched is written otherwise" in said(made)["requireApproval[1]"], stated
