from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

import toolgen as package


@pytest.fixture
def toolset(toolgen):
    assert toolgen("generate", "petstore.yaml").exit_code == 0
    return "petstore.tools.yaml"


def change(path: str, **request: object) -> None:
    """Edit the request of updatePet by hand."""
    data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    tool = next(tool for tool in data["tools"] if tool["name"] == "updatePet")
    tool["request"].update(request)
    Path(path).write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


# all tools


def test_all_tools_are_listed_by_group(toolgen, toolset):
    lines = toolgen("show", toolset).stdout.splitlines()
    assert lines[0] == "petstore: 10 tools of Petstore 1.0.0"
    assert lines.index("pets") < lines.index("orders")
    rows = [line.split(maxsplit=4) for line in lines]
    assert ["createPet", "POST", "/pets", "2", "write"] in rows
    assert ["deletePet", "DELETE", "/pets/{petId}", "1", "write, destructive"] in rows
    assert ["listOrdersOfOwner", "GET", "/owners/{ownerId}/orders", "3", "read"] in rows
    assert lines[-1] == "server  https://petstore.example/v1"


def test_a_tool_a_person_marked_is_destructive(toolgen, toolset):
    path = Path(toolset)
    path.write_text(
        path.read_text(encoding="utf-8").replace("- name: createPet\n", "- name: createPet\n  destructive: true\n")
    )
    text = toolgen("show", toolset).stdout
    assert re.search(r"createPet +POST /pets +2 +write, destructive\n", text)
    assert "edited  by hand since it was generated" in text


def test_all_tools_as_json(toolgen, toolset):
    data = json.loads(toolgen("show", toolset, "--format", "json").stdout)
    assert data["servers"] == ["https://petstore.example/v1"]
    assert data["edited"] is False
    tool = next(tool for tool in data["tools"] if tool["name"] == "deletePet")
    assert tool == {
        "name": "deletePet",
        "group": "pets",
        "method": "delete",
        "path": "/pets/{petId}",
        "read": False,
        "destructive": True,
        "deprecated": False,
        "otherOrigin": False,
        "arguments": ["petId"],
        "required": ["petId"],
    }


# one tool


def test_a_tool_is_shown_as_a_model_sees_it_and_with_its_request(toolgen, toolset):
    text = toolgen("show", toolset, "updatePet").stdout
    tool = package.load_toolset(toolset).tool("updatePet")
    schema = text.partition("Input schema\n")[2]
    assert json.loads(schema) == tool.input_schema()
    assert "PATCH https://petstore.example/v1/pets/{petId}" in text
    assert re.search(r"path +petId +argument petId, required\n", text)
    assert re.search(r"header +If-Match +argument If-Match\n", text)
    assert re.search(r"body +argument requestBody, required\n", text)
    assert re.search(r"media type +application/merge-patch\+json\n", text)
    assert re.search(r"security +bearerAuth \(http bearer\)\n", text)
    assert re.search(r"refused +values that lead to /pets/mine, /pets/\{petId\}/photos\n", text)
    assert re.search(r"answers +application/json: Pet\n", text)


def test_security_alternatives_are_named(toolgen, toolset):
    text = toolgen("show", toolset, "listOrdersOfOwner").stdout
    assert "bearerAuth (http bearer) or partnerKey (header X-Partner-Key)" in text


def test_one_tool_as_json(toolgen, toolset):
    data = json.loads(toolgen("show", toolset, "updatePet", "--format", "json").stdout)
    tool = package.load_toolset(toolset).tool("updatePet")
    assert data["inputSchema"] == tool.input_schema()
    assert data["request"]["method"] == "PATCH"
    assert data["request"]["values"][0] == {"in": "path", "name": "petId", "argument": "petId"}
    assert data["request"]["refusedPaths"] == ["/pets/mine", "/pets/{petId}/photos"]
    assert data["request"]["security"] == [["bearerAuth"]]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_constant_a_person_put_into_a_header_is_not_shown(toolgen, toolset, form):
    tool = package.load_toolset(toolset).tool("updatePet")
    match = {"name": "If-Match", "value": tool.request.header[0].value}
    change(toolset, header=[match, {"name": "X-Key", "value": "s3cret"}], query=[{"name": "tenant", "value": "acme"}])
    result = toolgen("show", toolset, "updatePet", "--format", form)
    assert result.exit_code == 0, result.output
    assert "X-Key" in result.stdout
    assert "acme" in result.stdout
    assert "s3cret" not in result.output


def test_a_servers_variables_and_another_origin_are_shown(toolgen, toolset):
    server = {"url": "https://{region}.example/v1", "variables": {"region": {"default": "eu", "enum": ["eu", "us"]}}}
    change(toolset, server=server)
    text = toolgen("show", toolset, "updatePet").stdout
    assert "PATCH https://{region}.example/v1/pets/{petId}" in text
    assert "{region} is eu (one of eu, us)" in text
    assert "not that of the toolset, https://petstore.example/v1" in text


def test_an_unknown_tool_names_the_nearest(toolgen, toolset):
    result = toolgen("show", toolset, "updatPet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean 'updatePet'?" in result.stderr


# for a target


def test_a_target_gets_all_tools_or_one(toolgen, toolset):
    all_of_them = json.loads(toolgen("show", toolset, "--target", "anthropic").stdout)
    one = json.loads(toolgen("show", toolset, "createPet", "--target", "anthropic").stdout)
    assert one == next(tool for tool in all_of_them if tool["name"] == "createPet")
    assert toolgen("show", toolset, "--target", "markdown").stdout.startswith("# Petstore")


def test_notes_of_a_target_stay_off_stdout(toolgen, toolset):
    result = toolgen("show", toolset, "createPet", "--target", "gemini")
    assert json.loads(result.stdout)["name"] == "createPet"
    assert "note: createPet" in result.stderr
    data = json.loads(toolgen("show", toolset, "--target", "gemini", "--format", "json").stdout)
    assert data["target"] == "gemini"
    assert data["notes"]


def test_an_unknown_target_is_wrong_usage(toolgen, toolset):
    assert toolgen("show", toolset, "--target", "openia").exit_code == 2


# what is no toolset


@pytest.mark.parametrize("text", ["", "[]", "toolgen: 2\napi: x\n", "toolgen: 1\napi: x\ntoolz: []\n"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_file_that_is_no_toolset_is_a_clean_error(toolgen, folder, text, form):
    (folder / "x.yaml").write_text(text, encoding="utf-8")
    result = toolgen("show", "x.yaml", "--format", form)
    assert result.exit_code == 1
    if form == "json":
        assert json.loads(result.stdout)["error"]["message"]
    else:
        assert (result.stdout, result.stderr[:7]) == ("", "error: ")
