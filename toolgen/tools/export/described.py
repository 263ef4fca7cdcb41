"""What can be exported for a model: a tool of an API, a function, a tool of an MCP server."""

from __future__ import annotations

from typing import Any, Protocol


class Described(Protocol):
    """Anything with a name, words for a model, and a self-contained schema of its arguments."""

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def description(self) -> str:
        """What it does."""

    def input_schema(self) -> dict[str, Any]:
        """The schema of its arguments (JSON Schema 2020-12)."""
