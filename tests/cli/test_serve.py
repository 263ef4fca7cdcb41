"""`toolgen serve` as processes, with the mcp client that others wrote on the other side."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2
import pytest
from door_world import World, world_in
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from served import REX, TOKEN, Process, Shop, made, over_http, started
from shown import petstore

from toolgen import Runtime, generate, load_toolset
from toolgen.approvals.states import CallState
from toolgen.cli.serving import _logs_in_lines
from toolgen.cli.upstream import dispatchers
from toolgen.cli.who import login


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with petstore() as api:
        yield made(tmp_path, api)


def test_the_settings_of_the_readme_start_a_server_whose_writes_wait_and_run_once_approved(shop):
    async def use() -> None:
        async with Client(StdioServerParameters(**shop.settings(), cwd=shop.folder)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"getPet", "createPet", "get_approval_result", "list_pending_approvals"} <= names
            read = await client.call_tool("getPet", {"petId": "7"})
            assert read.structured_content["result"]["name"] == "Rex"
            assert shop.api.requests == ["GET /v1/pets/7"]
            waits = (await client.call_tool("createPet", REX)).structured_content
            assert waits["status"] == "pending"
            assert [pause.requester for pause in shop.pauses()] == [login()]
            shop.approve(waits["approvalId"])
            ran = await client.call_tool("get_approval_result", {"approvalId": waits["approvalId"]})
            assert ran.structured_content["result"]["species"] == "dog"
            assert shop.api.requests == ["GET /v1/pets/7", "POST /v1/pets"]

    asyncio.run(use())


def test_a_toolset_that_changes_is_told_to_the_client_which_then_sees_it(shop):
    async def use(url: str, token: str) -> None:
        told = asyncio.Event()

        async def heard(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/tools/list_changed":
                told.set()

        async with (
            httpx2.AsyncClient(headers=headers(token), trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http), mode="legacy", message_handler=heard) as client,
        ):
            assert client.server_capabilities.tools.list_changed
            await client.list_tools()
            file = shop.path("petstore.tools.yaml")
            loaded = load_toolset(file)
            loaded.model_copy(update={"tools": loaded.tools[:2]}).save(file)
            async with asyncio.timeout(10):
                await told.wait()
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"listPets", "createPet"} <= names
            assert "getPet" not in names

    with over_http(shop) as (url, token):
        asyncio.run(use(url, token))


def test_two_toolsets_with_a_tool_of_one_name_offer_both(shop):
    toolset = generate(shop.path("petstore.yaml"), api="other", server="https://other.example")
    toolset.save(shop.path("other.tools.yaml"))
    settings = shop.settings()
    settings["args"] += [str(shop.path("other.tools.yaml"))]
    settings["args"].remove("--config")
    settings["args"].remove(str(shop.path("toolgen.yaml")))
    settings["args"] += ["--credential", "petstore.bearerAuth=${env:SHOP_TOKEN}"]
    settings["args"] += ["--review-url", "https://review.example/{id}", "--no-list-pending", "--output-schemas"]

    async def use() -> None:
        async with Client(StdioServerParameters(**settings, cwd=shop.folder.parent)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert {"petstore_getPet", "other_getPet"} <= set(tools)
            assert "list_pending_approvals" not in tools
            assert tools["petstore_getPet"].output_schema is not None
            read = await client.call_tool("petstore_getPet", {"petId": "7"})
            assert read.structured_content["result"]["name"] == "Rex"
            refused = await client.call_tool("other_getPet", {"petId": "7"})
            waits = (await client.call_tool("petstore_createPet", REX)).structured_content
            assert waits["reviewUrl"] == f"https://review.example/{waits['approvalId']}"
            assert (refused.is_error, shop.api.requests) == (True, ["GET /v1/pets/7"])  # it has no credential

    asyncio.run(use())


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (None, 0)])
def test_over_stdio_it_ends_when_interrupted_or_with_its_input_and_says_nothing_but_the_protocol(shop, by, code):
    with started(shop, "--lazy") as server:
        server.told("over stdio")
        stdin, stdout = server.process.stdin, server.process.stdout
        print(json.dumps(INITIALIZE), file=stdin, flush=True)
        assert json.loads(stdout.readline())["result"]["serverInfo"]["name"] == "petstore"
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=stdin, flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}), file=stdin, flush=True)
        names = {tool["name"] for tool in json.loads(stdout.readline())["result"]["tools"]}
        assert {"search_tools", "describe_tool", "call_tool"} <= names
        assert "getPet" not in names
        if by is None:
            stdin.close()
        ended = server.ended(by)
        assert (ended[0], ended[1]) == (code, "")
        assert "Traceback" not in ended[2]


# over HTTP


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[World, str, str]]:
    """An API that keeps what it is sent, and URL and token of a server before it."""
    folder = tmp_path_factory.mktemp("served")
    with world_in(folder) as world:
        args = [world.toolset_file.name, "--approvals", world.config_file.name, "--store", world.store]
        options = ["--transport", "http", "--port", "0", "--credential", "user=${env:SHOP_TOKEN}"]
        process = Process(Shop(folder, world.api), *args, *options)
        try:
            url = process.told(r"^serving +(http://127\.0\.0\.1:\d+/mcp)$")[1]
            yield world, url, process.told(r"^token +(\S+)$")[1]
        finally:
            process.close()


def headers(token: str, **more: str) -> dict[str, str]:
    accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return {"Authorization": f"Bearer {token}", **accepted, **more}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
    ],
)
def test_who_has_another_token_host_or_origin_is_refused(served, changed, status):
    _, url, token = served
    answer = httpx2.post(url, json=INITIALIZE, headers={**headers(token), **changed}, trust_env=False)
    assert answer.status_code == status
    assert token not in answer.text


def test_nothing_of_the_inbound_request_goes_to_the_api(served):
    world, url, token = served
    inbound = {
        "X-Api-Key": "inbound-1",
        "Cookie": "inbound=2",
        "X-Forwarded-For": "10.9.8.7",
        "User-Agent": "inbound-3",
    }

    async def use() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers(token, **inbound), trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool("getMine", {})

    assert asyncio.run(use()).structured_content["result"]["path"] == "/mine"
    sent = world.api.seen[-1].headers
    assert sent["authorization"] == f"Bearer {TOKEN}"
    assert not [value for value in sent.values() if "inbound" in value or "10.9.8.7" in value or token in value]


def test_a_verifier_says_who_calls_and_no_token_is_made(shop):
    shop.path("people.py").write_text("def who(token):\n    return {'token-of-eve': 'eve'}.get(token)\n")

    async def use(url: str) -> Any:
        async with (
            httpx2.AsyncClient(headers=headers("token-of-eve"), trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await client.call_tool("createPet", REX)

    options = ["--transport", "http", "--port", "0", "--verifier", "people:who"]
    with started(shop, *options, PYTHONPATH=str(shop.folder)) as server:
        url = server.told(r"^serving +(http://\S+)$")[1]
        assert httpx2.post(url, json=INITIALIZE, headers=headers("token-of-ann"), trust_env=False).status_code == 401
        assert asyncio.run(use(url)).structured_content["status"] == "pending"
        code, stdout, stderr = server.ended(signal.SIGTERM)
    assert [pause.requester for pause in shop.pauses()] == ["eve"]
    assert (code, stdout) == (0, "")
    assert "token" not in stderr


class Slow(ThreadingHTTPServer):
    """An API that answers when it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.got, self.answer = Event(), Event()


