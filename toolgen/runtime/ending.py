"""Calls that are over without having run, by a person or since their tool changed; and due times that move."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import Pause, VerdictKind, Vote
from toolgen.approvals.states import FINAL, CallState
from toolgen.approvals.store import Change
from toolgen.errors import PauseConflict, ToolgenError, UsageError
from toolgen.runtime.sources import ApiSource

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime
    from toolgen.tools.model import Toolset

_log = logging.getLogger("toolgen.approvals")


def ended(
    pause: Pause,
    state: CallState,
    actor: str,
    detail: str,
    kind: str,
    *,
    only: CallState | None = None,
    calls: frozenset[str] | None = None,
    decided: datetime | None = None,
) -> Change | None:
    """Calls that are over without having run: all that can be, those in one state, or the named ones."""
    entries: list[Entry] = []
    after = pause
    for call in pause.calls:
        movable = call.state in (CallState.pending, CallState.approved) if only is None else call.state is only
        if call.state in FINAL or not movable or (calls is not None and call.id not in calls):
            continue
        becomes = state
        if state is CallState.not_executed and call.state is CallState.pending:
            becomes = CallState.cancelled
        votes = call.votes
        if decided is not None:  # by the system, in the place of a person
            votes = (*votes, Vote(actor, VerdictKind.rejected, decided))
        after = after.with_call(replace(call, state=becomes, detail=detail, votes=votes))
        about = {"tool": call.tool, "state": becomes.value, "detail": detail}
        about |= {"fingerprint": call.fingerprint, "requester": pause.requester}
        entries.append(Entry(kind, pause.tenant, actor, pause.id, call.id, about))
    if not entries:
        return None
    after = replace(after, decided=decided or pause.decided, due=after.due if after.waiting else None)
    return Change(after, tuple(entries))


async def cancel(runtime: Runtime, pause_id: str, tenant: str, actor: str, detail: str) -> Pause:
    """End what waits or was approved. Raises PauseUnknown, and PauseConflict where nothing can be ended any more."""

    def change(pause: Pause) -> Change:
        made = ended(pause, CallState.cancelled, actor, detail, "cancelled")
        if made is None:
            raise PauseConflict("nothing of this pause can be cancelled any more")
        return made

    changed = await runtime.in_store(runtime.store.change, pause_id, tenant, change)
    runtime.told(changed, "cancelled")
    return changed


async def extend(runtime: Runtime, pause_id: str, tenant: str, until: datetime | None, actor: str) -> Pause:
    """Move the due time. Raises UsageError, PauseUnknown, and PauseConflict where nothing waits any more."""
    if until is not None and until.tzinfo is None:
        raise UsageError("a due time is a time with a time zone")

    def change(pause: Pause) -> Change:
        if not pause.waiting:
            raise PauseConflict("nothing of this pause waits any more")
        details = {"due": until.isoformat() if until else None}
        return Change(replace(pause, due=until), (Entry("extended", pause.tenant, actor, pause.id, None, details),))

    changed = await runtime.in_store(runtime.store.change, pause_id, tenant, change)
    runtime.told(changed, "extended")
    return changed


async def reload(runtime: Runtime, toolset: Toolset) -> list[str]:
    """Take a new toolset, and end what waits or was approved for tools that changed; the ids of those pauses.

    Raises UsageError for an API that no dispatcher has. A pause that cannot be read is left to `resume`, which looks
    at the digest of a tool, too.
    """
    owner = next((one for one in runtime.known if isinstance(one, ApiSource) and one.name == toolset.api), None)
    if owner is None:
        raise UsageError(f"no dispatcher of this runtime has the API {toolset.api!r}")
    owner.dispatcher.reload(toolset)
    digests = {tool.name: tool.digest for tool in toolset.tools}
    ids: list[str] = []
    for pause_id, tenant in await runtime.in_store(runtime.store.outdated, toolset.api, digests):
        try:
            changed = await runtime.in_store(runtime.store.change, pause_id, tenant, _voided(toolset.api, digests))
        except ToolgenError as error:
            _log.warning("pause %s could not be voided: %s", pause_id, type(error).__name__)
            continue
        runtime.told(changed, "voided")
        ids.append(pause_id)
    await runtime.remembered.void(toolset.api, digests)
    return ids


def _voided(api: str, digests: Mapping[str, str]) -> Callable[[Pause], Change | None]:
    def change(pause: Pause) -> Change | None:
        changed = frozenset(c.id for c in pause.calls if c.source == api and digests.get(c.tool) != c.tool_digest)
        detail = "the tool has changed since"
        return ended(pause, CallState.not_executed, "system:reload", detail, "voided", calls=changed)

    return change
