from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select, update
from stored_pauses import NOW, a_call, a_vote, added, moved, stored_bytes, to

from toolgen.approvals.sealed import Seal
from toolgen.approvals.states import CallState
from toolgen.approvals.store import JournalKey, Store
from toolgen.approvals.tables import calls, pauses
from toolgen.errors import CredentialsError, StoreError
from toolgen.identity.keys import Keys
from toolgen.result import Sent, ToolResult

RESULT = ToolResult(True, Sent.answered, 200, "application/json", {"said": "kept-result-7361"})


def test_a_text_opens_where_it_was_sealed_and_nowhere_else() -> None:
    seal = Seal(Keys(os.urandom(32)))
    sealed = seal.seal(b"text", "calls", "p1", "c1", "arguments")
    assert seal.open(sealed, "calls", "p1", "c1", "arguments") == b"text"
    for place in (("calls", "p2", "c1", "arguments"), ("calls", "p1", "c1", "result"), ("calls", "p1", "c1arguments")):
        with pytest.raises(StoreError, match="not what was sealed for this place"):
            seal.open(sealed, *place)


def test_the_same_text_is_never_sealed_the_same() -> None:
    seal = Seal(Keys(os.urandom(32)))
    assert len({seal.seal(b"text", "x") for _ in range(50)}) == 50


def test_every_changed_or_missing_byte_is_found() -> None:
    seal = Seal(Keys(os.urandom(32)))
    sealed = seal.seal(b"text", "x")
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises((StoreError, CredentialsError)):
            seal.open(bytes(changed), "x")
        with pytest.raises((StoreError, CredentialsError)):
            seal.open(sealed[:position], "x")


def test_a_previous_key_opens_and_the_key_in_use_seals() -> None:
    old, new = os.urandom(32), os.urandom(32)
    sealed = Seal(Keys(old)).json({"a": "\ud800"}, "x")
    both = Seal(Keys(new, [old]))
    assert both.open_json(sealed, "x") == {"a": "\ud800"}
    assert Seal(Keys(new)).open_json(both.json([1], "x"), "x") == [1]
    with pytest.raises(CredentialsError, match="neither the key nor a previous one"):
        Seal(Keys(new)).open(sealed, "x")


def test_arguments_moved_to_another_call_are_refused(store: Store) -> None:
    mine, other = added(store), added(store, a_call(arguments={"petId": "other"}))
    with store.database.change() as connection:
        taken = connection.execute(select(calls.c.arguments).where(calls.c.pause == other.id)).scalar()
        connection.execute(update(calls).where(calls.c.pause == mine.id).values(arguments=taken))
    with pytest.raises(StoreError, match="not what was sealed"):
        store.pause(mine.id, "t")


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_rows_that_were_changed_are_refused_without_a_traceback(text: str, store: Store) -> None:
    pause = added(store)
    with store.database.change() as connection:
        connection.execute(update(pauses).where(pauses.c.id == pause.id).values(data=text))
    for read in (lambda: store.pause(pause.id, "t"), store.listed, store.pauses):
        with pytest.raises(StoreError, match="changed from outside"):
            read()


def test_no_byte_of_the_database_has_an_argument_a_preview_a_note_a_result_or_a_state(store: Store) -> None:
    pause = added(store)
    approved = {"votes": (a_vote(),), "proposed": {"name": "kept-proposal-7361"}, "detail": "kept-detail-7361"}
    store.change(pause.id, "t", to(CallState.approved, **approved))
    moved(store, pause, CallState.executing)
    store.change(pause.id, "t", to(CallState.executed, result=RESULT))
    key = JournalKey("t", "th", "tu", "c9")
    store.claim(key, "f" * 64, requester="ann", worker="w", lease=NOW)
    store.finish(key, CallState.executed, RESULT, [])
    content = list(stored_bytes(store))
    assert len(content) > 5
    assert not [row for row in content if b"7361" in row]
    kept = store.pause(pause.id, "t")
    for text in ("shown-argument", "kept-argument", "kept-proposal", "kept-note", "kept-result", "kept-detail"):
        assert f"{text}-7361" in repr((kept, kept.calls[0].arguments, kept.calls[0].proposed, kept.calls[0].result))
    assert kept.state == b"kept-state-7361"


def test_a_list_decrypts_nothing(store: Store) -> None:
    pause = added(store)
    with store.database.change() as connection:
        connection.execute(update(calls).values(arguments=b"x", shown=b"x"))
        connection.execute(update(pauses).values(state=b"x"))
    [found] = store.listed("t")
    assert (found.id, found.requester, found.calls) == (
        pause.id, "ann", (("c1", "updatePet", "shop", CallState.pending, "updatePet"),),
    )  # fmt: skip
    with pytest.raises(StoreError):
        store.pauses("t")


# Whose key it is


def test_a_sqlite_store_makes_its_key_beside_it_for_its_owner_only(
    tmp_path: Path, opened: Callable[..., Store]
) -> None:
    first = opened(f"sqlite:///{tmp_path}/a.db")
    assert (tmp_path / "toolgen.key").stat().st_mode & 0o777 == 0o600
    pause = added(first)
    assert opened(f"sqlite:///{tmp_path}/a.db").pause(pause.id, "t") == pause


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, opened: Callable[..., Store]) -> None:
    opened(f"sqlite:///{tmp_path}/a.db")
    (tmp_path / "toolgen.key").chmod(0o644)
    with pytest.raises(CredentialsError, match="chmod 600"):
        Store(f"sqlite:///{tmp_path}/a.db")


def test_a_lost_key_file_is_never_made_anew(tmp_path: Path, opened: Callable[..., Store]) -> None:
    opened(f"sqlite:///{tmp_path}/a.db")
    (tmp_path / "toolgen.key").unlink()
    with pytest.raises(CredentialsError, match=r"toolgen\.key is gone: put it back, or set TOOLGEN_KEY"):
        Store(f"sqlite:///{tmp_path}/a.db")
    assert not (tmp_path / "toolgen.key").exists()


def test_postgresql_refuses_to_open_without_a_key(
    store_url: str, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., Store]
) -> None:
    if store_url.startswith("sqlite"):
        pytest.skip("a SQLite file has its key beside it")
    monkeypatch.delenv("TOOLGEN_KEY")
    with pytest.raises(CredentialsError, match="set TOOLGEN_KEY, or give key= or --key-file"):
        Store(store_url)


def test_another_key_is_refused_and_a_new_one_follows_on_the_old(store_url: str, opened: Callable[..., Store]) -> None:
    old, new = os.urandom(32), os.urandom(32)
    pause = added(opened(store_url, Keys(old)))
    with pytest.raises(CredentialsError, match=r"the store was written with the key .*, and this is"):
        Store(store_url, Keys(new))
    followed = opened(store_url, Keys(new, [old]))
    assert followed.pause(pause.id, "t") == pause
    moved(followed, pause, CallState.approved)
    with pytest.raises(CredentialsError):
        Store(store_url, Keys(old))
    assert followed.faults() == []


def test_no_error_shows_a_key_or_the_password(opened: Callable[..., Store]) -> None:
    with pytest.raises(StoreError) as caught:
        Store("postgresql://user:pass-7361@127.0.0.1:1/none", Keys(os.urandom(32)))
    assert "pass-7361" not in json.dumps([str(caught.value), repr(caught.value), repr(caught.value.__cause__)])
