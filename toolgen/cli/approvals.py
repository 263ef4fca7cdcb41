"""`toolgen approvals`: what waits for a person, and what people do about it."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgen.cli import approvals_decided as decided
from toolgen.cli import approvals_kept as kept
from toolgen.cli import approvals_swept as swept
from toolgen.cli.command import Command, FormatOption, group
from toolgen.cli.output import Format, print_json, rest, to_line, write
from toolgen.cli.stores import IdArgument, KeyOption, StoreOption, desk
from toolgen.cli.who import TenantOption, WhoOption

if TYPE_CHECKING:
    from toolgen.approvals.store import Store

SHORT_HELP = "List, show and decide what waits for a person."
HELP = """\b
Example: toolgen approvals list
         toolgen approvals show 3f2a91c0
         toolgen approvals approve 3f2a91c0 --note 'only this once'

What waits for a person: look at it and decide. Deciding never runs anything: what was approved runs when its
requester resumes it. An ID may be cut to what tells it apart, 4 characters at least. Whoever can write the store
can decide; the decider is the user of this shell, by login name, without roles, or whom the authenticator of
toolgen.yaml (module:function, which gives a toolgen.Decider) says.

\b
Exit codes: 0 fine, 1 refused: not allowed, no such pause, decided already,
            not valid; 2 wrong usage
`toolgen approvals COMMAND --help` says more.
"""
LIST_HELP = """\b
Example: toolgen approvals list
         toolgen approvals list --status all --requester ada --limit 20
         toolgen approvals list --follow

List pauses, the newest first. --follow goes on and prints a line for each pause that is new or changes, until it is
interrupted.

\b
Exit codes: 0 listed, 1 problems with the store, 2 wrong usage
"""
SHOW_HELP = """\b
Example: toolgen approvals show 3f2a91c0

Show a pause: who asks, until when, by which rule each call waits, and the request that each would send, redacted.

\b
Exit codes: 0 shown, 1 no such pause or problems with the store,
            2 wrong usage
"""
EVERY: Final = 1.0  # seconds between looks at the store
_FOLLOWED: Final = 1_000  # pauses that are watched

app = group("approvals", HELP)


class Status(StrEnum):
    """Which pauses are listed."""

    waiting = "waiting"  # some call waits for a decision
    open = "open"  # or was approved and did not run yet
    all = "all"


@app.command("list", cls=Command, help=LIST_HELP, short_help="List what waits.")
def list_(
    status: Annotated[
        Status,
        typer.Option(
            "--status",
            metavar="waiting|open|all",
            help="Which pauses: open ones wait, or were approved and did not run.",
        ),
    ] = Status.waiting,
    requester: Annotated[
        str | None, typer.Option("--requester", metavar="NAME", help="Only what they asked for. Default: all.")
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="NAME", help="Only of this conversation. Default: all.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", help="Go on, and print what is new or changes.")] = False,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """List pauses."""
    given: dict[str, Any] = {"requester": requester, "thread": thread, **_STATUS[status]}
    with desk(store, key_file, config, tenant) as here:
        found, whose = here.store, here.who.tenant
        if follow:
            _follow(found, whose, given, format_)
        if format_ is Format.json:
            pauses = found.pauses(whose, **given, limit=limit)
            print_json({"pauses": [pause.to_dict() for pause in pauses]}, sys.stdout)
        elif listed := found.listed(whose, **given, limit=limit):
            from toolgen.cli.approvals_shown import print_list

            print_list(listed, found.clock())
        else:
            write("nothing waits\n" if status is Status.waiting else "there is nothing\n", sys.stdout)


_STATUS: Final[dict[Status, dict[str, bool]]] = {
    Status.waiting: {"waiting": True},
    Status.open: {"is_open": True},
    Status.all: {},
}


def _follow(store: Store, tenant: str, given: dict[str, Any], format_: Format) -> None:
    """Print each pause that is new or has changed, for ever."""
    from toolgen.cli.approvals_shown import print_line

    known: dict[str, int] = {}
    while True:
        now = {pause.id: pause for pause in store.listed(tenant, **given, limit=_FOLLOWED)}
        gone = [pause for one in known if one not in now for pause in store.listed(tenant, prefix=one, limit=1)]
        for pause in sorted([*now.values(), *gone], key=lambda one: one.created):
            if known.get(pause.id) == pause.revision:
                continue
            if format_ is Format.json:
                write(to_line(store.pause(pause.id, tenant).to_dict()), sys.stdout)
            else:
                print_line(pause)
        known = {pause.id: pause.revision for pause in now.values()}
        rest(EVERY, sys.stdout)


@app.command("show", cls=Command, help=SHOW_HELP, short_help="Show a pause and what it would send.")
def show(
    id: IdArgument,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Show a pause."""
    with desk(store, key_file, config, tenant) as here:
        pause = here.pause(id)
        if format_ is Format.json:
            print_json(pause.to_dict(), sys.stdout)
        else:
            from toolgen.cli.approvals_shown import print_pause

            print_pause(pause, here.store.clock())


for _name, _function, _help, _short in (*decided.COMMANDS, *kept.COMMANDS, *swept.COMMANDS):
    app.command(_name, cls=Command, help=_help, short_help=_short)(_function)
