from __future__ import annotations

from typing import Any

import pytest
from small_documents import OK, document, made

from toolgen.errors import SelectionError, UsageError
from toolgen.tools.generate import generate
from toolgen.tools.selection import Filter, Selection


def matches(text: str, method: str, path: str) -> bool:
    return Filter.parse(text).matches(method, path, (), None)


PATHS: dict[str, Any] = {
    "/pets": {
        "get": {"operationId": "listPets", "tags": ["pets"], "responses": OK},
        "post": {"operationId": "createPet", "tags": ["pets", "write"], "responses": OK},
    },
    "/pets/{petId}": {"get": {"operationId": "getPet", "tags": ["pets"], "responses": OK}},
    "/pets/{petId}/toys": {"get": {"operationId": "listToys", "responses": OK}},
    "/admin": {"delete": {"operationId": "wipe", "deprecated": True, "responses": OK}},
}


def selected(**filters: Any) -> set[str]:
    return {tool.name for tool in made(document(PATHS), **filters).tools}


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("GET /pets", ["/pets"], ["/pets/", "/pets/1", "/petstore", "/a/pets"]),
        ("GET /pets/*", ["/pets/{id}", "/pets/"], ["/pets", "/pets/{id}/toys"]),
        ("GET /pets/**", ["/pets", "/pets/", "/pets/{id}", "/pets/{id}/toys"], ["/petstore", "/a/pets"]),
        ("GET /**/toys", ["/toys", "/pets/toys", "/pets/{id}/toys"], ["/toys/a", "/mytoys"]),
        ("GET /pets/*/toys", ["/pets/{id}/toys"], ["/pets/toys", "/pets/a/b/toys"]),
        ("GET /p*s", ["/pets", "/ps"], ["/pets/s"]),
        ("GET /pets/{petId}", ["/pets/{petId}"], ["/pets/{id}", "/pets/x"]),
        ("GET *", ["/", "/a/b"], []),
        ("GET **", ["/", "/a/b"], []),
        ("GET /**", ["/", "/a/b"], []),
        ("/pets", ["/pets"], ["/pets/1"]),
        ("GET /v1/{name=projects/*}:run", ["/v1/{name=projects/*}:run"], ["/v1/{name=projects/a/b}:run"]),
        ("GET /users('{id}')", ["/users('{id}')"], ["/users({id})"]),
        ("GET /a.b", ["/a.b"], ["/axb"]),
    ],
)
def test_a_star_stays_within_a_segment_and_two_go_over_segments(text: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not matches(text, "get", path)] == []
    assert [path for path in no if matches(text, "get", path)] == []


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        ("GET /x", {"get"}),
        ("get /x", {"get"}),
        ("  Get    /x ", {"get"}),
        ("* /x", {"get", "post", "put", "patch"}),
        ("P* /x", {"post", "put", "patch"}),
        ("/x", {"get", "post", "put", "patch"}),
    ],
)
def test_a_method_may_be_written_in_any_case_and_with_a_star(text: str, methods: set[str]) -> None:
    assert {m for m in ("get", "post", "put", "patch") if matches(text, m, "/x")} == methods


@pytest.mark.parametrize("text", ["", "pets", "GET pets", "GET", "tag:", "operationId:", "GET /a b", "id:x", "G ET /x"])
def test_a_filter_of_no_known_form_is_refused_and_the_forms_are_named(text: str) -> None:
    with pytest.raises(UsageError, match=r"operationId:listPets"):
        Filter.parse(text)


def test_a_filter_that_cannot_end_is_no_danger() -> None:
    pattern = Filter.parse("GET /" + "*a" * 30)
    assert not pattern.matches("get", "/" + "a" * 29, (), None)


def test_include_takes_by_method_and_path_tag_and_operation_id() -> None:
    assert selected(include=["GET /pets/**"]) == {"listPets", "getPet", "listToys"}
    assert selected(include=["tag:pets"]) == {"listPets", "createPet", "getPet"}
    assert selected(include=["tag:w*"]) == {"createPet"}
    assert selected(include=["operationId:list*", "DELETE /admin"]) == {"listPets", "listToys", "wipe"}


