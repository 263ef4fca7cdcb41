"""What is read of the tables in more than one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.model import Pause
from toolgen.approvals.rows import Listed
from toolgen.approvals.tables import calls, pauses

if TYPE_CHECKING:
    from sqlalchemy import Connection

_AT_ONCE: Final = 500  # variables of a statement


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
