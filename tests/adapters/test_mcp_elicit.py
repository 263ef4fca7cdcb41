"""A client's user is asked only about what the config lets them approve themselves, and only what was asked counts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from door_world import ANN, World, world_in
from doors_mcp import Served, answered, http_client
from mcp.client.client import Client
from raw_server import answer as raw_answer
from raw_server import answering, serving
from small_documents import document

from toolgen import Caller, Dispatcher, Runtime, ToolCall, generate
from toolgen.adapters.mcp_elicit import answered as answered_by
from toolgen.adapters.mcp_server import McpServer

REX = {"requestBody": {"name": "Rex"}}
FREE = "requireApproval: ['http.post:*', 'http.put:*']\ndeny: ['http.delete:*']\n"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        made.config_file.write_text(FREE)
        yield made
        asyncio.run(made.close())


class User:
    """Who sits before the client."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def __call__(self, _: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        return self.answers.pop(0) if self.answers else types.ElicitResult(action="cancel")


YES = types.ElicitResult(action="accept", content={"approve": True})
NO = types.ElicitResult(action="accept", content={"approve": False})
DECLINE = types.ElicitResult(action="decline")
CANCEL = types.ElicitResult(action="cancel")
EMPTY = types.ElicitResult(action="accept", content={})
TEXT = types.ElicitResult(action="accept", content={"approve": "true"})
CLOSED = types.ElicitResult(action="cancel", content={"approve": True})
SAID_YES = {"approval": {"action": "accept", "content": {"approve": True}}}


async def called(world: World, user: User | None, mode: str, *, elicit: bool = True, **more: Any) -> Any:
    async with Served(world, elicit=elicit, **more) as served, AsyncExitStack() as stack:
        given = {} if user is None else {"elicitation_callback": user}
        client = await http_client(stack, served.url, "token-of-ann", mode=mode, **given)
        return answered(await client.call_tool("addPet", REX))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("answer", "status", "sent"),
    [
        (YES, "ok", 1),
        (NO, "rejected", 0),
        (DECLINE, "rejected", 0),
        (CANCEL, "pending", 0),
        (EMPTY, "pending", 0),
        (TEXT, "pending", 0),
        (CLOSED, "pending", 0),
    ],
)
def test_the_user_is_shown_the_request_and_what_they_answer_is_the_decision(
    world: World, mode: str, answer: Any, status: str, sent: int
) -> None:
    user = User(answer)
    got = world.run(called(world, user, mode))
    assert got.status == status
    assert len(world.api.seen) == sent
    (shown,) = user.asked
    assert f"POST {world.api.url}/pets" in shown
    assert '"name": "Rex"' in shown
    decided = world.runtime().store.pauses()[0].calls[0].votes
    assert [vote.decider for vote in decided] == (["ann"] if status != "pending" else [])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    "config",
    [
        f"{FREE}rules: [{{match: 'http.*:*', approvers: ['role:boss']}}]\n",
        f"{FREE}rules: [{{match: 'http.*:*', allowSelfApproval: false}}]\n",
        f"{FREE}rules: [{{match: 'http.*:*', approvers: ['ann', 'bob'], allowSelfApproval: false}}]\n",
        f"{FREE}rules: [{{match: 'http.*:*', approvers: ['ann', 'bob'], allowSelfApproval: true}}]\n",
    ],
)
def test_nobody_is_asked_who_may_not_approve_it(world: World, mode: str, config: str) -> None:
    world.config_file.write_text(config)
    user = User(YES)
    assert world.run(called(world, user, mode)).status == "pending"
    assert user.asked == []
    assert world.api.lines == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_nobody_is_asked_unless_the_server_and_the_client_do_that(world: World, mode: str) -> None:
    user = User(YES, YES)
    assert world.run(called(world, user, mode, elicit=False)).status == "pending"
    assert user.asked == []
    assert world.run(called(world, None, mode)).status == "pending"
    assert world.api.lines == []


def test_a_request_that_cannot_be_shown_whole_is_not_asked_about(world: World) -> None:
    async def main() -> Any:
        user = User(YES)
        async with Served(world, elicit=True) as served, AsyncExitStack() as stack:
            client = await http_client(stack, served.url, "token-of-ann", elicitation_callback=user)
            found = answered(await client.call_tool("addPet", {"requestBody": {"name": "x" * 20_000}}))
        return found, user.asked

    found, asked = world.run(main())
    assert (found.status, asked) == ("pending", [])


