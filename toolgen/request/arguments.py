"""Arguments against the tool's input schema: what is wrong, told so that a model can mend it.

jsonschema-rs decides, offline; the messages are ours: where, what was expected, what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolgen.errors import ArgumentsError, Problem, RequestError
from toolgen.request.pertool import PerTool
from toolgen.tools.model import Tool
from toolgen.tools.template import argument_of

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

MOST_PROBLEMS: Final = 20
_MOST_CHOICES: Final = 30
_LONGEST_SHOWN: Final = 60
_DEEPEST: Final = 200  # levels of arrays and objects
_MOST_EXPLAINED: Final = 5_000  # values whose errors are looked at
_FIRST: Final = 20
_LONGEST_KEY: Final = 16  # shorter ones hold no secret
_TYPES: Final = {bool: "a boolean", str: "a text", dict: "an object", list: "an array", tuple: "an array"}


class Described(Protocol):
    """A tool as far as its arguments go: an API's, or one of an MCP server."""

    @property
    def name(self) -> str: ...

    def input_schema(self) -> dict[str, Any]: ...


def validated(tool: Described, arguments: Any) -> dict[str, Any]:
    """The arguments of a call, if they are what its schema says.

    Raises ArgumentsError with up to 20 problems; `where` of each is a JSON pointer into the arguments, and
    empty for all of them. Raises RequestError for a schema that no validator can use.
    """
    if not isinstance(arguments, Mapping):
        message = f"the arguments of {tool.name} are an object, this is {_kind(arguments)}"
        raise ArgumentsError(message, [Problem("expected an object")])
    given = arguments if isinstance(arguments, dict) else dict(arguments)
    nodes, depth = _size(given)
    if depth > _DEEPEST:
        said = f"they are nested {depth} deep or more; {_DEEPEST} is the most"
        raise ArgumentsError(f"the arguments of {tool.name} are nested too deep", [Problem(said)])
    validator = _validator(tool)
    try:
        if validator.is_valid(given):
            return given
        problems = list(islice(_problems(validator, given, tool, nodes), MOST_PROBLEMS + 1))
    except (ValueError, TypeError, RecursionError):
        said = "only text, numbers, true, false, null, arrays, and objects whose keys are texts are"
        raise ArgumentsError(f"the arguments of {tool.name} are no JSON data", [Problem(said)]) from None
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS] = Problem(f"there is more; the first {MOST_PROBLEMS} problems are listed")
    problems = [_with_reason(problem, tool) for problem in problems]
    raise ArgumentsError(f"the arguments of {tool.name} are not valid; nothing was sent", problems)


def _with_reason(problem: Problem, tool: Described) -> Problem:
    """A body that is one text, given as an object: why it has to be a text."""
    body = tool.request.body if isinstance(tool, Tool) else None
    if (
        body is None
        or body.binary
        or problem.where != f"/{argument_of(body.value)}"
        or "expected string" not in problem.message
    ):
        return problem
    return replace(problem, hint=f"the body is sent as {body.media_type}: write the document itself, as one text")


def _build(tool: Described) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    try:
        return Draft202012Validator(tool.input_schema(), offline=True, mask="[value]")
    except ValueError:
        raise RequestError(f"the input schema of {tool.name} is none; `toolgen check` says where") from None


_validator = PerTool(_build)


def _size(given: Any) -> tuple[int, int]:
    """How many values there are, and how deep they are nested, as far as that is within the bounds."""
    count, depth, level = 0, 0, [given]
    while level and depth <= _DEEPEST:
        count, depth = count + len(level), depth + 1
        inner = [
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list | tuple)
        ]
        level = [value for values in inner for value in values]
    return count, depth


def _problems(validator: Draft202012Validator, given: dict[str, Any], tool: Described, nodes: int) -> Iterator[Problem]:
    """What is wrong. The validator makes every error at once, so of long arrays it is given the first items only."""
    schema, shortened = tool.input_schema(), nodes > _MOST_EXPLAINED
    if shortened:
        given = _shortened(given)
        nodes = _size(given)[0]
    if nodes <= _MOST_EXPLAINED:
        for error in validator.iter_errors(given):
            yield from _told(error, given, schema)
    if shortened:
        yield Problem("they are too large to say all that is wrong; try fewer or smaller values")


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    return [_shortened(item) for item in value[:_FIRST]] if isinstance(value, list | tuple) else value


def _told(error: ValidationError, given: Any, schema: Any) -> Iterator[Problem]:
    """An error as problems: of alternatives, those of the one that comes nearest."""
    kind = error.kind.as_dict()
    name, where = error.kind.name, _pointer(error.instance_path)
    value = _at(given, error.instance_path)
    if name in ("additionalProperties", "unevaluatedProperties"):
        known = _known_keys(schema, error.schema_path)
        for key in kind["unexpected"]:
            yield _unknown_key(where, str(key), known)
    elif name == "required":
        yield Problem("it is required and missing", f"{where}/{_escaped(str(kind['property']))}")
    elif name in ("anyOf", "oneOf") and kind.get("context"):
        nearest = _nearest(kind["context"])
        if not all(kind["context"]):
            yield Problem(f"expected exactly one of the alternatives to fit, given {_shown(value)}: several do", where)
        elif nearest:
            for inner in nearest:
                yield from _told(inner, given, schema)
        else:
            yield Problem(f"{_shown(value)} fits none of the {len(kind['context'])} alternatives", where)
    else:
        yield Problem(f"expected {_expected(name, kind)}, given {_shown(value)}", where, suggestion=_near(value, kind))


