"""Functions of a program as tools: `functions({"add": add})` is a source like an API.

A function's parameters are the tool's arguments, checked against their annotations. One that is annotated
`Caller` is given the caller instead and is no argument. Results are text, or anything pydantic writes as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_type_hints

from toolgen.errors import Problem, RegistrationError
from toolgen.identity.caller import Caller
from toolgen.result import Sent, ToolResult

BUILTIN: Final = "builtin"


@dataclass(frozen=True)
class Function:
    """One function as a tool. `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    destructive: bool
    run: Callable[..., Any] = field(repr=False)
    caller_parameter: str | None = None

    def input_schema(self) -> dict[str, Any]:
        """The tool's input as a self-contained JSON Schema 2020-12."""
        return dict(self.parameters)


class Functions:
    """The functions of a program; the source's name is `builtin`."""

    name: Final = BUILTIN

    def __init__(self, tools: Mapping[str, Function]) -> None:
        self._tools = dict(tools)

    def tools(self) -> list[Function]:
        """The functions, in the order they were given."""
        return list(self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        """Run a function. What it raises becomes a result with the error's type; its text may hold anything."""
        from pydantic import ValidationError
        from pydantic_core import to_jsonable_python

        tool = self._tools[name]
        given = dict(arguments)
        if tool.caller_parameter is not None:
            given.pop(tool.caller_parameter, None)
            given[tool.caller_parameter] = caller
        try:
            if inspect.iscoroutinefunction(tool.run):
                body = await tool.run(**given)
            else:
                body = await asyncio.to_thread(tool.run, **given)
            return ToolResult(True, Sent.answered, body=to_jsonable_python(body))
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False, include_context=False)
            told = tuple({"where": "/" + "/".join(map(str, p["loc"])), "message": p["msg"]} for p in problems)
            return ToolResult(False, Sent.not_sent, message=f"the arguments of {name} are not valid", problems=told)
        except Exception as error:  # noqa: BLE001 - a tool that fails is an answer
            return ToolResult(False, Sent.answered, message=f"{name} failed: {type(error).__name__}")


def functions(given: Mapping[str, Callable[..., Any]], *, destructive: tuple[str, ...] = ()) -> Functions:
    """Functions as a source of tools, by tool name; `destructive` names those that policy counts as such.

    Raises RegistrationError, with all problems, for what is no function with named, annotated parameters.
    """
    problems = [Problem("it is no function, and named destructive", name) for name in destructive if name not in given]
    made: dict[str, Function] = {}
    for name, function in given.items():
        try:
            made[name] = _function(name, function, name in destructive)
        except (TypeError, ValueError, NameError) as error:
            problems.append(Problem(f"it cannot be a tool: {error}", str(name)))
    if problems:
        raise RegistrationError("functions that cannot be tools", problems)
    return Functions(made)


def _function(name: str, function: Callable[..., Any], destructive: bool) -> Function:
    from pydantic import ConfigDict, create_model, validate_call

    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    caller_parameter = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"the parameter {parameter.name} has no name that an argument could have")
        hint = hints.get(parameter.name)
        if hint in (Caller, Caller | None):
            caller_parameter = parameter.name
            continue
        if hint is None:
            raise TypeError(f"the parameter {parameter.name} has no annotation")
        fields[parameter.name] = (hint, ... if parameter.default is parameter.empty else parameter.default)
    # The model is only asked for its schema; pydantic checks the call itself.
    schema = create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
    checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(function)
    described = inspect.getdoc(function) or name
    return Function(name, described, schema.model_json_schema(), destructive, checked, caller_parameter)
