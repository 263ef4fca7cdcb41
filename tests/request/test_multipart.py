"""multipart/form-data: the bytes, read by hand and by the standard library's parser."""

from __future__ import annotations

import base64
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_requests import edited, sent, tool

from toolgen.errors import ArgumentsError
from toolgen.request.model import Part, ResolvedRequest
from toolgen.request.multipart import written
from toolgen.tools.model import Body, Encoding

MULTIPART = "multipart/form-data"
FILE = {"type": "string", "format": "binary"}


def body(value: Any, properties: Any = None, **media: Any) -> ResolvedRequest:
    schema = {"type": "object", "properties": properties or {}}
    return sent(tool(body={MULTIPART: {"schema": schema, **media}}), {"requestBody": value})


def read(request: ResolvedRequest) -> list[tuple[str | None, str | None, str | None, bytes]]:
    """(name, filename, Content-Type, data) of each part, by the parser of the email package."""
    head = f"Content-Type: {request.media_type}\r\n\r\n".encode()
    message = message_from_bytes(head + (request.body or b""), _class=EmailMessage, policy=policy.HTTP)
    assert not message.defects
    found = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        typed = part["content-type"]
        found.append((name, part.get_filename(), typed and str(typed), part.get_payload(decode=True)))
    return found  # type: ignore[return-value]


def test_the_bytes_of_a_body() -> None:
    request = body({"a": "x", "o": {"k": 1}, "f": "AAH/"}, {"f": FILE})
    boundary = (request.media_type or "").partition("boundary=")[2].encode()
    assert len(boundary) == 40
    assert request.media_type == f"multipart/form-data; boundary={boundary.decode()}"
    assert request.body == (
        b'--%(b)s\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'
        b'--%(b)s\r\nContent-Disposition: form-data; name="o"\r\nContent-Type: application/json\r\n\r\n{"k":1}\r\n'
        b'--%(b)s\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n\x00\x01\xff\r\n--%(b)s--\r\n" % {b"b": boundary}
    )


def test_parts_of_every_kind() -> None:
    request = body(
        {
            "n": 5.0,
            "b": False,
            "list": ["x", {"y": 1}, None],
            "none": None,
            "csv": "a,b",
            "raw": 7,
            "files": ["AAH/", {"filename": "é.png", "contentType": "image/png", "data": "iVBO"}],
        },
        {"files": {"type": "array", "items": FILE}, "csv": {"type": "string"}},
        encoding={"csv": {"contentType": "text/csv"}, "raw": {"contentType": "application/json"}},
    )
    assert [(p.name, p.filename, p.content_type, p.data) for p in request.parts] == [
        ("n", None, None, b"5"),
        ("b", None, None, b"false"),
        ("list", None, None, b"x"),
        ("list", None, "application/json", b'{"y":1}'),
        ("csv", None, "text/csv", b"a,b"),
        ("raw", None, "application/json", b"7"),
        ("files", "files", "application/octet-stream", b"\x00\x01\xff"),
        ("files", "é.png", "image/png", base64.b64decode("iVBO")),
    ]
    assert [one[0] for one in read(request)] == [part.name for part in request.parts]
    assert request.notes == ("requestBody has properties that are null or empty and are not sent: list, none",)


def test_encoding_gives_types_headers_and_styles() -> None:
    headers = {"X-Kind": {"schema": {"const": "a b"}}, "Content-Type": {"schema": {"const": "text/evil"}}}
    request = body(
        {"img": "AA==", "ids": [1, 2], "deep": {"a": {"b": 1}}, "ex": {"k": "v w"}},
        {"img": FILE, "ids": {"type": "array"}},
        encoding={
            "img": {"contentType": "image/png, image/jpeg", "headers": headers},
            "ids": {"style": "pipeDelimited"},
            "deep": {"style": "deepObject"},
            "ex": {"style": "form", "explode": True},
        },
    )
    assert [(p.name, p.content_type, p.headers, p.data) for p in request.parts] == [
        ("img", "image/png", (("X-Kind", "a b"),), b"\0"),
        ("ids", None, (), b"1|2"),
        ("deep[a][b]", None, (), b"1"),
        ("k", None, (), b"v w"),
    ]
    assert b"\r\nContent-Type: image/png\r\nX-Kind: a b\r\n\r\n" in (request.body or b"")


