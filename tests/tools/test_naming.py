from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OK, document, made, parameter, properties, tool_of

from toolgen.errors import UsageError
from toolgen.tools.generate import generate
from toolgen.tools.naming import api_name, argument_keys, body_key, name_from_path, slug, tool_names
from toolgen.tools.template import leaf_of

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")

Operation = tuple[str, str, str | None, str]
IDS = ["x", "x.y", "x_y", "x y", "x/y", "", "ü", "!", "a" * 90, "a" * 89 + "b", "get_a", "self", None]
PATHS = ["/a", "/a/", "/a/{id}", "/a/{other}", "/a_id", "/ä", "/ö", "/", "/" + "long/" * 30, "/" + "long/" * 30 + "x"]


def one(method: str, path: str, identifier: str | None) -> Operation:
    return method, path, identifier, f"/paths/{path.replace('/', '~1')}/{method}"


operations = st.lists(
    st.builds(one, st.sampled_from(["get", "post", "m-search", "!"]), st.sampled_from(PATHS), st.sampled_from(IDS)),
    max_size=12,
    unique_by=lambda operation: operation[3],
)


def name(method: str, path: str, identifier: str | None = None) -> str:
    (found,) = tool_names([one(method, path, identifier)])
    return found


# Names of tools


@pytest.mark.parametrize("identifier", ["listPets", "a", "A-b_9", "_x", "9", "x" * 64, "-", "self", "None"])
def test_a_valid_operation_id_is_the_name_letter_by_letter(identifier: str) -> None:
    assert name("get", "/pets", identifier) == identifier


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("repos/get", "repos_get"),
        ("repos.get all", "repos_get_all"),
        ("Pets::List<Pet>", "Pets_List_Pet"),
        ("  x  ", "x"),
        ("über-x", "ber-x"),
        ("a\n", "a"),
        ("a/" + "b" * 62, "a_" + "b" * 62),
    ],
)
def test_characters_that_no_name_has_become_one_underscore(identifier: str, expected: str) -> None:
    assert name("get", "/pets", identifier) == expected


def test_a_slash_in_the_operation_id_is_replaced_and_the_original_kept() -> None:
    tool = tool_of({"operationId": "repos/get"})
    assert (tool.name, tool.operation.operation_id) == ("repos_get", "repos/get")


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("get", "/x", "get_x"),
        ("get", "/users/{id}/posts", "get_users_id_posts"),
        ("post", "/", "post"),
        ("delete", "/Users/{userId}", "delete_users_userid"),
        ("get", "/v1/{name=projects/*}:run", "get_v1_name_projects_run"),
        ("query", "/a-b/c.d", "query_a-b_c_d"),
        ("get", "/%C3%BC", "get_c3_bc"),
    ],
)
def test_without_an_operation_id_the_name_is_made_of_method_and_path(method: str, path: str, expected: str) -> None:
    assert name_from_path(method, path) == expected
    assert name(method, path) == expected
    assert name(method, path, "") == expected
    assert name(method, path, "ü") == expected


def test_where_nothing_is_left_of_method_and_path_there_is_a_name_all_the_same() -> None:
    assert name("!", "/ü") == "operation"
    first, second = tool_names([one("!", "/ü", None), one("!", "/ö", None)])
    assert first != second
    assert first.startswith("operation_")


def test_ids_that_differ_in_the_ninetieth_character_are_two_names_of_at_most_64() -> None:
    first, second = tool_names([one("get", "/a", "a" * 90), one("get", "/b", "a" * 89 + "b")])
    assert len(first) <= 64
    assert len(second) <= 64
    assert first != second
    assert tool_names([one("get", "/b", "a" * 89 + "b"), one("get", "/a", "a" * 90)]) == [second, first]
    assert name("get", "/elsewhere", "a" * 90) == first  # a long id has the same name wherever it stands


def test_ids_that_look_alike_once_they_are_names_are_two_tools_and_the_exact_one_keeps_its_name() -> None:
    dotted, exact = tool_names([one("get", "/a", "a.b"), one("get", "/b", "a_b")])
    assert exact == "a_b"
    assert re.fullmatch(r"a_b_[0-9a-f]{6}", dotted)


def test_an_operation_id_that_stands_twice_names_neither() -> None:
    first, second = tool_names([one("get", "/a", "x"), one("get", "/b", "x")])
    assert {first, second}.isdisjoint({"x"})
    assert re.fullmatch(r"x_[0-9a-f]{6}", first)
    assert first != second


def test_an_operation_id_that_looks_like_a_made_name_keeps_it() -> None:
    _, made_name = tool_names([one("get", "/a", "x"), one("get", "/b", "x")])
    names = tool_names([one("get", "/a", "x"), one("get", "/b", "x"), one("get", "/c", made_name)])
    assert names[2] == made_name
    assert len(set(names)) == 3


