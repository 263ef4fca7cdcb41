"""`toolgen call`: one call of a tool, through the gate; or what it would send, and what the gate says of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgen.cli import upstream
from toolgen.cli.called import Contract
from toolgen.cli.output import Format, write
from toolgen.cli.stores import KeyOption, StoreOption
from toolgen.cli.who import person
from toolgen.errors import ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.tools.model import Toolset

SHORT_HELP = "Call a tool, or show what it would send."
HELP = """\b
Example: toolgen call petstore.tools.yaml getPet --args '{"petId": "7"}' \\
             --credential 'bearerAuth=${env:TOKEN}'
         toolgen call petstore.tools.yaml createPet --args @pet.json --dry-run
         toolgen call petstore.tools.yaml createPet --args @pet.json --wait

Call a tool and print the answer. Reads run, and writes wait for a person, unless --approvals says otherwise. A call
that waits is kept in the store and not sent: `toolgen approvals approve ID` decides, and the same command with
--resume ID in the place of NAME and --args runs what was approved, once. --wait waits for the decision and runs.
--dry-run sends nothing: it prints the request, what the gate says of it, which credential would be used, and whether
the request is what the document describes.

A REF is ${env:NAME} or ${file:PATH}, never a secret itself, or a JSON object of such: {"username": "me", "password":
"${env:PW}"}. The caller is the user of this shell: ${caller:userId} is the login name, or whom the authenticator of
toolgen.yaml says; there is no token.

toolgen.yaml, where it has this toolset's file, gives credentials and settings; options come on top. A call that waits
for nobody leaves nothing in a store, unless --store or TOOLGEN_STORE names one.

\b
Exit codes: 0 fine: an answer of 2xx or 3xx, or shown
            1 an answer of 4xx or 5xx; refused, denied, rejected, not sent,
              outcome unknown, arguments that are not valid; with --dry-run:
              the request is not what the document describes
            2 wrong usage, or a toolgen.yaml with problems
            3 it waits for a person, and was not sent
"""


def call(
    toolset: Annotated[str, typer.Argument(metavar="TOOLSET", help="A file that `toolgen generate` wrote.")],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The tool. Default: none, with --resume.", show_default=False)
    ] = None,
    args: Annotated[
        str | None,
        typer.Option(
            "--args",
            metavar="JSON",
            show_default=False,
            help="The arguments; @FILE and @- (stdin) read them. Default: {}.",
        ),
    ] = None,
    approvals: upstream.ApprovalsOption = None,
    no_gate: Annotated[bool, typer.Option("--no-gate", help="Ask nobody, whatever the call does.")] = False,
    store: StoreOption = None,
    key_file: KeyOption = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="ID", help="Run what was approved of a pause. Default: a new call."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the person's answer, then run.")] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0, help="Of --wait. Default: none.")
    ] = None,
    server: upstream.ServerOption = None,
    server_variable: upstream.VariableOption = None,
    credential: upstream.CredentialOption = None,
    allow_private: upstream.PrivateOption = None,
    context: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What ${context:NAME} stands for. Default: nothing.")
    ] = None,
    config: upstream.ConfigOption = None,
    contract: Annotated[
        Contract | None,
        typer.Option(
            metavar="off|warn|enforce",
            help="Check the request against the toolset (extra: contract). Default: off; with --dry-run enforce.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Send nothing; show what would be sent.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="text for people, json for programs.")] = Format.text,
) -> None:
    """Call a tool, or show what it would send."""
    _check_together(name, args, approvals, resume, timeout, no_gate=no_gate, wait=wait, dry_run=dry_run)
    from toolgen.cli import call_options as options
    from toolgen.cli.pausing import Session
    from toolgen.identity.caller import Caller
    from toolgen.policy.config import ApprovalConfig
    from toolgen.policy.outcomes import ToolCall
    from toolgen.tools.files import load_toolset

    found = load_toolset(Path(toolset))
    _check_name(found, name)
    asked = ToolCall("call", name, options.arguments("{}" if args is None else args), found.api)
    who = person(config)
    caller = Caller(who.subject, tenant=who.tenant, context=options.pairs("--context", context))
    given = upstream.Upstream(server, server_variable, credential, allow_private, config)
    dispatcher = given.dispatcher(found, Path(toolset), (contract or Contract.off).value)
    gate = ApprovalConfig.off() if no_gate else None if approvals is None else ApprovalConfig.load(approvals, [found])
    if no_gate:
        write("note: --no-gate: nobody is asked, whatever this call does\n", sys.stderr)
    if dry_run:
        from toolgen.cli.dry_run import DryRun
        from toolgen.policy.gate import Gate

        DryRun(dispatcher, Gate([gate], [found]), asked, caller, contract, ungated=no_gate).show(format_)
        return
    seconds = timeout if wait else 0.0
    session = Session(dispatcher, gate, caller, toolset, store, key_file, seconds, format_)
    session.resume(resume, given_context=bool(context)) if resume is not None else session.ask(asked)


def _check_together(
    name: str | None,
    args: str | None,
    approvals: str | None,
    resume: str | None,
    timeout: float | None,
    *,
    no_gate: bool,
    wait: bool,
    dry_run: bool,
) -> None:
    """Raise UsageError for options that cannot stand together."""
    if approvals is not None and no_gate:
        raise UsageError("--approvals and --no-gate cannot stand together: one is the gate, the other is none")
    if resume is not None and (name is not None or args is not None):
        raise UsageError("--resume runs the call that was approved: give no NAME and no --args with it")
    if resume is not None and (dry_run or no_gate):
        raise UsageError("--resume cannot stand with --dry-run or --no-gate: it runs what was approved")
    if resume is None and name is None:
        raise UsageError("give the NAME of the tool to call, or --resume ID")
    if timeout is not None and not wait:
        raise UsageError("--timeout is for --wait")
    if wait and (dry_run or no_gate):
        raise UsageError("--wait waits for a person: with --dry-run and --no-gate nobody is asked")


def _check_name(toolset: Toolset, name: str | None) -> None:
    try:
        if name is not None:
            toolset.tool(name)
    except KeyError as error:
        raise ToolgenError(error.args[0]) from None
