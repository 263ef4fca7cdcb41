"""readOnly and writeOnly: what a request may not carry, and what an answer will not.

A property of the other side is left out of a schema. Its name must then leave `required` too,
wherever the schema is composed with others (`allOf`, `anyOf`, `oneOf`, what stands beside a `$ref`).

Source: OpenAPI 3.2 "Schema Object"; JSON Schema 2020-12 validation, section 9.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from toolgen.openapi.references import Dangling, References, Resource
from toolgen.openapi.schema.keywords import PREFIX

Direction = Literal["request", "response"]
COMPOSITIONS = ("allOf", "anyOf", "oneOf")
_SKIPPED: dict[Direction, tuple[str, str]] = {
    "request": ("readOnly", "writeOnly"),
    "response": ("writeOnly", "readOnly"),
}


class Sides:
    """What was left out of the converted schemas of one direction.

    `skip` is the keyword whose schemas are left out, `other` the one that the other direction leaves
    out. Schemas are told apart by identity: they are kept here as long as it matters.
    """

    def __init__(self, references: References, direction: Direction) -> None:
        self.skip, self.other = _SKIPPED[direction]
        self._references = references
        self._removed: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}
        self._composed: list[dict[str, Any]] = []
        self._silent: set[int] = set()  # ids of schemas that no direction leaves out

    def left_out(self, node: Any, resource: Resource) -> tuple[bool, bool]:
        """Whether this direction leaves a schema of the document out, and whether the other one does.

        It does if the schema says so, what it refers to, or a member of its `allOf`.
        """
        left_out, left_out_there = False, False
        waiting, seen = [(node, resource)], set()
        while waiting:
            here, within = waiting.pop()
            if here.__class__ is not dict or id(here) in self._silent or id(here) in seen:
                continue
            seen.add(id(here))
            ref = here.get("$ref")
            if ref.__class__ is not str or within.dialect == "3.1":  # 3.0 ignores what stands beside a `$ref`
                left_out = left_out or here.get(self.skip) is True
                left_out_there = left_out_there or here.get(self.other) is True
            if ref.__class__ is str:
                try:
                    place = self._references.resolve(ref, within)
                except Dangling:
                    continue
                waiting.append((place.node, place.resource))
            members = here.get("allOf")
            if members.__class__ is list:
                waiting += [(member, within) for member in members]
        if not left_out and not left_out_there:
            self._silent |= seen
        return left_out, left_out_there

    def remove(self, schema: dict[str, Any], names: Iterable[str]) -> None:
        """Note the properties that a converted schema has lost."""
        self._removed[id(schema)] = schema, frozenset(names)

    def compose(self, schema: dict[str, Any]) -> None:
        """Note a converted schema that is composed of others."""
        self._composed.append(schema)

    def adopt(self, original: dict[str, Any], made: dict[str, Any]) -> None:
        """What is known of a converted schema holds of one that was made of it, too."""
        if id(original) in self._removed:
            self.remove(made, self._removed[id(original)][1])
        if not made.keys().isdisjoint(COMPOSITIONS):
            self.compose(made)

    def unrequire(self, schema: dict[str, Any]) -> None:
        """Take a schema's own lost properties out of its `required`."""
        if id(schema) in self._removed:
            _unrequire(schema, self._removed[id(schema)][1])

    def settle(self, definitions: Mapping[str, Any]) -> None:
        """Take lost properties out of `required` across compositions; needs every definition."""
        lost = self._lost(definitions) if self._removed else {}
        for schema in self._composed if lost else ():
            gone, parts = frozenset(lost.get(id(schema), ())), [schema]
            while gone and parts:
                part = parts.pop()
                _unrequire(part, gone)
                parts.extend(p for p in _inline_members(part) if isinstance(p, dict))
        self._composed.clear()

    def _lost(self, definitions: Mapping[str, Any]) -> dict[int, set[str]]:
        """By the id of a composed schema: the properties that it or what it is composed of has lost."""
        users: dict[int, list[dict[str, Any]]] = {}
        waiting, seen = list(self._composed), set(map(id, self._composed))
        while waiting:
            here = waiting.pop()
            for member in _members(here, definitions):
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


def _members(schema: dict[str, Any], definitions: Mapping[str, Any]) -> Iterable[Any]:
    ref = schema.get("$ref")
    if ref is not None:
        yield definitions.get(ref.removeprefix(PREFIX))
    yield from _inline_members(schema)


def _inline_members(schema: dict[str, Any]) -> Iterable[Any]:
    for key in COMPOSITIONS:
        yield from schema.get(key, ())


def _unrequire(schema: dict[str, Any], gone: frozenset[str]) -> None:
    if "required" in schema:
        kept = [name for name in schema["required"] if name not in gone]
        if kept:
            schema["required"] = kept
        else:
            del schema["required"]
    for name, needed in schema.get("dependentRequired", {}).items():
        schema["dependentRequired"][name] = [other for other in needed if other not in gone]
