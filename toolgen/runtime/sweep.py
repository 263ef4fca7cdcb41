"""What time does, in the background or from `toolgen approvals sweep`; many processes may do it at once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import SYSTEM, Pause
from toolgen.approvals.notify import reminders
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, Turn
from toolgen.errors import PauseConflict
from toolgen.policy.config import TimeoutPolicy
from toolgen.runtime.deciding import time_is_up

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime

# How long an approval by time is left to a process whose config made the pause, before it waits for a person.
PATIENCE: Final = timedelta(minutes=5)
RETENTION_EVERY: Final = timedelta(minutes=1)
_BATCH: Final = 100
_log = logging.getLogger("toolgen.approvals")
_Step = Callable[["Runtime", str, str, datetime], Awaitable[bool]]


async def sweep(runtime: Runtime) -> int:
    """One sweep: times that are up, claims that ran out, approvals nobody used, reminders; how much changed.

    Last the head of the audit log, with what was recorded before.
    """
    store = runtime.store
    await runtime.in_store(runtime.life.leases.renew)  # of what runs here, before it is taken for what nobody runs
    now = store.clock()
    changed = await _due(runtime, now) + await _unfinished(runtime, now)
    if runtime.callers is not None:
        done, _ = await _each(runtime, await _approved(runtime), _settled, now)
        changed += done
    changed += await runtime.in_store(store.lapse, now)
    changed += await _reminded(runtime) + await _erased(runtime, now)
    if runtime.life.heads is not None:
        await runtime.in_store(runtime.life.heads.keep)
    return changed


async def _due(runtime: Runtime, now: datetime) -> int:
    """All times that are up. Pauses that cannot be read stay due, and must not stand before the others for ever."""
    changed, skip = 0, 0
    while found := await runtime.in_store(runtime.store.due, now, _BATCH, skip):
        fired, failed = await _timed(runtime, [pause_id for pause_id, _ in found], now)
        changed += fired
        skip += len(found) - fired
        if not (fired or failed) or len(found) < _BATCH:
            break
    return changed


async def _unfinished(runtime: Runtime, now: datetime) -> int:
    """Some of what ran out, behind what cannot be read."""
    changed, skip, failed = 0, 0, 1
    while failed and (found := await runtime.in_store(runtime.store.unfinished, now, _BATCH, skip)):
        done, failed = await _each(runtime, found, _settled, now)
        changed += done
        skip += _BATCH
    return changed


async def _approved(runtime: Runtime) -> list[tuple[str, str]]:
    """The next pauses with approved calls: those whose requester is not there must not stand in the way for ever."""
    life = runtime.life
    found = await runtime.in_store(runtime.store.approved, life.worked, _BATCH)
    life.worked = found[-1][:2] if len(found) == _BATCH else None  # from the start again
    return [(pause_id, tenant) for _, pause_id, tenant in found]


async def _each(runtime: Runtime, found: list[tuple[str, str]], step: _Step, now: datetime) -> tuple[int, int]:
    """One step for each of these pauses: how many changed, and how many failed, which stops no others."""
    changed = failed = 0
    for pause_id, tenant in found:
        try:
            changed += await step(runtime, pause_id, tenant, now)
        except Exception as error:  # noqa: BLE001 - the pause stays as it is
            failed += 1
            _log.warning("pause %s could not be swept: %s", pause_id, type(error).__name__)
    return changed, failed


async def _timed(runtime: Runtime, ids: list[str], now: datetime) -> tuple[int, int]:
    """The due times of pauses have come; how many this process changed, since another one may have been faster, and
    how many failed."""

    def fire(pause: Pause, turn: Turn) -> Change | None:
        owner = runtime.life.owner(pause)
        by_approval = pause.timeout_policy is TimeoutPolicy.AUTO_APPROVE
        if by_approval and owner is None and pause.due is not None and now < pause.due + PATIENCE:
            return None
        change: Change | None = time_is_up(owner or runtime, now, turn.by_time)(pause)
        return change

    changed, failed = await runtime.in_store(runtime.store.change_each, ids, fire)
    for pause_id, error in failed.items():
        _log.warning("pause %s could not be swept: %s", pause_id, type(error).__name__)
    for pause in changed:
        runtime.told(pause, "timeout")
    return len(changed), len(failed)


async def _settled(runtime: Runtime, pause_id: str, tenant: str, now: datetime) -> bool:
    """Nobody decides this pause any more: end what ran out, run what may run."""
    store = runtime.store
    after = await runtime.in_store(store.pause, pause_id, tenant)
    changed = False
    if _ended(after, now) is not None:

        def end(current: Pause) -> Change | None:
            nonlocal changed
            change = _ended(current, now)
            changed = change is not None
            return change

        after = await runtime.in_store(store.change, pause_id, tenant, end)
        if changed:
            runtime.told(after, "ended")
    if runtime.callers is not None and any(call.state is CallState.approved for call in after.calls):
        await _worked(runtime, after)
    return changed


def _ended(pause: Pause, now: datetime) -> Change | None:
    """Claims that ran out have an unknown outcome; approvals that were not used in time are expired."""
    after, entries = pause, []
    for call in pause.calls:
        if call.state is CallState.executing and call.lease is not None and call.lease < now:
            state, detail = CallState.outcome_unknown, "the process that ran it is gone"
        elif call.state is CallState.approved and pause.decided and now > pause.decided + call.terms.validity:
            state, detail = CallState.expired, "the approval was not used in time"
        else:
            continue
        after = after.with_call(replace(call, state=state, detail=detail, lease=None))
        about = {"tool": call.tool, "state": state.value, "detail": detail}
        about |= {"fingerprint": call.fingerprint, "requester": pause.requester}
        entries.append(Entry(state.value, pause.tenant, f"{SYSTEM}sweep", pause.id, call.id, about))
    return Change(after, tuple(entries)) if entries else None


async def _worked(runtime: Runtime, pause: Pause) -> None:
    """Run approved calls for a requester who is not here, by the config the pause was made by."""
    owner = runtime.life.owner(pause)
    if owner is None or owner.callers is None or pause.waiting:
        return  # another process may have that config; if none has, the approval runs out
    try:
        caller = await owner.callers(pause.requester, pause.tenant)
        if caller is not None:
            await owner.resume(pause.id, caller=caller)
    except PauseConflict:
        return  # somebody else runs it


async def _reminded(runtime: Runtime) -> int:
    """Tell again of what is due soon, once."""
    store = runtime.store
    if runtime.life.remind is None:
        return 0
    found = await runtime.in_store(reminders, store, runtime.life.remind)
    for pause_id, tenant in found:
        runtime.told(await runtime.in_store(store.pause, pause_id, tenant), "remind")
    return len(found)


async def _erased(runtime: Runtime, now: datetime) -> int:
    """Erase what ended long ago."""
    life = runtime.life
    if life.retention is None or (life.expired is not None and now < life.expired + RETENTION_EVERY):
        return 0
    life.expired = now
    erased = await runtime.in_store(runtime.store.expire, now - life.retention)
    return erased.pauses + erased.journal
