"""What may be read and what is read: one test per rule, each named for what it proves."""

from __future__ import annotations

import datetime as dt
import gc
import gzip
import json
import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from toolgen.errors import (
    LimitExceeded,
    SourceError,
    SourceRefused,
    SourceUnavailable,
    SyntaxFault,
    ToolgenError,
    UsageError,
)
from toolgen.openapi.source import Document, Limits, Loader, check_size
from toolgen.openapi.source.remote import Remote

TEXT = "openapi: 3.1.0\ninfo: {title: t}\n"
TREE = {"openapi": "3.1.0", "info": {"title": "t"}}
SECRET = "s3cret-value"


def json_data(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    leaf = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
    return st.recursive(
        leaf, lambda child: st.lists(child, max_size=4) | st.dictionaries(text, child, max_size=4), max_leaves=20
    )


ANY_TEXT = st.text(max_size=12)  # with unpaired surrogates
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def load(source: Any, **settings: Any) -> Any:
    return Loader(**settings).load(source).tree


def place(error: ToolgenError) -> tuple[int | None, int | None]:
    return error.problems[0].line, error.problems[0].column


# What a source is


def test_a_path_is_read_as_str_and_as_pathlike(tmp_path: Path) -> None:
    path = tmp_path / "a b.yaml"
    path.write_text(TEXT)
    for source in (path, str(path)):
        document = Loader().load(source)
        assert document == Document(path.resolve().as_uri(), TREE, TEXT.encode())


def test_a_relative_path_has_an_absolute_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec.yaml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    assert Loader().load("spec.yaml").uri == (tmp_path.resolve() / "spec.yaml").as_uri()


@pytest.mark.parametrize(
    "text",
    [
        '{"openapi": "3.1.0", "info": {"title": "t"}}',
        TEXT,
        "\ufeff" + TEXT,
        '\ufeff \n{"openapi": "3.1.0", "info": {"title": "t"}}',
    ],
)
def test_text_is_told_from_a_path_and_has_no_uri(text: str) -> None:
    for source in (text, text.encode()):
        document = Loader().load(source)
        assert (document.uri, document.tree, document.content) == (None, TREE, text.encode())


@pytest.mark.parametrize("text", ["openapi: 3.1.0", "swagger: '2.0'", '"openapi": 3.1.0', "  openapi : 3.1.0"])
def test_one_line_that_begins_like_a_document_is_text(text: str) -> None:
    assert len(load(text)) == 1


def test_json_and_yaml_are_told_apart_by_content_and_not_by_name(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(TEXT)
    (tmp_path / "spec.yaml").write_text(json.dumps(TREE))
    assert load(tmp_path / "spec.json") == load(tmp_path / "spec.yaml") == TREE


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-be"])
@pytest.mark.parametrize("text", ['{"a": "ä€😀"}', "a: ä€😀\n"])
def test_every_unicode_encoding_with_its_mark_is_read(encoding: str, text: str) -> None:
    mark = "" if encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32") else "\ufeff"
    assert load((mark + text).encode(encoding)) == {"a": "ä€😀"}


def test_bytes_that_are_no_text_are_a_fault_with_their_place() -> None:
    with pytest.raises(SyntaxFault, match="byte 10 \\(0xff\\)") as caught:
        load(b"a: 1\nb: \xc3\xa4\xff\n")
    assert place(caught.value) == (2, 5)


@pytest.mark.parametrize("source", ["", "  ", "\n", b"", b"\xef\xbb\xbf", "# nothing\n", "---\n", "\ufeff\n"])
def test_an_empty_document_is_a_fault(source: str | bytes) -> None:
    with pytest.raises(SyntaxFault, match="empty"):
        load(source)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "FILE:/etc/passwd", "ftp://h/x", "jar:file:x!/y", "data:text/plain,x", "s3://b/k"]
)
def test_every_scheme_but_http_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(SourceRefused, match="path"):
        load(url)


