"""What the pages in docs/ show is so: every block runs, and every row of a table is tried."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import httpx2
import jsonschema_rs
import pytest
import yaml
from pytest_httpserver import HTTPServer
from shown import ROOT, SHOWN_SERVER, assert_shown, blocks, examples, petstore, printed_by, run, section, tables
from small_policies import address
from typer.main import get_group

from toolgen import (
    ApprovalConfig,
    Caller,
    Dispatcher,
    Gate,
    Pattern,
    Runtime,
    ToolCall,
    ToolResult,
    Toolset,
    functions,
    generate,
    load_toolset,
)
from toolgen.adapters.mcp_client import McpSource
from toolgen.adapters.mcp_sessions import MOST_PAGES, MOST_SESSIONS, MOST_TOOLS, Breaker
from toolgen.adapters.mcp_telemetry import Outcome
from toolgen.approvals import telemetry
from toolgen.approvals.model import (
    LARGEST_AMENDMENT,
    LARGEST_ARGUMENTS,
    LARGEST_STATE,
    LONGEST_NOTE,
    MOST_ROUNDS,
    Scope,
)
from toolgen.approvals.names import LONGEST_ID
from toolgen.approvals.notify import _KINDS, MOST_ATTEMPTS, _wait
from toolgen.approvals.states import NEXT, CallState
from toolgen.approvals.store import Store
from toolgen.cli.approvals import app as approvals_app
from toolgen.cli.audit import app as audit_app
from toolgen.cli.checked import INVALID
from toolgen.cli.config import _KEYS, read_config
from toolgen.dispatch.settings import Http
from toolgen.dispatch.webhook import Webhook
from toolgen.errors import (
    ApprovalError,
    CredentialsError,
    CredentialsMissing,
    PatternError,
    SourceError,
    SyntaxFault,
    ToolsetError,
)
from toolgen.findings import Level
from toolgen.identity.references import parse
from toolgen.openapi.endpoint import endpoint_path
from toolgen.openapi.operations import OWNED_HEADERS
from toolgen.openapi.schema.convert import DESCRIPTION_CAP
from toolgen.openapi.source import Limits
from toolgen.openapi.source.yaml12 import load_yaml
from toolgen.policy.checks import RULES
from toolgen.policy.config import AUTO_APPROVALS, PAUSES, VALIDITY, Rule, TimeoutPolicy, key_of
from toolgen.policy.durations import written_duration
from toolgen.result import Sent
from toolgen.runtime.core import LEASE
from toolgen.runtime.hooks import WITHIN
from toolgen.runtime.results import result_of
from toolgen.tools.describe import ARGUMENT_CAP, TOOL_CAP
from toolgen.tools.export import TARGETS
from toolgen.tools.export.limits import LIMITS
from toolgen.tools.model import (
    Annotations,
    Body,
    DocumentInfo,
    Encoding,
    Endpoint,
    Leaf,
    Model,
    Provenance,
    RequestTemplate,
    Response,
    Server,
    ServerVariable,
    Tool,
)
from toolgen.tools.naming import RESERVED_SOURCES
from toolgen.tools.template import TemplateFault, argument_of, arguments_in

PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
DOCUMENTS, TOOLSET, CALLING = PAGES["documents.md"], PAGES["toolset.md"], PAGES["calling.md"]
GATE, HITL, DOORS = PAGES["gate.md"], PAGES["hitl.md"], PAGES["doors.md"]
SHOWN_PAUSE = "3f2a91c0"  # the id of a pause, as pages have it
PETSTORE = ROOT / "samples/petstore/petstore.yaml"
APPROVALS = ROOT / "samples/petstore/approvals.yaml"
NOTES = ROOT / "samples/mcp/notes_server.py"


def rows(page: str, heading: str, table: int = 0) -> list[pytest.param]:
    found = tables(section(page, heading))[table]
    return [pytest.param(*row, id=" ".join(row)[:60]) for row in found]


def document(paths: Any, version: str = "3.1.0", **rest: Any) -> dict[str, Any]:
    key = "swagger" if version == "2.0" else "openapi"
    return {key: version, "info": {"title": "Sample", "version": "1"}, "paths": paths, **rest}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for sample in (PETSTORE, APPROVALS, NOTES):
        shutil.copy(sample, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("SHOP_TOKEN", "s3cret-token")
    return tmp_path


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of the sample API, in the place of the one that is shown."""
    with petstore() as running:
        yield running.url.removesuffix("/v1")