class SlowHandler(BaseHTTPRequestHandler):
    server: Slow

    def do_POST(self) -> None:
        self.server.got.set()
        assert self.server.answer.wait(20)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def slow(shop: Shop) -> Iterator[Slow]:
    """The shop's toolset goes there, and its writes do not wait for a person."""
    with Slow() as api:
        thread = Thread(target=api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{api.server_port}/v1"
        generate(shop.path("petstore.yaml"), server=url).save(shop.path("petstore.tools.yaml"))
        shop.path("approvals.yaml").write_text("unmatched: allow\n", encoding="utf-8")
        yield api
        api.shutdown()
        thread.join()


def test_over_http_a_write_that_is_under_way_is_finished_before_sigterm_ends_it(shop, slow):
    async def use() -> None:
        with started(shop, "--transport", "http", "--port", "0") as server:
            url = server.told(r"^serving +(http://\S+)$")[1]
            token = server.told(r"^token +(\S+)$")[1]
            async with (
                httpx2.AsyncClient(headers=headers(token), trust_env=False) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                call = asyncio.create_task(client.call_tool("createPet", REX))
                await asyncio.to_thread(slow.got.wait, 20)
                server.process.terminate()
                await asyncio.to_thread(server.told, "^ending")
                slow.answer.set()
                assert (await call).structured_content["result"] is None
            assert server.ended()[:2] == (0, "")

    asyncio.run(use())


def test_over_stdio_a_write_that_is_under_way_is_finished_before_sigterm_ends_it(shop, slow):
    def ask(number: int, method: str, **params: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}), file=stdin, flush=True)

    with started(shop) as server:
        stdin, stdout = server.process.stdin, server.process.stdout
        print(json.dumps(INITIALIZE), file=stdin, flush=True)
        assert json.loads(stdout.readline())["id"] == 1
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=stdin, flush=True)
        ask(2, "tools/call", name="createPet", arguments=REX)
        assert slow.got.wait(20)
        server.process.terminate()
        server.told("^ending")
        slow.answer.set()
        answer = json.loads(stdout.readline())
        assert (answer["id"], answer["result"]["structuredContent"]["result"]) == (2, None)
        assert server.ended()[:2] == (0, "")


