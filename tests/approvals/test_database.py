from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from postgres import Postgres
from sqlalchemy import delete, text, update
from stored_pauses import a_call, a_pause, added, moved, to

from toolgen.approvals.database import Database
from toolgen.approvals.decide import ruling
from toolgen.approvals.model import Decider, Decision, Pause
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, JournalKey, Store
from toolgen.approvals.tables import meta
from toolgen.errors import NameInvalid, PauseConflict, StoreError
from toolgen.identity.keys import Keys

WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from toolgen.approvals.audit import Entry
from toolgen.approvals.store import JournalKey, Store

url, name = sys.argv[1:]
store = Store(url)
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(20):
    key = JournalKey("t", "th", "tu", f"c{number}")
    lease = datetime.now(UTC) + timedelta(minutes=5)
    if store.claim(key, "f" * 64, requester="ann", worker=name, lease=lease) is None:
        won.append(number)
        store.record([Entry("claimed", "t", "ann", None, key.call, {"worker": name})])
print(*won)
store.close()
"""


@contextmanager
def told() -> Iterator[pytest.ExceptionInfo[StoreError]]:
    """Expects a StoreError whose traceback shows nothing of the driver's."""
    with pytest.raises(StoreError) as caught:
        yield caught
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None
    assert "7361" not in f"{caught.value!s} {caught.value!r}"


# Opening


@pytest.mark.parametrize(
    "url",
    [
        "toolgen.db", "mysql://u@h/d", "sqlite+aiosqlite:///x.db", "postgresql+asyncpg://u@h/d", "oracle://",
        "sqlite:///file:x.db?uri=true", "sqlite://host/x.db", "postgresql://u@h:port/d", "sqlite:///x.db?mode=ro",
    ],
)  # fmt: skip
def test_another_url_is_refused_with_those_that_are_known(url: str) -> None:
    with pytest.raises(StoreError, match="is sqlite:///PATH or postgresql://USER@HOST/DATABASE"):
        Database(url)


def test_a_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none/a\.db cannot be opened: No such file or directory"):
        Database(f"sqlite:///{tmp_path}/none/a.db")


def test_a_file_that_is_no_database_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database at all, but long enough to be one" * 100)
    before = (tmp_path / "a.db").read_bytes()
    with told() as caught:
        Database(f"sqlite:///{tmp_path}/a.db")
    assert "file is not a database" in str(caught.value)
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    with told() as caught:
        Database("postgresql://user:word-7361@127.0.0.1:1/none")
    assert "Connection refused" in str(caught.value)


def test_a_database_that_is_not_there_is_told(postgres: Postgres) -> None:
    with told() as caught:
        Database(postgres.url("missing"))
    assert 'database "missing" does not exist' in str(caught.value)


@pytest.mark.parametrize(
    ("version", "hint"),
    [("2", "update toolgen, or name another"), ("0", "use the toolgen that wrote it, or name another"), (None, "use")],
)
def test_another_version_of_the_tables_is_refused_with_what_to_do(
    version: str | None, hint: str, store_url: str, opened: Callable[..., Store]
) -> None:
    store = opened(store_url)
    pause = added(store)
    change = delete(meta).where(meta.c.key == "version")
    with store.database.change() as connection:
        connection.execute(
            change if version is None else update(meta).where(meta.c.key == "version").values(value=version)
        )
    with pytest.raises(StoreError, match=f"has version {version or 'unknown'}, this toolgen knows 1: {hint}"):
        Store(store_url)
    assert store.pause(pause.id, "t") == pause


def test_a_store_that_is_there_is_opened_without_writing(store_url: str, opened: Callable[..., Store]) -> None:
    first = opened(store_url)
    with first.database.change() as connection:  # would make the other one wait
        connection.execute(update(meta).values(key=meta.c.key))
        assert opened(store_url).count_waiting() == 0


# SQLite


def test_what_sqlite_writes_is_on_disk_and_waits_for_others(tmp_path: Path, opened: Callable[..., Store]) -> None:
    store = opened(f"sqlite:///{tmp_path}/a.db")
    with store.database.read() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout", "fullfsync", "secure_delete")
        }
    known = {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 30_000, "fullfsync": 1, "secure_delete": 1}
    assert found == known