def test_a_missing_file_is_named_with_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "petstore.yaml").write_text(TEXT)
    with pytest.raises(SourceUnavailable, match=r"petstor\.yaml \(near it: petstore\.yaml\)"):
        load(tmp_path / "petstor.yaml")
    with pytest.raises(SourceUnavailable, match="no file"):
        load(tmp_path / "nowhere" / "x.yaml")


def test_a_directory_and_an_impossible_path_are_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="is a directory"):
        load(tmp_path)
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        load("a\0b")
    with pytest.raises(SourceUnavailable, match="cannot be read"):
        load("x" * 5000)


def test_a_file_that_may_not_be_read_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: Any) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "spec.yaml").write_text(TEXT)
    monkeypatch.setattr(os, "open", forbidden)
    with pytest.raises(SourceUnavailable, match=r"spec\.yaml cannot be read: Permission denied"):
        load(tmp_path / "spec.yaml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_and_a_device_are_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "spec.yaml")
    for path in (tmp_path / "spec.yaml", "/dev/zero"):
        with pytest.raises(SourceUnavailable, match="not a regular file"):
            load(path)


# Mappings


def test_a_mapping_is_copied_and_never_changed() -> None:
    source = {"a": [{"b": 1}]}
    tree = load(source)
    tree["a"][0]["b"] = 2
    assert source == {"a": [{"b": 1}]}


def test_the_content_of_a_mapping_is_its_json() -> None:
    document = Loader().load({"a": 1})
    assert (document.uri, document.content) == (None, b'{"a": 1}')


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({200: 1, True: 2, None: 3, 1.5: 4}, {"200": 1, "true": 2, "null": 3, "1.5": 4}),
        ({"a": dt.date(2020, 1, 2)}, {"a": "2020-01-02"}),
        ({"a": dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC)}, {"a": "2020-01-02T03:04:05+00:00"}),
        ({dt.date(2020, 1, 2): 1, 200: 2}, {"2020-01-02": 1, "200": 2}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        (MappingProxyType({"a": MappingProxyType({"b": dt.date(2020, 1, 2)})}), {"a": {"b": "2020-01-02"}}),
        (OrderedDict(a=OrderedDict(b=1)), {"a": {"b": 1}}),
        ({"a": "\ud800"}, {"a": "\ufffd"}),
        ({"a": 10**30}, {"a": 10**30}),
    ],
)
def test_a_mapping_becomes_plain_json_data(source: Any, expected: Any) -> None:
    tree = load(source)
    assert tree == expected
    assert type(tree) is dict
    assert json.dumps(tree) == json.dumps(expected)


@pytest.mark.parametrize(
    ("source", "pointer", "message"),
    [
        ({"a": {"b/c": [object()]}}, "/a/b~1c/0", "type object"),
        ({"a": {"~": {1, 2}}}, "/a/~0", "type set"),
        ({"a": b"bytes"}, "/a", "type bytes"),
        ({"a": [float("nan")]}, "/a/0", "finite"),
        ({"a": float("inf")}, "/a", "finite"),
        ({"a": {(1, 2): 3}}, "/a", "key of type tuple"),
        ({"a": {200: 1, "200": 2}}, "/a", 'duplicate key "200"'),
        ({"a": {1.0: 1, "1.0": 2}}, "/a", 'duplicate key "1.0"'),
        ({"a": 10**5000}, "/a", "too many digits"),
    ],
)
def test_what_json_does_not_have_is_named_by_its_pointer(source: Any, pointer: str, message: str) -> None:
    with pytest.raises(SyntaxFault, match=message) as caught:
        load(source)
    assert caught.value.problems[0].where == pointer


def test_a_mapping_that_contains_itself_or_explodes_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    bomb: Any = OrderedDict(a="x")
    for _ in range(60):
        bomb = OrderedDict(a=bomb, b=bomb)
    for source in (loop, bomb, {"a": ["x" * 1000] * 1000}, MappingProxyType({"a": loop})):
        with pytest.raises(LimitExceeded):
            load(source, limits=Limits(bytes=100_000, nodes=100_000))


# JSON


