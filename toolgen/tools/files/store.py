"""Toolset files: written in one step, read with every fault named, and never overwritten over edits."""

from __future__ import annotations

import os
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from toolgen.errors import Problem, SourceError, ToolsetEdited, ToolsetError
from toolgen.tools.files.atomic import replace_file
from toolgen.tools.files.form import digest, from_dict, stamped, to_dict
from toolgen.tools.model import Toolset

MOST_YAML = 2_000_000  # bytes; a larger file is JSON unless its name says YAML
_LINES_UP_TO = 4_000_000  # bytes of a file in which the lines of faults are looked up
_FORCE = "--force drops the edits; keep a copy of the file to carry them over"


def render(toolset: Toolset, *, json: bool) -> bytes:
    """The bytes of the toolset's file, in JSON or YAML; the same toolset gives the same bytes."""
    return _render(stamped(to_dict(toolset)), json=json)


def save_toolset(toolset: Toolset, path: str | PathLike[str]) -> None:
    """Write a toolset: YAML, or JSON for a `.json` name and above 2 MB unless the name says YAML.

    The file is replaced in one step and keeps its permissions; of a symbolic link the target is
    replaced. If writing fails the old file stays as it was.
    """
    replace_file(Path(path), _bytes_for(toolset, Path(path)), ToolsetError)


def load_toolset(path: str | PathLike[str]) -> Toolset:
    """Read and check a toolset file.

    Raises ToolsetError with all problems, each with its place in the file, and SourceError for a
    file that cannot be read.
    """
    from toolgen.tools.files.check import check_toolset

    data, content = _read(Path(path))
    try:
        toolset = from_dict(data)
    except ToolsetError as error:
        raise _invalid(path, content, list(error.problems) or [Problem(error.message)]) from None
    found = check_toolset(toolset)
    if found:
        raise _invalid(path, content, found)
    return toolset


def would_change(path: str | PathLike[str], new: Toolset) -> bool:
    """Whether saving would change the file; a file that is not there or cannot be read would change."""
    try:
        return Path(path).read_bytes() != _bytes_for(new, Path(path))
    except OSError:
        return True


def guard_edits(path: str | PathLike[str], new: Toolset) -> None:
    """Raise ToolsetEdited if writing `new` would drop what a person wrote.

    That is a toolset file whose content is not what was generated, and any file that is no
    toolset. No file, and an empty one, are fine.
    """
    from toolgen.tools.files.edits import differences
    from toolgen.tools.files.invalid import version_problem

    target = Path(path)
    if not target.exists() or (target.is_file() and target.stat().st_size == 0):
        return
    try:
        old, _ = _read(target)
    except (SourceError, ToolsetError) as error:
        raise _not_ours(path, str(error.message)) from None
    problem = version_problem(old)
    if problem is not None:
        raise _not_ours(path, problem.message)
    if old.get("generated") == digest(old):
        return
    generated = to_dict(new)
    message = f"{os.fspath(path)} was edited by hand, and writing it would drop the edits (generated -> in the file)"
    if _document_digest(old) != _document_digest(generated):
        message += "; the document changed too, so that its changes are among them"
    found = differences(generated, old) or [Problem("the content is what would be generated", "generated")]
    raise ToolsetEdited(f"{message} ({_FORCE})", found)


def _not_ours(path: str | PathLike[str], reason: str) -> ToolsetEdited:
    hint = "write to another name; --force overwrites it"
    return ToolsetEdited(f"{os.fspath(path)} is not a toolset that toolgen wrote: {reason} ({hint})")


def _document_digest(data: dict[str, Any]) -> Any:
    document = data.get("document")
    return document.get("digest") if isinstance(document, dict) else None


def _render(data: dict[str, Any], *, json: bool) -> bytes:
    from toolgen.tools.files.layout import render_json, render_yaml

    return render_json(data) if json else render_yaml(data)


def _bytes_for(toolset: Toolset, path: Path) -> bytes:
    """What is written under that name."""
    suffix = path.suffix.lower()
    data = stamped(to_dict(toolset))
    if suffix in (".yaml", ".yml"):
        return _render(data, json=False)
    as_json = _render(data, json=True)
    # Indented JSON is about twice as large as YAML: what is far larger is not tried.
    if suffix == ".json" or len(as_json) > 3 * MOST_YAML:
        return as_json
    as_yaml = _render(data, json=False)
    return as_json if len(as_yaml) > MOST_YAML else as_yaml


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    """A file's data and bytes. Limits are wider than a document's: a toolset may be larger than its document."""
    from toolgen.openapi.source import Limits, Loader

    read = Loader(limits=Limits(bytes=512 * 1024 * 1024, nesting=400, nodes=100_000_000)).load(path)
    if not isinstance(read.tree, dict):
        raise ToolsetError(f"{path} is not a toolset: it holds no mapping")
    return read.tree, read.content


def _invalid(path: str | PathLike[str], content: bytes, found: list[Problem]) -> ToolsetError:
    """The error for problems whose places are inside the file."""
    from toolgen.tools.files.invalid import shortened
    from toolgen.tools.files.lines import Lines

    name = os.fspath(path)
    lines = Lines(content if len(content) <= _LINES_UP_TO else b"")
    shown = [replace(one, line=lines.of(one.where), file=name) for one in shortened(found)]
    count = f"{len(found)} problems" if len(found) != 1 else "1 problem"
    return ToolsetError(f"{name} is not a valid toolset: {count}", shown)
