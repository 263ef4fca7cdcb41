"""Twelve things that happen to calls; each front door has to come to the same end, with the same requests sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from door_world import Door, Got, World

from toolgen.errors import DecisionInvalid

Scenario = Callable[[Door, World], Awaitable[None]]
REX = ("addPet", {"requestBody": {"name": "Rex"}})
SHOW = ("getPet", {"id": "7"})


async def _waits(door: Door, world: World, *calls: tuple[str, object]) -> Got:
    """The one call of a batch that waits, with nothing sent for it."""
    (got,) = [one for one in await door.ask(*(calls or [REX])) if one.status == "pending"]
    assert got.approval
    assert not [line for line in world.api.lines if not line.startswith("GET")]
    return got


async def ungated(door: Door, world: World) -> None:
    (got,) = await door.ask(SHOW)
    assert (got.status, got.body["number"]) == ("ok", 1)
    assert world.api.lines == ["GET /pets/7"]


async def gated_approved(door: Door, world: World) -> None:
    got = await _waits(door, world)
    (still,) = await door.later([got])
    assert (still.status, still.approval) == ("pending", got.approval)
    await world.decide(got.approval, note="He may stay.")
    assert world.api.lines == []  # deciding sends nothing
    (ran,) = await door.later([got])
    assert (ran.status, ran.body["got"]) == ("ok", {"name": "Rex"})
    assert world.api.lines == ["POST /pets"]


async def rejected(door: Door, world: World) -> None:
    got = await _waits(door, world)
    await world.decide(got.approval, "rejected", note="No more dogs.")
    (told,) = await door.later([got])
    assert told.status == "rejected"
    assert "No more dogs." in told.text
    assert world.api.lines == []


async def amended(door: Door, world: World) -> None:
    got = await _waits(door, world)
    changed = {"requestBody": {"name": "Rexina"}}
    if not door.amends:
        with pytest.raises(DecisionInvalid):
            await world.decide(got.approval, arguments=changed)
        return
    await world.decide(got.approval, arguments=changed)
    (ran,) = await door.later([got])
    assert (ran.status, ran.body["got"]) == ("ok", {"name": "Rexina"})
    assert "reviewer changed the arguments" in ran.text
    assert len(world.api.seen) == 1


async def mixed_batch(door: Door, world: World) -> None:
    first, second = await door.ask(SHOW, REX)
    assert (first.status, second.status) == ("ok", "pending")
    assert world.api.lines == ["GET /pets/7"]
    await world.decide(second.approval)
    (ran,) = await door.later([second])
    assert ran.status == "ok"
    assert world.api.lines == ["GET /pets/7", "POST /pets"]


async def denied(door: Door, world: World) -> None:
    (got,) = await door.ask(("clear", {}))
    assert got.status == "denied"
    assert world.api.lines == []


async def expired(door: Door, world: World) -> None:
    got = await _waits(door, world)
    await world.let_expire(got.approval)
    (told,) = await door.later([got])
    assert told.status == "expired"
    assert "was not rejected" in told.text
    assert world.api.lines == []


async def invalid_arguments(door: Door, world: World) -> None:
    (got,) = await door.ask(("addPet", {"requestBody": {"name": 7}}))
    assert got.status == "error"
    assert "name" in got.text  # what a model has to change
    assert world.api.lines == []


async def unknown_tool(door: Door, world: World) -> None:
    (got,) = await door.ask(("sellPet", {}))
    assert got.status == "denied"
    assert world.api.lines == []


async def caller_missing(door: Door, world: World) -> None:
    got = await door.anonymous("getMine", {})
    assert got.status == "error"
    assert world.api.lines == []  # never sent without its credential


async def crash_and_resume(door: Door, world: World) -> None:
    got, other = await _waits(door, world), await _waits(door, world, ("editPet", {"id": "7", **REX[1]}))
    await world.decide(got.approval)
    await world.decide(other.approval)
    await door.restart()
    (ran,) = await door.later([got])
    assert ran.status == "ok"
    world.crash_while_running(other.approval)
    await door.restart()
    (lost,) = await door.later([other])
    assert lost.status == "outcome_unknown"
    assert world.api.lines == ["POST /pets"]


async def parallel(door: Door, world: World) -> None:
    names = [f"pet-{number}" for number in range(5)]
    asked = await asyncio.gather(*(door.ask(("addPet", {"requestBody": {"name": name}})) for name in names))
    waiting = [got for (got,) in asked]
    assert [got.status for got in waiting] == ["pending"] * 5
    assert len({got.approval for got in waiting}) == 5
    for got in waiting:
        await world.decide(got.approval)
    ran = await asyncio.gather(*(door.later([got]) for got in waiting))
    assert [got.body["got"]["name"] for (got,) in ran] == names
    assert sorted(one.body["name"] for one in world.api.seen) == names


SCENARIOS: dict[str, Scenario] = {
    one.__name__: one
    for one in (
        ungated,
        gated_approved,
        rejected,
        amended,
        mixed_batch,
        denied,
        expired,
        invalid_arguments,
        unknown_tool,
        caller_missing,
        crash_and_resume,
        parallel,
    )
}
