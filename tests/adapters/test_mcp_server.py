"""An MCP client sees the tools as they are, learns what waits, and gets at nothing that is not its own."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from door_world import ANN, World, shop, world_in
from doors_mcp import Served, answered, http_client
from jsonschema_rs import Draft202012Validator
from mcp.client.client import Client
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from raw_server import answer as raw_answer
from raw_server import answering, serving
from small_documents import document
from starlette.requests import Request

from toolgen import ApprovalConfig, Caller, Decision, Dispatcher, Runtime, functions, generate
from toolgen.adapters.mcp_http import FunctionVerifier, JwtVerifier, LoopbackToken, http_app, verified, verifier_of
from toolgen.adapters.mcp_server import McpServer, _caller_of
from toolgen.approvals.model import Decider
from toolgen.errors import UsageError
from toolgen.tools.files import load_toolset

REX = {"requestBody": {"name": "Rex"}}
ACCEPT = {"Accept": "application/json, text/event-stream"}
NOTED = "the answer is not what the API's document says of it"
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made
        asyncio.run(made.close())


@asynccontextmanager
async def client_of(runtime: Runtime, who: Caller | None = ANN, **more: Any) -> Any:
    server = McpServer(runtime, **more)
    server.serve_for(who)
    async with Client(server.protocol) as client:
        yield client


def test_tools_are_listed_on_one_page_with_their_schemas_as_they_are(world: World) -> None:
    async def main() -> None:
        async with client_of(world.runtime()) as client:
            listed = await client.list_tools()
            assert listed.next_cursor is None
            own = {"get_approval_result", "list_pending_approvals"}
            tools = {tool.name: tool for tool in listed.tools if tool.name not in own}
            assert {name: tool.input_schema for name, tool in tools.items()} == {
                tool.name: tool.input_schema() for tool in shop(world.api.url).tools
            }
            assert tools["getPet"].annotations.read_only_hint
            assert tools["addPet"].meta == {
                "toolgen/method": "post",
                "toolgen/path": "/pets",
                "toolgen/group": "General",
            }
            assert all(tool.output_schema is None for tool in listed.tools)
        async with client_of(world.runtime(), list_pending=False) as client:
            assert "list_pending_approvals" not in {tool.name for tool in (await client.list_tools()).tools}
            assert answered(await client.call_tool("list_pending_approvals", {})).status == "denied"

    world.run(main())


def test_no_tool_decides_anything(world: World) -> None:
    async def main() -> None:
        async with client_of(world.runtime(), lazy=True) as client:
            listed = (await client.list_tools()).tools
        words = ("approve", "decide", "reject", "verdict")
        assert [tool.name for tool in listed if any(word in tool.name for word in words)] == []
        assert [key for tool in listed for key in tool.input_schema["properties"] if key in words] == []

    world.run(main())


def test_the_same_call_while_it_waits_is_the_one_that_waits(world: World) -> None:
    async def main() -> None:
        async with client_of(world.runtime(), review_url="https://inbox.example/a/{id}") as client:
            first, same = [answered(await client.call_tool("addPet", REX)) for _ in range(2)]
            other = answered(await client.call_tool("addPet", {"requestBody": {"name": "Tom"}}))
            listed = await client.call_tool("list_pending_approvals", {})
        assert first.approval == same.approval != other.approval
        assert [one["approvalId"] for one in listed.structured_content["result"]] == [other.approval, first.approval]
        assert listed.structured_content["result"][1]["reviewUrl"] == f"https://inbox.example/a/{first.approval}"
        assert f"https://inbox.example/a/{first.approval}" in first.text
        await world.decide(str(first.approval))
        async with client_of(world.runtime()) as client:
            got = [await client.call_tool("get_approval_result", {"approvalId": first.approval}) for _ in range(2)]
            assert got[0].structured_content == got[1].structured_content
            again = answered(await client.call_tool("addPet", REX))
        assert again.status == "pending"
        assert again.approval != first.approval  # what has run is asked for anew
        assert world.api.lines == ["POST /pets"]

    world.run(main())


def test_what_somebody_else_waits_for_is_not_there(world: World) -> None:
    async def main() -> None:
        async with client_of(world.runtime()) as client:
            mine = answered(await client.call_tool("addPet", REX))
        await world.decide(str(mine.approval))
        unknown = set()
        for who in (Caller("eve"), Caller("ann", tenant="other"), None):
            async with client_of(world.runtime(), who) as client:
                for id in (mine.approval, "0" * 32, "", 7, None):
                    found = await client.call_tool("get_approval_result", {"approvalId": id})
                    assert found.is_error
                    unknown.add(found.content[0].text)
                assert (await client.call_tool("list_pending_approvals", {})).structured_content == {"result": []}
        assert len(unknown) == 1
        assert world.api.lines == []

    world.run(main())


def test_an_api_s_tool_of_the_name_of_the_server_s_own_is_offered_under_another() -> None:
    def get_approval_result(approval: str) -> str:
        return f"mine, {approval}"

    async def main() -> None:
        runtime = Runtime(functions({"get_approval_result": get_approval_result}), ApprovalConfig.off())
        async with client_of(runtime) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["builtin_get_approval_result", "get_approval_result", "list_pending_approvals"]
            found = await client.call_tool("builtin_get_approval_result", {"approval": "7"})
            assert found.structured_content == {"result": "mine, 7"}
        await runtime.aclose()

    asyncio.run(main())


def test_a_large_api_is_searched_described_and_called_and_each_call_is_its_own_tools(world: World) -> None:
    async def main() -> None:
        async with client_of(world.runtime(), lazy=True) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[:3] == ["search_tools", "describe_tool", "call_tool"]
            found = (await client.call_tool("search_tools", {"query": "adding a pet"})).structured_content["result"]
            assert found[0]["name"] == "addPet"
            told = (await client.call_tool("describe_tool", {"name": "addPet"})).structured_content["result"]
            assert told["inputSchema"]["required"] == ["requestBody"]
            assert told["_meta"]["toolgen/method"] == "post"
            calls = [
                ("getPet", {"id": "7"}),
                ("addPet", REX),
                ("clear", {}),
                ("sellPet", {}),
                ("call_tool", {}),
                (7, {}),
            ]
            statuses = [
                answered(await client.call_tool("call_tool", {"name": name, "arguments": given})).status
                for name, given in calls
            ]
            assert statuses == ["ok", "pending", "denied", "denied", "error", "error"]
            assert answered(await client.call_tool("describe_tool", {"name": "sellPet"})).status == "error"
            assert answered(await client.call_tool("search_tools", {"query": 7})).status == "error"
        assert world.api.lines == ["GET /pets/7"]

    world.run(main())


def test_the_toolset_and_its_page_can_be_read(world: World) -> None:
    async def main() -> None:
        async with client_of(world.runtime()) as client:
            uris = [one.uri for one in (await client.list_resources()).resources]
            assert uris == ["toolgen://shop/docs", "toolgen://shop/toolset"]
            page, data = [(await client.read_resource(uri)).contents[0] for uri in uris]
            assert "addPet" in page.text
            assert page.mime_type == "text/markdown"
            assert json.loads(data.text)["api"] == "shop"
            for uri in ("toolgen://shop/other", "toolgen://none/docs", "file:///etc/passwd", "toolgen://shop"):
                with pytest.raises(Exception, match="no such resource"):
                    await client.read_resource(uri)

    world.run(main())


def test_a_secret_that_somebody_wrote_into_a_toolset_is_in_no_resource(world: World) -> None:
    text = world.toolset_file.read_text()
    constant = "  request:\n    header:\n    - {name: X-Api-Key, value: hand-written}\n    security:"
    world.toolset_file.write_text(text.replace("  request:\n    security:", constant))
    world.toolset = load_toolset(world.toolset_file)

    async def main() -> None:
        async with client_of(world.runtime()) as client:
            for uri in ("toolgen://shop/docs", "toolgen://shop/toolset"):
                found = (await client.read_resource(uri)).contents[0].text
                assert "getMine" in found
                assert "hand-written" not in found
            assert "X-Api-Key" in found
            assert "{{ requestBody }}" in found

    world.run(main())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"n": 1, "next": {"n": 2}}', None),
        (b'{"n": 1, "next": {"n": "x"}}', NOTED),
        (b"[1]", NOTED),
        (b"null", NOTED),
        (b"", NOTED),
    ],
)
def test_an_answer_that_is_not_as_documented_reaches_a_client_that_checks_it(body: bytes, message: str | None) -> None:
    node = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}},
        "required": ["n"],
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}
    operation = {"operationId": "addNode", "responses": {"200": {"description": "ok", "content": content}}}
    read = document({"/nodes": {"post": operation}}, components={"schemas": {"Node": node}})

    async def main() -> None:
        with serving(answering(lambda _: raw_answer(200, body))) as server:
            dispatcher = Dispatcher(generate(read, api="tree", server=server.url))
            runtime = Runtime(dispatcher, ApprovalConfig.off(), background=False)
            async with client_of(runtime, output_schemas=True) as client:
                tool = next(one for one in (await client.list_tools()).tools if one.name == "addNode")
                found = (await client.call_tool("addNode", {})).structured_content
            await runtime.aclose()
            await dispatcher.aclose()
        assert Draft202012Validator(tool.output_schema).is_valid(found)
        assert found == {"result": json.loads(body or b"null")} | ({"message": message} if message else {})

    asyncio.run(main())


def test_a_write_whose_client_goes_away_is_recorded_as_of_unknown_outcome_and_not_made_again(tmp_path: Path) -> None:
    began, go = Event(), Event()

    def slow(_: Any) -> bytes:
        began.set()
        go.wait(10)
        return raw_answer(200, b"{}")

    async def main() -> None:
        with serving(answering(slow)) as server:
            dispatcher = Dispatcher(shop(server.url))
            runtime = Runtime(dispatcher, background=False)
            async with client_of(runtime) as client:
                waits = answered(await client.call_tool("addPet", REX))
                await runtime.decide(str(waits.approval), Decision("approved"), decider=Decider("grace"))
                asked = {"approvalId": waits.approval}
                asking = asyncio.create_task(client.call_tool("get_approval_result", asked))
                assert await asyncio.to_thread(began.wait, 10)
                asking.cancel()
                await asyncio.wait({asking})
                statuses = [answered(await client.call_tool("get_approval_result", asked)) for _ in range(2)]
            go.set()
            assert {one.status for one in statuses} == {"outcome_unknown"}
            assert len(server.requests) == 1
            await runtime.aclose()
            await dispatcher.aclose()

    asyncio.run(main())


def test_what_went_wrong_in_the_server_is_told_to_no_client(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a secret")

    async def main() -> None:
        for mode in ("auto", "legacy"):
            async with Served(world) as served, AsyncExitStack() as stack:
                client = await http_client(stack, served.url, "token-of-ann", mode=mode)
                with monkeypatch.context() as patched:
                    patched.setattr(served.runtime.store, "pauses", fails)
                    found = await client.call_tool("addPet", REX)
                assert found.is_error
                assert "RuntimeError" in found.content[0].text
                assert "secret" not in str(found)

    world.run(main())


def test_a_session_is_of_who_opened_it_and_no_other_token_can_use_or_end_it(world: World) -> None:
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    async def main() -> None:
        async with Served(world) as served, httpx2.AsyncClient(headers=ACCEPT) as http:
            ann, eve = ({"Authorization": f"Bearer token-of-{who}"} for who in ("ann", "eve"))
            body = {**PING, "method": "initialize", "params": opening}
            session = {
                "Mcp-Session-Id": (await http.post(served.url, json=body, headers=ann)).headers["mcp-session-id"]
            }
            for method in ("POST", "GET", "DELETE"):
                given = {"json": PING} if method == "POST" else {}
                found = await http.request(method, served.url, headers={**eve, **session}, **given)
                assert found.status_code == 404, method
            assert (await http.delete(served.url, headers={**ann, **session})).status_code == 200

    world.run(main())


def test_clients_are_told_when_the_tools_change(world: World) -> None:
    async def main() -> None:
        for mode in ("auto", "legacy"):
            told = asyncio.Event()

            async def heard(message: Any, told: asyncio.Event = told) -> None:
                if "list_changed" in str(message):
                    told.set()

            async with Served(world) as served, AsyncExitStack() as stack:
                client = await http_client(stack, served.url, "token-of-ann", mode=mode, message_handler=heard)
                await client.list_tools()
                if mode == "auto":
                    listening = await stack.enter_async_context(client.listen(tools_list_changed=True))
                    await served.server.tools_changed()
                    async for event in listening:
                        assert "ToolsListChanged" in type(event).__name__
                        break
                else:
                    await served.server.tools_changed()
                    async with asyncio.timeout(10):
                        await told.wait()

    world.run(main())


def test_twenty_clients_of_two_people_see_their_own_alone(world: World) -> None:
    async def one(url: str, token: str, number: int) -> tuple[str, str]:
        async with AsyncExitStack() as stack:
            client = await http_client(stack, url, token)
            arguments = {"requestBody": {"name": f"{token}-{number}"}}
            return token, str(answered(await client.call_tool("addPet", arguments)).approval)

    async def listed(url: str, token: str) -> set[str]:
        async with AsyncExitStack() as stack:
            client = await http_client(stack, url, token)
            found = await client.call_tool("list_pending_approvals", {})
            return {one["approvalId"] for one in found.structured_content["result"]}

    async def main() -> None:
        async with Served(world) as served:
            tokens = ["token-of-ann", "token-of-eve"]
            made = await asyncio.gather(*(one(served.url, tokens[n % 2], n) for n in range(20)))
            for token in tokens:
                assert await listed(served.url, token) == {id for whose, id in made if whose == token}
            for id in (id for _, id in made):
                await world.decide(id)
            async with AsyncExitStack() as stack:
                eve = await http_client(stack, served.url, "token-of-eve")
                for whose, id in made:
                    found = answered(await eve.call_tool("get_approval_result", {"approvalId": id}))
                    assert found.status == ("ok" if whose == "token-of-eve" else "error")
        assert {one.body["name"].rpartition("-")[0] for one in world.api.seen} == {"token-of-eve"}
        sent = json.dumps([one.headers for one in world.api.seen])
        assert "token-of" not in sent  # the inbound token goes to nobody
        assert "mcp" not in sent.lower()

    world.run(main())


def test_a_request_without_a_valid_token_host_or_origin_is_refused(world: World) -> None:
    async def main() -> None:
        async with Served(world) as served, httpx2.AsyncClient(headers=ACCEPT) as http:
            good = {"Authorization": "Bearer token-of-ann"}
            for headers, status in (
                ({}, 401),
                ({"Authorization": "Bearer nobody's"}, 401),
                ({"Authorization": "Basic token-of-ann"}, 401),
                ({**good, "Host": "evil.example"}, 421),
                ({**good, "Origin": "https://evil.example"}, 403),
            ):
                found = await http.post(served.url, json=PING, headers=headers)
                assert found.status_code == status, headers
            assert (await http.post(served.url, json=PING, headers=good)).status_code != 401

    world.run(main())


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("127.0.0.1:8000@api.example", None),
        ("127.0.0.1:port", None),
        ("127.0.0.1:99999", None),
        ("", None),
    ],
)
def test_the_origin_a_token_may_go_to_is_one_that_was_addressed(host: str, origin: str | None) -> None:
    user = AuthenticatedUser(verified(ANN, "token-of-ann"))
    scope = {"type": "http", "scheme": "http", "path": "/mcp", "headers": [(b"host", host.encode())], "user": user}
    found = _caller_of(SimpleNamespace(request=Request(scope)), None)
    assert found is not None
    assert found.origin == origin


def test_only_the_port_that_is_listened_on_can_be_addressed(world: World) -> None:
    async def main() -> None:
        app = http_app(McpServer(world.runtime()), verifier=FunctionVerifier(lambda _: "ann"), port=8000)
        async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
            headers = {**ACCEPT, "Authorization": "Bearer x", "MCP-Protocol-Version": "2026-07-28"}
            statuses = {
                host: (
                    await http.post("http://localhost/mcp", json=PING, headers={**headers, "Host": host})
                ).status_code
                for host in (
                    "localhost:8000",
                    "[::1]:8000",
                    "localhost:9000",
                    "127.0.0.1:8000@evil.example",
                    "localhost",
                )
            }
        assert [host for host, status in statuses.items() if status != 421] == ["localhost:8000", "[::1]:8000"]

    world.run(main())


def test_a_long_call_tells_its_progress_and_ends_when_the_client_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgen.adapters.mcp_server._TICK", 0.01)
    began, ended = Event(), Event()

    async def slow() -> str:
        began.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()
        return "late"

    async def main() -> None:
        runtime = Runtime(functions({"slow": slow}), ApprovalConfig.off())
        async with client_of(runtime) as client:
            heard = asyncio.Event()

            async def progress(*_: Any) -> None:
                heard.set()

            calling = asyncio.create_task(client.call_tool("slow", {}, progress_callback=progress))
            await heard.wait()
            await asyncio.to_thread(began.wait, 10)
            calling.cancel()
            await asyncio.wait({calling})
            await asyncio.to_thread(ended.wait, 10)
            assert ended.is_set()
        await runtime.aclose()

    asyncio.run(main())


# Who a token is of


def signed(key: Any, *, algorithm: str = "RS256", kid: str | None = "one", **claims: Any) -> str:
    told = {"sub": "ann", "aud": "us", "iss": "https://id.example", "exp": time.time() + 600} | claims
    told = {name: value for name, value in told.items() if value is not None}
    return jwt.encode(told, key, algorithm=algorithm, headers={"kid": kid} if kid else {})


def shared(secret: bytes) -> str:
    """A token signed with a shared secret, which a careless verifier takes a public key for."""
    head = {"alg": "HS256", "typ": "JWT", "kid": "one"}
    claims = {"sub": "ann", "aud": "us", "iss": "https://id.example", "exp": time.time() + 600}
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in (head, claims)]
    mac = hmac.new(secret, b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()


RSA, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
EC = ec.generate_private_key(ec.SECP256R1())


def key_set() -> bytes:
    keys = [
        {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "one"},
        {**jwt.algorithms.ECAlgorithm.to_jwk(EC.public_key(), as_dict=True), "kid": "two"},
        {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "for encryption", "use": "enc"},
        {**jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "of PS256", "alg": "PS256"},
    ]
    return json.dumps({"keys": keys}).encode()


def test_a_token_of_the_issuer_for_this_audience_says_who_it_is_of() -> None:
    public = json.dumps(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True))
    wrong = {
        "another key": signed(OTHER),
        "another key's id": signed(RSA, kid="two"),
        "an unknown key": signed(RSA, kid="three"),
        "expired": signed(RSA, exp=time.time() - 60),
        "no end": signed(RSA, exp=None),
        "another audience": signed(RSA, aud="them"),
        "no audience": signed(RSA, aud=None),
        "another issuer": signed(RSA, iss="https://evil.example"),
        "no issuer": signed(RSA, iss=None),
        "nobody": signed(RSA, sub=None),
        "blank": signed(RSA, sub=" "),
        "not yet": signed(RSA, nbf=time.time() + 600),
        "unsigned": jwt.encode({"sub": "ann", "aud": "us"}, None, algorithm="none", headers={"kid": "one"}),
        "the public key as a secret": shared(public.encode()),
        "no token": "nothing",
        "empty": "",
    }

    async def main() -> None:
        with serving(answering(lambda _: raw_answer(200, key_set()))) as server:
            verifier = JwtVerifier(f"{server.url}/keys", audience="us", issuer="https://id.example")
            for token in (signed(RSA), signed(EC, algorithm="ES256", kid="two"), signed(RSA, aud=["us", "them"])):
                found = await verifier.verify_token(token)
                assert found is not None
                assert (found.caller.subject, found.caller.tenant) == ("ann", "default")
                assert found.caller.expires is not None
                assert token not in repr(found)
            assert await verifier.verify_token(signed(RSA, kid="for encryption")) is None
            assert await verifier.verify_token(signed(RSA, kid="of PS256")) is None
            for what, token in wrong.items():
                assert await verifier.verify_token(token) is None, what
            assert len(server.requests) <= 2  # the keys are kept, and unknown ones asked for now and then

    asyncio.run(main())


def test_while_the_keys_cannot_be_had_nobody_is_known() -> None:
    async def main() -> None:
        for given in (raw_answer(500, b""), raw_answer(200, b"nothing"), raw_answer(200, b'{"keys": 7}')):
            with serving(answering(lambda _, given=given: given)) as server:
                verifier = JwtVerifier(server.url, audience="us")
                assert [await verifier.verify_token(signed(RSA)) for _ in range(5)] == [None] * 5
                assert len(server.requests) == 1  # whoever sends tokens makes nobody else's server busy

    asyncio.run(main())


def test_a_known_key_is_not_held_up_by_the_search_for_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgen.dispatch.jwks._AT_MOST", 0.0)
    searched, go, first = Event(), Event(), Event()

    def keys(_: Any) -> bytes:
        if first.is_set():
            searched.set()
            go.wait(10)
        first.set()
        return raw_answer(200, key_set())

    async def main() -> None:
        with serving(answering(keys)) as server:
            verifier = JwtVerifier(server.url, audience="us")
            assert await verifier.verify_token(signed(RSA)) is not None
            search = asyncio.create_task(verifier.verify_token(signed(RSA, kid="unknown")))
            assert await asyncio.to_thread(searched.wait, 10)
            async with asyncio.timeout(5):
                assert await verifier.verify_token(signed(RSA)) is not None
            go.set()
            assert await search is None

    asyncio.run(main())


def test_a_function_or_a_made_token_says_who_it_is() -> None:
    async def later(token: str) -> Any:
        return Caller("ann", tenant="shop") if token == "t" else None

    def fails(token: str) -> Any:
        raise RuntimeError(token)

    async def main() -> None:
        found = await FunctionVerifier(later).verify_token("t")
        assert found is not None
        assert (found.caller.subject, found.caller.tenant) == ("ann", "shop")
        for function in (later, fails, lambda _: "", lambda _: " ", lambda _: 7, lambda _: {"sub": "ann"}):
            assert await FunctionVerifier(function).verify_token("other") is None
        made = LoopbackToken(Decider("root"))
        found = await made.verify_token(made.token)
        assert found is not None
        assert (found.caller.subject, found.caller.token) == ("root", None)
        assert await made.verify_token(f"{made.token}x") is None
        assert await made.verify_token("ä") is None
        assert LoopbackToken(Decider("root")).token != made.token

    asyncio.run(main())


@pytest.mark.parametrize(
    ("text", "audience", "says"),
    [
        ("https://id.example/keys", None, "audience"),
        ("http://id.example/keys", "us", "https"),
        ("ftp://id.example/keys", "us", "https"),
        ("no_such_module_here:f", None, "cannot be imported"),
        ("json:nothing", None, "module:function"),
        ("json:JSONDecoder", None, "module:function"),
        ("json", None, "module:function"),
        ("", None, "module:function"),
    ],
)
def test_what_is_no_verifier_is_refused(text: str, audience: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        verifier_of(text, audience=audience)
