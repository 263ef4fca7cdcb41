"""A program's own HTTP requests, through the same gate: sent, held or refused, and never kept or sent again.

Of one that waits the store has its preview and its fingerprint. Once it is approved, the very same request of the
same requester goes out when the program makes it again, claimed like every other call: once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from toolgen.approvals.binding import arguments_digest
from toolgen.approvals.model import Pause
from toolgen.approvals.names import RESERVED
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Turn
from toolgen.errors import ToolgenError
from toolgen.identity.caller import Caller
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import ClassifiedCall, Outcome, ToolCall
from toolgen.result import Refused, ToolResult
from toolgen.runtime import pausing
from toolgen.runtime.results import refused, result_of
from toolgen.runtime.resume import run_again
from toolgen.runtime.sending import unsent
from toolgen.runtime.sources import ApiWork, Before
from toolgen.runtime.submit import Batch, Ready

if TYPE_CHECKING:
    from toolgen.dispatch.answer import Whole
    from toolgen.runtime.core import Runtime
    from toolgen.tools.model import Toolset

_CALL: Final = "request"  # the id of the call that a request stands for
# What a request that was refused, or of which nothing is known, is told again: for as long as an approval would hold.
_STANDS: Final = (CallState.rejected, CallState.expired, CallState.cancelled, CallState.outcome_unknown)


@dataclass(frozen=True)
class RawWork(ApiWork):
    """A program's request; the answer is kept as it is."""

    answers: list[Whole] = field(default_factory=list, compare=False)
    transport: Any = None  # an httpx2 transport in the place of the dispatcher's connections

    async def send(self, caller: Caller | None, before: Before | None = None, call: str | None = None) -> ToolResult:
        """Send it; raises like `Dispatcher.send`."""
        return await self.dispatcher.send(
            self.request, caller=caller, before=before, keep=self.answers.append, transport=self.transport
        )


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of a request: it waits, or there is a result, and the answer where one came."""

    pause: Pause | None = None
    result: ToolResult | None = None
    answer: Whole | None = None


async def pass_on(runtime: Runtime, work: RawWork, caller: Caller | None, stands_for: Toolset | None) -> Passed:
    """Classify a request, then send it, hold it, or refuse it. `stands_for` is of one that no document declares."""
    keys = runtime.store.keys
    fingerprint = work.fingerprint(keys.subkey("fingerprint"))
    who = caller.subject if caller is not None else ""
    thread = f"{RESERVED}http:{arguments_digest(keys, {'requester': who, 'request': fingerprint})}"
    batch = Batch(runtime, caller, thread, uuid4().hex, None, new=True)
    found = _classified(runtime, work, stands_for)
    passed = await _passed(batch, found, work, fingerprint)
    if batch.entries:
        await runtime.in_store(runtime.store.record, batch.entries)
    return passed


def _classified(runtime: Runtime, work: RawWork, stands_for: Toolset | None) -> ClassifiedCall:
    tool = work.request.tool
    call = ToolCall(_CALL, tool.name, {}, tool.home.api)
    gate = runtime.gate if stands_for is None else Gate(runtime.gate.layers, [stands_for])
    (found,) = gate.classify([call]).calls
    if stands_for is None or found.outcome is not Outcome.allowed:
        return found
    # Nobody wrote down what it does: whatever the lists say of its path, a person looks at it.
    asking = Gate(runtime.asking.layers, [stands_for])
    (found,) = asking.classify([call]).calls
    return found


async def _passed(batch: Batch, found: ClassifiedCall, work: RawWork, fingerprint: str) -> Passed:
    call, result = found.call, found.result
    assert call.id is not None
    if result.outcome is Outcome.denied:
        batch.note("denied", call.id, tool=str(call.name)[:128], reason=found.reason)
        said = f"is denied: by {found.reason!r}; nothing was sent"
        return Passed(result=refused(call.name, Refused.denied, said))
    ready = await batch.asked(Ready(found, call, work, result.outcome, result.reason, fingerprint))
    if ready is not None and ready.outcome is Outcome.gated:
        return await _gated(batch, ready, work)
    if ready is not None:
        await batch.run_one(ready)
    return _ran(batch, call.id, work)


def _ran(batch: Batch, call: str, work: RawWork) -> Passed:
    return Passed(result=batch.results[call], answer=work.answers[-1] if work.answers else None)


async def _gated(batch: Batch, ready: Ready, work: RawWork) -> Passed:
    """What became of the same request before, or the pause in which it waits now.

    The pauses of one request are a chain: the turn of each is the id of the one before. Of those who ask at once one
    is kept then, and the others find it.
    """
    store = batch.runtime.store
    found = await batch.runtime.in_store(store.pauses, batch.tenant, limit=1, thread=batch.thread)
    last = found[0] if found else None
    before = await _before(batch, last, work)
    if before is not None:
        return before
    # What nobody declared is looked at each time: a remembered approval is of an operation.
    waiting = [ready] if work.request.is_undeclared else await batch.runtime.remembered.used(batch, [ready])
    while waiting:
        batch.turn = last.id if last is not None else "first"
        pause = await pausing.paused(batch, waiting, Turn())
        if pause is not None:
            return Passed(pause)
        faster = (await batch.turn_so_far()).last
        if faster is None:  # it cannot wait, and has a result that says why
            break
        before = await _before(batch, faster, work)
        if before is not None:
            return before
        last = faster
    return _ran(batch, ready.id, work)


async def _before(batch: Batch, pause: Pause | None, work: RawWork) -> Passed | None:
    """What became of the same request when it was made before; None where it is to be asked about."""
    runtime = batch.runtime
    if pause is None or pause.requester != batch.requester:  # whose it was is erased
        return None
    (call,) = pause.calls
    if call.state is CallState.pending:
        return Passed(pause)
    if call.state is CallState.approved:
        try:
            pause, late = await run_again(runtime, pause, call, batch.caller, work)
        except ToolgenError as error:
            return Passed(result=unsent(error))
        (call,) = pause.calls
        return Passed(result=late or result_of(call), answer=work.answers[-1] if work.answers else None)
    since = pause.decided or pause.due or pause.created
    recent = runtime.store.clock() <= since + call.terms.validity
    if call.state is CallState.executing or (call.state in _STANDS and recent):
        return Passed(result=result_of(call))
    return None
