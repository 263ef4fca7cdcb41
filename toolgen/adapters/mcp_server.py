"""A runtime as an MCP server: its tools for any client, over stdio or HTTP.

Protocol: https://modelcontextprotocol.io/specification (2026-07-28, and 2025-11-25 for older clients). A call that
waits for a person is answered at once with an ordinary result that says so; `get_approval_result` gives what became
of it and, once approved, carries it out, for the requester alone. Nothing here lets a client decide.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import weakref
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from toolgen import __version__
from toolgen.adapters.answers import Answer, answer, answers, pending, review
from toolgen.adapters.mcp_resources import listed_resources, read_resource
from toolgen.adapters.mcp_schemas import CALL, DESCRIBE, LIST, OWN_NAMES, RESULT, SEARCH, as_listed, listed, own_tools
from toolgen.adapters.offered import Offer
from toolgen.adapters.repeats import thread_of, waiting
from toolgen.adapters.search import search
from toolgen.errors import CallerMismatch, MissingExtra, PauseConflict, PauseUnknown, ToolgenError
from toolgen.identity.caller import Caller
from toolgen.identity.origin import Origin

try:
    import mcp_types as types
    from mcp.server.lowlevel import NotificationOptions, Server
    from mcp.server.stdio import stdio_server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
    from mcp.shared.exceptions import MCPError

    from toolgen.adapters import mcp_elicit
except ImportError:
    raise MissingExtra("an MCP server needs the mcp package: pip install 'toolgen[mcp]'") from None

if TYPE_CHECKING:
    from mcp.server.models import InitializationOptions

    from toolgen.approvals.model import Pause
    from toolgen.runtime.core import Runtime

_log = logging.getLogger("toolgen.mcp")
_TICK: Final = 2.0  # seconds between two reports of the progress of a long call
_MOST_LISTED: Final = 50
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_INSTRUCTIONS: Final = (
    "Some calls wait for a person to approve them: they are answered with status `pending` and an approvalId. That is "
    f"no error and nothing to try again. Go on with other things, and ask `{RESULT}` later."
)


class _Protocol(Server[Any]):
    """The server of the mcp package, which by itself tells clients before 2026 that its tools never change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, *more, **named)


