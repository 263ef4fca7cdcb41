"""The public keys of an issuer of tokens (JSON Web Key Set, RFC 7517), fetched over the checked transport."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx2

from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.settings import Http
from toolgen.dispatch.transport import build_transport, no_tls
from toolgen.errors import DispatchRefused, UsageError
from toolgen.identity.origin import Origin

_LARGEST: Final = 1_000_000  # bytes of a key set
_LASTS: Final = 300.0  # seconds until it is fetched anew
_AT_MOST: Final = 10.0  # seconds between two fetches, however many unknown keys are asked for


class KeySet:
    """The keys behind one URL, kept for five minutes; one that is not among them is looked for again.

    Raises UsageError for a URL that is not https, http on this machine apart.
    """

    def __init__(self, url: str, *, allow_private: Sequence[str] = ()) -> None:
        origin = Origin.of(url)
        if origin is None or (origin.scheme != "https" and origin.host not in ("localhost", "127.0.0.1", "::1")):
            raise UsageError("the URL of a key set is https://")
        self._url, self._origin = url, origin
        self._allowed = Allowed([origin.host], allow_private, port=origin.port)
        self._http = Http(connect=5, read=10, write=10, total=15)
        self._keys: list[dict[str, Any]] = []
        self._fetched = self._tried = float("-inf")
        self._lock = asyncio.Lock()

    async def key(self, key_id: str | None) -> dict[str, Any] | None:
        """The key of an id, or the only one there is where a token names none; None if there is none.

        Raises DispatchRefused where the keys cannot be had.
        """
        if self._is_fresh() and (found := self._of(key_id)) is not None:
            return found  # whoever has a known key waits for nobody's unknown one
        async with self._lock:
            if not self._is_fresh() or self._of(key_id) is None:
                if (now := time.monotonic()) >= self._tried + _AT_MOST:
                    self._tried = now
                    self._keys, self._fetched = await self._fetch(), now
                elif not self._is_fresh():
                    raise DispatchRefused(f"the key set of {self._origin} could not be read a moment ago")
            return self._of(key_id)

    def _is_fresh(self) -> bool:
        return time.monotonic() < self._fetched + _LASTS

    def _of(self, key_id: str | None) -> dict[str, Any] | None:
        """Keys that are for encryption sign nothing (`use` of RFC 7517, 4.2)."""
        found = [key for key in self._keys if key_id in (None, key.get("kid")) and key.get("use") in (None, "sig")]
        return found[0] if len(found) == 1 else None

    async def _fetch(self) -> list[dict[str, Any]]:
        waits = {"connect": self._http.connect, "read": self._http.read, "write": self._http.write, "pool": 5.0}
        headers = {"Host": str(self._origin).partition("://")[2], "Accept": "application/json", "User-Agent": "toolgen"}
        request = httpx2.Request("GET", self._url, headers=headers, extensions={"timeout": waits})
        context = no_tls() if self._origin.scheme == "http" else None
        transport = build_transport(self._http, self._allowed, context=context)
        content = b""
        try:
            async with asyncio.timeout(self._http.total):
                answer = await transport.handle_async_request(request)
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > _LARGEST:
                        raise DispatchRefused("the key set is too large")
            keys = json.loads(content)["keys"] if answer.status_code == 200 else None
            if isinstance(keys, list):
                return [key for key in keys if isinstance(key, dict)]
        except (TimeoutError, httpx2.HTTPError, OSError, ValueError, KeyError, TypeError) as error:
            raise DispatchRefused(f"the key set of {self._origin} cannot be read: {type(error).__name__}") from None
        finally:
            await transport.aclose()
        raise DispatchRefused(f"the key set of {self._origin} cannot be read: no keys in its answer")
