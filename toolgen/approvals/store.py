"""The store of approvals: pauses, the journal of what ran, the audit log, in one database.

Every method is one transaction and blocks; the runtime calls them in threads. What is changed, is changed
from the state that was read, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals import audit, erase, journal, queries, rows
from toolgen.approvals.audit import Entry, Head
from toolgen.approvals.changes import Change, Turn
from toolgen.approvals.database import Database
from toolgen.approvals.erase import Erased
from toolgen.approvals.journal import Claim, JournalKey
from toolgen.approvals.model import Pause
from toolgen.approvals.names import check_names
from toolgen.approvals.opening import store_keys
from toolgen.approvals.purging import purged
from toolgen.approvals.queries import calls_of, newest
from toolgen.approvals.rows import Listed
from toolgen.approvals.sealed import Seal
from toolgen.approvals.states import CallState
from toolgen.approvals.stored import change_rows, check_pause, insert_pause, load, load_turn, pauses_of, turn_key, write
from toolgen.approvals.tables import audit as audit_table
from toolgen.approvals.tables import calls, pauses
from toolgen.approvals.telemetry import counted
from toolgen.errors import StoreError
from toolgen.identity.keys import Keys
from toolgen.result import ToolResult

if TYPE_CHECKING:
    from sqlalchemy import Connection

CHANNEL: Final = "toolgen_pauses"  # of PostgreSQL's LISTEN and NOTIFY
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
        """Keep a new pause. Raises NameInvalid, and PauseConflict where its turn has one of its calls already."""
        check_pause(pause)
        with self.database.change() as connection:
            self.database.lock_key(connection, repr(("pauses", pause.tenant, pause.thread, pause.turn)))
            insert_pause(connection, pause, self._seal)
            self._record(connection, entries)
            self._tell(connection, pause.id)

    def pause(self, pause_id: str, tenant: str) -> Pause:
        """A pause of a tenant. Raises PauseUnknown."""
        with self.database.read() as connection:
            return load(connection, pause_id, tenant, self._seal)

    def change(self, pause_id: str, tenant: str, change: Callable[[Pause], Change | None]) -> Pause:
        """Change a pause as a function of what it is now; None leaves it as it is.

        One transaction holds the pause from reading to writing. Raises PauseUnknown, whatever the function
        raises, and PauseConflict for a call that was not in the state it was read in.
        """
        with self.database.change() as connection:
            before = load(connection, pause_id, tenant, self._seal, lock=True)
            return self._change(connection, before, change)

    def change_in_turn(self, pause_id: str, tenant: str, change: Callable[[Pause, Turn], Change | None]) -> Pause:
        """`change`, as a function of the whole turn too; of a turn's changes of this kind there is one at a time."""
        with self.database.change() as connection:
            before = load(connection, pause_id, tenant, self._seal, lock=True)
            self.database.lock_key(connection, turn_key(before.tenant, before.thread, before.turn))
            turn = load_turn(connection, tenant, before.thread, before.turn, self._seal)
            return self._change(connection, before, lambda pause: change(pause, turn))

    def change_each(
        self, ids: Sequence[str], change: Callable[[Pause, Turn], Change | None]
    ) -> tuple[list[Pause], dict[str, Exception]]:
        """`change_in_turn` for several pauses in one transaction: those that changed, and what failed by id.

        Each is changed whole or not at all, whatever becomes of the others. One that somebody else is changing is
        left out. The audit entries stand in the order of the pauses.
        """
        with self.database.change() as connection:
            made, failed = change_rows(connection, self.database, ids, change, self._seal, self.clock())
            self._record(connection, [entry for _, entries in made for entry in entries])
            for pause, _ in made:
                self._tell(connection, pause.id)
        return [pause for pause, _ in made], failed

    def pauses(self, tenant: str | None = None, *, limit: int = 100, **filters: Any) -> list[Pause]:
        """Whole pauses, the newest first, at most `limit`; the filters are those of `listed`, which is faster."""
        with self.database.read() as connection:
            found = connection.execute(newest(tenant, limit, **filters)).mappings().all()
            return pauses_of(connection, found, self._seal)

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
            return load_turn(connection, tenant, thread, turn, self._seal)

    def due(self, now: datetime, limit: int = 100, skip: int = 0) -> list[tuple[str, str]]:
        """(id, tenant) of pauses whose time is up and that still wait, the longest overdue first, behind so many."""
        with self.database.read() as connection:
            return queries.due(connection, now, limit, skip)

    def unfinished(self, now: datetime, limit: int = 100, skip: int = 0) -> list[tuple[str, str]]:
        """(id, tenant) of pauses with a claim or an approval that ran out, behind so many of each."""
        with self.database.read() as connection:
            return queries.unfinished(connection, now, limit, skip)

    def approved(self, after: tuple[float, str] | None = None, limit: int = 100) -> list[tuple[float, str, str]]:
        """(decided, id, tenant) of pauses that are decided and may have calls to run, the oldest decision first.

        `after` is (decided, id) of the last one of the page before.
        """
        with self.database.read() as connection:
            return queries.approved(connection, after, limit)

    # The journal of calls that are not paused

    def claim(
        self,
        key: JournalKey,
        fingerprint: str,
        *,
        requester: str,
        worker: str,
        lease: datetime,
        earlier: Sequence[str] = (),
    ) -> ToolResult | None:
        """Claim a call before it is sent: None is for the caller to send it, a result is what is known of it.

        `earlier` are the request's fingerprints by previous keys.

        Raises NameInvalid, and PauseConflict where the same call made another request before.
        """
        check_names(tenant=key.tenant, thread=key.thread, turn=key.turn, call_id=key.call, requester=requester)
        made = Claim(fingerprint, requester, worker, self.clock().timestamp(), lease.timestamp(), tuple(earlier))
        with self.database.change() as connection:
            self.database.lock_key(connection, repr(key))
            known, entries = journal.claim(connection, key, made, self._seal)
            self._record(connection, entries)
            return known

    def carried_out(
        self, key: JournalKey, fingerprint: str, requester: str, *, earlier: Sequence[str] = ()
    ) -> ToolResult | None:
        """What is known of a call that was claimed before; None of one that was not, and of one that never left.

        `earlier` are the request's fingerprints by previous keys.
        Raises PauseConflict where it made another request, or was another requester's.
        """
        with self.database.read() as connection:
            return journal.became(
                connection, key, (fingerprint, *earlier), requester, self.clock().timestamp(), self._seal
            )

    def finish(self, key: JournalKey, state: CallState, result: ToolResult, entries: Sequence[Entry]) -> None:
        """Keep what became of a claimed call. Raises PauseConflict where it is not claimed any more."""
        with self.database.change() as connection:
            journal.finish(connection, key, state, result, self._seal)
            self._record(connection, entries)

    def renew(self, key: JournalKey, pause: str | None, *, worker: str, lease: datetime) -> None:
        """Have the claim of a call, of a pause if it is of one, hold longer, if it is still the worker's."""
        from sqlalchemy import select

        with self.database.change() as connection:
            if pause is not None:  # held: whoever ends what ran out reads it before
                connection.execute(select(pauses.c.id).where(pauses.c.id == pause).with_for_update()).first()
            journal.renew(connection, key, pause, worker, lease.timestamp())

    def lapse(self, now: datetime, limit: int = 100) -> int:
        """End the claims without a pause that ran out: `outcome_unknown`, audited. How many there were."""
        with self.database.read() as connection:  # it is asked each second, and there is hardly ever one
            if not journal.lapsed(connection, now.timestamp(), 1):
                return 0
        with self.database.change() as connection:
            entries = journal.lapse(connection, now.timestamp(), limit)
            self._record(connection, entries)
            return len(entries)

    # Erasing

    def purge(self, subject: str, *, actor: str, tenant: str | None = None) -> Erased:
        """Erase what is kept of a person, in one tenant or in all; the audit says by whom, not of whom.

        Arguments, previews, notes, results and state of their pauses, results of their calls, what was remembered
        for them, their names and notes on what they decided of others', and the details of audit entries that name
        them. Calls of theirs that wait are cancelled. That they decided, and what, stays.
        """
        if not subject:
            raise StoreError("a purge needs the subject whose content is erased")
        with self.database.change() as connection:
            counts, entries, changed = purged(
                connection, self.database, subject, tenant, actor, self._seal, self.clock()
            )
            self._record(connection, entries)
            for pause_id in changed:
                self._tell(connection, pause_id)
        self.database.forget()
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
        with self.database.read() as connection:
            return queries.outdated(connection, source, digests)

    def close(self) -> None:
        """Close the database's connections."""
        self.database.close()

    def _change(self, connection: Connection, before: Pause, change: Callable[[Pause], Change | None]) -> Pause:
        made = change(before)
        if made is None:
            return before
        after = write(connection, before, made.pause, self._seal, self.clock())
        self._record(connection, made.entries)
        self._tell(connection, before.id)
        return after

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
