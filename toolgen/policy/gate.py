"""What happens to a call: it runs, it waits for a person, or it is refused; and why.

`deny` beats `exempt`, which beats `requireApproval`, which beats `unmatched`. Everything is decided once
for each tool of a config and its toolsets; a call is then a look-up. Arguments decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from toolgen.policy.address import KnownTool, ToolList, known_tools
from toolgen.policy.config import (
    AUTO_APPROVALS,
    PAUSES,
    ApprovalConfig,
    NoProgress,
    Rule,
    TimeoutPolicy,
    Unmatched,
)
from toolgen.policy.index import ToolIndex
from toolgen.policy.terms import BatchTerms, Terms, batch_terms, by_specificity, strictest, strictest_batch, terms_of
from toolgen.tools.model import Toolset

UNKNOWN_TOOL: Final = "unknown tool"
UNMATCHED: Final = "unmatched"


class Outcome(IntEnum):
    """What happens to a call; the higher is the stricter."""

    allowed = 0
    gated = 1
    denied = 2


class ToolCall(NamedTuple):
    """A call as a model makes it. `source` names an API, an MCP server or a kind of source; None: not said."""

    id: str | None
    name: str | None
    arguments: Any = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """What one layer says of a tool.

    `reason` is the pattern that decided, or `unmatched`; `where` is its place in the config
    (`requireApproval[2]`, `unmatched`). `terms` are those under which calls wait, None where they do not.
    """

    outcome: Outcome
    reason: str
    where: str = ""
    terms: Terms | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What happens to the calls of a tool: the strictest that a layer says.

    `tool` is None for a name that no tool, or more than one, answers to; `detail` then says which.
    `layer` is the number of the layer that decided, from 0.
    """

    tool: KnownTool | None
    outcome: Outcome
    reason: str
    where: str = ""
    layer: int = 0
    terms: Terms | None = None
    layers: tuple[LayerOutcome, ...] = field(default=(), repr=False)
    detail: str = ""


class ClassifiedCall(NamedTuple):
    """A call and what happens to it."""

    call: ToolCall
    result: ToolOutcome

    @property
    def outcome(self) -> Outcome:
        return self.result.outcome

    @property
    def reason(self) -> str:
        return self.result.reason

    @property
    def rule(self) -> Rule | None:
        """The call's own rule: the most specific of those that match it."""
        return self.result.terms.rule if self.result.terms else None


class Classification:
    """What happens to the calls of a batch, each list in the batch's order."""

    def __init__(self, calls: tuple[ClassifiedCall, ...], layers: Sequence[ApprovalConfig]) -> None:
        self.calls = calls
        self._layers = layers

    @property
    def gated(self) -> list[ToolCall]:
        """The calls that wait for a person."""
        return self._with(Outcome.gated)

    @property
    def allowed(self) -> list[ToolCall]:
        """The calls that run."""
        return self._with(Outcome.allowed)

    @property
    def denied(self) -> list[ToolCall]:
        """The calls that are refused."""
        return self._with(Outcome.denied)

    @cached_property
    def reasons(self) -> dict[str, str]:
        """Why, by call id: the pattern that decided, `unmatched`, or `unknown tool`. Of two calls that share
        an id it is the stricter one's; calls without an id are in `calls` only."""
        ranked = sorted(self.calls, key=lambda one: one.outcome)
        return {one.call.id: one.reason for one in ranked if one.call.id is not None}

    @cached_property
    def terms(self) -> BatchTerms | None:
        """Timeout and texts of the batch's pause; None where nothing waits.

        Who may approve is each call's own affair: see its `result.terms`.
        """
        waiting = [one.result for one in self.calls if one.result.terms is not None]
        by_layer = []
        for number, config in enumerate(self._layers):
            own = [terms for result in waiting if (terms := result.layers[number].terms) is not None]
            if own:
                by_layer.append(batch_terms(config, own))
        return strictest_batch(by_layer, [result.terms for result in waiting if result.terms]) if by_layer else None

    @property
    def rule(self) -> Rule | None:
        """The rule that governs the batch's timeout and texts: the strictest of its calls' rules."""
        return self.terms.rule if self.terms else None

    def _with(self, outcome: Outcome) -> list[ToolCall]:
        return [one.call for one in self.calls if one.result.outcome is outcome]


