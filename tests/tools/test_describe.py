from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OBJECT, OK, document, made, parameter, properties, tool_of, with_body

from toolgen.openapi.text import CUT, clean, one_line
from toolgen.tools.describe import ARGUMENT_CAP, BODY_CAP, PROSE_CAP, TOOL_CAP, in_prose

# What no person sees: controls, escape sequences of terminals, bidirectional and zero-width marks, tags.
INVISIBLE = [
    "\x00", "\x07", "\x1b", "\x7f", "\x9b", "\u00ad", "\u061c", "\u180e", "\u200b", "\u200e", "\u200f", "\u202a",
    "\u202e", "\u2060", "\u2066", "\u2069", "\u3164", "\ufeff", "\ufff9", "\U000e0001", "\U000e0041", "\U000e0100",
]  # fmt: skip


def described(**operation: Any) -> str:
    return tool_of(operation, path="/pets/{petId}").description


# What an operation does


def test_summary_and_description_are_what_a_model_reads_first() -> None:
    assert described(summary="Update a pet", description="Only the owner may.") == "Update a pet.\nOnly the owner may."
    assert described(summary="Update a pet.") == "Update a pet."
    assert described(description="  Only the owner may. ") == "Only the owner may."
    assert described(summary="Update a pet.", description="Update a pet\nby id.") == "Update a pet\nby id."


def test_an_operation_without_a_word_is_described_by_method_and_path_without_braces() -> None:
    assert described() == "POST /pets/:petId"
    assert "{" not in tool_of(path="/{{ 7*7 }}/{a{b}}").description


def test_the_path_items_words_stand_in_for_missing_ones() -> None:
    item = {"summary": "Pets", "description": "All of them.", "get": {"responses": OK}}
    (tool,) = made(document({"/pets": item})).tools
    assert tool.description == "Pets.\nAll of them."


def test_documented_errors_are_one_line_in_the_documents_order() -> None:
    responses = {
        "200": {"description": "ok"},
        "404": {"description": "No such pet. Look again."},
        "409": {"description": "\nThe name is taken.\nChoose another."},
        "5XX": {"description": ""},
        "default": {"description": "unexpected"},
    }
    text = described(summary="Update", responses=responses)
    assert text == "Update\nErrors: 404 No such pet; 409 The name is taken; 5XX"


def test_errors_behind_a_reference_are_told_of() -> None:
    tool = tool_of(
        {"summary": "S", "responses": {"404": {"$ref": "#/components/responses/Missing"}}},
        components={"responses": {"Missing": {"description": "It is not there"}}},
    )
    assert tool.description == "S\nErrors: 404 It is not there"


def test_without_documented_errors_there_is_no_line() -> None:
    assert "Errors" not in described(summary="S", responses={"200": {"description": "ok"}, "302": {"description": "x"}})


def test_a_deprecated_operation_says_so_first() -> None:
    assert described(summary="Update", deprecated=True) == "Deprecated. Update"
    assert tool_of({"deprecated": True}).deprecated
    assert not tool_of({"deprecated": False}).deprecated


def test_long_texts_are_cut_and_the_cut_is_marked() -> None:
    responses = {str(code): {"description": "x" * 200} for code in range(400, 430)}
    text = described(summary="s" * 5000, description="d" * 1_000_000, responses=responses)
    assert len(text) <= TOOL_CAP
    prose, errors = text.split("\nErrors: ")
    assert prose.endswith(CUT)
    assert len(prose) <= PROSE_CAP
    assert errors.startswith("400 xxx")
    assert text.count(CUT) >= 2


