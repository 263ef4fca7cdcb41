"""`runtime.sync` is the runtime for plain code: the same methods, the same arguments, the same gate."""

from __future__ import annotations

import inspect
import threading
from datetime import UTC, datetime

import pytest
from waiting_calls import ADA, BOB, NO, YES, Log, config, kinds, runtime, until

from toolgen import Runtime, ToolCall
from toolgen.errors import PauseConflict
from toolgen.identity.caller import bind_caller
from toolgen.result import Refused
from toolgen.runtime.sync import Sync

NOT_FOR_PEOPLE = {"in_store"}
ASYNC = sorted(
    name
    for name, one in vars(Runtime).items()
    if inspect.iscoroutinefunction(one) and not name.startswith("_") and name not in NOT_FOR_PEOPLE
)


@pytest.mark.parametrize("name", ASYNC)
def test_every_async_method_is_there_with_the_same_signature(name: str) -> None:
    plain = getattr(Sync, name)
    assert not inspect.iscoroutinefunction(plain)
    assert inspect.signature(plain) == inspect.signature(getattr(Runtime, name))


def test_the_list_of_async_methods_is_the_one_people_call() -> None:
    assert {"submit", "decide", "amended", "resume", "wait", "cancel", "extend", "reload", "sweep", "aclose"} <= set(
        ASYNC
    )


def test_a_pause_is_made_decided_and_resumed_without_an_event_loop() -> None:
    log = Log()
    made = runtime(log)
    with made.sync as sync:
        asked = sync.submit([ToolCall("1", "note", {"text": "a"})], caller=ADA)
        assert asked.pause is not None
        assert sync.amended(asked.pause.id, "1", {"text": "b"})["arguments"] == {"text": "b"}
        sync.extend(asked.pause.id, datetime(2100, 1, 1, tzinfo=UTC), actor="bob")
        with pytest.raises(TimeoutError):
            sync.wait(asked.pause.id, caller=ADA, timeout=0.01)
        sync.decide(asked.pause.id, YES, decider=BOB)
        with bind_caller(ADA):
            assert sync.wait(asked.pause.id)["1"].ok
            assert sync.resume(asked.pause.id)["1"].ok
            again = sync.submit([ToolCall("1", "note", {"text": "c"})])
        assert again.pause is not None
        assert again.pause.requester == "ada"
        sync.cancel(again.pause.id, actor="bob")
        assert sync.sweep() == 0
    assert log == ["a"]
    assert kinds(made).count("cancelled") == 1


def test_a_layered_runtime_has_a_sync_of_its_own_with_its_layer() -> None:
    log = Log()
    made = runtime(log, config(unmatched="allow"))
    assert made.sync.submit([ToolCall("1", "note", {"text": "a"})]).results["1"].ok
    layered = made.layered(config(deny=["note"]))
    assert layered.sync.submit([ToolCall("1", "note", {"text": "b"})]).results["1"].refused is Refused.denied
    assert log == ["a"]
    assert made.sync is made.sync
    for one in (made, layered):
        one.sync.close()


def test_errors_are_the_runtime_s_and_a_closed_one_starts_again() -> None:
    made = runtime(Log())
    asked = made.sync.submit([ToolCall("1", "note", {"text": "a"})], caller=ADA)
    assert asked.pause is not None
    made.sync.decide(asked.pause.id, NO, decider=BOB)
    made.sync.close()
    with pytest.raises(PauseConflict):
        made.sync.decide(asked.pause.id, YES, decider=BOB)
    made.sync.close()


def test_the_thread_ends_with_the_block() -> None:
    before = set(threading.enumerate())
    with runtime(Log()).sync as sync:
        sync.sweep()
    assert {one for one in set(threading.enumerate()) - before if one.name == "toolgen"} == set()


def test_what_runs_in_the_background_runs_inside_the_block() -> None:
    import asyncio

    from toolgen.testing import Clock, memory_store

    clock = Clock()
    given = config(approvalTimeout="PT1S", timeoutPolicy="AUTO_REJECT")
    made = runtime(Log(), given, store=memory_store(clock))
    with made.sync as sync:
        asked = sync.submit([ToolCall("1", "note", {"text": "a"})], caller=ADA)
        assert asked.pause is not None
        pause_id = asked.pause.id
        from datetime import timedelta

        clock.move(timedelta(seconds=2))
        asyncio.run(until(lambda: not made.store.pause(pause_id, "default").waiting))
