"""The report of `toolgen check`: findings first, then every tool by what happens to its calls, then the counts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from toolgen.cli.findings import ReportFormat, counted, fails, in_file, print_findings, print_sarif
from toolgen.cli.output import Cell, Page, count, print_json
from toolgen.errors import ApprovalConfigError, Problem
from toolgen.findings import Finding, Level
from toolgen.policy import checks
from toolgen.policy.config import ApprovalConfig, TimeoutPolicy
from toolgen.policy.coverage import Coverage, ToolCoverage, coverage
from toolgen.policy.durations import written_duration
from toolgen.policy.outcomes import Outcome
from toolgen.tools.files import load_toolset

INVALID: Final = "config-invalid"
RULES: Final = {INVALID: "The approval config is not valid, and no gate runs by it."} | checks.RULES
STYLES: Final = {Outcome.denied: "red", Outcome.gated: "yellow", Outcome.allowed: "green"}


def report(path: str, files: Sequence[str], format_: ReportFormat, *, strict: bool) -> bool:
    """Print what is to be said of the config of a file and the tools of toolset files; whether it is fine.

    Raises SourceError, ToolsetError and RegistrationError for files that cannot be checked at all.
    """
    toolsets = [load_toolset(Path(file)) for file in files]
    config: ApprovalConfig | None = None
    found: Sequence[Finding]
    covered = Coverage((), ())
    try:
        config = ApprovalConfig.load(path, toolsets)
    except ApprovalConfigError as error:
        problems = sorted(error.problems or [Problem(error.message)], key=lambda problem: problem.line or 0)
        found = [Finding.of(problem, INVALID, Level.error) for problem in problems]
    else:
        found = [Finding.of(problem, checks.OF_CONFIG, Level.warning) for problem in config.warnings]
        if toolsets:
            covered = coverage(config, toolsets)
            found = covered.findings
    findings = in_file(found, path)
    if format_ is ReportFormat.json:
        print_json(_to_dict(path, config is not None, findings, covered), sys.stdout)
    elif format_ is ReportFormat.sarif:
        print_sarif(findings, RULES, sys.stdout)
    else:
        _print_text(path, config is not None, findings, covered, sys.stdout)
    return not fails(findings, strict=strict)


def _to_dict(path: str, valid: bool, findings: Sequence[Finding], covered: Coverage) -> dict[str, Any]:
    return {
        "config": path,
        "valid": valid,
        "findings": [finding.to_dict() for finding in findings],
        "counts": covered.counts(),
        "tools": [tool.to_dict() for tool in covered.tools],
    }


def _print_text(path: str, valid: bool, findings: Sequence[Finding], covered: Coverage, stream: TextIO) -> None:
    page = Page(stream)
    print_findings(findings, page)
    if findings:
        page.line()
    several = len({tool.source for tool in covered.tools}) > 1
    for outcome in sorted(Outcome, reverse=True):
        tools = [tool for tool in covered.tools if tool.outcome is outcome]
        if tools:
            page.line(f"{outcome.name}: {count(len(tools), 'tool')}", style=STYLES[outcome])
            _table(page, tools, several)
            page.line()
    by_outcome = [f"{number:,} {outcome}" for outcome, number in reversed(covered.counts().items())]
    verdict = by_outcome if covered.tools else ["valid" if valid else "not valid"]
    page.line(f"{path}: " + ", ".join(filter(None, [*verdict, counted(findings)])), style="bold")
    page.print()


def _table(page: Page, tools: Sequence[ToolCoverage], several: bool) -> None:
    rows: list[list[Cell]] = []
    for tool in tools:
        endpoint = f"{tool.method.upper()} {tool.path}" if tool.method else ""
        name = f"{tool.source}:{tool.name}" if several else tool.name
        marked = "red" if tool.is_destructive else ""
        rows.append([(name, marked), (endpoint, ""), (_waits(tool), ""), (tool.reason, "dim")])
    header = ["tool", "endpoint", "waits", "reason"]
    if not any(waits for _, _, (waits, _), _ in rows):
        del header[2]
        for row in rows:
            del row[2]
    page.table(header, rows, indent=2)


def _waits(tool: ToolCoverage) -> str:
    """What holds while a call waits: `AUTO_REJECT after PT30M, by role:lead (rule http.post:*)`; empty where nothing is stated."""
    parts = []
    if tool.timeout_policy not in (None, TimeoutPolicy.WAIT_INDEFINITELY) and tool.approval_timeout is not None:
        parts.append(f"{tool.timeout_policy} after {written_duration(tool.approval_timeout)}")
    if tool.approvers:
        parts.append("by " + " and ".join("|".join(group) for group in tool.approvers))
    rule = f"(rule {tool.rule})" if tool.rule else ""
    return " ".join(filter(None, [", ".join(parts), rule]))
