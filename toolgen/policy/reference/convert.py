"""An approval config of the reference system -> one with the same outcomes here, and every difference told.

What cannot stay equal gets stricter: a call that waited there waits here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolgen.errors import ApprovalConfigError, Problem
from toolgen.policy.address import KnownTool, ToolList, Toolsets, Vocabulary, known_tools, listed
from toolgen.policy.advice import pattern_problem
from toolgen.policy.config import ApprovalConfig, TimeoutPolicy, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome
from toolgen.policy.patterns import Pattern, can_match
from toolgen.policy.reference.equivalents import equivalents
from toolgen.policy.reference.levels import Entry, ReferenceConfig, ReferenceRule, read_reference
from toolgen.policy.text import visible
from toolgen.policy.yaml_text import block, comment
from toolgen.tools.files.places import Place, parts, written
from toolgen.tools.model import Toolset

_BY_TIME = TimeoutPolicy.AUTO_APPROVE
_OFF: Final = "the gate is off there: `requireApproval` is empty, no call waits; `requireApproval: []` says so here"
_DEAD: Final = (
    "no entry of `requireApproval` can gate anything; every write waits here instead: `unmatched: requireWrites`"
)


@dataclass(frozen=True, slots=True)
class Imported:
    """`mapping` is a config that `ApprovalConfig.parse` takes; `changes` are its differences to what was imported.

    The place of a change is one in the config that was imported. Those that matter most come first.
    """

    mapping: dict[str, Any]
    changes: tuple[Problem, ...]

    def to_yaml(self) -> str:
        """The config as the text of a file; the same config gives the same text."""
        lines = [comment("Approvals, imported from another system's `hitlConfig` by `toolgen check --import`.")]
        if self.mapping.get("requireApproval") == []:
            lines.append(comment("THE GATE IS OFF, as it was there: no call waits for a person."))
        elif "requireApproval" not in self.mapping:
            lines.append(comment("Nothing there could gate a call. Here every write waits."))
        return "\n".join([*lines, *block(self.mapping), ""])


def import_config(data: Any, toolsets: Toolsets = ()) -> Imported:
    """A config of the reference system: an agent's document, its `hitlConfig`, `toolApprovals`, or the keys in there.

    With toolsets every tool is compared, and those with another outcome are among the changes.

    Raises ApprovalConfigError with all problems for what the reference system would refuse as well, and
    RegistrationError as `Gate` does.
    """
    given = listed(toolsets)
    return _Import(read_reference(data), given, known_tools(given)).result()


@dataclass(slots=True)
class _Rule:
    """A rule in the making: one form of an old rule's match."""

    match: Pattern
    old: ReferenceRule
    by_time: bool

    def written(self) -> dict[str, Any]:
        stated = dict(self.old.stated)
        if self.old.policy is _BY_TIME and not self.by_time:
            stated["timeoutPolicy"] = TimeoutPolicy.WAIT_INDEFINITELY.value
            stated.pop("approvalTimeout", None)
        return {"match": self.match.text, **stated}


