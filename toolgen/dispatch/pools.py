"""Connections and what is sent over them: one pool per API, origin, credential, tenant and event loop.

Requests whose unresolved credentials differ never share a connection, nor do two tenants: some servers bind
what they know of a caller to the connection. Callers of one tenant with the same reference do share.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolgen.dispatch.named import named_secrets
from toolgen.dispatch.prepared import Addition, Prepared, prepared
from toolgen.dispatch.quiet import quiet
from toolgen.dispatch.settings import Http
from toolgen.dispatch.tokens import Tokens
from toolgen.dispatch.upstream import Upstream
from toolgen.identity.caller import DEFAULT_TENANT, Caller, Secret
from toolgen.identity.credentials import Applied, Chosen
from toolgen.identity.exchange import Exchanges
from toolgen.identity.origin import Origin
from toolgen.identity.redact import Redactor
from toolgen.identity.secrets import fill
from toolgen.request.model import ResolvedRequest
from toolgen.request.text import percent

if TYPE_CHECKING:
    import ssl

    import httpx2

MOST_POOLS: Final = 200  # kept open; more only while all of them are in use


class PoolKey(NamedTuple):
    """What a pool of connections is for. `credential` is the digest of the unresolved credential."""

    api: str
    origin: Origin
    credential: str
    tenant: str


@dataclass(slots=True)
class _Pool:
    transport: httpx2.AsyncBaseTransport
    users: int = 0


@dataclass(slots=True)
class _Loop:
    """What belongs to one event loop. `keeper` closes the pools when the loop ends or this is dropped."""

    pools: OrderedDict[PoolKey, _Pool]
    keeper: AsyncGenerator[None]
    tokens: Tokens = field(default_factory=Tokens)


@dataclass(frozen=True)
class Ready:
    """A request that is complete, where to send it, and what must be shown nowhere from now on.

    `token` is the access token it was given, if it was asked for here.
    """

    request: Prepared
    transport: httpx2.AsyncBaseTransport
    redactor: Redactor
    token: Secret | None = None


class Pools:
    """The connections of one dispatcher."""

    def __init__(self, http: Http, transport: httpx2.AsyncBaseTransport | None) -> None:
        self._http = http
        self._given = transport
        self._by_loop: dict[asyncio.AbstractEventLoop, _Loop] = {}
        self._context: ssl.SSLContext | None = None

    @asynccontextmanager
    async def ready(
        self,
        request: ResolvedRequest,
        source: Upstream,
        caller: Caller | None,
        exchanges: Exchanges,
        idempotency_key: str | None,
    ) -> AsyncIterator[Ready]:
        """The request with its credentials, and the pool to send it over.

        Raises CredentialsMissing and DispatchRefused before anything is connected.
        """
        origin = request.origin
        chosen = source.credentials.choose(request.tool.request.security, origin)
        references = [*chosen.references, *(one for text in request.deferred for one in text.value.references)]
        tokens = await exchanges.tokens(references, caller, origin)
        applied = chosen.apply(caller, origin, tokens=tokens)
        credential = unresolved_digest(chosen, request)
        key = PoolKey(source.toolset.api, origin, credential, caller.tenant if caller else DEFAULT_TENANT)
        secrets: list[Secret | str] = [*applied.secrets, *named_secrets(request)]
        added: list[Addition] = []
        for one in request.deferred:
            filled = fill(
                one.value,
                caller=caller,
                origin=origin,
                place=one.location,
                encoded=one.location != "header",
                tokens=tokens,
            )
            secrets += filled.secrets
            text = filled.text.reveal()
            added.append(Addition(one.location, one.name, text if one.location == "header" else percent(text)))
        if caller is not None and isinstance(caller.token, Secret):
            secrets.append(caller.token)
        async with self._pool(key, source, applied) as transport:
            token = None
            if applied.client_credentials is not None:
                own = (await self._here()).tokens
                with quiet():
                    token = await own.client_credentials(
                        applied.client_credentials, transport, self._http, tenant=key.tenant, digest=key.credential
                    )
                secrets.append(token)
                added.append(Addition("header", "Authorization", f"Bearer {token.reveal()}"))
            sent = prepared(request, [*added, *_additions(applied)], idempotency_key)
            yield Ready(sent, transport, _redactor(frozenset(secrets)), token)

    @asynccontextmanager
    async def _pool(self, key: PoolKey, source: Upstream, applied: Applied) -> AsyncIterator[httpx2.AsyncBaseTransport]:
        """The pool of a key; it stays open while somebody uses it."""
        if self._given is not None:
            yield self._given
            return
        pools = (await self._here()).pools
        if key not in pools:
            pools[key] = _Pool(self._new(key, source, applied))
        pools.move_to_end(key)
        pool = pools[key]
        pool.users += 1
        try:
            yield pool.transport
        finally:
            pool.users -= 1
            if pools.get(key) is pool:
                await _close_oldest(pools)
            elif not pool.users:  # closed while it was used, and opened again by a second try
                await pool.transport.aclose()

    def _new(self, key: PoolKey, source: Upstream, applied: Applied) -> httpx2.AsyncBaseTransport:
        from toolgen.dispatch.transport import build_transport, no_tls, tls_context

        if applied.client_certificate is not None:
            context = tls_context(self._http, applied.client_certificate)
        elif key.origin.scheme == "http" and applied.client_credentials is None:
            context = no_tls()
        else:
            context = self._context = self._context or tls_context(self._http)
        return build_transport(self._http, source.allowed, context=context)

    async def _here(self) -> _Loop:
        """What belongs to the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for ended in [one for one in list(self._by_loop) if one.is_closed()]:
                self._by_loop.pop(ended, None)
            pools: OrderedDict[PoolKey, _Pool] = OrderedDict()
            self._by_loop[loop] = _Loop(pools, _keep(pools))
            await anext(self._by_loop[loop].keeper)
        return self._by_loop[loop]

    async def forget(self, token: Secret) -> None:
        """Use an access token no more: the API refused it."""
        (await self._here()).tokens.forget(token)

    async def aclose(self) -> None:
        """Close the pools of the running event loop."""
        here = self._by_loop.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.keeper.aclose()


