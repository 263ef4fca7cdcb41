"""The schemas a toolset shares, and which of them a tool reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgen.openapi.schema.keywords import PREFIX, references


class Definitions:
    """Shared schemas by name. Reachability takes time in proportion to what is reached, cycles or not."""

    def __init__(self, schemas: Mapping[str, Any], direct: Mapping[str, frozenset[str]] | None = None) -> None:
        self.schemas = schemas
        self._direct: dict[str, frozenset[str]] = dict(direct or {})  # what is known already
        self._reached: dict[frozenset[str], tuple[str, ...]] = {}

    def direct(self, name: str) -> frozenset[str]:
        """What the schema of that name points to; empty if there is none."""
        found = self._direct.get(name)
        if found is None:
            found = self._direct[name] = references(self.schemas.get(name))
        return found

    def reached(self, names: frozenset[str]) -> tuple[str, ...]:
        """All names reachable from these, these included, sorted; the answer is kept."""
        found = self._reached.get(names)
        if found is None:
            found = self._reached[names] = tuple(sorted(self._walk(names)))
        return found

    def _walk(self, names: Iterable[str]) -> set[str]:
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self.schemas:
                seen.add(name)
                waiting.extend(self.direct(name) - seen)
        return seen

    def named(self, schema: Any) -> Any:
        """The schema itself, or the one that it only names."""
        for _ in range(20):
            if not isinstance(schema, dict) or set(schema) != {"$ref"}:
                break
            schema = self.schemas.get(schema["$ref"].removeprefix(PREFIX), {})
        return schema

    def close(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with the definitions it reaches added as `$defs`; the argument is changed."""
        names = self.reached(references(schema))
        if names:
            schema["$defs"] = {name: self.schemas[name] for name in names}
        return schema
