from __future__ import annotations

from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_policies import ALL, calls_of, configs
from small_policies import api, known, pets

from toolgen.policy.config import ApprovalConfig, NoProgress, Rule, TimeoutPolicy, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Classification, Outcome, ToolCall
from toolgen.policy.patterns import Pattern
from toolgen.policy.terms import BatchTerms, Terms

WAIT, ABORT, REJECT, APPROVE = TimeoutPolicy
MINUTE = timedelta(minutes=1)
EVERY = (Pattern("*"),)
CALLS = calls_of(known(*ALL).values())
ALLOW = ApprovalConfig(unmatched=Unmatched.allow)
OFF = ApprovalConfig.off()


def classified(*layers: ApprovalConfig | None, tools: Any = None) -> Classification:
    """Calls of every tool of `pets`, by their names."""
    gate = Gate(layers, tools or pets())
    return gate.classify([ToolCall(tool.name, tool.name) for tool in gate.tools])


def outcomes(*layers: ApprovalConfig | None) -> dict[str, str]:
    return {one.call.name or "": one.outcome.name for one in classified(*layers).calls}


def waits(policy: TimeoutPolicy | None, minutes: int | None = None, **more: Any) -> ApprovalConfig:
    """A config that gates every call, with one rule."""
    timeout = None if minutes is None else minutes * MINUTE
    rule = Rule(match=EVERY[0], timeout_policy=policy, approval_timeout=timeout, **more)
    return ApprovalConfig(require_approval=EVERY, rules=(rule,))


def merged(*layers: ApprovalConfig) -> Terms:
    (one,) = classified(*layers, tools=api("x", createPet="post /pets")).calls
    assert one.result.terms is not None
    return one.result.terms


# Outcomes


@settings(max_examples=200)
@given(configs(), configs())
def test_no_layer_loosens_what_happens_to_any_call(base: ApprovalConfig, task: ApprovalConfig) -> None:
    before = Gate(base, ALL).classify(CALLS)
    after = Gate([base, task], ALL).classify(CALLS)
    first = Gate([task, base], ALL).classify(CALLS)
    for one, other, turned in zip(before.calls, after.calls, first.calls, strict=True):
        assert other.outcome is turned.outcome
        assert other.outcome >= one.outcome
        if one.outcome is other.outcome is Outcome.gated:
            assert one.result.terms is not None
            assert other.result.terms is not None
            assert is_as_strict(other.result.terms, one.result.terms)
            assert other.result.terms.approval_validity <= one.result.terms.approval_validity
            assert set(other.result.terms.approvers) >= set(one.result.terms.approvers)
            assert one.result.terms.allow_self_approval or not other.result.terms.allow_self_approval
    if before.terms is not None and before.denied == after.denied:
        assert after.terms is not None
        assert is_as_strict(after.terms, before.terms)


def is_as_strict(one: BatchTerms, other: BatchTerms) -> bool:
    """Whether what happens when nobody decides is as strict: the policy, then the time until it."""
    order = list(TimeoutPolicy)
    if one.timeout_policy is not other.timeout_policy:
        return order.index(one.timeout_policy) < order.index(other.timeout_policy)
    if one.approval_timeout is None or other.approval_timeout is None:
        return one.approval_timeout is other.approval_timeout
    if one.timeout_policy is APPROVE:  # the sooner time approves, the less time there is to object
        return one.approval_timeout >= other.approval_timeout
    return one.approval_timeout <= other.approval_timeout


@given(st.lists(configs(), min_size=1, max_size=3), st.randoms())
def test_the_outcome_is_the_strictest_of_all_layers_in_whatever_order(
    layers: list[ApprovalConfig], random: Any
) -> None:
    alone = [Gate(layer, ALL).classify(CALLS).calls for layer in layers]
    gate, shuffled = Gate(layers, ALL), Gate(random.sample(layers, len(layers)), ALL)
    for call, other, *each in zip(gate.classify(CALLS).calls, shuffled.classify(CALLS).calls, *alone, strict=True):
        assert call.outcome is other.outcome is max(one.outcome for one in each)
        decided = next(one for one in each if one.outcome is call.outcome)
        assert (call.reason, call.result.where) == (decided.reason, decided.result.where)
        if call.result.tool is not None:
            assert call.result.layer == each.index(decided)
            assert [one.outcome for one in call.result.layers] == [one.outcome for one in each]