def test_the_limit_counts_a_prefix() -> None:
    (found,) = tool_names([one("get", "/a", "b" * 60)], prefix="shop__", limit=48)
    assert found.startswith("shop__b")
    assert len(found) == 48
    (short,) = tool_names([one("get", "/a", "list")], prefix="shop__", limit=48)
    assert short == "shop__list"


def test_a_prefix_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no room"):
        tool_names([], prefix="p" * 60)
    for options in ({"name_prefix": "p" * 60}, {"name_limit": 65}, {"name_limit": 3}, {"name_prefix": "a b"}):
        with pytest.raises(UsageError, match="name_limit"):
            generate(document({"/x": {"get": {"responses": OK}}}), **options)


def test_generation_takes_a_limit_and_a_prefix() -> None:
    source = document({"/x": {"get": {"operationId": "i" * 80, "responses": OK}}})
    (tool,) = made(source, name_prefix="client_", name_limit=40).tools
    assert tool.name.startswith("client_iii")
    assert len(tool.name) == 40


@given(operations, st.integers(8, 64))
def test_names_are_valid_unique_and_within_the_limit(found: list[Operation], limit: int) -> None:
    names = tool_names(found, limit=limit)
    assert len(set(names)) == len(names) == len(found)
    assert all(NAME.fullmatch(name) and len(name) <= limit for name in names)


