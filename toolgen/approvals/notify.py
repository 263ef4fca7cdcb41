"""What is told to the outside of a pause, and what is still to be delivered: the outbox.

Everything that happens to a pause is in the audit log, whichever process did it. A webhook reads on from
where it was and puts what it tells into the outbox, in one transaction: nothing is forgotten by a crash, and
nothing is put there twice. The outbox holds no content: what is told is read when it is sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import SYSTEM, Pause, stamp
from toolgen.approvals.rows import moment
from toolgen.approvals.tables import audit, meta, outbox, pauses
from toolgen.errors import PauseUnknown

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolgen.approvals.store import Store

MOST_ATTEMPTS: Final = 12  # over about two days
_FIRST_WAIT: Final = 5.0  # seconds; trebled each time
_LONGEST_WAIT: Final = 43_200.0  # seconds
_KINDS: Final[Mapping[str, str]] = {
    "paused": "paused",
    "decided": "decided",
    "timeout": "expired",
    "expired": "expired",
    "cancelled": "cancelled",
    "voided": "voided",
    "extended": "extended",
    "reminded": "reminded",
    "executed": "finished",
    "failed": "finished",
    "not_executed": "finished",
    "outcome_unknown": "finished",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One message to deliver: its id stays the same however often it is tried. `at` is seconds since 1970."""

    id: str
    kind: str
    pause: str
    tenant: str
    at: float
    attempt: int


class Outbox:
    """What is to be told to one webhook. `endpoint` is its URL, of which only a digest is kept."""

    def __init__(self, store: Store, endpoint: str) -> None:
        self._store = store
        self._endpoint = hashlib.sha256(endpoint.encode()).hexdigest()[:32]
        self._cursor = f"webhook:{self._endpoint}"

    def start(self) -> None:
        """From now on: what happened before a webhook was there is not told."""
        from sqlalchemy import func, insert, select

        with self._store.database.change() as connection:
            self._store.database.lock_key(connection, self._cursor)
            if self._at(connection) is None:
                last = connection.execute(select(func.max(audit.c.seq))).scalar() or 0
                connection.execute(insert(meta).values(key=self._cursor, value=str(last)))

    def collect(self, limit: int = 500) -> int:
        """Put what happened since into the outbox; how many messages that are."""
        from sqlalchemy import insert, update

        with self._store.database.read() as connection:
            if not self._news(connection, self._at(connection) or 0, 1):
                return 0
        with self._store.database.change() as connection:
            self._store.database.lock_key(connection, self._cursor)
            after = self._at(connection) or 0
            found = self._news(connection, after, limit)
            events = {(row.pause, _KINDS[row.kind], row.at): row for row in found if row.pause and row.kind in _KINDS}
            if events:
                connection.execute(insert(outbox), [self._row(*event, row) for event, row in events.items()])
            if found:
                moved = update(meta).where(meta.c.key == self._cursor).values(value=str(found[-1].seq))
                connection.execute(moved)
        return len(events)

    def claim(self, limit: int = 20) -> list[Notice]:
        """Messages that are due, for this process to deliver now; others get them when their wait is over."""
        from sqlalchemy import select, update

        now = self._store.clock().timestamp()
        due = select(outbox).where(outbox.c.done.is_(False), outbox.c.next <= now).order_by(outbox.c.next)
        mine = due.where(outbox.c.id.like(f"{self._endpoint}%")).limit(limit)
        with self._store.database.read() as connection:
            found = connection.execute(mine).mappings().all()
        claimed: list[Notice] = []
        for row in found:
            attempt = row["attempts"] + 1
            same = outbox.c.id == row["id"], outbox.c.attempts == row["attempts"], outbox.c.done.is_(False)
            values = {"attempts": attempt, "next": now + _wait(attempt)}
            with self._store.database.change() as connection:
                taken = connection.execute(update(outbox).where(*same).values(**values)).rowcount == 1
            if taken:
                claimed.append(Notice(id=row["id"], attempt=attempt, **json.loads(row["payload"])))
        return sorted(claimed, key=lambda notice: (notice.at, int(notice.id.rpartition("-")[2])))

    def done(self, notice: Notice) -> None:
        """A message that was delivered, or is given up."""
        from sqlalchemy import delete

        with self._store.database.change() as connection:
            connection.execute(delete(outbox).where(outbox.c.id == notice.id))

    def body(self, notice: Notice, *, previews: bool = False, review_url: str | None = None) -> bytes | None:
        """The JSON of a message, with the pause as it is now; None where it is gone."""
        try:
            pause = self._store.pause(notice.pause, notice.tenant)
        except PauseUnknown:
            return None
        at = moment(notice.at)
        assert at is not None
        data = _told(pause, previews)
        if review_url is not None:
            data["review"] = review_url.replace("{id}", pause.id)
        told = {"type": f"approval.{notice.kind}", "timestamp": stamp(at), "data": data}
        return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode()

    def _at(self, connection: Connection) -> int | None:
        from sqlalchemy import select

        found = connection.execute(select(meta.c.value).where(meta.c.key == self._cursor)).scalar()
        return None if found is None else int(found)

    def _news(self, connection: Connection, after: int, limit: int) -> list[Any]:
        from sqlalchemy import select

        columns = audit.c.seq, audit.c.at, audit.c.kind, audit.c.pause, audit.c.tenant
        query = select(*columns).where(audit.c.seq > after).order_by(audit.c.seq).limit(limit)
        return list(connection.execute(query))

    def _row(self, pause: str, kind: str, at: float, row: Any) -> dict[str, Any]:
        payload = json.dumps({"kind": kind, "pause": pause, "tenant": row.tenant, "at": at})
        now = self._store.clock().timestamp()
        return {"id": f"{self._endpoint}-{row.seq}", "payload": payload, "attempts": 0, "next": now, "done": False}


