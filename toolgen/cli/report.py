"""The load report, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, TextIO

from toolgen.cli.facts import endpoint, flags, goes_elsewhere, server_facts, title, url_of
from toolgen.cli.output import Cell, Page, count
from toolgen.cli.writing import Output
from toolgen.errors import Problem
from toolgen.openapi.diagnostics import Diagnostic
from toolgen.tools.report import OperationReport, Report

_TOOLS = 30
_OPERATIONS = 50
_REASONS = 5  # of one operation
_NOTES = 20
_STYLES = {"ok": "green", "degraded": "yellow", "skipped": "red"}
_MEANING = {
    "degraded": "the tool says or sends less than the document means",
    "skipped": "no correct request exists, and there is no tool",
}


def report_dict(output: Output, changes: list[Problem] | None, written: bool) -> dict[str, Any]:
    """One API's report as JSON-ready data; `written` is null where nothing was."""
    place = "-" if output.path is None else str(output.path)
    answer: dict[str, Any] = {
        "api": output.toolset.api,
        "written": place if written else None,
        "report": _report(output).to_dict(),
        "notes": [note.to_dict() for note in output.export.notes] if output.export else [],
    }
    if changes is not None:
        answer["check"] = {"file": place, "changes": [change.to_dict() for change in changes]}
    return answer


def print_reports(
    outputs: Sequence[Output], changes: Sequence[list[Problem] | None], written: bool, stream: TextIO
) -> None:
    """Everything a person should know, API by API."""
    page = Page(stream)
    for index, (output, change) in enumerate(zip(outputs, changes, strict=True)):
        if index:
            page.line()
        if change is None:
            _tools(page, output)
            _faults(page, _report(output))
            _notes(page, output)
        else:
            _faults(page, _report(output))
        _summary(page, output, change, written)
    page.print()


def _report(output: Output) -> Report:
    return output.toolset.report or Report()


def _tools(page: Page, output: Output) -> None:
    toolset = output.toolset
    page.line(f"{toolset.api}: {count(len(toolset.tools), 'tool')} of {title(toolset)}", style="bold")
    page.line()
    statuses = {operation.tool: operation.status for operation in _report(output).operations}
    rows: list[list[Cell]] = []
    for tool in toolset.tools[:_TOOLS]:
        words, style = flags(tool, toolset)
        degraded = statuses.get(tool.name) == "degraded"
        rows.append([(tool.name, ""), (endpoint(tool), ""), (words + ", degraded" * degraded, style)])
    page.table(("tool", "endpoint", "flags"), rows, indent=2)
    if (more := len(toolset.tools) - _TOOLS) > 0:
        page.line(f"and {more:,} more: toolgen show FILE lists all", style="dim", indent=2)
    page.line()


def _faults(page: Page, report: Report) -> None:
    """Degraded and skipped operations, each with its reasons."""
    for status, meaning in _MEANING.items():
        found = [operation for operation in report.operations if operation.status == status]
        if not found:
            continue
        page.line(f"{status}: {count(len(found), 'operation')} ({meaning})", style=_STYLES[status])
        _operations(page, found[:_OPERATIONS])
        if (more := len(found) - _OPERATIONS) > 0:
            page.line(f"and {more:,} more: --format json shows all", style="dim", indent=2)
        page.line()


def _operations(page: Page, operations: Sequence[OperationReport]) -> None:
    """Each operation and its reasons; those with the same reasons stand together."""
    groups: dict[tuple[Diagnostic, ...], list[OperationReport]] = {}
    for operation in operations:
        reasons = tuple(d for d in operation.diagnostics if d.level != "note")
        groups.setdefault(reasons, []).append(operation)
    for reasons, alike in groups.items():
        for operation in alike:
            name = f"{operation.method.upper()} {operation.path}"
            page.line(f"{name}  {operation.tool or ''}".rstrip(), indent=2)
        for reason in reasons[:_REASONS]:
            page.line(f"{reason.message}, at {reason.pointer or '/'}", style="dim", indent=4)
        if (more := len(reasons) - _REASONS) > 0:
            page.line(f"and {more:,} more: --format json shows all", style="dim", indent=4)


def _notes(page: Page, output: Output) -> None:
    """What concerns the whole document, and what the export's target does not take."""
    report = _report(output)
    _listed(page, "the document", [_placed(note) for note in report.document])
    if output.export is not None:
        _listed(page, f"the target {output.export.target}", [str(note) for note in output.export.notes])


def _placed(note: Diagnostic) -> str:
    return f"{note.message}, at {note.pointer}" if note.pointer else note.message


def _listed(page: Page, about: str, notes: Sequence[str]) -> None:
    if not notes:
        return
    page.line(f"{count(len(notes), 'note')} on {about}")
    for text in islice(notes, _NOTES):
        page.line(text, style="dim", indent=2)
    if (more := len(notes) - _NOTES) > 0:
        page.line(f"and {more:,} more: --format json shows all", style="dim", indent=2)
    page.line()


def _summary(page: Page, output: Output, changes: list[Problem] | None, written: bool) -> None:
    report, toolset = _report(output), output.toolset
    counts = ", ".join(f"{number:,} {status}" for status, number in report.counts().items())
    facts = [("operations", f"{counts}, {report.filtered:,} filtered out", "")]
    if changes is None:
        facts += server_facts(report.servers) or [("server", "none: give one with --server URL", "")]
        if away := sum(goes_elsewhere(tool, toolset) for tool in toolset.tools):
            origin = url_of(toolset.server) or "the toolset's, which has none"
            facts.append(("elsewhere", f"{count(away, 'tool')} with another origin than {origin}", "red"))
        notes = sum(d.level == "note" for operation in report.operations for d in operation.diagnostics)
        if notes:
            facts.append(("notes", f"{count(notes, 'note')} on single operations: --format json shows them", ""))
    place = "stdout" if output.path is None else str(output.path)
    if changes is not None:
        facts.append(("check", f"{place} would change" if changes else f"{place} is up to date", "bold"))
    else:
        facts.append(("written", place if written else "nothing", "bold"))
    page.facts(facts)
    for change in changes or ():
        page.line(str(change), indent=2)
