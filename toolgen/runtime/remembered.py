"""Approvals that are remembered: what a person allows again, how far, how often and until when.

They are consulted for calls that are gated, never for denied or destructive ones, and hold for the requester,
tenant, tool and approval config they were given for.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import gating_digest
from toolgen.approvals.decide import kind_of
from toolgen.approvals.model import Decider, Pause, PausedCall, Remember, Scope, Verdict, VerdictKind, stamp
from toolgen.approvals.names import RESERVED
from toolgen.approvals.rows import moment, seconds
from toolgen.approvals.states import CallState
from toolgen.approvals.tables import remembered
from toolgen.errors import PauseUnknown

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolgen.identity.keys import Keys
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.submit import Batch


@dataclass(frozen=True, slots=True)
class Kept:
    """A remembered approval, as people list it."""

    id: str
    tenant: str
    requester: str
    source: str
    tool: str
    scope: Scope
    fields: tuple[str, ...]
    owner: str
    created: datetime
    until: datetime | None
    left: int | None
    revoked: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "id": self.id,
            "tenant": self.tenant,
            "requester": self.requester,
            "source": self.source,
            "tool": self.tool,
            "scope": self.scope.value,
            "fields": list(self.fields),
            "owner": self.owner,
            "created": stamp(self.created),
            "until": stamp(self.until) if self.until else None,
            "usesLeft": self.left,
            "revoked": stamp(self.revoked) if self.revoked else None,
        }


class Remembered:
    """The remembered approvals of a runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def asked(self, pause: Pause, call: PausedCall, verdict: Verdict, decider: Decider) -> None:
        """Remember an approval that a decision asks to be."""
        wish = verdict.remember
        allowed = kind_of(verdict.verdict) is VerdictKind.approved and call.state is CallState.approved
        if wish is None or not allowed or call.destructive or _is_blind(wish.scope, pause.thread):
            return
        await self._runtime.in_store(self._keep, pause, call, wish, decider)

    async def used(self, batch: Batch, waiting: Sequence[Any]) -> list[Any]:
        """Run the waiting calls that a remembered approval covers; the others."""
        left = []
        for one in waiting:
            found = None if one.by_hook else await self._runtime.in_store(self._use, batch, one)
            if found is None:
                left.append(one)
                continue
            await batch.run_one(one)
        return left

    async def void(self, source: str, digests: Mapping[str, str]) -> None:
        """Revoke what was remembered for tools that changed."""
        await self._runtime.in_store(self._void, source, digests)

    async def listed(self, *, tenant: str | None = None, requester: str | None = None) -> list[Kept]:
        """The remembered approvals, the newest first; revoked and used-up ones too."""
        return await self._runtime.in_store(self._list, tenant, requester)

    async def revoke(self, id: str, *, actor: str, tenant: str) -> None:
        """End a remembered approval. Raises PauseUnknown for one that is not there."""
        await self._runtime.in_store(self._revoke, id, actor, tenant)

    # In the store

    def _keep(self, pause: Pause, call: PausedCall, wish: Remember, decider: Decider) -> None:
        from sqlalchemy import insert

        store, scope = self._runtime.store, Scope(wish.scope)
        keys = store.keys.by_id(call.key)
        now = store.clock()
        data = {
            "scope": scope.value,
            "fields": sorted(wish.fields),
            "owner": decider.subject,
            "covers": _covers(keys, scope, wish.fields, call.fingerprint, call.arguments),
            "toolDigest": call.tool_digest,
            "gating": pause.gating_digest,  # who decides need not know the config
        }
        row = {
            "id": uuid4().hex,
            "tenant": pause.tenant,
            "requester": pause.requester,
            "source": call.source,
            "tool": call.tool,
            "created": seconds(now),
            "expires": seconds(wish.until),
            "left": wish.uses,
            "revoked": None,
            "data": json.dumps(data),
        }
        about = {"tool": call.tool, "scope": scope.value, "fields": sorted(wish.fields), "remembered": row["id"]}
        entry = Entry("remembered", pause.tenant, decider.subject, pause.id, call.id, about)
        with store.database.change() as connection:
            connection.execute(insert(remembered).values(**row))
            store.record_in(connection, [entry])

    def _use(self, batch: Batch, one: Any) -> str | None:
        """Use up one remembered approval that covers a call; its id, or None."""
        from sqlalchemy import select, update

        store, tool = self._runtime.store, one.classified.result.tool
        if tool is None or tool in self._runtime.gate.destructive or not batch.requester:
            return None
        now = store.clock().timestamp()
        same = {"tenant": batch.tenant, "requester": batch.requester, "source": tool.source, "tool": tool.name}
        query = select(remembered).where(*(remembered.c[name] == value for name, value in same.items()))
        with store.database.change() as connection:
            query = query.where(remembered.c.revoked.is_(None)).order_by(remembered.c.id)
            for row in connection.execute(query).mappings().all():
                data = json.loads(row["data"])
                over = (row["expires"] is not None and row["expires"] <= now) or row["left"] == 0
                current = data["toolDigest"] == one.work.tool_digest and data["gating"] == gating_digest(
                    self._runtime.gate
                )
                if (
                    over
                    or not current
                    or _is_blind(data["scope"], batch.thread)
                    or not any(_is_covered(keys, data, one) for keys in store.keys.all)
                ):
                    continue
                held = query.where(remembered.c.id == row["id"]).with_for_update()
                if connection.execute(held).first() is None:
                    continue  # revoked meanwhile
                if row["left"] is not None:
                    fewer = update(remembered).where(remembered.c.id == row["id"], remembered.c.left > 0)
                    if connection.execute(fewer.values(left=remembered.c.left - 1)).rowcount != 1:
                        continue
                about = {"tool": tool.name, "remembered": row["id"], "fingerprint": one.fingerprint}
                store.record_in(connection, [Entry("allowed", batch.tenant, batch.requester, None, one.id, about)])
                return str(row["id"])
        return None

    def _void(self, source: str, digests: Mapping[str, str]) -> None:
        from sqlalchemy import select

        store = self._runtime.store
        query = select(remembered).where(remembered.c.source == source, remembered.c.revoked.is_(None))
        with store.database.change() as connection:
            found = connection.execute(query.order_by(remembered.c.id)).mappings().all()
            changed = [one for one in found if digests.get(one["tool"]) != json.loads(one["data"])["toolDigest"]]
            why = "the tool has changed since"
            # Recorded last: whoever holds the log waits for no row.
            store.record_in(connection, [self._end(connection, one, "system:reload", why) for one in changed])

    def _list(self, tenant: str | None, requester: str | None) -> list[Kept]:
        from sqlalchemy import select

        query = select(remembered).order_by(remembered.c.created.desc())
        query = query if tenant is None else query.where(remembered.c.tenant == tenant)
        query = query if requester is None else query.where(remembered.c.requester == requester)
        with self._runtime.store.database.read() as connection:
            return [_kept(row) for row in connection.execute(query).mappings()]

    def _revoke(self, id: str, actor: str, tenant: str) -> None:
        from sqlalchemy import select

        query = select(remembered).where(remembered.c.id == id, remembered.c.tenant == tenant)
        store = self._runtime.store
        with store.database.change() as connection:
            row = connection.execute(query).mappings().first()
            if row is None:
                raise PauseUnknown(f"there is no remembered approval {id!r}")
            if row["revoked"] is None:
                store.record_in(connection, [self._end(connection, row, actor, "revoked")])

    def _end(self, connection: Connection, row: Mapping[Any, Any], actor: str, why: str) -> Entry:
        from sqlalchemy import update

        store = self._runtime.store
        now = store.clock().timestamp()
        connection.execute(update(remembered).where(remembered.c.id == row["id"]).values(revoked=now))
        about = {"tool": row["tool"], "remembered": row["id"], "reason": why}
        return Entry("revoked", row["tenant"], actor, None, None, about)


