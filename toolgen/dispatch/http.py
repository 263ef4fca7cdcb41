"""The dispatcher: adds credentials to resolved requests, sends each once, and shapes the answers."""

from __future__ import annotations

import sys
import traceback
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from toolgen.dispatch.portal import Closed, Portal
from toolgen.dispatch.settings import Http
from toolgen.dispatch.telemetry import observed
from toolgen.dispatch.upstream import Upstream, upstream
from toolgen.errors import ArgumentsError, ServerError, UsageError, did_you_mean
from toolgen.identity.caller import Caller, current_caller
from toolgen.identity.exchange import Exchange, Exchanges
from toolgen.request.match import Operation
from toolgen.request.model import ResolvedRequest
from toolgen.result import Sent, ToolResult
from toolgen.tools.model import Tool, Toolset

if TYPE_CHECKING:
    import httpx2

    from toolgen.dispatch.answer import Keep
    from toolgen.dispatch.pools import Pools

ContractMode = Literal["off", "warn", "enforce"]
_MODES: Final = ("off", "warn", "enforce")
_MOST_WARNINGS: Final = 3


class Dispatcher:
    """Calls tools. **Ungated**: `call` asks nobody; give the dispatcher to `Runtime` where a model decides.

    `credentials` maps security schemes to references: `{"bearerAuth": "${env:TOKEN}"}`, or with several
    toolsets `{"petstore": {...}, "billing": {...}}`; see `toolgen.identity.credentials`. `exchange` maps origins
    to hooks that give the caller's token for them. `server` overrides every server, `server_variables` fills
    those of server URLs; with several toolsets both map API names to what a single one takes.
    `allow_private` lists private address ranges that may be called. `contract` has each request checked
    against the document (`documents`: by API name; else against the toolset). `transport` replaces the
    network: no address is checked then, and it is the caller's to close.

    Raises CredentialsError, UsageError and ServerError for settings that are not valid.
    """

    def __init__(
        self,
        toolsets: Iterable[Toolset] | Toolset,
        *,
        credentials: Mapping[str, Any] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        http: Http | None = None,
        server: str | Mapping[str, str] | None = None,
        server_variables: Mapping[str, Any] | None = None,
        exchange: Mapping[str, Exchange] | None = None,
        allow_private: Sequence[str] = (),
        caller_references: bool = True,
        contract: ContractMode = "off",
        documents: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        from toolgen.dispatch.pools import Pools

        listed = [toolsets] if isinstance(toolsets, Toolset) else list(toolsets)
        if contract not in _MODES:
            raise UsageError(f"contract is one of {', '.join(_MODES)}")
        apis = [toolset.api for toolset in listed]
        if len(set(apis)) < len(apis):
            raise UsageError("two toolsets have the same API name; generate one of them with api=")
        own = _by_api(listed, "credentials", credentials, _is_nested(listed, credentials))
        servers = _by_api(listed, "server", server, isinstance(server, Mapping))
        nested = bool(server_variables) and all(isinstance(one, Mapping) for one in (server_variables or {}).values())
        variables = _by_api(listed, "server_variables", server_variables, nested)
        described = _by_api(listed, "documents", documents, True)
        self.http = http or Http()
        self._settings: dict[str, dict[str, Any]] = {
            api: {
                "credentials": own.get(api),
                "server": servers.get(api),
                "server_variables": variables.get(api),
                "allow_private": allow_private,
                "caller_references": caller_references,
                "document": described.get(api),
            }
            for api in apis
        }
        self.upstreams = {toolset.api: upstream(toolset, **self._settings[toolset.api]) for toolset in listed}
        self._tools = _by_name(self.upstreams)
        self._operations: list[Operation] | None = None
        self._contract: ContractMode = contract
        self._exchanges = Exchanges(exchange)
        self._pools: Pools = Pools(self.http, transport)
        self._portal = Portal()
        weakref.finalize(self, self._portal.close)

    # Calling

    def call(self, tool: Tool | str, arguments: Mapping[str, Any], *, caller: Caller | None = None) -> ToolResult:
        """Call a tool, **ungated**. The caller is the one given, else the one bound to this turn.

        What a model can act on is a result. Raises ServerError, RequestError, CredentialsMissing and
        AddressRefused for what only a person can; nothing was sent then.
        """
        caller = caller if caller is not None else current_caller()
        try:
            return self._portal.run(self._call(tool, arguments, caller))
        except Closed:
            told = "the dispatcher was closed before an answer came: the call may have been carried out"
            return ToolResult(False, Sent.unknown, message=told)

    async def acall(
        self, tool: Tool | str, arguments: Mapping[str, Any], *, caller: Caller | None = None
    ) -> ToolResult:
        """`call` for async code."""
        return await self._call(tool, arguments, caller if caller is not None else current_caller())

    async def _call(self, tool: Tool | str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        try:
            request = self.resolve(tool, arguments, caller=caller)
        except ArgumentsError as error:
            return not_valid(error)
        return await self.send(request, caller=caller)

    def resolve(
        self, tool: Tool | str, arguments: Mapping[str, Any], *, caller: Caller | None = None
    ) -> ResolvedRequest:
        """The request a call makes, unsent. Raises ArgumentsError, ServerError, RequestError."""
        found = self._tool(tool)
        return self.upstreams[found.home.api].resolve(found, arguments, caller)

    async def send(
        self,
        request: ResolvedRequest,
        *,
        caller: Caller | None = None,
        idempotency_key: str | None = None,
        before: Callable[[], Awaitable[None]] | None = None,
        keep: Keep | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> ToolResult:
        """Send a resolved request, **ungated**: a write once, a read at most `http.retries` times more.

        `before` is awaited when the credentials are in place and nothing is connected yet; what it raises
        ends the call. `keep` is given the answer as it is, `transport` stands in for the connections of this
        dispatcher. Raises ContractError, CredentialsMissing, AddressRefused and DispatchRefused; nothing was sent then.
        """
        outer = sys.exception()
        try:
            return await self._sent(request, caller, idempotency_key, before, keep, transport)
        except BaseException as error:
            _clear(error, outer)
            raise

    def credential_digest(self, request: ResolvedRequest) -> str:
        """The digest of the unresolved credential a request would be sent with, or `anonymous`.

        Raises CredentialsMissing where none of those it needs is bound.
        """
        tool = self._tool_of(request)
        return self.upstreams[tool.home.api].credentials.choose(tool.request.security, request.origin).digest

    def operations(self) -> list[Operation]:
        """Every tool with the server its requests go to; one whose server is not known is left out."""
        if self._operations is None:
            found: list[Operation] = []
            for source in self.upstreams.values():
                for tool in source.toolset.tools:
                    with suppress(ServerError):
                        found.append(Operation(tool, source.base(tool)))
            self._operations = found
        return self._operations

    def reload(self, toolset: Toolset) -> None:
        """Take a new toolset of a known API, with the settings of the old one. Raises like the constructor."""
        settings = self._settings.get(toolset.api)
        if settings is None:
            raise UsageError(f"there is no API {toolset.api!r} to take a new toolset of")
        self.upstreams[toolset.api] = upstream(toolset, **settings)
        self._tools = _by_name(self.upstreams)
        self._operations = None

    async def _sent(
        self,
        request: ResolvedRequest,
        caller: Caller | None,
        key: str | None,
        before: Callable[[], Awaitable[None]] | None,
        keep: Keep | None,
        transport: httpx2.AsyncBaseTransport | None,
    ) -> ToolResult:
        from toolgen.dispatch.pools import timeouts
        from toolgen.dispatch.sending import Sending

        tool = self._tool_of(request)
        source = self.upstreams[tool.home.api]
        with observed(tool.home.api, tool.name, request.method) as became:
            warning = self._checked(request, source)
            async with self._pools.ready(request, source, caller, self._exchanges, key) as ready:
                if before is not None:
                    await before()
                used = transport or ready.transport
                sending = Sending(used, self.http, tool, ready.redactor, timeouts(self.http), keep)
                result = await sending.send(ready.request)
                if result.status == 401 and ready.token is not None:
                    await self._pools.forget(ready.token)
            if warning:
                result = replace(result, message="\n".join(filter(None, (result.message, warning))))
            became(result)
            return result

    def _checked(self, request: ResolvedRequest, source: Upstream) -> str:
        """What a second opinion has against the request, where it only warns."""
        if self._contract == "off":
            return ""
        from toolgen.request import contract

        found = contract.check(request, document=source.document)
        if self._contract == "enforce":
            contract.enforce(found)
        if found.status in ("ok", "partial"):
            return ""
        told = "; ".join(map(str, found.problems[:_MOST_WARNINGS]))
        return f"the request is not what the document describes ({found.status}): {told}"

    def _tool_of(self, request: ResolvedRequest) -> Tool:
        """The tool of a request; of one that the API does not declare what stands for it, which has no credentials."""
        tool = request.tool
        if request.is_undeclared and tool.home.api in self.upstreams and not tool.request.security:
            return tool
        return self._tool(tool)

    def _tool(self, tool: Tool | str) -> Tool:
        """A tool of this dispatcher's toolsets, by itself or by a name that only one of them has."""
        name = tool if isinstance(tool, str) else tool.name
        known = self._tools.get(name, [])
        if isinstance(tool, Tool):
            for one in known:
                if one is tool or (one.home.api == tool.home.api and one == tool):
                    return one
            raise UsageError(f"the tool {name!r} is of none of this dispatcher's toolsets")
        if len(known) > 1:
            raise UsageError(
                f"{', '.join(one.home.api for one in known)} each have a tool {name!r}: give the tool itself"
            )
        if not known:
            raise UsageError(f"no tool is called {name!r}{did_you_mean(name, self._tools)}")
        return known[0]

    # Closing

    def close(self) -> None:
        """End the calls of plain code and close their connections; it can be called again."""
        self._portal.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop; it can be called again."""
        await self._pools.aclose()

    def __enter__(self) -> Dispatcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Dispatcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _clear(error: BaseException, outer: BaseException | None) -> None:
    """Empty the frames of an error and of those it came from: their variables hold credentials.

    `outer` is what the host was handling when it called: that is the host's own.
    """
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or one is outer or any(one is other for other in seen):
            continue
        seen.append(one)
        traceback.clear_frames(one.__traceback__)
        waiting += [one.__cause__, one.__context__]


def _by_name(upstreams: Mapping[str, Upstream]) -> dict[str, list[Tool]]:
    found: dict[str, list[Tool]] = {}
    for tool in (tool for source in upstreams.values() for tool in source.toolset.tools):
        found.setdefault(tool.name, []).append(tool)
    return found


def not_valid(error: ArgumentsError) -> ToolResult:
    """Arguments that are refused, as a result that tells a model what to change."""
    problems = tuple(problem.to_dict() for problem in error.problems)
    return ToolResult(False, Sent.not_sent, message=str(error), problems=problems)


def _is_nested(toolsets: Sequence[Toolset], credentials: Mapping[str, Any] | None) -> bool:
    """Whether credentials are given by API name: they must be where there are several."""
    if not credentials or len(toolsets) != 1:
        return bool(credentials)
    known = toolsets[0].security_schemes
    return set(credentials) == {toolsets[0].api} and toolsets[0].api not in known


def _by_api(toolsets: Sequence[Toolset], what: str, given: Any, nested: bool) -> Mapping[str, Any]:
    """A setting for each API. Raises UsageError for names that are none, and for one setting for several."""
    if given is None:
        return {}
    apis = [toolset.api for toolset in toolsets]
    if not nested:
        if len(apis) != 1:
            raise UsageError(f"{what}: say for which API, as in {{{(apis or ['petstore'])[0]!r}: ...}}")
        return {apis[0]: given}
    for name in given:
        if name not in apis:
            raise UsageError(f"{what}: there is no API {name!r}{did_you_mean(str(name), apis)}")
    return dict(given)