@given(operations, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_of_operations(found: list[Operation], chance: random.Random) -> None:
    named = dict(zip(found, tool_names(found), strict=True))
    shuffled = chance.sample(found, len(found))
    assert dict(zip(shuffled, tool_names(shuffled), strict=True)) == named


@given(operations)
def test_one_more_operation_never_gives_a_name_to_another_of_those_before(found: list[Operation]) -> None:
    before = dict(zip(found[:-1], tool_names(found[:-1]), strict=True))
    after = dict(zip(found, tool_names(found), strict=True))
    for operation, old in before.items():
        assert after[operation] == old or after[operation] not in before.values()


def test_two_tools_do_not_swap_names_when_a_third_comes_between() -> None:
    paths: dict[str, Any] = {"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "x"}}}
    two = {tool.endpoint.key: tool.name for tool in made(document(paths)).tools}
    three = {t.endpoint.key: t.name for t in made(document({"/0": {"get": {"operationId": "x"}}, **paths})).tools}
    assert {key: three[key] for key in two} == two


@given(st.permutations(["/a", "//a", "/a/", "/a?x=1", "/a?x=2", "/b", "/{x}", "/{y}", "/c"]))
def test_endpoints_and_names_are_the_same_in_any_order_of_the_paths(paths: list[str]) -> None:
    items: dict[str, Any] = {path: {"get": {"responses": OK}, "put": {"operationId": "put it"}} for path in paths}
    items["/c"]["post"] = {"operationId": "put_it"}
    found = made(document(items)).tools
    reference = made(document(dict(sorted(items.items())))).tools
    assert {(t.pointer, t.endpoint.key, t.name) for t in found} == {
        (t.pointer, t.endpoint.key, t.name) for t in reference
    }
    assert len({tool.name for tool in found}) == 19


def test_operations_that_share_an_endpoint_stay_separate_tools() -> None:
    first, second = made(document({"/a": {"get": {"responses": OK}}, "//a": {"get": {"responses": OK}}})).tools
    assert first.endpoint == second.endpoint
    assert first.name != second.name
    assert (first.request.template, second.request.template) == (None, "//a")


@pytest.mark.parametrize("text", ["", "!", "ü", "\u202e", "  "])
def test_of_some_text_no_name_is_left(text: str) -> None:
    assert slug(text) == ""


# Keys of arguments


@pytest.mark.parametrize("wire", ["class", "from", "self", "a-b", "in", "None", "arguments", "2fa", "_", "-", "A" * 64])
def test_a_valid_wire_name_is_the_key_whatever_other_languages_make_of_it(wire: str) -> None:
    tool = tool_of({"parameters": [parameter(wire)]})
    assert list(properties(tool)) == [wire]
    ((binding),) = tool.bindings
    assert (binding.argument, binding.location, binding.name) == (wire, "query", wire)


@pytest.mark.parametrize(
    ("wire", "key"),
    [
        ("$filter", "filter"),
        ("ids[]", "ids"),
        ("filter[name]", "filter_name"),
        ("user.name", "user_name"),
        ('x=__import__("os")', "x___import___os"),
        ("{{ 7*7 }}", "7_7"),
        ("ü", "query"),
        ("a b", "a_b"),
        ("a\n", "a"),
    ],
)
def test_other_wire_names_become_keys_and_are_kept_on_the_wire(wire: str, key: str) -> None:
    tool = tool_of({"parameters": [parameter(wire)]})
    assert list(properties(tool)) == [key]
    assert [(leaf.name, leaf.value) for leaf in tool.request.query] == [(wire, leaf_of(key))]


def test_one_name_in_two_locations_is_two_arguments() -> None:
    tool = tool_of({"parameters": [parameter("id", "header"), parameter("id", "query"), parameter("id", "cookie")]})
    assert {(b.argument, b.location, b.name) for b in tool.bindings} == {
        ("id", "query", "id"),
        ("id_header", "header", "id"),
        ("id_cookie", "cookie", "id"),
    }


def test_the_path_keeps_the_plain_key() -> None:
    tool = tool_of({"parameters": [parameter("id", "query"), parameter("id", "path")]}, path="/x/{id}")
    assert {(b.argument, b.location) for b in tool.bindings} == {("id", "path"), ("id_query", "query")}


def test_a_valid_name_keeps_its_key_against_one_that_was_made_valid() -> None:
    keys = argument_keys([("path", "a.b"), ("query", "a_b")])
    assert keys == {("query", "a_b"): "a_b", ("path", "a.b"): "a_b_path"}


wire_names = st.sampled_from(
    ["id", "id_query", "i.d", "i d", "i_d", "ü", "ö", "", "query", "a" * 64, "a" * 70, "a" * 71]
) | st.text(max_size=70)
wire_parameters = st.lists(
    st.tuples(st.sampled_from(["path", "query", "header", "cookie", "querystring"]), wire_names),
    unique=True,
    max_size=12,
)


@given(wire_parameters, st.randoms(use_true_random=False))
def test_keys_are_valid_unique_and_independent_of_the_order(
    found: list[tuple[str, str]], chance: random.Random
) -> None:
    keys = argument_keys(found)
    assert set(keys) == set(found)
    assert len(set(keys.values())) == len(found)
    assert all(KEY.fullmatch(key) for key in keys.values())
    assert argument_keys(chance.sample(found, len(found))) == keys


# The key of the body


BODY = {"content": {"application/json": {"schema": {"type": "object"}}}}


@pytest.mark.parametrize("location", ["path", "query", "header", "cookie"])
def test_a_parameter_named_like_the_body_keeps_its_name_and_the_body_is_renamed(location: str) -> None:
    path = "/x/{requestBody}" if location == "path" else "/x"
    tool = tool_of({"parameters": [parameter("requestBody", location)], "requestBody": BODY}, path=path)
    assert {(b.argument, b.location) for b in tool.bindings} == {
        ("requestBody", location),
        ("requestBodyBody", "body"),
    }


def test_a_query_string_named_like_the_body_keeps_its_name() -> None:
    whole = {
        "name": "requestBody",
        "in": "querystring",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
    tool = tool_of({"parameters": [whole], "requestBody": BODY}, version="3.2.0")
    assert [(b.argument, b.location) for b in tool.bindings] == [
        ("requestBody", "querystring"),
        ("requestBodyBody", "body"),
    ]


def test_the_body_is_renamed_until_its_name_is_free() -> None:
    taken = [parameter("requestBody"), parameter("requestBodyBody", "header"), parameter("requestBodyBodyBody")]
    tool = tool_of({"parameters": taken, "requestBody": {**BODY, "required": True}})
    assert tool.parameters["required"] == ["requestBodyBodyBodyBody"]
    assert tool.request.body is not None
    assert tool.request.body.value == "{{ requestBodyBodyBodyBody }}"


def test_a_clash_takes_nothing_from_a_body_that_is_no_object() -> None:
    content = {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}
    tool = tool_of({"parameters": [parameter("requestBody")], "requestBody": {"content": content}})
    assert properties(tool)["requestBody"] == {"type": "string"}
    assert properties(tool)["requestBodyBody"]["items"] == {"type": "string"}


def test_a_parameter_of_the_path_item_counts_too() -> None:
    item = {"parameters": [parameter("requestBody")], "post": {"requestBody": BODY}}
    (tool,) = made(document({"/x": item})).tools
    assert set(properties(tool)) == {"requestBody", "requestBodyBody"}


def test_a_parameter_whose_key_is_made_that_name_keeps_it() -> None:
    tool = tool_of({"parameters": [parameter("requestBody[]")], "requestBody": BODY})
    assert set(properties(tool)) == {"requestBody", "requestBodyBody"}


@given(st.sets(st.sampled_from(["requestBody" + "Body" * n for n in range(5)])))
def test_the_key_of_the_body_is_never_taken(taken: set[str]) -> None:
    assert body_key(taken) not in taken


# Names of APIs


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (("Pet Store",), "pet-store"),
        (("3scale API",), "scale-api"),
        (("HTTP", "service"), "service"),
        (("日本", "!"), "api"),
        (("", "petstore"), "petstore"),
        (("x" * 40,), "x" * 32),
        (("a" * 31 + " b",), "a" * 31),
    ],
)
def test_the_api_is_named_by_the_first_candidate_that_makes_a_name(candidates: tuple[str, ...], expected: str) -> None:
    assert api_name(*candidates) == expected
