"""Small toolsets for policies: their tools by name and endpoint, and what a config does to them."""

from __future__ import annotations

from typing import Any

from small_documents import made

from toolgen.policy.address import (
    Address,
    EndpointAddress,
    KnownTool,
    NameAddress,
    SourceAddress,
    ToolList,
    known_tools,
)
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Classification, ToolCall
from toolgen.tools.model import Toolset


def api(name: str = "petstore", /, **tools: str) -> Toolset:
    """An API whose tools are `createPet="post /pets"`; a method OpenAPI does not know is an additional operation."""
    paths: dict[str, dict[str, Any]] = {}
    for tool, endpoint in tools.items():
        method, path = endpoint.split(" ", 1)
        item = paths.setdefault(path, {})
        known = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
        holder = item if method in known else item.setdefault("additionalOperations", {})
        holder[method if method in known else method.upper()] = {"operationId": tool}
    document = {"openapi": "3.2.0", "info": {"title": name, "version": "1"}, "paths": paths}
    return made(document, api=name)


def pets() -> Toolset:
    """Four tools of one API: two reads, a write, a DELETE."""
    return api(
        "petstore",
        listPets="get /pets",
        getPet="get /pets/{petId}",
        createPet="post /pets",
        deletePet="delete /pets/{petId}",
    )


def address(text: str) -> Address:
    """`http.post:/pets` as an endpoint, `mcp:read_x` as a source and a name, all else as a name."""
    before, colon, behind = text.partition(":")
    if not colon:
        return NameAddress(text)
    source, dot, method = before.partition(".")
    return EndpointAddress(source, method, behind) if dot else SourceAddress(source, behind)


def known(*toolsets: Toolset | ToolList) -> dict[str, KnownTool]:
    """The tools of toolsets as policy sees them, by name."""
    return {tool.name: tool for tool in known_tools(toolsets)}


def outcomes(config: ApprovalConfig | dict[str, Any] | None, *toolsets: Toolset | ToolList) -> dict[str, str]:
    """`{"createPet": "gated", ...}`: what a config does to every tool of these toolsets."""
    if isinstance(config, dict):
        config = ApprovalConfig.parse(config, toolsets)
    gate = Gate(config, toolsets)
    return {tool.name: gate.outcome_of(tool).outcome.name for tool in gate.tools}


def classified(config: ApprovalConfig | dict[str, Any] | None, *calls: ToolCall, toolsets: Any = ()) -> Classification:
    """What a config does to calls."""
    if isinstance(config, dict):
        config = ApprovalConfig.parse(config, toolsets)
    return Gate(config, toolsets).classify(calls)
