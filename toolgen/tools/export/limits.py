"""What each target documents as its limits: one table, and the checks that read it.

Only limits a provider has written down stand here, each with where and when. What is known from
error messages alone is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from toolgen.tools.export.measure import Measure, measure
from toolgen.tools.export.notes import Note
from toolgen.tools.model import Tool, Toolset

What = Literal[
    "name",  # a pattern every tool name matches
    "argument",  # a pattern every argument key matches
    "tools",  # how many tools fit into one request
    "nesting",  # levels of objects and arrays, the root included
    "properties",  # properties of all objects of one tool
    "enum values",  # values of all enums of one tool
    "enum text",  # characters of one string enum that has more than LARGE_ENUM values
    "schema text",  # characters of all property names, definition names, enum and const values
]
LARGE_ENUM = 250

_CHAT = "OpenAI API reference, Chat Completions, function definition, `name` (2026)"
_CHAT_TOOLS = "OpenAI API reference, tools: 'A max of 128 functions are supported' (2024; Create eval run, 2026)"
_STRICT = "OpenAI docs, Structured model outputs, Supported schemas"
_CLAUDE = "Claude API docs, Define tools, `name` (2026)"
_GEMINI = "Google Gen AI reference, FunctionDeclaration"
_MCP = "MCP specification 2026-07-28, Server features, Tools, Tool Names"


@dataclass(frozen=True, slots=True)
class Limit:
    """One documented limit: `value` is a full-match pattern or the greatest number allowed."""

    targets: tuple[str, ...]
    what: What
    value: str | int
    source: str


LIMITS: tuple[Limit, ...] = (
    Limit(("openai", "openai-strict"), "name", r"[A-Za-z0-9_-]{1,64}", _CHAT),
    Limit(("openai", "openai-strict"), "tools", 128, _CHAT_TOOLS),
    Limit(("openai-strict",), "nesting", 10, f"{_STRICT}: 'up to 10 levels of nesting' (2026)"),
    Limit(("openai-strict",), "properties", 5_000, f"{_STRICT}: 'up to 5000 object properties total' (2026)"),
    Limit(("openai-strict",), "enum values", 1_000, f"{_STRICT}, Limitations on enum size (2026)"),
    Limit(("openai-strict",), "enum text", 15_000, f"{_STRICT}, Limitations on enum size (2026)"),
    Limit(("openai-strict",), "schema text", 120_000, f"{_STRICT}, Limitations on total string size (2026)"),
    Limit(("anthropic",), "name", r"[A-Za-z0-9_-]{1,64}", _CLAUDE),
    Limit(("gemini",), "name", r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", f"{_GEMINI}, `name` (2026)"),
    Limit(("gemini",), "argument", r"[A-Za-z_][A-Za-z0-9_]{0,63}", f"{_GEMINI}, `parameters` (2026)"),
    Limit(("gemini",), "tools", 512, "Google Gen AI reference, Tool, `functionDeclarations` (2026)"),
    Limit(("mcp",), "name", r"[A-Za-z0-9_.-]{1,128}", _MCP),
)


def check(toolset: Toolset, target: str) -> list[Note]:
    """What of the set does not fit the target: names, argument keys, the number of tools."""
    notes: list[Note] = []
    for limit in LIMITS:
        if target not in limit.targets:
            continue
        if limit.what == "tools" and isinstance(limit.value, int) and len(toolset.tools) > limit.value:
            notes.append(Note("", f"{len(toolset.tools)} tools, {target} takes {limit.value} ({limit.source})"))
        elif isinstance(limit.value, str):
            pattern = re.compile(limit.value)
            notes += [note for tool in toolset.tools for note in _misfits(tool, limit, pattern)]
    return notes


def _misfits(tool: Tool, limit: Limit, pattern: re.Pattern[str]) -> Iterator[Note]:
    if limit.what == "name" and not pattern.fullmatch(tool.name):
        yield Note(tool.name, f"the name does not match {limit.value} ({limit.source})")
    elif limit.what == "argument":
        for key in tool.parameters.get("properties", {}):
            if not pattern.fullmatch(key):
                where = "/properties/" + key.replace("~", "~0").replace("/", "~1")
                yield Note(tool.name, f"argument {key!r} does not match {limit.value} ({limit.source})", where)


def passed(schema: dict[str, Any], target: str) -> list[str]:
    """The size limits of a target that a schema passes, in words."""
    found = measure(schema, LARGE_ENUM)
    return [
        f"{limit.what}: {_measured(found, limit.what)}, the limit is {limit.value} ({limit.source})"
        for limit in LIMITS
        if target in limit.targets and isinstance(limit.value, int) and _measured(found, limit.what) > limit.value
    ]


def _measured(found: Measure, what: What) -> int:
    sizes: dict[str, int] = {
        "nesting": found.nesting,
        "properties": found.properties,
        "enum values": found.enum_values,
        "enum text": found.enum_text,
        "schema text": found.text,
    }
    return sizes.get(what, 0)
