"""Every front door comes to the same end as the runtime itself, in each of twelve scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from door_scenarios import SCENARIOS
from door_world import Door, World, world_in
from doors_langchain import GraphDoor, SyncToolDoor, ToolDoor
from doors_mcp import HttpDoor, McpDoor, StdioDoor
from doors_plain import PlainDoor
from doors_providers import ChatDoor, ClaudeDoor, ResponsesDoor
from doors_transport import PlainTransportDoor, TransportDoor

DOORS: dict[str, Callable[[World], Door]] = {
    "runtime": PlainDoor,
    "langchain": ToolDoor,
    "langchain-sync": SyncToolDoor,
    "langgraph": GraphDoor,
    "mcp": McpDoor,
    "mcp-http": HttpDoor,
    "mcp-stdio": StdioDoor,
    "openai-chat": ChatDoor,
    "openai-responses": ResponsesDoor,
    "anthropic": ClaudeDoor,
    "transport-httpx2": TransportDoor,
    "transport-httpx": PlainTransportDoor,
}


# A process for each scenario takes seconds: the others are left to the slow tests.
OVER_STDIO = {"ungated", "gated_approved", "denied", "crash_and_resume"}


def tried() -> list[pytest.param]:
    """Every scenario through every door."""
    pairs = [(door, scenario) for door in DOORS for scenario in SCENARIOS]
    slow = [door == "mcp-stdio" and scenario not in OVER_STDIO for door, scenario in pairs]
    marks = {True: [pytest.mark.slow], False: []}
    return [pytest.param(*pair, marks=marks[one]) for pair, one in zip(pairs, slow, strict=True)]


@pytest.mark.parametrize(("door", "scenario"), tried())
def test_every_front_door_comes_to_the_same_end(door: str, scenario: str, tmp_path: Path) -> None:
    async def played(world: World) -> None:
        opened = DOORS[door](world)
        try:
            await opened.open()
            await SCENARIOS[scenario](opened, world)
        finally:
            await opened.close()
            await world.close()

    with world_in(tmp_path) as world:
        asyncio.run(played(world))
