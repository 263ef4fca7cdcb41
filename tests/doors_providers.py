"""Doors whose client is a model provider's own SDK, over a server that speaks the provider's wire format."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from contextlib import ExitStack
from typing import Any

from door_world import ANN, Got, World
from doors_plain import got_of
from shown import ROOT

from toolgen import Runtime
from toolgen.adapters import anthropic as claude
from toolgen.adapters import openai as chat
from toolgen.adapters.answers import answer
from toolgen.adapters.turns import Turn
from toolgen.errors import PauseConflict

_spec = importlib.util.spec_from_file_location("scripted_provider", ROOT / "samples/providers/scripted.py")
assert _spec is not None
assert _spec.loader is not None
provider: Any = importlib.util.module_from_spec(_spec)
sys.modules["scripted_provider"] = provider
_spec.loader.exec_module(provider)


class ProviderDoor:
    """One turn of a model: the SDK asks the provider, the calls are submitted, and the results are written back."""

    amends = True
    module: Any = chat

    def __init__(self, world: World) -> None:
        self.world = world
        self.runtime: Runtime = world.runtime()
        self._stack, self._lock = ExitStack(), asyncio.Lock()
        self.server = self._stack.enter_context(provider.scripted())

    async def response(self) -> Any:
        raise NotImplementedError

    def shown(self, written: list[dict[str, Any]]) -> list[str]:
        """What the model reads of each call."""
        return [one["content"] for one in written]

    async def open(self) -> None:
        """Nothing is opened before it is used."""

    async def ask(self, *calls: tuple[str, Any]) -> list[Got]:
        return await self._asked(calls, ANN)

    async def anonymous(self, name: str, arguments: Any) -> Got:
        return (await self._asked([(name, arguments)], None))[0]

    async def _asked(self, calls: Any, caller: Any) -> list[Got]:
        async with self._lock:  # the script is one for all: whoever asks gets their own calls
            self.server.script.append(list(calls))
            response = await self.response()
        turn: Turn = self.module.read_calls(self.runtime, response)
        done = await self.runtime.submit(turn.calls, caller=caller, thread="t", turn=turn.id)
        told = dict(turn.answers(done))
        assert self.shown(self.module.write_results(turn, done)) == [one.text for one in told.values()]
        return [got_of(one, (turn, done, id)) for id, one in told.items()]

    async def later(self, got: list[Got]) -> list[Got]:
        return [await self._later(one) for one in got]

    async def _later(self, got: Got) -> Got:
        turn, done, id = got.again
        try:
            results = await self.runtime.resume(str(got.approval), caller=ANN)
        except PauseConflict:
            return got
        written = self.module.write_results(turn, done, results)
        text = self.shown(written)[list(turn.ids).index(id)]
        found = got_of(answer(results[id]), got.again)
        assert found.text == text
        return found

    async def restart(self) -> None:
        await self.runtime.aclose()
        self.runtime = self.world.runtime()

    async def close(self) -> None:
        await self.runtime.aclose()
        self._stack.close()


class ChatDoor(ProviderDoor):
    async def response(self) -> Any:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="k") as client:
            tools: Any = chat.as_openai_tools(self.runtime)
            stream = await client.chat.completions.create(model="m", messages=[], tools=tools, stream=True)
            return [event async for event in stream]


class ResponsesDoor(ProviderDoor):
    async def response(self) -> Any:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="k") as client:
            tools: Any = chat.as_openai_tools(self.runtime, api="responses")
            return await client.responses.create(model="m", input="hello", tools=tools)

    def shown(self, written: list[dict[str, Any]]) -> list[str]:
        return [one["output"] for one in written]


class ClaudeDoor(ProviderDoor):
    module = claude

    async def response(self) -> Any:
        from anthropic import AsyncAnthropic

        async with AsyncAnthropic(base_url=self.server.url, api_key="k") as client:
            tools: Any = claude.as_anthropic_tools(self.runtime)
            return await client.messages.create(model="m", max_tokens=9, messages=[], tools=tools)

    def shown(self, written: list[dict[str, Any]]) -> list[str]:
        return [block["content"] for one in written for block in one["content"]]
