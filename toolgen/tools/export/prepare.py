"""Makes a schema safe for a resolver that knows no difference between schemas and data, and undoes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from toolgen.openapi.schema.keywords import LIST, MAP, ONE
from toolgen.tools.export.pointers import escape, target_of

MAX_DEPTH = 60  # schemas inside each other within one definition
_TOKEN = "\x00data:"  # noqa: S105 (no secret)
_NAMED_REF = re.compile(r"_*\$ref")

Follow = Callable[[str, str], dict[str, Any]]


class Prepared:
    """Holds what was taken out of the schemas it prepared, so that it can be put back.

    A property named `$ref` is written `_$ref` meanwhile (and `_$ref` is `__$ref`, and so on). Every
    value that is data stands as a token; `lengths` has the length of each as JSON.
    """

    def __init__(self) -> None:
        self._data: list[Any] = []
        self.lengths: dict[str, int] = {}
        self.too_deep: list[str] = []

    def prepare(self, schema: Any, at: str, follow: Follow, depth: int = 0) -> Any:
        """A copy whose only `$ref`s are what `follow(name, at)` answers for a reference."""
        if not isinstance(schema, dict):
            return schema
        if depth > MAX_DEPTH:
            self.too_deep.append(at)
            return {"type": "object", "description": "Not expanded further"}
        copy: dict[str, Any] = {}
        for key, value in schema.items():
            if key != "$ref" and key != "$defs":
                copy[key] = self._keyword(key, value, f"{at}/{key}", follow, depth)
        target = target_of(schema)
        if target is None:
            return copy
        found = follow(target, at)
        if not copy:
            return found
        return {**copy, "allOf": [found, *copy.get("allOf", [])]}  # a reference beside other keywords

    def _keyword(self, key: str, value: Any, at: str, follow: Follow, depth: int) -> Any:
        if key in MAP and isinstance(value, dict):
            return {
                _rename(name): self.prepare(each, f"{at}/{escape(name)}", follow, depth + 1)
                for name, each in value.items()
            }
        if key in LIST and isinstance(value, list):
            return [self.prepare(each, f"{at}/{i}", follow, depth + 1) for i, each in enumerate(value)]
        if key in ONE:
            return self.prepare(value, at, follow, depth + 1)
        if isinstance(value, dict | list) or (isinstance(value, str) and value.startswith(_TOKEN)):
            return self._take(value)
        return value

    def _take(self, value: Any) -> str:
        token = f"{_TOKEN}{len(self._data)}"
        self._data.append(value)
        self.lengths[token] = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
        return token

    def restore(self, schema: Any) -> Any:
        """The schema with data and names as they were; nothing in it is shared."""
        if not isinstance(schema, dict):
            return schema
        return {key: self._restored(key, value) for key, value in schema.items()}

    def _restored(self, key: str, value: Any) -> Any:
        if key in MAP and isinstance(value, dict):
            return {original_name(name): self.restore(each) for name, each in value.items()}
        if key in LIST and isinstance(value, list):
            return [self.restore(each) for each in value]
        if key in ONE:
            return self.restore(value)
        if isinstance(value, str) and value.startswith(_TOKEN):
            return json.loads(json.dumps(self._data[int(value[len(_TOKEN) :])]))
        return value


def _rename(name: str) -> str:
    return "_" + name if _NAMED_REF.fullmatch(name) else name


def original_name(name: str) -> str:
    """The name a property really has."""
    return name[1:] if name != "$ref" and _NAMED_REF.fullmatch(name) else name
