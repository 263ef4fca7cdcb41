from __future__ import annotations

import base64
import re
from typing import Any

import pytest

from toolgen.errors import CredentialsError, CredentialsMissing, DispatchRefused
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.credentials import ANONYMOUS, Applied, Credentials
from toolgen.identity.origin import Origin

HERE = Origin("https", "api.example", 443)
THERE = Origin("https", "uploads.example", 443)
CALLER = Caller("u-1", "tok-5f0c9d", "https://api.example")
TOKEN_URL = "https://api.example/token"
SCHEMES: dict[str, dict[str, Any]] = {
    "bearerAuth": {"type": "http", "scheme": "Bearer"},
    "basicAuth": {"type": "http", "scheme": "basic"},
    "digestAuth": {"type": "http", "scheme": "digest"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
    "sameKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "queryKey": {"type": "apiKey", "in": "query", "name": "api key"},
    "cookieKey": {"type": "apiKey", "in": "cookie", "name": "SID"},
    "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": TOKEN_URL}}},
    "implicit": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "https://login.example"}}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://login.example/.well-known"},
    "mtls": {"type": "mutualTLS"},
    "unknown": {},
}
ENVIRON = {
    "A": "s3cret-a",
    "B": "s3cret-b",
    "BEARER": "bearer s3cret-a",
    "PAIR": "joe:s3cret:x",
    "BASIC": "Basic am9lOng=",
}


def load(config: Any, **more: Any) -> Credentials:
    return Credentials.load(config, **{"api": "petstore", "schemes": SCHEMES, "origin": HERE, **more})


def problems(config: Any, **more: Any) -> list[tuple[str, str]]:
    """(place, message) of everything wrong with a config; no message shows a value."""
    with pytest.raises(CredentialsError) as caught:
        load(config, **more)
    assert "s3cret" not in str(caught.value)
    return [(problem.where, problem.message) for problem in caught.value.problems]


def applied(config: dict[str, Any], *names: str, caller: Caller | None = CALLER, **more: Any) -> Applied:
    """What a request gets that needs all these schemes, or all of the config."""
    chosen = load(config).choose([names or tuple(config)], HERE)
    return chosen.apply(caller, HERE, **{"environ": ENVIRON, **more})


def sent(config: dict[str, Any], *names: str, **more: Any) -> dict[str, dict[str, str]]:
    found = applied(config, *names, **more)
    places = {"headers": found.headers, "query": found.query, "cookies": found.cookies}
    return {place: {name: value.reveal() for name, value in pairs} for place, pairs in places.items() if pairs}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("config", "place", "name", "value"),
    [
        ({"bearerAuth": "${caller:token}"}, "headers", "Authorization", "Bearer tok-5f0c9d"),
        ({"bearerAuth": " ${env:A} "}, "headers", "Authorization", "Bearer s3cret-a"),
        ({"bearerAuth": "Token ${env:A}"}, "headers", "Authorization", "Token s3cret-a"),
        ({"bearerAuth": "${env:BEARER}"}, "headers", "Authorization", "bearer s3cret-a"),
        ({"bearerAuth": "ApiKey  ${env:A}"}, "headers", "Authorization", "ApiKey  s3cret-a"),
        ({"bearerAuth": "tokens${env:A}"}, "headers", "Authorization", "Bearer tokenss3cret-a"),
        ({"oauth": "${caller:token}"}, "headers", "Authorization", "Bearer tok-5f0c9d"),
        ({"oidc": "${env:A}"}, "headers", "Authorization", "Bearer s3cret-a"),
        ({"key": "${env:A}"}, "headers", "X-Api-Key", "s3cret-a"),
        ({"key": "${caller:userId}/${caller:token}"}, "headers", "X-Api-Key", "u-1/tok-5f0c9d"),
        ({"queryKey": "${env:A}&b"}, "query", "api key", "s3cret-a&b"),
        ({"cookieKey": "v=${env:A}"}, "cookies", "SID", "v=s3cret-a"),
        ({"basicAuth": "${env:PAIR}"}, "headers", "Authorization", f"Basic {encoded('joe:s3cret:x')}"),
        ({"basicAuth": "svc:${env:A}"}, "headers", "Authorization", f"Basic {encoded('svc:s3cret-a')}"),
        ({"basicAuth": "${env:BASIC}"}, "headers", "Authorization", "Basic am9lOng="),
        (
            {"basicAuth": {"username": "jürgen", "password": "${env:A}"}},
            "headers",
            "Authorization",
            f"Basic {encoded('jürgen:s3cret-a')}",
        ),
    ],
)
def test_each_kind_of_scheme_puts_its_credential_where_the_document_says(
    config: dict[str, Any], place: str, name: str, value: str
) -> None:
    assert sent(config) == {place: {name: value}}
    found = applied(config)
    texts = [secret.reveal() for secret in found.secrets]
    assert any(
        secret in value or secret in base64.b64decode(value.split()[-1] + "==").decode("utf-8", "replace")
        for secret in texts
    )
    assert not re.search(r"s3cret|tok-5f0c9d|am9lOng", repr(found))