# every page


def every(kind: str) -> list[pytest.param]:
    return [example for page in PAGES.values() for example in examples(page, kind)]


@pytest.mark.parametrize(("code", "output"), every("python"))
def test_python_prints_what_is_shown(folder: Path, server: str, code: str, output: str | None) -> None:
    printed = printed_by(code.replace(SHOWN_SERVER, server))
    if output is not None:
        assert_shown(output, printed)


@pytest.mark.parametrize(("code", "output"), every("bash"))
def test_a_command_prints_what_is_shown(folder: Path, server: str, code: str, output: str | None) -> None:
    run(sys.executable, "-m", "toolgen", "generate", "petstore.yaml", folder=folder)
    printed = ""
    for line in code.replace(SHOWN_SERVER, server).splitlines():
        if line.startswith("cat > "):
            name, text = re.fullmatch(r"cat > (\S+) <<< '(.*)'", line).groups()  # type: ignore[union-attr]
            (folder / name).write_text(text + "\n", encoding="utf-8")
            continue
        command, _, code_shown = real_pause(line, folder).partition("  # exit code ")
        name, *args = shlex.split(command)
        assert name == "toolgen"
        done = subprocess.run(
            [sys.executable, "-m", "toolgen", *args], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == int(code_shown or 0), done.stderr
        printed = done.stdout
    if output is not None:
        assert_shown(real_pause(output, folder), printed)


def real_pause(text: str, folder: Path) -> str:
    """The text with the id of the pause that is there in the place of the one that is shown."""
    if SHOWN_PAUSE not in text:
        return text
    store = Store(f"sqlite:///{folder / 'toolgen.db'}")
    (pause,) = store.pauses()
    store.close()
    return text.replace(f"{SHOWN_PAUSE}...", pause.id).replace(SHOWN_PAUSE, pause.id[: len(SHOWN_PAUSE)])


def test_each_block_is_of_a_kind_that_is_tried() -> None:
    kinds = [(name, kind) for name, page in PAGES.items() for kind, _ in blocks(page)]
    tried = {
        "calling.md": {"python", "bash", "text", "yaml"},
        "documents.md": {"python", "text"},
        "gate.md": {"python", "bash", "text", "yaml"},
        "doors.md": {"python", "text"},
        "hitl.md": {"python", "bash", "text"},
        "toolset.md": {"python", "text", "yaml", "json"},
    }
    assert [one for one in kinds if one[1] not in tried[one[0]]] == []
    assert kinds.count(("calling.md", "yaml")) == 2  # credentials, and a toolgen.yaml
    assert kinds.count(("gate.md", "yaml")) == 2  # the sample, and steps of continuous integration
    assert kinds.count(("toolset.md", "yaml")) == 2  # the file, and a toolgen.yaml
    assert kinds.count(("toolset.md", "json")) == 1


def test_links_lead_to_pages_and_headings() -> None:
    for name, page in PAGES.items():
        for file, heading in re.findall(r"\]\(([\w.-]*)#?([\w-]*)\)", page):
            target = PAGES[file or name]
            headings = [
                re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", target, re.M)
            ]
            assert not heading or heading in headings, (name, file, heading)


def test_the_caps_are_those_of_the_code() -> None:
    text = " ".join(section(DOCUMENTS, "## Schemas").split())
    assert (
        f"at {DESCRIPTION_CAP} characters in a schema, {ARGUMENT_CAP} of an argument and {TOOL_CAP} of a tool" in text
    )


# documents.md


@pytest.mark.parametrize(("source", "python", "shell"), rows(DOCUMENTS, "## Sources"))
def test_each_source_gives_the_tools(
    folder: Path, httpserver: HTTPServer, source: str, python: str, shell: str
) -> None:
    text = PETSTORE.read_text(encoding="utf-8")
    httpserver.expect_request("/petstore.yaml").respond_with_data(text)
    there = httpserver.url_for("/petstore.yaml")
    python, shell = (text.replace("https://petstore.example/petstore.yaml", there) for text in (python, shell))
    toolset = eval(python, {"generate": generate, "text": text, "mapping": yaml.safe_load(text)})
    assert len(toolset.tools) == 10
    if shell:
        command, _, given = shell.partition(" < ")
        _, *args = shlex.split(command)
        run(sys.executable, "-m", "toolgen", *args, folder=folder, stdin=text if given else "")
        assert len(load_toolset(folder / "petstore.tools.yaml").tools) == 10


@pytest.mark.parametrize(("text", "read"), rows(DOCUMENTS, "## Sources", 1))
def test_yaml_is_read_as_shown(text: str, read: str) -> None:
    if read.startswith("refused: "):
        with pytest.raises(SourceError) as caught:
            load_yaml(text, "it", nesting=20, nodes=100)
        assert caught.value.problems[0].message.partition("\n")[0] == read.removeprefix("refused: ")
    else:
        assert load_yaml(text, "it", nesting=20, nodes=100) == json.loads(read)


@pytest.mark.parametrize(("version", "written", "read"), rows(DOCUMENTS, "## Versions"))
def test_a_schema_is_read_as_shown(version: str, written: str, read: str) -> None:
    schema = yaml.safe_load(written)
    operation = {"parameters": [{"name": "a", "in": "query", "schema": schema}]}
    (tool,) = generate(document({"/x": {"get": operation}}, version + ".0")).tools
    found = tool.input_schema()["properties"]["a"]
    assert {key: value for key, value in found.items() if key != "description"} == yaml.safe_load(read)


@pytest.mark.parametrize(("written", "made"), rows(DOCUMENTS, "## Versions", 1))
def test_an_old_parameter_is_sent_as_shown(written: str, made: str) -> None:
    parameter = {"name": "a", **yaml.safe_load(written)}
    (tool,) = generate(document({"/x": {"post": {"parameters": [parameter]}}}, "2.0")).tools
    sent = [*tool.request.query, *tool.request.header, *filter(None, [tool.request.body])]
    assert [one.model_dump(by_alias=True, exclude_defaults=True) for one in sent] == [yaml.safe_load(made)]


def test_the_limits_are_all_there_with_their_defaults() -> None:
    shown = [(name, float(default)) for name, default, _ in tables(section(DOCUMENTS, "## Limits"))[0]]
    assert shown == [(field.name, float(field.default)) for field in fields(Limits)]


@pytest.mark.parametrize(("level", "paths", "message"), rows(DOCUMENTS, "## The report"))
def test_the_report_says_what_is_shown(level: str, paths: str, message: str) -> None:
    made = generate(document({**yaml.safe_load(paths), "/fine": {"get": {}}}))
    assert made.report is not None
    entries = [entry for entry in made.report.operations if entry.path != "/fine"]
    found = [*made.report.document, *(one for entry in entries for one in entry.diagnostics)]
    assert (level, message) in [(one.level, one.message) for one in found]
    wanted = {"note": "ok"}.get(level, level)
    assert [entry.status for entry in entries] == ([wanted] if entries else [])


@pytest.mark.parametrize(("path", "key"), rows(DOCUMENTS, "## Endpoint keys"))
def test_a_path_has_the_key_that_is_shown(path: str, key: str) -> None:
    made = generate(document({path: {"get": {}}, "/fine": {"get": {}}}))
    assert made.report is not None
    if key.startswith("skipped: "):
        with pytest.raises(ValueError, match="path"):
            endpoint_path(path)
        assert [d.message for d in made.report.operations[0].diagnostics] == [key.removeprefix("skipped: ")]
    else:
        assert made.tools[0].endpoint.key == key == f"get:{endpoint_path(path)}"


def test_what_is_no_argument_is_none() -> None:
    named = section(DOCUMENTS, "## What is no argument").split("- ")[1]
    headers = [name for index, name in enumerate(named.split("`")) if index % 2]
    assert {name.lower() for name in headers} == OWNED_HEADERS
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "token"}}
    parameters = [{"name": name.upper(), "in": "header", "schema": {}} for name in headers]
    parameters += [{"name": name, "in": "query", "schema": {}} for name in ("token", "kind")]
    made = generate(document({"/x": {"get": {"parameters": parameters}}}, components={"securitySchemes": schemes}))
    assert list(made.tools[0].parameters["properties"]) == ["kind"]


