"""Heads of the audit log: kept whole and by themselves, and never replaced by those of a log that was cut off."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update
from stored_pauses import Clock

from toolgen.approvals.audit import Entry, Head
from toolgen.approvals.heads import EVERY, Heads, head_of
from toolgen.approvals.store import Store
from toolgen.approvals.tables import audit
from toolgen.errors import StoreError


@pytest.fixture
def log(memory: Store) -> Store:
    memory.record([Entry("ran", "t", "ann")] * 5)
    return memory


def cut(store: Store) -> None:
    with store.database.change() as connection:
        connection.execute(delete(audit).where(audit.c.seq > 2))


def kept(file: Path) -> Head:
    return head_of(json.loads(file.read_text()))


def test_a_head_is_kept_where_the_log_grew_and_once_a_minute_at_most(log: Store, clock: Clock) -> None:
    told: list[Head] = []
    heads = Heads(log, told.append)
    assert (heads.keep(), heads.keep(), len(told)) == (True, False, 1)
    log.record([Entry("ran", "t", "ann")])
    assert heads.keep() is False
    clock.now += EVERY
    assert (heads.keep(), heads.keep()) == (True, False)
    clock.now += EVERY
    assert heads.keep() is False  # it has not grown
    assert [head.seq for head in told] == [5, 6]
    assert log.faults(told[-1]) == []


def test_a_file_is_replaced_whole_by_whichever_process_sees_the_log_grow(log: Store, tmp_path: Path) -> None:
    file = tmp_path / "head.json"
    assert Heads(log, file).keep()
    first = kept(file)
    assert Heads(log, str(file)).keep() is False
    assert kept(file) == first
    log.record([Entry("ran", "t", "ann")])
    assert Heads(log, file).keep()
    assert (kept(file).seq, log.faults(kept(file))) == (6, [])
    assert [one.name for one in tmp_path.iterdir()] == ["head.json"]


@pytest.mark.parametrize("damage", [cut, lambda log: rewritten(log)])
def test_the_head_of_a_log_that_does_not_go_on_from_it_replaces_no_other(
    damage: Callable[[Store], None], log: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, told = tmp_path / "head.json", []
    of_function = Heads(log, told.append)
    assert (Heads(log, file).keep(), of_function.keep()) == (True, True)
    before = file.read_bytes()
    damage(log)
    with caplog.at_level(logging.ERROR, "toolgen.approvals"):
        assert Heads(log, file).keep() is False
    assert "does not go on from entry 5" in caplog.text
    with pytest.raises(StoreError, match="cut off or changed"):
        of_function.write()
    assert (file.read_bytes(), len(told)) == (before, 1)
    assert log.faults(kept(file))


def rewritten(log: Store) -> None:
    with log.database.change() as connection:
        connection.execute(update(audit).where(audit.c.seq == 5).values(mac="0" * 64))
    log.record([Entry("ran", "t", "eve")])


@pytest.mark.parametrize("text", ["", "{}", "notes of mine", "[" * 100_000, None])
def test_a_file_that_is_no_head_of_this_store_is_left_as_it_is(
    text: str | None, log: Store, opened: Callable[..., Store], tmp_path: Path
) -> None:
    file = tmp_path / "head.json"
    text = json.dumps(opened().head().to_dict()) if text is None else text
    file.write_text(text)
    with pytest.raises(StoreError, match="left as it is"):
        Heads(log, file).write()
    assert (Heads(log, file).keep(), file.read_text()) == (False, text)


def test_what_a_function_raises_is_logged_without_its_text_and_tried_again(
    log: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []

    def fails(head: Head) -> None:
        told.append(head)
        if len(told) == 1:
            raise OSError("s3cr3t-7361")

    heads = Heads(log, fails)
    assert (heads.keep(), heads.keep(), len(told)) == (False, False, 1)
    assert ("OSError" in caplog.text, "7361" in caplog.text) == (True, False)
    clock.now += EVERY
    assert (heads.keep(), len(told)) == (True, 2)
