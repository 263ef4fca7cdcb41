"""Redaction: by value in every spelling, by name, by shape; and what people must be able to read stays."""

from __future__ import annotations

import base64
import html
import json
import pickle
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.identity.caller import Secret
from toolgen.identity.redact import REDACTED, Redactor, exact_json

PLAIN = Redactor()
SECRET = 'zürich "q"/\\&<7>+ %41\n'.strip()


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SPELLINGS = {
    "raw": SECRET,
    "percent": quote(SECRET),
    "percent, lower case, all of it": "".join(f"%{byte:02x}" for byte in SECRET.encode()),
    "plus": quote_plus(SECRET),
    "percent twice": quote(quote(SECRET, safe=""), safe=""),
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON, readable": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "JSON in JSON": json.dumps(json.dumps(SECRET))[3:-3],
    "JSON, slashes escaped": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "HTML": html.escape(SECRET),
    "base64": b64(SECRET),
    "base64url": base64.urlsafe_b64encode(SECRET.encode()).decode(),
    "base64 without padding": b64(SECRET).rstrip("="),
    "Basic": b64(f"user:{SECRET}"),
    "hex": SECRET.encode().hex(),
    "HEX": SECRET.encode().hex().upper(),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_known_secret_is_hidden_however_it_is_spelled(spelling):
    redactor = Redactor([SECRET])
    assert redactor.text(f"before {spelling} after") == f"before {REDACTED} after"
    assert redactor.value({"id": [spelling]}) == {"id": [REDACTED]}
    known = redactor.known({"id": [f"{spelling}!"]})["id"][0]
    assert known.endswith(f"{REDACTED}!")
    assert spelling[6:] not in known
    assert spelling not in redactor.url(f"https://api.test/x?id={quote(spelling, safe='')}")


@given(before=st.binary(max_size=7), after=st.binary(max_size=7), secret=st.binary(min_size=8, max_size=20))
def test_no_base64_of_more_than_the_secret_shows_it(before, after, secret):
    text = secret.hex()[:16]
    whole = base64.b64encode(before + text.encode() + after).decode()
    core = base64.b64encode(b"\0" * (len(before) % 3) + text.encode()).decode().rstrip("=")[4:-1]
    assert core not in Redactor([text]).known(whole)


def test_a_short_secret_is_hidden_as_a_whole_value_only():
    redactor = Redactor(["ab1"])
    assert redactor.value(["ab1", "cab1e", 5]) == [REDACTED, "cab1e", 5]
    assert Redactor(["1234"]).value([1234, 12345]) == [REDACTED, 12345]


def test_the_value_behind_a_scheme_is_a_secret_of_its_own():
    assert "zq81kk" not in Redactor(["Bearer zq81kk"]).text("it is zq81kk")
    assert "zq81kk" not in Redactor([Secret(" zq81kk\n")]).text("it is zq81kk")


def test_more_secrets_make_another_redactor():
    first = Redactor(["first-one"])
    both = first.with_secrets(["second-one"])
    assert both.text("first-one second-one") == f"{REDACTED} {REDACTED}"
    assert first.text("first-one second-one") == f"{REDACTED} second-one"


def test_a_redactor_shows_no_secret_and_goes_to_no_other_process():
    redactor = Redactor(["zq81kk-secret"])
    assert "zq81" not in repr(redactor) + str(redactor)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(redactor)


SECRET_NAMES = """
Authorization Proxy-Authorization authorisation X-Api-Key api_key apiKey APIKEY apikey Ocp-Apim-Subscription-Key token
access_token accessToken refreshTokens tokens id_token X-Amz-Security-Token csrftoken client_secret clientSecret
SECRET_KEY credential credentials password Password1 user[password] db.passwd pwd passphrase Cookie Set-Cookie session
session_id sessionid JSESSIONID PHPSESSID X-Amz-Signature x-hub-signature-256 sig private_key privateKey private-key
access-key auth basic_auth jwt otp cvv connectionString code_verifier secret_id ｐａｓｓｗｏｒｄ pass\u200bword next_secret_token
""".split()
OTHER_NAMES = """
id name petId key keys keyword monkey max_tokens maxOutputTokens prompt_tokens total-tokens tokenize tokenizer
secretary secretariat page_token pageToken nextPageToken next_token continuationToken sync_token token_type tokenUrl
secretName password_policy apiKeyId token_expires_at author authority possession obsession signal assign design sidebar
publicKey primary_key foreignKey cookies_enabled accessLevel sessionType hash digest email cursor
""".split()


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_the_name_says_that_it_is_a_secret(name):
    assert PLAIN.named(name, "v1") == REDACTED
    assert PLAIN.value({"a": [{name: {"deep": ["v1", 7]}}]}) == {"a": [{name: {"deep": [REDACTED, REDACTED]}}]}
    assert PLAIN.query(f"x=1&{quote(name)}=v1&y=2") == f"x=1&{quote(name)}={REDACTED}&y=2"


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_the_name_says_nothing_of_a_secret(name):
    assert PLAIN.named(name, "v1") == "v1"
    assert PLAIN.text(f"{name}: v1") == f"{name}: v1"


def test_what_cannot_be_a_secret_stays_under_any_name():
    assert PLAIN.value({"token": None, "password": True, "secret": "", "tokens": 1500}) == {
        "token": None,
        "password": True,
        "secret": "",
        "tokens": 1500,
    }


def test_the_name_may_be_beside_the_value():
    pairs = [{"name": "API_KEY", "value": "v1"}, {"key": "color", "value": "red"}]
    assert PLAIN.value(pairs) == [{"name": "API_KEY", "value": REDACTED}, {"key": "color", "value": "red"}]


@pytest.mark.parametrize("text", ["${env:KEY}", "Bearer ${caller:token}", "${file:/run/key}"])
def test_a_reference_stays_legible_and_nothing_beside_it(text):
    assert PLAIN.named("Authorization", text) == text
    assert PLAIN.value({"note": f"uses {text}"}) == {"note": f"uses {text}"}
    assert PLAIN.named("Authorization", f"{text}tail") == f"{text}{REDACTED}"
    assert PLAIN.text(f"token={text}tail").endswith(f"{text.split()[-1]}{REDACTED}") or " " in text


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----"
SHAPES = [
    ("Bearer abcdef123456", "Bearer {}"),
    ("got Basic dXNlcjpwYXNz here", "got Basic {} here"),
    ("Token 0a1b2c3d4e5f6a7b8c9d", "Token {}"),
    ("k sk-ant-api03-abcdefghijk end", "k {} end"),
    ("k sk_live_abcdefgh12345678 end", "k {} end"),
    ("ghp_abcdefghij1234567890", "{}"),
    ("gho_abcdefghij1234567890", "{}"),
    ("github_pat_11ABCDEFG0abcdefghij", "{}"),
    ("xoxb-123456789012-abcdef", "{}"),
    ("id AKIAIOSFODNN7EXAMPLE.", "id {}."),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln x", "{} x"),
    (f"a {PEM} b", "a {} b"),
    (PEM.replace("\n", "\\n"), "{}"),
    (PEM[:40], "{}"),
    ("see https://joe:pa@ss@api.test/x", "see https://{}@api.test/x"),
    ("curl -u joe:hunter2 https://api.test", "curl -u {} https://api.test"),
]


@pytest.mark.parametrize(("text", "shown"), SHAPES)
def test_well_known_shapes_are_hidden_anywhere(text, shown):
    assert PLAIN.text(text) == shown.format(REDACTED)
    assert PLAIN.value([{"note": text}]) == [{"note": shown.format(REDACTED)}]


LINES = [
    ("password=v1", "password={}"),
    ("token=v1&x=1", "token={}&x=1"),
    ("GET /x?api%5Fkey=v%31&x=1%20 done", "GET /x?api%5Fkey={}&x=1%20 done"),
    ('log {"a":1,"password":"v\\"1","b":2', 'log {"a":1,"password":"{}","b":2'),
    ('s="{\\"token\\":\\"v\\\\\\"1\\",\\"b\\":2}"', 's="{\\"token\\":\\"{}\\",\\"b\\":2}"'),
    ("{'token': 'v1', 'b': 2}", "{'token': '{}', 'b': 2}"),
    ('cut "password": "v1 and no end', 'cut "password": "{}'),
    ('x "password": 12345, "b"', 'x "password": "{}", "b"'),
    ('x "tokens": ["v1]", "v2"], "b"', 'x "tokens": "{}", "b"'),
    ("user: joe\npassword: v1 v2, v3\nport: 1", "user: joe\npassword: {}\nport: 1"),
    ("a:\n  password: |\n    v1\n    v2\n  b: 1", "a:\n  password: {}\n  b: 1"),
    ("tokens:\n  - v1\n  - v2\nb: 1", "tokens:{}\nb: 1"),
    ("Authorization: Bearer v1\r\nAccept: x", "Authorization: {}\r\nAccept: x"),
    ("-H 'Authorization: Token v1' -d x", "-H 'Authorization: {}' -d x"),
    ("run --password v1 --force", "run --password {} --force"),
    ("the API key: AB12 is", "the API key: {} is"),
    ("<a><password>v1</password><b>2</b></a>", "<a><password>{}</password><b>2</b></a>"),
    ("&quot;token&quot;:&quot;v1&quot;,", "&quot;token&quot;:&quot;{}&quot;,"),
    ('env["API_KEY"] = "v1"', 'env["API_KEY"] = "{}"'),
    ("a%3D1%26password%3Dv1", "a%3D1%26password%3D{}"),
]


@pytest.mark.parametrize(("text", "shown"), LINES)
def test_the_value_beside_a_secrets_name_is_hidden_in_any_text(text, shown):
    expected = shown.replace("{}", REDACTED)
    assert PLAIN.text(text) == expected
    assert PLAIN.text(expected) == expected


NESTED = {"a": {"b": [{"client_secret": "v1-secret", "id": "kept"}]}}
ENCODED = {
    "JSON": json.dumps(NESTED),
    "JSON twice": json.dumps(json.dumps(NESTED)),
    "base64": b64(json.dumps(NESTED)),
    "base64 of base64": b64(b64(json.dumps(NESTED))),
    "percent": quote(json.dumps(NESTED), safe=""),
    "form in base64": b64("a=1&client_secret=v1-secret"),
    "JSON in a form in JSON": json.dumps({"q": "a=1&b=" + quote_plus(json.dumps(NESTED))}),
}


@pytest.mark.parametrize("text", ENCODED.values(), ids=ENCODED)
def test_secrets_are_found_inside_encodings(text):
    for shown in (PLAIN.text(text), json.dumps(PLAIN.value({"x": [text]})), PLAIN.text(f"got {text} there")):
        assert REDACTED in shown
        assert "v1-secret" not in shown
        assert b64("v1-secret")[:8] not in shown


def test_redacted_json_is_json_and_keeps_all_else():
    shown = json.loads(PLAIN.text(ENCODED["JSON"]))
    assert shown == {"a": {"b": [{"client_secret": REDACTED, "id": "kept"}]}}
    assert PLAIN.value({"sk-abcdefghij1234567890": 1}) == {REDACTED: 1}
    assert PLAIN.value({"sk-abcdefghij1234567890": 1, "sk-abcdefghij1234567891": 2}) == {REDACTED: 1, REDACTED + "'": 2}


def test_a_url_keeps_its_host_and_loses_its_secrets():
    url = "https://joe:pw@api.test:8443/v1;token=a/b%20c?api%5Fkey=a&x=1%2B2&to=https%3A%2F%2Fh%2F%3Fsig%3Da#access_token=a"
    assert PLAIN.url(url) == (
        f"https://{REDACTED}@api.test:8443/v1;token={REDACTED}/b%20c?api%5Fkey={REDACTED}&x=1%2B2"
        f"&to=https://h/%3Fsig%3D{REDACTED}#access_token={REDACTED}"
    )


HARMLESS = [
    "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "507f1f77bcf86cd799439011",
    "cus_NffrFeUfNV2Hib",
    "order-2024-000123",
    "arn:aws:s3:::bucket/key",
    "Renée O'Connor",
    "risk-assessment-of-the-third-thing-1",
    "basic functions of the bearer, token by token",
    "The password: is wrong. Reset it, please.",
    "https://api.test/v1/pets/42?page=2&pageToken=CAUQAA%3D%3D",
    "joe@example.com",
    "2024-05-06T07:08:09Z",
    "a=1&b=2",
    "key: value; other=thing",
    "x" * 5_000,
    "SGVsbG8gd29ybGQsIGhvdyBhcmUgeW91",
    '{"id": 1, "tags": ["a", "b"], "price": 1.10}',
    "100% of it, 50%25",
    "日本語のテキスト",
]


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text[:20])
def test_what_is_no_secret_comes_back_letter_by_letter(text):
    redactor = Redactor(["some-known-secret"])
    assert redactor.text(text) == text
    assert redactor.value({"id": text}) == {"id": text}
    assert redactor.url(text) == text