# toolset.md


def example_file() -> str:
    return next(code for kind, code in blocks(section(TOOLSET, "## A file")) if kind == "yaml")


def aliases(model: type[Model]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def test_the_file_that_is_shown_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "shop.tools.yaml"
    path.write_text(example_file(), encoding="utf-8")
    (tool,) = load_toolset(path).tools
    assert [binding.argument for binding in tool.bindings] == ["petId", "dry-run", "requestBody"]


@pytest.mark.parametrize(
    ("heading", "model", "inside"),
    [
        ("### The file", Toolset, [DocumentInfo, Server, ServerVariable]),
        ("### A tool", Tool, [Endpoint, Annotations, Provenance]),
        ("### request", RequestTemplate, []),
        ("### A leaf", Leaf, []),
        ("### body", Body, [Encoding]),
        ("### response", Response, []),
    ],
)
def test_every_key_is_named(heading: str, model: type[Model], inside: list[type[Model]]) -> None:
    text = section(TOOLSET, heading)
    assert [key for key, _ in tables(text)[0]] == aliases(model)
    assert {key for one in inside for key in aliases(one) if f"`{key}`" not in text} == set()


def test_the_keys_that_have_to_be_there_are_named() -> None:
    text = section(TOOLSET, "## A file").partition("### ")[0].partition("An unknown key")[2]
    needed = [{"toolgen", "api"}]
    needed += [
        {aliases(m)[i] for i, f in enumerate(m.model_fields.values()) if f.is_required()} for m in (Tool, Leaf, Body)
    ]
    assert set(re.findall(r"`(\w+)`", text)) == set().union(*needed)


def test_the_reserved_names_are_named() -> None:
    text = section(TOOLSET, "### The file")
    assert {name for name in RESERVED_SOURCES if f"`{name}`" not in text} == set()


@pytest.mark.parametrize(("written", "reads"), rows(TOOLSET, "## Templates"))
def test_a_template_reads_what_is_shown(written: str, reads: str) -> None:
    value = yaml.safe_load(written)
    if reads.startswith("refused: "):
        with pytest.raises(TemplateFault) as caught:
            arguments_in(value)
        assert str(caught.value) == reads.removeprefix("refused: ")
    else:
        assert arguments_in(value) == ({reads} - {"nothing"})
        if argument_of(value) is not None:
            assert argument_of(value) == reads


def put(data: Any, place: str, value: Any) -> None:
    """Set what stands at `tools[0].request.method`."""
    *steps, last = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", place)]
    for step in steps:
        data = data[step]
    data[last] = value


@pytest.mark.parametrize(("place", "value", "problem"), rows(TOOLSET, "## Editing"))
def test_a_wrong_edit_is_refused_as_shown(tmp_path: Path, place: str, value: str, problem: str) -> None:
    data = yaml.safe_load(example_file())
    put(data, place, yaml.safe_load(value))
    path = tmp_path / "shop.tools.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    with pytest.raises(ToolsetError) as caught:
        load_toolset(path)
    assert problem in [one.message for one in caught.value.problems]


def test_the_schema_that_is_copied_accepts_the_file_that_is_shown(folder: Path) -> None:
    (code,) = [code for kind, code in blocks(section(TOOLSET, "## Editing")) if kind == "python"]
    printed_by(code)
    (settings,) = [json.loads(code) for kind, code in blocks(TOOLSET) if kind == "json"]
    ((name, _),) = settings["yaml.schemas"].items()
    schema = json.loads((folder / name).read_text(encoding="utf-8"))
    jsonschema_rs.Draft202012Validator(schema, offline=True).validate(yaml.safe_load(example_file()))


@pytest.mark.parametrize(("paths", "names"), rows(TOOLSET, "## Names"))
def test_tools_have_the_names_that_are_shown(paths: str, names: str) -> None:
    made = generate(document(yaml.safe_load(paths)))
    assert [tool.name for tool in made.tools] == names.split(", ")


@pytest.mark.parametrize(("parameters", "arguments"), rows(TOOLSET, "## Names", 1))
def test_arguments_have_the_keys_that_are_shown(parameters: str, arguments: str) -> None:
    operation = {"parameters": yaml.safe_load(parameters), "requestBody": {"content": {"application/json": {}}}}
    (tool,) = generate(document({"/x": {"post": operation}})).tools
    assert list(tool.parameters["properties"]) == arguments.split(", ")


@pytest.mark.parametrize(("content", "media_type", "argument"), rows(TOOLSET, "## Bodies"))
def test_a_body_is_sent_as_shown(content: str, media_type: str, argument: str) -> None:
    declared = yaml.safe_load(content)
    (tool,) = generate(document({"/x": {"post": {"requestBody": {"content": declared}}}})).tools
    assert tool.request.body is not None
    assert tool.request.body.media_type == media_type
    assert set(tool.request.body.alternatives) == set(declared) - {media_type} - {n for n in declared if "*" in n}
    assert tool.input_schema()["properties"]["requestBody"]["description"].startswith(argument)


def test_the_targets_are_there_with_their_limits() -> None:
    shown = {row[0]: " ".join(row[1:]) for row in tables(section(TOOLSET, "## Exports"))[0]}
    assert list(shown) == list(TARGETS)
    missing = [
        (target, limit.what) for limit in LIMITS for target in limit.targets if str(limit.value) not in shown[target]
    ]
    assert missing == []


def test_the_toolgen_yaml_is_valid_and_every_key_is_named(folder: Path) -> None:
    text = section(TOOLSET, "## toolgen.yaml")
    (code,) = [code for kind, code in blocks(text) if kind == "yaml"]
    (folder / "toolgen.yaml").write_text(code, encoding="utf-8")
    assert [job.api for job in read_config(folder / "toolgen.yaml").jobs] == ["petstore", "billing"]
    assert {key for api in yaml.safe_load(code)["apis"].values() for key in api} == set(_KEYS)
    assert [row[0] for row in tables(text)[0]] == list(_KEYS)


# gate.md


def test_the_config_that_is_shown_is_the_sample() -> None:
    shown = next(code for kind, code in blocks(GATE) if kind == "yaml")
    comment, _, rest = APPROVALS.read_text(encoding="utf-8").partition("\n")
    assert comment.startswith("#")
    assert rest == shown


@pytest.mark.parametrize(("pattern", "form", "matches"), rows(GATE, "## What can be matched"))
def test_a_pattern_has_the_form_that_is_shown(pattern: str, form: str, matches: str) -> None:
    assert Pattern(pattern, sources=["petstore"]).form == form


@pytest.mark.parametrize(("pattern", "matched", "other"), rows(GATE, "## Patterns"))
def test_a_pattern_matches_what_is_shown(pattern: str, matched: str, other: str) -> None:
    assert Pattern(pattern).matches(address(matched))
    assert not Pattern(pattern).matches(address(other))


@pytest.mark.parametrize(("written", "pattern"), rows(GATE, "## Patterns", 1))
def test_a_pattern_in_a_file_is_read_as_shown(tmp_path: Path, written: str, pattern: str) -> None:
    path = tmp_path / "approvals.yaml"
    path.write_text(f"requireApproval:\n  {written}\n", encoding="utf-8")
    if pattern == "no YAML":
        with pytest.raises(SyntaxFault):
            ApprovalConfig.load(path)
    else:
        assert ApprovalConfig.load(path).require_approval == (Pattern(pattern),)


@pytest.mark.parametrize(("text", "problem", "nearest"), rows(GATE, "## What is refused"))
def test_a_pattern_is_refused_as_shown(text: str, problem: str, nearest: str) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(text)
    (found,) = caught.value.problems
    assert (found.message, found.suggestion) == (problem, nearest)


@pytest.mark.parametrize(("unmatched", "read", "write"), rows(GATE, "## What happens to a call"))
def test_what_no_pattern_speaks_of_has_the_outcome_that_is_shown(unmatched: str, read: str, write: str) -> None:
    config = ApprovalConfig.parse({"unmatched": unmatched})
    gate = Gate(config, generate(str(PETSTORE)))
    found = gate.classify([ToolCall("1", "getPet"), ToolCall("2", "deletePet")])
    assert [one.outcome.name for one in found.calls] == [read, write]


def test_every_key_of_a_config_is_named_with_its_default() -> None:
    text = section(GATE, "## Keys")
    table = {key: default for key, _, default in tables(text)[0]}
    named = [key_of(field.name) for field in fields(ApprovalConfig)]
    assert set(table) == set(named) - {"unreadableReason", "warnings"}
    assert table["maxPausesPerTurn"] == str(PAUSES)
    assert table["maxAutoApprovalsPerTurn"] == str(AUTO_APPROVALS)
    assert table["approvalValidity"] == written_duration(VALIDITY)
    assert table["unmatched"] == ApprovalConfig.parse({}).default
    rule = section(GATE, "## Rules")
    assert {key for one in fields(Rule) if f"`{(key := key_of(one.name))}`" not in rule} == set()


# hitl.md


def test_every_state_of_a_call_is_named_with_what_follows_on_it() -> None:
    shown = {state: re.findall(r"\w+", after) for state, _, after in tables(section(HITL, "## The life of a pause"))[0]}
    assert {CallState(state): {CallState(one) for one in after} for state, after in shown.items()} == {
        state: set(NEXT.get(state, ())) for state in CallState
    }


def test_every_error_of_an_approval_is_named_with_its_status() -> None:
    shown = [(name, int(status)) for status, name, _ in tables(section(HITL, "## Deciding").partition("### ")[0])[0]]
    assert sorted(shown) == sorted((one.__name__, one.status) for one in ApprovalError.__subclasses__())


def test_every_scope_of_a_remembered_approval_is_named() -> None:
    assert [row[0] for row in tables(section(HITL, "### Remembered approvals"))[0]] == list(Scope)


def test_every_timeout_policy_is_named() -> None:
    assert {row[0] for row in tables(section(HITL, "## When time is up"))[0]} == set(TimeoutPolicy)


def test_the_model_reads_of_each_state_what_is_shown() -> None:
    runtime = Runtime(functions({"now": lambda: "noon"}))
    pause = runtime.sync.submit([ToolCall("1", "now", {})], caller=Caller("ada")).pause
    runtime.sync.close()
    assert pause is not None
    shown = {state: (sent, refused) for state, sent, refused, _ in tables(section(HITL, "## What the model reads"))[0]}
    results = {
        CallState.executed: ToolResult(True, Sent.answered),
        CallState.failed: ToolResult(False, Sent.not_sent),
    }
    found = {s: result_of(replace(pause.calls[0], state=s, result=results.get(s))) for s in CallState}
    assert shown == {state.value: (one.sent.value, one.refused or "") for state, one in found.items()}


def test_the_limits_of_what_waits_are_those_of_the_code() -> None:
    shown = [row[1].split()[0] for row in tables(section(HITL, "### Limits"))[0]]
    real = [LARGEST_ARGUMENTS, LARGEST_AMENDMENT, LONGEST_NOTE, LARGEST_STATE, MOST_ROUNDS, LONGEST_ID]
    assert shown == [str(one) for one in real]
    assert "five minutes after" in " ".join(section(HITL, "## When a process dies").split())
    assert timedelta(minutes=5) == LEASE
    assert f"within {WITHIN:g} seconds" in " ".join(section(HITL, "### A say of the host").split())


def test_every_message_of_a_webhook_and_its_retries_are_as_shown() -> None:
    text = section(HITL, "## News of pauses")
    assert [row[0] for row in tables(text)[0]] == [f"approval.{kind}" for kind in dict.fromkeys(_KINDS.values())]
    told = " ".join(text.split())
    waits = [_wait(attempt) for attempt in range(1, MOST_ATTEMPTS)]
    assert (waits[:3], max(waits)) == ([5, 15, 45], 12 * 3600)
    assert "again after 5 seconds, 15, 45 and so on up to 12 hours" in told
    assert f"{MOST_ATTEMPTS} times in all, which is a day and a half" in told
    assert 34 < sum(waits) / 3600 < 40
    assert f"within {Webhook('https://hooks.example').http.total:g} seconds" in told


def test_every_metric_is_named() -> None:
    made = re.findall(r'(?:_counter\("|toolgen\.approval\.)([a-z_]+)"', inspect.getsource(telemetry))
    assert {row[0] for row in tables(section(HITL, "## What to watch"))[0]} == {
        f"toolgen.approval.{one}" for one in made
    }


def test_every_command_of_the_shell_is_named_and_has_the_options_that_are_shown() -> None:
    real = {
        f"toolgen {group} {name}": {option for one in command.params for option in one.opts}
        for group, app in (("approvals", approvals_app), ("audit", audit_app))
        for name, command in get_group(app).commands.items()
    }
    shown = dict(tables(section(HITL, "## Deciding in the shell"))[0])
    assert list(shown) == list(real)
    for command, does in shown.items():
        assert set(re.findall(r"`(--[a-z-]+)", does)) <= real[command]


def test_every_source_is_named() -> None:
    text = section(GATE, "## What can be matched")
    assert {name for name in RESERVED_SOURCES if f"`{name}`" not in text} == set()


@pytest.mark.parametrize(("text", "code", "findings"), [(None, 0, 0), ("requireApproval: ['http.post:/pest']", 1, 1)])
def test_the_steps_that_are_shown_check_the_toolset_and_log_what_is_found(
    folder: Path, text: str | None, code: int, findings: int
) -> None:
    (shown,) = [code for kind, code in blocks(section(GATE, "## In continuous integration")) if kind == "yaml"]
    *runs, log = yaml.safe_load(shown)["steps"]
    if text is not None:
        (folder / "approvals.yaml").write_text(text, encoding="utf-8")
    run(sys.executable, "-m", "toolgen", "generate", "petstore.yaml", folder=folder)
    shell = [re.sub("^toolgen", shlex.quote(sys.executable) + " -m toolgen", step["run"]) for step in runs]
    codes = [
        subprocess.run(line, shell=True, cwd=folder, check=False, capture_output=True).returncode for line in shell
    ]
    assert codes == [0, code]
    (made,) = json.loads((folder / log["with"]["sarif_file"]).read_text(encoding="utf-8"))["runs"]
    assert len(made["results"]) == findings


def test_every_finding_is_named_with_its_level() -> None:
    named = {rule: level for rule, level, _ in tables(section(GATE, "## Check a config against tools"))[0]}
    assert set(named) == {*RULES, INVALID}
    assert list(named.values()) == sorted(named.values(), key=list(Level).index)


# calling.md


def secured(scheme: str) -> Toolset:
    """A toolset of one GET at https://api.example that needs the scheme."""
    schemes = {"it": yaml.safe_load(scheme)}
    paths = {"/x": {"get": {"operationId": "get", "security": [{"it": []}]}}}
    return generate(document(paths, servers=[{"url": "https://api.example"}], components={"securitySchemes": schemes}))


@pytest.mark.parametrize(("scheme", "credential", "shown"), rows(CALLING, "## Credentials"))
def test_a_credential_is_sent_as_shown(folder: Path, scheme: str, credential: str, shown: str) -> None:
    sent: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(204)

    caller = Caller("ada", token="caller-token", origin="https://api.example")
    given = {"it": yaml.safe_load(credential)}
    with Dispatcher(secured(scheme), credentials=given, transport=httpx2.MockTransport(answer)) as dispatcher:
        assert dispatcher.call("get", {}, caller=caller).status == 204
    (request,) = sent
    name, _, value = shown.partition(": ")
    assert (f"?{request.url.query.decode()}" if shown.startswith("?") else request.headers[name]) == (value or shown)


@pytest.mark.parametrize(("reference", "places", "what"), rows(CALLING, "### References"))
def test_a_reference_may_stand_where_it_is_shown(reference: str, places: str, what: str) -> None:
    (found,) = parse(reference).references
    every = ("body", "cookie", "header", "path", "query", "querystring")
    assert ", ".join(place for place in every if not found.place_fault(place)) == places  # type: ignore[arg-type]


@pytest.mark.parametrize(("scheme", "credential", "refused"), rows(CALLING, "### References", 1))
def test_a_credential_is_refused_when_it_is_loaded_as_shown(scheme: str, credential: str, refused: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        Dispatcher(secured(scheme), credentials={"it": credential})
    assert [problem.message for problem in caught.value.problems] == [refused]


@pytest.mark.parametrize(("credential", "caller", "refused"), rows(CALLING, "### References", 2))
def test_a_call_whose_credential_is_missing_is_refused_as_shown(
    folder: Path, credential: str, caller: str, refused: str
) -> None:
    given = {"it": credential}
    transport = httpx2.MockTransport(lambda request: pytest.fail("it was sent"))
    bound = eval(caller, {"Caller": Caller}) if caller else None
    toolset = secured("{type: http, scheme: bearer}")
    with (
        Dispatcher(toolset, credentials=given, transport=transport) as dispatcher,
        pytest.raises(CredentialsMissing) as caught,
    ):
        dispatcher.call("get", {}, caller=bound)
    assert caught.value.message == f"it: {refused}"


def test_the_credentials_and_the_settings_that_are_shown_are_valid(folder: Path) -> None:
    credentials, settings = (code for kind, code in blocks(CALLING) if kind == "yaml")
    (folder / "toolgen.yaml").write_text(settings, encoding="utf-8")
    config = read_config(folder / "toolgen.yaml")
    (job,) = config.jobs
    assert config.http == Http(total=30, retries=1, proxy="http://proxy.example:3128")
    assert job.credentials == yaml.safe_load(credentials)["credentials"]
    Dispatcher(generate("petstore.yaml"), credentials=job.credentials, http=config.http).close()


def test_every_setting_is_named_with_its_default() -> None:
    shown = {key: default for key, default, _ in tables(section(CALLING, "## Settings"))[0]}
    real = {key_of(one.name): one.default for one in fields(Http) if one.default is not MISSING}
    assert shown == {
        key: "none" if value is None else f"{value:g}" if value < 100 else str(value) for key, value in real.items()
    }


def test_every_outcome_and_exit_code_of_a_call_is_named() -> None:
    assert [row[0] for row in tables(section(CALLING, "## What comes back"))[0]] == [
        "not_sent",
        "answered",
        "outcome_unknown",
    ]
    assert set(Sent) == {"not_sent", "answered", "outcome_unknown"}
    assert [row[0] for row in tables(section(CALLING, "## From the shell"))[0]] == ["0", "1", "2", "3"]


# doors.md


def test_the_limits_of_an_mcp_server_are_those_of_the_code() -> None:
    shown = [row[1] for row in tables(section(DOORS, "### Limits"))[0]]
    assert shown == [str(one) for one in (MOST_PAGES, MOST_TOOLS, MOST_SESSIONS, Breaker.failures)]
    assert f"within {Breaker.seconds:g} seconds" in section(DOORS, "### Limits")
    assert f"cut at {TOOL_CAP} characters" in section(DOORS, "### Discovery")
    ttl = inspect.signature(McpSource).parameters["ttl"].default
    assert f"`ttl` seconds\n({ttl:g})" in section(DOORS, "### Discovery")
    assert set(get_args(Outcome)) == set(
        re.findall(r"`(\w+)`", section(DOORS, "### Limits").rpartition("`outcome`:")[2])
    )