def _nearest(branches: Sequence[Sequence[ValidationError]]) -> Sequence[ValidationError]:
    """The errors of the alternative that got furthest into the value; none where alternatives fail alike."""
    ranked = sorted(branches, key=lambda errors: (-_depth(errors), len(errors)))
    if not ranked or not ranked[0]:
        return ()
    types = [any(e.kind.name == "type" and not _deeper(e, errors) for e in errors) for errors in branches]
    fitting = [errors for errors, wrong_type in zip(branches, types, strict=True) if not wrong_type]
    if len(fitting) == 1:  # the others want another type altogether
        return fitting[0]
    return ranked[0] if len(ranked) == 1 or _depth(ranked[0]) > _depth(ranked[1]) else ()


def _deeper(error: ValidationError, among: Sequence[ValidationError]) -> bool:
    return len(error.instance_path) > min(len(one.instance_path) for one in among)


def _depth(errors: Sequence[ValidationError]) -> int:
    return max((len(error.instance_path) for error in errors), default=0)


def _expected(name: str, kind: Mapping[str, Any]) -> str:
    """The rule that was broken, in words."""
    limit = kind.get("limit")
    if name == "type":
        types = kind.get("types")
        return " or ".join(types if isinstance(types, list) else [str(types)])
    if name == "enum":
        options = kind.get("options", [])
        more = f" and {len(options) - _MOST_CHOICES} more" if len(options) > _MOST_CHOICES else ""
        return "one of " + ", ".join(map(_literal, options[:_MOST_CHOICES])) + more
    if name == "const":
        return _literal(kind.get("expected_value"))
    words = {
        "minimum": "at least {}", "maximum": "at most {}",
        "exclusiveMinimum": "more than {}", "exclusiveMaximum": "less than {}",
        "minLength": "at least {} characters", "maxLength": "at most {} characters",
        "minItems": "at least {} items", "maxItems": "at most {} items",
        "minProperties": "at least {} properties", "maxProperties": "at most {} properties",
    }  # fmt: skip
    if name in words:
        return words[name].format(limit)
    said = {
        "multipleOf": f"a multiple of {kind.get('multiple_of')}",
        "pattern": f"text that matches {str(kind.get('pattern'))[:200]}",
        "format": f"text of the format {kind.get('format')}",
        "uniqueItems": "items that are all different",
        "falseSchema": "nothing here",
        "not": "something else",
        "propertyNames": "other names of properties",
    }
    return said.get(name, f"what the schema's {name} says")


def _unknown_key(where: str, key: str, known: Sequence[str]) -> Problem:
    import difflib

    near = difflib.get_close_matches(key, known, n=1)
    listed = ", ".join(known[:_MOST_CHOICES]) + (" and more" if len(known) > _MOST_CHOICES else "")
    hint = f"did you mean {near[0]!r}?" if near else f"known are {listed}" if known else "there are none here"
    suggestion = near[0] if near else ""
    return Problem("this key is not known", f"{where}/{_escaped(key)}", hint=hint, suggestion=suggestion)


def _known_keys(schema: Any, path: Sequence[str | int]) -> list[str]:
    """The properties beside the keyword a schema path leads to; the path stands behind references already."""
    properties = _at(schema, [*path[:-1], "properties"])
    return list(properties) if isinstance(properties, dict) else []


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            value = value[int(step) if isinstance(value, list | tuple) else step]
        except (LookupError, TypeError, ValueError):
            return None
    return value


def _near(value: Any, kind: Mapping[str, Any]) -> str:
    import difflib

    options = [one for one in kind.get("options", []) if isinstance(one, str)]
    near = difflib.get_close_matches(value, options, n=1) if isinstance(value, str) else []
    return near[0] if near else ""


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{_escaped(str(step))}" for step in path)


def _escaped(step: str) -> str:
    """A step of a JSON pointer (RFC 6901); a model's key may be long, or a secret that is in the wrong place."""
    if len(step) > _LONGEST_KEY or not step.isidentifier():
        step = _literal(_redacted(step))[1:-1]
    return step.replace("~", "~0").replace("/", "~1")


def _redacted(text: str) -> str:
    from toolgen.identity.redact import Redactor

    return Redactor().text(text)


def _literal(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _kind(value: Any) -> str:
    return "null" if value is None else _TYPES.get(type(value), "a number")


def _shown(value: Any) -> str:
    """What was given: the kind, and the value itself where it is short and no secret by its looks."""
    if isinstance(value, dict | list | tuple) or value is None:
        return _kind(value)
    return f"{_kind(value)} {_literal(_redacted(value) if isinstance(value, str) else value)}"
