"""Waiting for a verdict: none is lost, whoever gives it and wherever, and who stops waiting leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from waiting_calls import ADA, BOB, NO, YES, Log, paused, runtime, until

from toolgen import Runtime
from toolgen.approvals.store import Store
from toolgen.errors import PauseConflict, PauseUnknown
from toolgen.runtime import waiting


def listening(made: Runtime) -> bool:
    return any(one.is_up for one in made.life.waiters.listeners.values())


def connections(made: Runtime) -> int:
    """How many of PostgreSQL's connections listen."""
    from sqlalchemy import text

    with made.store.database.read() as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        return int(connection.execute(text(query)).scalar_one())


def test_a_decision_of_another_process_wakes_who_waits(store_url: str) -> None:
    async def run() -> None:
        log = Log()
        here, there = runtime(log, store=Store(store_url)), runtime(Log(), store=Store(store_url))
        pause = await paused(here)
        waiter = asyncio.create_task(here.wait(pause.id, caller=ADA, timeout=20))
        await until(lambda: len(here.life.waiters) == 1)
        await there.decide(pause.id, YES, decider=BOB)
        assert (await waiter)["c0"].ok
        assert log == ["x"]
        for one in (here, there):
            one.store.close()

    asyncio.run(run())


def test_a_decision_made_before_anybody_waits_is_not_lost(store_url: str) -> None:
    async def run() -> None:
        made = runtime(Log(), store=Store(store_url))
        pause = await paused(made)
        await made.decide(pause.id, NO, decider=BOB)
        (result,) = (await made.wait(pause.id, caller=ADA, timeout=5)).values()
        assert "not today" in result.message
        made.store.close()

    asyncio.run(run())


def test_postgresql_tells_at_once_over_one_connection_however_many_wait(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store_url.startswith("sqlite"):
        pytest.skip("SQLite tells nobody")
    monkeypatch.setattr(waiting, "LISTENING", 600.0)  # nobody looks by themselves

    async def run() -> None:
        here, there = runtime(Log(), store=Store(store_url)), runtime(Log(), store=Store(store_url))
        pauses = [await paused(here, f"{n}") for n in range(12)]
        waiters = [asyncio.create_task(here.wait(one.id, caller=ADA)) for one in pauses]
        await until(lambda: listening(here) and len(here.life.waiters) == 12)
        assert connections(there) == 1
        # The first look of every waiter that the connection caused is over once they have all looked since.
        for one in pauses:
            await there.decide(one.id, YES, decider=BOB)
        async with asyncio.timeout(20):
            found = await asyncio.gather(*waiters)
        assert all(one["c0"].ok for one in found)
        await until(lambda: connections(there) == 0)
        assert here.life.waiters.listeners == {}
        for one in (here, there):
            one.store.close()

    asyncio.run(run())


def test_a_lost_connection_is_made_anew_and_loses_no_decision(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if store_url.startswith("sqlite"):
        pytest.skip("SQLite tells nobody")
    monkeypatch.setattr(waiting, "LISTENING", 600.0)
    monkeypatch.setattr(waiting, "_AGAIN", 0.05)

    async def run() -> None:
        from sqlalchemy import text

        here, there = runtime(Log(), store=Store(store_url)), runtime(Log(), store=Store(store_url))
        pause = await paused(here)
        waiter = asyncio.create_task(here.wait(pause.id, caller=ADA))
        await until(lambda: listening(here))
        with there.store.database.change() as connection:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            connection.execute(text(f"{query} AND datname = current_database()"))
        await there.decide(pause.id, YES, decider=BOB)
        async with asyncio.timeout(20):
            assert (await waiter)["c0"].ok
        for one in (here, there):
            one.store.close()

    asyncio.run(run())


def test_who_stops_waiting_leaves_nothing_behind(store_url: str) -> None:
    async def run() -> None:
        made = runtime(Log(), store=Store(store_url))
        pause = await paused(made)
        before = asyncio.all_tasks()
        waiters = [asyncio.create_task(made.wait(pause.id, caller=ADA)) for _ in range(5)]
        await until(lambda: len(made.life.waiters) == 5)
        for one in waiters:
            one.cancel()
        assert all(
            isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*waiters, return_exceptions=True)
        )
        assert (len(made.life.waiters), made.life.waiters.listeners, asyncio.all_tasks()) == (0, {}, before)
        made.store.close()

    asyncio.run(run())


def test_waiting_ends_after_its_time_and_the_pause_goes_on_waiting(store_url: str) -> None:
    async def run() -> None:
        made = runtime(Log(), store=Store(store_url))
        pause = await paused(made)
        with pytest.raises(TimeoutError):
            await made.wait(pause.id, caller=ADA, timeout=0.05)
        assert made.store.pause(pause.id, "default").waiting
        assert len(made.life.waiters) == 0
        with pytest.raises(PauseUnknown):
            await made.wait("nope", caller=ADA)
        made.store.close()

    asyncio.run(run())


def test_the_time_of_waiting_does_not_cut_off_what_runs() -> None:
    async def run() -> None:
        from waiting_calls import config

        from toolgen import functions

        begun, go = asyncio.Event(), asyncio.Event()

        async def note(text: str) -> str:
            begun.set()
            await go.wait()
            return text

        made = Runtime(functions({"note": note}), config())
        pause = await paused(made)
        await made.decide(pause.id, YES, decider=BOB)
        waiter = asyncio.create_task(made.wait(pause.id, caller=ADA, timeout=0.05))
        await begun.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):  # longer than it may wait
                await asyncio.shield(waiter)
        go.set()
        assert (await waiter)["c0"].ok

    asyncio.run(run())


