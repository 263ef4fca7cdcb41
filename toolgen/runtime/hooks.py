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


DecisionHook = Callable[[HookCall, Caller | None], Awaitable[Outcome | str]]
"""Returns an outcome; one that is looser than the gate's leaves it. None is no answer, such as a branch forgotten."""


async def tightened(hook: DecisionHook | None, call: HookCall, caller: Caller | None) -> tuple[Outcome, str]:
    """The outcome after the hook, and why it changed or nothing.

    A hook that fails, answers nothing or something else, or is late means that a person has to look.
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
        asked.add_done_callback(_dropped)
    strict = max(call.outcome, Outcome.gated)
    if late:
        return strict, "the decision hook did not answer in time"
    if asked.cancelled():
        return strict, "the decision hook failed: CancelledError"
    error = asked.exception()
    if error is not None:
        return strict, f"the decision hook failed: {type(error).__name__}"
    wanted = asked.result()
    if wanted is None:
        return strict, "the decision hook gave no answer"
    return (wanted, "the decision hook") if wanted > call.outcome else (call.outcome, "")


async def _asked(hook: DecisionHook, call: HookCall, caller: Caller | None) -> Outcome | None:
    answer: Any = await hook(call, caller)  # whatever the type checker of the host said of it
    return answer if answer is None or isinstance(answer, Outcome) else Outcome[answer]


def _dropped(late: asyncio.Future[Outcome | None]) -> None:
    """Take note of how a hook ended that nobody waits for: what it raised would be logged otherwise, text and all."""
    if not late.cancelled():
        late.exception()
