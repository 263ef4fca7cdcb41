"""Configs to start with: suggested for toolsets, or converted from the reference system's."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolgen.cli.output import in_line, print_json, write, write_bytes
from toolgen.errors import ApprovalConfigError, Problem, ToolgenError, ToolsetError, UsageError
from toolgen.tools.files import load_toolset
from toolgen.tools.files.atomic import replace_file
from toolgen.tools.model import Toolset


@dataclass(frozen=True, slots=True)
class Start:
    """What to write a config for, and where: `output` None and `-` are stdout.

    Of the `files` the first `named` were given with --tools, the others stand behind them.
    """

    files: Sequence[str]
    named: int
    output: str | None
    force: bool
    as_json: bool

    def toolsets(self) -> list[Toolset]:
        """The toolsets of the files. Raises UsageError for one that nobody called a toolset and that is none."""
        found = []
        for number, file in enumerate(self.files):
            try:
                found.append(load_toolset(Path(file)))
            except ToolsetError as error:
                if number < self.named:
                    raise
                message = f"where a config is written there is no CONFIG, and {file} is no toolset: {error.message}"
                raise UsageError(message, error.problems) from None
        return found

    @property
    def is_stdout(self) -> bool:
        """Whether the config goes to stdout."""
        return self.output in (None, "-")


def suggested(start: Start) -> None:
    """Write a config for the toolsets. Raises ToolgenError where it cannot be written."""
    from toolgen.policy.suggest import suggest

    text = suggest(start.toolsets())
    if start.as_json:
        import yaml

        _print({"config": yaml.safe_load(text)}, text, start)
    else:
        _print(None, text, start)


def converted(start: Start, file: str) -> None:
    """Write the config of a file of the reference system, and say on stderr what is different.

    Raises ApprovalConfigError for a config that cannot be converted, and SourceError for a file that cannot be read.
    """
    from toolgen.openapi.source import Loader
    from toolgen.policy.reference import import_config
    from toolgen.tools.files.lines import Lines

    toolsets, document = start.toolsets(), Loader().load(Path(file))
    lines = Lines(document.content)

    def placed(problems: Sequence[Problem]) -> list[Problem]:
        return [replace(one, file=file, line=lines.of(one.where)) for one in problems]

    try:
        made = import_config(document.tree, toolsets)
    except ApprovalConfigError as error:
        raise ApprovalConfigError(f"{file}: {error.message}", placed(error.problems)) from None
    changes = placed(made.changes)
    if start.as_json:
        _print({"config": made.mapping, "changes": [change.to_dict() for change in changes]}, made.to_yaml(), start)
        return
    _print(None, made.to_yaml(), start)
    write("".join(f"{in_line(str(replace(change, caret=None)))}\n" for change in changes), sys.stderr)


def _print(data: dict[str, Any] | None, text: str, start: Start) -> None:
    """Write the config to the file there is to write; to stdout goes `data`, or else the config."""
    if not start.is_stdout:
        _save(text, Path(str(start.output)), start.force)
    if data is not None:
        print_json(data, sys.stdout)
    elif start.is_stdout:
        write_bytes(text.encode())
    else:
        write(f"written  {start.output}\n", sys.stdout)


def _save(text: str, path: Path, force: bool) -> None:
    """Write a file in one step, over one that is there only by force."""
    if path.exists() and not force:
        raise ToolgenError(f"{path} is there already (write to another name; --force overwrites it)")
    replace_file(path, text.encode())