def test_several_who_wait_get_the_same_result_of_one_run(store_url: str) -> None:
    async def run() -> None:
        log = Log()
        many = [runtime(log, store=Store(store_url)) for _ in range(3)]
        pause = await paused(many[0])
        waiters = [asyncio.create_task(one.wait(pause.id, caller=ADA, timeout=20)) for one in many for _ in range(3)]
        await until(lambda: all(len(one.life.waiters) == 3 for one in many))
        await many[0].decide(pause.id, YES, decider=BOB)
        found: list[Any] = await asyncio.gather(*waiters)
        assert [one["c0"].body for one in found] == ["x"] * 9
        assert log == ["x"]
        for one in many:
            one.store.close()

    asyncio.run(run())


def test_a_decision_in_another_thread_wakes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 600.0)

    async def run() -> None:
        made = runtime(Log())
        pause = await paused(made)
        waiter = asyncio.create_task(made.wait(pause.id, caller=ADA))
        await until(lambda: len(made.life.waiters) == 1)
        thread = threading.Thread(target=lambda: made.sync.decide(pause.id, YES, decider=BOB))
        thread.start()
        async with asyncio.timeout(20):
            assert (await waiter)["c0"].ok
        await asyncio.to_thread(thread.join)
        made.sync.close()

    asyncio.run(run())


def test_what_waits_for_nobody_is_refused_and_not_waited_for() -> None:
    async def run() -> None:
        made = runtime(Log())
        pause = await paused(made)
        with pytest.raises(PauseConflict, match="pending"):
            await made.resume(pause.id, caller=ADA)

    asyncio.run(run())


def test_a_watch_hears_of_its_own_pause_once_and_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 600.0)

    async def run() -> None:
        waiters = runtime(Log()).life.waiters

        async def hears(watch: waiting.Watch) -> bool:
            """Whether it is told, once everything that is under way has happened."""
            task = asyncio.create_task(watch.changed())
            for _ in range(5):
                await asyncio.sleep(0)
            heard = task.done()
            task.cancel()
            await asyncio.wait([task])
            return heard

        async with waiters.watching("one") as one, waiters.watching("two") as two, waiters.watching("two") as third:
            waiters.wake("two")
            assert [await hears(watch) for watch in (one, two, third)] == [False, True, True]
            two.look()
            assert not await hears(two), "what was heard is news no more"
            waiters.wake("three")
            assert not await hears(one)
            waiters.wake()
            assert [await hears(watch) for watch in (one, two)] == [True, True]
            assert len(waiters) == 3
        assert (len(waiters), waiters._watches) == (0, {})

    asyncio.run(run())


def test_waking_one_whose_event_loop_is_gone_costs_the_others_nothing() -> None:
    made = runtime(Log())
    kept: list[Any] = []

    async def left() -> None:
        kept.append(waiting.Watch(made.life.waiters))

    asyncio.run(left())
    kept[0].wake()
