"""Functions of a program as tools: `functions({"add": add})` is a source like an API.

A function's parameters are the tool's arguments, checked against their annotations. One that is annotated
`Caller` is given the caller instead and is no argument. Results are anything pydantic writes as JSON.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from toolgen.errors import ArgumentsError, CredentialsMissing, Problem, RegistrationError
from toolgen.identity.caller import Caller
from toolgen.result import Sent, ToolResult

if TYPE_CHECKING:
    from pydantic import BaseModel

BUILTIN: Final = "builtin"


@dataclass(frozen=True)
class Function:
    """One function as a tool."""

    name: str
    description: str
    destructive: bool
    run: Callable[..., Any] = field(repr=False)
    model: type[BaseModel] = field(repr=False)  # of its arguments; a field's alias is the parameter's name
    caller_parameter: str | None = None
    needs_caller: bool = False

    def input_schema(self) -> dict[str, Any]:
        """The tool's input as a self-contained JSON Schema 2020-12."""
        return self.model.model_json_schema()


class Functions:
    """The functions of a program; the source's name is `builtin`."""

    name: Final = BUILTIN

    def __init__(self, tools: Mapping[str, Function]) -> None:
        self._tools = dict(tools)

    def tools(self) -> list[Function]:
        """The functions, in the order they were given."""
        return list(self._tools.values())

    def check(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them. Raises ArgumentsError with all problems; nothing ran then."""
        from pydantic import ValidationError

        model = self._tools[name].model
        try:
            found = model.model_validate(arguments)
        except ValidationError as error:
            listed = error.errors(include_input=False, include_url=False, include_context=False)
            problems = [Problem(one["msg"], "/" + "/".join(map(str, one["loc"]))) for one in listed]
        else:
            fields = model.model_fields
            return {str(fields[key].alias): getattr(found, key) for key in found.model_fields_set}
        raise ArgumentsError(f"the arguments of {name} are not valid; it did not run", problems)

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult:
        """Run a function: one that is no coroutine in a thread. What it raises becomes a result.

        Of that only the error's type is told: its text may hold anything. Raises ArgumentsError, and
        CredentialsMissing where it needs a caller and there is none; it did not run then.
        """
        tool = self._tools[name]
        given = self.check(name, arguments)
        if tool.needs_caller and caller is None:
            raise CredentialsMissing(f"{name} needs a caller, and no caller is bound to this call")
        if tool.caller_parameter is not None:
            given[tool.caller_parameter] = caller
        try:
            if inspect.iscoroutinefunction(tool.run):
                body = await tool.run(**given)
            else:
                body = await asyncio.to_thread(tool.run, **given)
                if inspect.isawaitable(body):
                    body = await body
            return ToolResult(True, Sent.answered, body=_shown(body, caller))
        except Exception as error:  # noqa: BLE001 - a tool that fails is an answer
            return ToolResult(False, Sent.answered, message=f"{name} failed: {type(error).__name__}")


def _shown(body: Any, caller: Caller | None) -> Any:
    """A result as JSON data, without the caller's token, which the function may have been given."""
    from pydantic_core import to_jsonable_python

    data = to_jsonable_python(body, inf_nan_mode="null")
    if caller is None or caller.token is None:
        return data
    from toolgen.identity.redact import Redactor

    return Redactor([caller.token]).known(data)


def functions(given: Mapping[str, Callable[..., Any]], *, destructive: tuple[str, ...] = ()) -> Functions:
    """Functions as a source of tools, by tool name; `destructive` names those that policy counts as such.

    Raises RegistrationError, with all problems, for what is no function with named, annotated parameters.
    """
    problems = [Problem("it is no function, and named destructive", name) for name in destructive if name not in given]
    made: dict[str, Function] = {}
    for name, function in given.items():
        try:
            made[name] = _function(name, function, name in destructive)
        except Exception as error:  # noqa: BLE001 - whatever an annotation makes Python or pydantic raise
            problems.append(Problem(f"it cannot be a tool: {str(error).partition('. ')[0]}", str(name)))
    if problems:
        raise RegistrationError("functions that cannot be tools", problems)
    return Functions(made)


def _function(name: str, function: Callable[..., Any], destructive: bool) -> Function:
    from pydantic import ConfigDict, Field, create_model

    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    caller: inspect.Parameter | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"the parameter {parameter.name} has no name that an argument could have")
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"the parameter {parameter.name} has no annotation")
        if hint in (Caller, Caller | None):
            caller = parameter
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        # Numbered, since a parameter may be called like a method of the model.
        fields[f"p{len(fields)}"] = (hint, Field(default, alias=parameter.name, title=parameter.name))
    model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    model.model_json_schema()  # raises for a type that no JSON Schema describes
    return Function(
        name,
        inspect.getdoc(function) or name,
        destructive,
        function,
        model,
        caller.name if caller else None,
        caller is not None and hints[caller.name] is Caller and caller.default is caller.empty,
    )
