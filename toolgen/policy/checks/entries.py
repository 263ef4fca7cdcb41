"""What looks wrong in the entries of a config, given the tools: those that do nothing, or other than they seem to."""

from __future__ import annotations

from collections.abc import Iterator

from toolgen.findings import Finding, Level
from toolgen.policy.checks.facts import Entry, Facts
from toolgen.policy.checks.near import Nearest
from toolgen.policy.forms import other_forms
from toolgen.policy.outcomes import Outcome
from toolgen.policy.patterns import Form, Glob, Pattern
from toolgen.policy.terms import rules_tried
from toolgen.policy.text import several

_LISTS = ("requireApproval", "exempt", "deny", "destructive")
# What an entry of the list sees to at least; the other lists see to nothing that could be missed.
_SEES_TO = {"requireApproval": Outcome.gated, "deny": Outcome.denied}


def matches_nothing(facts: Facts) -> Iterator[Finding]:
    """Entries that match none of these tools, with the tool that was probably meant."""
    nearest = Nearest(facts)
    for entry in facts.entries:
        if entry.matched:
            continue
        rule, pattern = "pattern-matches-nothing", entry.pattern
        if not facts.has_source(pattern):
            what = pattern.before.text if pattern.before else "any source"
            message = f"{pattern} could not be checked: no tools of {what} are given"
            yield _finding(rule, Level.note, entry, message, "give all toolsets that the config is for")
        elif pattern.target.text == "*":  # all of a method or source: nothing in it can be misspelt
            yield _finding(rule, Level.note, entry, f"{pattern} matches no tool yet")
        elif meant := nearest.of(pattern):
            hint = f"write {meant.text}; they differ in {meant.differs}"
            yield _finding(rule, Level.warning, entry, f"{pattern} matches no tool", hint, meant.text)
        else:
            yield _finding(
                rule, Level.warning, entry, f"{pattern} matches no tool, and none is near", "correct or remove it"
            )


def never_applies(facts: Facts) -> Iterator[Finding]:
    """Exemptions of which every tool is denied, and what needs approval of which every tool is exempt or denied."""
    for entry in facts.of("exempt", "requireApproval"):
        if not _is_beaten(facts, entry):
            continue
        stronger = several(list(dict.fromkeys(_decided(facts, number) for number in entry.matched)))
        if entry.key == "exempt":
            message = f"{entry.pattern} exempts nothing: all that it matches is denied by {stronger}"
            yield _finding("exemption-never-applies", Level.warning, entry, message, "remove one of them")
        else:
            message = f"{entry.pattern} gates nothing: all that it matches is decided by {stronger}"
            hint = "remove it, or narrow what is exempt"
            yield _finding("pattern-shadowed", Level.warning, entry, message, hint)


def adds_nothing(facts: Facts) -> Iterator[Finding]:
    """Entries all of whose tools others of their own list match; of two that match the same the broader is kept."""
    for key in _LISTS:
        entries = [entry for entry in facts.of(key) if entry.matched]
        matching = [0] * len(facts.tools)
        for entry in entries:
            for number in entry.matched:
                matching[number] += 1
        dropped = set()
        for entry in sorted(entries, key=lambda one: (len(one.matched), -one.pattern.specificity, one.number)):
            if all(matching[number] > 1 for number in entry.matched):
                dropped.add(entry)
                for number in entry.matched:
                    matching[number] -= 1
        kept = [entry for entry in entries if entry not in dropped]
        broadest = {number: one for one in sorted(kept, key=lambda one: len(one.matched)) for number in one.matched}
        for entry in (one for one in entries if one in dropped and not _is_beaten(facts, one)):
            others = several(list(dict.fromkeys(str(broadest[number]) for number in entry.matched)))
            message = f"{entry.pattern} adds nothing here: its tools are matched by {others}, too"
            yield _finding("pattern-shadowed", Level.note, entry, message)


def rule_never_applies(facts: Facts) -> Iterator[Finding]:
    """Rules none of whose tools waits, and rules that a more specific one replaces for every tool."""
    applied = _rules_applied(facts)
    for entry in facts.of("rules"):
        if not entry.matched or entry.pattern in applied:
            continue
        waiting = [
            terms.rule.match for number in entry.matched if (terms := facts.results[number].terms) and terms.rule
        ]
        if waiting:
            more = several(list(dict.fromkeys(map(str, waiting))))
            message = f"the rule for {entry.pattern} is never chosen: its calls fall under more specific ones, {more}"
        else:
            message = f"the rule for {entry.pattern} never applies: no call of {facts.names(entry.matched)} waits"
        hint = "a rule neither gates nor ungates; name in requireApproval what has to wait, or remove the rule"
        yield _finding("rule-never-applies", Level.warning, entry, message, "" if waiting else hint)


def exemption_by_name(facts: Facts) -> Iterator[Finding]:
    """Exemptions that say nothing of the source: the tools of every other source may bear that name as well."""
    for entry in facts.of("exempt"):
        if entry.pattern.form is not Form.name:
            continue
        sources = dict.fromkeys(facts.source_of(facts.tools[number]) for number in entry.matched)
        texts = [f"{source}:{entry.pattern}" for source in sources]
        message = f"{entry.pattern} exempts tools of that name from every source, those added later included"
        hint = f"write {' and '.join(texts)}" if texts else f"write it with the source: mcp:{entry.pattern}"
        yield _finding("exemption-by-name", Level.warning, entry, message, hint, texts[0] if len(texts) == 1 else "")


