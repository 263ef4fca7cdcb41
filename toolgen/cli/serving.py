"""The life of `toolgen serve`: the store, the runtime and the server behind it, files that are watched, the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolgen.cli.output import count, in_line, write
from toolgen.cli.reloading import Files, Stamp, tell
from toolgen.cli.stores import opened
from toolgen.identity.caller import Caller

if TYPE_CHECKING:
    from toolgen.adapters.mcp_server import McpServer
    from toolgen.approvals.model import Decider
    from toolgen.approvals.store import Store
    from toolgen.cli.listening import Listening
    from toolgen.dispatch.http import Dispatcher
    from toolgen.policy.config import ApprovalConfig
    from toolgen.runtime.core import Runtime

_FINISH: Final = 10.0  # seconds that requests have when the server ends
_LOOK: Final = 0.05


@dataclass(frozen=True, slots=True)
class Offering:
    """What clients are offered, as the options say."""

    review_url: str | None
    lazy: bool
    output_schemas: bool
    list_pending: bool
    elicit: bool


@dataclass
class Serving:
    """One run of `toolgen serve`. `toolsets` are files with their APIs; `stamps` those of all that are watched."""

    dispatchers: list[Dispatcher]
    config: ApprovalConfig | None
    toolsets: Mapping[Path, str]
    stamps: Mapping[Path, Stamp]
    who: Decider
    offering: Offering

    def run(self, store: str | None, key_file: str | None, http: Listening | None) -> None:
        """Serve over stdio, or HTTP, until the client or a signal ends it.

        Raises KeyboardInterrupt for SIGINT, once all is closed, and ToolgenError for what keeps it from starting.
        """
        with _logs_in_lines(), opened(store, key_file, make=True) as kept:
            interrupted = asyncio.run(self._main(kept, http))
        if interrupted:
            raise KeyboardInterrupt

    async def _main(self, store: Store, http: Listening | None) -> bool:
        """Whether it was SIGINT that ended it."""
        from toolgen.runtime.core import Runtime

        stop, over = asyncio.Event(), asyncio.Event()
        async with Runtime(self.dispatchers, self.config, store=store) as runtime:
            server = self._server(runtime)
            files = Files(runtime, self.toolsets, self.stamps, server.tools_changed)
            calls = Calls(server)
            with _signals(stop) as got:
                tasks = [asyncio.create_task(files.watch()), asyncio.create_task(calls.end(stop, over))]
                try:
                    await self._serve(server, http, over)
                finally:
                    for task in tasks:
                        task.cancel()
        return signal.SIGINT in got

    def _server(self, runtime: Runtime) -> McpServer:
        from toolgen.adapters.mcp_server import McpServer

        offered = self.offering
        apis = list(self.toolsets.values())
        return McpServer(
            runtime,
            name=apis[0] if len(apis) == 1 else "toolgen",
            review_url=offered.review_url,
            output_schemas=offered.output_schemas,
            lazy=offered.lazy,
            list_pending=offered.list_pending,
            elicit=offered.elicit,
        )

    async def _serve(self, server: McpServer, http: Listening | None, stop: asyncio.Event) -> None:
        if http is not None:
            await http.serve(server, self.who, stop)
            return
        from toolgen.adapters.mcp_server import run_stdio
        from toolgen.cli.standard_input import ended_by

        tools = sum(len(source.toolset.tools) for one in self.dispatchers for source in one.upstreams.values())
        write(f"serving  {count(tools, 'tool')} over stdio, for {self.who.subject}\n", sys.stderr)
        with ended_by(stop):
            await run_stdio(server, caller=Caller(self.who.subject, tenant=self.who.tenant))


class Calls:
    """The calls that a server works on; a client that listens for changes is none."""

    def __init__(self, server: McpServer) -> None:
        self._count = 0
        server.protocol.middleware.append(self._around)

    async def _around(self, ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        self._count += 1
        try:
            return await call_next(ctx)
        finally:
            self._count -= 1

    async def end(self, stop: asyncio.Event, over: asyncio.Event) -> None:
        """Once `stop` is set, wait until there are none and what they answered is written; ten seconds at most."""
        await stop.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FINISH):
                while self._count:
                    await asyncio.sleep(_LOOK)
                await asyncio.sleep(_LOOK)
        over.set()


class _Lines(logging.Formatter):
    """One line for each record; of an error only its kind, for its text and the code around it may hold anything."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[0] if record.exc_info else None
        kind = f" ({error.__name__})" if error is not None else ""
        return f"{record.levelname.lower()}: {in_line(record.getMessage())}{kind}"


@contextlib.contextmanager
def _logs_in_lines() -> Iterator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[set[int]]:
    """The signals that came meanwhile, each of which sets `stop`; a second one of its kind ends the process."""
    loop, got = asyncio.get_running_loop(), set[int]()

    def note(number: signal.Signals) -> None:
        got.add(number)
        stop.set()
        loop.remove_signal_handler(number)
        tell("ending   what is under way is finished first\n")

    handled = (signal.SIGINT, signal.SIGTERM)
    with contextlib.suppress(NotImplementedError):  # Windows: an interrupt ends it as it ends all commands
        for number in handled:
            loop.add_signal_handler(number, note, number)
    yield got
    with contextlib.suppress(NotImplementedError):
        for number in handled:
            loop.remove_signal_handler(number)
