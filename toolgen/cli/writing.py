"""Files are written all or none, and not over what somebody else wrote."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolgen.errors import Problem, SourceError, ToolgenError
from toolgen.tools.export import Export
from toolgen.tools.files import guard_edits, render, to_dict, would_change
from toolgen.tools.model import Toolset

_CATALOGUE = re.compile(r"# [^\n]*\n\n\d+ tools? of `")  # how the markdown target begins


@dataclass(frozen=True, slots=True)
class Output:
    """What one job made, and where it goes; `path` None is stdout. With `export` that is written."""

    path: Path | None
    toolset: Toolset
    export: Export | None = None

    def content(self) -> bytes:
        """The bytes for stdout, or of an export's file."""
        if self.export is None:
            return render(self.toolset, json=False)
        if isinstance(self.export.data, str):
            return self.export.data.encode()
        from toolgen.tools.files.layout import render_json

        return render_json(self.export.data)

    def save(self, path: Path) -> None:
        """Write it under that name."""
        if self.export is None:
            self.toolset.save(path)
        else:
            path.write_bytes(self.content())


def check_target(output: Output, force: bool) -> None:
    """Raise what speaks against writing: edits made by hand, a folder that is not there, ..."""
    path = output.path
    if path is None:
        return
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ToolgenError(f"{path} cannot be written: there is no folder {folder}")
    if path.exists() and not path.is_file():
        raise ToolgenError(f"{path} is {'a directory' if path.is_dir() else 'not a regular file'}; name a file")
    if not os.access(path if path.exists() else folder, os.W_OK) or not os.access(folder, os.W_OK):
        raise ToolgenError(f"{path} cannot be written: permission denied")
    if force:
        return
    if output.export is None:
        guard_edits(path, output.toolset)
    elif path.exists() and path.stat().st_size and not _is_export(path):
        raise ToolgenError(f"{path} is no export that toolgen wrote (write to another name; --force overwrites it)")


def _is_export(path: Path) -> bool:
    """Whether the file looks like tools for some target: a list of objects in JSON, or a catalogue."""
    content = path.read_bytes()
    if _CATALOGUE.match(content[:5_000].decode(errors="replace")):
        return True
    data = _json(content)
    return isinstance(data, list) and all(isinstance(item, dict) for item in data)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def write_all(outputs: Iterable[Output]) -> None:
    """Write all files beside their targets first, then put them in place."""
    staged: list[tuple[Path, Path]] = []
    try:
        for output in outputs:
            if output.path is not None:
                target = Path(os.path.realpath(output.path))
                stage = target.with_name(f".toolgen-{secrets.token_hex(8)}{target.suffix}")
                staged.append((stage, target))
                _stage(output, stage, target)
        for stage, target in staged:
            os.replace(stage, target)
    finally:
        for stage, _ in staged:
            with suppress(OSError):
                stage.unlink()


def _stage(output: Output, stage: Path, target: Path) -> None:
    try:
        output.save(stage)
        if target.exists():
            shutil.copymode(target, stage)
    except ToolgenError as error:
        raise type(error)(error.message.replace(str(stage), str(output.path)), error.problems) from None
    except OSError as error:
        raise ToolgenError(f"{output.path} cannot be written: {error.strerror or error}") from None


def changes(output: Output) -> list[Problem]:
    """What would change in the file, shortly; nothing if it would stay as it is."""
    path = output.path
    if path is None:
        return []
    if not path.exists():
        return [Problem("the file is not there")]
    if output.export is not None:
        found = _changed_export(output, path)
    else:
        found = _changed_toolset(output.toolset, path) if would_change(path, output.toolset) else []
    return [Problem("added", p.where) if p.message.startswith("added: {") else p for p in found]


def _changed_export(output: Output, path: Path) -> list[Problem]:
    from toolgen.tools.files.edits import differences

    content, new = path.read_bytes(), output.content()
    if content == new:
        return []
    old, data = _json(content), output.export.data if output.export else None
    if not isinstance(old, list) or not isinstance(data, list):
        return [Problem("the content differs")]
    return differences({"tools": old}, {"tools": data}) or [Problem("the content differs in its form only")]


def _changed_toolset(toolset: Toolset, path: Path) -> list[Problem]:
    from toolgen.openapi.source import Limits, Loader
    from toolgen.tools.files.edits import differences
    from toolgen.tools.files.form import digest

    try:
        limits = Limits(bytes=512 * 1024 * 1024, nesting=400, nodes=100_000_000)
        old = Loader(limits=limits).load(path).tree
    except SourceError as error:
        return [Problem(error.message)]
    if not isinstance(old, dict) or "tools" not in old:
        return [Problem("the file is no toolset")]
    found = differences(old, to_dict(toolset))
    with suppress(ToolgenError):
        if old.get("generated") != digest(old):
            found.insert(0, Problem("the file was edited by hand; writing it needs --force"))
    return found or [Problem("the document's digest, or the form of the file, and no tool")]
