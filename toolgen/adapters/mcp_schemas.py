"""What an MCP server's tools answer with, as JSON Schema, and the tools it has of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from toolgen.adapters.answers import Answer
from toolgen.adapters.offered import OfferedTool
from toolgen.tools.export import mcp

RESULT: Final = "get_approval_result"
LIST: Final = "list_pending_approvals"
SEARCH: Final = "search_tools"
DESCRIBE: Final = "describe_tool"
CALL: Final = "call_tool"
OWN_NAMES: Final = frozenset({RESULT, LIST, SEARCH, DESCRIBE, CALL})

Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}


def _object(required: list[str], **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


PENDING: Final = _object(
    ["status"],
    status={"const": "pending"},
    approvalId={**_TEXT, "description": f"for {RESULT}"},
    reason=_TEXT,
    reviewUrl={**_TEXT, "description": "where a person decides"},
)
REFUSED: Final = _object(
    ["status", "message"],
    status={"enum": ["denied", "rejected", "expired", "cancelled", "not_executed", "outcome_unknown", "error"]},
    message=_TEXT,
    httpStatus={"type": "integer"},
    body={"description": "what the API answered with"},
    headers={"type": "object"},
    retryAfterSeconds={"type": "number"},
    problems={"type": "array", "items": {"type": "object"}},
)
# An answer that was cut, redacted, or is not what the document says of it: the message says so.
_OTHERWISE: Final = "the answer is not what the API's document says of it"
NOTED: Final = _object(["result", "message"], result={}, message=_TEXT, headers={"type": "object"})


def listed(tool: OfferedTool, *, output_schemas: bool = False) -> Schema:
    """One entry of `tools/list`: the input schema as it is, and where the call goes in `_meta`."""
    found: Schema = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema()}
    if tool.api_tool is not None:
        found = {**mcp.export_tool(tool.api_tool), **found}
    elif (hints := getattr(tool.definition, "annotations", None)) is not None:
        found["annotations"] = dict(hints)
    if output_schemas:
        found["outputSchema"] = output_schema(tool)
    return found


def output_schema(tool: OfferedTool) -> Schema:
    """Everything a call of the tool may be answered with: what the document says, that it waits, why it did not run."""
    answer = tool.api_tool.output_schema(root=False) if tool.api_tool is not None else None
    inner: Any = {} if answer is None else answer
    definitions = inner.pop("$defs", None) if isinstance(inner := _copied(inner), dict) else None
    result = _object(["result"], result=inner, headers={"type": "object"})
    found = {"type": "object", "anyOf": [result, NOTED, PENDING, REFUSED]}
    return {**found, "$defs": definitions} if definitions else found


def as_listed(found: Answer, tool: OfferedTool) -> Answer:
    """The answer; one that is not what the document says of it with a message that says so: clients that check answers
    would else throw it away, of a call that has run."""
    if "result" not in found.data or "message" in found.data:
        return found
    import jsonschema_rs

    try:
        validator = jsonschema_rs.Draft202012Validator(output_schema(tool), offline=True)
        fits = validator.is_valid(dict(found.data))
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):  # no schema to go by
        fits = False
    return found if fits else replace(found, data={**found.data, "message": _OTHERWISE})


def _copied(schema: Any) -> Any:
    return dict(schema) if isinstance(schema, dict) else schema


def own_tools(*, list_pending: bool, lazy: bool) -> list[Schema]:
    """The server's own tools. None of them decides anything."""
    found = [_RESULT_TOOL, *([_LIST_TOOL] if list_pending else [])]
    return [*_LAZY_TOOLS, *found] if lazy else found


def _closed(required: list[str], **properties: Any) -> Schema:
    return {**_object(required, **properties), "additionalProperties": False}


_READS: Final = {"readOnlyHint": True, "openWorldHint": False}
_RESULT_TOOL: Final = {
    "name": RESULT,
    "description": "Gives the result of a call that waited for a person, and carries it out if it has been approved. "
    "While nobody has decided it says that it is pending: do something else, or tell the user, before asking again.",
    "inputSchema": _closed(["approvalId"], approvalId={**_TEXT, "description": "from the pending answer"}),
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True},
}
_LIST_TOOL: Final = {
    "name": LIST,
    "description": "Lists your calls that wait for a person to approve them, the newest first. It decides nothing.",
    "inputSchema": _closed([]),
    "annotations": _READS,
}
_LAZY_TOOLS: Final = [
    {
        "name": SEARCH,
        "description": "Finds tools by words of their names, paths and descriptions, the best first. Start here, "
        f"then look at one with {DESCRIBE} and call it with {CALL}.",
        "inputSchema": _closed(
            ["query"],
            query={**_TEXT, "description": "a few words, such as: cancel order"},
            limit={"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        ),
        "annotations": _READS,
    },
    {
        "name": DESCRIBE,
        "description": "Gives a tool's description, its arguments as JSON Schema, and the request it makes.",
        "inputSchema": _closed(["name"], name={**_TEXT, "description": f"as {SEARCH} gives it"}),
        "annotations": _READS,
    },
    {
        "name": CALL,
        "description": "Calls a tool by its name. What becomes of it is up to the tool: some calls wait for a person.",
        "inputSchema": _closed(
            ["name", "arguments"],
            name={**_TEXT, "description": f"as {SEARCH} gives it"},
            arguments={"type": "object", "description": f"as {DESCRIBE} says"},
        ),
        "annotations": {"readOnlyHint": False, "openWorldHint": True},
    },
]
