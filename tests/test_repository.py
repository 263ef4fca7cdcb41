"""What holds for the repository as a whole: names, versions, import time, nothing of one machine."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgen

ROOT = Path(__file__).resolve().parent.parent
ADAPTERS = sorted((ROOT / "toolgen/adapters").glob("*.py"))
HEAVY = ("pydantic", "jinja2", "yaml", "httpx2", "typer", "rich", "jsonschema_rs", "sqlalchemy", "prance", "asyncio")


def in_fresh_python(code: str) -> Any:
    """What `code` prints as JSON when a new interpreter runs it."""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def repository_files() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    command = [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# the public names


def test_importing_toolgen_loads_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import toolgen, json; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = in_fresh_python(code)
    assert [name for name in loaded if name.partition(".")[0] in HEAVY] == []


def test_dir_lists_exactly_the_public_names() -> None:
    listed, public = in_fresh_python("import json, toolgen; print(json.dumps([dir(toolgen), list(toolgen.__all__)]))")
    assert {name for name in listed if not name.startswith("_")} == {n for n in public if not n.startswith("_")}
    assert len(public) == len(set(public))


@pytest.mark.parametrize("name", sorted(toolgen.__all__))
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(toolgen, name) is not None


def test_no_module_is_spelled_like_a_public_name() -> None:
    beside = {path.stem for path in Path(toolgen.__file__).parent.iterdir()}
    assert beside.isdisjoint(toolgen.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        toolgen.no_such_name  # noqa: B018


# versions


def test_the_versions_agree() -> None:
    assert toolgen.__version__ == project()["version"]
    assert importlib.metadata.version("toolgen") == project()["version"]


def test_the_changelog_knows_the_version_or_what_is_unreleased() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog or f"## [{project()['version']}]" in changelog


def test_the_pinned_set_is_exact_and_covers_what_is_declared() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+( ; .+)?", pin)] == []
    pinned = {canonical(pin) for pin in pins}
    extras = project()["optional-dependencies"]
    assert {canonical(name) for name in project()["dependencies"] + extras["inline"]} <= pinned


def canonical(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_package_that_a_front_door_imports_is_declared() -> None:
    extras = project()["optional-dependencies"]
    declared = {
        canonical(one) for one in [*project()["dependencies"], *(one for each in extras.values() for one in each)]
    }
    imported: set[str] = set()
    for path in [*ADAPTERS, ROOT / "toolgen/cli/listening.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.partition(".")[0] for name in names}
    of_import = importlib.metadata.packages_distributions()
    others = imported - set(sys.stdlib_module_names) - {"toolgen"}
    missing = {one for one in others if declared.isdisjoint(map(canonical, of_import[one]))}
    assert missing == {"langgraph"}  # imported where a graph of it is running


# nothing of one machine

# In pieces, so that this file does not hold what it looks for.
OF_ONE_MACHINE = re.compile(
    "|".join(
        [
            r"(?<![\w.}/-])/" + r"(?:work|root)/",
            r"(?<![\w.}/-])/" + r"(?:home|Users)/[a-z][a-z0-9_-]*/",
            r"\.\./" + "shared",
            "pypi" + r"\.org",
            "pythonhosted" + r"\.org",
            "npmjs" + r"\.(?:org|com)",
        ]
    )
)


def test_no_file_names_a_place_of_one_machine() -> None:
    found = []
    for path in repository_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if hit := OF_ONE_MACHINE.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {hit[0]}")
    assert found == []


# who may call without a gate


def test_only_the_runtime_sends_and_only_it_and_the_command_line_have_a_dispatcher() -> None:
    importing, sending = set(), set()
    others = {
        "pause",
        "now",
        "changed",
        "session",
    }  # `pause.call(id)` is one of its calls, `session.call` a command's run
    for path in sorted((ROOT / "toolgen").rglob("*.py")):
        name = path.relative_to(ROOT / "toolgen").as_posix()
        if name.startswith("dispatch/"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("toolgen.dispatch.http"):
                importing.add(name.partition("/")[0])
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in ("call", "acall", "send"):
                sending |= set() if ast.unparse(called.value) in others else {(name, ast.unparse(called))}
    assert importing == {"__init__.py", "cli", "runtime"}
    assert sending == {
        ("runtime/sources.py", "self.dispatcher.send"),
        ("runtime/sources.py", "self.source.call"),
        ("runtime/sending.py", "work.send"),
        ("runtime/passing.py", "self.dispatcher.send"),  # a program's own request, once it may run
        ("runtime/notices.py", "self._sender.send"),  # a webhook: no tool's call
    }


# front doors: their only way out is the runtime

OUTSIDE = frozenset(
    "aiohttp anthropic anyio asyncpg concurrent ftplib http httpcore httpcore2 httpx httpx2 importlib io langchain "
    "multiprocessing openai pathlib psycopg requests runpy select shutil smtplib socket socketserver sqlalchemy sqlite3 "
    "ssl subprocess tempfile urllib urllib3 uvicorn websockets".split()
)
DOING = frozenset(
    "__import__ acall classify create_connection create_server create_subprocess_exec create_subprocess_shell "
    "eval exec fork open open_connection popen read_bytes read_text send sendall sendto spawn start_server system "
    "urlopen write_bytes write_text".split()
)
SHARED = frozenset(
    {"policy.address", "policy.outcomes", "approvals.model"}
)  # names, calls and pauses: data, no decisions
MORE = {  # what stands between an MCP server and its client, and the keys that tokens of clients are checked with
    "mcp_client": {"dispatch.mcp_http", "dispatch.settings", "dispatch.telemetry"},
    "mcp_http": {"dispatch.jwks", "importlib"},
    "mcp_sessions": {"dispatch.mcp_http", "dispatch.quiet", "mcp.Client"},
    "mcp_upstream": {"dispatch.addresses", "dispatch.mcp_http", "dispatch.settings", "mcp.client"},
    "transport": {".dispatcher"},  # handed back to the runtime with what it is to send
}


def ways_out(code: str) -> set[str]:
    """What a front door imports or calls that decides, or could reach anything beside the runtime."""
    tree = ast.parse(code)
    typing = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    skipped = {id(inner) for node in typing for part in node.body for inner in ast.walk(part)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {out for one in node.names if (out := _beyond(one.name))}
        elif isinstance(node, ast.ImportFrom):
            found |= {out for one in node.names if (out := _beyond(f"{node.module}.{one.name}"))}
        elif isinstance(node, ast.Attribute) and node.attr == "dispatcher":
            found.add(".dispatcher")
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found |= {f"{name}()"} & {f"{one}()" for one in DOING}
    return found


def _beyond(name: str) -> str | None:
    first, _, rest = name.partition(".")
    part = ".".join(rest.split(".")[:2])
    if first == "toolgen":
        if rest[:1].isupper():  # `from toolgen import Dispatcher`
            return rest
        decides = rest.split(".")[0] in ("approvals", "builtin", "cli", "dispatch", "policy")
        return part if decides and part not in SHARED else None
    if first == "mcp" and rest.startswith(("client", "Client")):
        return f"mcp.{rest.split('.')[0]}"
    return first if first in OUTSIDE else None


@pytest.mark.parametrize("path", ADAPTERS, ids=lambda path: path.stem)
def test_a_front_door_decides_nothing_and_reaches_nothing_but_through_the_runtime(path: Path) -> None:
    assert ways_out(path.read_text(encoding="utf-8")) == MORE.get(path.stem, set())


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from toolgen import Dispatcher", "Dispatcher"),
        ("from toolgen.dispatch.http import Dispatcher", "dispatch.http"),
        ("import toolgen.dispatch.sending", "dispatch.sending"),
        ("def late():\n    from toolgen.policy.gate import Gate", "policy.gate"),
        ("from toolgen.policy import gate", "policy.gate"),
        ("from toolgen.approvals.decide import decide", "approvals.decide"),
        ("import httpx2", "httpx2"),
        ("import http.client", "http"),
        ("from mcp.client.stdio import stdio_client", "mcp.client"),
        ("runtime.gate.classify(calls)", "classify()"),
        ("open('file')", "open()"),
        ("runtime.known[0].dispatcher", ".dispatcher"),
        ("import asyncio\nasyncio.open_connection('a', 1)", "open_connection()"),
    ],
)
def test_a_way_out_of_a_front_door_is_found(code: str, found: str) -> None:
    assert ways_out(code) == {found}


# extras: a package that is not installed


@pytest.mark.parametrize(
    ("needs", "extra", "use"),
    [
        ("langchain_core", "langchain", "import toolgen.adapters.langchain"),
        (
            "mcp",
            "mcp",
            "from toolgen.adapters.mcp_client import McpSource; McpSource('files', 'https://mcp.example/mcp')",
        ),
        ("mcp", "mcp", "import toolgen.adapters.mcp_server"),
        ("mcp", "mcp", "import toolgen.adapters.mcp_http"),
        ("starlette", "mcp", "import toolgen.adapters.mcp_http"),
        ("jwt", "mcp", "import toolgen.adapters.mcp_http"),
    ],
    ids=lambda text: text.rpartition(".")[2][:20],
)
def test_a_front_door_without_its_package_names_the_extra(needs: str, extra: str, use: str) -> None:
    code = f"""
