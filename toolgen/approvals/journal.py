"""The journal: what was claimed to be sent, and what became of it.

A row is there, durably, before a request leaves. Its key and fingerprint stay for good, whatever else is erased.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import SYSTEM, Pause, PausedCall
from toolgen.approvals.sealed import Seal
from toolgen.approvals.states import CallState
from toolgen.approvals.tables import calls, journal
from toolgen.errors import PauseConflict
from toolgen.result import Sent, ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

_GONE = "the process that ran it is gone"


@dataclass(frozen=True, slots=True)
class JournalKey:
    """What a call is told apart by: the same one is never carried out twice."""

    tenant: str
    thread: str
    turn: str
    call: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Who claims a call, for which request, until when. `at` and `lease` are seconds since 1970.

    `earlier` are the request's fingerprints by previous keys.
    """

    fingerprint: str
    requester: str
    worker: str
    at: float
    lease: float
    earlier: tuple[str, ...] = ()


def claim(connection: Connection, key: JournalKey, made: Claim, seal: Seal) -> tuple[ToolResult | None, list[Entry]]:
    """Claim a call: None is for the caller to send it, a result is what is known of an earlier claim.

    The transaction holds the key (`Database.lock_key`). Raises PauseConflict where the same call made another
    request before.
    """
    from sqlalchemy import insert, select, update

    executing = CallState.executing.value
    values = {"state": executing, "lease": made.lease, "worker": made.worker, "at": made.at}
    found = connection.execute(select(journal).where(*_is(key))).mappings().first()
    if found is None:
        row = {**_key(key), **values, "fingerprint": made.fingerprint, "requester": made.requester, "pause": None}
        connection.execute(insert(journal).values(**row))
        return None, [_claimed(key, made)]
    known = _became(found, key, (made.fingerprint, *made.earlier), made.requester, made.at, seal)
    if known is None:
        connection.execute(update(journal).where(*_is(key), journal.c.state == found["state"]).values(**values))
        return None, [_claimed(key, made)]
    is_over = found["state"] == executing and found["lease"] <= made.at and found["pause"] is None
    return known, _lapsed(connection, found) if is_over else []


def became(
    connection: Connection, key: JournalKey, fingerprints: Collection[str], requester: str, now: float, seal: Seal
) -> ToolResult | None:
    """What is known of a call that was claimed before; None of one that was not, and of one that never left.

    The fingerprints are of its request, by each of the keys.

    Raises PauseConflict where it made another request, or was another requester's.
    """
    from sqlalchemy import select

    found = connection.execute(select(journal).where(*_is(key))).mappings().first()
    return None if found is None else _became(found, key, fingerprints, requester, now, seal)


def _became(
    found: Mapping[Any, Any], key: JournalKey, fingerprints: Collection[str], requester: str, now: float, seal: Seal
) -> ToolResult | None:
    erased = found["requester"] == "" and found["result"] is None  # whose it was is not kept, nor anything to tell
    if found["fingerprint"] not in fingerprints or (found["requester"] != requester and not erased):
        raise PauseConflict(f"the call {key.call!r} of this turn made another request before: give it another id")
    if found["state"] == CallState.failed.value:
        return None
    if found["result"] is not None:
        return ToolResult.from_dict(seal.open_json(found["result"], "journal", *_key(key).values()))
    if found["state"] == CallState.executing.value and found["lease"] > now:
        return _known("it is being carried out right now")
    if found["state"] == CallState.executed.value:
        return _known("it was carried out, and its result is not kept any more")
    return _known("its outcome is not known, and it is not repeated")


def finish(connection: Connection, key: JournalKey, state: CallState, result: ToolResult, seal: Seal) -> None:
    """Keep what became of a claimed call. Raises PauseConflict where it is not claimed any more."""
    from sqlalchemy import update

    # What failed may be claimed again, and then has another result.
    kept = None if state is CallState.failed else seal.json(result.to_dict(), "journal", *_key(key).values())
    claimed = (*_is(key), journal.c.state == CallState.executing.value)
    changed = connection.execute(update(journal).where(*claimed).values(state=state.value, result=kept))
    if changed.rowcount != 1:
        raise PauseConflict("the call is not claimed any more")


