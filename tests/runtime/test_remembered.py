"""Remembered approvals: what they cover and not one call more, for whom, how often, until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from small_runtimes import (
    ANN,
    BOB,
    DONE,
    World,
    add,
    config,
    edit,
    paused,
    pets,
    remove,
    runs,
)

from toolgen import Caller, Decision, Remember, Runtime, Verdict
from toolgen.approvals.model import Scope
from toolgen.errors import PauseUnknown
from toolgen.result import Refused

WAITS = config(requireApproval=["*"])
FIELDS = Remember(Scope.fields, ("id", "q"))


async def remembering(world: World, wish: Remember, call: Any = None, given: Any = WAITS, **verdict: Any) -> Runtime:
    """A runtime in whose store one approved call (`edit` of pet 1) is remembered."""
    runtime = world.runtime(given)
    pause = await paused(runtime, call or edit())
    decision = Decision("approved", calls={"c1": Verdict("approved", remember=wish, **verdict)})
    await runtime.decide(pause.id, decision, decider=BOB)
    return runtime


async def runs_at_once(runtime: Runtime, call: Any = None, caller: Caller = ANN) -> bool:
    found = await runtime.submit([call or edit()], caller=caller)
    assert (found.pause is None) == found.results.get("c1", replace_none()).ok
    return found.pause is None


def replace_none() -> Any:
    from toolgen.result import Sent, ToolResult

    return ToolResult(False, Sent.not_sent)


def changed(**arguments: Any) -> Any:
    return edit()._replace(arguments={**edit().arguments, **arguments})


@pytest.mark.parametrize(
    ("wish", "covered", "others"),
    [
        (Remember(), [edit()], [changed(id="2"), changed(q="x"), changed(q=""), changed(requestBody={"name": "Max"})]),
        (FIELDS, [edit(), changed(requestBody={"name": "Max"}), changed(**{"X-Trace": "a"})], [changed(id="2"), changed(q=""), changed(q="x")]),
        (Remember(Scope.endpoint), [edit(), changed(id="2", q="x")], [add()]),
    ],
    ids=["exact", "fields", "endpoint"],
)  # fmt: skip
@runs
async def test_a_scope_covers_what_it_says_and_an_argument_that_was_not_given_is_not_any(
    world: World, wish: Remember, covered: list[Any], others: list[Any]
) -> None:
    runtime = await remembering(world, wish)
    assert [await runs_at_once(runtime, call) for call in covered] == [True] * len(covered)
    assert [await runs_at_once(runtime, call) for call in others] == [False] * len(others)
    assert len(world.sent) == len(covered)


@runs
async def test_exactly_is_what_is_remembered_where_nothing_else_is_said(world: World) -> None:
    assert Remember().scope is Scope.exact
    runtime = await remembering(world, Remember(), edit()._replace(name="list", arguments={}))
    call = edit()._replace(name="list")
    assert await runs_at_once(runtime, call._replace(arguments={}))
    assert not await runs_at_once(runtime, call._replace(arguments={"q": "x"})), "no arguments is not any arguments"


@runs
async def test_it_holds_for_its_requester_tenant_and_source_only(world: World) -> None:
    runtime = await remembering(world, Remember(Scope.endpoint))
    assert await runs_at_once(runtime)
    for other in (Caller("bob"), replace(ANN, tenant="other"), Caller("")):
        assert not await runs_at_once(runtime, caller=other)
    assert (await runtime.submit([edit()])).pause is not None


@runs
async def test_another_approval_config_or_tool_ends_it(world: World) -> None:
    runtime = await remembering(world, Remember(Scope.endpoint))
    assert not await runs_at_once(world.runtime(config(requireApproval=["*"], destructive=["add"])))
    assert not await runs_at_once(runtime.layered(config(requireApproval=["edit"])))
    assert await runs_at_once(world.runtime(WAITS)), "another process with the same"
    put = {"operationId": "edit", "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}], "responses": DONE}  # fmt: skip
    changed = world.runtime(WAITS, sources=[world.dispatcher(pets(put=put))])
    assert not await runs_at_once(changed, edit()._replace(arguments={"id": "1"}))
    await runtime.reload(pets(put=put))
    (kept,) = await runtime.remembered.listed()
    assert kept.revoked is not None
    assert world.audit("revoked")[0].details["reason"] == "the tool has changed since"


@runs
async def test_it_is_used_as_often_as_it_says(world: World) -> None:
    runtime = await remembering(world, Remember(uses=2))
    assert [await runs_at_once(runtime) for _ in range(4)] == [True, True, False, False]
    (kept,) = await runtime.remembered.listed()
    assert kept.left == 0


@runs
async def test_it_ends_when_it_says(world: World) -> None:
    until = world.clock.now + timedelta(hours=1)
    runtime = await remembering(world, Remember(until=until))
    world.clock.passes(minutes=59)
    assert await runs_at_once(runtime)
    world.clock.passes(minutes=1)
    assert not await runs_at_once(runtime)


@runs
async def test_people_list_and_revoke_it(world: World) -> None:
    runtime = await remembering(world, FIELDS)
    (kept,) = await runtime.remembered.listed(tenant="default", requester="ann")
    assert (kept.owner, kept.requester, kept.tool, kept.scope, kept.fields) == (
        "bob", "ann", "edit", Scope.fields, ("id", "q"),
    )  # fmt: skip
    assert "Rex" not in str(kept.to_dict())
    assert (kept.to_dict()["scope"], kept.to_dict()["usesLeft"], kept.to_dict()["until"]) == ("fields", None, None)
    assert await runtime.remembered.listed(tenant="other") == []
    with pytest.raises(PauseUnknown):
        await runtime.remembered.revoke(kept.id, actor="bob", tenant="other")
    assert await runs_at_once(runtime)
    await runtime.remembered.revoke(kept.id, actor="bob", tenant="default")
    assert not await runs_at_once(runtime)
    assert [one.details["actor"] for one in world.audit("revoked")] == ["bob"]
    assert [one.kind for one in world.audit() if one.kind in ("remembered", "allowed")] == ["remembered", "allowed"]


@runs
async def test_what_is_denied_or_became_destructive_is_never_allowed_by_it(world: World) -> None:
    await remembering(world, Remember(Scope.endpoint))
    denied = await world.runtime(config(requireApproval=["*"], deny=["edit"])).submit([edit()], caller=ANN)
    assert denied.results["c1"].refused is Refused.denied
    assert not await runs_at_once(world.runtime(config(requireApproval=["*"], destructive=["edit"])))
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, remove("c1"))
    await runtime.decide(pause.id, Decision("approved"), decider=BOB)
    assert not await runs_at_once(runtime, remove("c1"))
    assert world.sent == []


@runs
async def test_what_the_decision_hook_has_wait_waits_whatever_is_remembered(world: World) -> None:
    await remembering(world, Remember(Scope.endpoint))

    async def hook(call: Any, caller: Any) -> str | None:
        raise RuntimeError

    assert not await runs_at_once(world.runtime(WAITS, decision_hook=hook))


@runs
async def test_the_amended_request_is_what_is_remembered(world: World) -> None:
    other = {"id": "2", "requestBody": {"name": "Max"}}
    runtime = await remembering(world, Remember(), arguments=other)
    assert not await runs_at_once(runtime)
    assert await runs_at_once(runtime, edit()._replace(arguments=other))


@runs
async def test_a_call_that_ran_by_it_is_replayed_and_takes_no_second_use(world: World) -> None:
    runtime = await remembering(world, Remember(uses=1))
    same = {"caller": ANN, "thread": "t", "turn": "1"}
    first, second = [(await runtime.submit([edit()], **same)).results["c1"] for _ in range(2)]
    assert first == second
    assert first.ok
    assert len(world.sent) == 1


@runs
async def test_the_newest_are_listed_first_and_each_person_s_alone(world: World) -> None:
    runtime = await remembering(world, Remember())
    world.clock.passes(minutes=1)
    await remembering(world, Remember(Scope.endpoint), changed(id="2"))
    pause = await paused(runtime, caller=replace(ANN, subject="eve"))
    await runtime.decide(
        pause.id, Decision("approved", calls={"c1": Verdict("approved", remember=Remember())}), decider=BOB
    )
    assert [one.scope for one in await runtime.remembered.listed(requester="ann")] == [Scope.endpoint, Scope.exact]
    assert [one.requester for one in await runtime.remembered.listed(requester="eve")] == ["eve"]
    assert len(await runtime.remembered.listed()) == 3


@runs
async def test_nothing_is_remembered_before_everybody_who_has_to_has_approved(world: World) -> None:
    layers = [config(requireApproval=["*"], approvers=[name]) for name in ("bob", "eve")]
    runtime = await remembering(world, Remember(), given=layers)
    assert await runtime.remembered.listed() == []


@runs
async def test_nothing_is_remembered_for_a_requester_nobody_knows(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, edit(), caller=None)
    wish = {"c1": Verdict("approved", remember=Remember(Scope.endpoint))}
    await runtime.decide(pause.id, Decision("approved", calls=wish), decider=BOB)
    assert (await runtime.submit([edit()])).pause is not None


@runs
async def test_a_reload_ends_what_is_of_its_source_and_ends_it_once(world: World) -> None:
    from toolgen import functions

    def note(text: str) -> str:
        return text

    runtime = world.runtime(WAITS, sources=[world.dispatcher(), functions({"note": note})])
    for call in (edit(), edit()._replace(name="note", arguments={"text": "x"})):
        pause = await paused(runtime, call)
        wish = {"c1": Verdict("approved", remember=Remember(Scope.endpoint))}
        await runtime.decide(pause.id, Decision("approved", calls=wish), decider=BOB)
    await runtime.reload(pets())
    assert world.audit("revoked") == [], "nothing has changed"
    for path in ("/pet/{id}", "/animals/{id}"):
        await runtime.reload(pets(path=path))
    assert {one.tool: one.revoked is not None for one in await runtime.remembered.listed()} == {
        "edit": True, "note": False,
    }  # fmt: skip
    assert len(world.audit("revoked")) == 1


@runs
async def test_one_is_used_and_revoked_and_the_others_stay(world: World) -> None:
    runtime = await remembering(world, Remember(uses=2))
    world.clock.passes(minutes=1)
    await remembering(world, Remember(uses=2), changed(id="2"))
    assert await runs_at_once(runtime)
    second, first = await runtime.remembered.listed()
    assert (first.left, second.left) == (1, 2)
    with pytest.raises(PauseUnknown):
        await runtime.remembered.revoke("nope", actor="bob", tenant="default")
    await runtime.remembered.revoke(second.id, actor="bob", tenant="default")
    await runtime.remembered.revoke(second.id, actor="bob", tenant="default")
    second, first = await runtime.remembered.listed()
    assert (first.revoked, second.revoked) == (None, world.clock.now)
    assert len(world.audit("revoked")) == 1
    assert await runs_at_once(runtime)
    assert not await runs_at_once(runtime, changed(id="2"))


@runs
async def test_what_is_revoked_while_a_call_asks_for_it_stands_in_for_nobody(
    stored: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stored.store.database.is_sqlite:
        return  # whoever writes has the file alone
    from toolgen.runtime import remembered

    runtime = await remembering(stored, Remember())
    (kept,) = await runtime.remembered.listed()
    digest = remembered.gating_digest

    def meanwhile(gate: Any) -> str:
        runtime.remembered._revoke(kept.id, "bob", kept.tenant)
        return digest(gate)

    monkeypatch.setattr(remembered, "gating_digest", meanwhile)
    found = await runtime.submit([edit("c2")], caller=ANN)
    assert found.pause is not None
    assert stored.sent == []
