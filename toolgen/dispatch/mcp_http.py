"""What an MCP client sends over HTTP: to checked addresses, and every message with the credential that is its own.

Streamable HTTP of MCP 2025-11-25 and 2026-07-28 (https://modelcontextprotocol.io/specification, Transports). The
credential of a call goes with its one `tools/call` and with nothing else; that is told by the message, never by
who is bound when it is sent. Whatever fails is an answer here, so that one call's fault ends no other's session.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.pools import timeouts
from toolgen.dispatch.prepared import USER_AGENT
from toolgen.dispatch.settings import Http
from toolgen.dispatch.transport import build_transport, no_tls
from toolgen.errors import DispatchRefused
from toolgen.identity.caller import Secret

Headers = Sequence[tuple[str, Secret]]

_CALL: Final = "tools/call"
_FAILED: Final = -32000  # JSON-RPC's code for a fault of the connection
_EVENTS: Final = "text/event-stream"
# A cookie of one caller is none of another's, and a redirect is an answer.
_DROPPED: Final = frozenset({"set-cookie", "location", "content-length", "transfer-encoding"})


@dataclass(eq=False)
class Invocation:
    """One call on its way, and what is known of it afterwards.

    `began`: its first byte may have left. `status`: that of the HTTP answer. `fault`: why there is none, or why
    it breaks off.
    """

    name: str
    arguments: Mapping[str, Any] = field(repr=False)
    headers: Headers = field(default=(), repr=False)
    began: bool = False
    status: int | None = None
    fault: Exception | None = field(default=None, repr=False)
    _taken: bool = False
    _answer: bytearray = field(default_factory=bytearray, repr=False)

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """What the connection pool tells of its steps; a CONNECT is for the proxy alone."""
        if event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
            self.began = True

    def take(self, message: Mapping[str, Any]) -> None:
        """Let the message go out, if it is this call and the first one. Raises DispatchRefused."""
        given = message.get("params") or {}
        if given.get("name") != self.name or (given.get("arguments") or {}) != dict(self.arguments):
            raise DispatchRefused("the MCP client would send another call than the one that was asked for")
        if self._taken:
            raise DispatchRefused("the MCP client would send the call a second time")
        self._taken = True

    def received(self, piece: bytes) -> None:
        """A piece of the answer."""
        self._answer += piece

    @property
    def is_answered(self) -> bool:
        """Whether an answer came: an HTTP error, or a result or error of JSON-RPC."""
        return (self.status or 0) >= 300 or any(map(_is_response, _messages(bytes(self._answer))))


_invocation: ContextVar[Invocation | None] = ContextVar("toolgen_mcp_invocation", default=None)


@contextmanager
def invoked(invocation: Invocation) -> Iterator[None]:
    """Say which call a `tools/call` that is sent inside is."""
    before = _invocation.set(invocation)
    try:
        yield
    finally:
        _invocation.reset(before)


class McpTransport(httpx2.AsyncBaseTransport):
    """What stands between an MCP client and the network, for one session.

    `own` gives the headers of everything but calls, anew for each message. `is_stateful` says that the server
    gave the session an id, `status` is that of the last answer to anything but a call, and `fault` why a message
    of the session was not answered: until the session is `ready` none is sent after that.
    """

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, url: str, own: Callable[[], Headers], *, most: int, timeout: Any
    ) -> None:
        self._inner = inner
        self._url = httpx2.URL(url)
        self._own = own
        self._most = most
        self._timeout = timeout
        self.is_stateful = False
        self.status: int | None = None
        self.fault: Exception | None = None
        self.ready = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a message. An answer is at most `most` bytes; redirects and cookies come to nothing."""
        if request.method == "GET" and "last-event-id" not in request.headers:
            return httpx2.Response(405)  # the stream a server may use for requests of its own: none is wanted
        message = _read(request.content) if request.method == "POST" else {}
        invocation = _invocation.get() if message.get("method") == _CALL else None
        try:
            return await self._answered(request, message, invocation)
        except Exception as error:
            if invocation is not None:
                invocation.fault = error
            else:
                self.fault = error
            if request.method != "POST":
                raise
            return _failed(message)

    async def _answered(
        self, request: httpx2.Request, message: Mapping[str, Any], invocation: Invocation | None
    ) -> httpx2.Response:
        if request.url != self._url:
            raise DispatchRefused("the MCP client would send to another URL than the server's")
        if self.fault is not None and not self.ready:
            raise self.fault
        request.extensions = {**request.extensions, "timeout": self._timeout}
        if message.get("method") == _CALL:
            if invocation is None:
                raise DispatchRefused("the MCP client would send a call that nobody asked for")
            invocation.take(message)
            request.extensions["trace"] = invocation.trace
        for name, value in self._own() if invocation is None else invocation.headers:
            request.headers[name] = value.reveal()
        response = await self._inner.handle_async_request(request)
        self._note(response, invocation)
        return await self._bounded(response, invocation)

    def _note(self, response: httpx2.Response, invocation: Invocation | None) -> None:
        if invocation is not None:
            invocation.status = response.status_code
            return
        self.status = response.status_code
        self.is_stateful = self.is_stateful or "mcp-session-id" in response.headers

    async def _bounded(self, response: httpx2.Response, invocation: Invocation | None) -> httpx2.Response:
        """The answer: whole, or of an event stream piece by piece."""
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _DROPPED]
        stream = _Bounded(response, self._most, invocation)
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await stream.aclose()
            raise httpx2.RemoteProtocolError("the answer is packed, which was not asked for")
        if response.headers.get("content-type", "").lower().startswith(_EVENTS) and response.status_code < 300:
            return httpx2.Response(response.status_code, headers=headers, stream=stream)
        try:
            content = b"".join([piece async for piece in stream])
        finally:
            await stream.aclose()
        return httpx2.Response(response.status_code, headers=headers, content=content)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """An answer of at most so many bytes, which its call is told of."""

    def __init__(self, response: httpx2.Response, most: int, invocation: Invocation | None) -> None:
        self._response = response
        self._most = most
        self._invocation = invocation

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        async for piece in self._response.stream:
            size += len(piece)
            if size > self._most:
                raise httpx2.ReadError(f"the answer has more than {self._most:,} bytes")
            if self._invocation is not None:
                self._invocation.received(piece)
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def mcp_client(
    url: str, http: Http, allowed: Allowed, own: Callable[[], Headers]
) -> tuple[httpx2.AsyncClient, McpTransport]:
    """The HTTP client of one session, and what it sends over. Raises UsageError and CredentialsMissing for settings
    that cannot be used."""
    context = no_tls() if url.lower().startswith("http:") else None
    inner = build_transport(http, allowed, context=context)
    transport = McpTransport(inner, url, own, most=http.max_answer_bytes, timeout=timeouts(http))
    headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity"}
    return httpx2.AsyncClient(transport=transport, headers=headers, trust_env=False), transport


def _read(content: bytes) -> Mapping[str, Any]:
    """A message of JSON-RPC; nothing for what is none."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _messages(answer: bytes) -> Iterator[Mapping[str, Any]]:
    """The messages of an answer that is JSON, or of the events of a stream."""
    whole = _read(answer)
    if whole:
        yield whole
        return
    for event in answer.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n")[:-1]:
        lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        yield _read(b"\n".join(lines))


def _is_response(message: Mapping[str, Any]) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _failed(message: Mapping[str, Any]) -> httpx2.Response:
    """What the MCP client is told of a message that came to nothing."""
    if "id" not in message:
        return httpx2.Response(202)
    error = {"code": _FAILED, "message": "the connection failed"}
    return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "error": error})
