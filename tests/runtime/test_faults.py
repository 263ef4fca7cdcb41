"""Whatever is cancelled or fails around a call: no secret is told, no call is lost, none is taken for one that may run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, World, add, config, paused, runs, state

from toolgen import Caller, Decision, Remember, ToolCall, ToolResult, Verdict
from toolgen.errors import ArgumentsError, Problem, RequestError, StoreError, UsageError
from toolgen.result import Sent

WAITS = config(requireApproval=["*"])
ALLOWS = config(unmatched="allow")
PLANTED = "planted-argument-7361"
ACT = ToolCall("a1", "act", {"text": PLANTED})


class Source:
    """A source whose check and call do what a test says."""

    name = "other"

    def __init__(self) -> None:
        self.refuses: Exception | None = None
        self.begun = asyncio.Event()
        self.ends: BaseException | None = None
        self.ran = 0

    def tools(self) -> list[str]:
        return ["act"]

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        if self.refuses is not None:
            raise self.refuses

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        self.ran += 1
        self.begun.set()
        if self.ends is not None:
            raise self.ends
        await asyncio.Event().wait()
        raise AssertionError


def audited(world: World) -> str:
    return json.dumps([one.to_dict() for one in world.audit()])


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (RequestError(f"{PLANTED} cannot be sent"), "it could not be made ready (RequestError)"),
        (ArgumentsError("not valid", [Problem(f"{PLANTED} is no number")]), "the arguments are not valid any more"),
        (ValueError(PLANTED), "it could not be made ready (ValueError)"),
    ],
)
@runs
async def test_the_audit_says_why_a_call_was_not_executed_and_nothing_of_its_arguments(
    world: World, error: Exception, detail: str
) -> None:
    source = Source()
    runtime = world.runtime(WAITS, sources=[source])
    pause = await paused(runtime, ACT)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    source.refuses = error
    await runtime.resume(pause.id, caller=ANN)
    assert [one.details["detail"] for one in world.audit("not_executed")] == [detail]
    assert "7361" not in audited(world)


@runs
async def test_nor_where_it_fails_once_the_request_is_made(world: World) -> None:
    async def exchanged(*_: Any, **__: Any) -> str:
        raise RequestError(PLANTED)

    runtime = world.runtime(WAITS, sources=[world.dispatcher(exchange={"https://api.example": exchanged})])
    pause = await paused(runtime, add(name=PLANTED))
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    await runtime.resume(pause.id, caller=Caller("ann", "t", origin="https://elsewhere.example"))
    assert (await state(runtime, pause), world.sent) == ({"c1": "not_executed"}, [])
    assert [one.details["detail"] for one in world.audit("not_executed")] == ["it could not be made ready"]
    assert "7361" not in audited(world)


@runs
async def test_a_source_that_was_cancelled_inside_costs_no_other_call(world: World) -> None:
    source = Source()
    source.ends = asyncio.CancelledError()
    both = [source, world.dispatcher()]
    found = await world.runtime(ALLOWS, sources=both).submit([ACT, add("c2")], caller=ANN)
    assert (found.results["a1"].sent, found.results["c2"].ok) == (Sent.unknown, True)
    runtime = world.runtime(WAITS, sources=both)
    pause = await paused(runtime, ACT, add("c2"))
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    results = await runtime.resume(pause.id, caller=ANN)
    assert (results["a1"].sent, results["c2"].ok) == (Sent.unknown, True)
    assert await state(runtime, pause) == {"a1": "outcome_unknown", "c2": "executed"}


@runs
async def test_a_submit_that_is_stopped_while_a_call_runs_leaves_an_unknown_outcome_at_once(world: World) -> None:
    source = Source()
    runtime = world.runtime(ALLOWS, sources=[source])
    turn: dict[str, Any] = {"caller": ANN, "thread": "t", "turn": "1"}
    task = asyncio.create_task(runtime.submit([ACT], **turn))
    await source.begun.wait()
    busy = (await runtime.submit([ACT], **turn)).results["a1"]
    assert "right now" in busy.message
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    again = (await runtime.submit([ACT], **turn)).results["a1"]
    assert (again.sent, source.ran) == (Sent.unknown, 1)
    assert "interrupted" in again.message
    assert [one.details["state"] for one in world.audit("ran")] == ["outcome_unknown"]


@runs
async def test_a_submit_that_is_stopped_while_it_claims_leaves_no_call_that_looks_as_if_it_ran(world: World) -> None:
    source = Source()
    runtime = world.runtime(ALLOWS, sources=[source])
    claim, loop = world.store.claim, asyncio.get_running_loop()
    turn: dict[str, Any] = {"caller": ANN, "thread": "t", "turn": "1"}

    def slow(*arguments: Any, **named: Any) -> Any:
        made = claim(*arguments, **named)
        loop.call_soon_threadsafe(task.cancel)
        return made

    world.store.claim = slow  # type: ignore[method-assign]
    task = asyncio.create_task(runtime.submit([ACT], **turn))
    with pytest.raises(asyncio.CancelledError):
        await task
    world.store.claim = claim  # type: ignore[method-assign]
    again = (await runtime.submit([ACT], **turn)).results["a1"]
    assert (again.sent, source.ran) == (Sent.unknown, 0)
    assert "right now" not in again.message


def test_what_a_hook_raises_after_the_submit_was_stopped_is_told_to_nobody() -> None:
    told: list[Any] = []
    world = World()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        asked = asyncio.Event()

        async def hook(*_: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                raise RuntimeError("s3cr3t")

        task = asyncio.create_task(world.runtime(WAITS, decision_hook=hook).submit([add()], caller=ANN))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task

    asyncio.run(main())
    import gc

    gc.collect()
    world.store.close()
    assert told == []


@runs
async def test_a_decision_holds_and_is_told_of_where_the_wish_to_remember_it_cannot_be_kept(world: World) -> None:
    told: list[str] = []
    runtime = world.runtime(WAITS, on_change=lambda _, what: told.append(what))
    pause = await paused(runtime)
    in_store = runtime.in_store

    async def broken(do: Any, *arguments: Any, **named: Any) -> Any:
        if do == runtime.remembered._keep:
            raise StoreError("the disk is full")
        return await in_store(do, *arguments, **named)

    runtime.in_store = broken  # type: ignore[method-assign]
    wish = Verdict("approved", remember=Remember())
    await runtime.decide(pause.id, Decision("approved", calls={"c1": wish}), decider=BOB)
    assert (await state(runtime, pause), told) == ({"c1": "approved"}, ["paused", "decided"])
    assert await runtime.remembered.listed() == []


@runs
async def test_a_tool_that_is_reloaded_while_its_call_is_made_ready_is_not_called(world: World) -> None:
    """Between the checks and the claim: what is approved is void by then."""
    from small_runtimes import DONE, pets

    async def exchanged(*_: Any, **__: Any) -> str:
        await runtime.reload(pets(post={"operationId": "add", "security": [{"user": []}], "responses": DONE}))
        return "exchanged"

    runtime = world.runtime(WAITS, sources=[world.dispatcher(exchange={"https://api.example": exchanged})])
    pause = await paused(runtime)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    results = await runtime.resume(pause.id, caller=Caller("ann", "t", origin="https://elsewhere.example"))
    assert (await state(runtime, pause), world.sent) == ({"c1": "not_executed"}, [])
    assert "the tool has changed since" in results["c1"].message


@runs
async def test_a_due_time_without_a_time_zone_is_refused(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime)
    with pytest.raises(UsageError, match="time zone"):
        await runtime.extend(pause.id, datetime(2030, 1, 1), actor="bob")
    assert world.store.pause(pause.id, "default").revision == 1


@runs
async def test_a_host_whose_callers_fail_runs_nothing_and_the_approval_stays(world: World) -> None:
    async def callers(subject: str, tenant: str) -> Caller:
        raise RuntimeError("s3cr3t")

    runtime = world.runtime(WAITS, callers=callers)
    pause = await paused(runtime)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    await runtime.sweep()
    assert (await state(runtime, pause), world.sent) == ({"c1": "approved"}, [])
    assert "s3cr3t" not in audited(world)