@pytest.mark.parametrize("task", [OFF, ALLOW, ApprovalConfig(require_approval=()), ApprovalConfig(exempt=EVERY)])
def test_a_layer_cannot_switch_the_gate_off_or_exempt_what_another_requires(task: ApprovalConfig) -> None:
    for layers in permutations([waits(None), task]):
        assert set(outcomes(*layers).values()) == {"gated"}
        assert {one.reason for one in classified(*layers).calls} == {"*"}


def test_three_layers_each_add_what_they_ask_for() -> None:
    layers = [
        ApprovalConfig(unmatched=Unmatched.allow, require_approval=(Pattern("http.post:*"),)),
        ApprovalConfig(unmatched=Unmatched.allow, deny=(Pattern("http.delete:*"),), exempt=(Pattern("createPet"),)),
        ApprovalConfig(unmatched=Unmatched.allow, require_approval=(Pattern("getPet"), Pattern("deletePet"))),
    ]
    expected = {"listPets": "allowed", "getPet": "gated", "createPet": "gated", "deletePet": "denied"}
    for chosen in permutations(layers):
        assert outcomes(*chosen) == expected
    assert [one.result.layer for one in classified(*layers).calls] == [0, 0, 2, 1]


def test_a_layer_that_is_missing_counts_as_no_config_and_no_layers_as_one() -> None:
    default = {"listPets": "allowed", "getPet": "allowed", "createPet": "gated", "deletePet": "gated"}
    assert outcomes(OFF, None) == outcomes(None) == outcomes() == default


def test_a_layer_that_cannot_be_read_gates_everything_and_what_others_deny_stays_denied() -> None:
    unreadable = ApprovalConfig.unreadable("gone")
    deny = ApprovalConfig(unmatched=Unmatched.allow, deny=(Pattern("deletePet"),), exempt=EVERY)
    for layers in permutations([unreadable, deny]):
        found = classified(*layers)
        assert {call.name for call in found.denied} == {"deletePet"}
        assert {call.name for call in found.gated} == {"listPets", "getPet", "createPet"}
        assert found.reasons["createPet"] == "the approval config could not be read: gone"
        assert found.reasons["deletePet"] == "deletePet"
        assert {one.call.name for one in found.calls if one.result.terms is None} == {"deletePet"}


# Terms


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (waits(WAIT), waits(REJECT, 5), (WAIT, None)),
        (waits(None), waits(WAIT), (WAIT, None)),
        (waits(ABORT, 9), waits(REJECT, 5), (ABORT, 5)),
        (waits(REJECT, 9), waits(REJECT, 5), (REJECT, 5)),
        (waits(REJECT, 9), waits(APPROVE, 5), (REJECT, 5)),
        (waits(APPROVE, 9), waits(APPROVE, 5), (APPROVE, 9)),
        (waits(APPROVE, 9), waits(None, 5), (WAIT, None)),
        (waits(APPROVE, 9), waits(APPROVE, 5, approvers=("alice",)), (WAIT, None)),
        (waits(REJECT, 9), OFF, (REJECT, 9)),
        (waits(APPROVE, 9), OFF, (APPROVE, 9)),
    ],
)
def test_the_stricter_policy_and_timeout_of_the_layers_that_gate_hold(
    one: ApprovalConfig, other: ApprovalConfig, expected: tuple[TimeoutPolicy, int | None]
) -> None:
    timeout = None if expected[1] is None else expected[1] * MINUTE
    for layers in permutations([one, other]):
        found, whole = merged(*layers), classified(*layers, tools=api("x", createPet="post /pets")).terms
        assert (found.timeout_policy, found.approval_timeout) == (expected[0], timeout)
        assert whole is not None
        assert (whole.timeout_policy, whole.approval_timeout) == (expected[0], timeout)


def test_a_layer_has_no_say_in_what_it_does_not_state_but_for_the_defaults_of_the_first() -> None:
    silent, states = waits(None), waits(REJECT, 5, approval_validity=timedelta(days=9))
    found = merged(states, silent)
    assert (found.timeout_policy, found.approval_timeout, found.approval_validity) == (
        REJECT,
        5 * MINUTE,
        timedelta(days=9),
    )
    found = merged(silent, states)
    assert (found.timeout_policy, found.approval_timeout, found.approval_validity) == (WAIT, None, timedelta(hours=1))
    # A layer that gates a call and says nothing of time does not let time approve it.
    assert merged(waits(APPROVE, 5), silent).timeout_policy is WAIT
    assert merged(silent, waits(APPROVE, 5)).timeout_policy is WAIT


