"""Every front door comes to the same end as the runtime itself, in each of twelve scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from door_scenarios import SCENARIOS
from door_world import Door, World, world_in
from doors_langchain import GraphDoor, SyncToolDoor, ToolDoor
from doors_plain import PlainDoor
from doors_providers import ChatDoor, ClaudeDoor, ResponsesDoor

DOORS: dict[str, Callable[[World], Door]] = {
    "runtime": PlainDoor,
    "langchain": ToolDoor,
    "langchain-sync": SyncToolDoor,
    "langgraph": GraphDoor,
    "openai-chat": ChatDoor,
    "openai-responses": ResponsesDoor,
    "anthropic": ClaudeDoor,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("door", DOORS)
def test_every_front_door_comes_to_the_same_end(door: str, scenario: str, tmp_path: Path) -> None:
    async def played(world: World) -> None:
        opened = DOORS[door](world)
        try:
            await SCENARIOS[scenario](opened, world)
        finally:
            await opened.close()
            await world.close()

    with world_in(tmp_path) as world:
        asyncio.run(played(world))
