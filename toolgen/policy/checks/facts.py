"""What the checks of a config look at: its entries, the tools each of them matches, what happens to each tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolgen.policy.address import KnownTool, Vocabulary
from toolgen.policy.gate import Gate
from toolgen.policy.index import ToolIndex
from toolgen.policy.outcomes import Outcome, ToolOutcome
from toolgen.policy.patterns import Form, Pattern, can_match
from toolgen.policy.text import several
from toolgen.tools.files.places import written


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A pattern of a config: the list it stands in, its number there, and the tools it matches, by number."""

    key: str
    number: int
    pattern: Pattern
    matched: Sequence[int]

    @property
    def where(self) -> str:
        """Its place in the config."""
        return written((self.key, self.number, *(["match"] if self.key == "rules" else [])))

    def __str__(self) -> str:
        return f"{self.where} ({self.pattern})"


class Facts:
    """A config of one layer, its tools, and what `Gate.classify` says of each. Tools are meant by their number."""

    def __init__(self, gate: Gate, results: Sequence[ToolOutcome]) -> None:
        (self.config,) = gate.layers
        self.tools = gate.tools
        self.results = results
        self.destructive = frozenset(number for number, tool in enumerate(gate.tools) if tool in gate.destructive)
        self.words = Vocabulary(frozenset(self.config.apis), frozenset(self.config.mcp_servers)).with_tools(gate.tools)
        self.index = ToolIndex(gate.tools)
        self._here: dict[tuple[Form, str], bool] = {}
        self.entries = tuple(
            Entry(key, number, pattern, self.index.matched(pattern)) for key, number, pattern in self._patterns()
        )

    def of(self, *keys: str) -> Iterator[Entry]:
        """The entries of these lists."""
        return (entry for entry in self.entries if entry.key in keys)

    def numbers(self, outcome: Outcome) -> list[int]:
        """The tools that have this outcome."""
        return [number for number, result in enumerate(self.results) if result.outcome is outcome]

    def names(self, numbers: Iterable[int]) -> str:
        """The names of a few of these tools, and how many more there are."""
        return several([self.tools[number].name for number in numbers])

    def pattern_for(self, number: int) -> str:
        """The pattern of one tool: its endpoint, or its name where it has none or one too long for a pattern."""
        tool = self.tools[number]
        source = self.source_of(tool)
        texts = [f"{source}:{tool.name}"]
        if tool.endpoint is not None:
            texts.insert(0, f"{source}.{tool.endpoint.method}:{tool.endpoint.path}")
        return next(text for text in texts if can_match(text, self.words))

    def source_of(self, tool: KnownTool) -> str:
        """What a pattern calls the tool's source: its kind while that is unambiguous, else its own name."""
        return tool.sources[0] if len(self._sources_of_kind[tool.sources[0]]) == 1 else tool.source

    def has_source(self, pattern: Pattern) -> bool:
        """Whether there are tools of a source that the pattern speaks of, whatever their methods."""
        if pattern.before is None:
            return bool(self.tools)
        key = pattern.form, pattern.before.text
        found = self._here.get(key)
        if found is None:
            found = self._here[key] = any(map(pattern.before.matches, self._beginnings[pattern.form]))
        return found

    @cached_property
    def _beginnings(self) -> dict[Form, list[str]]:
        with_endpoints = {source for tool in self.tools if tool.endpoint for source in tool.sources}
        return {
            Form.endpoint: [f"{source}.{method}" for source in with_endpoints for method in self.words.all_methods],
            Form.source: list({source for tool in self.tools for source in tool.sources}),
        }

    @cached_property
    def _sources_of_kind(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for tool in self.tools:
            found.setdefault(tool.sources[0], set()).add(tool.source)
        return found

    def _patterns(self) -> Iterator[tuple[str, int, Pattern]]:
        for key, patterns in self.config.patterns.items():
            for number, pattern in enumerate(patterns):
                yield key, number, pattern
