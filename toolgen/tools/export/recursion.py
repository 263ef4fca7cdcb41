"""Which references between definitions lead back to where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgen.openapi.schema.keywords import references


class Levels:
    """Turns a graph with cycles into levels without any.

    Definitions that reach each other form a group. Within a group every cycle has at least one
    reference that goes backwards in the order of first visit; following one adds a level. So on any
    path one definition stands at most once per level, and with a limit on levels the graph ends.
    """

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._edges = {name: sorted(references(schema) & definitions.keys()) for name, schema in definitions.items()}
        self._order: dict[str, int] = {}
        self._group: dict[str, int] = {}
        self._low: dict[str, int] = {}
        self._open: list[str] = []
        for name in definitions:
            if name not in self._order:
                self._visit(name)

    def next(self, origin: str | None, target: str, level: int) -> int:
        """The level of `target` when it is reached from `origin` (None: the root), which stands at `level`."""
        if origin is None or self._group[origin] != self._group[target]:
            return 0
        return level + (self._order[target] <= self._order[origin])

    def _visit(self, start: str) -> None:
        """Tarjan's strongly connected components, without recursion."""
        work = [(start, 0)]
        while work:
            name, step = work.pop()
            if step == 0:
                self._order[name] = self._low[name] = len(self._order)
                self._open.append(name)
            else:
                self._low[name] = min(self._low[name], self._low[self._edges[name][step - 1]])
            for index in range(step, len(self._edges[name])):
                target = self._edges[name][index]
                if target not in self._order:
                    work += [(name, index + 1), (target, 0)]
                    break
                if target not in self._group:
                    self._low[name] = min(self._low[name], self._order[target])
            else:
                self._close(name)

    def _close(self, name: str) -> None:
        if self._low[name] == self._order[name]:
            while True:
                member = self._open.pop()
                self._group[member] = self._order[name]
                if member == name:
                    return
