"""`toolgen approvals approve|reject|amend`: decisions from a shell. Nothing runs here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from toolgen.cli import upstream
from toolgen.cli.command import FormatOption
from toolgen.cli.output import Format, Page, write
from toolgen.cli.stores import IdArgument, KeyOption, StoreOption, desk, find_pause, opened, run
from toolgen.cli.who import TenantOption, WhoOption, person
from toolgen.errors import PauseConflict, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from toolgen.approvals.model import Decider, Decision, Pause, Remember
    from toolgen.runtime.core import Runtime

APPROVE_HELP = """\b
Example: toolgen approvals approve 3f2a91c0
         toolgen approvals approve 3f2a91c0 --call c1 --note 'only this once'
         toolgen approvals approve 3f2a91c0 --remember fields=petId --uses 5

Approve the calls of a pause that wait, or those of --call alone: the others go on waiting. Nothing runs here. A note
is read by the model. --remember lets the like run without asking: exact is the very request, fields=a,b the endpoint
with these arguments as they are, endpoint any arguments; what is destructive is never remembered.

\b
Exit codes: 0 decided, 1 refused: not allowed, no such pause, decided
            already, not valid; 2 wrong usage
"""
REJECT_HELP = """\b
Example: toolgen approvals reject 3f2a91c0 --note 'we keep this one'
         toolgen approvals reject 3f2a91c0 --call c2 --retry

Reject the calls of a pause that wait, or those of --call alone: the others go on waiting. The model reads the note;
--retry asks it for another proposal.

\b
Exit codes: 0 decided, 1 refused: not allowed, no such pause, decided
            already, not valid; 2 wrong usage
"""
AMEND_HELP = """\b
Example: toolgen approvals amend 3f2a91c0 c1 --tools petstore.tools.yaml \\
             --args '{"petId": "8"}' --approvals approvals.yaml

Approve one call with other arguments. They are validated, and the request they make is shown before anything is
decided; then --yes, or an answer on the terminal, approves it. It takes the toolset, approval config and options that
the call was made with: what is approved is the whole request, and with others nothing is decided.

\b
Exit codes: 0 decided
            1 refused: not allowed, decided already, arguments or options
              that are not valid; or nobody said yes
            2 wrong usage
"""
CallOption = Annotated[
    list[str] | None, typer.Option("--call", metavar="CALL", help="One call of it, again for more. Default: all.")
]
NoteOption = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="What the model reads of it. Default: nothing.")
]
RevisionOption = Annotated[
    int | None,
    typer.Option("--revision", metavar="N", help="Decide only what `show` has shown so. Default: as it is now."),
]


def approve(
    id: IdArgument,
    call: CallOption = None,
    note: NoteOption = None,
    remember: Annotated[
        str | None,
        typer.Option("--remember", metavar="exact|fields=A,B|endpoint", help="Let the like run. Default: this once."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="DURATION", help="How long that holds, as P7D. Default: until revoked."),
    ] = None,
    uses: Annotated[
        int | None, typer.Option("--uses", metavar="N", min=1, help="How often it holds. Default: any.")
    ] = None,
    revision: RevisionOption = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Approve calls of a pause."""
    from toolgen.approvals.decide import may_decide
    from toolgen.approvals.model import Decision, Verdict, VerdictKind

    if remember is None and (until is not None or uses is not None):
        raise UsageError("--until and --uses are for --remember")
    with desk(store, key_file, config, tenant) as here:
        pause = here.pause(id)
        wish = None if remember is None else _remember(remember, until, uses, here.store.clock())
        names = call or []
        if wish is not None and not names:
            names = [one.id for one in pause.waiting if may_decide(one, pause, here.who)]
        _check_fields(pause, names, wish)
        verdicts = {name: Verdict(VerdictKind.approved, note, remember=wish) for name in names}
        only = bool(call)
        decision = Decision(VerdictKind.approved, note, verdicts, revision=revision, others_wait=only)
        _decide(here.runtime, pause, decision, here.who, format_)


