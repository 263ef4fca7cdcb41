"""Path values: each is one segment of its own, whoever reads the path and however often it is decoded.

RFC 3986 section 3.3; the refusals go further, since servers, proxies and frameworks decode a path more
than once, cut parameters off at `;`, and resolve `.` and `..` after they did.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from toolgen.openapi.endpoint import EXPRESSION, placeholders
from toolgen.request.pertool import PerTool
from toolgen.request.text import spelled
from toolgen.tools.model import Tool
from toolgen.tools.siblings import fits

_DECODINGS: Final = 3
_SEPARATOR = re.compile(r"[/\\]")
_SLASHES = re.compile(r"/{2,}")
# Slash, backslash, dot and NUL, also in UTF-8 that is too long and as old IIS takes them.
_ENCODED = re.compile(r"%(?:2[EF]|5C|00|C[01]|E0%[89]|F0%8|u(?:00|FF|22)[0-9A-F]{2})", re.IGNORECASE)
_DOTS = re.compile(r"[\s.]+")
# Where servers that decode first cut a segment, or the whole path, off.
_PARAMETERS = re.compile(r"[;?#\x00-\x1f\x7f].*", re.DOTALL)
# Characters that some systems turn into ASCII ones and compatibility normalisation (NFKC) does not.
_LOOKALIKES = str.maketrans("\u2044\u2215\u29f8\u2216\u29f5", "///\\\\")
# Frameworks that route by a path's end take `me.json` for `me`.
_FORMAT = re.compile(r"\.[a-z0-9]{1,8}$")


def value_fault(text: str) -> str:
    """Why a text cannot stand in a path, or nothing."""
    if not text:
        return "is empty, which leads to another path"
    for read in _decodings(_plain(text)):
        if "\0" in read:
            return "has a NUL character"
        if _leads_elsewhere(read):
            return "has an empty, `.` or `..` segment, which leads to another path"
        if _ENCODED.search(read):
            return "has an encoded slash, backslash, dot or NUL, which servers read differently"
    return ""


def has_separator(text: str) -> bool:
    """Whether a server that decodes first would take a text for more than one segment."""
    return _SEPARATOR.search(_plain(text)) is not None


def texts_in(value: Any) -> list[str]:
    """Every text that stands in the path for a value: members of arrays, keys and members of objects."""
    if isinstance(value, dict):
        return [text for key, item in value.items() if item is not None for text in (key, spelled(item))]
    if isinstance(value, list | tuple):
        return [spelled(item) for item in value if item is not None]
    return [spelled(value)]


def in_query(encoded: str) -> str:
    """An encoded path value as it may stand in the query of a template, where more characters separate."""
    return encoded.replace("&", "%26").replace("+", "%2B")


def _leads_elsewhere(text: str) -> bool:
    """Whether some segment of a text is nothing to a server: spaces and dots only, before what is cut off."""
    segments = (_PARAMETERS.sub("", segment) for segment in _SEPARATOR.split(text))
    return any(not segment or _DOTS.fullmatch(segment) for segment in segments)


def _plain(text: str) -> str:
    """The text with characters that look like ASCII ones (`\uff0e`, `\u2215`) as these, as some systems have it."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_LOOKALIKES))


_Segments = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class PathTemplate:
    """A tool's path as it is sent: text and expressions in turn.

    `segments` are the texts around the expressions of each segment; `siblings` those of the paths of other
    operations, as careless servers compare them: decoded, without case and without a slash at the end.
    `undivided` are the names of expressions whose value must have no slash.
    """

    pieces: tuple[str, ...]  # text at even places, names of expressions at odd ones
    segments: tuple[tuple[str, ...], ...]
    siblings: tuple[tuple[tuple[str, ...], ...], ...]
    undivided: frozenset[str]

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
            # Before a `;` may be nothing: so begins what the style `matrix` writes.
            if values and any(_DOTS.fullmatch(read.partition(";")[0]) for read in _decodings(segment)):
                return None
            found += values
        return found

    def is_sibling(self, path: str) -> bool:
        """Whether a server could take the path for that of another operation."""
        return any(_is_of(sibling, read) for read in _read_as(path) for sibling in self.siblings)


def _build(tool: Tool) -> PathTemplate:
    pieces = EXPRESSION.split((tool.request.template or tool.endpoint.path).partition("?")[0])
    own = _compared(tool.endpoint.path)
    siblings = tuple(map(_compared, tool.request.siblings))
    return PathTemplate(
        tuple(piece[1:-1] if index % 2 else piece for index, piece in enumerate(pieces)),
        _segments(pieces[::2]),
        siblings,
        frozenset(_undivided(tool.endpoint.path, own, [one for one in siblings if len(one) > len(own)])),
    )


def _compared(path: str) -> tuple[tuple[str, ...], ...]:
    texts = tuple(unquote(piece).casefold() for piece in EXPRESSION.split(path)[::2])
    found = _segments(texts)
    return found[:-1] if found[-1] == ("",) else found


def _undivided(path: str, own: _Segments, longer: Sequence[_Segments]) -> Iterator[str]:
    """The expressions at which a longer path begins to differ, or after which."""
    names = iter(placeholders(path))
    for index, around in enumerate(own):
        here = [next(names) for _ in around[1:]]
        if any(all(map(_alike, own[:index], other[:index])) for other in longer):
            yield from here


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether some segment could be of both; where both have expressions, it is taken for granted."""
    if len(one) > 1 and len(other) > 1:
        return True
    literal, template = (one, other) if len(one) == 1 else (other, one)
    return _fits(template, literal[0])


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
    for read in (path, *_decodings(unquote(path))):  # a value is decoded as often as when it is checked by itself
        segments = _SLASHES.sub("/", _plain(read).casefold()).removesuffix("/").split("/")
        yield segments
        yield [_PARAMETERS.sub("", segment).strip().rstrip(".") for segment in segments]


def _decodings(text: str) -> Iterator[str]:
    for _ in range(_DECODINGS + 1):
        yield text
        text = unquote(text)
