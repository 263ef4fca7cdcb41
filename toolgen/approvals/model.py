"""What waits, who decided, and what a decision says: plain data, ready for JSON.

Times are UTC. What a model wrote as arguments, the host's state and stored results are in none of the JSON
here: people read the preview, which is redacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from toolgen.approvals.states import FINAL, CallState
from toolgen.identity.caller import DEFAULT_TENANT
from toolgen.policy.config import TimeoutPolicy
from toolgen.policy.durations import written_duration
from toolgen.result import ToolResult

LONGEST_NOTE: Final = 4_000  # characters
LARGEST_ARGUMENTS: Final = 262_144  # bytes of JSON; a larger call is refused, never cut and run
LARGEST_AMENDMENT: Final = 32_768  # bytes of JSON
LARGEST_STATE: Final = 2_000_000  # bytes of the host's own
MOST_ROUNDS: Final = 3  # of `retry` in one turn
SYSTEM: Final = "system:"  # what decides without a person: system:timeout, system:no-progress, ...


class VerdictKind(StrEnum):
    """What a person answers; anything but an explicit `approved` never runs."""

    approved = "approved"
    rejected = "rejected"


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides, as the host authenticated them; `roles` are what `role:NAME` in `approvers` names."""

    subject: str
    roles: frozenset[str] = frozenset()
    tenant: str = DEFAULT_TENANT

    @property
    def names(self) -> frozenset[str]:
        """Everything an approver can be named by; nobody has a role because their subject is called like one."""
        subject = () if self.subject.startswith("role:") else (self.subject,)
        return frozenset({*subject, *(f"role:{role}" for role in self.roles)})


class Scope(StrEnum):
    """What a remembered approval covers."""

    exact = "exact"  # the very request
    fields = "fields"  # the endpoint, with the named arguments as they were
    endpoint = "endpoint"  # the endpoint, whatever its arguments


@dataclass(frozen=True, slots=True)
class Remember:
    """How an approval is to be remembered. `fields` are top-level arguments; `uses` and `until` bound it."""

    scope: Scope = Scope.exact
    fields: tuple[str, ...] = ()
    uses: int | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of one call. `arguments` replace the model's, `note` is for the model to read.

    `retry` on a rejection asks the model for a new proposal; `remember` on an approval allows the like
    without asking again.
    """

    verdict: VerdictKind | str | None
    note: str | None = None
    arguments: Mapping[str, Any] | None = None
    retry: bool = False
    remember: Remember | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer to a pause: a verdict for its calls, and others for some of them by call id.

    `revision` is that of the pause the person saw; a decision on an older one is refused. With `others_wait`
    the calls that are not listed are left waiting.
    """

    verdict: VerdictKind | str | None
    note: str | None = None
    calls: Mapping[str, Verdict] = field(default_factory=dict)
    retry: bool = False
    revision: int | None = None
    others_wait: bool = False

    @classmethod
    def from_dict(cls, data: Any) -> Decision:
        """The decision of JSON data (decision.schema.json). Raises DecisionInvalid with every problem."""
        from toolgen.approvals.reading import decision_of

        return decision_of(data)


@dataclass(frozen=True, slots=True)
class Vote:
    """One verdict that was given on a call, and by whom."""

    decider: str
    verdict: VerdictKind
    at: datetime
    note: str | None = None
    groups: tuple[int, ...] = ()  # the approver groups it speaks for

    def to_dict(self) -> dict[str, Any]:
        """The vote as JSON-ready data."""
        return {"decider": self.decider, "verdict": self.verdict.value, "at": stamp(self.at), "note": self.note}


