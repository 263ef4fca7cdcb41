"""Schema Objects as JSON Schema 2020-12, self-contained, one direction at a time.

A schema a document names (by `$ref`) becomes a definition, everything else stays inline; each is
converted once, in one pass that also upgrades 2.0 and 3.0 and drops what no validator would take.
Recursion stays as `$ref`s into the definitions. What a request may not carry (`readOnly`) or an
answer will not (`writeOnly`) is left out, from `required` too.

Source: OpenAPI 3.2 "Schema Object"; JSON Schema 2020-12 core and validation.
"""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolgen.openapi import discriminator, upgrade
from toolgen.openapi.diagnostics import Diagnostic, Level
from toolgen.openapi.keywords import references
from toolgen.openapi.names import Names
from toolgen.openapi.references import Dangling, Place, References, Resource, escape
from toolgen.openapi.text import clean
from toolgen.openapi.values import TYPES, VALUES, usable_pattern

Direction = Literal["request", "response"]
DESCRIPTION_CAP = 1000
# What makes a schema take the slow way through `upgrade` and, for `$id`, another base for its references.
_OLD = frozenset({"nullable", "x-nullable", "exclusiveMinimum", "exclusiveMaximum", "$id"})
_KNOWN = frozenset({"$schema", "$id", "$anchor", "$dynamicAnchor", "$comment", "$defs", "$vocabulary", "definitions"})
_KNOWN |= {
    "$recursiveRef",
    "$recursiveAnchor",
    "discriminator",
    "xml",
    "externalDocs",
    "readOnly",
    "writeOnly",
    "nullable",
    "$dynamicRef",
    "contentSchema",
}
# Keywords that need the whole schema to be converted first.
_LATE = frozenset(
    {"required", "dependentRequired", "allOf", "anyOf", "oneOf", "discriminator", "$dynamicRef", "$recursiveRef"}
)
_SKIPPED: dict[Direction, tuple[str, str]] = {
    "request": ("readOnly", "writeOnly"),
    "response": ("writeOnly", "readOnly"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a reference means: the definition's name, and whether the schema is left out of this or the other direction."""

    name: str
    place: Place
    left_out: bool
    left_out_there: bool


class Schemas:
    """Converts schemas for one direction.

    `definitions` holds what was named so far; `drain` converts what is still waiting. Diagnostics of
    inline schemas go to `found`, those of a definition to `faults[name]`.
    """

    def __init__(self, references: References, direction: Direction, names: Names, base: Schemas | None = None) -> None:
        self.definitions: dict[str, Any] = {}
        self.faults: dict[str, list[Diagnostic]] = {}
        self.found: list[Diagnostic] = []
        self.unknown: dict[str, str] = {}
        self._references = references
        self._direction = direction
        self._skip, self._other = _SKIPPED[direction]
        self._names = names
        self._base = base
        self._shared = base.same_in_both_directions() if base else frozenset()
        self._targets: dict[tuple[int, str], Target | str] = {}
        self._named: dict[tuple[int, str], Target] = {}
        self._waiting: deque[Target] = deque()
        self._removed: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}  # with the object whose id it is
        self._composed: list[dict[str, Any]] = []
        self._constants: list[dict[str, Any]] = []
        self._silent: dict[str, set[int]] = {self._skip: set(), self._other: set()}  # ids of what does not say so
        self._all: Mapping[str, Any] = self.definitions
        self._split: set[str] = set()
        self._said = 0
        self._current: str | None = None
        self._root: Any = None
        self._place: Place | None = None

    def convert(self, place: Place) -> Any:
        """The schema at a place as JSON Schema 2020-12: a mapping, or a boolean."""
        self._place, self._root, self._current = place, place.node, None
        return self._whole(place)

    def drain(self) -> None:
        """Convert every definition that was named and is not there yet."""
        while self._waiting:
            target = self._waiting.popleft()
            self._place, self._root, self._current = target.place, target.place.node, target.name
            self.definitions[target.name] = self._whole(target.place)
        self._current = None

    def finish(self) -> None:
        """What needs every definition: `required` across compositions, and constants of discriminators."""
        self._all = ChainMap(self.definitions, self._base.definitions if self._base else {})
        for member in self._constants:
            discriminator.settle(member, self._all)
        lost = self._lost() if self._removed else {}
        for schema in self._composed if lost else ():
            gone, parts = frozenset(lost.get(id(schema), ())), [schema]
            while gone and parts:
                part = parts.pop()
                _unrequire(part, gone)
                parts.extend(p for p in self._inline_members(part) if isinstance(p, dict))
        self._composed.clear()
        self._constants.clear()

    def adopt(self, original: dict[str, Any], made: dict[str, Any]) -> None:
        """What is known of a converted schema holds of one that was made of it, too."""
        if id(original) in self._removed:
            self._removed[id(made)] = made, self._removed[id(original)][1]
        if not {"allOf", "anyOf", "oneOf"}.isdisjoint(made):
            self._composed.append(made)

    def same_in_both_directions(self) -> frozenset[tuple[int, str]]:
        """The places whose definitions, and all they reach, look alike in requests and answers."""
        users: dict[str, list[str]] = {}
        for name, schema in self.definitions.items():
            for used in references(schema):
                users.setdefault(used, []).append(name)
        waiting, split = list(self._split), set(self._split)
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in split:
                    split.add(user)
                    waiting.append(user)
        return frozenset(place for place, target in self._named.items() if target.name not in split)

    # One schema

    def _whole(self, place: Place) -> Any:
        """The schema at a place; what Python cannot follow any deeper is any value, and reported."""
        try:
            return self._schema(place.node, place.resource)
        except RecursionError:
            self._diagnose("degraded", "the schema is nested too deep to be read; anything is allowed", place.node)
            return {}

    def _schema(self, node: Any, resource: Resource) -> Any:
        if node.__class__ is not dict:
            return self._not_an_object(node)
        ref = node.get("$ref")
        if ref.__class__ is str:
            return self._reference(node, ref, resource)
        source = node
        if not _OLD.isdisjoint(node) or node.get("type") == "file":
            source = upgrade.schema(node, resource.dialect)
            if "$id" in node and resource.dialect == "3.1":
                resource = self._references.within(node, resource)
        out: dict[str, Any] = {}
        for key, value in source.items():
            if key == "type" and value.__class__ is str and value in TYPES:
                out[key] = value
            elif key == "description":
                if value.__class__ is str and key not in out:  # a pattern may have written it, with this text
                    out[key] = clean(value, DESCRIPTION_CAP)
            elif key == "properties":
                self._properties(out, value, node, resource)
            elif (check := _check_of(key)) is not None:
                fault = check(out, key, value, source)
                if fault:
                    self._diagnose("degraded", fault, node)
            elif (apply := _applicator_of(key)) is not None:
                apply(self, out, key, value, node, resource)
            elif key not in _KNOWN and not key.startswith("x-"):
                self._unknown_keyword(key, node)
        return out if _LATE.isdisjoint(source) else self._finished(out, source, resource)

    def _finished(self, out: dict[str, Any], source: dict[str, Any], resource: Resource) -> dict[str, Any]:
        if "discriminator" in source:
            self._constants += discriminator.describe(out, source["discriminator"], source)
        if id(out) in self._removed:
            _unrequire(out, self._removed[id(out)][1])
        if "allOf" in out or "anyOf" in out or "oneOf" in out:
            self._composed.append(out)
        if "$ref" not in out:
            if "$dynamicRef" in source:
                self._dynamic(out, source["$dynamicRef"], source, resource)
            elif "$recursiveRef" in source:  # 2019-09: the nearest schema around that says `$recursiveAnchor`
                if self._current and isinstance(self._root, dict) and self._root.get("$recursiveAnchor") is True:
                    out["$ref"] = "#/$defs/" + self._current
                else:
                    self._dynamic(out, source["$recursiveRef"], source, resource)
        return out

    def _not_an_object(self, node: Any) -> Any:
        if node is True or node is False:
            return node
        self._diagnose(
            "degraded", f"a schema is an object or a boolean, this is {_shown(node)}; anything is allowed", node
        )
        return {}

    def _reference(self, node: dict[str, Any], ref: str, resource: Resource) -> Any:
        if len(node) > 1 and "$id" in node and resource.dialect == "3.1":
            resource = self._references.within(node, resource)
        target = self._target(ref, resource)
        if target is None:
            self._diagnose("degraded", str(self._targets[id(resource), ref]) + "; anything is allowed", node)
            alone = len(node) == 1 or resource.dialect != "3.1"
            return {} if alone else self._schema({k: v for k, v in node.items() if k != "$ref"}, resource)
        out: dict[str, Any] = {"$ref": "#/$defs/" + target.name}
        if len(node) > 1:
            if resource.dialect == "3.1":
                siblings = self._schema({k: v for k, v in node.items() if k != "$ref"}, resource)
                kept = dict(siblings)
                siblings.clear()  # the same object, which others know by its identity
                siblings.update(out | kept)
                if "required" in siblings:
                    self._composed.append(siblings)
                return siblings
            if node.get("description").__class__ is str:  # 3.0 ignores what stands beside $ref; prose does no harm
                out["description"] = clean(node["description"], DESCRIPTION_CAP)
        return out

    def _target(self, ref: str, resource: Resource) -> Target | None:
        key = (id(resource), ref)
        found = self._targets.get(key)
        if found is None:
            try:
                found = self._name(self._schema_place(ref, resource))
            except Dangling as error:
                found = str(error)
            self._targets[key] = found
        return found if isinstance(found, Target) else None

    def _schema_place(self, ref: str, resource: Resource) -> Place:
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
            raise Dangling(f"{ref!r} leads to {_shown(place.node)}, which is no schema")
        return place

    def _name(self, place: Place) -> Target:
        stands = place
        while stands.resource.home is not None:  # a schema with an `$id` is the same by its pointer
            outer, pointer = stands.resource.home
            stands = Place(place.node, outer, pointer + stands.pointer)
        where = (id(stands.resource), stands.pointer)
        known = self._named.get(where)
        if known is not None:
            return known
        sides = self._says(self._skip, place.node, place.resource), self._says(self._other, place.node, place.resource)
        earlier = self._base._named.get(where) if self._base else None
        if earlier is not None and where in self._shared:
            target = Target(earlier.name, place, *sides)
        else:
            suffix = f"-{self._direction}" if earlier is not None else ""
            target = Target(self._names.claim(stands, suffix), place, *sides)
            self._waiting.append(target)
        self._named[where] = target
        return target

    def _says(self, keyword: str, node: Any, resource: Resource) -> bool:
        """Whether a schema, what it refers to, or a member of its `allOf` says `readOnly` or `writeOnly`."""
        waiting, seen = [(node, resource)], set()
        silent = self._silent[keyword]
        while waiting:
            here, within = waiting.pop()
            if not isinstance(here, dict) or id(here) in seen or id(here) in silent:
                continue
            seen.add(id(here))
            if here.get(keyword) is True and ("$ref" not in here or within.dialect == "3.1"):
                return True
            if isinstance(here.get("$ref"), str):
                try:
                    place = self._references.resolve(here["$ref"], within)
                except Dangling:
                    continue
                waiting.append((place.node, place.resource))
            members = here.get("allOf")
            if isinstance(members, list):
                waiting.extend((member, within) for member in members)
        silent |= seen
        return False

    # Keywords that hold schemas

    def _properties(self, out: dict[str, Any], value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is not dict:
            self._diagnose("degraded", f"`properties` is an object, this is {_shown(value)}", node)
            return
        made: dict[str, Any] = {}
        gone: list[str] = []
        for name, below in value.items():
            if below.__class__ is dict:
                ref = below.get("$ref")
                if ref.__class__ is str:
                    target = self._target(ref, resource)
                    left_out = target is not None and target.left_out
                    if target is not None and target.left_out_there:
                        self._mark_split()
                    if resource.dialect == "3.1" and below.get(self._skip) is True:
                        left_out = True
                else:
                    left_out = below.get(self._skip) is True
                    if "allOf" in below:
                        left_out = left_out or self._says(self._skip, below, resource)
                        if self._says(self._other, below, resource):
                            self._mark_split()
                if left_out:
                    gone.append(name)
                    continue
                if below.get(self._other) is True:
                    self._mark_split()
            made[name] = self._schema(below, resource)
        out["properties"] = made
        if gone:
            self._removed[id(out)] = out, frozenset(gone)
            self._mark_split()

    def _mark_split(self) -> None:
        if self._current is not None:
            self._split.add(self._current)

    def _one(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is dict or value.__class__ is bool:
            before = self._said
            out[key] = self._schema(value, resource)
            if key == "not" and self._said > before:  # says less than it meant: then it would rule out too much
                del out[key]
        else:
            self._diagnose("degraded", f"`{key}` is a schema, this is {_shown(value)}", node)

    def _items(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is not list:
            self._one(out, "items", value, node, resource)
            return
        if value:  # a tuple as JSON Schema wrote it before 2020-12
            out["prefixItems"] = [self._schema(member, resource) for member in value]
        if isinstance(node.get("additionalItems"), dict | bool):
            out["items"] = self._schema(node["additionalItems"], resource)

    def _list(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is dict:
            self._diagnose("degraded", f"`{key}` is an array, this is an object; it is read as its only member", node)
            value = [value]
        if value.__class__ is not list:
            self._diagnose("degraded", f"`{key}` is an array of schemas, this is {_shown(value)}", node)
        elif value:
            before = self._said
            made = [self._schema(member, resource) for member in value]
            if key == "oneOf" and self._said > before and {} in made:
                key = "anyOf"  # a member that cannot be read would match beside the one that does
            out[key] = made if key not in out else [*out[key], *made]

    def _map(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is not dict:
            self._diagnose("degraded", f"`{key}` is an object of schemas, this is {_shown(value)}", node)
            return
        if key == "patternProperties":
            value = self._patterns(value, node)
        out[key] = {name: self._schema(member, resource) for name, member in value.items()}

    def _patterns(self, value: dict[str, Any], node: Any) -> dict[str, Any]:
        """`patternProperties` with mended patterns; one that cannot be checked may be any name."""
        kept: dict[str, Any] = {}
        for pattern, member in value.items():
            usable = usable_pattern(pattern)
            if usable is None:
                self._diagnose("degraded", f"the pattern {_shown(pattern)} cannot be checked", node)
                if "additionalProperties" in node or "unevaluatedProperties" in node:
                    kept.setdefault("", {})
            elif usable in kept:
                kept[usable] = {"allOf": [kept[usable], member]}
            else:
                kept[usable] = member
        return kept

    def _dependencies(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        """`dependencies` of draft 7, which 2019-09 split in two."""
        for name, needed in value.items() if isinstance(value, dict) else ():
            if isinstance(needed, list):
                out.setdefault("dependentRequired", {})[name] = [n for n in needed if isinstance(n, str)]
            else:
                out.setdefault("dependentSchemas", {})[name] = self._schema(needed, resource)

    def _dynamic(self, out: dict[str, Any], ref: Any, node: Any, resource: Resource) -> None:
        target = self._target(ref, resource) if isinstance(ref, str) else None
        if target is None:
            self._diagnose("degraded", f"`$dynamicRef` {_shown(ref)} leads nowhere; anything is allowed", node)
        else:
            out["$ref"] = "#/$defs/" + target.name

    # Removed properties across compositions

    def _lost(self) -> dict[int, set[str]]:
        """By the id of a composed schema: the properties that it or what it is composed of has lost."""
        users: dict[int, list[dict[str, Any]]] = {}
        waiting, seen = list(self._composed), set(map(id, self._composed))
        while waiting:
            here = waiting.pop()
            for member in self._members(here):
                if isinstance(member, dict):
                    users.setdefault(id(member), []).append(here)
                    if id(member) not in seen:
                        seen.add(id(member))
                        waiting.append(member)
        lost: dict[int, set[str]] = {}
        for holder, names in self._removed.values():
            waiting = [holder]
            while waiting:
                here = waiting.pop()
                known = lost.setdefault(id(here), set())
                if not names <= known:
                    known |= names
                    waiting += users.get(id(here), [])
        return lost

    def _members(self, schema: dict[str, Any]) -> Iterable[Any]:
        ref = schema.get("$ref")
        if ref is not None:
            yield self._all.get(ref.removeprefix("#/$defs/"))
        yield from self._inline_members(schema)

    @staticmethod
    def _inline_members(schema: dict[str, Any]) -> Iterable[Any]:
        for key in ("allOf", "anyOf", "oneOf"):
            yield from schema.get(key, ())

    # Diagnostics

    def _unknown_keyword(self, key: str, node: Any) -> None:
        if key not in self.unknown and len(self.unknown) < 20:
            self.unknown[key] = self._pointer(node)

    def _diagnose(self, level: Level, message: str, node: Any) -> None:
        self._said += 1
        diagnostic = Diagnostic(level, message, self._pointer(node))
        if self._current is None:
            self.found.append(diagnostic)
        else:
            self.faults.setdefault(self._current, []).append(diagnostic)

    def _pointer(self, node: Any) -> str:
        """The pointer of a node below the schema at hand: searched for, since faults are rare."""
        assert self._place is not None
        waiting = [(self._root, "")]
        while waiting:
            here, pointer = waiting.pop()
            if here is node:
                return str(Place(None, self._place.resource, self._place.pointer + pointer))
            if isinstance(here, dict):
                waiting.extend((value, f"{pointer}/{escape(key)}") for key, value in here.items())
            elif isinstance(here, list):
                waiting.extend((value, f"{pointer}/{index}") for index, value in enumerate(here))
        return str(self._place)


def _unrequire(schema: Any, gone: frozenset[str]) -> None:
    if not isinstance(schema, dict) or not gone:
        return
    if "required" in schema:
        kept = [name for name in schema["required"] if name not in gone]
        if kept:
            schema["required"] = kept
        else:
            del schema["required"]
    for name, needed in schema.get("dependentRequired", {}).items():
        schema["dependentRequired"][name] = [other for other in needed if other not in gone]


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return clean(repr(value), 40)


_APPLICATORS = {
    "items": Schemas._items,
    "additionalItems": lambda *_: None,  # with `items`
    "dependencies": Schemas._dependencies,
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), Schemas._list),
    **dict.fromkeys(("patternProperties", "dependentSchemas"), Schemas._map),
    **dict.fromkeys(("additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"), Schemas._one),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), Schemas._one),
}
_check_of = VALUES.get
_applicator_of = _APPLICATORS.get
