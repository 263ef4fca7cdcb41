"""An HTTP server in a process of its own that counts requests by the `id` in their body."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

SLOWEST = 0.004  # seconds an answer takes at most, so that a kill at random finds requests without one


@dataclass(frozen=True, slots=True)
class Counting:
    """The server, as seen from outside."""

    url: str

    def counts(self) -> Counter[str]:
        """How many requests came with each id."""
        with urllib.request.urlopen(f"{self.url}/counts", timeout=30) as answer:
            return Counter(json.load(answer))


@contextmanager
def counting(seed: int) -> Iterator[Counting]:
    """The server while it is needed. It is forked: nothing may run in threads here."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    child = os.fork()
    if not child:
        try:
            asyncio.run(_serve(listening, random.Random(seed)))
        finally:
            os._exit(1)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()
    try:
        yield Counting(url)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def closed_port() -> int:
    """A port of this machine that nobody listens on: what goes there is never sent."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def _serve(listening: socket.socket, rng: random.Random) -> None:
    counts: Counter[str] = Counter()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
                body = await reader.readexactly(size)
                if head.startswith(b"get /counts"):
                    told = json.dumps(counts).encode()
                else:
                    counts[json.loads(body)["id"]] += 1  # before the answer: whether anybody is there for it or not
                    await asyncio.sleep(rng.uniform(0, SLOWEST))
                    told = b'{"ok":true}'
                kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                writer.write(kind + b"Content-Length: %d\r\n\r\n" % len(told) + told)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(connected, sock=listening) as server:
        await server.serve_forever()