def test_an_operation_without_a_tag_is_in_the_general_group() -> None:
    assert selected(include=["tag:General"]) == {"listToys", "wipe"}


def test_exclude_takes_away_and_wins() -> None:
    assert selected(exclude=["* /admin/**"]) == {"listPets", "createPet", "getPet", "listToys"}
    assert selected(include=["tag:pets"], exclude=["POST /**"]) == {"listPets", "getPet"}
    assert selected(exclude=[]) == {"listPets", "createPet", "getPet", "listToys", "wipe"}


def test_names_are_case_sensitive() -> None:
    with pytest.raises(SelectionError):
        generate(document(PATHS), include=["tag:Pets"])


def test_an_empty_include_is_nothing_and_no_include_is_everything() -> None:
    assert len(selected(include=None)) == 5
    with pytest.raises(SelectionError, match="5 operations were left out by include"):
        generate(document(PATHS), include=[])


def test_a_text_instead_of_a_list_is_refused() -> None:
    for filters in ({"include": "GET /pets"}, {"exclude": "GET /pets"}):
        with pytest.raises(UsageError, match="lists of filters, this is the text 'GET /pets'"):
            generate(document(PATHS), **filters)  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", [None, 1, ["GET /pets"]])
def test_an_entry_that_is_no_text_is_refused(entry: Any) -> None:
    with pytest.raises(UsageError, match="a filter is text"):
        generate(document(PATHS), include=[entry])


def test_the_error_names_the_filters_that_match_nothing() -> None:
    with pytest.raises(SelectionError) as caught:
        generate(document(PATHS), include=["GET /pet", "tag:dogs"])
    assert [problem.message for problem in caught.value.problems] == [
        "'GET /pet' matches nothing",
        "'tag:dogs' matches nothing",
    ]


def test_the_error_says_whether_a_filter_was_set() -> None:
    with pytest.raises(SelectionError, match="no filter was set"):
        generate(document({}))
    with pytest.raises(SelectionError, match="filters were set"):
        generate(document({}), include=["GET /x"])
    with pytest.raises(SelectionError, match="left out by include, exclude or skip_deprecated"):
        generate(document({"/x": {"get": {"deprecated": True}}}), skip_deprecated=True)


def test_where_no_operation_can_be_sent_the_error_says_why_and_where() -> None:
    with pytest.raises(SelectionError) as caught:
        generate(document({"/a/../b": {"get": {"responses": OK}}}))
    (problem,) = caught.value.problems
    assert "'..' segment" in problem.message
    assert problem.where == "/paths/~1a~1..~1b/get"


def test_filters_that_match_nothing_are_noted_when_something_is_left() -> None:
    report = made(document(PATHS), include=["tag:pets", "GET /pet"], exclude=["GET /dogs"]).report
    assert report is not None
    assert [d.message for d in report.document] == [
        "the filter 'GET /pet' matches no operation",
        "the filter 'GET /dogs' matches no operation",
    ]
    assert report.filtered == 2


def test_a_filter_that_only_repeats_another_counts_as_used() -> None:
    selection = Selection(["GET /a", "GET /*"], ["GET /a"])
    assert not selection.takes("get", "/a", (), None)
    assert selection.unused() == []


def test_deprecated_operations_are_kept_unless_they_are_to_be_skipped() -> None:
    assert "wipe" in selected()
    toolset = made(document(PATHS), skip_deprecated=True)
    assert {tool.name for tool in toolset.tools} == {"listPets", "createPet", "getPet", "listToys"}
    assert toolset.report is not None
    assert toolset.report.filtered == 1


def test_filters_see_the_normalised_path() -> None:
    (tool,) = made(document({"pets//all?x=1": {"get": {"responses": OK}}}), include=["GET /pets/all"]).tools
    assert tool.endpoint.path == "/pets/all"
