"""A call of the command line that may wait for a person: it is kept, waited for, or resumed."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import typer

from toolgen.cli.called import print_result
from toolgen.cli.output import Format, Page, print_json, write
from toolgen.cli.stores import DEFAULT_STORE, SHORT, find_pause, opened, store_url
from toolgen.errors import ToolgenError, UsageError
from toolgen.result import Refused, Sent, ToolResult
from toolgen.runtime.core import Runtime

if TYPE_CHECKING:
    from toolgen.approvals.model import Pause
    from toolgen.approvals.store import Turn
    from toolgen.dispatch.http import Dispatcher
    from toolgen.identity.caller import Caller
    from toolgen.policy.config import ApprovalConfig
    from toolgen.policy.outcomes import ToolCall
    from toolgen.runtime.submit import Submission

WAITS: Final = 3  # the exit code of a call that waits for a person
_EVERY: Final = 1.0  # seconds between looks at the clock
Results = Mapping[str, ToolResult]


@dataclass
class Session:
    """One run of `toolgen call`. `seconds` is how long it waits for a person; None is without end, 0 not at all."""

    dispatcher: Dispatcher
    config: ApprovalConfig | None
    caller: Caller
    toolset: str
    store: str | None
    key_file: str | None
    seconds: float | None
    format_: Format
    paused: Pause | None = None

    def ask(self, asked: ToolCall) -> None:
        """Let the runtime run the call, or keep it; print what became of it. Raises typer.Exit where that is not fine."""
        self._run(self._ask(asked))

    def resume(self, wanted: str, *, given_context: bool) -> None:
        """Run what was approved of a pause. Raises typer.Exit, and what `Runtime.resume` raises."""
        self._run(self._resume(wanted, given_context))

    def _run(self, work: Any) -> None:
        try:
            results = asyncio.run(work)
        except KeyboardInterrupt:
            self._interrupted()
            raise
        if results is None:
            raise typer.Exit(WAITS)
        self._print(results)
        if any(result.refused is Refused.gated for result in results.values()):
            raise typer.Exit(WAITS)
        if not all(result.ok for result in results.values()):
            raise typer.Exit(ToolgenError.exit_code)

    async def _ask(self, asked: ToolCall) -> Results | None:
        async with self.dispatcher:  # which closes its connections
            if store_url(self.store) is None:
                # Nothing is kept of a call that waits for nobody: only a pause is worth a file.
                submitted = await self._submit(Runtime(self.dispatcher, self.config), asked)
                if submitted.pause is None:
                    return submitted.results
            with opened(self.store, self.key_file, make=True) as store:
                runtime = Runtime(self.dispatcher, self.config, store=store)
                submitted = await self._submit(runtime, asked)
                if submitted.pause is None:
                    return submitted.results
                return await self._decided(runtime, submitted.pause)

    async def _submit(self, runtime: Runtime, asked: ToolCall) -> Submission:
        return await runtime.submit([asked], caller=self.caller)

    async def _resume(self, wanted: str, given_context: bool) -> Results | None:
        async with self.dispatcher:
            with opened(self.store, self.key_file) as store:
                runtime = Runtime(self.dispatcher, self.config, store=store)
                pause = find_pause(store, wanted, self.caller.tenant)
                others = {call.source for call in pause.calls} - set(self.dispatcher.upstreams)
                if others:
                    raise UsageError(
                        f"the pause has calls of {', '.join(sorted(others))}, which are not in {self.toolset}"
                    )
                if not given_context:
                    self.caller = replace(self.caller, context=runtime.unpacked(pause).context)
                return await self._decided(runtime, pause)

    async def _decided(self, runtime: Runtime, pause: Pause) -> Results | None:
        """The results of a pause that is decided by now, or while it is waited for; None while it waits."""
        if not pause.waiting:
            self.paused = None
            return await runtime.resume(pause.id, caller=self.caller)
        self.paused = pause
        self._tell(pause)
        if self.seconds == 0:
            return None
        clock = asyncio.create_task(_timed(runtime, pause))
        try:
            return await runtime.wait(pause.id, caller=self.caller, timeout=self.seconds)
        except TimeoutError:
            write("nobody has answered yet; it goes on waiting\n", sys.stderr)
            return None
        finally:
            clock.cancel()

    # Printing

    def _print(self, results: Results) -> None:
        if len(results) == 1:
            print_result(next(iter(results.values())), self.format_)
        elif self.format_ is Format.json:
            print_json({"results": {name: result.to_dict() for name, result in results.items()}}, sys.stdout)
        else:
            for name, result in results.items():
                page = Page(sys.stdout)
                page.line(name, style="bold")
                page.print()
                print_result(result, self.format_)

    def _tell(self, pause: Pause) -> None:
        """What waits, and what is to be done about it."""
        said = "; ".join(f"{call.tool} waits for a person: by {call.reason!r}" for call in pause.waiting)
        if self.format_ is Format.json and self.seconds == 0:
            waits = ToolResult(False, Sent.not_sent, message=f"{said}; nothing was sent", refused=Refused.gated)
            print_json({**waits.to_dict(), "pause": pause.to_dict()}, sys.stdout)
        page = Page(sys.stderr)
        page.line(f"{said}; nothing was sent")
        page.facts(
            [
                ("look", f"toolgen approvals show {self._named(pause)}", ""),
                ("decide", f"toolgen approvals approve {self._named(pause)}   (or reject)", ""),
                ("then", self._resuming(pause) if self.seconds == 0 else "it runs here, at once", ""),
            ]
        )
        page.print()

    def _named(self, pause: Pause) -> str:
        return pause.id[:SHORT] + self._place()

    def _resuming(self, pause: Pause) -> str:
        command = f"toolgen call {shlex.quote(self.toolset)} --resume {pause.id[:SHORT]}{self._place()}"
        return f"{command}   (with the other options of this call)"

    def _place(self) -> str:
        """The option that names the store, where the command that follows needs one; without a password."""
        if self.store is None or self.store == DEFAULT_STORE:
            return ""
        from sqlalchemy.engine import make_url

        return f" --store {shlex.quote(make_url(self.store).render_as_string(hide_password=True))}"

    def _interrupted(self) -> None:
        if self.paused is None:
            write("the request may have been sent, and carried out: find out before doing it again\n", sys.stderr)
        else:
            said = f"the call is kept: `{self._resuming(self.paused)}` runs it, or says what became of it\n"
            write(said, sys.stderr)


async def _timed(runtime: Runtime, pause: Pause) -> None:
    """Let time decide this pause when it is due. Others of the store belong to whoever made them."""
    from toolgen.runtime.deciding import time_is_up

    store = runtime.store

    def fire(found: Pause, turn: Turn) -> Any:
        return time_is_up(runtime, store.clock(), turn.by_time)(found)

    while True:
        with suppress(ToolgenError):  # a store that cannot be reached now may be later
            found = await runtime.in_store(store.pause, pause.id, pause.tenant)
            if found.due is not None and found.due <= store.clock():
                await runtime.in_store(store.change_in_turn, pause.id, pause.tenant, fire)
        await asyncio.sleep(_EVERY)
