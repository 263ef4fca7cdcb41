from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_policies import ALL, patterns, rules
from small_policies import api, pets

from toolgen.policy.address import KnownTool, ToolList
from toolgen.policy.config import ApprovalConfig, Rule, TimeoutPolicy, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Classification, ToolCall
from toolgen.policy.patterns import Pattern
from toolgen.policy.terms import Terms, by_specificity

WAIT, ABORT, REJECT, APPROVE = TimeoutPolicy
ALLOW = Unmatched.allow
MINUTE = timedelta(minutes=1)
EVERY = (Pattern("*"),)
APP = api("app", deploy="post /deploy", remove="post /remove", update="put /app", show="get /app")


def rule(match: str, policy: TimeoutPolicy | None = None, minutes: int | None = None, **more: Any) -> Rule:
    timeout = None if minutes is None else minutes * MINUTE
    return Rule(match=Pattern(match), timeout_policy=policy, approval_timeout=timeout, **more)


def classified(
    *rules: Rule, calls: str = "deploy", layers: Any = None, tools: Any = APP, **config: Any
) -> Classification:
    """What one config with these rules, or these layers, does to a batch; everything is gated."""
    layers = layers or [ApprovalConfig(require_approval=EVERY, rules=rules, **config)]
    return Gate(layers, tools).classify([ToolCall(name, name) for name in calls.split()])


def terms(*rules: Rule, **given: Any) -> Terms:
    """The terms of one call."""
    found = classified(*rules, **given).calls[0].result.terms
    assert found is not None
    return found


def batch(*rules: Rule, **given: Any) -> tuple[TimeoutPolicy, float | None, str | None]:
    """Policy, minutes and governing rule of a batch."""
    found = classified(*rules, **given).terms
    assert found is not None
    minutes = None if found.approval_timeout is None else found.approval_timeout / MINUTE
    return found.timeout_policy, minutes, found.rule.match.text if found.rule else None


def terms_by_tool(gate: Gate) -> list[tuple[KnownTool, Terms]]:
    """The terms of every tool that waits."""
    results = [gate.outcome_of(tool) for tool in gate.tools]
    return [(one.tool, one.terms) for one in results if one.tool and one.terms]


# The rule of a call


def test_the_most_specific_rule_is_a_calls_own_wherever_it_stands() -> None:
    written = [
        rule(text) for text in ("*", "d*", "dep*", "http.*:/deploy", "http.post:*", "http.post:/deploy", "update")
    ]
    for listed in permutations(written):
        found = classified(*listed, calls="deploy update show remove").calls
        names = [one.rule and one.rule.match.text for one in found]
        assert names == ["http.post:/deploy", "update", "*", "http.post:*"]


@pytest.mark.parametrize(
    ("text", "specificity"),
    [("*", 1 - 1024), ("**", 1 - 1024), ("deploy", 6), ("d*y", 3 - 1024), ("http.*:*", 8 - 2048)],
)
def test_specificity_counts_wildcards_first_and_then_length(text: str, specificity: int) -> None:
    assert Pattern(text).specificity == specificity


@settings(max_examples=150)
@given(rules(patterns()), st.randoms())
def test_each_call_has_the_most_specific_of_the_rules_that_match_it(found: tuple[Rule, ...], random: Any) -> None:
    gate = Gate(ApprovalConfig(require_approval=EVERY, rules=found), ALL)
    for tool, held in terms_by_tool(gate):
        own = held.rule
        fitting = [one for one in found if any(map(one.match.matches, tool.addresses))]
        assert (own is None) == (not fitting)
        assert own is None or own.match.specificity == max(one.match.specificity for one in fitting)
    assert by_specificity(found) == by_specificity(random.sample(found, len(found)))


def test_of_equally_specific_rules_the_strictest_is_a_calls_own() -> None:
    for listed in permutations([rule("depl*", ABORT, 1), rule("*ploy", REJECT, 1), rule("*eplo", WAIT), rule("d*loy")]):
        assert terms(*listed).rule == rule("depl*", ABORT, 1)


