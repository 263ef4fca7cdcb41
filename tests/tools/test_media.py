from __future__ import annotations

import itertools
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OBJECT, body_schema, document, made, properties, said, tool_of, with_body

from toolgen.tools.media import FILE, is_binary
from toolgen.tools.model import Body, Encoding, Tool

BYTES = {"type": "string", "format": "binary"}
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
# The best first; of two in one entry the first that is declared wins.
PREFERENCE = [
    ["application/json", "application/json; charset=utf-8", "Application/JSON"],
    ["application/vnd.api+json", "application/merge-patch+json", "text/json"],
    ["application/json-patch+json"],
    [FORM],
    [MULTIPART],
    ["text/plain", "text/csv"],
    ["application/xml", "text/xml", "application/soap+xml"],
    ["application/x-ndjson", "application/graphql", "application/x-unheard-of"],
    ["application/octet-stream", "image/png"],
]


def body(tool: Tool) -> Body:
    assert tool.request.body is not None
    return tool.request.body


def chosen(content: dict[str, Any], **more: Any) -> str:
    return body(with_body(content, **more)).media_type


# Which one is sent


@pytest.mark.parametrize("better", range(len(PREFERENCE) - 1))
def test_the_order_of_choice_is_json_forms_text_xml_others_bytes(better: int) -> None:
    best, others = PREFERENCE[better], PREFERENCE[better + 1 :]
    for first, second in itertools.product(best, itertools.chain(*others)):
        assert chosen({second: {}, first: {}}) == first
        assert chosen({first: {}, second: {}}) == first


@pytest.mark.parametrize("alike", PREFERENCE)
def test_of_two_that_are_alike_the_first_is_taken(alike: list[str]) -> None:
    assert chosen({name: {} for name in alike}) == alike[0]
    assert chosen({name: {} for name in reversed(alike)}) == alike[-1]


@given(st.permutations([name for group in PREFERENCE for name in group]))
def test_json_is_taken_wherever_it_stands_and_the_others_are_listed_in_the_documents_order(names: list[str]) -> None:
    found = body(with_body({name: {"schema": OBJECT} for name in names}))
    assert found.media_type in PREFERENCE[0]
    assert list(found.alternatives) == [name for name in names if name != found.media_type]


@pytest.mark.parametrize(
    "name",
    [
        "application/json; charset=utf-8",
        "application/json;odata=verbose",
        "application/vnd.github.v3+json; profile=x",
        "text/plain; charset=utf-8",
        "multipart/form-data; charset=utf-8",
    ],
)
def test_parameters_of_a_media_type_are_kept(name: str) -> None:
    assert chosen({name: {"schema": OBJECT}}) == name


@pytest.mark.parametrize(
    ("name", "schema", "sent"),
    [
        ("*/*", OBJECT, "application/json"),
        ("*/*", {"type": "array", "items": {}}, "application/json"),
        ("*/*", {"$ref": "#/components/schemas/Pet"}, "application/json"),
        ("*/*", {"type": "integer"}, "application/json"),
        ("*/*", None, "application/json"),
        ("*/*", {"type": "string"}, "text/plain"),
        ("*/*", BYTES, "application/octet-stream"),
        ("*/*", {"type": "object", "properties": {"f": BYTES}}, MULTIPART),
        ("*/*; q=0.5", OBJECT, "application/json"),
        ("application/*", OBJECT, "application/json"),
        ("application/*+json", OBJECT, "application/json"),
        ("application/*+xml", OBJECT, "application/xml"),
        ("text/*", {"type": "string"}, "text/plain"),
        ("multipart/*", OBJECT, MULTIPART),
        ("image/*", None, "application/octet-stream"),
        ("audio/*", BYTES, "application/octet-stream"),
    ],
)
def test_a_range_is_never_sent(name: str, schema: Any, sent: str) -> None:
    media = {} if schema is None else {"schema": schema}
    assert chosen({name: media}, components={"Pet": OBJECT}) == sent


def test_what_a_document_names_is_preferred_to_a_range() -> None:
    names = {"*/*": {"schema": {"type": "array"}}, "application/json": {"schema": OBJECT}}
    tool = with_body(names)
    assert (body(tool).media_type, body(tool).alternatives) == ("application/json", ("*/*",))
    assert body_schema(tool)["type"] == "object"
    assert chosen({"text/*": {}, "text/csv": {}}) == "text/csv"


def test_json_in_a_range_is_preferred_to_a_form() -> None:
    assert chosen({FORM: {"schema": OBJECT}, "*/*": {"schema": OBJECT}}) == "application/json"


# Forms with files

