"""Sums up measurements: totals, kinds of faults, the worst documents, and the bars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from _checks import ABOUT
from _kinds import Kinds
from _pool import Measurement, to_dict

WORST = 10
RATIO_FROM = 50_000  # bytes: below, the fixed cost of a call is the whole ratio
TOTALS = ("tools", "made", "skipped", "bytes", "schema_bytes")
# Documents the project has promised something about: (end of the name, what, its limit).
PROMISED: tuple[tuple[str, str, float], ...] = (
    ("microsoft.com/graph-beta.json", "seconds", 20.0),
    ("microsoft.com/graph-beta.json", "peak MB", 2_000.0),
    ("box.json", "input schemas MB", 0.70),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, the value measured, and whether it holds."""

    what: str
    bar: str
    value: str
    holds: bool


@dataclass(frozen=True)
class Summary:
    """Everything a run says; `totals` is JSON-ready."""

    measurements: Sequence[Measurement]
    totals: dict[str, Any]
    failures: Kinds
    faults: dict[str, Kinds]
    diagnostics: Kinds
    tracebacks: dict[str, list[str]]
    bars: list[Bar]

    def to_dict(self) -> dict[str, Any]:
        return {
            "totals": self.totals,
            "bars": [{"what": b.what, "bar": b.bar, "value": b.value, "holds": b.holds} for b in self.bars],
            "failures": self.failures.to_dict(),
            "tracebacks": self.tracebacks,
            "faults": {about: kinds.to_dict() for about, kinds in self.faults.items()},
            "diagnostics": self.diagnostics.to_dict(),
            "documents": [to_dict(measurement) for measurement in self.measurements],
        }


def summarise(measurements: Sequence[Measurement], *, sampled: bool = True) -> Summary:
    """Sum up what was measured; the operations of a failed document count as missing.

    The bar for time is that of a sample: it is not set for documents chosen otherwise.
    """
    failures, diagnostics = Kinds(), Kinds()
    faults: dict[str, Kinds] = {about: Kinds() for about in ABOUT}
    tracebacks: dict[str, list[str]] = {}
    for found in measurements:
        if found.failure:
            one = Kinds()
            one.note(found.failure, found.message or "no message")
            failures.merge(one, found.name)
            if found.traceback:
                tracebacks.setdefault(found.failure, found.traceback)
        if found.status == "failed" and found.operations:
            one = Kinds()
            one.note("the document failed", found.failure, found.operations)
            faults["missing"].merge(one, found.name)
        for about, kinds in found.checked.faults.items():
            faults[about].merge(kinds, found.name)
        diagnostics.merge(found.checked.diagnostics, found.name)
    totals = _totals(measurements)
    totals["faults"] = {about: sum(kind.count for kind in kinds.values()) for about, kinds in faults.items()}
    bars = [*_bars(totals, sampled), *_promises(measurements)]
    return Summary(measurements, totals, failures, faults, diagnostics, tracebacks, bars)


def _totals(measurements: Sequence[Measurement]) -> dict[str, Any]:
    statuses = Counter(found.status for found in measurements)
    totals: dict[str, Any] = {
        "documents": len(measurements),
        "statuses": {status: statuses[status] for status in ("ok", "degraded", "empty", "failed")},
        "crashes": sum(found.crash for found in measurements),
        "unreadable": sum(bool(found.unreadable) for found in measurements),
        "unchecked": sum(found.unchecked for found in measurements),
        "document_bytes": sum(found.bytes for found in measurements),
        "operations": sum(found.operations for found in measurements),
    }
    for name in TOTALS:
        totals[name] = sum(getattr(found.checked, name) for found in measurements)
    operation_statuses: Counter[str] = Counter()
    for found in measurements:
        operation_statuses.update(found.checked.statuses)
    totals["operation_statuses"] = {status: operation_statuses[status] for status in ("ok", "degraded", "skipped")}
    totals["time"] = {form: _times([m for m in measurements if m.form == form]) for form in ("json", "yaml")}
    totals["peak_memory"] = max((found.peak_memory for found in measurements), default=0)
    return totals


def _times(measurements: Sequence[Measurement]) -> dict[str, Any]:
    timed = [found for found in measurements if found.ratio is not None]
    sums = {
        key: sum(getattr(found, key) for found in timed) for key in ("seconds", "loads_seconds", "cpu", "loads_cpu")
    }
    ratios = sorted(found.ratio or 0.0 for found in timed)
    return {
        "documents": len(timed),
        **sums,
        "ratio": sums["seconds"] / sums["loads_seconds"] if timed else None,
        "cpu_ratio": sums["cpu"] / sums["loads_cpu"] if timed else None,
        "median_ratio": ratios[len(ratios) // 2] if ratios else None,
        "untimed": sum(found.ratio is None and found.operations > 0 for found in measurements),
    }


def _bars(totals: dict[str, Any], sampled: bool) -> list[Bar]:
    operations, faults, times = totals["operations"], totals["faults"], totals["time"]["json"]
    ratio = times["ratio"]
    in_time = not times["untimed"] if ratio is None else ratio <= 8
    share = 100 * totals["made"] / operations if operations else 100.0
    none = [
        ("operations lost without a reported skip", faults["missing"]),
        ("tools and operations the report has wrong", faults["report"]),
        ("invalid or duplicate tool names", faults["names"]),
        ("invalid argument keys", faults["keys"]),
        ("invalid input schemas", faults["schemas"]),
        ("dangling references", faults["references"]),
        ("templates that read other than what is declared", faults["templates"]),
        ("documents whose checks did not finish", totals["unchecked"]),
    ]
    return [
        Bar("operations that became tools", ">= 99.9 %", f"{share:.3f} %", share >= 99.9),
        *(Bar(what, "0", f"{value:,}", value == 0) for what, value in none),
        *([Bar("generation time over json.loads, JSON", "<= 8", number(ratio), in_time)] if sampled else []),
    ]


def _promises(measurements: Sequence[Measurement]) -> list[Bar]:
    """Bars that are about one document, where it was run."""
    bars = []
    for found in measurements:
        values = {
            "seconds": found.seconds,
            "peak MB": found.peak_memory / 1e6,
            "input schemas MB": found.checked.schema_bytes / 1e6,
        }
        for ending, what, limit in PROMISED:
            if f"/{found.name}".endswith(f"/{ending}"):
                holds = found.status in ("ok", "degraded") and values[what] <= limit
                bars.append(Bar(f"{found.name}: {what}", f"<= {limit:,g}", f"{values[what]:,.2f}", holds))
    return bars


def worst(measurements: Sequence[Measurement], by: Callable[[Measurement], float | None]) -> list[Measurement]:
    """The documents with the largest values, the largest first."""
    known = [(value, found) for found in measurements if (value := by(found))]
    return [found for _, found in sorted(known, key=lambda item: (-item[0], item[1].name))[:WORST]]


def ratio_of_large(found: Measurement) -> float | None:
    """The ratio of a document that is large enough for its ratio to mean something."""
    return found.ratio if found.bytes >= RATIO_FROM else None


def bytes_per_tool(found: Measurement) -> float | None:
    """Bytes of tool JSON per tool."""
    return found.checked.bytes / found.checked.tools if found.checked.tools else None


def number(value: float | None) -> str:
    """A ratio for people."""
    return "-" if value is None else f"{value:,.2f}"
