"""The tables of the approval store, and the version of their schema.

Times are seconds since 1970 (UTC). What is marked sealed is encrypted: arguments, previews, votes with their notes,
results, the host's state. What is sealed is NULL once it was erased.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

VERSION: Final = 1

metadata = MetaData()
_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")

meta = Table(
    "toolgen_meta",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

pauses = Table(
    "toolgen_pauses",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("thread", Text, nullable=False),
    Column("turn", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("due", Double),
    Column("decided", Double),
    Column("expires", Double),  # when the first of its approvals is not good any more
    Column("revision", Integer, nullable=False),
    Column("waiting", Boolean, nullable=False),  # some call is pending
    Column("open", Boolean, nullable=False),  # some call can still change
    Column("batch", String(64), nullable=False),
    Column("erased", Double),
    Column("data", Text, nullable=False),  # JSON
    Column("state", LargeBinary),  # sealed
    Index("toolgen_pauses_created", "created", "id"),
    Index("toolgen_pauses_tenant", "tenant", "created", "id"),
    Index("toolgen_pauses_waiting", "waiting", "created", "id"),
    Index("toolgen_pauses_tenant_waiting", "tenant", "waiting", "created", "id"),
    Index("toolgen_pauses_due", "waiting", "due"),
    Index("toolgen_pauses_open", "open", "waiting", "decided", "id"),
    Index("toolgen_pauses_expires", "expires"),
    Index("toolgen_pauses_closed", "open", "erased", "created"),
    Index("toolgen_pauses_turn", "tenant", "thread", "turn", "created"),
    Index("toolgen_pauses_requester", "tenant", "requester", "created", "id"),
    Index("toolgen_pauses_requester_waiting", "tenant", "requester", "waiting", "created", "id"),
)

calls = Table(
    "toolgen_calls",
    metadata,
    Column("pause", String(64), primary_key=True),
    Column("id", String(256), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("digest", Text, nullable=False),  # of the tool
    Column("state", String(16), nullable=False),
    Column("lease", Double),
    Column("worker", String(128)),
    Column("data", Text, nullable=False),  # JSON
    Column("arguments", LargeBinary),  # sealed
    Column("shown", LargeBinary),  # sealed: what people see and say
    Column("result", LargeBinary),  # sealed
    Index("toolgen_calls_state", "state", "lease"),
    Index("toolgen_calls_source", "source", "state", "tool", "digest"),
)

journal = Table(
    "toolgen_journal",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("thread", String(256), primary_key=True),
    Column("turn", String(256), primary_key=True),
    Column("call", String(256), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("pause", String(64)),
    Column("lease", Double, nullable=False),
    Column("worker", String(128), nullable=False),
    Column("at", Double, nullable=False),
    Column("requester", Text, nullable=False),
    Column("result", LargeBinary),  # sealed
    Index("toolgen_journal_state", "state", "lease"),
    Index("toolgen_journal_requester", "requester"),
)

remembered = Table(
    "toolgen_remembered",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double),
    Column("left", Integer),  # uses
    Column("revoked", Double),
    Column("data", Text, nullable=False),  # JSON
    Index("toolgen_remembered_tool", "tenant", "requester", "source", "tool"),
)

audit = Table(
    "toolgen_audit",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", String(64), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("pause", String(64)),
    Column("call", String(256)),
    Column("details", Text),  # JSON; None once a person's content was erased
    Column("salt", String(64)),  # of the digest of the details; erased with them
    Column("digest", String(64), nullable=False),
    Column("key", String(16), nullable=False),  # id of the key it is signed with
    Column("mac", String(64), nullable=False),  # over the entry and the one before
    Index("toolgen_audit_pause", "pause"),
)

outbox = Table(
    "toolgen_outbox",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("payload", Text, nullable=False),  # JSON
    Column("attempts", Integer, nullable=False),
    Column("next", Double, nullable=False),
    Column("done", Boolean, nullable=False),
    Index("toolgen_outbox_next", "done", "next"),
)

__all__ = ["VERSION", "audit", "calls", "journal", "meta", "metadata", "outbox", "pauses", "remembered"]
