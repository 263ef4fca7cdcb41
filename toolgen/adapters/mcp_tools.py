"""The tools of an MCP server as the gate and the models see them: names that patterns can tell apart, text that is data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolgen.openapi.schema.keywords import LIST, MAP, ONE
from toolgen.openapi.text import DIRECTIVE, clean, shown, without_directives
from toolgen.policy.address import MCP, ToolList, is_tool_name
from toolgen.tools.describe import ARGUMENT_CAP, TOOL_CAP

_PROSE: Final = ("title", "description", "$comment")


@dataclass(frozen=True)
class McpTool:
    """One tool. What the server says of its own harmlessness (annotations) is not taken over: it is nobody's word."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(repr=False)

    def input_schema(self) -> dict[str, Any]:
        """The schema of its arguments, as the server lists it but for its prose."""
        return dict(self.schema)


@dataclass(frozen=True, eq=False)
class Listing:
    """What a server listed: its tools, and of each that was left out or changed why.

    `listed` is what the gate looks at; it is another object for every other listing.
    """

    tools: Mapping[str, McpTool]
    warnings: tuple[str, ...]
    listed: ToolList

    @classmethod
    def of(cls, source: str, given: Iterable[Any]) -> Listing:
        """The listing of the tools of an MCP client (`name`, `description`, `input_schema`)."""
        tools: dict[str, McpTool] = {}
        warnings: list[str] = []
        for one in given:
            if not is_tool_name(one.name):
                warnings.append(f"the tool {shown(one.name)} is left out: names take A-Z a-z 0-9 _ . - and at most 128")
            elif one.name in tools:
                warnings.append(f"the tool {one.name!r} is listed twice: the first one is kept")
            elif not _is_json(one.input_schema):
                warnings.append(f"the tool {one.name!r} is left out: its input schema is no JSON data")
            else:
                tools[one.name] = tool = _tool(one)
                if DIRECTIVE in tool.description and DIRECTIVE not in (one.description or ""):
                    warnings.append(f"the description of {one.name!r} gave the model instructions: they are removed")
        return cls(tools, tuple(warnings), ToolList(MCP, tuple(tools), server=source))


def _tool(given: Any) -> McpTool:
    described = given.description or given.title or given.name
    return McpTool(given.name, prose(described, TOOL_CAP), _without_directives(given.input_schema))


def prose(text: str, cap: int) -> str:
    """Text of a server for a model: what would order it about is removed before it is cut."""
    return clean(without_directives(clean(text, max(len(text), cap))), cap)


def _is_json(schema: Any) -> bool:
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(schema, dict)


def _without_directives(schema: Any) -> Any:
    """A schema with its prose made data; a property *named* `description` is none, and what stands in `enum` is data."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _PROSE and isinstance(value, str):
            value = prose(value, ARGUMENT_CAP)
        elif key in MAP and isinstance(value, dict):
            value = {name: _without_directives(one) for name, one in value.items()}
        elif key in LIST and isinstance(value, list):
            value = [_without_directives(one) for one in value]
        elif key in ONE:
            value = _without_directives(value)
        found[key] = value
    return found
