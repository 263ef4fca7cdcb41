"""What a decision comes to, without a runtime: whose verdict counts, for which call, and what is said otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from stored_pauses import NOW, a_call, a_pause

from toolgen.approvals.decide import may_decide, ruling, voted
from toolgen.approvals.model import (
    MOST_ROUNDS,
    CallTerms,
    Decider,
    Decision,
    Pause,
    Remember,
    Scope,
    Verdict,
    VerdictKind,
    Vote,
)
from toolgen.approvals.states import CallState
from toolgen.errors import DecisionForbidden, DecisionInvalid, PauseConflict

LEADS = CallTerms(approvers=(("role:lead",), ("legal", "law")), allow_self_approval=False)
BOB = Decider("bob", frozenset({"lead"}), tenant="t")
YES = Decision("approved")


def fields_of(pause: Pause, decision: Decision) -> list[str]:
    with pytest.raises(DecisionInvalid) as caught:
        ruling(pause, decision, BOB)
    return [problem.where for problem in caught.value.problems]


def test_nobody_without_a_name_or_of_another_tenant_decides() -> None:
    pause = a_pause(requester="")
    (call,) = pause.calls
    assert may_decide(call, pause, BOB)
    for decider in (replace(BOB, subject=""), replace(BOB, tenant="other"), replace(BOB, subject="system:timeout")):
        assert not may_decide(call, pause, decider), decider


def test_a_call_that_is_decided_is_not_decided_again_by_its_name() -> None:
    pause = a_pause(a_call("c1", state=CallState.rejected), a_call("c2"))
    with pytest.raises(PauseConflict, match="c1 is rejected already"):
        ruling(pause, Decision("approved", calls={"c1": Verdict("approved")}), BOB)
    assert list(ruling(pause, YES, BOB).verdicts) == ["c2"]


def test_calls_that_somebody_else_decides_are_told() -> None:
    pause = a_pause(a_call("c1"), a_call("c2", terms=CallTerms(approvers=(("cfo",),))))
    found = ruling(pause, YES, BOB)
    assert (list(found.verdicts), found.skipped) == (["c1"], ("c2",))
    found = ruling(pause, Decision("approved", calls={"c1": Verdict("approved")}, others_wait=True), BOB)
    assert (list(found.verdicts), found.skipped) == (["c1"], ("c2",))


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (LEADS, "approvers are role:lead, and legal or law; the requester may not approve it"),
        (CallTerms(approvers=(("cfo",),)), "approvers are cfo"),
        (CallTerms(allow_self_approval=False), "the requester is not among those who may; the requester may not"),
    ],
)
def test_who_may_decide_is_said_to_who_may_not(terms: CallTerms, said: str) -> None:
    with pytest.raises(DecisionForbidden, match=said) as caught:
        ruling(a_pause(a_call(terms=terms)), YES, Decider("ann", tenant="t"))
    assert ("may not approve" in str(caught.value)) is not terms.allow_self_approval


def test_nothing_but_a_verdict_that_approves_is_a_vote_for_a_call() -> None:
    for verdict in ("yes", None, "rejected"):
        call = voted(a_call(), Verdict(verdict), BOB, NOW)
        assert (call.state, call.votes[-1].verdict) == (CallState.rejected, VerdictKind.rejected)
    assert voted(a_call(), Verdict("approved"), BOB, NOW).state is CallState.approved


def test_a_group_that_rejected_has_not_agreed() -> None:
    against = Vote("law", VerdictKind.rejected, NOW, None, (1,))
    assert voted(a_call(terms=LEADS, votes=(against,)), Verdict("approved"), BOB, NOW).state is CallState.pending
    agreed = replace(against, verdict=VerdictKind.approved)
    assert voted(a_call(terms=LEADS, votes=(agreed,)), Verdict("approved"), BOB, NOW).state is CallState.approved


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"scope": "any"}, "scope"),
        ({"scope": Scope.fields, "fields": ("",)}, "scope"),
        ({"scope": Scope.fields, "fields": (5,)}, "scope"),
        ({"scope": Scope.endpoint, "fields": ("id",)}, "scope"),
        ({"uses": True}, "uses"),
        ({"uses": 1.5}, "uses"),
        ({"uses": 0}, "uses"),
        ({"until": 5}, "until"),
        ({"until": datetime(2026, 5, 1)}, "until"),
    ],
)
def test_a_wish_to_remember_that_is_not_exact_is_refused(wish: dict[str, Any], field: str) -> None:
    decision = Decision("approved", calls={"c1": Verdict("approved", remember=Remember(**wish))})
    assert fields_of(a_pause(), decision) == [f"calls.c1.remember.{field}"]


def test_what_may_be_remembered_is_accepted() -> None:
    wish = Remember(Scope.fields, ("id",), uses=1, until=NOW + timedelta(days=1))
    assert ruling(a_pause(), Decision("approved", calls={"c1": Verdict("approved", remember=wish)}), BOB).verdicts


def test_a_call_that_is_not_there_is_one_problem() -> None:
    decision = Decision("approved", calls={"nope": Verdict("maybe", note="x" * 5000)})
    assert fields_of(a_pause(), decision) == ["calls.nope"]


def test_a_new_proposal_of_one_call_counts_as_one_too() -> None:
    again = Decision("approved", calls={"c1": Verdict("rejected", retry=True)})
    assert ruling(a_pause(round=MOST_ROUNDS - 1), again, BOB).verdicts["c1"].retry
    assert fields_of(a_pause(round=MOST_ROUNDS), again) == ["retry"]
    assert ruling(a_pause(round=MOST_ROUNDS), YES, BOB).verdicts
