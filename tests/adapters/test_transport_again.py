"""A program's request that is made again is known again: at once, in parts, by another process, and after its end."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from door_world import ANN, World, run, world_in
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OK, document, made, parameter

from toolgen import ApprovalConfig, Dispatcher, Pause, Runtime, generate, resolve
from toolgen.adapters.transport import GatedTransport
from toolgen.approvals.store import Change
from toolgen.errors import ApprovalPending, ArgumentsError, CallRefused, PauseConflict, RequestError
from toolgen.request.match import Operation, match
from toolgen.request.multipart import rewritten
from toolgen.request.raw import RawRequest, resolved
from toolgen.request.server import server_of
from toolgen.result import Refused

ROOT = Path(__file__).resolve().parents[2]
REX = {"name": "Rex"}
RGB = {"type": "object", "properties": {one: {"type": "integer"} for one in "RGB"}, "required": ["R"]}
URL = "https://api.example/v1"
# Makes the request so many times at once; says what came of each.
PROGRAM = """
import asyncio, json, sys
import httpx2
from toolgen import ApprovalConfig, Caller, Dispatcher, Runtime, load_toolset
from toolgen.adapters.transport import GatedTransport
from toolgen.errors import ApprovalPending, CallRefused

toolset_file, config, store, url, times = sys.argv[1:]

async def main():
    toolset = load_toolset(toolset_file)
    dispatcher = Dispatcher(toolset)
    runtime = Runtime(dispatcher, ApprovalConfig.load(config, [toolset]), store=store, background=False)

    async def one(client):
        try:
            return (await client.post(url, json={"name": "Rex"})).status_code
        except ApprovalPending as error:
            return error.pause.id
        except CallRefused as error:
            return error.result.sent.value

    async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=Caller("ann"))) as client:
        print(json.dumps(await asyncio.gather(*(one(client) for _ in range(int(times))))))
    await runtime.aclose()
    await dispatcher.aclose()

asyncio.run(main())
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made_world:
        yield made_world
        asyncio.run(made_world.close())


async def sent(runtime: Runtime, method: str, url: str, **more: Any) -> Any:
    """The response, the pause, or what refused it."""
    async with httpx2.AsyncClient(transport=GatedTransport(runtime, caller=ANN)) as client:
        try:
            return await client.request(method, url, **more)
        except ApprovalPending as error:
            return error.pause
        except CallRefused as error:
            return error.result


