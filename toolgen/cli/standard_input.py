"""Standard input that this process can end itself, as if whoever writes to it had closed it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import Iterator
from threading import Thread
from typing import Final

_CHUNK: Final = 65536


@contextlib.contextmanager
def ended_by(stop: asyncio.Event) -> Iterator[None]:
    """Until the end, descriptor 0 is a pipe that a thread fills from what it was, and closes when `stop` is set.

    A thread that reads cannot be interrupted, and what reads standard input is one: it has to see an end. Windows
    has no signal that would set `stop`, and keeps its input.
    """
    if sys.platform == "win32":
        yield
        return
    given, (pipe, into), (woken, wake) = os.dup(0), os.pipe(), os.pipe()
    os.dup2(pipe, 0)
    os.close(pipe)
    Thread(target=_fill, args=(given, into, woken), name="standard input", daemon=True).start()
    ends = asyncio.create_task(_ended(stop, wake))
    try:
        yield
    finally:
        ends.cancel()
        os.close(wake)  # which wakes the thread, too
        os.dup2(given, 0)


async def _ended(stop: asyncio.Event, wake: int) -> None:
    await stop.wait()
    os.write(wake, b"x")


def _fill(given: int, into: int, woken: int) -> None:
    """Copy until there is no more, nobody reads, or there is something at `woken`."""
    with contextlib.suppress(OSError):
        while woken not in select.select([given, woken], [], [])[0]:
            chunk = os.read(given, _CHUNK)
            if not chunk:
                break
            while chunk:
                chunk = chunk[os.write(into, chunk) :]
    os.close(into)
