"""The round trip: a run over two small documents, and the parts that judge it, each on its own."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema_rs
import pytest
from small_documents import OK, document, made, parameter, tool_of

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
COLORS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
RGB: dict[str, Any] = {"type": "object", "properties": {k: {"type": "integer"} for k in "RGB"}}
NESTED = {"type": "object", "properties": {"list": {"type": "array", "items": RGB}, "text": {"type": "string"}}}
OLD_PETS = """\
swagger: "2.0"
info: {title: Old pets, version: "1"}
host: pets.example
paths:
  /pets/{petId}:
    post:
      consumes: [multipart/form-data]
      parameters:
      - {name: petId, in: path, required: true, type: integer}
      - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: pipes}
      - {name: photo, in: formData, type: file}
      - {name: name, in: formData, type: string}
      responses: {200: {description: fine}}
"""


def styles() -> dict[str, Any]:
    """A document with an operation for each body, and every style."""
    query = [
        parameter("form", schema=COLORS),
        parameter("csv", schema=RGB, explode=False),
        parameter("space", style="spaceDelimited", explode=False, schema={**COLORS, "items": {"type": "integer"}}),
        parameter("deep", style="deepObject", schema=NESTED),
        parameter("json", content={"application/json": {"schema": NESTED}}),
        parameter("exploded", schema=RGB),
        parameter("X-Rgb", "header", explode=True, schema=RGB),
        parameter("session", "cookie", schema={"type": "string"}),
    ]
    path = [parameter("simple", "path", schema=RGB), parameter("matrix", "path", style="matrix", schema=COLORS)]
    fields = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"}, "c": COLORS}}
    bodies = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    with_body = {
        f"/b{number}": {"post": {"requestBody": {"content": {media: {"schema": fields}}}, "responses": OK}}
        for number, media in enumerate(bodies)
    }
    item = {"get": {"operationId": "styles", "parameters": [*query, *path], "responses": OK}}
    return document({"/s/{simple}/{matrix}": item, **with_body})


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


def roundtrip(*given: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "roundtrip.py"), *map(str, given)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_small_documents_go_there_and_back(tmp_path: Path) -> None:
    (tmp_path / "styles.json").write_text(json.dumps(styles()))
    (tmp_path / "old.yaml").write_text(OLD_PETS)
    run = roundtrip(tmp_path, "--format", "json")
    assert run.returncode in (0, 1), run.stderr
    found = json.loads(run.stdout)
    counts = found["counts"]
    assert (counts["documents"], counts["operations"]) == (2, 5)
    assert counts["sets"] == counts["resolved"] >= 13
    assert counts["ok"] + counts["partial"] == counts["sets"], found["not accepted by openapi-core"]
    assert all("UNEXPLAINED" not in one["kind"] for one in found["not decoded back"]), found["not decoded back"]
    assert counts["decoded"] >= counts["sets"] - 2
    assert roundtrip(tmp_path, "--format", "json").stdout == run.stdout  # the same for a seed


def test_the_text_ends_with_the_bars_and_no_documents_are_wrong_usage(tmp_path: Path) -> None:
    assert roundtrip(tmp_path).returncode == 2
    (tmp_path / "old.yaml").write_text(OLD_PETS)
    run = roundtrip(tmp_path, "--source", "toolset")
    assert [line.split()[-1] for line in run.stdout.splitlines()[-3:]] == ["ok", "ok", "ok"]
    assert max(map(len, run.stdout.splitlines())) <= 110


# OpenAPI 3.2, "Style Examples", with the values of its table.
BLUE, RAINBOW, MIXED = "blue", ["blue", "black", "brown"], {"R": 100, "G": 200, "B": 150}
EXAMPLES = [
    ("path", "matrix", False, BLUE, ";color=blue"),
    ("path", "matrix", False, RAINBOW, ";color=blue,black,brown"),
    ("path", "matrix", False, MIXED, ";color=R,100,G,200,B,150"),
    ("path", "matrix", True, RAINBOW, ";color=blue;color=black;color=brown"),
    ("path", "matrix", True, MIXED, ";R=100;G=200;B=150"),
    ("path", "label", False, BLUE, ".blue"),
    ("path", "label", False, RAINBOW, ".blue,black,brown"),
    ("path", "label", True, RAINBOW, ".blue.black.brown"),
    ("path", "label", True, MIXED, ".R=100.G=200.B=150"),
    ("path", "simple", False, MIXED, "R,100,G,200,B,150"),
    ("path", "simple", True, MIXED, "R=100,G=200,B=150"),
    ("query", "form", False, RAINBOW, "color=blue,black,brown"),
    ("query", "form", False, MIXED, "color=R,100,G,200,B,150"),
    ("query", "form", True, BLUE, "color=blue"),
    ("query", "form", True, RAINBOW, "color=blue&color=black&color=brown"),
    ("query", "form", True, MIXED, "R=100&G=200&B=150"),
    ("query", "spaceDelimited", False, RAINBOW, "color=blue%20black%20brown"),
    ("query", "spaceDelimited", False, MIXED, "color=R%20100%20G%20200%20B%20150"),
    ("query", "pipeDelimited", False, RAINBOW, "color=blue%7Cblack%7Cbrown"),
    ("query", "pipeDelimited", False, MIXED, "color=R|100|G|200|B|150"),
    ("query", "deepObject", True, MIXED, "color%5BR%5D=100&color%5BG%5D=200&color[B]=150"),
]


@pytest.mark.parametrize(("location", "style", "explode", "value", "wire"), EXAMPLES)
def test_the_decoder_reads_the_examples_of_the_specification(
    part: Any, location: str, style: str, explode: bool, value: Any, wire: str
) -> None:
    schema = {str: {"type": "string"}, list: COLORS, dict: RGB}[type(value)]
    operation = {"parameters": [parameter("color", location, style=style, explode=explode, schema=schema)]}
    path = "/x/{color}" if location == "path" else "/x"
    decoder = part("decode").Decoder(Path("none.json"), document({path: {"get": operation}}))
    pointer = f"/paths/{path.replace('/', '~1')}/get"
    same = part("_readings").same
    url = f"https://a.example/v1/x/{wire}" if location == "path" else f"https://a.example/v1/x?{wire}"
    readings = decoder.decode(pointer, "GET", url, [], None).parameters[location, "color"]
    assert any(same(value, reading) for reading in readings)
    wrong = {str: "red", list: ["blue", "brown"], dict: {"R": 100, "G": 200, "B": "150"}}[type(value)]
    assert not any(same(wrong, reading) for reading in readings)


@pytest.mark.parametrize(
    ("value", "text", "types"),
    [
        (5, "5", "integer"),
        (5.0, "5", "integer"),
        (0.5, "0.5", "number"),
        (True, "true", "boolean"),
        ("5", "5", "string"),
    ],
)
def test_a_text_is_a_value_of_a_type_its_schema_allows_and_of_no_other(
    part: Any, value: Any, text: str, types: str
) -> None:
    readings = part("_readings")
    assert readings.same(value, readings.Text(text, frozenset({types})))
    others = frozenset({"array", "object", "null"}) | ({"string"} - {types})
    assert not readings.same(value, readings.Text(text, others))
    assert not readings.same(value, readings.Text("1" + text, frozenset({types})))


@pytest.mark.parametrize(
    ("one", "other", "equal"), [(1, 1.0, True), (1, True, False), (0, False, False), ("1", 1, False)]
)
def test_equality_is_that_of_json(part: Any, one: Any, other: Any, equal: bool) -> None:
    assert part("_readings").equal([{"a": one}], [{"a": other}]) is equal


def test_a_request_that_says_something_else_is_a_mismatch_without_an_explanation(part: Any, tmp_path: Path) -> None:
    from toolgen.request.resolve import resolve

    source = document(
        {"/x": {"get": {"operationId": "op", "parameters": [parameter("a"), parameter("b")], "responses": OK}}}
    )
    (tool,) = made(source).tools
    rules, decoder = part("_rules"), part("decode").Decoder(tmp_path / "none.json", source)
    url = resolve(tool, {"a": "1 2"}, server="https://a.example").url

    def told(url: str) -> str:
        return str(rules.mismatch(tool, {"a": "1 2"}, decoder.decode(tool.pointer, "GET", url, [], None)))

    assert told(url) == ""
    for wrong in (url.replace("%20", "+"), url + "&b=3", url.partition("?")[0]):
        assert told(wrong).startswith("UNEXPLAINED")


def test_generated_arguments_are_valid_differ_and_reach_the_edges(part: Any) -> None:
    values = part("values")
    schema = {"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "integer"}, "o": NESTED}}
    body = {**schema, "required": ["s"]}
    tool = tool_of({"requestBody": {"content": {"application/json": {"schema": body}}, "required": True}})
    places = {"requestBody": "body"}
    validator = jsonschema_rs.validator_for(tool.input_schema())
    sets = [dict(values.argument_sets(tool.input_schema(), places, str(seed))) for seed in range(200)]
    assert all(validator.is_valid(one) for given in sets for one in given.values())
    assert all(set(given["required"]["requestBody"]) == {"s"} for given in sets)
    assert all(set(given["all"]["requestBody"]) == {"s", "n", "o"} for given in sets)
    edges = [given["edge"]["requestBody"] for given in sets]
    assert {"", "a&b=c", "日本語", "%2F"} <= {one["s"] for one in edges}
    assert max(one["n"] for one in edges) > 2**63


def test_the_decoder_imports_nothing_of_what_it_judges() -> None:
    for name in ("decode.py", "_described.py", "_readings.py", "_documents.py"):
        tree = ast.parse((BENCHMARKS / name).read_text())
        imported = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
        imported += [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
        assert not [module for module in imported if module.split(".")[0] in ("toolgen", "openapi_core")]
