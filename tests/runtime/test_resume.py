"""Resuming: what was approved runs once, days later and elsewhere too, and says the same to whoever asks again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from raw_server import serving
from small_runtimes import ANN, APPROVED, BOB, REJECTED, World, add, config, edit, paused, remove, runs, state

from toolgen import Caller, Decision, Dispatcher, Runtime, ToolResult, functions
from toolgen.approvals.states import CallState
from toolgen.approvals.store import JournalKey
from toolgen.errors import DispatchRefused, PauseConflict, PauseUnknown, StoreError, ToolgenError
from toolgen.result import Refused, Sent
from toolgen.runtime.results import result_of

WAITS = config(requireApproval=["*"])


async def approved(runtime: Runtime, *calls: Any, **more: Any) -> Any:
    return await runtime.decide((await paused(runtime, *calls, **more)).id, APPROVED, decider=BOB)


def test_a_pause_outlives_its_process_and_runs_once_in_another(store_url: str) -> None:
    given = config(requireApproval=["*"], approvalValidity="P30D")
    first = World(store_url)
    pause = asyncio.run(paused(first.runtime(given), state=b"of the host"))
    first.store.close()
    second = World(store_url, clock=first.clock)
    first.clock.passes(days=20)
    asyncio.run(second.runtime(given).decide(pause.id, APPROVED, decider=BOB))
    second.store.close()
    third = World(store_url, clock=first.clock)
    first.clock.passes(days=20)
    runtime = third.runtime(given)
    one, two = (asyncio.run(runtime.resume(pause.id, caller=ANN)) for _ in range(2))
    assert one == two
    assert one["c1"].body == {"number": 1}
    assert len(third.sent) == 1
    third.store.close()


def test_what_was_approved_arrives_at_a_server_once(world: World) -> None:
    with serving() as server, Dispatcher(world.toolset, server=server.url, credentials=world.credentials) as pets:
        runtime = world.runtime(WAITS, sources=[pets])
        caller = Caller("ann", "token-of-ann", origin=server.url)
        pause = runtime.sync.submit([add()], caller=caller).pause
        assert pause is not None
        assert server.connections == 0
        runtime.sync.decide(pause.id, APPROVED, decider=BOB)
        assert server.connections == 0
        for _ in range(3):
            assert runtime.sync.resume(pause.id, caller=caller)["c1"].ok
        runtime.sync.close()
    assert server.lines == ["POST /pets HTTP/1.1"]
    assert server.requests[0].header("authorization") == "Bearer token-of-ann"


@runs
async def test_nothing_but_what_was_explicitly_approved_runs(world: World) -> None:
    runtime = world.runtime(WAITS)
    for end in ("pending", "rejected", "cancelled", "expired"):
        pause = await paused(runtime)
        if end == "rejected":
            await runtime.decide(pause.id, REJECTED, decider=BOB)
        elif end == "cancelled":
            await runtime.cancel(pause.id, actor="bob")
        elif end == "expired":
            await runtime.decide(pause.id, APPROVED, decider=BOB)
            world.clock.passes(hours=2)
        if end == "pending":
            with pytest.raises(PauseConflict, match="c1 wait"):
                await runtime.resume(pause.id, caller=ANN)
        else:
            assert (await runtime.resume(pause.id, caller=ANN))["c1"].refused is Refused(end)
        assert await state(runtime, pause) == {"c1": end}
    assert world.sent == []
    with pytest.raises(PauseUnknown):
        await runtime.resume("nope", caller=ANN)


@runs
async def test_a_worker_runs_it_with_the_caller_the_host_gives_and_the_context_of_the_turn(world: World) -> None:
    asked: list[Any] = []

    async def callers(subject: str, tenant: str) -> Caller | None:
        asked.append((subject, tenant))
        return None if len(asked) == 1 else ANN

    runtime = world.runtime(WAITS, callers=callers)
    caller = Caller("ann", "t", origin=ANN.origin, context={"order": 7})
    pause = await approved(runtime, caller=caller)
    with pytest.raises(PauseConflict, match="no caller"):
        await runtime.resume(pause.id)
    assert (await runtime.resume(pause.id))["c1"].ok
    assert asked == [("ann", "default")] * 2
    assert [request.headers["authorization"] for request in world.sent] == ["Bearer token-of-ann"]


@runs
async def test_a_worker_whose_caller_is_somebody_else_runs_nothing(world: World) -> None:
    from toolgen.errors import CallerMismatch

    async def callers(subject: str, tenant: str) -> Caller:
        return Caller("bob", "t", origin=ANN.origin)

    runtime = world.runtime(WAITS, callers=callers)
    pause = await approved(runtime)
    with pytest.raises(CallerMismatch):
        await runtime.resume(pause.id)
    assert world.sent == []


class Source:
    """A source that does what a test says."""

    name = "other"

    def __init__(self, does: Any) -> None:
        self.does, self.ran = does, 0

    def tools(self) -> list[str]:
        return ["act"]

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        self.ran += 1
        if isinstance(self.does, BaseException):
            raise self.does
        return await self.does()


def act(id: str = "a1") -> Any:
    return add(id)._replace(name="act", arguments={})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DispatchRefused("a credential is missing"), CallState.failed),
        (RuntimeError("s3cr3t"), CallState.outcome_unknown),
        (ToolgenError("s3cr3t"), CallState.outcome_unknown),
        (PauseConflict("s3cr3t"), CallState.outcome_unknown),
        (StoreError("s3cr3t"), CallState.outcome_unknown),
    ],
)
@runs
async def test_what_goes_wrong_once_it_is_claimed_is_unknown_unless_nothing_was_sent_and_the_others_run(
    world: World, error: Exception, expected: CallState
) -> None:
    source = Source(error)
    runtime = world.runtime(WAITS, sources=[world.dispatcher(), source])
    pause = await approved(runtime, act("a1"), edit("c2"))
    for _ in range(2):
        results = await runtime.resume(pause.id, caller=ANN)
    assert await state(runtime, pause) == {"a1": expected.value, "c2": "executed"}
    assert source.ran == 1, "never again"
    assert results["a1"].sent is (Sent.not_sent if expected is CallState.failed else Sent.unknown)
    assert "s3cr3t" not in f"{results} {[one.to_dict() for one in world.audit()]}"


@runs
async def test_a_resume_that_is_stopped_while_it_sends_leaves_an_unknown_outcome(world: World) -> None:
    sending = asyncio.Event()

    async def hangs() -> ToolResult:
        sending.set()
        await asyncio.Event().wait()
        raise AssertionError

    source = Source(hangs)
    runtime = world.runtime(WAITS, sources=[source])
    pause = await approved(runtime, act())
    task = asyncio.create_task(runtime.resume(pause.id, caller=ANN))
    await sending.wait()
    with pytest.raises(PauseConflict, match="executing"):
        await runtime.resume(pause.id, caller=ANN)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = (await runtime.resume(pause.id, caller=ANN))["a1"]
    assert result.sent is Sent.unknown
    assert "not sent again" in result.message
    assert source.ran == 1


@runs
async def test_a_store_that_cannot_take_the_claim_leaves_the_call_approved(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await approved(runtime)
    in_store = runtime.in_store

    async def broken(do: Any, *arguments: Any, **named: Any) -> Any:
        if do == runtime.store.change:
            raise StoreError("the store cannot be written")
        return await in_store(do, *arguments, **named)

    runtime.in_store = broken  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        await runtime.resume(pause.id, caller=ANN)
    assert (world.sent, await state(runtime, pause)) == ([], {"c1": "approved"})
    runtime.in_store = in_store  # type: ignore[method-assign]
    assert (await runtime.resume(pause.id, caller=ANN))["c1"].ok


@runs
async def test_a_claim_whose_process_is_gone_is_unknown_and_not_sent_again(world: World) -> None:
    from dataclasses import replace

    from toolgen.approvals.store import Change

    runtime = world.runtime(WAITS)
    pause = await approved(runtime)

    def claimed(now: Any) -> Change:
        call = replace(now.calls[0], state=CallState.executing, lease=runtime.lease(), worker="gone")
        return Change(now.with_call(call))

    world.store.change(pause.id, "default", claimed)
    with pytest.raises(PauseConflict, match="executing"):
        await runtime.resume(pause.id, caller=ANN)
    world.clock.passes(hours=1)
    result = (await runtime.resume(pause.id, caller=ANN))["c1"]
    assert (result.sent, world.sent) == (Sent.unknown, [])
    assert "find out first" in result.message


@runs
async def test_functions_wait_and_run_as_the_requester(world: World) -> None:
    ran: list[Any] = []

    def pay(amount: int, caller: Caller) -> str:
        ran.append((amount, caller.subject))
        return "paid"

    runtime = world.runtime(WAITS, sources=[functions({"pay": pay})])
    arguments: dict[str, Any] = {"amount": 5}
    pause = await approved(runtime, add()._replace(name="pay", arguments=arguments))
    arguments["amount"] = 6
    assert ran == []
    assert (await runtime.resume(pause.id, caller=ANN))["c1"].body == "paid"
    assert ran == [(5, "ann")], "what the host does to its arguments later changes nothing"


RETRYABLE = ("retry", "try again", "again later", "timed out", "timeout", "429", "503", "temporar")


@runs
async def test_no_result_of_a_call_that_did_not_run_reads_like_an_error_to_try_again(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, add("c1"), edit("c2"), remove("c3"))
    texts = [str(result_of(call)) for call in pause.calls]
    await runtime.decide(pause.id, Decision("rejected", note="no"), decider=BOB)
    other = await paused(runtime)
    await runtime.cancel(other.id, actor="bob")
    late = await approved(runtime)
    texts.append(str(result_of(late.calls[0])))
    world.clock.passes(days=1)
    for one in (pause, other, late):
        for result in (await runtime.resume(one.id, caller=ANN)).values():
            assert (result.ok, result.status, result.retry_after) == (False, None, None)
            assert "nothing was sent" in result.message
            texts.append(str(result))
    assert len(texts) == 9
    for text in texts:
        assert not any(word in text.lower() for word in RETRYABLE), text


@runs
async def test_the_same_call_id_in_another_turn_is_another_call_and_each_has_its_own_result(world: World) -> None:
    runtime = world.runtime(WAITS)
    pauses = [await approved(runtime, add("c1"), thread="t", turn=turn) for turn in ("1", "2")]
    bodies = [(await runtime.resume(pause.id, caller=ANN))["c1"].body for pause in (*pauses, *pauses)]
    assert bodies == [{"number": 1}, {"number": 2}] * 2
    assert world.lines == ["POST /pets"] * 2


async def succeeds() -> ToolResult:
    return ToolResult(True, Sent.answered)


@runs
async def test_a_call_that_never_left_without_a_pause_and_waits_by_now_runs_once_it_is_approved(world: World) -> None:
    named: dict[str, Any] = {"thread": "t", "turn": "1"}
    free = world.runtime(config(unmatched="allow"), sources=[Source(DispatchRefused("no way there"))])
    assert not (await free.submit([act()], caller=ANN, **named)).results["a1"].ok
    source = Source(succeeds)
    runtime = world.runtime(WAITS, sources=[source])
    pause = await approved(runtime, act(), **named)
    for _ in range(2):
        assert (await runtime.resume(pause.id, caller=ANN))["a1"].ok
    assert source.ran == 1


@runs
async def test_an_approved_call_that_was_made_outside_of_its_pause_is_not_made_again_and_says_so(world: World) -> None:
    source = Source(succeeds)
    runtime = world.runtime(WAITS, sources=[source])
    pause = await approved(runtime, act())
    key = JournalKey(pause.tenant, pause.thread, pause.turn, "a1")  # of a process that does not ask, at the same time
    world.store.claim(key, pause.calls[0].fingerprint, requester="ann", worker="other", lease=runtime.lease())
    results = [(await runtime.resume(pause.id, caller=ANN))["a1"] for _ in range(2)]
    assert (results[0], source.ran) == (results[1], 0)
    assert results[0].refused is Refused.not_executed
    assert "made before in this turn, and its outcome stands" in results[0].message
    (entry,) = world.audit("not_executed")
    assert entry.details["detail"] == "carried out before"


@runs
async def test_a_call_whose_state_cannot_be_read_is_not_run(world: World) -> None:
    from sqlalchemy import update

    from toolgen.approvals.tables import calls

    runtime = world.runtime(WAITS)
    pause = await approved(runtime)
    with world.store.database.change() as connection:
        connection.execute(update(calls).values(state="something new"))
    for attempt in (runtime.resume(pause.id, caller=ANN), runtime.decide(pause.id, APPROVED, decider=BOB)):
        with pytest.raises(StoreError, match="changed from outside"):
            await attempt
    assert world.sent == []
