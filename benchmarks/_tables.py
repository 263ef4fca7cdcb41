"""Prints a summary as tables that fit 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO

from _kinds import Kinds
from _pool import Measurement
from _summary import RATIO_FROM, Summary, bytes_per_tool, number, ratio_of_large, worst
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH = 100
MOST_KINDS = 40
Row = Sequence[object]


def write(summary: Summary, file: IO[str]) -> None:
    """Write the whole summary to a file or terminal; the bars come last."""
    console = Console(file=file, width=WIDTH, highlight=False, no_color=not file.isatty())
    _totals(summary, console)
    _kinds("failures", summary.failures, console)
    for failure, lines in sorted(summary.tracebacks.items()):
        console.print(Text("\n".join([f"\n{failure}", *(f"    {line}" for line in lines)])))
    for about, kinds in summary.faults.items():
        _kinds(f"faults: {about}", kinds, console)
    _kinds("diagnostics", summary.diagnostics, console)
    _worst(summary.measurements, console)
    rows = [(bar.what, bar.bar, bar.value, "ok" if bar.holds else "MISSED") for bar in summary.bars]
    _table("bars", ["", "bar", "measured>", ""], rows, console)


def _totals(summary: Summary, console: Console) -> None:
    t = summary.totals
    tools = t["tools"] or 1
    statuses = ", ".join(f"{count:,} {status}" for status, count in t["statuses"].items())
    operations = ", ".join(f"{count:,} {status}" for status, count in t["operation_statuses"].items())
    rows: list[Row] = [
        ("documents", f"{t['documents']:,}: {statuses}"),
        ("of the failed", f"{t['crashes']:,} crashes or limits; {t['unreadable']:,} unreadable as JSON and YAML"),
        ("document bytes", f"{t['document_bytes']:,}"),
        ("operations", f"{t['operations']:,}: {t['made']:,} tools, {t['skipped']:,} skips, {_lost(t)}"),
        ("by the reports", operations),
        ("tools", f"{t['tools']:,}"),
        ("bytes of tools", f"{t['bytes']:,} ({t['bytes'] / tools:,.0f} per tool)"),
        ("of input schemas", f"{t['schema_bytes']:,} ({t['schema_bytes'] / tools:,.0f} per tool)"),
    ]
    for form, times in t["time"].items():
        if times["documents"]:
            text = (
                f"{times['seconds']:.2f} s, json.loads {times['loads_seconds']:.2f} s, {times['documents']:,} documents"
            )
            ratios = f"{number(times['ratio'])}; processor time {number(times['cpu_ratio'])}"
            rows.append((f"time, {form.upper()}", text))
            rows.append(("ratio", f"{ratios}; median of documents {number(times['median_ratio'])}"))
    rows.append(("peak memory", f"{t['peak_memory'] / 1e6:,.0f} MB"))
    _table("run", ["", ""], rows, console)


def _lost(totals: dict[str, dict[str, int]]) -> str:
    return f"{totals['faults']['missing']:,} lost"


def _kinds(title: str, kinds: Kinds, console: Console) -> None:
    if not kinds:
        return
    rows = [(f"{kind.count:,}", f"{kind.documents:,}", name, kind.example) for name, kind in kinds.ranked()]
    more = f" (the first {MOST_KINDS} of {len(rows)})" if len(rows) > MOST_KINDS else ""
    _table(title + more, ["count>", "docs>", "kind", "for example"], rows[:MOST_KINDS], console)


def _worst(measurements: Sequence[Measurement], console: Console) -> None:
    for title, key in (
        (f"largest ratio to json.loads (of {RATIO_FROM // 1000} kB and more)", ratio_of_large),
        ("most bytes per tool", bytes_per_tool),
        ("most seconds", lambda found: found.seconds),
        ("most memory", lambda found: found.peak_memory),
    ):
        rows = [
            (
                found.name,
                f"{found.bytes / 1e6:.2f}",
                f"{found.checked.tools:,}",
                number(found.ratio),
                f"{found.seconds:.3f}",
                f"{bytes_per_tool(found) or 0:,.0f}",
                f"{found.peak_memory / 1e6:,.0f}",
            )
            for found in worst(measurements, key)
        ]
        _table(title, ["document", "MB>", "tools>", "ratio>", "s>", "B/tool>", "peak MB>"], rows, console)
    largest = worst(measurements, lambda found: found.checked.largest[0])
    rows_of_tools = [(f"{found.checked.largest[0]:,}", found.checked.largest[1], found.name) for found in largest]
    _table("largest tool of a document", ["bytes>", "tool", "document"], rows_of_tools, console)


def _table(title: str, headings: Sequence[str], rows: Iterable[Row], console: Console) -> None:
    """A table, unless it is empty; a heading that ends in `>` stands over numbers."""
    rows = list(rows)
    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", show_edge=False)
    table.show_header = any(headings)
    for heading in headings:
        numbers = heading.endswith(">")
        table.add_column(heading.rstrip(">"), justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    console.print()
    console.print(table)
