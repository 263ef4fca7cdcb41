from __future__ import annotations

import json
import math
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.request.text import (
    RESERVED_IN_QUERY,
    NotWritable,
    form,
    from_base64,
    json_text,
    percent,
    reserved,
    spelled,
    utf8,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-0.0, "0"),
        (5.0, "5"),
        (0.5, "0.5"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e22, "1e+22"),
        (1e-7, "1e-07"),
        (2**63, "9223372036854775808"),
        (-(10**60), "-1" + "0" * 60),
        ("", ""),
        ("5.0", "5.0"),
        ([1, None, {"a": 2.0}], '[1,null,{"a":2}]'),
        (("a",), '["a"]'),
    ],
)
def test_spelled(value: Any, text: str) -> None:
    assert spelled(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_itself_and_has_no_empty_fraction(value: float) -> None:
    assert json.loads(spelled(value)) == value
    assert not spelled(value).endswith(".0")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, {1}, b"x", {1: 2}, [{1: 2}], object(), [10**4000]])
def test_what_json_does_not_have_is_not_written(value: Any) -> None:
    with pytest.raises(NotWritable):
        spelled(value)
    with pytest.raises(NotWritable):
        json_text([value])


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_too_long_to_write_is_refused(sign: int) -> None:
    assert len(spelled(sign * (10**4000 - 1))) >= 4000
    with pytest.raises(NotWritable, match="4000 digits"):
        spelled(sign * 10**4000)


@pytest.mark.parametrize("depth", [10_000, 100_000])
def test_nesting_without_end_is_refused(depth: int) -> None:
    value: Any = []
    for _ in range(depth):
        value = [value]
    with pytest.raises(NotWritable, match="nested too deep"):
        json_text(value)


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("value", ["\ud800", ["\udc00x"], {"\ud83d": 1}])
def test_a_lone_surrogate_is_no_text(value: Any, ascii_only: bool) -> None:
    with pytest.raises(NotWritable):
        json_text(value, ascii_only=ascii_only)


@given(st.text())
def test_json_in_ascii_is_the_same_json(text: str) -> None:
    written = json_text({text: text}, ascii_only=True)
    assert written.isascii()
    assert written == json.dumps({text: text}, separators=(",", ":"))


@given(st.text())
def test_what_is_encoded_reads_back_and_has_nothing_that_separates(text: str) -> None:
    assert unquote(percent(text)) == text
    assert not set(percent(text)) & set(" /?#[]@!$&'()*+,;=\"<>\\^`{|}\r\n\0")
    assert unquote_plus(form(text)) == text
    assert not set(form(text)) & set(" &=;#\r\n")
    assert not set(reserved(text, RESERVED_IN_QUERY)) & set(' &#+;[]\r\n\0"<>\\^`{|}')


def test_reserved_lets_triples_pass_and_no_bare_percent_sign() -> None:
    assert reserved("%41%4g%/%2f", "/") == "%41%254g%25/%2f"


@pytest.mark.parametrize(
    ("text", "data"), [("", b""), ("AAH/", b"\x00\x01\xff"), (" AA ==\r\n", b"\0"), ("YQ==", b"a")]
)
def test_base64(text: str, data: bytes) -> None:
    assert from_base64(text) == data


@pytest.mark.parametrize("value", ["A", "YQ", "a-_b", "YQ==YQ==", "é", None, 5, ["YQ=="]])
def test_what_is_no_base64(value: Any) -> None:
    with pytest.raises(NotWritable, match="base64"):
        from_base64(value)


@pytest.mark.parametrize(("text", "charset"), [("é", "ascii"), ("x", "no-such"), ("x", "undefined"), ("x", "base64")])
def test_a_charset_that_cannot_write_a_text(text: str, charset: str) -> None:
    with pytest.raises(NotWritable):
        utf8(text, charset)