def test_duplicate_json_keys_are_a_fault_with_the_place_of_each_second_one() -> None:
    text = '{"a": {"x": ":{", "b": [], "b": 1},\n "\\u0061": 2, "c": [{"a": 1}, {"a": 1}]}'
    with pytest.raises(SyntaxFault) as caught:
        load(text)
    assert [(p.line, p.column) for p in caught.value.problems] == [(1, 28), (2, 2)]
    assert 'duplicate key "b"' in str(caught.value)
    assert 'duplicate key "a"' in str(caught.value)


def test_bad_json_is_a_fault_with_line_column_and_caret() -> None:
    with pytest.raises(SyntaxFault) as caught:
        load('{"a": 1,\n "b" 2}')
    assert place(caught.value) == (2, 6)
    assert str(caught.value).splitlines()[-2:] == ['     2 |  "b" 2}', "       |      ^"]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_are_a_fault(literal: str) -> None:
    with pytest.raises(SyntaxFault, match=literal) as caught:
        load(f'{{"a":\n {literal}}}')
    assert place(caught.value) == (2, 2)


def test_a_number_out_of_range_is_a_fault_and_no_infinity() -> None:
    with pytest.raises(SyntaxFault, match="too large"):
        load('{"a": -1e999}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'{"a": "\ud800"}', "\ufffd"),
        (r'{"a": "\uDFFFx"}', "\ufffdx"),
        (r'{"a": "\ud83d\ude00"}', "😀"),
        (r'{"a": "\uD83D\uD83D\uDE00"}', "\ufffd😀"),
        (r'{"a": "\\ud800"}', r"\ud800"),
        (r'{"a": "\\\ud800"}', "\\\ufffd"),
    ],
)
def test_an_unpaired_surrogate_is_replaced_and_a_pair_is_kept(text: str, expected: str) -> None:
    assert load(text) == {"a": expected}


def test_integers_keep_every_digit_up_to_what_python_prints() -> None:
    assert load('{"a": 123456789012345678901234567890}') == {"a": 123456789012345678901234567890}
    with pytest.raises(SyntaxFault, match="5000 characters is too long") as caught:
        load('{"b": 1, "a": ' + "9" * 5000 + "}")
    assert place(caught.value) == (1, 15)


@pytest.mark.parametrize("depth", [201, 5_000, 100_000])
def test_json_nested_too_deep_is_refused(depth: int) -> None:
    with pytest.raises(LimitExceeded, match="nested"):
        load(('{"a":' * depth + "1" + "}" * depth).encode())


def test_a_flow_mapping_is_yaml_and_a_trailing_comma_is_forgiven() -> None:
    assert load("{a: 1, b: [x]}") == {"a": 1, "b": ["x"]}
    assert load('{"a": 1,}') == {"a": 1}


def test_when_both_fail_the_fault_is_of_the_language_the_text_looks_like() -> None:
    with pytest.raises(SyntaxFault, match="not valid JSON"):
        load('{"a": [1}')
    with pytest.raises(SyntaxFault, match="not valid YAML"):
        load("{a: [1}")


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        load('{"a": 1}')
        with pytest.raises(SyntaxFault):
            load('{"a": 1, "a": 2}')
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


@given(st.dictionaries(ANY_TEXT, json_data(ANY_TEXT)))
def test_json_is_read_back(data: dict[str, Any]) -> None:
    expected = json.loads(json.dumps(data).encode())
    for text in (json.dumps(data), json.dumps(data, indent=2)):
        assert load(text) == _replaced(expected)


@given(st.dictionaries(ANY_TEXT, json_data(ANY_TEXT)))
def test_a_mapping_is_read_back(data: dict[str, Any]) -> None:
    assert load(data) == _replaced(data)


@given(st.dictionaries(UNICODE, json_data(UNICODE)), st.sampled_from(["'", '"']))
def test_yaml_is_read_back(data: dict[str, Any], style: str) -> None:
    assert (
        load(
            "# all scalars are quoted and those that are no strings tagged\n"
            + yaml.safe_dump(data, default_style=style)
        )
        == data
    )


