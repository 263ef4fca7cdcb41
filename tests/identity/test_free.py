"""`Redactor.is_free`, which spares the walk through data: it must never say so of a text that holds a secret."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolgen.identity.redact import Redactor

ENCODINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    lambda text: quote(text, safe=""),
    lambda text: quote(quote(text)),
    lambda text: text.replace(" ", "+"),
    html.escape,
    json.dumps,
    lambda text: text.encode().hex(),
    lambda text: text.encode().hex().upper(),
    *(lambda text, head=head: base64.b64encode(head + text.encode()).decode() for head in (b"", b"x", b"xy")),
    *(lambda text, head=head: base64.urlsafe_b64encode(head + text.encode()).decode() for head in (b"", b"x", b"xy")),
]
SECRETS = st.text(st.characters(min_codepoint=32, max_codepoint=0x250), min_size=1, max_size=24)


@example("~?~?~?~?", lambda text: base64.urlsafe_b64encode(text.encode()).decode(), str, "", False)
@example("ab cd ef", lambda text: text.replace(" ", "+"), str, "", False)
@given(SECRETS, st.sampled_from(ENCODINGS), st.sampled_from(ENCODINGS), st.text(max_size=8), st.booleans())
def test_a_text_that_is_free_holds_nothing_that_would_be_redacted(
    secret: str, encode: Callable[[str], str], again: Callable[[str], str], around: str, ascii_only: bool
) -> None:
    redactor = Redactor([secret])
    for value in (encode(secret), again(encode(secret))):
        text = json.dumps({"a": [f"{around}{value}{around}"], value: 1}, ensure_ascii=ascii_only)
        assert not redactor.is_free(text) or redactor.known(json.loads(text)) == json.loads(text)


@pytest.mark.parametrize(
    "text", ['{"a": "\\u0073ecret-value"}', '{"a": "secret\\/value"}', '{"a": 12345678}', '["abc"]']
)
def test_what_takes_a_closer_look_is_not_free(text: str) -> None:
    secret = (
        "12345678" if "1" in text else "abc" if "abc" in text else "secret/value" if "/" in text else "secret-value"
    )
    assert not Redactor([secret]).is_free(text)


def test_a_plain_answer_is_free() -> None:
    assert Redactor(["secret-value"]).is_free('{"items": [{"id": 1, "name": "Rex", "tags": ["a"]}]}')
    assert Redactor().is_free('{"a": "\\u0073 %41"}')
