"""Sessions with MCP servers: each lives in a task of its own, and belongs to one credential, tenant and event loop.

The task starts in an empty context: whoever's call opens a session, nothing of them is bound in it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from toolgen.dispatch.mcp_http import Headers, Invocation, McpTransport, invoked
from toolgen.dispatch.quiet import quiet
from toolgen.errors import MissingExtra, SourceUnavailable, ToolgenError
from toolgen.identity.caller import Secret

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

MOST_SESSIONS: Final = 100  # kept open; more only while all of them are in use
MOST_PAGES: Final = 100
MOST_TOOLS: Final = 10_000
_PATIENCE: Final = 5.0  # seconds that a session gets to end

Key = tuple[str, str, Secret | None]  # tenant; for a session of one caller their subject and credential
Own = Callable[[], Headers]


@dataclass(frozen=True)
class Way:
    """How a server is reached: the transport of an MCP client, what it is opened with, and what it is sent over."""

    transport: Any
    first: Any = None
    http: McpTransport | None = None


class Session:
    """One session. Everything about it happens in its own task; calls come from others."""

    def __init__(self, way: Way, seconds: float) -> None:
        self._way = way
        self._seconds = seconds
        self._ended = asyncio.Event()
        self._client: Client | None = None
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._live(), context=Context())

    @classmethod
    async def opened(cls, way: Way, seconds: float) -> Session:
        """A session whose handshake is done. Raises SourceUnavailable, DispatchRefused and CredentialsMissing."""
        session = cls(way, seconds)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(session._started)
        except BaseException as error:
            await session.close()
            if isinstance(error, TimeoutError):
                raise SourceUnavailable(f"no answer within {seconds:g} seconds") from None
            raise
        return session

    async def _live(self) -> None:
        try:
            with quiet():
                async with AsyncExitStack() as stack:
                    if self._way.first is not None:
                        await stack.enter_async_context(self._way.first)
                    client = await stack.enter_async_context(_client(self._way.transport, self._seconds))
                    if self._way.http is not None:
                        self._way.http.ready = True
                    self._client = client
                    self._started.set_result(None)
                    await self._ended.wait()
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(self._why(error))
                self._started.exception()  # seen, also where nobody waits any more
            if isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._client = None

    def _why(self, error: BaseException) -> ToolgenError:
        """Why a session could not be opened, without a word of what was answered."""
        http = self._way.http
        if http is not None and isinstance(http.fault, ToolgenError):
            return http.fault
        if http is not None and http.fault is not None:
            return SourceUnavailable(f"the connection failed: {type(http.fault).__name__}")
        if http is not None and http.status is not None and http.status >= 300:
            return SourceUnavailable(f"the server answered the handshake with HTTP {http.status}")
        return SourceUnavailable(f"the handshake failed: {type(_innermost(error)).__name__}")

    @property
    def is_stateful(self) -> bool:
        """Whether the server knows who opened it: it gave the session an id, or is a process of its own."""
        return self._way.http is None or self._way.http.is_stateful

    @property
    def status(self) -> int | None:
        """The HTTP status of the last answer to anything but a call."""
        return self._way.http.status if self._way.http is not None else None

    async def is_alive(self) -> bool:
        """Whether calls can be made in it. A server that forgets sessions is asked, so that no call is lost on it."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        if self._client is None or self._task.done():
            return False
        if not self.is_stateful or self._client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return True
        try:
            with quiet():
                async with asyncio.timeout(self._seconds):
                    await self._client.session.send_ping()
        except Exception:  # noqa: BLE001 - whatever the client raises, it is not
            return False
        return True

    async def list_tools(self) -> list[Any]:
        """All tools, page by page. Raises SourceUnavailable, and what the MCP client raises."""
        from mcp_types import PaginatedRequestParams

        found: list[Any] = []
        cursor: str | None = None
        with quiet():
            for _ in range(MOST_PAGES):
                params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
                page = await self._open.session.list_tools(params=params)
                found += page.tools
                if page.next_cursor is None and len(found) <= MOST_TOOLS:
                    return found
                if page.next_cursor in (None, cursor) or len(found) > MOST_TOOLS:
                    break
                cursor = page.next_cursor
        raise SourceUnavailable(f"its list of tools has no end within {MOST_PAGES} pages and {MOST_TOOLS:,} tools")

    async def call(self, invocation: Invocation) -> CallToolResult | InputRequiredResult:
        """Send one `tools/call`, once. Raises what the MCP client raises; the invocation knows what went out."""
        from mcp_types import CallToolRequest, CallToolRequestParams

        params = CallToolRequestParams(name=invocation.name, arguments=dict(invocation.arguments))
        client = self._open
        if self._way.http is None:
            invocation.began = True  # nobody tells when a pipe is written to
        with quiet(), invoked(invocation):
            # Not the client's own `call_tool`: it calls again after some answers, and lists tools for others.
            return await client.session.send_request(CallToolRequest(params=params), _expected())

    @property
    def _open(self) -> Client:
        if self._client is None:
            raise SourceUnavailable("the session has ended")
        return self._client

    def end(self) -> None:
        """Let the session end by itself; from any thread."""
        with suppress(RuntimeError):  # its event loop has ended, and the session with it
            self._loop.call_soon_threadsafe(self._ended.set)

    async def close(self) -> None:
        """End the session, in its event loop."""
        self._ended.set()
        if not self._started.done():
            self._task.cancel()
        _, pending = await asyncio.wait([self._task], timeout=_PATIENCE)
        for task in pending:
            task.cancel()


