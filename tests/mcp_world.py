"""The MCP server of tests as its tests see it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ERAS = ("modern", "legacy", "stateful")


@dataclass(frozen=True)
class Upstream:
    """A running server. `seen()` gives what it was sent since it was last asked, or told something."""

    origin: str

    def url(self, era: str) -> str:
        return f"{self.origin}/{era}"

    def told(self, **wanted: Any) -> list[dict[str, Any]]:
        request = Request(f"{self.origin}/control", json.dumps(wanted).encode())
        with urlopen(request, timeout=10) as answer:
            found: list[dict[str, Any]] = json.loads(answer.read())
        return found

    def seen(self) -> list[dict[str, Any]]:
        return self.told()


@contextmanager
def running_upstream() -> Iterator[Upstream]:
    """The server in a process of its own, on a port that is open before it starts."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        os.set_inheritable(listening.fileno(), True)
        command = [sys.executable, str(Path(__file__).with_name("mcp_world_server.py")), str(listening.fileno())]
        process = subprocess.Popen(command, pass_fds=[listening.fileno()])
        try:
            yield Upstream(f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            process.terminate()
            process.wait(10)
