"""The dispatcher's benchmark: a small run, with every figure it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks/dispatch.py"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARK), *args], capture_output=True, encoding="utf-8", check=False, timeout=60
    )


def test_a_small_run_measures_each_kind_with_both_faces_and_the_bar() -> None:
    done = run("--pairs", "20", "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode in (0, 1), done.stderr
    assert [name.rpartition(", ")[2] for name in found["calls"]] == ["async", "plain"] * 2
    assert all(one["bare"] > 0 and one["toolgen"] > 0 for one in found["calls"].values())
    assert len(found["bars"]) == 1


def test_wrong_numbers_are_wrong_usage() -> None:
    assert run("--pairs", "0").returncode == 2
