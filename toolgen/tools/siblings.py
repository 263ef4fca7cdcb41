"""Paths of a document that a value in another path could be steered into.

`/users/me` beside `/users/{id}`: a model that writes `me` as the id reaches another endpoint than
the one that was classified. Every such path is kept with the tool, filtered-out ones too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property

from toolgen.openapi.endpoint import skeleton

ANY = "{}"
_LAST = "\U0010ffff"


class _Node:
    """A segment of the tree of all paths; `paths` are those that end here."""

    __slots__ = ("below", "paths")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.paths: list[str] = []


class _Places:
    """Where the first segments of a template can be in the tree, one set for all templates that begin alike.

    Each place comes with whether some segment so far is more exact there than in the template.
    """

    def __init__(self, places: list[tuple[_Node, bool]]) -> None:
        self.places = places
        self._after: dict[str, _Places] = {}
        self._looked_up = 0

    def after(self, segment: str) -> _Places:
        """The places one segment further on."""
        found = self._after.get(segment)
        if found is None:
            found = self._after[segment] = _Places(list(self._step(segment)))
        return found

    @cached_property
    def _size(self) -> int:
        return sum(len(node.below) for node, _ in self.places)

    @cached_property
    def _by_segment(self) -> dict[str, list[tuple[_Node, bool]]]:
        found: dict[str, list[tuple[_Node, bool]]] = {}
        for node, steered in self.places:
            for key, below in node.below.items():
                found.setdefault(key, []).append((below, steered))
        return found

    @cached_property
    def _forwards(self) -> list[tuple[str, str]]:
        """Every segment here with what it looks like when its expressions are filled in, sorted by that."""
        return sorted((key.replace(ANY, "x"), key) for key in self._by_segment if key != ANY)

    @cached_property
    def _backwards(self) -> list[tuple[str, str]]:
        return sorted((text[::-1], key) for text, key in self._forwards)

    def _step(self, segment: str) -> Iterator[tuple[_Node, bool]]:
        if ANY not in segment:
            yield from (one for key in (segment, ANY) for one in self._named(key))
            return
        for key in self._spelled(segment):
            exact = key not in (segment, ANY)
            yield from ((below, steered or exact) for below, steered in self._by_segment[key])

    def _named(self, key: str) -> Iterable[tuple[_Node, bool]]:
        """The places below of that name: looked up one by one until sorting all of them is less work."""
        self._looked_up += len(self.places)
        if self._looked_up <= self._size:
            return [(node.below[key], steered) for node, steered in self.places if key in node.below]
        return self._by_segment.get(key, ())

    def _spelled(self, segment: str) -> Iterator[str]:
        """The segments here that values of a template segment would spell."""
        if segment == ANY:
            yield from filter(None, self._by_segment)  # no expression is empty
            return
        pieces = segment.split(ANY)
        yield from (key for key in (segment, ANY) if key in self._by_segment)
        # Only what begins, or ends, as the template does is looked at.
        if pieces[0] or not pieces[-1]:
            candidates = _starting(self._forwards, pieces[0])
        else:
            candidates = _starting(self._backwards, pieces[-1][::-1])
        for _, key in candidates:
            if key != segment and fits(pieces, key.replace(ANY, "x")):
                yield key


class Siblings:
    """Finds the sibling paths of a template among all paths of a document."""

    def __init__(self, paths: Iterable[str]) -> None:
        root = _Node()
        for path in paths:
            node = root
            for segment in skeleton(path):
                node = node.below.setdefault(segment, _Node())
            node.paths.append(path)
        self._start = _Places([(root, False)])
        self._found: dict[str, tuple[str, ...]] = {}

    def of(self, path: str) -> tuple[str, ...]:
        """Normalised paths that some values of this template's parameters would spell, sorted."""
        segments = skeleton(path)
        if not any(ANY in segment for segment in segments):
            return ()
        shape = "/".join(segments)
        if shape not in self._found:
            here = self._start
            for segment in segments:
                here = here.after(segment)
            steered = (place.paths for place, exact in here.places if exact)
            self._found[shape] = tuple(sorted({one for paths in steered for one in paths}))
        return self._found[shape]


def _starting(words: list[tuple[str, str]], start: str) -> list[tuple[str, str]]:
    """The pairs of a sorted list whose first text starts so."""
    return words[bisect_left(words, (start,)) : bisect_left(words, (start + _LAST,))] if start else words


def fits(pieces: list[str], text: str) -> bool:
    """Whether a text is these pieces with at least one character between each two; in linear time."""
    first, *between, last = pieces
    if not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in between:
        found = text.find(piece, at + 1, end)
        if found < 0:
            return False
        at = found + len(piece)
    return at < end
