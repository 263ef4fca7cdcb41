"""The README's examples run, and print what it shows."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from shown import ROOT, SHOWN_SERVER, assert_shown, blocks, examples, petstore, printed_by, run, section

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = blocks(README)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("petstore/petstore.yaml", "petstore/approvals.yaml", "mcp/notes_server.py"):
        shutil.copy(ROOT / "samples" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SHOP_TOKEN", "s3cret-token")
    return tmp_path


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of the sample API, in the place of the one that is shown."""
    with petstore() as running:
        yield running.url.removesuffix("/v1")


@pytest.mark.parametrize(("code", "output"), examples(README, "bash"))
def test_a_command_prints_what_is_shown(folder: Path, server: str, code: str, output: str | None) -> None:
    run(sys.executable, "-m", "toolgen", "generate", "petstore.yaml", folder=folder)
    for line in code.replace(SHOWN_SERVER, server).splitlines():
        name, *args = shlex.split(line.removesuffix("2>/dev/null"))
        assert name == "toolgen"
        printed = run(sys.executable, "-m", "toolgen", *args, folder=folder)
    if output is not None:
        assert_shown(output, printed)


@pytest.mark.parametrize(("code", "output"), examples(README, "python"))
def test_python_prints_what_is_shown(folder: Path, server: str, code: str, output: str | None) -> None:
    printed = printed_by(code.replace(SHOWN_SERVER, server))
    if output is not None:
        assert_shown(output, printed)


def test_the_loop_that_is_shown_is_the_sample() -> None:
    second = [code for kind, code in BLOCKS if kind == "python"][1]
    sample = (ROOT / "samples/petstore/loop.py").read_text(encoding="utf-8")
    shown, start, _ = second.partition("asyncio.run(")
    assert start
    assert sample.partition("import asyncio")[2].partition("if __name__")[0] == shown.partition("import asyncio")[2]


def test_every_front_door_takes_less_than_fifteen_lines() -> None:
    doors = section(README, "## Behind every front door")
    lines = [sum(1 for line in code.splitlines() if line) for kind, code in blocks(doors) if kind != "text"]
    assert len(lines) == len(re.findall("^### ", doors, re.MULTILINE))
    assert max(lines) < 15


def test_the_tool_that_is_shown_is_in_the_file(folder: Path) -> None:
    shown = next(code for kind, code in BLOCKS if kind == "yaml" and code.startswith("- name:"))
    text = run(sys.executable, "-m", "toolgen", "generate", "petstore.yaml", "-o", "-", folder=folder)
    start = text.index(shown.splitlines()[0])
    assert_shown(shown + "...\n", text[start:])


def test_the_toolgen_yaml_that_is_shown_is_valid_and_has_every_key(folder: Path) -> None:
    from toolgen.cli.config import _KEYS, read_config

    shown = next(code for kind, code in BLOCKS if kind == "yaml" and code.startswith("apis:"))
    (folder / "toolgen.yaml").write_text(shown, encoding="utf-8")
    assert [job.api for job in read_config(folder / "toolgen.yaml").jobs] == ["petstore", "billing"]
    assert {key for api in yaml.safe_load(shown)["apis"].values() for key in api} == set(_KEYS)


def test_every_target_is_in_the_table() -> None:
    from toolgen.tools.export import TARGETS

    table = README.partition("## Exports")[2].partition("## ")[0]
    assert {target for target in TARGETS if f"`{target}`" in table} == set(TARGETS)


def test_the_limits_are_those_of_the_code() -> None:
    from toolgen.openapi.source import Limits

    limits = Limits()
    text = " ".join(README.split())
    assert f"{limits.bytes // 2**20} MiB per document, {limits.nesting} levels, {limits.nodes // 10**6} million" in text
    assert f"{limits.seconds:g} seconds per fetch, {limits.documents} documents that references lead to" in text
    assert f"{limits.redirects} redirects" in text


def test_every_file_it_names_is_there() -> None:
    named = re.findall(r"`([\w/.-]+\.(?:md|json))`", README)
    assert [name for name in named if not (ROOT / name).exists() and not name.startswith("API.")] == []


def test_every_option_it_names_exists() -> None:
    known = ""
    for command in ("generate", "show", "check", "explain", "call", "serve"):
        known += run(sys.executable, "-m", "toolgen", command, "--help", folder=ROOT)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert {option for option in named if option not in known} == set()


def test_the_approval_config_that_is_shown_is_the_sample_without_its_rules() -> None:
    shown = next(code for kind, code in BLOCKS if kind == "yaml" and code.startswith("requireApproval:"))
    sample = yaml.safe_load((ROOT / "samples/petstore/approvals.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(shown) == {key: value for key, value in sample.items() if key != "rules"}
