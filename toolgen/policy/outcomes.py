"""What happens to a call, as the gate says it: outcomes of tools, of calls, of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

from toolgen.policy.address import KnownTool
from toolgen.policy.config import ApprovalConfig, Rule
from toolgen.policy.terms import BatchTerms, Terms, batch_terms, strictest_batch

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
        return {one.call.id: one.reason for one in ranked if isinstance(one.call.id, str)}

    @cached_property
    def terms(self) -> BatchTerms | None:
        """Timeout and texts of the batch's pause; None where nothing waits.

        Who may approve is each call's own affair: see its `result.terms`.
        """
        waiting = [one.result for one in self.calls if one.outcome is Outcome.gated]
        by_layer = []
        for number, config in enumerate(self._layers):
            own = [terms for result in waiting if (terms := result.layers[number].terms) is not None]
            if own:
                by_layer.append(batch_terms(config, own))
        return strictest_batch(by_layer) if by_layer else None

    @property
    def rule(self) -> Rule | None:
        """The rule that governs the batch's timeout and texts: the strictest of its calls' rules."""
        return self.terms.rule if self.terms else None

    def _with(self, outcome: Outcome) -> list[ToolCall]:
        return [one.call for one in self.calls if one.result.outcome is outcome]