@dataclass(slots=True)
class _Import:
    old: ReferenceConfig
    toolsets: Sequence[Toolset | ToolList]
    tools: Sequence[KnownTool]
    loud: list[Problem] = field(default_factory=list)
    changes: list[Problem] = field(default_factory=list)
    words: Vocabulary = field(default_factory=Vocabulary)
    paths: list[str] = field(default_factory=list)

    def result(self) -> Imported:
        self.words = Vocabulary().with_tools(self.tools)
        self.paths = list(dict.fromkeys(tool.endpoint.path for tool in self.tools if tool.endpoint is not None))
        self.changes += self.old.left_out
        mapping, rules = (self._gate() if self.old.require else self._off()), []
        if self.old.require:
            rules = self._rules({Pattern.of(text, self.words) for text in mapping.get("exempt", ())})
        friction = self._friction()
        config = self._accepted(mapping, rules, friction)
        self.changes += self._compared(config)
        return Imported(self._whole(mapping, rules, friction), (*self.loud, *self.changes))

    def _off(self) -> dict[str, Any]:
        self._say_loud("requireApproval", _OFF, "write `unmatched: requireWrites` in its place, so that writes wait")
        for key, stated in (("exempt", self.old.exempt), ("rules", self.old.rules)):
            if stated:
                self._say((*self.old.root, key), f"`{key}` is left out: it has no effect where the gate is off")
        return {"requireApproval": []}

    def _gate(self) -> dict[str, Any]:
        exempt = self._patterns(self.old.exempt, protects=False)
        require = self._patterns(self.old.require, protects=True)
        for pattern in list(require):
            if pattern in exempt:
                where = written(exempt[pattern].place)
                self._say(require.pop(pattern).place, f"{pattern} is left out: {where} exempts the same calls")
        found: dict[str, Any] = {"requireApproval": [pattern.text for pattern in require]}
        if exempt:
            found["exempt"] = [pattern.text for pattern in exempt]
        if require:
            found["unmatched"] = Unmatched.allow.value
            message = "what no pattern speaks of runs there; `unmatched: allow` says so here"
            self._say_loud("requireApproval", message, "remove it, so that writes wait that nobody thought of")
        else:
            del found["requireApproval"]
            found["unmatched"] = Unmatched.require_writes.value
            self._say_loud("requireApproval", _DEAD, "name in `requireApproval` what was meant")
        return found

    def _patterns(self, entries: Iterable[Entry], *, protects: bool) -> dict[Pattern, Entry]:
        """The patterns of a list, each with the entry it comes from."""
        found: dict[Pattern, Entry] = {}
        for entry in entries:
            for pattern in self._forms(entry, protects=protects):
                first = found.setdefault(pattern, entry)
                if first is not entry and pattern.text == entry.text:
                    self._say(entry.place, f"{entry.text} is left out: {written(first.place)} says the same")
        return found

    def _forms(self, entry: Entry, *, protects: bool) -> list[Pattern]:
        """What to write for a pattern. `protects`: where nothing says the same, something wider is safe."""
        same = equivalents(entry.text, self.words, paths=self.paths)
        forms = equivalents(entry.text, self.words, paths=self.paths, wider=True) if protects else same
        if forms != [entry.text]:
            self._report_forms(entry, same, forms)
        return [Pattern.of(text, self.words) for text in forms]

    def _report_forms(self, entry: Entry, same: list[str], forms: list[str]) -> None:
        text, meant = visible(entry.text), ""
        if not can_match(entry.text, self.words):
            problem = replace(pattern_problem(entry.text, self.words), where=written(entry.place))
            meant = f"if {problem.suggestion} was meant, write that" if problem.suggestion else ""
            if not forms:
                self.changes.append(replace(problem, message=f"{text} is left out: {problem.message}", hint=meant))
                return
        if not forms:
            self._say(entry.place, f"{text} is left out: it matches nothing there", meant)
        elif forms != same:
            message = f"{' and '.join(forms)} in place of {text}: what that matched is written otherwise here"
            self._say(entry.place, message, meant)
        elif text in forms:
            added = [form for form in forms if form != text]
            self._say(entry.place, f"{' and '.join(added)} added: {text} matches that there, too")
        else:
            self._say(entry.place, f"{' and '.join(forms)} in place of {text}: that matches the same here", meant)

    def _rules(self, exempt: set[Pattern]) -> list[_Rule]:
        found: dict[Pattern, _Rule] = {}
        for old in self.old.rules:
            by_time = old.policy is _BY_TIME
            for pattern in self._forms(old.match, protects=not by_time):
                rule = _Rule(pattern, old, by_time)
                if pattern in exempt:
                    self._say(old.match.place, f"the rule for {pattern} is left out: the same calls are exempt")
                elif (first := found.get(pattern)) is None:
                    found[pattern] = rule
                else:
                    kept, lost = sorted((first, rule), key=_precedence)
                    found[pattern] = kept
                    message = f"the rule for {pattern} is left out: {written(kept.old.match.place)} comes before it"
                    self._say(lost.old.match.place, message)
        rules = list(found.values())
        for rule in rules:
            if rule.by_time and any(_overtakes(rule, other) for other in rules):
                self._wait(rule, "it could come before a stricter rule here that comes before it there")
        return rules

    def _friction(self) -> dict[str, Any]:
        stated = dict(self.old.stated)
        if stated.get("timeoutPolicy") == _BY_TIME:
            reason = "there calls of tools wait all the same" if self.old.never_by_time else "here calls wait"
            hint = "write a rule with AUTO_APPROVE for the calls that time may approve"
            self._say(self.old.places["timeoutPolicy"], f"AUTO_APPROVE for every call is left out: {reason}", hint)
            del stated["timeoutPolicy"]
        return {key: stated[key] for key in _ORDER if key in stated}

    def _accepted(self, mapping: dict[str, Any], rules: list[_Rule], friction: dict[str, Any]) -> ApprovalConfig:
        """The config; where parsing refuses that time approves what a rule matches, the rule waits."""
        while True:
            try:
                return ApprovalConfig.parse(self._whole(mapping, rules, friction), self.toolsets)
            except ApprovalConfigError as error:
                refused = {_rule_of(problem): problem.message for problem in error.problems}
                changed = [index for index in refused if index is not None and rules[index].by_time]
                if not changed:
                    raise
                for index in changed:
                    self._wait(rules[index], refused[index])

    def _wait(self, rule: _Rule, reason: str) -> None:
        rule.by_time = False
        place = (*rule.old.match.place[:-1], "timeoutPolicy")
        self._say(place, f"WAIT_INDEFINITELY in place of AUTO_APPROVE for {rule.match}: {reason}")

    def _whole(self, mapping: dict[str, Any], rules: list[_Rule], friction: dict[str, Any]) -> dict[str, Any]:
        return mapping | ({"rules": [rule.written() for rule in rules]} if rules else {}) | friction

    def _compared(self, config: ApprovalConfig) -> Iterator[Problem]:
        """The tools with another outcome than there."""
        gate = Gate(config, self.toolsets)
        for tool in gate.tools:
            result, waited = gate.outcome_of(tool), self.old.gates(tool)
            if result.outcome is not (Outcome.gated if waited else Outcome.allowed):
                there = "waits" if waited else "runs"
                message = f"{tool.addresses[0]} ({tool.name}) {there} there and is {result.outcome.name} here"
                hint = f"by {result.where}" + (f": {result.reason}" if result.reason != result.where else "")
                yield Problem(message, written((*self.old.root, "requireApproval")), hint=hint)

    def _say(self, place: Place, message: str, hint: str = "") -> None:
        self.changes.append(Problem(message, written(place), hint=hint))

    def _say_loud(self, key: str, message: str, hint: str) -> None:
        self.loud.append(Problem(message, written((*self.old.root, key)), hint=hint))


def _rule_of(problem: Problem) -> int | None:
    """The number of the rule whose timeout policy is refused."""
    match parts(problem.where):
        case ("rules", int(index), "timeoutPolicy"):
            return index
    return None


def _precedence(rule: _Rule) -> tuple[int, int]:
    """The lower comes first there: the more specific, of equals what is stricter."""
    order = list(TimeoutPolicy)
    return -rule.old.match.specificity, len(order) if rule.old.policy is None else order.index(rule.old.policy)


def _overtakes(rule: _Rule, other: _Rule) -> bool:
    """Whether a rule comes before another here that comes before it, or may, there."""
    there = other.old.match.specificity >= rule.old.match.specificity
    return there and other.old.policy is not _BY_TIME and other.match.specificity < rule.match.specificity


_ORDER: Final = (
    "timeoutPolicy",
    "approvalTimeout",
    "pauseReason",
    "pendingMessage",
    "maxPausesPerTurn",
    "maxAutoApprovalsPerTurn",
    "onNoProgress",
)