def test_a_rule_neither_gates_nor_ungates() -> None:
    config = ApprovalConfig(rules=(rule("show", APPROVE, 1), rule("*", APPROVE, 1)))
    found = Gate(config, APP).classify([ToolCall("1", "show"), ToolCall("2", "deploy"), ToolCall("3", "nothing")]).calls
    assert [(one.outcome.name, one.rule) for one in found] == [
        ("allowed", None),
        ("gated", rule("*", APPROVE, 1)),
        ("denied", None),
    ]


# Fields fall back one by one


def test_what_a_rule_does_not_state_the_config_does_field_by_field() -> None:
    config: dict[str, Any] = {
        "timeout_policy": REJECT,
        "approval_timeout": 9 * MINUTE,
        "approval_validity": 8 * MINUTE,
        "pause_reason": "config's reason",
        "pending_message": "config's message",
        "approvers": ("carol",),
        "allow_self_approval": True,
    }
    stated: dict[str, Any] = {
        "timeout_policy": ABORT,
        "approval_timeout": 2 * MINUTE,
        "approval_validity": 3 * MINUTE,
        "pause_reason": "rule's reason",
        "pending_message": "rule's message",
        "approvers": ("alice", "role:ops"),
        "allow_self_approval": False,
    }
    for field in (*stated, None):
        own = Rule(match=Pattern("deploy"), **({field: stated[field]} if field else {}))
        found, expected = terms(own, **config), {**config, **({field: stated[field]} if field else {})}
        assert {name: getattr(found, name) for name in config} == {**expected, "approvers": (expected["approvers"],)}
        # Texts and timeout of a batch are made in the same way.
        whole = classified(own, **config).terms
        assert [getattr(whole, name) for name in list(config)[:2]] == list(expected.values())[:2]
        assert (whole.pause_reason, whole.pending_message) == (expected["pause_reason"], expected["pending_message"])  # type: ignore[union-attr]


def test_nothing_stated_waits_without_end_for_anybody_and_an_approval_holds_an_hour() -> None:
    assert terms() == Terms()
    assert terms() == Terms(
        rule=None,
        timeout_policy=WAIT,
        approval_timeout=None,
        approval_validity=timedelta(hours=1),
        approvers=(),
        allow_self_approval=True,
    )
    assert batch() == (WAIT, None, None)


@pytest.mark.parametrize("policy", [ABORT, REJECT, APPROVE])
def test_without_a_duration_nothing_is_ever_due(policy: TimeoutPolicy) -> None:
    assert terms(rule("*", policy)).timeout_policy is WAIT
    assert terms(timeout_policy=policy).approval_timeout is None
    assert batch(rule("*", policy)) == (WAIT, None, "*")


def test_a_call_that_waits_without_end_has_no_due_time_whatever_durations_there_are() -> None:
    assert batch(rule("*", WAIT, 5), approval_timeout=MINUTE) == (WAIT, None, "*")
    result = classified(rule("*", WAIT, 5)).calls[0].result
    assert [one.terms and one.terms.approval_timeout for one in (result, *result.layers)] == [None, None]


# A batch


@pytest.mark.parametrize(
    ("rules", "calls", "expected"),
    [
        # deploy is rejected after five minutes, remove waits: the strictest governs both
        ([rule("deploy", REJECT, 5), rule("remove", WAIT)], "deploy remove", (WAIT, None, "remove")),
        # a specific AUTO_APPROVE loses to a broad rule that waits
        ([rule("http.post:/deploy", APPROVE, 5), rule("*", WAIT)], "deploy show", (WAIT, None, "*")),
        ([rule("deploy", REJECT, 5), rule("remove", ABORT, 9)], "deploy remove", (ABORT, 9, "remove")),
        ([rule("deploy", REJECT, 5), rule("remove")], "deploy remove", (REJECT, 5, "deploy")),
        ([rule("deploy", REJECT, 5)], "deploy remove", (REJECT, 5, "deploy")),
        ([rule("deploy", REJECT, 5), rule("remove", WAIT)], "deploy", (REJECT, 5, "deploy")),
        ([rule("d*", REJECT, 5), rule("remove", REJECT, 9)], "deploy remove", (REJECT, 9, "remove")),
        ([rule("d*y", REJECT, 5), rule("r*e", REJECT, 9)], "deploy remove", (REJECT, 5, "d*y")),
        ([rule("deploy", APPROVE, 5), rule("remove", REJECT, 9)], "deploy remove", (REJECT, 9, "remove")),
        ([rule("deploy", REJECT, 5), rule("remove", WAIT)], "nothing show", (WAIT, None, None)),
    ],
)
def test_the_strictest_rule_governs_a_batch_of_equals_the_most_specific(rules: Any, calls: str, expected: Any) -> None:
    for listed in permutations(rules):
        for order in permutations(calls.split()):
            assert batch(*listed, calls=" ".join(order)) == expected