def test_nobody_else_can_read_the_files_sqlite_makes(tmp_path: Path, opened: Callable[..., Store]) -> None:
    mask = os.umask(0)
    try:
        added(opened(f"sqlite:///{tmp_path}/a.db"))
    finally:
        os.umask(mask)
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert files == dict.fromkeys(("a.db", "a.db-wal", "a.db-shm", "toolgen.key"), 0o600)


def test_nor_those_behind_a_link_that_was_there_before_them(tmp_path: Path, opened: Callable[..., Store]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "a.db").symlink_to("real/b.db")
    mask = os.umask(0)
    try:
        added(opened(f"sqlite:///{tmp_path}/a.db"))
    finally:
        os.umask(mask)
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "real").iterdir()}
    assert files == dict.fromkeys(("b.db", "b.db-wal", "b.db-shm"), 0o600)


def test_a_writer_of_another_process_is_waited_for(tmp_path: Path, opened: Callable[..., Store]) -> None:
    store = opened(f"sqlite:///{tmp_path}/a.db")
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(added, store)
        assert store.listed() == []  # who reads does not wait
        assert not writing.done()
        other.execute("COMMIT")
        assert store.pause(writing.result(20).id, "t")
    other.close()


def test_a_database_that_cannot_be_written_is_told(tmp_path: Path, opened: Callable[..., Store]) -> None:
    store = opened(f"sqlite:///{tmp_path}/a.db")
    with store.database.change() as connection:
        connection.exec_driver_sql("DROP TABLE toolgen_calls")
    with told() as caught:
        added(store)
    assert "the store cannot be written: no such table: toolgen_calls" in str(caught.value)
    assert store.count_waiting() == 0  # nor was half of it


# PostgreSQL


