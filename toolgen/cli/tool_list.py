"""All tools of a toolset at a glance."""

from __future__ import annotations

from typing import Any, TextIO

from toolgen.cli.facts import endpoint, flags, goes_elsewhere, server_facts, title, url_of
from toolgen.cli.output import Cell, Page, count
from toolgen.tools.files import is_edited
from toolgen.tools.model import Tool, Toolset


def to_dict(toolset: Toolset) -> dict[str, Any]:
    """JSON-ready data."""
    return {
        "api": toolset.api,
        "document": toolset.document.model_dump(by_alias=True),
        "edited": is_edited(toolset),
        "servers": _servers(toolset),
        "tools": [_tool(tool, toolset) for tool in toolset.tools],
    }


def _tool(tool: Tool, toolset: Toolset) -> dict[str, Any]:
    return {
        "name": tool.name,
        "group": tool.group,
        "method": tool.endpoint.method,
        "path": tool.endpoint.path,
        "read": tool.endpoint.is_read,
        "destructive": tool.is_destructive,
        "deprecated": tool.deprecated,
        "otherOrigin": goes_elsewhere(tool, toolset),
        "arguments": list(tool.parameters.get("properties", {})),
        "required": list(tool.parameters.get("required", ())),
    }


def _servers(toolset: Toolset) -> list[str]:
    found = [url_of(toolset.server), *(url_of(tool.request.server) for tool in toolset.tools)]
    return list(dict.fromkeys(filter(None, found)))


def print_text(toolset: Toolset, stream: TextIO) -> None:
    """A table, group by group."""
    page = Page(stream)
    page.line(f"{toolset.api}: {count(len(toolset.tools), 'tool')} of {title(toolset)}", style="bold")
    page.line()
    groups: dict[str, list[Tool]] = {}
    for tool in toolset.tools:
        groups.setdefault(tool.group, []).append(tool)
    rows: list[list[Cell]] = []
    for group, tools in groups.items():
        rows.append([(group, "bold"), ("", ""), ("", ""), ("", "")])
        rows += [_row(tool, toolset) for tool in tools]
    page.table(("tool", "endpoint", "args", "flags"), rows)
    page.line()
    facts = server_facts(_servers(toolset)) or [("server", "none", "")]
    if is_edited(toolset):
        facts.append(("edited", "by hand since it was generated", "yellow"))
    page.facts(facts)
    page.print()


def _row(tool: Tool, toolset: Toolset) -> list[Cell]:
    arguments = len(tool.parameters.get("properties", {}))
    return [(f"  {tool.name}", ""), (endpoint(tool), ""), (str(arguments), ""), flags(tool, toolset)]