def test_titles_are_one_line_of_the_summary_or_the_name_in_words() -> None:
    assert tool_of({"summary": "Update\n a   pet"}).annotations.title == "Update a pet"
    assert tool_of({"operationId": "updatePet_byId"}).annotations.title == "Update pet by id"
    assert tool_of({"operationId": "_"}).annotations.title == "_"
    assert len(tool_of({"summary": "x" * 5000}).annotations.title) <= 120


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/pets/{petId}", "/pets/:petId"),
        ("/a/{x}-{y}.json", "/a/:x-:y.json"),
        ("/v1/{name=projects/*}:run", "/v1/:name=projects/*:run"),
        ("/x/{{ 7*7 }}", "/x/: 7*7"),
        ("/x/{}", "/x/"),
        ("/x/{%if%}\n\x1b[31m", "/x/:%if% [31m"),
    ],
)
def test_braces_of_paths_never_stand_in_prose(path: str, words: str) -> None:
    assert in_prose(path) == words


def test_where_the_document_quotes_its_own_path_the_braces_go_too() -> None:
    operation = {"summary": "PUT /pets/{petId}", "description": "`PUT /pets/{petId}` with a body like {a: 1}."}
    tool = tool_of(operation, path="/pets/{petId}")
    assert tool.description == "PUT /pets/:petId.\n`PUT /pets/:petId` with a body like {a: 1}."
    assert tool.annotations.title == "PUT /pets/:petId"


# Arguments


def hint(schema: Any, **more: Any) -> str | None:
    schemas = {
        "Color": {"type": "string", "enum": ["red", "green"]},
        "Colors": {"type": "array", "items": {"$ref": "#/components/schemas/Color"}},
    }
    tool = tool_of({"parameters": [parameter("p", schema=schema, **more)]}, components={"schemas": schemas})
    found = properties(tool)["p"].get("description")
    assert found is None or isinstance(found, str)
    return found


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "enum": ["asc", "desc"]}, "One of: asc, desc."),
        ({"type": "string", "enum": ["asc", "desc"], "default": "asc"}, "One of: asc, desc. Default: asc."),
        ({"type": "integer", "default": 20}, "Default: 20."),
        ({"type": "boolean", "default": False}, "Default: false."),
        ({"type": ["string", "null"], "default": None}, "Default: null."),
        ({"type": "string", "format": "date-time"}, "Format: date-time."),
        ({"type": "string", "example": "abc"}, "Example: abc."),
        ({"type": "string", "examples": ["x", "y"]}, "Example: x."),
        ({"type": "string", "format": "uuid", "example": "1-2"}, "Format: uuid. Example: 1-2."),
        ({"type": "object", "default": {"a": [1]}}, 'Default: {"a": [1]}.'),
        ({"type": "array", "items": {"enum": [1, 2]}}, "One of: 1, 2."),
        ({"$ref": "#/components/schemas/Color"}, "One of: red, green."),
        ({"$ref": "#/components/schemas/Color", "default": "red"}, "One of: red, green. Default: red."),
        ({"$ref": "#/components/schemas/Colors"}, "One of: red, green."),
        ({"allOf": [{"$ref": "#/components/schemas/Color"}], "default": "red"}, "One of: red, green. Default: red."),
        ({"anyOf": [{"$ref": "#/components/schemas/Color"}, {"type": "null"}]}, "One of: red, green."),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}, None),
        ({"const": "only"}, "One of: only."),
        ({"type": "string"}, None),
        ({"type": "string", "description": "Own words.", "default": "x"}, "Own words."),
    ],
)
def test_an_argument_nobody_described_says_its_values_default_format_and_example(schema: Any, expected: str) -> None:
    assert hint(schema) == expected


def test_the_documents_words_are_preferred_to_hints() -> None:
    assert hint({"type": "string", "enum": ["a"]}, description="Which way.") == "Which way."
    assert hint({"type": "string", "enum": ["a"], "description": "Inner."}, description="Outer.") == "Outer."
    assert hint({"type": "string", "enum": ["a"]}, description="  ") == "One of: a."


def test_an_example_beside_the_schema_is_a_hint_too() -> None:
    assert hint({"type": "string"}, example="abc") == "Example: abc."
    assert hint({"$ref": "#/components/schemas/Colors"}, examples={"one": {"value": ["red"]}}) == "One of: red, green."
    assert hint({"type": "string"}, examples={"one": {"value": "x"}, "two": {"value": "y"}}) == "Example: x."