class McpServer:
    """The tools of a runtime for MCP clients.

    `review_url` is where people decide, with `{id}` for the approval. `output_schemas` lists what each tool may answer
    with. `lazy` offers three tools that search, describe and call all others, for APIs with hundreds of them.
    `list_pending` is whether clients can list their own calls that wait. With `elicit` users are asked through their
    client about calls that the config lets who asks approve. `protocol` is the server of the mcp package.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        name: str = "toolgen",
        review_url: str | None = None,
        output_schemas: bool = False,
        lazy: bool = False,
        list_pending: bool = True,
        elicit: bool = False,
    ) -> None:
        self.runtime, self.review_url = runtime, review_url
        self.offer = Offer(runtime, reserved=OWN_NAMES)
        self._output_schemas, self._lazy, self._list_pending = output_schemas, lazy, list_pending
        self._elicit = elicit
        self._caller: Caller | None = None  # of a connection that says nothing of who is behind it: stdio
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._bus = InMemorySubscriptionBus()
        self.protocol: Server[Any] = _Protocol(
            name,
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_read_resource=self._resource,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        if elicit:
            self.protocol.middleware.append(mcp_elicit.boundary(name))
        self._own: dict[str, Callable[[Mapping[str, Any], Caller | None], Awaitable[Answer]]] = {
            RESULT: self._result,
            **({LIST: self._list} if list_pending else {}),
            **({SEARCH: self._search, DESCRIBE: self._describe} if lazy else {}),
        }

    def serve_for(self, caller: Caller | None) -> None:
        """Who all calls are for that come without an identity of their own: those over stdio."""
        self._caller = caller

    async def tools_changed(self) -> None:
        """Tell clients to list the tools anew."""
        await self._bus.publish(ToolsListChanged())
        for session in list(self._sessions):
            try:
                await session.send_tool_list_changed()
            except Exception:  # noqa: BLE001 - a client that is gone
                self._sessions.discard(session)

    # What clients ask

    async def _tools(self, context: Any, params: Any) -> types.ListToolsResult:
        self._sessions.add(getattr(context.session, "_connection", context.session))  # a session is of one request
        own = own_tools(list_pending=self._list_pending, lazy=self._lazy)
        tools = [] if self._lazy else [listed(tool, output_schemas=self._output_schemas) for tool in self.offer]
        return types.ListToolsResult.model_validate({"tools": [*tools, *own]})

    async def _call(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller, began = _caller_of(context, self._caller), self.runtime.store.clock()
        given = params.arguments or {}
        own = self._own.get(params.name)
        work: Awaitable[Answer]
        if self._elicit and params.request_state is not None:
            work = self._answered(params.request_state, params.input_responses, caller)
        elif own is not None:
            work = own(given, caller)
        elif self._lazy:
            work = self._called_lazily(params.name, given, caller)
        else:
            work = self.called(params.name, given, caller)
        try:
            found = await _with_progress(work, context.session)
            approval = found.data.get("approvalId")
            if self._elicit and own is None and params.request_state is None and approval is not None:
                asked = await mcp_elicit.asked(self.runtime, context, caller, str(approval), began)
                if isinstance(asked, types.InputRequiredResult):
                    return asked
                found = await self._result({"approvalId": approval}, caller) if asked else found
            if own is None and self._output_schemas and (tool := self.offer.tools.get(params.name)) is not None:
                found = await asyncio.to_thread(as_listed, found, tool)
        except ToolgenError as error:  # the store's, above all: for whoever runs the server, not for a client
            _log.error("a call could not be handled: %s", error.message)
            found = _unhandled(error)
        except MCPError:
            raise
        except Exception as error:  # noqa: BLE001 - before 2026 the protocol's server gives clients the text of any
            _log.error("a call could not be handled: %s", type(error).__name__)
            found = _unhandled(error)
        text = types.TextContent(type="text", text=found.text)
        return types.CallToolResult(content=[text], structured_content=dict(found.data), is_error=found.is_error)

    async def called(self, name: str, arguments: Any, caller: Caller | None) -> Answer:
        """A call of a tool that is offered, by the name it is offered under.

        MCP has no ids for calls: the same call of the same requester while it waits is the one that waits.
        """
        call = self.offer.tool_call(name, arguments, uuid4().hex)
        thread = thread_of(self.runtime, "mcp", caller, call.source, call.name, call.arguments) or uuid4().hex
        before = await waiting(self.runtime, thread, caller)
        if before is not None:
            return pending(before, self.review_url)
        done = await self.runtime.submit([call], caller=caller, thread=thread, turn=uuid4().hex)
        return answers(done, self.review_url)[str(call.id)]

    async def _answered(self, state: str, responses: Any, caller: Caller | None) -> Answer:
        """What becomes of a call whose user was asked."""
        approval = await mcp_elicit.answered(self.runtime, caller, state, responses)
        return await self._result({"approvalId": approval}, caller)

    async def _called_lazily(self, name: str, given: Mapping[str, Any], caller: Caller | None) -> Answer:
        if name != CALL:
            return await self.called(name, given, caller)
        inner = given.get("name")
        if not isinstance(inner, str) or inner in OWN_NAMES:
            return _fault(f"name is that of a tool, as {SEARCH} gives it")
        return await self.called(inner, given.get("arguments", {}), caller)

    async def _result(self, given: Mapping[str, Any], caller: Caller | None) -> Answer:
        """What became of an approval; whether there is one of somebody else nobody is told."""
        id = given.get("approvalId")
        unknown = _fault("there is no approval of yours with this id")
        if not isinstance(id, str) or caller is None:
            return unknown
        try:
            results = await self.runtime.resume(id, caller=caller)
        except (PauseUnknown, CallerMismatch):
            return unknown
        except PauseConflict:
            pause = await self.runtime.in_store(self.runtime.store.pause, id, caller.tenant)
            return pending(pause, self.review_url) if pause.waiting else _fault("it is being carried out: ask again")
        found = {call: answer(one) for call, one in results.items()}
        if len(found) == 1:
            return next(iter(found.values()))
        texts = [f"{call}: {one.text}" for call, one in found.items()]
        return Answer("\n".join(texts), {"result": {call: dict(one.data) for call, one in found.items()}})

    async def _list(self, given: Mapping[str, Any], caller: Caller | None) -> Answer:
        if caller is None:
            return _found([])
        pauses: list[Pause] = await self.runtime.in_store(
            self.runtime.store.pauses, caller.tenant, limit=_MOST_LISTED, waiting=True, requester=caller.subject
        )
        return _found([self._shown(pause) for pause in pauses])

    def _shown(self, pause: Pause) -> dict[str, Any]:
        found = {
            "approvalId": pause.id,
            "reason": pause.reason,
            "tools": [call.tool for call in pause.calls],
            "created": pause.created.isoformat(),
            "due": pause.due.isoformat() if pause.due else None,
            "reviewUrl": review(self.review_url, pause.id),
        }
        return {key: value for key, value in found.items() if value is not None}

    async def _search(self, given: Mapping[str, Any], caller: Caller | None) -> Answer:
        query, limit = given.get("query"), given.get("limit", 10)
        if not isinstance(query, str) or type(limit) is not int or not 1 <= limit <= _MOST_LISTED:
            return _fault(f"query is a text, and limit 1 to {_MOST_LISTED}")
        tools = search(self.offer, query, limit)
        return _found([{"name": tool.name, "description": tool.description[:300]} for tool in tools])

    async def _describe(self, given: Mapping[str, Any], caller: Caller | None) -> Answer:
        name = given.get("name")
        tool = self.offer.tools.get(name) if isinstance(name, str) else None
        return _found(listed(tool)) if tool is not None else _fault(f"there is no tool of this name: try {SEARCH}")

    async def _resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate({"resources": listed_resources(self.runtime)})

    async def _resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        found = await asyncio.to_thread(read_resource, self.runtime, str(params.uri))
        if found is None:
            raise MCPError(types.INVALID_PARAMS, "there is no such resource")
        return types.ReadResourceResult.model_validate({"contents": [found]})


async def run_stdio(server: McpServer, *, caller: Caller | None) -> None:
    """Serve one client over stdin and stdout until it is gone; `caller` is who all its calls are for."""
    server.serve_for(caller)
    protocol = server.protocol
    async with stdio_server() as (reading, writing):
        await protocol.run(reading, writing, protocol.create_initialization_options())


def _caller_of(context: Any, otherwise: Caller | None) -> Caller | None:
    """Who a request is for: whoever its own token says, with the origin they addressed; over stdio one for all.

    A request over HTTP never falls back to the process's own identity. Raises MCPError where nobody is known.
    """
    request = context.request
    if request is None:
        return otherwise
    user = request.scope.get("user")
    caller = getattr(getattr(user, "access_token", None), "caller", None)
    if not isinstance(caller, Caller):
        raise MCPError(types.INVALID_REQUEST, "nobody is known to be behind this request")
    host = request.headers.get("host", "")  # checked; still, `127.0.0.1:1@elsewhere` is no origin of ours
    origin = f"{request.scope['scheme']}://{host}"
    return replace(caller, origin=origin if _HOST.fullmatch(host) and Origin.of(origin) else None)


async def _with_progress(work: Awaitable[Answer], session: Any) -> Answer:
    """The answer, with a report every few seconds until it is there; a client that gives up ends the work."""
    task = asyncio.ensure_future(work)
    try:
        for seconds in range(1, 10_000_000):
            done, _ = await asyncio.wait({task}, timeout=_TICK)
            if done:
                break
            await session.report_progress(seconds * _TICK, None, "waiting for the API")
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def _found(data: Any) -> Answer:
    return Answer(json.dumps(data, ensure_ascii=False), {"result": data})


def _unhandled(error: Exception) -> Answer:
    return _fault(f"the server could not handle the call ({type(error).__name__}): ask whoever runs it")


def _fault(message: str) -> Answer:
    return Answer(message, {"status": "error", "message": message})
