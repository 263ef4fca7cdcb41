"""`toolgen show`: what is in a toolset file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolgen.cli.output import Format, print_json, visible, write
from toolgen.errors import ToolgenError

if TYPE_CHECKING:
    from toolgen.tools.model import Toolset

SHORT_HELP = "Show the tools of a toolset file, or one of them."
HELP = """\b
Example: toolgen show petstore.tools.yaml
         toolgen show petstore.tools.yaml createPet
         toolgen show petstore.tools.yaml createPet --target anthropic

Show the tools of a toolset file, or one of them: what a model sees of it, and the request it makes.

\b
Exit codes: 0 shown
            1 problems: the file cannot be read, is not valid, or has no
              such tool
            2 wrong usage
"""


def show(
    toolset: Annotated[str, typer.Argument(metavar="TOOLSET", help="A file that `toolgen generate` wrote.")],
    tool: Annotated[str | None, typer.Argument(metavar="TOOL", help="Name of a tool. Default: all in a table.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="text for people, json for programs.")] = Format.text,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET", help="Print the tools as this target gets them (as generate --target). Default: none."
        ),
    ] = None,
) -> None:
    """Show the tools of a toolset file, or one of them."""
    from pathlib import Path

    from toolgen.tools.files import load_toolset

    found = load_toolset(Path(toolset))
    if tool is not None:
        found = _only(found, tool)
    if target is not None:
        _print_export(found, target, format_, single=tool is not None)
        return
    from toolgen.cli import one_tool, tool_list

    if format_ is Format.json:
        data = one_tool.to_dict(found) if tool is not None else tool_list.to_dict(found)
        print_json(data, sys.stdout)
    elif tool is not None:
        one_tool.print_text(found, sys.stdout)
    else:
        tool_list.print_text(found, sys.stdout)


def _only(toolset: Toolset, name: str) -> Toolset:
    """The toolset with that tool alone."""
    try:
        tool = toolset.tool(name)
    except KeyError as error:
        raise ToolgenError(error.args[0]) from None
    return toolset.model_copy(update={"tools": (tool,)})


def _print_export(toolset: Toolset, target: str, format_: Format, *, single: bool) -> None:
    from toolgen.tools.export import export

    made = export(toolset, target)
    notes = [note.to_dict() for note in made.notes]
    data = made.data[0] if single and isinstance(made.data, list) else made.data
    if format_ is Format.json:
        print_json({"api": toolset.api, "target": target, "tools": data, "notes": notes}, sys.stdout)
        return
    if isinstance(data, str):
        write(visible(data), sys.stdout)
    else:
        print_json(data, sys.stdout)
    for note in made.notes:
        write(f"note: {visible(str(note))}\n", sys.stderr)
