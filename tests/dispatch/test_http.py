"""The dispatcher end to end, against a real server: what is sent, with which credentials, and what comes back."""

from __future__ import annotations

import ast
import asyncio
import base64
import gc
import logging
import os
import signal
import ssl
import subprocess
import sys
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from raw_server import OK, RawServer, Received, answer, answering, serving
from small_documents import document, made, parameter

from toolgen.dispatch.http import Dispatcher
from toolgen.dispatch.settings import Http
from toolgen.errors import (
    ArgumentsError,
    ContractError,
    CredentialsError,
    CredentialsMissing,
    DispatchRefused,
    ServerError,
    ToolgenError,
    UsageError,
)
from toolgen.identity.caller import Caller, bind_caller
from toolgen.result import Sent, ToolResult
from toolgen.tools.model import Toolset

DONE = {"200": {"description": "ok"}}
TOKEN_URL = "https://login.example/token"
SCHEMES: dict[str, Any] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "api key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": TOKEN_URL, "scopes": {}}}},
    "oidc": {"type": "openIdConnect", "openIdConnectUrl": "https://login.example/.well-known"},
    "mtls": {"type": "mutualTLS"},
}


def secured(*security: Any, path: str = "/x", method: str = "get", **more: Any) -> Toolset:
    """A toolset of one operation with this `security`, an OR of ANDs of scheme names."""
    alternatives = [{name: [] for name in names} for names in security]
    operation = {"operationId": "op", "security": alternatives, "responses": DONE, **more}
    components = {"securitySchemes": SCHEMES}
    return made(document({path: {method: operation}}, components=components), api="small", server="https://api.example")


@pytest.fixture(scope="module")
def plain() -> Toolset:
    body = {"requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}}}
    parameters = [parameter("id", "path"), parameter("q"), parameter("X-A", "header"), parameter("c", "cookie")]
    paths: dict[str, Any] = {
        "/a/{id}": {
            "get": {"operationId": "get", "parameters": parameters, "responses": DONE},
            "post": {"operationId": "post", "parameters": parameters[:1], **body, "responses": DONE},
        }
    }
    return made(document(paths), api="small", server="https://api.example")


def one_call(toolset: Toolset, server: RawServer, caller: Caller | None = None, **options: Any) -> Received:
    """The request of the only tool's only call."""
    with Dispatcher(toolset, server=server.url, **options) as dispatcher:
        result = dispatcher.call(toolset.tools[0], {}, caller=caller)
    assert result.ok, result
    return server.requests[-1]


# What is sent, and what comes back


def test_the_request_has_nothing_but_what_was_declared_and_what_http_needs(plain: Toolset) -> None:
    with serving() as server, Dispatcher(plain, server=f"{server.url}/v1") as dispatcher:
        got = dispatcher.call("get", {"id": "a b", "q": "1&2", "X-A": "v", "c": "d"})
        posted = dispatcher.call("post", {"id": "7", "requestBody": {"n": 5.0}})
    assert got == posted == ToolResult(True, Sent.answered, 200, "application/json", {"ok": True})
    first, second = server.requests
    common = [("User-Agent", "toolgen"), ("Accept-Encoding", "gzip, deflate")]
    host = ("Host", f"127.0.0.1:{server.port}")
    assert first.line == "GET /v1/a/a%20b?q=1%262 HTTP/1.1"
    assert first.headers == [host, ("Accept", "*/*"), ("X-A", "v"), ("Cookie", "c=d"), *common]
    assert second.line == "POST /v1/a/7 HTTP/1.1"
    assert second.headers == [
        host,
        ("Accept", "*/*"),
        ("Content-Type", "application/json"),
        *common,
        ("Content-Length", "7"),
    ]
    assert second.body == b'{"n":5}'


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["/elsewhere", "http://localhost:{port}/", "https://evil.example/", "//evil.example"])
@pytest.mark.parametrize("tool", ["get", "post"])
def test_a_redirect_is_an_answer_and_nothing_follows_it(plain: Toolset, status: int, where: str, tool: str) -> None:
    with serving(lambda connection: answering(lambda _: answer(status, b"", ("Location", to)))(connection)) as server:
        to = where.format(port=server.port)
        with Dispatcher(plain, server=server.url) as dispatcher:
            result = dispatcher.call(tool, {"id": "1"})
    assert (result.ok, result.status, result.headers["location"]) == (True, status, to)
    assert (len(server.requests), server.connections) == (1, 1)


