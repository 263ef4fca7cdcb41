"""The pattern language, and the only place that matches: `http.post:/pets/*`, `mcp:read_*`, `delete_*`.

`*` stands for any run of characters, also none and also across `/`, `:` and newlines; everything else
is literal. A pattern is anchored at both ends and case-sensitive, and matches addresses of its own
form only. The form is read off the text: without a colon it is a name; where what follows the first
colon starts with `/`, or what precedes it has a dot, an endpoint; else a source and a name.

A pattern that cannot match does not exist: making one raises unless some address could match it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from fnmatch2 import fnmatchcase2

from toolgen.errors import PatternError
from toolgen.policy.address import (
    Address,
    EndpointAddress,
    SourceAddress,
    Vocabulary,
    is_method,
    is_source_name,
    is_tool_name,
)
from toolgen.policy.possible import impossible_in_name, impossible_in_path

LONGEST: Final = 256  # characters of a pattern
_RUNS = re.compile(r"\*{2,}")


class Form(StrEnum):
    """What kind of address a pattern matches."""

    endpoint = "endpoint"
    source = "source"
    name = "name"


class Glob:
    """A text in which `*` stands for any run of characters; matching takes time linear in the text."""

    __slots__ = ("_head", "_middle", "_shortest", "_tail", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        head, *rest = text.split("*")
        self._head = head
        self._tail = rest.pop() if rest else None  # None: there is no `*`
        self._middle = [piece for piece in rest if piece]
        self._shortest = len(text) - text.count("*")

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        if self._tail is None:
            return text == self._head
        if len(text) < self._shortest or not text.startswith(self._head) or not text.endswith(self._tail):
            return False
        start, end = len(self._head), len(text) - len(self._tail)
        # The leftmost place of each piece leaves the most room for the next.
        for piece in self._middle:
            found = text.find(piece, start, end)
            if found < 0:
                return False
            start = found + len(piece)
        return True

    @property
    def is_literal(self) -> bool:
        """Whether there is no `*` in it, so that it matches one text only."""
        return self._tail is None

    @property
    def longest_literal(self) -> str:
        """The longest run of characters that every match contains."""
        return max((self._head, *self._middle, self._tail or ""), key=len)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Pattern:
    """One pattern of an approval config: immutable, valid by construction, equal by what it matches.

    `sources` are the names of APIs, `servers` those of MCP servers, and `methods` those that documents
    declare in `additionalOperations`, beside the reserved sources and OpenAPI's methods.
    `specificity` is higher for the more specific of two patterns: fewer wildcards, then more characters.

    Raises PatternError where no address of the pattern's form could match it.
    """

    text: str
    form: Form
    before: Glob | None  # the source, or `source.method`; None for a name
    target: Glob  # the path or the name
    specificity: int

    def __init__(
        self, text: str, *, sources: Iterable[str] = (), methods: Iterable[str] = (), servers: Iterable[str] = ()
    ) -> None:
        self._read(text, vocabulary(sources, servers, methods))

    @classmethod
    def of(cls, text: str, words: Vocabulary) -> Pattern:
        """The pattern, read with these sources and methods. Raises PatternError."""
        pattern = cls.__new__(cls)
        pattern._read(text, words)
        return pattern

    def _read(self, text: str, words: Vocabulary) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a pattern is a text, not {type(text).__name__}")
        if not can_match(text, words):
            from toolgen.policy.advice import pattern_problem

            problem = pattern_problem(text, words)
            raise PatternError("no call could match this pattern", [problem])
        form, before, target = split(text)
        says = _RUNS.sub("*", text)
        fields = {
            "text": text,
            "form": form,
            "before": None if before is None else Glob(before),
            "target": Glob(target),
            "specificity": len(says) - 1024 * says.count("*"),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def is_literal(self) -> bool:
        """Whether there is no `*` in it: it names what it matches."""
        return self.target.is_literal and (self.before is None or self.before.is_literal)

    @property
    def says(self) -> str:
        """The text with each run of `*` as one: patterns that say the same match the same."""
        return _RUNS.sub("*", self.text)

    def matches(self, address: Address) -> bool:
        """Whether the address is of this pattern's form and matches it."""
        if isinstance(address, EndpointAddress):
            return (
                self.form is Form.endpoint
                and self.before is not None
                and self.before.matches(f"{address.source}.{address.method}")
                and self.target.matches(address.path)
            )
        if isinstance(address, SourceAddress):
            return (
                self.form is Form.source
                and self.before is not None
                and self.before.matches(address.source)
                and matches_name(self.target, address.name)
            )
        return self.form is Form.name and matches_name(self.target, address.name)

    def __eq__(self, other: object) -> bool:
        return self.says == other.says if isinstance(other, Pattern) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.says)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Pattern({self.text!r})"


def split(text: str) -> tuple[Form, str | None, str]:
    """A pattern's form, what stands before its first colon (None for a name), and what stands behind it."""
    before, colon, target = text.partition(":")
    if not colon:
        return Form.name, None, text
    if target.startswith("/") or "." in before:
        return Form.endpoint, before, target
    return Form.source, before, target


def can_match(text: str, words: Vocabulary) -> bool:
    """Whether a text is a pattern: of its form there is a possible address that it matches.

    A source alone, and a source with its method, is a name that a tool could have, but is refused:
    whoever wrote it forgot the colon.
    """
    if not text.strip() or len(text) > LONGEST:
        return False
    form, before, target = split(text)
    if before is None:
        return impossible_in_name(text) is None and text not in words.beginnings
    impossible = impossible_in_path if form is Form.endpoint else impossible_in_name
    return can_begin(before, form, words) and impossible(target) is None


@lru_cache(maxsize=4096)
def can_begin(before: str, form: Form, words: Vocabulary) -> bool:
    """Whether some source (for an endpoint: some `source.method`) matches what stands before the colon."""
    if "*" not in before:
        return before in words.beginnings and ("." in before) is (form is Form.endpoint)
    # Most of what is tried has a piece that is in none of the words.
    possible = all(piece in words.text for piece in before.split("*"))
    return possible and any(map(Glob(before).matches, beginnings(form, words)))


def beginnings(form: Form, words: Vocabulary) -> tuple[str, ...]:
    """What can stand before the colon of a pattern of that form."""
    return words.qualified if form is Form.endpoint else words.sources


def matches_name(glob: Glob, name: str) -> bool:
    """Whether a tool's name matches.

    fnmatch2 reads `/`, `\\`, `?` and `[` in a way of its own. Patterns are made without any of them;
    a name that has one, or is too long to be a name, is no tool's and matches nothing.
    """
    return is_tool_name(name) and bool(fnmatchcase2(name, glob.text))


def vocabulary(apis: Iterable[str] = (), servers: Iterable[str] = (), methods: Iterable[str] = ()) -> Vocabulary:
    """The vocabulary with these words, the same object for the same words; what is no such name is left out."""
    names = frozenset(filter(is_source_name, apis)), frozenset(filter(is_source_name, servers))
    return _vocabulary(*names, frozenset(filter(is_method, (method.lower() for method in methods))))


@lru_cache(maxsize=64)
def _vocabulary(apis: frozenset[str], servers: frozenset[str], methods: frozenset[str]) -> Vocabulary:
    return Vocabulary(apis, servers, methods)
