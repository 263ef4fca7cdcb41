"""What looks wrong in what happens to tools: writes that run, reads that are none, tools that patterns mix up."""

from __future__ import annotations

from collections.abc import Iterator

from toolgen.findings import Finding, Level
from toolgen.policy.checks.facts import Facts
from toolgen.policy.checks.verbs import change_of
from toolgen.policy.config import TimeoutPolicy
from toolgen.policy.outcomes import Outcome
from toolgen.policy.text import counted, several
from toolgen.tools.files.places import written


def write_ungated(facts: Facts) -> Iterator[Finding]:
    """Writes, and reads that count as destructive, that run without approval and that `exempt` does not let run."""
    running = [
        number
        for number in facts.numbers(Outcome.allowed)
        if (facts.tools[number].is_write or number in facts.destructive)
        and not facts.results[number].where.startswith("exempt")
    ]
    where = "unmatched" if facts.config.unmatched else "requireApproval"
    if running and facts.config.is_off:
        message = (
            f"the gate is off: {counted(len(running), 'write')} would run without approval ({facts.names(running)})"
        )
        hint = "write unmatched: requireWrites, or name in requireApproval what has to wait"
        yield Finding(rule="write-ungated", level=Level.error, message=message, where=where, hint=hint)
        return
    for number in running:
        pattern = facts.pattern_for(number)
        message = f"{facts.tools[number].name} writes and runs without approval: no pattern speaks of it"
        hint = f"write {pattern} in requireApproval, or in exempt if it may run"
        yield Finding(
            rule="write-ungated", level=Level.error, message=message, where=where, hint=hint, suggestion=pattern
        )


def read_that_writes(facts: Facts) -> Iterator[Finding]:
    """Reads that run and whose operation says that it changes something, except those exempt by their own endpoint."""
    on_purpose = {number for one in facts.of("exempt") if one.pattern.is_literal for number in one.matched}
    for number in facts.numbers(Outcome.allowed):
        tool, result = facts.tools[number], facts.results[number]
        if tool.is_write or number in facts.destructive or number in on_purpose:
            continue
        said = change_of(tool.tool) if tool.tool else ""
        if not said or tool.endpoint is None:
            continue
        pattern = facts.pattern_for(number)
        hint = f"write {pattern} in requireApproval, or in exempt if it changes nothing"
        if result.where.startswith("exempt"):
            hint = f"{result.reason} exempts it: narrow that and {hint}"
        yield Finding(
            rule="read-that-writes",
            level=Level.warning,
            message=f"{tool.name} is a {tool.endpoint.method.upper()} and runs, but seems to change something: {said}",
            where="" if result.where == "unmatched" and facts.config.unmatched is None else result.where,
            hint=hint,
            suggestion=pattern,
        )


def endpoint_shared(facts: Facts) -> Iterator[Finding]:
    """Endpoints that several tools have: a pattern that begins with `http` means all of them."""
    groups: dict[str, list[int]] = {}
    for number, tool in enumerate(facts.tools):
        if tool.endpoint:
            groups.setdefault(tool.endpoint.key, []).append(number)
    for sources, keys in _shared(facts, groups).items():
        message = f"{' and '.join(sources)} share {_listed(keys, 'endpoint')}"
        if len(sources) == 1:
            message = f"tools of {sources[0]} share {_listed(keys, 'endpoint')}"
            hint = "only a pattern with the tool's name tells them apart"
        else:
            hint = f"patterns that begin with http. match each of them; {sources[0]}. means one"
        yield Finding(rule="endpoint-shared", level=Level.note, message=message, hint=hint)


def name_shared(facts: Facts) -> Iterator[Finding]:
    """Names that several sources have: a call of such a tool is refused unless it names the source."""
    groups: dict[str, list[int]] = {}
    for number, tool in enumerate(facts.tools):
        groups.setdefault(tool.name, []).append(number)
    for sources, names in _shared(facts, groups).items():
        message = f"{' and '.join(sources)} share {_listed(names, 'tool name')}"
        hint = "a call that does not name its source is refused"
        yield Finding(rule="name-shared", level=Level.note, message=message, hint=hint)


def rule_auto_approves(facts: Facts) -> Iterator[Finding]:
    """Rules by which time approves calls nobody has decided."""
    approved: dict[str, list[int]] = {}
    for number, result in enumerate(facts.results):
        if result.terms and result.terms.rule and result.terms.timeout_policy is TimeoutPolicy.AUTO_APPROVE:
            approved.setdefault(result.terms.rule.match.text, []).append(number)
    for entry in facts.of("rules"):
        if numbers := approved.get(entry.pattern.text):
            message = f"calls of {facts.names(numbers)} are approved when nobody decides in time"
            where = written(("rules", entry.number, "timeoutPolicy"))
            yield Finding(rule="rule-auto-approves", level=Level.note, message=message, where=where)


def _shared(facts: Facts, groups: dict[str, list[int]]) -> dict[tuple[str, ...], list[str]]:
    """What several tools have, by the sources of those tools."""
    found: dict[tuple[str, ...], list[str]] = {}
    for text, numbers in groups.items():
        if len(numbers) > 1:
            sources = tuple(dict.fromkeys(facts.tools[number].source for number in numbers))
            found.setdefault(sources, []).append(text)
    return found


def _listed(texts: list[str], noun: str) -> str:
    return f"{counted(len(texts), noun)}: {several(texts)}"
