"""Work that blocks, such as a transaction, in a thread: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(do: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """What a function returns, run in a thread.

    A thread cannot be interrupted. So whoever is cancelled here is cancelled once the function is over: no
    transaction goes on behind the back of one that was given up, or of a store that is closed next.
    """
    work = asyncio.ensure_future(asyncio.to_thread(do, *arguments, **named))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not work.cancelled():
            work.exception()  # seen: it is told to nobody
        raise cancelled
    return work.result()


async def finished(work: Awaitable[T], seen: Callable[[T], None]) -> T:
    """What some work in a thread gives. `seen` is given it too, even where whoever waits is cancelled meanwhile."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})  # the thread goes on: what it did is known when it is done
        raise
    finally:
        if doing.done() and not doing.cancelled() and doing.exception() is None:
            seen(doing.result())
