from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError
from small_documents import OBJECT, OK, document, made, parameter

from toolgen.tools.model import Binding, Endpoint, Leaf, RequestTemplate, Tool, Toolset

NODE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}}}
SOURCE: dict[str, Any] = document(
    {
        "/nodes/{id}": {
            "parameters": [parameter("id", "path")],
            "put": {
                "operationId": "putNode",
                "parameters": [parameter("X-Trace", "header"), parameter("sid", "cookie"), parameter("dry run")],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}},
                },
                "responses": {
                    "200": {
                        "description": "",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}},
                    }
                },
            },
        },
        "/plain": {"get": {"operationId": "plain", "responses": OK}},
    },
    components={
        "schemas": {
            "Node": NODE,
            "Answer": {"type": "object", "properties": {"node": {"$ref": "#/components/schemas/Node"}}},
            "Unused": OBJECT,
        }
    },
)


@pytest.fixture
def toolset() -> Toolset:
    return made(SOURCE)


def test_the_input_schema_is_self_contained_and_holds_only_what_it_reaches(toolset: Toolset) -> None:
    schema = toolset.tool("putNode").input_schema()
    jsonschema_rs.meta.validate(schema)
    assert list(schema["$defs"]) == ["Node"]
    validator = jsonschema_rs.Draft202012Validator(schema, offline=True)
    assert validator.is_valid({"id": "1", "requestBody": {"kids": [{"kids": []}]}})
    assert not validator.is_valid({"id": "1", "requestBody": {"kids": [{"kids": [5]}]}})
    assert not validator.is_valid({"id": "1"})
    assert not validator.is_valid({"id": "1", "requestBody": {}, "other": 1})
    assert "$defs" not in toolset.tool("plain").input_schema()


def test_the_root_of_the_input_schema_is_the_callers_own(toolset: Toolset) -> None:
    tool = toolset.tool("putNode")
    before = copy.deepcopy(tool.input_schema())
    changed = tool.input_schema()
    changed["properties"]["id"]["type"] = "integer"
    changed["required"].append("x")
    del changed["$defs"]
    changed["title"] = "mine"
    assert tool.input_schema() == before
    assert toolset == made(SOURCE)


def test_a_schema_is_plain_json_in_the_same_order_each_time(toolset: Toolset) -> None:
    assert json.dumps(toolset.tool("putNode").input_schema()) == json.dumps(made(SOURCE).tool("putNode").input_schema())


def test_the_root_of_every_input_is_a_plain_object(toolset: Toolset) -> None:
    assert toolset.tool("plain").input_schema() == {"type": "object", "properties": {}, "additionalProperties": False}
    assert set(toolset.tool("putNode").input_schema()) == {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "$defs",
    }


def test_the_root_of_an_output_schema_is_never_a_mere_reference(toolset: Toolset) -> None:
    tool = toolset.tool("putNode")
    assert tool.output_schema() == {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
        },
    }
    raw = tool.output_schema(root=False)
    assert isinstance(raw, dict)
    assert raw["$ref"] == "#/$defs/Answer"
    assert set(raw["$defs"]) == {"Answer", "Node"}
    assert toolset.tool("plain").output_schema() is None


def test_bindings_say_which_wire_name_and_location_each_argument_fills(toolset: Toolset) -> None:
    assert set(toolset.tool("putNode").bindings) == {
        Binding(argument="id", location="path", name="id"),
        Binding(argument="X-Trace", location="header", name="X-Trace"),
        Binding(argument="sid", location="cookie", name="sid"),
        Binding(argument="dry_run", location="query", name="dry run"),
        Binding(argument="requestBody", location="body", name=""),
    }


def test_only_leaves_that_are_exactly_one_argument_are_bindings(toolset: Toolset) -> None:
    request = RequestTemplate(
        query=(
            Leaf(name="a", value="{{ a }}"),
            Leaf(name="b", value="x-{{ b }}"),
            Leaf(name="c", value="constant"),
            Leaf(name="d", value="{{ d | upper }}"),
        ),
        querystring=Leaf(name="whole", value="{{ arguments['e-f'] }}"),
    )
    tool = toolset.tool("plain").model_copy(update={"request": request})
    assert [(b.argument, b.location, b.name) for b in tool.bindings] == [
        ("a", "query", "a"),
        ("e-f", "querystring", "whole"),
    ]


def test_a_tool_is_found_by_its_name_and_a_wrong_one_names_the_nearest(toolset: Toolset) -> None:
    assert toolset.tool("plain").endpoint.key == "get:/plain"
    with pytest.raises(KeyError, match="no tool 'putNodes' in 'small-api'; did you mean 'putNode'"):
        toolset.tool("putNodes")
    with pytest.raises(KeyError) as caught:
        toolset.tool("zzz")
    assert "did you mean" not in str(caught.value)


def test_models_are_frozen_and_closed(toolset: Toolset) -> None:
    with pytest.raises(ValidationError):
        toolset.tools[0].name = "x"
    with pytest.raises(ValidationError, match="Extra inputs"):
        Endpoint(method="get", path="/", server="x")  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        Endpoint(method="get", path=5)  # type: ignore[arg-type]


def test_toolsets_are_equal_when_they_declare_the_same(toolset: Toolset) -> None:
    other = made(SOURCE)
    assert toolset == other
    assert toolset.tool("plain").input_schema()  # filling caches changes nothing
    assert toolset.tool("plain") == other.tool("plain")
    assert toolset != toolset.model_copy(update={"api": "other"})
    assert toolset.tool("plain") != "plain"


def test_the_pointer_leads_to_the_operation_in_the_document(toolset: Toolset) -> None:
    here: Any = SOURCE
    for token in toolset.tool("putNode").pointer.split("/")[1:]:
        here = here[token.replace("~1", "/").replace("~0", "~")]
    assert here["operationId"] == "putNode"


def test_a_tool_on_its_own_has_no_definitions_to_point_to() -> None:
    alone = made(SOURCE).tool("plain").model_dump(by_alias=True)
    tool = Tool.model_validate(alone)
    assert tool.input_schema()["properties"] == {}
