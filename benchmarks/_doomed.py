"""A process that is going to be killed: a Runtime whose store and connections say what they are about to do.

Nothing of the product is built for this: the store is a subclass, the transport another.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

import httpx2

from toolgen import ApprovalConfig, Caller, Decider, Decision, Dispatcher, Runtime, ToolCall, Verdict, generate
from toolgen.approvals.store import Change, Store, utc_now
from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.settings import Http
from toolgen.dispatch.transport import CheckedTransport, no_tls
from toolgen.identity.keys import Keys
from toolgen.runtime.core import LEASE

TRANSACTIONS = ("pause", "decided", "claimed", "end", "journal claim", "journal end")
WHEN = ("before", "written", "committed")  # `before` and `written` are inside the transaction
REQUEST = ("sending", "sent", "answered")
POINTS = (*(f"{what}: {when}" for what in TRANSACTIONS for when in WHEN), *REQUEST)
SWEPT = tuple(f"swept: {when}" for when in WHEN)
ENDS = {"executed": "end", "failed": "end", "outcome_unknown": "end", "not_executed": "end", "expired": "end"}
PASSED = LEASE + timedelta(seconds=Http().total + 30)  # longer than a claim holds
CALLER = Caller("requester@example.com")
DECIDER = Decider("decider@example.com")


@dataclass(frozen=True, slots=True)
class Batch:
    """What a model asks for in one turn: tools by call id, and the calls that the decider rejects."""

    turn: str
    tools: dict[str, str]
    rejected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a process does. It kills itself when it comes to a point for the nth time; None: it does not.

    `dead` is how many processes had these batches before: the clock is past every claim of theirs.
    """

    batches: tuple[Batch, ...]
    point: str | None = None
    nth: int = 1
    dead: int = 0


@dataclass(slots=True)
class Marks:
    """Tells the harness each step, and dies where it has to."""

    plan: Plan
    pipe: int
    passed: dict[str, int] = field(default_factory=dict)

    def say(self, **what: Any) -> None:
        """One line, there even if the process is killed the moment after."""
        os.write(self.pipe, json.dumps(what).encode() + b"\n")

    def __call__(self, point: str, calls: Sequence[str] = ()) -> None:
        self.passed[point] = self.passed.get(point, 0) + 1
        self.say(mark=point, calls=list(calls))
        if point == self.plan.point and self.passed[point] == self.plan.nth:
            os.kill(os.getpid(), signal.SIGKILL)


class MarkedStore(Store):
    """A store that marks each transaction before it writes, when it has written, and once it is durable."""

    def __init__(self, url: str, keys: Keys, mark: Marks) -> None:
        super().__init__(url, keys, clock=lambda: utc_now() + mark.plan.dead * PASSED)
        self.mark = mark
        self._now = threading.local()
        self._begin = self.database.change
        self.database.change = self._marked  # type: ignore[method-assign]

    @contextmanager
    def _marked(self) -> Iterator[Any]:
        with self._begin() as connection:
            yield connection
            self._at("written")

    def _at(self, when: str) -> None:
        what, calls = getattr(self._now, "what", None) or (None, ())
        if what is not None:
            self.mark(f"{what}: {when}", calls)

    def _during(self, what: str, calls: Sequence[str], do: Callable[[], Any]) -> Any:
        self._now.what = what, calls
        try:
            self._at("before")
            made = do()
            if what != "journal claim" or made is None:  # else it is what an earlier process left there
                self._at("committed")
            return made
        finally:
            self._now.what = None

    def add(self, pause: Any, entries: Any) -> None:
        self._during("pause", [call.id for call in pause.calls], lambda: super(MarkedStore, self).add(pause, entries))

    def claim(self, key: Any, *args: Any, **named: Any) -> Any:
        return self._during("journal claim", [key.call], lambda: super(MarkedStore, self).claim(key, *args, **named))

    def lapse(self, *args: Any) -> Any:
        return self._during("swept", [], lambda: super(MarkedStore, self).lapse(*args))

    def finish(self, key: Any, *args: Any) -> None:
        self._during("journal end", [key.call], lambda: super(MarkedStore, self).finish(key, *args))

    def change(self, pause_id: str, tenant: str, change: Any) -> Any:
        def told(pause: Any) -> Change | None:
            made: Change | None = change(pause)
            if made is not None and made.entries:
                first = made.entries[0]
                kind = "swept" if first.actor == "system:sweep" else ENDS.get(first.kind, first.kind)
                self._now.what = kind, [entry.call for entry in made.entries if entry.call]
                self._at("before")
            return made

        try:
            after = super().change(pause_id, tenant, told)
            self._at("committed")
            return after
        finally:
            self._now.what = None


