"""What is made once for each tool and kept as long as the tool is."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class PerTool(Generic[S, T]):
    """Calls `make(tool)` the first time a tool is seen. Tools are told apart by identity: equal ones may differ in
    what their toolsets share."""

    def __init__(self, make: Callable[[S], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[weakref.ref[S], T]] = {}

    def __call__(self, tool: S) -> T:
        """What was made for this tool."""
        key = id(tool)
        found = self._kept.get(key)
        if found is not None and found[0]() is tool:
            return found[1]
        made = self._make(tool)
        self._kept[key] = weakref.ref(tool, lambda gone: self._forget(key, gone)), made
        return made

    def _forget(self, key: int, gone: weakref.ref[S]) -> None:
        found = self._kept.get(key)
        if found is not None and found[0] is gone:  # another tool may live at that address by now
            del self._kept[key]
