"""What generation did with each operation of a document."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from toolgen.openapi.diagnostics import Diagnostic

Status = Literal["ok", "degraded", "skipped"]


@dataclass(frozen=True, slots=True)
class OperationReport:
    """One operation: its status, the tool that came of it (None when skipped), and why."""

    method: str
    path: str
    pointer: str
    tool: str | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def status(self) -> Status:
        if self.tool is None:
            return "skipped"
        return "degraded" if any(d.level == "degraded" for d in self.diagnostics) else "ok"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        reasons = [{"level": d.level, "message": d.message, "pointer": d.pointer} for d in self.diagnostics]
        return {
            "method": self.method,
            "path": self.path,
            "pointer": self.pointer,
            "status": self.status,
            "tool": self.tool,
            "diagnostics": reasons,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The load report: one entry per operation that was selected, and what concerns the whole document.

    `filtered` counts operations that `include`, `exclude` or `skip_deprecated` left out.
    """

    operations: tuple[OperationReport, ...] = ()
    document: tuple[Diagnostic, ...] = ()
    filtered: int = 0
    servers: tuple[str, ...] = field(default=())

    def counts(self) -> dict[Status, int]:
        """How many operations are ok, degraded and skipped."""
        found = Counter(operation.status for operation in self.operations)
        return {"ok": found["ok"], "degraded": found["degraded"], "skipped": found["skipped"]}

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "counts": self.counts(),
            "filtered": self.filtered,
            "servers": list(self.servers),
            "document": [{"level": d.level, "message": d.message, "pointer": d.pointer} for d in self.document],
            "operations": [operation.to_dict() for operation in self.operations],
        }