def test_many_and_long_values_are_cut() -> None:
    text = hint({"type": "string", "enum": [f"value-{n}" for n in range(500)]})
    assert text is not None
    assert text.startswith("One of: value-0, value-1, ")
    assert text.endswith("value-19 and 480 more.")
    long = hint({"type": "string", "enum": ["x" * 1_000_000], "default": "y" * 1_000_000, "format": "z" * 1_000_000})
    assert long is not None
    assert len(long) <= ARGUMENT_CAP
    assert CUT in long


def test_a_long_description_of_an_argument_is_cut_and_marked() -> None:
    text = hint({"type": "string"}, description="d" * 1_000_000)
    assert text is not None
    assert len(text) == ARGUMENT_CAP
    assert text.endswith(CUT)


# The body


def body_text(content: Any, components: Any = None, **body: Any) -> str:
    tool = with_body(content, components=components, **body)
    found = properties(tool)["requestBody"]["description"]
    assert isinstance(found, str)
    return found


def json_text(schema: Any, components: Any = None) -> str:
    return body_text({"application/json": {"schema": schema}}, components)


PET = {
    "type": "object",
    "required": ["name", "tags"],
    "properties": {
        "name": {"type": "string"},
        "age": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["cat", "dog"]},
        "owner": {"$ref": "#/components/schemas/Owner"},
        "extra": {},
    },
}
PARTS = {"Owner": OBJECT, "Pet": PET}
WORDS = (
    "with name (string, required), age (integer or null), tags (array of string, required), kind (enum), "
    "owner (object), extra (any)."
)


@pytest.mark.parametrize(
    "schema",
    [
        PET,
        {"$ref": "#/components/schemas/Pet"},
        {"allOf": [{"$ref": "#/components/schemas/Pet"}]},
        {"anyOf": [{"$ref": "#/components/schemas/Pet"}, {"type": "null"}]},
    ],
)
def test_the_body_names_its_container_and_top_level_properties(schema: Any) -> None:
    assert json_text(schema, PARTS) == f"JSON object {WORDS}"


def test_properties_of_every_part_of_an_all_of_are_named() -> None:
    schema = {
        "allOf": [{"$ref": "#/components/schemas/Owner"}, {"required": ["b"], "properties": {"b": {"type": "integer"}}}]
    }
    text = json_text(schema, PARTS)
    assert "a (string)" in text
    assert "b (integer, required)" in text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "items": {"type": "string"}}, "JSON array of string."),
        ({"type": "array"}, "JSON array."),
        ({"items": {}}, "JSON array."),
        ({"type": "string"}, "JSON string."),
        ({"type": "number"}, "JSON number."),
        ({"type": "integer"}, "JSON integer."),
        ({"type": "boolean"}, "JSON boolean."),
        ({"type": "object"}, "JSON object."),
        ({"properties": {"a": {"type": "string"}}}, "JSON object with a (string)."),
        ({"description": "Whatever."}, "JSON object.\nWhatever."),
        ({"oneOf": [OBJECT, {"type": "object"}]}, "JSON object."),
        ({"oneOf": [{"type": "string"}, {"type": "array", "items": OBJECT}]}, "JSON string or array of object."),
        ({"type": "array", "items": OBJECT}, "JSON array of object, each with a (string)."),
    ],
)
def test_the_container_is_the_real_one(schema: Any, words: str) -> None:
    assert json_text(schema) == words


@pytest.mark.parametrize("media", [{}, {"schema": {}}, {"schema": True}])
def test_a_body_without_a_schema_is_there_and_says_so(media: Any) -> None:
    assert body_text({"application/json": media}) == "JSON value; the document declares no schema."
    xml = "A whole application/xml document as text, sent as is; value; the document declares no schema."
    assert body_text({"application/xml": media}) == xml


