"""Names of definitions: unique, legal, and the root document's own stay what they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi.documents import document, with_schema, write

from toolgen import generate


def escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25").replace("#", "%23")


def names_of(*names: str) -> dict[str, str]:
    """Definition name -> component name for components with these names."""
    schemas = {name: {"title": name} for name in names}
    every = {"anyOf": [{"$ref": f"#/components/schemas/{escaped(name)}"} for name in names]}
    made = generate({**with_schema(every), "components": {"schemas": schemas}}).schemas
    return {name: schema["title"] for name, schema in made.items()}


@pytest.mark.parametrize("name", ["Pet", "pet-v1.2_x", "a.b"])
def test_a_legal_name_is_kept(name: str) -> None:
    assert names_of(name) == {name: name}


@pytest.mark.parametrize(
    ("name", "legal"),
    [("a b", "a_b"), ("List«Pet»", "List_Pet"), ("a/b~c", "a_b_c"), ("#/x", "x"), ("名", "Schema"), ("%", "Schema")],
)
def test_an_illegal_name_is_made_legal(name: str, legal: str) -> None:
    assert names_of(name) == {legal: name}


def test_names_that_become_alike_stay_apart_and_the_legal_one_keeps_its_own() -> None:
    assert names_of("a b", "a_b", "a/b") == {"a_b": "a_b", "a_b_2": "a b", "a_b_3": "a/b"}


def test_long_names_stay_apart() -> None:
    made = names_of("x" * 150 + "1", "x" * 150 + "2")
    assert len(made) == 2
    assert all(len(name) <= 130 for name in made)


def test_a_component_called_like_the_answer_form_of_another_keeps_its_name() -> None:
    schemas = {
        "Pet": {"type": "object", "properties": {"id": {"readOnly": True}}},
        "Pet-response": {"title": "Pet-response"},
    }
    both = {"anyOf": [{"$ref": "#/components/schemas/Pet"}, {"$ref": "#/components/schemas/Pet-response"}]}
    made = generate(with_schema(both, **schemas)).schemas
    assert made["Pet-response"] == {"title": "Pet-response"}
    assert len(made) == 3


def test_a_schema_that_is_no_component_is_named_for_where_it_stands() -> None:
    paths = """
    /x:
      post:
        requestBody:
          content: {application/json: {schema: {type: object, properties: {tags: {type: array, items: {type: string}}}}}}
        responses:
          '200': {content: {application/json: {schema: {$ref: '#/paths/~1x/post/requestBody/content/application~1json/schema/properties/tags/items'}}}}
    """
    assert generate(document(paths)).schemas == {"tags-items": {"type": "string"}}


def test_names_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    found: list[Any] = []
    for folder in (tmp_path / "a", tmp_path / "b" / "c"):
        folder.mkdir(parents=True)
        root = write(
            folder,
            root="openapi: 3.1.0\npaths: {/x: {post: {requestBody: {content: {application/json: {schema: {$ref: pet.yaml}}}}}}}",
            pet="type: object\nproperties: {o: {$ref: 'other.yaml#/definitions/Owner'}}",
            other="definitions: {Owner: {type: string}}",
        )
        found.append(generate(root).schemas)
    assert found[0] == found[1]
    assert set(found[0]) == {"pet", "Owner"}


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=1, max_size=6, unique=True
    )
)
def test_every_component_gets_one_legal_name_of_its_own(names: list[str]) -> None:
    made = names_of(*names)
    assert len(made) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,130}", name) for name in made)
    for name in names:
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z0-9]", name):
            assert name in made
