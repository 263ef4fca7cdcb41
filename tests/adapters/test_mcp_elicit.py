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
from door_world import World, world_in
from doors_mcp import Served, answered, http_client

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


def test_an_answer_that_was_not_asked_for_or_is_anothers_counts_for_nothing(world: World) -> None:
    """The state is sealed: to this server, the call, and who is behind it."""

    async def post(http: httpx2.AsyncClient, url: str, token: str, **params: Any) -> Any:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
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

    async def main() -> None:
        async with Served(world, elicit=True) as served, httpx2.AsyncClient() as http:
            yes = {"inputResponses": {"approval": {"action": "accept", "content": {"approve": True}}}}
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
