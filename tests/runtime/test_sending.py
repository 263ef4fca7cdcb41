"""One call carried out: what is told of a fault depends on whether a byte may have left, and holds no secret."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from small_runtimes import ANN, BOB, World, add, config, paused, runs

from toolgen import Caller, Decision, functions
from toolgen.errors import DispatchRefused, StoreError, ToolgenError
from toolgen.result import Refused, Sent
from toolgen.runtime.resume import _not_made
from toolgen.runtime.sending import carried_out
from toolgen.runtime.threads import in_thread


class Breaks:
    """Work that fails before or after it says that it begins."""

    def __init__(self, error: Exception, begins: bool) -> None:
        self.error, self.begins = error, begins

    async def send(self, caller: Any, before: Any, call: Any) -> Any:
        if self.begins:
            await before()
        raise self.error


async def nothing() -> None:
    """What is done before the first byte."""


@pytest.mark.parametrize(
    ("error", "begins", "sent"),
    [
        (RuntimeError("s3cr3t"), False, Sent.not_sent),
        (RuntimeError("s3cr3t"), True, Sent.unknown),
        (DispatchRefused("the address is private"), True, Sent.not_sent),
        (ToolgenError("s3cr3t"), True, Sent.unknown),
    ],
)
@runs
async def test_a_fault_means_that_nothing_was_sent_only_where_nothing_can_have_been(
    error: Exception, begins: bool, sent: Sent
) -> None:
    result = await carried_out(Breaks(error, begins), ANN, nothing, "p/c")  # type: ignore[arg-type]
    assert (result.ok, result.sent, result.refused) == (False, sent, Refused.error)
    assert "s3cr3t" not in str(result)


@runs
async def test_why_a_call_could_not_be_made_ready_is_told_where_it_is_one_of_ours() -> None:
    result = await carried_out(Breaks(DispatchRefused("no token"), False), ANN, nothing, "p/c")  # type: ignore[arg-type]
    assert result.message == "no token"


@runs
async def test_what_keeps_a_call_from_beginning_is_raised(world: World) -> None:
    async def full() -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="full"):
        await carried_out(Breaks(RuntimeError(), True), ANN, full, "p/c")  # type: ignore[arg-type]


def test_of_an_error_that_is_not_ours_its_kind_is_told_and_no_more() -> None:
    end = _not_made(RuntimeError("s3cr3t"))
    assert "s3cr3t" not in str(end)
    assert "RuntimeError" in str(end)


@pytest.mark.parametrize(("own", "seen"), [({}, {"order": 7}), ({"order": 8}, {"order": 8})])
@runs
async def test_a_call_runs_with_the_context_of_its_turn_unless_whoever_resumes_gives_one(
    world: World, own: dict[str, Any], seen: dict[str, Any]
) -> None:
    found: list[Any] = []

    def pay(amount: int, caller: Caller) -> str:
        found.append(dict(caller.context))
        return "paid"

    runtime = world.runtime(config(requireApproval=["*"]), sources=[functions({"pay": pay})])
    pause = await paused(runtime, add()._replace(name="pay", arguments={"amount": 5}), caller=Caller("ann", context={"order": 7}))  # fmt: skip
    await runtime.decide(pause.id, Decision("approved"), decider=BOB)
    assert (await runtime.resume(pause.id, caller=Caller("ann", context=own)))["c1"].ok
    assert found == [seen]


def test_what_a_thread_raises_after_its_caller_was_cancelled_is_reported_nowhere() -> None:
    reported: list[Any] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        entered, leave = asyncio.Event(), asyncio.Event()

        def works() -> None:
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(leave.wait(), loop).result()
            raise RuntimeError

        task = asyncio.create_task(in_thread(works))
        await entered.wait()
        task.cancel()
        await asyncio.sleep(0)
        leave.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        gc.collect()

    asyncio.run(run())
    gc.collect()
    assert reported == []
