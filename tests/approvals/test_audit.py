from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update
from stored_pauses import Clock, added, moved

from toolgen.approvals import audit
from toolgen.approvals.audit import Entry, Head
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, Store
from toolgen.approvals.tables import audit as table
from toolgen.identity.keys import Keys


@pytest.fixture
def log(memory: Store) -> Store:
    """A log of ten entries."""
    for number in range(10):
        memory.record([Entry("ran", "t", "ann", "p", f"c{number}", {"fingerprint": f"{number:064}"})])
    return memory


def rows(store: Store) -> list[dict[str, Any]]:
    with store.database.read() as connection:
        return [dict(row) for row in connection.execute(select(table).order_by(table.c.seq)).mappings()]


def faults(found: list[dict[str, Any]], store: Store, head: Head | None = None) -> list[str]:
    listed: Iterator[Mapping[Any, Any]] = iter(found)
    return list(audit.faults(listed, store.keys, head))


def test_a_whole_log_has_no_fault(log: Store) -> None:
    assert log.faults() == [] == log.faults(log.head())
    assert len(rows(log)) == 10


def test_every_entry_is_signed_with_the_key_in_use(log: Store) -> None:
    assert {row["key"] for row in rows(log)} == {log.keys.id}


@pytest.mark.parametrize("seq", [1, 5, 9])
def test_a_deletion_is_found(seq: int, log: Store) -> None:
    with log.database.change() as connection:
        connection.execute(delete(table).where(table.c.seq == seq))
    assert any(f"entry {seq + 1}:" in fault for fault in log.faults())


@pytest.mark.parametrize("seq", [1, 5, 9])
def test_a_deletion_that_is_renumbered_is_found(seq: int, log: Store) -> None:
    found = [row for row in rows(log) if row["seq"] != seq]
    assert faults([row | {"seq": number} for number, row in enumerate(found, 1)], log)


def test_an_insertion_is_found(log: Store) -> None:
    copied = rows(log)[4]
    with log.database.change() as connection:
        connection.execute(insert(table).values(**(copied | {"seq": 11})))
    assert log.faults() == ["entry 11: it was changed, or is not in its place"]


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 7), (8, 9)])
@pytest.mark.parametrize("renumber", [True, False])
def test_another_order_is_found(first: int, second: int, renumber: bool, log: Store) -> None:
    found = rows(log)
    found[first], found[second] = found[second], found[first]
    if renumber:
        found = [row | {"seq": number} for number, row in enumerate(found, 1)]
    assert faults(found, log)


EDITS: dict[str, Any] = {
    "seq": 77,
    "at": 1.5,
    "kind": "cancelled",
    "tenant": "u",
    "pause": "q",
    "call": None,
    "details": '{"actor": "bob"}',
    "salt": "00" * 16,
    "digest": "0" * 64,
    "key": "00000000",
    "mac": "0" * 64,
}


def test_there_is_an_edit_for_each_column() -> None:
    assert set(EDITS) == {column.name for column in table.c}


@pytest.mark.parametrize("column", list(EDITS))
@pytest.mark.parametrize("seq", [1, 5, 10])
def test_an_edit_of_any_column_is_found(column: str, seq: int, log: Store) -> None:
    with log.database.change() as connection:
        changed = update(table).where(table.c.seq == seq).values(**{column: EDITS[column]})
        assert connection.execute(changed).rowcount == 1
    assert log.faults()


@pytest.mark.parametrize("values", [{"details": None}, {"salt": None}, {"details": None, "salt": None}])
def test_details_that_no_erasing_took_are_found(values: dict[str, Any], log: Store) -> None:
    with log.database.change() as connection:
        connection.execute(update(table).where(table.c.seq == 5).values(**values))
    [fault] = log.faults()[-1:]
    assert "entry 5: its details" in fault


def test_details_and_digest_changed_together_are_found(log: Store) -> None:
    found = rows(log)
    found[4]["details"] = '{"actor": "eve"}'
    found[4]["digest"] = audit._digest(found[4]["salt"], found[4]["details"])
    assert faults(found, log) == ["entry 5: it was changed, or is not in its place"]


