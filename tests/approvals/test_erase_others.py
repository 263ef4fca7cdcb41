"""An erasing takes what it is for and nothing beside it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from stored_pauses import NOW, Clock, a_call, added, moved

from toolgen.approvals.audit import Entry, entries
from toolgen.approvals.states import CallState
from toolgen.approvals.store import JournalKey, Store
from toolgen.approvals.tables import audit, remembered
from toolgen.errors import PauseConflict
from toolgen.result import Sent, ToolResult

ANSWER = ToolResult(True, Sent.answered, 200, "application/json", {"said": "yes"}, {})
KEY = JournalKey("t", "thread", "turn", "c1")


def claim(store: Store, key: JournalKey = KEY) -> ToolResult | None:
    lease = store.clock() + timedelta(minutes=1)
    return store.claim(key, "f" * 64, requester="ann", worker="w", lease=lease)


def logged(store: Store) -> list[Any]:
    with store.database.read() as connection:
        return list(entries(connection))


def states(store: Store, pause: str) -> list[CallState]:
    return [call.state for call in store.pause(pause, "t").calls]


def test_a_purge_cancels_what_waits_of_that_person_only(memory: Store) -> None:
    waits = added(memory, a_call("c1"), a_call("c2"))
    moved(memory, waits, CallState.rejected)
    done = moved(memory, added(memory), CallState.rejected)
    other = added(memory, requester="bob", due=NOW)
    before = memory.pause(waits.id, "t").revision
    assert memory.purge("ann", actor="admin", tenant="t").left == 0
    assert states(memory, waits.id) == [CallState.rejected, CallState.cancelled]
    assert states(memory, done.id) == [CallState.rejected]
    assert memory.pause(other.id, "t") == other
    assert memory.due(NOW) == [(other.id, "t")]
    assert memory.pause(waits.id, "t").revision == before + 1
    told = [(one.kind, one.pause, one.tenant) for one in logged(memory) if one.kind in ("cancelled", "purged")]
    assert told == [("purged", None, "t"), ("cancelled", waits.id, "t")]


def test_what_others_are_carrying_out_is_not_left_of_a_person(memory: Store) -> None:
    added(memory)
    moved(memory, added(memory, requester="bob"), CallState.approved, CallState.executing)
    counts = memory.purge("ann", actor="admin")
    assert (counts.pauses, counts.left) == (1, 0)
    purged = logged(memory)[-2]
    assert (purged.tenant, purged.details["actor"]) == ("*", "admin")


def test_a_purge_of_a_tenant_leaves_what_others_remember(memory: Store) -> None:
    row = {"requester": "ann", "source": "shop", "tool": "x", "created": 1.0, "data": "{}"}
    with memory.database.change() as connection:
        for tenant in ("t", "u"):
            connection.execute(insert(remembered).values(id=tenant, tenant=tenant, **row))
    assert memory.purge("ann", actor="admin", tenant="t").remembered == 1
    with memory.database.read() as connection:
        assert connection.execute(select(remembered.c.id)).scalars().all() == ["u"]


def test_a_call_without_a_pause_that_is_being_carried_out_stays_its_requester_s(memory: Store) -> None:
    claim(memory)
    assert memory.purge("ann", actor="admin", tenant="other").left == 0
    assert memory.purge("ann", actor="admin").left == 1, "and it says so"
    memory.finish(KEY, CallState.executed, ANSWER, [])
    assert claim(memory) == ANSWER
    with pytest.raises(PauseConflict):
        memory.carried_out(KEY, "f" * 64, "bob")
    assert memory.purge("ann", actor="admin").journal == 1, "now it can go"


def test_an_entry_is_erased_and_counted_once(memory: Store) -> None:
    memory.record([Entry("ran", "t", "bob", "p1")])
    pause = added(memory)
    memory.record([Entry("decided", "t", "bob", pause.id)])
    assert memory.purge("bob", actor="admin").audit == 2
    assert memory.purge("ann", actor="admin").audit == 1
    assert memory.faults() == []
    assert [one.details for one in logged(memory)[:3]] == [None, None, None]


def test_what_is_not_old_keeps_its_result_and_what_is_old_is_erased_once(memory: Store, clock: Clock) -> None:
    claim(memory)
    memory.finish(KEY, CallState.executed, ANSWER, [])
    assert memory.expire(clock() - timedelta(seconds=1)).journal == 0
    assert claim(memory) == ANSWER
    clock.forward(days=1)
    assert [memory.expire(clock()).journal for _ in range(2)] == [1, 0]
    assert len([one for one in logged(memory) if one.kind == "retention"]) == 1, "nothing erased is not told"


def test_the_oldest_pauses_are_erased_first(memory: Store, clock: Clock) -> None:
    new, old = [
        moved(memory, added(memory, created=NOW - timedelta(days=age)), CallState.rejected).id for age in (1, 2)
    ]
    clock.forward(days=9)
    assert memory.expire(clock(), limit=1).pauses == 1
    assert memory.pause(old, "t").calls[0].arguments == {}
    assert memory.pause(new, "t").calls[0].arguments != {}


def changed(store: Store, seq: int, **values: Any) -> None:
    with store.database.change() as connection:
        connection.execute(update(audit).where(audit.c.seq == seq).values(**values))


@pytest.fixture
def purged(memory: Store) -> int:
    """A log whose second entry is erased, and the number of the entry that says so."""
    for who in ("bob", "ann", "eve"):
        memory.record([Entry("ran", "t", who, None, None, {})])
    memory.purge("ann", actor="admin")
    assert memory.faults() == []
    return 4


@pytest.mark.parametrize("seq", [1, 3])
def test_an_erasing_covers_the_entries_it_names_and_none_beside_them(memory: Store, purged: int, seq: int) -> None:
    changed(memory, seq, details=None, salt=None)
    assert memory.faults() == [f"entry {seq}: its details are gone, and no entry says that they were erased"]


def test_half_an_erasing_is_a_change(memory: Store, purged: int) -> None:
    changed(memory, 2, salt="0" * 32)
    assert "entry 2: its details were changed" in memory.faults()
    changed(memory, 2, salt=None, details="{}")
    assert "entry 2: its details were changed" in memory.faults()


@pytest.mark.parametrize(
    "details", ["no json", "[]", '{"entries": 5}', '{"entries": [5]}', '{"entries": [["a", "b"]]}']
)
def test_an_erasing_that_cannot_be_read_covers_nothing(memory: Store, purged: int, details: str) -> None:
    changed(memory, purged, details=details)
    assert memory.faults() == [
        f"entry {purged}: its details were changed",
        "entry 2: its details are gone, and no entry says that they were erased",
    ]


def test_the_head_of_an_empty_log_finds_no_fault_in_what_follows(memory: Store) -> None:
    head = memory.head()
    assert head.seq == 0
    assert memory.faults(head) == []
    memory.record([Entry("ran", "t", "ann")])
    assert memory.faults(head) == []


def test_entries_come_in_order_from_behind_a_number_and_so_many(memory: Store, purged: int) -> None:
    with memory.database.read() as connection:
        assert [one.seq for one in entries(connection, after=1, limit=2)] == [2, 3]
        assert [one.to_dict()["details"] for one in entries(connection, after=1, limit=2)] == [None, {"actor": "eve"}]
