"""What is approved and not run stands in nobody's way: others expire and run all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from toolgen import ApprovalConfig, Caller, Decider, Decision, Pause, Runtime, ToolCall, functions
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Store
from toolgen.identity.keys import Keys
from toolgen.runtime import sweep

START = datetime(2030, 1, 1, tzinfo=UTC)
RULES = {
    "requireApproval": ["hold", "quick"],
    "rules": [{"match": "hold", "approvalValidity": "P1D"}, {"match": "quick", "approvalValidity": "PT1M"}],
}


class Clock:
    """A time that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


def hold() -> str:
    return "held"


def quick() -> str:
    return "quick"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(store_url: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(sweep, "_BATCH", 3)
    made = Store(store_url, Keys(bytes(range(32))), clock=clock)
    yield made
    made.close()


async def approved(runtime: Runtime, tool: str, subject: str) -> Pause:
    made = await runtime.submit([ToolCall("1", tool, {})], caller=Caller(subject))
    assert made.pause is not None
    return await runtime.decide(made.pause.id, Decision("approved"), decider=Decider("boss"))


def test_an_approval_expires_however_many_older_ones_are_good_for_longer(store: Store, clock: Clock) -> None:
    async def run() -> list[CallState]:
        runtime = Runtime(
            functions({"hold": hold, "quick": quick}), ApprovalConfig.parse(RULES), store=store, background=False
        )
        long = [await approved(runtime, "hold", "ann") for _ in range(7)]
        clock.now += timedelta(seconds=1)
        short = await approved(runtime, "quick", "ann")
        clock.now += timedelta(minutes=2)
        await runtime.sweep()
        return [store.pause(one.id, "default").calls[0].state for one in (*long, short)]

    assert asyncio.run(run()) == [CallState.approved] * 7 + [CallState.expired]


def test_a_worker_comes_to_every_approval_however_many_requesters_are_not_there(store: Store, clock: Clock) -> None:
    async def callers(subject: str, tenant: str) -> Caller | None:
        return Caller(subject, tenant=tenant) if subject == "here" else None

    async def run() -> CallState:
        config = ApprovalConfig.parse(RULES)
        runtime = Runtime(
            functions({"hold": hold, "quick": quick}), config, store=store, callers=callers, background=False
        )
        for _ in range(7):  # decided at the same moment: the next page begins between them
            await approved(runtime, "hold", "gone")
        last = await approved(runtime, "hold", "here")
        for _ in range(3):
            await runtime.sweep()
        return store.pause(last.id, "default").calls[0].state

    assert asyncio.run(run()) is CallState.executed


def test_an_approval_beside_a_call_that_waits_does_not_expire_before_the_last_verdict(
    store: Store, clock: Clock
) -> None:
    async def run() -> list[CallState]:
        rules = [
            {"match": "hold", "approvers": ["boss"]},
            {"match": "quick", "approvalValidity": "PT1M", "approvers": ["bob"]},
        ]
        runtime = Runtime(
            functions({"hold": hold, "quick": quick}),
            ApprovalConfig.parse({**RULES, "rules": rules}),
            store=store,
            background=False,
        )
        calls = [ToolCall("1", "hold", {}), ToolCall("2", "quick", {})]
        made = await runtime.submit(calls, caller=Caller("ann"))
        assert made.pause is not None
        await runtime.decide(made.pause.id, Decision("approved"), decider=Decider("bob"))
        clock.now += timedelta(minutes=2)
        await runtime.sweep()
        return [call.state for call in store.pause(made.pause.id, "default").calls]

    assert asyncio.run(run()) == [CallState.pending, CallState.approved]
