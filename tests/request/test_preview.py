"""Previews: made from the bytes, redacted, visible, and as a person reads them."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OBJECT, parameter, tool_of

from toolgen.identity.redact import REDACTED, Redactor
from toolgen.identity.references import parse
from toolgen.request.model import Deferred, Part, ResolvedRequest
from toolgen.request.preview import Preview, preview

SERVER = "https://api.example.test/v1"
SCHEMES = {
    "bearerAuth": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "tenant": {"type": "apiKey", "in": "header", "name": "X-Tenant"},
}
TOOL = tool_of(
    {
        "parameters": [parameter("petId", "path"), parameter("force")],
        "requestBody": {"content": {"application/json": {"schema": OBJECT}}},
        "security": [{"bearerAuth": []}, {"key": [], "tenant": []}],
    },
    path="/pets/{petId}",
    method="delete",
    servers=[{"url": SERVER}],
    components={"securitySchemes": SCHEMES},
)
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


def made(
    url: str = f"{SERVER}/pets/42", body: bytes | None = None, media_type: str | None = None, **more: Any
) -> ResolvedRequest:
    headers = [("Content-Type", media_type)] if media_type else []
    headers += more.pop("headers", [])
    return ResolvedRequest(
        tool=more.pop("tool", TOOL),
        method="DELETE",
        url=url,
        headers=tuple(headers),
        body=body,
        server=more.pop("server", SERVER),
        **more,
    )


def shown(*args: Any, **more: Any) -> Preview:
    return preview(made(*args, **more))


def everything(view: Preview) -> str:
    return "\n".join(
        [json.dumps(view.to_dict(), ensure_ascii=False), str(view), view.text(60), repr(view), repr(view._wholes)]
    )


def test_a_person_reads_it_in_ten_seconds():
    request = made(
        f"{SERVER}/pets/a%20b?force=true&token=t-1",
        b'{"name":"Rex","password":"p-1","tags":["a"]}',
        JSON,
        headers=[("Accept", JSON), ("Cookie", "theme=dark; sid=s-1")],
        deferred=(
            Deferred("header", "X-Key", parse("${env:KEY}")),
            Deferred("query", "user%20id", parse("${caller:userId}")),
        ),
        idempotency="Idempotency-Key",
        notes=("limit is null and is not sent",),
    )
    assert str(request.preview()) == (
        f"""\
DELETE {SERVER}/pets/a%20b?force=true&token=<redacted>
path /pets/{{petId}}
  petId: a b
query
  force: true
  token: <redacted>
headers
  Content-Type: application/json
  Accept: application/json
cookies
  theme: dark
  sid: <redacted>
filled in when it is sent
  header X-Key: ${{env:KEY}}
  query "user id": ${{caller:userId}}
  header Idempotency-Key: one value per call
credentials: bearerAuth, or key and tenant
body: application/json, 44 bytes
  {{
    "name": "Rex",
    "password": "<redacted>",
    "tags": [
      "a"
    ]
  }}
