"""No secret comes out of any call, wherever it went in and however the API repeats it.

210 secrets are planted, one for each call and place. The API repeats all it got, in headers, reason phrases and
bodies of every kind, at several depths and in several encodings. Everything that comes out is collected and
searched for each of them: results, previews, representations, errors with the variables of their frames, logs
of all libraries at DEBUG level, spans, files, and what `toolgen call` prints.
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
import json
import logging
import random
import re
import string
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pytest
from raw_server import RawServer, Received, answer, answering, serving
from small_documents import document, made, parameter
from typer.testing import CliRunner

from toolgen import Caller, Dispatcher, Runtime, ToolCall, ToolResult
from toolgen.cli.app import app
from toolgen.dispatch import sending, telemetry
from toolgen.dispatch.settings import Http
from toolgen.errors import ToolgenError
from toolgen.policy.config import ApprovalConfig
from toolgen.tools.model import Leaf, Toolset

DICE = random.Random(7)
DONE = {"200": {"description": "ok", "headers": {"X-Echo": {"schema": {"type": "string"}}}}}
OBJECT = {"type": "object", "additionalProperties": True}


def secret(special: str = "") -> str:
    """A secret that looks like nothing in particular."""
    core = "".join(DICE.choices(string.ascii_letters + string.digits, k=20))
    return core[:10] + special + core[10:]


# What the API repeats

Echo = Callable[[list[str]], tuple[str, bytes]]
ENCODINGS: list[Callable[[str], str]] = [
    str,
    lambda text: quote(text, safe=""),
    lambda text: quote(quote(text, safe=""), safe=""),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(b"x" + text.encode()).decode(),
    lambda text: base64.b64encode(f'{{"k":"{text}"}}'.encode()).decode(),
    lambda text: text.encode().hex(),
    html.escape,
    json.dumps,
    lambda text: json.dumps({"inner": json.dumps({"text": text})}),
    lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    lambda text: f"https://api.example/x?value={quote(text)}#{text}",
    lambda text: f"You sent <{text}>, which is not right.",
]


def spelled(seen: list[str]) -> list[str]:
    return [encode(text) for text in seen for encode in ENCODINGS]


def as_json(seen: list[str]) -> tuple[str, bytes]:
    deep: Any = spelled(seen)
    for name in ("data", "items", "inner"):
        deep = {name: [deep, {"text": seen[0]}]}
    return "application/json", json.dumps({"echo": deep, "keys": dict.fromkeys(spelled(seen), 1)}).encode()


def as_problem(seen: list[str]) -> tuple[str, bytes]:
    detail = " ".join(spelled(seen))
    return "application/problem+json", json.dumps({"title": seen[0], "detail": detail}).encode()


def as_form(seen: list[str]) -> tuple[str, bytes]:
    return "application/x-www-form-urlencoded", "&".join(
        f"a{n}={quote(t)}" for n, t in enumerate(spelled(seen))
    ).encode()


def as_events(seen: list[str]) -> tuple[str, bytes]:
    lines = (f"data: {json.dumps({'text': text})}\nid: {text}\n\n" for text in spelled(seen))
    return "text/event-stream", "".join(lines).encode()


def plainly(kind: str) -> Echo:
    return lambda seen: (kind, "\n".join(spelled(seen)).encode())


ECHOES: list[Echo] = [
    as_json,
    as_problem,
    as_form,
    as_events,
    *map(plainly, ("text/plain", "text/html", "application/xml", "application/octet-stream", "application/json")),
]
STATUSES = [200, 400, 201, 401, 302, 403, 200, 500, 422]


def seen_in(received: Received) -> list[str]:
    """What a server has of a request: as it came, and taken apart."""
    target = urlsplit(received.target)
    found = [received.target, *unquote(target.path).split("/"), *(value for _, value in parse_qsl(target.query))]
    for name, value in received.headers:
        if name.lower() == "cookie":
            found += [value, *(pair.partition("=")[2] for pair in value.split("; "))]
        elif name.lower() in ("authorization", "x-leaf"):
            found += [value, value.split(" ")[1]]
        elif name.lower() not in ("host", "accept", "user-agent", "accept-encoding", "content-length", "content-type"):
            found.append(value)
        if value.startswith("Basic "):
            pair = base64.b64decode(value[6:]).decode()
            found += [pair, pair.partition(":")[2]]
    body = received.body.decode()
    found.append(body)
    if (received.header("content-type") or "").endswith("form-urlencoded"):
        found += [value for _, value in parse_qsl(body)]
    found += re.findall(r'"([^"]{12,})"', body) + re.findall(r"\r\n\r\n([^\r]{12,})", body)
    return list(dict.fromkeys(text for text in found if len(text) >= 12))


class Api:
    """An API that repeats all it got, each time in another way; its token endpoint does so in its errors."""

    def __init__(self) -> None:
        self.number = count()
        self.issue: str | None = None  # the access token it gives; none: an error

    def __call__(self, received: Received) -> bytes:
        seen, number = seen_in(received) or ["nothing"], next(self.number)
        if received.target == "/token":
            if self.issue is not None:
                return answer(200, json.dumps({"access_token": self.issue, "token_type": "bearer"}).encode())
            said = {"error": seen[0], "error_description": " ".join(spelled(seen)), "error_uri": seen[-1]}
            return answer(400, json.dumps(said).encode(), reason=" ".join(map(quote, seen)))
        kind, body = ECHOES[number % len(ECHOES)](seen)
        texts = [quote(text, safe="") if not text.isascii() or "\n" in text or "\r" in text else text for text in seen]
        joined = ", ".join(spelled(texts))
        names = ("X-Request-Id", "ETag", "Location", "Link", "X-Echo", "Set-Cookie", "WWW-Authenticate", "X-Next-Page")
        headers = [(name, texts[-1] if name == "Location" else joined) for name in names]
        return answer(STATUSES[number % len(STATUSES)], body, *headers, reason=texts[0][:200], kind=kind)


# What comes out


def forms(text: str) -> set[str]:
    """Every way in which a secret could stand in an output."""
    core = base64.b64encode
    aligned = {core(b"\0" * shift + text.encode()).decode()[4:].rstrip("=")[:-2] for shift in range(3)}
    found = {text, quote(text, safe=""), quote(quote(text, safe=""), safe=""), text.encode().hex(), html.escape(text)}
    found |= {json.dumps(text)[1:-1], "".join(f"\\u{ord(c):04x}" for c in text), text[:10], text[-10:]}
    return found | aligned | {one.replace("+", "-").replace("/", "_") for one in aligned}


@dataclass
class Outputs:
    """Everything that came out, by where it did."""

    texts: list[tuple[str, str]] = field(default_factory=list)
    logs: io.StringIO = field(default_factory=io.StringIO)

    def add(self, place: str, *things: Any) -> None:
        self.texts += [(place, thing if isinstance(thing, str) else repr(thing)) for thing in things]

    def result(self, result: ToolResult) -> None:
        self.add("result", str(result), result)
        self.add("result as JSON", json.dumps(result.to_dict(), ensure_ascii=False))

    def error(self, error: BaseException, *, variables: bool = True) -> None:
        """An error as a reporter writes it down: with all frames, contexts and variables, but for those of this test."""
        self.add("error", str(error), error, vars(error))
        given: BaseException | None = error
        while given is not None:
            told = traceback.TracebackException.from_exception(given, capture_locals=variables)
            for frame in told.stack:
                if frame.filename != __file__:
                    self.add(f"variables of {frame.name}", f"{frame.line} {frame.locals}")
            given = given.__cause__ or given.__context__

    def leaks(self, secrets: list[str]) -> list[str]:
        self.add("logs", self.logs.getvalue())
        everything = "\0".join(text for _, text in self.texts)
        return [
            f"{one} as {form} in {place}: ...{text[max(0, text.index(form) - 60) : text.index(form) + 60]}..."
            for one in secrets
            for form in forms(one)
            if form in everything
            for place, text in self.texts
            if form in text
        ]


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outputs]:
    """Collects logs of all libraries and all attributes of spans, too."""
    found = Outputs()
    handler = logging.StreamHandler(found.logs)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)

    class Kept:
        def record(self, *told: Any) -> None:
            found.add("metric", told)

    monkeypatch.setattr(telemetry, "_durations", Kept)
    yield found
    root.removeHandler(handler)
    root.setLevel(level)


SCHEMES: dict[str, Any] = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Custom"},
    "query": {"type": "apiKey", "in": "query", "name": "who"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "c"},
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {}},
}
NAMED = [("password", "query"), ("X-Api-Key", "header"), ("session", "cookie"), ("token", "path")]


def operation(name: str, security: list[str], *parameters: Any, body: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": name, "parameters": list(parameters), "responses": DONE}
    found["security"] = [{scheme: []} for scheme in security]
    if body:
        found["requestBody"] = {"content": {body: {"schema": OBJECT}}}
    return found


@pytest.fixture(scope="module")
def toolset() -> Toolset:
    paths: dict[str, Any] = {f"/{one}": {"post": operation(one, [one], parameter("q"))} for one in SCHEMES}
    for name, place in NAMED:
        path = "/by/{token}" if place == "path" else f"/in-{place}"
        paths[path] = {"post": operation(f"in_{place}", [], parameter(name, place))}
    for kind, media in (
        ("json", "application/json"),
        ("form", "application/x-www-form-urlencoded"),
        ("parts", "multipart/form-data"),
    ):
        paths[f"/body-{kind}"] = {"post": operation(f"body_{kind}", [], body=media)}
    paths["/leaf"] = {"post": operation("leaf", [])}
    found = made(document(paths, components={"securitySchemes": SCHEMES}), api="small", server="https://api.example")
    tools = tuple(
        tool.model_copy(
            update={
                "request": tool.request.model_copy(
                    update={"header": (Leaf(name="X-Leaf", value="a ${env:PLANTED} b"),)}
                )
            }
        )
        if tool.name == "leaf"
        else tool
        for tool in found.tools
    )
    return found.model_copy(update={"tools": tools})


@dataclass
class Case:
    """One planted secret: the tool, the arguments, the credentials, and how the secret gets where it is read."""

    tool: str
    value: str
    credentials: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    where: str = "env"


def cases(folder: Path, url: str) -> Iterator[Case]:
    def each(number: int, special: str = "") -> Iterator[str]:
        return (secret(special) for _ in range(number))

    env = "${env:PLANTED}"
    for scheme, special in (
        ("header", '+/="&'),
        ("query", '+/&="é %'),
        ("cookie", "-_"),
        ("bearer", "-._~+/"),
        ("oauth", ""),
    ):
        yield from (Case(scheme, one, {scheme: env}) for one in each(15, special))
    yield from (Case("basic", one, {"basic": {"username": "svc", "password": env}}) for one in each(15, ":/é"))
    yield from (Case("basic", f"svc:{one}", {"basic": env}) for one in each(10))
    yield from (Case("bearer", one, {"bearer": f"Bearer {env}"}) for one in each(5))
    yield from (Case("bearer", one, {"bearer": f"${{file:{folder / 'planted'}}}"}, where="file") for one in each(15))
    yield from (Case("bearer", one, {"bearer": "${caller:token}"}, where="caller") for one in each(20))
    yield from (Case("bearer", one, {"bearer": "${caller:token}"}, where="exchange") for one in each(10))
    client = {"clientId": "svc", "clientSecret": env, "tokenUrl": f"{url}/token"}
    yield from (Case("oauth", one, {"oauth": client}, where="env") for one in each(10))
    yield from (Case("oauth", one, {"oauth": client}, where="issued") for one in each(10))
    yield from (Case("leaf", one) for one in each(5))
    for name, place in NAMED:
        yield from (Case(f"in_{place}", one, arguments={name: one}, where="") for one in each(5))
    for kind in ("json", "form", "parts"):
        for one in each(5, "+&é"):
            deep = {"clientSecret": one} if kind != "json" else {"a": [{"user": {"password": one}, "note": "x"}]}
            yield Case(f"body_{kind}", one, arguments={"requestBody": deep}, where="")


class Plant:
    """Makes calls with planted secrets."""

    def __init__(self, toolset: Toolset, server: RawServer, api: Api, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.toolset, self.server, self.api, self.folder, self.patch = toolset, server, api, folder, patch

    def set(self, case: Case) -> None:
        self.api.issue = case.value if case.where == "issued" else None
        self.patch.setenv("PLANTED", case.value if case.where == "env" else "another-value")
        if case.where == "file":
            (self.folder / "planted").write_text(case.value)

    def caller(self, case: Case) -> Caller:
        token = case.value if case.where == "caller" else "some-other-token"
        return Caller("u", token, origin=self.server.url if case.where == "caller" else None)

    def dispatcher(self, case: Case, **options: Any) -> Dispatcher:
        exchange = {self.server.url: lambda *_: case.value} if case.where == "exchange" else None
        options = {"server": self.server.url, "exchange": exchange, "http": Http(retries=0), **options}
        return Dispatcher(self.toolset, credentials=case.credentials, **options)


@pytest.fixture
def plant(toolset: Toolset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    api = Api()
    with serving(answering(api)) as server:
        yield Plant(toolset, server, api, tmp_path, monkeypatch)


def test_no_secret_comes_out_of_a_call_whose_api_repeats_it(plant: Plant, outputs: Outputs, capfd: Any) -> None:
    planted = list(cases(plant.folder, plant.server.url))
    assert len({case.value for case in planted}) >= 200
    reached = set()
    for case in planted:
        plant.set(case)
        before = len(plant.server.requests)
        with plant.dispatcher(case) as dispatcher:
            request = dispatcher.resolve(case.tool, case.arguments, caller=plant.caller(case))
            outputs.add("request", request, dispatcher, dispatcher.upstreams, plant.caller(case))
            shown = request.preview()
            outputs.add("preview", shown, str(shown), json.dumps(shown.to_dict(), ensure_ascii=False))
            try:
                outputs.result(dispatcher.call(case.tool, case.arguments, caller=plant.caller(case)))
            except ToolgenError as error:
                outputs.error(error)
        came = "\n".join(text for one in plant.server.requests[before:] for text in seen_in(one))
        if case.value in came or quote(case.value, safe="") in came:
            reached.add(case.value)
    assert len(reached) > 195, "the API got them, and repeated them"
    captured = capfd.readouterr()
    outputs.add("stdout and stderr", captured.out, captured.err)
    assert outputs.leaks([case.value for case in planted]) == []
    assert len(outputs.texts) > 2000
    assert "close.complete" in outputs.logs.getvalue(), "the libraries do log"


def test_no_secret_comes_out_of_calls_through_the_runtime(plant: Plant, outputs: Outputs) -> None:
    planted = [case for case in cases(plant.folder, plant.server.url) if case.where in ("env", "caller")][::5]
    for case in planted:
        plant.set(case)
        with plant.dispatcher(case) as dispatcher:
            calls = [
                ToolCall("1", case.tool, case.arguments),
                ToolCall("2", case.tool, {"q": 5}),
                ToolCall("3", "bearer", {}),
            ]
            for config in (ApprovalConfig.off(), None):
                found = asyncio.run(Runtime(dispatcher, config).submit(calls, caller=plant.caller(case)))
                for result in found.results.values():
                    outputs.result(result)
                if found.pause is not None:
                    outputs.add("pause", f"{found.pause!r} {json.dumps(found.pause.to_dict())}")
    assert outputs.leaks([case.value for case in planted]) == []


def breaks(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a fault")


def address(plant: Plant, case: Case) -> None:
    url = "http://name.example:1"

    async def resolver(*_: Any) -> list[str]:
        return ["127.0.0.1"]

    plant.patch.setattr("toolgen.dispatch.transport.resolve", resolver)
    with Dispatcher(plant.toolset, server=url, credentials=case.credentials) as dispatcher:
        dispatcher.call(case.tool, {}, caller=Caller("u", case.value, origin=url))


def another_origin(plant: Plant, case: Case) -> None:
    with plant.dispatcher(case, server="https://other.example") as dispatcher:
        dispatcher.call(case.tool, {}, caller=Caller("u", case.value, origin="https://app.example"))


def a_character(plant: Plant, case: Case) -> None:
    plant.patch.setenv("PLANTED", f"{case.value}\x07")
    with plant.dispatcher(case) as dispatcher:
        dispatcher.call(case.tool, {}, caller=Caller("u", f"{case.value}\x07", origin=plant.server.url))


def filled_twice(plant: Plant, case: Case) -> None:
    (binding,) = case.credentials
    tool = plant.toolset.tool(case.tool)
    doubled = {"header": "X-Custom", "bearer": "Authorization", "basic": "Authorization", "oauth": "Authorization"}
    leaf = Leaf(name=doubled.get(binding, "who"), value="x")
    place = "query" if binding == "query" else "cookie" if binding == "cookie" else "header"
    if place == "cookie":
        leaf = Leaf(name="c", value="x")
    request = tool.request.model_copy(update={place: (leaf,)})
    toolset = plant.toolset.model_copy(update={"tools": (tool.model_copy(update={"request": request}),)})
    toolset = Toolset.model_validate(toolset.model_dump(by_alias=True))
    with Dispatcher(toolset, server=plant.server.url, credentials=case.credentials) as dispatcher:
        dispatcher.call(case.tool, {}, caller=plant.caller(case))


def a_url(plant: Plant, case: Case) -> None:
    plant.patch.setattr("toolgen.dispatch.prepared._without_default_port", lambda *_: "elsewhere")
    with plant.dispatcher(case) as dispatcher:
        dispatcher.call(case.tool, {}, caller=plant.caller(case))


def a_fault(plant: Plant, case: Case) -> None:
    plant.patch.setattr(sending, "read_answer", breaks)
    with plant.dispatcher(case) as dispatcher:
        dispatcher.call(case.tool, {}, caller=plant.caller(case))


def cancelled(plant: Plant, case: Case) -> None:
    async def main() -> None:
        dispatcher = plant.dispatcher(case)

        async def later() -> ToolResult:
            return await dispatcher.acall(case.tool, {}, caller=plant.caller(case))

        task = asyncio.create_task(later())
        await asyncio.to_thread(plant.server.came.wait, 5)
        task.cancel()
        await task

    plant.patch.setattr(sending, "read_answer", lambda *_, **__: asyncio.Event().wait())
    asyncio.run(main())


@pytest.mark.parametrize("failing", [address, another_origin, a_character, filled_twice, a_url, a_fault, cancelled])
def test_no_secret_is_in_an_error_or_in_the_variables_of_its_frames(
    plant: Plant, outputs: Outputs, failing: Callable[[Plant, Case], None]
) -> None:
    kinds: dict[str, Case] = {}
    for case in cases(plant.folder, plant.server.url):
        if case.credentials and case.where in ("env", "caller") and "tokenUrl" not in str(case.credentials):
            kinds.setdefault(f"{case.tool} {case.where} {case.credentials}", case)
    raised = 0
    for case in kinds.values():
        plant.set(case)
        plant.server.came.clear()
        try:
            with plant.patch.context() as patch:
                failing(Plant(plant.toolset, plant.server, plant.api, plant.folder, patch), case)
        except BaseException as error:
            outputs.error(error)
            raised += 1
    assert raised >= (1 if failing is another_origin else len(kinds) - 2)
    assert outputs.leaks([case.value for case in kinds.values()]) == []


def test_no_secret_is_printed_by_the_command_line_or_written_to_a_file(
    plant: Plant, outputs: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plant.folder)
    plant.toolset.save("small.tools.yaml")
    planted = [case for case in cases(plant.folder, plant.server.url) if case.where in ("env", "")]
    chosen = list({f"{case.tool} {case.credentials}": case for case in planted}.values())
    for case in chosen:
        plant.set(case)
        command = ["call", "small.tools.yaml", case.tool, "--args", json.dumps(case.arguments), "--no-gate"]
        command += ["--server", plant.server.url]
        for name, reference in case.credentials.items():
            command += ["--credential", f"{name}={reference if isinstance(reference, str) else json.dumps(reference)}"]
        for more in ([], ["--format", "json"], ["--dry-run"], ["--dry-run", "--format", "json"]):
            done = CliRunner().invoke(app, command + more)
            assert done.exit_code in (0, 1), done.output
            outputs.add("the command line", done.output, done.exception)
    files = [path for path in plant.folder.rglob("*") if path.is_file()]
    outputs.add("files", *(path.read_text() for path in files))
    assert outputs.leaks([case.value for case in chosen]) == []
