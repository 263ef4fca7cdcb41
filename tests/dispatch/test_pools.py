"""Which requests share connections, how many stay open, and when they are closed."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from raw_server import OK, Connection, RawServer, in_turn, serving
from small_documents import document, made, parameter

from toolgen.dispatch import pools
from toolgen.dispatch.http import Dispatcher
from toolgen.dispatch.settings import Http
from toolgen.identity.caller import Caller
from toolgen.tools.model import Leaf, Toolset

SCHEMES = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "user": {"type": "http", "scheme": "bearer"}}


@pytest.fixture(scope="module")
def toolset() -> Toolset:
    done = {"200": {"description": "ok"}}
    paths: dict[str, Any] = {
        "/open": {"get": {"operationId": "open", "security": [], "parameters": [parameter("q")], "responses": done}},
        "/key": {"get": {"operationId": "key", "security": [{"key": []}], "responses": done}},
        "/user": {"get": {"operationId": "user", "security": [{"user": []}], "responses": done}},
    }
    return made(document(paths, components={"securitySchemes": SCHEMES}), api="small", server="https://api.example")


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving() as found:
        yield found


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k-1234567890")


def dispatcher_of(toolset: Toolset, server: RawServer, **options: Any) -> Dispatcher:
    credentials = {"key": "${env:KEY}", "user": "${caller:token}"}
    return Dispatcher(toolset, server=server.url, credentials=credentials, **options)


def by_connection(server: RawServer) -> list[int]:
    """The number of its connection for each request."""
    return [received.connection for received in server.requests]


def of(tenant: str, server: RawServer, subject: str = "u") -> Caller:
    return Caller(subject, token=f"token-of-{tenant}-{subject}", origin=server.url, tenant=tenant)


def test_one_connection_serves_what_differs_in_nothing(toolset: Toolset, server: RawServer) -> None:
    with dispatcher_of(toolset, server) as dispatcher:
        for _ in range(3):
            dispatcher.call("open", {})
    assert by_connection(server) == [1, 1, 1]


@pytest.mark.parametrize("tool", ["open", "key", "user"])
def test_two_tenants_never_share_a_connection_even_with_the_same_credential(
    toolset: Toolset, server: RawServer, tool: str
) -> None:
    with dispatcher_of(toolset, server) as dispatcher:
        for tenant in ("a", "b", "a", "b"):
            dispatcher.call(tool, {}, caller=of(tenant, server))
    assert by_connection(server) == [1, 2, 1, 2]


def test_requests_with_different_credentials_never_share_a_connection(toolset: Toolset, server: RawServer) -> None:
    with dispatcher_of(toolset, server) as dispatcher:
        for tool in ("open", "key", "user", "open", "key", "user"):
            dispatcher.call(tool, {}, caller=of("a", server))
    assert by_connection(server) == [1, 2, 3, 1, 2, 3]


def test_two_apis_never_share_a_connection(toolset: Toolset, server: RawServer) -> None:
    other = toolset.model_copy(update={"api": "other"})
    other = Toolset.model_validate(other.model_dump(by_alias=True))
    urls = {"small": server.url, "other": server.url}
    with Dispatcher([toolset, other], server=urls) as dispatcher:
        for one in (toolset, other, toolset):
            dispatcher.call(one.tool("open"), {})
    assert by_connection(server) == [1, 2, 1]


def test_a_pool_of_connections_is_named_without_any_secret(toolset: Toolset, server: RawServer) -> None:
    async def main() -> str:
        async with dispatcher_of(toolset, server) as dispatcher:
            for tool in ("key", "user"):
                await dispatcher.acall(tool, {}, caller=of("a", server))
            here = dispatcher._pools._by_loop[asyncio.get_running_loop()]
            assert len({key.credential for key in here.pools}) == 2
            return repr(list(here.pools))

    shown = asyncio.run(main())
    assert "k-1234567890" not in shown
    assert "token-of" not in shown


def test_the_longest_unused_pools_are_closed_beyond_the_limit(
    toolset: Toolset, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "MOST_POOLS", 2)
    with dispatcher_of(toolset, server) as dispatcher:
        for tenant in ("a", "b", "a", "c", "a", "b"):  # with c, b is the longest unused
            dispatcher.call("open", {}, caller=of(tenant, server))
    assert by_connection(server) == [1, 2, 1, 3, 1, 4]


def test_a_pool_in_use_is_not_closed_for_the_limit(toolset: Toolset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_POOLS", 1)
    release = threading.Event()

    def slow(connection: Connection) -> None:
        while (received := connection.receive()) is not None:
            if "slow" in received.target:
                release.wait(5)
            connection.send(OK)

    async def main(server: RawServer) -> list[Any]:
        async with dispatcher_of(toolset, server, http=Http(retries=0)) as dispatcher:
            waiting = asyncio.create_task(dispatcher.acall("open", {"q": "slow"}, caller=of("a", server)))
            await asyncio.to_thread(server.came.wait, 5)
            others = [await dispatcher.acall("open", {}, caller=of(tenant, server)) for tenant in "bcd"]
            release.set()
            found = [await waiting, *others]
            assert len(dispatcher._pools._by_loop[asyncio.get_running_loop()].pools) == 1
            return found

    with serving(slow) as server:
        assert [result.ok for result in asyncio.run(main(server))] == [True] * 4


def test_connections_are_kept_within_their_number(toolset: Toolset, server: RawServer) -> None:
    async def main() -> None:
        async with dispatcher_of(toolset, server, http=Http(max_connections=2)) as dispatcher:
            await asyncio.gather(*(dispatcher.acall("open", {}) for _ in range(20)))

    asyncio.run(main())
    assert len(server.requests) == 20
    assert set(by_connection(server)) <= {1, 2}


async def dropped(dispatcher: Callable[[], Dispatcher]) -> None:
    """Use a dispatcher and leave it: nothing closes it, and nothing holds it any more."""
    await dispatcher().acall("open", {})


@pytest.mark.parametrize("how", ["aclose", "the loop ends", "dropped in a loop that goes on"])
def test_an_event_loop_leaves_no_connection_open(toolset: Toolset, how: str) -> None:
    """Warnings of what was not closed are errors; the server sees each connection close."""

    def holds(connection: Connection) -> None:
        connection.receive()
        connection.send(OK)
        connection.hold()

    async def main(server: RawServer) -> Dispatcher | None:
        if how == "dropped in a loop that goes on":
            await dropped(lambda: dispatcher_of(toolset, server))
            assert await asyncio.to_thread(server.gone.wait, 5)
            return None
        dispatcher = dispatcher_of(toolset, server)
        await dispatcher.acall("open", {})
        if how == "aclose":
            await dispatcher.aclose()
            await dispatcher.aclose()
            assert await asyncio.to_thread(server.gone.wait, 5)
        return dispatcher

    with serving(holds) as server:
        kept = asyncio.run(main(server))
        assert server.gone.wait(5)
    del kept
    gc.collect()


def test_one_dispatcher_serves_one_loop_after_another_and_keeps_none(toolset: Toolset, server: RawServer) -> None:
    dispatcher = dispatcher_of(toolset, server)
    for _ in range(3):
        assert asyncio.run(dispatcher.acall("open", {})).ok
        assert dispatcher.call("open", {}).ok
    assert len(dispatcher._pools._by_loop) == 2, "the last loop that ended, and that of plain code"
    dispatcher.close()
    assert by_connection(server) == [1, 2, 3, 2, 4, 2]


def test_a_call_that_tries_again_after_closing_leaves_no_connection_open(toolset: Toolset) -> None:
    def holds(connection: Connection) -> None:
        connection.receive()
        connection.hold()

    def answers(connection: Connection) -> None:
        connection.receive()
        connection.send(OK)
        server.gone.clear()
        connection.hold()

    async def main() -> Any:
        dispatcher = dispatcher_of(toolset, server, http=Http(retries=1))
        call = asyncio.create_task(dispatcher.acall("open", {}))
        assert await asyncio.to_thread(server.came.wait, 5)
        await dispatcher.aclose()
        result = await call
        assert await asyncio.to_thread(server.gone.wait, 5), "the second connection is closed, too"
        return result

    with serving(in_turn(holds, answers)) as server:
        assert asyncio.run(main()).ok
    assert by_connection(server) == [1, 2]
    gc.collect()


def test_a_transport_of_the_host_is_used_for_everything_and_never_closed(toolset: Toolset) -> None:
    class Own(httpx2.MockTransport):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    own = Own(lambda _: httpx2.Response(200, json={}))
    with Dispatcher(toolset, transport=own) as dispatcher:
        assert dispatcher.call("open", {}).ok
    assert not own.closed


def test_references_in_the_request_itself_keep_its_connection_apart(toolset: Toolset, server: RawServer) -> None:
    plain = toolset.tool("open")
    header = plain.request.model_copy(update={"header": (Leaf(name="X-Me", value="${caller:token}"),)})
    own = plain.model_copy(update={"name": "own", "request": header})
    both = toolset.model_copy(update={"tools": (plain, own)})
    both.adopt(both.tools[0]._definitions)
    ada = of("t", server, "ada")
    with Dispatcher(both, server=server.url) as dispatcher:
        for tool in ("own", "open", "own", "open"):
            assert dispatcher.call(tool, {}, caller=ada).ok
    assert by_connection(server) == [1, 2, 1, 2]
