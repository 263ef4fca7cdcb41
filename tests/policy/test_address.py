"""What a call can be matched by, and which tools are refused because it would not be certain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from small_policies import api, known, pets

from toolgen.errors import PatternError, RegistrationError, ToolgenError
from toolgen.policy.address import (
    EndpointAddress,
    NameAddress,
    SourceAddress,
    ToolList,
    Vocabulary,
    is_source_name,
    is_tool_name,
    known_tools,
)
from toolgen.policy.patterns import Pattern
from toolgen.tools.model import Endpoint, Tool, Toolset
from toolgen.tools.naming import RESERVED_SOURCES


def refused(*toolsets: Any) -> list[str]:
    """The messages of the problems for which these tools are refused."""
    with pytest.raises(RegistrationError) as caught:
        known_tools(toolsets)
    assert isinstance(caught.value, ToolgenError)
    return [problem.message for problem in caught.value.problems]


def changed(toolset: Toolset, which: str, /, **fields: Any) -> Toolset:
    """The toolset with one tool's fields changed behind the model's back."""
    tools = tuple(tool.model_copy(update=fields) if tool.name == which else tool for tool in toolset.tools)
    return toolset.model_copy(update={"tools": tools})


# Addresses


def test_an_apis_tool_answers_to_http_and_to_its_api_the_endpoint_first() -> None:
    tool = known(pets())["createPet"]
    assert tool.addresses == (
        EndpointAddress("http", "post", "/pets"),
        EndpointAddress("petstore", "post", "/pets"),
        SourceAddress("http", "createPet"),
        SourceAddress("petstore", "createPet"),
        NameAddress("createPet"),
    )
    assert [str(address) for address in tool.addresses] == [
        *("http.post:/pets", "petstore.post:/pets", "http:createPet", "petstore:createPet", "createPet")
    ]
    assert tool.source == "petstore"


@pytest.mark.parametrize(
    ("given", "addresses", "source"),
    [
        (ToolList("mcp", ["read_x"], "github"), ["mcp:read_x", "github:read_x", "read_x"], "github"),
        (ToolList("mcp", ["read_x"]), ["mcp:read_x", "read_x"], "mcp"),
        (ToolList("builtin", ("a.b",)), ["builtin:a.b", "a.b"], "builtin"),
    ],
)
def test_a_listed_tool_answers_to_its_kind_of_source_and_its_server(
    given: ToolList, addresses: list[str], source: str
) -> None:
    (tool,) = known_tools([given])
    assert [str(address) for address in tool.addresses] == addresses
    assert (tool.source, tool.endpoint, tool.is_write) == (source, None, True)


def test_tools_keep_the_order_in_which_they_are_given() -> None:
    given = [ToolList("builtin", ["z", "a"]), api(b="get /b", a="get /a"), ToolList("mcp", ["z"], "github")]
    assert [(tool.source, tool.name) for tool in known_tools(given)] == [
        *(("builtin", "z"), ("builtin", "a"), ("petstore", "b"), ("petstore", "a"), ("github", "z"))
    ]


def test_what_only_reads_is_no_write_and_what_a_person_marked_is_destructive() -> None:
    tools = known(api(a="get /a", b="head /b", c="query /c", d="options /d", e="post /e", f="delete /f", g="copy /g"))
    assert [name for name, tool in tools.items() if tool.is_write] == ["e", "f", "g"]
    (drop, keep) = known_tools([ToolList("mcp", ["drop", "keep"], destructive=["drop"])])
    assert (drop.marked_destructive, keep.marked_destructive) == (True, False)
    for value, counts in ((True, True), (False, False), (None, False), ("yes", False)):
        assert known(changed(pets(), "getPet", destructive=value))["getPet"].marked_destructive is counts


# What is refused


@pytest.mark.parametrize(
    "name",
    [
        "http.get:x",
        "a\nb",
        "a\n",
        "a\0",
        "a/b",
        "a b",
        "",
        "é",
        "a*",
        "a?",
        "a:b",
        "a" * 129,
        None,
        1,
        True,
        ["a"],
        {},
        b"a",
    ],
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(name: Any) -> None:
    assert refused(ToolList("mcp", ["ok", name])) == [f"the tool name {name!r} is refused"]
    assert refused(changed(pets(), "getPet", name=name)) == [f"the tool name {name!r} is refused"]
    assert not is_tool_name(name)


def test_names_are_as_long_and_as_odd_as_other_systems_have_them() -> None:
    names = ["a" * 128, "a.b-c_D9", "..", "-", "http", "http.post"]
    assert [tool.name for tool in known_tools([ToolList("mcp", names)])] == names


@pytest.mark.parametrize(
    "name", ["", "Pets", "pets_store", "9a", "a" * 33, "a.b", "a:b", "pets\n", "é", 1, ["a"], {}, True]
)
def test_a_source_without_a_valid_name_is_refused(name: Any) -> None:
    assert f"{name!r} is no name of a source" in refused(ToolList("mcp", ["a"], name))
    assert f"{name!r} is no name of a source" in refused(pets().model_copy(update={"api": name}))
    assert not is_source_name(name)


@pytest.mark.parametrize("name", sorted(RESERVED_SOURCES))
def test_neither_an_api_nor_a_server_bears_a_reserved_sources_name(name: str) -> None:
    assert refused(pets().model_copy(update={"api": name})) == [f"{name!r} is no name of a source"]
    assert refused(ToolList("mcp", ["a"], name)) == [f"{name!r} is no name of a source"]


def test_an_api_always_has_a_name() -> None:
    assert refused(pets().model_copy(update={"api": None})) == ["None is no name of a source"]


@pytest.mark.parametrize("source", ["http", "petstore", "", "MCP", None, 1, ["mcp"], {}])
def test_a_list_of_names_has_a_kind_of_source_that_has_no_endpoints(source: Any) -> None:
    assert refused(ToolList(source, ["a"])) == [f"{source!r} is no kind of source for a list of names"]


def test_only_mcp_has_servers() -> None:
    assert refused(ToolList("builtin", ["a"], "github")) == ["only the source 'mcp' has servers, this is 'builtin'"]


@pytest.mark.parametrize("names", ["read", b"read", None, 1])
def test_names_that_are_no_list_are_refused_and_not_read_as_characters(names: Any) -> None:
    assert refused(ToolList("mcp", names)) == [f"`names` is no list of names: {names!r}"]
    assert refused(ToolList("mcp", ["r"], destructive=names)) == [f"`destructive` is no list of names: {names!r}"]


@pytest.mark.parametrize("name", ["drop", None, ["a"], 1])
def test_a_mark_on_a_tool_that_is_not_there_is_refused(name: Any) -> None:
    messages = refused(ToolList("mcp", ["a"], destructive=["a", name]))
    assert messages == [f"{name!r} is marked destructive and is none of the tools"]


def test_a_name_twice_in_one_source_is_refused_and_in_two_it_is_not() -> None:
    assert refused(ToolList("mcp", ["a", "b", "a"], "github")) == ["two tools are called 'a'"]
    assert refused(changed(pets(), "getPet", name="createPet")) == ["two tools are called 'createPet'"]
    assert len(known_tools([ToolList("mcp", ["a"], "github"), ToolList("mcp", ["a"], "gitlab"), api(a="get /a")])) == 3


@pytest.mark.parametrize(
    "given",
    [
        [api("github", a="get /a"), api("github", b="get /b")],
        [api("github", a="get /a"), ToolList("mcp", ["b"], "github")],
        [ToolList("mcp", ["a"], "github"), ToolList("mcp", ["b"], "github")],
    ],
)
def test_a_source_that_is_there_twice_is_refused(given: Sequence[Any]) -> None:
    assert refused(*given) == ["two sources are called 'github'"]
    assert refused(ToolList("builtin", ["a"]), ToolList("builtin", ["b"])) == ["two sources are called 'builtin'"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", "/a"), ("", "/a"), ("po st", "/a"), ("a:b", "/a"), ("post\n", "/a"), (None, "/a"), (["post"], "/a")),
        *(("post", "//a"), ("post", "a"), ("post", ""), ("post", "/a?x"), ("post", "/%61"), ("post", "/a/../b")),
        *(("post", "/a%2Fb"), ("post", "https://h/a"), ("post", "/\ud800"), ("post", None), ("post", ["/a"])),
    ],
)
def test_an_endpoint_that_generation_would_not_write_is_refused(method: Any, path: Any) -> None:
    endpoint = Endpoint.model_construct(method=method, path=path)
    (message,) = refused(changed(pets(), "getPet", endpoint=endpoint))
    assert message == f"the endpoint {f'{method}:{path}'!r} of 'getPet' is in no normal form"


@pytest.mark.parametrize("endpoint", [None, "get:/a", {"method": "get", "path": "/a"}])
def test_a_tool_of_an_api_has_an_endpoint(endpoint: Any) -> None:
    assert refused(changed(pets(), "getPet", endpoint=endpoint)) == [
        f"the endpoint {endpoint!r} of 'getPet' is in no normal form"
    ]


def test_all_problems_are_told_at_once_each_with_its_source() -> None:
    bad = changed(changed(pets(), "getPet", name="get:Pet"), "listPets", endpoint=Endpoint(method="GET", path="//pets"))
    with pytest.raises(RegistrationError) as caught:
        known_tools([bad, ToolList("mcp", ["a", "a", None], "Git Hub"), ToolList("builtin", ["a"]), bad])
    assert [(problem.where, problem.message) for problem in caught.value.problems] == [
        ("petstore", "the endpoint 'GET://pets' of 'listPets' is in no normal form"),
        ("petstore", "the tool name 'get:Pet' is refused"),
        ("Git Hub", "'Git Hub' is no name of a source"),
        ("Git Hub", "two tools are called 'a'"),
        ("Git Hub", "the tool name None is refused"),
        ("petstore", "two sources are called 'petstore'"),
        ("petstore", "the endpoint 'GET://pets' of 'listPets' is in no normal form"),
        ("petstore", "the tool name 'get:Pet' is refused"),
    ]


def test_the_name_of_a_server_forges_no_line_of_the_error() -> None:
    with pytest.raises(RegistrationError) as caught:
        known_tools([ToolList("mcp", ["a", "a"], "x\nfine\x1b[2J")])
    assert len(str(caught.value).splitlines()) == 1 + len(caught.value.problems)
    assert "\x1b" not in str(caught.value)


def test_what_is_neither_a_toolset_nor_a_list_is_a_mistake_in_the_program() -> None:
    for given in (None, "mcp", {"source": "mcp"}, pets().tools[0]):
        with pytest.raises(TypeError, match="expected Toolset, ToolList or something with a name and tools"):
            known_tools([given])  # type: ignore[list-item]


# Words


def test_the_tools_in_play_bring_the_words_that_patterns_use() -> None:
    given = [api("files", copyFile="copy /files/{id}"), ToolList("mcp", ["a"], "github"), ToolList("builtin", ["b"])]
    words = Vocabulary().with_tools(known_tools(given))
    assert words == Vocabulary(frozenset({"files"}), frozenset({"github"}), frozenset({"copy"}))
    assert words.sources == ("a2a", "builtin", "dynamic", "http", "mcp", "memory", "recall", "files", "github")
    assert words.with_endpoints == ("http", "files")
    assert words.all_methods[-1] == "copy"
    for text in ("http.copy:/files/{id}", "files.copy:*", "files:copyFile", "github:a"):
        assert Pattern.of(text, words).text == text
        with pytest.raises(PatternError):
            Pattern.of(text, Vocabulary())
    with pytest.raises(PatternError, match="'github' have no endpoint, so that it takes no method"):
        Pattern.of("github.post:*", words)


def test_words_that_a_config_names_are_kept_beside_those_of_tools() -> None:
    words = Vocabulary(frozenset({"other"}), frozenset({"gitlab"}), frozenset({"lock"})).with_tools(
        known_tools([pets()])
    )
    assert set(words.sources) > {"other", "gitlab", "petstore"}
    assert set(words.qualified) > {"other.lock", "petstore.get", "http.lock"}
    assert "gitlab.get" not in words.qualified


def test_every_tool_that_generation_makes_is_known() -> None:
    (tool,) = known_tools([api(x="post /users('{id}')/{name=projects/*}:run")])
    assert isinstance(tool.tool, Tool)
    assert tool.endpoint is not None
    assert Pattern(f"http.post:{tool.endpoint.path}").matches(tool.addresses[0])


@dataclass
class Named:
    """A source of a program's own: it has a name and tools."""

    name: str
    given: list[Any]

    def tools(self) -> list[Any]:
        return self.given


def test_anything_with_named_tools_is_a_source() -> None:
    wipe = SimpleNamespace(name="wipe", destructive=True)
    found = {tool.name: tool for tool in known_tools([Named("files", ["read", wipe]), Named("builtin", ["now"])])}
    assert [found[name].sources for name in ("read", "wipe", "now")] == [
        ("mcp", "files"),
        ("mcp", "files"),
        ("builtin",),
    ]
    assert [found[name].is_destructive for name in ("read", "wipe", "now")] == [False, True, False]
    assert known_tools(SimpleNamespace(name="files", tools=("read",)))[0].source == "files"
    with pytest.raises(RegistrationError) as caught:
        known_tools([Named("http", ["x"]), Named("Files", ["a b", None, SimpleNamespace(title="no name")])])
    assert len(caught.value.problems) == 5
