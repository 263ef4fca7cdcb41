"""The gate's benchmark: a small run, with every figure it promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks/gate.py"


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARK), *args], capture_output=True, encoding="utf-8", check=False, timeout=60
    )


def test_a_small_run_measures_every_kind_the_growth_and_the_bars() -> None:
    done = run("--patterns", "80", "--tools", "40", "--repeat", "1", "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode in (0, 1), done.stderr
    assert all(one["patterns"] > 20 and one["prepare"] > 0 for one in found["kinds"].values())
    assert [one["patterns"] for one in found["more patterns"]] == sorted(
        one["patterns"] for one in found["more patterns"]
    )
    assert [one["tools"] for one in found["more tools"]] == [5, 10, 20, 40]
    assert len(found["bars"]) == 2


def test_the_text_ends_with_the_bars_and_wrong_numbers_are_wrong_usage() -> None:
    done = run("--patterns", "8", "--tools", "5", "--repeat", "1")
    assert {line.split()[-1] for line in done.stdout.splitlines()[-2:]} <= {"ok", "MISSED"}
    assert run("--tools", "0").returncode == 2
