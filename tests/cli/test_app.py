from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import toolgen as package
from toolgen.cli.generate import TARGETS

COMMANDS = ("generate", "show", "check", "explain", "call", "serve", "approvals", "audit")
GROUPS = {
    "approvals": "list show approve reject amend extend cancel remembered revoke purge sweep".split(),
    "audit": "verify export tail head".split(),
}
EVERY = (*COMMANDS, *(f"{group} {command}" for group, commands in GROUPS.items() for command in commands))


@pytest.mark.parametrize("args", [["--help"], ["--version"], *([*command.split(), "--help"] for command in EVERY)])
def test_help_and_version_load_nothing_heavy(folder, args):
    code = (
        "import json, sys\n"
        "from toolgen.cli.app import app\n"
        f"try: app({args!r}, prog_name='toolgen')\n"
        "except SystemExit as done: code = done.code\n"
        "print(json.dumps([code, sorted({name.partition('.')[0] for name in sys.modules})]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, loaded = json.loads(run.stdout.splitlines()[-1])
    heavy = {"yaml", "jinja2", "rich", "httpx2", "jsonschema_rs", "sqlalchemy", "asyncio", "prance"}
    assert code == 0
    if args[0] not in COMMANDS:  # a command's own options are typer's to check, with pydantic
        heavy.add("pydantic")
    assert heavy & set(loaded) == set()


def test_version(toolgen):
    result = toolgen("--version")
    assert (result.exit_code, result.stdout) == (0, f"toolgen {package.__version__}\n")


def test_without_a_command_the_help_is_shown(toolgen):
    assert "Usage: toolgen" in toolgen().output


@pytest.mark.parametrize("command", ["", *EVERY])
def test_help_starts_with_an_example_and_names_the_exit_codes(toolgen, command):
    text = toolgen(*command.split(), "--help", env={"COLUMNS": "80"}).stdout
    assert text.splitlines()[2].strip().startswith(f"Example: toolgen {command}".strip())
    assert "Exit codes: 0" in text
    assert max(map(len, (line for line in text.splitlines() if "openai-responses" not in line))) <= 80


@pytest.mark.parametrize("command", EVERY)
def test_help_says_every_default(toolgen, command):
    text = toolgen(*command.split(), "--help").stdout.partition("Options:")[2].partition("Commands:")[0]
    text = " ".join(text.split())
    options = re.split(r"(?=(?<!\S)--?[a-z][a-z-]*[ ,])", text)
    silent = [o for o in options if re.search(r"[A-Z]{2,}|\|", o) and "efault" not in o]
    assert [o for o in silent if not o.startswith(("--target", "--spec-header", "-o"))] == []


def test_there_are_only_the_commands_that_work(toolgen):
    listed = toolgen("--help").stdout.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == list(COMMANDS)
    for group, commands in GROUPS.items():
        listed = toolgen(group, "--help").stdout.partition("Commands:\n")[2]
        assert [line.split()[0] for line in listed.splitlines() if line.strip()] == commands


def test_the_targets_in_the_help_are_the_targets_there_are():
    from toolgen.tools.export import TARGETS as known

    assert tuple(TARGETS.split("|")) == known


def test_there_are_no_completion_options(toolgen):
    assert "completion" not in toolgen("--help").stdout


def test_an_unknown_command_is_wrong_usage_with_the_nearest_one(toolgen):
    result = toolgen("generat")
    assert result.exit_code == 2
    assert "Did you mean 'generate'?" in result.stderr


def test_an_unknown_option_is_wrong_usage(toolgen, files):
    assert toolgen("generate", "petstore.yaml", "--outptu", "x").exit_code == 2
    assert files() == ["petstore.yaml"]


# as a process


def test_python_m_toolgen_is_the_same_command(process, files):
    done = process("generate", "petstore.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "written     petstore.tools.yaml" in done.stdout
    assert files() == ["petstore.tools.yaml", "petstore.yaml"]


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["generate", "nothing.yaml"], 1, "there is no file nothing.yaml"),
        (["generate"], 2, "there is no toolgen.yaml here"),
        (["generate", "petstore.yaml", "--api", "http"], 2, "no name for an API"),
        (["show", "petstore.yaml"], 1, "petstore.yaml"),
        (["show"], 2, "Missing argument 'TOOLSET'"),
    ],
)
def test_a_users_mistake_is_one_clean_message_with_its_exit_code(process, files, args, code, says):
    done = process(*args)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert files() == ["petstore.yaml"]


def test_a_reader_that_leaves_early_is_no_complaint(process, folder):
    process("generate", "petstore.yaml")
    command = [sys.executable, "-m", "toolgen", "show", "petstore.tools.yaml", "--target", "json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
def test_an_interrupt_ends_with_130_and_leaves_no_file(folder, files):
    running = subprocess.Popen(
        [sys.executable, "-m", "toolgen", "generate", "-"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        running.stdin.write("# " + "x" * 1_000_000)  # more than a pipe holds: it is reading by the end
        running.stdin.flush()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out, err) == (130, "", "interrupted\n")
    assert files() == ["petstore.yaml"]


def test_text_a_terminal_cannot_show_is_no_crash(process, folder):
    (folder / "petstore.yaml").write_text(
        "openapi: 3.1.0\ninfo: {title: Tiergeschäft, version: '1'}\npaths: {/ü: {get: {responses: {}}}}\n",
        encoding="utf-8",
    )
    done = process("generate", "petstore.yaml", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert r"Tiergesch\xe4ft" in done.stdout
