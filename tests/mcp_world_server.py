"""An MCP server of tests, run as a process: it keeps every header it is sent, and does what a test tells it to.

`/modern` speaks 2026-07-28, `/legacy` 2025-11-25 without sessions, `/stateful` the same with sessions that belong to the
credential that opened them. `/control` takes what a test wants: `{"tools": [...], "expire": true, "status": 503, ...}`.
"""

from __future__ import annotations

import json
import socket
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

ANY = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
TOOLS = [{"name": name, "inputSchema": ANY} for name in ("echo", "fails", "picture", "asks", "words")]
PAGE = 2
LEGACY = "/legacy", "/stateful"


@dataclass
class Now:
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)
    seen: list[dict[str, Any]] = field(default_factory=list)
    expired: set[str] = field(default_factory=set)
    status: int | None = None
    only: str | None = None


NOW = Now()


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    start = int(params.cursor) if params is not None and params.cursor else 0
    page = [types.Tool.model_validate(one) for one in NOW.tools[start : start + PAGE]]
    more = str(start + PAGE) if start + PAGE < len(NOW.tools) else None
    return types.ListToolsResult(tools=page, next_cursor=more)


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> Any:
    text = (params.arguments or {}).get("text", "")
    headers = dict(ctx.request.headers)
    if params.name == "fails":
        return types.CallToolResult(
            content=[types.TextContent(text=f"no {headers.get('authorization')}")], is_error=True
        )
    if params.name == "picture":
        return types.CallToolResult(content=[types.ImageContent(data="aGk=", mime_type="image/png")])
    if params.name == "words":
        return types.CallToolResult(content=[types.TextContent(text=text), types.TextContent(text="more")])
    if params.name == "asks":
        return await asks(ctx)
    got = {"text": text, "authorization": headers.get("authorization"), "key": headers.get("x-api-key")}
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(got))], structured_content=got)


async def asks(ctx: Any) -> Any:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    if ctx.protocol_version == "2026-07-28":
        params = types.ElicitRequestFormParams(message="ok?", requested_schema=schema)
        return types.InputRequiredResult(input_requests={"a": types.ElicitRequest(params=params)})
    await ctx.session.elicit_form("ok?", schema, related_request_id=ctx.request_id)
    return types.CallToolResult(content=[types.TextContent(text="somebody said yes")])


def manager(stateless: bool) -> StreamableHTTPSessionManager:
    server: Server[Any] = Server("upstream", on_list_tools=list_tools, on_call_tool=call_tool)
    return StreamableHTTPSessionManager(server, json_response=stateless, stateless=stateless)


MANAGERS = {"/modern": manager(True), "/legacy": manager(True), "/stateful": manager(False)}


async def body_of(receive: Any) -> bytes:
    found, more = b"", True
    while more:
        message = await receive()
        found, more = found + message.get("body", b""), message.get("more_body", False)
    return found


async def answer(send: Any, status: int, body: Any = None, **headers: str) -> None:
    listed = [(b"content-type", b"application/json"), *((k.encode(), v.encode()) for k, v in headers.items())]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


async def control(receive: Any, send: Any) -> None:
    wanted = json.loads(await body_of(receive))
    NOW.tools = wanted.get("tools", TOOLS)
    NOW.status, NOW.only = wanted.get("status"), wanted.get("only")
    if wanted.get("expire"):
        NOW.expired |= {one["headers"]["mcp-session-id"] for one in NOW.seen if "mcp-session-id" in one["headers"]}
    seen = list(NOW.seen)
    if not wanted.get("keep"):
        NOW.seen.clear()
    await answer(send, 200, seen)


async def mcp(path: str, scope: Any, receive: Any, send: Any) -> None:
    content = await body_of(receive)
    headers = {key.decode(): value.decode() for key, value in scope["headers"]}
    method = json.loads(content).get("method") if content else None
    NOW.seen.append({"path": path, "http": scope["method"], "method": method, "headers": headers})
    if NOW.status is not None and NOW.only in (None, method):
        more = {"location": "http://127.0.0.1:9/elsewhere"} if NOW.status < 400 else {}
        return await answer(send, NOW.status, {"detail": headers.get("authorization")}, **more)
    if path in LEGACY and headers.get("mcp-protocol-version") == "2026-07-28":
        return await answer(send, 400, {"detail": "an old server"})
    if headers.get("mcp-session-id") in NOW.expired:
        return await answer(send, 404, {"detail": "no such session"})
    if token := headers.get("authorization"):
        scope = {**scope, "user": AuthenticatedUser(AccessToken(token=token, client_id=token, scopes=[]))}
    given = [{"type": "http.request", "body": content, "more_body": False}]

    async def again() -> Any:
        return given.pop() if given else await receive()

    async def with_cookie(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"set-cookie", b"who=" + (token or "nobody").encode()[-8:])]
        await send(message)

    return await MANAGERS[path].asgi_app({**scope, "path": "/"}, again, with_cookie)


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await receive()
        async with AsyncExitStack() as stack:
            for one in MANAGERS.values():
                await stack.enter_async_context(one.run())
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
    elif scope["path"] == "/control":
        await control(receive, send)
    else:
        await mcp(scope["path"], scope, receive, send)


if __name__ == "__main__":
    config = uvicorn.Config(app, log_level="critical", lifespan="on")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
