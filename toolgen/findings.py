"""What a check found, in one shape for every command: as data, and as SARIF. A leaf beside the errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from toolgen.errors import Problem

SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Level(StrEnum):
    """How bad it is; the values are SARIF's."""

    error = "error"
    warning = "warning"
    note = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a check found.

    `rule` names the kind (`write-ungated`), `where` the place: a config path (`exempt[2]`) or a JSON
    pointer; `file`, `line` and `column` (from 1) where they are known. `hint` says what to do, `suggestion`
    is the text to write. `excerpt` and `caret` are those of `toolgen.errors.Problem`.
    """

    rule: str
    level: Level
    message: str
    where: str = ""
    hint: str = ""
    suggestion: str = ""
    file: str = ""
    line: int | None = None
    column: int | None = None
    excerpt: str = ""
    caret: int | None = None

    @classmethod
    def of(cls, problem: Problem, rule: str, level: Level) -> Finding:
        """A problem as a finding of that rule."""
        return cls(rule=rule, level=level, **asdict(problem))

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON-ready data; keys without a value are left out."""
        return {field: value for field, value in asdict(self).items() if value not in (None, "")}


def to_sarif(findings: Sequence[Finding], rules: Mapping[str, str], *, version: str) -> dict[str, Any]:
    """The findings as a SARIF 2.1.0 log; `rules` says in a sentence what each kind is about."""
    used = [rule for rule in rules if any(finding.rule == rule for finding in findings)]
    driver = {
        "name": "toolgen",
        "version": version,
        "rules": [{"id": rule, "shortDescription": {"text": rules[rule]}} for rule in used],
    }
    results = [_result(finding, used) for finding in findings]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: Finding, rules: Sequence[str]) -> dict[str, Any]:
    told = finding.message + (f"; {finding.hint}" if finding.hint else "")
    made: dict[str, Any] = {"ruleId": finding.rule, "level": finding.level.value, "message": {"text": told}}
    if finding.rule in rules:
        made["ruleIndex"] = rules.index(finding.rule)
    location: dict[str, Any] = {}
    if finding.file:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file)}}
        if finding.line is not None:
            physical["region"] = {"startLine": finding.line}
            if finding.column is not None:
                physical["region"]["startColumn"] = finding.column
        location["physicalLocation"] = physical
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where}]
    return {**made, "locations": [location]} if location else made


def _uri(file: str) -> str:
    """A path as the relative or absolute URI reference that SARIF wants."""
    from pathlib import Path, PurePath
    from urllib.parse import quote

    path = PurePath(file)
    return Path(file).as_uri() if path.is_absolute() else quote(path.as_posix(), errors="surrogateescape")
