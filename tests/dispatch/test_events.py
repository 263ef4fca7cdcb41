"""Event streams: what is an event, and that reading ends, whatever a server does. Against real servers."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.dispatch.events import EventStream, Parser, Records, Stream, parser_of, read_events
from toolgen.dispatch.settings import Http

Write = Callable[[bytes], Awaitable[None]]
Serve = Callable[[Write, asyncio.Event], Awaitable[None]]


def fed(parser: Parser, content: bytes, cuts: list[int] | None = None) -> list[Any]:
    """The events of the content, given in pieces that end at these places."""
    at = sorted({0, *(place % (len(content) + 1) for place in cuts or []), len(content)})
    found = [event for start, end in pairwise(at) for event in parser.feed(content[start:end])]
    return found + parser.end()


EVENTS = [
    (b"data: a\n\n", [{"data": "a"}]),
    (b"\xef\xbb\xbfdata: a\n\n", [{"data": "a"}]),
    (b"data: a\r\ndata:b\r\ndata:  c\r\n\r\n", [{"data": "a\nb\n c"}]),
    (b"data: a\rid: 1\r\rdata: b\r\r", [{"id": "1", "data": "a"}, {"data": "b"}]),
    (b": comment\nevent: add\ndata: 1\nid: 7\n\n", [{"event": "add", "id": "7", "data": "1"}]),
    (b"data\n\ndata\ndata\n\ndata:", [{"data": ""}, {"data": "\n"}]),
    (b"event: lonely\n\nid: 3\n\ndata: x\n\n", [{"data": "x"}]),
    (b"id: a\0b\ndata: x\nunknown: y\n\n", [{"data": "x"}]),
    (b'data: {"a": 1}\n\ndata: [1\ndata: ]\n\ndata: {no}\n\n', [{"data": {"a": 1}}, {"data": [1]}, {"data": "{no}"}]),
    (b"data: unfinished\n", []),
    ("data: ä€😀\n\n".encode(), [{"data": "ä€😀"}]),
    (b"data: \xff\n\n", [{"data": "\ufffd"}]),
]


@pytest.mark.parametrize(("content", "events"), EVENTS)
@given(cuts=st.lists(st.integers(0, 100), max_size=6))
def test_a_stream_has_the_events_of_the_html_standard_however_it_is_cut(
    content: bytes, events: list[Any], cuts: list[int]
) -> None:
    assert fed(EventStream(), content, cuts) == events


def test_retry_is_milliseconds_until_the_api_wants_to_be_asked_again() -> None:
    parser = EventStream()
    assert fed(parser, b"retry: 2500\n\nretry: soon\n\n") == []
    assert parser.retry == 2.5


@pytest.mark.parametrize(
    ("media_type", "content", "events"),
    [
        ("application/x-ndjson", b'{"a":1}\n\n[2]\r\nno json\n"last"', [{"a": 1}, [2], "no json", "last"]),
        ("application/jsonl", '{"a":"ä\u2028"}\n'.encode(), [{"a": "ä\u2028"}]),
        ("application/json-seq", b'\x1e{"a":\n1}\n\x1e[2]\n\x1e', [{"a": 1}, [2]]),
        ("application/geo+json-seq", b"\x1e1\n\x1e2", [1, 2]),
    ],
)
@given(cuts=st.lists(st.integers(0, 60), max_size=6))
def test_lines_and_sequences_of_json_are_records(
    media_type: str, content: bytes, events: list[Any], cuts: list[int]
) -> None:
    parser = parser_of(media_type)
    assert isinstance(parser, Records)
    assert fed(parser, content, cuts) == events


@pytest.mark.parametrize("media_type", [None, "application/json", "text/plain", "application/vnd.seq+json"])
def test_other_media_types_are_no_streams(media_type: str | None) -> None:
    assert parser_of(media_type) is None


@asynccontextmanager
async def answering(serve: Serve, media_type: str = "text/event-stream") -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server whose answer `serve` writes, in chunks; the event is set when the client has gone, or `serve` is done."""
    gone = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(content: bytes) -> None:
            writer.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
            await writer.drain()

        async def watch() -> None:
            await reader.read()
            gone.set()

        await reader.readuntil(b"\r\n\r\n")
        watching = asyncio.create_task(watch())
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        with suppress(ConnectionError):
            await serve(write, gone)
        watching.cancel()
        writer.close()
        gone.set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"http://{host}:{port}/", gone