FRAGMENTS = st.sampled_from(
    [
        *("password", "token", "known-secret", "abcdef123456", "a", "é", "Bearer ", "Basic ", "${env:K}", REDACTED),
        *": |=|\"|\\|'|\n|  |- |&|,|;|{|}|[|]|<|>|://|@|--|%22|%3D|&quot;".split("|"),
        *("|", b64('{"token":"x"}')),
    ]
)


@given(st.lists(FRAGMENTS, max_size=14).map("".join))
def test_what_was_redacted_once_stays_as_it_is(text):
    redactor = Redactor(["known-secret"])
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert "known-secret" not in once


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_without_secrets_comes_back_equal(data):
    assert exact_json(json.dumps(PLAIN.value(data))) == PLAIN.value(data)
    assert PLAIN.value(PLAIN.value(data)) == PLAIN.value(data)


HOSTILE: dict[str, Any] = {
    "names": "password=" * 30_000,
    "open quotes": 'password="\\' * 20_000,
    "escaped quotes": 'token="' + '\\"' * 100_000,
    "open lists": '"token": [' * 20_000,
    "open blocks": "password:\n  a\n" * 20_000,
    "JWT starts": "eyJ" * 60_000,
    "base64": "Zm9v" * 60_000,
    "percent": "%22" * 60_000,
    "percent pairs": "a=%41&" * 30_000,
    "userinfo": "://a@b" * 30_000,
    "at signs": "://" + "@" * 150_000,
    "PEM starts": "-----BEGIN PRIVATE KEY-----" * 8_000,
    "brackets": "[" * 150_000,
    "one name": "a" * 200_000 + "=",
    "tags": "<password>" * 20_000,
    "schemes": "bearer " * 30_000,
    "almost known": "known-secre" * 20_000,
    "spaces": "password" + " " * 200_000,
    "backslashes": "\\" * 200_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_time_is_linear_in_hostile_text(text):
    redactor = Redactor(["known-secret-%-of-some-length"])

    def seconds(part: str) -> float:
        start = time.process_time()
        redactor.text(part)
        return time.process_time() - start

    assert seconds(text) < 10 * max(seconds(text[: len(text) // 4]), 0.02)


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', "[NaN]", "[1e999]", "[0.1234567890123456789]", "[" * 102 + "]" * 102, "[" * 9_999, "{"]
)
def test_json_that_readers_could_differ_about_is_not_read(text):
    with pytest.raises(ValueError, match=r".+"):
        exact_json(text)