def _told(pause: Pause, previews: bool) -> dict[str, Any]:
    """A pause as a webhook tells it: what is asked and for whom, no argument; previews only where asked for."""
    calls = [
        {"id": call.id, "tool": call.tool, "source": call.source, "state": call.state.value}
        | ({"preview": dict(call.preview)} if previews else {})
        for call in pause.calls
    ]
    return {
        "pause": pause.id,
        "tenant": pause.tenant,
        "requester": pause.requester,
        "status": pause.to_dict()["status"],
        "tools": list(dict.fromkeys(call.tool for call in pause.calls)),
        "revision": pause.revision,
        "due": stamp(pause.due) if pause.due else None,
        "calls": calls,
    }


def _wait(attempt: int) -> float:
    """The seconds until a message is tried again, unless it is delivered before."""
    return float(min(_FIRST_WAIT * 3 ** (attempt - 1), _LONGEST_WAIT))


def reminders(store: Store, before: timedelta, limit: int = 100) -> list[tuple[str, str]]:
    """(id, tenant) of pauses that are due within a time and were not reminded of since they got their due time.

    They are recorded as reminded: whoever is given them, in whatever process, is the only one.
    """
    from sqlalchemy import select

    now, lead = store.clock().timestamp(), before.total_seconds()
    later = audit.alias("later")
    extended = select(later.c.seq).where(
        later.c.pause == audit.c.pause, later.c.kind == "extended", later.c.seq > audit.c.seq
    )
    reminded = select(audit.c.seq).where(
        audit.c.pause == pauses.c.id, audit.c.kind == "reminded", ~extended.correlate(audit).exists()
    )
    query = (
        select(pauses.c.id, pauses.c.tenant)
        .where(pauses.c.waiting.is_(True), pauses.c.due > now, pauses.c.due <= now + lead)
        .where(pauses.c.created <= pauses.c.due - lead)  # a pause that is due so soon was told of just now
        .where(~reminded.correlate(pauses).exists())
        .order_by(pauses.c.due)
        .limit(limit)
    )
    with store.database.read() as connection:
        if not connection.execute(query).first():
            return []
    with store.database.change() as connection:
        store.database.lock_chain(connection)
        found = [(row.id, row.tenant) for row in connection.execute(query)]
        store.record_in(connection, [Entry("reminded", tenant, f"{SYSTEM}remind", id) for id, tenant in found])
    return found
