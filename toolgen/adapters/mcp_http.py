"""An MCP server over HTTP: who is behind a request is what its bearer token says, and nothing else of it is passed on."""

from __future__ import annotations

import hmac
import importlib
import inspect
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import ConfigDict, Field

from toolgen.errors import MissingExtra, ToolgenError, UsageError
from toolgen.identity.caller import Caller

try:
    import jwt
    from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
    from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
    from mcp.server.auth.provider import AccessToken
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.middleware.authentication import AuthenticationMiddleware
except ImportError:
    raise MissingExtra("an MCP server needs the mcp package: pip install 'toolgen[mcp]'") from None

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from toolgen.adapters.mcp_server import McpServer
    from toolgen.approvals.model import Decider

# Of public keys alone: with a shared secret whoever can check a token can make one.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_LEEWAY: Final = 30  # seconds that clocks may differ
LARGEST_BODY: Final = 4_000_000  # bytes


class Verified(AccessToken):
    """A token that was verified, and who it is of."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    token: str = Field(repr=False)
    caller: Caller = Field(exclude=True, repr=False)


class Verifier(Protocol):
    """Says who a bearer token is of; None for one that is not valid."""

    async def verify_token(self, token: str) -> Verified | None: ...


def verified(caller: Caller, token: str) -> Verified:
    """The verified token of a caller, who carries it: it goes to the origin they addressed and nowhere else."""
    given = Caller(caller.subject, token, tenant=caller.tenant, context=caller.context, expires=caller.expires)
    expires = int(caller.expires.timestamp()) if caller.expires is not None else None
    return Verified(
        token=token,
        client_id=caller.subject,
        subject=caller.subject,
        scopes=[],
        expires_at=expires,
        claims={"iss": f"tenant:{caller.tenant}"},
        caller=given,
    )


class LoopbackToken:
    """One token, made anew for every start, for whoever may read what the process prints."""

    def __init__(self, who: Decider) -> None:
        self.token = secrets.token_urlsafe(32)
        self._caller = Caller(who.subject, tenant=who.tenant)

    async def verify_token(self, token: str) -> Verified | None:
        """The process's own user, for the very token. It is no API's: nothing is called with it."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        found = verified(self._caller, token)
        return found.model_copy(update={"caller": self._caller})


class FunctionVerifier:
    """A function of the host: the token in, a `toolgen.Caller` (or the subject's text) out, None for nobody."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    async def verify_token(self, token: str) -> Verified | None:
        """What the function says; one that fails knows nobody."""
        try:
            found = self._function(token)
            caller = await found if isinstance(found, Awaitable) else found
            caller = Caller(caller) if isinstance(caller, str) and caller.strip() else caller
        except Exception:  # noqa: BLE001 - whatever it is, nobody is known; its text may hold the token
            return None
        return verified(caller, token) if isinstance(caller, Caller) and caller.subject.strip() else None


class JwtVerifier:
    """JSON Web Tokens (RFC 7519, RFC 9068) of an issuer whose public keys are behind a URL.

    A token has to have `exp`, `sub` and the audience, and the issuer where one is given.
    """

    def __init__(self, url: str, *, audience: str, issuer: str | None = None) -> None:
        from toolgen.dispatch.jwks import KeySet

        self._keys, self._audience, self._issuer = KeySet(url), audience, issuer

    async def verify_token(self, token: str) -> Verified | None:
        """Who the token is of; None for one that is not valid, or while the keys cannot be had."""
        try:
            head = jwt.get_unverified_header(token)
            key = await self._keys.key(head.get("kid"))
            if key is None or head.get("alg") not in _ALGORITHMS or key.get("alg") not in (None, head["alg"]):
                return None
            claims = jwt.decode(
                token,
                jwt.PyJWK(key, algorithm=head["alg"]),
                algorithms=[head["alg"]],
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "sub", "aud", *(["iss"] if self._issuer else [])]},
            )
            subject = claims["sub"]
            if not isinstance(subject, str) or not subject.strip():
                return None
            return verified(Caller(subject, expires=datetime.fromtimestamp(claims["exp"] + _LEEWAY, UTC)), token)
        except (jwt.PyJWTError, ToolgenError, ValueError, TypeError, OverflowError, OSError):
            return None


def verifier_of(text: str, *, audience: str | None = None, issuer: str | None = None) -> Verifier:
    """The verifier that a setting names: the URL of a key set, or `module:function`.

    Raises UsageError for anything else, and for a key set without an audience: tokens for others would be taken.
    """
    if "://" in text:
        if not audience:
            raise UsageError("tokens of a key set are checked for whom they are: give the audience")
        return JwtVerifier(text, audience=audience, issuer=issuer)
    module, _, name = text.partition(":")
    try:
        function: Any = vars(importlib.import_module(module)).get(name) if module and name else None
    except Exception as error:  # noqa: BLE001 - whatever an import raises
        raise UsageError(f"the verifier {text} cannot be imported: {type(error).__name__}") from None
    if not callable(function) or inspect.isclass(function):
        raise UsageError(f"the verifier {text!r} is no URL of a key set and no module:function")
    return FunctionVerifier(function)


def http_app(
    server: McpServer,
    *,
    verifier: Verifier,
    host: str = "127.0.0.1",
    port: int = 0,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> Starlette:
    """The ASGI application, its endpoint `/mcp`. A request needs a token, and a Host (and Origin, if it has one) that
    is this machine's or allowed: a page in a browser cannot reach it under another name (DNS rebinding)."""
    shown = f"[{host}]" if ":" in host else host
    # A Host with another port would be another origin to which the caller's token might go.
    names = _LOOPBACK if shown in _LOOPBACK else (shown,)
    hosts = [f"{one}:{port or '*'}" for one in names] + (list(names) if port == 80 or names == (shown,) else [])
    origins = [f"http://{one}" for one in hosts] + [f"https://{one}" for one in hosts]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*hosts, *allowed_hosts],
        allowed_origins=[*origins, *allowed_origins],
    )
    app = server.protocol.streamable_http_app(
        host=host, transport_security=security, token_verifier=verifier, max_request_body_size=LARGEST_BODY
    )
    app.add_middleware(AuthContextMiddleware)
    app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier))
    return app
