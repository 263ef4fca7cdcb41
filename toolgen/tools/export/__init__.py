"""Toolsets in the form a target takes: model providers, MCP, plain JSON, a page for people.

Nothing here changes a toolset. Whatever a target does not take as it is (a keyword, a recursion, a
name) is said in the notes of the export; names are never changed.
"""

from __future__ import annotations

from toolgen.errors import UsageError, did_you_mean
from toolgen.tools.export.limits import check
from toolgen.tools.export.notes import Export, Note, Notes
from toolgen.tools.model import Tool, Toolset

TARGETS: tuple[str, ...] = (
    "openai",
    "openai-responses",
    "openai-strict",
    "anthropic",
    "gemini",
    "mcp",
    "json",
    "markdown",
)

__all__ = ["TARGETS", "Export", "Note", "export"]


def export(toolset: Toolset, target: str, *, output_schemas: bool = False) -> Export:
    """The toolset for a target; `output_schemas` adds the schemas of answers where the target has them (mcp).

    Raises UsageError for a target there is not, and MissingExtra where a target refuses `$ref` and
    the package that writes references out is not installed.
    """
    if target not in TARGETS:
        raise UsageError(f"no target {target!r}{did_you_mean(target, TARGETS)}; there are {', '.join(TARGETS)}")
    notes = check(toolset, target)
    if target == "markdown":
        from toolgen.tools.export.markdown import render

        return Export(target, render(toolset), tuple(notes))
    data: list[dict[str, object]] = []
    for tool in toolset.tools:
        own = Notes(tool.name)
        data.append(_tool(tool, target, own, output_schemas))
        notes += own.all()
    return Export(target, data, tuple(notes))


def _tool(tool: Tool, target: str, notes: Notes, output_schemas: bool) -> dict[str, object]:
    from toolgen.tools.export import anthropic, gemini, json, mcp, openai, openai_strict

    match target:
        case "openai":
            return openai.chat_tool(tool)
        case "openai-responses":
            return openai.responses_tool(tool)
        case "openai-strict":
            return openai_strict.export_tool(tool, notes)
        case "anthropic":
            return anthropic.export_tool(tool)
        case "gemini":
            return gemini.export_tool(tool, notes)
        case "mcp":
            return mcp.export_tool(tool, output_schemas=output_schemas)
        case _:
            return json.export_tool(tool)
