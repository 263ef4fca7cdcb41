"""`toolgen check`: whether an approval config protects what it seems to; and configs to start with."""

from __future__ import annotations

from typing import Annotated

import typer

from toolgen.cli.findings import ReportFormat
from toolgen.errors import ToolgenError, UsageError

SHORT_HELP = "Check an approval config, alone or against toolset files."
HELP = """\b
Example: toolgen check approvals.yaml
         toolgen check approvals.yaml --tools petstore.tools.yaml
         toolgen check --suggest --tools petstore.tools.yaml -o approvals.yaml
         toolgen check --import old.json -o approvals.yaml

Check an approval config: everything that is wrong with it; and with --tools what happens to the calls of each tool
(denied, gated: they wait for a person, or allowed), and what looks like protection and is none.

CONFIG stands first. Toolset files may follow --tools one after the other, as a shell expands --tools *.tools.yaml.

\b
Exit codes: 0 fine, or written
            1 problems: an error was found (--strict: or a warning), or a
              file cannot be read, is not valid or cannot be written
            2 wrong usage
"""


def check(
    config: Annotated[str | None, typer.Argument(metavar="CONFIG", help="An approval config, YAML or JSON.")] = None,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="More toolset files, behind --tools.")
    ] = None,
    tools: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A toolset file to check against. Default: none.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings, too.")] = False,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Write a config to start with, for --tools: every write waits.")
    ] = False,
    import_: Annotated[
        str | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Convert a config whose keys stand under hitlConfig; stderr says what changes. Default: none.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where a config that is written goes. Default: -, stdout."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file that -o names.")] = False,
    format_: Annotated[
        ReportFormat, typer.Option("--format", help="text for people, json and sarif for programs.")
    ] = ReportFormat.text,
) -> None:
    """Check an approval config, alone or against toolset files."""
    named, positional = tools or [], [one for one in (config, *(files or ())) if one is not None]
    if suggest or import_ is not None:
        _check_usage(named, positional, suggest, import_, strict, format_)
        from toolgen.cli.starting import Start, converted, suggested

        start = Start([*named, *positional], len(named), output, force=force, as_json=format_ is ReportFormat.json)
        suggested(start) if import_ is None else converted(start, import_)
        return
    if output is not None or force:
        raise UsageError(f"{'--force' if output is None else '-o'} is for --suggest and --import")
    if config is None:
        raise UsageError("give CONFIG, an approval config to check; --suggest and --import FILE write one")
    if files and not named:
        raise UsageError(f"unexpected {files[0]}: toolset files are given with --tools")
    from toolgen.cli.checked import report

    if not report(config, [*named, *(files or ())], format_, strict=strict):
        raise typer.Exit(ToolgenError.exit_code)


def _check_usage(
    named: list[str], positional: list[str], suggest: bool, import_: str | None, strict: bool, format_: ReportFormat
) -> None:
    """Raise UsageError for what --suggest and --import cannot stand with."""
    option = "--suggest" if suggest else "--import"
    if suggest and import_ is not None:
        raise UsageError("--suggest and --import cannot stand together: each writes a config")
    if positional and not named:
        raise UsageError(f"{option} writes a config and takes no CONFIG: what is {positional[0]}?")
    if suggest and not named:
        raise UsageError("--suggest needs the tools the config is for: --tools FILE")
    if strict:
        raise UsageError(f"--strict is for checking a CONFIG, not for {option}")
    if format_ is ReportFormat.sarif:
        raise UsageError(f"--format sarif is for findings; {option} has none")
