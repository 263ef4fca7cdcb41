"""`toolgen approvals sweep`: what time does, for hosts that run without a background task."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from toolgen.cli.approvals_kept import duration
from toolgen.cli.command import FormatOption
from toolgen.cli.output import Format, print_json, to_line, visible, write
from toolgen.cli.stores import KeyOption, StoreOption, opened, run
from toolgen.errors import ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.approvals.heads import Heads
    from toolgen.runtime.core import Runtime

SWEEP_HELP = """\b
Example: toolgen approvals sweep --approvals approvals.yaml
         toolgen approvals sweep --every PT10S --webhook '${env:HOOK_URL}'
         toolgen approvals sweep --retention P90D --audit-head head.json

Do what is due: times that are up, approvals that were not used in time, calls whose process died, and what the options
say. For hosts that run without a background task: from a timer, or with --every until it is interrupted. Several may
run at once. Nothing that was approved runs here, and nobody is asked who is here: time acts.

Time approves by --approvals, the config a pause was made under; without it what time would approve is left alone for
five minutes, and then waits for a person. --webhook is told of what happens from its first sweep on; a message that is
not accepted is sent again by a later sweep. --audit-head is for `toolgen audit verify --head`; it is never replaced by
the end of a log that does not go on from it.

What goes wrong with one pause or message keeps nothing else from being done: it is said on stderr, which is what a
timer should pass on, and the exit code is 1. With --every it is said, and tried again, as is a store that cannot be
reached.

\b
Exit codes: 0 done
            1 problems with the store or the config; or a pause could not be
              swept, or the webhook did not accept a message: all else is done
            2 wrong usage
            130 interrupted, which is how --every ends
"""


def sweep(
    approvals: Annotated[
        str | None, typer.Option("--approvals", metavar="CONFIG", help="By which time may approve. Default: none.")
    ] = None,
    every: Annotated[
        str | None, typer.Option("--every", metavar="DURATION", help="Again and again, as PT10S. Default: once.")
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="URL", help="Tell this URL, or that of ${env:NAME}. Default: nobody."),
    ] = None,
    webhook_previews: Annotated[
        bool, typer.Option("--webhook-previews", help="Tell it the redacted requests, too.")
    ] = False,
    remind: Annotated[
        str | None,
        typer.Option("--remind", metavar="DURATION", help="So long before it is due it is told again. Default: never."),
    ] = None,
    retention: Annotated[
        str | None,
        typer.Option("--retention", metavar="DURATION", help="Erase what ended so long ago. Default: nothing."),
    ] = None,
    audit_head: Annotated[
        str | None,
        typer.Option("--audit-head", metavar="FILE", help="Keep the audit log's signed end there. Default: nowhere."),
    ] = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Do what is due."""
    from toolgen.approvals.heads import Heads
    from toolgen.policy.config import ApprovalConfig
    from toolgen.runtime.core import Runtime

    if webhook is None and (webhook_previews or remind is not None):
        raise UsageError("--webhook-previews and --remind are for --webhook")
    config = None if approvals is None else ApprovalConfig.load(approvals)
    pause = None if every is None else duration("--every", every)
    with opened(store, key_file) as found:
        runtime = Runtime(
            [],
            config,
            store=found,
            background=False,
            webhook=None if webhook is None else _url(webhook),
            webhook_previews=webhook_previews,
            remind=None if remind is None else duration("--remind", remind),
            retention=None if retention is None else duration("--retention", retention),
        )
        heads = None if audit_head is None else Heads(found, audit_head)
        with _told() as faults:
            run(_Sweeper(runtime, heads, pause, format_).run())
    if faults:
        raise typer.Exit(ToolgenError.exit_code)


@contextmanager
def _told() -> Iterator[list[str]]:
    """What a sweep warns of goes to stderr, the last of it into this list: it ends no sweep, and is no success."""
    told: list[str] = []

    class Tell(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told[:] = [record.getMessage()]
            with suppress(OSError):  # nobody reads stderr: the exit code says it
                write(f"warning: {visible(told[0])}\n", sys.stderr)

    logger, handler = logging.getLogger("toolgen.approvals"), Tell(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield told
    finally:
        logger.removeHandler(handler)


@dataclass(frozen=True, slots=True)
class _Sweeper:
    runtime: Runtime
    heads: Heads | None
    every: timedelta | None
    format_: Format

    async def run(self) -> None:
        """Sweep once, or for ever; a store or a file that fails ends the first and not the second."""
        import asyncio

        async with self.runtime:
            if self.every is None:
                self._tell(await self._all())
                return
            while True:
                try:
                    if done := await self._all():
                        self._tell(done)
                except ToolgenError as error:
                    write(f"warning: {visible(error.message)}; it is tried again\n", sys.stderr)
                await asyncio.sleep(self.every.total_seconds())

    async def _all(self) -> int:
        """Everything that is due; one sweep does so much and no more."""
        total = 0
        while done := await self.runtime.sweep():
            total += done
        if self.heads is not None:
            await self.runtime.in_store(self.heads.write)
        return total

    def _tell(self, done: int) -> None:
        if self.format_ is Format.text:
            write(f"{done:,} done\n", sys.stdout)
        elif self.every is None:
            print_json({"changed": done}, sys.stdout)
        else:
            write(to_line({"changed": done}), sys.stdout)


def _url(text: str) -> str:
    """The URL, which may hold a secret: where it is a reference, what that stands for."""
    import os
    import re

    match = re.fullmatch(r"\$\{env:([A-Za-z_]\w*)\}", text)
    if match is None:
        if "${" in text:
            raise UsageError("--webhook takes a URL, or ${env:NAME} alone")
        return text
    if not os.environ.get(match[1]):
        raise UsageError(f"--webhook: the environment variable {match[1]} is not set")
    return os.environ[match[1]]


COMMANDS: Final = (("sweep", sweep, SWEEP_HELP, "Do what is due."),)
