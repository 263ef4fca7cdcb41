"""Decisions, by people and by time: what they change is written at once, and nothing is run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import arguments_digest, gating_digest
from toolgen.approvals.decide import Ruling, check_amended, kind_of, ruling, voted
from toolgen.approvals.model import (
    LARGEST_AMENDMENT,
    SYSTEM,
    Decider,
    Decision,
    Pause,
    PausedCall,
    Verdict,
    VerdictKind,
)
from toolgen.approvals.names import RESERVED
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change
from toolgen.errors import (
    ArgumentsError,
    DecisionForbidden,
    DecisionInvalid,
    PauseConflict,
    Problem,
    ToolgenError,
)
from toolgen.policy.config import TimeoutPolicy
from toolgen.policy.outcomes import Outcome, ToolCall
from toolgen.runtime.ending import ended
from toolgen.runtime.hooks import HookCall, tightened
from toolgen.runtime.packing import requester_of
from toolgen.runtime.pausing import call_terms

if TYPE_CHECKING:
    from toolgen.identity.caller import Caller
    from toolgen.identity.keys import Keys
    from toolgen.policy.outcomes import ClassifiedCall
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.sources import Work

TIMEOUT = Decider(f"{SYSTEM}timeout")
_log = logging.getLogger("toolgen.approvals")


async def decide(runtime: Runtime, pause_id: str, decision: Decision, decider: Decider) -> Pause:
    """A decision on a pause: checked whole, then written whole. Nothing runs.

    Raises DecisionInvalid, DecisionForbidden, PauseUnknown and PauseConflict; nothing is changed then.
    """
    pause = await runtime.in_store(runtime.store.pause, pause_id, decider.tenant)
    try:
        found = ruling(pause, decision, decider)
        others = {
            name: await amend(runtime, pause, name, verdict.arguments)
            for name, verdict in found.verdicts.items()
            if verdict.arguments is not None
        }
        check_amended(pause, others.values(), decider)
    except DecisionForbidden as error:
        refusal = Entry("refused", pause.tenant, decider.subject, pause.id, None, {"reason": error.message})
        await runtime.in_store(runtime.store.record, [refusal])
        raise

    def change(now: Pause) -> Change:
        if now.revision != pause.revision:
            # Somebody decided meanwhile; what is left may still be ours, unless it was amended: `ruling` refuses that.
            again = ruling(now, decision, decider)
            if others or set(again.verdicts) != set(found.verdicts):
                raise PauseConflict(f"the pause has changed meanwhile; it is at revision {now.revision}")
        return _ruled(runtime.store.keys, now, found, others, decider, runtime.store.clock())

    changed = await runtime.in_store(runtime.store.change, pause_id, decider.tenant, change)
    for name, verdict in found.verdicts.items():
        try:
            await runtime.remembered.asked(changed, changed.call(name), verdict, decider)
        except ToolgenError as error:  # it is decided; what could not be remembered is asked again
            _log.warning("an approval could not be remembered: %s", error.message)
    runtime.told(changed, "decided")
    return changed


async def amend(runtime: Runtime, pause: Pause, name: str, arguments: Mapping[str, Any] | None) -> PausedCall:
    """The call with other arguments: validated, resolved, previewed and classified again.

    Raises DecisionInvalid where they are not valid, lead elsewhere, or are denied.
    """
    call = pause.call(name)
    where = f"calls.{name}.arguments"
    if pause.thread.startswith(RESERVED):
        problem = Problem("a program's own request cannot be amended: reject it, and say what should change", where)
        raise DecisionInvalid("the decision is not valid; nothing was changed", [problem])
    if not isinstance(arguments, Mapping):
        raise DecisionInvalid(
            "the decision is not valid; nothing was changed", [Problem("arguments are an object", where)]
        )
    caller = requester_of(pause)
    try:
        _check_size(arguments)
        found = runtime.gate.classify([ToolCall(name, call.tool, dict(arguments), call.source)]).calls[0]
        if found.outcome is Outcome.denied:
            raise DecisionInvalid("the amended call is denied", [Problem(found.reason, where)])
        arguments = deepcopy(dict(arguments))
        work = runtime.work(call.source, call.tool, arguments, caller)
        found = await _hooked(runtime, call, work, found, caller)
        if found.outcome is Outcome.denied:
            raise DecisionInvalid("the amended call is denied", [Problem("the decision hook denies it", where)])
        fingerprint = work.fingerprint(runtime.store.keys.subkey("fingerprint"))
        bound = runtime.bound(work, fingerprint, pause.requester, pause.tenant)
    except DecisionInvalid:
        raise
    except ArgumentsError as error:
        problems = [replace(problem, where=f"{where}{problem.where}") for problem in error.problems]
        raise DecisionInvalid("the amended arguments are not valid; nothing was changed", problems) from None
    except ToolgenError as error:
        raise DecisionInvalid("the amended call cannot be made", [Problem(error.message, where)]) from None
    return replace(
        call,
        arguments=arguments,
        proposed=call.arguments if call.proposed is None else call.proposed,
        preview=work.preview(),
        fingerprint=fingerprint,
        binding=bound,
        key=runtime.store.keys.id,
        tool_digest=work.tool_digest,
        terms=call_terms(found) if found.outcome is Outcome.gated and found.result.terms else call.terms,
        # Who approved before approved another request: their votes stay to be read, and count no more.
        votes=tuple(replace(vote, groups=()) for vote in call.votes),
    )


async def amended(runtime: Runtime, pause_id: str, tenant: str, name: str, arguments: Mapping[str, Any]) -> Any:
    """The preview of a call with other arguments. Raises PauseUnknown, and DecisionInvalid like `amend`."""
    pause = await runtime.in_store(runtime.store.pause, pause_id, tenant)
    if name not in {call.id for call in pause.calls}:
        raise DecisionInvalid("the pause has no such call", [Problem("there is no such call", f"calls.{name}")])
    return (await amend(runtime, pause, name, arguments)).preview


async def _hooked(
    runtime: Runtime, call: PausedCall, work: Work, found: ClassifiedCall, caller: Caller
) -> ClassifiedCall:
    """What the gate says of the amended call, or the denial of the decision hook."""
    told = HookCall(call.id, call.tool, call.source, call.endpoint, found.outcome, found.reason, work.preview())
    outcome, _ = await tightened(runtime.decision_hook, told, caller)
    return found._replace(result=replace(found.result, outcome=outcome)) if outcome is Outcome.denied else found


def _check_size(arguments: Mapping[str, Any]) -> None:
    from toolgen.request.text import NotWritable, json_text

    try:
        size = len(json_text(dict(arguments)).encode("utf-8", "surrogatepass"))
    except NotWritable as fault:
        raise ArgumentsError("the amended arguments are no JSON data", [Problem(str(fault))]) from None
    if size > LARGEST_AMENDMENT:
        said = f"{size:,} bytes; amended arguments are at most {LARGEST_AMENDMENT:,}"
        raise ArgumentsError("the amended arguments are too large", [Problem(said)])


def _ruled(
    keys: Keys, pause: Pause, found: Ruling, amended: Mapping[str, PausedCall], decider: Decider, now: datetime
) -> Change:
    entries: list[Entry] = []
    after = pause
    for name, verdict in found.verdicts.items():
        call = voted(amended.get(name, pause.call(name)), verdict, decider, now)
        after = after.with_call(call)
        kind = kind_of(verdict.verdict)
        about: dict[str, Any] = {
            "tool": call.tool,
            "verdict": kind.value if kind else None,
            "state": call.state.value,
            "fingerprint": call.fingerprint,
            "argumentsDigest": arguments_digest(keys, call.arguments),
            "note": bool(verdict.note),
            "retry": verdict.retry,
            "requester": pause.requester,
            "selfApproval": decider.subject == pause.requester,
        }
        if name in amended:
            about["amends"] = pause.call(name).fingerprint
        entries.append(Entry("decided", pause.tenant, decider.subject, pause.id, name, about))
    after = replace(after, decided=now)
    if not after.waiting:
        after = replace(after, due=None)
    return Change(after, tuple(entries))


def time_is_up(runtime: Runtime, now: datetime, by_time: int) -> Any:
    """What time does to a pause whose due time has come; a function for `Store.change`."""

    def change(pause: Pause) -> Change | None:
        if pause.due is None or pause.due > now or not pause.waiting:
            return None  # extended, decided or withdrawn meanwhile
        if pause.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
            return _approved_by_time(runtime, pause, now, by_time)
        state = CallState.expired if pause.timeout_policy is TimeoutPolicy.AUTO_REJECT else CallState.cancelled
        detail = "nobody answered in time"
        return ended(pause, state, TIMEOUT.subject, detail, "timeout", only=CallState.pending, decided=now)

    return change


def _approved_by_time(runtime: Runtime, pause: Pause, now: datetime, by_time: int) -> Change:
    most = runtime.gate.max_auto_approvals_per_turn
    may = all(
        not call.destructive and not call.terms.approvers and call.terms.allow_self_approval for call in pause.waiting
    )
    current = pause.gating_digest == gating_digest(runtime.gate)
    if not may or not current or by_time + len(pause.waiting) > most:
        why = (
            "too many calls of this turn were approved by time" if may and current else "it is not for time to approve"
        )
        waits = replace(pause, due=None, timeout_policy=TimeoutPolicy.WAIT_INDEFINITELY)
        entry = Entry("guard", pause.tenant, TIMEOUT.subject, pause.id, None, {"reason": why})
        return Change(waits, (entry,))
    verdicts = {call.id: Verdict(VerdictKind.approved) for call in pause.waiting}
    decider = replace(TIMEOUT, tenant=pause.tenant)
    return _ruled(runtime.store.keys, pause, Ruling(verdicts), {}, decider, now)