def test_a_scheme_of_its_own_is_kept_beside_what_is_no_secret_too() -> None:
    assert sent({"bearerAuth": "Token ${caller:userId}"}) == {"headers": {"Authorization": "Token u-1"}}
    assert applied({"bearerAuth": "Token ${caller:userId}"}).secrets == ()


def test_everything_by_which_a_credential_could_be_known_again_is_a_secret() -> None:
    def secrets(config: dict[str, Any]) -> set[str]:
        return {secret.reveal() for secret in applied(config).secrets}

    basic = secrets({"basicAuth": {"username": "svc", "password": "${env:A}"}})
    assert basic == {"svc:s3cret-a", encoded("svc:s3cret-a"), "s3cret-a"}
    assert secrets({"basicAuth": "${env:BASIC}"}) == {"Basic am9lOng=", "am9lOng=", "x"}
    assert secrets({"bearerAuth": "${env:BEARER}"}) == {"bearer s3cret-a", "s3cret-a"}
    assert secrets({"key": "k1-${env:A}"}) == {"k1-s3cret-a", "s3cret-a"}
    assert secrets({"key": "${caller:userId}"}) == set()
    client = {"oauth": {"clientId": "me", "clientSecret": "${env:B}"}}
    assert secrets(client) == {"s3cret-b"}


def test_client_credentials_are_described_and_not_asked_for() -> None:
    config = {"oauth": {"clientId": "me-${env:B}", "clientSecret": "${env:A}", "scope": ["read", "write:x"]}}
    found = applied(config)
    assert found.headers == ()
    assert found.client_credentials is not None
    assert found.client_credentials.token_url == TOKEN_URL
    assert found.client_credentials.client_id == "me-s3cret-b"
    assert found.client_credentials.secret == Secret("s3cret-a")
    assert found.client_credentials.scope == ("read", "write:x")
    assert "s3cret" not in repr(found)
    own = {"oidc": {"clientId": "me", "clientSecret": "${env:A}", "tokenUrl": "http://127.0.0.1:9/token"}}
    described = applied(own).client_credentials
    assert described is not None
    assert described.token_url == "http://127.0.0.1:9/token"


def test_a_client_certificate_is_a_setting_of_the_connection() -> None:
    found = applied({"mtls": {"certificate": "c.pem", "key": "k.pem", "password": "${env:A}"}})
    assert found.client_certificate is not None
    assert (found.client_certificate.certificate, found.client_certificate.key) == ("c.pem", "k.pem")
    assert found.client_certificate.password == Secret("s3cret-a")
    assert found.secrets == (Secret("s3cret-a"),)
    assert applied({"mtls": {"certificate": "both.pem"}}).client_certificate is not None


@pytest.mark.parametrize(
    ("security", "schemes"),
    [
        ([], ()),
        ([[]], ()),
        ([["key", "queryKey"], ["bearerAuth"]], ("key", "queryKey")),
        ([["bearerAuth"], ["key"]], ("key",)),
        ([["key", "bearerAuth"], ["queryKey"]], ("queryKey",)),
        ([[], ["key"]], ("key",)),
        ([[], ["bearerAuth"]], ()),
        ([["key", "key"]], ("key",)),
    ],
)
def test_the_first_alternative_that_is_bound_whole_is_used(security: list[list[str]], schemes: tuple[str, ...]) -> None:
    chosen = load({"key": "${env:A}", "queryKey": "${env:B}"}).choose(security, HERE)
    assert chosen.schemes == schemes
    assert (chosen.digest == ANONYMOUS) == (not schemes)


