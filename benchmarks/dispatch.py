"""Measures what a call costs beyond the HTTP client that carries it, against a server on loopback. See `--help`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx2

from toolgen import Caller, Dispatcher, generate

DESCRIPTION = """\
example: python benchmarks/dispatch.py --pairs 2000

Calls a tool and makes the same request with a bare httpx2 client, in turn, over kept connections, and compares the
medians: arguments are validated, the request is resolved, credentials are filled in, the answer is read, redacted and
cut. Exit code 1 if the bar is missed.
"""
OVERHEAD = 0.5  # milliseconds at the median, of each kind of call with either face
DONE = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}
PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "owner": {"type": "object", "properties": {"id": {"type": "integer"}, "email": {"type": "string"}}},
    },
}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    "paths": {
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                ],
                "responses": DONE,
            }
        },
        "/pets": {
            "post": {
                "operationId": "addPet",
                "security": [{"bearer": []}],
                "requestBody": {"required": True, "content": {"application/json": {"schema": PET}}},
                "responses": DONE,
            }
        },
    },
}
BODY = {"name": "Rex", "tags": ["a", "b"], "owner": {"id": 7, "email": "a@b.example"}}
ANSWER = json.dumps({"items": [{"id": n, "name": f"pet {n}", "tags": ["a", "b"]} for n in range(20)]}).encode()
# The tool, its arguments, and the same request by hand.
KINDS: dict[str, tuple[str, dict[str, Any], tuple[str, str, Any]]] = {
    "a read": ("getPet", {"id": "7", "fields": ["a", "b"]}, ("GET", "/pets/7?fields=a&fields=b", None)),
    "a write with a body and a caller's token": ("addPet", {"requestBody": BODY}, ("POST", "/pets", BODY)),
}


class Answers(asyncio.Protocol):
    """The same answer to every request; a body comes with its head or right after it."""

    HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(ANSWER)}\r\n\r\n".encode()

    def connection_made(self, transport: Any) -> None:
        self.transport, self.unread = transport, b""

    def data_received(self, data: bytes) -> None:
        self.unread += data
        while b"\r\n\r\n" in self.unread:
            head, _, rest = self.unread.partition(b"\r\n\r\n")
            found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            length = int(found[0].split(b":")[1]) if found else 0
            if len(rest) < length:
                return
            self.unread = rest[length:]
            self.transport.write(self.HEAD + ANSWER)


def _serve(ports: Any) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0)
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The URL of a server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(send,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receive.recv()}"
    finally:
        process.terminate()
        process.join()


def _told(bare: list[float], whole: list[float]) -> dict[str, float]:
    """Milliseconds at the median; `overhead` is that of the pairs' differences."""
    differences = [one - other for one, other in zip(whole, bare, strict=True)]
    figures = {"bare": bare, "toolgen": whole, "overhead": differences}
    return {name: statistics.median(values) * 1e3 for name, values in figures.items()}


def _prepared(url: str) -> tuple[Dispatcher, Caller, dict[str, str]]:
    toolset = generate(DOCUMENT, api="pets", server=url)
    dispatcher = Dispatcher(toolset, credentials={"bearer": "${caller:token}"})
    return dispatcher, Caller("u", "a-token-of-someone", origin=url), {"Authorization": "Bearer a-token-of-someone"}


async def async_pairs(url: str, kind: str, pairs: int) -> dict[str, float]:
    """The async face against httpx2.AsyncClient."""
    name, arguments, (method, path, body) = KINDS[kind]
    dispatcher, caller, headers = _prepared(url)

    async def whole() -> None:
        assert (await dispatcher.acall(name, arguments, caller=caller)).ok

    async with dispatcher, httpx2.AsyncClient(base_url=url, trust_env=False, headers=headers) as client:

        async def bare() -> None:
            (await client.request(method, path, json=body)).json()

        async def timed(work: Callable[[], Awaitable[None]]) -> float:
            start = time.perf_counter()
            await work()
            return time.perf_counter() - start

        times = [(await timed(bare), await timed(whole)) for _ in range(pairs + pairs // 10)][pairs // 10 :]
    return _told([one for one, _ in times], [one for _, one in times])


def sync_pairs(url: str, kind: str, pairs: int) -> dict[str, float]:
    """The face for plain code against httpx2.Client."""
    name, arguments, (method, path, body) = KINDS[kind]
    dispatcher, caller, headers = _prepared(url)

    def whole() -> None:
        assert dispatcher.call(name, arguments, caller=caller).ok

    with dispatcher, httpx2.Client(base_url=url, trust_env=False, headers=headers) as client:

        def bare() -> None:
            client.request(method, path, json=body).json()

        def timed(work: Callable[[], None]) -> float:
            start = time.perf_counter()
            work()
            return time.perf_counter() - start

        times = [(timed(bare), timed(whole)) for _ in range(pairs + pairs // 10)][pairs // 10 :]
    return _told([one for one, _ in times], [one for _, one in times])


def measure(pairs: int) -> dict[str, Any]:
    """Everything that is measured."""
    found: dict[str, Any] = {"pairs": pairs, "cpus": os.cpu_count(), "calls": {}}
    gc.collect()
    with serving() as url:
        for kind in KINDS:
            found["calls"][f"{kind}, async"] = asyncio.run(async_pairs(url, kind, pairs))
            found["calls"][f"{kind}, plain"] = sync_pairs(url, kind, pairs)
    slowest = max(one["overhead"] for one in found["calls"].values())
    found["bars"] = [{"bar": "a call over bare httpx2, slowest kind: ms", "at most": OVERHEAD, "measured": slowest}]
    return found


def write(found: dict[str, Any]) -> None:
    """The figures as text."""
    print(f"{'ms at the median of pairs':50} {'bare':>8} {'toolgen':>8} {'overhead':>9}")
    for name, one in found["calls"].items():
        print(f"{name:50} {one['bare']:8.3f} {one['toolgen']:8.3f} {one['overhead']:9.3f}")
    for bar in found["bars"]:
        verdict = "ok" if bar["measured"] <= bar["at most"] else "MISSED"
        print(f"\n{bar['bar']:50} <= {bar['at most']:<5} {bar['measured']:7.3f}   {verdict}")


def main(given: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="dispatch.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=1000, help="of each kind (default: 1000)")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args(given)
    if args.pairs < 1:
        parser.error("numbers are 1 or more")
    found = measure(args.pairs)
    if args.format == "json":
        print(json.dumps(found, indent=2))
    else:
        write(found)
    return int(any(bar["measured"] > bar["at most"] for bar in found["bars"]))


if __name__ == "__main__":
    sys.exit(main())
