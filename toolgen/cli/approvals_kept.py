"""`toolgen approvals extend|cancel|remembered|revoke|purge|sweep`: what is kept, and how long."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgen.cli.output import Format, Page, count, print_json, write
from toolgen.cli.stores import (
    SHORTEST,
    KeyOption,
    StoreOption,
    TenantOption,
    deciding,
    find_pause,
    only_one,
    opened,
    run,
    user,
)
from toolgen.errors import ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.approvals.model import Pause
    from toolgen.runtime.core import Runtime

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
SWEEP_HELP = """\b
Example: toolgen approvals sweep --approvals approvals.yaml

Do what is due: times that are up, approvals that were not used in time, calls whose process died. For hosts that run
without a background task, from a timer. Time approves by --approvals, the config a pause was made under; without it
what time would approve is left alone for five minutes, and then waits for a person.

\b
Exit codes: 0 done, 1 problems with the store or the config, 2 wrong usage
"""
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A pause.")]
FormatOption = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]


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
    tenant: TenantOption = "default",
    format_: FormatOption = Format.text,
) -> None:
    """Move the due time of a pause."""
    length = None if span == "never" else duration("DURATION", span)
    with deciding(store, key_file) as runtime:
        pause = find_pause(runtime.store, id, tenant)
        until = None if length is None else runtime.store.clock() + length
        actor = user(tenant).subject
        after = run(runtime.extend(pause.id, until, actor=actor, tenant=tenant))
        _print(after, runtime, format_)


def cancel(
    id: IdArgument,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Why. Default: nothing.", show_default=False)
    ] = "",
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = "default",
    format_: FormatOption = Format.text,
) -> None:
    """Cancel a pause."""
    with deciding(store, key_file) as runtime:
        pause = find_pause(runtime.store, id, tenant)
        actor = user(tenant).subject
        after = run(runtime.cancel(pause.id, actor=actor, tenant=tenant, reason=note))
        _print(after, runtime, format_)


def remembered(
    requester: Annotated[
        str | None, typer.Option("--requester", metavar="NAME", help="Only theirs. Default: all.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Revoked and used-up ones too.")] = False,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = "default",
    format_: FormatOption = Format.text,
) -> None:
    """List remembered approvals."""
    with deciding(store, key_file) as runtime:
        now = runtime.store.clock()
        found = run(runtime.remembered.listed(tenant=tenant, requester=requester))
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
    tenant: TenantOption = "default",
    format_: FormatOption = Format.text,
) -> None:
    """End a remembered approval."""
    with deciding(store, key_file) as runtime:
        known = [one.id for one in run(runtime.remembered.listed(tenant=tenant))]
        begun = [one for one in known if len(id) >= SHORTEST and one.startswith(id)]
        wanted = only_one(id, begun, "remembered approval")
        run(runtime.remembered.revoke(wanted, actor=user(tenant).subject, tenant=tenant))
    if format_ is Format.json:
        print_json({"revoked": wanted}, sys.stdout)
    else:
        write(f"revoked {wanted}\n", sys.stdout)


def purge(
    subject: Annotated[str, typer.Option("--subject", metavar="NAME", help="Whose content is erased. No default.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it: there is no way back.")] = False,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = "default",
    format_: FormatOption = Format.text,
) -> None:
    """Erase what is kept of a person."""
    if not yes:
        raise UsageError("nothing was erased: give --yes to erase what is kept of this person; there is no way back")
    with opened(store, key_file) as found:
        erased = found.purge(subject, actor=user(tenant).subject, tenant=tenant)
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


def sweep(
    approvals: Annotated[
        str | None, typer.Option("--approvals", metavar="CONFIG", help="By which time may approve. Default: none.")
    ] = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Do what is due."""
    from toolgen.policy.config import ApprovalConfig
    from toolgen.runtime.core import Runtime

    config = None if approvals is None else ApprovalConfig.load(approvals)
    with opened(store, key_file) as found:
        runtime = Runtime([], config, store=found, background=False)
        changed = run(runtime.sweep())
    if format_ is Format.json:
        print_json({"changed": changed}, sys.stdout)
    else:
        write(f"{count(changed, 'pause')} changed\n", sys.stdout)


def _print(pause: Pause, runtime: Runtime, format_: Format) -> None:
    if format_ is Format.json:
        print_json(pause.to_dict(), sys.stdout)
        return
    from toolgen.cli.approvals_shown import due

    page = Page(sys.stdout)
    page.facts((call.id, f"{call.tool} is {call.state.value}", "bold") for call in pause.calls)
    if pause.waiting:
        page.facts([("due", due(pause, runtime.store.clock()), "")])
    page.print()


COMMANDS: Final[tuple[tuple[str, Any, str, str], ...]] = (
    ("extend", extend, EXTEND_HELP, "Move the due time of a pause."),
    ("cancel", cancel, CANCEL_HELP, "End a pause without running it."),
    ("remembered", remembered, REMEMBERED_HELP, "List remembered approvals."),
    ("revoke", revoke, REVOKE_HELP, "End a remembered approval."),
    ("purge", purge, PURGE_HELP, "Erase what is kept of a person."),
    ("sweep", sweep, SWEEP_HELP, "Do what is due."),
)
