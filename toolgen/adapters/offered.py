"""The tools of a runtime as every front door offers them: one name each, and the way back to the tool and its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolgen.policy.outcomes import ToolCall
from toolgen.runtime.sources import ApiSource
from toolgen.tools.model import Tool
from toolgen.tools.naming import tool_names

if TYPE_CHECKING:
    from toolgen.policy.gate import Gate
    from toolgen.runtime.core import Runtime


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool as a model sees it.

    `name` is what the model calls it: the tool's own, or `<source>_<name>` where several sources have one of that
    name; 1 to 64 characters of `[A-Za-z0-9_-]`, which every provider takes. `definition` is the tool itself, of
    an API's toolset where it is a `Tool`.
    """

    name: str
    source: str
    definition: Any = field(repr=False)

    @property
    def tool(self) -> str:
        """What its source calls it."""
        return str(getattr(self.definition, "name", self.definition))

    @property
    def api_tool(self) -> Tool | None:
        """The tool of an API's toolset; None for functions and tools of MCP servers."""
        return self.definition if isinstance(self.definition, Tool) else None

    @property
    def description(self) -> str:
        """What it does, for a model."""
        return str(getattr(self.definition, "description", ""))

    def input_schema(self) -> dict[str, Any]:
        """The schema of its arguments, as it is (JSON Schema 2020-12)."""
        found = getattr(self.definition, "input_schema", None)
        schema = found() if callable(found) else found
        return dict(schema) if schema else {"type": "object"}


class Offer:
    """What a runtime offers now: a toolset that is reloaded, or a server that lists other tools, shows at once."""

    def __init__(self, runtime: Runtime, *, reserved: Collection[str] = ()) -> None:
        self.runtime = runtime
        self._reserved = reserved  # names of the door's own tools
        self._made_for: Gate | None = None
        self._tools: Mapping[str, OfferedTool] = {}

    @property
    def tools(self) -> Mapping[str, OfferedTool]:
        """The tools by the names a model calls them, in the order of their sources."""
        gate = self.runtime.gate  # a new one whenever what it looks at has changed
        if gate is not self._made_for:
            self._tools, self._made_for = {one.name: one for one in _offered(self.runtime, self._reserved)}, gate
        return self._tools

    def __iter__(self) -> Iterator[OfferedTool]:
        return iter(self.tools.values())

    def tool_call(self, name: str, arguments: Any, id: str | None = None) -> ToolCall:
        """A model's call as the runtime takes it. A name that is not offered stays as it is: the gate answers it."""
        found = self.tools.get(name)
        if found is None:
            return ToolCall(id, name, arguments)
        return ToolCall(id, found.tool, arguments, found.source)


def _offered(runtime: Runtime, reserved: Collection[str]) -> list[OfferedTool]:
    found: list[tuple[str, Any]] = []
    for source in runtime.known:
        listed = source.toolset.tools if isinstance(source, ApiSource) else source.tools()
        found += [(source.name, one) for one in listed]
    names = offered_names([(source, str(getattr(one, "name", one))) for source, one in found], reserved)
    return [OfferedTool(name, source, one) for name, (source, one) in zip(names, found, strict=True)]


def offered_names(tools: Sequence[tuple[str, str]], reserved: Collection[str] = ()) -> list[str]:
    """A name for each (source, name): unique, none of the reserved ones, and the same whatever the order.

    Names that no provider takes (of other characters, too long) are made fit as those of operations are.
    """
    counts = Counter([*(name for _, name in tools), *reserved])
    return tool_names(
        [
            (source, name, name if counts[name] == 1 else f"{source}_{name}", f"{source}:{name}")
            for source, name in tools
        ]
    )
