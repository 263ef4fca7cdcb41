"""The pause of a batch: one for everything in it that waits, unless its turn has paused too often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import arguments_digest, batch_fingerprint, gating_digest
from toolgen.approvals.model import LARGEST_ARGUMENTS, SYSTEM, CallTerms, Pause, PausedCall
from toolgen.approvals.store import Turn
from toolgen.errors import PauseConflict
from toolgen.policy.config import NoProgress, TimeoutPolicy
from toolgen.policy.outcomes import Classification, ClassifiedCall, Outcome
from toolgen.policy.terms import BatchTerms
from toolgen.request.text import NotWritable, json_text
from toolgen.result import Refused
from toolgen.runtime.packing import packed
from toolgen.runtime.results import refused
from toolgen.runtime.sending import unsent

if TYPE_CHECKING:
    from toolgen.identity.keys import Keys
    from toolgen.runtime.submit import Batch, Ready

LONGEST_REASON = 500  # characters
_REASON = "These calls need approval: {toolNames}"


async def paused(batch: Batch, waiting: Sequence[Ready], turn: Turn) -> Pause | None:
    """The pause of the calls that wait, kept in the store; None where none of them can, each has a result then."""
    runtime = batch.runtime
    fitting = [one for one in waiting if _fits(batch, one)]
    if fitting and len(turn.all) >= runtime.gate.max_pauses_per_turn:
        for one in fitting:
            said = "is denied: this turn has paused too often; nothing was sent, do not call it again in this turn"
            batch.results[one.id] = refused(one.call.name, Refused.denied, said)
            batch.note("guard", one.id, actor=f"{SYSTEM}pause-cap", tool=one.call.name)
        return None
    asked = [(one, call) for one in map(_with_terms, [batch] * len(fitting), fitting) if (call := _call(batch, one))]
    if not asked:
        return None
    ready, calls = zip(*asked, strict=True)
    pause = _unstuck(batch, _made(batch, ready, calls, turn))
    if pause is None:
        return None
    try:
        await runtime.in_store(runtime.store.add, pause, [_entry(runtime.store.keys, pause), *batch.entries])
    except PauseConflict:  # the same batch was submitted twice at once, and the other was faster
        again = await batch.turn_so_far()
        known = [batch.recognised(one.classified, again) for one in ready]
        if not all(known):
            raise
        return None
    batch.entries.clear()
    runtime.told(pause, "paused")
    return pause


def call_terms(found: ClassifiedCall) -> CallTerms:
    """What holds for one waiting call."""
    terms = found.result.terms
    if terms is None:
        return CallTerms()
    rule = terms.rule.match.text if terms.rule is not None else None
    return CallTerms(terms.approvers, terms.allow_self_approval, terms.approval_validity, rule)


def _fits(batch: Batch, one: Ready) -> bool:
    """Whether the arguments of a call can be kept whole; they are never cut."""
    try:
        size = len(json_text(dict(one.call.arguments)).encode("utf-8", "surrogatepass"))
    except NotWritable as fault:
        batch.results[one.id] = unsent(fault)
        return False
    if size <= LARGEST_ARGUMENTS:
        return True
    said = (
        f"is denied: its arguments are {size:,} bytes, and of a call that waits at most {LARGEST_ARGUMENTS:,} are kept"
    )
    batch.results[one.id] = refused(one.call.name, Refused.denied, f"{said}; nothing was sent")
    batch.note("guard", one.id, actor=f"{SYSTEM}size-cap", tool=one.call.name)
    return False


def _with_terms(batch: Batch, one: Ready) -> Ready:
    """A call that only the decision hook has wait gets the terms it would have if the config did."""
    if one.classified.outcome is not Outcome.gated:
        (one.classified,) = batch.runtime.asking.classify([one.call._replace(source=_source(one))]).calls
    return one


def _source(one: Ready) -> str | None:
    tool = one.classified.result.tool
    return tool.source if tool is not None else one.call.source


def _call(batch: Batch, one: Ready) -> PausedCall | None:
    tool, runtime = one.classified.result.tool, batch.runtime
    assert tool is not None
    try:
        return PausedCall(
            id=one.id,
            tool=tool.name,
            source=tool.source,
            endpoint=tool.endpoint.key if tool.endpoint else None,
            reason=one.reason,
            terms=call_terms(one.classified),
            preview=one.work.preview(),
            fingerprint=one.fingerprint,
            binding=runtime.bound(one.work, one.fingerprint, batch.requester, batch.tenant),
            tool_digest=one.work.tool_digest,
            arguments=one.call.arguments,
            key=runtime.store.keys.id,
            destructive=tool in runtime.gate.destructive or tool.is_destructive,
        )
    except Exception as error:  # noqa: BLE001 - such as a credential that is not there: nobody is asked then
        batch.results[one.id] = unsent(error)
        return None


def _made(batch: Batch, ready: Sequence[Ready], calls: Sequence[PausedCall], turn: Turn) -> Pause:
    runtime, last = batch.runtime, turn.last
    now = runtime.store.clock()
    # Of what waits, not of all that is gated: a call that cannot wait has no say.
    terms = Classification(tuple(one.classified for one in ready), runtime.gate.layers).terms or BatchTerms()
    by_hook = any(one.by_hook for one in ready)
    if by_hook and terms.timeout_policy is TimeoutPolicy.AUTO_APPROVE:  # the host wants a person to look
        terms = replace(terms, timeout_policy=TimeoutPolicy.WAIT_INDEFINITELY, approval_timeout=None)
    timeout = terms.approval_timeout
    names = ", ".join(dict.fromkeys(call.tool for call in calls))
    batches = [batch_fingerprint(keys, [(one.tool, one.arguments) for one in calls]) for keys in runtime.store.keys.all]
    repeated = last is not None and last.batch in batches and _by_system(last)
    again = last is not None and any(call.retry for call in last.calls)
    return Pause(
        id=uuid4().hex,
        tenant=batch.tenant,
        thread=batch.thread,
        turn=batch.turn,
        requester=batch.requester,
        created=now,
        calls=tuple(calls),
        gating_digest=gating_digest(runtime.gate),
        batch=batches[0],
        reason=_text(terms.pause_reason or _REASON, names) or "",
        message=_text(terms.pending_message, names),
        rule=terms.rule.match.text if terms.rule is not None else None,
        due=now + timeout if timeout is not None else None,
        timeout_policy=terms.timeout_policy if timeout is not None else TimeoutPolicy.WAIT_INDEFINITELY,
        executed=tuple(name for name, result in batch.results.items() if result.status or result.ok),
        round=last.round + 1 if last is not None and again else 0,
        unattended=last.unattended + 1 if last is not None and repeated else 0,
        state=packed(batch.caller, batch.state),
    )


def _text(text: str | None, names: str) -> str | None:
    return text.replace("{toolNames}", names)[:LONGEST_REASON] if text else None


def _unstuck(batch: Batch, pause: Pause) -> Pause | None:
    """The pause; where the system keeps deciding the same batch, one that waits for a person, or none."""
    gate = batch.runtime.gate
    if pause.unattended < 2 and not (pause.unattended and pause.unattended >= gate.max_auto_approvals_per_turn):
        return pause
    what = gate.on_no_progress
    for call in pause.calls:
        batch.note("guard", call.id, actor=f"{SYSTEM}no-progress", action=what.value, tool=call.tool)
    if what is NoProgress.WAIT_FOR_HUMAN:
        return replace(pause, due=None, timeout_policy=TimeoutPolicy.WAIT_INDEFINITELY)
    why, said = (
        (Refused.rejected, "was rejected") if what is NoProgress.AUTO_REJECT else (Refused.cancelled, "was cancelled")
    )
    for call in pause.calls:
        told = (
            f"{said}: the same calls were decided without a person again and again; nothing was sent, do something else"
        )
        batch.results[call.id] = refused(call.tool, why, told)
    return None


def _by_system(pause: Pause) -> bool:
    """Whether nobody but the system decided a pause."""
    votes = [vote for call in pause.calls for vote in call.votes]
    return bool(votes) and all(vote.decider.startswith(SYSTEM) for vote in votes)


def _entry(keys: Keys, pause: Pause) -> Entry:
    calls = [
        {
            "id": call.id,
            "tool": call.tool,
            "source": call.source,
            "endpoint": call.endpoint,
            "reason": call.reason,
            "rule": call.terms.rule,
            "argumentsDigest": arguments_digest(keys, call.arguments),
            "fingerprint": call.fingerprint,
        }
        for call in pause.calls
    ]
    return Entry("paused", pause.tenant, pause.requester, pause.id, None, {"calls": calls})
