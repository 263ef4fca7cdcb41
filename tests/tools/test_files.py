from __future__ import annotations

import copy
import errno
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolgen.errors import SourceError, ToolsetEdited, ToolsetError
from toolgen.openapi.source.yaml12 import load_yaml
from toolgen.tools import files
from toolgen.tools.files import (
    from_dict,
    guard_edits,
    is_edited,
    layout,
    load_toolset,
    render,
    save_toolset,
    store,
    to_dict,
    would_change,
)
from toolgen.tools.files.form import digest, stamped
from toolgen.tools.files.layout import render_json, render_yaml
from toolgen.tools.files.places import parts, written
from toolgen.tools.files.published import published_schema, published_text
from toolgen.tools.model import (
    Annotations,
    Body,
    DocumentInfo,
    Encoding,
    Endpoint,
    Leaf,
    Provenance,
    RequestTemplate,
    Response,
    Server,
    ServerVariable,
    Tool,
    Toolset,
)
from toolgen.tools.report import Report

HINTS = Annotations(
    title="Create a pet", read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)


def tool(name: str = "createPet", **changes: Any) -> Tool:
    fields: dict[str, Any] = {
        "name": name,
        "description": "Create a pet.",
        "group": "pets",
        "endpoint": Endpoint(method="post", path="/pets"),
        "annotations": HINTS,
        "parameters": {
            "type": "object",
            "properties": {"dryRun": {"type": "boolean"}, "requestBody": {"$ref": "#/$defs/NewPet"}},
            "required": ["requestBody"],
            "additionalProperties": False,
        },
        "request": RequestTemplate(
            query=(Leaf(name="dry_run", value="{{ dryRun }}", style="form", explode=True),),
            body=Body(value="{{ requestBody }}", media_type="application/json"),
            security=(("bearerAuth",),),
        ),
        "response": Response(media_types=("application/json",), schema_={"$ref": "#/$defs/NewPet"}),
        "operation": Provenance(pointer="/paths/~1pets/post", operation_id="createPet", tags=("pets",)),
    }
    return Tool(**{**fields, **changes})


def toolset(*tools: Tool, **changes: Any) -> Toolset:
    fields: dict[str, Any] = {
        "api": "petstore",
        "document": DocumentInfo(title="Petstore", version="1.0.0", digest="sha256:" + "0" * 64),
        "server": "https://petstore.example/v1",
        "security_schemes": {"bearerAuth": {"type": "http", "scheme": "bearer"}},
        "schemas": {"NewPet": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "tools": tools or (tool(),),
    }
    return Toolset(**{**fields, **changes})


def everything() -> Toolset:
    """A toolset with every field away from its default."""
    request = RequestTemplate(
        method="pOsT",
        template="/pets/{id}?a=b",
        server=Server(url="https://{region}.example", variables={"region": ServerVariable(default="eu", enum=("eu",))}),
        path=(Leaf(name="id", value="{{ id }}", style="simple", explode=False),),
        query=(Leaf(name="q", value=["{{ q }}", 1, None], style="form", explode=True, allow_reserved=True),),
        header=(Leaf(name="X-Filter", value="{{ filter }}", media_type="application/json"),),
        cookie=(Leaf(name="c", value="constant"),),
        body=Body(
            value={"file": "{{ requestBody }}"},
            media_type="multipart/form-data",
            alternatives=("application/json",),
            encoding={
                "file": Encoding(
                    content_type="image/png, image/jpeg",
                    headers={"X-A": {"schema": {"$ref": "#/$defs/a~1b"}}},
                    binary=True,
                )
            },
        ),
        security=((), ("bearerAuth",)),
        siblings=("/pets/mine",),
    )
    properties = {"id": True, "q": {}, "filter": {}, "requestBody": {"$ref": "#/$defs/a.b"}}
    one = tool(
        "all",
        deprecated=True,
        destructive=False,
        endpoint=Endpoint(method="post", path="/pets/{id}"),
        parameters={"type": "object", "properties": properties},
        request=request,
        response=Response(media_types=("text/csv",), schema_=False, headers=("Location",)),
    )
    return toolset(one, tool(), schemas={"a.b": {"type": ["string", "null"]}, "NewPet": True})


def edit(path: Path, change: Any) -> None:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ToolsetError) as caught:
        load_toolset(path)
    assert all(problem.file == str(path) for problem in caught.value.problems)
    return [str(replace(problem, file="")) for problem in caught.value.problems]


