"""What a config does to tools: the outcome of each, by the same gate that calls pass, and what looks wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from toolgen.findings import Finding
from toolgen.policy.address import KnownTool, Toolsets
from toolgen.policy.checks import findings
from toolgen.policy.checks.facts import Facts
from toolgen.policy.config import ApprovalConfig, TimeoutPolicy
from toolgen.policy.durations import written_duration
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome, ToolCall, ToolOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCoverage:
    """What happens to the calls of one tool.

    `reason` is the pattern that decided, or `unmatched`, and `where` its place in the config. `rule` is the
    match of the rule that holds while the call waits; what follows it is None or empty for calls that do
    not wait. `method` and `path` are None for a tool without an endpoint.
    """

    name: str
    source: str
    method: str | None
    path: str | None
    is_write: bool
    is_destructive: bool
    outcome: Outcome
    reason: str
    where: str
    rule: str | None = None
    timeout_policy: TimeoutPolicy | None = None
    approval_timeout: timedelta | None = None
    approval_validity: timedelta | None = None
    approvers: tuple[tuple[str, ...], ...] = ()
    allow_self_approval: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, keys in camelCase as configs have them; keys without a value are left out."""
        made = {
            "name": self.name,
            "source": self.source,
            "method": self.method,
            "path": self.path,
            "write": self.is_write,
            "destructive": self.is_destructive,
            "outcome": self.outcome.name,
            "reason": self.reason,
            "where": self.where or None,
            "rule": self.rule,
            "timeoutPolicy": self.timeout_policy.value if self.timeout_policy else None,
            "approvalTimeout": written_duration(self.approval_timeout) if self.approval_timeout else None,
            "approvalValidity": written_duration(self.approval_validity) if self.approval_validity else None,
            "approvers": [list(group) for group in self.approvers] or None,
            "allowSelfApproval": self.allow_self_approval,
        }
        return {key: value for key, value in made.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Coverage:
    """A config joined to toolsets: one entry per tool, in their order, and the findings, the worst first."""

    tools: tuple[ToolCoverage, ...]
    findings: tuple[Finding, ...]

    def counts(self) -> dict[str, int]:
        """How many tools there are of each outcome."""
        return {outcome.name: sum(tool.outcome is outcome for tool in self.tools) for outcome in Outcome}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "counts": self.counts(),
            "findings": [finding.to_dict() for finding in self.findings],
            "tools": [tool.to_dict() for tool in self.tools],
        }


def coverage(config: ApprovalConfig | None, toolsets: Toolsets) -> Coverage:
    """What a config does to the tools of these toolsets. Raises RegistrationError as `Gate` does."""
    gate = Gate(config, toolsets)
    # By `classify`, as calls are; each call names its source, since two sources may share a name.
    calls = [ToolCall(None, tool.name, {}, tool.source) for tool in gate.tools]
    results = [one.result for one in gate.classify(calls).calls]
    entries = [_entry(tool, one, tool in gate.destructive) for tool, one in zip(gate.tools, results, strict=True)]
    return Coverage(tuple(entries), findings(Facts(gate, results)))


def _entry(tool: KnownTool, result: ToolOutcome, destructive: bool) -> ToolCoverage:
    terms = result.terms
    return ToolCoverage(
        name=tool.name,
        source=tool.source,
        method=tool.endpoint.method if tool.endpoint else None,
        path=tool.endpoint.path if tool.endpoint else None,
        is_write=tool.is_write,
        is_destructive=destructive,
        outcome=result.outcome,
        reason=result.reason,
        where=result.where,
        rule=terms.rule.match.text if terms and terms.rule else None,
        timeout_policy=terms.timeout_policy if terms else None,
        approval_timeout=terms.approval_timeout if terms else None,
        approval_validity=terms.approval_validity if terms else None,
        approvers=terms.approvers if terms else (),
        allow_self_approval=terms.allow_self_approval if terms else None,
    )
