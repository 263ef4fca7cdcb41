"""What every command does with errors: one clean message, the right exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from toolgen.cli.output import Format, print_json, visible, write
from toolgen.errors import ToolgenError

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


FormatOption = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]


class Command(TyperCommand):
    """A command whose errors become messages; with `--format json` they become an object."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Raises typer.Exit with the code of what went wrong."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_quietly()
            raise typer.Exit(BROKEN_PIPE) from None
        except ToolgenError as error:
            _tell(error, ctx.params)
            raise typer.Exit(error.exit_code) from None
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _tell(ToolgenError(f"{place}{error.strerror or error}"), ctx.params)
            raise typer.Exit(ToolgenError.exit_code) from None
        except KeyboardInterrupt:
            write("interrupted\n", sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        return result


def group(name: str, help: str) -> typer.Typer:
    """Commands under one name."""
    settings = {"help_option_names": ["-h", "--help"]}
    return typer.Typer(name=name, help=help, no_args_is_help=True, rich_markup_mode=None, context_settings=settings)


def error_dict(error: ToolgenError) -> dict[str, Any]:
    """An error as JSON-ready data."""
    problems = [problem.to_dict() for problem in error.problems]
    return {"type": type(error).__name__, "message": error.message, "problems": problems}


def _tell(error: ToolgenError, params: dict[str, Any]) -> None:
    """The message on stderr; as JSON where the command's own answer would have been."""
    if params.get("format_") == "json":
        print_json({"error": error_dict(error)}, sys.stderr if params.get("output") == "-" else sys.stdout)
    else:
        write(f"error: {visible(str(error))}\n", sys.stderr)


def _close_quietly() -> None:
    """Nobody reads stdout any more; what is still buffered must not be complained about at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