def test_each_call_of_a_batch_keeps_its_own_rule_and_approvers() -> None:
    listed = [rule("deploy", REJECT, 5, approvers=("alice",)), rule("remove", WAIT, pause_reason="why")]
    found = classified(*listed, calls="deploy remove show")
    assert [one.rule for one in found.calls] == [*listed, None]
    assert [one.result.terms.approvers for one in found.calls] == [(("alice",),), (), ()]  # type: ignore[union-attr]
    assert [one.result.terms.allow_self_approval for one in found.calls] == [False, True, True]  # type: ignore[union-attr]
    assert found.rule == listed[1]
    assert found.terms.pause_reason == "why"  # type: ignore[union-attr]


def test_a_batch_of_which_nothing_waits_has_no_terms() -> None:
    found = Gate(None, APP).classify([ToolCall("1", "show"), ToolCall("2", "nothing")])
    assert (found.terms, found.rule) == (None, None)


# AUTO_APPROVE


def test_time_approves_what_a_rule_says_for_every_call_of_the_batch_after_the_longest_of_their_times() -> None:
    assert batch(rule("deploy", APPROVE, 5)) == (APPROVE, 5, "deploy")
    for minutes in (1, 9):
        listed = [rule("http.post:/deploy", APPROVE, 5), rule("remove", APPROVE, minutes)]
        assert batch(*listed, calls="deploy remove") == (APPROVE, max(5, minutes), "http.post:/deploy")


@pytest.mark.parametrize(
    ("more", "given"),
    [
        ({"approvers": ("alice",)}, {}),
        ({}, {"approvers": ("alice",)}),
        ({"allow_self_approval": False}, {}),
        ({}, {"allow_self_approval": False}),
        ({}, {"destructive": (Pattern("http.post:/deploy"),)}),
        (
            {},
            {
                "layers": [
                    ApprovalConfig(rules=(rule("deploy", APPROVE, 5),)),
                    ApprovalConfig(unmatched=ALLOW, destructive=EVERY),
                ]
            },
        ),
        ({}, {"layers": [ApprovalConfig(rules=(rule("deploy", APPROVE, 5),)), ApprovalConfig()]}),
        ({}, {"layers": [ApprovalConfig.unreadable("x"), ApprovalConfig(rules=(rule("deploy", APPROVE, 5),))]}),
    ],
)
def test_time_approves_nothing_that_is_destructive_has_approvers_or_is_not_so_in_every_layer(
    more: dict[str, Any], given: dict[str, Any]
) -> None:
    held = terms(rule("deploy", APPROVE, 5, **more), **given)
    assert (held.timeout_policy, held.approval_timeout) == (WAIT, None)
    (one,) = classified(rule("deploy", APPROVE, 5, **more), calls="deploy", **given).calls
    waiting = [layer.terms for layer in one.result.layers if layer.terms and layer.terms.timeout_policy is WAIT]
    assert {held.approval_timeout for held in waiting} == {None}
    assert batch(rule("deploy", APPROVE, 5, **more), **given)[:2] == (WAIT, None)


def test_time_approves_no_delete_and_nothing_that_a_person_marked() -> None:
    marked = pets()
    marked = marked.model_copy(
        update={"tools": [one.model_copy(update={"destructive": one.name == "createPet"}) for one in marked.tools]}
    )
    tools = [marked, ToolList("builtin", ["wipe", "note"], destructive=["wipe"])]
    found = classified(rule("*", APPROVE, 5), calls="createPet deletePet wipe note getPet", tools=tools)
    policies = [one.result.terms.timeout_policy for one in found.calls]  # type: ignore[union-attr]
    assert policies == [WAIT, WAIT, WAIT, APPROVE, APPROVE]
    assert found.terms.timeout_policy is WAIT  # type: ignore[union-attr]


