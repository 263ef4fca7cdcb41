"""`toolgen call`: one call of a tool, through the gate; or what it would send, and what the gate says of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgen.cli.called import Contract
from toolgen.cli.config import CONFIG_NAME
from toolgen.cli.output import Format, write
from toolgen.errors import Problem, ToolgenError, UsageError, did_you_mean

if TYPE_CHECKING:
    from toolgen.cli.config import Config, Job
    from toolgen.dispatch.http import ContractMode, Dispatcher
    from toolgen.identity.caller import Caller
    from toolgen.policy.outcomes import ToolCall
    from toolgen.result import ToolResult
    from toolgen.runtime import Runtime
    from toolgen.tools.model import Toolset

GATED = 3  # the exit code of a call that waits for a person
SHORT_HELP = "Call a tool, or show what it would send."
HELP = """\b
Example: toolgen call petstore.tools.yaml getPet --args '{"petId": "7"}' \\
             --credential 'bearerAuth=${env:TOKEN}'
         toolgen call petstore.tools.yaml createPet --args @pet.json --dry-run

Call a tool and print the answer. Reads run, and writes wait for a person, unless --approvals says otherwise; a call
that waits is not sent. --dry-run sends nothing: it prints the request, what the gate says of it, which credential
would be used, and whether the request is what the document describes.

A REF is ${env:NAME} or ${file:PATH}, never a secret itself, or a JSON object of such: {"username": "me", "password":
"${env:PW}"}. The caller is the user of this shell: ${caller:userId} is the login name, and there is no token.

toolgen.yaml, where it has this toolset's file, gives credentials and settings; options come on top.

\b
Exit codes: 0 fine: an answer of 2xx or 3xx, or shown
            1 an answer of 4xx or 5xx; refused, denied, not sent, outcome
              unknown, arguments that are not valid; with --dry-run: the
              request is not what the document describes
            2 wrong usage, or a toolgen.yaml with problems
            3 it waits for a person, and was not sent
