"""What an operator wrote under `credentials:`, read and checked against a document's security schemes."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolgen.errors import Problem, did_you_mean
from toolgen.identity.origin import Origin
from toolgen.identity.references import Kind, Reference, ReferenceFault, ReferenceText, parse
from toolgen.overrides import canonical, is_method_key

Location = Literal["header", "query", "cookie", "tls"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")  # RFC 6749, section 3.3
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# A document names the header of an API key; these are the connection's, whatever it says.
_OF_THE_CONNECTION: Final = frozenset(
    "accept accept-encoding connection content-length content-type expect forwarded host keep-alive proxy-authorization "
    "proxy-connection te trailer transfer-encoding upgrade x-original-url x-rewrite-url".split()
)
_SECRETS: Final = "write ${env:NAME} or ${file:PATH}"
_OPERATOR: Final[tuple[Kind, ...]] = ("env", "file")


@dataclass(frozen=True, slots=True, repr=False)
class Binding:
    """The credential of one security scheme, with nothing filled in.

    `location` and `name` are what it fills: a header, a query parameter, a cookie, or the connection itself.
    `texts` hold the references by the words of the config (`value`; `username`, `password`; `clientId`,
    `clientSecret`), `settings` what is no secret (`tokenUrl`, `scope`, `certificate`, `key`).
    """

    scheme: str
    kind: Literal["value", "bearer", "basic", "client", "certificate"]
    location: Location
    name: str
    texts: tuple[tuple[str, ReferenceText], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(reference for _, text in self.texts for reference in text.references)

    @property
    def fills(self) -> tuple[str, str]:
        """What two credentials of one request must not both fill."""
        return self.location, self.name.lower() if self.location == "header" else self.name

    def canonical(self) -> str:
        """Everything about it as one text, unresolved and unambiguous; for digests, not for readers."""
        texts = [[name, str(text)] for name, text in self.texts]
        return json.dumps([self.scheme, self.kind, *self.fills, texts, self.settings])

    def __repr__(self) -> str:
        return f"<{self.scheme} in {self.location} {self.name}: {' '.join(map(str, self.references))}>"


class Reader:
    """Reads entries and collects every problem; `schemes` are the Security Scheme Objects by name, `origin` is the API's."""

    def __init__(
        self, schemes: Mapping[str, Mapping[str, Any]], *, origin: Origin | None, caller_references: bool
    ) -> None:
        self.schemes = schemes
        self.origin = origin
        self.caller_references = caller_references
        self.found: list[Problem] = []

    def entries(self, config: Mapping[Any, Any], place: str) -> dict[str, Binding]:
        """The bindings of a mapping from scheme names to what is bound to them."""
        bound: dict[str, Binding] = {}
        for name, value in config.items():
            where = at(place, name)
            if name not in self.schemes:
                known = did_you_mean(name, self.schemes) if isinstance(name, str) else ""
                self.say(where, f"the document has no security scheme {name!r}{known}")
                continue
            binding = self._binding(where, name, self.schemes[name], value)
            if binding is not None:
                bound[name] = binding
        return bound

    def say(self, where: str, message: str, hint: str = "") -> None:
        self.found.append(Problem(message, where, hint=hint))

    def _binding(self, where: str, name: str, scheme: Mapping[str, Any], value: Any) -> Binding | None:
        match scheme.get("type"):
            case "apiKey":
                return self._api_key(where, name, scheme, value)
            case "http":
                return self._http(where, name, scheme, value)
            case "oauth2" | "openIdConnect":
                return self._client(where, name, scheme, value) if _is_form(value) else self._bearer(where, name, value)
            case "mutualTLS":
                return self._certificate(where, name, value)
        self.say(where, "the toolset does not say what kind of scheme this is", "complete it under securitySchemes")
        return None

    def _api_key(self, where: str, name: str, scheme: Mapping[str, Any], value: Any) -> Binding | None:
        location, wire = scheme.get("in"), scheme.get("name")
        if location not in ("header", "query", "cookie") or not isinstance(wire, str) or not wire:
            self.say(where, "the toolset does not say where this API key is sent", "it needs `in` and `name`")
            return None
        reserved = is_method_key(wire) or (location != "query" and canonical(wire) in _OF_THE_CONNECTION)
        if reserved or (location != "query" and not _TOKEN.fullmatch(wire)):
            self.say(where, f"no credential can be sent as the {location} {wire!r}")
            return None
        text = self._text(where, value, location)
        return None if text is None else Binding(name, "value", location, wire, (("value", text),))

    def _http(self, where: str, name: str, scheme: Mapping[str, Any], value: Any) -> Binding | None:
        wanted = str(scheme.get("scheme", "")).lower()
        if wanted == "bearer":
            return self._bearer(where, name, value)
        if wanted != "basic":
            message = f"the HTTP scheme {wanted!r} is not supported"
            self.say(where, message, "only basic and bearer are: others compute a value for every request")
            return None
        if not _is_form(value):
            text = self._text(where, value, "header")
            return None if text is None else Binding(name, "basic", "header", "Authorization", (("value", text),))
        if not self._fields(where, value, ("username", "password"), ()):
            return None
        user = self._text(at(where, "username"), value["username"], "header", literal=True)
        password = self._text(at(where, "password"), value["password"], "header")
        if user is None or password is None:
            return None
        texts = (("username", user), ("password", password))
        return Binding(name, "basic", "header", "Authorization", texts)

    def _bearer(self, where: str, name: str, value: Any) -> Binding | None:
        text = self._text(where, value, "header")
        return None if text is None else Binding(name, "bearer", "header", "Authorization", (("value", text),))

    def _client(self, where: str, name: str, scheme: Mapping[str, Any], value: Any) -> Binding | None:
        """Client credentials (RFC 6749, section 4.4)."""
        if not self._fields(where, value, ("clientId", "clientSecret"), ("tokenUrl", "scope")):
            return None
        client = self._text(at(where, "clientId"), value["clientId"], "header", _OPERATOR, literal=True)
        secret = self._text(at(where, "clientSecret"), value["clientSecret"], "header", _OPERATOR)
        url = self._token_url(at(where, "tokenUrl"), value.get("tokenUrl"), scheme)
        scope = value.get("scope", [])
        if not isinstance(scope, list) or not all(isinstance(one, str) and _SCOPE.fullmatch(one) for one in scope):
            self.say(at(where, "scope"), "a scope is a list of texts without spaces")
            return None
        if client is None or secret is None or url is None:
            return None
        settings = (("tokenUrl", url), ("scope", " ".join(scope)))
        texts = (("clientId", client), ("clientSecret", secret))
        return Binding(name, "client", "header", "Authorization", texts, settings)

    def _token_url(self, where: str, given: Any, scheme: Mapping[str, Any]) -> str | None:
        url = _documented_token_url(scheme) if given is None else given
        if url is None:
            self.say(where, "the document names no token URL for client credentials", "set tokenUrl")
            return None
        fault = _token_url_fault(url)
        # A document must not choose who is given a secret.
        if not fault and given is None and Origin.of(url) != self.origin:
            fault = (
                f"the document's token URL is of {Origin.of(url)}, another origin than the API's: set it as tokenUrl"
            )
        if fault:
            self.say(where, fault)
            return None
        return str(url)

    def _certificate(self, where: str, name: str, value: Any) -> Binding | None:
        if not _is_form(value):
            self.say(where, "a client certificate is a mapping", "certificate: PATH, key: PATH, password: ${env:NAME}")
            return None
        if not self._fields(where, value, ("certificate",), ("key", "password")):
            return None
        paths = {key: value[key] for key in ("certificate", "key") if value.get(key) is not None}
        for key, path in paths.items():
            if not isinstance(path, str) or not path.strip() or "${" in path:
                self.say(at(where, key), "this is no path of a PEM file; references are not replaced in it")
                return None
        texts: tuple[tuple[str, ReferenceText], ...] = ()
        if value.get("password") is not None:
            password = self._text(at(where, "password"), value["password"], "header", _OPERATOR)
            if password is None:
                return None
            texts = (("password", password),)
        return Binding(name, "certificate", "tls", "client certificate", texts, tuple(paths.items()))

    def _text(
        self,
        where: str,
        value: Any,
        location: Literal["header", "query", "cookie"],
        kinds: tuple[Kind, ...] = ("caller", "env", "file"),
        *,
        literal: bool = False,
    ) -> ReferenceText | None:
        """A text with its references, if they may stand there; `literal` is fine without any."""
        if not isinstance(value, str) or not value.strip():
            self.say(where, "a text with a reference is expected here", _SECRETS)
            return None
        try:
            text = parse(value.strip())
        except ReferenceFault as fault:
            self.say(where, str(fault))
            return None
        faults = [one for reference in text.references for one in self._faults(reference, location, kinds)]
        if not text.references and not literal:
            faults.append(Problem("a secret is not written into a config", hint=_SECRETS))
        for one in dict.fromkeys(faults):
            self.say(where, one.message, one.hint)
        return None if faults else text

    def _faults(
        self, reference: Reference, location: Literal["header", "query", "cookie"], kinds: tuple[Kind, ...]
    ) -> Iterator[Problem]:
        if reference.kind == "context":
            yield Problem(f"{reference} is no secret, and credentials are", hint=_SECRETS)
        elif reference.kind == "caller" and not self.caller_references:
            yield Problem(f"{reference} cannot be used: references to the caller are switched off")
        elif reference.kind not in kinds:
            yield Problem(f"{reference} cannot stand here: it is the operator's own, whoever asks", hint=_SECRETS)
        elif fault := reference.place_fault(location):
            yield Problem(fault)

    def _fields(self, where: str, value: Mapping[Any, Any], needed: tuple[str, ...], more: tuple[str, ...]) -> bool:
        known = (*needed, *more)
        unknown = [key for key in value if key not in known]
        missing = [key for key in needed if value.get(key) is None]
        for key in unknown:
            near = did_you_mean(key, known) if isinstance(key, str) else ""
            self.say(at(where, key), f"{key!r} is not known here{near}", f"there are {', '.join(known)}")
        for key in missing:
            self.say(where, f"{key} is missing")
        return not unknown and not missing


def at(place: str, key: object) -> str:
    """A config path one key deeper."""
    return f"{place}.{key}" if isinstance(key, str) and _WORD.fullmatch(key) else f"{place}[{key!r}]"


def _is_form(value: Any) -> bool:
    return isinstance(value, Mapping)


def _documented_token_url(scheme: Mapping[str, Any]) -> Any:
    here: Any = scheme
    for key in ("flows", "clientCredentials", "tokenUrl"):
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def _token_url_fault(url: Any) -> str:
    """Why a client's secret must not be sent there, or nothing (RFC 6749, section 3.2: TLS is required)."""
    origin = Origin.of(url) if isinstance(url, str) else None
    if origin is None or not isinstance(url, str) or "#" in url or "${" in url or not url.isprintable() or " " in url:
        return "the token URL is no absolute https URL"
    return "" if origin.scheme == "https" or _is_loopback(origin.host) else "the token URL is not https"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
