"""What is erased: a person's content when they ask for it, and old content when its time is up.

Rows stay with what tells calls apart and what became of them, so that nothing can run a second time; what was
sealed is gone. An audit entry loses its details and the salt of their digest, and the chain stays whole: the
entry of the erasing names every entry it took the details from.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.audit import ERASING, Entry
from toolgen.approvals.model import SYSTEM
from toolgen.approvals.states import CallState
from toolgen.approvals.tables import audit, calls, journal, pauses, remembered

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AT_ONCE: Final = 500  # variables of a statement


@dataclass(frozen=True, slots=True)
class Erased:
    """How many of each were erased. `votes` are those on others' pauses; `left` are pauses with a call that is being
    carried out, such calls without a pause, and pauses that were decided meanwhile: try again later."""

    pauses: int = 0
    journal: int = 0
    remembered: int = 0
    votes: int = 0
    audit: int = 0
    left: int = 0

    def to_dict(self) -> dict[str, int]:
        """The counts as JSON-ready data."""
        names = ("pauses", "journal", "remembered", "votes", "audit", "left")
        return {name: getattr(self, name) for name in names}


def of_person(
    connection: Connection, subject: str, tenant: str | None, now: float
) -> tuple[Erased, list[str], list[tuple[str, str]], set[str]]:
    """Erase what is kept of a person; calls of theirs that wait are cancelled.

    The counts, the ids of the pauses, (tenant, id) of those that were cancelled, and the ids of those that are left.

    The transaction then takes the chain (`Database.lock_chain`) and erases entries with `details_of`.
    """
    from sqlalchemy import delete, func, select, update

    theirs = (pauses.c.requester == subject, *_in_tenant(pauses, tenant))
    rows = connection.execute(select(pauses).where(*theirs).order_by(pauses.c.id).with_for_update()).mappings().all()
    busy = _busy(connection, [row["id"] for row in rows])
    erased = [row for row in rows if row["id"] not in busy]
    cancelled = [(row["tenant"], row["id"]) for row in erased if row["open"]]
    _cancel(connection, [pause for _, pause in cancelled])
    _content(connection, [row["id"] for row in erased], now, requester="")
    asked = (journal.c.requester == subject, *_in_tenant(journal, tenant))
    settled = (*asked, journal.c.state != CallState.executing.value)
    results = connection.execute(update(journal).where(*settled).values(result=None, requester="")).rowcount
    running = (*asked, journal.c.state == CallState.executing.value, journal.c.pause.is_(None))
    others = connection.execute(select(func.count()).select_from(journal).where(*running)).scalar_one()
    kept = (remembered.c.requester == subject, *_in_tenant(remembered, tenant))
    forgotten = connection.execute(delete(remembered).where(*kept)).rowcount
    counts = Erased(len(erased), results, forgotten, left=len(busy) + others)
    return counts, [row["id"] for row in erased], cancelled, busy


def details_of(
    connection: Connection,
    subject: str,
    tenant: str | None,
    ids: Iterable[str],
    until: int,
    left: Collection[str] = (),
) -> tuple[list[int], int]:
    """Erase the details of the audit entries that name a person or are of their pauses; the entries' numbers.

    Entries of their pauses that are `left` stay, as do those behind `until` that only name them, since what they tell
    of was not erased: what others said of these pauses is found by them. Of how many pauses the latter are.
    """
    from sqlalchemy import select

    named = naming(subject), _erasable(), *_in_tenant(audit, tenant)
    known = connection.execute(select(audit.c.seq, audit.c.pause).where(*named, audit.c.seq <= until))
    numbers = {row.seq for row in known if row.pause not in left}
    late = set(connection.execute(select(audit.c.pause).where(*named, audit.c.seq > until)).scalars())
    theirs = set(ids)
    for some in _some(sorted(theirs)):
        query = select(audit.c.seq).where(audit.c.pause.in_(some), _erasable())
        numbers |= set(connection.execute(query).scalars())
    _blank(connection, sorted(numbers))
    return sorted(numbers), len(late - theirs)


def naming(subject: str) -> Any:
    """The condition of audit entries whose details name a person."""
    return audit.c.details.contains(json.dumps(subject), autoescape=True)


def before(connection: Connection, moment: float, now: float, limit: int) -> Erased:
    """Erase the content of pauses that closed, and of results that came, before a moment; spent approvals go."""
    from sqlalchemy import and_, delete, func, or_, select, update

    ended = func.coalesce(pauses.c.decided, pauses.c.created) < moment
    old = (pauses.c.open.is_(False), pauses.c.erased.is_(None), pauses.c.created < moment, ended)
    query = select(pauses.c.id).where(*old).order_by(pauses.c.created).limit(limit)
    # One that somebody else is erasing is theirs, and told by them.
    found = connection.execute(query.with_for_update(skip_locked=True)).scalars().all()
    _content(connection, found, now)
    settled = (journal.c.at < moment, journal.c.state != CallState.executing.value, journal.c.result.is_not(None))
    results = connection.execute(update(journal).where(*settled).values(result=None)).rowcount
    # Compared with NULL nothing is smaller.
    spent = or_(
        remembered.c.expires < moment,
        remembered.c.revoked < moment,
        and_(remembered.c.left == 0, remembered.c.created < moment),
    )
    forgotten = connection.execute(delete(remembered).where(spent)).rowcount
    return Erased(len(found), results, forgotten)


def entry(kind: str, tenant: str | None, actor: str | None, counts: Erased, details: Mapping[str, Any]) -> Entry:
    """What the audit says of an erasing."""
    assert kind in ERASING
    return Entry(kind, tenant or "*", actor or f"{SYSTEM}retention", details={**counts.to_dict(), **details})


def ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as [first, last] of each run."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _busy(connection: Connection, ids: Sequence[str]) -> set[str]:
    from sqlalchemy import select

    executing = calls.c.state == CallState.executing.value
    listed = [select(calls.c.pause).where(calls.c.pause.in_(some), executing) for some in _some(ids)]
    return {pause for query in listed for pause in connection.execute(query).scalars()}


def _cancel(connection: Connection, ids: Sequence[str]) -> None:
    from sqlalchemy import update

    movable = calls.c.state.in_([CallState.pending.value, CallState.approved.value])
    for some in _some(ids):
        cancelled = {"state": CallState.cancelled.value}
        connection.execute(update(calls).where(calls.c.pause.in_(some), movable).values(**cancelled))
        closed = {"open": False, "waiting": False, "due": None, "expires": None}
        connection.execute(update(pauses).where(pauses.c.id.in_(some)).values(**closed))


def _content(connection: Connection, ids: Sequence[str], now: float, **values: Any) -> None:
    from sqlalchemy import update

    for some in _some(ids):
        gone = {"arguments": None, "shown": None, "result": None}
        connection.execute(update(calls).where(calls.c.pause.in_(some)).values(**gone))
        changed = {"state": None, "erased": now, "revision": pauses.c.revision + 1, **values}
        connection.execute(update(pauses).where(pauses.c.id.in_(some)).values(**changed))


def _blank(connection: Connection, numbers: Sequence[int]) -> None:
    from sqlalchemy import update

    for some in _some(numbers):
        connection.execute(update(audit).where(audit.c.seq.in_(some)).values(details=None, salt=None))


def _erasable() -> Any:
    """Not those that say what was erased: without them an erased entry could not be told from a forged one."""
    from sqlalchemy import and_

    return and_(audit.c.details.is_not(None), audit.c.kind.not_in(sorted(ERASING)))


def _in_tenant(table: Any, tenant: str | None) -> tuple[Any, ...]:
    return () if tenant is None else (table.c.tenant == tenant,)


def _some(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))
