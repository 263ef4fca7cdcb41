"""What a config says against itself: entries that can have no effect, and friction that would be none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolgen.errors import Problem
from toolgen.policy.address import KnownTool, Vocabulary
from toolgen.policy.config import ApprovalConfig, Friction, Rule, TimeoutPolicy, Unmatched, key_of
from toolgen.policy.forms import other_forms
from toolgen.policy.gate import demoted
from toolgen.policy.patterns import Form, Pattern, beginnings
from toolgen.policy.text import several
from toolgen.policy.values import Values, shown
from toolgen.tools.files.places import Place, written

_FINITE = frozenset({TimeoutPolicy.ABORT, TimeoutPolicy.AUTO_REJECT, TimeoutPolicy.AUTO_APPROVE})
# Which list beats which, and what an entry of both is then.
_BEATS = (
    ("deny", "requireApproval", "what is denied never waits for approval"),
    ("deny", "exempt", "what is denied never runs"),
    ("exempt", "requireApproval", "what is exempt never waits for approval"),
    ("exempt", "rules", "the rule can never apply"),
    ("deny", "rules", "the rule can never apply"),
)
# What decides whether a rule reaches a tool, and what it does there.
_REACH = ("requireApproval", "exempt", "deny", "destructive", "unmatched", "rules", "approvalTimeout", "approvers")
# What says something of calls that wait only, and is no error where none does.
_OF_WAITING = (
    *("destructive", "timeout_policy", "approval_timeout", "approval_validity", "pause_reason", "pending_message"),
    *("approvers", "allow_self_approval", "max_pauses_per_turn", "max_auto_approvals_per_turn", "on_no_progress"),
)


def contradictions(
    config: ApprovalConfig, read: Values, words: Vocabulary, tools: Sequence[KnownTool]
) -> list[Problem]:
    """Every contradiction of a config; what depends on something that could not be read is left out."""
    found = [*_without_effect(config, read), *_in_two_lists(config, read), *_friction(config, read, words)]
    if all(map(read.is_sure, _REACH)):
        told = {problem.where for problem in found}
        found += [one for one in _approved_by_time(config, read, tools) if one.where not in told]
    return found


def warnings(config: ApprovalConfig, words: Vocabulary) -> Iterator[Problem]:
    """What may go ahead and should be read by a person: what is allowed and probably not meant."""
    places: list[tuple[Place, Pattern]] = [
        ((key, index, *(["match"] if key == "rules" else [])), pattern)
        for key, patterns in config.patterns.items()
        for index, pattern in enumerate(patterns)
    ]
    for place, pattern in places:
        forms = other_forms(pattern, words, only_by_source=True)
        if forms:
            what = "neither their sources nor endpoints" if pattern.form is Form.name else "not their endpoints"
            message = f"{shown(pattern.text)} matches the names of tools only, {what}"
            yield Problem(message, written(place), hint=f"to match those write {' and '.join(forms[:2])} as well")
    yield from _unused(config)


def _nothing_waits(config: ApprovalConfig) -> str:
    """Why no call can wait by this config; empty where one can."""
    if config.require_approval or config.default in (Unmatched.require, Unmatched.require_writes):
        return ""
    return "the gate is off" if config.is_off else "what no pattern speaks of is denied, and nothing needs approval"


def _without_effect(config: ApprovalConfig, read: Values) -> Iterator[Problem]:
    """`exempt` and `rules` need a gate that somebody wrote down."""
    if not read.is_sure("requireApproval") or not read.is_sure("unmatched"):
        return
    reason = _nothing_waits(config)
    if not reason and config.require_approval is None and config.unmatched is None:
        reason = "neither `requireApproval` nor `unmatched` is stated"
    hint = "name in `requireApproval` what needs approval, or write `unmatched: requireWrites`"
    if reason and config.exempt and config.unmatched is not Unmatched.deny:
        yield Problem(f"`exempt` has no effect: {reason}", "exempt", hint=hint)
    if reason and config.rules:
        yield Problem(f"`rules` has no effect: {reason}", "rules", hint=hint)


def _in_two_lists(config: ApprovalConfig, read: Values) -> Iterator[Problem]:
    lists = config.patterns
    told: set[tuple[str, Pattern]] = set()
    for stronger, weaker, reason in _BEATS:
        beating = frozenset(lists[stronger])
        for pattern in lists[weaker]:
            if pattern in beating and (weaker, pattern) not in told:
                told.add((weaker, pattern))
                place = read.place_of(weaker, pattern, *(["match"] if weaker == "rules" else []))
                message = f"{shown(pattern.text)} stands in {written(read.place_of(stronger, pattern))}, too: {reason}"
                yield Problem(message, written(place), hint="remove one of them")


def _friction(config: ApprovalConfig, read: Values, words: Vocabulary) -> Iterator[Problem]:
    no_timeout = config.approval_timeout is None and read.is_sure("approvalTimeout")
    if config.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
        message = "AUTO_APPROVE may stand in a rule only, for the calls it matches"
        yield Problem(message, "timeoutPolicy", hint="write a rule with the pattern it is for")
    elif config.timeout_policy in _FINITE and no_timeout:
        yield _no_duration(config, ())
    destructive = frozenset(config.destructive)
    for rule in config.rules:
        place = read.place_of("rules", rule.match)
        stated = rule.approval_timeout is not None or not read.is_sure(*place, "approvalTimeout")
        if rule.timeout_policy in _FINITE and no_timeout and not stated:
            yield _no_duration(rule, place)
        if rule.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
            where = written((*place, "timeoutPolicy"))
            yield from _for_others(rule, config, where, unsure=not read.is_sure(*place, "allowSelfApproval"))
            if rule.match in destructive or _only_deletes(rule.match, words):
                message = f"{shown(rule.match.text)} matches destructive calls, which time never approves"
                yield Problem(message, where, hint="write AUTO_REJECT or ABORT")


def _no_duration(friction: Friction, place: Place) -> Problem:
    message = f"{friction.timeout_policy} needs an `approvalTimeout`"
    return Problem(message, written((*place, "timeoutPolicy")), hint="add approvalTimeout: PT30M, or how long it is")


def _for_others(rule: Rule, config: ApprovalConfig, where: str, *, unsure: bool) -> Iterator[Problem]:
    """Time does not approve what other people than the requester have to."""
    if rule.approvers or config.approvers:
        whose = "this rule" if rule.approvers else "the config"
        message = f"AUTO_APPROVE would approve in place of the approvers {whose} names"
        yield Problem(message, where, hint="remove the approvers, or write AUTO_REJECT")
    elif not unsure and (config if rule.allow_self_approval is None else rule).allow_self_approval is False:
        message = "AUTO_APPROVE would approve in place of somebody else than the requester"
        yield Problem(message, where, hint="remove allowSelfApproval: false, or write AUTO_REJECT")


def _only_deletes(pattern: Pattern, words: Vocabulary) -> bool:
    """Whether every endpoint the pattern can match is a DELETE."""
    if pattern.form is not Form.endpoint or pattern.before is None:
        return False
    return all(one.endswith(".delete") for one in beginnings(Form.endpoint, words) if pattern.before.matches(one))


def _approved_by_time(config: ApprovalConfig, read: Values, tools: Sequence[KnownTool]) -> Iterator[Problem]:
    """Rules by which time would approve a destructive call of these tools, or one that named people decide."""
    if not any(rule.timeout_policy is TimeoutPolicy.AUTO_APPROVE for rule in config.rules):
        return
    reached: dict[Pattern, list[str]] = {}
    for tool, rule in demoted(config, tools):
        reached.setdefault(rule.match, []).append(tool.name)
    for pattern, names in reached.items():
        message = f"AUTO_APPROVE would reach {several(names)}: destructive, or for other people to decide"
        hint = "write a narrower match, or a rule of their own for those calls"
        yield Problem(message, written(read.place_of("rules", pattern, "timeoutPolicy")), hint=hint)


def _unused(config: ApprovalConfig) -> Iterator[Problem]:
    reason = _nothing_waits(config)
    if reason:
        for field in _OF_WAITING:
            if getattr(config, field) not in (None, ()):
                hint = "write requireApproval or unmatched"
                yield Problem(f"`{key_of(field)}` has no effect: {reason}", key_of(field), hint=hint)
        return
    # A timeout of the config is also for the rules that state none.
    inherits = any(rule.timeout_policy in _FINITE and rule.approval_timeout is None for rule in config.rules)
    if config.approval_timeout is not None and config.timeout_policy not in _FINITE and not inherits:
        yield _endless(())
    for index, rule in enumerate(config.rules):
        if rule.approval_timeout is not None and (rule.timeout_policy or config.timeout_policy) not in _FINITE:
            yield _endless(("rules", index))


def _endless(place: Place) -> Problem:
    message = "`approvalTimeout` has no effect: no timeoutPolicy says what happens then"
    return Problem(message, written((*place, "approvalTimeout")), hint="add timeoutPolicy: AUTO_REJECT or ABORT")