SHARED = {
    "File": BYTES,
    "Alias": {"$ref": "#/components/schemas/File"},
    "Files": {"type": "array", "items": {"$ref": "#/components/schemas/File"}},
    "Upload": {"type": "object", "properties": {"f": {"$ref": "#/components/schemas/File"}}},
}
FILES: dict[str, Any] = {
    "in place": BYTES,
    "without a type": {"format": "binary"},
    "by its media type": {"contentMediaType": "image/png"},
    "text by type and bytes by media type": {"type": "string", "contentMediaType": "application/octet-stream"},
    "that may be null": {"type": ["string", "null"], "format": "binary"},
    "behind a reference": {"$ref": "#/components/schemas/File"},
    "behind two references": {"$ref": "#/components/schemas/Alias"},
    "in allOf": {"allOf": [{"$ref": "#/components/schemas/File"}], "description": "d"},
    "or null": {"anyOf": [BYTES, {"type": "null"}]},
    "or a URL": {"oneOf": [BYTES, {"type": "string", "format": "uri"}]},
    "several": {"type": "array", "items": BYTES},
    "several behind references": {"$ref": "#/components/schemas/Files"},
    "several or null": {"anyOf": [{"type": "array", "items": BYTES}, {"type": "null"}]},
}


def upload(schema: Any, media_type: str = MULTIPART, **more: Any) -> Tool:
    return with_body({media_type: {"schema": schema, **more}}, components=SHARED)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_file_in_a_multipart_body_is_base64_text_or_a_file_with_a_name(file: Any) -> None:
    tool = upload({"type": "object", "required": ["f"], "properties": {"f": file, "note": {"type": "string"}}})
    assert body(tool).encoding == {"f": Encoding(binary=True)}
    assert not body(tool).binary
    schema = tool.input_schema()
    valid = jsonschema_rs.Draft202012Validator(schema, offline=True).is_valid
    several = "array" in str(file) or "Files" in str(file)
    for value in ("aGk=", {"data": "aGk="}, {"data": "aGk=", "filename": "a.txt", "contentType": "text/plain"}):
        assert valid({"requestBody": {"f": [value, value] if several else value, "note": "x"}})
    for value in (5, {"filename": "a.txt"}, {"data": "aGk=", "other": 1}):
        assert not valid({"requestBody": {"f": [value] if several else value}})
    assert not valid({"requestBody": {"note": "x"}})
    assert body_schema(tool)["properties"]["note"] == {"type": "string"}
    assert '"binary"' not in str(schema).replace("'", '"')


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_a_form_with_a_file_is_sent_as_multipart_where_the_document_allows_it(file: Any) -> None:
    schema = {"type": "object", "properties": {"f": file}}
    found = with_body({FORM: {"schema": schema}, MULTIPART: {"schema": schema}}, components=SHARED)
    assert body(found).media_type == MULTIPART
    assert body(found).alternatives == (FORM,)
    plain = with_body({MULTIPART: {"schema": OBJECT}, FORM: {"schema": OBJECT}})
    assert body(with_body({FORM: {"schema": schema}}, components=SHARED)).media_type == FORM
    assert body(plain).media_type == FORM


@pytest.mark.parametrize(
    "whole",
    [
        {"$ref": "#/components/schemas/Upload"},
        {
            "allOf": [
                {"$ref": "#/components/schemas/Upload"},
                {"type": "object", "properties": {"note": {"type": "string"}}},
            ]
        },
        {"oneOf": [{"$ref": "#/components/schemas/Upload"}, OBJECT]},
    ],
)
def test_files_are_found_in_a_whole_body_behind_a_reference_and_in_compositions(whole: Any) -> None:
    tool = upload(whole)
    assert body(tool).encoding == {"f": Encoding(binary=True)}
    assert FILE["anyOf"][0] in str_values(tool.input_schema())
    both = with_body({FORM: {"schema": whole}, MULTIPART: {"schema": whole}}, components=SHARED)
    assert body(both).media_type == MULTIPART


def str_values(schema: Any) -> list[Any]:
    """Every mapping inside a schema."""
    found, waiting = [], [schema]
    while waiting:
        here = waiting.pop()
        found += [here] if isinstance(here, dict) else []
        waiting += list(here.values()) if isinstance(here, dict) else here if isinstance(here, list) else []
    return found


def test_what_a_file_is_called_and_said_to_be_is_kept() -> None:
    tool = upload({"type": "object", "properties": {"f": {**BYTES, "title": "Photo", "description": "A JPEG."}}})
    assert body_schema(tool)["properties"]["f"] == {**FILE, "title": "Photo", "description": "A JPEG."}


