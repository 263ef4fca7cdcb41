"""Schemas without references, for targets that refuse `$ref`.

prance resolves a small document made for one schema. Before it is handed over, the document is
made safe for it: definitions have names of our own, recursion is written out as levels (so there
is no cycle left), data (examples, enums, defaults) is taken out, and a property that is *named*
`$ref` goes by another name until prance is done. prance shares structure, so the size of the
result is counted before anything of that size exists.

What is cut: a type is written out at most EXPANSIONS times within itself; what stays larger than
MAX_CHARACTERS or deeper than MAX_NESTING is cut after fewer references, the most that fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolgen.errors import MissingExtra
from toolgen.tools.export.notes import Notes
from toolgen.tools.export.pointers import escape, reference_to
from toolgen.tools.export.prepare import Prepared
from toolgen.tools.export.recursion import Levels
from toolgen.tools.export.sizes import characters_of, height_of

EXPANSIONS = 2  # how often one path through a schema holds the same recursive type
MAX_CHARACTERS = 200_000  # of JSON, for one tool's schema with everything written out
MAX_NESTING = 200  # JSON objects and lists inside each other
MAX_REFERENCES = 64  # how many references deep the search for what fits begins

_DOCUMENT = "file:///toolgen/inline.json"


def inline(schema: dict[str, Any], notes: Notes, max_characters: int = MAX_CHARACTERS) -> dict[str, Any]:
    """A copy of a self-contained schema in which every reference is written out, or cut and noted."""
    root = {key: value for key, value in schema.items() if key != "$defs"}
    definitions = schema.get("$defs", {})
    levels = Levels(root, definitions)

    def fits(attempt: _Attempt) -> bool:
        return attempt.characters <= max_characters and attempt.height <= MAX_NESTING

    first = _attempt(root, definitions, levels, EXPANSIONS, None)
    best = first if fits(first) else _attempt(root, definitions, levels, 1, None)
    if not fits(best):
        best = _deepest(lambda depth: _attempt(root, definitions, levels, 1, depth), fits)
    _report(best, first, max_characters, notes)
    return best.restored()


@dataclass(slots=True)
class _Attempt:
    """One way to write a schema out: prance's result, sizes, and where it was cut."""

    prepared: Prepared
    result: Any
    expansions: int
    depth: int | None
    cuts: dict[str, str] = field(default_factory=dict)
    characters: int = 0
    height: int = 0

    def restored(self) -> dict[str, Any]:
        found: dict[str, Any] = self.prepared.restore(self.result)
        return found


def _deepest(attempt: Callable[[int], _Attempt], fits: Callable[[_Attempt], bool]) -> _Attempt:
    """The attempt that follows the most references and still fits; without any if none fits."""
    low, high = 0, MAX_REFERENCES
    best = attempt(0)
    while low < high:
        middle = (low + high + 1) // 2
        tried = attempt(middle)
        if fits(tried):
            low, best = middle, tried
        else:
            high = middle - 1
    return best


def _attempt(
    root: dict[str, Any], definitions: dict[str, Any], levels: Levels, expansions: int, depth: int | None
) -> _Attempt:
    """Write the schema out with at most `expansions` of a type in itself and `depth` references."""
    prepared = Prepared()
    made: dict[str, Any] = {}
    waiting: list[tuple[str, tuple[str, int, int]]] = []
    keys: dict[tuple[str, int, int], str] = {}
    cuts: dict[str, str] = {}

    def follow(here: tuple[str, int, int], name: str, at: str) -> dict[str, Any]:
        if name not in definitions:
            cuts.setdefault(f"the reference to {name!r} points nowhere and is left open", at)
            return {}
        level = levels.next(here[0], name, here[1])
        references = 0 if depth is None else here[2] + 1
        if level >= expansions:
            cuts.setdefault(f"{name!r} is written out {_times(expansions)} within itself and cut there", at)
        elif depth is not None and references > depth:
            cuts.setdefault(f"{name!r} is not expanded everywhere", at)
        else:
            state = (name, level, references)
            if state not in keys:
                keys[state] = f"d{len(keys)}"
                waiting.append((keys[state], state))
            return {"$ref": reference_to(keys[state])}
        return _cut(name, definitions[name])

    body = prepared.prepare(root, "", partial(follow, ("", 0, 0)))
    while waiting:
        key, state = waiting.pop()
        made[key] = prepared.prepare(definitions[state[0]], f"/$defs/{escape(state[0])}", partial(follow, state))
    result = _resolve({"schema": body, "$defs": made})["schema"] if made else body
    return _Attempt(
        prepared, result, expansions, depth, cuts, characters_of(result, prepared.lengths), height_of(result)
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _cut(name: str, definition: Any) -> dict[str, Any]:
    """What stands where a type is not written out again: its kind and its name."""
    kind = definition.get("type") if isinstance(definition, dict) else None
    return {"type": kind if isinstance(kind, str) else "object", "description": f"{name}, not expanded further"}


def _report(best: _Attempt, first: _Attempt, max_characters: int, notes: Notes) -> None:
    if best.depth is not None:
        characters = f"{first.characters:,}" if first.characters < 10**12 else "over a trillion"
        size = f"{characters} characters, {first.height} levels"
        notes.add(f"written out it has {size}: references are followed {best.depth} deep only")
        if best.characters > max_characters or best.height > MAX_NESTING:
            notes.add(f"it still has {best.characters:,} characters and {best.height} levels")
    for message, pointer in best.cuts.items():
        notes.add(message, pointer)
    for pointer in best.prepared.too_deep:
        notes.add("nested too deep, cut here", pointer)


class _Gate(dict[Any, Any]):
    """prance's reference cache. It knows the document at hand and refuses to load any other."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The document itself; prance would load anything it does not find here."""
        if key in self:
            return self[key]
        raise LookupError(f"no document but the one at hand: {key!r}")


def _resolve(document: dict[str, Any]) -> dict[str, Any]:
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
