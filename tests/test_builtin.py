from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from toolgen import Caller, functions
from toolgen.errors import ArgumentsError, CredentialsMissing, RegistrationError
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import Outcome
from toolgen.result import Sent, ToolResult

ALICE = Caller("alice")


class Point(BaseModel):
    x: int
    y: int = 0


def area(a: Point, kind: Literal["round", "square"] = "round", *, size: Annotated[int, Field(ge=1)] = 1) -> int:
    """The area.

    More of it."""
    return a.x * size


def shadows(schema: str, json: str, copy: str, model_dump: str, self: str, _hidden: str = "h") -> list[str]:
    return [schema, json, copy, model_dump, self, _hidden]


def call(function: Callable[..., Any], arguments: Any, caller: Caller | None = ALICE) -> ToolResult:
    return asyncio.run(functions({"f": function}).call("f", arguments, caller))


def test_a_function_is_a_tool_with_the_schema_of_its_parameters() -> None:
    (tool,) = functions({"area": area}).tools()
    schema = tool.input_schema()
    assert (tool.name, tool.description, tool.destructive) == ("area", "The area.\n\nMore of it.", False)
    assert list(schema["properties"]) == ["a", "kind", "size"]
    assert (schema["required"], schema["additionalProperties"]) == (["a"], False)
    assert schema["properties"]["kind"]["enum"] == ["round", "square"]
    assert schema["properties"]["size"] == {"default": 1, "minimum": 1, "title": "size", "type": "integer"}
    assert schema["$defs"]["Point"]["required"] == ["x"]


@pytest.mark.parametrize(
    ("function", "arguments", "body"),
    [
        (area, {"a": {"x": 3}}, 3),
        (area, {"a": {"x": 3}, "size": 4, "kind": "square"}, 12),
        (shadows, dict.fromkeys(("schema", "json", "copy", "model_dump", "self"), "v"), ["v"] * 5 + ["h"]),
        (shadows, dict.fromkeys(("schema", "json", "copy", "model_dump", "self", "_hidden"), "v"), ["v"] * 6),
        (lambda: None, {}, None),
    ],
)
def test_arguments_reach_the_parameters_of_their_name_and_the_result_is_json(
    function: Any, arguments: dict[str, Any], body: Any
) -> None:
    assert call(function, arguments) == ToolResult(True, Sent.answered, body=body)


def test_results_hold_no_token_of_the_caller_and_no_number_that_json_has_not() -> None:
    def found(caller: Caller) -> dict[str, Any]:
        token = getattr(caller.token, "reveal", str)()
        return {"sent": f"Bearer {token}", token: [float("nan"), float("inf")]}

    body = call(found, {}, Caller("alice", "token-0f-alice")).body
    assert body == {"sent": "Bearer <redacted>", "<redacted>": [None, None]}


def test_results_are_written_as_json() -> None:
    def found(day: date) -> dict[str, Any]:
        return {"point": Point(x=1), "day": day, "both": (1, {2})}

    assert call(found, {"day": "2026-01-02"}).body == {"point": {"x": 1, "y": 0}, "day": "2026-01-02", "both": [1, [2]]}


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({}, {"/a"}),
        ({"a": {"x": "s3cr3t"}, "kind": "s3cr3t", "size": 0}, {"/a/x", "/kind", "/size"}),
        ({"a": {"x": 1}, "b": "s3cr3t"}, {"/b"}),
        ({"p0": {"x": 1}}, {"/a", "/p0"}),  # our own names are none
        ("s3cr3t", {"/"}),
    ],
)
def test_arguments_that_are_not_valid_are_an_error_with_all_problems_and_it_does_not_run(
    arguments: Any, where: set[str]
) -> None:
    ran = []

    def f(a: Point, kind: Literal["round"] = "round", size: Annotated[int, Field(ge=1)] = 1) -> None:
        ran.append(a)

    with pytest.raises(ArgumentsError) as caught:
        call(f, arguments)
    assert {problem.where for problem in caught.value.problems} == where
    assert (ran, "s3cr3t" in str(caught.value)) == ([], False)