def test_no_cookie_is_kept_between_calls(plain: Toolset) -> None:
    baked = answer(200, b"{}", ("Set-Cookie", "sid=1; Path=/"), ("Set-Cookie2", "a=b"))
    with serving(baked) as server, Dispatcher(plain, server=server.url) as dispatcher:
        results = [dispatcher.call("get", {"id": str(n)}) for n in range(3)]
    assert [received.header("cookie") for received in server.requests] == [None] * 3
    assert "sid" not in f"{results}"


def test_nothing_in_the_environment_changes_a_request(
    plain: Toolset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("default login somebody password anything\n")
    with serving() as proxy, serving() as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        with Dispatcher(plain, server=server.url) as dispatcher:
            assert dispatcher.call("get", {"id": "1"}).ok
    assert proxy.connections == 0
    assert server.requests[0].header("authorization") is None


def test_arguments_that_are_not_valid_are_a_result_and_nothing_is_sent(plain: Toolset) -> None:
    with serving() as server, Dispatcher(plain, server=server.url) as dispatcher:
        results = [
            dispatcher.call("get", given) for given in ({}, {"id": 5}, {"id": ".."}, {"id": "1", "X-A": "a\r\nb"})
        ]
        with pytest.raises(ArgumentsError):
            dispatcher.resolve("get", {})
    assert all(not one.ok and one.sent is Sent.not_sent and one.problems and one.refused is None for one in results)
    assert server.connections == 0


def test_a_url_that_the_http_client_would_change_is_not_sent(plain: Toolset) -> None:
    with (
        serving() as server,
        Dispatcher(plain, server=f'{server.url}/v1?a="b"') as dispatcher,
        pytest.raises((DispatchRefused, ServerError)),
    ):
        dispatcher.call("get", {"id": "1"})
    assert server.connections == 0


def test_the_address_of_an_operation_s_own_server_earns_nothing() -> None:
    with serving() as server:
        toolset = secured(servers=[{"url": server.url}])
        with Dispatcher(toolset) as dispatcher, pytest.raises(ToolgenError, match="allow_private"):
            dispatcher.call("op", {})
        with Dispatcher(toolset, allow_private=["127.0.0.1"]) as dispatcher:
            assert dispatcher.call("op", {}).ok
    assert len(server.requests) == 1


# Tools and settings


def test_a_tool_is_found_by_a_name_that_only_one_api_has_or_by_itself(plain: Toolset) -> None:
    other = made(document({"/a": {"get": {"operationId": "get", "responses": DONE}}}), api="other")
    with serving() as server, serving() as second:
        servers = {"small": server.url, "other": second.url}
        with Dispatcher([plain, other], server=servers) as dispatcher:
            with pytest.raises(UsageError, match="small, other each have a tool 'get'"):
                dispatcher.call("get", {})
            with pytest.raises(UsageError, match="did you mean 'post'"):
                dispatcher.call("pots", {})
            assert dispatcher.call(other.tool("get"), {}).ok
    assert (server.connections, second.lines) == (0, ["GET /a HTTP/1.1"])


def test_a_tool_of_another_toolset_is_refused_even_if_it_has_the_same_name(plain: Toolset) -> None:
    tool = plain.tool("get")
    altered = tool.model_copy(update={"request": tool.request.model_copy(update={"security": ()}), "description": "x"})
    with Dispatcher(plain, server="http://127.0.0.1:9") as dispatcher, pytest.raises(UsageError, match="none of this"):
        dispatcher.call(altered, {"id": "1"})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"contract": "maybe"}, UsageError),
        ({"server": "ftp://x.example"}, ServerError),
        ({"server": {"smal": "https://a.example"}}, UsageError),
        ({"server_variables": {"nope": "1"}}, UsageError),
        ({"documents": {"smal": {}}}, UsageError),
        ({"credentials": {"nope": "${env:A}"}}, CredentialsError),
        ({"credentials": {"header": "literal"}}, CredentialsError),
        ({"allow_private": ["everything"]}, UsageError),
        ({"exchange": {"not an origin": str}}, CredentialsError),
        ({"caller_references": False, "credentials": {"bearer": "${caller:token}"}}, CredentialsError),
    ],
)
def test_settings_that_are_not_valid_are_errors_at_once(options: dict[str, Any], error: type[ToolgenError]) -> None:
    with pytest.raises(error):
        Dispatcher(secured(["header"]), **options)


