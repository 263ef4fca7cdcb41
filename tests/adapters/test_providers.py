"""Calls are read from every shape a provider answers in, and nothing half-read or ambiguous is run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from door_world import ANN, World, shop, world_in
from doors_providers import provider
from small_documents import document, parameter

from toolgen import Dispatcher, Runtime, functions, generate
from toolgen.adapters import anthropic as claude
from toolgen.adapters import openai as chat
from toolgen.adapters.turns import arguments_of
from toolgen.errors import UsageError

REX = {"requestBody": {"name": "Rex"}}
FORMATS = {
    "chat": (provider.chat, chat),
    "responses": (provider.responses, chat),
    "messages": (provider.messages, claude),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def runtime(world: World) -> Iterator[Runtime]:
    made = world.runtime()
    yield made
    asyncio.run(made.aclose())


def told(format: str, step: Any, *, streamed: bool, cut: bool = False) -> Any:
    """A response as its server writes it."""
    whole, events = FORMATS[format][0](1, step, cut)
    return [event for _, event in events if event != "[DONE]"] if streamed else whole


def read(runtime: Runtime, format: str, response: Any) -> Any:
    return FORMATS[format][1].read_calls(runtime, response)


def texts(written: list[dict[str, Any]]) -> list[str]:
    """What the model reads of each call, whatever the format."""
    found = []
    for one in written:
        blocks = one["content"] if isinstance(one.get("content"), list) else [one]
        found += [block.get("output", block.get("content")) for block in blocks]
    return found


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("format", FORMATS)
class TestEveryShape:
    def test_calls_have_their_ids_names_and_arguments(self, runtime: Runtime, format: str, streamed: bool) -> None:
        turn = read(runtime, format, told(format, [("getPet", {"id": "7"}), ("addPet", REX)], streamed=streamed))
        assert [(one.name, one.arguments, one.source) for one in turn.calls] == [
            ("getPet", {"id": "7"}, "shop"),
            ("addPet", REX, "shop"),
        ]
        assert [one.id for one in turn.calls] == list(turn.ids)
        assert turn.id in ("chatcmpl-1", "resp_1", "msg_1")
        assert turn.faults == {}

    def test_a_text_has_no_calls_and_no_results(self, runtime: Runtime, format: str, streamed: bool) -> None:
        turn = read(runtime, format, told(format, "Hello.", streamed=streamed))
        assert (turn.calls, turn.ids) == ((), ())
        assert FORMATS[format][1].write_results(turn, None) == []
        assert "Hello." in json.dumps(turn.said)

    def test_what_was_said_is_what_the_provider_said(self, runtime: Runtime, format: str, streamed: bool) -> None:
        step = [("addPet", REX)]
        turn = read(runtime, format, told(format, step, streamed=streamed))
        assert turn.said == read(runtime, format, told(format, step, streamed=not streamed)).said
        assert "addPet" in json.dumps(turn.said)

    def test_a_call_of_a_response_that_was_cut_off_is_not_run(
        self, runtime: Runtime, format: str, streamed: bool
    ) -> None:
        turn = read(runtime, format, told(format, [("addPet", REX)], streamed=streamed, cut=True))
        assert turn.calls == ()
        (text,) = texts(FORMATS[format][1].write_results(turn, None))
        assert "cut off" in text

    def test_every_call_has_one_result_also_those_that_cannot_be_run(
        self, runtime: Runtime, world: World, format: str, streamed: bool
    ) -> None:
        steps = [("getPet", {"id": "7"}), ("addPet", '{"requestBody": '), ("addPet", REX), ("nobody", {})]
        turn = read(runtime, format, told(format, steps, streamed=streamed))
        done = world.run(runtime.submit(turn.calls, caller=ANN, thread="t", turn=f"{format}{streamed}"))
        found = texts(FORMATS[format][1].write_results(turn, done))
        assert len(found) == 4
        assert '"path": "/pets/7"' in found[0]
        assert "not valid" in found[1]
        assert "has to approve" in found[2]
        assert "denied" in found[3]
        assert done.pause is not None
        assert [call.id for call in done.pause.calls] == [turn.ids[2]]


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_that_broke_off_runs_nothing(runtime: Runtime, format: str) -> None:
    events = told(format, [("getPet", {"id": "7"}), ("addPet", REX)], streamed=True)
    assert len(read(runtime, format, events).calls) == 2
    for length in range(1, len(events)):
        turn = read(runtime, format, events[:length])
        assert turn.calls == ()
        assert set(turn.ids) == set(turn.faults)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", {}),
        ("  ", {}),
        (None, {}),
        ({}, {}),
        ('{"id": "7"}', {"id": "7"}),
        ('"{\\"id\\": 7}"', {"id": 7}),
        ('{"id": 9007199254740993}', {"id": 9007199254740993}),
    ],
)
def test_arguments_are_read_from_what_providers_write(given: Any, found: dict[str, Any]) -> None:
    assert arguments_of(given) == found


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('{"id": ', "line 1, column 8"),
        ('{"id": 1, "id": 2}', "id"),
        ('{"id": NaN}', "NaN"),
        ("[1]", "object"),
        ("7", "object"),
        ('"\\"{}\\""', "object"),
        ([], "object"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_arguments_that_could_be_read_two_ways_or_none_are_refused(given: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        arguments_of(given)


def test_two_calls_of_one_id_are_answered_once_and_neither_is_run(runtime: Runtime, world: World) -> None:
    before = len(world.api.seen)
    response = told("chat", [("getPet", {"id": "7"}), ("getPet", {"id": "8"})], streamed=False)
    for call in response["choices"][0]["message"]["tool_calls"]:
        call["id"] = "same"
    turn = chat.read_calls(runtime, response)
    done = world.run(runtime.submit(turn.calls, caller=ANN))
    (text,) = texts(chat.write_results(turn, done))
    assert "none of them was run" in text
    assert len(world.api.seen) == before


def test_the_calls_of_several_choices_are_refused(runtime: Runtime) -> None:
    response = told("chat", [("getPet", {"id": "7"})], streamed=False)
    response["choices"] *= 2
    with pytest.raises(UsageError, match="n=1"):
        chat.read_calls(runtime, response)
    events = told("chat", [("getPet", {"id": "7"})], streamed=True)
    events[1]["choices"][0]["index"] = 1
    with pytest.raises(UsageError, match="n=1"):
        chat.read_calls(runtime, events)


@pytest.mark.parametrize("response", [{}, {"choices": None, "output": 1}, [], ["x"], "text", 7, [{"type": "ping"}]])
@pytest.mark.parametrize("module", [chat, claude])
def test_what_is_no_response_is_refused(runtime: Runtime, module: Any, response: Any) -> None:
    with pytest.raises(UsageError):
        module.read_calls(runtime, response)


def test_tools_that_the_provider_runs_itself_are_not_read(runtime: Runtime) -> None:
    response = told("responses", "Hello.", streamed=False)
    response["output"] += [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, {"type": "mcp_call"}]
    assert chat.read_calls(runtime, response).ids == ()
    message = told("messages", "Hello.", streamed=False)
    message["content"].append({"type": "server_tool_use", "id": "srv_1", "name": "addPet", "input": REX})
    assert claude.read_calls(runtime, message).ids == ()


def test_schemas_are_offered_as_they_are(runtime: Runtime) -> None:
    schema = {tool.name: tool.input_schema() for tool in shop("https://a.example").tools}
    assert {one["function"]["name"]: one["function"]["parameters"] for one in chat.as_openai_tools(runtime)} == schema
    assert {one["name"]: one["parameters"] for one in chat.as_openai_tools(runtime, api="responses")} == schema
    assert {one["name"]: one["input_schema"] for one in claude.as_anthropic_tools(runtime)} == schema
    with pytest.raises(UsageError, match="api"):
        chat.as_openai_tools(runtime, api="completions")  # type: ignore[arg-type]


def test_the_nulls_of_a_strict_tool_are_left_out(tmp_path: Path) -> None:
    listing = {
        "operationId": "list",
        "parameters": [parameter("q"), parameter("limit")],
        "responses": {"200": {"description": "ok"}},
    }
    toolset = generate(document({"/pets": {"get": listing}}), api="pets", server="https://pets.example")
    runtime = Runtime(Dispatcher(toolset))
    for api, format in (("chat", "chat"), ("responses", "responses")):
        (tool,) = chat.as_openai_tools(runtime, api=api, strict=True)  # type: ignore[arg-type]
        assert tool.get("function", tool)["strict"] is True
        response = told(format, [("list", {"q": "rex", "limit": None})], streamed=False)
        (call,) = chat.read_calls(runtime, response, strict=True).calls
        assert call.arguments == {"q": "rex"}
        (plain,) = chat.read_calls(runtime, response).calls
        assert plain.arguments == {"q": "rex", "limit": None}


def test_a_name_that_two_sources_have_is_offered_with_its_source_and_called_there() -> None:
    def one(api: str) -> Any:
        operation = {"operationId": "now", "responses": {"200": {"description": "ok"}}}
        return generate(document({"/now": {"get": operation}}), api=api, server=f"https://{api}.example")

    runtime = Runtime(
        [Dispatcher([one("east"), one("west")]), functions({"now": lambda: "noon", "then": lambda: "dawn"})]
    )
    names = [tool["name"] for tool in claude.as_anthropic_tools(runtime)]
    assert names == ["east_now", "west_now", "builtin_now", "then"]
    message = told("messages", [(name, {}) for name in names], streamed=False)
    calls = claude.read_calls(runtime, message).calls
    assert [(call.source, call.name) for call in calls] == [
        ("east", "now"),
        ("west", "now"),
        ("builtin", "now"),
        ("builtin", "then"),
    ]
