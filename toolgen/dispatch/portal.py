"""An event loop in a thread of its own, for plain code: connections stay open between calls."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, Final, TypeVar

from toolgen.errors import UsageError

T = TypeVar("T")
_PATIENCE: Final = 5.0  # seconds until leaving goes on, whatever holds the thread up


class Closed(Exception):
    """The portal was closed while something ran in it."""


class Portal:
    """Runs coroutines for plain code, also for plain code that an event loop called.

    The thread starts with the first call and ends with `close`. A forked process gets a thread of its own.
    """

    def __init__(self) -> None:
        self.forked()
        _portals.add(self)

    def forked(self) -> None:
        """Start anew, in a process that has none of the threads of the one it was forked from."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result; interrupted, it is cancelled first.

        Raises Closed if the portal is closed meanwhile, and UsageError in the portal's own thread.
        """
        begun: list[asyncio.Task[Any]] = []
        given_up = threading.Event()

        async def watched() -> T:
            """Known to `run` before its future is: an interrupt may come in between."""
            task = asyncio.current_task()
            assert task is not None
            begun.append(task)
            if given_up.is_set():
                work.close()
                raise CancelledError
            return await work

        loop = None
        try:
            with self._lock:
                if self._thread is threading.current_thread():
                    raise UsageError("a call from inside a call would wait for itself: use `acall` there")
                loop = self._started()
                future = asyncio.run_coroutine_threadsafe(watched(), loop)
            return future.result()
        except CancelledError:
            raise Closed from None
        except BaseException:
            given_up.set()
            if loop is None:
                work.close()
            for task in begun:
                loop = task.get_loop()
                with suppress(RuntimeError):  # the loop has ended, and its tasks with it
                    loop.call_soon_threadsafe(task.cancel)
            raise

    def close(self) -> None:
        """Cancel what runs, let the loop close what belongs to it, and end the thread. It can be called again."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_PATIENCE)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=_serve, args=(loop,), name="toolgen", daemon=True)
            try:
                thread.start()
            except BaseException:
                loop.close()
                raise
            self._loop, self._thread = loop, thread
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        loop.run_until_complete(_wind_up(loop))
    finally:
        loop.close()


async def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    running = asyncio.all_tasks() - {asyncio.current_task()}
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await loop.shutdown_asyncgens()  # the pools of connections are closed by one
    await asyncio.sleep(0)  # sockets are closed one round later


_portals: weakref.WeakSet[Portal] = weakref.WeakSet()
_abandoned: list[object] = []


def _after_fork() -> None:
    for portal in list(_portals):
        # Kept as it is: closing the copy would take the parent's sockets out of the event queue both share.
        _abandoned.append(portal._loop)
        portal.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
