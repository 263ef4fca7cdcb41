"""What lives with a runtime: one background task however often it is entered, and nothing once it is left."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from datetime import timedelta
from typing import Any

import pytest
from small_documents import document, made
from waiting_calls import ADA, BOB, YES, Log, config, paused, runtime, until

from toolgen import Dispatcher, Runtime, ToolCall, functions
from toolgen.approvals.model import Pause
from toolgen.approvals.store import Store
from toolgen.result import Refused
from toolgen.testing import Clock, RecordingTransport, memory_store

EXPIRES = {"approvalTimeout": "PT10M", "timeoutPolicy": "AUTO_REJECT"}


class SlowStore(Store):
    """A store whose every answer takes until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.asked = threading.Event()

    def turn(self, *arguments: Any) -> Any:
        self.asked.set()
        assert self.go.wait(20)
        return super().turn(*arguments)


def test_a_slow_store_does_not_block_the_event_loop() -> None:
    async def run() -> None:
        store = SlowStore()
        made = runtime(Log(), store=store)
        asked = asyncio.create_task(paused(made, thread="t", turn="1"))
        await until(store.asked.is_set)
        turns = 0
        for _ in range(100):  # the loop goes round while the store does not answer
            await asyncio.sleep(0)
            turns += 1
        assert (turns, asked.done()) == (100, False)
        store.go.set()
        await asked

    asyncio.run(run())


def test_in_the_background_time_is_looked_after_and_stops_with_the_block() -> None:
    async def run() -> None:
        clock = Clock()
        one = runtime(Log(), config(**EXPIRES), store=memory_store(clock))
        before = asyncio.all_tasks()
        async with one:
            pause = await paused(one)
            clock.move(timedelta(minutes=11))
            await until(lambda: not one.store.pause(pause.id, "default").waiting)
        assert asyncio.all_tasks() == before

    asyncio.run(run())


def test_without_a_background_nothing_runs_by_itself() -> None:
    async def run() -> None:
        one = runtime(Log(), background=False)
        before = asyncio.all_tasks()
        async with one:
            assert asyncio.all_tasks() == before

    asyncio.run(run())


def test_layered_runtimes_share_one_background_task_and_the_last_to_leave_ends_it() -> None:
    async def run() -> None:
        one = runtime(Log())
        before = asyncio.all_tasks()
        async with one:
            started = asyncio.all_tasks() - before
            async with one.layered(config()) as layered, layered.layered(config()):
                assert asyncio.all_tasks() - before == started
            assert asyncio.all_tasks() - before == started
            assert len(started) == 1
        assert asyncio.all_tasks() == before

    asyncio.run(run())


def test_a_failing_store_does_not_end_the_background_and_its_message_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from toolgen.runtime import life

    monkeypatch.setattr(life, "EVERY", 0.01)
    calls: list[int] = []

    class Failing(Store):
        def due(self, *_: Any) -> Any:
            calls.append(1)
            raise RuntimeError("s3cr3t-value")

    async def run() -> None:
        async with runtime(Log(), store=Failing()):
            await until(lambda: len(calls) > 2)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert "RuntimeError" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_a_hook_that_fails_costs_no_pause_and_its_message_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def on_change(pause: Pause, what: str) -> None:
        raise RuntimeError("s3cr3t-value")

    async def run() -> None:
        log = Log()
        one = runtime(log, on_change=on_change)
        pause = await paused(one)
        await one.decide(pause.id, YES, decider=BOB)
        assert (await one.resume(pause.id, caller=ADA))["c0"].ok

    asyncio.run(run())
    assert caplog.text.count("RuntimeError") == 3
    assert "s3cr3t" not in caplog.text


def test_every_change_is_told_in_order() -> None:
    async def run() -> None:
        told: list[str] = []
        one = runtime(Log(), on_change=lambda _, what: told.append(what))
        pause = await paused(one, thread="1")
        await one.extend(pause.id, None, actor="bob")
        await one.decide(pause.id, YES, decider=BOB)
        await one.resume(pause.id, caller=ADA)
        await one.cancel((await paused(one, thread="2")).id, actor="bob")
        assert told == ["paused", "extended", "decided", "resumed", "paused", "cancelled"]

    asyncio.run(run())