def test_the_rule_of_a_call_is_that_of_a_layer_whose_policy_holds() -> None:
    one, other = waits(REJECT, 9), waits(ABORT, 5)
    for layers in permutations([one, other]):
        assert merged(*layers).rule == other.rules[0]
        assert classified(*layers).rule == other.rules[0]
        assert {call.rule for call in classified(*layers).calls} == {other.rules[0]}


def test_somebody_of_each_layers_approvers_has_to_approve_and_not_the_requester_if_any_says_so() -> None:
    alice, ops = ("alice", "bob"), ("role:ops",)
    found = merged(waits(None, approvers=alice, allow_self_approval=True), waits(None, approvers=ops), waits(None))
    assert (found.approvers, found.allow_self_approval) == ((alice, ops), False)
    same = merged(*[waits(None, approvers=alice, allow_self_approval=True)] * 2)
    assert (same.approvers, same.allow_self_approval) == ((alice,), True)


def test_an_approval_holds_as_long_as_the_strictest_layer_says() -> None:
    one, other = waits(None, approval_validity=9 * MINUTE), waits(None, approval_validity=5 * MINUTE)
    assert merged(one, other).approval_validity == 5 * MINUTE
    assert merged(other, one).approval_validity == 5 * MINUTE


def test_texts_are_those_of_the_last_layer_that_states_them() -> None:
    layers = [waits(None, pause_reason=text, pending_message=f"{text} waits") for text in ("base", "task")]
    layers.append(waits(None))
    for found in (merged(*layers), classified(*layers).terms):
        assert found is not None
        assert (found.pause_reason, found.pending_message) == ("task", "task waits")
    assert merged(waits(None, pause_reason="base"), layers[2]).pause_reason == "base"


def test_terms_of_a_layer_that_does_not_gate_a_call_do_not_hold_for_it() -> None:
    base = ApprovalConfig(
        unmatched=Unmatched.allow,
        require_approval=(Pattern("deletePet"),),
        rules=waits(ABORT, 5, approvers=("alice",)).rules,
    )
    found = {one.call.name: one.result.terms for one in classified(base, waits(REJECT, 9)).calls}
    assert [found[name].timeout_policy for name in ("createPet", "deletePet")] == [REJECT, ABORT]  # type: ignore[union-attr]
    assert [found[name].approvers for name in ("createPet", "deletePet")] == [(), (("alice",),)]  # type: ignore[union-attr]


# Budgets


def test_budgets_are_the_smallest_that_are_stated_and_the_default_is_that_of_the_first_layer() -> None:
    def budgets(*layers: ApprovalConfig) -> tuple[int, int, str]:
        gate = Gate(layers)
        return gate.max_pauses_per_turn, gate.max_auto_approvals_per_turn, gate.on_no_progress.value

    lax = ApprovalConfig(max_pauses_per_turn=9, max_auto_approvals_per_turn=8, on_no_progress=NoProgress.AUTO_REJECT)
    strict = ApprovalConfig(max_pauses_per_turn=1, max_auto_approvals_per_turn=0, on_no_progress=NoProgress.ABORT)
    assert budgets(ApprovalConfig()) == budgets() == (3, 2, "WAIT_FOR_HUMAN")
    assert budgets(lax) == (9, 8, "AUTO_REJECT")
    for layers in permutations([lax, strict]):
        assert budgets(*layers) == (1, 0, "ABORT")
    assert budgets(lax, ApprovalConfig()) == (9, 8, "AUTO_REJECT")
    assert budgets(ApprovalConfig(), lax) == (3, 2, "WAIT_FOR_HUMAN")


@given(configs(), configs())
def test_no_layer_widens_a_budget(base: ApprovalConfig, task: ApprovalConfig) -> None:
    before, after = Gate(base), Gate([base, task])
    assert after.max_pauses_per_turn <= before.max_pauses_per_turn
    assert after.max_auto_approvals_per_turn <= before.max_auto_approvals_per_turn
    order = list(NoProgress)
    assert order.index(after.on_no_progress) <= order.index(before.on_no_progress)
