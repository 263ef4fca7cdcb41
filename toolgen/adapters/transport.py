"""The gate under any HTTP client: requests of generated code, of an SDK, of code that a model wrote.

    async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=ada)) as client:
        await client.delete("https://petstore.example/v1/pets/7")  # raises ApprovalPending

A request is matched back to an operation of the runtime's APIs, classified like a call of its tool, and sent by the
runtime, held, or refused. One that waits is neither kept nor sent again by anybody: made again once it was approved,
the very same request goes out, once. Credentials of the program's are dropped, and the runtime's own are added.

httpx2 and httpx, plain and async. An answer is read whole before it is handed on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from toolgen.adapters.answers import answer
from toolgen.approvals.model import Pause
from toolgen.errors import ApprovalPending, ArgumentsError, CallRefused, RequestError
from toolgen.identity.caller import Caller, current_caller
from toolgen.request.match import match
from toolgen.request.raw import RawRequest, resolved, undeclared
from toolgen.result import Refused, Sent, ToolResult
from toolgen.runtime.passing import Passed, RawWork, pass_on
from toolgen.runtime.sources import ApiSource
from toolgen.runtime.waiting import settled

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime

LARGEST_BODY: Final = 16_000_000  # bytes of a request


class GatedTransport:
    """A transport for httpx2 and httpx clients that sends nothing by itself.

    `caller` is who the requests are for, else the one bound (`bind_caller`). `inner` stands in for the connections
    of the runtime: what is sent goes through it, and no address is checked then. With `wait` (seconds, or True for as
    long as it takes) a request that waits for a person blocks until they decided, instead of raising.

    Raises ApprovalPending, and CallRefused for a request that was not sent or of which nothing is known.
    """

    def __init__(
        self,
        runtime: Runtime,
        inner: Any = None,
        *,
        caller: Caller | None = None,
        wait: float | bool = False,
    ) -> None:
        self._runtime, self._inner, self._caller, self._wait = runtime, inner, caller, wait

    # What clients call

    async def handle_async_request(self, request: Any) -> Any:
        """The answer to a request, as the client's own library has it."""
        raw = RawRequest(request.method, str(request.url), _headers(request), await _read(request))
        return _response(request, await self._passed(raw, self._caller or current_caller()))

    def handle_request(self, request: Any) -> Any:
        """The same for plain clients."""
        raw = RawRequest(request.method, str(request.url), _headers(request), _read_plain(request))
        caller = self._caller or current_caller()
        return _response(request, self._runtime.sync.run(self._passed(raw, caller)))

    async def aclose(self) -> None:
        """Nothing: connections are the runtime's."""

    def close(self) -> None:
        """Nothing: connections are the runtime's."""

    async def __aenter__(self) -> GatedTransport:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def __enter__(self) -> GatedTransport:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    # What becomes of a request

    async def _passed(self, raw: RawRequest, caller: Caller | None) -> Any:
        """The whole answer. Raises ApprovalPending and CallRefused."""
        passed = await self._once(raw, caller)
        while passed.pause is not None:
            if self._wait is False:
                raise _pending(passed.pause)
            await self._decided(passed.pause, caller)
            passed = await self._once(raw, caller)
        if passed.answer is not None and passed.answer.is_whole:
            return passed.answer
        result = passed.result or ToolResult(False, Sent.unknown, message="nothing is known of the request")
        if passed.answer is not None:
            raise CallRefused("an answer came and could not be read whole", result)
        raise CallRefused(answer(result).text, result)

    async def _once(self, raw: RawRequest, caller: Caller | None) -> Passed:
        sources = [one for one in self._runtime.known if isinstance(one, ApiSource)]
        try:
            found = match([each for one in _dispatchers(sources) for each in one.operations()], raw.method, raw.url)
            owner = next(one for one in sources if one.name == found.api)
            stands_for = undeclared(found, raw.method) if found.tool is None else None
            tool = found.tool if stands_for is None else stands_for.tools[0]
            assert tool is not None
            request = resolved(raw, found, tool, owner.toolset.security_schemes)
        except ArgumentsError as error:
            problems = tuple(problem.to_dict() for problem in error.problems)
            return Passed(result=ToolResult(False, Sent.not_sent, message=str(error), problems=problems))
        except RequestError as error:
            return Passed(result=ToolResult(False, Sent.not_sent, message=error.message, refused=Refused.denied))
        work = RawWork(owner.dispatcher, request, transport=self._inner)
        return await pass_on(self._runtime, work, caller, stands_for)

    async def _decided(self, pause: Pause, caller: Caller | None) -> None:
        """Until nothing of the pause waits. Raises ApprovalPending when the time to wait is over."""
        seconds = None if self._wait is True else float(self._wait)
        try:
            async with asyncio.timeout(seconds):
                await settled(self._runtime, pause.id, self._runtime.tenant_of(caller))
        except TimeoutError:
            raise _pending(pause) from None


def _pending(pause: Pause) -> ApprovalPending:
    said = (
        f"the request waits for a person: {pause.reason}; nothing was sent. Make it again once {pause.id} is approved"
    )
    return ApprovalPending(said, pause)


def _dispatchers(sources: Iterable[ApiSource]) -> Iterator[Any]:
    """Each dispatcher once, whose toolsets may be several sources."""
    seen: list[Any] = []
    for one in sources:
        if not any(one.dispatcher is other for other in seen):
            seen.append(one.dispatcher)
            yield one.dispatcher


def _headers(request: Any) -> tuple[tuple[str, str], ...]:
    return tuple(request.headers.multi_items())


async def _read(request: Any) -> bytes:
    stream = request.stream
    return _capped([piece async for piece in stream] if isinstance(stream, AsyncIterable) else list(stream))


def _read_plain(request: Any) -> bytes:
    return _capped(request.stream)


def _capped(pieces: Iterable[bytes]) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > LARGEST_BODY:
            said = f"the body of a request is at most {LARGEST_BODY:,} bytes; nothing was sent"
            raise CallRefused(said, ToolResult(False, Sent.not_sent, message=said, refused=Refused.denied))
    return bytes(body)


def _response(request: Any, whole: Any) -> Any:
    """The answer as a Response of the library whose client asked."""
    library = sys.modules[type(request).__module__.partition(".")[0]]
    headers = list(whole.headers)
    if request.method != "HEAD" and whole.status not in (204, 304):  # there it is of a body that is not sent
        headers.append(("Content-Length", str(len(whole.content))))
    return library.Response(whole.status, headers=headers, content=whole.content, request=request)
