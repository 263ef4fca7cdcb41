"""Runs documents in forked children, each with its own limits, and gathers what they say."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any

from _checks import Checked
from _documents import Document
from _measure import Settings, measure, silence

NEXT = {"start": "read", "read": "generated", "generated": "checked"}


@dataclass
class Measurement:
    """What is known of one document; fields of stages it did not reach keep their defaults."""

    name: str
    bytes: int
    form: str = ""
    version: str = ""
    multi_file: bool = False
    unreadable: str = ""
    operations: int = 0
    loads_seconds: float = 0.0
    loads_cpu: float = 0.0
    seconds: float = 0.0
    cpu: float = 0.0
    base_memory: int = 0
    peak_memory: int = 0
    status: str = "failed"
    crash: bool = False
    failure: str = ""
    message: str = ""
    traceback: list[str] = field(default_factory=list)
    unchecked: bool = False
    checked: Checked = field(default_factory=Checked)

    @property
    def ratio(self) -> float | None:
        """Time of generation over that of json.loads; None where either is unknown or files were read."""
        return (
            self.seconds / self.loads_seconds if self.seconds and self.loads_seconds and not self.multi_file else None
        )


@dataclass
class _Child:
    measurement: Measurement
    process: ForkProcess
    stage: str
    deadline: float


def run(
    documents: Sequence[Document], settings: Settings, jobs: int, done: Callable[[Measurement], None]
) -> list[Measurement]:
    """Measure every document, `jobs` at a time; the result is in the order of the documents."""
    waiting = list(reversed(documents))
    active: dict[Connection, _Child] = {}
    finished: list[Measurement] = []
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                connection, child = _start(waiting.pop(), settings)
                active[connection] = child
            for measurement in _step(active, settings):
                finished.append(measurement)
                done(measurement)
    finally:
        for child in active.values():
            child.process.kill()
    order = {document.name: place for place, document in enumerate(documents)}
    return sorted(finished, key=lambda measurement: order[measurement.name])


def _start(document: Document, settings: Settings) -> tuple[Connection, _Child]:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(document, settings, theirs))
    process.start()
    theirs.close()
    deadline = time.monotonic() + _limit("start", settings)
    return ours, _Child(Measurement(document.name, document.size), process, "start", deadline)


def _child(document: Document, settings: Settings, connection: Connection) -> None:
    silence()
    measure(document, settings, lambda stage, known: connection.send((stage, known)))
    connection.close()
    os._exit(0)  # taking a large toolset apart takes longer than forgetting it


def _limit(stage: str, settings: Settings) -> float:
    """Seconds until the stage that follows: generation has its limit, the rest more than it needs."""
    return settings.seconds * settings.repeat if stage == "read" else max(600.0, 10 * settings.seconds)


def _step(active: dict[Connection, _Child], settings: Settings) -> Iterator[Measurement]:
    """Wait for a message or the nearest deadline, and yield what is finished."""
    nearest = min(child.deadline for child in active.values())
    ready = set(wait(list(active), timeout=max(0.0, nearest - time.monotonic())))
    for connection, child in list(active.items()):
        ended = False
        if connection in ready:
            ended = _hear(connection, child, settings)
        elif time.monotonic() >= child.deadline:
            _overdue(child, settings)
            ended = True
        if ended:
            connection.close()
            child.process.join()
            del active[connection]
            yield child.measurement


def _hear(connection: Connection, child: _Child, settings: Settings) -> bool:
    """Take one message; True if the child has said its last."""
    try:
        stage, known = connection.recv()
    except EOFError:
        child.process.join()
        if child.stage != "checked":
            _died(child)
        return True
    for name, value in known.items():
        setattr(child.measurement, name, value)
    child.stage = stage
    child.deadline = time.monotonic() + _limit(stage, settings)
    if stage == "generated" and child.measurement.failure:
        child.stage = "checked"
    return False


def _overdue(child: _Child, settings: Settings) -> None:
    found = child.measurement
    found.peak_memory = max(found.peak_memory, _peak_of(child.process.pid))
    child.process.kill()
    if child.stage == "generated":
        found.unchecked, found.message = True, "the checks took too long"
        return
    found.crash = True
    limit = _limit(child.stage, settings)
    found.failure = f"limit: more than {limit:.0f} s until {NEXT[child.stage]!r}"
    found.seconds = found.cpu = limit if child.stage == "read" else 0.0


def _died(child: _Child) -> None:
    """The child ended before its last stage: a signal, or an exception outside of generation."""
    code = child.process.exitcode or 0
    how = signal.Signals(-code).name if code < 0 else f"exit {code}"
    found = child.measurement
    if child.stage == "generated":
        found.unchecked, found.message = True, f"the checks ended with {how}"
    else:
        found.crash, found.failure = True, f"crash: {how} before {NEXT[child.stage]!r}"


def _peak_of(pid: int | None) -> int:
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


def to_dict(found: Measurement) -> dict[str, Any]:
    """A measurement as JSON-ready data; `bytes` are the document's, those of its tools stand in `checked`."""
    checked = {**vars(found.checked)}
    checked["faults"] = {about: kinds.to_dict() for about, kinds in found.checked.faults.items()}
    checked["diagnostics"] = found.checked.diagnostics.to_dict()
    return {**vars(found), "ratio": found.ratio, "checked": checked}
