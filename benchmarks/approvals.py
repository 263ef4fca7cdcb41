"""Measures a store of many pauses: list, show, decide, sweep, resume, and how they grow. See `--help`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _counting import Counting, counting

from toolgen import ApprovalConfig, Caller, Decider, Decision, Dispatcher, Runtime, ToolCall, generate
from toolgen.approvals import rows
from toolgen.approvals.model import Pause
from toolgen.approvals.sealed import Seal
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Store, utc_now
from toolgen.approvals.tables import calls, pauses
from toolgen.identity.keys import Keys
from toolgen.policy.config import TimeoutPolicy

DESCRIPTION = """\
example: python benchmarks/approvals.py --pauses 100000 --store postgresql://me@/approvals

Fills stores with pauses, an eighth of them approved and not resumed, and measures what people and processes do
with them: at an eighth of the number and at all of it. Times are milliseconds at the median. Exit code 1 if a bar
is missed. Stores are SQLAlchemy's URLs and empty; without one SQLite in a temporary folder.
"""
BARS = {
    "list, first page": 50.0,
    "list, of a requester": 50.0,
    "list, of one who has none": 50.0,
    "list, a page in the middle": 50.0,
    "show": 20.0,
    "decide": 50.0,
    "sweep, nothing due": 250.0,
    "resume by another process": 500.0,
}  # milliseconds with all pauses
REQUESTERS = 1_000
TENANT = "default"
DECIDER = Decider("decider@example.com")
Step = Callable[[], Awaitable[object]]


class Place(NamedTuple):
    """A store under measurement."""

    url: str
    keys: Keys
    toolset: Any
    server: str
    ahead: timedelta = timedelta(0)  # of the clock

    def runtime(self) -> Runtime:
        """A runtime on the store, as a process has it."""
        store = Store(self.url, self.keys, clock=lambda: utc_now() + self.ahead)
        config = ApprovalConfig.parse({"requireApproval": ["pay"]})
        return Runtime(Dispatcher(self.toolset, server=self.server), config, store=store, background=False)


def bank() -> Any:
    """An API with one tool."""
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "text": {"type": "string"}}}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    operation = {"operationId": "pay", "requestBody": body, "responses": {"200": {"description": "done"}}}
    document = {"openapi": "3.1.0", "info": {"title": "Bank", "version": "1"}, "paths": {"/pay": {"post": operation}}}
    return generate(document, api="bank")


async def fill(runtime: Runtime, first: int, last: int) -> None:
    """Pauses of these numbers: one is made by the runtime, the others as rows like its own."""
    call = ToolCall("call", "pay", {"requestBody": {"id": f"template-{first}", "text": "x" * 400}})
    made = await runtime.submit([call], caller=Caller(requester(0)), thread="fill", turn=f"{first}-{uuid4().hex}")
    assert made.pause is not None
    template = runtime.store.pause(made.pause.id, TENANT)
    work = runtime.work("bank", "pay", template.calls[0].arguments, Caller(requester(0)))
    fingerprint = template.calls[0].fingerprint
    bindings = [runtime.bound(work, fingerprint, requester(n), TENANT) for n in range(REQUESTERS)]
    now = runtime.store.clock()
    for start in range(first, last, 1_000):
        numbers = range(start, min(start + 1_000, last))
        insert(runtime.store, [copied(template, n, bindings[n % REQUESTERS], now) for n in numbers])


def copied(template: Pause, number: int, binding: str, now: datetime) -> Pause:
    """A pause of another requester; every eighth was approved and waits to be resumed."""
    approved = number % 8 == 7
    call = replace(template.calls[0], binding=binding, state=CallState.approved if approved else CallState.pending)
    return replace(
        template,
        id=uuid4().hex,
        thread=f"thread-{number}",
        turn="1",
        requester=requester(number),
        created=now - timedelta(seconds=1 + number / 100),
        due=None if approved else now + timedelta(days=1),
        timeout_policy=TimeoutPolicy.AUTO_REJECT,
        decided=now if approved else None,
        calls=(call,),
    )


def requester(number: int) -> str:
    """The subject of a number."""
    return f"requester-{number % REQUESTERS}@example.com"


def insert(store: Store, made: Sequence[Pause]) -> None:
    """Pauses as rows, in one transaction."""
    seal = Seal(store.keys)
    with store.database.change() as connection:
        connection.execute(pauses.insert(), [rows.pause_row(pause, seal) for pause in made])
        listed = [rows.call_row(call, pause.id, n, seal) for pause in made for n, call in enumerate(pause.calls)]
        connection.execute(calls.insert(), listed)


async def milliseconds(steps: Sequence[Step]) -> float:
    """The median of several steps."""
    took = []
    for step in steps:
        start = time.perf_counter()
        await step()
        took.append((time.perf_counter() - start) * 1e3)
    return statistics.median(took)


async def measured(place: Place, repeat: int, count: int) -> dict[str, float]:
    """Every figure, at the number of pauses there is."""
    runtime = place.runtime()
    found = {name: await milliseconds([step] * repeat) for name, step in lists(runtime, count).items()}
    some = runtime.store.listed(TENANT, waiting=True, limit=2 * repeat + 1)[1:]
    found["show"] = await milliseconds([lambda one=one: shown(runtime, one.id) for one in some[:repeat]])
    approve = Decision("approved")
    found["decide"] = await milliseconds(
        [lambda one=one: runtime.decide(one.id, approve, decider=DECIDER) for one in some[:repeat]]
    )
    found["sweep, nothing due"] = await milliseconds([runtime.sweep] * max(3, repeat // 5))
    found["sweep, 100 due"] = await milliseconds([lambda: due(place)])
    found["reload, nothing changed"] = await milliseconds([lambda: runtime.reload(place.toolset)])
    found["resume"] = await milliseconds([lambda one=one: resumed(runtime, one) for one in some[: repeat // 2]])
    runtime.store.close()
    left = some[repeat // 2 : repeat]
    found["resume by another process"] = statistics.median(elsewhere(place, one) for one in left)
    return found


def lists(runtime: Runtime, count: int) -> dict[str, Step]:
    """What people look at."""
    store = runtime.store
    middle = (utc_now() - timedelta(seconds=count / 200)).timestamp()
    return {
        "list, first page": lambda: runtime.in_store(store.listed, TENANT, waiting=True),
        "list, of a requester": lambda: runtime.in_store(store.listed, TENANT, waiting=True, requester=requester(5)),
        "list, of one who has none": lambda: runtime.in_store(store.listed, TENANT, requester="nobody@example.com"),
        "list, a page in the middle": lambda: runtime.in_store(store.listed, TENANT, waiting=True, before=middle),
        "how many wait": lambda: runtime.in_store(store.count_waiting, TENANT),
    }


async def shown(runtime: Runtime, pause_id: str) -> None:
    """What a person reads of a pause."""
    json.dumps((await runtime.in_store(runtime.store.pause, pause_id, TENANT)).to_dict())


async def due(place: Place) -> None:
    """A sweep a while later, of a hundred pauses whose time is up then."""
    late = place._replace(ahead=timedelta(minutes=10)).runtime()
    template = late.store.pauses(TENANT, waiting=True, limit=1)[0]
    soon = late.store.clock() - timedelta(seconds=1)
    insert(late.store, [replace(template, id=uuid4().hex, thread=f"due-{uuid4().hex}", due=soon) for _ in range(100)])
    changed = await late.sweep()
    late.store.close()
    assert changed == 100, f"the sweep changed {changed} of 100"


async def resumed(runtime: Runtime, one: Any) -> None:
    """An approved pause is run, for its requester."""
    results = await runtime.resume(one.id, caller=Caller(one.requester))
    assert all(result.ok for result in results.values()), results


def elsewhere(place: Place, one: Any) -> float:
    """Milliseconds another process takes from opening the store to the result."""
    start = time.perf_counter()
    child = os.fork()
    if not child:
        code = 1
        try:
            asyncio.run(resumed(place.runtime(), one))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, "the other process could not resume it"
    return (time.perf_counter() - start) * 1e3


def measure(url: str, count: int, repeat: int, server: Counting) -> dict[str, Any]:
    """A store at an eighth of the pauses, and at all of them."""
    place = Place(url, Keys(os.urandom(32)), bank(), server.url)
    steps: list[dict[str, Any]] = []
    before = 0
    for there in (count // 8, count):
        runtime = place.runtime()
        start = time.perf_counter()
        asyncio.run(fill(runtime, before, there))
        filled = time.perf_counter() - start
        _analyzed(runtime.store)
        runtime.store.close()
        figures = asyncio.run(measured(place, repeat, there))
        steps.append({"pauses": there, "filled in seconds": filled, "milliseconds": figures})
        before = there
    last = steps[-1]["milliseconds"]
    bars = [{"bar": name, "at most": most, "measured": last[name]} for name, most in BARS.items()]
    return {"store": url.partition(":")[0], "steps": steps, "bars": bars}


def _analyzed(store: Store) -> None:
    """PostgreSQL does so by itself, a minute after a table has grown."""
    if not store.database.is_sqlite:
        with store.database.change() as connection:
            connection.exec_driver_sql("ANALYZE")


def write(found: Sequence[dict[str, Any]]) -> None:
    """The figures as text."""
    for one in found:
        few, many = one["steps"]
        print(f"\n{one['store'] + ', ms':34} {few['pauses']:>10,} {many['pauses']:>10,} {'growth':>8}")
        for name, value in many["milliseconds"].items():
            before = few["milliseconds"][name]
            most = BARS.get(name)
            verdict = "" if most is None else "ok" if value <= most else "MISSED"
            print(f"{name:34} {before:10.1f} {value:10.1f} {value / before:8.1f}   {verdict}")


def main(given: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="approvals.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="append", metavar="URL", help="an empty store, more than once for several")
    parser.add_argument("--pauses", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=20, help="how often each thing is done (default: 20)")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args(given)
    if args.pauses < 8 * args.repeat * 4 or args.repeat < 2:
        parser.error("there are 32 pauses or more for each repetition, and 2 repetitions or more")
    with tempfile.TemporaryDirectory() as folder, counting(7) as server:
        urls = args.store or [f"sqlite:///{folder}/approvals.db"]
        found = [measure(url, args.pauses, args.repeat, server) for url in urls]
    if args.format == "json":
        print(json.dumps(found, indent=2))
    else:
        write(found)
    return int(any(bar["measured"] > bar["at most"] for one in found for bar in one["bars"]))


if __name__ == "__main__":
    sys.exit(main())