def exemption_of_destructive(facts: Facts) -> Iterator[Finding]:
    """Exemptions with a `*` that let a destructive call run: who means that names its endpoint."""
    for entry in facts.of("exempt"):
        if entry.pattern.is_literal:
            continue
        numbers = [one for one in entry.matched if facts.results[one].outcome is Outcome.allowed]
        numbers = [one for one in numbers if one in facts.destructive]
        if numbers:
            message = f"{entry.pattern} exempts {facts.names(numbers)}: destructive calls run"
            hint = f"exempt less, or {facts.pattern_for(numbers[0])} by itself if it may run"
            yield _finding("exemption-of-destructive", Level.warning, entry, message, hint)


def exemption_reaches_further(facts: Facts) -> Iterator[Finding]:
    """Exemptions like `http.get:/agents*`, where `/agents/{id}` was meant and `/agentstore` is matched as well."""
    for entry in facts.of("exempt"):
        stem = entry.pattern.target.text.rstrip("*")
        if entry.pattern.form is not Form.endpoint or stem == entry.pattern.target.text or stem.endswith("/"):
            continue
        inside = [Glob(stem), Glob(f"{stem}/*")]
        paths = [_path(facts, one) for one in entry.matched if facts.results[one].outcome is Outcome.allowed]
        meant = [path for path in paths if any(glob.matches(path) for glob in inside)]
        further = sorted({*paths} - {*meant})
        if meant and further:
            message = f"{entry.pattern} exempts not only {meant[0]} but {several(further)} as well"
            before = entry.pattern.before.text if entry.pattern.before else ""
            hint = f"write {before}:{stem} and {before}:{stem}/* if those are not meant"
            yield _finding("exemption-reaches-further", Level.warning, entry, message, hint)


def form_matches_less(facts: Facts) -> Iterator[Finding]:
    """Patterns that would match more of these tools if all forms of address shared one space of texts."""
    for entry in facts.entries:
        found, missed, forms = set(entry.matched), set[int](), []
        for text in other_forms(entry.pattern, facts.words):
            more = set(facts.index.matched(Pattern.of(text, facts.words))) - found
            if more:
                forms.append(text)
                found |= more
                missed |= more
        if missed:
            what = "the path behind the first colon" if entry.pattern.form is Form.endpoint else "names"
            message = f"{entry.pattern} matches {what} only, so not {facts.names(sorted(missed))}"
            hint = f"to match those as well write {several(forms)}"
            yield _finding("form-matches-less", Level.warning, entry, message, hint, forms[0])


def misses_a_twin(facts: Facts) -> Iterator[Finding]:
    """Entries that match `/a` and leave `/a/`, or `/A`, less guarded."""
    twins = _twins(facts)
    told: set[tuple[str, int]] = set()
    for entry in facts.of("requireApproval", "deny", "destructive"):
        matched = {*entry.matched} if twins else set()
        for number, twin in ((one, twin) for one in entry.matched for twin in twins.get(one, ())):
            if twin not in matched and (entry.key, twin) not in told and _is_laxer(facts, entry, number, twin):
                told.add((entry.key, twin))
                yield _missed_twin(facts, entry, number, twin)


def _missed_twin(facts: Facts, entry: Entry, number: int, twin: int) -> Finding:
    path, other = _path(facts, number), _path(facts, twin)
    by_slash = path.rstrip("/") == other.rstrip("/")
    rule, what = ("endpoint-one-slash-away", "a slash") if by_slash else ("case-differs", "case")
    message = f"{entry.pattern} matches {path} and not {other}, which differs by {what}"
    suggestion = facts.pattern_for(twin)
    hint = f"write {suggestion} as well; a server may take both for one"
    return _finding(rule, Level.warning, entry, message, hint, suggestion)


def _finding(rule: str, level: Level, entry: Entry, message: str, hint: str = "", suggestion: str = "") -> Finding:
    return Finding(rule=rule, level=level, message=message, where=entry.where, hint=hint, suggestion=suggestion)


def _is_beaten(facts: Facts, entry: Entry) -> bool:
    """Whether the entry matches tools and a stronger list decides on each of them."""
    outcomes = {facts.results[number].outcome for number in entry.matched}
    if entry.key == "exempt":
        return outcomes == {Outcome.denied}
    return entry.key == "requireApproval" and bool(outcomes) and Outcome.gated not in outcomes


def _decided(facts: Facts, number: int) -> str:
    result = facts.results[number]
    return f"{result.where} ({result.reason})"


def _rules_applied(facts: Facts) -> set[Pattern]:
    """The rules that hold for a call that waits: its own, and the broader ones that `terms_of` takes into account."""
    applied = set()
    waiting = set(facts.numbers(Outcome.gated))
    for some in rules_tried(facts.config.rules):
        first = facts.index.first_matches(rule.match for rule in some)
        applied |= {some[position].match for number, position in first.items() if number in waiting}
    return applied


def _path(facts: Facts, number: int) -> str:
    endpoint = facts.tools[number].endpoint
    return endpoint.path if endpoint else ""


def _twins(facts: Facts) -> dict[int, list[int]]:
    """For each tool those of the same method whose path differs by case or a slash at the end only."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, tool in enumerate(facts.tools):
        if tool.endpoint:
            groups.setdefault((tool.endpoint.method, tool.endpoint.path.casefold().rstrip("/")), []).append(number)
    return {
        number: [other for other in group if _path(facts, other) != _path(facts, number)]
        for group in groups.values()
        if len(group) > 1
        for number in group
    }


def _is_laxer(facts: Facts, entry: Entry, number: int, twin: int) -> bool:
    """Whether the twin is less guarded than the entry sees to with the tool that it matches."""
    if entry.key == "destructive":
        return twin not in facts.destructive
    return facts.results[twin].outcome < min(_SEES_TO[entry.key], facts.results[number].outcome)
