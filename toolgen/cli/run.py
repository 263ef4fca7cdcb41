"""Generate all jobs, then write all files: one that fails leaves every file as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolgen.cli.command import error_dict
from toolgen.cli.jobs import Job, headers_of
from toolgen.cli.output import Format, count, print_json, write, write_bytes
from toolgen.cli.progress import Bar
from toolgen.errors import Problem, ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.cli.writing import Output
    from toolgen.tools.model import Toolset

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for all jobs. `configured`: they come from a toolgen.yaml."""

    target: str | None
    format: Format
    strict: bool
    force: bool
    check: bool
    configured: bool


def run(jobs: list[Job], options: Options) -> int:
    """The exit code. Raises ToolgenError when a job cannot be done, before anything is written."""
    from toolgen.cli.report import print_reports, report_dict
    from toolgen.cli.writing import changes, check_target, write_all

    outputs = _each(jobs, options, lambda index: _output(jobs[index], options))
    failure = _too_strict(outputs) if options.strict else None
    if failure is None and not options.check:
        _each(jobs, options, lambda index: check_target(outputs[index], options.force))
        write_all(output for output in outputs if output.path is not None)
    found = [changes(output) if options.check else None for output in outputs]
    written = failure is None and not options.check
    stream = sys.stderr if any(output.path is None for output in outputs) else sys.stdout
    if options.format is Format.json:
        entries = [report_dict(output, change, written) for output, change in zip(outputs, found, strict=True)]
        answer = {"apis": entries} if options.configured else entries[0]
        print_json({**answer, "error": error_dict(failure)} if failure else answer, stream)
    else:
        print_reports(outputs, found, written, stream)
        if failure is not None:
            stream.flush()
            write(f"error: {failure}\n", sys.stderr)
    if written:
        for output in outputs:
            if output.path is None:
                write_bytes(output.content())
    return 1 if failure is not None or any(found) else 0


def _each(jobs: list[Job], options: Options, do: Callable[[int], T]) -> list[T]:
    """What `do` makes of each job, by its number. Raises one error for all that fail."""
    done: list[T] = []
    failed: list[tuple[Job, ToolgenError]] = []
    for index, job in enumerate(jobs):
        try:
            done.append(do(index))
        except ToolgenError as error:
            failed.append((job, error))
    if failed:
        raise failed[0][1] if not options.configured else _together(failed, len(jobs))
    return done


def _together(failed: list[tuple[Job, ToolgenError]], total: int) -> ToolgenError:
    problems = []
    for job, error in failed:
        place = f"apis.{job.api}"
        problems.append(Problem(error.message, place))
        problems += [Problem(str(problem), place) for problem in error.problems]
    kind = UsageError if all(isinstance(error, UsageError) for _, error in failed) else ToolgenError
    return kind(f"{len(failed)} of {count(total, 'API')} failed; nothing was written", problems)


def _output(job: Job, options: Options) -> Output:
    """One job's tools, in the form they are written in."""
    from toolgen.cli.writing import Output

    toolset = _generated(job)
    exported = None
    if options.target is not None:
        from toolgen.tools.export import export

        exported = export(toolset, options.target)
    output = Output(_path(job, options, toolset.api), toolset, exported)
    if output.path is not None and not job.is_url and not job.is_stdin and _same(output.path, job.spec):
        raise UsageError(f"{output.path} is the document itself; write to another name with -o")
    return output


def _same(path: Path, spec: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(spec)


def _path(job: Job, options: Options, api: str) -> Path | None:
    """Where to write; None is stdout. An export from a toolgen.yaml stands beside the toolset."""
    if job.output == "-":
        return None
    name = f"{api}.tools.yaml"
    if options.target is not None:
        name = f"{api}.{options.target}.{'md' if options.target == 'markdown' else 'json'}"
    if options.configured and options.target is not None:
        return (Path(job.output).parent if job.output else job.folder) / name
    return Path(job.output) if job.output else job.folder / name


def _generated(job: Job) -> Toolset:
    from toolgen.openapi.source import Limits
    from toolgen.tools.generate import generate
    from toolgen.tools.naming import NAME_LIMIT

    for root in job.allow_roots:
        if not os.path.isdir(root):
            raise UsageError(f"references cannot be allowed to read {root}: there is no such folder")
    roots: list[str] | None = list(job.allow_roots) or None
    if roots and not job.is_url and not job.is_stdin:
        roots.insert(0, os.path.dirname(os.path.abspath(job.spec)))
    with Bar(f"generating {job.api or 'tools'}") as bar:
        return generate(
            _source(job),
            api=job.api,
            server=job.server,
            include=job.include,
            exclude=job.exclude,
            skip_deprecated=job.skip_deprecated,
            name_prefix=job.name_prefix,
            name_limit=job.name_limit or NAME_LIMIT,
            allow_roots=roots,
            allow_hosts=job.allow_hosts,
            headers=headers_of(job),
            limits=Limits(**job.limits),
            progress=bar,
        )


def _source(job: Job) -> str | bytes | Path:
    if job.is_stdin:
        from toolgen.openapi.source import Limits

        return sys.stdin.buffer.read(Limits(**job.limits).bytes + 1)  # one more than allowed, to be refused
    return job.spec if job.is_url else Path(job.spec)


def _too_strict(outputs: Iterable[Output]) -> ToolgenError | None:
    """The error if an operation is not ok."""
    reports = [output.toolset.report for output in outputs if output.toolset.report is not None]
    degraded = sum(report.counts()["degraded"] for report in reports)
    skipped = sum(report.counts()["skipped"] for report in reports)
    faults = [fault for report in reports for fault in report.document if fault.level != "note"]
    if not degraded and not skipped and not faults:
        return None
    document = f", {len(faults)} faults of the document" if faults else ""
    message = f"{degraded} degraded and {skipped} skipped{document}, and --strict allows none; nothing was written"
    return ToolgenError(message)
