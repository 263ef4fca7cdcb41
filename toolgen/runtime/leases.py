"""Leases: how long a claim holds, and that those of calls which are being carried out here go on holding.

A call whose lease is over is taken for one whose process is gone. So a thread renews the leases of what runs:
a function may keep the event loop busy for longer than any lease.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from toolgen.approvals.store import JournalKey

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime

LEASE: Final = timedelta(minutes=5)  # how long a claim holds, beside the longest time an API has for an answer
RENEWED: Final = 60.0  # seconds between renewals
_log = logging.getLogger("toolgen.approvals")


class Held(NamedTuple):
    """A call that is being carried out here, and the pause it is of."""

    key: JournalKey
    pause: str | None = None


class Leases:
    """The calls that this process is carrying out, for a runtime and those layered on it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._held: Counter[Held] = Counter()  # of two that try to run one call, one ends at once
        self._over: threading.Event | None = None  # of the thread, while there is something to renew
        self._thread: threading.Thread | None = None

    @contextmanager
    def held(self, call: Held) -> Iterator[None]:
        """Renew the lease of a call, once it is claimed, for as long as the block runs."""
        with self._lock:
            self._held[call] += 1
            if self._over is None:
                self._over = threading.Event()
                name, given = "toolgen-leases", (self._over,)
                self._thread = threading.Thread(target=self._forever, args=given, name=name, daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held -= Counter([call])
                if not self._held and self._over is not None:
                    self._over.set()
                    self._over = None

    def wait(self) -> None:
        """Until no renewal is under way, where nothing is held any more: then the store can be closed."""
        if self._over is None and self._thread is not None:
            self._thread.join()

    def renew(self) -> None:
        """Have all that is held hold for a whole lease from now."""
        with self._lock:
            held = list(self._held)
        for call in held:
            store = self._runtime.store
            try:
                store.renew(call.key, call.pause, worker=self._runtime.worker, lease=self._runtime.lease())
            except Exception as error:  # noqa: BLE001 - it is tried again well before the lease is over
                _log.warning("the lease of a running call could not be renewed: %s", type(error).__name__)

    def _forever(self, over: threading.Event) -> None:
        while not over.wait(RENEWED):
            self.renew()
