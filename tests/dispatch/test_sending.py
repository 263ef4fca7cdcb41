"""At most once: what is known of a request that was sent, and which requests are sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from raw_server import OK, Connection, RawServer, answer, answering, in_turn, serving
from small_documents import document, made, parameter

from toolgen.dispatch.http import Dispatcher
from toolgen.dispatch.settings import Http
from toolgen.result import Sent, ToolResult
from toolgen.tools.model import Toolset

FAST = Http(connect=0.5, read=0.3, write=0.3, total=2, retries=0)
BODY = {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}
PATHS: dict[str, Any] = {
    "/read": {"get": {"operationId": "read", "parameters": [parameter("q"), parameter("Idempotency-Key", "header")]}},
    "/query": {"query": {"operationId": "query", **BODY}},
    "/write": {
        "post": {"operationId": "write", "parameters": [parameter("Idempotency-Key", "header")], **BODY},
        "put": {"operationId": "replace", **BODY},
        "delete": {"operationId": "remove"},
    },
}
for _item in PATHS.values():
    for _operation in _item.values():
        _operation["responses"] = {"200": {"description": "fine"}}
WRITES = ["write", "replace", "remove"]
ARGUMENTS: dict[str, Any] = {name: {} if name == "remove" else {"requestBody": {"a": "é"}} for name in WRITES}


@pytest.fixture(scope="module")
def toolset() -> Toolset:
    return made(document(PATHS, "3.2.0"), api="small", server="https://api.example")


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, none of which takes any time."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float, result: object = None) -> None:
        if seconds:
            waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr("toolgen.dispatch.sending.asyncio.sleep", at_once)
    return waits


def called(toolset: Toolset, server: RawServer, name: str, http: Http = FAST, **arguments: Any) -> ToolResult:
    with Dispatcher(toolset, server=server.url, http=http) as dispatcher:
        return dispatcher.call(name, arguments or ARGUMENTS.get(name, {}))


def closes_at_once(connection: Connection) -> None:
    """Closes before it reads anything."""


def resets_at_once(connection: Connection) -> None:
    connection.reset()


def closes_after_the_request(connection: Connection) -> None:
    connection.receive()


def resets_after_the_request(connection: Connection) -> None:
    connection.receive()
    connection.reset()


def says_nothing(connection: Connection) -> None:
    connection.receive()
    connection.hold()


def says_half_a_head(connection: Connection) -> None:
    connection.receive()
    connection.send(b"HTTP/1.1 200 O")


def says_no_http(connection: Connection) -> None:
    connection.receive()
    connection.send(b"* OK IMAP4rev1 ready\r\n\r\n")


def says_only_100(connection: Connection) -> None:
    connection.receive()
    connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def says_a_broken_header(connection: Connection) -> None:
    connection.receive()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok")


UNANSWERED = [
    closes_at_once,
    closes_after_the_request,
    resets_after_the_request,
    says_nothing,
    says_half_a_head,
    says_no_http,
    says_only_100,
    says_a_broken_header,
]


def test_a_write_that_is_reset_at_once_is_tried_once_whether_a_byte_left_or_not(toolset: Toolset) -> None:
    with serving(resets_at_once) as server:  # the reset may come before the first byte leaves, or after
        result = called(toolset, server, "write", Http(connect=0.5, read=0.3, total=2, retries=5))
    assert (result.ok, result.status) == (False, None)
    assert result.sent in (Sent.not_sent, Sent.unknown)
    assert server.connections == 1


@pytest.mark.parametrize("script", UNANSWERED, ids=lambda script: script.__name__)
def test_a_write_without_an_answer_is_sent_once_and_its_outcome_is_unknown(
    toolset: Toolset, script: Callable[[Connection], None]
) -> None:
    with serving(script) as server:
        result = called(toolset, server, "write", Http(connect=0.5, read=0.3, total=2, retries=5))
    assert (result.ok, result.sent, result.status) == (False, Sent.unknown, None)
    assert "may have been carried out" in result.message
    assert server.connections == 1
    assert len(server.requests) <= 1


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_write_is_never_sent_again_whatever_the_answer(toolset: Toolset, name: str, status: int) -> None:
    with serving(answer(status, b"{}", ("Retry-After", "0"))) as server:
        result = called(toolset, server, name, Http(retries=5))
    assert (result.sent, result.status, result.retry_after) == (Sent.answered, status, 0)
    assert len(server.requests) == 1


def test_the_total_time_ends_a_write_whose_outcome_is_then_unknown(toolset: Toolset) -> None:
    def drips(connection: Connection) -> None:
        connection.receive()
        connection.send(b"HTTP/1.1 200 OK\r\nX-Never-Ends: ")
        connection.hold()

    with serving(drips) as server:
        result = called(toolset, server, "write", Http(read=30, total=0.2))
        assert server.gone.wait(5), "the connection is closed, not kept"
    assert (result.sent, len(server.requests)) == (Sent.unknown, 1)
    assert "0.2 seconds" in result.message


@pytest.mark.parametrize("name", ["read", *WRITES])
def test_nothing_was_sent_where_no_connection_came_about(toolset: Toolset, name: str) -> None:
    with serving() as server:
        pass  # its port is closed now
    result = called(toolset, server, name)
    assert (result.ok, result.sent) == (False, Sent.not_sent)
    assert result.message.startswith("nothing was sent: connect error")


def test_nothing_was_sent_where_tls_does_not_come_about(toolset: Toolset) -> None:
    with serving(lambda connection: connection.send(b"HTTP/1.1 400 no TLS here\r\n\r\n")) as server:
        url = server.url.replace("http:", "https:")
        with Dispatcher(toolset, server=url, http=FAST) as dispatcher:
            result = dispatcher.call("write", ARGUMENTS["write"])
    assert (result.sent, server.requests) == (Sent.not_sent, [])


@pytest.mark.parametrize("setting", [Http(connect=0.2, total=5, retries=0), Http(connect=30, total=0.2, retries=0)])
def test_nothing_was_sent_where_connecting_takes_too_long(toolset: Toolset, setting: Http) -> None:
    with serving(lambda connection: connection.hold()) as server:  # the handshake of TLS never goes on
        url = server.url.replace("http:", "https:")
        with Dispatcher(toolset, server=url, http=setting) as dispatcher:
            result = dispatcher.call("write", ARGUMENTS["write"])
    assert result.sent is Sent.not_sent


def test_a_proxy_that_refuses_got_nothing_of_the_request(toolset: Toolset) -> None:
    with serving(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n") as proxy:
        settings = Http(proxy=f"http://127.0.0.1:{proxy.port}", retries=0)
        with Dispatcher(toolset, server="https://api.example", http=settings) as dispatcher:
            result = dispatcher.call("write", ARGUMENTS["write"])
    assert (result.sent, [line.split()[0] for line in proxy.lines]) == (Sent.not_sent, ["CONNECT"])


@pytest.mark.parametrize(
    ("script", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf of it", "half of it"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz", "half"),
    ],
)
def test_half_an_answer_is_an_answer_that_says_so(toolset: Toolset, script: bytes, body: str) -> None:
    def half(connection: Connection) -> None:
        connection.receive()
        connection.send(script)

    with serving(half) as server:
        result = called(toolset, server, "write")
    assert (result.sent, result.status, result.body, len(server.requests)) == (Sent.answered, 200, body, 1)
    assert "breaks off" in result.message


def test_a_connection_that_the_server_closed_meanwhile_is_not_written_to(toolset: Toolset) -> None:
    def closes(connection: Connection) -> None:
        connection.receive()
        connection.send(OK)

    with serving(closes) as server, Dispatcher(toolset, server=server.url, http=FAST) as dispatcher:
        first = dispatcher.call("write", ARGUMENTS["write"])
        assert server.closed.wait(5)
        second = dispatcher.call("write", ARGUMENTS["write"])
    assert [first.sent, second.sent] == [Sent.answered] * 2
    assert (len(server.requests), server.connections) == (2, 2)


def test_a_kept_connection_that_breaks_under_a_write_is_not_tried_on_another(toolset: Toolset) -> None:
    def breaks_at_the_second(connection: Connection) -> None:
        connection.receive()
        connection.send(OK)
        connection.receive()

    with serving(breaks_at_the_second) as server, Dispatcher(toolset, server=server.url, http=FAST) as dispatcher:
        first, second = (dispatcher.call("write", ARGUMENTS["write"]) for _ in range(2))
    assert (first.sent, second.sent) == (Sent.answered, Sent.unknown)
    assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize("name", ["read", "query"])
@pytest.mark.parametrize("failure", [429, 502, 503, 504, closes_after_the_request, closes_at_once])
def test_a_read_is_sent_again_with_the_same_bytes(
    toolset: Toolset, no_waiting: list[float], name: str, failure: Any
) -> None:
    fails = failure if callable(failure) else answering(lambda _: answer(failure, b"{}", ("Connection", "close")))
    arguments = {"q": "ä b"} if name == "read" else {"requestBody": {"a": "é"}}
    with serving(in_turn(fails, fails, answering(lambda _: OK))) as server:
        result = called(toolset, server, name, Http(retries=2), **arguments)
    assert result.ok
    assert server.connections == 3
    assert len({received.raw for received in server.requests}) == 1
    assert no_waiting == [0.2, 0.4]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_read_is_sent_again_as_often_as_the_settings_say(
    toolset: Toolset, no_waiting: list[float], retries: int
) -> None:
    with serving(answer(503)) as server:
        result = called(toolset, server, "read", Http(retries=retries))
    assert (result.status, len(server.requests), len(no_waiting)) == (503, retries + 1, retries)


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 500, 501])
def test_an_answer_that_will_not_change_is_not_asked_for_again(toolset: Toolset, status: int) -> None:
    with serving(answer(status)) as server:
        assert called(toolset, server, "read", Http(retries=3)).status == status
    assert len(server.requests) == 1


DATE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "waits"),
    [
        (("Retry-After", "7"), [7]),
        (("Retry-After", "0"), []),  # at once
        (("Retry-After", format_datetime(DATE + timedelta(seconds=9), usegmt=True)), [9]),
        (("Retry-After", "soon"), [0.2]),
    ],
)
def test_retry_after_is_waited_for(
    toolset: Toolset, no_waiting: list[float], given: tuple[str, str], waits: list[float]
) -> None:
    dated = ("Date", format_datetime(DATE, usegmt=True))
    with serving(
        in_turn(answering(lambda _: answer(503, b"{}", given, dated, ("Connection", "close"))), answering(lambda _: OK))
    ) as server:
        assert called(toolset, server, "read", Http(retries=2)).ok
    assert no_waiting == waits
    assert len(server.requests) == 2


def test_a_retry_after_beyond_the_limit_is_the_answer(toolset: Toolset, no_waiting: list[float]) -> None:
    with serving(answer(503, b"{}", ("Retry-After", "31"))) as server:
        result = called(toolset, server, "read", Http(retries=2, max_retry_after=30))
    assert (result.status, result.retry_after, len(server.requests), no_waiting) == (503, 31, 1, [])


def test_a_read_that_a_person_marked_destructive_is_sent_once(toolset: Toolset) -> None:
    tools = tuple(tool.model_copy(update={"destructive": True}) for tool in toolset.tools)
    with serving(answer(503)) as server:
        assert called(toolset.model_copy(update={"tools": tools}), server, "read", Http(retries=3)).status == 503
    assert len(server.requests) == 1


def test_an_idempotency_header_has_one_value_for_all_attempts_and_another_for_the_next_call(
    toolset: Toolset, no_waiting: list[float]
) -> None:
    with serving(answer(503)) as server:
        for _ in range(2):
            called(toolset, server, "read", Http(retries=1))
        called(toolset, server, "write")
    values = [received.header("Idempotency-Key") for received in server.requests]
    assert len(values) == 5
    assert values[0] == values[1]
    assert values[2] == values[3]
    assert len(set(values)) == 3
    assert all(values)


def test_an_idempotency_value_comes_from_the_model_before_the_approved_call_before_chance(toolset: Toolset) -> None:
    async def main(server: RawServer) -> None:
        async with Dispatcher(toolset, server=server.url) as dispatcher:
            for arguments in (ARGUMENTS["write"], {**ARGUMENTS["write"], "Idempotency-Key": "model"}):
                await dispatcher.send(dispatcher.resolve("write", arguments), idempotency_key="approved")

    with serving() as server:
        asyncio.run(main(server))
    assert [received.header("idempotency-key") for received in server.requests] == ["approved", "model"]


@pytest.mark.parametrize("at", ["the head", "the body"])
def test_cancelling_a_call_closes_its_connection(toolset: Toolset, at: str) -> None:
    def stops(connection: Connection) -> None:
        connection.receive()
        connection.send(b"" if at == "the head" else b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        connection.hold()

    async def main(server: RawServer) -> None:
        async with Dispatcher(toolset, server=server.url, http=Http(max_connections=1)) as dispatcher:
            for _ in range(3):  # each would wait for the only connection if another kept it
                server.came.clear()
                task = asyncio.create_task(dispatcher.acall("write", ARGUMENTS["write"]))
                assert await asyncio.to_thread(server.came.wait, 5)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await asyncio.to_thread(server.gone.wait, 5)
                server.gone.clear()

    with serving(stops) as server:
        asyncio.run(main(server))
    assert (len(server.requests), server.connections) == (3, 3)


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (httpx2.ConnectError("refused"), Sent.not_sent),
        (httpx2.ConnectTimeout("slow"), Sent.not_sent),
        (httpx2.PoolTimeout("full"), Sent.not_sent),
        (httpx2.ReadTimeout("slow"), Sent.unknown),
        (httpx2.WriteError("broken"), Sent.unknown),
        (httpx2.RemoteProtocolError("what"), Sent.unknown),
        (OSError("a socket"), Sent.unknown),
        (RuntimeError("a fault"), Sent.unknown),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_transport_of_the_host_raises_is_a_result(toolset: Toolset, error: Exception, sent: Sent) -> None:
    asked = 0

    def handle(_: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        raise error

    with Dispatcher(toolset, transport=httpx2.MockTransport(handle), http=Http(retries=3)) as dispatcher:
        result = dispatcher.call("write", ARGUMENTS["write"])
    assert (result.ok, result.sent, asked) == (False, sent, 1)
