"""What an approval is bound to: each of it, flipped alone after the approval, keeps the call from running."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from small_documents import parameter
from small_runtimes import ANN, APPROVED, BOB, DONE, World, add, config, edit, listing, paused, pets, runs, state
from sqlalchemy import update

from toolgen import Caller, Pause, Runtime, functions
from toolgen.approvals.sealed import Seal
from toolgen.approvals.tables import calls, pauses
from toolgen.errors import CallerMismatch, PauseUnknown
from toolgen.result import Refused, Sent

WAITS = config(requireApproval=["*"])


def operation(**changes: Any) -> dict[str, Any]:
    """The PUT of `pets`, with something else."""
    body = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    found = {
        "operationId": "edit",
        "parameters": [parameter("id", "path"), parameter("q"), parameter("X-Trace", "header")],
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": DONE,
    }
    return found | changes


def renamed(key: str, to: str) -> dict[str, Any]:
    """The PUT with a parameter of another wire name."""
    return operation(
        parameters=[one | {"name": to} if one["name"] == key else one for one in operation()["parameters"]]
    )


async def approved(world: World, *calls: Any, given: Any = WAITS, **more: Any) -> Pause:
    runtime = world.runtime(given, **more)
    pause = await paused(runtime, *calls)
    return await runtime.decide(pause.id, APPROVED, decider=BOB)


@runs
async def test_what_did_not_change_runs_in_another_process_days_later(world: World) -> None:
    given = config(requireApproval=["*"], approvalValidity="P7D")
    pause = await approved(world, edit(), given=given)
    world.clock.passes(days=6)
    results = await world.runtime(given).resume(pause.id, caller=ANN)
    assert results["c1"].ok
    assert world.lines == ["PUT /pets/1"]


TOOLS: dict[str, tuple[Any, str]] = {
    "method": ({"put": operation(operationId="other"), "delete": operation()}, "the tool has changed"),
    "path": ({"path": "/pets/{id}/sub"}, "the tool has changed"),
    "schema": (
        {"put": operation(requestBody={"content": {"application/json": {"schema": {"type": "object"}}}})},
        "the tool has changed",
    ),
    "schema that refuses it": (
        {"put": operation(parameters=[parameter("id", "path"), parameter("more", required=True)])},
        "the arguments are not valid any more",
    ),
    "query": ({"put": renamed("q", "r")}, "the tool has changed"),
    "header": ({"put": renamed("X-Trace", "X-Other")}, "the tool has changed"),
    "security": ({"put": operation(security=[{"user": []}])}, "the tool has changed"),
    "server": ({"put": operation(servers=[{"url": "https://other.example"}])}, "the tool has changed"),
}


@pytest.mark.parametrize("what", TOOLS)
@runs
async def test_a_tool_that_is_another_one_by_now_does_not_run(world: World, what: str) -> None:
    changes, reason = TOOLS[what]
    pause = await approved(world, edit())
    runtime = world.runtime(WAITS, sources=[world.dispatcher(pets(**changes))])
    results = await runtime.resume(pause.id, caller=ANN)
    assert (results["c1"].refused, results["c1"].sent) == (Refused.not_executed, Sent.not_sent)
    assert reason in results["c1"].message
    assert await state(runtime, pause) == {"c1": "not_executed"}
    assert world.sent == []


def in_template(part: str, value: str) -> Callable[[Any], Any]:
    """The stored arguments with one part changed: what the approval was bound to stays."""

    def change(arguments: Any) -> Any:
        return arguments | {part: {"name": value} if part == "requestBody" else value}

    return change


PARTS = {
    "path": in_template("id", "2"),
    "query": in_template("q", "y"),
    "header": in_template("X-Trace", "b"),
    "body byte": in_template("requestBody", "Rey"),
}


@pytest.mark.parametrize("what", PARTS)
@runs
async def test_a_request_that_is_another_one_by_now_does_not_run(world: World, what: str) -> None:
    call = edit()._replace(arguments={"id": "1", "q": "x", "X-Trace": "a", "requestBody": {"name": "Rex"}})
    pause = await approved(world, call)
    arguments = {"effective": PARTS[what](dict(pause.calls[0].arguments)), "proposed": None}
    sealed = Seal(world.keys).json(arguments, "calls", pause.id, "c1", "arguments")
    with world.store.database.change() as connection:
        connection.execute(update(calls).values(arguments=sealed))
    results = await world.runtime(WAITS).resume(pause.id, caller=ANN)
    assert results["c1"].refused is Refused.not_executed
    assert "the request has changed" in results["c1"].message
    assert world.sent == []
    (entry,) = world.audit("not_executed")
    assert entry.details["detail"] == "the request has changed since"


@pytest.mark.parametrize(
    "other",
    [
        {"requireApproval": ["*"], "exempt": ["list"]},
        {"requireApproval": ["*"], "approvers": ["carol"]},
        {"requireApproval": ["*"], "approvalTimeout": "PT1H", "timeoutPolicy": "ABORT"},
        {"unmatched": "allow"},
        {"deny": ["edit"]},
    ],
)
@runs
async def test_under_another_approval_config_nothing_that_was_approved_runs(world: World, other: Any) -> None:
    pause = await approved(world, edit())
    results = await world.runtime(config(**other)).resume(pause.id, caller=ANN)
    assert results["c1"].refused is Refused.not_executed
    assert "config has changed" in results["c1"].message
    assert world.sent == []


@runs
async def test_the_texts_of_a_config_may_change(world: World) -> None:
    pause = await approved(world, edit())
    other = config(requireApproval=["*"], pauseReason="something else", pendingMessage="wait")
    assert (await world.runtime(other).resume(pause.id, caller=ANN))["c1"].ok


@runs
async def test_nobody_but_the_requester_resumes_and_whoever_tries_is_in_the_audit_log(world: World) -> None:
    pause = await approved(world, edit())
    runtime = world.runtime(WAITS)
    for other in (Caller("bob", "t"), Caller("", "t"), None):
        with pytest.raises(CallerMismatch) as caught:
            await runtime.resume(pause.id, caller=other)
        assert caught.value.status == 403
    with pytest.raises(PauseUnknown):
        await runtime.resume(pause.id, caller=replace(ANN, tenant="other"))
    assert world.sent == []
    assert await state(runtime, pause) == {"c1": "approved"}
    assert [one.details["actor"] for one in world.audit("refused")] == ["bob", "", ""]


@pytest.mark.parametrize(("row", "value"), [("requester", "mallory"), ("tenant", "other")])
@runs
async def test_a_pause_whose_requester_or_tenant_was_changed_in_the_store_does_not_run(
    world: World, row: str, value: str
) -> None:
    pause = await approved(world, edit())
    with world.store.database.change() as connection:
        connection.execute(update(pauses).values(**{row: value}))
    caller = replace(ANN, **{"subject" if row == "requester" else row: value})
    results = await world.runtime(WAITS).resume(pause.id, caller=caller)
    assert results["c1"].refused is Refused.not_executed
    assert "the requester or the tenant has changed" in results["c1"].message
    assert world.sent == []


@runs
async def test_another_credential_reference_is_another_approval(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE", "t")
    pause = await approved(world)
    sources = [world.dispatcher(credentials={"user": "${env:SERVICE}"})]
    results = await world.runtime(WAITS, sources=sources).resume(pause.id, caller=ANN)
    assert results["c1"].refused is Refused.not_executed
    assert "credential" in results["c1"].message
    assert world.sent == []


@runs
async def test_an_approval_holds_as_long_as_its_validity_and_then_expires(world: World) -> None:
    given = config(requireApproval=["*"], approvalValidity="PT10M")
    on_time, late = await approved(world, edit(), given=given), await approved(world, edit(), given=given)
    world.clock.passes(minutes=10)
    assert (await world.runtime(given).resume(on_time.id, caller=ANN))["c1"].ok
    world.clock.passes(seconds=1)
    results = await world.runtime(given).resume(late.id, caller=ANN)
    assert results["c1"].refused is Refused.expired
    assert "not used in time" in results["c1"].message
    assert len(world.sent) == 1


@runs
async def test_the_validity_is_looked_at_again_when_the_credential_has_come(world: World) -> None:
    """A token may take its time to come."""
    pause = await approved(world)

    async def exchanged(caller: Caller, audience: str, *_: Any, **__: Any) -> str:
        world.clock.passes(hours=2)
        return "exchanged"

    runtime = world.runtime(WAITS, sources=[world.dispatcher(exchange={"https://api.example": exchanged})])
    results = await runtime.resume(pause.id, caller=replace(ANN, origin="https://elsewhere.example"))
    assert (results["c1"].refused, world.sent) == (Refused.expired, [])


@pytest.mark.parametrize(
    "caller",
    [
        replace(ANN, token=None),
        replace(ANN, token=" "),
        replace(ANN, expires=datetime(2026, 1, 1, tzinfo=UTC)),
        replace(ANN, origin="https://elsewhere.example"),
    ],
)
@runs
async def test_without_the_requester_s_token_the_call_is_not_executed_and_the_others_run(
    world: World, caller: Caller
) -> None:
    pause = await approved(world, add("c1"), edit("c2"))
    runtime = world.runtime(WAITS)
    results = await runtime.resume(pause.id, caller=caller)
    assert (results["c1"].refused, results["c2"].ok) == (Refused.not_executed, True)
    assert await state(runtime, pause) == {"c1": "not_executed", "c2": "executed"}
    assert world.lines == ["PUT /pets/1"], "never without a credential instead"


@runs
async def test_the_requester_s_token_of_now_is_used_and_never_the_decider_s(world: World) -> None:
    from toolgen.identity.caller import bind_caller

    runtime = world.runtime(WAITS)
    pause = await paused(runtime)
    with bind_caller(Caller("bob", "token-of-bob", origin="https://api.example")):
        await runtime.decide(pause.id, APPROVED, decider=BOB)
    assert world.sent == [], "deciding runs nothing"
    await runtime.resume(pause.id, caller=replace(ANN, token="renewed"))
    assert [request.headers["authorization"] for request in world.sent] == ["Bearer renewed"]


@runs
async def test_one_call_that_changed_does_not_cost_the_others(world: World) -> None:
    pause = await approved(world, add("c1"), edit("c2"))
    runtime = world.runtime(WAITS, sources=[world.dispatcher(pets(put=renamed("q", "r")))])
    results = await runtime.resume(pause.id, caller=ANN)
    assert (results["c1"].ok, results["c2"].refused) == (True, Refused.not_executed)
    assert world.lines == ["POST /pets"]
    assert [one.call for one in world.audit("claimed")] == ["c1"], "what changed is not even claimed"


def gone(name: str) -> str:
    return name


@runs
async def test_a_tool_or_a_source_that_is_gone_is_not_executed(world: World) -> None:
    pause = await approved(world, edit())
    results = await world.runtime(WAITS, sources=[functions({"edit": gone})]).resume(pause.id, caller=ANN)
    assert results["c1"].refused is Refused.not_executed
    assert world.sent == []


@runs
async def test_reload_ends_what_waits_or_was_approved_for_a_tool_that_changed_and_nothing_else(world: World) -> None:
    runtime = world.runtime(WAITS)
    first, other = await paused(runtime, edit()), await paused(runtime, listing())
    second = await runtime.decide((await paused(runtime, edit(), add("c2"))).id, APPROVED, decider=BOB)
    voided = await runtime.reload(pets(put=renamed("q", "r")))
    assert set(voided) == {first.id, second.id}
    assert await state(runtime, first) == {"c1": "cancelled"}
    assert await state(runtime, second) == {"c1": "not_executed", "c2": "approved"}
    assert await state(runtime, other) == {"r1": "pending"}
    results = await runtime.resume(second.id, caller=ANN)
    assert "the tool has changed" in results["c1"].message
    assert world.lines == ["POST /pets"]


@runs
async def test_a_tool_that_became_a_write_is_classified_as_it_is_now_in_every_layer(world: World) -> None:
    dispatcher = world.dispatcher()
    runtime = world.runtime(None, sources=[dispatcher])
    layered = runtime.layered(config(unmatched="requireWrites"))
    runtime.gate.classify([listing()])
    layered.gate.classify([listing()])
    write = {"operationId": "list", "responses": DONE}
    dispatcher.reload(pets(get={"operationId": "read", "responses": DONE}, post=write))
    for one in (runtime, layered):
        assert (await one.submit([listing()], caller=ANN)).pause is not None
    assert world.sent == []


@runs
async def test_the_claim_is_made_for_what_was_approved(world: World) -> None:
    """Between the checks and the claim somebody cancels: nothing is sent."""
    pause = await approved(world)

    async def exchanged(*_: Any, **__: Any) -> str:
        await runtime.cancel(pause.id, actor="ann")
        return "exchanged"

    runtime: Runtime = world.runtime(WAITS, sources=[world.dispatcher(exchange={"https://api.example": exchanged})])
    results = await runtime.resume(pause.id, caller=replace(ANN, origin="https://elsewhere.example"))
    assert (results["c1"].refused, world.sent) == (Refused.cancelled, [])
    assert world.audit("late") == [], "there is no result that could be late"
