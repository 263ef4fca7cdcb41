"""A real server on 127.0.0.1 that does what a test says, byte by byte, and keeps every byte it is sent."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'


def answer(
    status: int = 200, body: bytes = b"{}", *headers: tuple[str, str], reason: str = "X", kind: str = "application/json"
) -> bytes:
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status} {reason}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(frozen=True)
class Received:
    """A request as it came: `raw` is every byte of it, `connection` the number of its connection, from 1."""

    raw: bytes
    connection: int

    @property
    def line(self) -> str:
        return self.raw.partition(b"\r\n")[0].decode("latin-1")

    @property
    def method(self) -> str:
        return self.line.split(" ")[0]

    @property
    def target(self) -> str:
        return self.line.split(" ")[1]

    @property
    def headers(self) -> list[tuple[str, str]]:
        head = self.raw.partition(b"\r\n\r\n")[0].decode("latin-1")
        return [(line.partition(": ")[0], line.partition(": ")[2]) for line in head.split("\r\n")[1:]]

    def header(self, name: str) -> str | None:
        """The value of a header, which must not be there twice."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) < 2, f"{name} is there twice"
        return found[0] if found else None

    @property
    def body(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]


class Connection:
    """One connection, for the script of a test."""

    def __init__(self, server: RawServer, stream: socket.socket, number: int) -> None:
        self.server, self.number = server, number
        self._stream, self._unread = stream, b""

    def receive(self) -> Received | None:
        """The next whole request; None when the client is gone."""
        while b"\r\n\r\n" not in self._unread:
            if not self._more():
                return None
        head = self._unread.partition(b"\r\n\r\n")[0]
        lengths = [
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        ]
        size = len(head) + 4 + (lengths[0] if lengths else 0)
        while len(self._unread) < size:
            if not self._more():
                return None
        found, self._unread = Received(self._unread[:size], self.number), self._unread[size:]
        self.server.requests.append(found)
        self.server.came.set()
        return found

    def _more(self) -> bytes:
        piece = b""
        with suppress(OSError, ssl.SSLError):
            piece = self._stream.recv(65536)
        self._unread += piece
        return piece

    def send(self, data: bytes) -> None:
        with suppress(OSError, ssl.SSLError):
            self._stream.sendall(data)

    def reset(self) -> None:
        """Close with RST."""
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._stream.close()

    def hold(self) -> None:
        """Wait until the client is gone."""
        while self._more():
            pass
        self.server.gone.set()


Script = Callable[[Connection], None]


def answering(say: Callable[[Received], bytes]) -> Script:
    """A script that answers each request and keeps the connection."""

    def script(connection: Connection) -> None:
        while (received := connection.receive()) is not None:
            connection.send(say(received))

    return script


def in_turn(*scripts: Script) -> Script:
    """One script for each connection; the last one for all the others."""
    return lambda connection: scripts[min(connection.number, len(scripts)) - 1](connection)


@dataclass
class RawServer:
    """`requests` in the order they came, `connections` how many there were."""

    script: Script
    context: ssl.SSLContext | None = None
    requests: list[Received] = field(default_factory=list)
    certificates: list[object] = field(default_factory=list)
    connections: int = 0
    came: threading.Event = field(default_factory=threading.Event)  # a request did
    gone: threading.Event = field(default_factory=threading.Event)  # a client that was held is
    closed: threading.Event = field(default_factory=threading.Event)  # a connection is, by the script

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._streams: list[socket.socket] = []
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[str]:
        return [received.line for received in self.requests]

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                stream, _ = self._listener.accept()
                self.connections += 1
                thread = threading.Thread(target=self._serve, args=(stream, self.connections), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, stream: socket.socket, number: int) -> None:
        with suppress(OSError, ssl.SSLError):
            if self.context is not None:
                stream = self.context.wrap_socket(stream, server_side=True)
                self.certificates.append(stream.getpeercert())
        self._streams.append(stream)
        with stream:
            self.script(Connection(self, stream, number))
        self.closed.set()

    def stop(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(5)
        for stream in self._streams:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join(5)
            assert not thread.is_alive()


@contextmanager
def serving(
    script: Script | Callable[[Received], bytes] | bytes = OK, context: ssl.SSLContext | None = None
) -> Iterator[RawServer]:
    """A server that runs the script, or gives the same answer to all."""
    given = answering(lambda _: script) if isinstance(script, bytes) else script
    server = RawServer(given, context)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.stop()
