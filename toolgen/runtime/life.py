"""What lives with a runtime and those layered on it: background tasks, waiters, connections."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from toolgen.approvals.binding import gating_digest
from toolgen.approvals.model import Pause
from toolgen.runtime.leases import Leases
from toolgen.runtime.sources import ApiSource
from toolgen.runtime.threads import in_thread
from toolgen.runtime.waiting import Waiters

if TYPE_CHECKING:
    from toolgen.approvals.heads import Heads
    from toolgen.approvals.store import Store
    from toolgen.dispatch.webhook import Webhook
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.notices import Notices

EVERY: Final = 1.0  # seconds
_log = logging.getLogger("toolgen.approvals")


class Life:
    """Shared by a runtime and those layered on it.

    `remind` is how long before its due time a pause is told of again, `retention` how long a pause is kept
    after it ended; None: never, for ever. `owns_store`: the store was opened here, and is closed here.
    """

    def __init__(
        self,
        root: Runtime,
        *,
        background: bool,
        remind: timedelta | None,
        retention: timedelta | None,
        heads: Heads | None,
        notices: Notices | None,
        owns_store: bool,
    ) -> None:
        self.root = root
        self.remind = remind
        self.retention = retention
        self.heads = heads
        self.notices = notices
        self.waiters = Waiters(root.store)
        self.leases = Leases(root)
        self.worked: tuple[float, str] | None = None  # up to where a worker has looked at what is approved
        self.expired: datetime | None = None  # the last time what is too old was erased
        self._background = background
        self._owns_store = owns_store
        self._runtimes: weakref.WeakSet[Runtime] = weakref.WeakSet([root])
        self._entered: dict[asyncio.AbstractEventLoop, int] = {}
        self._tasks: dict[asyncio.AbstractEventLoop, list[asyncio.Task[None]]] = {}

    def joined(self, runtime: Runtime) -> None:
        """A runtime that is layered on another."""
        self._runtimes.add(runtime)

    def owner(self, pause: Pause) -> Runtime | None:
        """The runtime whose config a pause was made by: no other may run or approve its calls by itself."""
        return next((one for one in list(self._runtimes) if gating_digest(one.gate) == pause.gating_digest), None)

    def enter(self) -> None:
        """Begin in the running event loop; the first one to enter starts what runs in the background."""
        loop = asyncio.get_running_loop()
        self._entered[loop] = self._entered.get(loop, 0) + 1
        if self._background and loop not in self._tasks:
            work = [_forever("sweep", self._sweep)]
            if self.notices is not None:
                work.append(_forever("webhook", self.notices.deliver))
            self._tasks[loop] = [asyncio.create_task(one) for one in work]

    async def leave(self) -> None:
        """End in the running event loop; the last one to leave closes."""
        loop = asyncio.get_running_loop()
        self._entered[loop] = self._entered.get(loop, 1) - 1
        if self._entered[loop] <= 0:
            await self.aclose()

    async def aclose(self) -> None:
        """Stop what runs in the background, and close what belongs to the running event loop."""
        loop = asyncio.get_running_loop()
        self._entered.pop(loop, None)
        for task in self._tasks.pop(loop, []):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        if self.notices is not None:
            await self.notices.aclose()
        for one in self.root.known:
            if isinstance(one, ApiSource):
                await one.dispatcher.aclose()
            elif one.remote is not None:
                await one.remote.aclose()
        # What is in memory is gone with its connection; it goes with the runtime.
        if self._owns_store and not self._entered and not self.root.store.database.in_memory:
            await in_thread(self.leases.wait)
            await in_thread(self.root.store.close)

    async def _sweep(self) -> int:
        from toolgen.runtime.sweep import sweep

        return await sweep(self.root)


async def _forever(name: str, work: Callable[[], Awaitable[int]]) -> None:
    """Do something again and again; what fails now may go well later."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - nothing may end this; an error of a database may quote values
            _log.warning("the %s failed: %s", name, type(error).__name__)
        await asyncio.sleep(EVERY)


def notices_of(store: Store, webhook: Webhook | str | None, previews: bool) -> Notices | None:
    """The messages of the webhook a host names, if it names one. Raises like Webhook."""
    from toolgen.dispatch.webhook import Webhook
    from toolgen.runtime.notices import Notices

    if webhook is None:
        return None
    found = Webhook(webhook) if isinstance(webhook, str) else webhook
    return Notices(store, replace(found, previews=True) if previews else found)
