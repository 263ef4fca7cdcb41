"""The approval config: what needs a person, what never does, and what holds while a call waits.

A config is made by `load`, `parse`, `off` or `unreadable`. The first two raise with every problem of
the config and never yield one that gates less than it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from toolgen.errors import Problem
from toolgen.policy.durations import written_duration
from toolgen.policy.patterns import Pattern

if TYPE_CHECKING:
    from os import PathLike

    from toolgen.policy.address import Toolsets

VALIDITY: Final = timedelta(hours=1)  # of an approval, where nothing states it
PAUSES: Final = 3
MOST_PAUSES: Final = 10
AUTO_APPROVALS: Final = 2
MOST_AUTO_APPROVALS: Final = 10


class Unmatched(StrEnum):
    """What happens to a call that no pattern speaks of."""

    allow = "allow"
    require_writes = "requireWrites"  # reads run, writes wait
    require = "require"
    deny = "deny"


class TimeoutPolicy(StrEnum):
    """What happens to a call that nobody has decided when its time is up; the strictest first."""

    WAIT_INDEFINITELY = "WAIT_INDEFINITELY"  # nothing: it has no due time
    ABORT = "ABORT"
    AUTO_REJECT = "AUTO_REJECT"
    AUTO_APPROVE = "AUTO_APPROVE"


class NoProgress(StrEnum):
    """What happens when the system keeps deciding the same calls of one turn; the strictest first."""

    WAIT_FOR_HUMAN = "WAIT_FOR_HUMAN"
    ABORT = "ABORT"
    AUTO_REJECT = "AUTO_REJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Friction:
    """What holds while a call waits; None where it is not stated.

    `approval_timeout` counts from the pause, `approval_validity` from its last verdict. `pause_reason` is
    for the person who decides, `pending_message` for the one who waits; `{toolNames}` stands for the names
    of the tools. `approvers` are names, or `role:` and a role; one of them has to approve.
    """

    timeout_policy: TimeoutPolicy | None = None
    approval_timeout: timedelta | None = None
    approval_validity: timedelta | None = None
    pause_reason: str | None = None
    pending_message: str | None = None
    approvers: tuple[str, ...] | None = None
    allow_self_approval: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Friction):
    """Friction for the gated calls that `match` matches; a rule never gates or ungates."""

    match: Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalConfig(Friction):
    """An approval config; the friction it states itself holds where no rule states otherwise.

    `require_approval` and `unmatched` are None where the config does not state them; `default` is what
    that means. `unreadable_reason` is set for a config that could not be read: then every call is gated.
    `warnings` are what saving may go ahead with, and a person should read.
    """

    require_approval: tuple[Pattern, ...] | None = None
    exempt: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()
    destructive: tuple[Pattern, ...] = ()
    unmatched: Unmatched | None = None
    rules: tuple[Rule, ...] = ()
    max_pauses_per_turn: int | None = None
    max_auto_approvals_per_turn: int | None = None
    on_no_progress: NoProgress | None = None
    apis: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    unreadable_reason: str | None = None
    warnings: tuple[Problem, ...] = ()

    @classmethod
    def load(cls, path: str | PathLike[str], toolsets: Toolsets = ()) -> ApprovalConfig:
        """The config of a YAML or JSON file, checked against these tools as well.

        Raises ApprovalConfigError with all problems, each with its line, SourceError for a file that cannot be
        read or is empty, and RegistrationError as `Gate` does for the tools. Where a server re-reads its config
        and this raises, `unreadable` takes its place.
        """
        from toolgen.policy.reading import load

        return load(path, toolsets)

    @classmethod
    def parse(cls, mapping: Mapping[str, Any], toolsets: Toolsets = ()) -> ApprovalConfig:
        """The config a mapping states, checked against these tools as well.

        Raises ApprovalConfigError with all problems, each with its path in the config, and RegistrationError as
        `Gate` does for the tools.
        """
        from toolgen.policy.reading import parse

        return parse(mapping, toolsets)

    @classmethod
    def off(cls) -> ApprovalConfig:
        """No call waits. Unknown tools are still refused."""
        return cls(require_approval=())

    @classmethod
    def unreadable(cls, reason: str) -> ApprovalConfig:
        """What stands in for a config that could not be read: every call of every tool waits for a person."""
        return cls(unreadable_reason=reason or "no reason given")

    @property
    def default(self) -> Unmatched:
        """What happens to a call that no pattern speaks of."""
        if self.unreadable_reason is not None:
            return Unmatched.require
        if self.unmatched is None:
            return Unmatched.allow if self.require_approval == () else Unmatched.require_writes
        return self.unmatched

    @property
    def patterns(self) -> dict[str, tuple[Pattern, ...]]:
        """The patterns of each list, by its key; those of `rules` are their matches."""
        return {
            "requireApproval": self.require_approval or (),
            "exempt": self.exempt,
            "deny": self.deny,
            "destructive": self.destructive,
            "rules": tuple(rule.match for rule in self.rules),
        }

    @property
    def is_off(self) -> bool:
        """Whether no call is gated, because the config says so; what is denied stays denied."""
        return self.default is Unmatched.allow and not self.require_approval

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON-ready data that `parse` reads back with the same tools; only what is stated.

        Raises ValueError for a config that could not be read: it must not be saved as if it had been.
        """
        if self.unreadable_reason is not None:
            raise ValueError("a config that could not be read has no content")
        return _stated(self)


# The order in which keys are written; what is not in it is not of the config's text.
_WRITTEN = (
    *("match", "require_approval", "exempt", "deny", "destructive", "unmatched", "rules"),
    *(field.name for field in fields(Friction)),
    *("max_pauses_per_turn", "max_auto_approvals_per_turn", "on_no_progress", "apis", "mcp_servers"),
)


def key_of(field: str) -> str:
    """The key of a field as configs write it: `pause_reason` is `pauseReason`."""
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _stated(friction: Friction) -> dict[str, Any]:
    values = ((name, getattr(friction, name, None)) for name in _WRITTEN)
    # An empty `requireApproval` switches the gate off; the other lists say nothing when they are empty.
    stated = (
        (name, value) for name, value in values if value is not None and (value != () or name == "require_approval")
    )
    return {key_of(name): _written(value) for name, value in stated}


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_written(item) for item in value]
    if isinstance(value, timedelta):
        return written_duration(value)
    if isinstance(value, Rule):
        return _stated(value)
    return value.text if isinstance(value, Pattern) else value.value if isinstance(value, StrEnum) else value