def test_settings_for_several_apis_say_for_which(plain: Toolset) -> None:
    other = made(document({"/a": {"get": {"operationId": "get", "responses": DONE}}}), api="other")
    with pytest.raises(UsageError, match="say for which API"):
        Dispatcher([plain, other], server="https://api.example")
    with pytest.raises(UsageError, match="same API name"):
        Dispatcher([plain, plain])


def test_a_request_that_the_document_does_not_describe_is_refused_or_noted(plain: Toolset) -> None:
    # The document has other types than the toolset was made with: the second opinion is the document's.
    paths = {
        "/a/{id}": {
            "get": {
                "operationId": "get",
                "parameters": [parameter("id", "path", schema={"type": "integer"})],
                "responses": DONE,
            }
        }
    }
    described = {"small": document(paths)}
    with serving() as server:
        with Dispatcher(plain, server=server.url, contract="enforce", documents=described) as dispatcher:
            with pytest.raises(ContractError):
                dispatcher.call("get", {"id": "x"})
            assert server.connections == 0
            assert dispatcher.call("get", {"id": "7"}).message == ""
        with Dispatcher(plain, server=server.url, contract="warn", documents=described) as dispatcher:
            warned = dispatcher.call("get", {"id": "x"})
        with Dispatcher(plain, server=server.url, documents=described) as dispatcher:
            assert dispatcher.call("get", {"id": "x"}).message == ""
    assert (warned.ok, "not what the document describes" in warned.message) == (True, True)
    assert "Problem(" not in warned.message


# Credentials


@pytest.mark.parametrize(
    ("scheme", "bound", "target", "header"),
    [
        ("header", "${env:S}", "/x", ("X-Key", "s3cr3t é?"[:6])),
        ("query", "${env:S}", "/x?api%20key=s3cr3t", None),
        ("cookie", "${env:S}", "/x", ("Cookie", "sid=s3cr3t")),
        ("bearer", "${env:S}", "/x", ("Authorization", "Bearer s3cr3t")),
        ("oidc", "${env:S}", "/x", ("Authorization", "Bearer s3cr3t")),
        ("oauth", "${env:S}", "/x", ("Authorization", "Bearer s3cr3t")),
        ("basic", "${env:PAIR}", "/x", ("Authorization", "Basic " + base64.b64encode(b"u:s3cr3t").decode())),
        (
            "basic",
            {"username": "u", "password": "${env:S}"},
            "/x",
            ("Authorization", "Basic " + base64.b64encode(b"u:s3cr3t").decode()),
        ),
        ("bearer", "${file:FILE}", "/x", ("Authorization", "Bearer from-a-file")),
    ],
)
def test_each_kind_of_credential_is_sent_as_its_scheme_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str, bound: Any, target: str, header: Any
) -> None:
    monkeypatch.setenv("S", " s3cr3t\n")
    monkeypatch.setenv("PAIR", "u:s3cr3t")
    (tmp_path / "token").write_text("from-a-file\n")
    if isinstance(bound, str):
        bound = bound.replace("FILE", str(tmp_path / "token"))
    with serving() as server:
        received = one_call(secured([scheme]), server, credentials={scheme: bound})
    assert received.target == target
    if header is not None:
        assert received.header(header[0]) == header[1]
    for name in {"X-Key", "Cookie", "Authorization"} - ({header[0]} if header else set()):
        assert received.header(name) is None


