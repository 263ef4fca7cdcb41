"""Leases: what a living process is carrying out is never taken for the leavings of a dead one, however long it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, World, add, config, edit, listing, paused, runs, state

from toolgen import Runtime, ToolCall, functions
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Store
from toolgen.result import Sent
from toolgen.runtime import leases

WAITS = config(requireApproval=["*"])
ALLOWS = config(unmatched="allow")


def working(world: World, given: Any, work: Callable[[], Any]) -> Runtime:
    """A runtime whose function does this, in a thread of its own, and answers `done`."""

    def run() -> str:
        work()
        return "done"

    return world.runtime(given, sources=[functions({"run": run})])


def other(world: World) -> Runtime:
    """Another process on the same store."""
    return Runtime(functions({}), WAITS, store=Store(world.url, world.keys, clock=world.clock), background=False)


def swept(runtime: Runtime) -> int:
    import asyncio

    done = asyncio.run(runtime.sweep())
    runtime.store.close()
    return done


def lease(world: World, table: str) -> float:
    """Until when the one claim that there is holds."""
    from toolgen.approvals import tables

    found = getattr(tables, table).c
    from sqlalchemy import select

    with world.store.database.read() as connection:
        return float(connection.execute(select(found.lease).where(found.state == "executing")).scalar_one())


RUN = ToolCall("c1", "run", {})


async def carried_out(runtime: Runtime, given: Any) -> tuple[Any, Any]:
    """The result of the call, which waits for approval or not, and its pause."""
    if given is ALLOWS:
        return (await runtime.submit([RUN], caller=ANN, thread="t", turn="1")).results["c1"], None
    pause = await paused(runtime, RUN)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    return (await runtime.resume(pause.id, caller=ANN))["c1"], pause


@pytest.mark.parametrize(("given", "table"), [(WAITS, "calls"), (ALLOWS, "journal")], ids=["approved", "allowed"])
@runs
async def test_what_runs_for_longer_than_a_lease_is_not_marked_and_its_result_is_kept(
    stored: World, monkeypatch: pytest.MonkeyPatch, given: Any, table: str
) -> None:
    monkeypatch.setattr(leases, "RENEWED", 0.001)
    found: list[int] = []

    def work() -> None:
        for _ in range(2):
            stored.clock.passes(hours=1)
            while lease(stored, table) < stored.clock().timestamp():  # until the thread has renewed it
                threading.Event().wait(0.001)
            found.append(swept(other(stored)))

    runtime = working(stored, given, work)
    result, pause = await carried_out(runtime, given)
    runtime.life.leases.wait()
    assert (found, result.body) == ([0, 0], "done")
    if pause is not None:
        assert stored.store.pause(pause.id, pause.tenant).calls[0].state is CallState.executed
    assert [one.kind for one in stored.audit() if one.kind in ("late", "outcome_unknown")] == []


@pytest.mark.parametrize("given", [WAITS, ALLOWS], ids=["approved", "allowed"])
@runs
async def test_a_result_that_comes_after_the_lease_was_lost_is_told_to_who_ran_it_and_recorded(
    stored: World, given: Any
) -> None:
    def work() -> None:
        stored.clock.passes(hours=1)  # such as a machine that slept
        assert swept(other(stored)) == 1

    runtime = working(stored, given, work)
    result, pause = await carried_out(runtime, given)
    assert result.body == "done"
    (late,) = stored.audit("late")
    assert (late.call, late.details["outcome"], late.details["tool"]) == ("c1", "executed", "run")
    if pause is None:
        again = (await runtime.submit([RUN], caller=ANN, thread="t", turn="1")).results["c1"]
    else:
        assert await state(runtime, pause) == {"c1": "outcome_unknown"}, "what was told to others stays"
        again = (await runtime.resume(pause.id, caller=ANN))["c1"]
    assert again.sent is Sent.unknown
    assert stored.store.faults() == []


@runs
async def test_a_sweep_renews_what_its_own_process_runs_before_it_looks(world: World) -> None:
    def work() -> None:
        import asyncio

        world.clock.passes(hours=1)
        asyncio.run(runtime.sweep())

    runtime = working(world, WAITS, work)
    result, pause = await carried_out(runtime, WAITS)
    assert (result.body, await state(runtime, pause)) == ("done", {"c1": "executed"})


@runs
async def test_a_claim_of_another_worker_and_one_that_is_over_are_not_renewed(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, edit())
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    from toolgen.runtime.resume import _claim, _key

    (call,) = pause.calls
    world.store.change(pause.id, "default", _claim(runtime, call, ANN))
    before = lease(world, "calls")
    world.store.renew(_key(pause, call), pause.id, worker="another", lease=world.clock.now.replace(year=2030))
    runtime.life.leases.renew()
    assert (lease(world, "calls"), lease(world, "journal")) == (before, before)


@runs
async def test_nothing_is_left_running_when_nothing_is_carried_out(world: World) -> None:
    runtime = world.runtime(ALLOWS)
    for _ in range(2):
        await runtime.submit([add(), listing()], caller=ANN)
    thread = runtime.life.leases._thread
    runtime.life.leases.wait()
    assert thread is not None
    assert not thread.is_alive()