def test_nothing_bound_is_an_error_that_names_the_schemes() -> None:
    with pytest.raises(CredentialsMissing, match=r"https://api\.example: key and bearerAuth, or oauth; bind them"):
        load({"key": "${env:A}"}).choose([["key", "bearerAuth"], ["oauth"]], HERE)
    with pytest.raises(CredentialsMissing, match="bearerAuth"):
        load(None).choose([["bearerAuth"]], HERE)


def test_what_is_bound_but_not_there_is_an_error_and_never_the_next_alternative_or_none() -> None:
    credentials = load({"bearerAuth": "${caller:token}", "key": "${env:A}", "queryKey": "${env:MISSING}"})
    chosen = credentials.choose([["bearerAuth"], ["key"], []], HERE)
    with pytest.raises(CredentialsMissing, match=r"^bearerAuth: .*no caller is bound"):
        chosen.apply(None, HERE, environ=ENVIRON)
    with pytest.raises(CredentialsMissing, match=r"^queryKey: .*is not set") as caught:
        credentials.choose([["key", "queryKey"], []], HERE).apply(CALLER, HERE, environ=ENVIRON)
    assert "s3cret" not in str(caught.value)


def test_another_origin_uses_only_the_entries_it_has() -> None:
    config = {"key": "${env:A}", "bearerAuth": "${env:A}", "https://UPLOADS.example:443": {"key": "${env:B}"}}
    credentials = load(config)
    chosen = credentials.choose([["bearerAuth"], ["key"]], THERE)
    assert chosen.schemes == ("key",)
    assert chosen.apply(None, THERE, environ=ENVIRON).headers == (("X-Api-Key", Secret("s3cret-b")),)
    with pytest.raises(
        CredentialsMissing, match=r"https://api\.example only: bind them under credentials\['https://uploads"
    ):
        credentials.choose([["bearerAuth"]], THERE)
    with pytest.raises(CredentialsMissing, match="bearerAuth"):
        credentials.choose([["bearerAuth"]], Origin("http", "api.example", 80))
    with pytest.raises(CredentialsMissing, match=r"for https://uploads\.example, and the request goes to https://api"):
        chosen.apply(None, HERE, environ=ENVIRON)


def test_the_callers_token_reaches_another_origin_only_when_it_was_exchanged_for_it() -> None:
    chosen = load({"https://uploads.example": {"bearerAuth": "${caller:token}"}}).choose([["bearerAuth"]], THERE)
    with pytest.raises(CredentialsMissing, match="needs a token exchange"):
        chosen.apply(CALLER, THERE)
    found = chosen.apply(CALLER, THERE, tokens={THERE: Secret("exchanged")})
    assert found.headers == (("Authorization", Secret("Bearer exchanged")),)
    assert Secret("exchanged") in found.secrets


def test_without_a_known_server_only_entries_of_an_origin_are_used() -> None:
    credentials = load({"key": "${env:A}", "https://uploads.example": {"key": "${env:B}"}}, origin=None)
    assert credentials.choose([["key"]], THERE).schemes == ("key",)
    with pytest.raises(CredentialsMissing, match="petstore has no server whose credentials they could be"):
        credentials.choose([["key"]], HERE)


@pytest.mark.parametrize("names", [("bearerAuth", "basicAuth"), ("key", "sameKey"), ("oauth", "bearerAuth")])
def test_two_credentials_never_fill_the_same_place(names: tuple[str, ...]) -> None:
    credentials = load(dict.fromkeys(names, "${env:PAIR}"))
    with pytest.raises(DispatchRefused, match=f"{names[0]} and {names[1]} both fill the header"):
        credentials.choose([names], HERE)


