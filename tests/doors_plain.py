"""The runtime itself as a door: what all the others have to equal."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from door_world import ANN, Got, World

from toolgen import Caller, Runtime
from toolgen.adapters.answers import Answer, answer, answers
from toolgen.adapters.offered import Offer
from toolgen.errors import PauseConflict


def got_of(given: Answer, again: Any = None) -> Got:
    """An answer in the words of the scenarios."""
    return Got(given.status, given.text, given.data.get("result"), given.data.get("approvalId"), again)


class PlainDoor:
    """`await runtime.submit(...)`."""

    amends = True

    def __init__(self, world: World) -> None:
        self.world = world
        self.runtime: Runtime = world.runtime()

    async def open(self) -> None:
        """Nothing is opened before it is used."""

    async def ask(self, *calls: tuple[str, Any]) -> list[Got]:
        return await self._submitted(calls, ANN)

    async def anonymous(self, name: str, arguments: Any) -> Got:
        return (await self._submitted([(name, arguments)], None))[0]

    async def _submitted(self, calls: Any, caller: Caller | None) -> list[Got]:
        offer = Offer(self.runtime)
        made = [
            offer.tool_call(name, arguments, f"{number}-{uuid4().hex}")
            for number, (name, arguments) in enumerate(calls)
        ]
        found = answers(await self.runtime.submit(made, caller=caller, thread="t", turn=uuid4().hex))
        return [got_of(found[str(call.id)], call.id) for call in made]

    async def later(self, got: list[Got]) -> list[Got]:
        found = []
        for one in got:
            try:
                results = await self.runtime.resume(str(one.approval), caller=ANN)
            except PauseConflict:
                found.append(one)
            else:
                found.append(got_of(answer(results[one.again])))
        return found

    async def restart(self) -> None:
        await self.close()
        self.runtime = self.world.runtime()

    async def close(self) -> None:
        await self.runtime.aclose()