import json, sys
sys.modules[{needs!r}] = None
from toolgen.errors import MissingExtra
try:
    {use}
    said = "it works without"
except MissingExtra as error:
    said = error.message
print(json.dumps(said))
"""
    assert f"pip install 'toolgen[{extra}]'" in in_fresh_python(code)


def test_front_doors_that_need_no_package_work_without_any() -> None:
    blocked = [
        "anthropic",
        "httpx",
        "langchain_core",
        "langgraph",
        "mcp",
        "mcp_types",
        "openai",
        "starlette",
        "uvicorn",
    ]
    code = f"""
import json, sys
sys.modules |= dict.fromkeys({blocked!r})
import toolgen.adapters.anthropic, toolgen.adapters.openai, toolgen.adapters.transport
import toolgen.cli.app, toolgen.cli.serve
print(json.dumps("fine"))
"""
    assert in_fresh_python(code) == "fine"


# the Makefile and the sample


def test_make_help_documents_every_target() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    help_text = subprocess.run([make, "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.findall(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    targets = {target for line in phony for target in line.split()} - {"FORCE"}
    undocumented = [target for target in targets if not re.search(rf"^  make {target}\s+\S", help_text, re.MULTILINE)]
    assert targets >= {"venv", "demo", "test", "test-all", "lock", "clean"}
    assert undocumented == []


def test_the_sample_has_what_the_documentation_shows() -> None:
    document = yaml.safe_load((ROOT / "samples/petstore/petstore.yaml").read_text(encoding="utf-8"))
    operations = {
        operation["operationId"]: operation
        for item in document["paths"].values()
        for method, operation in item.items()
        if method in {"get", "put", "post", "delete", "patch"}
    }
    assert len(operations) == 10
    assert {name for name, operation in operations.items() if operation.get("deprecated")} == {"getStock"}
    assert all(operation["description"] and operation["tags"] for operation in operations.values())
    assert {"/pets/{petId}", "/pets/mine"} <= document["paths"].keys()


# the tests' own guard


@pytest.mark.parametrize("method", ["connect", "connect_ex"])
def test_a_connection_beyond_this_machine_fails_the_test(method: str, outside_attempts: list[str]) -> None:
    with socket.socket() as outside, pytest.raises(pytest.fail.Exception, match=r"leave this machine"):
        getattr(outside, method)(("192.0.2.1", 9))
    assert outside_attempts == ["('192.0.2.1', 9)"]
    outside_attempts.clear()


def test_a_connection_to_this_machine_is_fine() -> None:
    with socket.socket() as listening, socket.socket() as here:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        here.connect(listening.getsockname())
