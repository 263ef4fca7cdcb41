"""One sweep: everything that is up, however much it is, and nothing that is not; what it says it changed, changed."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from small_runtimes import runs
from waiting_calls import ADA, BOB, YES, Log, config, paused, runtime, states

from toolgen import Caller, Decision, Runtime, ToolCall, Verdict
from toolgen.approvals.model import Pause
from toolgen.approvals.states import CallState
from toolgen.approvals.store import JournalKey
from toolgen.runtime import sweep
from toolgen.runtime.resume import _claim
from toolgen.testing import Clock, memory_store

MINUTE = timedelta(minutes=1)
REJECTS: dict[str, Any] = {"approvalTimeout": "PT10M", "timeoutPolicy": "AUTO_REJECT"}
APPROVES: dict[str, Any] = {
    "requireApproval": ["note"],
    "rules": [{"match": "note", "approvalTimeout": "PT10M", "timeoutPolicy": "AUTO_APPROVE"}],
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pages_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep looks at one pause at a time, as it else does at a hundred."""
    monkeypatch.setattr(sweep, "_BATCH", 1)


def claimed(made: Runtime, pause: Pause, name: str) -> None:
    """What a process does right before it dies."""
    call = made.store.pause(pause.id, pause.tenant).call(name)
    made.store.change(pause.id, pause.tenant, _claim(made, call, ADA))


@runs
async def test_everything_that_is_due_is_swept_at_once_and_counted(clock: Clock, pages_of_one: None) -> None:
    made = runtime(Log(), config(**REJECTS), store=memory_store(clock))
    due = [await paused(made, thread=f"{n}") for n in range(3)]
    clock.move(11 * MINUTE)
    assert await made.sweep() == 3
    assert [states(made, pause) for pause in due] == [[CallState.expired]] * 3
    assert await made.sweep() == 0


def unreadable(made: Runtime, *given: Pause) -> None:
    """What becomes of pauses whose key is gone."""
    from sqlalchemy import update

    from toolgen.approvals.tables import calls

    with made.store.database.change() as connection:
        theirs = calls.c.pause.in_([pause.id for pause in given])
        connection.execute(update(calls).where(theirs).values(arguments=b"\0" * 60))


@runs
async def test_however_many_cannot_be_read_time_decides_the_others(clock: Clock, pages_of_one: None) -> None:
    made = runtime(Log(), config(**REJECTS), store=memory_store(clock))
    *broken, whole = [await paused(made, thread=f"{n}") for n in range(4)]
    unreadable(made, *broken)
    clock.move(11 * MINUTE)
    assert await made.sweep() == 1
    assert states(made, whole) == [CallState.expired]


@runs
async def test_however_many_cannot_be_read_what_ran_out_of_the_others_ends(clock: Clock, pages_of_one: None) -> None:
    made = runtime(Log(), store=memory_store(clock))
    *broken, whole = [await made.decide((await paused(made)).id, YES, decider=BOB) for _ in range(4)]
    lost = await made.decide((await paused(made)).id, YES, decider=BOB)
    claimed(made, lost, lost.calls[0].id)
    unreadable(made, *broken)
    clock.move(120 * MINUTE)
    while await made.sweep():
        pass
    assert (states(made, whole), states(made, lost)) == ([CallState.expired], [CallState.outcome_unknown])


@runs
async def test_what_is_left_to_another_process_keeps_no_sweep_going(clock: Clock, pages_of_one: None) -> None:
    made = runtime(Log(), store=memory_store(clock))
    await paused(runtime(Log(), config(**APPROVES), store=made.store))
    clock.move(11 * MINUTE)
    async with asyncio.timeout(10):
        assert await made.sweep() == 0


@runs
async def test_time_rejects_without_knowing_the_config_and_without_patience(clock: Clock) -> None:
    made = runtime(Log(), store=memory_store(clock))
    pause = await paused(runtime(Log(), config(**REJECTS), store=made.store))
    clock.move(11 * MINUTE)
    assert await made.sweep() == 1
    assert states(made, pause) == [CallState.expired]


