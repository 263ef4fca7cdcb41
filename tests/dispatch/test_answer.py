"""What a model is given of an answer, and that no answer makes a call fail."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OK, tool_of

from toolgen.dispatch.answer import read_answer
from toolgen.dispatch.settings import Http
from toolgen.identity.redact import REDACTED, Redactor
from toolgen.openapi.text import CUT
from toolgen.result import Sent, ToolResult
from toolgen.tools.model import Tool

SECRET = "planted-5ecret-value"
GET = tool_of({}, method="get")
HEADERS = {name: {"schema": {"type": "string"}} for name in ("X-Made-Up", "Set-Cookie", "WWW-Authenticate")}
CREATED = tool_of({"responses": {**OK, "201": {"description": "made", "headers": HEADERS}}})


class Body(httpx2.AsyncByteStream):
    """A body in pieces that tells how many were taken and whether it was closed."""

    def __init__(self, *pieces: bytes, error: Exception | None = None, hang: bool = False) -> None:
        self._pieces, self._error, self._hang = pieces, error, hang
        self.taken, self.closed = 0, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.taken += 1
            yield piece
        if self._hang:
            await asyncio.Event().wait()
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        self.closed = True


def answer(
    content: bytes | Body = b"",
    content_type: str | None = "application/json",
    status: int = 200,
    *,
    headers: dict[str, str] | list[tuple[str, str]] | None = None,
    tool: Tool = GET,
    **settings: Any,
) -> ToolResult:
    """The result of this answer; the secret is known and may not be in it."""
    body = content if isinstance(content, Body) else Body(content) if content else Body()
    given = [*(headers.items() if isinstance(headers, dict) else headers or [])]
    given += [("Content-Type", content_type.encode("latin-1"))] if content_type is not None else []

    async def run() -> ToolResult:
        transport = httpx2.MockTransport(lambda request: httpx2.Response(status, headers=given, stream=body))
        async with (
            httpx2.AsyncClient(transport=transport) as client,
            client.stream("GET", "http://api.example/") as response,
        ):
            return await read_answer(response, tool, Http(**settings), Redactor([SECRET]))

    found = asyncio.run(run())
    assert body.closed
    assert found.sent is Sent.answered
    assert SECRET not in str(found)
    assert SECRET not in json.dumps(found.to_dict(), allow_nan=False)
    str(found).encode()
    return found


@pytest.mark.parametrize(
    ("content", "content_type", "body"),
    [
        (b'{"a": [1, 2.5, true, null]}', "application/json", {"a": [1, 2.5, True, None]}),
        (b'{"a": 1}', "application/vnd.api+json; charset=utf-8", {"a": 1}),
        (b'{"a": 1}', "TEXT/JSON", {"a": 1}),
        (b"12345678901234567890123", "application/json", 12345678901234567890123),
        (b'"text"', "application/json", "text"),
        (b"null", "application/json", None),
        (b'{"a": 1, "a": 2}', "application/json", {"a": 2}),
        (b"[NaN, -Infinity, 1e999]", "application/json", ["NaN", "-Infinity", "1e999"]),
        (b"[" + b"1" * 5000 + b"]", "application/json", ["1" * 5000]),
        (rb'["\ud83d\ude00", "\ud83d"]', "application/json", ["😀", "\ufffd"]),
        (b"\xef\xbb\xbf[1]", "application/json", [1]),
        ('["ä"]'.encode("utf-16"), "application/json", ["ä"]),
        ('["ä"]'.encode("utf-16-le"), "application/json", ["ä"]),
        ('["ä"]'.encode("latin-1"), "application/json; charset=ISO-8859-1", ["ä"]),
        (b"a\nb", "text/plain", "a\nb"),
        ("ä".encode("latin-1"), 'text/plain; format=x; charset="latin1"', "ä"),
        ("ä".encode(), "text/plain; charset=no-such", "ä"),
        (b"\xc3\xa4-", "text/plain; charset=punycode", "ä-"),
        (b"a", "text/plain; charset=undefined", "a"),
        (b"\xff", "text/csv", "\ufffd"),
        ("\ufeffä".encode(), "text/plain; charset=latin1", "ä"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><a>ä</a>'.encode("latin-1"), "application/xml",
         '<?xml version="1.0" encoding="ISO-8859-1"?><a>ä</a>'),
        (b"<a/>", "image/svg+xml", "<a/>"),
        (b"a: 1", "application/yaml", "a: 1"),
        (b'{"a": 1}', None, {"a": 1}),
        (b"plain", None, "plain"),
    ],
)  # fmt: skip
def test_a_body_is_what_its_media_type_says(content: bytes, content_type: str | None, body: Any) -> None:
    found = answer(content, content_type)
    assert (found.ok, found.body, found.message) == (True, body, "")


@pytest.mark.parametrize("content_type", ["application/octet-stream", "image/png", None, "no media type", "a/b\x80"])
def test_what_is_no_text_is_base64_with_its_size(content_type: str | None) -> None:
    content = b"\x00\xff\x01"
    media_type = content_type if content_type in ("application/octet-stream", "image/png") else None
    body = {"base64": "AP8B", "bytes": 3, "mediaType": media_type or "application/octet-stream"}
    found = answer(content, content_type)
    assert (found.body, found.media_type) == (body, media_type)


def test_bytes_that_are_more_than_a_result_holds_are_left_out_with_their_number() -> None:
    found = answer(b"\xff" * 3000, "image/png", max_result_chars=3999)
    assert found.body == {"bytes": 3000, "mediaType": "image/png"}
    assert "3,000 bytes are left out" in found.message
    assert len(answer(b"\xff" * 3000, "image/png", max_result_chars=4000).body["base64"]) == 4000


@pytest.mark.parametrize("content_type", [None, "application/json", "text/plain", "image/png"])
@pytest.mark.parametrize("status", [200, 204, 304])
def test_no_body_is_none_whatever_was_announced(status: int, content_type: str | None) -> None:
    found = answer(b"", content_type, status, headers={"ETag": '"v1"'})
    assert (found.ok, found.body, found.message) == (True, None, "")
    assert found.headers == {"etag": '"v1"'}


@pytest.mark.parametrize("content", [b"{", b"<html>", b"{'a': 1}", b"[" * 5000, b'{"a": 1} trailing'])
def test_json_that_is_none_is_text_and_says_so(content: bytes) -> None:
    found = answer(content)
    assert (found.ok, found.body) == (True, content.decode())
    assert found.message == "the body is not the JSON that its media type says"


@given(st.binary(max_size=60), st.sampled_from([200, 302, 404, 599]), st.text(max_size=30).map(str.strip))
def test_no_answer_makes_a_call_fail(content: bytes, status: int, charset: str) -> None:
    printable = charset.encode("ascii", "replace").decode().replace("\0", "")
    for content_type in ("application/json", f"text/plain; charset={printable}", "x/y", "text/event-stream", printable):
        assert answer(content, "".join(filter(str.isprintable, content_type)), status).ok is (status < 400)


# Limits


def test_a_large_answer_is_cut_to_json_that_keeps_its_cursor() -> None:
    data = {"items": [{"id": number} for number in range(90_000)], "next": "cursor-17"}
    found = answer(json.dumps(data).encode())  # large enough for a thread of its own
    assert found.body["next"] == "cursor-17"
    kept = len(found.body["items"])
    assert found.body["items"] == data["items"][:kept]
    assert found.message == f"cut to 40,000 characters: /items: {kept:,} of 90,000 items"
    assert 39_000 < len(json.dumps(found.body)) <= 40_000


def test_a_long_text_is_cut_and_says_how_much_there_was() -> None:
    found = answer(b"x" * 5000, "text/plain", max_result_chars=1000)
    assert found.body == "x" * (1000 - len(CUT)) + CUT
    assert found.message == f"the first {1000 - len(CUT):,} of 5,000 characters"


def test_reading_stops_at_the_limit_of_the_unpacked_body() -> None:
    packed = gzip.compress(b" " * 100_000_000)
    pieces = [packed[at : at + 1000] for at in range(0, len(packed), 1000)]
    body = Body(*pieces)
    found = answer(body, "text/plain", headers={"Content-Encoding": "gzip"}, max_answer_bytes=3_000_000)
    assert body.taken < len(pieces) / 10
    assert "only the first 3,000,000 bytes of the answer were read" in found.message
    assert answer(b"x" * 1000, "text/plain", max_answer_bytes=1000).message == ""


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, deflate, gzip", "made-up"])
def test_what_is_packed_otherwise_or_more_than_once_is_not_unpacked(coding: str) -> None:
    content = gzip.compress(gzip.compress(b"{}"))
    found = answer(content, headers={"Content-Encoding": coding})
    assert base64.b64decode(found.body["base64"]) == content
    assert f"packed as '{coding}'" in found.message


@pytest.mark.parametrize(
    ("body", "settings", "message"),
    [
        (Body(b'{"a": 1', hang=True), {"total": 0.1}, "only the first 7 bytes of the answer came in time"),
        (Body(b'{"a": 1', error=httpx2.ReadTimeout("")), {}, "only the first 7 bytes of the answer came, then"),
        (Body(b'{"a": 1', error=httpx2.ReadError("")), {}, "only the first 7 bytes of the answer can be read, then"),
        (Body(b'{"a": 1', error=httpx2.RemoteProtocolError("")), {}, "it breaks off"),
        (Body(b'{"a": 1', error=OSError("of a transport's own")), {}, "it breaks off"),
    ],
)
def test_an_answer_that_breaks_off_is_what_came_of_it(body: Body, settings: dict[str, Any], message: str) -> None:
    found = answer(body, status=201, **settings)
    assert (found.ok, found.status, found.body) == (True, 201, '{"a": 1')
    assert message in found.message
    assert "not the JSON" not in found.message


def test_a_body_that_cannot_be_unpacked_is_an_answer_all_the_same() -> None:
    found = answer(b"no gzip", headers={"Content-Encoding": "gzip"})
    assert (found.ok, found.body) == (True, None)
    assert "breaks off" in found.message


def test_a_deadline_bounds_the_answer_whatever_the_settings_say() -> None:
    async def run() -> ToolResult:
        response = httpx2.Response(200, headers={"Content-Type": "text/plain"}, stream=Body(b"a", hang=True))
        now = asyncio.get_running_loop().time()
        return await read_answer(response, GET, Http(), Redactor(), deadline=now + 0.1)

    assert asyncio.run(run()).body == "a"


def test_events_are_a_list_and_the_message_says_why_it_ended() -> None:
    content = b'id: 7\ndata: {"key": "' + SECRET.encode() + b'"}\n\nretry: 1500\n\n'
    found = answer(content, "text/event-stream; charset=utf-8")
    assert found.body == [{"id": "7", "data": {"key": REDACTED}}]
    assert (found.media_type, found.retry_after) == ("text/event-stream", 1.5)
    assert found.message == "the stream ended (1 event)"
    many = answer(b"data: " + b"x" * 60 + b"\n\n", "text/event-stream", max_result_chars=100)
    assert "cut" not in many.message
    assert (
        "cut to 100 characters: "
        in answer(content.replace(b"key", b"k" * 99), "text/event-stream", max_result_chars=100).message
    )


# Errors


def test_an_error_keeps_its_body_redacted_by_name_and_shape_and_value() -> None:
    data = {"error": "bad", "password": "hunter2-hunter2", "seen": [f"Bearer {SECRET}", "id 17"]}
    found = answer(json.dumps(data).encode(), status=422)
    assert (found.ok, found.status) == (False, 422)
    assert (found.body["error"], found.body["password"], found.body["seen"][1]) == ("bad", REDACTED, "id 17")
    assert found.message.startswith("HTTP 422: ")
    assert str(found).count("HTTP 422") == 1
    text = answer(b"no: password=hunter2-hunter2 and " + SECRET.encode(), "text/plain", 500).body
    assert "hunter2" not in text
    assert text.startswith("no: ")


def test_a_good_answer_is_redacted_by_value_only() -> None:
    data = {"token": "a-new-token-that-was-made", "echo": SECRET, SECRET: [base64.b64encode(SECRET.encode()).decode()]}
    found = answer(json.dumps(data).encode())
    assert found.body["token"] == "a-new-token-that-was-made"
    assert found.body["echo"] == REDACTED
    assert base64.b64encode(SECRET.encode()).decode() not in str(found)
    assert answer(b"your " + SECRET.encode(), "text/plain").body == f"your {REDACTED}"


@pytest.mark.parametrize("place", range(950, 1000, 7))
@pytest.mark.parametrize(
    ("status", "content_type"), [(200, "text/plain"), (200, "application/json"), (500, "text/plain")]
)
def test_a_cut_leaves_no_piece_of_a_secret(place: int, status: int, content_type: str) -> None:
    text = "x" * place + SECRET + "y" * 2000
    content = json.dumps({"a": text}) if content_type == "application/json" else text
    found = answer(content.encode(), content_type, status, max_result_chars=1000)
    assert SECRET[:4] not in str(found)


@pytest.mark.parametrize(
    ("content_type", "data", "message"),
    [
        (
            "application/problem+json",
            {"title": "No pet", "detail": "there is no pet 7\n"},
            "HTTP 404: No pet: there is no pet 7",
        ),
        ("application/problem+json", {"title": "No pet", "detail": 7}, "HTTP 404: No pet"),
        ("application/problem+json", ["title"], "HTTP 404: Not Found"),
        ("application/problem+json", {"title": SECRET}, f"HTTP 404: {REDACTED}"),
        ("application/json", {"title": "No pet"}, "HTTP 404: Not Found"),
    ],
)
def test_a_problem_says_what_it_is_in_the_message(content_type: str, data: Any, message: str) -> None:
    found = answer(json.dumps(data).encode(), content_type, 404)
    assert found.message == message


def test_an_error_is_at_most_2000_characters_and_still_json() -> None:
    data = {"errors": [{"field": f"f{n}", "message": "m" * 50} for n in range(500)], "code": "invalid"}
    found = answer(json.dumps(data).encode(), status=400)
    assert found.body["code"] == "invalid"
    assert len(json.dumps(found.body)) <= 2000
    assert "of 500 items" in found.message
    page = answer(b"<html>" * 200_000, "text/html", 502)
    assert len(page.body) == 2000
    assert answer(b"", None, 799).message == "HTTP 799"
    endless = Body(*[b"x" * 10_000] * 1000)
    answer(endless, "text/html", 502)
    assert endless.taken < 30


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_with_its_location(status: int) -> None:
    found = answer(b"", None, status, headers={"Location": "https://other.example/x?page=2"})
    assert (found.ok, found.status) == (True, status)
    assert found.headers == {"location": "https://other.example/x?page=2"}
    said = "redirects are not followed: see location"
    assert str(found) == f"HTTP {status}\n{said}\nlocation: https://other.example/x?page=2"


# Headers


def test_only_headers_that_carry_the_answer_get_through() -> None:
    carried = {
        "Location": "/pets/7",
        "ETag": 'W/"3"',
        "Last-Modified": "Wed, 21 Oct 2026 07:28:00 GMT",
        "Link": '<https://api.example/pets?page_token=abc>; rel="next"',
        "X-Total-Count": "500",
        "X-Next-Page": "3",
        "X-RateLimit-Remaining": "7",
        "RateLimit": '"default";r=50;t=30',
        "Content-Disposition": 'attachment; filename="a.csv"',
        "Deprecation": "@1688169599",
        "Sunset": "Wed, 11 Nov 2026 23:59:59 GMT",
        "X-Request-Id": "5f0c1a2e",
        "X-Made-Up": "documented",
    }
    dropped = {
        "Set-Cookie": "sid=abcdef",
        "Set-Cookie2": "sid=abcdef",
        "WWW-Authenticate": 'Bearer realm="x", error_description="abcdef"',
        "Authentication-Info": 'nextnonce="abcdef"',
        "Authorization": "Bearer abcdef",
        "Proxy-Authenticate": "Basic abcdef",
        "Proxy-Authorization": "Basic abcdef",
        "Server": "abcdef",
        "X-Undocumented": "abcdef",
        "X-Powered-By": "abcdef",
    }
    found = answer(b"{}", status=201, headers={**carried, **dropped}, tool=CREATED)
    assert found.headers == {name.lower(): value for name, value in carried.items()}


def test_header_values_are_one_line_redacted_and_capped() -> None:
    headers = [
        ("Location", f"https://u:pass-word@api.example/x?api_key=abcdef123456&page=2&echo={SECRET}"),
        ("Link", "<a>"),
        ("link", "<b>"),
        ("X-Request-Id", "a\u200b\tb" + "c" * 5000),
        ("X-Made-Up", "x" * 1985 + SECRET + "y" * 100),
        *((f"X-Page-{letters}", "1") for letters in (chr(97 + n % 26) * (1 + n // 26) for n in range(100))),
    ]
    found = answer(b"", headers=[(name, value.encode()) for name, value in headers], tool=CREATED)  # type: ignore[arg-type]
    location = found.headers["location"]
    assert "page=2" in location
    assert not any(secret in location for secret in ("pass-word", "abcdef123456", SECRET))
    assert found.headers["link"] == "<a>, <b>"
    assert found.headers["x-request-id"].startswith("a bc")
    assert len(found.headers["x-request-id"]) == 2000
    assert SECRET[:5] not in found.headers["x-made-up"]
    assert len(found.headers) == 40


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": " 0 "}, 0),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "1.5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "9" * 400}, None),
        ({"Retry-After": "²"}, None),
        ({"Retry-After": formatdate(90, usegmt=True), "Date": formatdate(60, usegmt=True)}, 30),
        ({"Retry-After": formatdate(60, usegmt=True), "Date": formatdate(90, usegmt=True)}, 0),
        ({"Retry-After": formatdate(60, usegmt=True)}, 0),
        ({"Retry-After": "Wed, 99 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_never_negative(headers: dict[str, str], seconds: float | None) -> None:
    raw = {name: value.encode() for name, value in headers.items()}
    found = answer(b"{}", status=503, headers=raw)  # type: ignore[arg-type]
    assert found.retry_after == seconds


def test_a_date_counts_from_now_where_the_answer_has_none() -> None:
    found = answer(b"{}", status=429, headers={"Retry-After": formatdate(time.time() + 100, usegmt=True)})
    assert found.retry_after is not None
    assert 90 < found.retry_after <= 100