def test_text_parts_of_a_multipart_body_stay_text() -> None:
    parts = {
        "a": {"type": "string"},
        "b": {"type": "string", "contentMediaType": "text/html"},
        "c": {"type": "string", "contentMediaType": "application/json"},
        "d": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"},
        "e": {"type": "string", "format": "byte"},
        "f": {"type": "integer"},
        "g": {},
    }
    tool = upload({"type": "object", "properties": parts})
    assert body(tool).encoding == {}
    assert body_schema(tool)["properties"] == parts


def test_a_part_without_a_type_is_a_file_where_its_encoding_names_bytes() -> None:
    parts = {"photo": {}, "text": {"type": "string"}, "json": OBJECT, "kind": {"enum": ["a"]}, "plain": {}}
    encoding = {name: {"contentType": "image/png, image/jpeg"} for name in ("photo", "text", "json", "kind")}
    tool = upload({"type": "object", "properties": parts}, encoding={**encoding, "plain": {"contentType": "text/csv"}})
    binary = {name for name, entry in body(tool).encoding.items() if entry.binary}
    assert binary == {"photo", "text"}
    assert body_schema(tool)["properties"]["photo"] == FILE


def test_a_file_in_a_url_encoded_form_is_base64_text_without_a_name() -> None:
    tool = upload({"type": "object", "properties": {"f": BYTES}}, FORM)
    assert body(tool).encoding == {"f": Encoding(binary=True)}
    assert body_schema(tool)["properties"]["f"] == {"type": "string", "contentEncoding": "base64"}


def test_schemas_that_hold_themselves_do_not_stop_the_search_for_files() -> None:
    schemas = {
        "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}], "properties": {"f": BYTES}},
        "Deep": {"type": "array", "items": {"$ref": "#/components/schemas/Deep"}},
    }
    for schema in (
        {"$ref": "#/components/schemas/Loop"},
        {"type": "object", "properties": {"d": {"$ref": "#/components/schemas/Deep"}}},
    ):
        content = {FORM: {"schema": schema}, MULTIPART: {"schema": schema}}
        assert with_body(content, components=schemas).request.body is not None


@pytest.mark.timeout(10)
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "items", "properties"])
@pytest.mark.parametrize("media_type", [MULTIPART, FORM, "*/*", "application/json"])
def test_schemas_that_hold_themselves_many_times_are_looked_through_once(keyword: str, media_type: str) -> None:
    itself = {"$ref": "#/components/schemas/Many"}
    several = dict.fromkeys(map(str, range(300)), itself)
    many = {"allOf": list(several.values()), "items": {"anyOf": list(several.values())}, "properties": several}
    schema = {keyword: many.get(keyword, many["allOf"])}
    content = {
        FORM: {"schema": itself},
        media_type: {"schema": {"type": "object", "properties": {"f": itself, "g": BYTES}}},
    }
    assert with_body(content, components={"Many": schema}).request.body is not None


def test_a_reference_to_nowhere_beside_a_file_does_not_hide_it() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}, "f": BYTES}}
    assert chosen({FORM: {"schema": schema}, MULTIPART: {"schema": schema}}) == MULTIPART


def test_properties_that_only_answers_have_are_required_of_no_file_form() -> None:
    schemas = {
        "Base": {"type": "object", "properties": {"id": {"type": "string", "readOnly": True}}},
        "Upload": {
            "allOf": [
                {"$ref": "#/components/schemas/Base"},
                {"type": "object", "required": ["id", "f"], "properties": {"f": BYTES}},
            ]
        },
    }
    tool = with_body({MULTIPART: {"schema": {"$ref": "#/components/schemas/Upload"}}}, components=schemas)
    valid = jsonschema_rs.Draft202012Validator(tool.input_schema(), offline=True).is_valid
    assert valid({"requestBody": {"f": "aGk="}})
    assert not valid({"requestBody": {}})


def test_the_encoding_of_parts_is_kept() -> None:
    encoding = {
        "a": {"contentType": "application/json", "headers": {"X-A": {"schema": {"type": "string", "const": "1"}}}},
        "tags": {"style": "pipeDelimited", "explode": False, "allowReserved": True},
    }
    schema = {"type": "object", "properties": {"a": OBJECT, "tags": {"type": "array", "items": {"type": "string"}}}}
    assert body(upload(schema, encoding=encoding)).encoding == {
        "a": Encoding(content_type="application/json", headers={"X-A": "1"}),
        "tags": Encoding(style="pipeDelimited", explode=False, allow_reserved=True),
    }
    assert body(with_body({"application/json": {"schema": schema, "encoding": encoding}})).encoding == {}


