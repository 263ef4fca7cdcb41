"""Tool objects of the Model Context Protocol (schema 2026-07-28, and valid under 2025-11-25).

An output schema is wrapped as `{result: ...}`: until 2025-11-25 its root has to be an object, and
an API may answer with anything. Keys of `_meta` have a prefix label and a name, as the protocol's
"General fields, _meta" asks.
"""

from __future__ import annotations

from typing import Any

from toolgen.tools.model import Tool


def export_tool(tool: Tool, *, output_schemas: bool = False) -> dict[str, Any]:
    """One entry of a `tools/list` result."""
    found: dict[str, Any] = {
        "name": tool.name,
        "title": tool.annotations.title,
        "description": tool.description,
        "inputSchema": tool.input_schema(),
        "annotations": tool.annotations.model_dump(by_alias=True),
    }
    answer = tool.output_schema(root=False) if output_schemas else None
    if answer is not None:
        found["outputSchema"] = _wrapped(answer)
    found["_meta"] = {
        "toolgen/method": tool.endpoint.method,
        "toolgen/path": tool.endpoint.path,
        "toolgen/group": tool.group,
        **({"toolgen/deprecated": True} if tool.deprecated else {}),
    }
    return found


def _wrapped(answer: dict[str, Any] | bool) -> dict[str, Any]:
    """`{result: answer}`; definitions move to the root, where its references look for them."""
    definitions = answer.get("$defs") if isinstance(answer, dict) else None
    inner = {key: value for key, value in answer.items() if key != "$defs"} if isinstance(answer, dict) else answer
    found = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**found, "$defs": definitions} if definitions else found
