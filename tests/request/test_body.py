"""Bodies as their media types write them, byte by byte."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_requests import edited, sent, tool

from toolgen.errors import ArgumentsError
from toolgen.request.model import ResolvedRequest
from toolgen.tools.model import Body, Encoding

FORM = "application/x-www-form-urlencoded"
HUGE = [10**5000]  # in a list: pytest would print it


def body(media_type: str, value: Any, schema: Any = True, **media: Any) -> ResolvedRequest:
    return sent(tool(body={media_type: {"schema": schema, **media}}), {"requestBody": value})


def form(value: Any, **encoding: Any) -> str:
    request = body(FORM, value, {"type": "object"}, encoding=encoding)
    assert request.media_type == FORM
    assert request.body is not None
    return request.body.decode("ascii")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": None}, '{"b":1,"a":null}'),
        (None, "null"),
        (False, "false"),
        (0, "0"),
        ("", '""'),
        ([], "[]"),
        ({}, "{}"),
        ("é😀\u2028", '"é😀\u2028"'),
        ({"n": 5.0, "m": -0.0, "x": 0.1, "y": 1.5e300}, '{"n":5,"m":0,"x":0.1,"y":1.5e+300}'),
        (2**64, "18446744073709551616"),
        (12345678901234567890.0, "12345678901234567168"),
        (1e20, "100000000000000000000"),
        (1e22, "1e+22"),
        ("${env:HOME}\r\n\0", '"${env:HOME}\\r\\n\\u0000"'),
    ],
)
def test_json(value: Any, expected: str) -> None:
    request = body("application/json", value)
    assert request.body == expected.encode()
    assert request.media_type == "application/json"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_json_reads_back_as_the_same_value_and_the_same_bytes(value: Any) -> None:
    before = json.dumps(value)
    first, second = body("application/vnd.api+json", value), body("application/vnd.api+json", value)
    assert first.body == second.body
    assert json.loads(first.body or b"") == value
    assert json.dumps(value) == before  # what was given is not changed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")], "\ud800", {"\udfff": 1}, HUGE])
@pytest.mark.parametrize("media_type", ["application/json", "application/json; charset=us-ascii", FORM])
def test_what_json_has_no_word_for_is_refused(value: Any, media_type: str) -> None:
    with pytest.raises(ArgumentsError, match=r"cannot be sent as they are|no JSON data") as caught:
        body(media_type, {"a": value}, {"type": "object"})
    assert [problem.where for problem in caught.value.problems] == ["/requestBody"]


@pytest.mark.parametrize(
    ("media_type", "value", "expected"),
    [
        ("application/json; charset=utf-8", "é", '"é"'.encode()),
        ("application/json; charset=us-ascii", "é😀", b'"\\u00e9\\ud83d\\ude00"'),
        ("application/json; charset=utf-16", "é", '"\\u00e9"'.encode("utf-16")),
        ("text/plain; charset=iso-8859-1", "é", b"\xe9"),
        ("text/csv; charset=\"UTF-8\"", "é", "é".encode()),
    ],
)  # fmt: skip
def test_the_charset_is_the_one_that_is_said(media_type: str, value: Any, expected: bytes) -> None:
    request = body(media_type, value, {"type": "string"})
    assert (request.body, request.media_type) == (expected, media_type)


@pytest.mark.parametrize("charset", ["iso-8859-1", "no-such", "undefined", "rot13"])
def test_text_that_a_charset_cannot_write_is_refused(charset: str) -> None:
    with pytest.raises(ArgumentsError, match="the body cannot be written"):
        body(f"text/plain; charset={charset}", "漢", {"type": "string"})


@pytest.mark.parametrize(
    ("media_type", "sent_as"),
    [
        ("text/plain", "text/plain; charset=utf-8"),
        ("application/xml", "application/xml"),
        ("image/svg+xml", "image/svg+xml"),
        ("application/yaml", "application/yaml"),
        ("application/jsonl", "application/jsonl"),
    ],
)
def test_text_passes_as_it_was_written(media_type: str, sent_as: str) -> None:
    text = '<?xml version="1.0"?>\r\n<a b="&lt;">${env:HOME} {{ 7*7 }} é</a>\n'
    request = body(media_type, text, {"type": "string"})
    assert (request.body, request.media_type) == (text.encode(), sent_as)


@pytest.mark.parametrize("value", [{"a": 1}, ["a"]])
def test_an_object_is_no_text_and_the_reason_says_so(value: Any) -> None:
    made = tool(body={"application/xml": {"schema": {"type": "string"}}})
    untyped = made.model_copy(update={"parameters": {"type": "object", "properties": {"requestBody": {}}}})
    untyped.__dict__["home"] = made.home
    with pytest.raises(ArgumentsError, match="a body of application/xml is one text: write the document itself"):
        sent(untyped, {"requestBody": value})


def test_bytes_are_decoded_and_what_is_no_base64_is_refused() -> None:
    request = body("application/octet-stream", "AAH/\n/w==", {"type": "string", "format": "binary"})
    assert (request.body, request.media_type) == (b"\x00\x01\xff\xff", "application/octet-stream")
    for wrong in ("AAH", "a-_b", "no base64!", "data:;base64,AAAA"):
        with pytest.raises(ArgumentsError, match="no base64"):
            body("application/octet-stream", wrong, {"type": "string", "format": "binary"})


@pytest.mark.parametrize("method", ["get", "post", "delete"])
def test_without_a_body_there_is_no_content_type(method: str) -> None:
    made = tool(method=method, body={"application/json": {"schema": {}}})
    request = sent(made)
    assert (request.body, request.media_type, request.headers) == (None, None, (("Accept", "*/*"),))
    assert sent(made, {"requestBody": {}}).headers[1] == ("Content-Type", "application/json")


@pytest.mark.parametrize(
    ("value", "encoding", "expected"),
    [
        ({"a": "b c&d=é+", "e": 5.0, "f": True}, {}, "a=b+c%26d%3D%C3%A9%2B&e=5&f=true"),
        ({"a b": "", "c": "*-._~"}, {}, "a+b=&c=*-._~"),
        ({"tags": ["x", "y z", None]}, {}, "tags=x&tags=y+z"),
        ({"o": {"k": [1, {"l": None}]}}, {}, "o=%7B%22k%22%3A%5B1%2C%7B%22l%22%3Anull%7D%5D%7D"),
        ({"o": "x"}, {"o": {"contentType": "application/json"}}, "o=%22x%22"),
        ({"o": [{"a": 1}, 2]}, {"o": {"contentType": "application/json"}}, "o=%7B%22a%22%3A1%7D&o=2"),
        ({"t": ["x", "y,z"]}, {"t": {"style": "form", "explode": False}}, "t=x,y%2Cz"),
        ({"t": ["x", "y"]}, {"t": {"style": "spaceDelimited"}}, "t=x+y"),
        ({"t": ["x", "y"]}, {"t": {"style": "pipeDelimited"}}, "t=x%7Cy"),
        ({"t": ["x", "y"]}, {"t": {"style": "pipeDelimited", "explode": True}}, "t=x&t=y"),
        ({"t": {"a": 1, "b": [2]}}, {"t": {"style": "deepObject", "explode": True}}, "t%5Ba%5D=1&t%5Bb%5D%5B0%5D=2"),
        ({"t": {"a": 1}}, {"t": {"style": "form", "explode": True}}, "a=1"),
        ({"t": {"a": 1}}, {"t": {"style": "form", "explode": False}}, "t=a,1"),
        ({"t": "a/b"}, {"t": {"allowReserved": True}}, "t=a%2Fb"),
        ({"a": "%41", "b": "&admin=1"}, {}, "a=%2541&b=%26admin%3D1"),
        ({}, {}, ""),
    ],
)
def test_forms(value: Any, encoding: Any, expected: str) -> None:
    assert form(value, **encoding) == expected


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), min_size=1, max_size=4))
def test_a_form_reads_back_as_the_same_fields(value: dict[str, str]) -> None:
    assert parse_qsl(form(value), keep_blank_values=True) == list(value.items())


def test_what_a_form_has_no_way_to_say_is_told() -> None:
    assert body(FORM, {"a": None, "b": [], "c": ""}, {"type": "object"}).notes == (
        "requestBody has properties that are null or empty and are not sent: a, b",
    )
    request = body(FORM, None, {"type": ["object", "null"]})
    assert (request.body, request.media_type, len(request.notes)) == (None, None, 1)
    with pytest.raises(ArgumentsError, match="it is required in the body"):
        sent(tool(body={FORM: {"schema": {"type": ["object", "null"]}}}, required=True), {"requestBody": None})


@pytest.mark.parametrize("media_type", ["application/json", FORM, "multipart/form-data"])
@pytest.mark.parametrize("key", ["_method", "_METHOD ", ".method", " _method", "X-HTTP-Method-Override", "_method\0x"])
def test_no_body_field_overrides_the_method(media_type: str, key: str) -> None:
    with pytest.raises(ArgumentsError, match="another method"):
        body(media_type, {"a": 1, key: "DELETE"}, {"type": "object"})


@pytest.mark.parametrize("media_type", [FORM, "multipart/form-data"])
@pytest.mark.parametrize(
    ("style", "extra", "said"),
    [("form", {"role": "admin"}, "'role' is the name of another"), ("form", {"_method": "PUT"}, "another method"),
     ("form", {"ROLE[0]": "admin"}, "'ROLE\\[0\\]' is the name of another")],
)  # fmt: skip
def test_an_exploded_property_does_not_become_another_one(media_type: str, style: str, extra: Any, said: str) -> None:
    encoding = {"extra": {"style": style, "explode": True}}
    with pytest.raises(ArgumentsError, match=said):
        body(media_type, {"role": "user", "extra": extra}, {"type": "object"}, encoding=encoding)

    made = tool({"name": "a", "in": "query", "schema": {}}, body={"application/json": {"schema": {}}})
    template = {
        "fixed": 1,
        "whole": "{{ a }}",
        "text": "n-{{ a }}",
        "gone": "{{ requestBody }}",
        "raw": ["{{ a }}", None],
    }
    changed = edited(made, query=[], body=Body(value=template, media_type="application/json"))
    assert sent(changed, {"a": 5}).body == b'{"fixed":1,"whole":5,"text":"n-5","raw":[5,null]}'


def test_a_json_part_of_a_form_says_null_and_binary_fields_stay_base64() -> None:
    made = tool(body={FORM: {"schema": {"type": "object"}}})
    changed = edited(
        made, body=Body(value="{{ requestBody }}", media_type=FORM, encoding={"file": Encoding(binary=True)})
    )
    assert sent(changed, {"requestBody": {"file": ["AAH/", "AA=="]}}).body == b"file=AAH%2F&file=AA%3D%3D"
