"""The README's examples run, and print what it shows."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
GAP = re.compile(r"^ *\.\.\.$")


def examples(kind: str) -> list[pytest.param]:
    """Each block of that kind with the output that follows it, or None."""
    followed = zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True)
    found = [(code, output if after == "text" else None) for (k, code), (after, output) in followed if k == kind]
    return [pytest.param(*pair, id=pair[0].splitlines()[0][:50]) for pair in found]


def assert_shown(shown: str, real: str) -> None:
    """What is shown is there letter by letter; a line `...` stands for any lines."""
    pieces: list[list[str]] = [[]]
    for line in shown.rstrip("\n").splitlines():
        if GAP.match(line):
            pieces.append([])
        else:
            pieces[-1].append(line)
    pattern = r"(?:.*\n)*?".join("".join(re.escape(line) + r"\n" for line in piece) for piece in pieces)
    whole = real.rstrip("\n") + "\n"
    assert re.fullmatch(pattern, whole) is not None, f"the README shows\n{shown}\nand the output is\n{real}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(ROOT / "samples/petstore/petstore.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def run(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("code", "output"), examples("bash"))
def test_a_command_prints_what_is_shown(folder: Path, code: str, output: str | None) -> None:
    run(sys.executable, "-m", "toolgen", "generate", "petstore.yaml", folder=folder)
    for line in code.splitlines():
        name, *args = shlex.split(line.removesuffix("2>/dev/null"))
        assert name == "toolgen"
        printed = run(sys.executable, "-m", "toolgen", *args, folder=folder)
    if output is not None:
        assert_shown(output, printed)


@pytest.mark.parametrize(("code", "output"), examples("python"))
def test_python_prints_what_is_shown(folder: Path, code: str, output: str | None) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    if output is not None:
        assert_shown(output, printed.getvalue())


def test_the_tool_that_is_shown_is_in_the_file(folder: Path) -> None:
    shown = next(code for kind, code in BLOCKS if kind == "yaml" and code.startswith("- name:"))
    text = run(sys.executable, "-m", "toolgen", "generate", "petstore.yaml", "-o", "-", folder=folder)
    start = text.index(shown.splitlines()[0])
    assert_shown(shown + "...\n", text[start:])


def test_the_toolgen_yaml_that_is_shown_is_valid_and_has_every_key(folder: Path) -> None:
    from toolgen.cli.config import _KEYS, read_config

    shown = next(code for kind, code in BLOCKS if kind == "yaml" and code.startswith("apis:"))
    (folder / "toolgen.yaml").write_text(shown, encoding="utf-8")
    assert [job.api for job in read_config(folder / "toolgen.yaml")] == ["petstore", "billing"]
    assert {key for api in yaml.safe_load(shown)["apis"].values() for key in api} == set(_KEYS)


def test_every_target_is_in_the_table() -> None:
    from toolgen.tools.export import TARGETS

    table = README.partition("## Exports")[2].partition("## ")[0]
    assert {target for target in TARGETS if f"`{target}`" in table} == set(TARGETS)


def test_the_limits_are_those_of_the_code() -> None:
    from toolgen.openapi.source import Limits

    limits = Limits()
    text = " ".join(README.split())
    assert f"{limits.bytes // 2**20} MB per document, {limits.nesting} levels, {limits.nodes // 10**6} million" in text
    assert f"{limits.seconds:g} seconds per fetch, {limits.redirects} redirects" in text


def test_every_file_it_names_is_there() -> None:
    named = re.findall(r"`([\w/.-]+\.(?:md|json))`", README)
    assert [name for name in named if not (ROOT / name).exists() and not name.startswith("API.")] == []


def test_every_option_it_names_exists() -> None:
    known = ""
    for command in ("generate", "show"):
        known += run(sys.executable, "-m", "toolgen", command, "--help", folder=ROOT)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert {option for option in named if option not in known} == set()
