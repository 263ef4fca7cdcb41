"""The audit log: what was decided, claimed and done, each entry in the transaction it records.

Every entry has the digest of its details and an HMAC over itself and the HMAC before it, so that a deletion,
an insertion, another order and an edit are found. A cut-off end is found against a signed head. The details
of a person can be erased and leave their digest: the chain stays whole, and the entry of the erasing names those
it erased. Arguments are never among them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.rows import moment
from toolgen.approvals.tables import audit
from toolgen.errors import CredentialsError
from toolgen.identity.keys import Keys

if TYPE_CHECKING:
    from sqlalchemy import Connection

START: Final = "0" * 64
ERASING: Final = frozenset({"purged", "retention"})  # kinds of entries that name others that were erased
_LONGEST: Final = 256  # characters of a name


@dataclass(frozen=True, slots=True)
class Entry:
    """What happened. `actor` is a person's subject or `system:...`; `details` hold no argument and no secret."""

    kind: str
    tenant: str
    actor: str
    pause: str | None = None
    call: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry as it stands in the log, with all that its HMAC is over; `details` and `salt` are None once erased.

    `seconds` is `at` exactly, since 1970.
    """

    seq: int
    at: datetime
    seconds: float
    kind: str
    tenant: str
    pause: str | None
    call: str | None
    details: Mapping[str, Any] | None
    salt: str | None
    digest: str
    key: str
    mac: str

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON-ready data."""
        from toolgen.approvals.model import stamp

        return {
            "seq": self.seq,
            "at": stamp(self.at),
            "seconds": self.seconds,
            "kind": self.kind,
            "tenant": self.tenant,
            "pause": self.pause,
            "call": self.call,
            "details": None if self.details is None else dict(self.details),
            "salt": self.salt,
            "digest": self.digest,
            "key": self.key,
            "mac": self.mac,
        }


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the log, signed: whoever keeps it can tell whether entries were cut off since."""

    seq: int
    mac: str
    at: float
    key: str
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """The head as JSON-ready data."""
        return {"seq": self.seq, "mac": self.mac, "at": self.at, "key": self.key, "signature": self.signature}


def last(connection: Connection) -> int:
    """The number of the last entry; 0 for an empty log."""
    from sqlalchemy import func, select

    return int(connection.execute(select(func.max(audit.c.seq))).scalar() or 0)


def append(connection: Connection, entries: list[Entry], keys: Keys, now: float) -> None:
    """Add entries at the end of the log. The transaction holds the chain (`Database.lock_chain`)."""
    from sqlalchemy import insert, select

    end = connection.execute(select(audit.c.seq, audit.c.mac).order_by(audit.c.seq.desc()).limit(1)).first()
    seq, before = (end.seq, end.mac) if end is not None else (0, START)
    rows = []
    for entry in entries:
        seq += 1
        details = written_details({**entry.details, "actor": entry.actor})
        salt = os.urandom(16).hex()
        row: dict[str, Any] = {
            "seq": seq,
            "at": now,
            "kind": entry.kind,
            "tenant": _storable(entry.tenant),
            "pause": entry.pause,
            "call": None if entry.call is None else _storable(entry.call),
            "details": details,
            "salt": salt,
            "digest": _digest(salt, details),
            "key": keys.id,
        }
        row["mac"] = before = _mac(row, before, keys)
        rows.append(row)
    if rows:
        connection.execute(insert(audit), rows)


def head(connection: Connection, keys: Keys, now: float) -> Head:
    """The signed end of the log."""
    from sqlalchemy import select

    end = connection.execute(select(audit.c.seq, audit.c.mac).order_by(audit.c.seq.desc()).limit(1)).first()
    seq, mac = (end.seq, end.mac) if end is not None else (0, START)
    return Head(seq, mac, now, keys.id, _signature(seq, mac, now, keys))


def entries(connection: Connection, *, after: int = 0, limit: int | None = None) -> Iterator[Recorded]:
    """The entries behind a number, in order."""
    from sqlalchemy import select

    found = connection.execute(select(audit).where(audit.c.seq > after).order_by(audit.c.seq).limit(limit))
    for row in found.mappings():
        yield recorded(row)


def recorded(row: Mapping[Any, Any]) -> Recorded:
    """The entry of a row."""
    at = moment(row["at"])
    assert at is not None
    details = None if row["details"] is None else json.loads(row["details"])
    names = ("seq", "kind", "tenant", "pause", "call", "salt", "digest", "key", "mac")
    return Recorded(at=at, seconds=row["at"], details=details, **{name: row[name] for name in names})


def faults(rows: Iterator[Mapping[Any, Any]], keys: Keys, kept: Head | None = None) -> Iterator[str]:
    """Everything that is wrong with a log; nothing for a whole one. `kept` is a head from before."""
    before, expected, seen = START, 1, False
    erased: set[int] = set()
    if kept is not None and not is_signed(kept, keys):
        yield "the head is not signed with these keys"
        kept = None
    for row in rows:
        if row["seq"] != expected:
            yield f"entry {row['seq']}: it follows on {expected - 1}; entries were removed or added"
        yield from _row_faults(row, before, keys)
        if row["details"] is None:
            erased.add(row["seq"])
        elif row["kind"] in ERASING:
            erased -= _named(row["details"], erased)
        if kept is not None and row["seq"] == kept.seq:
            seen = True
            if row["mac"] != kept.mac:
                yield f"entry {kept.seq}: it is not the one that the head was signed over"
        before, expected = row["mac"], row["seq"] + 1
    for seq in sorted(erased):
        yield f"entry {seq}: its details are gone, and no entry says that they were erased"
    if kept is not None and kept.seq and not seen:
        yield f"the log ends before entry {kept.seq}, where the head was signed: its end was cut off"


def _named(details: str, erased: set[int]) -> set[int]:
    """Those of the erased entries that an erasing names. Its own fault where it is not as it was written."""
    try:
        return {seq for first, last in json.loads(details).get("entries", ()) for seq in erased if first <= seq <= last}
    except (ValueError, TypeError, AttributeError):
        return set()


def _storable(name: str) -> str:
    """A name as every database takes it: a model makes up ids of calls."""
    return name.replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:_LONGEST]


def _row_faults(row: Mapping[Any, Any], before: str, keys: Keys) -> Iterator[str]:
    try:
        signing = keys.by_id(row["key"])
    except CredentialsError:
        yield f"entry {row['seq']}: it is signed with the key {row['key']!r}, which is not here"
        return
    if not hmac.compare_digest(_mac(row, before, signing).encode(), str(row["mac"]).encode("utf-8", "replace")):
        yield f"entry {row['seq']}: it was changed, or is not in its place"
    details, salt = row["details"], row["salt"]
    is_erased = details is None and salt is None
    if not is_erased and (details is None or salt is None or _digest(salt, details) != row["digest"]):
        yield f"entry {row['seq']}: its details were changed"


def written_details(details: Mapping[str, Any]) -> str:
    """Details as they are stored, and as their digest is over them."""
    return json.dumps(details, ensure_ascii=True, sort_keys=True)


def _digest(salt: str, details: str) -> str:
    return hashlib.sha256(f"{salt}:{details}".encode()).hexdigest()


def _mac(row: Mapping[Any, Any], before: str, keys: Keys) -> str:
    """Over everything but the details, which their digest stands for."""
    names = ("seq", "at", "kind", "tenant", "pause", "call", "digest", "key")
    text = json.dumps([before, *(row[name] for name in names)], ensure_ascii=True, separators=(",", ":"))
    return hmac.new(keys.subkey("audit"), text.encode(), hashlib.sha256).hexdigest()


def _signature(seq: int, mac: str, at: float, keys: Keys) -> str:
    return hmac.new(keys.subkey("audit"), f"head:{seq}:{mac}:{at!r}".encode(), hashlib.sha256).hexdigest()


def is_signed(kept: Head, keys: Keys) -> bool:
    """Whether a head was signed with one of these keys."""
    try:
        signing = keys.by_id(kept.key)
    except CredentialsError:
        return False
    return hmac.compare_digest(
        _signature(kept.seq, kept.mac, kept.at, signing).encode(), kept.signature.encode("utf-8", "replace")
    )
