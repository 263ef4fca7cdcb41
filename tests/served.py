"""A shop that `toolgen serve` serves: a folder with what it is given, the API behind it, processes, and who decides."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

from shown import ROOT, blocks, section

from toolgen import Decider, Decision, Runtime, generate
from toolgen.approvals.model import Pause
from toolgen.approvals.store import Store

TOKEN = "tok-0123456789abcdef"
REX = {"requestBody": {"name": "Rex", "species": "dog"}}
BOSS = Decider("grace", frozenset({"shop-manager"}))
_SHOWN_FOLDER = "/srv/shop"
_SHOWN_TOKEN = "s3cret-token"


@dataclass
class Shop:
    """The folder, and the API."""

    folder: Path
    api: Any

    def path(self, name: str) -> Path:
        return self.folder / name

    def settings(self) -> dict[str, Any]:
        """What a desktop client starts, as the README has it: only the folder, the token and where toolgen is differ."""
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        ((_, shown),) = [block for block in blocks(section(readme, "### As an MCP server")) if block[0] == "json"]
        text = shown.replace(_SHOWN_FOLDER, str(self.folder)).replace(_SHOWN_TOKEN, TOKEN)
        server: dict[str, Any] = json.loads(text)["mcpServers"]["petstore"]
        assert server["command"] == "toolgen"
        return {**server, "command": sys.executable, "args": ["-m", "toolgen", *server["args"]]}

    @contextmanager
    def store(self) -> Iterator[Store]:
        store = Store(f"sqlite:///{self.path('toolgen.db')}")
        try:
            yield store
        finally:
            store.close()

    def pauses(self) -> list[Pause]:
        with self.store() as store:
            return store.pauses("default")

    def approve(self, approval: str) -> None:
        """Somebody approves, in another process than the server's."""
        with self.store() as store:
            runtime = Runtime([], store=store, background=False)
            runtime.sync.decide(approval, Decision("approved"), decider=BOSS)
            runtime.sync.close()


def made(folder: Path, api: Any) -> Shop:
    """A shop in a folder: document, toolset, approval config, toolgen.yaml."""
    for name in ("petstore.yaml", "approvals.yaml"):
        shutil.copy(ROOT / "samples/petstore" / name, folder)
    generate(folder / "petstore.yaml", server=api.url).save(folder / "petstore.tools.yaml")
    text = "apis: {petstore: {spec: petstore.yaml, credentials: {bearerAuth: '${env:SHOP_TOKEN}'}}}\n"
    (folder / "toolgen.yaml").write_text(text, encoding="utf-8")
    return Shop(folder, api)


class Process:
    """`toolgen serve ARGS` in a shop's folder; what it says on stderr is kept line by line."""

    def __init__(self, shop: Shop, *args: str, environ: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "toolgen", "serve", *args],
            cwd=shop.folder,
            env={**os.environ, "SHOP_TOKEN": TOKEN, **(environ or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.lines: list[str] = []
        self._queue: Queue[str | None] = Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._queue.put(line)
        self._queue.put(None)

    def told(self, pattern: str) -> re.Match[str]:
        """The first line on stderr that has the pattern, from now on."""
        while (line := self._queue.get(timeout=20)) is not None:
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"it ended without telling {pattern}:\n{''.join(self.lines)}")

    def ended(self, by: signal.Signals | None = None) -> tuple[int, str, str]:
        """The exit code, and all of stdout and stderr, once it has ended; by a signal, or by itself."""
        if by is not None:
            self.process.send_signal(by)
        code = self.process.wait(timeout=20)
        self._reader.join()
        while (line := self._queue.get()) is not None:
            self.lines.append(line)
        assert self.process.stdout is not None
        return code, self.process.stdout.read(), "".join(self.lines)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


@contextmanager
def started(shop: Shop, *args: str, **environ: str) -> Iterator[Process]:
    """A server of the shop's toolset; `args` come on top."""
    given = ["petstore.tools.yaml", "--approvals", "approvals.yaml", "--config", "toolgen.yaml", *args]
    process = Process(shop, *given, environ=environ)
    try:
        yield process
    finally:
        process.close()


@contextmanager
def over_http(shop: Shop, *args: str) -> Iterator[tuple[str, str]]:
    """URL and token of a server over HTTP."""
    with started(shop, "--transport", "http", "--port", "0", *args) as process:
        url = process.told(r"^serving +(http://\S+/mcp)$")[1]
        yield url, process.told(r"^token +(\S+)$")[1]
