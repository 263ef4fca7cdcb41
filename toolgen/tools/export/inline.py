"""Schemas without references, for targets that refuse `$ref`.

prance resolves a small document made for one schema. Before it is handed over, the document is
made safe for it: definitions have names of our own, recursion is written out as levels (so there
is no cycle left), data (examples, enums, defaults) is taken out, and a property that is *named*
`$ref` goes by another name until prance is done. How large the result will be is counted first.

What is cut: a type is written out at most EXPANSIONS times on one path; what is larger than
MAX_CHARACTERS or deeper than MAX_NESTING is cut after fewer references, the most that fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolgen.errors import MissingExtra
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.pointers import escape, reference_to
from toolgen.tools.export.prepare import Prepared
from toolgen.tools.export.recursion import Levels
from toolgen.tools.export.sizes import Shape, State, shape_of, weigh

EXPANSIONS = 2  # how often one path through a schema holds the same recursive type
MAX_CHARACTERS = 200_000  # of JSON, for one tool's schema with everything written out
MAX_NESTING = 200  # JSON objects and lists inside each other
MAX_REFERENCES = 64  # how many references deep the search for what fits begins

_DOCUMENT = "file:///toolgen/inline.json"
_ROOT: State = ("", 0, 0)
_CUT = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """Where references are cut: how often a type is written out, and how many references deep (None: any)."""

    expansions: int = EXPANSIONS
    depth: int | None = None


class Inliner:
    """Writes out references into one set of definitions; what it learns of them serves every schema."""

    def __init__(self, definitions: Mapping[str, Any], max_characters: int = MAX_CHARACTERS) -> None:
        self._definitions = definitions
        self._max_characters = max_characters
        self._levels = Levels(definitions)
        self._shapes: dict[State, Shape] = {}

    def __call__(self, schema: dict[str, Any], notes: Notes) -> dict[str, Any]:
        """A copy of the schema in which every reference is written out, or cut and noted."""
        root = {key: value for key, value in schema.items() if key != "$defs"}
        shape = shape_of(root)
        plan, size = Plan(), self._weigh(shape, Plan())
        if not self._fits(size):
            plan = self._deepest(shape)
            now = self._weigh(shape, plan)
            how = "once" if plan.depth is None else f"once, and references {plan.depth} deep only"
            notes.add(f"written out it has {_size(size)}: recursive types are expanded {how}")
            if not self._fits(now):
                notes.add(f"it still has {_size(now)}")
        return self._written(root, plan, notes)

    def _fits(self, size: Shape) -> bool:
        return size.characters <= self._max_characters and size.height <= MAX_NESTING

    def _deepest(self, root: Shape) -> Plan:
        """The plan that follows the most references and still fits; none of them if none fits."""
        if self._fits(self._weigh(root, Plan(1))):
            return Plan(1)
        low, high = 0, MAX_REFERENCES
        while low < high:
            middle = (low + high + 1) // 2
            if self._fits(self._weigh(root, Plan(1, middle))):
                low = middle
            else:
                high = middle - 1
        return Plan(1, low)

    def _weigh(self, root: Shape, plan: Plan) -> Shape:
        def shape(state: State) -> Shape:
            if state == _ROOT:
                return root
            key = (state[0], min(state[1], 0), 0)
            if key not in self._shapes:
                self._shapes[key] = shape_of(self._cut(state[0]) if key[1] == _CUT else self._definitions[state[0]])
            return self._shapes[key]

        return weigh(_ROOT, shape, partial(self._step, plan))

    def _step(self, plan: Plan, here: State, name: str) -> State:
        """Where a reference leads; the level is _CUT where it is not followed."""
        if name not in self._definitions:
            return name, _CUT, 0
        level = self._levels.next(None if here == _ROOT else here[0], name, here[1])
        references = 0 if plan.depth is None else here[2] + 1
        followed = level < plan.expansions and (plan.depth is None or references <= plan.depth)
        return (name, level, references) if followed else (name, _CUT, 0)

    def _cut(self, name: str) -> dict[str, Any]:
        """What stands for a type that is not written out: its kind and its name."""
        if name not in self._definitions:
            return {}
        definition = self._definitions[name]
        kind = definition.get("type") if isinstance(definition, dict) else None
        return {"type": kind if isinstance(kind, str) else "object", "description": f"{name}, not expanded further"}

    def _written(self, root: dict[str, Any], plan: Plan, notes: Notes) -> dict[str, Any]:
        prepared = Prepared()
        made: dict[str, Any] = {}
        keys: dict[State, str] = {}
        waiting: list[State] = []

        def follow(here: State, name: str, at: str) -> dict[str, Any]:
            state = self._step(plan, here, name)
            if state[1] == _CUT:
                known = name in self._definitions
                notes.add(f"{name!r} is " + ("not expanded further" if known else "not defined and left open"), at)
                return self._cut(name)
            if state not in keys:
                keys[state] = f"d{len(keys)}"
                waiting.append(state)
            return {"$ref": reference_to(keys[state])}

        body = prepared.prepare(root, "", partial(follow, _ROOT))
        while waiting:
            state = waiting.pop()
            where = f"/$defs/{escape(state[0])}"
            made[keys[state]] = prepared.prepare(self._definitions[state[0]], where, partial(follow, state))
        for pointer in prepared.too_deep:
            notes.add("nested too deep, cut here", pointer)
        found: dict[str, Any] = prepared.restore(_resolved({"schema": body, "$defs": made})["schema"] if made else body)
        return found


def _size(shape: Shape) -> str:
    characters = f"{shape.characters:,}" if shape.characters < 10**12 else "over a trillion"
    return f"{characters} characters, {shape.height} levels"


class _Gate(dict[Any, Any]):
    """prance's reference cache. It knows the document at hand and refuses to load any other."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The document itself; prance would load anything it does not find here."""
        if key in self:
            return self[key]
        raise LookupError(f"no document but the one at hand: {key!r}")


def _resolved(document: dict[str, Any]) -> dict[str, Any]:
    try:
        from prance.util.resolver import RefResolver
    except ImportError:
        raise MissingExtra(
            "this target refuses $ref, and writing references out needs prance: pip install 'toolgen[inline]'"
        ) from None
    resolver = RefResolver(document, _DOCUMENT, reference_cache=_Gate())
    resolver.resolve_references()
    found: dict[str, Any] = resolver.specs
    return found
