"""Approved calls run: once, by the requester's credential, if nothing has changed since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import gating_digest
from toolgen.approvals.model import Pause, PausedCall
from toolgen.approvals.names import RESERVED
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, JournalKey
from toolgen.errors import ArgumentsError, CallerMismatch, CredentialsError, PauseConflict, StoreError, ToolgenError
from toolgen.identity.caller import Caller
from toolgen.result import ToolResult
from toolgen.runtime.leases import Held
from toolgen.runtime.packing import requester_of
from toolgen.runtime.results import outcome_state, result_of
from toolgen.runtime.sending import carried_out
from toolgen.runtime.sources import unreadable
from toolgen.runtime.threads import finished

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.sources import Work


class _Changed(Exception):
    """Something an approval is bound to is not what it was; the text says what."""


@dataclass(frozen=True, slots=True)
class _End:
    """What became of a call. `detail` is for people and the model, `reason` for the audit log: without arguments."""

    old: CallState
    new: CallState
    detail: str = ""
    reason: str = ""
    result: ToolResult | None = None


_RAN: Final = _End(
    CallState.approved,
    CallState.not_executed,
    "a call of this id was made before in this turn, and its outcome stands",
    "carried out before",
)


async def resume(runtime: Runtime, pause_id: str, caller: Caller | None) -> Mapping[str, ToolResult]:
    """The result of each call of a pause, in order; approved ones are run now.

    Raises PauseUnknown, CallerMismatch for anybody but the requester, and PauseConflict while calls wait for
    a decision or are being run by somebody else.
    """
    tenant = runtime.tenant_of(caller)
    pause = await runtime.in_store(runtime.store.pause, pause_id, tenant)
    subject = caller.subject if caller is not None else ""
    if subject != pause.requester:
        refusal = Entry("refused", tenant, subject, pause.id, None, {"reason": "resumed by another than the requester"})
        await runtime.in_store(runtime.store.record, [refusal])
        raise CallerMismatch("a pause is resumed by the one it was made for")
    if pause.thread.startswith(RESERVED):
        raise PauseConflict(
            "what was asked for is a program's own request: it goes out when the program sends it again"
        )
    if pause.waiting:
        waiting = ", ".join(call.id for call in pause.waiting)
        raise PauseConflict(f"the pause is pending: {waiting} wait for a decision")
    for call in pause.calls:
        unread = unreadable(runtime.known, call.source) if call.state is CallState.approved else ""
        if unread:  # that it is there no more cannot be said: what is approved stays so
            raise PauseConflict(f"the pause cannot be resumed now: {unread}")
    if caller is not None and not caller.context:  # a worker's: the request was built from the context of its turn
        caller = replace(caller, context=requester_of(pause).context)
    late: dict[str, ToolResult] = {}
    for call in pause.calls:
        if call.state is CallState.approved:
            with runtime.life.leases.held(Held(_key(pause, call), pause.id)):
                result = await _run(runtime, pause, call, caller)
            late |= {call.id: result} if result is not None else {}
    pause = await runtime.in_store(runtime.store.pause, pause_id, tenant)
    if any(call.state is CallState.executing and not _lapsed(call, runtime.store.clock()) for call in pause.calls):
        raise PauseConflict("the pause is executing: somebody else is running its calls")
    return {call.id: result_of(replace(call, result=late.get(call.id, call.result))) for call in pause.calls}


def _key(pause: Pause, call: PausedCall) -> JournalKey:
    return JournalKey(pause.tenant, pause.thread, pause.turn, call.id)


async def run_again(
    runtime: Runtime, pause: Pause, call: PausedCall, caller: Caller | None, made: Work
) -> tuple[Pause, ToolResult | None]:
    """Run an approved call that was made again, as it is now: the pause afterwards, and a result that came too late."""
    with runtime.life.leases.held(Held(_key(pause, call), pause.id)):
        late = await _run(runtime, pause, call, caller, made)
    return await runtime.in_store(runtime.store.pause, pause.id, pause.tenant), late


async def _run(
    runtime: Runtime, pause: Pause, call: PausedCall, caller: Caller | None, made: Work | None = None
) -> ToolResult | None:
    """Run one approved call: claimed in the store before its first byte may leave.

    `made` is the call as it is now, and classified; without it the call is made of what is kept. Its result is given where it came too late to be kept: the claim had run out, and the outcome counts as unknown.
    """
    claimed = False

    def seen(_: Pause) -> None:
        nonlocal claimed
        claimed = True

    async def claim() -> None:
        change = _claim(runtime, call, caller)
        await finished(runtime.in_store(runtime.store.change, pause.id, pause.tenant, change), seen)

    try:
        work = _checked(runtime, pause, call, caller, made)
        result = await carried_out(work, caller, claim, f"{pause.id}/{call.id}")
    except (PauseConflict, StoreError) as error:
        if isinstance(error, StoreError):  # nothing was claimed, and the call stays approved
            raise
        await _ended(runtime, pause, call.id, _RAN)  # where nobody was faster: then it is not approved any more
        return None
    except Exception as error:  # noqa: BLE001 - whatever keeps a call from being made; the others go on
        await _ended(runtime, pause, call.id, _not_made(error))
        return None
    except BaseException:
        if claimed:  # the request may be out
            end = _End(CallState.executing, CallState.outcome_unknown, "interrupted", "interrupted")
            await _ended(runtime, pause, call.id, end)
        raise
    end = _End(CallState.executing, outcome_state(result), result=result)
    if not claimed:
        end = _End(CallState.approved, CallState.not_executed, result.message, "it could not be made ready")
    return None if await _ended(runtime, pause, call.id, end) else result


def _not_made(error: Exception) -> _End:
    """Why a call is not executed. What an error says may quote its arguments."""
    unready = f"it could not be made ready ({type(error).__name__})"
    if isinstance(error, _Changed):
        detail = reason = str(error)
    elif isinstance(error, ArgumentsError):
        detail = reason = "the arguments are not valid any more"
    else:
        detail, reason = error.message if isinstance(error, ToolgenError) else unready, unready
    state = CallState.expired if isinstance(error, _Expired) else CallState.not_executed
    return _End(CallState.approved, state, detail, reason)


class _Expired(_Changed):
    """The approval was not used in time."""


def _checked(runtime: Runtime, pause: Pause, call: PausedCall, caller: Caller | None, made: Work | None) -> Work:
    """The call made ready again, if everything its approval is bound to is as it was."""
    _check_time(runtime, pause, call)
    if gating_digest(runtime.gate) != pause.gating_digest:
        raise _Changed("the approval config has changed since")
    if made is None and runtime.is_denied(call.tool, call.source):
        raise _Changed("the call is denied by now, or its tool is gone")
    work = made or runtime.work(call.source, call.tool, call.arguments, caller)
    if work.tool_digest != call.tool_digest:
        raise _Changed("the tool has changed since")
    try:
        keys = runtime.store.keys.by_id(call.key)
    except CredentialsError:
        raise _Changed(
            "the key that it was asked for with is gone, so that nobody can tell what was approved"
        ) from None
    fingerprint = work.fingerprint(keys.subkey("fingerprint"))
    if fingerprint != call.fingerprint:
        raise _Changed("the request has changed since")
    if runtime.bound(work, fingerprint, pause.requester, pause.tenant, keys) != call.binding:
        raise _Changed("the credential, the requester or the tenant has changed since")
    return work


def _check_time(runtime: Runtime, pause: Pause, call: PausedCall) -> None:
    if pause.decided is None or runtime.store.clock() > pause.decided + call.terms.validity:
        raise _Expired("the approval was not used in time")


def _claim(runtime: Runtime, call: PausedCall, caller: Caller | None) -> Any:
    def change(pause: Pause) -> Change:
        now = pause.call(call.id)
        if now.state is not CallState.approved or now.binding != call.binding:
            raise PauseConflict(f"{call.id} is {now.state.value}")
        _check_time(runtime, pause, now)  # again: a token may have taken its time to come
        claimed = replace(now, state=CallState.executing, lease=runtime.lease(), worker=runtime.worker)
        details = {"tool": call.tool, "fingerprint": call.fingerprint, "worker": runtime.worker}
        actor = caller.subject if caller is not None else ""
        return Change(pause.with_call(claimed), (Entry("claimed", pause.tenant, actor, pause.id, call.id, details),))

    return change


async def _ended(runtime: Runtime, pause: Pause, name: str, end: _End) -> bool:
    """Keep what became of a call; False where its result came too late, which is recorded instead."""
    kept = True

    def change(now: Pause) -> Change | None:
        nonlocal kept
        call, result = now.call(name), end.result
        about: dict[str, Any] = {"tool": call.tool, "fingerprint": call.fingerprint}
        if result is not None:
            about |= {"sent": result.sent.value, "status": result.status}
        if call.state is end.old:
            ended = replace(call, state=end.new, result=result, detail=end.detail, lease=None)
            about |= {"state": end.new.value, "detail": end.reason}
            return Change(now.with_call(ended), (Entry(end.new.value, now.tenant, now.requester, now.id, name, about),))
        if end.old is not CallState.executing or result is None:
            return None
        kept = False
        entry = Entry("late", now.tenant, now.requester, now.id, name, about | {"outcome": end.new.value})
        return Change(now, (entry,))

    await runtime.in_store(runtime.store.change, pause.id, pause.tenant, change)
    return kept


def _lapsed(call: PausedCall, now: datetime) -> bool:
    return call.lease is not None and call.lease < now