def _kept(row: Mapping[Any, Any]) -> Kept:
    data = json.loads(row["data"])
    created = moment(row["created"])
    assert created is not None
    return Kept(
        id=row["id"],
        tenant=row["tenant"],
        requester=row["requester"],
        source=row["source"],
        tool=row["tool"],
        scope=Scope(data["scope"]),
        fields=tuple(data["fields"]),
        owner=data["owner"],
        created=created,
        until=moment(row["expires"]),
        left=row["left"],
        revoked=moment(row["revoked"]),
    )


def _is_blind(scope: Scope | str, thread: str) -> bool:
    """Whether a scope speaks of arguments that nobody knows: those of a program's own request."""
    return Scope(scope) is Scope.fields and thread.startswith(RESERVED)


def _is_covered(keys: Keys, data: Mapping[str, Any], one: Any) -> bool:
    fingerprint = one.work.fingerprint(keys.subkey("fingerprint"))
    covers = _covers(keys, Scope(data["scope"]), data["fields"], fingerprint, one.call.arguments)
    return hmac.compare_digest(covers, data["covers"])


def _covers(keys: Keys, scope: Scope, fields: Sequence[str], fingerprint: str, arguments: Mapping[str, Any]) -> str:
    """The keyed digest of what is covered. An argument that is not given is another thing than any that is."""
    if scope is Scope.exact:
        covered: Any = fingerprint
    else:
        covered = (
            [[name, name in arguments, arguments.get(name)] for name in sorted(fields)] if scope is Scope.fields else []
        )
    text = json.dumps(["remembered", scope.value, covered], sort_keys=True, separators=(",", ":"))
    return hmac.new(keys.subkey("fingerprint"), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
