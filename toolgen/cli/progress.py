"""A progress bar for work that takes long, where a person watches."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_AFTER = 0.5  # seconds; what is done by then needs no bar


class Bar:
    """Call it with (done, total). Shows nothing unless stderr is a terminal, and nothing for quick work."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._start = time.monotonic()
        self._shown: tuple[Progress, TaskID] | None = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown[0].stop()

    def __call__(self, done: int, total: int) -> None:
        if not self._watched or (self._shown is None and time.monotonic() - self._start < _AFTER):
            return
        if self._shown is None:
            self._shown = self._begin(total)
        progress, task = self._shown
        progress.update(task, completed=done)

    def _begin(self, total: int) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress

        progress = Progress(console=Console(stderr=True), transient=True)
        task = progress.add_task(escape(self._label), total=total)
        progress.start()
        return progress, task