class MarkedTransport(CheckedTransport):
    """The transport of the dispatcher; it marks when a request is about to leave, has left, and is answered."""

    def __init__(self, mark: Marks) -> None:
        super().__init__(Http(), Allowed(["127.0.0.1"]), no_tls())
        self.mark = mark

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = b"".join([part async for part in request.stream])  # type: ignore[union-attr]
        name = json.loads(content)["id"]
        inner = request.extensions["trace"]

        async def trace(event: str, info: dict[str, Any]) -> None:
            await inner(event, info)
            if event.endswith("send_request_body.complete"):
                self.mark("sent", [name])

        request.extensions = {**request.extensions, "trace": trace}
        self.mark("sending", [name])
        answer = await super().handle_async_request(request)
        self.mark("answered", [name])
        return answer


def toolset() -> Any:
    """`pay` and `down` wait for a person, `note` runs at once; nobody listens where `down` goes."""
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    done = {"200": {"description": "done"}}

    def path(name: str) -> dict[str, Any]:
        return {f"/{name}": {"post": {"operationId": name, "requestBody": body, "responses": done}}}

    def api(name: str, paths: dict[str, Any]) -> Any:
        return generate({"openapi": "3.1.0", "info": {"title": name, "version": "1"}, "paths": paths}, api=name)

    return [api("bank", {**path("pay"), **path("note")}), api("gone", path("down"))]


CONFIG = {"requireApproval": ["pay", "down"], "exempt": ["note"]}


async def live(runtime: Runtime, mark: Marks, batch: Batch) -> None:
    """A turn from the model's calls to their results, from wherever an earlier process left it."""
    calls = [ToolCall(name, tool, {"requestBody": {"id": name}}) for name, tool in batch.tools.items()]
    made = await runtime.submit(calls, caller=CALLER, thread="crash", turn=batch.turn)
    results = dict(made.results)
    if made.pause is not None:
        pause = runtime.store.pause(made.pause.id, CALLER.tenant)
        mark.say(turn=batch.turn, pause=pause.id, found={call.id: call.state.value for call in pause.calls})
        if pause.waiting:
            verdicts = {name: Verdict("rejected") for name in batch.rejected}
            await runtime.decide(pause.id, Decision("approved", calls=verdicts), decider=DECIDER)
            mark.say(decided=pause.id, calls=[call.id for call in pause.waiting])
        results |= await runtime.resume(pause.id, caller=CALLER)
    mark.say(turn=batch.turn, results={name: result.sent.value for name, result in results.items()})


def warm_up(urls: dict[str, str], toolsets: Any) -> None:
    """Import what is imported when first used, so that no process has to."""
    import psycopg  # noqa: F401

    with open(os.devnull, "w") as nowhere:
        plan = Plan((Batch("warm", {"warm-1": "down", "warm-2": "down"}),))
        asyncio.run(run(plan, nowhere.fileno(), urls, "sqlite://", Keys(os.urandom(32)), toolsets))
    gc.collect()
    gc.freeze()


async def run(plan: Plan, pipe: int, urls: dict[str, str], store_url: str, keys: Keys, toolsets: Any) -> None:
    """What a process does until it is done or dead: time passes, then every batch."""
    mark = Marks(plan, pipe)
    store = MarkedStore(store_url, keys, mark)
    mark.say(started=True)
    dispatcher = Dispatcher(toolsets, server=urls, transport=MarkedTransport(mark))
    runtime = Runtime(dispatcher, ApprovalConfig.parse(CONFIG), store=store, background=False)
    if plan.dead:
        await runtime.sweep()
    for batch in plan.batches:
        await live(runtime, mark, batch)
    mark.say(done=True)


def fork(plan: Plan, *more: Any) -> tuple[int, int]:
    """Start a process for a plan; its id, and the pipe that it says its steps to."""
    here, there = os.pipe()
    child = os.fork()
    if child:
        os.close(there)
        return child, here
    try:
        os.close(here)
        asyncio.run(run(plan, there, *more))
    except BaseException:
        os.write(there, json.dumps({"error": traceback.format_exc()[-1500:], "plan": asdict(plan)}).encode() + b"\n")
    finally:
        os._exit(0)