@cache
def _expected() -> TypeAdapter[CallToolResult | InputRequiredResult]:
    """What a server may answer to a call."""
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


def _client(transport: Any, seconds: float) -> Client:
    from mcp import Client
    from mcp_types import Implementation

    from toolgen import __version__

    # No callbacks: what a server asks of its client's person or model is declined, and not offered in the first place.
    info = Implementation(name="toolgen", version=__version__)
    return Client(transport, client_info=info, cache=None, read_timeout_seconds=seconds)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def check_extra() -> None:
    """Raise MissingExtra unless the MCP client is installed."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        raise MissingExtra("MCP servers need mcp: pip install 'toolgen[mcp]'") from None


@dataclass
class _Slot:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: Session | None = None
    users: int = 0


class Sessions:
    """The sessions with one server, by whom they are for. `open_one` opens one with the headers it is given."""

    def __init__(self, open_one: Callable[[Own], Awaitable[Session]]) -> None:
        self._open_one = open_one
        self._by_loop: dict[asyncio.AbstractEventLoop, OrderedDict[Key, _Slot]] = {}

    @asynccontextmanager
    async def using(self, key: Key, own: Own) -> AsyncIterator[tuple[Session, bool]]:
        """The session of a key, and whether it was opened just now; it stays open while somebody uses it.

        One that has ended is opened anew, with `own` and nobody else's. Raises like `Session.opened`.
        """
        here = self._here()
        slot = here.setdefault(key, _Slot())
        here.move_to_end(key)
        slot.users += 1
        try:
            async with slot.lock:
                is_new = slot.session is None or not await slot.session.is_alive()
                if is_new:
                    gone, slot.session = slot.session, None
                    if gone is not None:
                        await gone.close()
                    slot.session = await self._open_one(own)
            assert slot.session is not None
            yield slot.session, is_new
        finally:
            slot.users -= 1
            if here.get(key) is slot:
                await _trim(here)
            elif not slot.users and slot.session is not None:  # closed while it was opened
                await slot.session.close()

    def _here(self) -> OrderedDict[Key, _Slot]:
        for ended in [one for one in self._by_loop if one.is_closed()]:
            self._by_loop.pop(ended, None)
        return self._by_loop.setdefault(asyncio.get_running_loop(), OrderedDict())

    async def aclose(self) -> None:
        """End all sessions: those of the running event loop at once, those of others as soon as they come to it."""
        here = self._by_loop.pop(asyncio.get_running_loop(), OrderedDict())
        for loop in list(self._by_loop):
            for slot in self._by_loop.pop(loop, OrderedDict()).values():
                if slot.session is not None:
                    slot.session.end()
        await asyncio.gather(*(slot.session.close() for slot in here.values() if slot.session is not None))


async def _trim(here: OrderedDict[Key, _Slot]) -> None:
    """Close what was not used for longest, and forget what could not be opened."""
    for key in [key for key, slot in here.items() if slot.session is None and not slot.users]:
        del here[key]
    idle = [key for key, slot in here.items() if not slot.users]
    for key in idle[: max(0, len(here) - MOST_SESSIONS)]:
        session = here.pop(key).session
        assert session is not None
        await session.close()


class Breaker:
    """Stops asking a server that keeps failing: three failures within a minute, by (whom it is for)."""

    failures: Final = 3
    seconds: Final = 60.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: dict[str, deque[float]] = {}

    def waits(self, key: str) -> float:
        """In how many seconds the server may be asked again; 0 for now."""
        times = self._failed.get(key, deque())
        if len(times) < self.failures:
            return 0.0
        return max(0.0, times[0] + self.seconds - self._clock())

    def failed(self, key: str) -> None:
        """The server could not be reached, or did not answer."""
        self._failed.setdefault(key, deque(maxlen=self.failures)).append(self._clock())

    def succeeded(self, key: str) -> None:
        """It answered: what failed before is forgotten."""
        self._failed.pop(key, None)
