"""The runtime: what a model asks for is validated, resolved and classified; then it runs, waits, or does not.

The only caller of a source. Deciding never executes: an approved call runs in `resume`, for its requester.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import uuid4

from toolgen.approvals.audit import Entry
from toolgen.approvals.binding import binding, gating_digest
from toolgen.approvals.model import LARGEST_STATE, Decider, Decision, Pause, PausedCall
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, Store
from toolgen.approvals.telemetry import decided as decision_time
from toolgen.errors import DecisionInvalid, PauseConflict, Problem, RequestError, UsageError
from toolgen.identity.caller import DEFAULT_TENANT, Caller, current_caller
from toolgen.policy.config import ApprovalConfig, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome, ToolCall
from toolgen.result import ToolResult
from toolgen.runtime import deciding
from toolgen.runtime import resume as resuming
from toolgen.runtime.hooks import DecisionHook
from toolgen.runtime.life import Life
from toolgen.runtime.remembered import Remembered
from toolgen.runtime.sources import ApiSource, Known, Source, Work, known_sources, listed
from toolgen.runtime.submit import LONGEST_ID, Batch, Submission, is_name
from toolgen.runtime.threads import in_thread

if TYPE_CHECKING:
    from toolgen.dispatch.http import Dispatcher
    from toolgen.dispatch.webhook import Webhook
    from toolgen.identity.keys import Keys
    from toolgen.runtime.notices import Notices
    from toolgen.runtime.sync import Sync
    from toolgen.tools.model import Toolset

T = TypeVar("T")
Config = ApprovalConfig | Sequence[ApprovalConfig | None] | None
Callers = Callable[[str, str], Awaitable[Caller | None]]
OnChange = Callable[[Pause, str], None]
LEASE: Final = timedelta(minutes=5)  # how long a claim holds, beside the longest time an API has for an answer
_log = logging.getLogger("toolgen.approvals")


class Runtime:
    """Runs a model's calls by an approval config; see docs/hitl.md for the life of a pause.

    `sources` are dispatchers (each of their toolsets is a source), functions and other sources. `config`
    is one config, or several in layers; None lets reads run and writes wait. `store` is a Store or the URL
    of one; None keeps everything in memory. `decision_hook` may make an outcome stricter. `callers`
    gives the requester's Caller by (subject, tenant), so that approved calls run without waiting for them.
    `on_change` is called in the event loop with every pause that is made, decided, ended or changed through this
    runtime, and with what happened to it: `paused`, `decided`, `timeout`, `remind`, `resumed`, `cancelled`, ...
    What it raises is logged and nothing else.

    `webhook` (a URL or a Webhook) is told of what happens to every pause of the store, in whatever process;
    `webhook_previews` adds the redacted previews of the calls. `remind` is how long before its due time a pause
    is told of again, `retention` how long a pause is kept after it ended. Due times, reminders, webhooks and
    retention are looked after in the background inside `async with`; `background=False` leaves them to `sweep`.

    Raises RegistrationError for sources whose tools could be taken for one another's, StoreError and
    CredentialsError for a store that cannot be used.
    """

    def __init__(
        self,
        sources: Iterable[Dispatcher | Source] | Dispatcher | Source,
        config: Config = None,
        *,
        store: Store | str | None = None,
        key: Keys | None = None,
        decision_hook: DecisionHook | None = None,
        callers: Callers | None = None,
        on_change: OnChange | None = None,
        webhook: Webhook | str | None = None,
        webhook_previews: bool = False,
        remind: timedelta | None = None,
        retention: timedelta | None = None,
        background: bool = True,
    ) -> None:
        self.known = known_sources(sources)
        self._config = [config] if config is None or isinstance(config, ApprovalConfig) else list(config)
        self._listed = listed(self.known)
        self._gate = Gate(self._config, self._listed)
        owns = not isinstance(store, Store)
        self.store = store if isinstance(store, Store) else Store(store, key)
        if owns:
            weakref.finalize(self.store, self.store.database.close)
        self.decision_hook = decision_hook
        self.callers = callers
        self.worker = f"{platform.node()[:60]}/{os.getpid()}/{uuid4().hex[:8]}"
        self.remembered = Remembered(self)
        self._on_change = [on_change] if on_change is not None else []
        self.life = Life(
            self,
            background=background,
            remind=remind,
            retention=retention,
            notices=_notices(self.store, webhook, webhook_previews),
            owns_store=owns,
        )

    @property
    def gate(self) -> Gate:
        """The gate of these layers over the toolsets as they are now, whoever reloaded one."""
        current = listed(self.known)
        if any(new is not old for new, old in zip(current, self._listed, strict=True)):
            self._gate, self._listed = Gate(self._config, current), current
        return self._gate

    @property
    def asking(self) -> Gate:
        """The same with everything waiting: the terms of a call that only the decision hook has wait."""
        everything: dict[str, Any] = {"require_approval": None, "exempt": (), "unmatched": Unmatched.require}
        return Gate([replace(one or ApprovalConfig(), **everything) for one in self._config], listed(self.known))

    @property
    def webhook_secret(self) -> str | None:
        """What the receiver of the webhook checks signatures with: `whsec_` and base64."""
        return self.life.notices.secret if self.life.notices is not None else None

    def on_change(self, hook: OnChange) -> None:
        """Call one hook more with every pause that changes; see the class."""
        self._on_change.append(hook)

    # What people call

    async def submit(
        self,
        calls: Iterable[ToolCall],
        *,
        caller: Caller | None = None,
        thread: str | None = None,
        turn: str | None = None,
        state: bytes | None = None,
    ) -> Submission:
        """Run what may run, and pause what a person has to approve.

        The caller is the one given, else the one bound to this turn. `thread` and `turn` tell a batch that
        is submitted again from a new one: omitted ones are made fresh, and nothing is recognised then.
        `state` is the host's own, kept encrypted with the pause, at most 2,000,000 bytes.
        """
        if state is not None and len(state) > LARGEST_STATE:
            raise UsageError(f"the state of a pause is at most {LARGEST_STATE:,} bytes")
        for name, text in (("thread", thread), ("turn", turn)):
            if text and not is_name(text):
                raise UsageError(f"a {name} is a text of at most {LONGEST_ID} characters, all of them printable")
        caller = caller if caller is not None else current_caller()
        new = not (thread and turn)
        batch = Batch(self, caller, thread or uuid4().hex, turn or uuid4().hex, state, new)
        return await batch.run(list(calls))

    async def decide(self, pause_id: str, decision: Decision, *, decider: Decider) -> Pause:
        """A person's answer; nothing runs. `decider` comes from the host's authenticator, never from a request's body.

        Raises DecisionInvalid, DecisionForbidden, PauseUnknown and PauseConflict; nothing is changed then.
        """
        return await deciding.decide(self, pause_id, decision, decider)

    async def amended(
        self, pause_id: str, call_id: str, arguments: Mapping[str, Any], *, tenant: str = DEFAULT_TENANT
    ) -> Any:
        """The preview of a call with other arguments, before anybody approves it. Raises like `decide`."""
        pause = await self.in_store(self.store.pause, pause_id, tenant)
        if call_id not in {call.id for call in pause.calls}:
            raise DecisionInvalid("the pause has no such call", [Problem("there is no such call", f"calls.{call_id}")])
        return (await deciding.amend(self, pause, call_id, arguments)).preview

    async def resume(
        self, pause_id: str, *, caller: Caller | None = None, tenant: str | None = None
    ) -> Mapping[str, ToolResult]:
        """Run what was approved, with the requester's credential, and give the result of each call by id.

        Without a caller the one bound to this turn counts, else `callers` is asked for the requester.
        Raises PauseUnknown, CallerMismatch, and PauseConflict while calls wait or are being run elsewhere.
        """
        caller = caller if caller is not None else current_caller()
        if caller is None and self.callers is not None:
            pause = await self.in_store(self.store.pause, pause_id, tenant or DEFAULT_TENANT)
            caller = await self.callers(pause.requester, pause.tenant)
            if caller is None:
                raise PauseConflict("there is no caller for the requester of this pause")
        results = await resuming.resume(self, pause_id, caller)
        self.told(await self.in_store(self.store.pause, pause_id, self.tenant_of(caller)), "resumed")
        return results

    async def wait(
        self, pause_id: str, *, caller: Caller | None = None, timeout: float | None = None
    ) -> Mapping[str, ToolResult]:
        """Wait until every call has its verdict, then `resume`. Raises TimeoutError after so many seconds.

        A call that another process is running is waited for as well. What is being run here is not cut off.
        """
        caller = caller if caller is not None else current_caller()
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while True:
            async with asyncio.timeout_at(deadline):
                pause = await self._settled(pause_id, self.tenant_of(caller))
            try:
                return await self.resume(pause_id, caller=caller)
            except PauseConflict:
                now = await self.in_store(self.store.pause, pause_id, self.tenant_of(caller))
                if now.revision == pause.revision:
                    raise  # nobody else was faster: it is something that waiting does not change

    async def cancel(self, pause_id: str, *, actor: str, tenant: str = DEFAULT_TENANT, reason: str = "") -> Pause:
        """End what waits or was approved and did not run. Raises PauseUnknown, and PauseConflict where nothing can be."""
        detail = reason or "cancelled"

        def change(pause: Pause) -> Change:
            made = deciding.ended(pause, CallState.cancelled, actor, detail, "cancelled")
            if made is None:
                raise PauseConflict("nothing of this pause can be cancelled any more")
            return made

        changed = await self.in_store(self.store.change, pause_id, tenant, change)
        self.told(changed, "cancelled")
        return changed

    async def extend(self, pause_id: str, until: datetime | None, *, actor: str, tenant: str = DEFAULT_TENANT) -> Pause:
        """Move the due time; None waits without end. Raises PauseUnknown, and PauseConflict where nothing waits."""

        def change(pause: Pause) -> Change:
            if not pause.waiting:
                raise PauseConflict("nothing of this pause waits any more")
            details = {"due": until.isoformat() if until else None}
            entry = Entry("extended", tenant, actor, pause.id, None, details)
            return Change(replace(pause, due=until), (entry,))

        changed = await self.in_store(self.store.change, pause_id, tenant, change)
        self.told(changed, "extended")
        return changed

    async def reload(self, toolset: Toolset) -> list[str]:
        """Take a new toolset of a known API. What waits or was approved for a tool that changed is void; its ids."""
        owner = next((one for one in self.known if isinstance(one, ApiSource) and one.name == toolset.api), None)
        if owner is None:
            raise UsageError(f"no dispatcher of this runtime has the API {toolset.api!r}")
        owner.dispatcher.reload(toolset)
        digests = {tool.name: tool.digest for tool in toolset.tools}
        voided: list[str] = []
        for pause_id, tenant in await self.in_store(self.store.outdated, toolset.api, digests):
            change = _voiding(toolset.api, digests)
            self.told(await self.in_store(self.store.change, pause_id, tenant, change), "voided")
            voided.append(pause_id)
        await self.remembered.void(toolset.api, digests)
        return voided

    def layered(self, config: ApprovalConfig) -> Runtime:
        """A runtime on the same sources and store with one layer more: never looser. They share their life."""
        made = Runtime.__new__(Runtime)
        made.__dict__.update(self.__dict__)
        made.__dict__.pop("_sync", None)  # it would call this one, without the layer
        made._config = [*self._config, config]
        made._listed = listed(made.known)
        made._gate = Gate(made._config, made._listed)
        made.remembered = Remembered(made)
        made.life.joined(made)
        return made

    @property
    def sync(self) -> Sync:
        """The same for plain code."""
        from toolgen.runtime.sync import Sync

        found = self.__dict__.get("_sync")
        if found is None:
            found = self.__dict__["_sync"] = Sync(self)
        assert isinstance(found, Sync)
        return found

    async def sweep(self) -> int:
        """What is due now: times that are up, claims that ran out, approvals that were not used, reminders,
        webhooks, what is kept too long; how much was done."""
        from toolgen.runtime.sweep import sweep

        done = await sweep(self)
        return done + (await self.life.notices.deliver() if self.life.notices is not None else 0)

    # Life

    async def __aenter__(self) -> Runtime:
        self.life.enter()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.life.leave()

    async def aclose(self) -> None:
        """Stop what runs in the background, and close the connections of this event loop. A store that was
        opened by its URL is closed too."""
        await self.life.aclose()

    # What the stages need

    async def in_store(self, do: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Run a method of the store in a thread: nothing blocks the event loop."""
        return await in_thread(do, *arguments, **named)

    def work(self, source: str, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> Work:
        """A call made ready. Raises ArgumentsError, and RequestError for what is no tool of these sources."""
        owner = next((one for one in self.known if one.name == source), None)
        if owner is None:
            raise RequestError(f"there is no source {source!r} any more")
        try:
            return owner.work(name, arguments, caller)
        except KeyError:
            raise RequestError(f"{source} has no tool {name!r} any more") from None

    def is_denied(self, name: str, source: str) -> bool:
        """Whether a call of a tool is denied, or the tool is gone."""
        return self.gate.classify([ToolCall("1", name, {}, source)]).calls[0].outcome is Outcome.denied

    def bound(self, work: Work, fingerprint: str, requester: str, tenant: str) -> str:
        """What an approval of this work is bound to."""
        return binding(
            self.store.keys,
            fingerprint=fingerprint,
            tool=work.tool_digest,
            gating=gating_digest(self.gate),
            requester=requester,
            tenant=tenant,
            credential=work.credential,
        )

    def tenant_of(self, caller: Caller | None) -> str:
        """The tenant a caller belongs to."""
        return caller.tenant if caller is not None else DEFAULT_TENANT

    def lease(self) -> datetime:
        """Until when a claim made now holds."""
        longest = max((one.dispatcher.http.total for one in self.known if isinstance(one, ApiSource)), default=0.0)
        return self.store.clock() + LEASE + timedelta(seconds=longest)

    def packed(self, caller: Caller | None, state: bytes | None) -> bytes:
        """What is kept, sealed, beside a pause: the host's state, and the caller's context for amendments."""
        context = dict(caller.context) if caller is not None else {}
        head = json.dumps(context).encode()
        return len(head).to_bytes(4, "big") + head + (b"\1" + state if state is not None else b"\0")

    def unpacked(self, pause: Pause) -> Caller:
        """The requester as far as a request is built from them: without a token."""
        data = pause.state or b"\0\0\0\2{}\0"
        size = int.from_bytes(data[:4], "big")
        return Caller(pause.requester, tenant=pause.tenant, context=json.loads(data[4 : 4 + size]))

    def told(self, pause: Pause, what: str) -> None:
        """Wake whoever waits in this process, and tell the host: whatever its hooks raise, the change is made."""
        if what in ("decided", "timeout"):
            decision_time(pause)
        self.life.waiters.wake(pause.id)
        for hook in list(self._on_change):
            try:
                hook(pause, what)
            except Exception as error:  # noqa: BLE001 - the host's
                _log.warning("on_change failed for pause %s: %s", pause.id, type(error).__name__)

    async def _settled(self, pause_id: str, tenant: str) -> Pause:
        """Until nothing of a pause waits, and nobody is running its calls."""
        async with self.life.waiters.watching(pause_id) as watch:
            while True:
                watch.look()
                pause = await self.in_store(self.store.pause, pause_id, tenant)
                if not pause.waiting and not self._is_busy(pause):
                    return pause
                await watch.changed()

    def _is_busy(self, pause: Pause) -> bool:
        now = self.store.clock()
        return any(_is_running(call, now) for call in pause.calls)


def _is_running(call: PausedCall, now: datetime) -> bool:
    return call.state is CallState.executing and (call.lease is None or call.lease >= now)


def _notices(store: Store, webhook: Webhook | str | None, previews: bool) -> Notices | None:
    from toolgen.dispatch.webhook import Webhook
    from toolgen.runtime.notices import Notices

    if webhook is None:
        return None
    found = Webhook(webhook) if isinstance(webhook, str) else webhook
    return Notices(store, replace(found, previews=True) if previews else found)


def host_state(pause: Pause) -> bytes | None:
    """The state the host gave with a pause."""
    data = pause.state or b"\0\0\0\2{}\0"
    rest = data[4 + int.from_bytes(data[:4], "big") :]
    return rest[1:] if rest[:1] == b"\1" else None


def _voiding(api: str, digests: Mapping[str, str]) -> Callable[[Pause], Change | None]:
    def change(pause: Pause) -> Change | None:
        changed = frozenset(c.id for c in pause.calls if c.source == api and digests.get(c.tool) != c.tool_digest)
        detail = "the tool has changed since"
        return deciding.ended(pause, CallState.not_executed, "system:reload", detail, "voided", calls=changed)

    return change


__all__ = ["Known", "Runtime", "host_state"]
