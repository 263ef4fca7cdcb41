"""What every front door is tried on: a real API that counts, a toolset, a config, a store on disk, and who decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar

from small_documents import document, parameter

from toolgen import ApprovalConfig, Caller, Decider, Decision, Dispatcher, Pause, Runtime, Verdict, generate
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change
from toolgen.runtime.sources import ApiSource
from toolgen.tools.model import Toolset

T = TypeVar("T")
ANN = Caller("ann")
BOSS = Decider("grace", frozenset({"boss"}))
CONFIG = """\
requireApproval: ['http.post:*', 'http.put:*']
deny: ['http.delete:*']
rules:
- {match: 'http.*:*', timeoutPolicy: AUTO_REJECT, approvalTimeout: PT30M, approvers: ['role:boss']}
"""


@dataclass(frozen=True)
class Seen:
    """A request as the API got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Api(ThreadingHTTPServer):
    """The API: keeps what it is sent, and answers with a number of its own for each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[Seen] = []
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def lines(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.seen]


class _Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {key.lower(): value for key, value in self.headers.items()}
        with self.server.lock:
            self.server.seen.append(Seen(self.command, self.path, headers, json.loads(data) if data else None))
            number = len(self.server.seen)
        body = json.dumps({"number": number, "path": self.path, "got": json.loads(data) if data else None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer

    def log_message(self, *_: object) -> None:
        pass


def shop(server: str) -> Toolset:
    """getPet runs, addPet and editPet wait, clear is denied, getMine needs the caller's token."""
    pet = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    content = {"requestBody": {"required": True, "content": {"application/json": {"schema": pet}}}}
    done = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}
    one = {"parameters": [parameter("id", "path")], "responses": done}
    paths = {
        "/pets": {
            "post": {"operationId": "addPet", "summary": "Adds a pet.", **content, "responses": done},
            "delete": {"operationId": "clear", "responses": done},
        },
        "/pets/{id}": {
            "get": {"operationId": "getPet", "summary": "Shows a pet.", **one},
            "put": {"operationId": "editPet", **one, **content},
        },
        "/mine": {"get": {"operationId": "getMine", "responses": done, "security": [{"user": []}]}},
    }
    schemes = {"securitySchemes": {"user": {"type": "http", "scheme": "bearer"}}}
    return generate(document(paths, components=schemes), api="shop", server=server)


@dataclass
class World:
    """What outlives a process: files, the database, the API."""

    folder: Path
    api: Api
    made: list[Runtime] = field(default_factory=list)
    dispatchers: list[Dispatcher] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.toolset = shop(self.api.url)
        self.toolset_file, self.config_file = self.folder / "shop.tools.yaml", self.folder / "approvals.yaml"
        self.toolset.save(self.toolset_file)
        self.config_file.write_text(CONFIG)
        self.store = f"sqlite:///{self.folder / 'toolgen.db'}"

    def runtime(self, **more: Any) -> Runtime:
        """What one process has."""
        dispatcher = Dispatcher(self.toolset, credentials={"user": "${caller:token}"})
        config = ApprovalConfig.load(self.config_file, [self.toolset])
        self.dispatchers.append(dispatcher)
        self.made.append(Runtime(dispatcher, config, store=self.store, background=False, **more))
        return self.made[-1]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a test's coroutine; connections that it opened are closed with its event loop."""

        async def whole() -> T:
            try:
                return await work
            finally:
                for dispatcher in self.dispatchers:
                    await dispatcher.aclose()

        return asyncio.run(whole())

    async def close(self) -> None:
        for one in self.made:
            await one.aclose()

    # What happens elsewhere: another process on the same store

    async def decide(self, approval: str, verdict: str = "approved", **more: Any) -> Pause:
        """Somebody decides the calls of a pause; `arguments` amend its only call."""
        elsewhere = self.runtime()
        arguments = more.pop("arguments", None)
        decision = Decision(verdict, **more)
        if arguments is not None:
            pause = elsewhere.store.pause(approval, "default")
            decision = replace(decision, calls={pause.calls[0].id: Verdict(verdict, arguments=arguments)})
        return await elsewhere.decide(approval, decision, decider=BOSS)

    async def let_expire(self, approval: str) -> None:
        elsewhere = self.runtime()
        past = elsewhere.store.clock() - timedelta(seconds=1)
        await elsewhere.extend(approval, past, actor="grace")
        await elsewhere.sweep()

    def crash_while_running(self, approval: str) -> None:
        """The store as a process leaves it that claimed the calls and died: nobody knows what the API got."""
        store = self.runtime().store

        def claimed(pause: Pause) -> Change:
            for call in pause.calls:
                gone = store.clock() - timedelta(hours=1)
                pause = pause.with_call(replace(call, state=CallState.executing, lease=gone, worker="gone"))
            return Change(pause, ())

        store.change(approval, "default", claimed)


def run(runtime: Runtime, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of a runtime; connections that it opened are closed with its event loop."""

    async def whole() -> T:
        try:
            return await work
        finally:
            for source in runtime.known:
                if isinstance(source, ApiSource):
                    await source.dispatcher.aclose()

    return asyncio.run(whole())


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    api = Api()
    thread = Thread(target=api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield World(folder, api)
    finally:
        api.shutdown()
        api.server_close()
        thread.join()


@dataclass(frozen=True)
class Got:
    """What a client of a front door gets for one call, in one vocabulary.

    `status`: ok, pending, denied, rejected, expired, not_executed, outcome_unknown, error. `body` is the API's answer.
    `again` is what the door needs to ask for it later.
    """

    status: str
    text: str = ""
    body: Any = None
    approval: str | None = None
    again: Any = None


class Door(Protocol):
    """One front door with a client of its own behind it. `ask` makes the calls of one batch for Ann.

    `anonymous` makes one call without anybody. `later` asks for what waited; `restart` is another process on
    the same files. `amends` says whether a person may change arguments behind this door.
    """

    amends: bool

    async def open(self) -> None: ...
    async def ask(self, *calls: tuple[str, Any]) -> list[Got]: ...
    async def anonymous(self, name: str, arguments: Any) -> Got: ...
    async def later(self, got: list[Got]) -> list[Got]: ...
    async def restart(self) -> None: ...
    async def close(self) -> None: ...
