from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.identity.references import Reference, ReferenceFault, parse

TOKEN = Reference("caller", "token")
USER = Reference("caller", "userId")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ("",)),
        ("plain $ {} {a} $a %s", ("plain $ {} {a} $a %s",)),
        ("${caller:token}", (TOKEN,)),
        ("${caller:userId}/${caller:token}", (USER, "/", TOKEN)),
        ("Bearer ${env:API_KEY}", ("Bearer ", Reference("env", "API_KEY"))),
        ("${file:/run/secrets/a b.txt}", (Reference("file", "/run/secrets/a b.txt"),)),
        ("a-${context:tenant.id-1}-b", ("a-", Reference("context", "tenant.id-1"), "-b")),
        ("$${env:X}$", ("$", Reference("env", "X"), "$")),
    ],
)
def test_references_are_typed_parts_and_what_is_between_them_is_literal(text: str, pieces: tuple[object, ...]) -> None:
    parsed = parse(text)
    assert parsed.pieces == pieces
    assert parsed.references == tuple(piece for piece in pieces if isinstance(piece, Reference))
    assert str(parsed) == text


@pytest.mark.parametrize(
    "text",
    [
        "${caller:tokn}",
        "${caller:Token}",
        "${caller:}",
        "${caller}",
        "${caller:token }",
        "${ caller:token}",
        "${CALLER:token}",
        "${caller:token",
        "${env:}",
        "${env:A-B}",
        "${env:1A}",
        "${env: A}",
        "${env:A\n}",
        "${env:${env:A}}",
        "${file:}",
        "${file: /x}",
        "${file:/x\x00}",
        "${context:}",
        "${context:a b}",
        "${vault:x}",
        "${x}",
        "${}",
        "${",
        "{caller:token}",
        "{caller:tokn}",
        "{ caller : token }",
        "{Caller:token}",
        "{env:X}",
        "{file:/x}",
        "{context:a}",
        "{{caller:token}}",
        "${caller:token} and {caller:token}",
        "${caller:token} ${caller:x}",
        "{caller:userId}${caller:token}",
    ],
)
def test_every_other_form_is_refused_even_beside_a_valid_one_and_is_not_shown(text: str) -> None:
    with pytest.raises(ReferenceFault) as caught:
        parse("s3cret" + text)
    assert "s3cret" not in str(caught.value)
    assert "${caller:token}" in str(caught.value)


@pytest.mark.parametrize(
    ("reference", "places"),
    [
        (TOKEN, {"header"}),
        (USER, {"header", "query"}),
        (Reference("env", "X"), {"header", "query", "cookie"}),
        (Reference("file", "/x"), {"header", "query", "cookie"}),
        (Reference("context", "x"), {"path", "query", "querystring", "header", "cookie", "body"}),
    ],
)
def test_a_reference_stands_only_where_its_kind_may(reference: Reference, places: set[str]) -> None:
    for place in ("path", "query", "querystring", "header", "cookie", "body"):
        fault = reference.place_fault(place)
        assert bool(fault) == (place not in places)
        assert not fault or (str(reference) in fault and place in fault)


def test_what_must_not_be_shown_is_known() -> None:
    secret = [TOKEN, Reference("env", "X"), Reference("file", "/x")]
    assert all(one.is_secret for one in secret)
    assert not USER.is_secret
    assert not Reference("context", "x").is_secret
    assert [one for one in [*secret, USER] if one.is_caller_token] == [TOKEN]


@given(st.text(alphabet="${}:caller token userIdenv", max_size=40))
def test_a_text_is_read_whole_or_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except ReferenceFault:
        return
    assert str(parsed) == text
    assert not any("${" in piece for piece in parsed.pieces if isinstance(piece, str))
