"""What a source answers is kept and shown like an API's answer: JSON data, cut, without the caller's token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, World, add, config, paused, runs, state

from toolgen import Caller, ToolCall, ToolResult, functions
from toolgen.dispatch.settings import Http
from toolgen.result import Sent

ACT = ToolCall("a1", "act", {})
MOST = Http().max_result_chars


class Source:
    """A source that answers with what a test says."""

    name = "other"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def tools(self) -> list[str]:
        return ["act"]

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> Any:
        return self.answer


async def ran(world: World, answer: Any) -> ToolResult:
    found = await world.runtime(config(unmatched="allow"), sources=[Source(answer)]).submit([ACT], caller=ANN)
    return found.results["a1"]


@runs
async def test_no_place_of_an_answer_holds_the_caller_s_token_here_or_in_the_store(world: World) -> None:
    token = "t0k3n-of-ann-7361"
    caller = Caller("ann", token)
    said = ToolResult(
        True, Sent.answered, 200, body={token: [f"Bearer {token}"]}, headers={"x": token}, message=f"sent {token}",
        problems=({"what": token},),
    )  # fmt: skip
    runtime = world.runtime(config(requireApproval=["*"]), sources=[Source(said)])
    pause = await paused(runtime, ACT, caller=caller)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    (result,) = (await runtime.resume(pause.id, caller=caller)).values()
    kept = world.store.pause(pause.id, pause.tenant).calls[0].result
    assert kept == result
    assert "7361" not in json.dumps(result.to_dict())
    assert (result.body, result.headers) == ({"<redacted>": ["Bearer <redacted>"]}, {"x": "<redacted>"})


@runs
async def test_an_answer_is_cut_to_what_one_of_an_api_is_cut_to_and_says_so(world: World) -> None:
    result = await ran(world, ToolResult(True, Sent.answered, body={"items": ["x" * 98] * 1_000, "next": "c2"}))
    assert MOST / 2 < len(json.dumps(result.body)) <= MOST
    assert (result.body["next"], set(result.body["items"])) == ("c2", {"x" * 98})
    assert result.message.startswith(f"cut to {MOST:,} characters: /items: ")
    long = await ran(world, ToolResult(False, Sent.answered, message="m" * 2 * MOST))
    assert len(long.message) < MOST + 200
    small = ToolResult(True, Sent.answered, body={"a": [1, None]}, message="fine", retry_after=2.0)
    assert await ran(world, small) == small


@pytest.mark.parametrize(
    "answer",
    [None, "text", {"ok": True}, ToolResult(True, "answered", body=1), ToolResult(True, Sent.answered, body=object())],  # type: ignore[arg-type]
    ids=["nothing", "text", "object", "states", "body"],
)
@runs
async def test_what_is_no_result_in_json_data_has_an_unknown_outcome_and_costs_no_other_call(
    world: World, answer: Any
) -> None:
    runtime = world.runtime(config(requireApproval=["*"]), sources=[Source(answer), world.dispatcher()])
    pause = await paused(runtime, ACT, add("c2"))
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    results = await runtime.resume(pause.id, caller=ANN)
    assert (results["a1"].sent, results["c2"].ok) == (Sent.unknown, True)
    assert await state(runtime, pause) == {"a1": "outcome_unknown", "c2": "executed"}


@runs
async def test_a_function_s_answer_is_cut_too(world: World) -> None:
    def much() -> list[int]:
        return list(range(100_000))

    runtime = world.runtime(config(unmatched="allow"), sources=[functions({"much": much})])
    result = (await runtime.submit([ToolCall("m", "much", {})], caller=ANN)).results["m"]
    assert result.body == list(range(len(result.body)))
    assert 1_000 < len(result.body) < MOST / 2
