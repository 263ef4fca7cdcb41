"""The sample loop runs as it stands, by itself, and is what the README shows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from shown import ROOT

LOOP = ROOT / "samples/petstore/loop.py"


def test_the_loop_asks_a_person_runs_what_was_approved_and_gives_the_results(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(LOOP)], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Deletes a pet for good (deletePet). [2: delete:/pets/{petId}]",
        '1: etag: "1"',
        '{"id": "7", "name": "Rex", "species": "dog", "status": "available", "price": 120.5}',
        "2: HTTP 204",
        "Note of the reviewer: He was sold.",
        "GET /v1/pets/7",
        "DELETE /v1/pets/7",
    ]
    assert list(tmp_path.iterdir()) == []  # nothing is kept where nobody said where


def test_a_loop_takes_less_than_ten_lines() -> None:
    (loop,) = (
        node
        for node in ast.parse(LOOP.read_text()).body
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "loop"
    )
    assert loop.end_lineno is not None
    assert loop.end_lineno - loop.lineno + 1 < 10
