"""Keys that an object does not have are reported, with the one that was probably meant."""

from __future__ import annotations

from typing import Any

import pytest
from openapi.documents import document, said, tool

from toolgen import generate


def notes(paths: Any, version: str = "3.0.3") -> list[str]:
    return [text for text in said(generate(document(paths, version))) if "is no key of" in text]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            {"post": {"requestbody": {"content": {}}}},
            "note: 'requestbody' is no key of a Operation Object; did you mean 'requestBody'? at /paths/~1x/post",
        ),
        (
            {"get": {"parameters": [{"name": "a", "in": "query", "requierd": True, "schema": {}}]}},
            "note: 'requierd' is no key of a Parameter Object; did you mean 'required'? at /paths/~1x/get/parameters/0",
        ),
        (
            {"post": {"requestBody": {"content": {"application/json": {}}, "descripton": "b"}}},
            "note: 'descripton' is no key of a Request Body Object; did you mean 'description'? "
            "at /paths/~1x/post/requestBody",
        ),
        (
            {"get": {}, "pots": {}},
            "note: 'pots' is no key of a Path Item Object; did you mean 'post'? at /paths/~1x",
        ),
    ],
)
def test_a_misspelt_key_is_named_where_it_stands(item: Any, message: str) -> None:
    assert notes({"/x": item}) == [message.replace("a Operation", "an Operation")]


def test_extensions_and_every_key_of_the_specifications_are_known() -> None:
    old = {
        "parameters": [{"name": "q", "in": "query", "type": "array", "items": {}, "collectionFormat": "csv", "x-a": 1}],
        "get": {"consumes": [], "produces": [], "schemes": [], "x-b": 2, "responses": {}},
    }
    assert notes({"/x": old}, "2.0") == []
    new = {
        "summary": "s",
        "servers": [],
        "get": {"callbacks": {}, "externalDocs": {}, "servers": [], "responses": {}},
        "post": {"requestBody": {"required": True, "content": {"text/plain": {}}}},
    }
    assert notes({"/x": new}) == []


def test_a_key_of_the_other_version_is_unknown() -> None:
    assert len(notes({"/x": {"get": {"consumes": []}}})) == 1
    assert len(notes({"/x": {"get": {"requestBody": {}}}}, "2.0")) == 1


def test_a_parameter_described_as_in_2_0_keeps_its_type_in_a_newer_document() -> None:
    given = {"name": "n", "in": "query", "type": "array", "items": {"type": "integer"}}
    made = tool(document({"/x": {"get": {"parameters": [given]}}}, "3.0.3"))
    assert made.parameters["properties"]["n"] == {"type": "array", "items": {"type": "integer"}}
    assert (made.request.query[0].style, made.request.query[0].explode) == ("form", True)


def test_a_misspelt_key_of_a_path_item_elsewhere_is_named_where_it_stands() -> None:
    source = document(
        {"/x": {"$ref": "#/components/pathItems/X"}}, components={"pathItems": {"X": {"get": {}, "pots": {}}}}
    )
    assert [text for text in said(generate(source)) if "is no key of" in text] == [
        "note: 'pots' is no key of a Path Item Object; did you mean 'post'? at /components/pathItems/X"
    ]