@pytest.mark.parametrize(
    ("security", "bound", "sent"),
    [
        ([["header"], ["cookie"]], ["header", "cookie"], ["X-Key"]),
        ([["header"], ["cookie"]], ["cookie"], ["Cookie"]),
        ([["header", "cookie"]], ["header", "cookie"], ["X-Key", "Cookie"]),
        ([["header", "cookie"], ["bearer"]], ["header", "bearer"], ["Authorization"]),
        ([["header"], []], [], []),
        ([[], ["header"]], ["header"], ["X-Key"]),
        ([], ["header", "cookie", "bearer"], []),
    ],
)
def test_the_first_alternative_that_is_bound_as_a_whole_is_sent(
    monkeypatch: pytest.MonkeyPatch, security: list[list[str]], bound: list[str], sent: list[str]
) -> None:
    monkeypatch.setenv("S", "s3cr3t")
    with serving() as server:
        received = one_call(secured(*security), server, credentials=dict.fromkeys(bound, "${env:S}"))
    assert [name for name in ("X-Key", "Cookie", "Authorization") if received.header(name)] == sent


CALLER = "${caller:token}"


@pytest.mark.parametrize(
    ("credentials", "caller", "said"),
    [
        ({}, None, "header and cookie, or bearer"),
        ({"header": "${env:S}"}, None, "header and cookie, or bearer"),
        ({"bearer": "${env:MISSING}"}, None, "MISSING"),
        ({"bearer": "${env:EMPTY}"}, None, "EMPTY"),
        ({"bearer": "${file:/nowhere/at/all}"}, None, "/nowhere"),
        ({"bearer": CALLER}, None, "no caller"),
        ({"bearer": CALLER}, Caller("u", origin="http://127.0.0.1:9"), "none"),
        ({"bearer": CALLER}, Caller("u", "  ", origin="http://127.0.0.1:9"), "none"),
        ({"bearer": CALLER}, Caller("u", "t0ken-of-u"), "origin"),
        ({"bearer": CALLER}, Caller("u", "t0ken-of-u", origin="https://127.0.0.1:9"), "origin"),
        ({"bearer": CALLER}, Caller("u", "t0ken-of-u", origin="http://localhost:9"), "origin"),
        ({"bearer": CALLER}, Caller("u", "t0ken-of-u", origin="http://127.0.0.1:1"), "origin"),
        ({"bearer": "${env:S}\x7f"}, None, "character"),
        ({"https://other.example": {"bearer": "${env:S}"}}, None, "bearer"),
    ],
)
def test_a_credential_that_is_missing_is_an_error_before_any_connection(
    monkeypatch: pytest.MonkeyPatch, credentials: dict[str, Any], caller: Caller | None, said: str
) -> None:
    monkeypatch.setenv("S", "s3cr3t")
    monkeypatch.setenv("EMPTY", "  ")
    with serving() as server:
        if caller is not None and caller.origin:
            caller = replace(caller, origin=caller.origin.replace(":9", f":{server.port}"))
        dispatcher = Dispatcher(secured(["header", "cookie"], ["bearer"]), server=server.url, credentials=credentials)
        with dispatcher, pytest.raises(CredentialsMissing, match=said) as caught:
            dispatcher.call("op", {}, caller=caller)
    assert server.connections == 0
    assert "s3cr3t" not in str(caught.value)
    assert "t0ken" not in str(caught.value)


