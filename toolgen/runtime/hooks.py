"""The host's say in each call: it can make the outcome stricter, never looser."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolgen.identity.caller import Caller
from toolgen.policy.outcomes import Outcome

WITHIN: Final = 3.0  # seconds a hook has


@dataclass(frozen=True, slots=True)
class HookCall:
    """What a decision hook is told: the call as a person would see it, and what the gate says."""

    id: str
    tool: str
    source: str
    endpoint: str | None
    outcome: Outcome
    reason: str
    preview: Mapping[str, Any]


DecisionHook = Callable[[HookCall, Caller | None], Awaitable[Outcome | str | None]]
"""Returns an outcome, or None to leave it; anything looser than the gate's is ignored."""


async def tightened(hook: DecisionHook | None, call: HookCall, caller: Caller | None) -> tuple[Outcome, str]:
    """The outcome after the hook, and why it changed or nothing.

    A hook that fails, answers something else or is late means that a person has to look.
    """
    if hook is None:
        return call.outcome, ""
    clock = asyncio.get_running_loop().time
    started = clock()
    asked = asyncio.ensure_future(_asked(hook, call, caller))
    try:
        await asyncio.wait({asked}, timeout=WITHIN)
    finally:
        late = not asked.done() or clock() - started > WITHIN  # one that never awaits is stopped by nothing
        asked.cancel()  # and not waited for: a hook may refuse to end
    strict = max(call.outcome, Outcome.gated)
    if late:
        asked.add_done_callback(_dropped)
        return strict, "the decision hook did not answer in time"
    if asked.cancelled():
        return strict, "the decision hook failed: CancelledError"
    error = asked.exception()
    if error is not None:
        return strict, f"the decision hook failed: {type(error).__name__}"
    wanted = asked.result()
    return (wanted, "the decision hook") if wanted is not None and wanted > call.outcome else (call.outcome, "")


async def _asked(hook: DecisionHook, call: HookCall, caller: Caller | None) -> Outcome | None:
    answer = await hook(call, caller)
    return answer if answer is None or isinstance(answer, Outcome) else Outcome[answer]


def _dropped(late: asyncio.Future[Outcome | None]) -> None:
    """Take note of how a late hook ended, so that nobody warns of it."""
    if not late.cancelled():
        late.exception()
