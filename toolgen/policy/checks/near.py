"""Which tool a pattern that matches none was probably written for: the nearest endpoint or name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, combinations
from typing import Final, NamedTuple

from toolgen.openapi.endpoint import skeleton
from toolgen.policy.address import EndpointAddress, KnownTool, SourceAddress
from toolgen.policy.advice import edits
from toolgen.policy.checks.facts import Facts
from toolgen.policy.patterns import Form, Glob, Pattern, can_match
from toolgen.tools.model import READ_METHODS

_SEARCHES: Final = 200  # patterns for which every tool is looked at; for the others there is a look-up only
_SHORTEST: Final = 4  # characters; a shorter text is nearly everything's neighbour
_CANDIDATES: Final = 30  # texts that are measured
# What is easily got wrong in a path or a name, and what makes texts equal that differ in nothing else.
_FOLDINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "the names of parameters": lambda path: "/" + "/".join(skeleton(path)),
    "upper and lower case": str.casefold,
    "a slash at the end": lambda path: path.rstrip("/"),
    "separators": lambda name: re.sub(r"[_.-]", "", name),
}
_OF_PATHS: Final = ("the names of parameters", "upper and lower case", "a slash at the end")
_OF_NAMES: Final = ("upper and lower case", "separators")


class Meant(NamedTuple):
    """The pattern to write instead, and in what it differs from the one that is there."""

    text: str
    differs: str


class Nearest:
    """Finds what may have been meant by patterns that match none of these tools."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        numbered = list(enumerate(facts.tools))
        self._paths = _Texts([(tool.endpoint.path, number) for number, tool in numbered if tool.endpoint], _OF_PATHS)
        self._names = _Texts([(tool.name, number) for number, tool in numbered], _OF_NAMES)
        self._searches = _SEARCHES

    def of(self, pattern: Pattern) -> Meant | None:
        """What may have been meant; None where nothing is near."""
        texts = self._paths if pattern.form is Form.endpoint else self._names
        target = pattern.target.text
        if pattern.target.is_literal and (found := texts.same(target)):
            return self._respelt(pattern, found, texts.foldings)
        if self._searches == 0:
            return None
        self._searches -= 1
        if not pattern.target.is_literal and (found := texts.matching(target)):
            return self._respelt(pattern, found, texts.foldings)
        head, star, _ = target.partition("*")
        rest = target[len(head.rstrip("/")) :] if star else ""
        for text, numbers in texts.like(head, beginnings=bool(star)):
            for number in numbers:
                if _begins(pattern, self._facts.tools[number]):
                    return Meant(self._written(pattern, number, [(text, rest)]), "a few characters")
        return None

    def _respelt(self, pattern: Pattern, numbers: Iterable[int], foldings: Iterable[str]) -> Meant:
        """The pattern in the spelling of the one of these tools from which it differs in the least."""
        tools, target = self._facts.tools, pattern.target.text
        found: list[tuple[bool, int, bool, int, list[str]]] = []
        for number in numbers:
            differs = _differs(target, _text(pattern, tools[number]), foldings)
            elsewhere = not _begins(pattern, tools[number])
            found.append((elsewhere, len(differs), tools[number].is_write is _reads(pattern), number, differs))
        elsewhere, _, _, number, differs = min(found)
        if elsewhere:
            differs = ["what stands before the colon", *differs]
        text, (head, star, _) = _text(pattern, tools[number]), target.partition("*")
        cuts = [(text, "")]
        if star:  # the segments before the `*` are replaced by the tool's, the last one whole or not at all
            segments, count = text.split("/"), head.count("/")
            cuts = [(text[: len(head)], target[len(head) :])] if text.casefold().startswith(head.casefold()) else []
            cuts += [("/".join(segments[: count + 1]), target[len(head) :])]
            cuts += [("/".join(segments[:count]), target[head.rfind("/") :])]
        return Meant(self._written(pattern, number, cuts), " and ".join(differs))

    def _written(self, pattern: Pattern, number: int, cuts: Iterable[tuple[str, str]]) -> str:
        """The pattern with another head before its rest; where none of them matches the tool, the tool's own."""
        tool, words = self._facts.tools[number], self._facts.words
        beginning = _beginning(pattern, tool)
        for head, rest in cuts:
            text = f"{beginning}{head}{rest}"
            if can_match(text, words) and any(map(Pattern.of(text, words).matches, tool.addresses)):
                return text
        return self._facts.pattern_for(number)


