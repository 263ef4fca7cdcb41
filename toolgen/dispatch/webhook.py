"""Webhooks: JSON, signed as the Standard Webhooks specification (1.0.0) says, over the checked transport."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import httpx2

from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.settings import Http
from toolgen.errors import ToolgenError, UsageError
from toolgen.identity.origin import Origin

if TYPE_CHECKING:
    from toolgen.dispatch.transport import CheckedTransport

_PREFIX: Final = "whsec_"
_SHORTEST: Final = 24  # bytes of a secret, and at most 64 of it
_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where changes of pauses are told.

    `secret` is `whsec_` and base64 of 24 to 64 bytes, None for the one that is made of the store's key.
    `review_url` is where a person decides, with `{id}` in the place of the pause's id. `previews` adds the
    redacted previews of the calls. Addresses that are not public need `allow_private`, unless the URL names them.

    Raises UsageError for what is not valid; it shows neither the URL nor the secret.
    """

    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    previews: bool = False
    review_url: str | None = None
    allow_private: Sequence[str] = ()
    http: Http = field(default_factory=lambda: Http(connect=5, read=10, write=10, total=15))

    def __post_init__(self) -> None:
        if Origin.of(self.url) is None:
            raise UsageError("a webhook is an http:// or https:// URL, without a user name in it")
        if self.secret is not None:
            secret_bytes(self.secret)

    @property
    def origin(self) -> Origin:
        """What may be shown of the URL: its path and query may hold a secret."""
        found = Origin.of(self.url)
        assert found is not None
        return found


def secret_text(secret: bytes) -> str:
    """A secret as receivers configure it."""
    return _PREFIX + base64.b64encode(secret).decode()


def secret_bytes(secret: str) -> bytes:
    """The bytes of a secret. Raises UsageError."""
    with suppress(binascii.Error, ValueError):
        found = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        if secret.startswith(_PREFIX) and _SHORTEST <= len(found) <= _LONGEST:
            return found
    raise UsageError(f"a webhook's secret is {_PREFIX} and base64 of {_SHORTEST} to {_LONGEST} bytes")


def signature(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """The signature of a message; `timestamp` is seconds since 1970."""
    signed = f"{id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


class WebhookSender:
    """Sends messages to one webhook; its connections belong to the event loop that uses it."""

    def __init__(self, webhook: Webhook, secret: bytes) -> None:
        self._webhook = webhook
        self._secret = secret_bytes(webhook.secret) if webhook.secret is not None else secret
        self._transports: dict[asyncio.AbstractEventLoop, CheckedTransport] = {}

    async def send(self, id: str, body: bytes) -> str:
        """Send a message once; nothing if it was accepted (2xx), else why not, in words without a secret."""
        now = int(time.time())
        headers = {
            "Host": str(self._webhook.origin).partition("://")[2],
            "Content-Type": "application/json",
            "User-Agent": "toolgen",
            "webhook-id": id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(self._secret, id, now, body),
        }
        http = self._webhook.http
        waits = {"connect": http.connect, "read": http.read, "write": http.write, "pool": http.pool}
        request = httpx2.Request(
            "POST", self._webhook.url, headers=headers, content=body, extensions={"timeout": waits}
        )
        try:
            async with asyncio.timeout(http.total):
                answer = await self._transport().handle_async_request(request)
                await answer.aclose()
        except TimeoutError:
            return f"no answer within {http.total:g} seconds"
        except (ToolgenError, httpx2.HTTPError, OSError) as error:
            return type(error).__name__
        return "" if 200 <= answer.status_code < 300 else f"status {answer.status_code}"

    def _transport(self) -> CheckedTransport:
        from toolgen.dispatch.transport import build_transport, no_tls

        loop = asyncio.get_running_loop()
        if loop not in self._transports:
            self._transports = {one: kept for one, kept in self._transports.items() if not one.is_closed()}
            origin = self._webhook.origin
            allowed = Allowed([origin.host], self._webhook.allow_private, port=origin.port)
            context = no_tls() if origin.scheme == "http" else None
            self._transports[loop] = build_transport(self._webhook.http, allowed, context=context)
        return self._transports[loop]

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        transport = self._transports.pop(asyncio.get_running_loop(), None)
        if transport is not None:
            await transport.aclose()