async def post(http: httpx2.AsyncClient, url: str, token: str, can: Any = None, **params: Any) -> Any:
    """What a raw message of the protocol of today is answered with; `can` is what the client says it can."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}} if can is None else can,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "addPet", "arguments": REX, "_meta": meta} | params,
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Mcp-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": body["params"]["name"],  # type: ignore[index]
    }
    answer = await http.post(url, json=body, headers=headers)
    text = answer.text if answer.text.startswith("{") else answer.text.partition("data: ")[2]
    return json.loads(text)


def test_an_answer_that_was_not_asked_for_or_is_anothers_counts_for_nothing(world: World) -> None:
    """The state is sealed: to this server, the call, and who is behind it."""

    async def main() -> None:
        async with Served(world, elicit=True) as served, httpx2.AsyncClient() as http:
            yes = {"inputResponses": SAID_YES}
            first = await post(http, served.url, "token-of-ann", **yes)  # unasked
            assert first["result"]["resultType"] == "input_required"
            state = first["result"]["requestState"]
            pause = served.runtime.store.pauses()[0]
            forged = json.dumps([pause.id, pause.revision])
            for token, params in (
                ("token-of-ann", {"requestState": forged}),
                ("token-of-ann", {"requestState": state[:-2] + "AA"}),
                ("token-of-eve", {"requestState": state}),
                ("token-of-ann", {"requestState": state, "arguments": {"requestBody": {"name": "Tom"}}}),
                ("token-of-ann", {"requestState": state, "name": "getPet", "arguments": {"id": "7"}}),
            ):
                refused = await post(http, served.url, token, **yes, **params)
                assert refused["error"]["code"] == -32602, params
            assert world.api.lines == []
            assert served.runtime.store.pause(pause.id, "default").waiting
            done = await post(http, served.url, "token-of-ann", **yes, requestState=state)
            assert done["result"]["structuredContent"]["result"]["got"] == {"name": "Rex"}
            again = await post(http, served.url, "token-of-ann", **yes, requestState=state)
            assert again["result"]["structuredContent"] == done["result"]["structuredContent"]
            assert world.api.lines == ["POST /pets"]  # replayed

    world.run(main())


def test_only_a_client_that_can_show_a_form_is_asked(world: World) -> None:
    kinds: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
    ]

    async def main() -> None:
        async with Served(world, elicit=True) as served, httpx2.AsyncClient() as http:
            for number, (can, asked) in enumerate(kinds):
                given = {"requestBody": {"name": f"Rex {number}"}}
                found = await post(http, served.url, "token-of-ann", can, arguments=given)
                assert (found["result"]["resultType"] == "input_required") is asked, can

    world.run(main())


def test_an_answer_to_what_has_changed_meanwhile_decides_nothing(world: World) -> None:
    async def main() -> None:
        async with Served(world, elicit=True) as served, httpx2.AsyncClient() as http:
            state = (await post(http, served.url, "token-of-ann"))["result"]["requestState"]
            pause = served.runtime.store.pauses()[0]
            await served.runtime.extend(pause.id, None, actor="grace")
            told = await post(http, served.url, "token-of-ann", requestState=state, inputResponses=SAID_YES)
            assert told["result"]["structuredContent"]["status"] == "pending"
            assert served.runtime.store.pause(pause.id, "default").calls[0].votes == ()
        assert world.api.lines == []

    world.run(main())


def test_what_somebody_else_asked_for_is_not_decided_even_where_the_config_would_let_them(world: World) -> None:
    async def main() -> None:
        runtime = world.runtime()
        pause = (await runtime.submit([ToolCall("1", "addPet", REX, "shop")], caller=ANN)).pause
        assert pause is not None
        state = json.dumps([pause.id, pause.revision])
        for who in (Caller("eve"), Caller("ann", tenant="other"), None):
            await answered_by(runtime, who, state, {"approval": YES})
            assert runtime.store.pause(pause.id, "default").calls[0].votes == ()
        await answered_by(runtime, ANN, state, {"approval": YES})
        assert [vote.decider for vote in runtime.store.pause(pause.id, "default").calls[0].votes] == ["ann"]

    world.run(main())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_approved_answer_that_is_not_as_documented_reaches_a_client_that_checks_it(mode: str) -> None:
    content = {"application/json": {"schema": {"type": "object", "required": ["n"]}}}
    operation = {"operationId": "addNode", "responses": {"200": {"description": "ok", "content": content}}}

    async def main() -> None:
        with serving(answering(lambda _: raw_answer(200, b"[1]"))) as server:
            dispatcher = Dispatcher(generate(document({"/nodes": {"post": operation}}), api="tree", server=server.url))
            runtime = Runtime(dispatcher, background=False)
            served = McpServer(runtime, elicit=True, output_schemas=True)
            served.serve_for(ANN)
            async with Client(served.protocol, mode=mode, elicitation_callback=User(YES)) as client:
                await client.list_tools()
                found = await client.call_tool("addNode", {})
            await runtime.aclose()
            await dispatcher.aclose()
        assert found.structured_content["result"] == [1]
        assert "not what the API's document says" in found.structured_content["message"]

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_user_is_asked_once_however_often_the_call_is_made(world: World, mode: str) -> None:
    user = User(CANCEL, YES)

    async def main() -> list[Any]:
        async with Served(world, elicit=True) as served, AsyncExitStack() as stack:
            client = await http_client(stack, served.url, "token-of-ann", mode=mode, elicitation_callback=user)
            return [answered(await client.call_tool("addPet", REX)) for _ in range(3)]

    found = world.run(main())
    assert {(one.status, one.approval) for one in found} == {("pending", found[0].approval)}
    assert len(user.asked) == 1
