"""Decisions, by people and by time: what they change is written at once, and nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import gating_digest
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
    Vote,
)
from toolgen.approvals.states import FINAL, CallState
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
from toolgen.runtime.hooks import HookCall, tightened
from toolgen.runtime.pausing import call_terms

if TYPE_CHECKING:
    from toolgen.identity.caller import Caller
    from toolgen.policy.outcomes import ClassifiedCall
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.sources import Work

TIMEOUT = Decider(f"{SYSTEM}timeout")


async def decide(runtime: Runtime, pause_id: str, decision: Decision, decider: Decider) -> Pause:
    """A decision on a pause: checked whole, then written whole. Nothing runs.

    Raises DecisionInvalid, DecisionForbidden, PauseUnknown and PauseConflict; nothing is changed then.
    """
    pause = await runtime.in_store(runtime.store.pause, pause_id, decider.tenant)
    try:
        found = ruling(pause, decision, decider)
        amended = {
            name: await amend(runtime, pause, name, verdict.arguments)
            for name, verdict in found.verdicts.items()
            if verdict.arguments is not None
        }
        check_amended(pause, amended.values(), decider)
    except DecisionForbidden as error:
        refusal = Entry("refused", pause.tenant, decider.subject, pause.id, None, {"reason": error.message})
        await runtime.in_store(runtime.store.record, [refusal])
        raise

    def change(now: Pause) -> Change:
        if now.revision != pause.revision:
            again = ruling(now, decision, decider)  # somebody decided meanwhile; what is left may still be ours
            seen = all(now.call(name).fingerprint == pause.call(name).fingerprint for name in found.verdicts)
            if amended or not seen or set(again.verdicts) != set(found.verdicts):
                raise PauseConflict(f"the pause has changed meanwhile; it is at revision {now.revision}")
        return _ruled(now, found, amended, decider, runtime.store.clock())

    changed = await runtime.in_store(runtime.store.change, pause_id, decider.tenant, change)
    for name, verdict in found.verdicts.items():
        await runtime.remembered.asked(changed, changed.call(name), verdict, decider)
    runtime.told(changed, "decided")
    return changed


async def amend(runtime: Runtime, pause: Pause, name: str, arguments: Mapping[str, Any] | None) -> PausedCall:
    """The call with other arguments: validated, resolved, previewed and classified again.

    Raises DecisionInvalid where they are not valid, lead elsewhere, or are denied.
    """
    call = pause.call(name)
    where = f"calls.{name}.arguments"
    if not isinstance(arguments, Mapping):
        raise DecisionInvalid(
            "the decision is not valid; nothing was changed", [Problem("arguments are an object", where)]
        )
    caller = runtime.unpacked(pause)
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
        tool_digest=work.tool_digest,
        terms=call_terms(found) if found.outcome is Outcome.gated and found.result.terms else call.terms,
        # Who approved before approved another request: their votes stay to be read, and count no more.
        votes=tuple(replace(vote, groups=()) for vote in call.votes),
    )


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


def _ruled(pause: Pause, found: Ruling, amended: Mapping[str, PausedCall], decider: Decider, now: datetime) -> Change:
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
            "note": bool(verdict.note),
            "retry": verdict.retry,
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
    return _ruled(pause, Ruling(verdicts), {}, replace(TIMEOUT, tenant=pause.tenant), now)


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
        entries.append(Entry(kind, pause.tenant, actor, pause.id, call.id, about))
    if not entries:
        return None
    after = replace(after, decided=decided or pause.decided, due=after.due if after.waiting else None)
    return Change(after, tuple(entries))
