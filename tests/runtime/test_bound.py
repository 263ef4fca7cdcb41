"""What an approval stands for: the very request that a person read, in its turn, wherever and whenever it runs."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from raw_server import serving
from small_runtimes import ANN, APPROVED, BOB, World, add, config, edit, paused, pets, remove, runs, state
from sqlalchemy import text, update

from toolgen import Decision, Dispatcher, ToolCall, ToolResult, Verdict
from toolgen.approvals.binding import batch_fingerprint
from toolgen.approvals.model import LARGEST_AMENDMENT, LARGEST_ARGUMENTS
from toolgen.approvals.sealed import Seal
from toolgen.approvals.tables import calls
from toolgen.errors import DecisionInvalid, PauseConflict, StoreError
from toolgen.result import Refused, Sent

WAITS = config(requireApproval=["*"])
TURN: dict[str, Any] = {"caller": ANN, "thread": "t", "turn": "1"}
# Values that come back from a careless store as others: the order of keys, numbers, characters.
DEEP = {"name": "Zo\u00eb \u2028", "more": {"b": [1, 1.5, None, True, 2**53, []], "a": {"": "", "10": 1, "9": 0}}}

RESUMES = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from small_runtimes import ANN, World, config
world = World(sys.argv[2])
results = asyncio.run(world.runtime(config(requireApproval=["*"])).resume(sys.argv[3], caller=ANN))
print([result.refused for result in results.values()], world.lines, [one.content for one in world.sent])
"""


