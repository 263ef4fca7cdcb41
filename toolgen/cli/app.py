"""The command `toolgen`. Commands import what is heavy themselves, so that `--help` is quick."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Annotated

import typer

from toolgen.cli import approvals, audit, call, check, explain, generate, serve, show
from toolgen.cli.command import Command

HELP = """\b
Example: toolgen generate petstore.yaml
         toolgen show petstore.tools.yaml
         toolgen check approvals.yaml --tools petstore.tools.yaml
         toolgen explain approvals.yaml --tools petstore.tools.yaml createPet
         toolgen call petstore.tools.yaml createPet --args @pet.json --dry-run
         toolgen approvals list
         toolgen serve petstore.tools.yaml --approvals approvals.yaml

Tools a language model can call, from any OpenAPI document.

\b
Exit codes: 0 fine, 1 problems found, 2 wrong usage, 3 waiting for a person.
`toolgen COMMAND --help` says more.
"""

app = typer.Typer(
    name="toolgen",
    help=HELP,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("generate", cls=Command, help=generate.HELP, short_help=generate.SHORT_HELP)(generate.generate)
app.command("show", cls=Command, help=show.HELP, short_help=show.SHORT_HELP)(show.show)
app.command("check", cls=Command, help=check.HELP, short_help=check.SHORT_HELP)(check.check)
app.command("explain", cls=Command, help=explain.HELP, short_help=explain.SHORT_HELP)(explain.explain)
app.command("call", cls=Command, help=call.HELP, short_help=call.SHORT_HELP)(call.call)
app.command("serve", cls=Command, help=serve.HELP, short_help=serve.SHORT_HELP)(serve.serve)
app.add_typer(approvals.app, short_help=approvals.SHORT_HELP)
app.add_typer(audit.app, short_help=audit.SHORT_HELP)


def _version(wanted: bool) -> None:
    if wanted:
        from toolgen import __version__

        typer.echo(f"toolgen {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before a command."""


def main() -> None:
    """The console script: runs the command line and exits."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(io.UnsupportedOperation, ValueError):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character gets its escape
                stream.reconfigure(errors="backslashreplace")
    app(prog_name="toolgen")
