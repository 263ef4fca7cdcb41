"""An event loop in a thread of its own, for plain code: connections stay open between calls."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Runs coroutines for plain code, also for plain code that an event loop called.

    The thread starts with the first call and ends with `close`. A forked process gets a thread of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result; interrupted, it is cancelled first."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, closing: Callable[[asyncio.AbstractEventLoop], Awaitable[None]]) -> None:
        """End the thread, after `closing` has closed in it what belongs to its loop."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._process != os.getpid() or not thread.is_alive():
            return

        async def last() -> None:
            await closing(loop)
            loop.call_soon(loop.stop)

        asyncio.run_coroutine_threadsafe(last(), loop)
        if threading.current_thread() is not thread:
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="toolgen", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
