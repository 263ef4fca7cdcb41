"""A runtime over one small API whose requests a test keeps, a clock it moves, and people who ask and decide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any

import httpx2
from small_documents import document, made, parameter

from toolgen import ApprovalConfig, Caller, Decider, Decision, Dispatcher, Pause, Runtime, ToolCall
from toolgen.approvals.store import Store
from toolgen.identity.keys import Keys
from toolgen.tools.model import Toolset

DONE = {"200": {"description": "ok"}}
ORIGIN = "https://api.example"
KEYS = Keys(bytes(range(32)))
ANN = Caller("ann", "token-of-ann", origin=ORIGIN)
BOB = Decider("bob", frozenset({"lead"}))
EVE = Decider("eve")
APPROVED, REJECTED = Decision("approved"), Decision("rejected")


class Clock:
    """A store's clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **more: float) -> None:
        self.now += timedelta(**more)


def pets(**changes: Any) -> Toolset:
    """GET, POST, PUT and DELETE of pets; `changes` replace whole operations by (name of the) method."""
    body = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    content = {"requestBody": {"required": True, "content": {"application/json": {"schema": body}}}}
    one = [parameter("id", "path"), parameter("q"), parameter("X-Trace", "header")]
    operations: dict[str, Any] = {
        "get": {"operationId": "list", "parameters": [parameter("q")], "responses": DONE},
        "post": {"operationId": "add", **content, "security": [{"user": []}], "responses": DONE},
        "put": {"operationId": "edit", "parameters": one, **content, "responses": DONE},
        "delete": {"operationId": "remove", "parameters": [parameter("id", "path")], "responses": DONE},
    } | changes
    paths = {
        "/pets": {key: operations[key] for key in ("get", "post")},
        changes.get("path", "/pets/{id}"): {key: operations[key] for key in ("put", "delete")},
    }
    user = {"user": {"type": "http", "scheme": "bearer"}}
    return made(document(paths, components={"securitySchemes": user}), api="pets", server=ORIGIN)


def add(id: str = "c1", name: str = "Rex") -> ToolCall:
    return ToolCall(id, "add", {"requestBody": {"name": name}})


def edit(id: str = "c1", name: str = "Rex", **more: Any) -> ToolCall:
    return ToolCall(id, "edit", {"id": "1", "requestBody": {"name": name}, **more})


def listing(id: str = "r1") -> ToolCall:
    return ToolCall(id, "list", {})


def remove(id: str = "d1", pet: str = "1") -> ToolCall:
    return ToolCall(id, "remove", {"id": pet})


def config(**mapping: Any) -> ApprovalConfig:
    return ApprovalConfig.parse(mapping)


@dataclass
class World:
    """What outlives a process: the database, the clock, and the server that keeps what it was sent."""

    url: str | None = None
    clock: Clock = field(default_factory=Clock)
    sent: list[httpx2.Request] = field(default_factory=list)
    toolset: Toolset = field(default_factory=pets)
    credentials: Any = field(default_factory=lambda: {"user": "${caller:token}"})
    keys: Keys = KEYS

    def __post_init__(self) -> None:
        self.store = Store(self.url, self.keys, clock=self.clock)

    def answers(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        return httpx2.Response(200, json={"number": len(self.sent)})

    def dispatcher(self, toolset: Toolset | None = None, credentials: Any = None, **more: Any) -> Dispatcher:
        chosen = self.credentials if credentials is None else credentials
        return Dispatcher(
            toolset or self.toolset, credentials=chosen, transport=httpx2.MockTransport(self.answers), **more
        )

    def runtime(self, config: Any = None, *, sources: Any = None, **more: Any) -> Runtime:
        """What a process has: another one is another process."""
        given = [self.dispatcher()] if sources is None else sources
        return Runtime(given, config, store=self.store, background=False, **more)

    @property
    def lines(self) -> list[str]:
        return [f"{request.method} {request.url.raw_path.decode()}" for request in self.sent]

    def audit(self, kind: str | None = None) -> list[Any]:
        from toolgen.approvals import audit

        with self.store.database.read() as connection:
            found = list(audit.entries(connection))
        return [one for one in found if kind is None or one.kind == kind]


async def paused(runtime: Runtime, *calls: ToolCall, caller: Caller | None = ANN, **more: Any) -> Pause:
    """The pause of these calls."""
    found = await runtime.submit(calls or (add(),), caller=caller, **more)
    assert found.pause is not None, found.results
    return found.pause


async def state(runtime: Runtime, pause: Pause) -> dict[str, str]:
    """Where each call of a pause stands."""
    now = await runtime.in_store(runtime.store.pause, pause.id, pause.tenant)
    return {call.id: call.state.value for call in now.calls}


def runs(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run
