from __future__ import annotations

import os
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.errors import CredentialsMissing
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.origin import Origin
from toolgen.identity.references import parse
from toolgen.identity.secrets import LARGEST_FILE, Filled, fill

HERE = Origin("https", "api.example", 443)
THERE = Origin("https", "other.example", 443)
CALLER = Caller("u-1", "tok-5f0c9d", "https://API.example:443/somewhere")


def filled(text: str, **more: Any) -> Filled:
    return fill(parse(text), **{"caller": CALLER, "origin": HERE, "environ": {}, **more})


def refused(text: str, **more: Any) -> str:
    with pytest.raises(CredentialsMissing) as caught:
        filled(text, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("${caller:token}", "tok-5f0c9d"),
        ("${caller:userId}/${caller:token}", "u-1/tok-5f0c9d"),
        ("Bearer ${env:A}", "Bearer \\1$&${env:B}"),
        ("${env:A}${env:A}", "\\1$&${env:B}\\1$&${env:B}"),
        ("${env:PADDED}", "p a d"),
    ],
)
def test_replacement_is_literal_and_happens_once(text: str, sent: str) -> None:
    environ = {"A": "\\1$&${env:B}", "B": "never", "PADDED": " p a d\n"}
    assert filled(text, environ=environ).text.reveal() == sent


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1))
def test_any_printable_value_is_sent_as_it_is(value: str) -> None:
    assert filled("x${env:A}y", environ={"A": value}).text.reveal() == f"x{value}y"


def test_the_secrets_that_were_used_are_told_and_others_are_not() -> None:
    assert filled("${caller:userId}").secrets == ()
    assert filled("a-${env:A}", environ={"A": "one", "B": "two"}).secrets == (Secret("a-one"), Secret("one"))
    assert filled("${env:A}", environ={"A": "one"}).secrets == (Secret("one"),)
    assert filled("${caller:token}").secrets == (Secret("tok-5f0c9d"),)
    assert "one" not in repr(filled("a-${env:A}", environ={"A": "one"}))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"caller": None}, "no caller is bound"),
        ({"caller": Caller("u", None, "https://api.example")}, "the caller has none"),
        ({"caller": Caller("u", "  ", "https://api.example")}, "the caller has none"),
        ({"caller": Caller("u", "t", "https://api.example", expires=datetime(2026, 1, 1, tzinfo=UTC))}, "has expired"),
        ({"caller": Caller("u", "tok-5f0c9d")}, "which is not known"),
        ({"origin": THERE}, "goes to https://other.example"),
        ({"origin": Origin("http", "api.example", 80)}, "goes to http://api.example"),
        ({"origin": Origin("https", "api.example", 8443)}, "goes to https://api.example:8443"),
        ({"origin": Origin("https", "sub.api.example", 443)}, "goes to https://sub.api.example"),
        ({"place": "query"}, "cannot stand in the query"),
        ({"place": "cookie"}, "cannot stand in the cookie"),
        ({"place": "body"}, "cannot stand in the body"),
    ],
)
def test_the_callers_token_goes_nowhere_but_to_headers_of_the_origin_they_addressed(
    more: dict[str, Any], says: str
) -> None:
    for text in ("${caller:token}", "Bearer ${caller:token}", "${env:A} ${caller:token}"):
        message = refused(text, environ={"A": "s3cret"}, **more)
        assert says in message
        assert "tok-5f0c9d" not in message
        assert "s3cret" not in message


def test_the_user_id_goes_to_any_origin_in_headers_and_queries_and_is_never_blank() -> None:
    assert filled("${caller:userId}", origin=THERE).text.reveal() == "u-1"
    assert filled("${caller:userId}", origin=THERE, place="query").text.reveal() == "u-1"
    assert "cannot stand in the body" in refused("${caller:userId}", place="body")
    assert "the caller has none" in refused("${caller:userId}", caller=Caller(" ", "tok"))
    assert "no caller is bound" in refused("${caller:userId}", caller=None)


