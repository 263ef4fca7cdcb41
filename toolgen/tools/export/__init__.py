"""Toolsets in the form a target takes: model providers, MCP, plain JSON, a page for people.

Nothing here changes a toolset. Whatever a target does not take as it is (a keyword, a recursion, a
name) is said in the notes of the export; names are never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
    write = _writer(toolset, target, output_schemas)
    data: list[dict[str, Any]] = []
    for tool in toolset.tools:
        own = Notes(tool.name)
        data.append(write(tool, own))
        notes += own.all()
    return Export(target, data, tuple(notes))


def _writer(toolset: Toolset, target: str, output_schemas: bool) -> Callable[[Tool, Notes], dict[str, Any]]:
    """What writes one tool for the target; only its module is imported."""
    if target == "openai-strict":
        from toolgen.tools.export import openai_strict

        return openai_strict.export_tool
    if target == "gemini":
        from toolgen.tools.export import gemini
        from toolgen.tools.export.inline import Inliner

        return partial(gemini.export_tool, inliner=Inliner(toolset.schemas))
    from toolgen.tools.export import anthropic, json, mcp, openai

    plain: dict[str, Callable[[Tool], dict[str, Any]]] = {
        "openai": openai.chat_tool,
        "openai-responses": openai.responses_tool,
        "anthropic": anthropic.export_tool,
        "mcp": partial(mcp.export_tool, output_schemas=output_schemas),
        "json": json.export_tool,
    }
    return lambda tool, _: plain[target](tool)