@given(st.binary(max_size=60) | st.text(alphabet='{}[]:,"\\ud8019eE+-.NaN\n ', max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        tree = load(content)
    except SourceError:
        return
    json.dumps(tree, allow_nan=False).encode()


def _replaced(data: Any) -> Any:
    """The data with every unpaired surrogate replaced."""
    if isinstance(data, str):
        return data.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(data, list):
        return [_replaced(item) for item in data]
    return {_replaced(key): _replaced(value) for key, value in data.items()} if isinstance(data, dict) else data


# Limits


def test_a_document_of_too_many_bytes_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"a": "x" * 100}))
    for source in (path, path.read_text(), path.read_bytes(), {"a": "x" * 100}):
        assert load(source, limits=Limits(bytes=109))
        with pytest.raises(LimitExceeded, match="100 "):
            load(source, limits=Limits(bytes=100))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "spec.json", "wb") as file:
        file.truncate(1 << 40)  # sparse
    with pytest.raises(LimitExceeded):
        load(tmp_path / "spec.json")


def test_nodes_and_nesting_are_counted_exactly() -> None:
    tree = {"a": [1, {"b": []}], "c": "x"}  # 6 values on 4 levels
    for limits in (Limits(nodes=5), Limits(nesting=3)):
        with pytest.raises(LimitExceeded):
            check_size(tree, "spec", limits)
    check_size(tree, "spec", Limits(nodes=6, nesting=4))


def test_aliases_count_each_time_also_for_depth_and_for_characters() -> None:
    deep = "a: &a [[[1]]]\nb: [[*a]]\n"
    assert load(deep, limits=Limits(nesting=6))
    with pytest.raises(LimitExceeded, match="deeper than 5"):
        load(deep, limits=Limits(nesting=5))
    with pytest.raises(LimitExceeded, match="characters"):
        load("a: &a " + "x" * 1000 + "\nb: [" + "*a, " * 1000 + "]\n", limits=Limits(bytes=100_000))


def test_an_alias_bomb_is_refused_quickly() -> None:
    bomb = "a: &a [x]\n" + "".join(f"b{i}: &b{i} [{','.join([f'*b{i - 1}' if i else '*a'] * 9)}]\n" for i in range(50))
    start = time.perf_counter()
    with pytest.raises(LimitExceeded):
        load(bomb)
    assert time.perf_counter() - start < 2  # a hundredth of that in truth


