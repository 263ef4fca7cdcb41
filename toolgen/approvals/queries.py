"""What is read of the tables in more than one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.model import Pause
from toolgen.approvals.rows import Listed
from toolgen.approvals.states import CallState
from toolgen.approvals.tables import calls, pauses

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AT_ONCE: Final = 500  # variables of a statement
_CONDITIONS: Final = 200  # of a statement


def newest(
    tenant: str | None,
    limit: int,
    *,
    waiting: bool | None = None,
    is_open: bool | None = None,
    requester: str | None = None,
    thread: str | None = None,
    prefix: str | None = None,
    before: Listed | Pause | float | None = None,
) -> Any:
    """The query for pauses by these filters, the newest first."""
    from sqlalchemy import select, tuple_

    query = select(pauses)
    given = {"tenant": tenant, "waiting": waiting, "open": is_open, "requester": requester, "thread": thread}
    for name, value in given.items():
        query = query if value is None else query.where(pauses.c[name] == value)
    if prefix is not None:
        query = query.where(pauses.c.id.startswith(prefix, autoescape=True))
    if isinstance(before, Listed | Pause):
        query = query.where(tuple_(pauses.c.created, pauses.c.id) < (before.created.timestamp(), before.id))
    elif before is not None:
        query = query.where(pauses.c.created < before)
    return query.order_by(pauses.c.created.desc(), pauses.c.id.desc()).limit(limit)


def calls_of(connection: Connection, found: Sequence[Any], columns: tuple[Any, ...]) -> dict[str, list[Any]]:
    """The calls' rows of pauses' rows, in as many queries as it takes."""
    from sqlalchemy import select

    by_pause: dict[str, list[Any]] = {row["id"]: [] for row in found}
    ids = list(by_pause)
    for at in range(0, len(ids), _AT_ONCE):
        query = select(*columns).where(calls.c.pause.in_(ids[at : at + _AT_ONCE]))
        for row in connection.execute(query).mappings():
            by_pause[row["pause"]].append(row)
    return by_pause


def due(connection: Connection, now: datetime, limit: int, skip: int) -> list[tuple[str, str]]:
    """(id, tenant) of pauses whose time is up and that still wait, the longest overdue first, behind so many."""
    from sqlalchemy import select

    query = select(pauses.c.id, pauses.c.tenant).where(pauses.c.waiting.is_(True), pauses.c.due <= now.timestamp())
    query = query.order_by(pauses.c.due).limit(limit).offset(skip)
    return [(row.id, row.tenant) for row in connection.execute(query)]


def unfinished(connection: Connection, now: datetime, limit: int, skip: int) -> list[tuple[str, str]]:
    """(id, tenant) of pauses with a claim or an approval that ran out, behind so many of each."""
    from sqlalchemy import select

    lapsed = select(calls.c.pause).where(calls.c.state == CallState.executing.value, calls.c.lease < now.timestamp())
    query = select(pauses.c.id, pauses.c.tenant).where(pauses.c.id.in_(lapsed)).order_by(pauses.c.id)
    over = select(pauses.c.id, pauses.c.tenant).where(pauses.c.expires < now.timestamp())
    over = over.order_by(pauses.c.expires, pauses.c.id)
    found = [row for one in (query, over) for row in connection.execute(one.limit(limit).offset(skip))]
    return list(dict.fromkeys((row.id, row.tenant) for row in found))


def approved(connection: Connection, after: tuple[float, str] | None, limit: int) -> list[tuple[float, str, str]]:
    """(decided, id, tenant) of pauses that are decided and may have calls to run, the oldest decision first."""
    from sqlalchemy import select, tuple_

    place = pauses.c.decided, pauses.c.id
    query = select(*place, pauses.c.tenant).where(pauses.c.open.is_(True), pauses.c.waiting.is_(False))
    query = query.where(pauses.c.decided.is_not(None))
    query = query if after is None else query.where(tuple_(*place) > tuple_(*after))
    return [tuple(row) for row in connection.execute(query.order_by(*place).limit(limit))]


def outdated(connection: Connection, source: str, digests: Mapping[str, str]) -> list[tuple[str, str]]:
    """(id, tenant) of pauses with a call that waits or is approved, for a tool with another digest by now, or none."""
    from sqlalchemy import and_, or_, select

    open_ = calls.c.state.in_([CallState.pending.value, CallState.approved.value])
    known = select(calls.c.tool, calls.c.digest).where(calls.c.source == source, open_).distinct()
    old = [row for row in connection.execute(known) if digests.get(row.tool) != row.digest]
    found: dict[tuple[str, str], None] = {}
    for start in range(0, len(old), _CONDITIONS):
        some = old[start : start + _CONDITIONS]
        theirs = or_(*(and_(calls.c.tool == row.tool, calls.c.digest == row.digest) for row in some))
        paused = select(calls.c.pause).where(calls.c.source == source, open_, theirs)
        query = select(pauses.c.id, pauses.c.tenant).where(pauses.c.id.in_(paused))
        found |= dict.fromkeys((row.id, row.tenant) for row in connection.execute(query))
    return list(found)
