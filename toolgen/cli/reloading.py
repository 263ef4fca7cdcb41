"""Files that are watched while they are served: a toolset that changes is taken, one that cannot be read is not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolgen.cli.output import count, visible, write
from toolgen.errors import ToolgenError, ToolsetError

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime
    from toolgen.tools.model import Toolset

_EVERY: Final = 0.25  # seconds between looks at the files
Stamp = tuple[int, int, int] | None


class Files:
    """Toolset files by path with the API of each, and files that count from the next start only.

    `stamps` are of all of them, taken before they were read: what changed while the server started is seen, too.
    `changed` is awaited when a toolset was taken. What happens is told on stderr.
    """

    def __init__(
        self,
        runtime: Runtime,
        toolsets: Mapping[Path, str],
        stamps: Mapping[Path, Stamp],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._runtime = runtime
        self._apis = toolsets
        self._changed = changed
        self._stamps = dict(stamps)

    async def watch(self) -> None:
        """Look at the files until it is cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            for path, before in list(self._stamps.items()):
                now = stamp(path)
                if now != before:
                    self._stamps[path] = now
                    await self._look(path)

    async def _look(self, path: Path) -> None:
        if path not in self._apis:
            tell(f"note: {path} has changed: it counts from the next start\n")
            return
        try:
            toolset = await asyncio.to_thread(self._read, path)
            void = await self._runtime.reload(toolset)
        except Exception as error:  # noqa: BLE001 - nothing may end the watching
            told = visible(str(error)) if isinstance(error, ToolgenError | OSError) else type(error).__name__
            tell(f"error: {told}\nnote: {path} was not taken; the old tools stay\n")
            return
        said = f"; {count(len(void), 'pause')} void" if void else ""
        tell(f"note: {path} was read again: {count(len(toolset.tools), 'tool')}{said}\n")
        await self._changed()

    def _read(self, path: Path) -> Toolset:
        from toolgen.tools.files import load_toolset

        found = load_toolset(path)
        if found.api != self._apis[path]:
            raise ToolsetError(f"{path} is of the API {found.api!r} now, and was of {self._apis[path]!r}")
        return found


def tell(text: str) -> None:
    """Say something on stderr; where nobody reads it any more, the server goes on."""
    with suppress(OSError):
        write(text, sys.stderr)


def stamp(path: Path) -> Stamp:
    """What tells one state of a file from another; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
