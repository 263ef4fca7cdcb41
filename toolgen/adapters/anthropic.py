"""The Claude Messages API, whole or streamed.

    turn = read_calls(runtime, message)
    done = await runtime.submit(turn.calls, caller=ada, thread="chat-1", turn=turn.id)
    messages += [*turn.said, *write_results(turn, done)]

Formats: https://platform.claude.com/docs (Messages, tool use, streaming). Tools that the provider runs itself
(`server_tool_use`) are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from toolgen.adapters.offered import Offer
from toolgen.adapters.turns import Asked, Turn, arguments_of, events_of, plain, sent_back, turn_of
from toolgen.errors import UsageError
from toolgen.tools.export import anthropic

if TYPE_CHECKING:
    from toolgen.result import ToolResult
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.submit import Submission

# Every other way to stop (max_tokens, refusal, the context's end) may have cut the last call.
_WHOLE: Final = ("tool_use", "end_turn", "stop_sequence")
_PIECES: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def as_anthropic_tools(runtime: Runtime) -> list[dict[str, Any]]:
    """The tools of a runtime for the `tools` of a request; schemas are as they are."""
    return [anthropic.export_tool(tool) for tool in Offer(runtime)]


def read_calls(runtime: Runtime, response: Any) -> Turn:
    """The calls of a message: the SDK's object or its JSON, or the list of a stream's events.

    A call is run only if it is whole: what a limit or a broken stream cut off is answered, not run. Raises
    UsageError for what is no message.
    """
    given = plain(response)
    events = events_of(given)
    try:
        data, is_whole = (given, True) if events is None else _assembled(events)
        is_whole = is_whole and data.get("stop_reason") in _WHOLE
        blocks = [block for block in data["content"] if block["type"] == "tool_use"]
        asked = [Asked(block["id"], block["name"], block["input"], is_whole) for block in blocks]
        content = [_with_data(block) for block in data["content"]]
    except (AttributeError, KeyError, TypeError):
        raise UsageError("this is no message of the Messages API") from None
    said = [{"role": "assistant", "content": content}] if content else []
    return turn_of(Offer(runtime), asked, id=data.get("id"), said=said)


def write_results(
    turn: Turn,
    done: Submission | None,
    results: Mapping[str, ToolResult] | None = None,
    *,
    review_url: str | None = None,
) -> list[dict[str, Any]]:
    """The results of all calls of the turn, in the one user message the API wants them in; nothing for no calls.

    `results` are those that `runtime.wait` or `runtime.resume` gave for the pause.
    """
    blocks = [
        {
            "type": "tool_result",
            "tool_use_id": id,
            "content": one.text,
            **({"is_error": True} if one.is_error else {}),
        }
        for id, one in turn.answers(done, results, review_url)
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _assembled(events: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], bool]:
    """The message that a stream's events make up, and whether its end is among them.

    The input of a call is its JSON text, which is read with every other's.
    """
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    is_whole = False
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            block = dict(event["content_block"])
            blocks[event["index"]] = {**block, "input": ""} if block.get("type") == "tool_use" else block
        elif kind == "content_block_delta":
            _add(blocks[event["index"]], event["delta"])
        elif kind == "message_delta":
            message |= {key: value for key, value in event["delta"].items() if value is not None}
        elif kind == "message_stop":
            is_whole = True
    if not message:
        raise UsageError("these are no events of a message")
    return {**message, "content": [blocks[index] for index in sorted(blocks)]}, is_whole


def _with_data(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """A block whose input is data, as the API wants it back; of a text that is none, nothing: its result says so."""
    block = sent_back(block)
    if not isinstance(block.get("input"), str):
        return block
    try:
        return {**block, "input": arguments_of(block["input"])}
    except ValueError:
        return {**block, "input": {}}


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    if delta["type"] == "input_json_delta":
        block["input"] = f"{block.get('input') or ''}{delta['partial_json']}"
    elif delta["type"] == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    elif delta["type"] in _PIECES:
        key = _PIECES[delta["type"]]
        block[key] = block.get(key, "") + delta[key]
