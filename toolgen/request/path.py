"""Path values: each is one segment of its own, whoever reads the path and however often it is decoded.

RFC 3986 section 3.3; the refusals go further, since servers, proxies and frameworks decode a path more
than once, cut parameters off at `;`, and resolve `.` and `..` after they did.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from toolgen.openapi.endpoint import EXPRESSION
from toolgen.request.pertool import PerTool
from toolgen.tools.model import Tool
from toolgen.tools.siblings import fits

_DECODINGS: Final = 3
_SEPARATOR = re.compile(r"[/\\]")
_ENCODED = re.compile(r"%(?:2[EeFf]|5[Cc]|00)")
_DOTS: Final = (".", "..")
# Frameworks that route by a path's end take `me.json` for `me`.
_FORMAT = re.compile(r"\.[a-z0-9]{1,8}$")


def value_fault(text: str) -> str:
    """Why a text cannot stand in a path, or nothing."""
    if not text:
        return "is empty, which leads to another path"
    for _ in range(_DECODINGS + 1):
        if "\0" in text:
            return "has a NUL character"
        if any(_leads_elsewhere(segment) for segment in _SEPARATOR.split(text)):
            return "has an empty, `.` or `..` segment, which leads to another path"
        if _ENCODED.search(text):
            return "has an encoded slash, backslash, dot or NUL, which servers read differently"
        text = unquote(text)
    return ""


def _leads_elsewhere(segment: str) -> bool:
    return not segment.strip() or segment.partition(";")[0].strip() in _DOTS


@dataclass(frozen=True)
class PathTemplate:
    """A tool's path as it is sent: text and expressions in turn.

    `segments` are the texts around the expressions of each segment; `siblings` those of the paths of other
    operations, as careless servers compare them: decoded and without case.
    """

    pieces: tuple[str, ...]  # text at even places, names of expressions at odd ones
    segments: tuple[tuple[str, ...], ...]
    siblings: tuple[tuple[tuple[str, ...], ...], ...]

    def fill(self, values: Mapping[str, str]) -> str:
        """The path with its expressions filled; `values` are encoded."""
        return "".join(values[piece] if index % 2 else piece for index, piece in enumerate(self.pieces))

    def values(self, path: str) -> list[str] | None:
        """The encoded values a path has at the expressions; None if it is of another template, has a `.` or `..`
        segment, or could be read in two ways."""
        found: list[str] = []
        segments = path.split("/")
        if len(segments) != len(self.segments):
            return None
        for around, segment in zip(self.segments, segments, strict=True):
            values = _leftmost(around, segment)
            mirrored = _leftmost(tuple(piece[::-1] for piece in reversed(around)), segment[::-1])
            if values is None or mirrored is None or values != [one[::-1] for one in reversed(mirrored)]:
                return None
            if any(read.partition(";")[0] in _DOTS for read in _decodings(segment)):
                return None
            found += values
        return found

    def is_sibling(self, path: str) -> bool:
        """Whether a server could take the path for that of another operation."""
        return any(_is_of(sibling, read) for read in _read_as(path) for sibling in self.siblings)


def _build(tool: Tool) -> PathTemplate:
    pieces = EXPRESSION.split((tool.request.template or tool.endpoint.path).partition("?")[0])
    siblings = (
        tuple(unquote(piece).casefold() for piece in EXPRESSION.split(path)[::2]) for path in tool.request.siblings
    )
    return PathTemplate(
        tuple(piece[1:-1] if index % 2 else piece for index, piece in enumerate(pieces)),
        _segments(pieces[::2]),
        tuple(map(_segments, siblings)),
    )


path_template = PerTool(_build)


def _segments(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The texts around a path's expressions, cut at its slashes."""
    found: list[list[str]] = [[]]
    for text in texts:
        first, *others = text.split("/")
        found[-1].append(first)
        found += [[other] for other in others]
    return tuple(map(tuple, found))


def _leftmost(around: tuple[str, ...], segment: str) -> list[str] | None:
    """What stands between these texts in a segment, each as short as it can be, in linear time."""
    first, *others = around
    if not segment.startswith(first):
        return None
    at, values = len(first), []
    for index, text in enumerate(others):
        last = index == len(others) - 1
        end = len(segment) - len(text) if last else segment.find(text, at + 1)
        if end <= at or (last and not segment.endswith(text)):
            return None
        values.append(segment[at:end])
        at = end + len(text)
    return values if at == len(segment) else None


def _is_of(sibling: tuple[tuple[str, ...], ...], segments: list[str]) -> bool:
    """Whether decoded segments are of a sibling's path; frameworks take `me.json` for `me`."""
    if len(sibling) != len(segments):
        return False
    last = segments[-1], _FORMAT.sub("", segments[-1])
    return all(map(_fits, sibling[:-1], segments[:-1])) and any(_fits(sibling[-1], one) for one in last)


def _fits(around: tuple[str, ...], segment: str) -> bool:
    return around[0] == segment if len(around) == 1 else fits(list(around), segment)


def _read_as(path: str) -> Iterator[list[str]]:
    """The segments of a path as servers may read it: decoded, with and without `;` parameters, without case."""
    for read in _decodings(path):
        segments = read.casefold().split("/")
        yield segments
        yield [segment.partition(";")[0].strip().rstrip(".") for segment in segments]


def _decodings(text: str) -> Iterator[str]:
    for _ in range(_DECODINGS + 1):
        yield text
        text = unquote(text)
