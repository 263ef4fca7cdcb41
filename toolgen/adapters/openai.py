"""OpenAI's two wire formats, chat completions and responses, each whole or streamed.

    turn = read_calls(runtime, response)
    done = await runtime.submit(turn.calls, caller=ada, thread="chat-1", turn=turn.id)
    messages += [*turn.said, *write_results(turn, done)]

Formats: https://developers.openai.com/api/reference (chat completions, responses, and their streaming events).
Calls of other kinds (the provider's own tools, custom ones) are the host's and are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from toolgen.adapters.offered import Offer
from toolgen.adapters.turns import Asked, Turn, events_of, plain, sent_back, turn_of
from toolgen.errors import UsageError
from toolgen.tools.export import openai, openai_strict
from toolgen.tools.export.notes import Notes

if TYPE_CHECKING:
    from toolgen.result import ToolResult
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.submit import Submission

Api = Literal["chat", "responses"]
# Every other way to stop (length, content_filter) may have cut the last call.
_WHOLE: Final = ("tool_calls", "stop", "function_call")


def as_openai_tools(runtime: Runtime, *, api: Api = "chat", strict: bool = False) -> list[dict[str, Any]]:
    """The tools of a runtime for the `tools` of a request; schemas are as they are.

    With `strict` those that have a strict form are in it, and the same has to be said to `read_calls`.
    Raises UsageError for another API.
    """
    if api not in ("chat", "responses"):
        raise UsageError("api is 'chat' or 'responses'")
    found = []
    for tool in Offer(runtime):
        if strict:
            chat = openai_strict.export_tool(tool, Notes(tool.name))
            found.append(chat if api == "chat" else {"type": "function", **chat["function"]})
        else:
            found.append(openai.chat_tool(tool) if api == "chat" else openai.responses_tool(tool))
    return found


@dataclass(frozen=True)
class OpenAITurn(Turn):
    """A turn that knows which of the two formats it was read from."""

    api: Api = "chat"


def read_calls(runtime: Runtime, response: Any, *, strict: bool = False) -> OpenAITurn:
    """The calls of a response: of either API, the SDK's object or its JSON, or the list of a stream's events.

    A call is run only if it is whole: what a limit or a broken stream cut off is answered, not run. `strict` takes
    out the nulls that a strict tool has to be given for what is left out. Raises UsageError for what is no
    response, and for one of several choices: all of them would be carried out.
    """
    given = plain(response)
    events = events_of(given)
    try:
        data, is_whole = (given, True) if events is None else _assembled(events)
        api: Api = "responses" if isinstance(data.get("output"), list) else "chat"
        said, asked = _of_responses(data, is_whole) if api == "responses" else _of_chat(data, is_whole)
    except (AttributeError, IndexError, KeyError, TypeError):
        raise UsageError("this is no response of chat completions or of the Responses API") from None
    turn = turn_of(Offer(runtime), asked, id=data.get("id"), said=said, strict=strict)
    return OpenAITurn(**vars(turn), api=api)


def write_results(
    turn: OpenAITurn,
    done: Submission | None,
    results: Mapping[str, ToolResult] | None = None,
    *,
    review_url: str | None = None,
) -> list[dict[str, Any]]:
    """One result for each call of the turn: messages of the role `tool`, or `function_call_output` items.

    `results` are those that `runtime.wait` or `runtime.resume` gave for the pause.
    """
    found = turn.answers(done, results, review_url)
    if turn.api == "responses":
        return [{"type": "function_call_output", "call_id": id, "output": one.text} for id, one in found]
    return [{"role": "tool", "tool_call_id": id, "content": one.text} for id, one in found]


def _of_chat(data: Mapping[str, Any], is_whole: bool) -> tuple[list[Mapping[str, Any]], list[Asked]]:
    """The message of the only choice, and its calls."""
    choices = data["choices"]
    if len(choices) > 1:
        raise UsageError("the response has several choices: ask for one (n=1), or the calls of all would be run")
    if not choices:
        return [], []
    message = {key: value for key, value in sent_back(choices[0]["message"]).items() if value is not None}
    is_whole = is_whole and choices[0].get("finish_reason") in _WHOLE
    calls = [one for one in message.get("tool_calls") or [] if one.get("type", "function") == "function"]
    asked = [Asked(one["id"], one["function"]["name"], one["function"].get("arguments"), is_whole) for one in calls]
    if message.get("tool_calls"):
        message["tool_calls"] = [_call_sent_back(one) for one in message["tool_calls"]]
    return [message], asked


def _call_sent_back(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call as a message has it; the client's helper for streams leaves the index of its pieces in."""
    found = {key: sent_back(value) if isinstance(value, Mapping) else value for key, value in call.items()}
    found.pop("index", None)
    return found


def _of_responses(data: Mapping[str, Any], is_whole: bool) -> tuple[list[Mapping[str, Any]], list[Asked]]:
    """The items of the output, and the calls among them."""
    is_whole = is_whole and data.get("status", "completed") == "completed"
    calls = [one for one in data["output"] if one.get("type") == "function_call"]
    asked = [
        Asked(
            one["call_id"],
            one["name"],
            one.get("arguments"),
            is_whole and one.get("status") in (None, "completed"),
        )
        for one in calls
    ]
    return [_item_sent_back(item) for item in data["output"]], asked


def _item_sent_back(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of the output as one of the next input."""
    found = sent_back(item)
    if isinstance(found.get("content"), list):
        found["content"] = [sent_back(part) for part in found["content"]]
    return found


def _assembled(events: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], bool]:
    """The response that a stream's events make up, and whether its end is among them."""
    if any(str(event.get("type", "")).startswith("response.") for event in events):
        return _response_of(events)
    if any("choices" in event for event in events):
        return _completion_of(events)
    raise UsageError("these are no events of a response")


def _response_of(events: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], bool]:
    """Of the Responses API: its last event has the whole response; without it, the items that were done."""
    id: str | None = None
    items: list[Mapping[str, Any]] = []
    for event in events:
        if event["type"] in ("response.completed", "response.incomplete", "response.failed"):
            # Some servers have the items in their own events alone.
            response = event["response"]
            return {**response, "output": response.get("output") or items}, event["type"] == "response.completed"
        if event["type"] in ("response.created", "response.in_progress"):
            id = event["response"].get("id", id)
        if event["type"] == "response.output_item.done":
            items.append(event["item"])
    return {"id": id, "output": items}, False


def _completion_of(events: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], bool]:
    """Of chat completions: the pieces of the message put together, those of each call by its index."""
    id: str | None = None
    message: dict[str, Any] = {"role": "assistant"}
    calls: dict[int, dict[str, Any]] = {}
    reason: str | None = None
    for event in events:
        id = event.get("id") or id
        for choice in event.get("choices") or []:
            if choice.get("index", 0) != 0:
                raise UsageError("the stream has several choices: ask for one (n=1), or the calls of all would be run")
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or {}
            for key, value in delta.items():
                if isinstance(value, str) and value and key != "role":
                    message[key] = message.get(key, "") + value
            for piece in delta.get("tool_calls") or []:
                _add(calls.setdefault(piece["index"], _empty_call()), piece)
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {"id": id, "choices": [{"message": message, "finish_reason": reason}]}, reason is not None


def _empty_call() -> dict[str, Any]:
    return {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}


def _add(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    call["id"] = piece.get("id") or call["id"]
    call["type"] = piece.get("type") or call["type"]
    function = piece.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
