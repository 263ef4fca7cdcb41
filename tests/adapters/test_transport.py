"""Whatever program makes a request, it is classified as the operation it is, or refused; nothing else sends it."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from door_world import ANN, BOSS, World, run, world_in
from hypothesis import given
from hypothesis import strategies as st
from small_documents import document, parameter

from toolgen import ApprovalConfig, Caller, Decision, Dispatcher, Pause, Runtime, Verdict, generate
from toolgen.adapters.transport import GatedTransport
from toolgen.approvals.model import Remember, Scope
from toolgen.dispatch.settings import Http
from toolgen.errors import ApprovalPending, CallRefused, DecisionInvalid, PauseConflict, RequestError, UsageError
from toolgen.identity.caller import bind_caller
from toolgen.request.match import match
from toolgen.result import Refused

REX = {"name": "Rex"}
DONE = {"200": {"description": "ok"}}
URL = "https://api.example/v1"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPORT_KEY", "k3y-of-the-shop")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made
        asyncio.run(made.close())


def small(paths: Any, config: Any = None, *, answer: Any = None, schemes: Any = None, **more: Any) -> Any:
    """A runtime over an API of these paths, and what it was sent."""
    sent: list[httpx2.Request] = []

    def answers(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return answer(request) if answer else httpx2.Response(200, json={"n": len(sent)})

    operations = {
        path: {method: {"operationId": name, "responses": DONE, **_values(path)} for method, name in methods.items()}
        for path, methods in paths.items()
    }
    parts = {"components": {"securitySchemes": schemes}} if schemes else {}
    toolset = generate(document(operations, **parts, **more.pop("document", {})), api="api", server=URL)
    dispatcher = Dispatcher(toolset, transport=httpx2.MockTransport(answers), **more)
    return Runtime(dispatcher, ApprovalConfig.parse(config) if config is not None else None, background=False), sent


def _values(path: str) -> dict[str, Any]:
    return {"parameters": [parameter(name, "path") for name in re.findall(r"{(\w+)}", path)]}


PETS = {
    "/pets": {"get": "list", "post": "add"},
    "/pets/{id}": {"get": "show", "delete": "remove"},
    "/pets/mine": {"get": "mine"},
    "/pets/{id}/photos": {"get": "photos"},
}


def tries(runtime: Runtime, method: str, url: str, caller: Caller | None = ANN, **more: Any) -> Any:
    """The response, the pause, or what refused it."""

    async def main() -> Any:
        async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=caller)) as client:
            try:
                return await client.request(method, url, **more)
            except ApprovalPending as error:
                return error.pause
            except CallRefused as error:
                return error.result

    return run(runtime, main())


# What a request calls


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/pets", "list"),
        ("GET", "/pets/7", "show"),
        ("GET", "/pets/mine", "mine"),  # a literal path goes before a templated one
        ("GET", "/pets/a%20b", "show"),
        ("GET", "/pets/7?x=1", "show"),
        ("GET", "/pets/7/photos", "photos"),
        ("DELETE", "/pets/7", "remove"),
    ],
)
def test_a_request_is_the_operation_of_its_server_method_and_path(method: str, path: str, name: str) -> None:
    runtime, _ = small(PETS)
    found = match(runtime.known[0].dispatcher.operations(), method, f"{URL}{path}")  # type: ignore[union-attr]
    assert found.tool is not None
    assert found.tool.name == name


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example/v1/pets/..",
        "https://api.example/v1/pets/%2e%2e",
        "https://api.example/v1/pets/%2E%2E/pets",
        "https://api.example/v1/pets/%252e%252e",
        "https://api.example/v1/pets//",
        "https://api.example/v1//pets",
        "https://api.example/v1/pets/a%2Fphotos",
        "https://api.example/v1/pets/a%5Cb",
        "https://api.example/v1/pets/a%00",
        "https://api.example/v1/pets/;x",
        "https://api.example/v1/pets/MINE",
        "https://api.example/v1/pets/mine.json",
        "https://api.example/v1/pets/%6dine",
        "https://api.example/v1/pets/a%",
        "https://api.example/v1/pets/a b",
        "https://api.example/v1/pets/\u2215",
        "https://api.example/v2/pets",
        "https://api.example/v1x/pets",
        "https://api.example/",
        "https://api.example:444/v1/pets",
        "http://api.example/v1/pets",
        "https://user@api.example/v1/pets",
        "https://api.example.evil.example/v1/pets",
        "https://api.example@evil.example/v1/pets",
        "https://other.example/v1/pets",
        "//api.example/v1/pets",
        "pets",
        "",
    ],
)
def test_what_a_server_could_read_otherwise_or_nobody_names_is_no_operation(url: str) -> None:
    runtime, sent = small(PETS)
    try:
        found = match(runtime.known[0].dispatcher.operations(), "GET", url)  # type: ignore[union-attr]
    except RequestError:
        return
    assert found.tool is None  # then it waits, and has no credentials
    assert sent == []


@given(st.text(alphabet="abAB./%2eEfF5cC;?#\\\u2215\u2025 -_~@:", max_size=12))
def test_no_spelling_of_a_path_value_is_allowed_that_does_not_lead_to_its_operation(value: str) -> None:
    runtime, _ = RUNTIME
    url = f"{URL}/pets/{value}"
    try:
        found = match(runtime.known[0].dispatcher.operations(), "GET", url)
    except RequestError:
        return
    if found.tool is None:
        return
    path = url.partition("#")[0].partition("?")[0]
    assert found.tool.name == "mine" if path.endswith("/pets/mine") else found.tool.name in ("show", "list", "photos")
    assert ".." not in path.replace("%2e", ".").replace("%2E", ".").split("/")
    assert "//" not in path.partition("://")[2]
    assert "%2f" not in path.lower()
    assert "%5c" not in path.lower()


RUNTIME = small(PETS)


def test_a_path_that_two_templates_have_alike_is_refused() -> None:
    runtime, sent = small({"/{a}/list": {"get": "one"}, "/pets/{b}": {"get": "two"}})
    result = tries(runtime, "GET", f"{URL}/pets/list")
    assert "several operations" in result.message
    assert sent == []


# What becomes of it


def test_an_operation_that_nobody_declared_waits_or_is_denied_and_is_never_simply_sent() -> None:
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    config = {"unmatched": "allow", "deny": ["http.delete:*"]}
    more = {"schemes": schemes, "document": {"security": [{"key": []}]}}
    runtime, sent = small(PETS, config, credentials={"key": "${env:TRANSPORT_KEY}"}, **more)
    assert tries(runtime, "GET", f"{URL}/pets").status_code == 200
    assert sent.pop().headers["X-Key"] == "k3y-of-the-shop"
    for method, path in (("GET", "/owners"), ("PATCH", "/pets/7"), ("HEAD", "/pets"), ("POST", "/pets/7/sell")):
        found = tries(runtime, method, f"{URL}{path}")
        assert isinstance(found, Pause), (method, path, found)
        assert found.calls[0].endpoint == f"{method.lower()}:{path}"
        assert "no such operation" in str(found.calls[0].preview)
    assert tries(runtime, "DELETE", f"{URL}/owners/7").refused is Refused.denied
    assert tries(runtime, "BREW", f"{URL}/pets").refused is Refused.denied
    assert sent == []
    pause = tries(runtime, "GET", f"{URL}/owners")
    asyncio.run(runtime.decide(pause.id, Decision("approved"), decider=BOSS))
    assert tries(runtime, "GET", f"{URL}/owners").status_code == 200
    (request,) = sent
    assert "X-Key" not in request.headers  # nobody wrote down that it may have it


def test_the_programs_credentials_go_nowhere_and_the_runtimes_own_do() -> None:
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "key"}, "user": {"type": "http", "scheme": "bearer"}}
    runtime, sent = small(
        PETS,
        {"unmatched": "allow"},
        schemes=schemes,
        document={"security": [{"user": [], "key": []}]},
        credentials={"user": "${caller:token}", "key": "${env:TRANSPORT_KEY}"},
    )
    ann = Caller("ann", "token-of-ann", "https://api.example")
    headers = {
        "Authorization": "Bearer of-the-program",
        "Cookie": "session=of-the-program",
        "Proxy-Authorization": "Basic of-the-program",
        "X-Api-Key": "of-the-program",
        "X-Auth-Token": "of-the-program",
        "X-Forwarded-For": "1.2.3.4",
        "Forwarded": "for=1.2.3.4",
        "X-Trace": "kept",
    }
    response = tries(runtime, "GET", f"{URL}/pets?key=of-the-program&q=1", ann, headers=headers)
    assert response.status_code == 200
    (request,) = sent
    assert "of-the-program" not in str(request.headers.multi_items()) + str(request.url)
    assert request.headers["Authorization"] == "Bearer token-of-ann"
    assert request.headers["X-Trace"] == "kept"
    assert "1.2.3.4" not in str(request.headers.multi_items())
    assert request.url.params["q"] == "1"


@pytest.mark.parametrize(
    "steering",
    [
        {"headers": {"X-HTTP-Method-Override": "DELETE"}},
        {"headers": {"X_Http_Method": "DELETE"}},
        {"headers": {"x-method-override": "DELETE"}},
        {"params": {"_method": "DELETE"}},
    ],
)
def test_a_request_that_says_another_method_than_its_own_is_refused(steering: Any) -> None:
    runtime, sent = small(PETS, {"unmatched": "allow"})
    assert tries(runtime, "GET", f"{URL}/pets", **steering).refused is Refused.denied
    assert sent == []


def test_an_answer_is_handed_on_as_it_is_but_for_cookies_and_known_secrets() -> None:
    def answers(request: httpx2.Request) -> httpx2.Response:
        headers = [
            ("Set-Cookie", "a=b"),
            ("ETag", '"7"'),
            ("Link", "<x>; rel=next"),
            ("X-Echo", request.headers["X-Key"]),
        ]
        body = b'{"n": 1.50, "echo": "' + request.headers["X-Key"].encode() + b'"}\n'
        return httpx2.Response(418, headers=[*headers, ("Content-Type", "application/json")], content=body)

    runtime, _ = small(
        PETS,
        {"unmatched": "allow"},
        answer=answers,
        schemes={"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        document={"security": [{"key": []}]},
        credentials={"key": "${env:TRANSPORT_KEY}"},
    )
    response = tries(runtime, "GET", f"{URL}/pets")
    assert response.status_code == 418
    assert response.headers["ETag"] == '"7"'
    assert response.headers["Link"] == "<x>; rel=next"
    assert "set-cookie" not in response.headers
    assert response.content.startswith(b'{"n": 1.50, ')
    assert "k3y-of-the-shop" not in response.text + str(response.headers.multi_items())


def test_an_answer_that_is_too_large_is_an_error_and_never_cut() -> None:
    runtime, sent = small(
        PETS,
        {"unmatched": "allow"},
        answer=lambda _: httpx2.Response(200, content=b"x" * 2000),
        http=Http(max_answer_bytes=1000),
    )
    result = tries(runtime, "GET", f"{URL}/pets")
    assert result.status == 200
    assert len(sent) == 1


def test_requests_too_large_to_be_looked_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgen.adapters.transport.LARGEST_BODY", 10)
    runtime, sent = small(PETS, {"unmatched": "allow"})
    assert "at most 10 bytes" in tries(runtime, "POST", f"{URL}/pets", content=b"x" * 11).message
    assert tries(runtime, "POST", f"{URL}/pets", content=b"x" * 10).status_code == 200
    assert len(sent) == 1


def test_what_a_transport_is_given_is_used_by_the_runtime_alone(world: World) -> None:
    seen: list[str] = []

    def inner(request: httpx2.Request) -> httpx2.Response:
        seen.append(f"{request.method} {request.url.path}")
        return httpx2.Response(200, json={})

    runtime = world.runtime()

    async def main() -> None:
        transport = GatedTransport(runtime, httpx2.MockTransport(inner), caller=ANN)
        async with httpx2.AsyncClient(transport=transport) as client:
            with pytest.raises(ApprovalPending) as asked:
                await client.post(f"{world.api.url}/pets", json=REX)
            assert seen == []
            await world.decide(asked.value.pause.id)
            await client.post(f"{world.api.url}/pets", json=REX)
        assert seen == ["POST /pets"]
        assert world.api.lines == []

    world.run(main())


# What waits


def test_the_same_request_while_it_waits_is_the_one_that_waits_and_another_is_not(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    first = tries(runtime, "POST", url, json=REX)
    assert tries(runtime, "POST", url, json=REX).id == first.id
    others = [
        tries(runtime, "POST", url, json={"name": "Tom"}),
        tries(runtime, "POST", f"{url}?x=1", json=REX),
        tries(runtime, "POST", url, Caller("eve"), json=REX),
        tries(runtime, "POST", url, Caller("ann", tenant="other"), json=REX),
        tries(runtime, "POST", url, json=REX, headers={"X-More": "1"}),
    ]
    assert len({first.id, *(one.id for one in others)}) == 6
    world.run(world.decide(first.id))
    for more in ({"json": {"name": "Tom"}}, {"json": REX, "caller": Caller("eve")}):
        assert isinstance(tries(runtime, "POST", url, **more), Pause)
    assert world.api.lines == []
    assert tries(runtime, "POST", url, json=REX).status_code == 200
    assert isinstance(tries(runtime, "POST", url, json=REX), Pause)  # once: the next one is asked about
    assert world.api.lines == ["POST /pets"]


def test_of_twenty_that_are_made_again_at_once_one_goes_out(world: World) -> None:
    url = f"{world.api.url}/pets"
    pause = tries(world.runtime(), "POST", url, json=REX)
    world.run(world.decide(pause.id))
    processes = [world.runtime(), world.runtime()]

    async def one(runtime: Runtime) -> Any:
        async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=ANN)) as client:
            try:
                return (await client.post(url, json=REX)).status_code
            except ApprovalPending:
                return "asked anew"
            except CallRefused as error:
                return error.result.sent.value

    async def main() -> list[Any]:
        return await asyncio.gather(*(one(processes[n % 2]) for n in range(20)))

    found = world.run(main())
    assert found.count(200) == 1
    assert world.api.lines == ["POST /pets"]


def test_nobody_but_the_program_sends_it(world: World) -> None:
    async def callers(subject: str, tenant: str) -> Caller:
        return Caller(subject, tenant=tenant)

    worker = world.runtime(callers=callers)
    pause = tries(world.runtime(), "POST", f"{world.api.url}/pets", json=REX)
    world.run(world.decide(pause.id))
    with pytest.raises(PauseConflict, match="sends it again"):
        world.run(worker.resume(pause.id, caller=ANN))
    world.run(worker.sweep())
    kept = worker.store.pause(pause.id, "default")
    assert [call.state.value for call in kept.calls] == ["approved"]
    assert kept.calls[0].arguments == {}
    assert world.api.lines == []
    assert tries(world.runtime(), "POST", f"{world.api.url}/pets", json=REX).status_code == 200


def test_it_cannot_be_amended_or_taken_over_by_a_thread_of_a_host(world: World) -> None:
    runtime = world.runtime()
    pause = tries(runtime, "POST", f"{world.api.url}/pets", json=REX)
    change = Decision("approved", calls={pause.calls[0].id: Verdict("approved", arguments={})}, revision=pause.revision)
    with pytest.raises(DecisionInvalid, match="not valid"):
        world.run(runtime.decide(pause.id, change, decider=BOSS))
    with pytest.raises(UsageError, match="toolgen's own"):
        world.run(runtime.submit([], thread=pause.thread))


def test_a_remembered_approval_holds_for_the_very_request(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = tries(runtime, "POST", url, json=REX)
    wish = Verdict("approved", remember=Remember(Scope.exact, uses=1))
    decision = Decision("approved", calls={pause.calls[0].id: wish}, revision=pause.revision)
    world.run(runtime.decide(pause.id, decision, decider=BOSS))
    assert tries(runtime, "POST", url, json=REX).status_code == 200
    assert isinstance(tries(runtime, "POST", url, json={"name": "Tom"}), Pause)
    assert tries(runtime, "POST", url, json=REX).status_code == 200
    assert isinstance(tries(runtime, "POST", url, json=REX), Pause)
    assert len(world.api.seen) == 2


def test_a_refusal_stands_for_a_while_and_is_not_asked_about_again_and_again(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = tries(runtime, "POST", url, json=REX)
    world.run(world.decide(pause.id, "rejected", note="No."))
    for _ in range(3):
        assert tries(runtime, "POST", url, json=REX).refused is Refused.rejected
    assert len(runtime.store.pauses()) == 1


def test_a_request_can_wait_for_the_decision(world: World) -> None:
    runtime = world.runtime()

    async def main() -> None:
        waiting = GatedTransport(runtime, caller=ANN, wait=True)
        async with httpx2.AsyncClient(transport=waiting, timeout=None) as client:
            asked = asyncio.Event()
            runtime.on_change(lambda _, what: asked.set() if what == "paused" else None)
            sending = asyncio.create_task(client.post(f"{world.api.url}/pets", json=REX))
            await asked.wait()
            (pause,) = runtime.store.pauses()
            assert world.api.lines == []
            await runtime.decide(pause.id, Decision("approved"), decider=BOSS)
            assert (await sending).status_code == 200
        async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=ANN, wait=0.01)) as client:
            with pytest.raises(ApprovalPending):
                await client.post(f"{world.api.url}/pets", json={"name": "Tom"})

    world.run(main())


def test_the_bound_caller_is_who_asks(world: World) -> None:
    runtime = world.runtime()

    async def main() -> Pause:
        async with httpx2.AsyncClient(transport=GatedTransport(runtime)) as client:
            with bind_caller(Caller("bound")), pytest.raises(ApprovalPending) as asked:
                await client.post(f"{world.api.url}/pets", json=REX)
            found: Pause = asked.value.pause
            return found

    assert world.run(main()).requester == "bound"


def test_a_client_that_tries_again_by_itself_meets_the_gate_each_time(world: World) -> None:
    """Retries of SDKs are for errors of the network: what waits is none."""
    runtime = world.runtime()

    async def main() -> None:
        async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=ANN)) as client:
            for _ in range(3):
                try:
                    await client.post(f"{world.api.url}/pets", json=REX)
                except httpx2.TransportError:
                    raise AssertionError("it looks like a fault of the network") from None
                except ApprovalPending:
                    pass

    world.run(main())
    assert len(runtime.store.pauses()) == 1
    assert world.api.lines == []


@pytest.mark.parametrize(
    "query",
    [
        "action=list&action=delete",
        "action=list&Action=delete",
        "action=list&%61ction=delete",
        "action=list&action[]=delete",
        "action=list&x=1;action=delete",
    ],
)
def test_a_query_from_which_a_server_could_take_another_operation_is_refused(query: str) -> None:
    runtime, sent = small({"/x?action=list": {"get": "list"}}, {"unmatched": "allow"})
    assert tries(runtime, "GET", f"{URL}/x?action=list&page=2").status_code == 200
    assert tries(runtime, "GET", f"{URL}/x?{query}").refused is Refused.denied
    assert len(sent) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"_method": "DELETE"}},
        {"json": {"_method": "DELETE"}},
        {"files": {"_method": (None, "DELETE")}},
        {"content": b"x=1&%5Fmethod=DELETE", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"url": f"{URL}/pets?x=1;_method=DELETE"},
        {"content": b"{}", "headers": [("Content-Type", "application/json"), ("Content-Type", "text/plain")]},
        {"content": b"{}", "headers": {"Content-Type": "application/json; charset=utf-7"}},
    ],
)
def test_a_body_that_says_another_method_or_is_read_in_two_ways_is_refused(body: Any) -> None:
    runtime, sent = small(PETS, {"unmatched": "allow"})
    assert tries(runtime, "POST", **{"url": f"{URL}/pets", **body}).refused is Refused.denied
    assert sent == []


def test_approvals_of_arguments_hold_for_no_request_whose_arguments_nobody_knows(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = tries(runtime, "POST", url, json=REX)
    wish = Verdict("approved", remember=Remember(Scope.fields, fields=("name",), uses=5))
    decision = Decision("approved", calls={pause.calls[0].id: wish}, revision=pause.revision)
    world.run(runtime.decide(pause.id, decision, decider=BOSS))
    assert tries(runtime, "POST", url, json=REX).status_code == 200
    assert isinstance(tries(runtime, "POST", url, json={"name": "Tom"}), Pause)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_of_a_body_that_is_not_sent_no_length_is_made_up(method: str, status: int) -> None:
    runtime, _ = small({"/p": {method.lower(): "p"}}, {"unmatched": "allow"}, answer=lambda _: httpx2.Response(status))
    assert "content-length" not in tries(runtime, method, f"{URL}/p").headers


@pytest.mark.parametrize("name", ["X-Original-URL", "X-Rewrite-URL", "X_Original_Url", "X-Envoy-Original-Path"])
def test_headers_that_name_another_path_are_refused(name: str) -> None:
    runtime, sent = small(PETS, {"unmatched": "allow"})
    assert tries(runtime, "GET", f"{URL}/pets", headers={name: "/admin"}).refused is Refused.denied
    assert sent == []


@pytest.mark.parametrize("query", ["shop=mine", "%73hop=mine", "Shop=mine", "a=1;shop=mine", "shop[]=mine"])
def test_no_spelling_of_a_key_in_the_query_is_passed_on(query: str) -> None:
    runtime, sent = small(
        PETS, {"unmatched": "allow"}, schemes={"key": {"type": "apiKey", "in": "query", "name": "shop"}}
    )
    assert tries(runtime, "GET", f"{URL}/pets?{query}&page=2").status_code == 200
    assert "mine" not in str(sent[0].url)
    assert sent[0].url.params["page"] == "2"


def test_a_body_that_is_packed_cannot_be_looked_at_and_is_refused() -> None:
    runtime, sent = small(PETS, {"unmatched": "allow"})
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/x-www-form-urlencoded"}
    packed = gzip.compress(b"_method=DELETE")
    assert tries(runtime, "POST", f"{URL}/pets", content=packed, headers=headers).refused is Refused.denied
    assert sent == []


def test_what_nobody_declared_is_looked_at_each_time_whatever_was_remembered() -> None:
    runtime, sent = small(PETS, {"unmatched": "allow"})
    pause = tries(runtime, "PATCH", f"{URL}/pets/7")
    wish = Verdict("approved", remember=Remember(Scope.endpoint))
    decision = Decision("approved", calls={pause.calls[0].id: wish}, revision=pause.revision)
    asyncio.run(runtime.decide(pause.id, decision, decider=BOSS))
    assert tries(runtime, "PATCH", f"{URL}/pets/7").status_code == 200
    assert isinstance(tries(runtime, "PATCH", f"{URL}/pets/7"), Pause)
    assert len(sent) == 1
