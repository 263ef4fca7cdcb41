"""No argument leads a request anywhere but to the operation that was called, whoever reads it.

Each kind of trick runs in every place that takes a value, against a real server that keeps the bytes. What
they mean is judged by `lenient_router`, which shares nothing with what builds requests.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any
from urllib.parse import quote

import lenient_router as router
import pytest
from raw_server import OK, RawServer, Received, answer, answering, serving
from shown import ROOT
from small_documents import document, made, parameter

from toolgen import Caller, Dispatcher, Runtime, ToolCall, ToolResult
from toolgen.errors import ToolgenError
from toolgen.result import Sent
from toolgen.tools.model import Toolset

SECRET = "planted-s3cr3t-in-the-environment"
OBJECT = {"type": "object", "additionalProperties": {"type": "string"}}
LIST = {"type": "array", "items": {"type": "string"}}
DONE = {"200": {"description": "ok"}}
TOKEN = "caller-t0ken-of-the-host"


def operation(name: str, *parameters: Any, body: tuple[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": name, "parameters": list(parameters), "responses": DONE}
    if body:
        found["requestBody"] = {"content": {body[0]: {"schema": body[1]}}}
    return found


def item(name: str, **more: Any) -> dict[str, Any]:
    return operation(name, parameter("id", "path", **more))


TEXT = {"type": "string"}
FORM = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT}
FORBIDDEN_HEADERS = (
    "Host X-Forwarded-Host X-Host X-Forwarded-Server X-Original-Host Forwarded Connection Keep-Alive TE Trailer "
    "Transfer-Encoding Upgrade Proxy-Authorization Proxy-Connection Content-Length Expect X-Original-URL X-Rewrite-URL "
    "X-Forwarded-Uri X-HTTP-Method X-HTTP-Method-Override X-Method-Override x_http_method_override Cookie X-Accel-Redirect"
).split()
METHOD_KEYS = (
    "_method _METHOD _Method _httpmethod _HttpMethod X-HTTP-Method-Override x-http-method x_method_override".split()
)
PATHS: dict[str, Any] = {
    "/users/{id}": {"get": item("user"), "delete": item("removeUser")},
    "/users/me": {"get": operation("me")},
    "/users/export": {"get": operation("exportUsers")},
    "/users": {"get": operation("users"), "delete": operation("removeAll")},
    "/admin/keys": {"get": operation("keys"), "post": operation("addKey")},
    "/files/{a}/{b}": {"get": operation("file", parameter("a", "path"), parameter("b", "path"))},
    "/reports/{name}.pdf": {"get": operation("report", parameter("name", "path"))},
    "/range/{a}-{b}": {"get": operation("range", parameter("a", "path"), parameter("b", "path"))},
    "/label/{id}": {"get": item("label", style="label")},
    "/matrix/{id}": {"get": item("matrix", style="matrix")},
    "/list/{id}": {"get": item("list", schema=LIST)},
    "/map/{id}": {"get": item("map", schema=OBJECT, explode=True)},
    "/search": {
        "get": operation(
            "search",
            parameter("q"),
            parameter("raw", allowReserved=True),
            parameter("many", schema=LIST, style="pipeDelimited", explode=False),
            parameter("deep", schema=OBJECT, style="deepObject", explode=True),
            parameter("json", content={"application/json": {"schema": OBJECT}}),
            parameter("X-Note", "header"),
            parameter("X-Map", "header", schema=OBJECT, explode=True),
            parameter("tint", "cookie"),
            parameter("tints", "cookie", schema=LIST),
            parameter("limit"),
        )
    },
    "/spread": {
        "get": operation("spread", parameter("spread", schema=OBJECT, style="form", explode=True), parameter("limit"))
    },
    "/crumbs": {"get": operation("crumbs", parameter("crumbs", "cookie", schema=OBJECT, explode=True))},
    "/json": {"post": operation("postJson", body=("application/json", FORM))},
    "/form": {"post": operation("postForm", body=("application/x-www-form-urlencoded", FORM))},
    "/parts": {"post": operation("postParts", body=("multipart/form-data", FORM))},
    "/text": {"post": operation("postText", body=("text/plain", TEXT))},
    "/headers": {"post": operation("headers", *(parameter(name, "header") for name in FORBIDDEN_HEADERS))},
    "/overrides": {"post": operation("overrides", *(parameter(name) for name in METHOD_KEYS))},
    "/baked": {"post": operation("baked", *(parameter(name, "cookie") for name in METHOD_KEYS))},
}
KNOWN = [(method.upper(), path) for path, methods in PATHS.items() for method in methods]
NAMES = {methods[m]["operationId"]: (m.upper(), path) for path, methods in PATHS.items() for m in methods}


@pytest.fixture(scope="module")
def toolset() -> Toolset:
    return made(document(PATHS), api="small", server="https://api.example")


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", SECRET)


Make = Callable[[str], dict[str, Any]]


class Run:
    """Calls one tool with many arguments and judges every request that came of it."""

    def __init__(self, toolset: Toolset, server: RawServer) -> None:
        self.toolset, self.server = toolset, server
        self.escapes: list[str] = []
        self.sent = 0

    def __call__(self, name: str, given: Iterable[dict[str, Any]]) -> None:
        listed = list(given)
        assert len({str(one) for one in listed}) >= 20, "at least 20 different values"
        caller = Caller("u", TOKEN, origin=self.server.url)
        with Dispatcher(self.toolset, server=self.server.url) as dispatcher:
            for arguments in listed:
                before, connections = len(self.server.requests), self.server.connections
                try:
                    result = dispatcher.call(name, arguments, caller=caller)
                except ToolgenError:
                    result = None
                came = self.server.requests[before:]
                self._judge(name, arguments, result, came, self.server.connections - connections)

    def _judge(
        self, name: str, arguments: Any, result: ToolResult | None, came: list[Received], connections: int
    ) -> None:
        refused = result is None or result.sent is Sent.not_sent
        if (len(came), refused) not in ((0, True), (1, False)):
            self.escapes.append(f"{arguments}: {len(came)} requests, refused: {refused}")
        if refused and connections > 0 and self.sent:
            self.escapes.append(f"{arguments}: connected, and then refused")
        for received in came:
            self.sent += 1
            self.escapes += [f"{arguments}: {told}" for told in self._told(name, received)]

    def _told(self, name: str, received: Received) -> Iterator[str]:
        """What is wrong with a request of this tool."""
        method, path = NAMES[name]
        below = path.partition("{")[0]  # what is there and no operation leads nowhere
        others = {
            (verb, found)
            for verb, found in router.operations(received, KNOWN)
            if verb != method or (found != path and (found in PATHS or not f"{found}/".startswith(below)))
        }
        if others:
            yield f"taken for {sorted(others)}: {received.line}"
        if (hosts := router.hosts(received)) != {f"127.0.0.1:{self.server.port}"}:
            yield f"for the hosts {sorted(hosts)}"
        wire = self._declared(name)
        headers = {router.name_of(header) for header, _ in received.headers}
        client = {"host", "accept", "content-type", "content-length", "cookie", "user-agent", "accept-encoding"}
        if headers - client - wire["header"]:
            yield f"headers {sorted(headers - client - wire['header'])}"
        if len(headers) != len(received.headers):
            yield f"headers that are there twice: {received.headers}"
        extra = {key.partition("[")[0] for key in router.query_names(received)} - wire["query"]
        if extra and name != "spread":
            yield f"query names {sorted(extra)}: {received.target}"
        if name != "crumbs" and router.cookie_names(received) - wire["cookie"]:
            yield f"cookies {sorted(router.cookie_names(received))}"
        if "#" in received.target:
            yield f"a fragment: {received.target}"
        if SECRET.encode() in received.raw or TOKEN.encode() in received.raw:
            yield "a secret that was filled in"

    def _declared(self, name: str) -> dict[str, set[str]]:
        method, path = NAMES[name]
        declared = PATHS[path][method.lower()]["parameters"]
        found: dict[str, set[str]] = {"header": set(), "query": set(), "cookie": set(), "path": set()}
        for one in declared:
            found[one["in"]].add(router.name_of(one["name"]) if one["in"] == "header" else one["name"])
        found["header"] -= set(map(router.name_of, FORBIDDEN_HEADERS))
        return found


@pytest.fixture
def run(toolset: Toolset) -> Iterator[Run]:
    with serving(OK) as server:
        found = Run(toolset, server)
        yield found
    assert found.escapes == []


def encoded(*texts: str) -> list[str]:
    """Each text raw, percent-encoded once, twice and three times, and with every character encoded."""
    found: list[str] = []
    for text in texts:
        whole = "".join(f"%{byte:02x}" for byte in text.encode())
        forms = [text, quote(text, safe=""), quote(quote(text, safe=""), safe=""), whole, quote(whole, safe="")]
        found += [*forms, quote(forms[-1], safe="")]
    return list(dict.fromkeys(found))


TRAVERSALS = [
    *encoded("../admin/keys", "..\\admin\\keys", "x/../../admin/keys", "../../admin/keys", "..", ".", "./", "../", "/"),
    *encoded(
        "..;/admin/keys", "..;x=y/admin/keys", ".;", "..;a", "/..", "//", "x/..", "x/.", "a//b", "\\", "x\\..\\me"
    ),
    *encoded(
        "", " ", "%00", "x\0", "x\0/../me", "..\0", ".. ", " ..", "..\t", "x/", "/x", "x%2f..", "%2e%2e%2fme", "x\\"
    ),
    *encoded(
        "x?y=1",
        "x#y",
        "x?",
        "#",
        "?",
        "x&y",
        "x;y=1",
        "../users?x",
        "me?x",
        "me#x",
        "..%5cme",
        "..%255cme",
        "x%c0%af..%c0%afme",
        "x%u002f%u002e%u002e%u002fme",
        "x%e0%80%af%c0%ae%c0%ae%c0%afme",
    ),
]
SIBLINGS = [
    *encoded(
        "me",
        "ME",
        "Me",
        "mE",
        "export",
        "EXPORT",
        "me.json",
        "me.xml",
        "me;",
        "me;x=1",
        "me.",
        "me..",
        "me ",
        " me",
        "me/",
    ),
    *encoded("me?", "me#", "me\t", "export.csv", "me%20", "me\0", "./me", "ｍｅ", "me;.json", "me.;x"),
]
HOSTS = [
    *encoded("//evil.example/x", "\\\\evil.example\\x", "/\\evil.example", "http://evil.example/", "@evil.example/"),
    *encoded(
        ":80@evil.example",
        "evil.example",
        "user:pw@evil.example",
        "//evil.example",
        "\t//evil.example",
        "x@evil.example",
    ),
    *encoded(
        "https:evil.example", "https:///evil.example", "127.0.0.1:80#@evil.example", "?@evil.example", "169.254.169.254"
    ),
]
INJECTIONS = [
    *encoded(
        "x\r\nX-Evil: 1", "x\nX-Evil: 1", "x\rX-Evil: 1", "\r\n\r\nGET /admin/keys HTTP/1.1\r\nHost: x\r\n\r\n", "x\0y"
    ),
    *encoded(
        "x\r\n Folded",
        "x HTTP/1.1\r\nHost: evil.example",
        "\r\nContent-Length: 0\r\n\r\n",
        "é\r\n",
        "\u010d\u010a",
        "嘊嘍X",
    ),
    *encoded("\x0b", "\x0c", "\x7f", "\x85", "\u2028", "x\tX", " x", "x ", "\x1f"),
]
POLLUTION = [
    *encoded(
        "1&limit=9",
        "1;limit=9",
        "1#limit",
        "1?limit=9",
        "1&admin=true",
        "&",
        ";",
        "#",
        "=",
        "a=b",
        "1+2",
        "a,b",
        "a|b",
        "[]",
    ),
    *encoded("1&q=2", "&&", "x&_method=DELETE", "x;_method=DELETE", "1%26limit=9", "]=1&limit[", "a\tb&c=d", "a b;c=d"),
]
REFERENCES = [
    f"{before}{open_}{inner}{close}{after}"
    for (before, after), (open_, close), inner in product(
        [("", ""), ("x", "y")],
        [("${", "}"), ("{", "}"), ("{{ ", " }}"), ("{% ", " %}"), ("$${", "}")],
        ["caller:token", "env:PLANTED", "context:x", "file:/etc/hostname", "arguments", "caller:userId"],
    )
]
VALUES = {
    "traversal": TRAVERSALS,
    "sibling": SIBLINGS,
    "host": HOSTS,
    "injection": INJECTIONS,
    "pollution": POLLUTION,
    "reference": REFERENCES,
}
PLACES: dict[str, tuple[str, Make]] = {
    "path": ("user", lambda v: {"id": v}),
    "path, a write": ("removeUser", lambda v: {"id": v}),
    "path, first of two": ("file", lambda v: {"a": v, "b": "x"}),
    "path, second of two": ("file", lambda v: {"a": "x", "b": v}),
    "path, both": ("file", lambda v: {"a": v, "b": v}),
    "path, before text": ("report", lambda v: {"name": v}),
    "path, two in a segment": ("range", lambda v: {"a": v, "b": "x"}),
    "path, label": ("label", lambda v: {"id": v}),
    "path, matrix": ("matrix", lambda v: {"id": v}),
    "path, array": ("list", lambda v: {"id": [v, "x"]}),
    "path, object": ("map", lambda v: {"id": {"k": v}}),
    "path, key of an object": ("map", lambda v: {"id": {v: "x"}}),
    "query": ("search", lambda v: {"q": v}),
    "query, reserved": ("search", lambda v: {"raw": v}),
    "query, array": ("search", lambda v: {"many": [v, v]}),
    "query, deep object": ("search", lambda v: {"deep": {"k": v}}),
    "query, key of a deep object": ("search", lambda v: {"deep": {v: "x"}}),
    "query, JSON": ("search", lambda v: {"json": {v: v}}),
    "query, spread": ("spread", lambda v: {"spread": {"k": v}}),
    "header": ("search", lambda v: {"X-Note": v}),
    "header, object": ("search", lambda v: {"X-Map": {"k": v}}),
    "header, key of an object": ("search", lambda v: {"X-Map": {v: "x"}}),
    "cookie": ("search", lambda v: {"tint": v}),
    "cookie, array": ("search", lambda v: {"tints": [v, "x"]}),
    "body, JSON": ("postJson", lambda v: {"requestBody": {"a": v, v or "x": v}}),
    "body, form": ("postForm", lambda v: {"requestBody": {"a": v, v or "x": v}}),
    "body, multipart": ("postParts", lambda v: {"requestBody": {"a": v, v or "x": v}}),
    "body, text": ("postText", lambda v: {"requestBody": v}),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", VALUES)
def test_no_value_in_any_place_leads_a_request_elsewhere(run: Run, kind: str, place: str) -> None:
    name, make = PLACES[place]
    run(name, map(make, VALUES[kind]))
    if place.startswith("query") or place.startswith("body"):
        assert run.sent > len(VALUES[kind]) // 4, "these are data, and are sent"


WORDS = ["DELETE", "delete", "evil.example", "/admin/keys", "chunked", "x"]


def test_no_header_that_steers_can_be_filled(run: Run) -> None:
    run("headers", ({name: word} for name in FORBIDDEN_HEADERS for word in WORDS))


@pytest.mark.parametrize("tool", ["overrides", "baked"])
def test_no_declared_parameter_overrides_the_method(run: Run, tool: str) -> None:
    run(tool, ({name: word} for name in METHOD_KEYS for word in WORDS))


SPELLED = [
    spelled
    for key in METHOD_KEYS
    for spelled in (key, f" {key}", f"{key} ", f"{key}\0x", f"{key}[]", f"x&{key}", f"x;{key}", key.replace("_", "."))
]
KEYS: dict[str, tuple[str, Make]] = {
    "query": ("spread", lambda k: {"spread": {k: "DELETE"}}),
    "cookie": ("crumbs", lambda k: {"crumbs": {k: "DELETE"}}),
    "JSON": ("postJson", lambda k: {"requestBody": {k: "DELETE"}}),
    "form": ("postForm", lambda k: {"requestBody": {k: "DELETE"}}),
    "multipart": ("postParts", lambda k: {"requestBody": {k: "DELETE"}}),
}


@pytest.mark.parametrize("place", KEYS)
def test_no_key_of_an_object_overrides_the_method(run: Run, place: str) -> None:
    name, make = KEYS[place]
    run(name, map(make, SPELLED))


LIMITS = [
    f"{before}{name}{after}"
    for name in ("limit", "Limit", "LIMIT")
    for before in ("", " ")
    for after in ("", " ", "[]", "[0]", "\0", "[x")
]


def test_no_key_of_an_object_is_read_as_another_parameter(run: Run) -> None:
    run("spread", ({"spread": {key: "9"}} for key in LIMITS))
    for received in run.server.requests:
        for name in router.query_names(received):
            seen = name.partition("\0")[0].partition("[")[0].lstrip().casefold()
            assert seen != "limit", received.target


LOCATIONS = [
    place.format(host=host)
    for place in ("{host}", "{host}/x", "//{host}", "http://{host}/users/me", "https://{host}/", "/\\{host}")
    for host in ("evil.example", "127.0.0.1:{port}", "localhost:{port}", "169.254.169.254")
]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308])
def test_no_redirect_is_followed(toolset: Toolset, status: int) -> None:
    assert len(LOCATIONS) >= 20
    places = iter([])

    def redirect(_: Received) -> bytes:
        return answer(status, b"", ("Location", next(places)), ("Refresh", "0; url=/admin/keys"))

    with serving() as other, serving(answering(redirect)) as server:
        places = iter([one.replace("{port}", str(other.port)) for one in LOCATIONS] * 2)
        with Dispatcher(toolset, server=server.url) as dispatcher:
            for name in ["user", "removeUser"] * len(LOCATIONS):
                assert dispatcher.call(name, {"id": "7"}).status == status
    assert server.lines == ["GET /users/7 HTTP/1.1", "DELETE /users/7 HTTP/1.1"] * len(LOCATIONS)
    assert (server.connections, other.connections) == (1, 0)


def test_what_is_tried_on_a_gated_call_reaches_no_server(toolset: Toolset) -> None:
    with serving() as server, Dispatcher(toolset, server=server.url) as dispatcher:
        values = TRAVERSALS + HOSTS + INJECTIONS
        calls = [ToolCall(str(number), "removeUser", {"id": value}) for number, value in enumerate(values)]
        found = asyncio.run(Runtime(dispatcher).submit(calls))
    assert found.results
    assert all(result.sent is Sent.not_sent for result in found.results.values())
    assert server.connections == 0


def test_a_tool_is_data_and_nothing_that_makes_tools_can_send() -> None:
    made_and_listed = """
import json, sys
from toolgen import generate, resolve
from toolgen.tools.export import export
toolset = generate("samples/petstore/petstore.yaml")
for target in ("openai", "openai-strict", "anthropic", "mcp", "json"):
    data = export(toolset, target).data
    assert json.loads(json.dumps(data)) == data
assert not any(map(callable, (toolset, *toolset.tools, resolve(toolset.tool("deletePet"), {"petId": "7"}))))
print([one for one in sys.modules if one.startswith(("toolgen.dispatch", "toolgen.runtime", "http", "urllib3", "anyio"))])
"""
    command = [sys.executable, "-c", made_and_listed]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
