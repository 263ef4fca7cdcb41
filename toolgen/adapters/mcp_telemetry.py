"""The metric of asking MCP servers for their tools, through opentelemetry-api: what came of it, and of no server whose."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter

Outcome = Literal["cache_hit", "success", "failure", "circuit_open", "invalid_configuration"]


def discovered(outcome: Outcome) -> None:
    """Count one time that tools were asked for."""
    _discoveries().add(1, {"outcome": outcome})


@cache
def _discoveries() -> Counter:
    from opentelemetry import metrics

    return metrics.get_meter("toolgen").create_counter(
        "toolgen.mcp.discovery", description="How often the tools of MCP servers were asked for, by what came of it"
    )
