"""Pauses in a transaction: read whole, and written from the state that was read or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolgen.approvals import journal
from toolgen.approvals.audit import Entry
from toolgen.approvals.changes import Change, Turn, check
from toolgen.approvals.database import Database
from toolgen.approvals.model import Pause
from toolgen.approvals.names import check_names
from toolgen.approvals.queries import calls_of
from toolgen.approvals.rows import call_row, pause_of, pause_row
from toolgen.approvals.sealed import Seal
from toolgen.approvals.tables import calls, pauses
from toolgen.errors import PauseConflict, PauseUnknown

if TYPE_CHECKING:
    from sqlalchemy import Connection

TurnChange = Callable[[Pause, Turn], Change | None]


def insert_pause(connection: Connection, pause: Pause, seal: Seal) -> None:
    """Write a new pause; the transaction holds its turn. Raises PauseConflict where the turn has one of its calls."""
    from sqlalchemy import insert, select

    same = (pauses.c.tenant == pause.tenant, pauses.c.thread == pause.thread, pauses.c.turn == pause.turn)
    known = select(calls.c.id).join(pauses, pauses.c.id == calls.c.pause).where(*same)
    again = connection.execute(known.where(calls.c.id.in_([call.id for call in pause.calls]))).first()
    if again is not None:
        raise PauseConflict(f"the call {again.id!r} is in a pause of this turn already")
    connection.execute(insert(pauses).values(**pause_row(pause, seal)))
    connection.execute(insert(calls), [call_row(call, pause.id, n, seal) for n, call in enumerate(pause.calls)])


def check_pause(pause: Pause) -> None:
    """Raises NameInvalid for names that not every database keeps."""
    check_names(tenant=pause.tenant, thread=pause.thread, turn=pause.turn, requester=pause.requester)
    for call in pause.calls:
        check_names(call_id=call.id)


def load(connection: Connection, pause_id: str, tenant: str, seal: Seal, *, lock: bool = False) -> Pause:
    """A pause of a tenant; with `lock` nobody else changes it until the transaction ends. Raises PauseUnknown."""
    from sqlalchemy import select

    query = select(pauses).where(pauses.c.id == pause_id, pauses.c.tenant == tenant)
    row = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if row is None:
        raise PauseUnknown(f"there is no pause {pause_id!r}")
    found = connection.execute(select(calls).where(calls.c.pause == pause_id)).mappings().all()
    return pause_of(row, found, seal)


def load_turn(connection: Connection, tenant: str, thread: str, turn: str, seal: Seal) -> Turn:
    """The pauses of a turn."""
    from sqlalchemy import select

    same = (pauses.c.tenant == tenant, pauses.c.thread == thread, pauses.c.turn == turn)
    found = connection.execute(select(pauses).where(*same).order_by(pauses.c.created)).mappings().all()
    return Turn(tuple(pauses_of(connection, found, seal)))


def pauses_of(connection: Connection, found: Sequence[Any], seal: Seal) -> list[Pause]:
    """The pauses of rows, with their calls."""
    by_pause = calls_of(connection, found, tuple(calls.c))
    return [pause_of(row, by_pause[row["id"]], seal) for row in found]


def write(connection: Connection, before: Pause, changed: Pause, seal: Seal, now: datetime) -> Pause:
    """Write a changed pause, and give it with its new revision.

    Raises StoreError for what may not change, PauseConflict for a call that is in another state by now.
    """
    from sqlalchemy import update

    after = replace(changed, revision=before.revision + 1)
    check(before, after)
    row = pause_row(after, seal)
    connection.execute(update(pauses).where(pauses.c.id == before.id).values(**row))
    for position, (old, new) in enumerate(zip(before.calls, after.calls, strict=True)):
        if new == old:
            continue
        values = call_row(new, after.id, position, seal)
        same = calls.c.pause == after.id, calls.c.id == old.id, calls.c.state == old.state.value
        if connection.execute(update(calls).where(*same).values(**values)).rowcount != 1:
            raise PauseConflict(f"{old.id} is not {old.state.value} any more")
        journal.follow(connection, after, old, new, now)
    return after


def change_rows(
    connection: Connection, database: Database, ids: Sequence[str], change: TurnChange, seal: Seal, now: datetime
) -> tuple[list[tuple[Pause, tuple[Entry, ...]]], dict[str, Exception]]:
    """Change pauses as functions of what they and their turns are: the changed ones with what is to be recorded, and
    what failed by id. One that somebody else is changing is left out."""
    from sqlalchemy import select

    # Rows first, turns next, the log last: nobody who holds one of these waits for what is held here.
    free = select(pauses).where(pauses.c.id.in_(ids)).order_by(pauses.c.id).with_for_update(skip_locked=True)
    found = {row["id"]: row for row in connection.execute(free).mappings().all()}
    for key in sorted({turn_key(row["tenant"], row["thread"], row["turn"]) for row in found.values()}):
        database.lock_key(connection, key)
    made: list[tuple[Pause, tuple[Entry, ...]]] = []
    failed: dict[str, Exception] = {}
    for row in (found[pause_id] for pause_id in ids if pause_id in found):
        try:
            with connection.begin_nested():
                before = pauses_of(connection, [row], seal)[0]
                turn = load_turn(connection, before.tenant, before.thread, before.turn, seal)
                one = change(before, turn)
                after = None if one is None else write(connection, before, one.pause, seal, now)
        except Exception as error:  # noqa: BLE001 - the pause stays as it is, and the others go on
            failed[row["id"]] = error
        else:
            made += [(after, one.entries)] if after is not None and one is not None else []
    return made, failed


def turn_key(tenant: str, thread: str, turn: str) -> str:
    """What is held to change something as a function of a whole turn."""
    return repr(("turn", tenant, thread, turn))