def test_an_operation_on_another_origin_needs_an_entry_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIN", "main-s3cr3t")
    monkeypatch.setenv("OTHER", "other-s3cr3t")
    with serving() as server:
        toolset = secured(["bearer"], servers=[{"url": server.url}])
        private = {"allow_private": ["127.0.0.1"]}
        dispatcher = Dispatcher(toolset, credentials={"bearer": "${env:MAIN}"}, **private)
        with dispatcher, pytest.raises(CredentialsMissing, match="only"):
            dispatcher.call("op", {})
        assert server.connections == 0
        credentials = {"bearer": "${env:MAIN}", server.url: {"bearer": "${env:OTHER}"}}
        with Dispatcher(toolset, credentials=credentials, **private) as dispatcher:
            assert dispatcher.call("op", {}).ok
    assert server.requests[0].header("authorization") == "Bearer other-s3cr3t"


def test_the_caller_is_the_one_given_else_the_one_bound(plain: Toolset) -> None:
    def who(token: str) -> Caller:
        return Caller("u", token, origin=server.url)

    async def both(dispatcher: Dispatcher) -> None:
        await dispatcher.acall("op", {})
        await dispatcher.acall("op", {}, caller=who("given-async"))

    with serving() as server:
        d = Dispatcher(secured(["bearer"]), server=server.url, credentials={"bearer": CALLER})
        with d, bind_caller(who("bound")):
            d.call("op", {})
            d.call("op", {}, caller=who("given"))
            asyncio.run(both(d))
            with bind_caller(None), pytest.raises(CredentialsMissing):
                d.call("op", {})
    sent = [received.header("authorization") for received in server.requests]
    assert sent == ["Bearer bound", "Bearer given", "Bearer bound", "Bearer given-async"]


@pytest.mark.parametrize("face", ["async", "threads"])
def test_callers_at_the_same_time_each_have_their_own_token(face: str) -> None:
    toolset = secured(["bearer"], parameters=[parameter("q")])
    with serving(answering(lambda got: answer(200, got.target.encode(), kind="text/plain"))) as server:
        callers = [Caller(f"u{n}", f"token-{n:03}", origin=server.url) for n in range(50)]

        async def together(dispatcher: Dispatcher) -> list[ToolResult]:
            calls = (dispatcher.acall("op", {"q": c.subject}, caller=c) for c in callers)
            return await asyncio.gather(*calls)

        with Dispatcher(toolset, server=server.url, credentials={"bearer": CALLER}) as dispatcher:
            if face == "async":
                results = asyncio.run(together(dispatcher))
            else:
                with ThreadPoolExecutor(8) as threads:
                    found = [threads.submit(dispatcher.call, "op", {"q": c.subject}, caller=c) for c in callers]
                    results = [one.result() for one in found]
    assert [result.body for result in results] == [f"/x?q=u{n}" for n in range(50)]
    assert {(r.target, r.header("authorization")) for r in server.requests} == {
        (f"/x?q=u{n}", f"Bearer token-{n:03}") for n in range(50)
    }


def test_another_audience_gets_the_token_of_its_exchange_and_never_the_caller_s_own() -> None:
    asked: list[tuple[str, str]] = []

    async def hook(caller: Caller, origin: Any) -> str:
        asked.append((caller.subject, str(origin)))
        return f"exchanged-for-{caller.subject}"

    with serving() as server:
        caller = Caller("u", "own-token", origin="https://app.example")
        options = {"credentials": {"bearer": CALLER}, "exchange": {server.url: hook}}
        received = one_call(secured(["bearer"]), server, caller, **options)
    assert received.header("authorization") == "Bearer exchanged-for-u"
    assert b"own-token" not in received.raw
    assert asked == [("u", server.url)]


def test_the_caller_s_own_token_is_not_shown_where_another_was_sent() -> None:
    """What an exchange made of it may well carry it."""
    with serving(answer(200, b'{"actor": "own-token"}')) as server:
        options: dict[str, Any] = {"credentials": {"bearer": CALLER}, "exchange": {server.url: lambda *_: "exchanged"}}
        with Dispatcher(secured(["bearer"]), server=server.url, **options) as dispatcher:
            assert dispatcher.call("op", {}, caller=Caller("u", "own-token")).body == {"actor": "<redacted>"}