# the file form


def test_the_file_form_has_the_keys_of_the_contract_in_their_order() -> None:
    data = stamped(to_dict(toolset()))
    assert list(data) == [
        "toolgen",
        "api",
        "document",
        "generated",
        "server",
        "securitySchemes",
        "schemas",
        "tools",
    ]
    assert data["tools"] == [
        {
            "name": "createPet",
            "description": "Create a pet.",
            "group": "pets",
            "endpoint": {"method": "post", "path": "/pets"},
            "annotations": {
                "title": "Create a pet",
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": True,
            },
            "parameters": {
                "type": "object",
                "properties": {"dryRun": {"type": "boolean"}, "requestBody": {"$ref": "#/schemas/NewPet"}},
                "required": ["requestBody"],
                "additionalProperties": False,
            },
            "request": {
                "query": [{"name": "dry_run", "value": "{{ dryRun }}", "style": "form", "explode": True}],
                "body": {"value": "{{ requestBody }}", "mediaType": "application/json"},
                "security": [["bearerAuth"]],
            },
            "response": {"mediaTypes": ["application/json"], "schema": {"$ref": "#/schemas/NewPet"}},
            "operation": {"pointer": "/paths/~1pets/post", "operationId": "createPet", "tags": ["pets"]},
        }
    ]
    assert list(to_dict(everything())["tools"][0]) == [
        "name",
        "description",
        "group",
        "endpoint",
        "annotations",
        "deprecated",
        "destructive",
        "parameters",
        "request",
        "response",
        "operation",
    ]


def test_the_group_is_written_even_when_it_is_the_default_and_null_values_of_leaves_are_kept() -> None:
    one = tool(group="General", request=RequestTemplate(query=(Leaf(name="a", value=None),)))
    data = to_dict(toolset(one))["tools"][0]
    assert data["group"] == "General"
    assert data["request"] == {"query": [{"name": "a", "value": None}]}
    assert to_dict(Toolset(api="a")) == {"toolgen": 1, "api": "a", "tools": []}


def test_only_references_where_schemas_stand_are_translated() -> None:
    ref = {"$ref": "#/$defs/a~1b~0c"}
    in_file = {"$ref": "#/schemas/a~1b~0c"}
    schema = {
        "properties": {"$ref": ref, "enum": ref, "default": {"not": ref}},
        "enum": [ref],
        "const": ref,
        "default": {"not": ref},
        "examples": [ref],
        "example": ref,
        "x-note": {"a": ref},
        "items": ref,
        "allOf": [ref, {"prefixItems": [ref]}],
        "$defs": {"inner": ref},
        "additionalProperties": ref,
    }
    made = toolset(tool(parameters=schema), schemas={"$ref": schema, "a/b~c": {}})
    expected = {
        **schema,
        "properties": {"$ref": in_file, "enum": in_file, "default": {"not": in_file}},
        "items": in_file,
        "allOf": [in_file, {"prefixItems": [in_file]}],
        "$defs": {"inner": in_file},
        "additionalProperties": in_file,
    }
    data = to_dict(made)
    assert data["schemas"]["$ref"] == expected
    assert data["tools"][0]["parameters"] == expected
    assert from_dict(data) == made


def test_constants_of_a_request_are_never_taken_for_schemas() -> None:
    header = to_dict(everything())["tools"][0]["request"]["body"]["encoding"]["file"]["headers"]["X-A"]
    assert header == {"schema": {"$ref": "#/$defs/a~1b"}}


