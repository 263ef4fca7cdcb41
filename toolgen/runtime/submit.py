"""A batch of calls on its way: ready, classified, run or paused."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import arguments_digest, batch_fingerprint
from toolgen.approvals.model import Pause, PausedCall
from toolgen.approvals.names import LONGEST_ID, is_name
from toolgen.approvals.states import FINAL
from toolgen.approvals.store import JournalKey, Turn
from toolgen.errors import PauseConflict, ToolgenError
from toolgen.identity.caller import Caller
from toolgen.policy.outcomes import ClassifiedCall, Outcome, ToolCall
from toolgen.result import Refused, Sent, ToolResult
from toolgen.runtime import pausing
from toolgen.runtime.hooks import HookCall, tightened
from toolgen.runtime.leases import Held
from toolgen.runtime.results import outcome_state, refused, result_of
from toolgen.runtime.sending import carried_out, unsent
from toolgen.runtime.sources import unreadable
from toolgen.runtime.threads import finished

if TYPE_CHECKING:
    from toolgen.identity.keys import Keys
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.sources import Work

_INTERRUPTED: Final = "the call was interrupted: it may have been carried out; find out first"
_log = logging.getLogger("toolgen.approvals")


@dataclass(frozen=True)
class Submission:
    """What became of a batch: a result for each call that ran or cannot run, and the pause of those that wait.

    `recognised` are the ids of the calls that were paused in this turn before, whatever became of them since.
    """

    results: Mapping[str, ToolResult]
    pause: Pause | None = None
    thread: str = ""
    turn: str = ""
    recognised: frozenset[str] = frozenset()


@dataclass
class Ready:
    """One call that can be run: what it is, what it would send, what happens to it."""

    classified: ClassifiedCall
    call: ToolCall
    work: Work
    outcome: Outcome
    reason: str
    fingerprint: str
    by_hook: bool = False  # the host wants a person to look: nothing that is remembered stands in for one

    @property
    def id(self) -> str:
        assert self.call.id is not None
        return self.call.id

    def earlier(self, keys: Keys) -> list[str]:
        """The fingerprints by previous keys: what was carried out before a key was changed is not carried out again."""
        return [self.work.fingerprint(one.subkey("fingerprint")) for one in keys.all[1:]]


class _Earlier(Exception):
    """The call was carried out before; its result."""

    def __init__(self, result: ToolResult) -> None:
        self.result = result


@dataclass
class Batch:
    """One submission to a runtime. `new` where thread or turn were made for it: nothing is known of it then."""

    runtime: Runtime
    caller: Caller | None
    thread: str
    turn: str
    state: bytes | None
    new: bool = False
    results: dict[str, ToolResult] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    earlier: list[tuple[Pause, PausedCall]] = field(default_factory=list)  # of this turn, waiting since before

    @property
    def tenant(self) -> str:
        """The caller's tenant."""
        return self.runtime.tenant_of(self.caller)

    @property
    def requester(self) -> str:
        """The caller's subject; nobody's where there is none."""
        return self.caller.subject if self.caller is not None else ""

    async def run(self, calls: Sequence[ToolCall]) -> Submission:
        """Everything that becomes of the calls."""
        listed = _with_ids(calls, self.results)
        turn = Turn() if self.new else await self.turn_so_far()
        asked = self.runtime.gate.classify(listed).calls
        found = [one for one in asked if not self.recognised(one, turn)]
        known = frozenset(str(one.call.id) for one in asked) - {one.call.id for one in found}
        # All are made ready before anything is awaited: what is classified is what is resolved.
        ready = [one for each in found if (one := self._ready(each)) is not None]
        ready = [one for one in await asyncio.gather(*map(self.asked, ready)) if one is not None]
        await asyncio.gather(*(self.run_one(one) for one in ready if one.outcome is Outcome.allowed))
        waiting = [one for one in ready if one.outcome is Outcome.gated]
        waiting = waiting if self.new else [one for one in waiting if not await self._carried_out(one)]
        waiting = await self.runtime.remembered.used(self, waiting)
        pause = await pausing.paused(self, waiting, turn) or (self.earlier[-1][0] if self.earlier else None)
        for other, call in self.earlier:
            if pause is None or other.id != pause.id:
                self.results[call.id] = result_of(call)
        if self.entries:
            await self.runtime.in_store(self.runtime.store.record, self.entries)
        order = {call.id: position for position, call in enumerate(listed)}
        results = dict(sorted(self.results.items(), key=lambda one: order.get(one[0], len(order))))
        return Submission(results, pause, self.thread, self.turn, known)

    async def turn_so_far(self) -> Turn:
        """The pauses of this turn."""
        return await self.runtime.in_store(self.runtime.store.turn, self.tenant, self.thread, self.turn)

    def recognised(self, found: ClassifiedCall, turn: Turn) -> bool:
        """Whether the id of a call paused in this turn before: its result then, or its place in `earlier`."""
        known = ((pause, call) for pause in turn.all for call in pause.calls if call.id == found.call.id)
        pause, call = next(known, (None, None))
        if pause is None or call is None:
            return False
        same_source = found.result.tool is None or found.result.tool.source == call.source
        if pause.requester != self.requester or not (same_source and self._is_same(found.call, call)):
            said = f"the call id {call.id!r} stands for another call of this turn: nothing was sent"
            self.results[call.id] = ToolResult(False, Sent.not_sent, message=said)
        elif call.state in FINAL:
            self.results[call.id] = result_of(call)
        else:
            self.earlier.append((pause, call))
        return True

    def _is_same(self, asked: ToolCall, call: PausedCall) -> bool:
        """Whether a call is the one a model proposed before, with the very arguments."""
        keys, proposed = self.runtime.store.keys, call.arguments if call.proposed is None else call.proposed
        try:
            given = batch_fingerprint(keys, [(str(asked.name), {} if asked.arguments is None else asked.arguments)])
        except (TypeError, ValueError, RecursionError):
            return False
        return given == batch_fingerprint(keys, [(call.tool, proposed)])

    def _ready(self, found: ClassifiedCall) -> Ready | None:
        """A call that can be run, or None with its result."""
        call, result = found.call, found.result
        assert call.id is not None
        unread = unreadable(self.runtime.known, call.source) if result.tool is None else ""
        if unread:  # it may well be a tool of theirs
            said = f"cannot be looked up: {unread}; nothing was sent"
            self.results[call.id] = refused(call.name, Refused.error, said)
            return None
        if result.outcome is Outcome.denied or result.tool is None:
            detail = result.detail or f"by {found.reason!r}"
            said = f"is denied: {detail}; nothing was sent, and it is denied however often it is called"
            self.results[call.id] = refused(call.name, Refused.denied, said)
            digest = arguments_digest(self.runtime.store.keys, call.arguments)
            self.note("denied", call.id, tool=str(call.name)[:128], reason=found.reason, argumentsDigest=digest)
            return None
        try:
            # A copy: what the host holds may change while the call waits.
            arguments = {} if call.arguments is None else deepcopy(call.arguments)
            work = self.runtime.work(result.tool.source, result.tool.name, arguments, self.caller)
            fingerprint = work.fingerprint(self.runtime.store.keys.subkey("fingerprint"))
        except Exception as error:  # noqa: BLE001 - one call costs no other; nothing was sent
            self.results[call.id] = unsent(error)
            return None
        return Ready(found, call._replace(arguments=arguments), work, result.outcome, result.reason, fingerprint)

    async def asked(self, one: Ready) -> Ready | None:
        """The call with what the decision hook says of it, or None with its result."""
        hook, result = self.runtime.decision_hook, one.classified.result
        tool = result.tool
        if hook is None or tool is None:
            return one
        endpoint = tool.endpoint.key if tool.endpoint else None
        try:
            preview = one.work.preview()
        except Exception as error:  # noqa: BLE001 - see `_ready`
            self.results[one.id] = unsent(error)
            return None
        told = HookCall(one.id, tool.name, tool.source, endpoint, result.outcome, result.reason, preview)
        one.outcome, why = await tightened(hook, told, self.caller)
        if why:
            one.reason, one.by_hook = why, True
            about = {"tool": tool.name, "outcome": one.outcome.name, "reason": why, "fingerprint": one.fingerprint}
            self.note("hook", one.id, **about)
        if one.outcome is not Outcome.denied:
            return one
        said = f"is denied by {why}; nothing was sent"
        self.results[one.id] = refused(tool.name, Refused.denied, said)
        return None

    async def _carried_out(self, one: Ready) -> bool:
        """Whether a call that would wait ran in this turn before; its result is replayed then."""
        store = self.runtime.store
        given = self._key(one), one.fingerprint, self.requester
        earlier = one.earlier(store.keys)
        try:
            found = await self.runtime.in_store(store.carried_out, *given, earlier=earlier)
        except PauseConflict as error:
            found = ToolResult(False, Sent.not_sent, message=error.message)
        if found is not None:
            self.results[one.id] = found
        return found is not None

    def _key(self, one: Ready) -> JournalKey:
        return JournalKey(self.tenant, self.thread, self.turn, one.id)

    async def run_one(self, one: Ready) -> None:
        """Run an allowed call: a write is journaled first."""
        if one.work.is_read:
            self.results[one.id] = await carried_out(one.work, self.caller, _nothing, self._name(one))
            return
        with self.runtime.life.leases.held(Held(self._key(one))):
            await self._write(one)

    async def _write(self, one: Ready) -> None:
        store, runtime, key = self.runtime.store, self.runtime, self._key(one)
        about: dict[str, Any] = {"requester": self.requester, "worker": runtime.worker, "lease": runtime.lease()}
        about["earlier"] = one.earlier(store.keys)
        claimed = False

        def seen(earlier: ToolResult | None) -> None:
            nonlocal claimed
            claimed = earlier is None

        async def claim() -> None:
            earlier = await finished(runtime.in_store(store.claim, key, one.fingerprint, **about), seen)
            if earlier is not None:
                raise _Earlier(earlier)

        try:
            result = await carried_out(one.work, self.caller, claim, self._name(one))
        except _Earlier as known:
            result = known.result
        except ToolgenError as error:  # the store has no claim to give: another call has this id, or it is out of order
            result = ToolResult(
                False, Sent.not_sent, message=f"{error.message}; nothing was sent", refused=Refused.error
            )
        except BaseException:
            if claimed:
                await self._keep(one, ToolResult(False, Sent.unknown, message=_INTERRUPTED))
            raise
        self.results[one.id] = result
        if claimed:
            await self._keep(one, result)

    async def _keep(self, one: Ready, result: ToolResult) -> None:
        """Keep what became of a claimed call. What cannot be kept stays claimed: it is never sent again."""
        store, state = self.runtime.store, outcome_state(result)
        details = {"tool": one.call.name, "fingerprint": one.fingerprint}
        ran = Entry("ran", self.tenant, self.requester, None, one.id, {**details, "state": state.value})
        late = Entry("late", self.tenant, self.requester, None, one.id, {**details, "outcome": state.value})
        try:
            try:
                await self.runtime.in_store(store.finish, self._key(one), state, result, [ran])
            except PauseConflict:  # its lease was over before it was
                await self.runtime.in_store(store.record, [late])
        except ToolgenError as error:
            _log.warning("the result of a call could not be kept: %s", error.message)

    def _name(self, one: Ready) -> str:
        return "/".join((self.tenant, self.thread, self.turn, one.id))

    def note(self, kind: str, call: str, *, actor: str | None = None, **details: Any) -> None:
        """Remember an audit entry; they are written at the end."""
        self.entries.append(Entry(kind, self.tenant, actor or self.requester, None, call, details))


async def _nothing() -> None:
    """What a read does before it is sent."""


def _with_ids(calls: Sequence[ToolCall], results: dict[str, ToolResult]) -> list[ToolCall]:
    """The calls, each with an id of its own; of several that share one none runs, since it has one result."""
    named = [
        call if isinstance(call.id, str) and call.id else call._replace(id=f"call-{uuid4().hex}") for call in calls
    ]
    counts = Counter(str(call.id) for call in named)
    for name, count in counts.items():
        if count > 1:
            said = f"{count} calls of this batch have the id {name[:128]!r}: none of them was run"
            results[name] = ToolResult(False, Sent.not_sent, message=said)
        elif not is_name(name):
            said = f"a call id has at most {LONGEST_ID} characters, all of them printable: the call was not run"
            results[name] = ToolResult(False, Sent.not_sent, message=said)
    return [call for call in named if str(call.id) not in results]
