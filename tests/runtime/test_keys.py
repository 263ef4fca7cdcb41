"""A new key, the old one kept as a previous one: what was asked, decided and done before still counts, and once only."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, KEYS, World, add, config, edit, paused, runs, state

from toolgen import Decision, Remember, Verdict
from toolgen.approvals.store import Change
from toolgen.identity.keys import Keys
from toolgen.result import Refused

WAITS = config(requireApproval=["*"])
NEW = os.urandom(32)
BOTH = Keys(NEW, [bytes(range(32))])


@pytest.fixture
def with_keys(tmp_path: Any) -> Any:
    """The same store in other processes, each with its keys."""
    opened: list[World] = []

    def world(keys: Keys) -> World:
        clock = {"clock": opened[0].clock, "sent": opened[0].sent} if opened else {}
        opened.append(World(f"sqlite:///{tmp_path}/a.db", keys=keys, **clock))
        return opened[-1]

    yield world
    for one in opened:
        one.store.close()


Worlds = Callable[[Keys], World]


@runs
async def test_what_was_approved_before_the_key_changed_runs_after_it_and_what_was_changed_since_does_not(
    with_keys: Worlds,
) -> None:
    before = with_keys(KEYS).runtime(WAITS)
    pauses = [await before.decide((await paused(before, edit())).id, APPROVED, decider=BOB) for _ in range(2)]
    after = with_keys(BOTH)
    runtime = after.runtime(WAITS)
    assert (await runtime.resume(pauses[0].id, caller=ANN))["c1"].ok
    from dataclasses import replace

    from sqlalchemy import update

    from toolgen.approvals.rows import call_row
    from toolgen.approvals.sealed import Seal
    from toolgen.approvals.tables import calls

    other = replace(pauses[1].calls[0], arguments={"id": "2", "requestBody": {"name": "Rex"}})
    with after.store.database.change() as connection:
        row = call_row(other, pauses[1].id, 0, Seal(BOTH))
        connection.execute(update(calls).where(calls.c.pause == pauses[1].id).values(**row))
    result = (await runtime.resume(pauses[1].id, caller=ANN))["c1"]
    assert (result.refused, "the request has changed" in result.message) == (Refused.not_executed, True)
    assert after.lines == ["PUT /pets/1"]


@runs
async def test_an_approval_whose_key_is_gone_is_not_executed_and_says_why(with_keys: Worlds) -> None:
    pause = await paused(with_keys(KEYS).runtime(WAITS), edit())
    followed = with_keys(BOTH).runtime(WAITS)
    await followed.decide(pause.id, APPROVED, decider=BOB)  # what it wrote is readable by the new key alone
    last = with_keys(Keys(NEW))
    runtime = last.runtime(WAITS)
    result = (await runtime.resume(pause.id, caller=ANN))["c1"]
    assert (result.refused, "the key that it was asked for with is gone" in result.message) == (
        Refused.not_executed,
        True,
    )
    assert (await state(runtime, pause), last.sent) == ({"c1": "not_executed"}, [])
    assert [one.details["detail"] for one in last.audit("not_executed")] == [result.message.partition(": ")[2]]


@runs
async def test_an_amendment_after_the_key_changed_is_bound_by_the_new_key(with_keys: Worlds) -> None:
    pause = await paused(with_keys(KEYS).runtime(WAITS), edit())
    verdict = Verdict("approved", arguments={"id": "3", "requestBody": {"name": "Max"}})
    runtime = with_keys(BOTH).runtime(WAITS)
    changed = await runtime.decide(pause.id, Decision("approved", calls={"c1": verdict}), decider=BOB)
    assert [call.key for call in (*pause.calls, *changed.calls)] == [KEYS.id, BOTH.id]
    last = with_keys(Keys(NEW))
    assert (await last.runtime(WAITS).resume(pause.id, caller=ANN))["c1"].ok
    assert last.lines == ["PUT /pets/3"]


@pytest.mark.parametrize("given", [config(unmatched="allow"), WAITS], ids=["allowed", "waits by now"])
@runs
async def test_what_was_carried_out_before_the_key_changed_is_not_carried_out_again(
    with_keys: Worlds, given: Any
) -> None:
    turn: dict[str, Any] = {"caller": ANN, "thread": "t", "turn": "1"}
    first = await with_keys(KEYS).runtime(config(unmatched="allow")).submit([add()], **turn)
    after = with_keys(BOTH)
    again = await after.runtime(given).submit([add()], **turn)
    assert (again.results, again.pause, len(after.sent)) == (first.results, None, 1)


@pytest.mark.parametrize("remember", [Remember(), Remember("fields", ("id",)), Remember("endpoint")])  # type: ignore[arg-type]
@runs
async def test_a_remembered_approval_outlives_the_change_of_a_key(with_keys: Worlds, remember: Remember) -> None:
    before = with_keys(KEYS).runtime(WAITS)
    verdict = Verdict("approved", remember=remember)
    await before.decide((await paused(before, edit())).id, Decision("approved", calls={"c1": verdict}), decider=BOB)
    after = with_keys(BOTH).runtime(WAITS)
    assert (await after.submit([edit("c2")], caller=ANN)).pause is None
    other = edit("c3")._replace(arguments={"id": "2", "requestBody": {"name": "Rex"}})
    assert ((await after.submit([other], caller=ANN)).pause is None) is (remember.scope == "endpoint")


@runs
async def test_the_key_of_what_was_approved_cannot_be_named_anew(world: World) -> None:
    from dataclasses import replace

    from toolgen.errors import StoreError

    runtime = world.runtime(WAITS)
    pause = await runtime.decide((await paused(runtime)).id, APPROVED, decider=BOB)
    with pytest.raises(StoreError, match="cannot be changed"):
        world.store.change(pause.id, "default", lambda now: Change(now.with_call(replace(now.calls[0], key="00"))))
