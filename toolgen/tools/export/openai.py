"""OpenAI function tools as the two APIs take them, schemas as they are.

Chat completions wrap the function; the Responses API has its fields at the top and turns strict
mode on where nothing is said, so it is turned off in so many words.
"""

from __future__ import annotations

from typing import Any

from toolgen.tools.export.described import Described


def chat_tool(tool: Described) -> dict[str, Any]:
    """A tool for chat completions."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema()}
    return {"type": "function", "function": function}


def responses_tool(tool: Described) -> dict[str, Any]:
    """A tool for the Responses API."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema(),
        "strict": False,
    }