@pytest.mark.parametrize(
    ("media_type", "words"),
    [
        ("application/json", "JSON object"),
        ("application/x-www-form-urlencoded", "Form object"),
        ("multipart/form-data", "Multipart form object"),
        ("application/xml", "A whole application/xml document as text, sent as is; object"),
        ("application/x-new", "A whole application/x-new document as text, sent as is; object"),
    ],
)
def test_every_kind_of_body_says_what_the_model_writes(media_type: str, words: str) -> None:
    assert body_text({media_type: {"schema": OBJECT}}) == f"{words} with a (string)."


def test_the_documents_words_about_the_body_come_after_its_shape() -> None:
    content = {"application/json": {"schema": {**OBJECT, "description": "Of the schema."}}}
    assert body_text(content) == "JSON object with a (string).\nOf the schema."
    assert body_text(content, description="Of the body.") == "JSON object with a (string).\nOf the body."
    named = {"$ref": "#/components/schemas/Owner", "description": "Beside the reference."}
    assert json_text(named, PARTS) == "JSON object with a (string).\nBeside the reference."
    text = body_text({"text/plain": {"schema": {"type": "string", "description": "A poem."}}})
    assert text == "Text, sent as is.\nA poem."


def test_files_of_a_form_are_called_files() -> None:
    file = {"type": "string", "format": "binary"}
    schema = {"type": "object", "required": ["f"], "properties": {"f": file, "more": {"type": "array", "items": file}}}
    text = body_text({"multipart/form-data": {"schema": schema}})
    assert text == "Multipart form object with f (file, required), more (array of file)."


def test_of_many_properties_the_required_ones_are_named_first() -> None:
    names = [f"p{n}" for n in range(100)]
    schema = {"type": "object", "required": ["p99"], "properties": {name: {"type": "string"} for name in names}}
    text = json_text(schema)
    assert text.startswith("JSON object with p99 (string, required), p0 (string), ")
    assert text.endswith("p28 (string) and 70 more.")


def test_a_long_body_description_is_cut_and_marked() -> None:
    schema = {"type": "object", "properties": {f"{'n' * 100}{n}": {"type": "string"} for n in range(40)}}
    text = body_text({"application/json": {"schema": schema}}, description="d" * 1_000_000)
    assert len(text) <= BODY_CAP + 401
    assert text.endswith(CUT)
    assert text.count(CUT) > 2


# Text of the document is data


@pytest.mark.parametrize("character", INVISIBLE)
def test_what_no_person_sees_is_taken_out_of_all_prose(character: str) -> None:
    text = f"a{character}b"
    operation = {
        "summary": text,
        "description": f"{text} longer",
        "tags": [text],
        "parameters": [parameter("p", description=text), parameter("q", schema={"type": "string", "default": text})],
        "requestBody": {
            "description": text,
            "content": {"application/json": {"schema": {"type": "object", "properties": {text: {"title": text}}}}},
        },
        "responses": {"404": {"description": text}},
    }
    tool = tool_of(operation)
    prose = [tool.description, tool.annotations.title, tool.group]
    prose += [properties(tool)[key]["description"] for key in ("p", "q", "requestBody")]
    assert [part for part in prose if character in part] == []
    assert all("a" in part and "b" in part for part in prose)


@given(st.text(), st.integers(20, 100))
def test_cleaned_text_is_short_and_holds_nothing_invisible(text: str, cap: int) -> None:
    for found in (clean(text, cap), one_line(text, cap)):
        assert len(found) <= cap
        assert not set(INVISIBLE) & set(found)
    assert "\n" not in one_line(text, cap)
    assert clean(clean(text, cap), cap) == clean(text, cap)


def test_line_breaks_tabs_and_joiners_stay() -> None:
    text = "one\n\ttwo \u0915\u094d\u200d\u0937 \N{WOMAN}\u200d\N{PERSONAL COMPUTER}\ufe0f"
    assert clean(text, 100) == text
    assert clean("a\r\nb", 100) == "a\nb"