def test_both_forms_are_copies_that_leave_their_origin_alone() -> None:
    made = everything()
    data = to_dict(made)
    kept = copy.deepcopy(data)
    back = from_dict(data)
    assert data == kept
    data["schemas"]["NewPet"] = data["tools"][0]["parameters"]["properties"]["q"]["type"] = 1
    assert to_dict(made) == to_dict(back) == kept


def test_equality_is_about_what_is_declared_and_not_about_reports_or_caches() -> None:
    generated = toolset()
    generated._report = Report()
    loaded = from_dict(to_dict(generated))
    assert generated.tool("createPet").bindings
    assert loaded == generated
    assert loaded != toolset(tool(description="Another."))
    assert tool() != generated


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
refs = st.sampled_from(["#/$defs/NewPet", "#/$defs/a~1b", "#/$defs/x y", "other"]).map(lambda ref: {"$ref": ref})
schemas = st.recursive(
    refs | st.booleans() | st.fixed_dictionaries({}, optional={"const": refs, "enum": st.lists(refs), "x": refs}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "properties": st.dictionaries(st.sampled_from(["$ref", "items", "enum", "a"]), inner),
            "default": json_values,
        },
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), schemas, max_size=3), schemas.filter(lambda s: isinstance(s, dict)), json_values)
def test_every_toolset_survives_its_file_form(shared: dict[str, Any], parameters: Any, value: Any) -> None:
    leaf = Leaf(name="x", value=value)
    made = toolset(tool(parameters=parameters, request=RequestTemplate(query=(leaf,))), tool("b"), schemas=shared)
    data = to_dict(made)
    assert from_dict(data) == made
    assert to_dict(from_dict(data)) == data
    assert from_dict(load_yaml(render(made, json=False).decode(), "", nesting=100, nodes=10_000)) == from_dict(
        stamped(data)
    )
    assert json.loads(render(made, json=True)) == stamped(data)


def test_a_toolset_with_every_field_survives_both_formats(tmp_path: Path) -> None:
    made = everything()
    for name in ("a.yaml", "a.json"):
        save_toolset(made, tmp_path / name)
        data = yaml.safe_load((tmp_path / name).read_text(encoding="utf-8"))
        assert from_dict(data) == made.model_copy(update={"generated": digest(data)})


# the bytes


@given(json_values)
@example({"a": "\x85", "b": "\u2028x", "c": " x\n", "d": "x\n\n", "e": "\n", "f": "\ufeff", "g": "\t\n", "h": "a\r\nb"})
@example(
    ["- x", "? y", ": z", "%a", "@a", "`a", "&a", "*a", "!a", "|", ">", "'", '"', "#", "a #b", "a: b", "---", "..."]
)
@example(["x" * 5000, {"k" * 300: "v"}, {"a\nb": 1}, "\U0001f600\n", "\x00\x7f\ufffe\uffff", "a \nb", "", [], {}])
@example([1e22, 1e-7, -0.0, 5e-324, 1.5e300, 10**40, -1, True, None])
def test_any_data_reads_back_the_same_by_yaml_1_1_and_by_yaml_1_2(data: Any) -> None:
    text = render_yaml({"data": data}).decode()
    ours = load_yaml(text, "", nesting=100, nodes=10_000)
    stock = yaml.safe_load(text)
    wanted = json.dumps({"data": data})
    assert json.dumps(ours) == wanted
    assert json.dumps(stock) == wanted


@given(
    st.from_regex(
        r"[-+]?[0-9._:xobeETZ+-]{1,9}|[~yYnN]|(?i:yes|no|on|off|true|false|null|\.inf|\.nan|<<|=)", fullmatch=True
    )
)
@example("no")
@example("on")
@example("12:30")
@example("1e3")
@example("0o17")
@example("0x1f")
@example("1_000")
@example("017")
@example("2020-01-01")
@example("2001-12-14 21:59:43")
def test_text_that_looks_like_something_else_stays_text(text: str) -> None:
    written_text = render_yaml({text: text}).decode()
    for read in (yaml.safe_load(written_text), load_yaml(written_text, "", nesting=9, nodes=99)):
        assert read == {text: text}


