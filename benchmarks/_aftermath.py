"""What must hold after kills: judged by what the processes said, what the store has and what the server counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from _doomed import Batch

# Between the commit of the claim and that of the end. What is `written` may be committed, if the kill came from
# outside; who kills himself there has committed nothing.
OPEN = ("claimed: committed", "journal claim: committed", "sending", "sent", "answered")
OPEN_END = ("end: before", "end: written", "journal end: before", "journal end: written")
MAYBE = ("claimed: written", "journal claim: written")
UNSENT = ("claimed: committed", "journal claim: committed")
RECEIVED = ("answered", *OPEN_END)


@dataclass(slots=True)
class Heard:
    """What one process said until it ended."""

    lines: list[dict[str, Any]]
    killed: bool
    point: str | None  # where it was to kill itself

    @property
    def last(self) -> str | None:
        """The last point it came to."""
        marks = [line["mark"] for line in self.lines if "mark" in line]
        return marks[-1] if marks else None

    @property
    def at(self) -> str:
        """The kind of kill."""
        return self.last or "start" if self.point else "at random"

    def marks(self) -> dict[str, str]:
        """The last point of each call."""
        return {name: line["mark"] for line in self.lines if "mark" in line for name in line["calls"]}


@dataclass(slots=True)
class Story:
    """Everything that was said of one set of batches, by each process that had it in turn."""

    batches: tuple[Batch, ...]
    heard: list[Heard] = field(default_factory=list)

    def tools(self) -> dict[str, str]:
        """The tool of each call."""
        return {name: tool for batch in self.batches for name, tool in batch.tools.items()}

    def interrupted(self) -> dict[str, tuple[str, bool]]:
        """Calls a kill came to between journal and end: the point, and whether it is certain that it was there."""
        found: dict[str, tuple[str, bool]] = {}
        for one in self.heard:
            for name, mark in one.marks().items() if one.killed else ():
                exact = one.point is not None
                if mark in OPEN or mark in OPEN_END or (mark in MAYBE and not exact):
                    found.setdefault(name, (mark, exact))
        return found


def faults(story: Story, states: dict[str, str], counts: Counter[str]) -> Iterator[str]:
    """Everything that is not as it has to be."""
    yield from _said(story)
    rejected = {name for batch in story.batches for name in batch.rejected}
    interrupted = story.interrupted()
    for name, tool in story.tools().items():
        state, count = states.get(name, "missing"), counts[name]
        where, exact = interrupted.get(name, ("nowhere", True))
        told = f"{name} ({tool}), killed {where}: {state}, {count} requests"
        if count > 1:
            yield f"sent twice: {told}"
        if count != {"executed": 1}.get(state, 0) and state != "outcome_unknown":
            yield f"the server counts otherwise: {told}"
        plain = "rejected" if name in rejected else "failed" if tool == "down" else "executed"
        allowed = {plain} if where == "nowhere" else {"outcome_unknown"} if exact else {"outcome_unknown", plain}
        if state not in allowed:
            yield f"not {' or '.join(sorted(allowed))}: {told}"
        if state == "outcome_unknown" and exact and tool != "down":
            if count and where in UNSENT:
                yield f"sent before it was said: {told}"
            if not count and where in RECEIVED:
                yield f"answered without a request: {told}"


def _said(story: Story) -> Iterator[str]:
    """What one process was told is kept for the next."""
    pauses: dict[str, str] = {}
    decided: set[str] = set()
    for one in story.heard:
        for line in one.lines:
            if "error" in line:
                yield f"a process failed: {line['error']}"
            if "found" in line:
                if pauses.setdefault(line["turn"], line["pause"]) != line["pause"]:
                    yield f"a pause was lost: {line['turn']}"
                lost = [name for name, state in line["found"].items() if state == "pending" and name in decided]
                yield from (f"a decision was lost: {name}" for name in lost)
            if line.get("mark") == "decided: committed" or "decided" in line:
                decided.update(line["calls"])
    yield from _results(story)


def _results(story: Story) -> Iterator[str]:
    """The last process has every turn through, and a call whose end was kept had that result in it."""
    said: dict[str, str] = {}
    for line in story.heard[-1].lines:
        said |= line.get("results", {})
    missing = [name for name in story.tools() if name not in said]
    if missing:
        yield f"no result: {', '.join(missing)}"
    ended = {name for one in story.heard for name, mark in one.marks().items() if mark.endswith("end: committed")}
    for name in ended & set(said):
        if said[name] != ("not_sent" if story.tools()[name] == "down" else "answered") and name not in (
            story.interrupted()
        ):
            yield f"its result was lost: {name}: {said[name]}"


def kills(stories: Sequence[Story]) -> Counter[str]:
    """How many processes were killed at each point."""
    return Counter(one.at for story in stories for one in story.heard if one.killed)
