"""For the tests of programs that use toolgen: a store in memory, somebody who decides, a server that records.

Nothing here needs a network, a file or a person:

```python
import asyncio
from toolgen import ApprovalConfig, Caller, Dispatcher, Runtime, ToolCall, generate
from toolgen.testing import Answer, RecordingTransport, ScriptedDecider, memory_store

shop = {
    "openapi": "3.1.0",
    "info": {"title": "shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {"/orders": {"post": {"operationId": "order", "responses": {"200": {"description": "ok"}}}}},
}


async def ordered() -> str:
    server = RecordingTransport([Answer(201, {"order": 7})])
    decider = ScriptedDecider().approve("order", note="only this once").reject()
    runtime = Runtime(Dispatcher(generate(shop), transport=server), ApprovalConfig.parse({}), store=memory_store())
    decider.attach(runtime)
    async with runtime:
        asked = await runtime.submit([ToolCall("1", "order")], caller=Caller("ada"))
        assert asked.pause is not None and not server.requests
        results = await runtime.wait(asked.pause.id, caller=Caller("ada"), timeout=5)
    assert [request.method for request in server.requests] == ["POST"]
    return str(results["1"])


print(asyncio.run(ordered()))
```
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from toolgen.approvals.model import Decider, Decision, Pause, PausedCall, Verdict, VerdictKind
from toolgen.approvals.store import Store, utc_now
from toolgen.dispatch.recording import Answer, Recorded, RecordingTransport
from toolgen.identity.keys import Keys

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime

Matches = Callable[[PausedCall], bool]


class Clock:
    """A clock that stands still until it is moved; give it to `memory_store`."""

    def __init__(self, now: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self.now += by


def memory_store(clock: Callable[[], datetime] = utc_now) -> Store:
    """A store in memory with a key of its own, which ends with it."""
    return Store(None, Keys(os.urandom(32)), clock=clock)


@dataclass(frozen=True, slots=True)
class _Rule:
    verdict: Verdict
    matches: Matches | None


class ScriptedDecider:
    """Answers pauses by rules: for each call the first that fits. A pause with a call that none fits goes on waiting.

    A rule is for all calls, for those of a tool by its name, or for those a function of the paused call picks.
    `pauses` are those it was told of, `failures` what was refused to it, such as a call it may not decide.
    It decides as `decider`, who is nobody's requester.
    """

    def __init__(self, decider: Decider | None = None) -> None:
        self.decider = decider or Decider("reviewer")
        self.pauses: list[Pause] = []
        self.failures: list[Exception] = []
        self._rules: list[_Rule] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def approve(self, what: str | Matches | None = None, *, note: str | None = None) -> ScriptedDecider:
        """Approve these calls."""
        return self._with(what, Verdict(VerdictKind.approved, note))

    def reject(
        self, what: str | Matches | None = None, *, note: str | None = None, retry: bool = False
    ) -> ScriptedDecider:
        """Reject these calls; `retry` asks the model for a new proposal."""
        return self._with(what, Verdict(VerdictKind.rejected, note, retry=retry))

    def amend(self, what: str | Matches | None, **arguments: object) -> ScriptedDecider:
        """Approve these calls with other arguments."""
        return self._with(what, Verdict(VerdictKind.approved, arguments=arguments))

    def attach(self, runtime: Runtime) -> None:
        """Answer every pause that this runtime makes from now on."""

        def on_change(pause: Pause, what: str) -> None:
            if what == "paused":
                self.pauses.append(pause)
                task = asyncio.get_running_loop().create_task(self._decide(runtime, pause))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        runtime.on_change(on_change)

    async def settled(self) -> None:
        """Until everything it was asked is answered."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    def decision(self, pause: Pause) -> Decision | None:
        """What it would answer; None where no rule fits one of the calls."""
        verdicts = {call.id: found for call in pause.waiting if (found := self._verdict(call)) is not None}
        if not verdicts or len(verdicts) < len(pause.waiting):  # an unlisted call would inherit a verdict
            return None
        approved = any(one.verdict is VerdictKind.approved for one in verdicts.values())
        return Decision(VerdictKind.approved if approved else VerdictKind.rejected, calls=verdicts)

    async def _decide(self, runtime: Runtime, pause: Pause) -> None:
        decision = self.decision(pause)
        if decision is None:
            return
        try:
            await runtime.decide(pause.id, decision, decider=replace(self.decider, tenant=pause.tenant))
        except Exception as error:  # noqa: BLE001 - a test looks at them
            self.failures.append(error)

    def _verdict(self, call: PausedCall) -> Verdict | None:
        return next((rule.verdict for rule in self._rules if rule.matches is None or rule.matches(call)), None)

    def _with(self, what: str | Matches | None, verdict: Verdict) -> ScriptedDecider:
        matches: Matches | None = (lambda call: call.tool == what) if isinstance(what, str) else what
        self._rules.append(_Rule(verdict, matches))
        return self


__all__ = ["Answer", "Clock", "Recorded", "RecordingTransport", "ScriptedDecider", "memory_store"]
