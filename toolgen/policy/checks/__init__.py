"""Everything that looks wrong in a config, given its tools; and what each kind of finding is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from toolgen.findings import Finding, Level
from toolgen.policy.checks import entries, tools
from toolgen.policy.checks.facts import Facts
from toolgen.tools.files.places import parts

OF_CONFIG: Final = "config-doubtful"  # the rule of what a config warns of itself
RULES: Final[dict[str, str]] = {
    "config-unreadable": "The approval config could not be read; every call waits for a person.",
    "write-ungated": "A tool that may change something runs without approval, and no exemption says so.",
    "read-that-writes": "A tool with a reading method runs, and its operation says that it changes something.",
    "pattern-matches-nothing": "A pattern matches none of the tools.",
    "pattern-shadowed": "A pattern changes nothing, because other entries decide on every tool it matches.",
    "exemption-never-applies": "Every tool that the exemption matches is denied.",
    "exemption-by-name": "An exemption names no source, so that a tool of any source can bear the name.",
    "exemption-of-destructive": "An exemption with a * in it lets destructive calls run.",
    "exemption-reaches-further": "An exemption that ends in * inside a path segment matches other segments as well.",
    "rule-never-applies": "No call that waits is governed by the rule.",
    "rule-auto-approves": "Calls are approved when nobody decides in time.",
    "form-matches-less": "A pattern matches addresses of its own form only, not others that look like it.",
    "endpoint-one-slash-away": "An endpoint that differs by a slash at its end is less guarded.",
    "case-differs": "An endpoint that differs by upper and lower case is less guarded.",
    "endpoint-shared": "Several tools have one endpoint.",
    "name-shared": "Several sources have a tool of one name.",
    OF_CONFIG: "The config may be saved, and says something that was probably not meant.",
}
_CHECKS: Final[tuple[Callable[[Facts], Iterable[Finding]], ...]] = (
    tools.write_ungated,
    tools.read_that_writes,
    entries.matches_nothing,
    entries.never_applies,
    entries.adds_nothing,
    entries.rule_never_applies,
    entries.exemption_by_name,
    entries.exemption_of_destructive,
    entries.exemption_reaches_further,
    entries.form_matches_less,
    entries.misses_a_twin,
    tools.endpoint_shared,
    tools.name_shared,
    tools.rule_auto_approves,
)
# The lists in the order in which configs are written; findings of no place come behind those of any.
_PLACES: Final = ("requireApproval", "exempt", "deny", "destructive", "unmatched", "rules")


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Every finding, the worst first, those of a level in the order of the config."""
    if facts.config.unreadable_reason is not None:
        message = f"the approval config could not be read: {facts.config.unreadable_reason}"
        hint = "every call of every tool waits for a person until it can be"
        return (Finding(rule="config-unreadable", level=Level.error, message=message, hint=hint),)
    found = [finding for check in _CHECKS for finding in check(facts)]
    found += [Finding.of(problem, OF_CONFIG, Level.warning) for problem in facts.config.warnings]
    # What is known exactly of a name is not told a second time in general.
    exact = {finding.where for finding in found if finding.rule == "form-matches-less"}
    found = [one for one in found if one.where not in exact or one.rule not in (OF_CONFIG, "pattern-matches-nothing")]
    return tuple(sorted(found, key=_order))


def _order(finding: Finding) -> tuple[int, int, int]:
    key, number = (*parts(finding.where), "", 0)[:2]
    place = _PLACES.index(str(key)) if key in _PLACES else len(_PLACES) + (not key)
    return list(Level).index(finding.level), place, number if isinstance(number, int) else 0
