"""What a check found, for people and for programs: shared by every command that reports findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from toolgen.cli.output import count, print_json
from toolgen.findings import Finding, Level, to_sarif

if TYPE_CHECKING:
    from toolgen.cli.output import Page

_STYLES = {Level.error: "red", Level.warning: "yellow", Level.note: "dim"}


class ReportFormat(StrEnum):
    """Whom a report is for: `text` for people, `json` for programs, `sarif` for what shows findings beside code."""

    text = "text"
    json = "json"
    sarif = "sarif"


def fails(findings: Iterable[Finding], *, strict: bool) -> bool:
    """Whether the findings make the command fail: an error does, and where it is strict a warning does."""
    return any(finding.level is Level.error or (strict and finding.level is Level.warning) for finding in findings)


def counted(findings: Sequence[Finding]) -> str:
    """`1 error, 2 warnings`; empty without findings."""
    numbers = {level: sum(finding.level is level for finding in findings) for level in Level}
    return ", ".join(count(number, level.value) for level, number in numbers.items() if number)


def in_file(findings: Iterable[Finding], file: str) -> list[Finding]:
    """The findings with the file that their places are in, and the lines; those that name a file keep it."""
    from toolgen.tools.files.lines import Lines

    listed = list(findings)
    if all(finding.file for finding in listed):
        return listed
    lines = Lines(Path(file).read_bytes())
    return [one if one.file else replace(one, file=file, line=lines.of(one.where)) for one in listed]


def print_findings(findings: Iterable[Finding], page: Page) -> None:
    """Each with its place first, as editors open it, then the text at fault and what to do."""
    for finding in findings:
        position = "".join(f":{number}" for number in (finding.line, finding.column) if number is not None)
        place = f"{finding.file}{position}: " if finding.file else ""
        where = f"{finding.where}: " if finding.where else ""
        told = f"{place}{finding.level.value}: {where}{finding.message} [{finding.rule}]"
        page.line(told, style=_STYLES[finding.level])
        if finding.caret is not None:
            page.verbatim(f"    {finding.excerpt}\n    {' ' * finding.caret}^")
        if finding.hint:
            page.line(finding.hint, indent=4)


def print_sarif(findings: Sequence[Finding], rules: Mapping[str, str], stream: TextIO) -> None:
    """A SARIF log; `rules` says in a sentence what each kind is about."""
    from toolgen import __version__

    print_json(to_sarif(findings, rules, version=__version__), stream)
