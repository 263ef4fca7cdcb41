"""The table of limits, and that every one of them is checked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toolgen.tools.export import TARGETS, export
from toolgen.tools.export.limits import LIMITS, passed
from toolgen.tools.export.measure import measure
from toolgen.tools.model import Annotations, Endpoint, RequestTemplate, Tool, Toolset


def tools(*names: str, **properties: Any) -> Toolset:
    hints = Annotations(
        title="T", read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True
    )
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    made = [
        Tool(
            name=name,
            description="",
            endpoint=Endpoint(method="get", path="/"),
            annotations=hints,
            parameters=parameters,
            request=RequestTemplate(),
        )
        for name in names
    ]
    return Toolset(api="x", tools=tuple(made))


def messages(toolset: Toolset, target: str) -> list[str]:
    return [str(note) for note in export(toolset, target).notes]


def test_every_limit_names_its_source_and_year() -> None:
    for limit in LIMITS:
        assert set(limit.targets) <= set(TARGETS)
        assert re.search(r"20\d\d", limit.source), limit
        if isinstance(limit.value, str):
            re.compile(limit.value)


@pytest.mark.parametrize(
    ("target", "name", "fits"),
    [
        ("openai", "a" * 64, True),
        ("openai", "a" * 65, False),
        ("openai", "a.b", False),
        ("openai-strict", "a" * 65, False),
        ("anthropic", "a" * 65, False),
        ("anthropic", "a-b_c", True),
        ("gemini", "a" * 128, True),
        ("gemini", "1a", False),
        ("mcp", "a.b", True),
        ("mcp", "a b", False),
        ("mcp", "a" * 129, False),
        ("json", "any thing", True),
    ],
)
def test_a_name_that_does_not_fit_is_a_note_and_stays(target: str, name: str, fits: bool) -> None:
    found = export(tools(name), target)
    assert [note.tool for note in found.notes if "the name" in note.message] == ([] if fits else [name])
    assert f'"{name}"' in str(found.data).replace("'", '"')


def test_gemini_takes_no_dash_in_an_argument() -> None:
    found = export(tools("t", **{"a-b": {"type": "string"}, "a_b": {"type": "string"}}), "gemini")
    assert [note.pointer for note in found.notes] == ["/properties/a-b"]


@pytest.mark.parametrize(("target", "most"), [("openai", 128), ("gemini", 512)])
def test_too_many_tools_are_noted(target: str, most: int) -> None:
    assert messages(tools(*(f"t{i}" for i in range(most))), target) == []
    found = messages(tools(*(f"t{i}" for i in range(most + 1))), target)
    assert found[0].startswith(f"{most + 1} tools, {target} takes {most}")


def test_a_schema_is_measured_once_per_definition_with_references_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"ab": {"$ref": "#/$defs/N"}, "c": {"const": "four"}, "d": {"enum": ["x", 1, None]}},
        "$defs": {"N": {"type": "object", "properties": {"n": {"type": "array", "items": {"$ref": "#/$defs/N"}}}}},
    }
    found = measure(schema, 2)
    assert found.nesting == 3
    assert found.properties == 4
    assert found.enum_values == 3
    assert found.enum_text == 1
    assert found.text == len("N" + "ab" + "c" + "d" + "n" + "four" + "x")


def test_measuring_takes_linear_time_and_no_recursion() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    assert measure(deep, 250).nesting == 5_000
    bomb = {
        f"L{i}": {"type": "object", "properties": {f"p{j}": {"$ref": f"#/$defs/L{i + 1}"} for j in range(9)}}
        for i in range(200)
    }
    root = {"type": "object", "properties": {"x": {"$ref": "#/$defs/L0"}}, "$defs": {**bomb, "L200": {}}}
    assert measure(root, 250).nesting == 201


@pytest.mark.parametrize(
    ("what", "schema"),
    [
        ("properties", {"type": "object", "properties": {f"p{i}": {} for i in range(5_001)}}),
        ("enum values", {"enum": list(range(1_001))}),
        ("enum text", {"enum": [f"{i}{'x' * 60}" for i in range(251)]}),
        ("schema text", {"properties": {"x" * 120_001: {}}}),
    ],
)
def test_each_documented_size_of_strict_mode_is_checked(what: str, schema: dict[str, Any]) -> None:
    assert [message.partition(":")[0] for message in passed(schema, "openai-strict")] == [what]
    assert passed(schema, "openai") == []