# References to files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """specs/{root,part}.yaml and other/secret.yaml beside it."""
    for name in ("specs/root.yaml", "specs/sub/part.yaml", "specs/a b.yaml", "other/secret.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"name: {path.name}\n")
    return tmp_path.resolve()


def uri(path: Path) -> str:
    return path.as_uri()


def test_a_reference_is_read_from_the_folder_of_the_root_and_below(folder: Path) -> None:
    loader = Loader()
    root = loader.load(folder / "specs/root.yaml")
    part = loader.fetch(uri(folder / "specs/sub/part.yaml"), base=root.uri)
    assert (part.uri, part.tree) == (uri(folder / "specs/sub/part.yaml"), {"name": "part.yaml"})
    assert loader.fetch(uri(folder / "specs/a b.yaml"), base=part.uri, root=root.uri).tree == {"name": "a b.yaml"}


def test_a_document_is_read_once(folder: Path) -> None:
    loader = Loader()
    root = loader.load(folder / "specs/root.yaml")
    target = folder / "specs/sub/part.yaml"
    first = loader.fetch(uri(target), base=root.uri)
    target.unlink()
    assert loader.fetch(uri(target) + "#/x", base=root.uri) is first
    assert loader.fetch(str(root.uri), base=first.uri) is root


@pytest.mark.parametrize(
    "path",
    [
        "/other/secret.yaml",
        "/specs/../other/secret.yaml",
        "/specs/%2e%2e/other/secret.yaml",
        "/specs/..%2Fother/secret.yaml",
    ],
)
def test_a_reference_out_of_the_folder_is_refused_with_the_setting(folder: Path, path: str) -> None:
    loader = Loader()
    root = loader.load(folder / "specs/root.yaml")
    with pytest.raises(SourceRefused, match="--allow-root DIR"):
        loader.fetch(uri(folder) + path, base=root.uri)


def test_percent_escapes_are_decoded_once(folder: Path) -> None:
    loader = Loader()
    root = loader.load(folder / "specs/root.yaml")
    with pytest.raises(SourceUnavailable):
        loader.fetch(uri(folder) + "/specs/%252e%252e/other/secret.yaml", base=root.uri)
    with pytest.raises(SourceRefused, match="NUL"):
        loader.fetch(uri(folder) + "/specs/root.yaml%00", base=root.uri)
    with pytest.raises(SourceRefused, match="names a host"):
        loader.fetch("file://server/share/x.yaml", base=root.uri)


def test_a_link_cannot_lead_out_of_the_folder(folder: Path) -> None:
    (folder / "specs/link.yaml").symlink_to(folder / "other/secret.yaml")
    (folder / "specs/dir").symlink_to(folder / "other")
    loader = Loader()
    root = loader.load(folder / "specs/root.yaml")
    for name in ("link.yaml", "dir/secret.yaml"):
        with pytest.raises(SourceRefused):
            loader.fetch(uri(folder / "specs") + "/" + name, base=root.uri)


def test_a_folder_that_begins_with_the_same_letters_is_another_folder(folder: Path) -> None:
    (folder / "specs2").mkdir()
    (folder / "specs2/x.yaml").write_text("a: 1\n")
    loader = Loader()
    root = loader.load(folder / "specs/root.yaml")
    with pytest.raises(SourceRefused):
        loader.fetch(uri(folder / "specs2/x.yaml"), base=root.uri)


def test_allowed_roots_take_the_place_of_the_roots_folder(folder: Path) -> None:
    loader = Loader(allowed_roots=[folder / "other"])
    root = loader.load(folder / "specs/root.yaml")
    assert loader.fetch(uri(folder / "other/secret.yaml"), base=root.uri).tree == {"name": "secret.yaml"}
    with pytest.raises(SourceRefused):
        loader.fetch(uri(folder / "specs/sub/part.yaml"), base=root.uri)


def test_text_refers_to_files_only_where_roots_were_given(folder: Path) -> None:
    target = uri(folder / "other/secret.yaml")
    with pytest.raises(SourceRefused, match="--allow-root DIR"):
        Loader().fetch(target, base=None)
    assert Loader(allowed_roots=[folder]).fetch(target, base=None).tree == {"name": "secret.yaml"}
    after_a_file = Loader()
    after_a_file.load(folder / "specs/root.yaml")
    with pytest.raises(SourceRefused):
        after_a_file.fetch(uri(folder / "specs/sub/part.yaml"), base=None)


@pytest.mark.parametrize("base", ["http://h.example/spec", "https://h.example/spec"])
def test_a_document_from_a_url_never_reads_a_file(folder: Path, base: str) -> None:
    loader = Loader(allowed_roots=[folder], allowed_hosts=["h.example"])
    root = loader.load(folder / "specs/root.yaml")  # read already, and still not given away
    for target in (uri(folder / "other/secret.yaml"), str(root.uri)):
        with pytest.raises(SourceRefused, match="local file"):
            loader.fetch(target, base=base)


@pytest.mark.parametrize("target", ["ftp://h/x", "data:,x", "jar:file:/x!/y", "urn:x", "spec.yaml"])
def test_a_reference_of_any_other_scheme_is_refused(target: str) -> None:
    with pytest.raises(SourceRefused, match="scheme"):
        Loader(allowed_roots=["/"], allowed_hosts=["h"]).fetch(target, base=None)


@pytest.mark.parametrize(
    "target", ["file://[/x#a", "file:///%zz\0", "http://[/x#a", "https://h:x/y", "http://#a", "http:"]
)
def test_a_reference_that_is_no_uri_is_refused(target: str, folder: Path) -> None:
    with pytest.raises(SourceRefused):
        Loader(allowed_roots=[folder], allowed_hosts=["h"]).fetch(target, base=None)


# URLs


@pytest.fixture
def second() -> Iterator[HTTPServer]:
    with HTTPServer() as server:
        yield server


def serve(server: HTTPServer, path: str = "/spec", content: str | bytes = TEXT, **options: Any) -> str:
    server.expect_request(path).respond_with_data(content, **options)
    return f"http://127.0.0.1:{server.port}{path}"


def redirect(server: HTTPServer, path: str, location: str, status: int = 302) -> str:
    return serve(server, path, "", status=status, headers={"Location": location})


def sent(server: HTTPServer, name: str) -> list[str | None]:
    return [request.headers.get(name) for request, _ in server.log]


def test_a_url_is_read(httpserver: HTTPServer) -> None:
    url = serve(httpserver)
    assert Loader().load(url + "#/info") == Document(url, TREE, TEXT.encode())


def test_a_url_is_read_inside_a_running_event_loop(httpserver: HTTPServer) -> None:
    import asyncio

    async def main() -> Any:
        return load(serve(httpserver))

    assert asyncio.run(main()) == TREE


@pytest.mark.parametrize("status", [204, 304, 400, 404, 500])
def test_any_status_but_200_is_unavailable_and_named(httpserver: HTTPServer, status: int) -> None:
    with pytest.raises(SourceUnavailable, match=f"status {status}"):
        load(serve(httpserver, status=status))


def test_a_host_that_does_not_answer_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(SourceUnavailable, match="cannot be reached"):
            load(f"http://127.0.0.1:{unused.getsockname()[1]}/spec")


@pytest.mark.parametrize("url", ["http:/x", "http:///x", "https:", "http://[::1/x", "http://h:99999/x", "http://\0/"])
def test_a_url_without_a_host_is_refused(url: str) -> None:
    with pytest.raises(SourceRefused):
        load(url)


def test_redirects_are_followed_on_the_same_host_and_the_last_url_is_the_documents(httpserver: HTTPServer) -> None:
    final = serve(httpserver, "/b/spec")
    redirect(httpserver, "/a/2", "../b/spec#x", 308)
    assert Loader().load(redirect(httpserver, "/a/1", "/a/2", 301)).uri == final


def test_redirects_have_an_end(httpserver: HTTPServer) -> None:
    url = redirect(httpserver, "/loop", "/loop")
    with pytest.raises(LimitExceeded, match="more than 2 redirects"):
        load(url, limits=Limits(redirects=2))
    assert len(httpserver.log) == 3


def test_a_redirect_to_another_host_needs_permission(httpserver: HTTPServer) -> None:
    serve(httpserver)
    url = redirect(httpserver, "/away", f"http://localhost:{httpserver.port}/spec")
    with pytest.raises(SourceRefused, match="--allow-host HOST"):
        load(url)
    assert load(url, allowed_hosts=["localhost"]) == TREE


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://u:p@127.0.0.1/x"])
def test_a_redirect_to_what_may_not_be_loaded_is_refused(httpserver: HTTPServer, location: str) -> None:
    with pytest.raises(SourceRefused):
        load(redirect(httpserver, "/away", location))


@pytest.mark.parametrize("location", ["http://[/", "http://h.example:99999/", "//h.example:x/", "http://\0/"])
def test_a_redirect_to_what_is_no_url_is_refused(location: str) -> None:
    with pytest.raises(SourceRefused):
        Remote(1, 1, 1, ["h.example"], {})._redirected(httpx2.URL("http://h.example/"), location, None)


def test_a_redirect_never_goes_from_https_to_http() -> None:
    remote = Remote(1, 1, 1, ["h.example"], {})
    with pytest.raises(SourceRefused, match="from https to http"):
        remote._redirected(httpx2.URL("https://h.example/a"), "http://h.example/b", "h.example")
    assert str(remote._redirected(httpx2.URL("http://h.example/a"), "https://h.example/b", None)).startswith("https")


def test_headers_go_to_the_origin_of_the_url_and_nowhere_else(httpserver: HTTPServer, second: HTTPServer) -> None:
    other = serve(second)
    back = redirect(second, "/back", f"http://127.0.0.1:{httpserver.port}/spec")
    serve(httpserver)
    loader = Loader(headers={"X-Key": SECRET}, allowed_hosts=["127.0.0.1"])
    loader.load(redirect(httpserver, "/away", back))  # this origin, the other, and this again
    loader.fetch(other, base=None)
    loader.fetch(serve(httpserver, "/part"), base=None)
    assert sent(httpserver, "X-Key") == [SECRET, SECRET, SECRET]
    assert sent(second, "X-Key") == [None, None]


def test_headers_are_not_sent_when_the_root_was_no_url(httpserver: HTTPServer) -> None:
    loader = Loader(headers={"X-Key": SECRET}, allowed_hosts=["127.0.0.1"])
    loader.load(serve(httpserver))
    loader.load(TEXT)
    loader.fetch(serve(httpserver, "/part"), base=None)
    assert sent(httpserver, "X-Key") == [SECRET, None]


def test_references_need_an_allowed_host_even_on_the_roots_own(httpserver: HTTPServer, tmp_path: Path) -> None:
    part = serve(httpserver, "/part")
    loader = Loader()
    root = loader.load(serve(httpserver))
    for base in (root.uri, None, (tmp_path / "x").as_uri()):
        with pytest.raises(SourceRefused, match=rf"127\.0\.0\.1:{httpserver.port} .*--allow-host HOST"):
            loader.fetch(part, base=base)
    assert loader.fetch(str(root.uri), base=root.uri) is root  # the root itself is here already


def test_a_reference_is_fetched_from_an_allowed_host_once(httpserver: HTTPServer) -> None:
    part = serve(httpserver, "/part")
    for host in ("127.0.0.1", f"127.0.0.1:{httpserver.port}"):
        httpserver.clear_log()
        loader = Loader(allowed_hosts=[host])
        assert loader.fetch(part + "#/a", base=None) is loader.fetch(part + "#/b", base=None)
        assert len(httpserver.log) == 1


def test_allowed_hosts_are_compared_without_case_and_with_their_port() -> None:
    remote = Remote(1, 1, 1, ["API.example", "h.example:8443", "[::1]:81", "::2"], {})
    for url in (
        "https://api.EXAMPLE/x",
        "http://api.example.:81/",
        "https://h.example:8443/",
        "http://[::1]:81/",
        "http://[::2]/",
    ):
        remote.check_allowed(url)
    for url in (
        "https://h.example/",
        "http://[::1]/",
        "https://x.api.example/",
        "https://api.example.evil/",
        "https://api.example@evil/",
    ):
        with pytest.raises(SourceRefused):
            remote.check_allowed(url)


@pytest.mark.parametrize("host", ["", "http://h", "h:x", "u@h", "h/x"])
def test_an_allowed_host_that_is_no_host_is_a_usage_error(host: str) -> None:
    with pytest.raises(UsageError, match="HOST"):
        Loader(allowed_hosts=[host])


def test_a_reference_redirected_to_a_host_that_is_not_allowed_is_refused(httpserver: HTTPServer) -> None:
    url = redirect(httpserver, "/away", f"http://localhost:{httpserver.port}/spec")
    with pytest.raises(SourceRefused):
        Loader(allowed_hosts=["127.0.0.1"]).fetch(url, base=None)


@pytest.mark.parametrize("packed", [False, True])
def test_a_download_stops_at_the_limit_counted_unpacked(httpserver: HTTPServer, packed: bool) -> None:
    content = b" " * 1_000_000
    options = {"headers": {"Content-Encoding": "gzip"}} if packed else {}
    url = serve(httpserver, content=gzip.compress(content) if packed else content, **options)
    with pytest.raises(LimitExceeded, match="larger than 100000 bytes"):
        load(url, limits=Limits(bytes=100_000))


def test_gzip_is_unpacked_and_nothing_else_is(httpserver: HTTPServer) -> None:
    content = gzip.compress(TEXT.encode())
    assert load(serve(httpserver, "/1", content, headers={"Content-Encoding": "gzip"})) == TREE
    for encoding in ("br", "zstd", "gzip, gzip"):
        with pytest.raises(SourceUnavailable, match="packed"):
            load(serve(httpserver, f"/{encoding[:2]}{len(encoding)}", content, headers={"Content-Encoding": encoding}))
    with pytest.raises(SourceUnavailable, match="DecodingError"):
        load(serve(httpserver, "/bad", b"no gzip", headers={"Content-Encoding": "gzip"}))


@pytest.mark.parametrize("trickle", [b"X: y\r\n", b"\r\nxxxx", b""], ids=["headers", "body", "silence"])
def test_one_deadline_holds_for_the_whole_fetch(trickle: bytes) -> None:
    done = threading.Event()

    def server(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not done.wait(0.02):
                try:
                    connection.sendall(trickle)
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server, args=(listener,))
        thread.start()
        start = time.perf_counter()
        try:
            with pytest.raises(LimitExceeded, match=r"longer than 0\.3 seconds"):
                load(f"http://127.0.0.1:{listener.getsockname()[1]}/spec", limits=Limits(seconds=0.3))
            assert time.perf_counter() - start < 5
        finally:
            done.set()
            thread.join()


def test_userinfo_in_a_url_is_refused_with_a_hint_and_not_repeated() -> None:
    with pytest.raises(SourceRefused, match="--spec-header") as caught:
        load(f"https://user:{SECRET}@h.example/spec")
    assert SECRET not in str(caught.value)


def test_no_error_repeats_a_header_or_a_query(httpserver: HTTPServer) -> None:
    loader = Loader(headers={"X-Key": SECRET}, limits=Limits(bytes=50, redirects=1))
    query = f"?key={SECRET}"
    urls = [
        serve(httpserver, "/404", status=404),
        serve(httpserver, "/large", "x" * 100),
        serve(httpserver, "/bad", "a: [\n"),
        redirect(httpserver, "/loop", f"/loop{query}"),
        redirect(httpserver, "/away", f"http://elsewhere.example/{query}"),
        redirect(httpserver, "/ftp", f"ftp://elsewhere.example/{query}"),
    ]
    for url in urls:
        with pytest.raises(SourceError) as caught:
            loader.load(url + query)
        assert SECRET not in str(caught.value)
        assert caught.value.__suppress_context__ or SECRET not in repr(caught.value.__context__)
    with pytest.raises(SourceRefused) as refused:
        loader.fetch(f"http://elsewhere.example/x{query}", base=None)
    assert SECRET not in str(refused.value)


def test_a_query_is_masked_and_the_path_is_shown(httpserver: HTTPServer) -> None:
    with pytest.raises(SourceUnavailable, match=r"/404\?\.\.\. answered"):
        load(serve(httpserver, "/404", status=404) + f"?key={SECRET}")


@pytest.mark.parametrize("headers", [{"X-Key": f"{SECRET}\r\nX: y"}, {"X-Key": f"{SECRET}ä"}, {"X\n": SECRET}])
def test_a_header_that_cannot_be_sent_is_a_usage_error_without_its_value(headers: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        Loader(headers=headers)
    assert SECRET not in str(caught.value)


def test_proxies_of_the_environment_are_not_used(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert load(serve(httpserver)) == TREE


def test_a_cookie_is_not_carried_to_the_next_hop(httpserver: HTTPServer) -> None:
    def away(_request: Request) -> Response:
        return Response(status=302, headers={"Location": "/spec", "Set-Cookie": "a=b"})

    httpserver.expect_request("/away").respond_with_handler(away)
    serve(httpserver)
    load(f"http://127.0.0.1:{httpserver.port}/away")
    assert sent(httpserver, "Cookie") == [None, None]


def test_references_lead_to_a_limited_number_of_documents(tmp_path: Path) -> None:
    for name in ("root", "a", "b", "c"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    loader = Loader(limits=Limits(documents=2))
    root = loader.load(tmp_path / "root.json")
    for name in ("a", "b", "a"):
        loader.fetch((tmp_path / f"{name}.json").as_uri(), base=root.uri)
    with pytest.raises(LimitExceeded, match="more than 2 documents"):
        loader.fetch((tmp_path / "c.json").as_uri(), base=root.uri)