def streamed(serve: Serve, *, read: float = 5, until: float = 30, **settings: Any) -> Stream:
    """What is read of that answer, after which the server has seen the connection closed."""

    async def run() -> Stream:
        async with (
            answering(serve) as (url, gone),
            httpx2.AsyncClient(trust_env=False, timeout=read) as client,
            asyncio.timeout(10),
        ):
            async with client.stream("GET", url) as response:
                now = asyncio.get_running_loop().time()
                found = await read_events(response, EventStream(), Http(read=read, **settings), now + until)
                assert response.is_closed
                await gone.wait()
            return found

    return asyncio.run(run())


async def silent(write: Write, gone: asyncio.Event) -> None:
    await write(b"data: first\n\ndata: unfinished\n")
    await gone.wait()


async def endless(write: Write, gone: asyncio.Event) -> None:
    while not gone.is_set():
        await write(b'data: {"n": 1}\n\n')


async def one_long_event(write: Write, gone: asyncio.Event) -> None:
    while not gone.is_set():
        await write(b"data: " + b"x" * 10_000 + b"\n")


async def finished(write: Write, gone: asyncio.Event) -> None:
    await write(b"data: a\n\nretry: 100\n\n")
    await write(b"")


async def broken(write: Write, gone: asyncio.Event) -> None:
    await write(b"data: a\n\n")


@pytest.mark.parametrize(
    ("serve", "settings", "count", "message"),
    [
        (silent, {"stream_seconds": 0.2}, 1, "stopped after 0.2 s, the stream goes on (1 event)"),
        (silent, {"until": 0.2}, 1, "stopped after 0.2 s, the stream goes on (1 event)"),
        (silent, {"read": 0.2}, 1, "stopped as nothing came for 0.2 s, the stream goes on (1 event)"),
        (
            endless,
            {"stream_events": 25, "max_answer_bytes": 1_000_000_000},
            25,
            "stopped after 25 events, the stream goes on (25 events)",
        ),
        (one_long_event, {"max_answer_bytes": 50_000}, 0, "stopped after 50,000 bytes, the stream goes on (0 events)"),
        (finished, {}, 1, "the stream ended (1 event)"),
        (broken, {}, 1, "the stream broke off (1 event)"),
    ],
)
def test_reading_ends_says_why_and_closes_the_connection(
    serve: Serve, settings: dict[str, Any], count: int, message: str
) -> None:
    found = streamed(serve, **settings)
    assert (len(found.events), found.message) == (count, message)
    assert found.retry == (0.1 if serve is finished else None)


def test_an_endless_stream_that_never_pauses_stops_at_its_time() -> None:
    found = streamed(endless, stream_seconds=0.2, stream_events=100_000, max_answer_bytes=1_000_000_000)
    assert found.message.startswith("stopped after 0.2 s")


def read_from(body: AsyncIterator[bytes], parser: Parser, *, coding: str = "identity", **settings: Any) -> Stream:
    """What is read of an answer with this body, from no server."""

    async def run() -> Stream:
        response = httpx2.Response(200, headers={"content-encoding": coding}, content=body)
        return await read_events(response, parser, Http(**settings), asyncio.get_running_loop().time() + 30)

    return asyncio.run(run())


def test_the_time_counts_where_every_piece_is_there_already() -> None:
    async def body() -> AsyncIterator[bytes]:
        while True:
            yield b": nothing\n"

    found = read_from(body(), EventStream(), stream_seconds=0.2, max_answer_bytes=1_000_000_000)
    assert found.message.startswith("stopped after 0.2 s")


def test_a_last_record_needs_no_end_unless_reading_stopped_in_it() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"1\n22"

    assert read_from(body(), Records("\n")).events == [1, 22]
    assert read_from(body(), Records("\n"), max_answer_bytes=3).events == [1]


def test_a_packed_stream_is_bounded_by_what_it_unpacks_to() -> None:
    packed = gzip.compress(b"data: " + b"x" * 50_000_000)
    assert len(packed) < 100_000
    seen: list[int] = []

    class Counting(EventStream):
        def feed(self, piece: bytes) -> list[Any]:
            seen.append(len(piece))
            return super().feed(piece)

    async def body() -> AsyncIterator[bytes]:
        yield packed

    found = read_from(body(), Counting(), coding="gzip", max_answer_bytes=2_000_000)
    assert "stopped after 2,000,000 bytes" in found.message
    assert sum(seen) == 2_000_000


def test_json_in_events_is_json_that_can_be_written_again() -> None:
    (event,) = fed(EventStream(), b'data: {"n": NaN, "big": 123456789012345678901234567890}\n\n')
    assert json.loads(json.dumps(event, allow_nan=False)) == {
        "data": {"n": "NaN", "big": 123456789012345678901234567890}
    }
