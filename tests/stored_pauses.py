"""Pauses for tests of the store, and what the database's files hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import select

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import CallTerms, Pause, PausedCall, VerdictKind, Vote
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, Store
from toolgen.approvals.tables import metadata

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


def a_call(name: str = "c1", **given: Any) -> PausedCall:
    values: dict[str, Any] = {
        "id": name,
        "tool": "updatePet",
        "source": "shop",
        "endpoint": "PUT /pets/{petId}",
        "reason": "updatePet",
        "terms": CallTerms(),
        "preview": {"request": "PUT /pets/7", "body": "shown-argument-7361"},
        "fingerprint": "f" * 64,
        "binding": "b" * 64,
        "tool_digest": "d" * 64,
        "arguments": {"petId": "7", "name": "kept-argument-7361"},
    }
    return PausedCall(**(values | given))


def a_pause(*calls: PausedCall, **given: Any) -> Pause:
    values: dict[str, Any] = {
        "id": uuid4().hex,
        "tenant": "t",
        "thread": "thread",
        "turn": uuid4().hex,
        "requester": "ann",
        "created": NOW,
        "gating_digest": "g" * 64,
        "batch": "b" * 64,
        "reason": "These calls need approval: updatePet",
        "state": b"kept-state-7361",
    }
    return Pause(calls=calls or (a_call(),), **(values | given))


def added(store: Store, *calls: PausedCall, **given: Any) -> Pause:
    pause = a_pause(*calls, **given)
    about = {"calls": [{"id": call.id, "tool": call.tool} for call in pause.calls]}
    store.add(pause, [Entry("paused", pause.tenant, pause.requester, pause.id, None, about)])
    return pause


def to(state: CallState, name: str = "c1", **given: Any) -> Callable[[Pause], Change]:
    """A change that brings one call of a pause to a state, for `Store.change`."""

    def change(pause: Pause) -> Change:
        values = dict(given)
        if state is CallState.executing:
            values = {"lease": NOW + timedelta(minutes=5), "worker": "w", **values}
        changed = pause.with_call(replace(pause.call(name), state=state, **values))
        return Change(changed, (Entry(state.value, pause.tenant, "bob", pause.id, name, {"state": state.value}),))

    return change


def moved(store: Store, pause: Pause, *states: CallState, name: str = "c1") -> Pause:
    for state in states:
        pause = store.change(pause.id, pause.tenant, to(state, name))
    return pause


def a_vote(by: str = "bob", note: str | None = "kept-note-7361") -> Vote:
    return Vote(by, VerdictKind.approved, NOW, note)


def stored_rows(store: Store) -> Iterator[bytes]:
    """Every row of every table."""
    with store.database.read() as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(select(table)):
                yield b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in row)


def stored_bytes(store: Store) -> Iterator[bytes]:
    """Every row, and for SQLite every byte of its files."""
    yield from stored_rows(store)
    path = store.database.path
    for file in path.parent.glob(path.name + "*") if path else ():
        yield Path(file).read_bytes()