def test_an_exchange_that_calls_the_dispatcher_again_is_refused_and_does_not_hang() -> None:
    with serving() as server:
        dispatcher = Dispatcher(
            secured(["bearer"]),
            server=server.url,
            credentials={"bearer": CALLER},
            exchange={server.url: lambda caller, _: str(dispatcher.call("op", {}, caller=caller))},
        )
        with dispatcher, pytest.raises(CredentialsMissing, match="UsageError"):
            dispatcher.call("op", {}, caller=Caller("u", "own-token"))
    assert server.connections == 0


def test_a_client_asks_its_token_endpoint_once_and_anew_when_the_api_refused_the_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("S", "client-s3cr3t")
    issued: list[str] = []

    def say(received: Received) -> bytes:
        if received.target == "/token":
            issued.append(f"issued-{len(issued)}")
            return answer(200, b'{"access_token":"%s","token_type":"bearer","expires_in":3600}' % issued[-1].encode())
        return answer(
            401 if received.header("authorization") == "Bearer issued-0" and len(server.requests) > 3 else 200
        )

    with serving(answering(say)) as server:
        bound = {"clientId": "svc", "clientSecret": "${env:S}", "tokenUrl": f"{server.url}/token"}
        with Dispatcher(secured(["oauth"]), server=server.url, credentials={"oauth": bound}) as dispatcher:
            statuses = [dispatcher.call("op", {}).status for _ in range(4)]
    assert statuses == [200, 200, 401, 200]
    assert [received.target for received in server.requests] == ["/token", "/x", "/x", "/x", "/token", "/x"]
    assert server.requests[-1].header("authorization") == "Bearer issued-1"
    assert all(b"client-s3cr3t" not in r.raw for r in server.requests if r.target == "/x")


@pytest.mark.parametrize("bound_to", ["scheme", "settings"])
def test_a_client_certificate_is_shown(tmp_path: Path, bound_to: str) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    own = authority.issue_cert("client.example", common_name="client.example")
    own.private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    http = Http(ca_bundle=str(tmp_path / "ca.pem"), retries=0)
    with serving(context=context) as server:
        if bound_to == "scheme":
            bound = {"mtls": {"certificate": str(tmp_path / "own.pem")}}
            one_call(secured(["mtls"]), server, credentials=bound, http=http)
        with Dispatcher(secured(), server=server.url, http=http) as dispatcher:
            assert not dispatcher.call("op", {}).ok
    assert len(server.requests) == (bound_to == "scheme")
    if bound_to == "scheme":
        assert "client.example" in str(server.certificates[0])


def test_a_credential_beside_an_argument_of_the_same_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S", "s3cr3t")
    toolset = secured(["header"], parameters=[parameter("X_Key", "header")])
    with serving() as server:
        dispatcher = Dispatcher(toolset, server=server.url, credentials={"header": "${env:S}"})
        with dispatcher, pytest.raises(DispatchRefused, match="filled twice"):
            dispatcher.call("op", {"X_Key": "mine"})
    assert server.connections == 0


# Running and closing


def test_plain_code_inside_an_event_loop_can_call(plain: Toolset) -> None:
    with serving() as server, Dispatcher(plain, server=server.url) as dispatcher:

        async def main() -> ToolResult:
            return dispatcher.call("get", {"id": "1"})

        assert asyncio.run(main()).ok


def test_closing_ends_a_call_of_another_thread_whose_outcome_is_then_unknown(plain: Toolset) -> None:
    def holds(connection: Any) -> None:
        connection.receive()
        connection.hold()

    with serving(holds) as server, ThreadPoolExecutor(1) as threads:
        dispatcher = Dispatcher(plain, server=server.url)
        running = threads.submit(dispatcher.call, "post", {"id": "1"})
        assert server.came.wait(5)
        dispatcher.close()
        dispatcher.close()
        result = running.result(5)
        assert server.gone.wait(5)
    assert (result.ok, result.sent, len(server.requests)) == (False, Sent.unknown, 1)


