"""Tools for the Claude Messages API: `input_schema` is JSON Schema 2020-12, as it is."""

from __future__ import annotations

from typing import Any

from toolgen.tools.export.described import Described


def export_tool(tool: Described) -> dict[str, Any]:
    """One entry of the request's `tools`."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema()}
