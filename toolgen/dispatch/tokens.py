"""Access tokens for clients of their own: the client-credentials grant (RFC 6749, 4.4), through authlib.

The token endpoint is asked over the transport of the API, so its address is judged like any other; no
redirect is followed, nothing comes from the environment, and at most a megabyte of an answer is read.
Errors name the endpoint's origin and the OAuth error code, and nothing else of what was sent or answered.
"""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_plus

import httpx2

from toolgen.dispatch.settings import Http
from toolgen.errors import CredentialsMissing, DispatchRefused, MissingExtra
from toolgen.identity.caller import Secret
from toolgen.identity.credentials import ClientCredentials
from toolgen.identity.origin import Origin

_LARGEST_ANSWER: Final = 1_000_000  # bytes
_LIFETIME: Final = 300.0  # seconds, of a token whose server does not tell
_EARLY: Final = 60.0  # seconds before the end in which a token is not used any more, or a tenth of its lifetime
# RFC 6749 5.2, RFC 8707 2, and what RFC 6749 4.1.2.1 has for servers; other texts are not repeated.
_CODES: Final = frozenset(
    "invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type invalid_scope"
    " invalid_target access_denied server_error temporarily_unavailable".split()
)


@dataclass
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: Secret | None = None
    until: float = 0
    requests: int = 0  # that came to an end
    failure: DispatchRefused | None = None  # of the last one


class Tokens:
    """The tokens of one process, kept until shortly before they expire; they belong to one event loop.

    `clock` counts seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: dict[tuple[object, ...], _Entry] = {}

    async def client_credentials(
        self, given: ClientCredentials, transport: httpx2.AsyncBaseTransport, http: Http, *, tenant: str, digest: str
    ) -> Secret:
        """The access token, asked for if there is none that is still good for a while.

        `digest` is that of the unresolved credential. Of several calls that need the same token one asks,
        and the others share what it got, a refusal too. The transport stays open.

        Raises CredentialsMissing, AddressRefused, and MissingExtra without authlib.
        """
        entry = self._entry((given.token_url, given.client_id, given.scope, tenant, digest))
        seen = entry.requests
        async with entry.lock:
            if entry.token is not None and self._clock() < entry.until:
                return entry.token
            if entry.requests != seen and entry.failure is not None:
                raise _again(entry.failure)
            return await self._ask(entry, given, transport, http)

    def forget(self, token: Secret) -> None:
        """Use a token no more: the API refused it."""
        for entry in self._entries.values():
            if entry.token == token:
                entry.token = None

    async def _ask(
        self, entry: _Entry, given: ClientCredentials, transport: httpx2.AsyncBaseTransport, http: Http
    ) -> Secret:
        entry.token = entry.failure = None
        started = self._clock()
        try:
            token, lifetime = await _requested(given, transport, http)
        except DispatchRefused as exc:
            entry.failure = _again(exc)
            raise
        finally:
            entry.requests += 1
        entry.token, entry.until = token, started + lifetime - min(_EARLY, lifetime / 10)
        return token

    def _entry(self, key: tuple[object, ...]) -> _Entry:
        if key not in self._entries:
            now = self._clock()
            self._entries = {
                other: entry for other, entry in self._entries.items() if now < entry.until or entry.lock.locked()
            }
            self._entries[key] = _Entry()
        return self._entries[key]


async def _requested(
    given: ClientCredentials, transport: httpx2.AsyncBaseTransport, http: Http
) -> tuple[Secret, float]:
    """A new token and its lifetime in seconds."""
    try:
        from authlib.integrations.httpx_client import AsyncOAuth2Client, OAuthError
    except ImportError:
        raise MissingExtra("client credentials need authlib: pip install 'toolgen[oauth]'") from None
    endpoint = _Endpoint(transport)
    client = AsyncOAuth2Client(
        client_id=given.client_id,
        client_secret=given.secret.reveal(),
        scope=" ".join(given.scope) or None,
        transport=endpoint,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(connect=http.connect, read=http.read, write=http.write, pool=http.pool),
        headers={"Accept-Encoding": "identity"},
    )
    client.register_client_auth_method(("client_secret_basic", _basic))
    try:
        async with asyncio.timeout(http.total):
            answer = await client.fetch_token(given.token_url, grant_type="client_credentials")
        if 200 <= (endpoint.status or 0) < 300:
            return _read(given, answer)
    except OAuthError as exc:
        code = exc.error if isinstance(exc.error, str) and exc.error in _CODES else "an error of its own"
        raise _failed(given, f"it answered {code}") from None
    except TimeoutError:
        raise _failed(given, f"it took longer than {http.total:g} seconds") from None
    except httpx2.RequestError as exc:
        raise _failed(given, f"the request failed ({type(exc).__name__})") from None
    except (httpx2.HTTPStatusError, httpx2.InvalidURL, ValueError, TypeError, OverflowError, RecursionError):
        pass  # what authlib, the client or `_read` cannot make sense of
    raise _failed(given, _not_understood(endpoint.status))


def _read(given: ClientCredentials, answer: MutableMapping[str, Any]) -> tuple[Secret, float]:
    """The token and its lifetime from a token response (RFC 6749, 5.1)."""
    kind, token, lifetime = answer.get("token_type", "bearer"), answer.get("access_token"), answer.get("expires_in")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise _failed(given, "the token is no bearer token")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token or " " in token:
        raise _failed(given, "the answer has no access token that a header could carry")
    return Secret(token), float(lifetime) if lifetime is not None else _LIFETIME


def _basic(client: Any, method: str, uri: str, headers: Any, body: Any) -> tuple[str, Any, Any]:
    """Client id and secret in a header, form-encoded first (RFC 6749, 2.3.1), which authlib leaves out."""
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
    headers["Authorization"] = "Basic " + b64encode(pair.encode("ascii")).decode("ascii")
    return uri, headers, body


def _failed(given: ClientCredentials, why: str) -> CredentialsMissing:
    return CredentialsMissing(f"no access token from {Origin.of(given.token_url) or 'the token endpoint'}: {why}")


def _not_understood(status: int | None) -> str:
    if status is None:
        return "the request cannot be made of the token URL and the client"
    return f"the answer (status {status}) is no token" + (", and redirects are not followed" * (300 <= status < 400))


def _again(exc: DispatchRefused) -> DispatchRefused:
    """The same refusal for somebody else, without the frames it came through."""
    return type(exc)(exc.message, exc.problems)


class _Endpoint(httpx2.AsyncBaseTransport):
    """The transport to a token endpoint: it stays open, takes no packed answer, and stops at a size."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport
        self.status: int | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._transport.handle_async_request(request)
        self.status = answer.status_code
        if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
            await answer.aclose()
            raise httpx2.DecodingError("the answer is packed", request=request)
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        answer.stream = _Bounded(answer.stream)
        return answer


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > _LARGEST_ANSWER:
                raise httpx2.ReadError("the answer is too large")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
