"""Schema Objects as JSON Schema 2020-12, self-contained, one direction at a time.

A schema a document names (by `$ref`) becomes a definition, everything else stays inline; each is
converted once, in one pass that also upgrades 2.0 and 3.0 and drops what no validator would take.
Recursion stays as `$ref`s into the definitions. What a request may not carry (`readOnly`) or an
answer will not (`writeOnly`) is left out, from `required` too.

Source: OpenAPI 3.2 "Schema Object"; JSON Schema 2020-12 core and validation.
"""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from toolgen.openapi import upgrade
from toolgen.openapi.diagnostics import Diagnostic, Level
from toolgen.openapi.references import Place, References, Resource, pointer_below
from toolgen.openapi.schema import discriminator
from toolgen.openapi.schema.keywords import PREFIX
from toolgen.openapi.schema.keywords import references as references_in
from toolgen.openapi.schema.names import Names
from toolgen.openapi.schema.sides import Direction, Sides
from toolgen.openapi.schema.targets import Target, Targets
from toolgen.openapi.schema.values import TYPES, VALUES, usable_pattern
from toolgen.openapi.text import clean, shown

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


class Schemas:
    """Converts schemas for one direction.

    `definitions` holds what was named so far, `uses` the definitions each of them points to; `drain`
    converts what is still waiting. Diagnostics of inline schemas go to `found`, those of a definition
    to `faults[name]`.
    """

    def __init__(self, references: References, direction: Direction, names: Names, base: Schemas | None = None) -> None:
        self.definitions: dict[str, Any] = {}
        self.uses: dict[str, frozenset[str]] = {}
        self.faults: dict[str, list[Diagnostic]] = {}
        self.found: list[Diagnostic] = []
        self.unknown: dict[str, str] = {}
        self._references = references
        self.sides = Sides(references, direction)
        self._skip, self._other = self.sides.skip, self.sides.other
        self._base = base
        earlier: Targets | None = base._targets if base else None
        self._targets: Targets = Targets(references, self.sides, names, f"-{direction}", earlier)
        if base is not None:
            self._targets.compare(base.uses)
        self._constants: list[dict[str, Any]] = []
        self._used: set[str] = set()
        self._dropped = False
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
        while self._targets.waiting:
            target = self._targets.waiting.popleft()
            self._place, self._root, self._current = target.place, target.place.node, target.name
            self._used, self._dropped = set(), False
            made = self.definitions[target.name] = self._whole(target.place)
            self.uses[target.name] = references_in(made) if self._dropped else frozenset(self._used)
        self._current = None

    def finish(self) -> None:
        """What needs every definition: `required` across compositions, and constants of discriminators."""
        definitions = ChainMap(self.definitions, self._base.definitions if self._base else {})
        for member in self._constants:
            discriminator.settle(member, definitions)
        self._constants.clear()
        self.sides.settle(definitions)

    # One schema

    def _whole(self, place: Place) -> Any:
        """The schema at a place; what Python cannot follow any deeper is any value, and reported."""
        try:
            return self._schema(place.node, place.resource)
        except RecursionError:
            self._dropped = True
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
                    plain = len(value) <= DESCRIPTION_CAP and value.isprintable()
                    out[key] = value.strip() if plain else clean(value, DESCRIPTION_CAP)
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
        self.sides.unrequire(out)
        if "allOf" in out or "anyOf" in out or "oneOf" in out:
            self.sides.compose(out)
        if "$ref" not in out:
            if "$dynamicRef" in source:
                self._dynamic(out, source["$dynamicRef"], source, resource)
            elif "$recursiveRef" in source:  # 2019-09: the nearest schema around that says `$recursiveAnchor`
                if self._current and isinstance(self._root, dict) and self._root.get("$recursiveAnchor") is True:
                    out["$ref"] = PREFIX + self._current
                    self._used.add(self._current)
                else:
                    self._dynamic(out, source["$recursiveRef"], source, resource)
        return out

    def _not_an_object(self, node: Any) -> Any:
        if node is True or node is False:
            return node
        self._diagnose(
            "degraded", f"a schema is an object or a boolean, this is {shown(node)}; anything is allowed", node
        )
        return {}

    def _reference(self, node: dict[str, Any], ref: str, resource: Resource) -> Any:
        if len(node) > 1 and "$id" in node and resource.dialect == "3.1":
            resource = self._references.within(node, resource)
        target = self._targets.of(ref, resource)
        if isinstance(target, str):
            self._diagnose("degraded", f"{target}; anything is allowed", node)
            alone = len(node) == 1 or resource.dialect != "3.1"
            return {} if alone else self._schema({k: v for k, v in node.items() if k != "$ref"}, resource)
        out: dict[str, Any] = {"$ref": PREFIX + target.name}
        self._used.add(target.name)
        if len(node) > 1:
            if resource.dialect == "3.1":
                siblings = self._schema({k: v for k, v in node.items() if k != "$ref"}, resource)
                kept = dict(siblings)
                siblings.clear()  # the same object, which others know by its identity
                siblings.update(out | kept)
                if "required" in siblings:
                    self.sides.compose(siblings)
                return siblings
            if node.get("description").__class__ is str:  # 3.0 ignores what stands beside $ref; prose does no harm
                out["description"] = clean(node["description"], DESCRIPTION_CAP)
        return out

    # Keywords that hold schemas

    def _properties(self, out: dict[str, Any], value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is not dict:
            self._diagnose("degraded", f"`properties` is an object, this is {shown(value)}", node)
            return
        made: dict[str, Any] = {}
        gone: list[str] = []
        for name, below in value.items():
            if below.__class__ is dict:
                ref = below.get("$ref")
                if ref.__class__ is str:
                    target = self._targets.of(ref, resource)
                    left_out, left_out_there = False, False
                    if target.__class__ is Target:
                        left_out, left_out_there = target.left_out, target.left_out_there
                    if resource.dialect == "3.1":
                        left_out = left_out or below.get(self._skip) is True
                        left_out_there = left_out_there or below.get(self._other) is True
                elif "allOf" in below:
                    left_out, left_out_there = self.sides.left_out(below, resource)
                else:
                    left_out, left_out_there = below.get(self._skip) is True, below.get(self._other) is True
                if (left_out or left_out_there) and self._current is not None:
                    self._targets.split(self._current)
                if left_out:
                    gone.append(name)
                    continue
            made[name] = self._schema(below, resource)
        out["properties"] = made
        if gone:
            self.sides.remove(out, gone)

    def _one(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is dict or value.__class__ is bool:
            before = self._said
            out[key] = self._schema(value, resource)
            if key == "not" and self._said > before:  # says less than it meant: then it would rule out too much
                del out[key]
                self._dropped = True
        else:
            self._diagnose("degraded", f"`{key}` is a schema, this is {shown(value)}", node)

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
            self._diagnose("degraded", f"`{key}` is an array of schemas, this is {shown(value)}", node)
        elif value:
            before = self._said
            made = [self._schema(member, resource) for member in value]
            if key == "oneOf" and self._said > before and {} in made:
                key = "anyOf"  # a member that cannot be read would match beside the one that does
            out[key] = made if key not in out else [*out[key], *made]

    def _map(self, out: dict[str, Any], key: str, value: Any, node: Any, resource: Resource) -> None:
        if value.__class__ is not dict:
            self._diagnose("degraded", f"`{key}` is an object of schemas, this is {shown(value)}", node)
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
                self._diagnose("degraded", f"the pattern {shown(pattern)} cannot be checked", node)
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
        target = self._targets.of(ref, resource) if isinstance(ref, str) else "it is no text"
        if isinstance(target, Target):
            out["$ref"] = PREFIX + target.name
            self._used.add(target.name)
        else:
            self._diagnose("degraded", f"a dynamic reference cannot be followed: {target}; anything is allowed", node)

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
        return pointer_below(self._place, node)


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
