"""The digest of a tool covers what decides about its requests, and no prose."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from toolgen.tools.files import load_toolset
from toolgen.tools.model import Toolset

SET: dict[str, Any] = {
    "toolgen": 1,
    "api": "pets",
    "server": {"url": "https://{r}.example", "variables": {"r": {"default": "eu", "enum": ["eu", "us"]}}},
    "securitySchemes": {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "unused": {"type": "http", "scheme": "bearer"},
    },
    "schemas": {
        "Pet": {
            "type": "object",
            "description": "prose",
            "properties": {"description": {"type": "string", "description": "prose"}, "tag": {"$ref": "#/schemas/Tag"}},
        },
        "Tag": {"type": "string", "enum": ["title", "description"], "title": "prose"},
        "Other": {"type": "integer"},
    },
    "tools": [
        {
            "name": "updatePet",
            "description": "prose",
            "group": "pets",
            "endpoint": {"method": "put", "path": "/pets/{id}"},
            "annotations": {
                "title": "Update", "readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True,
            },
            "parameters": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "prose", "examples": ["7"], "minLength": 1},
                    "q": {"allOf": [{"type": "string", "title": "prose"}], "default": "x"},
                    "requestBody": {"$ref": "#/schemas/Pet"},
                },
                "required": ["id"],
                "additionalProperties": False,
            },
            "request": {
                "template": "/pets/{id}?v=1",
                "path": [{"name": "id", "value": "{{ id }}", "style": "simple", "explode": False}],
                "query": [{"name": "q", "value": "{{ q }}", "style": "form", "explode": True}],
                "header": [{"name": "X-Tenant", "value": "${context:tenant}"}],
                "body": {"value": "{{ requestBody }}", "mediaType": "application/json"},
                "security": [["key"]],
                "siblings": ["/pets/mine"],
            },
            "response": {"mediaTypes": ["application/json"], "schema": {"$ref": "#/schemas/Other"}},
            "operation": {"pointer": "/paths/~1pets/put", "operationId": "updatePet", "tags": ["pets"]},
        }
    ],
}  # fmt: skip


def digest(data: dict[str, Any], tmp_path: Path) -> str:
    import json

    file = tmp_path / "set.tools.json"
    file.write_text(json.dumps(data))
    return load_toolset(file).tools[0].digest


def changed(path: str, value: Any) -> dict[str, Any]:
    """The toolset with another value at a place (`tool.` is the tool); `...` removes it."""
    data = copy.deepcopy(SET)
    *steps, last = path.replace("tool.", "tools.0.", 1).split(".")
    here: Any = data
    for step in steps:
        here = here[int(step) if isinstance(here, list) else step]
    if value is ...:
        del here[last]
    else:
        here[int(last) if isinstance(here, list) else last] = value
    return data


COVERED: list[tuple[str, Any]] = [
    ("api", "cats"),
    ("server.url", "https://{r}.other.example"),
    ("server.variables.r.default", "us"),
    ("server.variables.r.enum", ["eu", "us", "cn"]),
    ("server", "https://eu.example"),
    ("securitySchemes.key.name", "X-Other"),
    ("securitySchemes.key.in", "query"),
    ("schemas.Pet.properties.description.type", "integer"),
    ("schemas.Pet.properties.title", {}),
    ("schemas.Pet.required", ["tag"]),
    ("schemas.Tag.enum", ["title"]),
    ("tool.name", "replacePet"),
    ("tool.destructive", True),
    ("tool.destructive", False),
    ("tool.parameters.properties.id.minLength", 2),
    ("tool.parameters.properties.id.type", ["string", "null"]),
    ("tool.parameters.properties.q.allOf", [{"type": "integer"}]),
    ("tool.parameters.properties.q.default", "y"),
    ("tool.parameters.required", ["id", "q"]),
    ("tool.request.method", "PUT"),
    ("tool.request.template", "/pets/{id}?v=2"),
    ("tool.request.template", ...),
    ("tool.request.server", "https://other.example"),
    ("tool.request.path.0.style", "label"),
    ("tool.request.query.0.name", "query"),
    ("tool.request.query.0.value", "x{{ q }}"),
    ("tool.request.query.0.style", "pipeDelimited"),
    ("tool.request.query.0.explode", False),
    ("tool.request.query.0.allowReserved", True),
    ("tool.request.query.0.mediaType", "application/json"),
    ("tool.request.header.0.value", "${context:other}"),
    ("tool.request.cookie", [{"name": "c", "value": "constant"}]),
    ("tool.request.querystring", {"name": "w", "value": "a=1"}),
    ("tool.request.body.mediaType", "application/merge-patch+json"),
    ("tool.request.body.value", ["{{ requestBody }}"]),
    ("tool.request.body.encoding", {"a": {"contentType": "text/plain"}}),
    ("tool.request.security", [["key"], []]),
    ("tool.request.security", []),
    ("tool.request.siblings", ["/pets/mine", "/pets/yours"]),
]
PROSE: list[tuple[str, Any]] = [
    ("document", {"title": "T", "version": "2", "digest": "sha256:" + "0" * 64}),
    ("schemas.Pet.description", "other"),
    ("schemas.Pet.properties.description.description", "other"),
    ("schemas.Pet.properties.description.description", ...),
    ("schemas.Tag.title", "other"),
    ("schemas.Tag.$comment", "other"),
    ("schemas.Tag.deprecated", True),
    ("schemas.Other.type", "string"),
    ("securitySchemes.unused.scheme", "basic"),
    ("securitySchemes.key.description", "other"),
    ("tool.description", "other"),
    ("tool.group", "other"),
    ("tool.deprecated", True),
    ("tool.annotations.title", "other"),
    ("tool.annotations.openWorldHint", False),
    ("tool.parameters.properties.id.description", "other"),
    ("tool.parameters.properties.id.examples", ["8"]),
    ("tool.parameters.properties.q.allOf", [{"type": "string", "title": "other"}]),
    ("tool.operation.pointer", "/paths/~1x/put"),
    ("tool.response.schema", {"type": "string"}),
    ("tool.response.headers", ["Location"]),
]


@pytest.mark.parametrize(("path", "value"), COVERED, ids=str)
def test_every_change_of_what_is_sent_changes_it(path: str, value: Any, tmp_path: Path) -> None:
    assert digest(changed(path, value), tmp_path) != digest(SET, tmp_path)


@pytest.mark.parametrize(("path", "value"), PROSE, ids=str)
def test_prose_does_not(path: str, value: Any, tmp_path: Path) -> None:
    assert digest(changed(path, value), tmp_path) == digest(SET, tmp_path)


def test_it_is_the_same_whatever_the_order_of_keys_and_wherever_it_is_made(tmp_path: Path) -> None:
    def reordered(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reordered(value[key]) for key in reversed(value)}
        return [reordered(item) for item in value] if isinstance(value, list) else value

    assert digest(reordered(SET), tmp_path) == digest(SET, tmp_path)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest(SET, tmp_path))


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_file_keeps_it(suffix: str, tmp_path: Path) -> None:
    import json

    (tmp_path / "first.json").write_text(json.dumps(SET))
    loaded = load_toolset(tmp_path / "first.json")
    loaded.save(tmp_path / f"again.{suffix}")
    assert load_toolset(tmp_path / f"again.{suffix}").tools[0].digest == loaded.tools[0].digest


def test_a_tool_that_moves_to_another_toolset_gets_another_one(tmp_path: Path) -> None:
    import json

    (tmp_path / "a.json").write_text(json.dumps(SET))
    loaded = load_toolset(tmp_path / "a.json")
    before = loaded.tools[0].digest
    Toolset(api="other", server="https://other.example", schemas=loaded.schemas, tools=loaded.tools)
    assert loaded.tools[0].digest != before
