from __future__ import annotations

import asyncio
import gzip
import json
import sys
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import httpx2
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.settings import Http
from toolgen.dispatch.tokens import Tokens
from toolgen.dispatch.transport import build_transport
from toolgen.errors import AddressRefused, CredentialsMissing, MissingExtra
from toolgen.identity.caller import Secret
from toolgen.identity.credentials import ClientCredentials

SECRET = "s3cret +/:%é"
FINE = {"access_token": "t-1", "token_type": "Bearer", "expires_in": 3600}


class Clock:
    """Seconds that pass when the test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Endpoint:
    """A token endpoint: it keeps its requests and answers `answers`, the last one for ever."""

    def __init__(self, server: HTTPServer, *answers: Response | dict[str, Any]) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.bodies: list[dict[str, list[str]]] = []
        self.url = server.url_for("/token")
        server.expect_request("/token").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.requests.append(request)
        self.bodies.append(parse_qs(request.get_data(as_text=True)))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return said(answer) if isinstance(answer, dict) else answer


def said(data: Any, status: int = 200) -> Response:
    return Response(json.dumps(data), status, content_type="application/json")


class Asking:
    """What the dispatcher has of one API: the tokens, a transport, and the settings."""

    def __init__(self, allowed: Allowed, http: Http) -> None:
        self.clock = Clock()
        self.tokens = Tokens(self.clock)
        self.http = http
        self.transport: httpx2.AsyncBaseTransport = build_transport(http, allowed)

    async def __call__(self, given: ClientCredentials, *, tenant: str = "default", digest: str = "d1") -> str:
        found = await self.tokens.client_credentials(given, self.transport, self.http, tenant=tenant, digest=digest)
        return found.reveal()


@asynccontextmanager
async def asking(allowed: Allowed | None = None, http: Http | None = None) -> AsyncIterator[Asking]:
    found = Asking(allowed or Allowed(["localhost"]), http or Http())
    try:
        yield found
    finally:
        await found.transport.aclose()


def client(url: str, client_id: str = "svc", scope: tuple[str, ...] = ("read", "write")) -> ClientCredentials:
    return ClientCredentials(url, client_id, Secret(SECRET), scope)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_a_token_is_asked_for_as_the_rfc_says_with_the_client_in_a_form_encoded_basic_header(
    httpserver: HTTPServer,
) -> None:
    endpoint = Endpoint(httpserver, FINE)

    async def main() -> None:
        async with asking() as ask:
            assert await ask(client(endpoint.url, "svc:1")) == "t-1"

    run(main)
    (request,) = endpoint.requests
    assert request.method == "POST"
    assert request.mimetype == "application/x-www-form-urlencoded"
    assert endpoint.bodies == [{"grant_type": ["client_credentials"], "scope": ["read write"]}]
    scheme, _, encoded = request.headers["Authorization"].partition(" ")
    user, _, password = b64decode(encoded).decode("ascii").partition(":")
    assert (scheme, unquote_plus(user), unquote_plus(password)) == ("Basic", "svc:1", SECRET)


@pytest.mark.parametrize(("lifetime", "kept"), [(3600, 3540), ("3600", 3540), (100, 90), (None, 270), (0, 0), (-5, 0)])
def test_a_token_is_kept_until_shortly_before_it_expires(httpserver: HTTPServer, lifetime: Any, kept: float) -> None:
    answers = [{**FINE, "access_token": f"t-{number}", "expires_in": lifetime} for number in (1, 2)]
    endpoint = Endpoint(httpserver, *answers)

    async def main() -> None:
        async with asking() as ask:
            assert await ask(client(endpoint.url)) == "t-1"
            if kept:
                ask.clock.now += kept - 1
                assert await ask(client(endpoint.url)) == "t-1"
            ask.clock.now += 1
            assert await ask(client(endpoint.url)) == "t-2"

    run(main)


def test_a_token_is_shared_by_nobody_with_another_client_scope_endpoint_tenant_or_credential(
    httpserver: HTTPServer,
) -> None:
    endpoint = Endpoint(httpserver, *[{**FINE, "access_token": f"t-{number}"} for number in range(9)])

    async def main() -> None:
        async with asking() as ask:
            same = client(endpoint.url)
            found = [
                await ask(same),
                await ask(client(endpoint.url, "other")),
                await ask(client(endpoint.url, scope=("read",))),
                await ask(client(endpoint.url + "?a=b")),
                await ask(same, tenant="other"),
                await ask(same, digest="other"),
                await ask(same),
            ]
            assert found == ["t-0", "t-1", "t-2", "t-3", "t-4", "t-5", "t-0"]

    run(main)


def test_calls_at_the_same_time_ask_once_and_share_a_refusal_that_the_next_call_does_not(
    httpserver: HTTPServer,
) -> None:
    endpoint = Endpoint(httpserver, said({"error": "invalid_client"}, 401), FINE)

    async def main() -> None:
        async with asking() as ask:
            given = client(endpoint.url)
            refused = await asyncio.gather(*[ask(given) for _ in range(5)], return_exceptions=True)
            assert {str(one) for one in refused} == {
                f"no access token from {origin(endpoint)}: it answered invalid_client"
            }
            assert len(endpoint.requests) == 1
            assert await asyncio.gather(*[ask(given) for _ in range(5)]) == ["t-1"] * 5
            assert len(endpoint.requests) == 2

    run(main)


def origin(endpoint: Endpoint) -> str:
    return endpoint.url.removesuffix("/token")


def test_a_call_that_is_cancelled_while_it_asks_leaves_the_others_to_ask(httpserver: HTTPServer) -> None:
    endpoint = Endpoint(httpserver, FINE)

    async def main() -> None:
        async with asking() as ask:
            real, held = ask.transport, asyncio.Event()

            async def never(_: httpx2.Request) -> httpx2.Response:
                held.set()
                await asyncio.Event().wait()
                raise AssertionError

            ask.transport = httpx2.MockTransport(never)
            first = asyncio.create_task(ask(client(endpoint.url)))
            await held.wait()
            ask.transport = real
            second = asyncio.create_task(ask(client(endpoint.url)))
            first.cancel()
            assert await second == "t-1"

    run(main)


def test_a_token_that_was_forgotten_is_asked_for_anew(httpserver: HTTPServer) -> None:
    endpoint = Endpoint(httpserver, FINE, {**FINE, "access_token": "t-2"})

    async def main() -> None:
        async with asking() as ask:
            token = await ask(client(endpoint.url))
            ask.tokens.forget(Secret("another"))
            assert await ask(client(endpoint.url)) == token
            ask.tokens.forget(Secret(token))
            assert await ask(client(endpoint.url)) == "t-2"

    run(main)


def test_expired_tokens_of_many_tenants_do_not_pile_up(httpserver: HTTPServer) -> None:
    endpoint = Endpoint(httpserver, FINE)

    async def main() -> None:
        async with asking() as ask:
            for tenant in range(5):
                await ask(client(endpoint.url), tenant=str(tenant))
                ask.clock.now += 4000
            assert len(ask.tokens._entries) == 1

    run(main)


LEAKS = "the token leaked-1 of the client"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (said({"error": "invalid_scope", "error_description": LEAKS}, 400), "it answered invalid_scope"),
        (said({"error": "invalid_scope"}), "it answered invalid_scope"),
        (said({"error": LEAKS}, 400), "it answered an error of its own"),
        (said({"error": {"leaked-1": 1}}, 400), "it answered an error of its own"),
        (Response(LEAKS, 403), r"the answer \(status 403\) is no token"),
        (Response(LEAKS, 500), r"the answer \(status 500\) is no token"),
        (Response(LEAKS, 200), r"the answer \(status 200\) is no token"),
        (said(["leaked-1"]), r"the answer \(status 200\) is no token"),
        (said({**FINE, "access_token": "leaked-1"}, 403), r"the answer \(status 403\) is no token"),
        (said({**FINE, "access_token": "leaked-1", "expires_in": "soon"}), "is no token"),
        (said({**FINE, "access_token": "leaked-1", "expires_in": float("inf")}), "is no token"),
        (said({**FINE, "access_token": "leaked-1", "expires_in": float("nan")}), "is no token"),
        (said({**FINE, "access_token": "leaked-1", "expires_in": {}}), "is no token"),
        (said({**FINE, "access_token": "leaked-1\nX:y"}), "no access token that a header could carry"),
        (said({**FINE, "access_token": "leaked-1é"}), "no access token that a header could carry"),
        (said({**FINE, "access_token": "leaked-1 x"}), "no access token that a header could carry"),
        (said({**FINE, "access_token": ""}), "no access token that a header could carry"),
        (said({**FINE, "access_token": ["leaked-1"]}), "no access token that a header could carry"),
        (said({"token_type": "Bearer"}), "no access token that a header could carry"),
        (said({**FINE, "access_token": "leaked-1", "token_type": "mac"}), "the token is no bearer token"),
        (said({**FINE, "access_token": "leaked-1", "token_type": None}), "the token is no bearer token"),
        (Response("[" * 100_000, 200), "is no token"),
        (Response('{"leaked-1": "' + " " * 1_100_000 + '"}', 200), r"the request failed \(ReadError\)"),
        (
            Response(gzip.compress(json.dumps(FINE).encode()), 200, {"Content-Encoding": "gzip"}),
            r"the request failed \(DecodingError\)",
        ),
    ],
)
def test_an_answer_that_is_no_token_is_told_by_its_code_or_status_and_nothing_of_it_is_shown(
    httpserver: HTTPServer, answer: Response, told: str
) -> None:
    endpoint = Endpoint(httpserver, answer)

    async def main() -> None:
        async with asking() as ask:
            with pytest.raises(CredentialsMissing, match=told) as caught:
                await ask(client(endpoint.url))
            for secret in ("leaked-1", SECRET, "s3cret", endpoint.url):
                assert secret not in str(caught.value)
            assert caught.value.__suppress_context__ or caught.value.__context__ is None

    run(main)


def test_a_redirect_is_not_followed_even_with_a_token_in_it(httpserver: HTTPServer) -> None:
    moved = said({**FINE, "access_token": "leaked-1"}, 307)
    moved.headers["Location"] = httpserver.url_for("/elsewhere")
    httpserver.expect_request("/elsewhere").respond_with_json(FINE)
    endpoint = Endpoint(httpserver, moved)

    async def main() -> None:
        async with asking() as ask:
            with pytest.raises(CredentialsMissing, match=r"status 307.*redirects are not followed"):
                await ask(client(endpoint.url))

    run(main)
    assert [request.path for request, _ in httpserver.log] == ["/token"]


def test_the_token_endpoint_must_have_an_address_that_is_open(httpserver: HTTPServer) -> None:
    endpoint = Endpoint(httpserver, FINE)

    async def main() -> None:
        async with asking(Allowed(["api.example"])) as ask:
            with pytest.raises(AddressRefused, match="loopback"):
                await ask(client(endpoint.url))

    run(main)
    assert endpoint.requests == []


def test_an_endpoint_that_cannot_be_reached_or_is_no_url_is_no_token() -> None:
    async def main() -> None:
        async with asking() as ask:
            for url in ("http://localhost:1/token", "http://localhost:x/token", "token"):
                with pytest.raises(CredentialsMissing, match="no access token from"):
                    await ask(client(url))

    run(main)


def test_an_endpoint_that_does_not_answer_is_given_up() -> None:
    async def never(_: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        async with asking(http=Http(total=0.05)) as ask:
            real, ask.transport = ask.transport, httpx2.MockTransport(never)
            with pytest.raises(CredentialsMissing, match=r"took longer than 0\.05 seconds"):
                await ask(client("https://auth.example/token"))
            ask.transport = real

    run(main)


def test_asking_leaves_the_transport_open_and_takes_nothing_from_the_environment(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint(httpserver, FINE)
    for name in ("ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def main() -> None:
        async with asking() as ask:
            await ask(client(endpoint.url))
            ask.tokens.forget(Secret("t-1"))
            await ask(client(endpoint.url))
            answer = await ask.transport.handle_async_request(httpx2.Request("POST", endpoint.url))
            await answer.aclose()

    run(main)
    assert len(endpoint.requests) == 3


def test_without_authlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "authlib.integrations.httpx_client", None)

    async def main() -> None:
        async with asking() as ask:
            with pytest.raises(MissingExtra, match=r"pip install 'toolgen\[oauth\]'"):
                await ask(client("https://auth.example/token"))

    run(main)
