"""Metrics of approvals through opentelemetry-api, counted from what is written to the audit log.

Attributes are verdicts, states and names of guards: no tool, person, tenant or argument is among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

from toolgen.approvals.model import SYSTEM, Pause
from toolgen.approvals.states import FINAL

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram

    from toolgen.approvals.audit import Entry

_STATES: Final = frozenset(state.value for state in FINAL)
_VERDICTS: Final = frozenset({"approved", "rejected"})
_GUARDS: Final = frozenset({"pause-cap", "size-cap", "no-progress", "timeout"})


def counted(entries: Iterable[Entry]) -> None:
    """Count what entries of the audit log say."""
    for entry in entries:
        state = entry.details.get("state")
        automated = entry.actor.startswith(SYSTEM)
        if entry.kind == "paused":
            _counter("pauses", "Pauses that were made").add(1)
        elif entry.kind == "decided":
            verdict = entry.details.get("verdict")
            told = {"verdict": verdict if verdict in _VERDICTS else "other", "automated": automated}
            _counter("decisions", "Verdicts on calls").add(1, told)
        elif entry.kind == "timeout":
            _counter("decisions", "Verdicts on calls").add(1, {"verdict": "none", "automated": True})
        elif entry.kind == "guard":
            name = entry.actor.removeprefix(SYSTEM)
            told = {"guard": name if name in _GUARDS else "other"}
            _counter("guards", "Times a guard stopped a call or an automatic decision").add(1, told)
        if state in _STATES:
            gated = {"state": state, "gated": entry.kind != "ran"}
            _counter("outcomes", "Calls that came to an end, by their state").add(1, gated)


def decided(pause: Pause) -> None:
    """Keep how long a pause took until nothing of it waits any more."""
    if pause.decided is None or pause.waiting:
        return
    by_time = any(vote.decider.startswith(SYSTEM) for call in pause.calls for vote in call.votes)
    answered = any(call.votes for call in pause.calls)
    seconds = max((pause.decided - pause.created).total_seconds(), 0.0)
    _times().record(seconds, {"automated": by_time or not answered})


def head_failed() -> None:
    """Count a head of the audit log that could not be kept."""
    _counter("head_failures", "Heads of the audit log that could not be kept").add(1)


@cache
def _counter(name: str, description: str) -> Counter:
    from opentelemetry import metrics

    return metrics.get_meter("toolgen").create_counter(f"toolgen.approval.{name}", description=description)


@cache
def _times() -> Histogram:
    from opentelemetry import metrics

    return metrics.get_meter("toolgen").create_histogram(
        "toolgen.approval.time_to_decision", unit="s", description="From the pause to its last verdict"
    )