@pytest.mark.parametrize(
    ("config", "place", "says"),
    [
        ("s3cret", "", "credentials are a mapping"),
        ({"bearerAuht": "${env:A}"}, ".bearerAuht", "did you mean 'bearerAuth'?"),
        ({"bearerAuth": "s3cret"}, ".bearerAuth", "a secret is not written into a config"),
        ({"bearerAuth": "Bearer s3cret${caller:tokn}"}, ".bearerAuth", "holds no reference"),
        ({"bearerAuth": "s3cret{caller:token}"}, ".bearerAuth", "without its `$`"),
        ({"bearerAuth": "s3cret${context:tenant}"}, ".bearerAuth", "is no secret"),
        ({"bearerAuth": ""}, ".bearerAuth", "a text with a reference"),
        ({"bearerAuth": 5}, ".bearerAuth", "a text with a reference"),
        ({"bearerAuth": {"token": "s3cret"}}, ".bearerAuth", "a text with a reference"),
        ({"digestAuth": "${env:A}"}, ".digestAuth", "the HTTP scheme 'digest' is not supported"),
        ({"unknown": "${env:A}"}, ".unknown", "does not say what kind"),
        ({"queryKey": "${caller:token}"}, ".queryKey", "cannot stand in the query"),
        ({"cookieKey": "x${caller:token}"}, ".cookieKey", "cannot stand in the cookie"),
        ({"basicAuth": {"username": "u"}}, ".basicAuth", "password is missing"),
        ({"basicAuth": {"username": "u", "password": "s3cret"}}, ".basicAuth.password", "a secret is not written"),
        ({"basicAuth": {"username": "u", "password": "${env:A}", "pw": 1}}, ".basicAuth.pw", "'pw' is not known here"),
        ({"oauth": {"clientId": "a", "clientSecret": "${caller:token}"}}, ".oauth.clientSecret", "operator's own"),
        ({"oauth": {"clientId": "a", "clientSecret": "s3cret"}}, ".oauth.clientSecret", "a secret is not written"),
        ({"oauth": {"clientId": "a", "clientSecret": "${env:A}", "scope": "a b"}}, ".oauth.scope", "a list of texts"),
        ({"implicit": {"clientId": "a", "clientSecret": "${env:A}"}}, ".implicit.tokenUrl", "names no token URL"),
        ({"mtls": "${env:A}"}, ".mtls", "a client certificate is a mapping"),
        ({"mtls": {"certificate": "${file:/c}"}}, ".mtls.certificate", "no path"),
        ({"mtls": {"certificate": "c.pem", "password": "s3cret"}}, ".mtls.password", "a secret is not written"),
        ({"https://a.example/v1": {}}, "['https://a.example/v1']", "write https://a.example"),
        ({"ftp://a.example": {}}, "['ftp://a.example']", "no http(s) origin"),
        ({"https://a.example": "${env:A}"}, "['https://a.example']", "an origin has a mapping"),
        ({"https://a.example": {"kye": "${env:A}"}}, "['https://a.example'].kye", "did you mean 'key'?"),
        ({"key": "${env:A}", "https://api.example": {"key": "${env:B}"}}, "['https://api.example'].key", "bound twice"),
        ({5: "${env:A}"}, "[5]", "no security scheme 5"),
    ],
)
def test_what_is_wrong_with_a_config_is_said_with_its_place_and_without_its_values(
    config: Any, place: str, says: str
) -> None:
    ((where, message),) = problems(config)
    assert where == f"credentials{place}"
    assert says in message


def test_every_problem_is_told_at_once() -> None:
    found = problems({"a": "x", "key": "s3cret", "digestAuth": "", "https://x": {"b": 1}})
    assert [where for where, _ in found] == [
        "credentials.a",
        "credentials.key",
        "credentials.digestAuth",
        "credentials['https://x'].b",
    ]


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example/token",
        "ftp://login.example",
        "/token",
        "",
        5,
        "https://me:s3cret@login.example/token",
        "https://login.example/${env:A}",
        "https://login.example/a b",
        "https://login.example/#x",
        "http://localhost.example/token",
    ],
)
def test_a_clients_secret_goes_to_https_or_this_machine_only(url: Any) -> None:
    client = {"clientId": "a", "clientSecret": "${env:A}"}
    ((where, message),) = problems({"oidc": {**client, "tokenUrl": url}})
    assert (where, message.startswith("the token URL is n")) == ("credentials.oidc.tokenUrl", True)
    flows = {"clientCredentials": {"tokenUrl": url}}  # what a document says is held to the same
    assert len(problems({"o": client}, schemes={"o": {"type": "oauth2", "flows": flows}})) == 1


