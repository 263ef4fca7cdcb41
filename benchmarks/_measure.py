"""Measures one document, in a process of its own: read, generate against the clock, then check.

What is measured is said in three messages (`read`, `generated`, `checked`), so that a document
that runs into a limit still says what was known of it.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _checks import check
from _documents import Document, neighbours, read
from _kinds import kind_of
from _operations import Key, operations, version_of

import toolgen
from toolgen import Toolset

MIB = 2**20
FRAMES = 6
Say = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits of a document, and how often generation is timed."""

    seconds: float = 60.0
    memory: int = 4 * 2**30
    repeat: int = 3


class Clock:
    """The best of several times: elapsed, and of the processor, which other programs disturb less."""

    def __init__(self) -> None:
        self.seconds = self.cpu = float("inf")

    def __enter__(self) -> None:
        self.started, self.used = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds = min(self.seconds, time.perf_counter() - self.started)
        self.cpu = min(self.cpu, time.process_time() - self.used)


WARM_UP = (
    '{"swagger":"2.0","info":{"title":"a","version":"1"},"paths":{"/a":{"post":{"parameters":[{"in":"body","name":"b",'
    '"schema":{"$ref":"#/definitions/A"}}],"responses":{}}}},"definitions":{"A":{"type":"object"}}}',
    "openapi: 3.0.3\ninfo: {title: a, version: '1'}\npaths:\n  /a/{b}:\n    get:\n      parameters:\n"
    "      - {in: path, name: b, required: true, schema: {type: string, nullable: true}}\n      responses: {}\n",
    '{"openapi":"3.1.0","info":{"title":"a","version":"1"},"paths":{"/a":{"put":{"requestBody":{"content":'
    '{"application/json":{"schema":{"type":["object","null"]}}}},"responses":{}}}}}',
)


def warm_up() -> None:
    """Import what is imported when first used, so that no document pays for it."""
    for text in WARM_UP:
        with suppress(Exception):  # whatever is wrong, the documents will say it
            check(_generate(text.encode()), {})


def measure(document: Document, settings: Settings, say: Say) -> None:
    """Measure a document; `say` is called with a stage's name and what was measured in it."""
    text = document.path.read_bytes()
    known, expected = _read(document, text)
    say("read", known)
    source: bytes | Path = document.path if known["multi_file"] else text
    outcome, toolset = _timed(source, settings)
    say("generated", outcome)
    if toolset is not None:
        found = check(toolset, expected)
        say("checked", {"checked": found, "status": _status(found.statuses)})


def _read(document: Document, text: bytes) -> tuple[dict[str, Any], dict[Key, str]]:
    """The document without toolgen: its form, its operations, and the time of json.loads."""
    known: dict[str, Any] = {"multi_file": bool(neighbours(document, text))}
    try:
        data, as_json, form = read(text)
    except Exception as error:
        return {**known, "form": "unreadable", "unreadable": f"{type(error).__name__}: {error}"}, {}
    expected = operations(data, document.path)
    version = ".".join(map(str, version_of(data)))
    clock = Clock()
    for _ in range(3):
        data = None  # taking the last one apart is not a part of reading the next
        gc.collect()
        with clock:
            data = json.loads(as_json)
    known |= {"form": form, "version": version, "operations": len(expected)}
    return {**known, "loads_seconds": clock.seconds, "loads_cpu": clock.cpu}, expected


def _timed(source: bytes | Path, settings: Settings) -> tuple[dict[str, Any], Toolset | None]:
    """Generate, and call `input_schema()` of every tool; the collector works as it always does."""
    toolset, clock = None, Clock()
    outcome: dict[str, Any] = {"base_memory": _reset_peak()}
    _limit_memory(settings.memory)
    try:
        for _ in range(settings.repeat):
            toolset = None
            gc.collect()
            with clock:
                toolset = _generate(source)
        outcome |= {"seconds": clock.seconds, "cpu": clock.cpu}
    except BaseException as error:
        toolset = None
        outcome |= _failure(error)
    _limit_memory(None)
    outcome["peak_memory"] = _memory("VmHWM")
    return outcome, toolset


def _generate(source: bytes | Path) -> Toolset:
    toolset: Toolset = toolgen.generate(source)
    for tool in toolset.tools:
        tool.input_schema()
    return toolset


def _status(statuses: dict[str, int]) -> str:
    return "degraded" if statuses.get("degraded") or statuses.get("skipped") else "ok"


def _failure(error: BaseException) -> dict[str, Any]:
    """An exception by its kind; what is no ToolgenError is a crash, and its last frames are kept."""
    name, message = type(error).__name__, " ".join(str(error).split())[:400]
    if isinstance(error, toolgen.ToolgenError):
        empty = name == "SelectionError"
        return {"status": "empty" if empty else "failed", "failure": f"{name}: {kind_of(message)}", "message": message}
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{Path(f.filename).name}:{f.lineno} {f.name}: {(f.line or '')[:100]}" for f in frames[-FRAMES:]]
    own = [f for f in frames if "toolgen" in Path(f.filename).parts]
    where = f" in {own[-1].name}" if own else ""
    kind = "limit: out of memory" if isinstance(error, MemoryError) else f"crash: {name}{where}: {kind_of(message)}"
    return {
        "status": "failed",
        "crash": True,
        "failure": kind,
        "message": message,
        "traceback": lines,
    }


# memory


def _limit_memory(size: int | None) -> None:
    """Limit the address space to what there is now plus `size`; None lifts the limit."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = hard if size is None else _memory("VmSize") + size
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _reset_peak() -> int:
    """Forget the peak so far (Linux only) and return the resident memory now."""
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(field: str) -> int:
    """A field of this process's status in bytes; elsewhere than on Linux the peak of its whole life."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def silence() -> None:
    """Nothing a child prints reaches the terminal."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
