"""What a model reads of a call that did not simply run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from toolgen.approvals.model import PausedCall
from toolgen.approvals.states import CallState
from toolgen.errors import ArgumentsError
from toolgen.result import Refused, Sent, ToolResult

LONGEST_SHOWN: Final = 2_000  # characters of amended arguments
_STATES: Final[Mapping[CallState, tuple[Refused, str]]] = {
    CallState.rejected: (Refused.rejected, "was rejected by a reviewer; nothing was sent"),
    CallState.expired: (Refused.expired, "has expired, it was not rejected; nothing was sent"),
    CallState.cancelled: (Refused.cancelled, "was cancelled; nothing was sent"),
    CallState.not_executed: (Refused.not_executed, "was approved and then not executed; nothing was sent"),
    CallState.pending: (
        Refused.gated,
        "waits for a person to approve it; it has not run, and is not to be called again",
    ),
    CallState.approved: (Refused.gated, "is approved and has not run yet; it is not to be called again"),
}
_RETRY: Final = "Propose something else that takes the note into account."
_FINAL: Final = "Do not call it again with these arguments."


def refused(name: str | None, why: Refused, said: str) -> ToolResult:
    """A call that is not sent, and why."""
    return ToolResult(False, Sent.not_sent, message=f"{str(name)[:128]} {said}", refused=why)


def not_valid(error: ArgumentsError) -> ToolResult:
    """Arguments that are refused, as a result that tells a model what to change."""
    problems = tuple(problem.to_dict() for problem in error.problems)
    return ToolResult(False, Sent.not_sent, message=str(error), problems=problems)


def result_of(call: PausedCall) -> ToolResult:
    """What a model reads of a paused call, as it stands."""
    if call.state in (CallState.executed, CallState.failed) and call.result is not None:
        return _with_words(call.result, call)
    if call.state in (CallState.outcome_unknown, CallState.executing):
        running = "is being carried out" if call.state is CallState.executing else "may have been carried out"
        said = f"{call.tool} {running}; its outcome is not known, and it is not sent again: find out first"
        return _with_words(call.result or ToolResult(False, Sent.unknown, message=said), call)
    why, said = _STATES[call.state]
    detail = f": {call.detail}" if call.detail else ""
    told = refused(call.tool, why, said + detail)
    if call.state is CallState.rejected:
        told = replace(told, message=f"{told.message}. {_RETRY if call.retry else _FINAL}")
    return _with_words(told, call)


def outcome_state(result: ToolResult) -> CallState:
    """The state a result leads to."""
    if result.sent is Sent.answered:
        return CallState.executed
    return CallState.failed if result.sent is Sent.not_sent else CallState.outcome_unknown


def _with_words(result: ToolResult, call: PausedCall) -> ToolResult:
    """The result with what the reviewers said, and that they changed the call."""
    words = [result.message] if result.message else []
    if call.proposed is not None and call.state is not CallState.rejected:
        changed = json.dumps(dict(call.arguments), ensure_ascii=False)
        words.append(
            f"A reviewer changed the arguments to {changed[:LONGEST_SHOWN]}; this is what became of the changed call, "
            "do not repeat yours."
        )
    if call.note:
        words.append(f"Note of the reviewer: {call.note}")
    return replace(result, message="\n".join(words)) if words != [result.message] else result
