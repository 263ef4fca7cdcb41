"""`toolgen approvals extend|cancel|remembered|revoke|purge`: what is kept, and how long."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgen.cli.command import FormatOption
from toolgen.cli.output import Format, Page, print_json, write
from toolgen.cli.stores import SHORTEST, IdArgument, KeyOption, StoreOption, desk, only_one, run
from toolgen.cli.who import TenantOption, WhoOption
from toolgen.errors import ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.approvals.model import Pause

EXTEND_HELP = """\b
Example: toolgen approvals extend 3f2a91c0 PT2H
         toolgen approvals extend 3f2a91c0 never

Move the time at which time decides: so long from now, or never.

\b
Exit codes: 0 moved, 1 no such pause, or nothing of it waits;
            2 wrong usage
"""
CANCEL_HELP = """\b
Example: toolgen approvals cancel 3f2a91c0 --note 'asked for by mistake'

End what waits, or was approved and did not run: it never will.

\b
Exit codes: 0 cancelled, 1 no such pause, or nothing of it can be;
            2 wrong usage
"""
REMEMBERED_HELP = """\b
Example: toolgen approvals remembered
         toolgen approvals remembered --all --requester ada

List the approvals that are remembered: what runs without asking, for whom, how often, until when.

\b
Exit codes: 0 listed, 1 problems with the store, 2 wrong usage
"""
REVOKE_HELP = """\b
Example: toolgen approvals revoke 5d01c2f7

End a remembered approval: the next such call waits for a person again.

\b
Exit codes: 0 revoked, 1 there is none, 2 wrong usage
"""
PURGE_HELP = """\b
Example: toolgen approvals purge --subject ada --yes

Erase what is kept of a person: arguments, previews, results, notes and the details of audit entries. The audit log
still verifies. What waits for this person can be decided no more. There is no way back.

\b
Exit codes: 0 erased, 1 problems with the store, or something is being
            carried out and left; 2 wrong usage, or nobody said --yes
"""


def duration(option: str, text: str) -> timedelta:
    """The length of time an option states. Raises UsageError."""
    from toolgen.policy.durations import meant_duration, read_duration

    try:
        return read_duration(text)
    except ValueError as error:
        meant = meant_duration(text)
        raise UsageError(f"{option}: {error}" + (f"; did you mean {meant}?" if meant else "")) from None


def extend(
    id: IdArgument,
    span: Annotated[str, typer.Argument(metavar="DURATION|never", help="How long from now, as PT2H; or never.")],
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Move the due time of a pause."""
    length = None if span == "never" else duration("DURATION", span)
    with desk(store, key_file, config, tenant) as here:
        until = None if length is None else here.store.clock() + length
        pause, who = here.pause(id), here.who
        after = run(here.runtime.extend(pause.id, until, actor=who.subject, tenant=who.tenant))
        _print(after, here.store.clock(), format_)


def cancel(
    id: IdArgument,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Why. Default: nothing.", show_default=False)
    ] = "",
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Cancel a pause."""
    with desk(store, key_file, config, tenant) as here:
        pause, who = here.pause(id), here.who
        after = run(here.runtime.cancel(pause.id, actor=who.subject, tenant=who.tenant, reason=note))
        _print(after, here.store.clock(), format_)


def remembered(
    requester: Annotated[
        str | None, typer.Option("--requester", metavar="NAME", help="Only theirs. Default: all.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Revoked and used-up ones too.")] = False,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """List remembered approvals."""
    with desk(store, key_file, config, tenant) as here:
        now = here.store.clock()
        found = run(here.runtime.remembered.listed(tenant=here.who.tenant, requester=requester))
        listed = [
            one
            for one in found
            if all_ or (one.revoked is None and one.left != 0 and (one.until is None or one.until > now))
        ]
        if format_ is Format.json:
            print_json({"remembered": [one.to_dict() for one in listed]}, sys.stdout)
        elif listed:
            from toolgen.cli.approvals_shown import print_remembered

            print_remembered(listed, now)
        else:
            write("nothing is remembered\n", sys.stdout)


def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="A remembered approval.")],
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """End a remembered approval."""
    with desk(store, key_file, config, tenant) as here:
        kept, who = here.runtime.remembered, here.who
        known = [one.id for one in run(kept.listed(tenant=who.tenant))]
        begun = [one for one in known if len(id) >= SHORTEST and one.startswith(id)]
        wanted = only_one(id, begun, "remembered approval")
        run(kept.revoke(wanted, actor=who.subject, tenant=who.tenant))
    if format_ is Format.json:
        print_json({"revoked": wanted}, sys.stdout)
    else:
        write(f"revoked {wanted}\n", sys.stdout)


def purge(
    subject: Annotated[str, typer.Option("--subject", metavar="NAME", help="Whose content is erased. No default.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it: there is no way back.")] = False,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Erase what is kept of a person."""
    if not yes:
        raise UsageError("nothing was erased: give --yes to erase what is kept of this person; there is no way back")
    with desk(store, key_file, config, tenant) as here:
        erased = here.store.purge(subject, actor=here.who.subject, tenant=here.who.tenant)
    counts = erased.to_dict()
    if format_ is Format.json:
        print_json({"erased": counts}, sys.stdout)
    else:
        page = Page(sys.stdout)
        page.facts((name, f"{number:,}", "") for name, number in counts.items())
        page.print()
    if erased.left:
        write("error: what is being carried out right now is left: do it again later\n", sys.stderr)
        raise typer.Exit(ToolgenError.exit_code)


def _print(after: Pause, now: datetime, format_: Format) -> None:
    from toolgen.cli.approvals_shown import print_after

    print_after(after, format_, now)


COMMANDS: Final[tuple[tuple[str, Any, str, str], ...]] = (
    ("extend", extend, EXTEND_HELP, "Move the due time of a pause."),
    ("cancel", cancel, CANCEL_HELP, "End a pause without running it."),
    ("remembered", remembered, REMEMBERED_HELP, "List remembered approvals."),
    ("revoke", revoke, REVOKE_HELP, "End a remembered approval."),
    ("purge", purge, PURGE_HELP, "Erase what is kept of a person."),
)
