"""The tools of an MCP server as a source: named, gated and called like every other.

    files = McpSource("files", "https://mcp.example/mcp", credential="${caller:token}")
    async with Runtime([files, dispatcher], config) as runtime:
        await runtime.submit(calls, caller=ada)

They answer to `mcp` and to the server's name: `mcp:read_*`, `files:delete_file`. A caller's credential goes with
their calls and with nothing else: lists of tools are asked for without it, since all callers share them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from toolgen.adapters.mcp_results import result_of
from toolgen.adapters.mcp_sessions import Breaker, Key, Own, Session, Sessions, check_extra
from toolgen.adapters.mcp_telemetry import Outcome, discovered
from toolgen.adapters.mcp_tools import Listing, McpTool
from toolgen.adapters.mcp_upstream import Bound, Upstream, http_upstream, stdio_upstream
from toolgen.dispatch.mcp_http import Headers, Invocation
from toolgen.dispatch.settings import Http
from toolgen.dispatch.telemetry import observed
from toolgen.errors import DispatchRefused, SourceUnavailable, ToolgenError, UsageError
from toolgen.identity.caller import DEFAULT_TENANT, Caller
from toolgen.identity.exchange import Exchange, Exchanges
from toolgen.identity.redact import Redactor
from toolgen.policy.address import ToolList, is_source_name
from toolgen.request.arguments import validated
from toolgen.result import Refused, Sent, ToolResult

_NOT_YET: Final = "nobody has asked for them: `async with Runtime(...)` or `await source.connect()` does"
_log = logging.getLogger("toolgen.mcp")


class McpSource:
    """One MCP server, over Streamable HTTP (`url`) or as a process of its own (`command`, stdio).

    `credential` is a text with references (`${caller:token}`, `${env:NAME}`, ...) for `header`; in `Authorization` a
    bare secret gets its `Bearer `. One with `${caller:...}` is filled in for each call, and a call without a caller is
    refused before anything is sent; lists are asked for with `discovery`, if that is given, else with none. Other
    credentials go with every message. `exchange` maps origins to hooks that give the caller's token for them,
    `allow_private` lists private address ranges that may be called, `http` has the timeouts and limits.

    A process is given the variables that `env` names, beside HOME, PATH and the like, and no credentials.

    Tools are listed by `connect`, or by a runtime that is entered or used, and asked for again after `ttl` seconds; a
    list that cannot be had leaves the last one. `warnings` says which tools of it were left out. Three failures within
    a minute, of one tenant, and the server is left alone until that minute is over. `clock` gives seconds.

    Raises UsageError, CredentialsError and MissingExtra for settings that are not valid, before any contact.
    """

    def __init__(
        self,
        name: str,
        url: str | None = None,
        *,
        command: Sequence[str] = (),
        env: Sequence[str] = (),
        credential: str | None = None,
        header: str = "Authorization",
        discovery: str | None = None,
        ttl: float = 300.0,
        http: Http | None = None,
        allow_private: Sequence[str] = (),
        exchange: Mapping[str, Exchange] | None = None,
        caller_references: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_extra()
        if not is_source_name(name):
            raise UsageError(f"{name!r} is no name of a source: [a-z][a-z0-9-]*, at most 32, and no reserved one")
        self.name: Final = name
        self.http: Final = http or Http()
        if url is not None and not command and not env:
            bound = Bound(name, credential, header, discovery, caller_references)
            self._upstream: Upstream = http_upstream(url, bound, self.http, allow_private, Exchanges(exchange))
        else:
            self._upstream = stdio_upstream(name, url, command, env, credential or discovery)
        self.credential: Final = self._upstream.digest
        self._ttl = ttl
        self._clock = clock
        self._none = Listing.of(name, ())
        self._known: Listing | None = None
        self._due = 0.0
        self._why = _NOT_YET
        self._is_stateful = False
        self._sessions = Sessions(self._opened)
        self._breaker = Breaker(clock)
        self._asking: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def __repr__(self) -> str:
        return f"<McpSource {self.name}>"

    # What it has

    @property
    def unreadable(self) -> str:
        """Why its tools are not known, or nothing."""
        return "" if self._known is not None else self._why

    @property
    def listing(self) -> ToolList:
        """The names as the gate takes them; another object whenever the server lists something else."""
        return (self._known or self._none).listed

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which tools of the list were left out or changed, and why."""
        return (self._known or self._none).warnings

    @property
    def seconds(self) -> float:
        """The longest time a call takes."""
        return self.http.total

    def tools(self) -> list[McpTool]:
        """The tools, in the server's order. Raises SourceUnavailable while they are not known."""
        if self._known is None:
            raise SourceUnavailable(f"the tools of {self.name} are not known: {self._why}")
        return list(self._known.tools.values())

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise ArgumentsError for arguments that are not what the tool's schema says; KeyError for no tool."""
        validated((self._known or self._none).tools[name], dict(arguments))

    # Discovery

    async def connect(self) -> None:
        """Ask for the tools now. Raises SourceUnavailable, CredentialsMissing, AddressRefused; the last list stays."""
        async with self._asks():
            fault = await self._discover()
        if fault is not None:
            raise fault

    async def refresh(self) -> None:
        """Ask for the tools if nobody did for `ttl` seconds. Raises nothing: see `unreadable`."""
        async with self._asks():
            if self._known is not None and self._clock() < self._due:
                discovered("cache_hit")
                return
            await self._discover()

    def _asks(self) -> asyncio.Lock:
        """One at a time, in each event loop."""
        for ended in [one for one in self._asking if one.is_closed()]:
            self._asking.pop(ended, None)
        return self._asking.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _discover(self) -> ToolgenError | None:
        """Ask for the tools. It is nobody's call: whoever is bound, no caller's credential goes with it."""
        waits = self._breaker.waits(DEFAULT_TENANT)
        if waits:
            return self._not_listed(
                "circuit_open", SourceUnavailable(f"it failed, and is left alone for {waits:.0f} s")
            )
        try:
            self._upstream.own()  # before any contact
            async with asyncio.timeout(self.http.total), self._sessions.using(_SHARED, self._upstream.own) as (one, _):
                given = await one.list_tools()
                self._is_stateful = one.is_stateful
        except DispatchRefused as error:
            return self._not_listed("invalid_configuration", error)
        except Exception as error:  # noqa: BLE001 - whatever the MCP client raises
            self._breaker.failed(DEFAULT_TENANT)
            return self._not_listed("failure", _unavailable(error))
        self._breaker.succeeded(DEFAULT_TENANT)
        self._listed(Listing.of(self.name, given))
        discovered("success")
        return None

    def _listed(self, new: Listing) -> None:
        self._due = self._clock() + self._ttl
        old, self._why = self._known, ""
        if old is not None and list(old.tools.items()) == list(new.tools.items()):
            return
        self._known = new
        for warning in new.warnings:
            _log.warning("%s: %s", self.name, warning)

    def _not_listed(self, outcome: Outcome, error: ToolgenError) -> ToolgenError:
        discovered(outcome)
        self._why = error.message
        kept = "; the last list is used" if self._known is not None else ""
        _log.warning("the tools of %s could not be listed (%s)%s", self.name, outcome, kept)
        return error

    async def _opened(self, own: Own) -> Session:
        return await Session.opened(self._upstream.way(own), self.http.connect + self.http.read)

    # Calls

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        """Call a tool, once. Raises CredentialsMissing and AddressRefused; nothing was sent then."""
        with observed(self.name, name, self._upstream.method) as became:
            result = await self._called(name, arguments, caller)
            became(result)
            return result

    async def _called(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        if self._known is None:
            said = f"the tools of {self.name} are not known: {self._why}; nothing was sent"
            return ToolResult(False, Sent.not_sent, message=said, refused=Refused.error)
        headers, secrets = await self._upstream.filled(caller)
        tenant = caller.tenant if caller is not None else DEFAULT_TENANT
        waits = self._breaker.waits(tenant)
        if waits:
            said = f"{self.name} failed, and is left alone for {waits:.0f} s; nothing was sent"
            return ToolResult(False, Sent.not_sent, message=said, refused=Refused.error)
        invocation = Invocation(name, arguments, headers)
        redactor = Redactor([*secrets, *([caller.token] if caller is not None and caller.token else [])])
        key, own = self._session_of(tenant, caller, headers)
        try:
            async with asyncio.timeout(self.http.total), self._sessions.using(key, own) as (session, is_new):
                if is_new and key != _SHARED:
                    with suppress(Exception):  # which headers a call has may stand in the list (`x-mcp-header`)
                        await self._relisted(session)
                given = await session.call(invocation)
        except Exception as error:  # noqa: BLE001 - whatever the MCP client raises, the call may be out
            return self._failed(error, invocation, tenant, redactor)
        self._breaker.succeeded(tenant)
        return result_of(given, redactor, self.http.max_result_chars)

    async def _relisted(self, session: Session) -> None:
        if not session.is_stateful:
            await session.list_tools()

    def _session_of(self, tenant: str, caller: Caller | None, headers: Headers) -> tuple[Key, Own]:
        """The session a call is made in: where the server would know by it who opened it, the caller's own."""
        if not self._upstream.is_caller_bound or not self._is_stateful or caller is None:
            return (tenant, "", None), self._upstream.own
        ((_, value),) = headers
        return (tenant, caller.subject, value), lambda: headers

    def _failed(self, error: Exception, invocation: Invocation, tenant: str, redactor: Redactor) -> ToolResult:
        """What is known of a call that has no result."""
        refused = invocation.fault if isinstance(invocation.fault, DispatchRefused) else error
        if isinstance(refused, DispatchRefused):
            raise refused
        why = self._reason(error, invocation, redactor)
        if self._upstream.has_answered(error, invocation):
            self._breaker.succeeded(tenant)
            status = invocation.status if (invocation.status or 0) >= 300 else None
            return ToolResult(False, Sent.answered, status=status, message=why)
        self._breaker.failed(tenant)
        if not invocation.began:
            return ToolResult(False, Sent.not_sent, message=f"nothing was sent: {why}")
        said = (
            f"it was sent, and there is no answer: {why}; it may have been carried out: find out before doing it again"
        )
        return ToolResult(False, Sent.unknown, message=said)

    def _reason(self, error: Exception, invocation: Invocation, redactor: Redactor) -> str:
        from mcp import MCPError
        from pydantic import ValidationError

        if isinstance(error, TimeoutError):
            return f"no answer within {self.http.total:g} seconds"
        if isinstance(error, ToolgenError):
            return error.message
        if invocation.fault is not None:
            return f"the connection failed: {type(invocation.fault).__name__}"
        if (invocation.status or 0) >= 300:
            told = "redirects are not followed" if (invocation.status or 0) < 400 else ""
            return f"HTTP {invocation.status}" + (f": {told}" if told else "")
        if isinstance(error, MCPError):
            return redactor.text(f"the server reports an error ({error.code}): {error.message}"[:2_000])
        if isinstance(error, ValidationError):
            return "the server's answer is no result of a call"
        return type(error).__name__

    # Closing

    async def aclose(self) -> None:
        """End all sessions and drop the list of tools."""
        self._known, self._why = None, _NOT_YET
        await self._sessions.aclose()

    async def __aenter__(self) -> McpSource:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_SHARED: Final[Key] = (DEFAULT_TENANT, "", None)


def _unavailable(error: Exception) -> ToolgenError:
    if isinstance(error, ToolgenError):
        return error
    if isinstance(error, TimeoutError):
        return SourceUnavailable("no answer in time")
    return SourceUnavailable(f"the server does not answer as it should: {type(error).__name__}")
