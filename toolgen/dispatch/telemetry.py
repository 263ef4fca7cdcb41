"""Spans and metrics of calls through opentelemetry-api: what a service does, never where it sends or with what.

Attributes are the API's and the tool's name, the method, the status code, and what became of the call. No URL,
no argument and no credential is among them, and exceptions are not recorded.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

from toolgen.errors import ToolgenError
from toolgen.result import Sent, ToolResult

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram
    from opentelemetry.trace import Tracer


@contextmanager
def observed(api: str, tool: str, method: str) -> Iterator[Callable[[ToolResult], None]]:
    """A span around one call, and its duration in seconds; call what it gives with the result."""
    started = perf_counter()
    known = {"toolgen.api": api, "http.request.method": method}
    outcome: dict[str, str | int] = {"toolgen.sent": Sent.unknown.value}

    def became(result: ToolResult) -> None:
        outcome["toolgen.sent"] = result.sent.value
        if result.status is not None:
            outcome["http.response.status_code"] = result.status

    span = _tracer().start_as_current_span(
        f"call {api}",
        attributes={**known, "toolgen.tool": tool},
        record_exception=False,
        set_status_on_exception=False,
    )
    with span as current:
        try:
            yield became
        except (ToolgenError, CancelledError) as error:
            outcome["toolgen.sent"] = "refused" if isinstance(error, ToolgenError) else "cancelled"
            raise
        finally:
            current.set_attributes(outcome)
            _durations().record(perf_counter() - started, {**known, **outcome})


@cache
def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer("toolgen")


@cache
def _durations() -> Histogram:
    from opentelemetry import metrics

    return metrics.get_meter("toolgen").create_histogram(
        "toolgen.call.duration", unit="s", description="How long a call took, by what became of it"
    )
