"""Waiting for pauses to change: PostgreSQL says so (LISTEN, NOTIFY), everything else is looked at now and then.

Whoever waits is registered before looking, so that no change gets lost between. What is told wakes at once,
what happened in another process within a quarter of a second where nobody tells.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.model import Pause
from toolgen.approvals.states import CallState
from toolgen.approvals.store import CHANNEL
from toolgen.errors import PauseConflict

if TYPE_CHECKING:
    from toolgen.approvals.store import Store
    from toolgen.identity.caller import Caller
    from toolgen.result import ToolResult
    from toolgen.runtime.core import Runtime

LOOK_EVERY: Final = 0.25  # seconds, where nobody tells
LISTENING: Final = 10.0  # seconds between looks where the database tells: a message may be lost with a connection
_AGAIN: Final = 1.0  # seconds until a lost connection is made anew
_log = logging.getLogger("toolgen.approvals")


class Watch:
    """One waiter of one pause, in one event loop."""

    def __init__(self, waiters: Waiters) -> None:
        self._waiters = waiters
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def look(self) -> None:
        """What is told from here on counts as news; call it right before looking."""
        self._event.clear()

    async def changed(self) -> None:
        """Until the pause may have changed since `look`."""
        listener = self._waiters.listeners.get(self._loop)
        every = LISTENING if listener is not None and listener.is_up else LOOK_EVERY
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await self._event.wait()

    def wake(self) -> None:
        """Tell the waiter, from whatever thread."""
        with suppress(RuntimeError):  # its loop has ended, and the waiter with it
            self._loop.call_soon_threadsafe(self._event.set)


class Waiters:
    """Everybody who waits for a pause of one store in this process; one connection listens for all of a loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._watches: dict[str, set[Watch]] = {}
        self.listeners: dict[asyncio.AbstractEventLoop, Listener] = {}

    @asynccontextmanager
    async def watching(self, pause_id: str) -> AsyncIterator[Watch]:
        """A watch on a pause for as long as the block runs."""
        watch = Watch(self)
        loop = asyncio.get_running_loop()
        with self._lock:
            self._watches.setdefault(pause_id, set()).add(watch)
        listener = None
        if not self._store.database.is_sqlite:
            listener = self.listeners.get(loop) or self.listeners.setdefault(loop, Listener(self, self._store))
            listener.users += 1
        try:
            yield watch
        finally:
            with self._lock:
                self._watches[pause_id].discard(watch)
                if not self._watches[pause_id]:
                    del self._watches[pause_id]
            if listener is not None:
                listener.users -= 1
                if not listener.users:
                    self.listeners.pop(loop, None)
                    await listener.aclose()

    def wake(self, pause_id: str | None = None) -> None:
        """Tell whoever waits for a pause, or everybody."""
        with self._lock:
            some = self._watches.values() if pause_id is None else [self._watches.get(pause_id, set())]
            found = [watch for watches in some for watch in watches]
        for watch in found:
            watch.wake()

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._watches.values()))


class Listener:
    """One connection to PostgreSQL that hears of changes; while it is not up, waiters look themselves."""

    def __init__(self, waiters: Waiters, store: Store) -> None:
        self.users = 0
        self.is_up = False
        self._waiters = waiters
        self._store = store
        self._task = asyncio.create_task(self._forever())

    async def aclose(self) -> None:
        """Close the connection."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _forever(self) -> None:
        while True:
            try:
                await self._listen()
            except Exception as error:  # noqa: BLE001 - whatever it is, waiters look themselves meanwhile
                _log.debug("listening for changes failed: %s", type(error).__name__)
            finally:
                self.is_up = False
            self._waiters.wake()
            await asyncio.sleep(_AGAIN)

    async def _listen(self) -> None:
        from psycopg import AsyncConnection

        engine = self._store.database.engine
        positional, named = engine.dialect.create_connect_args(engine.url)
        options: dict[str, Any] = {**named, "autocommit": True}
        async with await AsyncConnection.connect(*positional, **options) as connection:
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            self.is_up = True
            self._waiters.wake()  # what changed before is not told
            async for notice in connection.notifies():
                self._waiters.wake(notice.payload)


async def settled(runtime: Runtime, pause_id: str, tenant: str) -> Pause:
    """The pause once nothing of it waits, and nobody is running its calls. Raises PauseUnknown."""
    async with runtime.life.waiters.watching(pause_id) as watch:
        while True:
            watch.look()
            pause = await runtime.in_store(runtime.store.pause, pause_id, tenant)
            now = runtime.store.clock()
            held = (
                call.lease is None or call.lease >= now for call in pause.calls if call.state is CallState.executing
            )
            if not pause.waiting and not any(held):
                return pause
            await watch.changed()


async def waited(
    runtime: Runtime, pause_id: str, caller: Caller | None, timeout: float | None
) -> Mapping[str, ToolResult]:
    """The results of a pause once every call has its verdict. Raises TimeoutError, and what `resume` raises."""
    deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
    while True:
        async with asyncio.timeout_at(deadline):
            pause = await settled(runtime, pause_id, runtime.tenant_of(caller))
        try:
            return await runtime.resume(pause_id, caller=caller)
        except PauseConflict:
            now = await runtime.in_store(runtime.store.pause, pause_id, runtime.tenant_of(caller))
            if now.revision == pause.revision:
                raise  # nobody else was faster: it is something that waiting does not change