@pytest.mark.parametrize(
    "text", ['a"; filename="x', 'a"\r\nX-Evil: 1\r\n\r\nevil', "a\nb", "a\rb", "é", "a%22b", "a;b=c"]
)
def test_no_name_ends_its_quotes_or_starts_a_header(text: str) -> None:
    request = body(
        {text: "AA==", "f": {"filename": text.replace("\r", "").replace("\n", ""), "data": "AA=="}}, {"f": FILE}
    )
    whole = request.body or b""
    escaped = text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A").encode()
    assert b'name="%s"\r\n' % escaped in whole
    assert len(read(request)) == 2
    heads = [part.partition(b"\r\n\r\n")[0] for part in whole.split(b"--" + whole[2:42])[1:3]]
    assert [line.partition(b":")[0] for head in heads for line in head.split(b"\r\n")[1:]] == [
        b"Content-Disposition", b"Content-Disposition", b"Content-Type",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a\\": "x"}, "no backslash and no control character"),
        ({"a\0": "x"}, "no backslash and no control character"),
        ({"f": {"filename": "../x", "data": ""}}, "a file's name"),
        ({"f": {"filename": "a\\b", "data": ""}}, "a file's name"),
        ({"f": {"filename": "a\r\nX: y", "data": ""}}, "a file's name"),
        ({"f": {"filename": "", "data": ""}}, "a file's name"),
        ({"f": {"contentType": "image/png\r\nX: y", "data": ""}}, "is a media type"),
        ({"f": {"contentType": "png", "data": ""}}, "is a media type"),
        ({"f": "no base64!"}, "no base64"),
        ({"f": "\ud800"}, "no base64"),
        ({"a": "\ud800"}, "utf-8 cannot write"),
        ({"a\ud800": "x"}, "no JSON data"),
    ],
)
def test_what_no_part_can_hold_is_refused(value: Any, said: str) -> None:
    with pytest.raises(ArgumentsError, match=said):
        body(value, {"f": FILE})


def test_an_object_for_a_part_of_another_type_is_refused() -> None:
    with pytest.raises(ArgumentsError, match="the part 'x' is sent as application/xml: give its text"):
        body({"x": {"a": 1}}, encoding={"x": {"contentType": "application/xml"}})


def test_a_header_of_a_part_that_is_none_is_refused() -> None:
    made = tool(body={MULTIPART: {"schema": {"type": "object"}}})
    for name, value in (("X-A", "b\r\nX-Evil: 1"), ("X A", "b"), ("X-A", "é")):
        encoding = {"a": Encoding(headers={name: value})}
        changed = edited(made, body=Body(value="{{ requestBody }}", media_type=MULTIPART, encoding=encoding))
        with pytest.raises(ArgumentsError, match="is no header"):
            sent(changed, {"requestBody": {"a": "x"}})


def test_the_boundary_follows_from_the_parts_and_is_in_none_of_them() -> None:
    first, again = body({"a": "x"}), body({"a": "x"})
    assert (first.body, first.headers) == (again.body, again.headers)
    assert body({"a": "y"}).media_type != first.media_type
    part = Part("a", b"x")
    boundary = written(MULTIPART, [part])[0].partition("boundary=")[2]
    hostile = Part("a", f"--{boundary}--\r\n".encode())
    assert written(MULTIPART, [hostile])[0].partition("boundary=")[2].encode() not in hostile.data


def test_the_boundary_moves_on_while_a_part_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part can be made that holds its own digest; one is let to be there."""

    class Digest:
        def __init__(self, data: bytes = b"") -> None:
            self.data = data

        def update(self, data: bytes) -> None:
            pass

        def hexdigest(self) -> str:
            return ("b" if self.data else "a") * 64

    monkeypatch.setattr("toolgen.request.multipart.hashlib.sha256", Digest)
    content_type, data = written(f'{MULTIPART}; boundary="given; twice"', [Part("n", b"--" + b"a" * 40)])
    assert content_type == f"{MULTIPART}; boundary={'b' * 40}"
    assert data.startswith(b"--" + b"b" * 40)


def test_a_part_moved_into_another_gives_another_body() -> None:
    bodies = {body(value).body for value in ({"a": "bc"}, {"ab": "c"}, {"a": "b", "c": ""}, {"a": ["b", "c"]})}
    assert len(bodies) == 4


@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_ -]{0,8}", fullmatch=True), st.binary(max_size=40), min_size=1, max_size=4
    )
)
def test_files_read_back_as_they_were_given(files: dict[str, bytes]) -> None:
    made = tool(body={MULTIPART: {"schema": {"type": "object"}}})
    encoding = {name: Encoding(binary=True) for name in files}
    changed = edited(made, body=Body(value="{{ requestBody }}", media_type=MULTIPART, encoding=encoding))
    request = sent(changed, {"requestBody": {name: base64.b64encode(data).decode() for name, data in files.items()}})
    boundary = (request.body or b"").partition(b"\r\n")[0]
    pieces = (request.body or b"").split(boundary)[1:-1]
    assert [piece.partition(b"\r\n\r\n")[2][:-2] for piece in pieces] == list(files.values())
