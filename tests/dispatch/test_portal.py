from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from toolgen.dispatch.portal import Closed, Portal
from toolgen.errors import UsageError

VARIABLE: ContextVar[str] = ContextVar("variable", default="none")


async def loop_and_thread() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    return asyncio.get_running_loop(), threading.current_thread()


async def seen() -> str:
    return VARIABLE.get()


@pytest.fixture
def portal() -> Portal:
    return Portal()


@pytest.fixture(autouse=True)
def closed(portal: Portal) -> object:
    yield
    portal.close()


def test_all_calls_run_in_one_thread_that_close_ends(portal: Portal) -> None:
    first = portal.run(loop_and_thread())
    with ThreadPoolExecutor(4) as threads:
        assert {one.result() for one in [threads.submit(portal.run, loop_and_thread()) for _ in range(20)]} == {first}
    portal.close()
    assert first[0].is_closed()
    assert not first[1].is_alive()


def test_it_starts_anew_after_close_and_closing_twice_is_fine(portal: Portal) -> None:
    portal.close()
    first = portal.run(loop_and_thread())
    portal.close()
    portal.close()
    assert portal.run(loop_and_thread()) != first


def test_plain_code_that_an_event_loop_called_gets_its_result(portal: Portal) -> None:
    async def main() -> str:
        return portal.run(seen())

    assert asyncio.run(main()) == "none"


def test_work_sees_the_context_of_the_plain_code_that_asked(portal: Portal) -> None:
    before = VARIABLE.set("mine")
    try:
        assert portal.run(seen()) == "mine"
    finally:
        VARIABLE.reset(before)
    assert portal.run(seen()) == "none"


def test_an_error_comes_through(portal: Portal) -> None:
    async def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        portal.run(fails())


def test_closing_ends_what_runs_and_lets_it_clean_up(portal: Portal) -> None:
    started, cleaned = threading.Event(), threading.Event()

    async def waits() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.set()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(portal.run, waits())
        assert started.wait(5)
        portal.close()
        with pytest.raises(Closed):
            running.result(5)
    assert cleaned.is_set()


def test_calls_and_closings_at_the_same_time_all_come_to_an_end(portal: Portal) -> None:
    def call(number: int) -> bool:
        if number % 5 == 0:
            portal.close()
            return True
        try:
            return portal.run(seen()) == "none"
        except Closed:
            return True

    with ThreadPoolExecutor(8) as threads:
        assert all(one.result(10) for one in [threads.submit(call, number) for number in range(200)])


def test_an_interrupted_call_is_cancelled(portal: Portal) -> None:
    cancelled = threading.Event()

    main = threading.get_ident()

    async def interrupts() -> None:
        asyncio.get_running_loop().call_soon(signal.pthread_kill, main, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        portal.run(interrupts())
    assert cancelled.wait(5)


def test_a_call_from_its_own_thread_is_refused_and_does_not_wait_for_ever(portal: Portal) -> None:
    async def nested() -> str:
        return portal.run(seen())

    with pytest.raises(UsageError, match="acall"):
        portal.run(nested())


def test_what_was_never_started_is_closed_without_a_warning(portal: Portal, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError):
        portal.run(seen())
    gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_a_loop_of_its_own_even_if_the_lock_was_held(portal: Portal) -> None:
    parent, _ = portal.run(loop_and_thread())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads
        with portal._lock:
            child = os.fork()
    if child == 0:
        signal.alarm(20)  # what hangs here would outlive the test
        code = 1
        try:
            found, _ = portal.run(loop_and_thread())
            portal.close()
            code = 0 if found is not parent else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert portal.run(loop_and_thread())[0] is parent, "the parent's loop still hears"


def test_a_portal_that_is_not_used_is_no_thread_and_is_not_kept() -> None:
    count = threading.active_count()
    gone = weakref.ref(Portal())
    gc.collect()
    assert gone() is None
    assert threading.active_count() == count