class Gate:
    """A config, or several in layers, prepared for these toolsets.

    Layers are not merged: each says what happens, and the strictest holds. None is no config, which means
    that reads run and writes wait.

    Raises RegistrationError for tools whose names could be taken for something else.
    """

    def __init__(
        self,
        config: ApprovalConfig | Sequence[ApprovalConfig] | None,
        toolsets: Iterable[Toolset | ToolList] | Toolset | ToolList = (),
    ) -> None:
        given = [config] if config is None or isinstance(config, ApprovalConfig) else list(config)
        self.layers = tuple(one or ApprovalConfig() for one in given) or (ApprovalConfig(),)
        self.tools = known_tools([toolsets] if isinstance(toolsets, Toolset | ToolList) else toolsets)
        index = ToolIndex(self.tools)
        marked = _destructive(self.layers, index)
        outcomes = [_layer_outcomes(layer, index, marked) for layer in self.layers]
        self.destructive = frozenset(self.tools[number] for number in marked)
        self._found: dict[tuple[str | None, str], ToolOutcome] = {}
        self._shared: dict[tuple[str | None, str], list[str]] = {}
        for number, tool in enumerate(self.tools):
            result = _strictest_outcome(tool, tuple(layer[number] for layer in outcomes))
            for source in (None, *tool.sources):
                self._enter((source, tool.name), tool, result)

    def classify(self, calls: Iterable[ToolCall]) -> Classification:
        """What happens to each call, in order. Pure: it knows nothing of approvals that were given."""
        return Classification(tuple(ClassifiedCall(call, self._result(call)) for call in calls), self.layers)

    def outcome_of(self, tool: KnownTool) -> ToolOutcome:
        """What happens to the calls of a tool of this gate."""
        return self._found[tool.source, tool.name]

    @property
    def max_pauses_per_turn(self) -> int:
        """How often a turn may pause; the fewest of any layer."""
        return min(_or(layer.max_pauses_per_turn, PAUSES) for layer in self.layers)

    @property
    def max_auto_approvals_per_turn(self) -> int:
        """How many calls of a turn time may approve; the fewest of any layer."""
        return min(_or(layer.max_auto_approvals_per_turn, AUTO_APPROVALS) for layer in self.layers)

    @property
    def on_no_progress(self) -> NoProgress:
        """What happens when a turn makes no progress; the strictest of any layer."""
        order = list(NoProgress)
        return min((layer.on_no_progress or NoProgress.WAIT_FOR_HUMAN for layer in self.layers), key=order.index)

    def _enter(self, key: tuple[str | None, str], tool: KnownTool, result: ToolOutcome) -> None:
        sharing = self._shared.setdefault(key, [])
        sharing.append(tool.source)
        if len(sharing) > 1:
            detail = f"{', '.join(sharing)} each have a tool {key[1]!r}: a call of it names its source"
            result = ToolOutcome(None, Outcome.denied, UNKNOWN_TOOL, detail=detail)
        self._found[key] = result

    def _result(self, call: ToolCall) -> ToolOutcome:
        try:
            found = self._found.get((call.source, call.name))  # type: ignore[arg-type]
        except TypeError:  # a name or source that is no text
            found = None
        return found or _unknown(call)


def demoted(config: ApprovalConfig, tools: Sequence[KnownTool]) -> Iterator[tuple[KnownTool, Rule]]:
    """The gated tools whose own rule says AUTO_APPROVE where time must not approve."""
    index = ToolIndex(tools)
    for tool, result in zip(tools, _layer_outcomes(config, index, _destructive([config], index)), strict=True):
        rule = result.terms.rule if result.terms else None
        if rule is not None and rule.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
            assert result.terms is not None
            if result.terms.timeout_policy is not TimeoutPolicy.AUTO_APPROVE:
                yield tool, rule


