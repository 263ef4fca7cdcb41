"""Small OpenAPI documents as data, and the tools that come of them; every toolset made here is checked as a whole."""

from __future__ import annotations

from typing import Any

from toolgen.openapi.diagnostics import Diagnostic
from toolgen.tools.files.check import check_toolset
from toolgen.tools.generate import generate
from toolgen.tools.model import Leaf, Tool, Toolset

OK: dict[str, Any] = {"200": {"description": "ok"}}
OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


def document(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """A document of these paths."""
    start: dict[str, Any] = {"swagger": "2.0"} if version == "2.0" else {"openapi": version}
    return {**start, "info": {"title": "Small API", "version": "1"}, "paths": paths, **more}


def made(source: Any, **options: Any) -> Toolset:
    """The toolset of a document; it has no fault that loading its file would find."""
    toolset = generate(source, **options)
    assert [str(problem) for problem in check_toolset(toolset)] == []
    return toolset


def tool_of(
    operation: dict[str, Any] | None = None,
    *,
    path: str = "/x",
    method: str = "post",
    version: str = "3.1.0",
    **document_keys: Any,
) -> Tool:
    """The only tool of a document with this one operation."""
    item = {method: {"operationId": "op", "responses": OK, **(operation or {})}}
    (tool,) = made(document({path: item}, version, **document_keys)).tools
    return tool


def with_body(content: dict[str, Any], *, version: str = "3.1.0", components: Any = None, **body: Any) -> Tool:
    """The tool of an operation with this body."""
    keys = {"components": {"schemas": components}} if components else {}
    return tool_of({"requestBody": {"content": content, **body}}, version=version, **keys)


def body_schema(tool: Tool, key: str = "requestBody") -> Any:
    """The schema of the whole-body argument, behind its reference."""
    schema = tool.input_schema()
    here = schema["properties"][key]
    while "$ref" in here:
        here = schema["$defs"][here["$ref"].removeprefix("#/$defs/")]
    return here


def properties(tool: Tool) -> dict[str, Any]:
    """The arguments of a tool and their schemas."""
    found = tool.parameters["properties"]
    assert isinstance(found, dict)
    return found


def parameter(name: str, location: str = "query", **more: Any) -> dict[str, Any]:
    """A Parameter Object, text unless it says otherwise."""
    found: dict[str, Any] = {"name": name, "in": location, **more}
    if location == "path":
        found["required"] = True
    if "schema" not in found and "content" not in found:
        found["schema"] = {"type": "string"}
    return found


def leaves(tool: Tool) -> list[tuple[str, str, Any]]:
    """(location, wire name, value) of everything that is sent."""
    return [tuple(leaf) for leaf in tool.request.leaves()]  # type: ignore[misc]


def leaf(tool: Tool, location: str, name: str) -> Leaf:
    """The leaf of that wire name."""
    found = getattr(tool.request, location)
    (one,) = [leaf for leaf in found if leaf.name == name]
    assert isinstance(one, Leaf)
    return one


def said(toolset: Toolset) -> list[Diagnostic]:
    """Everything the load report says of operations."""
    assert toolset.report is not None
    return [diagnostic for operation in toolset.report.operations for diagnostic in operation.diagnostics]
