"""The one function that normalises an endpoint's path, and what is sent instead of it."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi.documents import document, tool

from toolgen import generate
from toolgen.openapi.endpoint import (
    endpoint_path,
    fragment_placeholders,
    origin_of,
    placeholders,
    request_target,
    skeleton,
)

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/agentstore/agents", "/agentstore/agents"),
        ("agentstore/agents", "/agentstore/agents"),
        ("  /agentstore/agents  ", "/agentstore/agents"),
        ("https://api.example:7070/agentstore/agents", "/agentstore/agents"),
        ("HTTPS://api.example/agentstore/agents", "/agentstore/agents"),
        ("https://api.example", "/"),
        ("https://api.example?x=1", "/"),
        ("", "/"),
        ("   ", "/"),
        ("httpcalls/agents", "/httpcalls/agents"),
        ("httpstuff", "/httpstuff"),
        ("httpfoo:bar", "/httpfoo:bar"),
        ("/Pets/{petId}", "/Pets/{petId}"),
    ],
)
def test_a_pinned_path_has_its_pinned_key(path: str, key: str) -> None:
    assert endpoint_path(path) == key


@pytest.mark.parametrize(
    "path",
    ["http://{host}/x", "https:///x", "http://a b/x", "https://[::1/x", "https://h:port/x", "https://me:secret@h/x"],
)
def test_a_url_whose_host_cannot_be_read_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="host cannot be read"):
        endpoint_path(path)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("//a", "/a"),
        ("/a//b///c", "/a/b/c"),
        ("/a/", "/a/"),
        ("/%61", "/a"),
        ("/a?x=1", "/a"),
        ("/a#part", "/a"),
        ("/a?x=1#part", "/a"),
        ("/a#", "/a"),
        ("/a#{part}", "/a"),
        ("/a?{query}", "/a"),
        ("/a%2db", "/a-b"),
        ("/a%3ab", "/a%3Ab"),
        ("/a b", "/a%20b"),
        ("/ä", "/%C3%A4"),
        ("/%c3%a4", "/%C3%A4"),
        ("/a|b", "/a%7Cb"),
        ("/100%", "/100%25"),
        ("/a{b", "/a%7Bb"),
        ("/a}b", "/a%7Db"),
        ("/{a}{b}", "/{a}{b}"),
    ],
)
def test_two_spellings_of_a_path_have_one_key(path: str, key: str) -> None:
    assert endpoint_path(path) == key
    assert endpoint_path("https://h.test" + path) == key


@pytest.mark.parametrize("path", ["/a/../b", "/.", "/..", "/a/./b", "/a/%2e%2E/b", "/%2e", "https://h.test/.."])
def test_a_dot_segment_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="segment"):
        endpoint_path(path)
    with pytest.raises(ValueError, match="segment"):
        request_target(path)


@pytest.mark.parametrize("path", ["/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00b", "/a\0b"])
def test_an_encoded_separator_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="which servers read differently"):
        endpoint_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "/Users('{id}')",
        "/Products(Name='{name}',Size={size})/Rating",
        "/v1/{name}:cancel",
        "/v1/projects/{project}/topics/{topic}:publish",
        "/{+resource}",
        "/files/{id}.json",
        "/me/drive/root:/{path}:/content",
        "/a;v=1/b",
        "/.well-known/x",
        "/a...b",
    ],
)
def test_odata_and_google_forms_are_their_own_keys(path: str) -> None:
    assert endpoint_path(path) == path
    assert request_target(path) == path


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/a?x=1", "/a?x=1"),
        ("/a?x=1&y", "/a?x=1&y"),
        ("/a?", "/a"),
        ("/a?x=1#part", "/a?x=1"),
        ("/a#{id}", "/a"),
        ("//a//b", "//a//b"),
        ("https://h.test/a?x=1", "/a?x=1"),
        ("/a?x[]=1", "/a?x[]=1"),
        ("/a?x=%2f", "/a?x=%2F"),
    ],
)
def test_a_constant_query_and_doubled_slashes_are_sent(path: str, target: str) -> None:
    assert request_target(path) == target


def test_a_tool_is_matched_by_its_key_and_sends_its_template() -> None:
    made = tool(document({"//sets//{id}?expand=all#top": {"get": {"responses": {}}}}))
    assert made.endpoint.key == "get:/sets/{id}"
    assert made.request.template == "//sets//{id}?expand=all"
    assert [leaf.name for leaf in made.request.path] == ["id"]


def test_a_path_that_is_a_url_is_sent_where_it_says() -> None:
    made = tool(document({"HTTPS://up.test/x": {"get": {"responses": {}}}}, servers=[{"url": "https://h.test/v1"}]))
    assert made.endpoint.key == "get:/x"
    assert made.request.server == "HTTPS://up.test"
    relative = tool(document({"httpcalls/x": {"get": {"responses": {}}}}, servers=[{"url": "https://h.test/v1"}]))
    assert (relative.endpoint.key, relative.request.server) == ("get:/httpcalls/x", None)


def test_paths_no_request_can_be_sent_to_are_skipped_and_cost_nothing_else() -> None:
    paths = {path: {"get": {"responses": {}}} for path in ("/a/../b", "/a%2fb", "http://{host}/x", "/good")}
    made = generate(document(paths))
    assert made.report is not None
    assert [t.endpoint.path for t in made.tools] == ["/good"]
    assert [(o.path, o.status) for o in made.report.operations] == [
        ("/a/../b", "skipped"),
        ("/a%2fb", "skipped"),
        ("http://{host}/x", "skipped"),
        ("/good", "ok"),
    ]


def test_operations_that_share_a_key_stay_separate_tools() -> None:
    made = generate(document({path: {"get": {"responses": {}}} for path in ("/a", "//a", "/%61", "/a?x=1", "/a?x=2")}))
    assert {t.endpoint.key for t in made.tools} == {"get:/a"}
    assert [t.request.template for t in made.tools] == [None, "//a", None, "/a?x=1", "/a?x=2"]
    assert len({t.name for t in made.tools}) == 5


def test_a_fragment_is_never_sent_and_an_argument_in_it_has_nowhere_to_go() -> None:
    paths = {path: {"post": {"responses": {}}} for path in ("/#Action=list", "/#Action={action}")}
    made = generate(document(paths))
    assert [(t.endpoint.path, t.parameters["properties"]) for t in made.tools] == [("/", {})]
    assert made.report is not None
    assert [o.status for o in made.report.operations] == ["ok", "skipped"]
    assert fragment_placeholders("/{a}#{b}/{c}") == ["b", "c"]
    assert fragment_placeholders("/{a#b}") == []


def test_placeholders_and_skeleton_agree() -> None:
    assert placeholders("/a/{b}/{c}:{b}") == ["b", "c", "b"]
    assert skeleton("/a/{b}/{c}:{b}") == ["a", "{}", "{}:{}"]
    assert origin_of(" https://h.test:8080/x") == "https://h.test:8080"
    assert origin_of("/x") is None


# Generated paths

_CHAR = st.sampled_from(UNRESERVED + "!$&'()*+,;=:@") | st.characters(min_codepoint=0xA0, exclude_categories=["C", "Z"])
_LITERAL = st.text(_CHAR, min_size=1, max_size=5).filter(lambda text: text not in (".", ".."))
_NAME = st.sampled_from(["id", "petId", "a.b", "$x", "a-b", "_"])
_EXPRESSION = _NAME.map(lambda name: "{" + name + "}")
_SEGMENT = _LITERAL | _EXPRESSION | st.tuples(_LITERAL, _EXPRESSION).map("".join)
PATHS = st.lists(_SEGMENT, max_size=4).map(lambda segments: "/" + "/".join(segments))


def respelled(path: str, random: Random) -> str:
    """Another spelling of the path that RFC 3986 calls equivalent, with what a key leaves out."""
    pieces: list[str] = []
    for index, piece in enumerate(re.split(r"(\{[^{}]+\})", path)):
        if index % 2:
            pieces.append(piece)
            continue
        for char in piece:
            if char == "/":
                pieces.append("/" * random.randint(1, 2))
            elif (char in UNRESERVED or not char.isascii()) and random.random() < 0.5:
                encoded = "".join(f"%{byte:02X}" for byte in char.encode())
                pieces.append(random.choice([encoded, encoded.lower()]))
            else:
                pieces.append(char)
    spelling = "".join(pieces) + random.choice(["", "?x=1", "?", "#top", "?a={b}#c"])
    return random.choice(["", "https://h.test", "HTTP://h.test:80", " "]) + spelling


@settings(max_examples=4500)
@given(PATHS)
def test_normalising_is_idempotent_and_keeps_no_query_fragment_or_host(path: str) -> None:
    key = endpoint_path(path)
    assert endpoint_path(key) == key
    assert key.startswith("/")
    assert not key.startswith("//")
    assert not set(re.sub(r"\{[^{}]+\}", "", key)) & set("?# \\")
    assert "//" not in key
    assert endpoint_path(request_target(path)) == key
    assert placeholders(key) == placeholders(path)


@settings(max_examples=4500)
@given(PATHS, st.integers(0, 2**32))
def test_equivalent_spellings_have_one_key(path: str, seed: int) -> None:
    assert endpoint_path(respelled(path, Random(seed))) == endpoint_path(path)


@settings(max_examples=1000)
@given(st.text(max_size=30))
def test_any_text_gives_a_key_or_is_refused(text: str) -> None:
    try:
        key = endpoint_path(text)
    except ValueError:
        return
    assert endpoint_path(key) == key
    assert key.startswith("/")
    assert not set(re.sub(r"\{[^{}]+\}", "", key)) & set("?#\\")
