"""What the tests of the documentation share: a page's blocks and tables, and how its examples are run."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHOWN_SERVER = "http://127.0.0.1:8765"  # of the sample API, as pages have it
Block = tuple[str, str]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GAP = re.compile(r"^ *\.\.\.$")


def blocks(page: str) -> list[Block]:
    """(kind, content) of every fenced block, in order."""
    return _BLOCK.findall(page)


def examples(page: str, kind: str) -> list[pytest.param]:
    """Each block of that kind with the output that follows it, or None."""
    found = blocks(page)
    followed = zip(found, [*found[1:], ("", "")], strict=True)
    pairs = [(code, output if after == "text" else None) for (k, code), (after, output) in followed if k == kind]
    return [pytest.param(*pair, id=pair[0].splitlines()[0][:50]) for pair in pairs]


def section(page: str, heading: str) -> str:
    """What stands below a `## ` or `### ` heading, up to the next one of that level or above."""
    level, _, _ = heading.partition(" ")
    start = page.index(f"\n{heading}\n") + len(heading) + 2
    after = re.compile(rf"^#{{2,{len(level)}}} ", re.MULTILINE).search(page, start)
    return page[start : after.start() if after else None]


def tables(text: str) -> list[list[list[str]]]:
    """The rows of each table, without its head; a cell that is one code span is what stands in it."""
    found: list[list[list[str]]] = []
    for lines in re.findall(r"^(?:\|.*\|\n)+", text, re.MULTILINE):
        rows = [[_plain(cell) for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in lines.splitlines()]
        found.append(rows[2:])
    return found


def _plain(cell: str) -> str:
    text = cell.strip().replace("\\|", "|")
    span = re.fullmatch(r"`([^`]*)`", text)
    return span[1] if span else text


def assert_shown(shown: str, real: str) -> None:
    """What is shown is there letter by letter; a line `...` stands for any lines."""
    pieces: list[list[str]] = [[]]
    for line in shown.rstrip("\n").splitlines():
        if _GAP.match(line):
            pieces.append([])
        else:
            pieces[-1].append(line)
    pattern = r"(?:.*\n)*?".join("".join(re.escape(line) + r"\n" for line in piece) for piece in pieces)
    whole = real.rstrip("\n") + "\n"
    assert re.fullmatch(pattern, whole) is not None, f"the page shows\n{shown}\nand the output is\n{real}"


def printed_by(code: str) -> str:
    """What Python code prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), {})
    return printed.getvalue()


def run(*command: str, folder: Path, stdin: str = "") -> str:
    """What a command prints; it has to succeed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", input=stdin, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def petstore() -> AbstractContextManager[Any]:
    """The sample API, running on a free port: `url` is its server, `requests` what it got, `pets` what it has."""
    spec = importlib.util.spec_from_file_location("petstore_server", ROOT / "samples/petstore/server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    running: AbstractContextManager[Any] = module.running()
    return running