def reject(
    id: IdArgument,
    call: CallOption = None,
    note: NoteOption = None,
    retry: Annotated[bool, typer.Option("--retry", help="Ask the model for another proposal.")] = False,
    revision: RevisionOption = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    config: WhoOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Reject calls of a pause."""
    from toolgen.approvals.model import Decision, Verdict, VerdictKind

    verdicts = {name: Verdict(VerdictKind.rejected, note, retry=retry) for name in call or ()}
    decision = Decision(VerdictKind.rejected, note, verdicts, retry, revision, others_wait=bool(call))
    with desk(store, key_file, config, tenant) as here:
        _decide(here.runtime, here.pause(id), decision, here.who, format_)


def amend(
    id: IdArgument,
    call: Annotated[str, typer.Argument(metavar="CALL", help="The call of it that is changed.")],
    tools: Annotated[
        str, typer.Option("--tools", metavar="FILE", help="The toolset file that has its tool. No default.")
    ],
    args: Annotated[
        str, typer.Option("--args", metavar="JSON", help="All its arguments; @FILE and @- read them. No default.")
    ],
    note: NoteOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve what is shown without asking.")] = False,
    approvals: upstream.ApprovalsOption = None,
    server: upstream.ServerOption = None,
    server_variable: upstream.VariableOption = None,
    credential: upstream.CredentialOption = None,
    allow_private: upstream.PrivateOption = None,
    config: upstream.ConfigOption = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    tenant: TenantOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Approve a call with other arguments."""
    from toolgen.approvals.model import Decision, Verdict, VerdictKind
    from toolgen.cli.call_options import arguments
    from toolgen.policy.config import ApprovalConfig
    from toolgen.runtime.core import Runtime
    from toolgen.tools.files import load_toolset

    who = person(config, tenant)
    toolset, given = load_toolset(Path(tools)), arguments(args)
    dispatcher = upstream.Upstream(server, server_variable, credential, allow_private, config).dispatcher(
        toolset, Path(tools)
    )
    gate = None if approvals is None else ApprovalConfig.load(approvals, [toolset])
    with opened(store, key_file) as found:
        runtime = Runtime(dispatcher, gate, store=found, background=False)
        pause = find_pause(found, id, who.tenant)
        _check_options(runtime, pause, call)
        preview = run(runtime.amended(pause.id, call, given, tenant=who.tenant))
        _confirm(preview, format_, yes=yes)
        verdict = Verdict(VerdictKind.approved, note, given)
        decision = Decision(VerdictKind.approved, None, {call: verdict}, revision=pause.revision, others_wait=True)
        _decide(runtime, pause, decision, who, format_)


def _decide(runtime: Runtime, pause: Pause, decision: Decision, decider: Decider, format_: Format) -> None:
    """Decide, and print what became of the pause."""
    from toolgen.cli.approvals_shown import print_after

    after = run(runtime.decide(pause.id, decision, decider=decider))
    print_after(after, format_, runtime.store.clock())


def _remember(text: str, until: str | None, uses: int | None, now: datetime) -> Remember:
    from toolgen.approvals.model import Remember, Scope
    from toolgen.cli.approvals_kept import duration

    scope, equals, names = text.partition("=")
    fields = tuple(filter(None, (name.strip() for name in names.split(","))))
    if scope not in list(Scope) or (scope == Scope.fields) != bool(fields) or bool(equals) != bool(fields):
        raise UsageError("--remember takes exact, endpoint, or fields=A,B with names of arguments")
    return Remember(Scope(scope), fields, uses, None if until is None else now + duration("--until", until))


def _check_fields(pause: Pause, names: list[str], wish: Remember | None) -> None:
    """A misspelt name would be an argument that is never given, and cover whatever is given instead."""
    for call in pause.calls:
        for name in wish.fields if wish is not None and call.id in names else ():
            if name not in call.arguments:
                given = ", ".join(call.arguments) or "none"
                raise UsageError(f"--remember: {call.id} has no argument {name!r}; it has {given}")


def _check_options(runtime: Runtime, pause: Pause, name: str) -> None:
    """Raise PauseConflict where the options do not make the request that waits: what is amended would never run."""
    from toolgen.approvals.binding import gating_digest

    call = next((one for one in pause.waiting if one.id == name), None)
    if call is None:
        return  # which the runtime tells
    if gating_digest(runtime.gate) != pause.gating_digest:
        raise PauseConflict("the approval config is not the one that the call was made under: give it as --approvals")
    work = runtime.work(call.source, call.tool, call.arguments, runtime.unpacked(pause))
    keys = runtime.store.keys.by_id(call.key)
    fingerprint = work.fingerprint(keys.subkey("fingerprint"))
    if runtime.bound(work, fingerprint, pause.requester, pause.tenant, keys) != call.binding:
        what = "toolset, server or credentials"
        raise PauseConflict(f"{what} are not those that the call was made with: give the options it was made with")


def _confirm(preview: Mapping[str, Any], format_: Format, *, yes: bool) -> None:
    """Show the request, and go on if somebody says yes to it."""
    from toolgen.cli.approvals_shown import preview_text

    stream = sys.stderr if format_ is Format.json else sys.stdout
    page = Page(stream)
    page.verbatim(preview_text(preview))
    page.line()
    page.print()
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was decided: give --yes to approve what is shown, or answer on a terminal")
    write("Approve this request? [y/N] ", sys.stderr)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise PauseConflict("nothing was decided")


COMMANDS: Final = (
    ("approve", approve, APPROVE_HELP, "Approve calls of a pause."),
    ("reject", reject, REJECT_HELP, "Reject calls of a pause."),
    ("amend", amend, AMEND_HELP, "Approve a call with other arguments."),
)
