from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from stored_pauses import NOW, a_call, a_vote, added, moved, to

from toolgen.approvals.model import CallTerms
from toolgen.approvals.states import FINAL, NEXT, CallState, may_become
from toolgen.approvals.store import Change, Store
from toolgen.errors import StoreError

TABLE = """
pending   -> approved | rejected | expired | cancelled
approved  -> executing | not_executed | expired | cancelled
executing -> executed | failed | outcome_unknown
"""
ALLOWED = {
    (CallState(line.split("->")[0].strip()), CallState(word.strip()))
    for line in TABLE.strip().splitlines()
    for word in line.split("->")[1].split("|")
}
WAY = {
    state: way
    for state, *way in (
        [CallState.pending],
        [CallState.approved, CallState.approved],
        [CallState.executing, CallState.approved, CallState.executing],
        *([state, state] for state in (CallState.rejected, CallState.expired, CallState.cancelled)),
        [CallState.not_executed, CallState.approved, CallState.not_executed],
        *([end, CallState.approved, CallState.executing, end] for end in NEXT[CallState.executing]),
    )
}


def test_the_transitions_are_those_of_the_table_and_no_others() -> None:
    assert {(old, new) for old in CallState for new in CallState if may_become(old, new)} == ALLOWED


def test_final_states_have_no_way_out() -> None:
    assert {old for old, _ in ALLOWED}.isdisjoint(FINAL)
    assert {old for old, _ in ALLOWED} | FINAL == set(CallState)


@pytest.mark.parametrize("old", list(CallState))
@pytest.mark.parametrize("new", list(CallState))
def test_the_store_makes_the_allowed_transitions_and_refuses_the_others(
    old: CallState, new: CallState, memory: Store
) -> None:
    pause = moved(memory, added(memory), *WAY[old])
    assert pause.calls[0].state is old
    if (old, new) in ALLOWED:
        assert moved(memory, pause, new).calls[0].state is new
        return
    if new is old:
        return  # it is no transition
    with pytest.raises(StoreError, match=f"that is {old.value} cannot become {new.value}"):
        memory.change(pause.id, "t", to(new))
    assert memory.pause(pause.id, "t").calls[0].state is old


CHANGED: dict[str, Any] = {
    "arguments": {"petId": "8"},
    "fingerprint": "e" * 64,
    "binding": "e" * 64,
    "tool_digest": "e" * 64,
    "terms": CallTerms(validity=timedelta(days=9)),
    "votes": (a_vote("mallory"),),
    "tool": "deletePet",
    "endpoint": "DELETE /pets/{petId}",
    "source": "other",
    "proposed": {"petId": "9"},
}


@pytest.mark.parametrize("name", list(CHANGED))
@pytest.mark.parametrize("state", [CallState.approved, CallState.executing])
def test_the_request_of_an_approved_call_cannot_be_changed_any_more(name: str, state: CallState, memory: Store) -> None:
    pause = moved(memory, added(memory), *WAY[state])

    def other(pause: Any) -> Change:
        return Change(pause.with_call(replace(pause.calls[0], **{name: CHANGED[name]})))

    with pytest.raises(StoreError, match=f"the request of a call that is {state.value} cannot be changed"):
        memory.change(pause.id, "t", other)
    assert memory.pause(pause.id, "t") == pause


@pytest.mark.parametrize("state", sorted(FINAL))
def test_what_is_over_stays_as_it_is(state: CallState, memory: Store) -> None:
    pause = moved(memory, added(memory), *WAY[state])
    with pytest.raises(StoreError, match=f"that is {state.value} cannot be changed"):
        memory.change(pause.id, "t", lambda now: Change(now.with_call(replace(now.calls[0], detail="another"))))


@pytest.mark.parametrize(
    "given",
    [
        {"tenant": "u"},
        {"requester": "eve"},
        {"thread": "x"},
        {"turn": "x"},
        {"gating_digest": "x"},
        {"id": "x"},
        {"batch": "x"},
        {"created": NOW + timedelta(days=1)},
    ],
)
def test_what_a_pause_was_made_with_cannot_be_changed(given: dict[str, Any], memory: Store) -> None:
    pause = added(memory)
    with pytest.raises(StoreError, match="made with"):
        memory.change(pause.id, "t", lambda now: Change(replace(now, **given)))
    assert memory.pause(pause.id, "t") == pause


def test_a_pause_keeps_all_of_its_calls(memory: Store) -> None:
    pause = added(memory, a_call("c1"), a_call("c2"))
    for calls in (pause.calls[:1], (*pause.calls, a_call("c3"))):
        with pytest.raises(ValueError, match="zip"):
            memory.change(pause.id, "t", lambda now, calls=calls: Change(replace(now, calls=calls)))
    assert memory.pause(pause.id, "t") == pause


def test_waiting_and_open_follow_the_calls(memory: Store, opened: Callable[..., Store]) -> None:
    pause = added(memory, a_call("c1"), a_call("c2"))
    for name, states, waiting, is_open in (
        ("c1", [CallState.approved], 1, True),
        ("c2", [CallState.rejected], 0, True),
        ("c1", [CallState.executing, CallState.executed], 0, False),
    ):
        moved(memory, pause, *states, name=name)
        assert memory.count_waiting("t") == waiting
        assert bool(memory.listed("t", is_open=True)) is is_open
    assert memory.listed("t")[0].created == NOW