def test_what_was_approved_is_known_for_it_in_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'toolgen.db'}"
    world = World(url)
    call = ToolCall("c1", "edit", {"X-Trace": "a, b", "requestBody": DEEP, "q": "\u00e4 +%2f", "id": "1"})
    runtime = world.runtime(WAITS)
    pause = asyncio.run(paused(runtime, call, remove("d1")))
    other = {"d1": Verdict("approved", arguments={"id": "\u00fc 2"})}
    asyncio.run(runtime.decide(pause.id, Decision("approved", calls=other), decider=BOB))
    request = runtime.work("pets", "edit", call.arguments, ANN).request  # type: ignore[attr-defined]
    world.store.close()
    command = [sys.executable, "-c", RESUMES, str(Path(__file__).parents[1]), url, pause.id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    expected = ["PUT /pets/1?q=%C3%A4%20%2B%252f", "DELETE /pets/%C3%BC%202"]
    assert done.stdout == f"{[None, None]} {expected} {[request.body, b'']}\n", done.stderr


async def kept_as(world: World, pause: Any, effective: Any, proposed: Any = None) -> None:
    """The stored arguments of the call, replaced by whoever has the key and the database."""
    sealed = Seal(world.keys).json({"effective": effective, "proposed": proposed}, "calls", pause.id, "c1", "arguments")
    with world.store.database.change() as connection:
        connection.execute(update(calls).values(arguments=sealed))


class Bank:
    """A source without endpoints."""

    def __init__(self, name: str, ran: list[Any]) -> None:
        self.name, self.ran = name, ran

    def tools(self) -> list[str]:
        return ["pay", "refund"] if self.name == "bank" else ["pay"]

    async def call(self, name: str, arguments: Any, caller: Any) -> ToolResult:
        self.ran.append((self.name, name, dict(arguments)))
        return ToolResult(True, Sent.answered)


@pytest.mark.parametrize("what", [None, "arguments", "tool", "source"])
@runs
async def test_what_has_no_endpoint_is_bound_to_its_source_name_and_arguments(world: World, what: str | None) -> None:
    ran: list[Any] = []
    runtime = world.runtime(WAITS, sources=[Bank("bank", ran), Bank("casino", ran)])
    pause = await paused(runtime, ToolCall("c1", "pay", {"amount": [5]}, "bank"))
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    if what == "arguments":
        await kept_as(world, pause, {"amount": [50]})
    elif what is not None:
        with world.store.database.change() as connection:
            connection.execute(update(calls).values(**{what: {"tool": "refund", "source": "casino"}[what]}))
    result = (await runtime.resume(pause.id, caller=ANN))["c1"]
    assert (result.refused, ran) == (
        (None, [("bank", "pay", {"amount": [5]})]) if what is None else (Refused.not_executed, [])
    )


@runs
async def test_a_tool_that_its_source_does_not_list_any_more_is_not_called(world: World) -> None:
    """Where a name is all there is of a tool, no digest says that it is gone."""
    ran: list[Any] = []
    bank = Bank("bank", ran)
    pause = await paused(world.runtime(WAITS, sources=[bank]), ToolCall("c1", "refund", {}))
    await world.runtime(WAITS, sources=[bank]).decide(pause.id, APPROVED, decider=BOB)
    bank.tools = lambda: ["pay"]  # type: ignore[method-assign]
    result = (await world.runtime(WAITS, sources=[bank]).resume(pause.id, caller=ANN))["c1"]
    assert (result.refused, ran) == (Refused.not_executed, [])


@runs
async def test_an_amended_call_is_bound_to_what_it_was_amended_to(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, edit())
    other = {"c1": Verdict("approved", arguments={"id": "1", "requestBody": {"name": "Max"}})}
    await runtime.decide(pause.id, Decision("approved", calls=other), decider=BOB)
    await kept_as(world, pause, edit().arguments)
    assert (await runtime.resume(pause.id, caller=ANN))["c1"].refused is Refused.not_executed
    assert world.sent == []


def test_what_a_person_reads_is_what_the_server_gets() -> None:
    """The preview of the pause, not of the arguments: nothing changes a request after it was shown."""
    world = World()
    with serving() as server, Dispatcher(pets(), server=server.url, credentials=world.credentials) as dispatcher:
        runtime = world.runtime(WAITS, sources=[dispatcher])
        call = ToolCall("c1", "edit", {"id": "a/b", "q": "x y", "X-Trace": "t1", "requestBody": DEEP})
        pause = runtime.sync.submit([call], caller=ANN).pause
        assert pause is not None
        runtime.sync.decide(pause.id, APPROVED, decider=BOB)
        shown = pause.to_dict()["calls"][0]["preview"]
        assert runtime.sync.resume(pause.id, caller=ANN)["c1"].ok
        runtime.sync.close()
    (ran,) = world.audit("executed")
    assert {ran.details[key] for key in ("sent", "status", "fingerprint")} == {
        "answered",
        200,
        pause.calls[0].fingerprint,
    }
    world.store.close()
    (got,) = server.requests
    assert got.line == f"{shown['method']} {shown['url'].removeprefix(server.url)} HTTP/1.1"
    assert {one["name"]: got.header(one["name"].lower()) for one in shown["headers"]} == {
        one["name"]: one["value"] for one in shown["headers"]
    }
    assert {one["name"] for one in shown["headers"]} >= {"X-Trace"}
    assert hashlib.sha256(got.body).hexdigest() == shown["body"]["sha256"]


@runs
async def test_a_call_whose_source_is_not_known_here_stays_visible_and_is_given_to_no_other(world: World) -> None:
    ran: list[Any] = []
    pause = await paused(world.runtime(WAITS, sources=[Bank("bank", ran)]), ToolCall("c1", "pay", {"amount": 5}))
    renamed = world.runtime(WAITS, sources=[Bank("casino", ran)])
    assert [one.id for one in world.store.pauses("default", waiting=True)] == [pause.id]
    with pytest.raises(PauseConflict, match="c1 wait"):
        await renamed.resume(pause.id, caller=ANN)
    amended = Decision("approved", calls={"c1": Verdict("approved", arguments={"amount": 6})})
    with pytest.raises(DecisionInvalid):
        await renamed.decide(pause.id, amended, decider=BOB)
    assert world.store.pause(pause.id, "default") == pause
    await renamed.decide(pause.id, APPROVED, decider=BOB)
    assert (await renamed.resume(pause.id, caller=ANN))["c1"].refused is Refused.not_executed
    assert ran == []


@runs
async def test_after_its_tool_changed_a_call_is_asked_about_again_as_it_is_now(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, edit(), thread="t", turn="1")
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    await runtime.reload(pets(path="/pets/{id}/all"))
    assert (await runtime.submit([edit()], **TURN)).results["c1"].refused is Refused.not_executed
    again = await paused(runtime, edit("c2"), thread="t", turn="1")
    (call,) = again.calls
    assert (call.state, call.votes, call.endpoint) == ("pending", (), "put:/pets/{id}/all")
    assert world.sent == []


@runs
async def test_an_approval_is_for_the_call_of_its_turn_and_for_none_of_the_same_id(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, thread="t", turn="1")
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    other = await runtime.submit([add("c1", "Max")], **TURN)
    assert (other.pause, other.results["c1"].sent) == (None, Sent.not_sent)
    for thread, turn in (("t", "2"), ("u", "1")):
        elsewhere = await paused(runtime, thread=thread, turn=turn)
        assert await state(runtime, elsewhere) == {"c1": "pending"}
    await runtime.resume(pause.id, caller=ANN)
    assert await state(runtime, await paused(runtime, thread="t", turn="3")) == {"c1": "pending"}
    assert [one.content for one in world.sent] == [b'{"name":"Rex"}']


@runs
async def test_what_the_model_wrote_is_in_the_preview_of_the_request_and_in_no_other_text(world: World) -> None:
    said = "pre-approved by security"
    pause = await paused(world.runtime(WAITS), edit("c1", said, q=said))
    data = pause.to_dict()
    preview = data["calls"][0].pop("preview")
    assert said in preview["body"]["text"]
    assert "approved by" not in str(data)


@runs
async def test_no_digest_that_an_approval_is_compared_by_is_shown(world: World) -> None:
    pause = await paused(world.runtime(WAITS), edit())
    (call,) = pause.calls
    shown = f"{pause.to_dict()} {pause!r}"
    for digest in (call.fingerprint, call.binding, call.tool_digest, pause.batch, pause.gating_digest):
        assert len(digest) >= 64
        assert digest not in shown


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "These calls need approval: edit, add, remove"),
        ({"pauseReason": "look at {toolNames}"}, "look at edit, add, remove"),
        (
            {"pauseReason": "look", "rules": [{"match": "*", "pauseReason": "pets: {toolNames}"}]},
            "pets: edit, add, remove",
        ),
        ({"pauseReason": "{toolNames}" * 45}, ("edit, add, remove" * 45)[:500]),
    ],
)
@runs
async def test_the_reason_is_the_rule_s_else_the_config_s_and_is_cut(world: World, given: Any, expected: str) -> None:
    pause = await paused(
        world.runtime(config(requireApproval=["*"], **given)), edit("c1"), add("c2"), remove("c3"), edit("c4")
    )
    assert pause.reason == expected


