"""Doors for LangChain: tools invoked by themselves, async and sync, and an agent of LangGraph with a checkpointer."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

from door_world import ANN, Got, World
from doors_plain import got_of
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from toolgen import Runtime
from toolgen.adapters.answers import Answer, answer
from toolgen.adapters.langchain import as_langchain_tools
from toolgen.adapters.offered import Offer
from toolgen.errors import PauseConflict


def called(name: str, arguments: Any, id: str) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": arguments, "id": id}


def config_of(caller: Any, **more: Any) -> Any:
    return {"configurable": {**({"toolgen_caller": caller} if caller else {}), **more}}


def got(message: ToolMessage, again: Any = None) -> Got:
    found = got_of(Answer(str(message.content), message.artifact), again)
    assert (message.status == "error") == (found.status not in ("ok", "pending"))
    return found


class ToolDoor:
    """`await tool.ainvoke(...)`, outside of any graph."""

    amends = True

    def __init__(self, world: World) -> None:
        self.world = world
        self.runtime: Runtime = world.runtime()

    async def invoked(self, tool: Any, call: Any, config: Any) -> ToolMessage:
        found = await tool.ainvoke(call, config)
        assert isinstance(found, ToolMessage)
        return found

    async def open(self) -> None:
        """Nothing is opened before it is used."""

    async def ask(self, *calls: tuple[str, Any]) -> list[Got]:
        return [await self._asked(name, arguments, ANN) for name, arguments in calls]

    async def anonymous(self, name: str, arguments: Any) -> Got:
        return await self._asked(name, arguments, None)

    async def _asked(self, name: str, arguments: Any, caller: Any) -> Got:
        tools = {tool.name: tool for tool in as_langchain_tools(self.runtime)}
        id = uuid4().hex
        if name not in tools:  # an agent has no such tool: LangChain says so; the gate does to who asks it
            done = await self.runtime.submit([Offer(self.runtime).tool_call(name, arguments, id)], caller=caller)
            return got_of(answer(done.results[id]))
        return got(await self.invoked(tools[name], called(name, arguments, id), config_of(caller)), id)

    async def later(self, waiting: list[Got]) -> list[Got]:
        found = []
        for one in waiting:
            try:
                results = await self.runtime.resume(str(one.approval), caller=ANN)
            except PauseConflict:
                found.append(one)
            else:
                found.append(got_of(answer(results[one.again])))
        return found

    async def restart(self) -> None:
        await self.runtime.aclose()
        self.runtime = self.world.runtime()

    async def close(self) -> None:
        await self.runtime.aclose()


class SyncToolDoor(ToolDoor):
    """`tool.invoke(...)`."""

    async def invoked(self, tool: Any, call: Any, config: Any) -> ToolMessage:
        found = await asyncio.to_thread(tool.invoke, call, config)
        assert isinstance(found, ToolMessage)
        return found

    async def restart(self) -> None:
        await asyncio.to_thread(self.runtime.sync.aclose)
        await super().restart()

    async def close(self) -> None:
        await asyncio.to_thread(self.runtime.sync.aclose)
        await super().close()


class Scripted(GenericFakeChatModel):
    """A chat model that says what it is told to."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def says(*messages: Any) -> Scripted:
    return Scripted(messages=iter(messages))


class GraphDoor(ToolDoor):
    """An agent in a graph that keeps its state in a file: each batch is a thread, resumed after the decision."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._stack, self._lock = AsyncExitStack(), asyncio.Lock()
        self._saved: AsyncSqliteSaver | None = None

    async def _agent(self, *said: Any) -> Any:
        saver = await self._saver()
        return create_agent(says(*said), as_langchain_tools(self.runtime), checkpointer=saver)

    async def _saver(self) -> AsyncSqliteSaver:
        async with self._lock:
            if self._saved is None:
                opened = AsyncSqliteSaver.from_conn_string(str(self.world.folder / "graph.db"))
                self._saved = await self._stack.enter_async_context(opened)
            return self._saved

    async def ask(self, *calls: tuple[str, Any]) -> list[Got]:
        ids = [uuid4().hex for _ in calls]
        asked = AIMessage(
            "", tool_calls=[called(name, given, id) for (name, given), id in zip(calls, ids, strict=True)]
        )
        agent = await self._agent(asked, AIMessage("done"))
        config = config_of(ANN, thread_id=uuid4().hex)
        state = await agent.ainvoke({"messages": [("user", "go")]}, config)
        return self._read(state, ids, config)

    def _read(self, state: Any, ids: list[str], config: Any) -> list[Got]:
        answered = {one.tool_call_id: one for one in state["messages"] if isinstance(one, ToolMessage)}
        waiting = {call["id"]: one.value for one in state.get("__interrupt__", ()) for call in one.value["calls"]}
        found = []
        for id in ids:
            if id in waiting:
                found.append(Got("pending", "", None, waiting[id]["id"], (id, config)))
            elif answered[id].artifact is None:  # the graph's own answer: it has no such tool
                assert "not a valid tool" in str(answered[id].content)
                found.append(Got("denied", str(answered[id].content)))
            else:
                found.append(got(answered[id], (id, config)))
        return found

    async def later(self, waiting: list[Got]) -> list[Got]:
        found = []
        for one in waiting:
            id, config = one.again
            agent = await self._agent(AIMessage("done"))
            state = await agent.ainvoke(Command(resume=True), config)
            found += self._read(state, [id], config)
        return found

    async def restart(self) -> None:
        await self._stack.aclose()
        self._saved = None
        await super().restart()

    async def close(self) -> None:
        await self._stack.aclose()
        await super().close()
