"""A folder with the sample document, and the real command line in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from toolgen.cli.app import app

SAMPLE = Path(__file__).resolve().parents[2] / "samples/petstore/petstore.yaml"


@pytest.fixture(scope="session", autouse=True)
def built_once() -> Iterator[None]:
    """The runner makes typer's commands anew for every call, at more cost than most calls have; they keep nothing."""
    made = typer.main.get_command(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda _: made)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of a test: it holds petstore.yaml and nothing else."""
    shutil.copy(SAMPLE, tmp_path / "petstore.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def toolgen(folder: Path) -> Callable[..., Any]:
    """Runs `toolgen ARGS` in this process; the result has exit_code, stdout and stderr."""

    def run(*args: str, stdin: str | None = None, env: dict[str, str] | None = None) -> Any:
        result = CliRunner().invoke(app, list(args), input=stdin, env=env, prog_name="toolgen")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def process(folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `python -m toolgen ARGS` as a process."""

    def run(*args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "toolgen", *args],
            cwd=folder,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env={**os.environ, **env},
        )

    return run


@pytest.fixture
def files(folder: Path) -> Callable[[], list[str]]:
    """The names of all files below the current folder, hidden ones too."""
    return lambda: sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
