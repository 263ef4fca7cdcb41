"""What a person said of others' calls: erased with them, while that somebody said it stays.

Votes are sealed. The audit log, whose entries are written with them, says which pauses hold one of a person.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.erase import naming
from toolgen.approvals.sealed import Seal
from toolgen.approvals.tables import audit, calls, pauses, remembered

if TYPE_CHECKING:
    from sqlalchemy import Connection

GONE: Final = "its content was erased"
_AT_ONCE: Final = 500  # variables of a statement


def erased_votes(
    connection: Connection, subject: str, tenant: str | None, until: int, seal: Seal
) -> tuple[int, list[str]]:
    """Erase name and note of a person from the votes they gave, and their reasons for cancelling.

    `until` is the last entry of the audit log that counts. How many votes, and the ids of the pauses.
    """
    from sqlalchemy import select, update

    found = _pauses(connection, subject, tenant, until)
    number, changed = 0, []
    for at in range(0, len(found), _AT_ONCE):
        some = found[at : at + _AT_ONCE]
        query = select(pauses.c.id).where(pauses.c.id.in_(some)).order_by(pauses.c.id)
        held = connection.execute(query.with_for_update()).scalars().all()
        ended = _cancelled_by(connection, subject, held, until)
        for row in connection.execute(select(calls).where(calls.c.pause.in_(held))).mappings().all():
            votes = _said(connection, row, subject, row["pause"] in ended, seal)
            number += votes
            changed += [row["pause"]] if votes or row["pause"] in ended else []
        seen = {"revision": pauses.c.revision + 1}
        connection.execute(update(pauses).where(pauses.c.id.in_(set(changed) & set(held))).values(**seen))
    _owned(connection, subject, tenant)
    return number, list(dict.fromkeys(changed))


def _pauses(connection: Connection, subject: str, tenant: str | None, until: int) -> list[str]:
    from sqlalchemy import select

    by = (naming(subject), audit.c.kind.in_(("decided", "cancelled")), audit.c.seq <= until)
    where = (*by, audit.c.pause.is_not(None), *(() if tenant is None else (audit.c.tenant == tenant,)))
    return list(connection.execute(select(audit.c.pause).where(*where).distinct().order_by(audit.c.pause)).scalars())


def _cancelled_by(connection: Connection, subject: str, ids: Sequence[str], until: int) -> set[str]:
    """Those of the pauses that a person cancelled."""
    from sqlalchemy import select

    where = (audit.c.pause.in_(ids), audit.c.kind == "cancelled", audit.c.seq <= until, naming(subject))
    rows = connection.execute(select(audit.c.pause, audit.c.details).where(*where))
    return {row.pause for row in rows if json.loads(row.details).get("actor") == subject}


def _said(connection: Connection, row: Any, subject: str, cancelled: bool, seal: Seal) -> int:
    """Erase what a person said of one call; how many votes that are."""
    from sqlalchemy import update

    place = "calls", row["pause"], row["id"], "shown"
    if row["shown"] is None:
        return 0
    shown = seal.open_json(row["shown"], *place)
    theirs = [vote for vote in shown["votes"] if vote["decider"] == subject]
    for vote in theirs:
        vote |= {"decider": "", "note": None}
    ended = cancelled and row["state"] == "cancelled"
    if ended:
        shown["detail"] = GONE
    if theirs or ended:
        same = calls.c.pause == row["pause"], calls.c.id == row["id"]
        connection.execute(update(calls).where(*same).values(shown=seal.json(shown, *place)))
    return len(theirs)


def _owned(connection: Connection, subject: str, tenant: str | None) -> None:
    """What they allowed others goes on to hold, and says no more who allowed it."""
    from sqlalchemy import select, update

    named = remembered.c.data.contains(json.dumps(subject), autoescape=True)
    query = select(remembered.c.id, remembered.c.data).where(named)
    query = query if tenant is None else query.where(remembered.c.tenant == tenant)
    for row in connection.execute(query).all():
        data = json.loads(row.data)
        if data.get("owner") == subject:
            text = json.dumps(data | {"owner": ""})
            connection.execute(update(remembered).where(remembered.c.id == row.id).values(data=text))
