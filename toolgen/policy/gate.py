"""What happens to a call: it runs, it waits for a person, or it is refused; and why.

`deny` beats `exempt`, which beats `requireApproval`, which beats `unmatched`. Everything is decided once
for each tool of a config and its toolsets; a call is then a look-up. Arguments decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from toolgen.policy.address import LONGEST_NAME, KnownTool, Toolsets, known_tools
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
from toolgen.policy.outcomes import (
    UNKNOWN_TOOL,
    UNMATCHED,
    Classification,
    ClassifiedCall,
    LayerOutcome,
    Outcome,
    ToolCall,
    ToolOutcome,
)
from toolgen.policy.terms import Terms, rules_tried, strictest, terms_of

_Value = TypeVar("_Value")


class Gate:
    """A config, or several in layers, prepared for these toolsets.

    Layers are not merged: each says what happens, and the strictest holds. None is no config, which means
    that reads run and writes wait.

    Raises RegistrationError for tools whose names could be taken for something else.
    """

    def __init__(
        self,
        config: ApprovalConfig | Sequence[ApprovalConfig | None] | None,
        toolsets: Toolsets = (),
    ) -> None:
        given = [config] if config is None or isinstance(config, ApprovalConfig) else list(config)
        self.layers = tuple(map(_layer, given)) or (ApprovalConfig(),)
        self.tools = known_tools(toolsets)
        index = ToolIndex(self.tools)
        by_layer = [_destructive(layer, index) for layer in self.layers]
        marked = set().union(*by_layer)
        outcomes = [
            _layer_outcomes(layer, index, own, marked) for layer, own in zip(self.layers, by_layer, strict=True)
        ]
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
        """How often a turn may pause; layers behind the first can only lower it."""
        return min(_stated((layer.max_pauses_per_turn for layer in self.layers), PAUSES))

    @property
    def max_auto_approvals_per_turn(self) -> int:
        """How many calls of a turn time may approve; layers behind the first can only lower it."""
        return min(_stated((layer.max_auto_approvals_per_turn for layer in self.layers), AUTO_APPROVALS))

    @property
    def on_no_progress(self) -> NoProgress:
        """What happens when a turn makes no progress; layers behind the first can only make it stricter."""
        stated = _stated((layer.on_no_progress for layer in self.layers), NoProgress.WAIT_FOR_HUMAN)
        return min(stated, key=list(NoProgress).index)

    def _enter(self, key: tuple[str | None, str], tool: KnownTool, result: ToolOutcome) -> None:
        sharing = self._shared.setdefault(key, [])
        sharing.append(tool.source)
        if len(sharing) > 1:
            detail = f"{', '.join(sharing)} each have a tool {key[1]!r}: a call of it names its source"
            result = ToolOutcome(None, Outcome.denied, UNKNOWN_TOOL, detail=detail)
        self._found[key] = result

    def _result(self, call: ToolCall) -> ToolOutcome:
        name, source = call.name, call.source
        if not isinstance(name, str) or not (source is None or isinstance(source, str)):
            return _NAMELESS
        return self._found.get((source, name)) or _unknown(name, source)


def demoted(config: ApprovalConfig, tools: Sequence[KnownTool]) -> Iterator[tuple[KnownTool, Rule]]:
    """The gated tools whose own rule says AUTO_APPROVE where time must not approve."""
    index = ToolIndex(tools)
    marked = _destructive(config, index)
    for tool, result in zip(tools, _layer_outcomes(config, index, marked, marked), strict=True):
        rule = result.terms.rule if result.terms else None
        if rule is not None and rule.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
            assert result.terms is not None
            if result.terms.timeout_policy is not TimeoutPolicy.AUTO_APPROVE:
                yield tool, rule


_NAMELESS: Final = ToolOutcome(None, Outcome.denied, UNKNOWN_TOOL, detail="the call names no tool by a text")


def _unknown(name: str, source: str | None) -> ToolOutcome:
    place = "" if source is None else f" in {source[:LONGEST_NAME]!r}"
    return ToolOutcome(None, Outcome.denied, UNKNOWN_TOOL, detail=f"no tool is called {name[:LONGEST_NAME]!r}{place}")


def _layer(config: ApprovalConfig | None) -> ApprovalConfig:
    """The config; of one that could not be read nothing holds that lets a call run or time approve it."""
    if config is None:
        return ApprovalConfig()
    if not isinstance(config, ApprovalConfig):
        raise TypeError(f"expected ApprovalConfig, not {type(config).__name__}; ApprovalConfig.parse makes one")
    return config if config.unreadable_reason is None else replace(config, exempt=(), rules=())


def _destructive(config: ApprovalConfig, index: ToolIndex) -> set[int]:
    """The tools that are destructive in a layer: DELETE, marked by a person, or named by the layer."""
    found = {number for number, tool in enumerate(index.tools) if tool.is_destructive}
    return found.union(index.first_matches(config.destructive))


def _layer_outcomes(
    config: ApprovalConfig, index: ToolIndex, own: set[int], destructive: set[int]
) -> list[LayerOutcome]:
    """What a layer says of each tool; `own` are destructive in this layer, `destructive` in any."""
    terms = _TermsByTool(config, index, destructive)
    stated = _stated_outcomes(config, index)
    found = []
    for number, tool in enumerate(index.tools):
        outcome, reason, where = stated.get(number) or _unmatched(config, tool.is_write or number in own)
        found.append(LayerOutcome(outcome, reason, where, terms.of(number) if outcome is Outcome.gated else None))
    return found


def _stated_outcomes(config: ApprovalConfig, index: ToolIndex) -> dict[int, tuple[Outcome, str, str]]:
    """What a pattern says of each tool that one matches: the outcome, the pattern, its place."""
    found: dict[int, tuple[Outcome, str, str]] = {}
    for key, outcome in _SAID.items():
        patterns = config.patterns[key]
        for number, position in index.first_matches(patterns).items():
            found[number] = outcome, patterns[position].text, f"{key}[{position}]"
    return found


def _unmatched(config: ApprovalConfig, changes: bool) -> tuple[Outcome, str, str]:
    """What happens where no pattern speaks; `changes`: the tool writes, or is a read that counts as destructive."""
    if config.unreadable_reason is not None:
        return Outcome.gated, f"the approval config could not be read: {config.unreadable_reason}", ""
    default = config.default
    if default is Unmatched.require_writes:
        outcome = Outcome.gated if changes else Outcome.allowed
    else:
        outcome = _DEFAULTS[default]
    return outcome, UNMATCHED, UNMATCHED


# What a pattern of each list says, the weakest list first.
_SAID: Final = {"requireApproval": Outcome.gated, "exempt": Outcome.allowed, "deny": Outcome.denied}
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
        self._found = [
            (rules, index.first_matches(rule.match for rule in rules)) for rules in rules_tried(config.rules)
        ]
        self._made: dict[tuple[object, ...], Terms] = {}

    def of(self, number: int) -> Terms:
        """The terms under which the calls of a tool wait."""
        destructive = number in self._destructive
        key = (destructive, *(found.get(number) for _, found in self._found))
        if key not in self._made:
            own, naming, forbidding = (
                rules[found[number]] if number in found else None for rules, found in self._found
            )
            self._made[key] = terms_of(self._config, own, naming, forbidding, destructive=destructive)
        return self._made[key]


def _strictest_outcome(tool: KnownTool, layers: tuple[LayerOutcome, ...]) -> ToolOutcome:
    layer = max(range(len(layers)), key=lambda number: (layers[number].outcome, -number))
    decided = layers[layer]
    terms = [one.terms for one in layers if one.terms is not None] if decided.outcome is Outcome.gated else []
    return ToolOutcome(
        tool, decided.outcome, decided.reason, decided.where, layer, strictest(terms) if terms else None, layers
    )


def _stated(values: Iterable[_Value | None], default: _Value) -> list[_Value]:
    """What layers state; the default counts as stated by the first."""
    first, *others = values
    return [default if first is None else first, *(value for value in others if value is not None)]