def test_an_unsigned_entry_is_a_fault(log: Store) -> None:
    with log.database.change() as connection:
        connection.execute(update(table).where(table.c.seq == 10).values(key="", mac=""))
    assert log.faults() == ["entry 10: it is signed with the key '', which is not here"]


def test_a_log_made_with_another_key_is_a_fault_in_every_entry(log: Store, opened: Callable[..., Store]) -> None:
    other = opened()
    other.record([Entry("ran", "t", "ann")])
    assert faults(rows(other), log) == [f"entry 1: it is signed with the key '{other.keys.id}', which is not here"]


def test_the_end_cut_off_is_found_against_a_head_only(log: Store) -> None:
    head = log.head()
    with log.database.change() as connection:
        connection.execute(delete(table).where(table.c.seq > 7))
    assert log.faults() == []
    assert log.faults(head) == ["the log ends before entry 10, where the head was signed: its end was cut off"]
    with log.database.change() as connection:
        connection.execute(delete(table))
    assert log.faults(head)


def test_a_log_that_grew_since_its_head_is_whole(log: Store) -> None:
    head = log.head()
    log.record([Entry("ran", "t", "ann")])
    assert log.faults(head) == []


def test_a_log_written_anew_does_not_have_the_entry_of_its_head(log: Store, opened: Callable[..., Store]) -> None:
    head = log.head()
    anew = opened(None, log.keys)
    for _ in range(10):
        anew.record([Entry("ran", "t", "eve")])
    assert anew.faults() == []
    assert anew.faults(head) == ["entry 10: it is not the one that the head was signed over"]


@pytest.mark.parametrize("changed", [{"seq": 3}, {"mac": "0" * 64}, {"at": 3.0}, {"signature": "é"}, {"key": "x"}])
def test_a_changed_head_is_no_head(changed: dict[str, Any], log: Store) -> None:
    head = Head(**(log.head().to_dict() | changed))
    assert log.faults(head) == ["the head is not signed with these keys"]


def test_a_head_of_another_key_is_no_head(log: Store, opened: Callable[..., Store]) -> None:
    assert log.faults(opened().head()) == ["the head is not signed with these keys"]


def test_a_head_of_a_previous_key_still_holds(opened: Callable[..., Store], store_url: str) -> None:
    old, new = os.urandom(32), os.urandom(32)
    first = opened(store_url, Keys(old))
    first.record([Entry("ran", "t", "ann")])
    head = first.head()
    later = opened(store_url, Keys(new, [old]))
    later.record([Entry("ran", "t", "ann")])
    assert later.faults(head) == []
    assert [row["key"] for row in rows(later)] == [first.keys.id, later.keys.id]


def test_entries_are_written_with_the_change_or_not_at_all(store: Store) -> None:
    pause = added(store)

    def fails(_: Any) -> Change:
        raise LookupError

    with pytest.raises(LookupError):
        store.change(pause.id, "t", fails)
    moved(store, pause, CallState.approved)
    assert [row["kind"] for row in rows(store)] == ["paused", "approved"]
    assert store.faults() == []


def test_the_times_are_those_of_the_clock_and_survive_the_database(store: Store, clock: Clock) -> None:
    for _ in range(3):
        clock.forward(seconds=0.1)
        store.record([Entry("ran", "t", "ann")])
    clock.now = clock.now.replace(microsecond=0)
    store.record([Entry("ran", "t", "ann")])
    assert rows(store)[-1]["at"] == clock.now.timestamp()
    assert store.faults() == []


def test_a_call_id_that_no_database_takes_can_be_recorded(store: Store) -> None:
    store.record([Entry("denied", "t", "ann", None, "\0\ud800" + "x" * 500, {"tool": "\0\ud800"})])
    assert store.faults() == []
    assert rows(store)[0]["call"].endswith("x" * 200)


def test_details_cannot_say_who_acted(memory: Store) -> None:
    memory.record([Entry("ran", "t", "ann", details={"actor": "eve"})])
    assert json.loads(rows(memory)[0]["details"])["actor"] == "ann"
