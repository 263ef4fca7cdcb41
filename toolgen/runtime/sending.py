"""One call carried out: whatever goes wrong with it is a result, and costs no other call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from toolgen.errors import ArgumentsError, DispatchRefused, RequestError, ToolgenError
from toolgen.identity.caller import Caller, bind_caller
from toolgen.result import Refused, Sent, ToolResult
from toolgen.runtime.results import not_valid

if TYPE_CHECKING:
    from toolgen.runtime.sources import Work


async def carried_out(
    work: Work, caller: Caller | None, before: Callable[[], Awaitable[None]], call: str
) -> ToolResult:
    """The result of a call. `before` is awaited right before its first byte may leave; what that raises is raised."""
    started = False
    stopped: BaseException | None = None

    async def starting() -> None:
        nonlocal started, stopped
        try:
            await before()
        except BaseException as error:
            stopped = error
            raise
        started = True

    try:
        with bind_caller(caller):
            return await work.send(caller, starting, call)
    except (Exception, asyncio.CancelledError) as error:  # a source may raise anything
        if error is stopped or (isinstance(error, asyncio.CancelledError) and _is_cancelled()):
            raise
        return unsent(error) if not started or isinstance(error, RequestError | DispatchRefused) else _unknown(error)


def _is_cancelled() -> bool:
    """Whether somebody cancels this call, rather than what it waits for having been cancelled."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def unsent(error: BaseException) -> ToolResult:
    """The result of a call of which no byte left; of a fault nothing is told that could hold a secret."""
    if isinstance(error, ArgumentsError):
        return not_valid(error)
    said = f"the call could not be made ready ({type(error).__name__}); nothing was sent"
    message = str(error) if isinstance(error, ToolgenError) else said
    return ToolResult(False, Sent.not_sent, message=message, refused=Refused.error)


def _unknown(error: BaseException) -> ToolResult:
    said = f"the call failed unexpectedly ({type(error).__name__}): it may have been carried out; find out first"
    return ToolResult(False, Sent.unknown, message=said, refused=Refused.error)
