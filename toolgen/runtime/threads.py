"""Work that blocks, such as a transaction, in a thread: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
