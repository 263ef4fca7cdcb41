"""The decision hook: it makes an outcome stricter or leaves it, whatever it does."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, World, add, config, edit, listing, runs

from toolgen import Caller, Decider
from toolgen.errors import DecisionForbidden
from toolgen.policy.config import TimeoutPolicy
from toolgen.policy.outcomes import Outcome
from toolgen.result import Refused
from toolgen.runtime import hooks
from toolgen.runtime.hooks import HookCall

ALLOWS, WAITS, DENIES = ("allowed", "gated", "denied")
CONFIGS = {ALLOWS: config(unmatched="allow"), WAITS: config(requireApproval=["*"]), DENIES: config(deny=["*"])}


async def raising(call: HookCall, caller: Caller | None) -> Any:
    raise RuntimeError("s3cr3t")


async def cancelled(call: HookCall, caller: Caller | None) -> Any:
    raise asyncio.CancelledError


async def never(call: HookCall, caller: Caller | None) -> Any:
    await asyncio.Event().wait()


async def stubborn(call: HookCall, caller: Caller | None) -> Any:
    """Does not end when it is told to."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0.5, done.set)
    while not done.is_set():
        try:
            await done.wait()
        except asyncio.CancelledError:
            continue
    return Outcome.allowed


async def blocking(call: HookCall, caller: Caller | None) -> Any:
    time.sleep(hooks.WITHIN * 2)


def no_coroutine(call: HookCall, caller: Caller | None) -> Any:
    return None


def answers(value: Any) -> Any:
    async def hook(call: HookCall, caller: Caller | None) -> Any:
        return value

    return hook


def became(found: Any) -> str:
    if found.pause is not None:
        return WAITS
    (result,) = found.results.values()
    return ALLOWS if result.ok else DENIES if result.refused is Refused.denied else "?"


@pytest.mark.parametrize(
    ("hook", "outcomes"),
    [
        (None, (ALLOWS, WAITS, DENIES)),
        (answers(None), (WAITS, WAITS, DENIES)),
        (answers(Outcome.allowed), (ALLOWS, WAITS, DENIES)),
        (answers("allowed"), (ALLOWS, WAITS, DENIES)),
        (answers(Outcome.gated), (WAITS, WAITS, DENIES)),
        (answers("denied"), (DENIES, DENIES, DENIES)),
        (answers("yes"), (WAITS, WAITS, DENIES)),
        (answers(0), (WAITS, WAITS, DENIES)),
        (answers(True), (WAITS, WAITS, DENIES)),
        (raising, (WAITS, WAITS, DENIES)),
        (cancelled, (WAITS, WAITS, DENIES)),
        (never, (WAITS, WAITS, DENIES)),
        (stubborn, (WAITS, WAITS, DENIES)),
        (blocking, (WAITS, WAITS, DENIES)),
        (no_coroutine, (WAITS, WAITS, DENIES)),
    ],
)
@runs
async def test_a_hook_is_never_looser_and_one_that_fails_is_late_or_silent_means_that_a_person_looks(
    world: World, monkeypatch: pytest.MonkeyPatch, hook: Any, outcomes: tuple[str, ...]
) -> None:
    monkeypatch.setattr(hooks, "WITHIN", 0.05)
    for given, expected in zip(CONFIGS, outcomes, strict=True):
        runtime = world.runtime(CONFIGS[given], decision_hook=hook)
        assert became(await runtime.submit([edit()], caller=ANN)) == expected
    assert len(world.sent) == (outcomes[0] == ALLOWS)
    assert "s3cr3t" not in str([entry.to_dict() for entry in world.audit()])


@runs
async def test_a_hook_has_three_seconds_and_hooks_of_a_batch_run_together(world: World) -> None:
    assert hooks.WITHIN == 3.0
    came: list[str] = []
    all_here = asyncio.Event()

    async def hook(call: HookCall, caller: Caller | None) -> Outcome:
        came.append(call.id)
        if len(came) == 3:
            all_here.set()
        await all_here.wait()
        return call.outcome

    runtime = world.runtime(CONFIGS[ALLOWS], decision_hook=hook)
    found = await runtime.submit([edit("1"), edit("2"), edit("3")], caller=ANN)
    assert all(result.ok for result in found.results.values())


@runs
async def test_a_hook_sees_the_call_as_a_person_would_and_what_it_says_is_in_the_audit_log(world: World) -> None:
    seen: list[Any] = []

    async def hook(call: HookCall, caller: Caller | None) -> str:
        seen.append((call, caller))
        return "gated"

    await world.runtime(CONFIGS[ALLOWS], decision_hook=hook).submit([add()], caller=ANN)
    ((call, caller),) = seen
    assert (call.tool, call.source, call.endpoint, call.outcome) == ("add", "pets", "post:/pets", Outcome.allowed)
    assert "Rex" in str(call.preview)
    assert "token-of-ann" not in str(call.preview)
    assert caller is ANN
    assert [(one.call, one.details["outcome"]) for one in world.audit("hook")] == [("c1", "gated")]


@runs
async def test_what_a_hook_has_wait_waits_under_the_terms_the_config_states(world: World) -> None:
    given = config(
        unmatched="allow",
        requireApproval=["add"],
        rules=[{"match": "edit", "approvers": ["bob"], "timeoutPolicy": "ABORT", "approvalTimeout": "PT5M"}],
    )
    runtime = world.runtime(given, decision_hook=answers("gated"))
    pause = (await runtime.submit([edit()], caller=ANN)).pause
    assert pause is not None
    assert pause.calls[0].terms.approvers == (("bob",),)
    assert (pause.timeout_policy, pause.due is not None) == (TimeoutPolicy.ABORT, True)
    with pytest.raises(DecisionForbidden):
        await runtime.decide(pause.id, APPROVED, decider=Decider("eve"))
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    assert (await runtime.resume(pause.id, caller=ANN))["c1"].ok


@runs
async def test_time_does_not_approve_what_a_hook_has_wait(world: World) -> None:
    rule = {"match": "*", "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}
    given = config(requireApproval=["*"], rules=[rule])
    plain = (await world.runtime(given).submit([edit()], caller=ANN)).pause
    hooked = (await world.runtime(given, decision_hook=raising).submit([edit()], caller=ANN)).pause
    assert plain is not None
    assert hooked is not None
    assert plain.timeout_policy is TimeoutPolicy.AUTO_APPROVE
    assert (hooked.timeout_policy, hooked.due) == (TimeoutPolicy.WAIT_INDEFINITELY, None)


@runs
async def test_a_denied_or_invalid_call_is_not_asked_about_and_one_denied_by_the_hook_costs_no_other(
    world: World,
) -> None:
    asked: list[str] = []

    async def hook(call: HookCall, caller: Caller | None) -> str:
        asked.append(call.id)
        return "denied" if call.id == "c2" else "allowed"

    runtime = world.runtime(config(unmatched="allow", deny=["add"]), decision_hook=hook)
    calls = [add("c0"), edit("c1"), edit("c2"), edit("c3")._replace(arguments={"id": "1"}), listing("c4")]
    found = await runtime.submit(calls, caller=ANN)
    assert asked == ["c1", "c2", "c4"]
    assert [name for name, result in found.results.items() if result.ok] == ["c1", "c4"]
    assert "decision hook" in found.results["c2"].message
