"""What one call does in the journal touches no other call's row, and is told to nobody it does not belong to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update
from stored_pauses import Clock, a_call, added, moved

from toolgen.approvals.journal import _lapsed
from toolgen.approvals.states import CallState
from toolgen.approvals.store import JournalKey, Store
from toolgen.approvals.tables import journal
from toolgen.errors import PauseConflict
from toolgen.result import Sent, ToolResult

ONE = JournalKey("t", "thread", "turn", "c1")
TWO = replace(ONE, call="c2")
ANSWER = ToolResult(True, Sent.answered, 200, "application/json", {"said": "yes"}, {})
NOTHING = ToolResult(False, Sent.not_sent, message="connection refused")


def claim(store: Store, key: JournalKey = ONE, requester: str = "ann") -> ToolResult | None:
    lease = store.clock() + timedelta(minutes=1)
    return store.claim(key, "f" * 64, requester=requester, worker="w", lease=lease)


def finish(store: Store, key: JournalKey, result: ToolResult) -> None:
    store.finish(key, CallState.executed if result.ok else CallState.failed, result, [])


def rows(store: Store) -> dict[str, Any]:
    with store.database.read() as connection:
        return {row["call"]: row for row in connection.execute(select(journal)).mappings()}


def states(store: Store) -> dict[str, str]:
    return {name: row["state"] for name, row in rows(store).items()}


def test_the_end_of_one_call_is_the_end_of_no_other(memory: Store) -> None:
    claim(memory, ONE)
    claim(memory, TWO)
    finish(memory, ONE, ANSWER)
    assert states(memory) == {"c1": "executed", "c2": "executing"}


def test_a_call_that_is_claimed_again_after_a_failure_takes_no_other_failed_one_along(memory: Store) -> None:
    for key in (ONE, TWO):
        claim(memory, key)
        finish(memory, key, NOTHING)
    assert claim(memory, ONE) is None
    assert states(memory) == {"c1": "executing", "c2": "failed"}


def test_who_asks_for_a_call_that_is_claimed_again_is_not_told_how_it_failed_before(memory: Store) -> None:
    claim(memory)
    finish(memory, ONE, NOTHING)
    assert claim(memory) is None
    known = claim(memory)
    assert known is not None
    assert (known.ok, known.sent) == (False, Sent.unknown)
    assert "right now" in known.message


def test_who_asks_for_a_call_that_is_being_carried_out_does_not_end_its_claim(memory: Store) -> None:
    claim(memory)
    assert claim(memory) is not None
    finish(memory, ONE, ANSWER)
    assert claim(memory) == ANSWER


def test_a_claim_is_over_the_moment_its_lease_is(memory: Store, clock: Clock) -> None:
    claim(memory)
    clock.forward(minutes=1)
    known = claim(memory)
    assert known is not None
    assert "not known" in known.message
    assert states(memory) == {"c1": "outcome_unknown"}


def test_a_call_that_is_asked_for_outside_its_pause_leaves_the_end_of_the_claim_to_the_pause(
    memory: Store, clock: Clock
) -> None:
    pause = added(memory, a_call(), turn="turn")
    moved(memory, pause, CallState.approved, CallState.executing)
    clock.forward(minutes=10)
    known = claim(memory)
    assert known is not None
    assert "not known" in known.message
    assert states(memory) == {"c1": "executing"}
    moved(memory, pause, CallState.outcome_unknown)
    assert states(memory) == {"c1": "outcome_unknown"}


def test_the_end_of_a_paused_call_is_the_end_of_no_other_of_its_pause(memory: Store) -> None:
    pause = added(memory, a_call("c1"), a_call("c2"))
    for name in ("c1", "c2"):
        moved(memory, pause, CallState.approved, CallState.executing, name=name)
    moved(memory, pause, CallState.executed)
    assert states(memory) == {"c1": "executed", "c2": "executing"}


@pytest.mark.parametrize(
    ("whose", "other", "result"),
    [("ann", "bob", None), ("ann", "", None), ("ann", "bob", ANSWER), ("ann", "", ANSWER), ("", "bob", ANSWER)],
)
def test_what_is_known_of_a_call_is_told_to_its_requester_only(
    memory: Store, whose: str, other: str, result: ToolResult | None
) -> None:
    claim(memory, requester=whose)
    if result is not None:
        finish(memory, ONE, result)
    with pytest.raises(PauseConflict):
        claim(memory, requester=other)
    with pytest.raises(PauseConflict):
        memory.carried_out(ONE, "f" * 64, other)


def test_claims_with_the_same_lease_lapse_one_by_one(memory: Store, clock: Clock) -> None:
    claim(memory, ONE)
    claim(memory, TWO)
    clock.forward(minutes=2)
    assert memory.lapse(clock(), limit=1) == 1
    assert sorted(states(memory).values()) == ["executing", "outcome_unknown"]


def test_what_ended_long_ago_does_not_stand_in_the_way_of_claims_that_ran_out(memory: Store, clock: Clock) -> None:
    claim(memory, ONE)
    finish(memory, ONE, ANSWER)
    claim(memory, TWO)
    clock.forward(minutes=2)
    assert memory.lapse(clock(), limit=1) == 1
    assert states(memory) == {"c1": "executed", "c2": "outcome_unknown"}


def test_a_claim_that_ended_or_was_made_anew_since_it_was_looked_at_does_not_lapse(memory: Store, clock: Clock) -> None:
    claim(memory)
    seen = rows(memory)["c1"]
    clock.forward(seconds=30)
    finish(memory, ONE, NOTHING)
    for state in ("failed", "executing"):
        with memory.database.change() as connection:
            assert _lapsed(connection, seen) == []
        assert states(memory) == {"c1": state}
        if state == "failed":
            claim(memory)


@pytest.mark.parametrize("state", ["", "pending", "EXECUTED", "something new"])
def test_a_state_that_nobody_knows_is_an_unknown_outcome_and_never_runs_again(
    state: str, memory: Store, clock: Clock
) -> None:
    claim(memory)
    with memory.database.change() as connection:
        connection.execute(update(journal).values(state=state))
    for _ in range(2):
        found = claim(memory)
        assert found is not None
        assert (found.ok, found.sent) == (False, Sent.unknown)
        assert "its outcome is not known, and it is not repeated" in found.message
        clock.forward(days=1)


def test_what_provably_did_not_leave_without_a_pause_is_claimed_by_one_and_nothing_else_is(memory: Store) -> None:
    pause = added(memory)
    key = JournalKey(pause.tenant, pause.thread, pause.turn, pause.calls[0].id)
    fingerprint, requester = pause.calls[0].fingerprint, pause.requester
    for turn, print_, who, ends in (
        (pause.turn, fingerprint, requester, CallState.failed),
        ("2", fingerprint, requester, CallState.executed),
        ("3", "e" * 64, requester, CallState.failed),
        ("4", fingerprint, "eve", CallState.failed),
    ):
        one = replace(key, turn=turn)
        mine = pause if turn == pause.turn else added(memory, turn=turn)
        lease = memory.clock() + timedelta(minutes=1)
        assert memory.claim(one, print_, requester=who, worker="w", lease=lease) is None
        memory.finish(one, ends, ANSWER if ends is CallState.executed else NOTHING, [])
        moved(memory, mine, CallState.approved)
        if turn == pause.turn:
            moved(memory, mine, CallState.executing)
            assert memory.claim(one, print_, requester=who, worker="w", lease=lease) is not None
        else:
            with pytest.raises(PauseConflict, match="carried out before"):
                moved(memory, mine, CallState.executing)