def program(world: World, times: int) -> list[Any]:
    where = (world.toolset_file, world.config_file, world.store, f"{world.api.url}/pets", times)
    command = [sys.executable, "-c", PROGRAM, *map(str, where)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    found: list[Any] = json.loads(ran.stdout)
    return found


def test_processes_of_one_program_ask_once_and_twenty_requests_after_the_approval_are_one(world: World) -> None:
    waiting = program(world, 20)  # nobody was faster, and all wait for the same
    assert len(set(waiting)) == 1
    world.run(world.decide(waiting[0]))
    assert world.api.lines == []
    again = program(world, 20)
    assert again.count(200) == 1
    assert len({one for one in again if isinstance(one, str) and len(one) == 32}) <= 1  # asked anew, once
    assert world.api.lines == ["POST /pets"]


def test_of_two_runtimes_that_ask_at_once_one_asks(world: World) -> None:
    runtimes = [world.runtime(), world.runtime()]
    url = f"{world.api.url}/pets"

    async def asked() -> list[Any]:
        return await asyncio.gather(*(sent(runtimes[n % 2], "POST", url, json=REX) for n in range(12)))

    for number in (1, 2):  # also when it was carried out before
        found = world.run(asked())
        assert len({one.id for one in found}) == 1
        assert len(runtimes[0].store.pauses()) == number
        world.run(world.decide(found[0].id))
        assert world.run(sent(runtimes[0], "POST", url, json=REX)).status_code == 200
    assert len(world.api.seen) == 2


def aged(runtime: Runtime, pause: Pause, by: timedelta) -> None:
    """The decision as it is when so much time has gone by."""

    def older(now: Pause) -> Change:
        assert now.decided is not None
        return Change(replace(now, decided=now.decided - by), ())

    runtime.store.change(pause.id, "default", older)


def test_a_refusal_is_asked_about_again_once_an_approval_would_not_hold_any_more(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = world.run(sent(runtime, "POST", url, json=REX))
    world.run(world.decide(pause.id, "rejected"))
    aged(runtime, pause, timedelta(minutes=59))
    assert world.run(sent(runtime, "POST", url, json=REX)).refused is Refused.rejected
    aged(runtime, pause, timedelta(minutes=2))
    assert world.run(sent(runtime, "POST", url, json=REX)).id != pause.id
    assert world.api.lines == []


def test_an_approval_that_nobody_used_in_time_lets_nothing_through(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = world.run(sent(runtime, "POST", url, json=REX))
    world.run(world.decide(pause.id))
    aged(runtime, pause, timedelta(minutes=61))
    world.run(sent(runtime, "POST", url, json=REX))
    assert isinstance(world.run(sent(runtime, "POST", url, json=REX)), Pause)
    assert world.api.lines == []


def test_what_nobody_knows_the_end_of_is_not_sent_again_by_making_it_again(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = world.run(sent(runtime, "POST", url, json=REX))
    world.run(world.decide(pause.id))
    world.crash_while_running(pause.id)
    assert (
        world.run(sent(runtime, "POST", url, json=REX)).sent.value == "outcome_unknown"
    )  # before it is swept, and after
    world.run(runtime.sweep())
    assert world.run(sent(runtime, "POST", url, json=REX)).sent.value == "outcome_unknown"
    assert world.api.lines == []


def test_waiting_for_the_pause_of_a_request_does_not_send_it(world: World) -> None:
    runtime, url = world.runtime(), f"{world.api.url}/pets"
    pause = world.run(sent(runtime, "POST", url, json=REX))
    world.run(world.decide(pause.id))
    with pytest.raises(PauseConflict, match="sends it again"):
        world.run(runtime.wait(pause.id, caller=ANN))
    assert world.api.lines == []


# Forms in parts


def test_a_form_in_parts_is_the_same_request_whatever_boundary_its_client_made_up() -> None:
    got: list[bytes] = []

    def answers(request: httpx2.Request) -> httpx2.Response:
        got.append(request.read())
        assert request.headers["Content-Type"].endswith(got[-1].partition(b"\r\n")[0][2:].decode())
        return httpx2.Response(200)

    form = {"multipart/form-data": {"schema": {"type": "object"}}}
    toolset = generate(
        document({"/x": {"post": {"requestBody": {"content": form}, "responses": OK}}}), api="api", server=URL
    )
    config = ApprovalConfig.parse({"unmatched": "require"})
    runtime = Runtime(Dispatcher(toolset, transport=httpx2.MockTransport(answers)), config, background=False)
    one, same, other = (
        run(runtime, sent(runtime, "POST", f"{URL}/x", files={"f": ("a.txt", data)})) for data in (b"a", b"a", b"b")
    )
    assert one.id == same.id != other.id


@given(
    st.lists(st.binary(max_size=20).filter(lambda part: b"--bound" not in part), min_size=1, max_size=4),
    st.sampled_from(["bound", '"bound"', "bound; charset=utf-8"]),
)
def test_another_boundary_changes_nothing_else(parts: list[bytes], given_as: str) -> None:
    def body(boundary: bytes) -> bytes:
        return b"".join(b"--" + boundary + b"\r\n\r\n" + part + b"\r\n" for part in parts) + b"--" + boundary + b"--"

    kind, packed = rewritten(f"multipart/form-data; boundary={given_as}", body(b"bound"))
    boundary = packed[2:].partition(b"\r\n")[0]
    assert packed == body(boundary)
    assert f"boundary={boundary.decode()}" in kind
    assert rewritten(kind, packed)[1] == packed


@pytest.mark.parametrize(
    "body", [b"", b"text", b"--b\r\n\r\nx", b"x\r\n--b\r\n\r\ny\r\n--b--", b"--b\r\n\r\n\r\n--bx\r\n--b--", b"--b--z"]
)
def test_a_body_that_is_no_form_in_parts_stays_as_it_is(body: bytes) -> None:
    assert rewritten("multipart/form-data; boundary=b", body) == ("multipart/form-data; boundary=b", body)
    assert rewritten("multipart/form-data", body) == ("multipart/form-data", body)


# There and back


def operations() -> dict[str, Any]:
    query = [
        parameter("spread", required=True, schema=RGB),
        parameter("deep", required=True, style="deepObject", schema=RGB),
        parameter("list", explode=False, schema={"type": "array", "items": {"type": "string"}}),
    ]
    body = {"content": {"application/json": {"schema": RGB}}, "required": True}
    ids = [parameter("id", "path"), parameter("X-Rgb", "header", schema=RGB)]
    return {
        "/pets": {"get": {"operationId": "list", "parameters": query, "responses": OK}},
        "/pets/mine": {"get": {"operationId": "mine", "responses": OK}},
        "/pets/{id}": {
            "get": {"operationId": "show", "parameters": ids, "responses": OK},
            "put": {"operationId": "edit", "parameters": ids, "requestBody": body, "responses": OK},
        },
        "/{kind}/{id}/photos.{format}": {
            "get": {
                "operationId": "photos",
                "parameters": [parameter(name, "path") for name in ("kind", "id", "format")],
                "responses": OK,
            }
        },
        "/act?do=sell": {"post": {"operationId": "sell", "responses": OK}},
        "/act?do=buy": {"post": {"operationId": "buy", "responses": OK}},
    }


@pytest.mark.parametrize("source", ["small", "petstore"])
def test_what_a_tool_sends_is_matched_to_that_tool_and_is_the_same_request(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    values = importlib.import_module("values")
    given: Any = document(operations()) if source == "small" else ROOT / "samples" / "petstore" / "petstore.yaml"
    toolset = made(given, api="api", server=URL)
    known, tried = [Operation(tool, server_of(tool)) for tool in toolset.tools], set()
    for tool in toolset.tools:
        places = {one.argument: one.location for one in tool.bindings}
        for seed in range(10):
            for _, arguments in values.argument_sets(tool.input_schema(), places, str(seed)):
                try:
                    request = resolve(tool, arguments)
                except RequestError:
                    continue
                found = match(known, request.method, request.url)
                assert found.tool is tool
                raw = RawRequest(request.method, request.url, tuple(request.headers), request.body or b"")
                again = resolved(raw, found, tool, toolset.security_schemes)
                assert (again.url, again.headers, again.body) == (request.url, request.headers, request.body)
                tried.add(tool.name)
    assert tried == {tool.name for tool in toolset.tools}


def test_a_required_parameter_that_is_not_there_is_missing_in_whatever_style() -> None:
    toolset = made(document(operations()), api="api", server=URL)
    known = [Operation(tool, server_of(tool)) for tool in toolset.tools]
    found = match(known, "GET", f"{URL}/pets")
    for query, missing in (("R=1&deep%5BR%5D=1", ""), ("R=1", "deep")):
        raw = RawRequest("GET", f"{URL}/pets?{query}", (), b"")
        if missing:
            with pytest.raises(ArgumentsError, match=missing):
                resolved(raw, found, found.tool, {})  # type: ignore[arg-type]
        else:
            resolved(raw, found, found.tool, {})  # type: ignore[arg-type]