def test_a_server_that_does_not_wait_for_the_disk_is_told_to(postgres: Postgres) -> None:
    with postgres.database() as url:
        name = url.partition("@/")[2].partition("?")[0]
        postgres.run(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        postgres.run(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'serializable'")
        store = Store(url, Keys(os.urandom(32)))
        with store.database.change() as connection:
            assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"
            assert connection.execute(text("SHOW transaction_isolation")).scalar() == "read committed"
        store.close()


def test_a_read_sees_one_moment_of_the_database(store: Store) -> None:
    pause = added(store)
    count = text("SELECT state FROM toolgen_calls")
    with store.database.read() as connection:
        assert connection.execute(count).scalar() == "pending"
        with ThreadPoolExecutor(1) as pool:
            pool.submit(moved, store, pause, CallState.approved).result(20)
        assert connection.execute(count).scalar() == "pending"
    assert store.pause(pause.id, "t").calls[0].state is CallState.approved


def test_a_lost_server_is_told_and_found_again(postgres: Postgres) -> None:
    with postgres.database() as url:
        store = Store(url, Keys(os.urandom(32)))
        name = url.partition("@/")[2].partition("?")[0]
        kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        with told() as caught, store.database.change() as connection:
            postgres.run(kill)
            connection.execute(text("SELECT 1"))
        assert "the store cannot be written" in str(caught.value)
        assert store.count_waiting() == 0
        store.close()


# Both


def test_what_fails_is_rolled_back_and_the_connection_is_good_for_the_next(store: Store) -> None:
    kept = added(store)

    def fails(_: Pause) -> Change:
        raise LookupError

    for _ in range(40):  # more than there are connections
        with pytest.raises(LookupError):
            store.change(kept.id, "t", fails)
    pause = added(store)
    assert store.pause(pause.id, "t") == pause


def test_a_pause_that_is_there_already_is_refused(store: Store) -> None:
    pause = added(store)
    with told():
        store.add(replace(pause, turn="another"), [])
    assert store.pause(pause.id, "t") == pause


@pytest.mark.parametrize("name", ["c\0-7361", "c\ud800-7361", "c\n-7361", "c" * 257, "\U0001f600" * 129])
def test_names_that_not_every_database_keeps_are_refused_alike(name: str, store: Store) -> None:
    bad = [a_pause(a_call(name)), *(a_pause(**{what: name}) for what in ("tenant", "thread", "turn", "requester"))]
    refused = [lambda pause=pause: store.add(pause, []) for pause in bad]
    given = {"requester": "ann", "worker": "w", "lease": store.clock()}
    for what in ("tenant", "thread", "turn", "call"):
        key = replace(JournalKey("t", "th", "tu", "c"), **{what: name})
        refused.append(lambda key=key: store.claim(key, "f" * 64, **given))
    refused.append(lambda: store.claim(JournalKey("t", "th", "tu", "c"), "f" * 64, **{**given, "requester": name}))
    decision = Decision("approved")
    refused.append(lambda: ruling(a_pause(), decision, Decider(name, tenant="t")))
    for refuse in refused:
        with pytest.raises(NameInvalid) as caught:
            refuse()
        assert caught.value.status == 400
        assert "7361" not in str(caught.value)
    assert (store.listed(), store.head().seq) == ([], 0)


def test_the_longest_names_are_kept_whole_and_claimed_once(store: Store) -> None:
    random.seed(7361)  # what does not compress: an index of PostgreSQL takes 2,704 bytes
    letters = [chr(code) for code in range(0x4E00, 0x9FA5)]
    tenant, thread, turn, call = ("".join(random.sample(letters, 170)) for _ in range(4))
    key = JournalKey(tenant, thread, turn, call)
    given = {"requester": "\u4e00" * 170, "worker": "w", "lease": store.clock()}
    assert store.claim(key, "f" * 64, **given) is None
    assert store.claim(key, "f" * 64, **given) is not None
    pause = added(store, a_call(call), tenant=tenant, thread=thread, turn=turn, requester=call)
    assert store.pause(pause.id, tenant) == pause


@pytest.mark.parametrize("name", ["é" * 250, "a'b\"c\\"])
def test_any_name_that_is_taken_is_claimed_once(name: str, store: Store) -> None:
    key = JournalKey("t", "th", "tu", name)
    given = {"requester": "ann", "worker": "w", "lease": store.clock()}
    assert store.claim(key, "f" * 64, **given) is None
    assert store.claim(key, "f" * 64, **given) is not None


def test_many_threads_write_at_once_lose_nothing_and_claim_once(store: Store) -> None:
    shared = moved(store, added(store), CallState.approved)
    start = threading.Barrier(24)

    def write(_: int) -> str:
        start.wait(20)
        moved(store, added(store), CallState.approved)
        try:
            store.change(shared.id, "t", claim)
        except PauseConflict:
            return "lost"
        return "won"

    def claim(pause: Pause) -> Change:
        if pause.calls[0].state is not CallState.approved:
            raise PauseConflict("somebody was faster")
        return to(CallState.executing)(pause)

    with ThreadPoolExecutor(24) as pool:
        said = [done.result(50) for done in [pool.submit(write, number) for number in range(24)]]
    assert sorted(said) == ["lost"] * 23 + ["won"]
    states = [call[3] for pause in store.listed(limit=50) for call in pause.calls]
    assert (states.count(CallState.executing), states.count(CallState.approved)) == (1, 24)
    assert store.faults() == []
    assert store.head().seq == 2 + 24 * 2 + 1


def test_many_processes_open_one_new_store_and_claim_each_call_once(
    store_url: str, tmp_path: Path, opened: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    if store_url.startswith("sqlite"):
        monkeypatch.delenv("TOOLGEN_KEY")  # they agree on a new key file too
    command = [sys.executable, "-c", WRITER, store_url]
    writers = [
        subprocess.Popen([*command, f"w{n}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for n in range(5)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    said = [writer.communicate("go\n", timeout=50)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 5
    assert sorted(int(number) for words in said for number in words.split()) == list(range(20))
    store = opened(store_url)
    assert store.faults() == []
    assert store.head().seq == 40  # each is claimed, and said to be
