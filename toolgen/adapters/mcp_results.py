"""What an MCP server answers to a call, as a ToolResult (CallToolResult of MCP 2025-11-25 and 2026-07-28)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from toolgen.result import Sent, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult, InputRequiredResult

    from toolgen.identity.redact import Redactor

_ERROR_CHARS: Final = 2_000
_DECLINED: Final = (
    "the server asks for more before it goes on, of a person or a model of ours: that is declined, and the call is not"
    " finished"
)


def result_of(given: CallToolResult | InputRequiredResult, redactor: Redactor, most: int) -> ToolResult:
    """The result. Its body is the structured content, else the text, else the content blocks as the server wrote them.

    Images and the like that are longer than `most` characters in base64 are left out, and the message says so. Of an
    error secrets are redacted by name and shape, too: what fails repeats what was sent.
    """
    from mcp_types import InputRequiredResult

    if isinstance(given, InputRequiredResult):
        return ToolResult(False, Sent.answered, message=_DECLINED)
    blocks = [one.model_dump(by_alias=True, mode="json", exclude_none=True) for one in given.content]
    notes = [note for one in blocks if (note := _fitted(one, most))]
    body = _body(given, blocks)
    if given.is_error:
        shown = redactor.value(body)
        shown = shown[:_ERROR_CHARS] if isinstance(shown, str) else shown
        return ToolResult(False, Sent.answered, body=shown, message="; ".join(["the tool reports an error", *notes]))
    return ToolResult(True, Sent.answered, body=redactor.known(body), message="; ".join(notes))


def _body(given: CallToolResult, blocks: list[dict[str, Any]]) -> Any:
    texts = [one["text"] for one in blocks if one.get("type") == "text"]
    others = [one for one in blocks if one.get("type") != "text"]
    if "structured_content" in given.model_fields_set and given.structured_content is not None:
        # Its text says the same, for clients that know no structured content.
        return (
            {"structuredContent": given.structured_content, "content": others} if others else given.structured_content
        )
    if others:
        return blocks
    return "\n".join(texts) if texts else None


def _fitted(block: dict[str, Any], most: int) -> str:
    """Leave the data of a block out that is too long, and say so."""
    held = block.get("resource") if isinstance(block.get("resource"), dict) else block
    assert held is not None
    for key in ("data", "blob"):
        data = held.get(key)
        if isinstance(data, str) and len(data) > most // 2:
            del held[key]
            return f"the {block.get('type')} of {len(data) * 3 // 4:,} bytes is left out: more than a result holds"
    return ""