@pytest.mark.parametrize("word", ["no", "on", "y", "12:30", "1e3", "0o17", "0x1", "2020-01-01", "1.0", "~", ""])
def test_ambiguous_text_is_quoted(word: str) -> None:
    assert render_yaml({"a": word}) == f"a: '{word}'\n".encode()


@given(json_values)
def test_json_reads_back_the_same(data: Any) -> None:
    text = render_json(data).decode()
    assert text.endswith("\n")
    assert json.dumps(json.loads(text)) == json.dumps(data)


def test_json_is_indented_and_keeps_letters_of_every_script() -> None:
    assert render_json({"a": ["ä", 1]}).decode() == '{\n  "a": [\n    "ä",\n    1\n  ]\n}\n'


def test_the_yaml_is_the_one_a_reviewer_reads() -> None:
    made = toolset(tool(description="Create a pet.\n\nNames need not be unique."))
    assert render(made, json=False).decode() == (Path(__file__).parent / "golden.tools.yaml").read_text("utf-8")


def test_yaml_has_no_anchors_and_folds_no_lines() -> None:
    shared = {"type": "string", "description": "word " * 100 + "end"}
    text = render_yaml({"a": shared, "b": shared, "c": [shared]}).decode()
    assert "&" not in text
    assert "*" not in text
    assert f"  description: {'word ' * 100}end\n" in text


def test_the_same_toolset_gives_the_same_bytes() -> None:
    for as_json in (True, False):
        assert render(everything(), json=as_json) == render(everything(), json=as_json)
        assert render(from_dict(to_dict(everything())), json=as_json) == render(everything(), json=as_json)


def test_text_of_several_lines_is_a_block_however_short_it_is() -> None:
    assert render_yaml({"a": {"b": "x\ny\n"}}).decode() == "a:\n  b: |\n    x\n    y\n"


def test_without_libyaml_the_data_reads_back_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeDumper", raising=False)
    layout._dumper.cache_clear()
    data = ["\x85", "a\n\x85", "\u2028:", "a\rb", "\u2029\n", "no", "x" * 300, "a \nb", "a: b\n", {"k": ["\n"]}]
    try:
        text = render_yaml({"data": data}).decode()
    finally:
        layout._dumper.cache_clear()
    assert yaml.safe_load(text) == {"data": data}
    assert f"- {'x' * 300}\n" in text


def test_json_takes_schemas_nested_as_deep_as_a_document_can_be(tmp_path: Path) -> None:
    schema: Any = {}
    for _ in range(190):
        schema = {"items": schema}
    schema["$ref"] = "#/$defs/Deep"
    made = toolset(schemas={"Deep": schema, "NewPet": {}})
    save_toolset(made, tmp_path / "a.json")
    assert load_toolset(tmp_path / "a.json").schemas == made.schemas


def test_half_a_surrogate_pair_is_refused_with_its_place(tmp_path: Path) -> None:
    made = toolset(tool(), tool("other", description="\ud83d"))
    for name in ("a.json", "a.yaml"):
        with pytest.raises(ToolsetError) as caught:
            save_toolset(made, tmp_path / name)
        assert [problem.where for problem in caught.value.problems] == ["tools[1].description"]
    assert list(tmp_path.iterdir()) == []


def test_what_json_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolsetError, match="cannot be written"):
        save_toolset(toolset(schemas={"NewPet": {"const": float("nan")}}), tmp_path / "a.yaml")
    assert list(tmp_path.iterdir()) == []


# saving


@pytest.mark.parametrize(("name", "is_json"), [("a.json", True), ("a.JSON", True), ("a.yaml", False), ("a", False)])
def test_the_name_says_the_format(tmp_path: Path, name: str, is_json: bool) -> None:
    save_toolset(toolset(), tmp_path / name)
    assert (tmp_path / name).read_bytes() == render(toolset(), json=is_json)


