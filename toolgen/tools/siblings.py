"""Paths of a document that a value in another path could be steered into.

`/users/me` beside `/users/{id}`: a model that writes `me` as the id reaches another endpoint than
the one that was classified. Every such path is kept with the tool, filtered-out ones too. A slash at a
path's end makes no difference here, since it makes none to many servers.

Of longer paths, which a value with a slash would spell, one is kept that stands for all: whatever other
values reach is found between the same expressions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property

from toolgen.openapi.endpoint import skeleton

ANY = "{}"
_LAST = "\U0010ffff"
_NONE = (0, "")


class _Node:
    """A segment of the tree of all paths; `paths` are those that end here.

    `deepest` is the path below with the most segments, after their number; `longest` has the same for the
    paths that end in the same literal segment, and under ANY for those that end in one with an expression.
    """

    __slots__ = ("below", "deepest", "longest", "paths")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.paths: list[str] = []
        self.deepest: tuple[int, str] = _NONE
        self.longest: dict[str, tuple[int, str]] = {}


class _Places:
    """Where the first segments of a template can be in the tree, one set for all templates that begin alike.

    Each place comes with whether some segment so far is more exact there than in the template.
    """

    def __init__(self, places: list[tuple[_Node, bool]]) -> None:
        self.places = places
        self._after: dict[str, _Places] = {}
        self._looked_up = 0
        self._asked = 0

    def after(self, segment: str) -> _Places:
        """The places one segment further on."""
        found = self._after.get(segment)
        if found is None:
            found = self._after[segment] = _Places(list(self._step(segment)))
        return found

    def longest(self, last: str) -> tuple[int, str]:
        """The longest path below that ends in this segment, or could: how many segments it has, and the path."""
        if ANY in last:
            return self._longest
        self._asked += len(self.places)
        if self._asked <= self._endings:  # as in `_named`
            return max(node.longest.get(key, _NONE) for node, _ in self.places for key in (last, ANY))
        return max(self._longest_by_end.get(key, _NONE) for key in (last, ANY))

    @cached_property
    def _longest(self) -> tuple[int, str]:
        return max((node.deepest for node, _ in self.places), default=_NONE)

    @cached_property
    def _endings(self) -> int:
        return sum(len(node.longest) for node, _ in self.places)

    @cached_property
    def _longest_by_end(self) -> dict[str, tuple[int, str]]:
        found: dict[str, tuple[int, str]] = {}
        for node, _ in self.places:
            for key, path in node.longest.items():
                found[key] = max(path, found.get(key, _NONE))
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
            node, segments = root, _shape(path)
            last, own = ANY if ANY in segments[-1] else segments[-1], (len(segments), path)
            for segment in segments:
                node.longest[last] = max(own, node.longest.get(last, _NONE))
                node.deepest = max(own, node.deepest)
                node = node.below.setdefault(segment, _Node())
            node.paths.append(path)
        self._start = _Places([(root, False)])
        self._found: dict[str, tuple[str, ...]] = {}

    def of(self, path: str) -> tuple[str, ...]:
        """Normalised paths that some values of this template's parameters would spell, sorted."""
        segments = _shape(path)
        if not any(ANY in segment for segment in segments):
            return ()
        shape = "/".join(segments)
        if shape not in self._found:
            self._found[shape] = tuple(sorted(self._of(segments)))
        return self._found[shape]

    def _of(self, segments: list[str]) -> set[str]:
        here, longer = self._start, ""
        for segment in segments:
            if ANY in segment:
                count, path = here.longest(segments[-1])
                longer = path if count > len(segments) else longer
            here = here.after(segment)
        found = {path for place, exact in here.places if exact for path in place.paths}
        return found | {longer} if longer else found


def _shape(path: str) -> list[str]:
    segments = skeleton(path)
    return segments[:-1] if len(segments) > 1 and not segments[-1] else segments


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