"""


def call(
    toolset: Annotated[str, typer.Argument(metavar="TOOLSET", help="A file that `toolgen generate` wrote.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool.")],
    args: Annotated[
        str,
        typer.Option(
            "--args",
            metavar="JSON",
            show_default=False,
            help="The arguments; @FILE and @- (stdin) read them. Default: {}.",
        ),
    ] = "{}",
    approvals: Annotated[
        str | None, typer.Option(metavar="CONFIG", help="An approval config. Default: reads run, writes wait.")
    ] = None,
    no_gate: Annotated[bool, typer.Option("--no-gate", help="Ask nobody, whatever the call does.")] = False,
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="Replaces every server. Default: the toolset's.")
    ] = None,
    server_variable: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable of the server's URL. Default: its own.")
    ] = None,
    credential: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCHEME=REF",
            help="A credential by security scheme; SCHEME@ORIGIN=REF for another origin. Default: toolgen.yaml's.",
        ),
    ] = None,
    allow_private: Annotated[
        list[str] | None,
        typer.Option(metavar="RANGE", help="Private addresses that may be called, as in 10.0.0.0/8. Default: none."),
    ] = None,
    context: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="What ${context:NAME} stands for. Default: nothing.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help=f"Credentials and settings. Default: {CONFIG_NAME}.")
    ] = None,
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
    if approvals is not None and no_gate:
        raise UsageError("--approvals and --no-gate cannot stand together: one is the gate, the other is none")
    from toolgen.cli import call_options as options
    from toolgen.dispatch.http import Dispatcher
    from toolgen.identity.caller import Caller
    from toolgen.policy.config import ApprovalConfig
    from toolgen.policy.outcomes import ToolCall
    from toolgen.runtime import Runtime
    from toolgen.tools.files import load_toolset

    found = load_toolset(Path(toolset))
    _check_name(found, name)
    asked = ToolCall("call", name, options.arguments(args), found.api)
    caller = Caller(options.login(), context=options.pairs("--context", context))
    given: dict[str, Any] = {
        "credentials": options.credentials(credential, found),
        "server_variables": options.pairs("--server-variable", server_variable),
        "allow_private": options.private_ranges(allow_private),
    }
    settings = _settings(found, Path(toolset), config, given)
    gate = ApprovalConfig.off() if no_gate else None if approvals is None else ApprovalConfig.load(approvals, [found])
    if no_gate:
        write("note: --no-gate: nobody is asked, whatever this call does\n", sys.stderr)
    mode: ContractMode = (contract or Contract.off).value
    dispatcher = Dispatcher(found, server=server, contract=mode, **settings)
    runtime = Runtime(dispatcher, gate)
    if dry_run:
        from toolgen.cli.dry_run import DryRun

        DryRun(dispatcher, runtime.gate, asked, caller, contract, ungated=no_gate).show(format_)
    else:
        _run(dispatcher, runtime, asked, caller, format_)


def _check_name(toolset: Toolset, name: str) -> None:
    try:
        toolset.tool(name)
    except KeyError as error:
        raise ToolgenError(error.args[0]) from None


def _run(dispatcher: Dispatcher, runtime: Runtime, asked: ToolCall, caller: Caller, format_: Format) -> None:
    """Let the runtime run the call, or not; print what became of it. Raises typer.Exit where that is not fine."""
    import asyncio

    from toolgen.cli.called import print_result
    from toolgen.result import Refused

    try:
        (result,) = asyncio.run(_submit(dispatcher, runtime, asked, caller))
    except KeyboardInterrupt:
        write("the request may have been sent, and carried out: find out before doing it again\n", sys.stderr)
        raise
    print_result(result, format_)
    if result.refused is Refused.gated:
        raise typer.Exit(GATED)
    if not result.ok:
        raise typer.Exit(ToolgenError.exit_code)


async def _submit(dispatcher: Dispatcher, runtime: Runtime, asked: ToolCall, caller: Caller) -> list[ToolResult]:
    async with dispatcher:  # which closes its connections
        return await runtime.submit([asked], caller=caller)


def _settings(toolset: Toolset, path: Path, config: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """What the dispatcher is given: the options, over what a toolgen.yaml says of this toolset."""
    from toolgen.cli.call_options import merged
    from toolgen.cli.config import read_config

    if config is None and not Path(CONFIG_NAME).exists():
        return given
    read = read_config(Path(config or CONFIG_NAME))
    job = _job(read, toolset, path, by_name=config is not None)
    if job is None:
        write(f"note: {read.path} is not used: none of its APIs has this file (--config uses it)\n", sys.stderr)
        return given
    _check_credentials(read, job, toolset)
    return {
        "http": read.http,
        "caller_references": job.caller_references,
        "credentials": merged(job.credentials, given["credentials"]),
        "server_variables": {**job.server_variables, **given["server_variables"]},
        "allow_private": (*job.allow_private, *given["allow_private"]),
    }


def _job(read: Config, toolset: Toolset, path: Path, *, by_name: bool) -> Job | None:
    """The entry of the API: that of the toolset's file; by the API's name only in a config that was named.

    A file that merely claims the name of an API gets no credentials from whatever toolgen.yaml lies around.
    """
    found = next((job for job in read.jobs if job.target == str(path.resolve())), None)
    if found is None and by_name:
        found = next((job for job in read.jobs if job.api == toolset.api), None)
        if found is None:
            near = did_you_mean(toolset.api, [str(job.api) for job in read.jobs])
            raise UsageError(f"{read.path} has no API {toolset.api!r}{near}, and none whose file is {path}")
    return found


def _check_credentials(read: Config, job: Job, toolset: Toolset) -> None:
    """Raise ConfigError for credentials that this toolset's security schemes do not take, with their lines."""
    from toolgen.errors import ConfigError, CredentialsError
    from toolgen.identity.credentials import Credentials

    where = f"apis.{job.api}.credentials"
    try:
        Credentials.load(
            job.credentials,
            api=toolset.api,
            schemes=toolset.security_schemes,
            origin=None,
            caller_references=job.caller_references,
            where=where,
        )
    except CredentialsError as error:
        problems: list[Problem] = read.placed(error.problems)
        raise ConfigError(f"{read.path}: {error.message}", problems) from None
