"""What goes with which message to an MCP server, told by the message alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from toolgen.dispatch.mcp_http import Invocation, McpTransport, invoked
from toolgen.errors import DispatchRefused
from toolgen.identity.caller import Secret

URL = "https://mcp.example/mcp"
ADA = (("Authorization", Secret("Bearer token-of-ada")),)


def call(name: str = "echo", **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


LIST: Mapping[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


class Wire:
    """An MCP client's transport over nothing; `sent` is what would have left."""

    def __init__(self, *answers: httpx2.Response, own: Any = ()) -> None:
        self.sent: list[httpx2.Request] = []
        self.answers = list(answers)
        self.transport = McpTransport(httpx2.MockTransport(self._answer), URL, lambda: own, most=1_000, timeout={})

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        return self.answers.pop(0) if self.answers else httpx2.Response(200, json={"jsonrpc": "2.0", "result": {}})

    def post(self, message: Any, *, invocation: Invocation | None = None, url: str = URL) -> httpx2.Response:
        async def posted() -> httpx2.Response:
            async with httpx2.AsyncClient(transport=self.transport) as client:
                return await client.post(url, json=message)

        with invoked(invocation or Invocation("", {})):
            return asyncio.run(posted())

    def authorizations(self) -> list[str | None]:
        return [one.headers.get("authorization") for one in self.sent]


def test_only_the_call_itself_carries_the_credential_of_its_call() -> None:
    wire, invocation = Wire(), Invocation("echo", {"a": 1}, ADA)
    for message in (LIST, {"method": "initialize", "id": 3}, {"method": "notifications/initialized"}, call(a=1)):
        wire.post(message, invocation=invocation)
    assert wire.authorizations() == [None, None, None, "Bearer token-of-ada"]


@pytest.mark.parametrize("message", [call("other", a=1), call(a=2), call()])
def test_another_call_than_the_one_that_was_asked_for_is_not_sent(message: Any) -> None:
    wire, invocation = Wire(), Invocation("echo", {"a": 1}, ADA)
    assert "error" in wire.post(message, invocation=invocation).json()
    assert isinstance(invocation.fault, DispatchRefused)
    assert wire.sent == []


def test_a_call_is_sent_once_whatever_the_client_does() -> None:
    wire, invocation = Wire(), Invocation("echo", {}, ADA)
    assert "result" in wire.post(call(), invocation=invocation).json()
    assert "error" in wire.post(call(), invocation=invocation).json()
    assert len(wire.sent) == 1


def test_a_message_to_another_url_is_not_sent() -> None:
    wire = Wire(own=ADA)
    wire.post(LIST, url="https://elsewhere.example/mcp")
    assert wire.sent == []
    assert isinstance(wire.transport.fault, DispatchRefused)


def test_cookies_and_redirects_come_to_nothing() -> None:
    wire = Wire(httpx2.Response(307, headers={"location": URL + "/x", "set-cookie": "who=ada"}))
    found = wire.post(LIST)
    assert "location" not in found.headers
    assert "set-cookie" not in found.headers


def test_the_stream_for_requests_of_the_server_is_not_opened() -> None:
    wire = Wire()

    async def got() -> int:
        async with httpx2.AsyncClient(transport=wire.transport) as client:
            return (await client.get(URL)).status_code

    assert asyncio.run(got()) == 405
    assert wire.sent == []


@pytest.mark.parametrize(
    ("answer", "answered"),
    [
        (httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}), True),
        (httpx2.Response(401), True),
        (httpx2.Response(202), False),
        (httpx2.Response(200, text="<html>"), False),
        (httpx2.Response(200, json={"jsonrpc": "2.0", "method": "ping", "id": 1}), False),
        (httpx2.Response(200, json={"id": 1, "result": {"text": "x" * 1_000}}), False),
        (httpx2.Response(200, headers={"content-encoding": "gzip"}), False),
    ],
)
def test_what_is_an_answer_to_a_call(answer: httpx2.Response, answered: bool) -> None:
    invocation = Invocation("echo", {}, ADA)
    Wire(answer).post(call(), invocation=invocation)
    assert invocation.is_answered is answered


@pytest.mark.parametrize(
    ("events", "answered"),
    [
        (': hello\n\ndata: {"method": "notifications/progress"}\n\ndata: {"id": 1, "result": {}}\n\n', True),
        ('data: {"method": "notifications/progress"}\r\n\r\n', False),
        ('data: {"id": 1, "result": {}}', False),  # without its end no event is one
    ],
)
def test_what_is_an_answer_in_a_stream(events: str, answered: bool) -> None:
    invocation = Invocation("echo", {}, ADA)
    stream = httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=events)
    Wire(stream).post(call(), invocation=invocation)
    assert invocation.is_answered is answered
