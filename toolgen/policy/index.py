"""Which tools a pattern may match: found by the characters it contains, so that few are tried."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from toolgen.policy.address import Address, EndpointAddress, KnownTool, NameAddress, SourceAddress
from toolgen.policy.patterns import Form, Glob, Pattern

_FORMS = {EndpointAddress: Form.endpoint, SourceAddress: Form.source, NameAddress: Form.name}
_GRAM = 3  # characters; fewer are in nearly every text


class ToolIndex:
    """Tools by their addresses. Tools are meant by their number, in the order given."""

    def __init__(self, tools: Sequence[KnownTool]) -> None:
        self.tools = tools
        self._paths = _Texts((tool.endpoint.path if tool.endpoint else None) for tool in tools)
        self._names = _Texts(tool.name for tool in tools)
        self._beginnings: dict[str, list[int]] = {}
        self._addresses: dict[Form, list[list[Address]]] = {form: [[] for _ in tools] for form in Form}
        for number, tool in enumerate(tools):
            for address in tool.addresses:
                self._addresses[_FORMS[type(address)]][number].append(address)
                if isinstance(address, EndpointAddress):
                    self._beginnings.setdefault(f"{address.source}.{address.method}", []).append(number)
                elif isinstance(address, SourceAddress):
                    self._beginnings.setdefault(address.source, []).append(number)

    def matched(self, pattern: Pattern, among: Collection[int] | None = None) -> list[int]:
        """The tools that a pattern matches, in order; `among` leaves out all others."""
        found = self._candidates(pattern)
        if among is not None:
            found = [number for number in found if number in among]
        addresses = self._addresses[pattern.form]
        return sorted(number for number in found if any(map(pattern.matches, addresses[number])))

    def first_matches(self, patterns: Iterable[Pattern]) -> dict[int, int]:
        """For each tool that a pattern matches, the number of the first that does."""
        undecided = set(range(len(self.tools)))
        found: dict[int, int] = {}
        for position, pattern in enumerate(patterns):
            if not undecided:
                break
            matched = self.matched(pattern, undecided)
            found.update(dict.fromkeys(matched, position))
            undecided.difference_update(matched)
        return found

    def _candidates(self, pattern: Pattern) -> Collection[int]:
        texts = self._paths if pattern.form is Form.endpoint else self._names
        found = texts.candidates(pattern.target)
        if pattern.before is None or not pattern.before.is_literal:
            return found
        beginning = self._beginnings.get(pattern.before.text, ())
        return min(found, beginning, key=len)


class _Texts:
    """The texts of tools (None: a tool has none), each with the numbers of the tools that bear it."""

    def __init__(self, texts: Iterable[str | None]) -> None:
        self._exact: dict[str, list[int]] = {}
        self._all: list[int] = []
        for number, text in enumerate(texts):
            if text is not None:
                self._exact.setdefault(text, []).append(number)
                self._all.append(number)
        self._grams: dict[str, list[int]] = {}
        for text, numbers in self._exact.items():
            for gram in {text[i : i + _GRAM] for i in range(len(text) - _GRAM + 1)}:
                self._grams.setdefault(gram, []).extend(numbers)

    def candidates(self, glob: Glob) -> Collection[int]:
        """Every tool whose text the glob could match, and some others."""
        if glob.is_literal:
            return self._exact.get(glob.text, ())
        literal = glob.longest_literal
        grams = [literal[i : i + _GRAM] for i in range(len(literal) - _GRAM + 1)]
        return min((self._grams.get(gram, ()) for gram in grams), key=len, default=self._all)
