"""What is wrong with a toolset file, in plain words: pydantic's errors as Problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from toolgen.errors import Problem, did_you_mean
from toolgen.tools.files.places import Part, Place, written
from toolgen.tools.model import FORMAT_VERSION, Model, Toolset

if TYPE_CHECKING:
    from pydantic import ValidationError

MOST_PROBLEMS = 50

_EXPECTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "tuple_type": "a list",
    "int_type": "a whole number",
}


def version_problem(data: Mapping[str, Any]) -> Problem | None:
    """What is wrong with the format version, which is looked at before anything else."""
    version = data.get("toolgen")
    if version == FORMAT_VERSION and type(version) is int:
        return None
    if type(version) is int and version > FORMAT_VERSION:
        hint = "upgrade toolgen, or generate the file again with this version"
        return Problem(
            f"format {version} was made by a newer toolgen; this one reads {FORMAT_VERSION}", "toolgen", hint=hint
        )
    hint = f"a toolset starts with `toolgen: {FORMAT_VERSION}`; toolgen generate writes one"
    if "toolgen" not in data:
        if "openapi" in data or "swagger" in data:
            hint = "run `toolgen generate` with it first, and give the file that writes"
            return Problem("this is no toolset but an OpenAPI document", "toolgen", hint=hint)
        return Problem("this is no toolset: the key 'toolgen' is missing", "toolgen", hint=hint)
    return Problem("this is no format version", "toolgen", hint=hint)


def problems(error: ValidationError, data: Any) -> list[Problem]:
    """One Problem per place, in the file's order; no value of the file is repeated in them."""
    groups: dict[Place, list[tuple[Place, str]]] = {}
    for one in error.errors(include_input=False, include_url=False, include_context=False):
        union, place = _placed(one["loc"], data, one["type"] == "missing")
        groups.setdefault(union if union is not None else place, []).append((place, one["type"]))
    found = []
    for group, faults in groups.items():
        # Of a value that could be text or a mapping only the mapping's own faults say something.
        inner = [fault for fault in faults if fault[0] != group] or _joined(group, faults)
        found += [_problem(place, kind, data) for place, kind in inner]
    return found


def shortened(found: list[Problem]) -> list[Problem]:
    """The first of many problems, and how many there are besides."""
    more = len(found) - MOST_PROBLEMS
    return [*found[:MOST_PROBLEMS], Problem(f"and {more} more problems")] if more > 0 else found


def _placed(loc: Iterable[Part], data: Any, missing: bool) -> tuple[Place | None, Place]:
    """Where in the data an error is; pydantic's names for the branches of a union are not in it.

    The first place is that of the union an error is in, if it is in one.
    """
    union: Place | None = None
    place: list[Part] = []
    steps = list(loc)
    here: Any = data
    for index, step in enumerate(steps):
        if step in here if isinstance(here, dict) else isinstance(here, list) and isinstance(step, int):
            here = here[step]
        elif not (missing and index == len(steps) - 1):
            union = tuple(place)
            continue
        place.append(step)
    return union, tuple(place)


def _joined(place: Place, faults: list[tuple[Place, str]]) -> list[tuple[Place, str]]:
    kinds = dict.fromkeys(kind for _, kind in faults)
    return [(place, "|".join(kinds))]


def _problem(place: Place, kind: str, data: Any) -> Problem:
    name = str(place[-1]) if place else ""
    if kind == "missing":
        return Problem(f"the key {name!r} is missing", written(place[:-1]))
    if kind == "extra_forbidden":
        return Problem(f"unknown key {name!r}" + did_you_mean(name, _keys(place[:-1])), written(place))
    expected = [_EXPECTED[part] for part in kind.split("|") if part in _EXPECTED]
    if not expected:
        return Problem("this is not allowed here", written(place))
    given = data
    for step in place:
        given = given[step]
    hint = "quote it" if expected[0] == "text" and type(given) in (int, float, bool) else ""
    return Problem(f"must be {' or '.join(dict.fromkeys(expected))}, not {_kind_of(given)}", written(place), hint=hint)


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return kinds.get(type(value), type(value).__name__)


def _keys(place: Place) -> list[str]:
    """The keys a mapping at this place may have."""
    model: type[Model] | None = Toolset
    named = False  # inside a mapping whose keys are names, as `encoding` is
    for step in place:
        if isinstance(step, int) or model is None:
            continue
        if named:
            named = False
            continue
        field = next((f for f in model.model_fields.values() if f.alias == step), None)
        model = None if field is None else _model_in(field.annotation)
        named = field is not None and getattr(field.annotation, "__origin__", None) is dict
    return [] if model is None else [field.alias or "" for field in model.model_fields.values()]


def _model_in(annotation: Any) -> type[Model] | None:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