def given(caller: Caller, text: str = "-") -> str:
    return f"{caller.subject} {text}"


def given_perhaps(text: str, who: Caller | None) -> str:
    return f"{who.subject if who else 'nobody'} {text}"


def given_optionally(text: str, who: Optional[Caller] = None) -> str:  # noqa: UP045 (what people write)
    return given_perhaps(text, who)


@pytest.mark.parametrize("function", [given, given_perhaps, given_optionally])
def test_a_parameter_for_the_caller_is_no_argument_and_cannot_be_given_as_one(function: Any) -> None:
    name = "caller" if function is given else "who"
    (tool,) = functions({"f": function}).tools()
    assert list(tool.input_schema()["properties"]) == ["text"]
    assert call(function, {"text": "t"}).body == "alice t"
    with pytest.raises(ArgumentsError):
        call(function, {"text": "t", name: {"subject": "mallory"}})


def test_a_function_that_needs_a_caller_does_not_run_without_one() -> None:
    with pytest.raises(CredentialsMissing, match="f needs a caller"):
        call(given, {"text": "t"}, None)
    assert call(given_perhaps, {"text": "t"}, None).body == "nobody t"
    assert call(given_optionally, {"text": "t"}, None).body == "nobody t"


def test_plain_functions_do_not_block_the_event_loop_and_coroutines_run_in_it() -> None:
    async def mine() -> int:
        return threading.get_ident()

    async def main() -> tuple[Any, Any]:
        both = functions({"plain": threading_ident, "mine": mine})
        return (await both.call("plain", {}, None)).body, (await both.call("mine", {}, None)).body

    plain, own = asyncio.run(main())
    assert plain != threading.get_ident() == own


def threading_ident() -> int:
    return threading.get_ident()


def raises() -> None:
    raise OSError("s3cr3t-value")


async def raises_later() -> None:
    raise OSError("s3cr3t-value")


def validates() -> Any:
    """A check inside a function is no check of its arguments: it ran."""
    return Point.model_validate({"x": "s3cr3t-value"})


@pytest.mark.parametrize(
    ("function", "name"),
    [(raises, "OSError"), (raises_later, "OSError"), (validates, "ValidationError"), (lambda: object(), "Pydantic")],
)
def test_what_a_function_raises_is_an_answer_that_tells_only_the_type(function: Any, name: str) -> None:
    result = call(function, {})
    assert (result.ok, result.sent, result.body, result.problems) == (False, Sent.answered, None, ())
    assert name in result.message
    assert "s3cr3t" not in f"{result!r}{result}"


def unannotated(a) -> None: ...  # type: ignore[no-untyped-def]


def unknown_type(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def variadic(*a: int) -> None: ...


def keywords(**a: int) -> None: ...


def positional(a: int, /) -> None: ...


def no_json(a: threading.Thread) -> None: ...


def test_functions_that_cannot_be_tools_are_refused_all_at_once() -> None:
    bad = [unannotated, unknown_type, variadic, keywords, positional, no_json]
    with pytest.raises(RegistrationError) as caught:
        functions({f.__name__: f for f in bad} | {"five": 5, "fine": threading_ident}, destructive=("gone",))  # type: ignore[dict-item]
    found = {problem.where for problem in caught.value.problems}
    assert found == {"gone", "five", *(f.__name__ for f in bad)}


def test_a_function_that_is_named_destructive_is_so_for_the_gate() -> None:
    source = functions({"wipe": threading_ident, "look": threading_ident}, destructive=("wipe",))
    gate = Gate(None, source)
    assert [tool.name for tool in gate.destructive] == ["wipe"]
    assert all(gate.outcome_of(tool).outcome is Outcome.gated for tool in gate.tools)
