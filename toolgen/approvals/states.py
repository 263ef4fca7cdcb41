"""The states of a paused call, and what may follow on each.

pending   -> approved | rejected | expired | cancelled
approved  -> executing | not_executed | expired | cancelled
executing -> executed | failed | outcome_unknown
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class CallState(StrEnum):
    """Where a paused call stands."""

    pending = "pending"  # nobody has decided
    approved = "approved"
    rejected = "rejected"
    expired = "expired"  # nobody decided in time, or what was approved did not run in time
    cancelled = "cancelled"
    executing = "executing"  # claimed: its request may be out
    executed = "executed"  # an answer came, whatever its status
    failed = "failed"  # provably no byte left
    not_executed = "not_executed"  # something changed after the approval, or the credential is missing
    outcome_unknown = "outcome_unknown"  # its request may have been carried out; it is never sent again


NEXT: Final[Mapping[CallState, frozenset[CallState]]] = {
    CallState.pending: frozenset({CallState.approved, CallState.rejected, CallState.expired, CallState.cancelled}),
    CallState.approved: frozenset(
        {CallState.executing, CallState.not_executed, CallState.expired, CallState.cancelled}
    ),
    CallState.executing: frozenset({CallState.executed, CallState.failed, CallState.outcome_unknown}),
}
FINAL: Final = frozenset(CallState) - frozenset(NEXT)


def may_become(old: CallState, new: CallState) -> bool:
    """Whether a call in one state may go to another."""
    return new in NEXT.get(old, frozenset())
