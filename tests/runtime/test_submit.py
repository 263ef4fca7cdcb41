"""The runtime: what is denied, not valid or waiting never runs, and one call never costs another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from raw_server import RawServer, answer, answering, serving
from small_documents import document, made, parameter

from toolgen import ApprovalConfig, Caller, Dispatcher, Runtime, ToolCall, ToolResult, functions
from toolgen.errors import CredentialsMissing, RegistrationError, ToolgenError
from toolgen.identity.caller import bind_caller, current_caller
from toolgen.result import Refused, Sent
from toolgen.runtime.results import result_of
from toolgen.tools.model import Toolset

DONE = {"200": {"description": "ok"}}
BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}


def api(name: str) -> Toolset:
    user = {"user": {"type": "http", "scheme": "bearer"}}
    paths: dict[str, Any] = {
        "/pets": {
            "get": {"operationId": "list", "parameters": [parameter("q")], "responses": DONE},
            "post": {"operationId": "add", **BODY, "responses": DONE},
        },
        "/me": {"get": {"operationId": "me", "security": [{"user": []}], "responses": DONE}},
        "/pets/{id}": {"delete": {"operationId": "remove", "parameters": [parameter("id", "path")], "responses": DONE}},
    }
    return made(document(paths, components={"securitySchemes": user}), api=name, server="https://api.example")


@pytest.fixture(scope="module")
def pets() -> Toolset:
    return api("pets")


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving() as found:
        yield found


def config(**mapping: Any) -> ApprovalConfig:
    return ApprovalConfig.parse(mapping)


def run(runtime: Runtime, *calls: ToolCall | str, caller: Caller | None = None) -> list[ToolResult]:
    listed = [ToolCall(f"c{n}", one, {}) if isinstance(one, str) else one for n, one in enumerate(calls)]
    done = asyncio.run(runtime.submit(listed, caller=caller))
    waits = {call.id: result_of(call) for call in done.pause.calls} if done.pause else {}
    found = {**done.results, **waits}
    assert len(found) == len(listed), "every call has one result, or waits"
    return [found[str(call.id)] for call in listed]


def told(result: ToolResult) -> tuple[bool, Sent, Refused | None]:
    return result.ok, result.sent, result.refused


DENIED = (False, Sent.not_sent, Refused.denied)
GATED = (False, Sent.not_sent, Refused.gated)
INVALID = (False, Sent.not_sent, None)
RAN = (True, Sent.answered, None)


class Log(list[str]):
    """Functions that keep what ran."""

    def note(self, text: str) -> str:
        self.append(text)
        return text

    async def later(self, text: str) -> str:
        self.append(text)
        return text


@pytest.mark.parametrize(
    ("given", "arguments", "expected"),
    [
        ({"unmatched": "allow"}, {"requestBody": {}}, RAN),
        ({}, {"requestBody": {}}, GATED),
        ({"requireApproval": ["*"]}, {"requestBody": {}}, GATED),
        ({"deny": ["*"]}, {"requestBody": {}}, DENIED),
        ({"deny": ["*"]}, {"requestBody": 5}, DENIED),  # denied first: nothing is told of how to get it right
        ({}, {"requestBody": 5}, INVALID),  # not valid is never a question to a person
        ({}, {}, INVALID),
        ({"unmatched": "allow"}, {}, INVALID),
        ({}, "text", INVALID),
        ({}, [1], INVALID),
    ],
)
def test_a_call_is_denied_then_not_valid_then_waits_then_runs(
    pets: Toolset, server: RawServer, given: dict[str, Any], arguments: Any, expected: Any
) -> None:
    with Dispatcher(pets, server=server.url) as dispatcher:
        (result,) = run(Runtime(dispatcher, config(**given)), ToolCall("1", "add", arguments))
    assert told(result) == expected
    assert len(server.requests) == (expected == RAN)
    assert server.connections == (expected == RAN)
    assert bool(result.problems) == (expected == INVALID)


@pytest.mark.parametrize(
    ("given", "arguments", "expected"),
    [
        ({"unmatched": "allow"}, {"text": "x"}, RAN),
        ({}, {"text": "x"}, GATED),
        ({"deny": ["*"]}, {"text": "x"}, DENIED),
        ({"deny": ["*"]}, {"text": 5}, DENIED),
        ({}, {"text": 5}, INVALID),
        ({}, {"text": "x", "more": 1}, INVALID),
        ({}, {}, INVALID),
        ({}, "text", INVALID),
    ],
)
@pytest.mark.parametrize("name", ["note", "later"])
def test_a_function_is_treated_the_same(given: Any, arguments: Any, expected: Any, name: str) -> None:
    log = Log()
    runtime = Runtime(functions({"note": log.note, "later": log.later}), config(**given))
    (result,) = run(runtime, ToolCall("1", name, arguments))
    assert (told(result), log) == (expected, ["x"] if expected == RAN else [])


def test_without_a_config_reads_run_and_writes_wait(pets: Toolset, server: RawServer) -> None:
    with Dispatcher(pets, server=server.url) as dispatcher:
        calls = [ToolCall("1", "list"), ToolCall("2", "add", {"requestBody": {}}), ToolCall("3", "remove", {"id": "1"})]
        results = run(Runtime(dispatcher), *calls)
    assert list(map(told, results)) == [RAN, GATED, GATED]
    assert server.lines == ["GET /pets HTTP/1.1"]


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("nope", None, "no tool is called 'nope'"),
        ("list", None, "each have a tool 'list'"),
        ("list", "nowhere", "no tool is called 'list' in 'nowhere'"),
        ("note", "pets", "no tool is called 'note' in 'pets'"),
        ("http.get:/pets", None, "no tool is called"),
        (None, None, "names no tool"),
        (5, None, "names no tool"),
        ("list", 5, "names no tool"),
        ("n" * 1000, None, "no tool is called"),
    ],
)
def test_a_name_that_is_no_tool_s_or_several_tools_is_denied_even_where_all_is_allowed(
    pets: Toolset, server: RawServer, name: Any, source: Any, said: str
) -> None:
    log = Log()
    with Dispatcher([pets, api("others")], server={"pets": server.url, "others": server.url}) as dispatcher:
        runtime = Runtime([dispatcher, functions({"note": log.note})], ApprovalConfig.off())
        (result,) = run(runtime, ToolCall("1", name, {"text": "x"}, source))
    assert told(result) == DENIED
    assert said in result.message
    assert len(result.message) < 500
    assert (server.connections, log) == (0, [])


def test_a_call_that_names_its_source_goes_there(pets: Toolset) -> None:
    with serving() as one, serving() as two:
        dispatcher = Dispatcher([pets, api("others")], server={"pets": one.url, "others": two.url})
        with dispatcher:
            (result,) = run(Runtime(dispatcher), ToolCall("1", "list", {}, "others"))
    assert result.ok
    assert (one.connections, two.connections) == (0, 1)


def test_sources_that_could_be_taken_for_one_another_are_refused(pets: Toolset) -> None:
    with pytest.raises(RegistrationError):
        Runtime([Dispatcher(pets), Dispatcher(pets)])
    with pytest.raises(RegistrationError):
        Runtime([functions({"a": Log().note}), functions({"b": Log().note})])


class Faulty:
    """A source that raises what it is told to."""

    name = "faulty"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def tools(self) -> Iterable[str]:
        return ["fail"]

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        raise self.error


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (CredentialsMissing("a credential is missing"), Sent.not_sent),
        (RuntimeError("s3cr3t-value"), Sent.unknown),
        (ToolgenError("s3cr3t-value"), Sent.unknown),
        (KeyError("s3cr3t-value"), Sent.unknown),
    ],
)
def test_a_call_that_fails_costs_no_other(pets: Toolset, server: RawServer, error: Exception, sent: Sent) -> None:
    with Dispatcher(pets, server=server.url) as dispatcher:
        runtime = Runtime([dispatcher, Faulty(error)], ApprovalConfig.off())
        results = run(runtime, "list", "fail", "me", "list")
    assert [told(results[n]) for n in (0, 3)] == [RAN, RAN]
    assert told(results[1]) == (False, sent, Refused.error)
    assert told(results[2]) == (False, Sent.not_sent, Refused.error), "a credential is missing"
    assert "s3cr3t" not in f"{results}"
    assert len(server.requests) == 2


def test_a_fault_of_ours_before_anything_is_sent_says_that_nothing_was(
    pets: Toolset, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any, **__: Any) -> Any:
        raise RuntimeError("s3cr3t-value")

    with Dispatcher(pets, server=server.url) as dispatcher:
        monkeypatch.setattr(Dispatcher, "resolve", breaks)
        (result,) = run(Runtime(dispatcher), "list")
    assert told(result) == (False, Sent.not_sent, Refused.error)
    assert "s3cr3t" not in result.message


def test_results_come_in_the_order_of_the_calls_and_the_calls_run_together(pets: Toolset) -> None:
    both = asyncio.Event()
    waiting: list[str] = []

    async def meet(text: str) -> str:
        waiting.append(text)
        if len(waiting) == 3:
            both.set()
        await asyncio.wait_for(both.wait(), 5)
        return text

    calls = [ToolCall(str(n), "meet", {"text": f"t{n}"}) for n in range(3)]
    results = run(Runtime(functions({"meet": meet}), ApprovalConfig.off()), *calls)
    assert [result.body for result in results] == ["t0", "t1", "t2"]


def who() -> str:
    caller = current_caller()
    return "nobody" if caller is None else caller.subject


async def who_async() -> str:
    return who()


def test_the_caller_is_the_one_given_else_the_one_bound_and_functions_see_it_too(pets: Toolset) -> None:
    with serving(
        answering(lambda got: answer(200, (got.header("authorization") or "none").encode(), kind="text/x"))
    ) as server:
        dispatcher = Dispatcher(pets, server=server.url, credentials={"user": "${caller:token}"})
        given, bound = (Caller(name, f"token-of-{name}", origin=server.url) for name in ("given", "bound"))
        runtime = Runtime([dispatcher, functions({"who": who, "who_async": who_async})], ApprovalConfig.off())
        names = ("me", "who", "who_async")
        with dispatcher, bind_caller(bound):
            found = [
                [one.status or one.body for one in run(runtime, *names, caller=caller)] for caller in (given, None)
            ]
        assert run(runtime, "who")[0].body == "nobody"
    assert found == [[200, "given", "given"], [200, "bound", "bound"]]
    assert [r.header("authorization") for r in server.requests] == ["Bearer token-of-given", "Bearer token-of-bound"]
