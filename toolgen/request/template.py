"""Leaves rendered with a call's arguments: typed values, and what is only filled in when the request is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from toolgen.errors import RequestError
from toolgen.identity.references import Reference, ReferenceText
from toolgen.request.text import NotWritable, spelled
from toolgen.tools.template import ALL_ARGUMENTS, argument_of, environment, is_template, pieces

if TYPE_CHECKING:
    from jinja2 import Environment


class _Absent:
    """No value: the binding is dropped. `false`, `0`, `""` and null are values."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
_EXPRESSION = re.compile(r"\{\{[-+]?(.*?)[-+]?\}\}", re.DOTALL)
Render = Callable[[Mapping[str, Any]], Any]


def render(value: Any, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> Any:
    """A leaf's value for these arguments; ABSENT where one it reads is not given.

    A leaf that is one expression, or one `${context:NAME}`, gives the typed value; with text around it,
    a text. What holds other references gives a ReferenceText. Lists and mappings are rendered member by member.
    `context` is what the host gives for the turn.

    Raises RequestError for a context value that is not given, NotWritable for a value that cannot stand in text.
    """
    if isinstance(value, str):
        argument = argument_of(value)
        if argument is not None:
            return arguments.get(argument, ABSENT)
        return _text(value, arguments, context)
    if isinstance(value, dict):
        rendered = {key: render(item, arguments, context) for key, item in value.items()}
        return {key: item for key, item in rendered.items() if item is not ABSENT}
    if isinstance(value, list | tuple):
        return [item for one in value if (item := render(one, arguments, context)) is not ABSENT]
    return value


def reads_model(value: Any) -> bool:
    """Whether a leaf's value comes from the model at all, and is no constant of the toolset."""
    if isinstance(value, str):
        return argument_of(value) is not None or is_template(value)
    if isinstance(value, dict | list | tuple):
        return any(map(reads_model, value.values() if isinstance(value, dict) else value))
    return False


def holds_references(value: Any) -> bool:
    """Whether a rendered value has references that are filled in later, at any depth."""
    if isinstance(value, dict | list):
        return any(map(holds_references, value.values() if isinstance(value, dict) else value))
    return isinstance(value, ReferenceText)


def _text(text: str, arguments: Mapping[str, Any], context: Mapping[str, Any]) -> Any:
    parts = _pieces(text)
    found: list[Any] = [_piece(part, arguments, context, alone=len(parts) == 1) for part in parts]
    if any(one is ABSENT for one in found):
        return ABSENT
    if len(found) == 1:
        return ReferenceText((found[0],)) if isinstance(found[0], Reference) else found[0]
    if any(isinstance(one, Reference) for one in found):
        return ReferenceText(tuple(one for one in found if one != ""))
    return "".join(found)


def _piece(part: str | Reference, arguments: Mapping[str, Any], context: Mapping[str, Any], *, alone: bool) -> Any:
    if isinstance(part, str):
        return _renderer(part)(arguments)
    if part.kind != "context":
        return part
    if context.get(part.name) is None:
        raise RequestError(f"{part} has no value: the caller's context does not have {part.name!r}")
    value = context[part.name]
    return value if alone else _in_text(value)


@lru_cache(4096)
def _pieces(text: str) -> tuple[str | Reference, ...]:
    return pieces(text)


@lru_cache(4096)
def _renderer(text: str) -> Render:
    """What renders a text without references; compiled when first used, since that takes half a millisecond."""
    from jinja2 import nodes

    if not is_template(text):
        return lambda _: text
    output = _environment().parse(text).body
    only = output[0].nodes if len(output) == 1 and isinstance(output[0], nodes.Output) else []
    if len(only) == 1 and not isinstance(only[0], nodes.TemplateData):
        match = _EXPRESSION.fullmatch(text)
        if match is not None:  # else there is a comment beside it
            return _guarded(_environment().compile_expression(match[1], undefined_to_none=False))
    return _guarded(_environment().from_string(text).render)


def _guarded(run: Callable[[Any], Any]) -> Render:
    from jinja2 import StrictUndefined, UndefinedError

    def guarded(arguments: Mapping[str, Any]) -> Any:
        try:
            found = run({**arguments, ALL_ARGUMENTS: arguments})
        except UndefinedError:
            return ABSENT
        except NotWritable:
            raise
        except Exception:  # noqa: BLE001 - a filter that was given what it cannot take
            raise NotWritable("a filter of the template cannot take this value") from None
        return ABSENT if isinstance(found, StrictUndefined) else found

    return guarded


@lru_cache(1)
def _environment() -> Environment:
    """The environment of leaves, in which values that stand in text are spelled as JSON spells them."""
    return environment().overlay(finalize=_in_text)


def _in_text(value: Any) -> str:
    from jinja2 import UndefinedError

    if value is None:
        raise UndefinedError
    if isinstance(value, dict | list | tuple):
        raise NotWritable("an object or array cannot stand inside text")
    return spelled(value) if isinstance(value, str | int | float) else str(value)
