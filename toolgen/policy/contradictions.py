"""What a config says against itself: entries that can have no effect, and friction that would be none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolgen.errors import Problem
from toolgen.policy.address import KnownTool, Vocabulary
from toolgen.policy.config import ApprovalConfig, Friction, Rule, TimeoutPolicy, Unmatched
from toolgen.policy.forms import colon_forms
from toolgen.policy.gate import demoted
from toolgen.policy.patterns import Form, Pattern
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


class Places:
    """Where in a config things stand, and where something is wrong, so that one fault is told once."""

    def __init__(self) -> None:
        self.patterns: dict[tuple[str, Pattern], int] = {}  # by key; a rule's by `rules`
        self.wrong: set[Place] = set()

    def of(self, key: str, pattern: Pattern, *rest: str) -> Place:
        """The place of a pattern of that key, or of a key of the rule that has it."""
        return (key, self.patterns[key, pattern], *rest)

    def is_sure(self, *place: str | int) -> bool:
        """Whether nothing is wrong at or below a place."""
        return not any(wrong[: len(place)] == place for wrong in self.wrong)


def contradictions(config: ApprovalConfig, places: Places, tools: Sequence[KnownTool]) -> list[Problem]:
    """Every contradiction of a config; what depends on something that could not be read is left out."""
    found = [*_without_effect(config, places), *_in_two_lists(config, places), *_friction(config, places)]
    if not found and not places.wrong:
        found += _approved_by_time(config, places, tools)
    return found


def doubts(config: ApprovalConfig, words: Vocabulary) -> Iterator[Problem]:
    """What may go ahead and should be read by a person: what is allowed and probably not meant."""
    lists = {"requireApproval": config.require_approval or (), "exempt": config.exempt, "deny": config.deny}
    lists["destructive"] = config.destructive
    places: list[tuple[Place, Pattern]] = []
    places += [((key, index), pattern) for key, patterns in lists.items() for index, pattern in enumerate(patterns)]
    places += [(("rules", index, "match"), rule.match) for index, rule in enumerate(config.rules)]
    for place, pattern in places:
        forms = colon_forms(pattern, words, only_by_source=True)
        if forms:
            message = f"{pattern} matches the names of tools only, neither sources nor endpoints"
            yield Problem(message, written(place), hint=f"to match those write {' and '.join(forms[:2])} as well")
    yield from _unused(config)


def _without_effect(config: ApprovalConfig, places: Places) -> Iterator[Problem]:
    """`exempt` and `rules` need a gate that somebody wrote down."""
    if not places.is_sure("requireApproval") or not places.is_sure("unmatched"):
        return
    if config.require_approval or (config.unmatched or Unmatched.allow) is not Unmatched.allow:
        return
    reason = "the gate is off" if config.is_off else "neither `requireApproval` nor `unmatched` is stated"
    hint = "name in `requireApproval` what needs approval, or write `unmatched: requireWrites`"
    for key, stated in (("exempt", config.exempt), ("rules", config.rules)):
        if stated:
            yield Problem(f"`{key}` has no effect: {reason}", key, hint=hint)


def _in_two_lists(config: ApprovalConfig, places: Places) -> Iterator[Problem]:
    lists: dict[str, tuple[Pattern, ...]] = {
        "requireApproval": config.require_approval or (),
        "exempt": config.exempt,
        "deny": config.deny,
        "rules": tuple(rule.match for rule in config.rules),
    }
    for stronger, weaker, reason in _BEATS:
        for pattern in lists[weaker]:
            if pattern in lists[stronger]:
                place = places.of(weaker, pattern, *(["match"] if weaker == "rules" else []))
                other = written(places.of(stronger, pattern))
                yield Problem(f"{pattern} stands in {other}, too: {reason}", written(place), hint="remove one of them")


def _friction(config: ApprovalConfig, places: Places) -> Iterator[Problem]:
    if config.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
        message = "AUTO_APPROVE may stand in a rule only, for the calls it matches"
        yield Problem(message, "timeoutPolicy", hint="write a rule with the pattern it is for")
    elif config.timeout_policy in _FINITE and config.approval_timeout is None and places.is_sure("approvalTimeout"):
        yield _no_duration(config, ())
    for rule in config.rules:
        place = places.of("rules", rule.match)
        if not places.is_sure(*place):
            continue
        no_duration = rule.approval_timeout is None and config.approval_timeout is None
        if rule.timeout_policy in _FINITE and no_duration and places.is_sure("approvalTimeout"):
            yield _no_duration(rule, place)
        if rule.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
            yield from _auto_approve(rule, config, place)


def _no_duration(friction: Friction, place: Place) -> Problem:
    message = f"{friction.timeout_policy} needs an `approvalTimeout`"
    return Problem(message, written((*place, "timeoutPolicy")), hint="add approvalTimeout: PT30M, or how long it is")


def _auto_approve(rule: Rule, config: ApprovalConfig, place: Place) -> Iterator[Problem]:
    where = written((*place, "timeoutPolicy"))
    approvers = rule.approvers or config.approvers
    if approvers:
        whose = "this rule" if rule.approvers else "the config"
        yield Problem(
            f"AUTO_APPROVE would approve in place of the approvers {whose} names",
            where,
            hint="remove the approvers, or write AUTO_REJECT",
        )
    if rule.match in config.destructive or _only_deletes(rule.match):
        message = f"{rule.match} matches destructive calls, which time never approves"
        yield Problem(message, where, hint="write AUTO_REJECT or ABORT")


def _only_deletes(pattern: Pattern) -> bool:
    """Whether every endpoint the pattern can match is a DELETE."""
    return pattern.form is Form.endpoint and pattern.before is not None and pattern.before.text.endswith(".delete")


def _approved_by_time(config: ApprovalConfig, places: Places, tools: Sequence[KnownTool]) -> Iterator[Problem]:
    """Rules by which time would approve a destructive call of these tools."""
    if not any(rule.timeout_policy is TimeoutPolicy.AUTO_APPROVE for rule in config.rules):
        return
    reached: dict[Pattern, list[str]] = {}
    for tool, rule in demoted(config, tools):
        reached.setdefault(rule.match, []).append(tool.name)
    for pattern, names in reached.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        place = places.of("rules", pattern, "timeoutPolicy")
        message = f"AUTO_APPROVE would reach {shown}: destructive, or for named approvers to decide"
        yield Problem(message, written(place), hint="write a narrower match, or a rule of their own for those calls")


def _unused(config: ApprovalConfig) -> Iterator[Problem]:
    if config.is_off:
        for key, stated in (("destructive", config.destructive), ("approvers", config.approvers)):
            if stated:
                yield Problem(f"`{key}` has no effect: the gate is off", key, hint="write requireApproval or unmatched")
    finite = any(one.timeout_policy in _FINITE for one in (config, *config.rules))
    for place, one in (((), config), *((("rules", i), rule) for i, rule in enumerate(config.rules))):
        if one.approval_timeout is not None and not finite:
            hint = "add timeoutPolicy: AUTO_REJECT or ABORT"
            yield Problem(
                "calls wait without end all the same: no timeoutPolicy", written((*place, "approvalTimeout")), hint=hint
            )