def unresolved_digest(chosen: Chosen, request: ResolvedRequest) -> str:
    """The digest of everything unresolved by which a server could know who asks: credentials, and references in
    the request itself."""
    own = sorted((one.location, one.name, str(one.value)) for one in request.deferred)
    if not own:
        return chosen.digest
    return hashlib.sha256(json.dumps([chosen.digest, own]).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=256)
def _redactor(secrets: frozenset[Secret | str]) -> Redactor:
    """Kept for the next call: what finds every spelling of a secret takes milliseconds to make."""
    return Redactor(secrets)


async def _keep(pools: OrderedDict[PoolKey, _Pool]) -> AsyncGenerator[None]:
    """Close the pools at the end. An event loop ends its generators before it is closed, `asyncio.run` for one."""
    try:
        yield
    finally:
        while pools:
            _, pool = pools.popitem()
            await pool.transport.aclose()


def timeouts(http: Http) -> dict[str, Any]:
    """The waits of one request as httpx2's transports take them, in seconds."""
    return {"connect": http.connect, "read": http.read, "write": http.write, "pool": http.pool}


def _additions(applied: Applied) -> list[Addition]:
    found = [Addition("header", name, value.reveal()) for name, value in applied.headers]
    found += [Addition("cookie", name, value.reveal()) for name, value in applied.cookies]
    return found + [Addition("query", percent(name), percent(value.reveal())) for name, value in applied.query]


async def _close_oldest(pools: OrderedDict[PoolKey, _Pool]) -> None:
    idle = [key for key, pool in pools.items() if not pool.users] if len(pools) > MOST_POOLS else []
    for key in idle[: len(pools) - MOST_POOLS]:
        await pools.pop(key).transport.aclose()