def test_a_runtime_that_is_dropped_leaves_no_warning_and_no_thread(tmp_path: Any) -> None:
    async def run(store: str | None) -> None:
        one = Runtime(functions({"note": Log().note}), config(), store=store)
        await paused(one)

    for store in (None, f"sqlite:///{tmp_path / 'a.db'}"):
        asyncio.run(run(store))
        gc.collect()  # a warning would be an error


def test_a_store_that_was_opened_by_its_url_is_closed_and_one_that_was_given_is_not(tmp_path: Any) -> None:
    async def run(store: Any) -> int:
        one = Runtime(functions({"note": Log().note}), config(), store=store)
        async with one:
            await paused(one)
        return int(one.store.database.engine.pool.checkedin())  # type: ignore[attr-defined]

    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert asyncio.run(run(url)) == 0
    given = Store(url)
    assert asyncio.run(run(given)) > 0
    given.close()


def test_the_store_is_open_until_the_last_event_loop_has_left(tmp_path: Any) -> None:
    one = Runtime(functions({"note": Log().note}), config(), store=f"sqlite:///{tmp_path / 'a.db'}")
    closed: list[bool] = []
    close = one.store.close
    one.store.close = lambda: (closed.append(True), close())[1]  # type: ignore[method-assign]

    async def enter_and_leave() -> None:
        async with one:
            await paused(one)

    with one.sync:
        asyncio.run(enter_and_leave())
        assert closed == []
    assert closed == [True]


def test_what_runs_in_the_background_rests_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolgen.runtime import life

    monkeypatch.setattr(life, "EVERY", 600.0)
    done: list[int] = []

    async def work() -> int:
        done.append(1)
        return 1

    async def run() -> None:
        task = asyncio.create_task(life._forever("work", work))
        await until(lambda: bool(done))
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(done) == 1
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())


def test_what_is_in_memory_is_there_after_the_block() -> None:
    async def run() -> None:
        one = runtime(Log())
        async with one:
            pause = await paused(one)
        assert one.store.pause(pause.id, "default").waiting

    asyncio.run(run())


def test_a_toolset_that_is_reloaded_is_known_to_the_gates_of_all_that_share_the_dispatcher() -> None:
    def api(method: str) -> Any:
        operation = {"operationId": "op", "responses": {"200": {"description": "ok"}}}
        return made(document({"/x": {method: operation}}), api="x", server="https://api.example")

    async def run() -> None:
        server = RecordingTransport()
        dispatcher = Dispatcher(api("get"), transport=server)
        one, other = Runtime(dispatcher), Runtime(dispatcher)
        layered = one.layered(config(unmatched="allow"))
        assert (await layered.submit([ToolCall("1", "op")])).results["1"].ok, "it reads"
        await one.reload(api("post"))
        for each in (one, other, layered):
            asked = await each.submit([ToolCall("1", "op")], caller=ADA)
            assert asked.pause is not None, "it writes now"
        assert len(server.requests) == 1

    asyncio.run(run())


def test_whoever_waits_is_told_that_a_reload_voided_the_pause() -> None:
    def api(required: bool) -> Any:
        parameter = {"name": "q", "in": "query", "required": required, "schema": {"type": "string"}}
        operation = {"operationId": "op", "parameters": [parameter], "responses": {"200": {"description": "ok"}}}
        return made(document({"/x": {"post": operation}}), api="x", server="https://api.example")

    async def run() -> None:
        one = Runtime(Dispatcher(api(False), transport=RecordingTransport()), config())
        pause = (await one.submit([ToolCall("1", "op")], caller=ADA)).pause
        assert pause is not None
        waiter = asyncio.create_task(one.wait(pause.id, caller=ADA, timeout=20))
        await until(lambda: len(one.life.waiters) == 1)
        assert await one.reload(api(True)) == [pause.id]
        assert (await waiter)["1"].refused is Refused.cancelled

    asyncio.run(run())