@runs
async def test_the_sizes_of_arguments_are_in_bytes_and_the_largest_is_kept_whole(world: World) -> None:
    runtime = world.runtime(WAITS)

    def sized(size: int, id: str = "c1") -> ToolCall:
        odd = size - len('{"requestBody":{"name":""}}')
        return add(id, "\u00e9" * (odd // 2) + "x" * (odd % 2))

    found = await runtime.submit([sized(LARGEST_ARGUMENTS), sized(LARGEST_ARGUMENTS + 1, "c2")], caller=ANN)
    assert found.pause is not None
    assert [call.id for call in found.pause.calls] == ["c1"]
    assert found.results["c2"].refused is Refused.denied
    for size, fits in ((LARGEST_AMENDMENT + 1, False), (LARGEST_AMENDMENT, True)):
        given = Verdict("approved", arguments=sized(size).arguments)
        decision = Decision("approved", calls={"c1": given})
        if fits:
            await runtime.decide(found.pause.id, decision, decider=BOB)
        else:
            with pytest.raises(DecisionInvalid, match="at most"):
                await runtime.decide(found.pause.id, decision, decider=BOB)
    await runtime.resume(found.pause.id, caller=ANN)
    assert len(world.sent[0].content) == LARGEST_AMENDMENT - len('{"requestBody":}')


@runs
async def test_a_batch_is_the_same_whatever_the_order_and_the_ids_of_its_calls(world: World) -> None:
    rule = {"match": "*", "timeoutPolicy": "AUTO_REJECT", "approvalTimeout": "PT5M"}
    runtime = world.runtime(config(requireApproval=["*"], rules=[rule], onNoProgress="AUTO_REJECT"))
    for batch in ([add("a1"), edit("a2")], [edit("b1"), add("b2")]):
        await paused(runtime, *batch, thread="t", turn="1")
        world.clock.passes(minutes=6)
        await runtime.sweep()
    third = await runtime.submit([add("c1"), edit("c2")], **TURN)
    assert (third.pause, {one.refused for one in third.results.values()}) == (None, {Refused.rejected})
    pair = [("a", {"b": 1}), ("b", {})]
    assert batch_fingerprint(world.keys, pair) == batch_fingerprint(world.keys, pair[::-1])
    assert batch_fingerprint(world.keys, pair) != batch_fingerprint(world.keys, [*pair, pair[0]])


@runs
async def test_a_store_that_fails_while_a_decision_is_written_keeps_the_pause_and_its_due_time(world: World) -> None:
    timed = config(requireApproval=["*"], approvalTimeout="PT1H", timeoutPolicy="AUTO_REJECT")
    runtime = world.runtime(timed)
    pause = await paused(runtime, add("c1"), edit("c2"))
    engine, entries = world.store.database.engine, world.audit()
    full = "CREATE TRIGGER full BEFORE INSERT ON toolgen_audit BEGIN SELECT RAISE(ABORT, 'full'); END"
    for statement, fails in ((full, True), ("DROP TRIGGER full", False)):
        with engine.begin() as connection:
            connection.execute(text(statement))
        if fails:
            with pytest.raises(StoreError):
                await runtime.decide(pause.id, APPROVED, decider=BOB)
            assert (world.store.pause(pause.id, "default"), world.audit()) == (pause, entries)
            assert pause.due is not None
        else:
            await runtime.decide(pause.id, APPROVED, decider=BOB)
    assert await state(runtime, pause) == {"c1": "approved", "c2": "approved"}


@runs
async def test_a_pause_that_cannot_be_kept_is_told_and_what_ran_beside_it_is_not_run_again(world: World) -> None:
    runtime = world.runtime(config(requireApproval=["add"], unmatched="allow"))
    engine, batch = world.store.database.engine, [edit("c1"), add("c2")]
    with engine.begin() as connection:
        connection.execute(
            text("CREATE TRIGGER full BEFORE INSERT ON toolgen_pauses BEGIN SELECT RAISE(ABORT, 'full'); END")
        )
    with pytest.raises(StoreError):
        await runtime.submit(batch, **TURN)
    with engine.begin() as connection:
        connection.execute(text("DROP TRIGGER full"))
    found = await runtime.submit(batch, **TURN)
    assert found.pause is not None
    assert (found.pause.executed, found.results["c1"].body) == (("c1",), {"number": 1})
    assert world.lines == ["PUT /pets/1"]


@runs
async def test_a_host_that_changes_its_arguments_later_changes_no_call(world: World) -> None:
    """Nested ones: between the look at a call and its end the host is given time more than once."""
    given: dict[str, Any] = {"requestBody": {"name": "Rex"}}
    ran: list[Any] = []

    async def hook(call: Any, caller: Any) -> str:
        given["requestBody"]["name"] = "Eve"
        return call.outcome.name  # no stricter

    runtime = world.runtime(
        config(requireApproval=["add"], unmatched="allow"),
        sources=[world.dispatcher(), Bank("bank", ran)],
        decision_hook=hook,
    )
    found = await runtime.submit([ToolCall("c1", "add", given), ToolCall("c2", "pay", given)], caller=ANN)
    assert found.pause is not None
    assert ran == [("bank", "pay", {"requestBody": {"name": "Rex"}})]
    assert found.pause.calls[0].arguments == {"requestBody": {"name": "Rex"}}
    await runtime.decide(found.pause.id, APPROVED, decider=BOB)
    assert (await runtime.resume(found.pause.id, caller=ANN))["c1"].ok
    assert world.sent[0].content == b'{"name":"Rex"}'
