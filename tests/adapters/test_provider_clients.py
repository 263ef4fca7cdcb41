"""The providers' own clients send what the doors make and give what the doors read, their helpers for streams too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from door_world import ANN, World, run, shop, world_in
from doors_providers import provider

from toolgen import Runtime
from toolgen.adapters import anthropic as claude
from toolgen.adapters import openai as chat
from toolgen.errors import UsageError

anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
REX = {"requestBody": {"name": "Rex"}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world_in(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def runtime(world: World) -> Iterator[Runtime]:
    made = world.runtime()
    yield made
    asyncio.run(made.aclose())


@pytest.fixture
def server() -> Iterator[Any]:
    """A provider that calls two tools, as often as it is asked."""
    with provider.scripted([[("getPet", {"id": "7"}), ("addPet", REX)]] * 4) as running:
        yield running


def results(turn: Any, module: Any, runtime: Runtime) -> list[dict[str, Any]]:
    done = run(runtime, runtime.submit(turn.calls, caller=ANN, thread="t", turn=f"{module.__name__}-{turn.id}"))
    written: list[dict[str, Any]] = [*turn.said, *module.write_results(turn, done)]
    return written


def test_a_chat_goes_on_with_the_schemas_and_the_results_of_its_calls(runtime: Runtime, server: Any) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        messages: list[Any] = [{"role": "user", "content": "hello"}]
        tools: Any = chat.as_openai_tools(runtime)
        with client.chat.completions.stream(model="m", messages=messages, tools=tools) as stream:
            turn = chat.read_calls(runtime, stream.get_final_completion())
        messages += results(turn, chat, runtime)
        client.chat.completions.create(model="m", messages=messages, tools=tools)
    (_, first), (_, second) = server.requests
    schemas = {tool.name: tool.input_schema() for tool in shop("https://a.example").tools}
    assert {one["function"]["name"]: one["function"]["parameters"] for one in first["tools"]} == schemas
    _, said, shown, waits = second["messages"]
    assert [set(call) for call in said["tool_calls"]] == [{"id", "type", "function"}] * 2
    assert [set(call["function"]) for call in said["tool_calls"]] == [{"name", "arguments"}] * 2
    assert [one["tool_call_id"] for one in (shown, waits)] == [call["id"] for call in said["tool_calls"]]
    assert "/pets/7" in shown["content"]
    assert "has to approve" in waits["content"]


def test_responses_go_on_with_the_schemas_and_the_results_of_their_calls(runtime: Runtime, server: Any) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        items: list[Any] = [{"role": "user", "content": "hello"}]
        tools: Any = chat.as_openai_tools(runtime, api="responses")
        turn = chat.read_calls(runtime, client.responses.parse(model="m", input=items, tools=tools))
        items += results(turn, chat, runtime)
        client.responses.create(model="m", input=items, tools=tools)
    (_, first), (_, second) = server.requests
    schemas = {tool.name: tool.input_schema() for tool in shop("https://a.example").tools}
    assert {one["name"]: one["parameters"] for one in first["tools"]} == schemas
    _, one, other, shown, waits = second["input"]
    assert set(one) == {"type", "id", "call_id", "name", "arguments", "status"}
    assert [shown["call_id"], waits["call_id"]] == [one["call_id"], other["call_id"]]
    assert "/pets/7" in shown["output"]
    assert "has to approve" in waits["output"]


@pytest.mark.parametrize("helper", [True, False])
def test_messages_go_on_with_the_schemas_and_the_results_of_their_calls(
    runtime: Runtime, server: Any, helper: bool
) -> None:
    with anthropic.Anthropic(base_url=server.url, api_key="k") as client:
        messages: list[Any] = [{"role": "user", "content": "hello"}]
        tools: Any = claude.as_anthropic_tools(runtime)
        with client.messages.stream(model="m", max_tokens=9, messages=messages, tools=tools) as stream:
            events = list(stream)
            turn = claude.read_calls(runtime, stream.get_final_message() if helper else events)
        messages += results(turn, claude, runtime)
        client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools)
    (_, first), (_, second) = server.requests
    schemas = {tool.name: tool.input_schema() for tool in shop("https://a.example").tools}
    assert {one["name"]: one["input_schema"] for one in first["tools"]} == schemas
    _, said, answered = second["messages"]
    assert [block["input"] for block in said["content"]] == [{"id": "7"}, REX]
    assert answered["role"] == "user"
    assert [block["tool_use_id"] for block in answered["content"]] == [block["id"] for block in said["content"]]
    shown, waits = (block["content"] for block in answered["content"])
    assert "/pets/7" in shown
    assert "has to approve" in waits


# What servers that only resemble a provider's leave out


def test_a_call_without_an_id_is_not_run(runtime: Runtime, world: World) -> None:
    before = len(world.api.seen)
    response, _ = provider.chat(1, [("getPet", {"id": "7"})], False)
    response["choices"][0]["message"]["tool_calls"][0]["id"] = ""
    turn = chat.read_calls(runtime, response)
    done = run(runtime, runtime.submit(turn.calls, caller=ANN))
    (told,) = chat.write_results(turn, done)
    assert "has no id" in told["content"]
    assert len(world.api.seen) == before


@pytest.mark.parametrize(("key", "given"), [("id", 7), ("id", None), ("name", 7), ("name", ["getPet"])])
def test_a_call_whose_id_or_name_is_no_text_is_no_call(runtime: Runtime, key: str, given: Any) -> None:
    message, _ = provider.messages(1, [("getPet", {"id": "7"})], False)
    message["content"][0][key] = given
    with pytest.raises(UsageError, match="no message"):
        claude.read_calls(runtime, message)


def test_a_response_without_an_id_is_a_turn_of_its_own(runtime: Runtime) -> None:
    response, _ = provider.chat(1, [("getPet", {"id": "7"})], False)
    turn = chat.read_calls(runtime, {**response, "id": ""})
    assert turn.id is None
    assert run(runtime, runtime.submit(turn.calls, caller=ANN, thread="t", turn=turn.id)).turn


def test_items_that_only_their_own_events_have_are_read(runtime: Runtime) -> None:
    _, events = provider.responses(1, [("getPet", {"id": "7"})], False)
    found = [event for _, event in events]
    found[-1] = {**found[-1], "response": {**found[-1]["response"], "output": []}}
    assert [call.name for call in chat.read_calls(runtime, found).calls] == ["getPet"]


def test_what_a_model_said_beside_its_calls_is_kept() -> None:
    runtime = Runtime([])
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": "Let me "}, "finish_reason": None}]}
    last = {"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": "see."}, "finish_reason": "stop"}]}
    (message,) = chat.read_calls(runtime, [chunk, last]).said
    assert message == {"role": "assistant", "reasoning_content": "Let me see."}
    _, events = provider.messages(1, "Hello.", False)
    found = [event for _, event in events]
    cited = {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "Hello"}}
    found.insert(2, {"type": "content_block_delta", "index": 0, "delta": cited})
    (message,) = claude.read_calls(runtime, found).said
    assert message["content"] == [{"type": "text", "text": "Hello.", "citations": [cited["citation"]]}]
