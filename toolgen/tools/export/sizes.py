"""How large a schema becomes when its references are written out, counted without writing it out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolgen.openapi.schema.keywords import subschemas
from toolgen.tools.export.pointers import reference_to, target_of
from toolgen.tools.export.prepare import Prepared, original_name

MAX_SCHEMAS = 50_000  # in one tool, once its variants are written out
State = tuple[str, int, int]  # a definition's name, its level within itself, references from the root


@dataclass(frozen=True, slots=True)
class Shape:
    """One schema without what it refers to: characters of JSON, objects and lists inside each other.

    `references` has, for each reference in it, its target and how deep it stands.
    """

    characters: int
    height: int
    references: tuple[tuple[str, int], ...] = ()


def shape_of(schema: Any) -> Shape:
    """The shape of a schema as `Prepared` hands it over."""
    prepared = Prepared()
    found: list[tuple[str, int]] = []
    height = 0

    def characters(here: Any, depth: int) -> int:
        nonlocal height
        if not isinstance(here, dict | list):
            return prepared.lengths[here] if here in prepared.lengths else len(_text(here))
        target = target_of(here)
        if target is not None:
            found.append((target, depth))
            return 0
        height = max(height, depth + 1)
        inside = here.values() if isinstance(here, dict) else here
        keys = sum(len(_text(original_name(key))) + 1 for key in here) if isinstance(here, dict) else 0
        return 2 + keys + sum(characters(each, depth + 1) for each in inside) + max(len(here) - 1, 0)

    total = characters(prepared.prepare(schema, "", lambda name, at: {"$ref": reference_to(name)}), 0)
    return Shape(total, height, tuple(found))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def weigh(start: State, shape: Callable[[State], Shape], step: Callable[[State, str], State]) -> Shape:
    """The whole of what a state writes out; every state is counted once, however often it is used.

    `step` gives the state a reference leads to from here; the graph of states has no cycle.
    """
    known: dict[State, Shape] = {}
    waiting: list[State] = [start]
    while waiting:
        here = waiting[-1]
        own = shape(here)
        next_ones = [(step(here, name), depth) for name, depth in own.references]
        missing = [state for state, _ in next_ones if state not in known]
        if missing:
            waiting.extend(missing)
            continue
        waiting.pop()
        parts = [(known[state], depth) for state, depth in next_ones]
        characters = own.characters + sum(part.characters for part, _ in parts)
        known[here] = Shape(characters, max([own.height, *(part.height + depth for part, depth in parts)]))
    return known[start]


def schemas_in(schema: Any) -> int:
    """How many schemas are inside a schema whose parts may be shared, each counted as often as it is used."""
    known: dict[int, int] = {}

    def count(here: Any) -> int:
        if id(here) not in known:
            known[id(here)] = 1 + (sum(map(count, subschemas(here))) if isinstance(here, dict) else 0)
        return known[id(here)]

    return count(schema)
