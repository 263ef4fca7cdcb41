"""What is checked of a toolset: the bookkeeping, names, argument keys, schemas and templates."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from _kinds import Kinds, kind_of
from _operations import Key
from _schemas import SchemaChecks, size_of

from toolgen import Tool, Toolset
from toolgen.tools.report import Report
from toolgen.tools.template import TemplateFault, arguments_in

KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
ABOUT = ("missing", "report", "names", "keys", "schemas", "references", "templates")


@dataclass
class Checked:
    """What was found in one toolset. `faults` has the kinds of faults by what is checked."""

    tools: int = 0
    made: int = 0
    skipped: int = 0
    bytes: int = 0
    schema_bytes: int = 0
    largest: tuple[int, str] = (0, "")
    statuses: dict[str, int] = field(default_factory=dict)
    faults: dict[str, Kinds] = field(default_factory=lambda: {name: Kinds() for name in ABOUT})
    diagnostics: Kinds = field(default_factory=Kinds)

    def fault(self, about: str, kind: str, example: str) -> None:
        self.faults[about].note(kind, example)


def check(toolset: Toolset, expected: dict[Key, str]) -> Checked:
    """Check a toolset against the operations its document has."""
    found = Checked(tools=len(toolset.tools))
    _bookkeeping(toolset, expected, found)
    names = Counter(tool.name for tool in toolset.tools)
    schemas = SchemaChecks()
    for tool in toolset.tools:
        _name(tool, names, found)
        schema = tool.input_schema()
        _arguments(tool, schema, found)
        found.schema_bytes += (size := schemas.add(tool.name, schema))
        whole = size_of({"name": tool.name, "description": tool.description, "input_schema": 0}) - 1 + size
        found.bytes += whole
        found.largest = max(found.largest, (whole, tool.name))
    schemas.finish()
    _schema_faults(schemas, found)
    return found


def _bookkeeping(toolset: Toolset, expected: dict[Key, str], found: Checked) -> None:
    """Every operation is a tool or a reported skip, and the report speaks of these operations and tools only."""
    report = toolset.report or Report()
    by_key = {(entry.method.lower(), entry.path): entry for entry in report.operations}
    by_pointer = {entry.pointer.lstrip("#"): entry for entry in report.operations}
    unreported = {tool.name for tool in toolset.tools}
    strange = {id(entry): entry for entry in report.operations}
    for key, pointer in expected.items():
        entry = by_key.get(key) or by_pointer.get(pointer)
        if entry is None:
            found.fault("missing", "an operation that is not in the report", f"{key[0]} {key[1]}")
            continue
        strange.pop(id(entry), None)
        if entry.tool in unreported:
            found.made += 1
        elif entry.tool is None and any(diagnostic.level == "skipped" for diagnostic in entry.diagnostics):
            found.skipped += 1
        else:
            found.fault(
                "missing", "skipped without a reason" if entry.tool is None else "no tool", f"{key[0]} {key[1]}"
            )
    for entry in strange.values():
        found.fault("report", "an operation the document does not have", f"{entry.method} {entry.path}")
    for name in sorted(unreported - {entry.tool for entry in report.operations}):
        found.fault("report", "a tool that is not in the report", name)
    found.statuses = dict(Counter(entry.status for entry in report.operations))
    _diagnostics(report, found)


def _diagnostics(report: Report, found: Checked) -> None:
    for diagnostic in report.document:
        found.diagnostics.note(f"{diagnostic.level}: {kind_of(diagnostic.message)}", str(diagnostic))
    for entry in report.operations:
        for diagnostic in entry.diagnostics:
            kind = f"{diagnostic.level}: {kind_of(diagnostic.message)}"
            found.diagnostics.note(kind, f"{entry.method} {entry.path}: {diagnostic}")


def _name(tool: Tool, names: Counter[str], found: Checked) -> None:
    if not KEY.fullmatch(tool.name):
        found.fault("names", "invalid", f"{tool.name!r} ({tool.pointer})")
    elif names[tool.name] > 1:
        found.fault("names", "duplicate", f"{tool.name!r} ({tool.pointer})")


def _arguments(tool: Tool, schema: dict[str, Any], found: Checked) -> None:
    """Keys of arguments, and that templates read exactly the declared ones."""
    if schema.get("type") != "object":
        found.fault("schemas", "the input is not an object", f"{tool.name}: {json.dumps(schema)[:80]}")
    declared = set(schema.get("properties", {}))
    for key in sorted(declared):
        if not KEY.fullmatch(key):
            found.fault("keys", "invalid", f"{tool.name}: {key!r}")
    for key in sorted(set(schema.get("required", ())) - declared):
        found.fault("keys", "required, and not a property", f"{tool.name}: {key!r}")
    try:
        used = frozenset().union(*(arguments_in(value) for _, _, value in tool.request.leaves()))
    except TemplateFault as fault:
        found.fault("templates", kind_of(str(fault)), tool.name)
        return
    for key in sorted(declared - used):
        found.fault("templates", "an argument no template reads", f"{tool.name}: {key!r}")
    for key in sorted(used - declared):
        found.fault("templates", "a template reads what is not declared", f"{tool.name}: {key!r}")


def _schema_faults(schemas: SchemaChecks, found: Checked) -> None:
    for name, message in schemas.invalid:
        found.fault("schemas", kind_of(message), f"{name}: {message[:200]}")
    for name, reference in schemas.dangling:
        kind = f"#/{reference.split('/')[1]}/…" if reference.startswith("#/") else "leaves the schema"
        found.fault("references", kind, f"{name}: {reference}")