def test_an_exchanged_token_takes_the_place_of_the_callers_for_its_origin_only() -> None:
    tokens = {THERE: Secret("exchanged")}
    assert filled("${caller:token}", origin=THERE, tokens=tokens).text.reveal() == "exchanged"
    assert filled("${caller:token}", origin=THERE, tokens=tokens).secrets == (Secret("exchanged"),)
    assert filled("${caller:token}", tokens=tokens).text.reveal() == "tok-5f0c9d"
    third = Origin("https", "third.example", 443)
    assert "goes to https://third.example" in refused("${caller:token}", origin=third, tokens=tokens)
    assert "no caller" in refused("${caller:token}", origin=THERE, tokens=tokens, caller=None)


@pytest.mark.parametrize(
    ("environ", "says"),
    [({}, "is not set"), ({"A": ""}, "is empty"), ({"A": " \n"}, "is empty"), ({"a": "x"}, "not set")],
)
def test_a_variable_that_is_not_there_is_an_error_and_never_an_empty_text(environ: dict[str, str], says: str) -> None:
    assert says in refused("x${env:A}y", environ=environ)


def test_a_file_is_read_anew_each_time_without_the_white_space_around_it(tmp_path: Path) -> None:
    file = tmp_path / "a secret"
    for content, value in [
        (b"\xef\xbb\xbf one\r\n", "one"),
        (b"two\n\n", "two"),
        (b"x" * LARGEST_FILE, "x" * LARGEST_FILE),
    ]:
        file.write_bytes(content)
        assert filled(f"${{file:{file}}}").text.reveal() == value
    (tmp_path / "link").symlink_to(file)  # as secrets are mounted
    assert filled(f"${{file:{tmp_path / 'link'}}}").text.reveal() == "x" * LARGEST_FILE


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"x" * (LARGEST_FILE + 1), "is larger than 64 KiB"),
        (b"s3cret\xff", "is no UTF-8 text"),
        (b"s3cret\ns3cret", "control character"),
    ],
)
def test_a_file_that_holds_no_secret_is_an_error_that_shows_nothing_of_it(
    content: bytes | None, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    message = refused(f"${{file:{file}}}")
    assert says in message
    assert "s3cret" not in message


def test_a_folder_and_a_pipe_are_no_files_and_nothing_waits_for_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refused(f"${{file:{tmp_path / 'pipe'}}}")
    message = refused(f"${{file:{tmp_path}}}")
    assert "directory" in message
    assert "no regular file" in refused("${file:/dev/null}")


@pytest.mark.parametrize("bad", ["\r\nX-Admin: 1", "\n", "\x00", "\x1b", "\x7f", "\t", "\x85", "é", "\u2028", "\udc80"])
@pytest.mark.parametrize("where", ["env", "token", "userId", "literal"])
def test_what_no_header_can_hold_is_refused_without_showing_it(bad: str, where: str) -> None:
    value = f"s3c{bad}ret"
    given = {
        "env": ("${env:A}", {"environ": {"A": value}}),
        "token": ("${caller:token}", {"caller": Caller("u", value, "https://api.example")}),
        "userId": ("${caller:userId}", {"caller": Caller(value, "t")}),
        "literal": (f"{value}${{env:A}}", {"environ": {"A": "a"}}),
    }
    text, more = given[where]
    message = refused(text, **more)
    assert "was not sent" in message
    assert message.startswith("the text around" if where == "literal" else text)
    assert "s3c" not in message
    assert bad not in message


def test_a_value_that_is_encoded_before_it_is_sent_may_hold_any_text_but_no_control_character() -> None:
    assert filled("${env:A}", environ={"A": "pä ß"}, encoded=True).text.reveal() == "pä ß"
    assert "control character" in refused("${env:A}", environ={"A": "a\nb"}, encoded=True)


def test_a_context_value_is_no_secret_and_is_not_filled_in_here() -> None:
    assert "filled in when the request is made" in refused("${context:a}", caller=Caller("u", context={"a": "x"}))


def test_no_frame_of_an_error_holds_a_secret() -> None:
    environ = {"A": "s3cret", "B": "s3cret\n\x00x"}
    for text in ("${env:A}${env:MISSING}", "${env:A}${env:B}"):
        with pytest.raises(CredentialsMissing) as caught:
            filled(text, environ=environ)
        stack = traceback.TracebackException.from_exception(caught.value, capture_locals=True).stack
        inside = [frame for frame in stack if frame.filename.endswith("identity/secrets.py")]
        held = {name: value for frame in inside for name, value in (frame.locals or {}).items() if name != "environ"}
        assert "parts" in held
        assert not [name for name, value in held.items() if "s3c" in value]
