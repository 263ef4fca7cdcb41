"""What would have to be written differently for a tool's calls to run, to wait, or to be refused.

Nothing is guessed: every edit is made, checked as any config is, and classified by the gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, Final

from toolgen.errors import ApprovalConfigError, PatternError
from toolgen.policy.address import KnownTool, SourceAddress, ToolList
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome
from toolgen.policy.patterns import Pattern, vocabulary
from toolgen.tools.model import Toolset

LISTS: Final = ("deny", "exempt", "requireApproval")  # each beats those behind it
_MOST = 3  # pieces of a change
_ORDER = ("remove", "add", "set")


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: `add` the pattern `value` to the list `where`, `set` the key `where`, or `remove` an entry or a key.

    Places are those of the config before all edits; `value` of what is removed is its pattern.
    """

    action: str
    where: str
    value: str = ""

    def to_dict(self) -> dict[str, str]:
        """JSON-ready; without `value` where there is none."""
        return {"action": self.action, "where": self.where} | ({"value": self.value} if self.value else {})


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that together lead to another outcome; `others` are the tools whose outcome changes as well."""

    outcome: Outcome
    edits: tuple[Edit, ...]
    others: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        edits = [edit.to_dict() for edit in self.edits]
        return {"outcome": self.outcome.name, "edits": edits, "others": list(self.others)}


def changes(
    config: ApprovalConfig, toolsets: Sequence[Toolset | ToolList], before: Gate, tool: KnownTool
) -> tuple[Change, ...]:
    """For each other outcome the smallest changes that lead to it; `before` is the gate that has the tool.

    None for a config that could not be read, since it is not known what it says.
    """
    if config.unreadable_reason is not None:
        return ()
    now = before.outcome_of(tool).outcome
    found: dict[Outcome, list[Change]] = {}
    for own, size in product(_own_patterns(config, before.tools, tool), range(1, _MOST + 1)):
        reached = {now, *found}
        if len(reached) == len(Outcome):
            break
        for chosen in combinations(_pieces(config, own, tool), size):
            change = _tried([edit for piece in chosen for edit in piece], config, toolsets, before, tool)
            if change is not None and change.outcome not in reached:
                found.setdefault(change.outcome, []).append(change)
    return tuple(change for outcome in Outcome for change in found.get(outcome, ()))


def matching(config: ApprovalConfig, tool: KnownTool) -> dict[str, dict[int, Pattern]]:
    """The patterns that match a tool, by list and by their number in it."""
    lists = config.patterns
    return {
        key: {number: one for number, one in enumerate(lists[key]) if any(map(one.matches, tool.addresses))}
        for key in LISTS
    }


def _pieces(config: ApprovalConfig, own: Pattern, tool: KnownTool) -> Iterator[list[Edit]]:
    """What a change is put together of: that no entry of a list matches any more, or that one of the tool's own does."""
    for key, found in matching(config, tool).items():
        if found:
            yield [Edit("remove", f"{key}[{number}]", one.text) for number, one in found.items()]
    for key in LISTS:
        # In two lists, or as a rule for what never waits, it would be refused.
        others = [other for other in LISTS if other != key] + (["rules"] if key != "requireApproval" else [])
        moved = [
            Edit("remove", f"{other}[{config.patterns[other].index(own)}]", own.text)
            for other in others
            if own in config.patterns[other]
        ]
        yield [*moved, Edit("add", key, own.text)]


def _own_patterns(config: ApprovalConfig, tools: Sequence[KnownTool], tool: KnownTool) -> list[Pattern]:
    """A pattern for each address of a tool, those first that match the fewest others, of equals the most telling.

    There always is one: a source and a name are never too long.
    """
    words = vocabulary(config.apis, config.mcp_servers).with_tools(tools)
    found = []
    for address in tool.addresses:
        with suppress(PatternError):  # longer than a pattern may be
            found.append(Pattern.of(str(address), words))
    return sorted(found, key=lambda own: sum(any(map(own.matches, one.addresses)) for one in tools))


def _tried(
    edits: Sequence[Edit],
    config: ApprovalConfig,
    toolsets: Sequence[Toolset | ToolList],
    before: Gate,
    tool: KnownTool,
) -> Change | None:
    """What the edits lead to; None where they make no valid config."""
    edits = _completed(edits, config)
    try:
        gate = Gate(ApprovalConfig.parse(_edited(config.to_dict(), edits), toolsets), toolsets)
    except ApprovalConfigError:
        return None
    others = [
        str(SourceAddress(one.source, one.name))
        for one in before.tools
        if one is not tool and gate.outcome_of(one).outcome is not before.outcome_of(one).outcome
    ]
    return Change(gate.outcome_of(tool).outcome, tuple(edits), tuple(others))


def _completed(edits: Sequence[Edit], config: ApprovalConfig) -> list[Edit]:
    """The edits with what keeps them from changing what `unmatched` means; each once."""
    made = _edited(config.to_dict(), edits)
    required, stated = made.get("requireApproval"), config.require_approval
    found = dict.fromkeys(edits)
    if stated and not required:  # left empty, it would switch the gate off
        found = {edit: None for edit in edits if not edit.where.startswith("requireApproval")}
        found[Edit("remove", "requireApproval")] = None
    switched_on = stated == () and required
    if config.unmatched is None and (switched_on or (not required and (made.get("exempt") or made.get("rules")))):
        found[Edit("set", "unmatched", config.default.value)] = None
    return sorted(found, key=lambda edit: _ORDER.index(edit.action))


def _edited(config: Mapping[str, Any], edits: Sequence[Edit]) -> dict[str, Any]:
    """The mapping of a config with the edits made."""
    removed = {edit.where for edit in edits if edit.action == "remove"}
    made = {
        key: [entry for number, entry in enumerate(value) if f"{key}[{number}]" not in removed]
        if isinstance(value, list)
        else value
        for key, value in config.items()
        if key not in removed
    }
    for edit in edits:
        if edit.action == "add":
            made[edit.where] = [*made.get(edit.where, ()), edit.value]
        elif edit.action == "set":
            made[edit.where] = edit.value
    return made
