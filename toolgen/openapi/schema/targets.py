"""What a `$ref` in a schema means: a definition with a name of its own, converted once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from toolgen.openapi.references import Dangling, Place, References, Resource
from toolgen.openapi.schema.names import Names
from toolgen.openapi.schema.sides import Sides
from toolgen.openapi.text import shown


@dataclass(frozen=True, slots=True)
class Target:
    """A definition: its name, where its schema stands, and which directions leave it out."""

    name: str
    place: Place
    left_out: bool
    left_out_there: bool


class Targets:
    """The definitions of one direction; `waiting` are those that were named and not converted yet.

    With an `earlier` direction, what looks alike in both keeps one name and is not converted again;
    what differs gets the suffix.
    """

    def __init__(
        self, found: References, sides: Sides, names: Names, suffix: str = "", earlier: Targets | None = None
    ) -> None:
        self.waiting: deque[Target] = deque()
        self._references = found
        self._sides = sides
        self._names = names
        self._suffix = suffix
        self._earlier = earlier
        self._alike: frozenset[tuple[int, str]] = frozenset()
        self._by_ref: dict[tuple[int, str], Target | str] = {}
        self._by_place: dict[tuple[int, str], Target] = {}
        self._split: set[str] = set()

    def of(self, ref: str, resource: Resource) -> Target | str:
        """The definition a reference means, or the reason why it means none."""
        key = (id(resource), ref)
        found = self._by_ref.get(key)
        if found is None:
            try:
                found = self._named(self._place(ref, resource))
            except Dangling as error:
                found = str(error)
            self._by_ref[key] = found
        return found

    def split(self, name: str) -> None:
        """Note that a definition's schema differs between the directions."""
        self._split.add(name)

    def compare(self, uses: dict[str, frozenset[str]]) -> None:
        """Learn which of the earlier direction's definitions, with all they reach, look alike in both."""
        assert self._earlier is not None
        users: dict[str, list[str]] = {}
        for name, used in uses.items():
            for definition in used:
                users.setdefault(definition, []).append(name)
        waiting, split = list(self._earlier._split), set(self._earlier._split)
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in split:
                    split.add(user)
                    waiting.append(user)
        known = self._earlier._by_place.items()
        self._alike = frozenset(place for place, target in known if target.name not in split)

    def _place(self, ref: str, resource: Resource) -> Place:
        """Where the schema stands: through references that say nothing else."""
        place = self._references.resolve(ref, resource)
        seen = set()
        while isinstance(place.node, dict) and isinstance(place.node.get("$ref"), str):
            if place.resource.dialect == "3.1" and len(place.node) > 1:
                break
            if (id(place.resource), place.pointer) in seen:
                raise Dangling(f"{ref!r} refers to itself")
            seen.add((id(place.resource), place.pointer))
            place = self._references.resolve(place.node["$ref"], place.resource)
        if not isinstance(place.node, dict | bool):
            raise Dangling(f"{ref!r} leads to {shown(place.node)}, which is no schema")
        return place

    def _named(self, place: Place) -> Target:
        stands = place
        while stands.resource.home is not None:  # a schema with an `$id` is the same by its pointer
            outer, pointer = stands.resource.home
            stands = Place(place.node, outer, pointer + stands.pointer)
        where = (id(stands.resource), stands.pointer)
        known = self._by_place.get(where)
        if known is not None:
            return known
        left_out = self._sides.left_out(place.node, place.resource)
        earlier = self._earlier._by_place.get(where) if self._earlier else None
        if earlier is not None and where in self._alike:
            target = Target(earlier.name, place, *left_out)
        else:
            target = Target(self._names.claim(stands, self._suffix if earlier else ""), place, *left_out)
            self.waiting.append(target)
        self._by_place[where] = target
        return target
