"""Approved calls run: once, by the requester's credential, if nothing has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import gating_digest
from toolgen.approvals.model import Pause, PausedCall
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change
from toolgen.errors import ArgumentsError, CallerMismatch, PauseConflict, StoreError, ToolgenError
from toolgen.identity.caller import Caller
from toolgen.result import ToolResult
from toolgen.runtime.results import outcome_state, result_of
from toolgen.runtime.sending import carried_out

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.sources import Work


class _Changed(Exception):
    """Something an approval is bound to is not what it was; the text says what."""


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
    if pause.waiting:
        waiting = ", ".join(call.id for call in pause.waiting)
        raise PauseConflict(f"the pause is pending: {waiting} wait for a decision")
    if caller is not None and not caller.context:  # a worker's: the request was built from the context of its turn
        caller = replace(caller, context=runtime.unpacked(pause).context)
    for call in pause.calls:
        if call.state is CallState.approved:
            await _run(runtime, pause, call, caller)
    pause = await runtime.in_store(runtime.store.pause, pause_id, tenant)
    if any(call.state is CallState.executing and not _lapsed(call, runtime.store.clock()) for call in pause.calls):
        raise PauseConflict("the pause is executing: somebody else is running its calls")
    return {call.id: result_of(call) for call in pause.calls}


async def _run(runtime: Runtime, pause: Pause, call: PausedCall, caller: Caller | None) -> None:
    """Run one approved call: claimed in the store before its first byte may leave."""
    claimed = False

    async def claim() -> None:
        nonlocal claimed
        write = runtime.in_store(runtime.store.change, pause.id, pause.tenant, _claim(runtime, call, caller))
        writing = asyncio.ensure_future(write)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the thread writes on: whether it claimed is known when it is done
            await asyncio.wait({writing})
            claimed = not writing.cancelled() and writing.exception() is None
            raise
        claimed = True

    try:
        work = _checked(runtime, pause, call, caller)
        result = await carried_out(work, caller, claim, f"{pause.id}/{call.id}")
    except (PauseConflict, StoreError) as error:
        if isinstance(error, StoreError):  # nothing was claimed, and the call stays approved
            raise
        return  # somebody else was faster
    except Exception as error:  # noqa: BLE001 - whatever keeps a call from being made; the others go on
        state = CallState.expired if isinstance(error, _Expired) else CallState.not_executed
        await _end(runtime, pause, call.id, CallState.approved, state, None, _why(error))
        return
    except BaseException:
        if claimed:  # the request may be out
            await _end(runtime, pause, call.id, CallState.executing, CallState.outcome_unknown, None, "interrupted")
        raise
    if claimed:
        await _end(runtime, pause, call.id, CallState.executing, outcome_state(result), result, "")
    else:
        await _end(runtime, pause, call.id, CallState.approved, CallState.not_executed, None, result.message)


def _why(error: Exception) -> str:
    """Why a call is not executed: for people, a model and the audit log, so without its arguments."""
    if isinstance(error, ArgumentsError):
        return "the arguments are not valid any more"
    if isinstance(error, ToolgenError):
        return error.message
    return str(error) if isinstance(error, _Changed) else f"it could not be made ready ({type(error).__name__})"


class _Expired(_Changed):
    """The approval was not used in time."""


def _checked(runtime: Runtime, pause: Pause, call: PausedCall, caller: Caller | None) -> Work:
    """The call made ready again, if everything its approval is bound to is as it was."""
    _check_time(runtime, pause, call)
    if gating_digest(runtime.gate) != pause.gating_digest:
        raise _Changed("the approval config has changed since")
    if runtime.is_denied(call.tool, call.source):
        raise _Changed("the call is denied by now, or its tool is gone")
    work = runtime.work(call.source, call.tool, call.arguments, caller)
    if work.tool_digest != call.tool_digest:
        raise _Changed("the tool has changed since")
    fingerprint = work.fingerprint(runtime.store.keys.subkey("fingerprint"))
    if fingerprint != call.fingerprint:
        raise _Changed("the request has changed since")
    if runtime.bound(work, fingerprint, pause.requester, pause.tenant) != call.binding:
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


async def _end(
    runtime: Runtime, pause: Pause, name: str, old: CallState, new: CallState, result: ToolResult | None, detail: str
) -> None:
    """Keep what became of a call."""

    def change(now: Pause) -> Change | None:
        call = now.call(name)
        if call.state is not old:
            return None
        ended = replace(call, state=new, result=result, detail=detail, lease=None)
        about: dict[str, Any] = {
            "tool": call.tool,
            "state": new.value,
            "detail": detail,
            "fingerprint": call.fingerprint,
        }
        if result is not None:
            about |= {"sent": result.sent.value, "status": result.status}
        return Change(now.with_call(ended), (Entry(new.value, now.tenant, pause.requester, now.id, name, about),))

    await runtime.in_store(runtime.store.change, pause.id, pause.tenant, change)


def _lapsed(call: PausedCall, now: datetime) -> bool:
    return call.lease is not None and call.lease < now