def test_a_large_toolset_is_json_unless_its_name_says_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(render(toolset(), json=False))
    monkeypatch.setattr(store, "MOST_YAML", size)
    save_toolset(toolset(), tmp_path / "fits")
    monkeypatch.setattr(store, "MOST_YAML", size - 1)
    for name in ("a.tools", "a.yml", "a.yaml"):
        save_toolset(toolset(), tmp_path / name)
    assert (tmp_path / "fits").read_bytes() == render(toolset(), json=False)
    assert (tmp_path / "a.tools").read_bytes() == render(toolset(), json=True)
    assert (tmp_path / "a.yml").read_bytes() == (tmp_path / "a.yaml").read_bytes() == render(toolset(), json=False)


def test_a_huge_toolset_is_not_rendered_as_yaml_to_find_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_YAML", 10)
    monkeypatch.setattr("toolgen.tools.files.layout.render_yaml", lambda data: pytest.fail("rendered"))
    save_toolset(toolset(), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == render(toolset(), json=True)


@pytest.mark.parametrize("call", ["replace", "fsync", "chmod"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("old", encoding="utf-8")

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(ToolsetError, match="No space left on device"):
        save_toolset(toolset(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.yaml"]
    assert path.read_text(encoding="utf-8") == "old"


def test_an_interrupted_save_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_toolset(toolset(), tmp_path / "a.yaml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_permissions_are_kept_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.touch()
    old.chmod(0o640)
    before = os.umask(0o027)
    try:
        save_toolset(toolset(), old)
        save_toolset(toolset(), new)
    finally:
        os.umask(before)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert stat.S_IMODE(new.stat().st_mode) == 0o640
    old.chmod(0o604)
    save_toolset(toolset(), old)
    assert stat.S_IMODE(old.stat().st_mode) == 0o604


@pytest.mark.parametrize("exists", [True, False])
def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a.yaml", tmp_path / "link.yaml"
    if exists:
        target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    save_toolset(toolset(), link)
    assert link.is_symlink()
    assert target.read_bytes() == render(toolset(), json=False)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolsetError, match=r"there is no folder .*missing"):
        save_toolset(toolset(), tmp_path / "missing" / "a.yaml")
    with pytest.raises(ToolsetError, match="is a directory"):
        save_toolset(toolset(), tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ToolsetError, match="not a regular file"):
        save_toolset(toolset(), tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ToolsetError, match="not a regular file"):
        save_toolset(toolset(), tmp_path / "loop")
    (tmp_path / "a.yaml").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ToolsetError, match="read-only"):
        save_toolset(toolset(), tmp_path / "a.yaml")


# loading


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    for name in ("a.yaml", "a.json"):
        toolset().save(tmp_path / name)
        loaded = load_toolset(str(tmp_path / name))
        assert loaded == toolset(generated=loaded.generated)
        assert loaded.generated.startswith("sha256:")
        assert loaded.report is None
        assert loaded.tool("createPet").input_schema()["$defs"] == loaded.schemas
        assert not is_edited(loaded)


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (2, "made by a newer toolgen"),
        (True, "no format version"),
        ("1", "no format version"),
        (0, "no format version"),
        (None, "no format version"),
    ],
)
def test_another_format_version_is_refused_before_anything_else(tmp_path: Path, version: Any, says: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(json.dumps({"toolgen": version, "nonsense": 1}), encoding="utf-8")
    (problem,) = problems_of(path)
    assert says in problem
    assert "nonsense" not in problem


def test_a_file_that_is_no_toolset_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("openapi: 3.1.0", encoding="utf-8")
    (problem,) = problems_of(path)
    assert "this is no toolset" in problem
    path.write_text("- 1", encoding="utf-8")
    with pytest.raises(ToolsetError, match="not a toolset"):
        load_toolset(path)
    path.write_text("a: 1\na: 2", encoding="utf-8")
    with pytest.raises(SourceError, match="duplicate key"):
        load_toolset(path)
    with pytest.raises(SourceError, match="there is no file"):
        load_toolset(tmp_path / "b.yaml")


def test_every_fault_of_structure_is_named_in_plain_words_and_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    save_toolset(toolset(), path)

    def change(data: dict[str, Any]) -> None:
        one = data["tools"][0]
        one["request"]["query"][0]["stlye"] = one["request"]["query"][0].pop("style")
        one["request"]["query"][0]["media_type"] = "a/b"
        one["request"]["server"] = {"urll": "https://secret.example"}
        one["request"]["body"]["encoding"] = {"path": {"contenttype": "a/b"}}
        one["deprecated"] = "yes"
        one["response"]["schema"] = "secret"
        del one["name"]
        data["server"] = 5
        data["document"]["version"] = 1.5
        data["tools"].append(7)

    edit(path, change)
    found = problems_of(path)
    line = path.read_text(encoding="utf-8").split("\n").index("      stlye: form") + 1
    assert [problem for problem in found if "stlye" in problem] == [
        f"tools[0].request.query[0].stlye:{line}: unknown key 'stlye'; did you mean 'style'?"
    ]
    without_lines = [":".join(p.split(":")[0:1] + p.split(":")[2:]) for p in found]
    assert without_lines == [
        "document.version: must be text, not a number (quote it)",
        "server: must be text or a mapping, not a number (quote it)",
        "tools[0]: the key 'name' is missing",
        "tools[0].deprecated: must be true or false, not text",
        "tools[0].request.server: the key 'url' is missing",
        "tools[0].request.server.urll: unknown key 'urll'; did you mean 'url'?",
        "tools[0].request.query[0].stlye: unknown key 'stlye'; did you mean 'style'?",
        "tools[0].request.query[0].media_type: unknown key 'media_type'; did you mean 'mediaType'?",
        "tools[0].request.body.encoding.path.contenttype: unknown key 'contenttype'; did you mean 'contentType'?",
        "tools[0].response.schema: must be a mapping or true or false, not text",
        "tools[1]: must be a mapping, not a number",
    ]
    assert "secret" not in "".join(found)


def test_faults_of_sense_are_named_with_file_place_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    save_toolset(toolset(), path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("{{ dryRun }}", "{{ dryrun }}"), encoding="utf-8")
    with pytest.raises(ToolsetError) as caught:
        load_toolset(path)
    first = caught.value.problems[0]
    assert (first.file, first.where) == (str(path), "tools[0].request.query[0].value")
    assert str(first).startswith(f"{path}:{first.line}: tools[0].request.query[0].value: ")
    assert first.line == text.split("\n").index("    query:") + 2
    assert first.message == "the argument 'dryrun' is not declared; did you mean 'dryRun'?"
    assert caught.value.message == f"{path} is not a valid toolset: 2 problems"


def test_a_fault_repeated_a_thousand_times_is_cut_short_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    data = to_dict(toolset(*(tool(f"t{n}") for n in range(1000))))
    for one in data["tools"]:
        one["grup"] = "x"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ToolsetError, match="1000 problems") as caught:
        load_toolset(path)
    assert len(caught.value.problems) == 51
    assert caught.value.problems[-1].message == "and 950 more problems"


def test_a_file_larger_than_a_document_may_be_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    from toolgen.openapi import source

    original = source.Loader.__init__

    def spy(self: Any, **options: Any) -> None:
        seen.append(options["limits"])
        original(self, **options)

    monkeypatch.setattr(source.Loader, "__init__", spy)
    save_toolset(toolset(), tmp_path / "a.yaml")
    load_toolset(tmp_path / "a.yaml")
    assert seen[0].bytes >= 8 * source.Limits().bytes


@given(st.lists(st.integers(0, 99) | st.text(min_size=1)))
def test_places_are_read_back_as_they_were_written(place: list[str | int]) -> None:
    assert parts(written(tuple(place))) == tuple(place)


# edits


def test_an_edit_is_noticed_and_layout_and_comments_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    save_toolset(toolset(), path)
    path.write_text("# checked by me\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    edit(path, lambda data: None)
    guard_edits(path, toolset())
    assert not is_edited(load_toolset(path))
    edit(path, lambda data: data["tools"][0].update(destructive=True))
    assert is_edited(load_toolset(path))
    with pytest.raises(ToolsetEdited):
        guard_edits(path, toolset())


def test_an_edit_stays_noticed_when_the_loaded_toolset_is_saved_again(tmp_path: Path) -> None:
    path, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    save_toolset(toolset(), path)
    edit(path, lambda data: data["tools"][0].update(description="Mine."))
    load_toolset(path).save(other)
    with pytest.raises(ToolsetEdited):
        guard_edits(other, toolset())


def test_the_edits_are_shown_by_tool_and_leaf(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    header = RequestTemplate(
        header=(Leaf(name="X-Key", value="a"),), query=(Leaf(name="a", value=1), Leaf(name="b", value=2))
    )
    made = toolset(
        tool(), tool("second"), tool("third", request=header, parameters={"type": "object", "properties": {}})
    )
    save_toolset(made, path)

    def change(data: dict[str, Any]) -> None:
        first, _, third = data["tools"]
        first["description"] = "Mine."
        first["parameters"]["required"] = []
        first["request"]["query"][0]["explode"] = 1
        del first["operation"]
        third["request"]["header"][0]["value"] = "secret"
        third["request"]["query"].reverse()
        third["destructive"] = True
        data["tools"] = [first, third]
        data["schemas"]["a.b"] = {}

    edit(path, change)
    with pytest.raises(ToolsetEdited) as caught:
        guard_edits(path, made)
    assert [str(problem) for problem in caught.value.problems] == [
        "schemas['a.b']: added: {}",
        "tools[createPet].description: 'Create a pet.' -> 'Mine.'",
        'tools[createPet].parameters.required: ["requestBody"] -> []',
        "tools[createPet].request.query[dry_run].explode: true -> 1",
        "tools[createPet].operation: removed",
        "tools[second]: removed",
        "tools[third].request.query: in another order",
        "tools[third].request.header[X-Key].value: changed",
        "tools[third].destructive: added: true",
    ]
    assert "--force" in caught.value.message
    assert "document changed" not in caught.value.message
    assert "secret" not in str(caught.value)


def test_many_edits_are_counted_and_a_changed_document_is_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    made = toolset(*(tool(f"t{n}") for n in range(30)))
    save_toolset(made, path)
    changed = [tool(f"t{n}", description="New.") for n in range(30)]
    new = made.model_copy(update={"tools": tuple(changed), "document": DocumentInfo(digest="sha256:" + "1" * 64)})
    guard_edits(path, new)
    edit(path, lambda data: data["tools"][0].update(group="mine"))
    with pytest.raises(ToolsetEdited, match="the document changed too") as caught:
        guard_edits(path, new)
    shown = [problem.message for problem in caught.value.problems]
    assert len(shown) == 21
    assert shown[-1] == "and 13 more"


def test_a_file_without_its_digest_counts_as_edited(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    save_toolset(toolset(), path)
    edit(path, lambda data: data.pop("generated"))
    with pytest.raises(ToolsetEdited):
        guard_edits(path, toolset())


@pytest.mark.parametrize(
    "content", [b"openapi: 3.1.0", b"toolgen: 2", b"- a", b"a: [", b"\xff\xfe\xff", b"print('hello')\n", b"x", b"\n"]
)
def test_a_file_that_is_no_toolset_is_never_overwritten_in_silence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(ToolsetEdited, match=r"not a toolset that toolgen wrote.*--force"):
        guard_edits(path, toolset())


def test_no_file_and_an_empty_one_may_be_written(tmp_path: Path) -> None:
    guard_edits(tmp_path / "a.yaml", toolset())
    (tmp_path / "a.yaml").touch()
    guard_edits(tmp_path / "a.yaml", toolset())
    with pytest.raises(ToolsetEdited, match="directory"):
        guard_edits(tmp_path, toolset())


def test_saving_would_change_nothing_only_when_every_byte_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    assert would_change(path, toolset())
    save_toolset(toolset(), path)
    assert not would_change(path, toolset())
    assert would_change(path, toolset(tool("other")))
    path.write_bytes(path.read_bytes() + b"# comment\n")
    assert would_change(path, toolset())
    assert would_change(tmp_path, toolset())


# the published schema


@pytest.fixture(scope="module")
def schema() -> Any:
    return jsonschema_rs.Draft202012Validator(published_schema(), offline=True)


def test_the_published_schema_is_what_the_models_say() -> None:
    committed = Path(files.__file__).with_name("toolset.schema.json").read_text(encoding="utf-8")
    assert committed == published_text(), (
        "python -m toolgen.tools.files.published > toolgen/tools/files/toolset.schema.json"
    )


def test_the_published_schema_describes_every_key() -> None:
    made = published_schema()
    jsonschema_rs.meta.validate(made)
    for model in [made, *made["$defs"].values()]:
        assert model["description"]
        assert all(member["description"] for member in model["properties"].values())


def test_the_published_schema_accepts_what_is_saved(schema: Any) -> None:
    for made in (toolset(), everything(), Toolset(api="a")):
        schema.validate(stamped(to_dict(made)))


@settings(max_examples=30)
@given(st.dictionaries(st.from_regex(r"[A-Za-z0-9._-]+", fullmatch=True), schemas, max_size=3), json_values)
def test_the_published_schema_accepts_every_toolset(schema: Any, shared: dict[str, Any], value: Any) -> None:
    request = RequestTemplate(query=(Leaf(name="x", value=value),))
    schema.validate(to_dict(toolset(tool(request=request), schemas=shared)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("toolgen",), 2),
        (("api",), "Pet Store"),
        (("api",), ...),
        (("servers",), []),
        (("server",), 5),
        (("server",), {"variables": {}}),
        (("securitySchemes", "bearerAuth"), "token"),
        (("schemas", "NewPet"), {"type": "strnig"}),
        (("schemas", "NewPet"), 5),
        (("schemas", "New Pet"), {}),
        (("tools",), {}),
        (("tools", 0, "name"), "create pet"),
        (("tools", 0, "description"), ...),
        (("tools", 0, "endpoint", "method"), "POST"),
        (("tools", 0, "endpoint", "path"), "pets"),
        (("tools", 0, "annotations", "readOnlyHint"), "no"),
        (("tools", 0, "annotations", "openWorldHint"), ...),
        (("tools", 0, "deprecated"), 1),
        (("tools", 0, "parameters"), True),
        (("tools", 0, "parameters", "required"), "requestBody"),
        (("tools", 0, "request", "query", 0, "stlye"), "form"),
        (("tools", 0, "request", "query", 0, "media_type"), "a/b"),
        (("tools", 0, "request", "query", 0, "value"), ...),
        (("tools", 0, "request", "body", "mediaType"), ...),
        (("tools", 0, "request", "security"), ["bearerAuth"]),
        (("tools", 0, "response", "schema"), "text"),
        (("tools", 0, "operation", "tags"), "pets"),
    ],
)
def test_the_published_schema_and_loading_refuse_the_same_edits(
    tmp_path: Path, schema: Any, place: tuple[str | int, ...], value: Any
) -> None:
    data: Any = stamped(to_dict(toolset()))
    here = data
    for step in place[:-1]:
        here = here[step]
    if value is ...:
        del here[place[-1]]
    else:
        here[place[-1]] = value
    assert not schema.is_valid(data)
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    assert problems_of(tmp_path / "a.json")