def test_a_client_that_goes_away_during_a_write_leaves_it_recorded_as_of_unknown_outcome(shop, slow):
    shop.path("approvals.yaml").write_text("requireApproval: ['http.post:*']\n", encoding="utf-8")

    with started(shop) as server:
        stdin, stdout = server.process.stdin, server.process.stdout

        def say(method: str, number: int | None = None, **params: Any) -> None:
            told = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
            print(json.dumps(told), file=stdin, flush=True)

        say("initialize", 1, **INITIALIZE["params"])
        assert json.loads(stdout.readline())["id"] == 1
        say("notifications/initialized")
        say("tools/call", 2, name="createPet", arguments=REX)
        approval = json.loads(stdout.readline())["result"]["structuredContent"]["approvalId"]
        shop.approve(approval)
        say("tools/call", 3, name="get_approval_result", arguments={"approvalId": approval})
        assert slow.got.wait(20)
        stdin.close()
        code, _, told = server.ended()
        slow.answer.set()
    assert code == 0
    # A process that ends before it could say so leaves its claim, of which nobody knows the outcome once it runs out.
    with shop.store() as store:
        store.clock = lambda: datetime.now(UTC) + timedelta(hours=1)
        asyncio.run(Runtime([], store=store, background=False).sweep())
    ((call,),) = [pause.calls for pause in shop.pauses()]
    assert call.state is CallState.outcome_unknown
    assert "Traceback" not in told


# wrong usage: told before any protocol is spoken


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--port", "0"], 2, "--port is for --transport http"),
        (["--verifier", "https://issuer.example/jwks"], 2, "--verifier is for --transport http"),
        (["--transport", "http", "--host", "0.0.0.0"], 2, "need --verifier, which says who they are"),
        (["--transport", "http", "--verifier", "https://a.example/jwks"], 2, "--verifier URL needs --audience"),
        (["--transport", "http", "--audience", "me"], 2, "--audience is for a --verifier that is a URL"),
        (["--credential", "bearerAut=${env:SHOP_TOKEN}"], 2, "did you mean 'bearerAuth'?"),
        (["--credential", f"bearerAuth={TOKEN}"], 1, "--credential bearerAuth"),
        (["--approvals", "missing.yaml"], 1, "missing.yaml"),
        (["--config", "missing.yaml"], 2, "missing.yaml"),
        (["--store", "sqlite://"], 2, "a store in memory is gone when the command ends"),
        (["petstore.yaml"], 1, "petstore.yaml"),
        (["petstore.tools.yaml"], 2, "two toolsets are of the API 'petstore'"),
    ],
)
def test_a_start_that_cannot_be_says_why_and_says_nothing_on_stdout(toolgen, options, code, said):
    toolgen("generate", "petstore.yaml")
    result = toolgen("serve", "petstore.tools.yaml", *options)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert TOKEN not in result.output


def test_a_port_that_is_taken_is_told(toolgen):
    toolgen("generate", "petstore.yaml")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = toolgen("serve", "petstore.tools.yaml", "--transport", "http", "--port", str(port))
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in result.stderr


def test_what_is_logged_is_one_line_without_the_text_of_an_error(capsys):
    try:
        raise ValueError(TOKEN)
    except ValueError:
        told = sys.exc_info()
    with _logs_in_lines():
        logging.getLogger("mcp").error("handler for %s raised", "tools/\ncall", exc_info=told)
    assert capsys.readouterr().err == "error: handler for tools/\\ncall raised (ValueError)\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--credential", "bearerAuth=${env:A}"],
            "--credential: there are several toolsets, so that it takes API.SCHEME",
        ),
        (["--credential", "shop.bearerAuth=${env:A}"], "APIs are one, two"),
        (["--server", "https://a.example"], "it takes API=URL"),
        (["--server", "one=https://a.example", "--server", "one=https://b.example"], "--server is there twice for one"),
        (["--server-variable", "region=eu"], "it takes API.NAME=VALUE"),
        (["--credential", "two.basic=${env:A}"], "two has no such security scheme"),
    ],
)
def test_of_several_toolsets_an_option_names_the_api(toolgen, options, said):
    for api in ("one", "two"):
        toolgen("generate", "petstore.yaml", "--api", api)
    result = toolgen("serve", "one.tools.yaml", "two.tools.yaml", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_each_of_several_toolsets_gets_what_options_say_of_it(folder):
    found = [(generate("petstore.yaml", api=api), Path(f"{api}.tools.yaml")) for api in ("one", "two")]
    first, second = dispatchers(
        found,
        server=["two=https://two.example"],
        server_variable=None,
        credential=["one.bearerAuth=${env:ONE}", "two.bearerAuth=${env:TWO}"],
        allow_private=None,
        config=None,
    )
    requests = [one.resolve("getStock", {}) for one in (first, second)]
    assert [request.url for request in requests] == ["https://petstore.example/v1/stock", "https://two.example/stock"]
    assert first.credential_digest(requests[0]) != second.credential_digest(requests[1])
