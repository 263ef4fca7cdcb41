"""What may become of a pause."""

from __future__ import annotations

from dataclasses import dataclass

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import SYSTEM, Pause, PausedCall
from toolgen.approvals.states import FINAL, CallState, may_become
from toolgen.errors import StoreError


@dataclass(frozen=True, slots=True)
class Change:
    """What a pause becomes, and what is recorded of it in the same transaction."""

    pause: Pause
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """The pauses of a turn so far, in order."""

    all: tuple[Pause, ...] = ()

    @property
    def last(self) -> Pause | None:
        return self.all[-1] if self.all else None

    @property
    def by_time(self) -> int:
        """How many calls time approved."""
        return sum(_by_time(call) for pause in self.all for call in pause.calls)


def check(before: Pause, after: Pause) -> None:
    """Nothing changes but by the table of states; once approved a request is as it was approved, once over all is."""
    fixed = ("id", "tenant", "thread", "turn", "requester", "created", "gating_digest", "batch")
    if any(getattr(before, name) != getattr(after, name) for name in fixed):
        raise StoreError("what a pause was made with cannot be changed")
    for old, new in zip(before.calls, after.calls, strict=True):
        if new.state is not old.state and not may_become(old.state, new.state):
            raise StoreError(f"a call that is {old.state.value} cannot become {new.state.value}")
        if new != old and old.state in FINAL:
            raise StoreError(f"a call that is {old.state.value} cannot be changed")
        request: tuple[str, ...] = ("id", "tool", "source", "endpoint")
        if old.state is not CallState.pending:
            request = (
                *request,
                "arguments",
                "proposed",
                "fingerprint",
                "binding",
                "key",
                "tool_digest",
                "terms",
                "votes",
            )
        if any(getattr(old, name) != getattr(new, name) for name in request):
            raise StoreError(f"the request of a call that is {old.state.value} cannot be changed")


def _by_time(call: PausedCall) -> bool:
    return any(vote.decider == f"{SYSTEM}timeout" and vote.verdict == "approved" for vote in call.votes)
