"""A purge: everything that is kept of a person, in one transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from toolgen.approvals import audit, erase
from toolgen.approvals.audit import Entry
from toolgen.approvals.database import Database
from toolgen.approvals.erase import Erased
from toolgen.approvals.said import GONE, erased_votes
from toolgen.approvals.sealed import Seal

if TYPE_CHECKING:
    from sqlalchemy import Connection


def purged(
    connection: Connection,
    database: Database,
    subject: str,
    tenant: str | None,
    actor: str,
    seal: Seal,
    now: datetime,
) -> tuple[Erased, list[Entry], list[str]]:
    """Erase what is kept of a person: the counts, what is to be recorded, and the ids of the pauses that changed."""
    until = audit.last(connection)
    counts, ids, cancelled, left = erase.of_person(connection, subject, tenant, now.timestamp())
    votes, others = erased_votes(connection, subject, tenant, until, seal)
    database.lock_chain(connection)  # after all rows: whoever holds the log waits for none
    numbers, late = erase.details_of(connection, subject, tenant, ids, until, left)
    counts = replace(counts, votes=votes, audit=len(numbers), left=counts.left + late)
    details = {"pauses": ids, "entries": erase.ranges(numbers)}
    ended = [Entry("cancelled", of, actor, pause_id, None, {"detail": GONE}) for of, pause_id in cancelled]
    return counts, [erase.entry("purged", tenant, actor, counts, details), *ended], [*ids, *others]
