"""What holds for every target, over toolsets made to be difficult."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest

from toolgen.errors import UsageError
from toolgen.tools.export import TARGETS, Export, Note, export
from toolgen.tools.model import (
    Annotations,
    Body,
    DocumentInfo,
    Endpoint,
    Leaf,
    RequestTemplate,
    Response,
    Tool,
    Toolset,
)


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def make_tool(name: str, parameters: dict[str, Any], **fields: Any) -> Tool:
    hints = Annotations(
        title="Send it", read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    )
    path = Leaf(name="id", value="{{ id }}")
    body = Body(value="{{ requestBody }}", media_type="application/json")
    defaults: dict[str, Any] = {
        "description": f"Send {name}",
        "endpoint": Endpoint(method="patch", path="/x/{id}"),
        "annotations": hints,
        "request": RequestTemplate(path=(path,), body=body),
    }
    return Tool(name=name, parameters=parameters, **{**defaults, **fields})


def arguments(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


DEEP: dict[str, Any] = {"type": "string"}
for _ in range(30):
    DEEP = {"type": "object", "properties": {"in": DEEP}}

SCHEMAS: dict[str, Any] = {
    "Node": {"type": "object", "properties": {"next": ref("Node"), "kids": {"type": "array", "items": ref("Node")}}},
    "Left": {"type": "object", "properties": {"right": ref("Right")}},
    "Right": {"type": "object", "properties": {"left": {**ref("Left"), "description": "Back"}}},
    "Cat": {
        "type": "object",
        "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
        "required": ["kind"],
    },
    "Dog": {
        "type": "object",
        "properties": {"kind": {"const": "dog"}, "name": {"type": "string"}},
        "required": ["kind"],
    },
    "Pet": {"oneOf": [ref("Cat"), ref("Dog")], "description": "A pet"},
    "Base": {"type": "object", "properties": {"id": {"type": "string", "format": "uuid"}}, "required": ["id"]},
    "More": {"allOf": [ref("Base"), {"properties": {"$ref": {"type": "string"}}}], "unevaluatedProperties": False},
    "Deep": DEEP,
    "Long": {"type": "string", "enum": [f"value {i}" for i in range(1200)]},
    **{f"L{i}": {"type": "object", "properties": {f"p{j}": ref(f"L{i + 1}") for j in range(8)}} for i in range(8)},
    "L8": {"enum": ["end"]},
}
NASTY: dict[str, dict[str, Any]] = {
    "nothing": arguments(),
    "recursive": arguments(id={"type": "integer"}, requestBody=ref("Node")),
    "mutual": arguments(requestBody=ref("Left")),
    "union": {**arguments(requestBody=ref("Pet")), "required": ["requestBody"]},
    "merged": arguments(requestBody={**ref("More"), "description": "Beside a reference"}),
    "named_ref": arguments(**{"requestBody": {"type": "object", "properties": {"$ref": ref("Base"), "a/b~c": {}}}}),
    "maps": arguments(
        requestBody={"type": "object", "additionalProperties": {"type": "string"}}, free={"type": "object"}
    ),
    "enums": arguments(i={"enum": [1, 2]}, b={"enum": [True]}, n={"enum": ["a", None]}, m={"enum": [1, "a", None]}),
    "nullable": arguments(
        a={"type": ["string", "null"]}, b={"anyOf": [{"type": "null"}, ref("Base")]}, c={"type": "null"}
    ),
    "deep": arguments(requestBody=ref("Deep")),
    "bomb": arguments(requestBody=ref("L0")),
    "long": arguments(mode=ref("Long")),
    "drafts": arguments(
        a={"type": "array", "prefixItems": [{"type": "string"}, ref("Base")], "items": False},
        b={"if": {"type": "string"}, "then": {"minLength": 1}, "not": {"type": "null"}},
        c={
            "type": "object",
            "patternProperties": {"^x-": True},
            "propertyNames": {"maxLength": 3},
            "dependentRequired": {"a": ["b"]},
        },
        d=True,
        e={"type": "array", "contains": {"type": "string"}, "uniqueItems": True},
        f={"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5, "examples": [{"$ref": "#/x"}]},
        g=False,
        h={"type": "string", "contentEncoding": "base64", "const": "{{ x }} ${y}"},
    ),
    "x" * 70: arguments(**{"with-dash": {"type": "string"}}),
}
SET = Toolset(
    api="nasty",
    document=DocumentInfo(title="Nasty", version="1"),
    schemas=SCHEMAS,
    tools=tuple(
        make_tool(name, parameters, response=Response(media_types=("application/json",), schema=ref("Node")))
        for name, parameters in NASTY.items()
    ),
)


def schemas_in(found: Export) -> dict[str, Any]:
    """The input schema of each tool of an export."""
    where = {
        "openai": lambda d: (d["function"]["name"], d["function"]["parameters"]),
        "openai-strict": lambda d: (d["function"]["name"], d["function"]["parameters"]),
        "openai-responses": lambda d: (d["name"], d["parameters"]),
        "anthropic": lambda d: (d["name"], d["input_schema"]),
        "gemini": lambda d: (d["name"], d.get("parameters", {"type": "object"})),
        "mcp": lambda d: (d["name"], d["inputSchema"]),
        "json": lambda d: (d["name"], d["parameters"]),
    }[found.target]
    return dict(map(where, found.data))


WITH_SCHEMAS = [target for target in TARGETS if target != "markdown"]


def test_an_unknown_target_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'gemini'"):
        export(SET, "gemin")


@pytest.mark.parametrize("target", TARGETS)
def test_the_data_is_json_and_the_same_each_time(target: str) -> None:
    first, second = export(SET, target, output_schemas=True), export(SET, target, output_schemas=True)
    assert json.dumps(first.data, allow_nan=False) == json.dumps(second.data, allow_nan=False)
    assert first.notes == second.notes
    assert json.loads(json.dumps(first.data)) == first.data


@pytest.mark.parametrize("target", TARGETS)
def test_the_toolset_is_not_changed(target: str) -> None:
    before = copy.deepcopy(SET.model_dump())
    export(SET, target, output_schemas=True)
    assert SET.model_dump() == before


@pytest.mark.parametrize("target", WITH_SCHEMAS)
def test_every_schema_is_valid_and_stands_alone(target: str) -> None:
    for name, schema in schemas_in(export(SET, target)).items():
        jsonschema_rs.Draft202012Validator(schema, offline=True)
        if target != "gemini":
            jsonschema_rs.meta.validate(schema)
        assert schema["type"] == "object", name


@pytest.mark.parametrize("target", ["openai", "openai-responses", "anthropic", "mcp", "json"])
def test_schemas_are_verbatim_where_the_target_takes_json_schema(target: str) -> None:
    for name, schema in schemas_in(export(SET, target)).items():
        assert schema == SET.tool(name).input_schema()


@pytest.mark.parametrize("target", WITH_SCHEMAS)
def test_names_are_never_changed_and_none_is_missing(target: str) -> None:
    assert list(schemas_in(export(SET, target))) == list(NASTY)


@pytest.mark.parametrize("target", TARGETS)
def test_notes_name_tools_that_exist(target: str) -> None:
    for note in export(SET, target).notes:
        assert note.tool in {"", *NASTY}
        assert note.message
        assert str(note)


def test_openai_wraps_the_function() -> None:
    tool = export(SET, "openai").data[0]
    assert tool == {
        "type": "function",
        "function": {"name": "nothing", "description": "Send nothing", "parameters": NASTY["nothing"]},
    }


def test_openai_responses_turns_strict_off() -> None:
    tool = export(SET, "openai-responses").data[0]
    assert (tool["type"], tool["name"], tool["strict"]) == ("function", "nothing", False)


def test_anthropic_has_three_fields() -> None:
    assert set(export(SET, "anthropic").data[0]) == {"name", "description", "input_schema"}


def test_json_says_where_a_tool_goes() -> None:
    tool = export(SET, "json").data[0]
    assert (tool["method"], tool["path"], tool["group"]) == ("patch", "/x/{id}", "General")
    assert tool["annotations"]["destructiveHint"] is True


def test_mcp_has_every_hint_and_keys_that_follow_the_grammar() -> None:
    label, name = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?", r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    for tool in export(SET, "mcp").data:
        assert tool["title"] == "Send it"
        assert set(tool["annotations"]) == {
            "title",
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        assert "outputSchema" not in tool
        for key in tool["_meta"]:
            assert re.fullmatch(rf"{label}(?:\.{label})*/{name}", key)
            assert "mcp" not in key
        assert tool["_meta"]["toolgen/path"] == "/x/{id}"


def test_mcp_wraps_output_schemas_so_that_their_root_is_an_object() -> None:
    tool = export(SET, "mcp", output_schemas=True).data[0]
    schema = tool["outputSchema"]
    assert schema["type"] == "object"
    assert schema["properties"] == {"result": ref("Node")}
    assert schema["required"] == ["result"]
    validator = jsonschema_rs.Draft202012Validator(schema, offline=True)
    assert validator.is_valid({"result": {"next": {}}})
    assert not validator.is_valid({"result": {"next": 1}})


@pytest.mark.parametrize("schema", [True, False, {"type": "array", "items": {"type": "string"}}])
def test_mcp_wraps_answers_of_any_kind(schema: Any) -> None:
    tool = make_tool("t", arguments(), response=Response(schema=schema))
    found = export(Toolset(api="x", tools=(tool,)), "mcp", output_schemas=True).data[0]["outputSchema"]
    assert found["properties"]["result"] == schema


def test_mcp_marks_deprecated_tools() -> None:
    found = export(Toolset(api="x", tools=(make_tool("t", arguments(), deprecated=True),)), "mcp").data[0]
    assert found["_meta"]["toolgen/deprecated"] is True


def test_a_note_reads_as_a_sentence() -> None:
    assert str(Note("send", "too long", "/properties/a")) == "send /properties/a: too long"
    assert str(Note("", "too many")) == "too many"
    assert Note("a", "b").to_dict() == {"tool": "a", "message": "b", "pointer": ""}


def test_the_data_is_the_same_whatever_the_hash_seed() -> None:
    code = (
        f"import json, runpy; g = runpy.run_path({__file__!r}); e = g['export'];"
        "print(json.dumps([[e(g['SET'], t).data, [n.to_dict() for n in e(g['SET'], t).notes]] for t in g['TARGETS']]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
