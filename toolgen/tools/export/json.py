"""Tools as plain JSON, for programs that bring their own form."""

from __future__ import annotations

from typing import Any

from toolgen.tools.model import Tool


def export_tool(tool: Tool) -> dict[str, Any]:
    """Name, description, group, endpoint, input schema and annotations of a tool."""
    return {
        "name": tool.name,
        "description": tool.description,
        "group": tool.group,
        "method": tool.endpoint.method,
        "path": tool.endpoint.path,
        "parameters": tool.input_schema(),
        "annotations": tool.annotations.model_dump(by_alias=True),
    }
