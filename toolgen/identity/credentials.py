"""An operator's credentials for one API: which of them a request needs, and what they put into it.

    credentials:
      bearerAuth: ${caller:token}
      basicAuth: {username: svc, password: '${env:PASSWORD}'}
      oauth: {clientId: abc, clientSecret: '${file:/run/secrets/oauth}', scope: [read]}
      mtls: {certificate: client.pem, key: client.key}
      https://uploads.example:        # operations on another origin use these, and only these
        bearerAuth: ${env:UPLOADS}

The keys are the document's security schemes. What is chosen is filled in or the request is not sent: there
is no falling back to another alternative or to none.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from toolgen.errors import CredentialsError, CredentialsMissing, DispatchRefused
from toolgen.identity.bindings import Binding, Reader, at
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.exchange import parse_origin
from toolgen.identity.origin import Origin
from toolgen.identity.references import Reference, ReferenceText
from toolgen.identity.secrets import NO_TOKENS, Filled, fill

ANONYMOUS = "anonymous"
_HAS_SCHEME = re.compile(r"(?:bearer|basic|token|apikey) +(.+)", re.IGNORECASE)
_BASIC = re.compile(r"basic +([A-Za-z0-9+/_-]+=*)", re.IGNORECASE)
_COOKIE = re.compile(r"[!#-+\--:<-\[\]-~]*")  # RFC 6265, section 4.1.1


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """What a token request needs (RFC 6749, section 4.4); its token goes into `Authorization` as a bearer token."""

    token_url: str
    client_id: str = field(repr=False)
    secret: Secret
    scope: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate for mutual TLS: paths of PEM files (a file without `key` holds both)."""

    certificate: str
    key: str | None = None
    password: Secret | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """Credentials filled in, for one request.

    Names and values of `headers` and `cookies` are sent as they are, those of `query` still have to be
    percent-encoded. `secrets` is everything that must be shown nowhere from now on. `client_credentials` are
    still to be exchanged for a token.
    """

    headers: tuple[tuple[str, Secret], ...] = ()
    query: tuple[tuple[str, Secret], ...] = ()
    cookies: tuple[tuple[str, Secret], ...] = ()
    secrets: tuple[Secret, ...] = ()
    client_certificate: Certificate | None = None
    client_credentials: ClientCredentials | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The credentials of a request to one origin, nothing filled in; without bindings it is anonymous."""

    origin: Origin
    bindings: tuple[Binding, ...] = ()

    @property
    def schemes(self) -> tuple[str, ...]:
        """The names of the security schemes that are used."""
        return tuple(binding.scheme for binding in self.bindings)

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(reference for binding in self.bindings for reference in binding.references)

    @property
    def digest(self) -> str:
        """SHA-256 of the unresolved text, as 64 hex digits, or `anonymous`: for the keys of caches.

        Callers share it, and no secret is in it: what a reference stands for does not count.
        """
        if not self.bindings:
            return ANONYMOUS
        lines = sorted(binding.canonical() for binding in self.bindings)
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()

    def apply(
        self,
        caller: Caller | None,
        origin: Origin,
        *,
        environ: Mapping[str, str] = os.environ,
        tokens: Mapping[Origin, Secret] = NO_TOKENS,
    ) -> Applied:
        """The credentials filled in for a request to `origin`; `tokens` are the caller's exchanged ones.

        Raises CredentialsMissing for whatever cannot be filled in, and for any origin but the chosen one.
        """
        if self.bindings and origin != self.origin:
            raise CredentialsMissing(f"these credentials are for {self.origin}, and the request goes to {origin}")
        applied = Applied()
        filling = partial(fill, caller=caller, origin=origin, environ=environ, tokens=tokens)
        for binding in self.bindings:
            try:
                applied = _with(applied, binding, filling)
            except CredentialsMissing as error:
                raise CredentialsMissing(f"{binding.scheme}: {error.message}") from None
        return applied


class Credentials:
    """What an operator bound to the security schemes of one API, by the origin it may go to."""

    def __init__(self, api: str, origin: Origin | None, bound: Mapping[Origin | None, Mapping[str, Binding]]) -> None:
        self.api = api
        self.origin = origin
        self._bound = bound

    @classmethod
    def load(
        cls,
        config: Any,
        *,
        api: str,
        schemes: Mapping[str, Mapping[str, Any]],
        origin: Origin | None,
        caller_references: bool = True,
        where: str = "credentials",
    ) -> Credentials:
        """Read and check a config; None is none.

        `schemes` are the toolset's security schemes, `origin` is where its server is: what is not under an
        origin of its own is for that one. Without `caller_references` a config that uses `${caller:...}` is
        refused. `where` is the config's place, for messages.

        Raises CredentialsError with every problem at once and without any value.
        """
        reader = Reader(schemes, origin=origin, caller_references=caller_references)
        given = {} if config is None else config
        if not isinstance(given, Mapping):
            reader.say(where, "credentials are a mapping of security schemes")
            given = {}
        others = {key: value for key, value in given.items() if isinstance(key, str) and "://" in key}
        own = {key: value for key, value in given.items() if key not in others}
        bound: dict[Origin | None, dict[str, Binding]] = {origin: reader.entries(own, where)}
        for key, value in others.items():
            _read_origin(reader, bound, at(where, key), key, value)
        if reader.found:
            raise CredentialsError(f"the credentials of {api} cannot be used", reader.found)
        return cls(api, origin, bound)

    def __repr__(self) -> str:
        origins = {str(origin): sorted(entries) for origin, entries in self._bound.items()}
        return f"Credentials({self.api!r}, {origins})"

    def choose(self, security: Sequence[Sequence[str]], origin: Origin) -> Chosen:
        """The first alternative all of whose schemes are bound for that origin.

        `security` is an OR of ANDs of scheme names; `[]` takes none. An empty alternative allows none, and is
        used only when no other is bound.

        Raises CredentialsMissing naming the schemes, and DispatchRefused for two that fill the same place.
        """
        entries = self._bound.get(origin, {})
        for alternative in security:
            names = dict.fromkeys(alternative)
            if names and all(name in entries for name in names):
                return Chosen(origin, _apart([entries[name] for name in names]))
        if not security or any(not alternative for alternative in security):
            return Chosen(origin)
        raise CredentialsMissing(self._missing(security, origin))

    def _missing(self, security: Sequence[Sequence[str]], origin: Origin) -> str:
        wanted = ", or ".join(" and ".join(alternative) for alternative in security)
        told = f"the request needs credentials that are not bound for {origin}: {wanted}"
        if origin == self.origin:
            return f"{told}; bind them under credentials of {self.api}, in the shell with --credential SCHEME=REF"
        if self.origin is None:
            return f"{told}; {self.api} has no server whose credentials they could be: set its server"
        key = at("credentials", str(origin))
        return f"{told}; those of {self.api} go to {self.origin} only: bind them under {key}"


def _read_origin(
    reader: Reader, bound: dict[Origin | None, dict[str, Binding]], where: str, key: str, value: Any
) -> None:
    origin, fault = parse_origin(key)
    if origin is None:
        reader.say(where, fault)
        return
    if not isinstance(value, Mapping):
        reader.say(where, "an origin has a mapping of security schemes")
        return
    entries = bound.setdefault(origin, {})
    for name, binding in reader.entries(value, where).items():
        if name in entries:
            reader.say(at(where, name), f"{name} is bound twice for {origin}")
        entries[name] = binding


def _apart(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """The bindings, if each fills a place of its own."""
    filled: dict[tuple[str, str], Binding] = {}
    for binding in bindings:
        other = filled.setdefault(binding.fills, binding)
        if other is not binding:
            raise DispatchRefused(
                f"{other.scheme} and {binding.scheme} both fill the {binding.location} {binding.name}, and a request"
                " has one of it: bind one of them only, or correct the tool's security"
            )
    return tuple(filled.values())


def _with(applied: Applied, binding: Binding, filling: partial[Filled]) -> Applied:
    """What was applied so far, and one binding more."""
    texts = dict(binding.texts)
    settings = dict(binding.settings)
    if binding.kind == "certificate":
        password = _fill(filling, texts["password"]) if "password" in texts else None
        certificate = Certificate(settings["certificate"], settings.get("key"), password.text if password else None)
        secrets = password.secrets if password else ()
        return replace(applied, client_certificate=certificate, secrets=applied.secrets + secrets)
    if binding.kind == "client":
        client, secret = _fill(filling, texts["clientId"]), _fill(filling, texts["clientSecret"])
        scope = tuple(settings["scope"].split())
        credentials = ClientCredentials(settings["tokenUrl"], client.text.reveal(), secret.text, scope)
        return replace(applied, client_credentials=credentials, secrets=applied.secrets + secret.secrets)
    value = _basic(texts, filling) if binding.kind == "basic" else _value(binding, texts["value"], filling)
    secrets = applied.secrets + value.secrets
    pair = (binding.name, value.text)
    if binding.location == "query":
        return replace(applied, query=(*applied.query, pair), secrets=secrets)
    if binding.location == "cookie":
        if not _COOKIE.fullmatch(value.text.reveal()):
            raise CredentialsMissing("the value has a character that no cookie can hold, and was not sent")
        return replace(applied, cookies=(*applied.cookies, pair), secrets=secrets)
    return replace(applied, headers=(*applied.headers, pair), secrets=secrets)


def _fill(filling: partial[Filled], text: ReferenceText) -> Filled:
    """A text that is encoded before it is sent, or not sent at all."""
    return filling(text, encoded=True)


def _value(binding: Binding, text: ReferenceText, filling: partial[Filled]) -> Filled:
    """The value as it is written; a bearer token gets its `Bearer `, unless it says its scheme itself."""
    value = filling(text, place=binding.location, encoded=binding.location == "query")
    explicit = _HAS_SCHEME.fullmatch(value.text.reveal())
    if explicit is not None and value.secrets:  # what follows the scheme may come back without it
        return Filled(value.text, (*value.secrets, Secret(explicit[1])))
    if explicit is None and binding.kind == "bearer":
        return Filled(Secret(f"Bearer {value.text.reveal()}"), value.secrets)
    return value


def _basic(texts: Mapping[str, ReferenceText], filling: partial[Filled]) -> Filled:
    """RFC 7617, in UTF-8: `user:password` in base64, unless the value is a whole `Basic ...` already."""
    if "value" in texts:
        pair = _fill(filling, texts["value"])
        explicit = _BASIC.fullmatch(pair.text.reveal())
        if explicit is not None:
            return Filled(pair.text, (*pair.secrets, Secret(explicit[1]), *_password(_decoded(explicit[1]))))
        if ":" not in pair.text.reveal():
            raise CredentialsMissing("the value is no `user:password`, and was not sent")
        secrets = (*pair.secrets, *_password(pair.text))
    else:
        user, password = _fill(filling, texts["username"]), _fill(filling, texts["password"])
        if ":" in user.text.reveal():
            raise CredentialsMissing("the user name has a colon, which Basic authentication cannot send")
        pair = Filled(Secret(f"{user.text.reveal()}:{password.text.reveal()}"))
        secrets = (*user.secrets, *password.secrets)
    encoded = Secret(base64.b64encode(pair.text.reveal().encode()).decode())
    return Filled(Secret(f"Basic {encoded.reveal()}"), (encoded, pair.text, *secrets))


def _password(pair: Secret) -> tuple[Secret, ...]:
    """The password of a `user:password`: it may come back without the user."""
    password = Secret(pair.reveal().partition(":")[2])
    return (password,) if password.reveal() else ()


def _decoded(encoded: str) -> Secret:
    try:
        return Secret(base64.b64decode(encoded.translate(str.maketrans("-_", "+/")) + "==").decode())
    except ValueError:
        return Secret("")
