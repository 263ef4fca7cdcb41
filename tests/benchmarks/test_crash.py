"""The crash benchmark: a few kills, and it sees what it is there to see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def run(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / name), *args], capture_output=True, encoding="utf-8", check=False, timeout=60
    )


def test_after_kills_nothing_ran_twice_and_nothing_was_lost() -> None:
    done = run("crash.py", "--kills", "8", "--format", "json")
    (found,) = json.loads(done.stdout)["stores"]
    assert done.returncode == 0, found["violations"]
    assert (found["violations"], found["sent twice"]) == ([], 0)
    assert found["kills"] >= 8
    assert {"claimed: before", "claimed: committed", "sent", "end: before", "at random"} <= set(found["points"])
    executed, _, whole = found["unkilled executed"].partition(" of ")
    assert executed == whole != "0"
    assert set(found["states"]) <= {"executed", "failed", "rejected", "outcome_unknown"}


# What each of these takes away is what the guarantee rests on.
SABOTAGE = {
    "a claim that ran out is claimed again": (
        "import toolgen.approvals.journal as j\n"
        "real = j.claim\n"
        "def claim(connection, key, made, seal):\n"
        "    gone = j.journal.delete().where(*j._is(key), j.journal.c.result.is_(None))\n"
        "    connection.execute(gone)\n"
        "    return real(connection, key, made, seal)\n"
        "j.claim = claim\n",
        "sent twice",
    ),
    "what was decided is forgotten": (
        "from dataclasses import replace\n"
        "import toolgen.approvals.store as s\n"
        "from toolgen.approvals.states import CallState as C\n"
        "real = s.Store.pause\n"
        "def pause(self, pause_id, tenant):\n"
        "    found = real(self, pause_id, tenant)\n"
        "    calls = [replace(c, state=C.pending) if c.state is C.approved else c for c in found.calls]\n"
        "    dead = getattr(getattr(self, 'mark', None), 'plan', None)\n"
        "    return replace(found, calls=tuple(calls)) if dead is not None and dead.dead else found\n"
        "s.Store.pause = pause\n",
        "a decision was lost",
    ),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_it_sees_what_is_broken_on_purpose(name: str, tmp_path: Path) -> None:
    broken, seen = SABOTAGE[name]
    script = tmp_path / "broken.py"
    start = f"import sys\nsys.path[:0] = [{str(BENCHMARKS.parent)!r}, {str(BENCHMARKS)!r}]\n"
    script.write_text(start + broken + "import crash\nsys.exit(crash.main(sys.argv[1:]))\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), "--kills", "8", "--format", "json"],
        capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    (found,) = json.loads(done.stdout)["stores"]
    assert done.returncode == 1
    assert any(fault.startswith(seen) for fault in found["violations"]), found["violations"]


def test_a_small_store_is_measured_with_every_figure() -> None:
    done = run("approvals.py", "--pauses", "400", "--repeat", "2", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    (found,) = json.loads(done.stdout)
    assert [step["pauses"] for step in found["steps"]] == [50, 400]
    figures = found["steps"][-1]["milliseconds"]
    assert {bar["bar"] for bar in found["bars"]} < set(figures)
    assert all(value > 0 for value in figures.values())


def test_wrong_numbers_are_wrong_usage() -> None:
    assert run("crash.py", "--kills", "0").returncode == 2
    assert run("approvals.py", "--pauses", "10").returncode == 2
