"""The store of approvals: pauses, the journal of what ran, the audit log, in one database.

Every method is one transaction and blocks; the runtime calls them in threads. What is changed, is changed
from the state that was read, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals import audit, erase, journal, rows
from toolgen.approvals.audit import Entry, Head
from toolgen.approvals.changes import Change, Turn, check
from toolgen.approvals.database import Database
from toolgen.approvals.erase import Erased
from toolgen.approvals.journal import Claim, JournalKey
from toolgen.approvals.model import Pause
from toolgen.approvals.opening import store_keys
from toolgen.approvals.queries import calls_of, newest
from toolgen.approvals.rows import Listed
from toolgen.approvals.sealed import Seal
from toolgen.approvals.states import CallState
from toolgen.approvals.tables import audit as audit_table
from toolgen.approvals.tables import calls, pauses
from toolgen.approvals.telemetry import counted
from toolgen.errors import PauseConflict, PauseUnknown, StoreError
from toolgen.identity.keys import Keys
from toolgen.result import ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

CHANNEL: Final = "toolgen_pauses"  # of PostgreSQL's LISTEN and NOTIFY
_AT_ONCE: Final = 200  # conditions of a statement
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Store:
    """Pauses, journal and audit in a database. `url` None is in memory, for one process and its lifetime.

    The keys are the ones given, else those of the environment; for a SQLite file else those of `toolgen.key`
    beside it, which is made on first use. In memory they are made up.

    Raises StoreError and CredentialsError.
    """

    def __init__(self, url: str | None = None, keys: Keys | None = None, *, clock: Clock = utc_now) -> None:
        self.database = Database(url)
        try:
            self.keys = store_keys(self.database, keys)
        except BaseException:
            self.database.close()
            raise
        self.clock = clock
        self._seal = Seal(self.keys)

    # Pauses

    def add(self, pause: Pause, entries: Sequence[Entry]) -> None:
        """Keep a new pause. Raises PauseConflict where one of its calls is in a pause of its turn already."""
        from sqlalchemy import insert, select

        same = (pauses.c.tenant == pause.tenant, pauses.c.thread == pause.thread, pauses.c.turn == pause.turn)
        known = select(calls.c.id).join(pauses, pauses.c.id == calls.c.pause).where(*same)
        with self.database.change() as connection:
            self.database.lock_key(connection, repr(("pauses", pause.tenant, pause.thread, pause.turn)))
            again = connection.execute(known.where(calls.c.id.in_([call.id for call in pause.calls]))).first()
            if again is not None:
                raise PauseConflict(f"the call {again.id!r} is in a pause of this turn already")
            connection.execute(insert(pauses).values(**rows.pause_row(pause, self._seal)))
            listed = [rows.call_row(call, pause.id, n, self._seal) for n, call in enumerate(pause.calls)]
            connection.execute(insert(calls), listed)
            self._record(connection, entries)
            self._tell(connection, pause.id)

    def pause(self, pause_id: str, tenant: str) -> Pause:
        """A pause of a tenant. Raises PauseUnknown."""
        with self.database.read() as connection:
            return self._load(connection, pause_id, tenant)

    def change(self, pause_id: str, tenant: str, change: Callable[[Pause], Change | None]) -> Pause:
        """Change a pause as a function of what it is now; None leaves it as it is.

        One transaction holds the pause from reading to writing. Raises PauseUnknown, whatever the function
        raises, and PauseConflict for a call that was not in the state it was read in.
        """
        with self.database.change() as connection:
            return self._change(connection, self._load(connection, pause_id, tenant, lock=True), change)

    def change_in_turn(self, pause_id: str, tenant: str, change: Callable[[Pause, Turn], Change | None]) -> Pause:
        """`change`, as a function of the whole turn too; of a turn's changes of this kind there is one at a time."""
        with self.database.change() as connection:
            before = self._load(connection, pause_id, tenant, lock=True)
            self.database.lock_key(connection, repr(("turn", tenant, before.thread, before.turn)))
            turn = self._turn(connection, tenant, before.thread, before.turn)
            return self._change(connection, before, lambda pause: change(pause, turn))

    def pauses(self, tenant: str | None = None, *, limit: int = 100, **filters: Any) -> list[Pause]:
        """Whole pauses, the newest first, at most `limit`; the filters are those of `listed`, which is faster."""
        with self.database.read() as connection:
            found = connection.execute(newest(tenant, limit, **filters)).mappings().all()
            return self._pauses(connection, found)

    def listed(self, tenant: str | None = None, *, limit: int = 100, **filters: Any) -> list[Listed]:
        """Pauses as a list shows them, the newest first, at most `limit`. Nothing is decrypted.

        Filters: `waiting` and `is_open` (true or false), `requester`, `thread`, `prefix` of the id. `before` is the
        last one of the page before, or a time in seconds since 1970.
        """
        with self.database.read() as connection:
            found = connection.execute(newest(tenant, limit, **filters)).mappings().all()
            light = (calls.c.pause, calls.c.id, calls.c.position, calls.c.tool, calls.c.source, calls.c.state)
            by_pause = calls_of(connection, found, (*light, calls.c.data))
            return [rows.listed_of(row, by_pause[row["id"]]) for row in found]

    def count_waiting(self, tenant: str | None = None) -> int:
        """How many pauses wait for a decision."""
        from sqlalchemy import func, select

        query = select(func.count()).select_from(pauses).where(pauses.c.waiting.is_(True))
        with self.database.read() as connection:
            found = query if tenant is None else query.where(pauses.c.tenant == tenant)
            return int(connection.execute(found).scalar_one())

    def turn(self, tenant: str, thread: str, turn: str) -> Turn:
        """What happened in a turn so far."""
        with self.database.read() as connection:
            return self._turn(connection, tenant, thread, turn)

    def due(self, now: datetime, limit: int = 100) -> list[tuple[str, str]]:
        """(id, tenant) of pauses whose time is up and that still wait, the longest overdue first."""
        from sqlalchemy import select

        query = select(pauses.c.id, pauses.c.tenant).where(pauses.c.waiting.is_(True), pauses.c.due <= now.timestamp())
        with self.database.read() as connection:
            return [(row.id, row.tenant) for row in connection.execute(query.order_by(pauses.c.due).limit(limit))]

    def unfinished(self, now: datetime, limit: int = 100) -> list[tuple[str, str]]:
        """(id, tenant) of pauses with a claim or an approval that ran out."""
        from sqlalchemy import select

        lapsed = select(calls.c.pause).where(
            calls.c.state == CallState.executing.value, calls.c.lease < now.timestamp()
        )
        query = select(pauses.c.id, pauses.c.tenant).where(pauses.c.id.in_(lapsed)).limit(limit)
        over = select(pauses.c.id, pauses.c.tenant).where(pauses.c.expires < now.timestamp())
        with self.database.read() as connection:
            found = [*connection.execute(query), *connection.execute(over.order_by(pauses.c.expires).limit(limit))]
        return list(dict.fromkeys((row.id, row.tenant) for row in found))

    def approved(self, after: tuple[float, str] | None = None, limit: int = 100) -> list[tuple[float, str, str]]:
        """(decided, id, tenant) of pauses that are decided and may have calls to run, the oldest decision first.

        `after` is (decided, id) of the last one of the page before.
        """
        from sqlalchemy import select, tuple_

        place = pauses.c.decided, pauses.c.id
        query = select(*place, pauses.c.tenant).where(pauses.c.open.is_(True), pauses.c.waiting.is_(False))
        query = query.where(pauses.c.decided.is_not(None))
        query = query if after is None else query.where(tuple_(*place) > tuple_(*after))
        with self.database.read() as connection:
            return [tuple(row) for row in connection.execute(query.order_by(*place).limit(limit))]

    # The journal of calls that are not paused

    def claim(
        self, key: JournalKey, fingerprint: str, *, requester: str, worker: str, lease: datetime
    ) -> ToolResult | None:
        """Claim a call before it is sent: None is for the caller to send it, a result is what is known of it.

        Raises PauseConflict where the same call made another request before.
        """
        made = Claim(fingerprint, requester, worker, self.clock().timestamp(), lease.timestamp())
        with self.database.change() as connection:
            self.database.lock_key(connection, repr(key))
            known, entries = journal.claim(connection, key, made, self._seal)
            self._record(connection, entries)
            return known

    def carried_out(self, key: JournalKey, fingerprint: str, requester: str) -> ToolResult | None:
        """What is known of a call that was claimed before; None of one that was not, and of one that never left.

        Raises PauseConflict where it made another request, or was another requester's.
        """
        with self.database.read() as connection:
            return journal.became(connection, key, fingerprint, requester, self.clock().timestamp(), self._seal)

    def finish(self, key: JournalKey, state: CallState, result: ToolResult, entries: Sequence[Entry]) -> None:
        """Keep what became of a claimed call. Raises PauseConflict where it is not claimed any more."""
        with self.database.change() as connection:
            journal.finish(connection, key, state, result, self._seal)
            self._record(connection, entries)

    def lapse(self, now: datetime, limit: int = 100) -> int:
        """End the claims without a pause that ran out: `outcome_unknown`, audited. How many there were."""
        with self.database.change() as connection:
            entries = journal.lapse(connection, now.timestamp(), limit)
            self._record(connection, entries)
            return len(entries)

    # Erasing

    def purge(self, subject: str, *, actor: str, tenant: str | None = None) -> Erased:
        """Erase what is kept of a person, in one tenant or in all; the audit says by whom, not of whom.

        Arguments, previews, notes, results and state of their pauses, results of their calls, what was remembered
        for them, and the details of audit entries that name them. Calls of theirs that wait are cancelled.
        """
        if not subject:
            raise StoreError("a purge needs the subject whose content is erased")
        with self.database.change() as connection:
            counts, ids, cancelled = erase.of_person(connection, subject, tenant, self.clock().timestamp())
            self.database.lock_chain(connection)
            numbers = erase.details_of(connection, subject, tenant, ids)
            counts = replace(counts, audit=len(numbers))
            details = {"pauses": ids, "entries": erase.ranges(numbers)}
            why = {"detail": "its content was erased"}
            ended = [Entry("cancelled", of, actor, pause_id, None, why) for of, pause_id in cancelled]
            self._record(connection, [erase.entry("purged", tenant, actor, counts, details), *ended])
            for pause_id in ids:
                self._tell(connection, pause_id)
            return counts

    def expire(self, before: datetime, *, actor: str | None = None, limit: int = 1_000) -> Erased:
        """Erase the content of pauses that closed before a time, `limit` at once, and of results as old; audited."""
        with self.database.change() as connection:
            counts = erase.before(connection, before.timestamp(), self.clock().timestamp(), limit)
            if counts != Erased():
                details = {"before": before.isoformat()}
                self._record(connection, [erase.entry("retention", None, actor, counts, details)])
            return counts

    # The audit log

    def faults(self, kept: Head | None = None) -> list[str]:
        """Everything that is wrong with the audit log; nothing for a whole one. `kept` is a head from before."""
        from sqlalchemy import select

        with self.database.read() as connection:
            found = connection.execute(select(audit_table).order_by(audit_table.c.seq)).mappings()
            return list(audit.faults(iter(found), self.keys, kept))

    def head(self) -> Head:
        """The signed end of the audit log."""
        with self.database.read() as connection:
            return audit.head(connection, self.keys, self.clock().timestamp())

    # Inside

    def record(self, entries: Sequence[Entry]) -> None:
        """Audit entries of what changes no pause."""
        with self.database.change() as connection:
            self._record(connection, entries)

    def record_in(self, connection: Connection, entries: Sequence[Entry]) -> None:
        """Audit entries in a transaction that is under way."""
        self._record(connection, entries)

    def outdated(self, source: str, digests: Mapping[str, str]) -> list[tuple[str, str]]:
        """(id, tenant) of pauses with a call that waits or is approved, for a tool of a source whose digest is
        another by now, or that is gone."""
        from sqlalchemy import and_, or_, select

        open_ = calls.c.state.in_([CallState.pending.value, CallState.approved.value])
        known = select(calls.c.tool, calls.c.digest).where(calls.c.source == source, open_).distinct()
        with self.database.read() as connection:
            old = [row for row in connection.execute(known) if digests.get(row.tool) != row.digest]
            found: dict[tuple[str, str], None] = {}
            for start in range(0, len(old), _AT_ONCE):
                some = old[start : start + _AT_ONCE]
                theirs = or_(*(and_(calls.c.tool == row.tool, calls.c.digest == row.digest) for row in some))
                paused = select(calls.c.pause).where(calls.c.source == source, open_, theirs)
                query = select(pauses.c.id, pauses.c.tenant).where(pauses.c.id.in_(paused))
                found |= dict.fromkeys((row.id, row.tenant) for row in connection.execute(query))
        return list(found)

    def close(self) -> None:
        """Close the database's connections."""
        self.database.close()

    def _load(self, connection: Connection, pause_id: str, tenant: str, *, lock: bool = False) -> Pause:
        from sqlalchemy import select

        query = select(pauses).where(pauses.c.id == pause_id, pauses.c.tenant == tenant)
        row = connection.execute(query.with_for_update() if lock else query).mappings().first()
        if row is None:
            raise PauseUnknown(f"there is no pause {pause_id!r}")
        found = connection.execute(select(calls).where(calls.c.pause == pause_id)).mappings().all()
        return rows.pause_of(row, found, self._seal)

    def _turn(self, connection: Connection, tenant: str, thread: str, turn: str) -> Turn:
        from sqlalchemy import select

        same = (pauses.c.tenant == tenant, pauses.c.thread == thread, pauses.c.turn == turn)
        found = connection.execute(select(pauses).where(*same).order_by(pauses.c.created)).mappings().all()
        return Turn(tuple(self._pauses(connection, found)))

    def _change(self, connection: Connection, before: Pause, change: Callable[[Pause], Change | None]) -> Pause:
        made = change(before)
        if made is None:
            return before
        after = replace(made.pause, revision=before.revision + 1)
        self._write(connection, before, after)
        self._record(connection, made.entries)
        self._tell(connection, before.id)
        return after

    def _pauses(self, connection: Connection, found: Sequence[Any]) -> list[Pause]:
        by_pause = calls_of(connection, found, tuple(calls.c))
        return [rows.pause_of(row, by_pause[row["id"]], self._seal) for row in found]

    def _write(self, connection: Connection, before: Pause, after: Pause) -> None:
        from sqlalchemy import update

        check(before, after)
        row = rows.pause_row(after, self._seal)
        connection.execute(update(pauses).where(pauses.c.id == before.id).values(**row))
        for position, (old, new) in enumerate(zip(before.calls, after.calls, strict=True)):
            if new == old:
                continue
            values = rows.call_row(new, after.id, position, self._seal)
            same = calls.c.pause == after.id, calls.c.id == old.id, calls.c.state == old.state.value
            if connection.execute(update(calls).where(*same).values(**values)).rowcount != 1:
                raise PauseConflict(f"{old.id} is not {old.state.value} any more")
            journal.follow(connection, after, old, new, self.clock())

    def _record(self, connection: Connection, entries: Iterable[Entry]) -> None:
        listed = list(entries)
        if listed:
            self.database.lock_chain(connection)
            audit.append(connection, listed, self.keys, self.clock().timestamp())
            counted(listed)

    def _tell(self, connection: Connection, pause_id: str) -> None:
        """Wake whoever waits for the pause, once this is committed."""
        if not self.database.is_sqlite:
            from sqlalchemy import text

            connection.execute(text("SELECT pg_notify(:channel, :pause)"), {"channel": CHANNEL, "pause": pause_id})


__all__ = ["CHANNEL", "Change", "Claim", "Clock", "Erased", "JournalKey", "Listed", "Store", "Turn", "utc_now"]
