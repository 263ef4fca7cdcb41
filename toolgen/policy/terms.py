"""What holds while a call waits: the friction of its rule, of the config, of every layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, TypeVar

from toolgen.policy.config import VALIDITY, ApprovalConfig, Friction, Rule, TimeoutPolicy

_STRICTEST_FIRST: Final = {policy: rank for rank, policy in enumerate(TimeoutPolicy)}
_NOT_STATED: Final = len(_STRICTEST_FIRST)
_Waits = TypeVar("_Waits", bound="BatchTerms")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTerms:
    """Timeout and texts of calls that wait together. `approval_timeout` is None where they wait without end.

    `rule` is the one that governs; None where only the config does. `stated` names the fields that a rule or
    the config states, the others have their defaults.
    """

    rule: Rule | None = None
    timeout_policy: TimeoutPolicy = TimeoutPolicy.WAIT_INDEFINITELY
    approval_timeout: timedelta | None = None
    pause_reason: str | None = None
    pending_message: str | None = None
    stated: frozenset[str] = field(default=frozenset(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms(BatchTerms):
    """What holds for one call that waits; `rule` is its own: the most specific of those that match it.

    `approvers` are groups, one of each layer that names any: somebody of every group has to approve.
    """

    approval_validity: timedelta = VALIDITY
    approvers: tuple[tuple[str, ...], ...] = ()
    allow_self_approval: bool = True


def terms_of(
    config: ApprovalConfig, own: Rule | None, naming: Rule | None, forbidding: Rule | None, *, destructive: bool
) -> Terms:
    """The terms of one call in one layer: `own` is its rule, `naming` the most specific that names approvers,
    `forbidding` the most specific that forbids self-approval.

    What the call's own rule does not state the config does. Only those two are taken from broader rules
    before that, so that a rule for a text does not drop them.
    """
    approvers = next((one.approvers for one in (naming, config) if one is not None and one.approvers), ())
    stated = (one.allow_self_approval for one in (own, forbidding, naming, config) if one is not None)
    self_approval = next((flag for flag in stated if flag is not None), not approvers)
    terms = Terms(
        **_friction(config, own),
        approval_validity=(own.approval_validity if own else None) or config.approval_validity or VALIDITY,
        approvers=(approvers,) if approvers else (),
        allow_self_approval=self_approval,
    )
    # Where somebody else has to approve, or it cannot be undone, time does not.
    return _without_end(terms) if _by_time(terms) and (destructive or approvers or not self_approval) else terms


def batch_terms(config: ApprovalConfig, own: Sequence[Terms]) -> BatchTerms:
    """Timeout and texts of a batch in one layer; `own` are the terms of its gated calls.

    The strictest of the calls' rules governs, of equals the most specific. Nothing is approved by time
    unless that holds for every call of the batch.
    """
    governing = min((terms.rule for terms in own if terms.rule is not None), key=_governs, default=None)
    terms = BatchTerms(**_friction(config, governing))
    if not _by_time(terms):
        return terms
    return replace(terms, approval_timeout=_timeout(own)) if all(map(_by_time, own)) else _without_end(terms)


def strictest(layers: Sequence[Terms]) -> Terms:
    """The terms under which a call waits that several layers gate: the strictest of each.

    A layer has no say in what it does not state; the first one's defaults count as stated, so that no
    later layer loosens them.
    """
    return Terms(
        **_merged(layers),
        approval_validity=min(terms.approval_validity for terms in _with_a_say(layers, "approval_validity")),
        approvers=tuple(dict.fromkeys(group for terms in layers for group in terms.approvers)),
        allow_self_approval=all(terms.allow_self_approval for terms in layers),
    )


def strictest_batch(layers: Sequence[BatchTerms]) -> BatchTerms:
    """Timeout and texts of a batch that several layers gate."""
    return BatchTerms(**_merged(layers))


def by_specificity(rules: Iterable[Rule]) -> list[Rule]:
    """The rules in the order in which they are tried: the most specific first, of equals the strictest."""
    return sorted(rules, key=lambda rule: (-rule.match.specificity, _strictness(rule), rule.match.says))


def rules_tried(rules: Iterable[Rule]) -> tuple[list[Rule], list[Rule], list[Rule]]:
    """The rules of which the first that matches a call is its `own`, `naming` or `forbidding` one; see `terms_of`."""
    tried = by_specificity(rules)
    naming = [rule for rule in tried if rule.approvers]
    forbidding = [rule for rule in tried if rule.allow_self_approval is False]
    return tried, naming, forbidding


def _friction(config: ApprovalConfig, own: Rule | None) -> dict[str, Any]:
    """What a rule states of timeout and texts, and the config for what it does not."""

    def stated(field: str) -> Any:
        value = None if own is None else getattr(own, field)
        return getattr(config, field) if value is None else value

    names = ("timeout_policy", "approval_timeout", "approval_validity", "pause_reason", "pending_message")
    policy = stated("timeout_policy") or TimeoutPolicy.WAIT_INDEFINITELY
    timeout = stated("approval_timeout")
    by_config = own is None or own.timeout_policy is None
    # Only a rule lets time approve, never the config for every call. Without a duration nothing is ever due.
    if timeout is None or (policy is TimeoutPolicy.AUTO_APPROVE and by_config):
        policy = TimeoutPolicy.WAIT_INDEFINITELY
    return {
        "rule": own,
        "timeout_policy": policy,
        "approval_timeout": None if policy is TimeoutPolicy.WAIT_INDEFINITELY else timeout,
        "pause_reason": stated("pause_reason"),
        "pending_message": stated("pending_message"),
        "stated": frozenset(name for name in names if stated(name) is not None),
    }


def _merged(layers: Sequence[BatchTerms]) -> dict[str, Any]:
    """The strictest timeout of several layers; texts are those of the last layer that states them."""
    speaking = _with_a_say(layers, "timeout_policy")
    policy = min((terms.timeout_policy for terms in speaking), key=_STRICTEST_FIRST.__getitem__)
    if policy is TimeoutPolicy.AUTO_APPROVE and not all(map(_by_time, layers)):
        policy = TimeoutPolicy.WAIT_INDEFINITELY
    return {
        "rule": next((terms.rule for terms in speaking if terms.rule and terms.timeout_policy is policy), None),
        "timeout_policy": policy,
        "approval_timeout": None if policy is TimeoutPolicy.WAIT_INDEFINITELY else _timeout(speaking),
        "pause_reason": next((terms.pause_reason for terms in reversed(layers) if terms.pause_reason), None),
        "pending_message": next((terms.pending_message for terms in reversed(layers) if terms.pending_message), None),
        "stated": frozenset().union(*(terms.stated for terms in layers)),
    }


def _with_a_say(layers: Sequence[_Waits], name: str) -> list[_Waits]:
    return [terms for number, terms in enumerate(layers) if number == 0 or name in terms.stated]


def _timeout(waiting: Sequence[BatchTerms]) -> timedelta:
    """The strictest of finite timeouts: the shortest, but the longest where time approves all of them."""
    timeouts = [terms.approval_timeout for terms in waiting if terms.approval_timeout is not None]
    return max(timeouts) if all(map(_by_time, waiting)) else min(timeouts)


def _without_end(terms: _Waits) -> _Waits:
    return replace(terms, timeout_policy=TimeoutPolicy.WAIT_INDEFINITELY, approval_timeout=None)


def _by_time(terms: BatchTerms) -> bool:
    return terms.timeout_policy is TimeoutPolicy.AUTO_APPROVE


def _strictness(friction: Friction) -> int:
    """0 for the strictest policy; what states none comes last."""
    return _NOT_STATED if friction.timeout_policy is None else _STRICTEST_FIRST[friction.timeout_policy]


def _governs(rule: Rule) -> tuple[int, int, str]:
    return _strictness(rule), -rule.match.specificity, rule.match.says
