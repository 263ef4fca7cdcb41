"""Paths of a document that a value in another path could be steered into.

`/users/me` beside `/users/{id}`: a model that writes `me` as the id reaches another endpoint than
the one that was classified. Every such path is kept with the tool, filtered-out ones too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolgen.openapi.endpoint import skeleton

ANY = "{}"


@dataclass(slots=True)
class _Node:
    """A segment of the tree of all paths; `path` is set where one ends."""

    below: dict[str, _Node] = field(default_factory=dict)
    path: str | None = None


class Siblings:
    """Finds the sibling paths of a template among all paths of a document."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._root = _Node()
        for path in paths:
            node = self._root
            for segment in skeleton(path):
                node = node.below.setdefault(segment, _Node())
            node.path = node.path or path

    def of(self, path: str) -> tuple[str, ...]:
        """Normalised paths that some values of this template's parameters would spell, sorted."""
        segments = skeleton(path)
        if not any(ANY in segment for segment in segments):
            return ()
        # (node, whether some segment is more exact there than here)
        level: list[tuple[_Node, bool]] = [(self._root, False)]
        for segment in segments:
            level = [(below, exact) for node, steered in level for below, exact in _step(node, segment, steered)]
        return tuple(sorted({node.path for node, steered in level if steered and node.path and node.path != path}))


def _step(node: _Node, segment: str, steered: bool) -> Iterable[tuple[_Node, bool]]:
    if ANY not in segment:
        for key in (segment, ANY):
            if key in node.below:
                yield node.below[key], steered
        return
    own = _pattern(segment)
    for key, below in node.below.items():
        if key == segment:
            yield below, steered
        elif ANY not in key:
            if own.fullmatch(key):
                yield below, True
        elif segment == ANY or key == ANY or own.fullmatch(key.replace(ANY, "x")):
            yield below, steered or key != ANY


def _pattern(segment: str) -> re.Pattern[str]:
    return re.compile("".join("(.+)" if part == ANY else re.escape(part) for part in re.split(r"(\{\})", segment)))
