"""Sending one request: once for a write, a few times for a read, and what is known about it afterwards."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from toolgen.dispatch.answer import Keep, read_answer
from toolgen.dispatch.prepared import Prepared
from toolgen.dispatch.settings import Http
from toolgen.dispatch.transport import CheckedTransport
from toolgen.errors import ToolgenError
from toolgen.identity.redact import Redactor
from toolgen.result import Sent, ToolResult
from toolgen.tools.model import Tool

# A server that says so did not carry the request out, or may be asked again for something that only reads.
_TRY_AGAIN: Final = frozenset({429, 502, 503, 504})
_FIRST_WAIT: Final = 0.2  # seconds; doubled each time
# These come before a connection is there to write to.
_BEFORE: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


@dataclass(slots=True)
class _Attempt:
    """One attempt: whether its first byte may have left."""

    began: bool = False

    async def trace(self, event: str, info: dict[str, Any]) -> None:
        """What the connection pool tells of its steps; a CONNECT is for the proxy alone."""
        if event.endswith("send_request_headers.started") and info["request"].method != b"CONNECT":
            self.began = True


@dataclass(frozen=True)
class Sending:
    """One request on its way. `transport` sends it; nothing else knows of connections."""

    transport: httpx2.AsyncBaseTransport
    http: Http
    tool: Tool
    redactor: Redactor
    timeout: dict[str, Any] = field(repr=False)
    keep: Keep | None = None

    async def send(self, request: Prepared) -> ToolResult:
        """What became of the request. A read is tried again, with the same bytes, where that may help."""
        result = await self._once(request)
        for number in range(self.http.retries if self._may_repeat else 0):
            wait = self._wait_before(result, number)
            if wait is None:
                break
            await asyncio.sleep(wait)
            result = await self._once(request)
        return result

    @property
    def _may_repeat(self) -> bool:
        return self.tool.endpoint.is_read and not self.tool.is_destructive

    def _wait_before(self, result: ToolResult, number: int) -> float | None:
        """The seconds to wait before trying again; None: that is the answer."""
        if result.sent is Sent.answered and result.status not in _TRY_AGAIN:
            return None
        wait = result.retry_after if result.retry_after is not None else _FIRST_WAIT * 2**number
        return wait if wait <= self.http.max_retry_after else None

    async def _once(self, request: Prepared) -> ToolResult:
        attempt = _Attempt()
        request.extensions = {"timeout": self.timeout, "trace": attempt.trace}
        deadline = asyncio.get_running_loop().time() + self.http.total
        before = isinstance(self.transport, CheckedTransport)  # which tells when the first byte leaves
        try:
            async with asyncio.timeout_at(deadline):
                response = await self.transport.handle_async_request(request)
        except TimeoutError:
            reason = f"no answer within {self.http.total:g} seconds"
        except ToolgenError:
            raise
        except httpx2.HTTPError as error:
            reason = self._words(error)
            before = before or isinstance(error, _BEFORE)
        except Exception as error:  # noqa: BLE001 - whatever a transport raises, the request may be out
            reason = type(error).__name__
        else:
            return await read_answer(response, self.tool, self.http, self.redactor, deadline=deadline, keep=self.keep)
        return self._unanswered(reason, before=before and not attempt.began)

    def _unanswered(self, reason: str, *, before: bool) -> ToolResult:
        if before:
            return ToolResult(False, Sent.not_sent, message=f"nothing was sent: {reason}")
        told = "" if self._may_repeat else "; it may have been carried out: find out before doing it again"
        return ToolResult(False, Sent.unknown, message=f"it was sent, and there is no answer: {reason}{told}")

    def _words(self, error: Exception) -> str:
        """`connect timeout: ...`; what a library quotes may be a secret."""
        name = type(error).__name__
        kind = "".join(" " + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))
        return f"{kind}: {self.redactor.text(str(error))}" if str(error) else kind
