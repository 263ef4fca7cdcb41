"""What users get for their own tests; its example is run as it stands."""

from __future__ import annotations

import asyncio
import re

import httpx2
import pytest
from waiting_calls import ADA, Log, config, paused, runtime, states

import toolgen.testing
from toolgen import ToolCall
from toolgen.approvals.model import Decider
from toolgen.approvals.states import CallState
from toolgen.testing import Answer, RecordingTransport, ScriptedDecider


def test_the_example_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", toolgen.testing.__doc__ or "", re.DOTALL)
    exec(compile(example, "example", "exec"), {"__name__": "example"})
    printed = capsys.readouterr().out
    assert '"order": 7' in printed or '"order":7' in printed
    assert "only this once" in printed


def test_rules_are_for_a_tool_for_calls_that_are_picked_and_for_all_the_first_that_fits_counting() -> None:
    async def run() -> None:
        log = Log()
        made = runtime(log)
        decider = ScriptedDecider().approve(lambda call: call.arguments["text"] == "b").reject("note", note="no")
        decider.attach(made)
        pause = await paused(made, "a", "b")
        results = await made.wait(pause.id, caller=ADA, timeout=5)
        assert states(made, pause) == [CallState.rejected, CallState.executed]
        assert "no" in results["c0"].message
        assert log == ["b"]
        assert [one.id for one in decider.pauses] == [pause.id]

    asyncio.run(run())


def test_it_amends_and_asks_for_another_proposal() -> None:
    async def run() -> None:
        log = Log()
        made = runtime(log)
        ScriptedDecider().amend("note", text="better").attach(made)
        await made.wait((await paused(made, "worse")).id, caller=ADA, timeout=5)
        assert log == ["better"]
        other = runtime(log)
        ScriptedDecider().reject(retry=True).attach(other)
        pause = await paused(other)
        assert "ropose something else" in (await other.wait(pause.id, caller=ADA, timeout=5))["c0"].message

    asyncio.run(run())


def test_a_pause_with_a_call_that_no_rule_fits_goes_on_waiting() -> None:
    async def run() -> None:
        made = runtime(Log())
        decider = ScriptedDecider().approve(lambda call: call.arguments["text"] == "b")
        decider.attach(made)
        pause = await paused(made, "a", "b")
        await decider.settled()
        assert states(made, pause) == [CallState.pending] * 2

    asyncio.run(run())


def test_it_may_no_more_than_a_person_and_says_what_was_refused() -> None:
    async def run() -> None:
        made = runtime(Log(), config(requireApproval=["note"], rules=[{"match": "note", "approvers": ["role:boss"]}]))
        nobody = ScriptedDecider().approve()
        nobody.attach(made)
        pause = await paused(made)
        await nobody.settled()
        assert states(made, pause) == [CallState.pending]
        assert [type(one).__name__ for one in nobody.failures] == ["DecisionForbidden"]
        boss = ScriptedDecider(Decider("carol", frozenset({"boss"}))).approve()
        boss.attach(made)
        again = (await made.submit([ToolCall("z", "note", {"text": "z"})], caller=ADA)).pause
        assert again is not None
        await boss.settled()
        assert states(made, again) == [CallState.approved]

    asyncio.run(run())


def test_the_transport_keeps_requests_and_answers_in_turn_by_function_and_with_errors() -> None:
    async def run() -> None:
        request = httpx2.Request("POST", "https://a.example/x", json={"a": 1}, headers={"X-One": "1"})
        turns = RecordingTransport([Answer(404, {"e": 1}), httpx2.ConnectError("no"), Answer(200, b"raw")])
        assert (await turns.handle_async_request(request)).status_code == 404
        with pytest.raises(httpx2.ConnectError):
            await turns.handle_async_request(request)
        for _ in range(2):
            assert await (await turns.handle_async_request(request)).aread() == b"raw"
        first = turns.requests[0]
        assert (first.method, first.url, first.headers["x-one"], first.json()) == (
            "POST",
            "https://a.example/x",
            "1",
            {"a": 1},
        )
        assert "X-One" not in repr(first)
        echo = RecordingTransport(lambda found: Answer(body=found.json()))
        assert (await echo.handle_async_request(request)).json() == {"a": 1}
        with pytest.raises(ValueError, match="at least one"):
            RecordingTransport([])

    asyncio.run(run())