def test_time_approves_no_batch_of_which_a_call_does_not_say_so() -> None:
    deploy = rule("deploy", APPROVE, 5)
    assert batch(deploy, calls="deploy show") == (WAIT, None, "deploy")
    assert batch(deploy, rule("show"), calls="deploy show") == (WAIT, None, "deploy")
    assert batch(deploy, rule("show", APPROVE, 5, approvers=("alice",)), calls="deploy show")[0] is WAIT
    assert batch(deploy, calls="deploy show", timeout_policy=ABORT, approval_timeout=MINUTE)[0] is WAIT


def test_the_config_never_lets_time_approve_for_all_calls() -> None:
    config: dict[str, Any] = {"timeout_policy": APPROVE, "approval_timeout": MINUTE}
    assert terms(**config).timeout_policy is WAIT
    assert batch(rule("deploy", pause_reason="why"), **config) == (WAIT, None, "deploy")


def test_nothing_of_a_config_that_could_not_be_read_lets_time_approve() -> None:
    assert terms(rule("*", APPROVE, 5), unreadable_reason="x").timeout_policy is WAIT


# Who may approve


@pytest.mark.parametrize(
    ("rules", "config", "groups", "alone"),
    [
        ([], {}, (), True),
        ([], {"approvers": ("carol",)}, (("carol",),), False),
        ([], {"approvers": ("carol",), "allow_self_approval": True}, (("carol",),), True),
        ([], {"allow_self_approval": False}, (), False),
        ([rule("deploy", approvers=("alice", "bob"))], {"approvers": ("carol",)}, (("alice", "bob"),), False),
        ([rule("deploy", approvers=("alice",), allow_self_approval=True)], {}, (("alice",),), True),
        # a rule for a text drops nobody, and allows nothing
        ([rule("deploy", pause_reason="x"), rule("*", approvers=("alice",))], {}, (("alice",),), False),
        ([rule("deploy"), rule("d*", approvers=("alice",)), rule("*", approvers=("bob",))], {}, (("alice",),), False),
        ([rule("deploy"), rule("*", approvers=("alice",), allow_self_approval=True)], {}, (("alice",),), True),
        ([rule("deploy", pause_reason="x"), rule("*", allow_self_approval=False)], {}, (), False),
        ([rule("deploy"), rule("*", allow_self_approval=False)], {"allow_self_approval": True}, (), False),
        ([rule("deploy", allow_self_approval=True), rule("*", allow_self_approval=False)], {}, (), True),
        (
            [
                rule("deploy"),
                rule("d*", approvers=("alice",), allow_self_approval=True),
                rule("*", allow_self_approval=False),
            ],
            {},
            (("alice",),),
            False,
        ),
        ([rule("deploy", approvers=("alice",)), rule("*", allow_self_approval=True)], {}, (("alice",),), False),
        ([rule("deploy", allow_self_approval=False), rule("*", approvers=("bob",))], {}, (("bob",),), False),
        ([rule("remove", approvers=("alice",), allow_self_approval=False)], {}, (), True),
    ],
)
def test_who_may_approve_a_call_is_kept_from_broader_rules(rules: Any, config: Any, groups: Any, alone: bool) -> None:
    for listed in permutations(rules):
        found = terms(*listed, **config)
        assert (found.approvers, found.allow_self_approval) == (groups, alone)


@given(rules(patterns()))
def test_an_approver_named_by_any_rule_of_a_call_leaves_it_with_approvers(found: tuple[Rule, ...]) -> None:
    gate = Gate(ApprovalConfig(require_approval=EVERY, rules=found), ALL)
    for tool, held in terms_by_tool(gate):
        naming = {one.approvers for one in found if one.approvers and any(map(one.match.matches, tool.addresses))}
        assert bool(held.approvers) == bool(naming)
        assert set(held.approvers) <= naming
        assert held.timeout_policy is not APPROVE or not (naming or tool in gate.destructive)
