"""Kills processes from submit to executed, and checks that nothing ran twice and nothing was lost. See `--help`."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _aftermath import Heard, Story, faults, kills
from _counting import Counting, closed_port, counting
from _doomed import POINTS, SWEPT, Batch, Plan, fork, toolset, warm_up

from toolgen.approvals.store import Store
from toolgen.approvals.tables import audit, calls, journal
from toolgen.identity.keys import Keys

DESCRIPTION = """\
example: python benchmarks/crash.py --kills 500 --store sqlite:////tmp/crash.db --store postgresql://me@/crash

A process takes a model's calls from submit to executed: they pause, are decided, claimed, sent to an HTTP server
in another process, which counts. It is killed (SIGKILL) at every point in turn and at random times, and so are some
of the processes that come after it. Then calls, decisions, the journal, the audit log and the server's count are
compared. Exit code 1 if anything is not as it has to be. Stores are SQLAlchemy's URLs and empty; without one SQLite in
a temporary folder.
"""
FIRST = (
    "claimed: committed",
    "decided: committed",
    "sent",
    None,
    "claimed: before",
    "journal claim: committed",
    "end: before",
)
AGAIN = 0.25  # how many of the processes that find what a kill has left are killed too
LONGEST = 0.12  # seconds until a kill at random


class Run:
    """Kills on one store."""

    def __init__(self, url: str, server: Counting, toolsets: Any, seed: int) -> None:
        self.url, self.server, self.toolsets = url, server, toolsets
        self.rng = random.Random(seed)
        self.keys = Keys(os.urandom(32))
        self.name = uuid4().hex[:8]
        self.urls = {"bank": server.url, "gone": f"http://127.0.0.1:{closed_port()}"}
        self.stories: list[Story] = []
        self.made = 0

    def batches(self, count: int, *, plain: bool = False) -> tuple[Batch, ...]:
        """Turns of a model; plain ones have nothing that is rejected or cannot be sent."""
        return tuple(self._batch(plain) for _ in range(count))

    def _batch(self, plain: bool) -> Batch:
        self.made += 1
        turn = f"{self.name}-{self.made}"
        tools = {f"{turn}-{n}": "pay" for n in range(self.rng.randint(1, 2))} | {f"{turn}-note": "note"}
        rejected: tuple[str, ...] = ()
        if not plain and self.rng.random() < 0.3:
            tools[f"{turn}-down"] = "down"
        if not plain and self.rng.random() < 0.2:
            tools[f"{turn}-no"], rejected = "pay", (f"{turn}-no",)
        return Batch(turn, tools, rejected)

    def unkilled(self, count: int) -> None:
        """Turns that nothing happens to."""
        story = Story(self.batches(count, plain=True))
        self._process(story, None)
        self.stories.append(story)
        failure = next((line["error"] for line in story.heard[0].lines if "error" in line), None)
        if failure is not None:
            raise SystemExit(f"no process can use the store:\n{failure}")

    def killed(self, point: str | None) -> int:
        """Turns of a process that is killed at a point, or at random; then of those that come after it."""
        story = Story(self.batches(self.rng.randint(2, 3) if point else 5))
        self._process(story, point or "random")
        while story.heard[-1].killed and len(story.heard) < 4:
            again = self.rng.random() < AGAIN and len(story.heard) < 3
            self._process(story, self.rng.choice([*SWEPT, *POINTS]) if again else None)
        self.stories.append(story)
        return sum(one.killed for one in story.heard)

    def _process(self, story: Story, point: str | None) -> None:
        at = None if point == "random" else point
        plan = Plan(story.batches, at, 1 if story.heard else self.rng.randint(1, 2), len(story.heard))
        child, pipe = fork(plan, self.urls, self.url, self.keys, self.toolsets)
        with open(pipe, encoding="utf-8") as said:
            if point == "random":
                first = said.readline()
                time.sleep(self.rng.uniform(0, LONGEST))
                os.kill(child, signal.SIGKILL)
                text = first + said.read()
            else:
                text = said.read()
        status = os.waitpid(child, 0)[1]
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        story.heard.append(Heard([json.loads(line) for line in text.splitlines()], killed, at))

    def outcome(self) -> dict[str, Any]:
        """What is in the store, what the server counted, and everything that is wrong."""
        states, wrong = self._stored()
        counts = self.server.counts()
        for story in self.stories:
            wrong += faults(story, states, counts)
        tools = {name: tool for story in self.stories for name, tool in story.tools().items()}
        by_state = Counter(states.get(name, "missing") for name in tools)
        plain = [states.get(name) for name in self.stories[0].tools()]
        points = kills(self.stories)
        return {
            "store": self.url.partition(":")[0],
            "kills": points.total(),
            "points": dict(sorted(points.items())),
            "calls": len(tools),
            "states": dict(sorted(by_state.items())),
            "requests": sum(counts[name] for name in tools),
            "sent twice": sum(counts[name] > 1 for name in tools),
            "unkilled executed": f"{plain.count('executed')} of {len(plain)}",
            "violations": wrong,
        }

    def _stored(self) -> tuple[dict[str, str], list[str]]:
        """The state of each call, and what is wrong with journal and audit log."""
        from sqlalchemy import select

        from toolgen.approvals.audit import faults as tampered

        store = Store(self.url, self.keys)
        with store.database.read() as connection:
            mine = [audit.c.key == self.keys.id]
            entries = connection.execute(select(audit).where(*mine).order_by(audit.c.seq)).mappings().all()
            rows = connection.execute(select(calls.c.id, calls.c.state).where(calls.c.id.startswith(self.name))).all()
            kept = connection.execute(select(journal).where(journal.c.turn.startswith(self.name))).mappings().all()
        store.close()
        states = {row.id: str(row.state) for row in rows}
        whole = bool(entries) and entries[0]["seq"] == 1  # else the store was used before, with another key
        wrong = [f"the audit log: {fault}" for fault in tampered(iter(entries), self.keys)] if whole else []
        claims = Counter(row["call"] for row in entries if row["kind"] == "claimed")
        wrong += [f"claimed {count} times: {name}" for name, count in claims.items() if count > 1]
        for row in kept:
            if states.setdefault(row["call"], row["state"]) != row["state"]:
                wrong.append(f"the journal says {row['state']}, the pause {states[row['call']]}: {row['call']}")
        ends = Counter((row["call"], row["kind"]) for row in entries)
        for row in rows:
            if row.state in ("executed", "failed", "outcome_unknown") and ends[row.id, row.state] != 1:
                wrong.append(f"{ends[row.id, row.state]} audit entries say {row.state}: {row.id}")
        return states, wrong


def measure(urls: Sequence[str], count: int, seed: int, quiet: bool) -> dict[str, Any]:
    """Kills on each store, `count` in all."""
    toolsets = toolset()
    found = []
    started = time.perf_counter()
    with counting(seed) as server:
        for number, url in enumerate(urls):
            run = Run(url, server, toolsets, seed + number)
            warm_up(run.urls, toolsets)
            run.unkilled(min(50, count))
            plan = [*FIRST, *(point for point in POINTS if point not in FIRST), *[None] * 5]
            done = position = 0
            while done < (count + number) // len(urls) and position < 10 * count:
                done += run.killed(plan[position % len(plan)])
                position += 1
                if not quiet and sys.stderr.isatty():
                    print(f"\r{url.partition(':')[0]}: {done:,} kills", end="", file=sys.stderr, flush=True)
            found.append(run.outcome())
    return {"stores": found, "seconds": time.perf_counter() - started, "seed": seed}


def write(found: dict[str, Any]) -> None:
    """The figures as text."""
    for one in found["stores"]:
        print(f"\n{one['store']}: {one['kills']:,} kills, {one['calls']:,} calls, {one['requests']:,} requests")
        for name, count in one["points"].items():
            print(f"  killed {name:28} {count:6,}")
        for name, count in one["states"].items():
            print(f"  {name:35} {count:6,}")
        print(f"  {'sent twice':35} {one['sent twice']:6,}")
        print(f"  unkilled and executed: {one['unkilled executed']}")
        for fault in one["violations"][:20]:
            print(f"  VIOLATED  {fault}")
    total = sum(one["kills"] for one in found["stores"])
    wrong = sum(len(one["violations"]) for one in found["stores"])
    print(f"\n{total:,} kills, {wrong:,} violations, {found['seconds']:.0f} s   {'MISSED' if wrong else 'ok'}")


def main(given: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="crash.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="append", metavar="URL", help="a store, more than once for several")
    parser.add_argument("--kills", type=int, default=200, help="in all (default: 200)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args(given)
    if args.kills < 1:
        parser.error("numbers are 1 or more")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(args.store or [f"sqlite:///{folder}/crash.db"], args.kills, args.seed, args.format == "json")
    if args.format == "json":
        print(json.dumps(found, indent=2))
    else:
        write(found)
    return int(any(one["violations"] for one in found["stores"]))


if __name__ == "__main__":
    sys.exit(main())