def renew(connection: Connection, key: JournalKey, pause: str | None, worker: str, lease: float) -> None:
    """Have a claim hold longer, if it is still the worker's. The transaction holds the pause, if it is of one."""
    from sqlalchemy import update

    executing = CallState.executing.value
    mine = (*_is(key), journal.c.state == executing, journal.c.worker == worker)
    connection.execute(update(journal).where(*mine).values(lease=lease))
    if pause is not None:
        called = (calls.c.pause == pause, calls.c.id == key.call, calls.c.state == executing, calls.c.worker == worker)
        connection.execute(update(calls).where(*called).values(lease=lease))


def lapse(connection: Connection, now: float, limit: int) -> list[Entry]:
    """Claims without a pause that ran out: their outcome is not known. Entries of what changed."""
    return [entry for row in lapsed(connection, now, limit) for entry in _lapsed(connection, row)]


def lapsed(connection: Connection, now: float, limit: int) -> Sequence[Mapping[Any, Any]]:
    """The rows of claims without a pause that ran out."""
    from sqlalchemy import select

    over = (journal.c.state == CallState.executing.value, journal.c.lease < now, journal.c.pause.is_(None))
    return connection.execute(select(journal).where(*over).limit(limit)).mappings().all()


def follow(connection: Connection, pause: Pause, old: PausedCall, new: PausedCall, now: datetime) -> None:
    """What a paused call's change is in the journal: its claim, before anything is sent, and its end.

    Raises PauseConflict where the call was carried out before.
    """
    from sqlalchemy import insert, update
    from sqlalchemy.exc import IntegrityError

    if new.state is old.state or CallState.executing not in (old.state, new.state):
        return
    key = JournalKey(pause.tenant, pause.thread, pause.turn, new.id)
    if old.state is CallState.executing:
        claimed = (*_is(key), journal.c.state == CallState.executing.value, journal.c.pause == pause.id)
        if connection.execute(update(journal).where(*claimed).values(state=new.state.value)).rowcount != 1:
            raise PauseConflict(f"{new.id} is not claimed any more")
        return
    assert new.lease is not None
    row = {"state": new.state.value, "lease": new.lease.timestamp(), "worker": new.worker or "", "pause": pause.id}
    row |= {"at": now.timestamp(), "fingerprint": new.fingerprint, "requester": pause.requester}
    try:
        with connection.begin_nested():
            connection.execute(insert(journal).values(**_key(key), **row))
    except IntegrityError:  # it was asked for without a pause before; what provably did not leave may run
        same = (journal.c.fingerprint == new.fingerprint, journal.c.requester == pause.requester)
        failed = (*_is(key), *same, journal.c.state == CallState.failed.value)
        if connection.execute(update(journal).where(*failed).values(**row)).rowcount != 1:
            raise PauseConflict(f"the call {new.id!r} of this turn was carried out before") from None


def _claimed(key: JournalKey, made: Claim) -> Entry:
    about = {"fingerprint": made.fingerprint, "worker": made.worker}
    return Entry("claimed", key.tenant, made.requester, None, key.call, about)


def _lapsed(connection: Connection, row: Mapping[Any, Any]) -> list[Entry]:
    from sqlalchemy import update

    unknown, key = CallState.outcome_unknown.value, JournalKey(row["tenant"], row["thread"], row["turn"], row["call"])
    same = (*_is(key), journal.c.state == CallState.executing.value, journal.c.lease == row["lease"])
    if connection.execute(update(journal).where(*same).values(state=unknown)).rowcount != 1:
        return []
    about = {"state": unknown, "detail": _GONE, "fingerprint": row["fingerprint"], "requester": row["requester"]}
    return [Entry(unknown, row["tenant"], f"{SYSTEM}sweep", None, row["call"], about)]


def _known(said: str) -> ToolResult:
    return ToolResult(False, Sent.unknown, message=f"this call was sent before: {said}")


def _key(key: JournalKey) -> dict[str, str]:
    return {"tenant": key.tenant, "thread": key.thread, "turn": key.turn, "call": key.call}


def _is(key: JournalKey) -> tuple[Any, ...]:
    return tuple(journal.c[name] == value for name, value in _key(key).items())