class _Texts:
    """Paths or names with the numbers of the tools that have them, found by what is left without their spelling."""

    def __init__(self, texts: Iterable[tuple[str, int]], foldings: tuple[str, ...]) -> None:
        self.foldings = foldings
        self._numbers: dict[str, list[int]] = {}
        for text, number in texts:
            self._numbers.setdefault(text, []).append(number)
        self._by_key: dict[str, list[int]] = {}
        for text, numbers in self._numbers.items():
            self._by_key.setdefault(self._key(text), []).extend(numbers)

    def same(self, text: str) -> list[int]:
        """The tools whose text differs in spelling only."""
        return self._by_key.get(self._key(text), [])

    def matching(self, glob: str) -> list[int]:
        """The tools that a glob would match if spelling did not count."""
        matches = Glob(self._key(glob)).matches
        return [number for key, numbers in self._by_key.items() if matches(key) for number in numbers]

    def like(self, text: str, *, beginnings: bool) -> Iterator[tuple[str, list[int]]]:
        """The texts, or beginnings of texts, that lack or have a character or two more, the nearest first."""
        wanted = self._key(text)
        if len(wanted) < _SHORTEST:
            return
        index = self._alike_in_beginning if beginnings else self._alike
        found = sorted({one for less in _one_less(wanted) for one in index.get(less, ())})[:_CANDIDATES]
        for one in sorted(found, key=lambda one: edits(wanted, self._key(one))):
            whole = [one] if one in self._numbers else [text for text in self._numbers if text.startswith(one)]
            yield one, [number for text in whole for number in self._numbers[text]]

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        return self._by_one_less(self._numbers)

    @cached_property
    def _alike_in_beginning(self) -> dict[str, list[str]]:
        """The texts, and what stands before each separator in them."""
        ends = ((text, found.start()) for text in self._numbers for found in re.finditer(r"[/_.-]|$", text))
        return self._by_one_less(dict.fromkeys(text[:end] for text, end in ends if end))

    def _by_one_less(self, texts: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for text in texts:
            for less in _one_less(self._key(text)):
                found.setdefault(less, []).append(text)
        return found

    def _key(self, text: str) -> str:
        return _folded(text, self.foldings)


def _one_less(text: str) -> set[str]:
    """The text, and what is left without any one character: words one edit apart have one of these in common."""
    return {text, *(text[:index] + text[index + 1 :] for index in range(len(text)))}


def _folded(text: str, foldings: Iterable[str]) -> str:
    for name in foldings:
        text = _FOLDINGS[name](text)
    return text


def _differs(glob: str, text: str, foldings: Iterable[str]) -> list[str]:
    """The fewest things that must not count for the glob to match the text."""
    names = list(foldings)
    for some in chain.from_iterable(combinations(names, size) for size in range(len(names))):
        if Glob(_folded(glob, some)).matches(_folded(text, some)):
            return list(some)
    return names


def _text(pattern: Pattern, tool: KnownTool) -> str:
    """The tool's text that a pattern's target is compared with."""
    return tool.endpoint.path if pattern.form is Form.endpoint and tool.endpoint else tool.name


def _befores(pattern: Pattern, tool: KnownTool) -> list[str]:
    """What stands before the colon in the tool's addresses of the pattern's form."""
    if pattern.form is Form.endpoint:
        return [f"{one.source}.{one.method}" for one in tool.addresses if isinstance(one, EndpointAddress)]
    return [one.source for one in tool.addresses if isinstance(one, SourceAddress)]


def _reads(pattern: Pattern) -> bool:
    """Whether the pattern is for a reading method."""
    return pattern.before is not None and pattern.before.text.rpartition(".")[2] in READ_METHODS


def _begins(pattern: Pattern, tool: KnownTool) -> bool:
    """Whether what stands before the pattern's colon is right for the tool."""
    return pattern.before is None or any(map(pattern.before.matches, _befores(pattern, tool)))


def _beginning(pattern: Pattern, tool: KnownTool) -> str:
    """What stands before the colon, with it: the pattern's own where it is right, else the tool's."""
    if pattern.before is None:
        return ""
    if _begins(pattern, tool):
        return f"{pattern.before.text}:"
    befores, source = _befores(pattern, tool), pattern.before.text.partition(".")[0]
    return next((one for one in befores if one.partition(".")[0] == source), befores[-1]) + ":"
