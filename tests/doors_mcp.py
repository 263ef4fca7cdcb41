"""Doors for MCP: the mcp package's client in one process with the server, over HTTP, and over a process's stdio."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from textwrap import dedent
from typing import Any

import httpx2
import uvicorn
from door_world import ANN, Got, World
from doors_plain import got_of
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from shown import ROOT

from toolgen import Caller
from toolgen.adapters.answers import Answer
from toolgen.adapters.mcp_http import FunctionVerifier, http_app
from toolgen.adapters.mcp_server import McpServer

TOKENS = {"token-of-ann": "ann", "token-of-eve": "eve"}


def answered(result: Any, again: Any = None) -> Got:
    """What a client makes of a tool's result; the text is for models that see nothing else."""
    (block,) = result.content
    found = got_of(Answer(block.text, result.structured_content), again)
    assert result.is_error == (found.status not in ("ok", "pending"))
    return found


class McpDoor:
    """A client in the same process: the newest protocol, no transport between."""

    amends = True

    def __init__(self, world: World) -> None:
        self.world = world
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        self.client = await self.opened()
        await self.client.list_tools()  # as clients do: answers are then checked against what is listed

    async def opened(self) -> Client:
        self.runtime = self.world.runtime()
        server = McpServer(self.runtime, output_schemas=True)
        server.serve_for(ANN)
        return await self._stack.enter_async_context(Client(server.protocol))

    async def ask(self, *calls: tuple[str, Any]) -> list[Got]:
        return [answered(await self.client.call_tool(name, arguments)) for name, arguments in calls]

    async def anonymous(self, name: str, arguments: Any) -> Got:
        server = McpServer(self.world.runtime())
        async with Client(server.protocol) as client:
            return answered(await client.call_tool(name, arguments))

    async def later(self, got: list[Got]) -> list[Got]:
        ids = [{"approvalId": one.approval} for one in got]
        return [answered(await self.client.call_tool("get_approval_result", given)) for given in ids]

    async def restart(self) -> None:
        await self.close()
        self._stack = AsyncExitStack()
        await self.open()

    async def close(self) -> None:
        await self._stack.aclose()


class Served:
    """A server over HTTP in a thread's event loop of its own is not needed: uvicorn runs beside the client."""

    def __init__(self, world: World, **more: Any) -> None:
        self.runtime = world.runtime()
        self.server = McpServer(self.runtime, **more)
        self.verifier = FunctionVerifier(lambda token: Caller(TOKENS[token]))

    async def __aenter__(self) -> Served:
        app = http_app(self.server, verifier=self.verifier)
        config = uvicorn.Config(app, port=0, log_config=None, access_log=False, timeout_graceful_shutdown=1)
        self._uvicorn = uvicorn.Server(config)
        listener = config.bind_socket()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        self._running = asyncio.create_task(self._uvicorn.serve(sockets=[listener]))
        while not self._uvicorn.started:
            await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._uvicorn.should_exit = True
        await self._running


async def http_client(stack: AsyncExitStack, url: str, token: str, **more: Any) -> Client:
    headers = {"Authorization": f"Bearer {token}"}
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=30))
    return await stack.enter_async_context(Client(streamable_http_client(url, http_client=http), **more))


class HttpDoor(McpDoor):
    """A client with a bearer token, over HTTP."""

    async def opened(self) -> Client:
        served = await self._stack.enter_async_context(Served(self.world, output_schemas=True))
        self.url = served.url
        return await http_client(self._stack, self.url, "token-of-ann")

    async def anonymous(self, name: str, arguments: Any) -> Got:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        async with httpx2.AsyncClient() as http:
            refused = await http.post(self.url, json=body, headers={"Accept": "application/json, text/event-stream"})
        assert refused.status_code == 401
        return Got("error")


SCRIPT = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from door_world import ANN, World
from toolgen.adapters.mcp_server import McpServer, run_stdio

class Api:
    url = {url!r}

server = McpServer(World(Path({folder!r}), Api).runtime(), output_schemas=True)
asyncio.run(run_stdio(server, caller=ANN if sys.argv[1] == "ann" else None))
"""


class StdioDoor(McpDoor):
    """A server in a process of its own, over its stdin and stdout."""

    async def opened(self) -> Client:
        return await self._process(self._stack, "ann")

    async def _process(self, stack: AsyncExitStack, who: str) -> Client:
        paths = [str(ROOT), str(ROOT / "tests")]
        script = dedent(SCRIPT).format(paths=paths, url=self.world.api.url, folder=str(self.world.folder))
        server = StdioServerParameters(command=sys.executable, args=["-c", script, who])
        return await stack.enter_async_context(Client(stdio_client(server)))

    async def anonymous(self, name: str, arguments: Any) -> Got:
        async with AsyncExitStack() as stack:
            client = await self._process(stack, "nobody")
            return answered(await client.call_tool(name, arguments))
