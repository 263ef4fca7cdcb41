"""What the pages in docs/ show is so: every block runs, and every row of a table is tried."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from pytest_httpserver import HTTPServer
from shown import ROOT, assert_shown, blocks, examples, printed_by, run, section, tables

from toolgen import Toolset, generate, load_toolset
from toolgen.errors import SourceError
from toolgen.openapi.endpoint import endpoint_path
from toolgen.openapi.operations import OWNED_HEADERS
from toolgen.openapi.source import Limits, Loader
from toolgen.openapi.yaml12 import load_yaml

PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
DOCUMENTS = PAGES["documents.md"]
PETSTORE = ROOT / "samples/petstore/petstore.yaml"


def rows(page: str, heading: str, table: int = 0) -> list[pytest.param]:
    found = tables(section(page, heading))[table]
    return [pytest.param(*row, id=" ".join(row)[:60]) for row in found]


def document(paths: Any, version: str = "3.1.0", **rest: Any) -> dict[str, Any]:
    key = "swagger" if version == "2.0" else "openapi"
    return {key: version, "info": {"title": "Sample", "version": "1"}, "paths": paths, **rest}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(PETSTORE, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


# every page


def every(kind: str) -> list[pytest.param]:
    return [example for page in PAGES.values() for example in examples(page, kind)]


@pytest.mark.parametrize(("code", "output"), every("python"))
def test_python_prints_what_is_shown(folder: Path, code: str, output: str | None) -> None:
    printed = printed_by(code)
    if output is not None:
        assert_shown(output, printed)


def test_each_block_is_of_a_kind_that_is_tried() -> None:
    kinds = [(name, kind) for name, page in PAGES.items() for kind, _ in blocks(page)]
    tried = {"documents.md": {"python", "text"}}
    assert [one for one in kinds if one[1] not in tried[one[0]]] == []


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
