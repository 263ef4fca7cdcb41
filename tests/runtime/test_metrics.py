"""Metrics of approvals: what is counted, and that no tool, person or argument is in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import metrics
from waiting_calls import ADA, BOB, NO, YES, Log, config, paused, runtime

from toolgen import ToolCall
from toolgen.approvals import telemetry
from toolgen.testing import Clock, memory_store


class Meters(metrics.NoOpMeterProvider):
    """Keeps what is counted: (name, attributes) -> how often, and the times."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, tuple[tuple[str, Any], ...]]] = Counter()
        self.times: list[tuple[float, dict[str, Any]]] = []

    def get_meter(self, *_: Any, **__: Any) -> Any:
        kept = self

        class Kept(metrics.NoOpMeter):
            def create_counter(self, name: str, *_: Any, **__: Any) -> Any:
                class One(metrics.NoOpCounter):
                    def add(self, amount: float, attributes: Any = None, context: Any = None) -> None:
                        kept.counts[name, tuple(sorted((attributes or {}).items()))] += int(amount)

                return One(name)

            def create_histogram(self, name: str, *_: Any, **__: Any) -> Any:
                class One(metrics.NoOpHistogram):
                    def record(self, amount: float, attributes: Any = None, context: Any = None) -> None:
                        kept.times.append((amount, dict(attributes)))

                return One(name)

        return Kept("kept")

    def of(self, name: str) -> dict[tuple[Any, ...], int]:
        found = {key: count for key, count in self.counts.items() if key[0] == f"toolgen.approval.{name}"}
        return {tuple(value for _, value in told): count for (_, told), count in found.items()}


@pytest.fixture
def meters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meters]:
    found = Meters()
    monkeypatch.setattr(metrics._internal, "get_meter_provider", lambda: found)
    for cached in (telemetry._counter, telemetry._times):
        cached.cache_clear()
    yield found
    for cached in (telemetry._counter, telemetry._times):
        cached.cache_clear()


def test_pauses_verdicts_outcomes_and_times_are_counted(meters: Meters) -> None:
    async def run() -> None:
        clock = Clock()
        given = config(approvalTimeout="PT10M", timeoutPolicy="AUTO_REJECT")
        made = runtime(Log(), given, store=memory_store(clock))
        approved, rejected, late = [await paused(made, f"text-{n}", thread=str(n)) for n in range(3)]
        clock.move(timedelta(minutes=1))
        await made.decide(approved.id, YES, decider=BOB)
        await made.resume(approved.id, caller=ADA)
        clock.move(timedelta(minutes=1))
        await made.decide(rejected.id, NO, decider=BOB)
        clock.move(timedelta(minutes=10))
        await made.sweep()
        assert not made.store.pause(late.id, "default").waiting

    asyncio.run(run())
    assert meters.of("pauses") == {(): 3}
    assert meters.of("decisions") == {(False, "approved"): 1, (False, "rejected"): 1, (True, "none"): 1}
    assert meters.of("outcomes") == {(True, "executed"): 1, (True, "rejected"): 1, (True, "expired"): 1}
    assert meters.times == [(60.0, {"automated": False}), (120.0, {"automated": False}), (720.0, {"automated": True})]


def test_guards_and_calls_that_did_not_wait_are_counted(meters: Meters) -> None:
    async def run() -> None:
        made = runtime(Log(), config(maxPausesPerTurn=1))
        for n in range(3):
            await made.submit([ToolCall(f"c{n}", "note", {"text": f"{n}"})], caller=ADA, thread="t", turn="1")
        await runtime(Log(), config(unmatched="allow")).submit([ToolCall("1", "note", {"text": "x"})], caller=ADA)

    asyncio.run(run())
    assert meters.of("pauses") == {(): 1}
    assert meters.of("guards") == {("pause-cap",): 2}
    assert meters.of("outcomes") == {(False, "executed"): 1}


def test_each_guard_is_counted_by_its_name_and_what_time_approved_as_automated(meters: Meters) -> None:
    from toolgen.approvals.model import LARGEST_ARGUMENTS

    async def run() -> None:
        clock = Clock()
        rule = {"match": "note", "approvalTimeout": "PT10M", "timeoutPolicy": "AUTO_APPROVE"}
        given = config(requireApproval=["note"], rules=[rule], maxAutoApprovalsPerTurn=1, onNoProgress="ABORT")
        made = runtime(Log(), given, store=memory_store(clock))

        async def asked(name: str, text: str) -> None:
            await made.submit([ToolCall(name, "note", {"text": text})], caller=ADA, thread="t", turn="1")
            clock.move(timedelta(minutes=11))
            await made.sweep()

        await asked("c0", "x" * LARGEST_ARGUMENTS)
        for name, text in (("c1", "a"), ("c2", "a"), ("c3", "b")):
            await asked(name, text)

    asyncio.run(run())
    assert meters.of("guards") == {("size-cap",): 1, ("no-progress",): 1, ("timeout",): 1}
    assert meters.of("decisions") == {(True, "approved"): 1}


def test_no_tool_person_tenant_or_argument_is_in_what_is_counted(meters: Meters) -> None:
    async def run() -> None:
        made = runtime(Log())
        pause = await paused(made, "an-argument", thread="a-thread")
        await made.decide(pause.id, YES, decider=BOB)
        await made.resume(pause.id, caller=ADA)

    asyncio.run(run())
    text = f"{meters.counts} {meters.times}"
    assert "executed" in text
    for word in ("an-argument", "a-thread", "ada", "bob", "note", "builtin", "default"):
        assert word not in text


def test_what_is_not_written_is_not_counted(meters: Meters) -> None:
    from toolgen.approvals.audit import Entry

    made = runtime(Log())
    pause = asyncio.run(paused(made))
    meters.counts.clear()

    def fail(_: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        made.store.change(pause.id, "default", fail)
    assert meters.counts == Counter()
    made.store.record([Entry("guard", "default", "system:something new")])
    assert meters.of("guards") == {("other",): 1}, "a name nobody knows adds no series"
