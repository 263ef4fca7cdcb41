"""Layers: a runtime with one more is never looser than without it, whatever the configs."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runtimes import ANN, APPROVED, BOB, World, add, config, edit, listing, paused, remove, runs

from toolgen import functions
from toolgen.policy.outcomes import Outcome, ToolCall
from toolgen.result import Refused

CALLS = (add(), edit(), listing(), remove())
PATTERNS = st.lists(
    st.sampled_from(["*", "add", "edit", "list", "http.*:/pets", "http.delete:*", "pets:edit"]), max_size=2
)


@st.composite
def configs(draw: Any) -> dict[str, Any]:
    keys = draw(st.sets(st.sampled_from(["requireApproval", "exempt", "deny", "destructive"])))
    found: dict[str, Any] = {key: sorted(set(draw(PATTERNS))) for key in keys}
    if draw(st.booleans()):
        found["unmatched"] = draw(st.sampled_from(["allow", "requireWrites", "require", "deny"]))
    if draw(st.booleans()):
        found["approvers"] = draw(st.sampled_from([["bob"], ["role:lead"], ["eve", "bob"]]))
    for key, most in (("maxPausesPerTurn", 10), ("maxAutoApprovalsPerTurn", 5)):
        if draw(st.booleans()):
            found[key] = draw(st.integers(1, most))
    return found


def parsed(mapping: dict[str, Any]) -> Any:
    from toolgen.errors import ApprovalConfigError

    try:
        return config(**mapping)
    except ApprovalConfigError:  # says two things at once: it is refused where it is read
        return None


@settings(max_examples=60)
@given(configs(), configs(), configs())
def test_a_layer_makes_no_call_looser_and_asks_no_fewer_people(one: Any, two: Any, three: Any) -> None:
    world = World()
    try:
        runtimes = [world.runtime(parsed(one))]
        for layer in (two, three):
            made = parsed(layer)
            if made is not None:
                runtimes.append(runtimes[-1].layered(made))
        for looser, stricter in pairwise(runtimes):
            before, after = (each.gate.classify(CALLS).calls for each in (looser, stricter))
            assert all(new.outcome >= old.outcome for old, new in zip(before, after, strict=True))
            for old, new in zip(before, after, strict=True):
                if old.outcome is new.outcome is Outcome.gated:
                    was, terms = old.result.terms, new.result.terms
                    assert was is not None
                    assert terms is not None
                    assert set(was.approvers) <= set(terms.approvers)
                    assert was.allow_self_approval or not terms.allow_self_approval
                    assert terms.approval_validity <= was.approval_validity
            assert stricter.gate.max_pauses_per_turn <= looser.gate.max_pauses_per_turn
            assert stricter.gate.max_auto_approvals_per_turn <= looser.gate.max_auto_approvals_per_turn
    finally:
        world.store.close()


@runs
async def test_a_layer_holds_for_what_runs_and_the_runtime_under_it_is_as_it_was(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    layered = runtime.layered(config(deny=["edit"], requireApproval=["add"]))
    found = await layered.submit([edit("c1"), add("c2"), listing("c3")], caller=ANN)
    assert found.results["c1"].refused is Refused.denied
    assert found.pause is not None
    assert [call.id for call in found.pause.calls] == ["c2"]
    assert world.lines == ["GET /pets"]
    assert (await runtime.submit([edit("c1")], caller=ANN)).results["c1"].ok


@runs
async def test_a_pause_of_a_layer_is_decided_anywhere_and_runs_only_under_the_layer(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    layered = runtime.layered(config(requireApproval=["add"]))
    one, two = await paused(layered), await paused(layered)
    for pause in (one, two):
        await runtime.decide(pause.id, APPROVED, decider=BOB)
    assert (await layered.resume(one.id, caller=ANN))["c1"].ok
    assert (await runtime.resume(two.id, caller=ANN))["c1"].refused is Refused.not_executed


def test_plain_code_under_a_layer_is_under_it_too(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    assert runtime.sync.submit([edit()], caller=ANN).results["c1"].ok
    layered = runtime.layered(config(deny=["*"]))
    assert layered.sync.submit([edit()], caller=ANN).results["c1"].refused is Refused.denied
    runtime.sync.close()
    layered.sync.close()


@runs
async def test_unknown_tools_stay_denied_under_any_layer(world: World) -> None:
    layered = world.runtime(config(unmatched="allow")).layered(config(unmatched="requireWrites", exempt=["*"]))
    found = await layered.submit([ToolCall("c1", "nope", {})], caller=ANN)
    assert found.results["c1"].refused is Refused.denied


@pytest.mark.parametrize("restarted", [False, True])
@runs
async def test_a_pause_of_a_sub_agent_reaches_whoever_watches_the_top_and_is_decided_and_resumed_there(
    world: World, restarted: bool
) -> None:
    """An agent calls a sub-agent as a tool, which calls tools of its own in a thread below that of the agent."""
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def delegate(task: str) -> str:
        found = await top.submit([add("s1", task)], thread="chat/helper", turn="1")
        assert found.pause is not None
        if restarted:
            return f"waits for a person: {found.pause.id}"
        return str((await top.wait(found.pause.id))["s1"].body)

    sources = [world.dispatcher(), functions({"delegate": delegate})]
    approvals = config(unmatched="allow", requireApproval=["add"])
    top = world.runtime(approvals, sources=sources, on_change=lambda pause, what: told.put_nowait((pause, what)))
    call = ToolCall("c1", "delegate", {"task": "Rex"})
    running = asyncio.create_task(top.submit([call], caller=ANN, thread="chat", turn="1"))
    pause, what = await told.get()
    assert (what, pause.thread, pause.requester) == ("paused", "chat/helper", "ann"), "for whom the agent runs"
    assert [one.id for one in world.store.listed(waiting=True)] == [pause.id]
    if restarted:
        result = (await running).results["c1"]
        assert pause.id in str(result.body)
        top = world.runtime(approvals, sources=sources)
    await top.decide(pause.id, APPROVED, decider=BOB)
    if restarted:
        assert (await top.resume(pause.id, caller=ANN))["s1"].body == {"number": 1}
        again = await top.submit([call], caller=ANN, thread="chat", turn="1")
        assert again.results["c1"] == result, "the sub-agent is not run again"
    else:
        assert (await running).results["c1"].body == "{'number': 1}"
    assert world.lines == ["POST /pets"]