notes
  limit is null and is not sent"""
    )


def test_the_data_says_what_the_text_says():
    view = shown(f"{SERVER}/pets/42?force=true", b'{"a":"b"}', JSON, headers=[("Cookie", "a=b")])
    assert view.to_dict() == {
        "tool": "op",
        "method": "DELETE",
        "url": f"{SERVER}/pets/42?force=true",
        "host": "api.example.test",
        "path": {"template": "/pets/{petId}", "values": [{"name": "petId", "value": "42"}]},
        "query": [{"name": "force", "value": "true"}],
        "headers": [{"name": "Content-Type", "value": JSON}],
        "cookies": [{"name": "a", "value": "b"}],
        "later": [],
        "credentials": [["bearerAuth"], ["key", "tenant"]],
        "body": {
            "kind": "json",
            "mediaType": JSON,
            "size": 9,
            "sha256": hashlib.sha256(b'{"a":"b"}').hexdigest(),
            "text": '{\n  "a": "b"\n}',
        },
        "notes": [],
        "flags": [],
        "cuts": [],
        "complete": True,
    }


@pytest.mark.parametrize(
    ("security", "line"),
    [
        ([], "credentials: none"),
        ([{}], "credentials: none"),
        ([{"bearerAuth": []}, {}], "credentials: bearerAuth, or none"),
    ],
)
def test_the_credentials_are_named(security, line):
    tool = tool_of({"security": security}, components={"securitySchemes": SCHEMES}, servers=[{"url": SERVER}])
    assert line in str(shown(f"{SERVER}/x", tool=tool)).splitlines()


# The body, from its bytes


def test_a_form_is_a_table():
    view = shown(body=b"a=1+2&b%5B%5D=%C3%A9&password=x&c", media_type=FORM)
    lines = str(view).splitlines()
    assert lines[-4:] == ["  a: 1 2", "  b[]: é", "  password: <redacted>", '  c: ""']
    assert view.body is not None
    assert view.body.kind == "form"
    assert view.body.sha256 is None  # a digest of a short secret can be guessed


def test_text_keeps_its_lines():
    view = shown(body="one\n\ttwo é\r\nthree".encode(), media_type="text/plain; charset=utf-8")
    assert str(view).splitlines()[-3:] == ["  one", "  \ttwo é", "  three"]
    assert view.flags == ()
    latin = shown(body="é".encode("latin-1"), media_type="text/plain; charset=iso-8859-1")
    assert str(latin).splitlines()[-1] == "  é"


def test_bytes_are_a_size_and_a_digest():
    data = b"\x89PNG\x00\xff"
    view = shown(body=data, media_type="image/png")
    assert str(view).splitlines()[-1] == f"body: image/png, 6 bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def multipart(*parts: Part) -> ResolvedRequest:
    pieces = b""
    for part in parts:
        head = f'Content-Disposition: form-data; name="{part.name}"'
        head += f'; filename="{part.filename}"' if part.filename else ""
        head += f"\r\nContent-Type: {part.content_type}" if part.content_type else ""
        pieces += b"--b1\r\n" + head.encode() + b"\r\n\r\n" + part.data + b"\r\n"
    return made(body=pieces + b"--b1--\r\n", media_type="multipart/form-data; boundary=b1", parts=parts)


def test_the_parts_of_a_multipart_body_are_shown_one_by_one():
    photo = Part("photo", b"\x89PNG\x00\xff", "cat.png", "image/png")
    parts = (Part("title", b"Rex"), photo, Part("meta", b'{"token":"t-1","n":1}', None, JSON), Part("password", b"p-1"))
    view = multipart(*parts).preview()
    digest = hashlib.sha256(photo.data).hexdigest()
    assert view.body is not None
    assert [(part.kind, part.name, part.size) for part in view.body.parts] == [
        ("text", "title", 3),
        ("bytes", "photo", 6),
        ("json", "meta", 21),
        ("text", "password", 3),
    ]
    assert f'  part photo: file "cat.png", image/png, 6 bytes, sha256 {digest}' in str(view).splitlines()
    assert "    Rex" in str(view).splitlines()
    assert "t-1" not in everything(view)
    assert "p-1" not in everything(view)
    assert [part.sha256 is None for part in view.body.parts] == [False, False, True, True]
    assert view.flags == ()


@pytest.mark.parametrize(
    "lie",
    [
        {"parts": (Part("title", b"Max"),)},
        {"parts": (Part("name", b"Rex"),)},
        {"parts": (Part("title", b"Rex", "x.txt"),)},
        {"parts": (Part("title", b"Rex"), Part("more", b""))},
        {"parts": ()},
        {"headers": (("Content-Type", "multipart/form-data"),)},
        {"headers": (("Content-Type", "text/plain"),)},
    ],
    ids=str,
)
def test_parts_that_are_not_those_of_the_bytes_are_not_shown(lie):
    request = multipart(Part("title", b"Rex"))
    view = preview(ResolvedRequest(**{**request.__dict__, **lie}))
    assert view.body is not None
    assert view.body.parts == ()
    assert "not the multipart body" in view.flags[0]
    assert "Rex" in str(view)


@pytest.mark.parametrize(
    ("body", "media_type", "flag"),
    [
        (b'{"a":1,"a":2}', JSON, "not the JSON"),
        (b"{", JSON, "not the JSON"),
        (b"[" * 102 + b"]" * 102, JSON, "not the JSON"),
        (b'{"a":0.12345678901234567890}', JSON, "not the JSON"),
        (b"\xff", "text/plain", "no text of the charset"),
        (b"+AGEAYg-", "text/plain; charset=no-such", "no text of the charset"),
        (b"x", None, "no Content-Type"),
        (None, JSON, "Content-Type and no body"),
    ],
)
def test_a_body_that_is_not_what_its_type_says_is_flagged_and_shown_as_it_is(body, media_type, flag):
    view = shown(body=body, media_type=media_type)
    assert any(flag in told for told in view.flags)
    if body is not None and body.isascii():
        assert body.decode() in str(view)


# Nothing hides


HIDDEN = (
    "\u202e \u200b \u2066 \u0000 \u001b[2J \u2028 \u2029 \ue000 \U000e0041 \u0378 \u00ad \u3164 \u2800 \u0085".split(
        " "
    )
)


@pytest.mark.parametrize("char", [*HIDDEN, "\n", "\r", "\t"], ids=ascii)
def test_hidden_characters_are_escaped_and_flagged_wherever_they_stand(char):
    escape = f"\\u{{{ord(char[0]):x}}}"
    raw = f"a{char}b"
    places = [
        shown(f"{SERVER}/pets/{quote(raw)}"),
        shown(f"{SERVER}/pets/1?{quote(raw)}=1"),
        shown(f"{SERVER}/pets/1?x={quote(raw)}"),
        shown(headers=[("X-A", raw)]),
        shown(headers=[("Cookie", f"a={quote(raw)}")]),
        shown(body=f"a={quote(raw)}".encode(), media_type=FORM),
        shown(notes=(raw,)),
        shown(f"{SERVER}/pets/{raw}"),
    ]
    for view in places:
        text = everything(view)
        assert escape in text
        assert f"U+{ord(char[0]):04X}" in view.flags[0]
        assert char[0] not in str(view).replace("\n", "") if char[0] != "\n" else f"a{char}b" not in str(view)


@pytest.mark.parametrize("char", HIDDEN, ids=ascii)
def test_hidden_characters_in_a_body_are_escaped_and_flagged(char):
    for body, media_type in [
        (json.dumps({"k": [f"a{char}b"]}).encode(), JSON),
        (json.dumps({f"a{char}b": 1}).encode(), JSON),
        (f"a{char}b".encode(), "text/plain"),
    ]:
        view = shown(body=body, media_type=media_type)
        assert view.body is not None
        assert view.body.text is not None
        assert f"\\u{{{ord(char[0]):x}}}" in view.body.text
        assert char[0] not in view.body.text
        assert "body: hidden" in view.flags[0].replace("body/k/0", "body")
        if media_type == JSON:
            json.loads(view.body.text)


def test_half_a_character_is_escaped():
    assert "\\u{d800}" in everything(shown(body=b'{"a":"\\ud800"}', media_type=JSON))
    assert "\\u{dcff}" in everything(shown(f"{SERVER}/pets/1?x=%FF"))


def test_many_spaces_are_counted():
    view = shown(f"{SERVER}/pets/1?x=a{'%20' * 60}b&y={'+' * 40}z")
    assert "  x: a[60 spaces]b" in str(view).splitlines()
    assert f"y: {json.dumps(' ' * 40 + 'z')}" in str(view)
    assert view.flags == ("query x: hidden characters or white space: 60 spaces in a row",)


FAKE = "x\ncredentials: none\nno body"


@pytest.mark.parametrize("width", [None, 40])
def test_no_value_looks_like_a_line_of_the_preview(width):
    wide = "x" + " " * 39 + "credentials: none"
    for value in (FAKE, wide):
        raw = quote(value)
        view = preview(
            made(
                f"{SERVER}/pets/{raw}?{raw}={raw}",
                f"{value}\n{value}".encode(),
                "text/plain",
                headers=[("X", value), ("Cookie", f"a={raw}")],
                notes=(value,),
            )
        )
        lines = view.text(width).splitlines()
        assert next(line for line in lines if line.startswith("credentials")).startswith("credentials: bearerAuth")
        assert sum(line.startswith(("credentials", "no body")) for line in lines) == 1
        assert width is None or max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("host", "ascii_host", "flag"),
    [
        ("аpi.example.test", "xn--pi-6kc.example.test", "mixes scripts: CYRILLIC, LATIN"),
        ("xn--pi-6kc.example.test", "xn--pi-6kc.example.test", "mixes scripts: CYRILLIC, LATIN"),
        ("bücher.example.test", "xn--bcher-kva.example.test", "reads as 'bücher.example.test'"),
        ("日本ひらカタabc.example.test", None, "the host is not ASCII"),
    ],
)
def test_a_host_that_is_not_ascii_is_shown_encoded(host, ascii_host, flag):
    view = shown(f"https://{host}:8443/v1/pets/1")
    assert view.host.isascii()
    assert ascii_host in (None, view.host)
    assert view.url == f"https://{view.host}:8443/v1/pets/1"
    assert flag in view.flags[0]
    assert ("mixes" in view.flags[0]) == ("mixes" in flag)


def test_a_path_of_another_template_userinfo_and_a_fragment_are_flagged():
    view = shown("https://joe:pw@api.example.test/v1/cats/1#token=x")
    assert view.path_values == ()
    assert [next(word for word in ("template", "fragment", "userinfo") if word in flag) for flag in view.flags] == [
        "template",
        "fragment",
        "userinfo",
    ]
    assert "joe" not in everything(view)
    assert "=x" not in everything(view)


def test_a_secret_path_value_is_hidden_by_its_placeholder():
    tool = tool_of(
        {"parameters": [parameter("token", "path"), parameter("id", "path")]},
        path="/sessions/{token}/{id}",
        servers=[{"url": SERVER}],
    )
    view = shown(f"{SERVER}/sessions/t-1/7", tool=tool)
    assert view.url == f"{SERVER}/sessions/<redacted>/7"
    assert [(field.name, field.value) for field in view.path_values] == [("token", REDACTED), ("id", "7")]
    assert "t-1" not in everything(view)


# Long values


def test_a_long_value_is_cut_and_can_be_had_whole():
    long = "y" * 2_500
    for view, place in [
        (shown(f"{SERVER}/pets/1?x={long}"), "query x"),
        (shown(f"{SERVER}/pets/{long}"), "path petId"),
        (shown(headers=[("X-A", long)]), "header X-A"),
        (shown(body=json.dumps({"a": {"b": long}}).encode(), media_type=JSON), "body/a/b"),
        (shown(body=f"a={long}".encode(), media_type=FORM), "body a"),
        (shown(body=long.encode(), media_type="text/plain"), "body"),
    ]:
        (cut,) = [cut for cut in view.cuts if cut.place == place]
        assert (cut.shown, cut.total, cut.unit) == (2_000, 2_500, "characters")
        assert view.whole(place) == long
        assert cut.sha256 == hashlib.sha256(long.encode()).hexdigest()
        assert f"  {place}: 2,000 of 2,500 characters, sha256 {cut.sha256}" in str(view).splitlines()
        assert not view.is_complete
        assert long not in json.dumps(view.to_dict())


def test_a_body_of_many_lines_is_cut_and_can_be_had_whole():
    items = [*range(300), "z" * 2_500]
    view = shown(body=json.dumps(items).encode(), media_type=JSON)
    assert view.body is not None
    assert view.body.text is not None
    assert view.body.text.count("\n") == 200
    assert json.loads(view.whole("body")) == items
    assert view.whole("body/300") == items[-1]
    text = "\n".join(map(str, range(201)))
    assert shown(body=text.encode(), media_type="text/plain").whole("body") == text


def test_without_a_limit_nothing_is_cut():
    request = made(f"{SERVER}/pets/1?x={'y' * 9_000}", json.dumps(list(range(900))).encode(), JSON)
    view = preview(request, limit=None)
    assert view.is_complete
    assert view.body is not None
    assert json.loads(view.body.text or "") == list(range(900))
    with pytest.raises(KeyError, match="nothing was cut"):
        view.whole("query x")
    assert not preview(request).is_complete


def test_what_is_cut_is_redacted_before():
    view = shown(body=json.dumps({"a": "y" * 1_990 + " password=hunter2-secret"}).encode(), media_type=JSON)
    assert "hunter2" not in everything(view)


# Secrets


NAMES = "password api_key accessToken client-secret x.authorization session_id privateKey credential".split()
ENCODINGS = {
    "raw": lambda data: data,
    "JSON in JSON": lambda data: {"note": json.dumps(data)},
    "percent": lambda data: {"note": quote(json.dumps(data), safe="")},
    "base64": lambda data: {"note": base64.b64encode(json.dumps(data).encode()).decode()},
    "form": lambda data: {"note": urlencode([("a", "1"), *flat(data)])},
}


def flat(data: Any) -> list[tuple[str, str]]:
    if isinstance(data, dict):
        return [
            pair for key, value in data.items() for pair in ([(key, value)] if isinstance(value, str) else flat(value))
        ]
    return [pair for item in data for pair in flat(item)]


def secrets() -> list[tuple[str, str, Any]]:
    """(secret, harmless value, data that has both): names by depths by encodings, and more of them by spelling."""
    found = []
    for encoding, encode in ENCODINGS.items():
        for number in range(42):
            name, depth = NAMES[number % len(NAMES)], number % 3 + 1
            digest = hashlib.sha256(f"{encoding}{number}".encode()).hexdigest()
            secret = f"zq{digest[:10]}" + (" &\"'%+/é\\" if number % 2 else "")
            name = name.upper() if number % 5 == 0 else name
            harmless = f"id-{digest[10:20]}"
            data: Any = {name: secret, "petName": harmless}
            for level in range(depth - 1):
                data = [data] if level % 2 else {"config": data}
            found.append((secret, harmless, encode(data)))
    return found


def places(data: Any) -> list[ResolvedRequest]:
    text = json.dumps(data)
    return [
        made(body=text.encode(), media_type=JSON),
        made(f"{SERVER}/pets/1?filter={quote(text, safe='')}"),
        made(f"{SERVER}/pets/{quote(text, safe='')}"),
        made(body=urlencode({"filter": text}).encode(), media_type=FORM),
        made(body=f"it says {text} there".encode(), media_type="text/plain"),
        made(headers=[("X-Filter", text), ("Cookie", f"a={quote(text, safe='')}")]),
        multipart(Part("meta", text.encode(), None, JSON), Part("note", text.encode())),
    ]


def test_no_planted_secret_survives_on_any_surface():
    planted = secrets()
    assert len(planted) >= 200
    for secret, _, data in planted:
        needles = {secret[:12], quote(secret[:12]), base64.b64encode(secret[:12].encode()).decode()[2:14]}
        for request in places(data):
            text = everything(request.preview())
            assert REDACTED in text
            assert not [needle for needle in needles if needle in text], (data, request)


def test_harmless_values_survive_beside_the_secrets():
    seen = 0
    for _, harmless, data in secrets():
        if "note" in data and not data["note"].startswith(("{", "[", "%", "a=")):
            continue  # base64 is hidden as a whole
        view = preview(made(body=json.dumps(data).encode(), media_type=JSON))
        assert harmless in str(view)
        seen += 1
    assert seen >= 50


def test_a_secret_known_by_its_value_is_hidden_under_any_name():
    request = made(
        f"{SERVER}/pets/zq81kk-val?note=zq81kk%2Dval",
        json.dumps({"note": base64.b64encode(b"u:zq81kk-val").decode()}).encode(),
        JSON,
        headers=[("X-A", "a zq81kk-val b")],
    )
    view = preview(request, Redactor(["zq81kk-val"]))
    assert "zq81kk" not in everything(view)
    assert base64.b64encode(b"u:zq81kk-val").decode()[4:] not in everything(view)
    assert "X-A: a <redacted> b" in str(view)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12) | st.integers() | st.lists(st.booleans()), max_size=4))
def test_any_body_is_shown_as_json_without_a_hidden_character(data):
    view = shown(body=json.dumps(data).encode(), media_type=JSON)
    assert view.body is not None
    assert view.body.kind == "json"
    assert len(json.loads(view.body.text or "")) == len(data)
    assert all(line.isprintable() or not line.isascii() for line in str(view).split("\n"))
    json.dumps(view.to_dict(), ensure_ascii=False).encode()
