"""The corpus benchmark: a run over two tiny documents, and the parts that count without toolgen's help."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example"}],
    "paths": {
        "/pets": {
            "post": {
                "operationId": "createPet",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
                "responses": {"201": {"description": "made"}},
            }
        },
    },
    "components": {
        "schemas": {"Pet": {"type": "object", "properties": {"parent": {"$ref": "#/components/schemas/Pet"}}}}
    },
}
OLD_PETS = """\
swagger: "2.0"
info: {title: Old pets, version: "1"}
host: pets.example
paths:
  /pets/{petId}:
    get:
      parameters: [{name: petId, in: path, required: true, type: string}]
      responses: {200: {description: fine}}
"""


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def corpus(*given: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "corpus.py"), *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_over_two_documents_and_a_fragment(tmp_path: Path) -> None:
    (tmp_path / "pets.json").write_text(json.dumps(PETS))
    (tmp_path / "old.yaml").write_text(OLD_PETS)
    (tmp_path / "fragment.json").write_text('{"type": "object", "properties": {"openapi": {"type": "string"}}}')
    run = corpus(tmp_path, "--format", "json")
    assert run.returncode in (0, 1), run.stderr
    found = json.loads(run.stdout)
    assert [document["name"] for document in found["documents"]] == ["old.yaml", "pets.json"]
    assert [document["form"] for document in found["documents"]] == ["yaml", "json"]
    assert found["totals"]["operations"] == found["totals"]["made"] == 2
    assert found["totals"]["faults"] == dict.fromkeys(found["totals"]["faults"], 0)
    assert [bar["what"] for bar in found["bars"] if not bar["holds"] and "time" not in bar["what"]] == []


def test_what_fails_is_counted_and_the_bars_are_missed(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"openapi": "3.0.3", "paths": {"/a": ')
    (tmp_path / "other.json").write_text('{"openapi": "9.9.9", "paths": {"/a": {"get": {"responses": {}}}}}')
    run = corpus(tmp_path)
    assert run.returncode == 1, run.stderr
    assert "2 failed" in run.stdout
    assert "MISSED" in run.stdout
    assert max(map(len, run.stdout.splitlines())) <= 100


def test_a_folder_without_documents_is_wrong_usage(tmp_path: Path) -> None:
    assert corpus(tmp_path).returncode == 2
    assert corpus(tmp_path / "missing").returncode == 2


def test_operations_are_counted_from_the_data(part: Any, tmp_path: Path) -> None:
    (tmp_path / "items.json").write_text('{"b": {"head": {}}}')
    document = {
        "openapi": "3.2.0",
        "paths": {
            "/a": {"get": {}, "query": {}, "parameters": [], "additionalOperations": {"COPY": {}}},
            "/b": {"$ref": "items.json#/b"},
            "/c": {"$ref": "#/paths/~1a"},
            "x-d": {"get": {}},
        },
    }
    found = part("_operations").operations(document, tmp_path / "document.json")
    assert sorted(found) == [
        (m, p) for m, p in sorted([(m, p) for p in ("/a", "/c") for m in ("copy", "get", "query")] + [("head", "/b")])
    ]
    assert found["copy", "/a"] == "/paths/~1a/additionalOperations/COPY"
    old = part("_operations").operations({"swagger": "2.0", "paths": {"/a": {"query": {}, "trace": {}}}}, tmp_path)
    assert old == {}


def test_schemas_are_checked_and_measured_without_being_written_out(part: Any) -> None:
    checks = part("_schemas").SchemaChecks()
    shared = {"Pet": {"type": "object", "properties": {"$ref": {"type": "string"}}}, "No": {"type": "nothing"}}
    good = {"type": "object", "properties": {"é": {"$ref": "#/$defs/Pet"}}, "$defs": {"Pet": shared["Pet"]}}
    size = checks.add("good", json.loads(json.dumps(good)))
    assert size == len(json.dumps(good, ensure_ascii=False, separators=(",", ":")).encode())
    checks.add("dangling", {"properties": {"a": {"$ref": "#/$defs/Cat"}}, "$defs": {"Pet": shared["Pet"]}})
    checks.add("metaschema", {"$ref": "#/$defs/No", "$defs": shared})
    checks.add("pattern", {"pattern": "("})
    checks.add("fine", {"pattern": "a"})
    checks.finish()
    assert checks.dangling == [("dangling", "#/$defs/Cat")]
    assert [(tool, message.split(":")[0]) for tool, message in checks.invalid] == [
        ("metaschema", "metaschema"),
        ("pattern", "compile"),
    ]


def test_a_sample_has_the_largest_and_is_the_same_each_time(part: Any) -> None:
    documents = part("_documents")
    all_of_them = [documents.Document(Path(f"{n}"), f"{n:03}", f"p{n % 5}", n) for n in range(200)]
    drawn = documents.sample(all_of_them, 60, 7)
    assert drawn == documents.sample(all_of_them, 60, 7)
    assert drawn == sorted(drawn, key=lambda document: document.name)
    assert len({document.name for document in drawn}) == 60
    assert {document.size for document in drawn} >= set(range(170, 200))
    assert {document.provider for document in drawn} == {f"p{n}" for n in range(5)}


def test_kinds_mask_what_is_particular(part: Any) -> None:
    kind_of = part("_kinds").kind_of
    assert kind_of("'#/a/b' leads nowhere: '/x' has no \"b\"") == kind_of("'#/c' leads nowhere: '/y' has no \"d\"")
    assert kind_of("the path has a segment at /paths/~1a/get") == "the path has a segment at /…"
