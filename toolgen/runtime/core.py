"""The runtime: what a model asks for is validated, resolved and classified; then it runs, waits, or does not.

The only caller of a source. Deciding never executes: an approved call runs in `resume`, for its requester.
"""

from __future__ import annotations

import logging
import os
import platform
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from toolgen.approvals.binding import binding, gating_digest
from toolgen.approvals.heads import Heads, HeadTarget
from toolgen.approvals.model import LARGEST_STATE, Decider, Decision, Pause
from toolgen.approvals.names import RESERVED, check_names
from toolgen.approvals.store import Store
from toolgen.approvals.telemetry import decided as decision_time
from toolgen.errors import PauseConflict, RequestError, UsageError
from toolgen.identity.caller import DEFAULT_TENANT, Caller, current_caller
from toolgen.policy.config import ApprovalConfig, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome, ToolCall
from toolgen.result import ToolResult
from toolgen.runtime import deciding, ending
from toolgen.runtime import resume as resuming
from toolgen.runtime.hooks import DecisionHook
from toolgen.runtime.leases import LEASE
from toolgen.runtime.life import Life, notices_of
from toolgen.runtime.packing import host_state, requester_of
from toolgen.runtime.remembered import Remembered
from toolgen.runtime.sources import ApiSource, Known, Source, Work, known_sources, listed, refreshed
from toolgen.runtime.submit import Batch, Submission
from toolgen.runtime.threads import in_thread
from toolgen.runtime.waiting import waited

if TYPE_CHECKING:
    from toolgen.dispatch.http import Dispatcher
    from toolgen.dispatch.webhook import Webhook
    from toolgen.identity.keys import Keys
    from toolgen.runtime.sync import Sync
    from toolgen.tools.model import Toolset

T = TypeVar("T")
Config = ApprovalConfig | Sequence[ApprovalConfig | None] | None
Callers = Callable[[str, str], Awaitable[Caller | None]]
OnChange = Callable[[Pause, str], None]
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
    is told of again, `retention` how long a pause is kept after it ended. `audit_head` is a file, or a function that is
    called in a thread with a Head, for the signed end of the audit log, once a minute where it has grown. Due times,
    reminders, webhooks, retention and the head are looked after in the background inside `async with`;
    `background=False` leaves them to `sweep`.

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
        audit_head: HeadTarget | None = None,
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
            heads=Heads(self.store, audit_head) if audit_head is not None else None,
            notices=notices_of(self.store, webhook, webhook_previews),
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
        caller = caller if caller is not None else current_caller()
        who = {} if caller is None else {"requester": caller.subject, "tenant": caller.tenant}
        check_names(thread=thread, turn=turn, **who)
        if thread and thread.startswith(RESERVED):
            raise UsageError(f"threads that begin with {RESERVED} are toolgen's own")
        new = not (thread and turn)
        await refreshed(self.known)
        batch = Batch(self, caller, thread or uuid4().hex, turn or uuid4().hex, state, new)
        return await batch.run(list(calls))

    async def decide(self, pause_id: str, decision: Decision, *, decider: Decider) -> Pause:
        """A person's answer; nothing runs. `decider` comes from the host's authenticator, never from a request's body.

        Raises DecisionInvalid, DecisionForbidden, PauseUnknown and PauseConflict; nothing is changed then.
        """
        await refreshed(self.known)
        return await deciding.decide(self, pause_id, decision, decider)

    async def amended(
        self, pause_id: str, call_id: str, arguments: Mapping[str, Any], *, tenant: str = DEFAULT_TENANT
    ) -> Any:
        """The preview of a call with other arguments, before anybody approves it. Raises like `decide`."""
        await refreshed(self.known)
        return await deciding.amended(self, pause_id, tenant, call_id, arguments)

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
        await refreshed(self.known)
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
        return await waited(self, pause_id, caller, timeout)

    async def cancel(self, pause_id: str, *, actor: str, tenant: str = DEFAULT_TENANT, reason: str = "") -> Pause:
        """End what waits or was approved and did not run. Raises PauseUnknown, and PauseConflict where nothing can be."""
        return await ending.cancel(self, pause_id, tenant, actor, reason or "cancelled")

    async def extend(self, pause_id: str, until: datetime | None, *, actor: str, tenant: str = DEFAULT_TENANT) -> Pause:
        """Move the due time; None waits without end. Raises PauseUnknown, and PauseConflict where nothing waits.

        A time has a time zone: UsageError otherwise.
        """
        return await ending.extend(self, pause_id, tenant, until, actor)

    async def reload(self, toolset: Toolset) -> list[str]:
        """Take a new toolset of a known API. What waits or was approved for a tool that changed is void; its ids."""
        return await ending.reload(self, toolset)

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
        await refreshed(self.known)
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

    def bound(self, work: Work, fingerprint: str, requester: str, tenant: str, keys: Keys | None = None) -> str:
        """What an approval of this work is bound to; with other keys than those in use what it was bound to."""
        return binding(
            keys or self.store.keys,
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
        longest = max(map(_seconds, self.known), default=0.0)
        return self.store.clock() + LEASE + timedelta(seconds=longest)

    def unpacked(self, pause: Pause) -> Caller:
        """The requester as far as a request is built from them: without a token."""
        return requester_of(pause)

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


def _seconds(source: Known) -> float:
    """The longest time a source has for an answer."""
    if isinstance(source, ApiSource):
        return source.dispatcher.http.total
    return source.remote.seconds if source.remote is not None else 0.0


__all__ = ["LEASE", "Known", "Runtime", "host_state"]