@pytest.mark.parametrize("name", ["Host", "Content-Length", "transfer-encoding", "X Key", "X-Key\r\nA", "", None, 5])
@pytest.mark.parametrize("place", ["header", "cookie"])
def test_a_document_cannot_have_a_credential_sent_as_a_header_of_the_connection(name: Any, place: str) -> None:
    scheme = {"type": "apiKey", "in": place, "name": name}
    assert len(problems({"k": "${env:A}"}, schemes={"k": scheme})) == 1
    assert len(problems({"k": "${env:A}"}, schemes={"k": {"type": "apiKey", "in": "body", "name": "x"}})) == 1


def test_references_to_the_caller_can_be_switched_off_as_a_whole() -> None:
    config = {"bearerAuth": "${caller:token}", "key": "${env:A}-${caller:userId}", "queryKey": "${env:A}"}
    found = problems({**config, "https://a.example": {"key": "${caller:userId}"}}, caller_references=False)
    assert [where for where, _ in found] == [
        "credentials.bearerAuth",
        "credentials.key",
        "credentials['https://a.example'].key",
    ]
    assert all("switched off" in message for _, message in found)
    load({"queryKey": "${env:A}"}, caller_references=False)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"cookieKey": "${env:BEARER}"}, "no cookie can hold"),
        ({"cookieKey": "a;${env:A}"}, "no cookie can hold"),
        ({"basicAuth": "${env:A}"}, "is no `user:password`"),
        ({"basicAuth": {"username": "${env:PAIR}", "password": "${env:A}"}}, "has a colon"),
    ],
)
def test_a_value_its_scheme_cannot_send_is_refused_without_being_shown(config: dict[str, Any], says: str) -> None:
    with pytest.raises(CredentialsMissing, match=says) as caught:
        applied(config)
    assert "s3cret" not in str(caught.value)


def test_the_digest_is_of_the_text_as_it_is_written() -> None:
    def digest(config: dict[str, Any], *names: str) -> str:
        return load(config).choose([names or tuple(config)], HERE).digest

    one = digest({"key": "${env:A}"})
    assert re.fullmatch(r"[0-9a-f]{64}", one)
    assert one == digest({"key": " ${env:A}", "queryKey": "${env:B}"}, "key")
    both = {"key": "${env:A}", "queryKey": "${env:B}"}
    assert digest(both, "key", "queryKey") == digest(both, "queryKey", "key")
    client = {"clientId": "a", "clientSecret": "${env:A}"}
    others = [
        {"key": "${env:B}"},
        {"key": "${file:A}"},
        {"key": "x${env:A}"},
        {"queryKey": "${env:A}"},
        {"sameKey": "${env:A}"},
        {"bearerAuth": "${env:A}"},
        {"oauth": "${env:A}"},
        {"oauth": client},
        {"oauth": {**client, "scope": ["a"]}},
        {"oauth": {**client, "tokenUrl": "https://other.example"}},
        {"basicAuth": "a:${env:A}"},
        {"basicAuth": {"username": "a", "password": "${env:A}"}},
        {"mtls": {"certificate": "a"}},
        {"mtls": {"certificate": "b"}},
        {"mtls": {"certificate": "b", "key": "a"}},
        both,
    ]
    digests = [digest(config) for config in others]
    assert len({one, *digests}) == len(others) + 1


def test_what_is_chosen_shows_its_references_and_no_text_that_could_be_a_secret() -> None:
    credentials = load(
        {"key": "s3cret-literal-${env:A}", "basicAuth": {"username": "svc-user", "password": "${env:B}"}}
    )
    chosen = credentials.choose([["key", "basicAuth"]], HERE)
    assert [str(reference) for reference in chosen.references] == ["${env:A}", "${env:B}"]
    for shown in (repr(chosen), str(chosen), repr(credentials), repr(chosen.bindings)):
        assert not re.search("s3cret|svc-user", shown)
    assert "${env:A}" in repr(chosen)
    assert "key" in repr(credentials)


def test_a_document_does_not_choose_who_is_given_a_client_secret() -> None:
    schemes = {"oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://evil.example/token"}}}}
    client = {"clientId": "me", "clientSecret": "${env:A}"}
    ((where, message),) = problems({"oauth": client}, schemes=schemes)
    assert where == "credentials.oauth.tokenUrl"
    assert "https://evil.example" in message
    load({"oauth": {**client, "tokenUrl": "https://login.example/token"}}, schemes=schemes)