def test_a_dispatcher_that_is_dropped_closes_what_plain_code_opened(plain: Toolset) -> None:
    def holds(connection: Any) -> None:
        connection.receive()
        connection.send(OK)
        connection.hold()

    with serving(holds) as server:
        before = set(threading.enumerate())
        dispatcher = Dispatcher(plain, server=server.url)
        assert dispatcher.call("get", {"id": "1"}).ok
        del dispatcher
        assert server.gone.wait(5)
        new = set(threading.enumerate()) - before
        assert [thread.name for thread in new if thread.name == "toolgen"] == []
    gc.collect()  # what was not closed would warn, and warnings are errors


PROGRAM = """
import sys
from toolgen import Dispatcher, load_toolset
dispatcher = Dispatcher(load_toolset(sys.argv[1]), server=sys.argv[2])
print(dispatcher.call("get", {"id": "1"}).ok)
"""


def test_a_program_that_ends_with_open_connections_ends_quietly(plain: Toolset, tmp_path: Path) -> None:
    plain.save(tmp_path / "small.json")
    with serving() as server:
        command = [sys.executable, "-W", "error", "-c", PROGRAM, str(tmp_path / "small.json"), server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_connections_of_its_own(plain: Toolset) -> None:
    with serving() as server, Dispatcher(plain, server=server.url) as dispatcher:
        assert dispatcher.call("get", {"id": "parent"}).ok
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forking with threads
            child = os.fork()
        if child == 0:
            signal.alarm(20)  # what hangs here would outlive the test
            code = 1
            try:
                code = 0 if dispatcher.call("get", {"id": "child"}).ok else 2
                dispatcher.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert dispatcher.call("get", {"id": "parent"}).ok
    assert [(r.target, r.connection) for r in server.requests] == [("/a/parent", 1), ("/a/child", 2), ("/a/parent", 1)]


def test_what_is_sent_and_answered_is_in_no_log_of_the_http_libraries(
    plain: Toolset, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(answer(200, b"{}", ("X-Echo", "s3cr3t"), reason="s3cr3t")) as server:
        with Dispatcher(plain, server=server.url) as dispatcher:
            dispatcher.call("get", {"id": "s3cr3t"})
        assert "s3cr3t" not in caplog.text
        with httpx2.Client(trust_env=False) as other:
            other.get(server.url)
    assert "s3cr3t" in caplog.text, "the logs of others stay as they are"


# Who may call


def called_methods(path: Path) -> set[str]:
    """The names of all methods that a module calls."""
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {func.attr for func in calls if isinstance(func, ast.Attribute)}


def test_only_the_runtime_calls_the_dispatcher() -> None:
    package = Path(sys.modules["toolgen"].__file__ or "").parent
    names = {"call", "acall", "send"}
    users = {
        str(path.relative_to(package)): found
        for path in package.rglob("*.py")
        if (found := called_methods(path) & names) and "dispatch.http" in path.read_text()
    }
    assert set(users) <= {"runtime/sources.py"}
    importers = {str(p.relative_to(package)) for p in package.rglob("*.py") if "toolgen.dispatch.http" in p.read_text()}
    others = {name for name in importers if not name.startswith(("cli/", "runtime/"))}
    assert others == {"__init__.py"}


def test_that_it_is_ungated_is_the_first_thing_its_documentation_says() -> None:
    for thing in (Dispatcher, Dispatcher.call, Dispatcher.send):
        assert "**ungated**" in (thing.__doc__ or "").split("\n\n")[0].lower()


def test_the_frames_of_what_the_host_was_handling_stay_as_they_are() -> None:
    kept: list[dict[str, Any]] = []

    def fails() -> None:
        reason = "the host's own"
        raise ValueError(reason)

    async def host() -> None:
        try:
            fails()
        except ValueError as error:
            with pytest.raises(CredentialsMissing):
                await Dispatcher(secured(("bearer",))).acall("op", {})
            kept.extend(frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__))

    asyncio.run(host())
    assert {"reason": "the host's own"} in kept