def test_an_encoding_that_cannot_be_sent_is_left_out_and_told() -> None:
    encoding = {
        "a": {"contentType": "x\r\ny", "style": "matrix", "headers": {"X\r\nY": {"schema": {"const": "1"}}}},
        "b": {"headers": {"X-B": {"schema": {"const": "1\r\n2"}}}},
    }
    media = {MULTIPART: {"schema": OBJECT, "encoding": encoding}}
    toolset = made(document({"/x": {"post": {"requestBody": {"content": media}}}}))
    found = toolset.tools[0].request.body
    assert found is not None
    assert found.encoding == {}
    assert {d.level for d in said(toolset)} == {"degraded"}


# Bytes, text, and what we cannot write


@pytest.mark.parametrize("schema", [None, {}, BYTES, {"contentMediaType": "image/png"}, {"type": "string"}, OBJECT])
@pytest.mark.parametrize("name", ["application/octet-stream", "image/png", "application/pdf", "video/mp4; codecs=x"])
def test_bytes_are_base64_text_and_marked(name: str, schema: Any) -> None:
    tool = with_body({name: {} if schema is None else {"schema": schema}})
    assert (body(tool).media_type, body(tool).binary) == (name, True)
    assert properties(tool)["requestBody"] == {
        "type": "string",
        "contentEncoding": "base64",
        "description": "Bytes, as base64 text.",
    }


def test_an_unknown_media_type_with_a_binary_schema_is_bytes() -> None:
    tool = with_body({"application/x-tar": {"schema": BYTES}})
    assert body(tool).binary
    assert properties(tool)["requestBody"]["contentEncoding"] == "base64"


@pytest.mark.parametrize("schema", [None, {"type": "string"}, OBJECT, BYTES])
@pytest.mark.parametrize("name", ["application/xml", "text/xml", "application/x-unheard-of", "application/x-ndjson"])
def test_what_we_cannot_write_is_one_text_sent_as_is(name: str, schema: Any) -> None:
    if schema is BYTES and name.startswith("application/x-"):
        return  # bytes, see above
    tool = with_body({name: {} if schema is None else {"schema": schema}})
    found = properties(tool)["requestBody"]
    assert found["type"] == "string"
    assert set(found) == {"type", "description"}
    assert found["description"].startswith(f"A whole {name} document as text, sent as is")
    assert (body(tool).media_type, body(tool).binary, body(tool).value) == (name, False, "{{ requestBody }}")


def test_text_keeps_what_restricts_it() -> None:
    tool = with_body({"text/plain": {"schema": {"type": "string", "maxLength": 10, "pattern": "^a"}}})
    assert properties(tool)["requestBody"] == {
        "type": "string",
        "maxLength": 10,
        "pattern": "^a",
        "description": "Text, sent as is.",
    }


def test_base64_and_binary_inside_json_stay_as_they_are() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": "byte"}, "b": BYTES}}
    for version in ("3.0.3", "3.1.0"):
        tool = with_body({"application/json": {"schema": schema}}, version=version)
        assert body_schema(tool)["properties"] == schema["properties"]
        assert body(tool).encoding == {}
        assert not body(tool).binary


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/merge-patch+json", "application/json-patch+json"]
)
def test_the_json_family_has_the_real_schema(media_type: str) -> None:
    tool = with_body({media_type: {"schema": OBJECT}})
    assert body(tool).media_type == media_type
    assert body_schema(tool)["properties"] == OBJECT["properties"]


def test_form_fields_and_files_of_version_2_are_one_body() -> None:
    fields = [
        {"name": "file", "in": "formData", "type": "file", "required": True, "description": "The file."},
        {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
    ]
    tool = tool_of({"parameters": fields, "consumes": [FORM]}, version="2.0")
    assert body(tool).media_type == MULTIPART
    assert body(tool).encoding == {"file": Encoding(binary=True), "tags": Encoding(style="form", explode=True)}
    assert body_schema(tool)["properties"]["file"] == {**FILE, "description": "The file."}
    assert body_schema(tool)["required"] == ["file"]


@pytest.mark.parametrize(
    ("schema", "binary"),
    [
        (BYTES, True),
        ({"type": "file"}, True),
        ({"format": "binary"}, True),
        ({"contentMediaType": "image/png"}, True),
        ({"contentMediaType": "image/png", "contentEncoding": "base64"}, False),
        ({"type": "string", "contentMediaType": "text/plain"}, False),
        ({"type": "string", "contentMediaType": "application/xml"}, False),
        ({"type": "string", "format": "byte"}, False),
        ({"type": "integer", "format": "binary"}, False),
        ({}, False),
        (True, False),
        (None, False),
    ],
)
def test_what_counts_as_bytes(schema: Any, binary: bool) -> None:
    assert is_binary(schema) is binary