@dataclass(frozen=True, slots=True)
class CallTerms:
    """What holds for one waiting call, by its own rule. Somebody of every group of `approvers` has to approve."""

    approvers: tuple[tuple[str, ...], ...] = ()
    allow_self_approval: bool = True
    validity: timedelta = timedelta(hours=1)
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class PausedCall:
    """One call that waits, or did.

    `reason` is the pattern that gated it. `arguments` are those in effect, `proposed` the model's where a
    person amended them. `fingerprint` and `binding` are of the request that is approved, made with the key of
    the id `key`; `result` is there
    once it ran or cannot run any more.
    """

    id: str
    tool: str
    source: str
    endpoint: str | None
    reason: str
    terms: CallTerms
    preview: Mapping[str, Any]
    fingerprint: str = field(repr=False)
    binding: str = field(repr=False)
    tool_digest: str = field(repr=False)
    arguments: Mapping[str, Any] = field(repr=False)
    key: str = field(default="", repr=False)  # of fingerprint and binding, its id
    destructive: bool = False
    state: CallState = CallState.pending
    votes: tuple[Vote, ...] = ()
    proposed: Mapping[str, Any] | None = field(default=None, repr=False)
    retry: bool = False
    detail: str = ""
    result: ToolResult | None = field(default=None, repr=False)
    lease: datetime | None = None
    worker: str | None = None

    @property
    def note(self) -> str | None:
        """What the deciders say to the model."""
        return "\n".join(vote.note for vote in self.votes if vote.note) or None

    def to_dict(self) -> dict[str, Any]:
        """The call as JSON-ready data, without its arguments and its result."""
        return {
            "id": self.id,
            "tool": self.tool,
            "source": self.source,
            "endpoint": self.endpoint,
            "reason": self.reason,
            "rule": self.terms.rule,
            "approvers": [list(group) for group in self.terms.approvers],
            "allowSelfApproval": self.terms.allow_self_approval,
            "approvalValidity": written_duration(self.terms.validity),
            "destructive": self.destructive,
            "state": self.state.value,
            "votes": [vote.to_dict() for vote in self.votes],
            "amended": self.proposed is not None,
            "detail": self.detail,
            "preview": dict(self.preview),
        }


@dataclass(frozen=True, slots=True)
class Pause:
    """Calls of one turn that wait together.

    `requester` is the subject the turn runs for. `due` is when time decides, by `timeout_policy`. `executed`
    are the ids of calls of the batch that ran before the pause. `revision` grows with every change.
    """

    id: str
    tenant: str
    thread: str
    turn: str
    requester: str
    created: datetime
    calls: tuple[PausedCall, ...]
    gating_digest: str = field(repr=False)
    batch: str = field(repr=False)  # fingerprint of the batch
    reason: str = ""
    message: str | None = None
    rule: str | None = None
    due: datetime | None = None
    timeout_policy: TimeoutPolicy = TimeoutPolicy.WAIT_INDEFINITELY
    executed: tuple[str, ...] = ()
    revision: int = 1
    round: int = 0
    unattended: int = 0  # how often in a row the system decided this batch
    decided: datetime | None = None  # the last verdict
    state: bytes | None = field(default=None, repr=False)

    def call(self, call_id: str) -> PausedCall:
        """The call of that id. Raises KeyError."""
        return next(call for call in self.calls if call.id == call_id)

    @property
    def waiting(self) -> tuple[PausedCall, ...]:
        """The calls nobody has decided yet."""
        return tuple(call for call in self.calls if call.state is CallState.pending)

    @property
    def is_open(self) -> bool:
        """Whether some call can still change."""
        return any(call.state not in FINAL for call in self.calls)

    def with_call(self, changed: PausedCall) -> Pause:
        """The pause with this call in the place of the one with its id."""
        return replace(self, calls=tuple(changed if call.id == changed.id else call for call in self.calls))

    def to_dict(self) -> dict[str, Any]:
        """The pause as JSON-ready data: what a person needs to decide, and no secret."""
        return {
            "id": self.id,
            "status": "pending" if self.waiting else "decided" if self.is_open else "done",
            "tenant": self.tenant,
            "thread": self.thread,
            "turn": self.turn,
            "requester": self.requester,
            "created": stamp(self.created),
            "due": stamp(self.due) if self.due else None,
            "timeoutPolicy": self.timeout_policy.value,
            "reason": self.reason,
            "message": self.message,
            "rule": self.rule,
            "executed": list(self.executed),
            "revision": self.revision,
            "calls": [call.to_dict() for call in self.calls],
        }


def stamp(moment: datetime) -> str:
    """A time in RFC 3339, UTC."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
