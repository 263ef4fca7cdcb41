"""An exported audit log is verified by itself, with the key and without the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from stored_pauses import Clock, added

from toolgen.approvals import audit
from toolgen.approvals.audit import Entry, Head
from toolgen.approvals.exported import export_faults
from toolgen.approvals.store import Store


def exported(store: Store, after: int = 0) -> list[str]:
    with store.database.read() as connection:
        return [json.dumps(one.to_dict()) for one in audit.entries(connection, after=after)]


@pytest.fixture
def log(memory: Store, clock: Clock) -> Store:
    """A log of ten entries at times that milliseconds do not tell."""
    for number in range(10):
        clock.forward(seconds=0.0001234)
        about = {"fingerprint": f"{number:064}", "é\ud800": [1.5, None, {"b": 10**20, "a": True}]}
        memory.record([Entry("ran", "t", "ann", "p", f"c{number}", about)])
    return memory


def faults(log: Store, lines: list[str], head: Head | None = None) -> list[str]:
    return list(export_faults(lines, log.keys, head))


def test_an_export_is_whole_on_both_stores_and_after_a_purge(store: Store, clock: Clock) -> None:
    clock.forward(seconds=0.1)
    for who in ("ann", "bob"):
        added(store, requester=who)
    parts = exported(store)
    clock.now = clock.now.replace(microsecond=0)
    store.purge("ann", actor="admin")
    assert faults(store, exported(store), store.head()) == []
    assert faults(store, parts + exported(store, len(parts))) == []  # one part after the other


@pytest.mark.parametrize("key", list(audit.Recorded.__dataclass_fields__))
@pytest.mark.parametrize("at", [0, 4, 9])
def test_an_edit_of_anything_in_the_file_is_found(key: str, at: int, log: Store) -> None:
    lines = exported(log)
    data = json.loads(lines[at])
    other: dict[str, Any] = {
        "seq": 77,
        "seconds": data["seconds"] + 1e-6,
        "details": {**data["details"], "actor": "eve"},
    }
    lines[at] = json.dumps(data | {key: other.get(key, "00")})
    assert faults(log, lines)
    lines[at] = json.dumps(data | {key: None})
    assert faults(log, lines)
    del data[key]
    lines[at] = json.dumps(data)
    assert faults(log, lines)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda lines: lines[:4] + lines[5:],
        lambda lines: lines[1:],
        lambda lines: [*lines[:4], lines[2], *lines[4:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
        lambda lines: lines[::-1],
        lambda lines: [*lines, "{}"],
        lambda lines: [*lines, "["* 100_000],
        lambda lines: [lines[0].replace('"actor": "ann"', '"actor": "eve", "actor": "ann"'), *lines[1:]],
        lambda lines: [lines[0][:-1] + ', "note": "approved by eve"}', *lines[1:]],
    ],
)  # fmt: skip
def test_a_deletion_an_insertion_another_order_and_an_addition_are_found(
    tamper: Callable[[list[str]], list[str]], log: Store
) -> None:
    assert faults(log, exported(log)) == []
    assert faults(log, tamper(exported(log)))


def test_what_was_cut_off_the_export_is_found_against_a_head(log: Store) -> None:
    lines, head = exported(log)[:7], log.head()
    assert faults(log, lines) == []
    assert faults(log, lines, head) == ["the log ends before entry 10, where the head was signed: its end was cut off"]
    assert faults(log, [], head)


def test_details_that_nobody_erased_are_missed_in_an_export_too(log: Store) -> None:
    lines = exported(log)
    lines[4] = json.dumps(json.loads(lines[4]) | {"details": None, "salt": None})
    assert faults(log, lines) == ["entry 5: its details are gone, and no entry says that they were erased"]


def test_an_export_of_another_key_is_not_whole(log: Store, opened: Callable[..., Store]) -> None:
    assert len(faults(opened(), exported(log))) == 10


def test_an_export_that_another_program_wrote_anew_is_the_same_export(log: Store) -> None:
    assert faults(log, [json.dumps(json.loads(line), indent=None, sort_keys=True) for line in exported(log)]) == []