def _unknown(call: ToolCall) -> ToolOutcome:
    if call.name is None:
        detail = "the call names no tool"
    else:
        detail = f"no tool is called {call.name!r}" + (f" in {call.source!r}" if call.source is not None else "")
    return ToolOutcome(None, Outcome.denied, UNKNOWN_TOOL, detail=detail)


def _destructive(layers: Iterable[ApprovalConfig], index: ToolIndex) -> set[int]:
    """The tools that are destructive: DELETE, marked by a person, or named in any layer."""
    found = {
        number
        for number, tool in enumerate(index.tools)
        if tool.marked_destructive or (tool.endpoint is not None and tool.endpoint.method == "delete")
    }
    for layer in layers:
        found.update(index.first_matches(layer.destructive))
    return found


def _layer_outcomes(config: ApprovalConfig, index: ToolIndex, destructive: set[int]) -> list[LayerOutcome]:
    terms = _TermsByTool(config, index, destructive)
    stated = _stated_outcomes(config, index)
    found = []
    for number, tool in enumerate(index.tools):
        outcome, reason, where = stated.get(number) or _unmatched(config, tool)
        found.append(LayerOutcome(outcome, reason, where, terms.of(number) if outcome is Outcome.gated else None))
    return found


def _stated_outcomes(config: ApprovalConfig, index: ToolIndex) -> dict[int, tuple[Outcome, str, str]]:
    """What a pattern says of each tool that one matches: the outcome, the pattern, its place."""
    lists = [
        (Outcome.gated, "requireApproval", config.require_approval or ()),
        (Outcome.allowed, "exempt", config.exempt),
        (Outcome.denied, "deny", config.deny),
    ]
    found: dict[int, tuple[Outcome, str, str]] = {}
    for outcome, key, patterns in lists:  # the weakest first
        for number, position in index.first_matches(patterns).items():
            found[number] = outcome, patterns[position].text, f"{key}[{position}]"
    return found


def _unmatched(config: ApprovalConfig, tool: KnownTool) -> tuple[Outcome, str, str]:
    if config.unreadable_reason is not None:
        return Outcome.gated, f"the approval config could not be read: {config.unreadable_reason}", ""
    default = config.default
    if default is Unmatched.require_writes:
        outcome = Outcome.gated if tool.is_write else Outcome.allowed
    else:
        outcome = _DEFAULTS[default]
    return outcome, UNMATCHED, UNMATCHED


_DEFAULTS: Final[Mapping[Unmatched, Outcome]] = {
    Unmatched.allow: Outcome.allowed,
    Unmatched.require: Outcome.gated,
    Unmatched.deny: Outcome.denied,
}


class _TermsByTool:
    """The terms of each tool in one layer. Tools of the same rules share an object."""

    def __init__(self, config: ApprovalConfig, index: ToolIndex, destructive: set[int]) -> None:
        self._config = config
        self._destructive = destructive
        self._rules = by_specificity(config.rules)
        self._naming = [rule for rule in self._rules if rule.approvers]
        self._own_of = index.first_matches(rule.match for rule in self._rules)
        self._naming_of = index.first_matches(rule.match for rule in self._naming)
        self._made: dict[tuple[int | None, int | None, bool], Terms] = {}

    def of(self, number: int) -> Terms:
        """The terms under which the calls of a tool wait."""
        own, naming, destructive = self._own_of.get(number), self._naming_of.get(number), number in self._destructive
        key = own, naming, destructive
        if key not in self._made:
            self._made[key] = terms_of(
                self._config,
                None if own is None else self._rules[own],
                None if naming is None else self._naming[naming],
                destructive=destructive,
            )
        return self._made[key]


def _strictest_outcome(tool: KnownTool, layers: tuple[LayerOutcome, ...]) -> ToolOutcome:
    layer = max(range(len(layers)), key=lambda number: (layers[number].outcome, -number))
    decided = layers[layer]
    terms = [one.terms for one in layers if one.terms is not None] if decided.outcome is Outcome.gated else []
    return ToolOutcome(
        tool, decided.outcome, decided.reason, decided.where, layer, strictest(terms) if terms else None, layers
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