@runs
async def test_only_the_claim_that_ran_out_is_ended(clock: Clock) -> None:
    told: list[str] = []
    made = runtime(Log(), store=memory_store(clock), on_change=lambda _, what: told.append(what))
    pause = await paused(made, "a", "b")
    await made.decide(pause.id, YES, decider=BOB)
    claimed(made, pause, "c0")
    clock.move(4 * MINUTE)
    claimed(made, pause, "c1")
    clock.move(2 * MINUTE)
    told.clear()
    assert await made.sweep() == 1
    assert states(made, pause) == [CallState.outcome_unknown, CallState.executing]
    assert told == ["ended"]
    assert (await made.sweep(), told) == (0, ["ended"])


@runs
async def test_an_approval_expires_beside_a_call_that_was_rejected(clock: Clock) -> None:
    made = runtime(Log(), config(approvalValidity="PT5M"), store=memory_store(clock))
    pause = await paused(made, "a", "b")
    await made.decide(pause.id, Decision("approved", calls={"c0": Verdict("rejected")}), decider=BOB)
    clock.move(6 * MINUTE)
    assert await made.sweep() == 1
    assert states(made, pause) == [CallState.rejected, CallState.expired]


@runs
async def test_claims_without_a_pause_are_swept_too(clock: Clock) -> None:
    made = runtime(Log(), store=memory_store(clock))
    key = JournalKey("default", "t", "1", "c0")
    made.store.claim(key, "f" * 64, requester="ada", worker="w", lease=clock.now + MINUTE)
    assert await made.sweep() == 0
    clock.move(2 * MINUTE)
    assert await made.sweep() == 1
    known = made.store.carried_out(key, "f" * 64, "ada")
    assert known is not None
    assert "not known" in known.message


@runs
async def test_a_worker_gets_past_those_who_are_away_and_comes_back_to_them(clock: Clock, pages_of_one: None) -> None:
    away = {"a", "b"}

    async def callers(subject: str, tenant: str) -> Caller | None:
        return None if subject in away else Caller(subject, tenant=tenant)

    log = Log()
    made = runtime(log, store=memory_store(clock), callers=callers)
    for subject in ("a", "b", "c"):
        call = ToolCall("c0", "note", {"text": subject})
        pause = (await made.submit([call], caller=Caller(subject))).pause
        assert pause is not None
        clock.move(MINUTE / 60)
        await made.decide(pause.id, YES, decider=BOB)
    for _ in range(3):
        await made.sweep()
    assert log == ["c"]
    away.clear()
    for _ in range(4):
        await made.sweep()
    assert sorted(log) == ["a", "b", "c"]


@runs
async def test_a_worker_asks_for_the_callers_of_what_it_may_run_and_changes_nothing_else(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    async def callers(subject: str, tenant: str) -> Caller | None:
        asked.append(subject)
        return None

    made = runtime(Log(), store=memory_store(clock), callers=callers)
    other = runtime(Log(), config(requireApproval=["n*"]), store=made.store)
    own, theirs, ended = [await paused(one, thread=f"{n}") for n, one in enumerate((made, other, made))]
    for pause in (own, theirs, ended):
        await other.decide(pause.id, YES, decider=BOB)
    claimed(made, ended, "c0")
    clock.move(6 * MINUTE)
    assert await made.sweep() == 1, "the claim"
    assert asked == ["ada"]
    before = made.store.pause(own.id, "default").revision
    assert await made.sweep() == 0
    assert made.store.pause(own.id, "default").revision == before
    assert not caplog.records


@runs
async def test_what_is_old_is_looked_for_once_a_minute_and_counted(clock: Clock) -> None:
    made = runtime(Log(), store=memory_store(clock), retention=timedelta(days=1))
    first = await paused(made, thread="1")
    await made.cancel(first.id, actor="bob")
    clock.move(MINUTE / 2)
    second = await paused(made, thread="2")
    await made.cancel(second.id, actor="bob")
    clock.move(timedelta(days=1) - MINUTE / 4)
    assert await made.sweep() == 1
    clock.move(MINUTE / 2)
    assert await made.sweep() == 0, "the second is old by now, and nobody looks yet"
    clock.move(MINUTE / 2)
    assert await made.sweep() == 1
    assert made.store.pause(second.id, "default").calls[0].arguments == {}
