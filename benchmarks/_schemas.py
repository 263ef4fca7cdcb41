"""Checks and sizes of input schemas, by tables of its own and not those of the generator.

The definitions tools share are looked at once: a schema is valid by the metaschema exactly if its
definitions and the rest of it are, the size of its compact JSON is a sum, and schemas over the same
definitions compile together exactly if each of them compiles, as long as every reference in them
names a definition. Where that is not so, and where a batch fails, they are compiled one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import jsonschema_rs

Schema = dict[str, Any]
Fault = tuple[str, str]  # tool, message

_SINGLE = (
    "items contains not if then else additionalProperties propertyNames unevaluatedItems unevaluatedProperties "
    "contentSchema"
).split()
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_ANCHORS = frozenset({"$id", "$anchor", "$dynamicAnchor", "$dynamicRef"})
_DEFINITION = "#/$defs/"
_BATCH = 200

METASCHEMA = {"$ref": "https://json-schema.org/draft/2020-12/schema"}


def size_of(value: Any) -> int:
    """Bytes of a value as compact JSON in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


def _references(schema: Any) -> tuple[set[str], bool]:
    """Every `$ref` in a schema position, and whether there are identifiers or anchors."""
    found: set[str] = set()
    anchored = False
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if not isinstance(here, dict):
            continue
        anchored = anchored or not _ANCHORS.isdisjoint(here)
        if isinstance(here.get("$ref"), str):
            found.add(here["$ref"])
        waiting.extend(here[key] for key in _SINGLE if key in here)
        for key in _LISTS:
            waiting.extend(here[key] if isinstance(here.get(key), list) else ())
        for key in _MAPS:
            waiting.extend(here[key].values() if isinstance(here.get(key), dict) else ())
    return found, anchored


def _leads_nowhere(reference: str, root: Schema) -> bool:
    """True if a reference leaves the schema, or names nothing in it."""
    if reference in ("#", ""):
        return False
    if not reference.startswith("#/"):
        return True
    here: Any = root
    for token in unquote(reference[2:]).split("/"):
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and token in here:
            here = here[token]
        elif isinstance(here, list) and token.isascii() and token.isdigit() and int(token) < len(here):
            here = here[int(token)]
        else:
            return True
    return not isinstance(here, dict | bool)


@dataclass(slots=True)
class _Facts:
    """What is known of one schema object; it is held, so that its identity stays its own."""

    schema: Any
    size: int
    references: set[str]
    plain: bool  # every reference names a definition, nothing is anchored
    fault: str


@dataclass(slots=True)
class _Closure:
    """What is known of a set of definitions; `waiting` are tools to compile over it."""

    definitions: Schema
    size: int
    references: set[str]
    plain: bool
    faults: list[str]
    dangling: set[str] | None = None  # known once, where it is the same for every schema
    waiting: list[tuple[str, Schema]] = field(default_factory=list)


class SchemaChecks:
    """Takes the input schemas of one toolset, one by one; `finish` compiles what is still waiting."""

    def __init__(self) -> None:
        self.invalid: list[Fault] = []
        self.dangling: list[Fault] = []
        self._metaschema = jsonschema_rs.Draft202012Validator(METASCHEMA, offline=True)
        self._facts: dict[int, _Facts] = {}
        self._closures: dict[tuple[Any, ...], _Closure] = {}

    def add(self, tool: str, schema: Schema) -> int:
        """Check a schema (it is the caller's own) and return its bytes as compact JSON."""
        definitions = schema.get("$defs") or {}
        own = {key: value for key, value in schema.items() if key != "$defs"} if definitions else schema
        closure, facts = self._closure(definitions), self._look(own)
        faults = [facts.fault, *closure.faults] if facts.fault else closure.faults
        self.invalid.extend((tool, fault) for fault in faults[:1])
        dangling = self._dangling(schema, facts, closure)
        self.dangling.extend((tool, reference) for reference in dangling)
        if not faults and not dangling:
            self._compile_later(tool, own, facts.plain and closure.plain, closure)
        if not definitions:
            return facts.size
        return facts.size + len('"$defs":{}') + closure.size + (1 if own else 0)

    def finish(self) -> None:
        """Compile what is still waiting."""
        for closure in self._closures.values():
            self.invalid.extend(_compile(closure.waiting, closure.definitions))
            closure.waiting.clear()

    def _compile_later(self, tool: str, own: Schema, plain: bool, closure: _Closure) -> None:
        if not plain:
            self.invalid.extend(_compile([(tool, own)], closure.definitions))
            return
        closure.waiting.append((tool, own))
        if len(closure.waiting) >= _BATCH:
            self.invalid.extend(_compile(closure.waiting, closure.definitions))
            closure.waiting.clear()

    def _closure(self, definitions: Schema) -> _Closure:
        key = (*definitions, *map(id, definitions.values()))
        known = self._closures.get(key)
        if known is None:
            facts = [self._remember(definition) for definition in definitions.values()]
            size = sum(size_of(name) + 1 for name in definitions) + sum(fact.size for fact in facts)
            known = self._closures[key] = _Closure(
                definitions=definitions,
                size=size + max(0, len(facts) - 1),
                references=set().union(*(fact.references for fact in facts)),
                plain=all(fact.plain for fact in facts),
                faults=[fact.fault for fact in facts if fact.fault],
            )
        return known

    @staticmethod
    def _dangling(schema: Schema, facts: _Facts, closure: _Closure) -> list[str]:
        if closure.plain:
            if closure.dangling is None:
                closure.dangling = {ref for ref in closure.references if _leads_nowhere(ref, schema)}
            return sorted({ref for ref in facts.references if _leads_nowhere(ref, schema)} | closure.dangling)
        return sorted(ref for ref in facts.references | closure.references if _leads_nowhere(ref, schema))

    def _remember(self, definition: Any) -> _Facts:
        known = self._facts.get(id(definition))
        if known is None:
            known = self._facts[id(definition)] = self._look(definition)
        return known

    def _look(self, schema: Any) -> _Facts:
        try:
            size, fault = size_of(schema), ""
            error = next(iter(self._metaschema.iter_errors(schema)), None)
            if error is not None:
                fault = f"metaschema: {error.message} at /{'/'.join(map(str, error.instance_path))}"
        except (TypeError, ValueError, RecursionError) as error:
            size, fault = 0, f"not JSON: {error}"
        references, anchored = _references(schema)
        plain = not anchored and all(reference.startswith(_DEFINITION) for reference in references)
        return _Facts(schema, size, references, plain, fault)


def _compile(tools: list[tuple[str, Schema]], definitions: Schema) -> Iterator[Fault]:
    """Compile schemas over the same definitions, together and, if that fails, one by one."""
    if len(tools) > 1:
        together: Schema = {"prefixItems": [own for _, own in tools], "$defs": definitions}
        if not _compile_error(together):
            return
    for tool, own in tools:
        error = _compile_error({**own, "$defs": definitions} if definitions else own)
        if error:
            yield tool, f"compile: {error}"


def _compile_error(schema: Schema) -> str:
    try:
        jsonschema_rs.Draft202012Validator(schema, offline=True)
    except BaseException as error:  # a panic in the extension is no Exception
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return ""
