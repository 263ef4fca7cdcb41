from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from opentelemetry import metrics, trace
from small_documents import document, made, parameter

from toolgen.dispatch import telemetry
from toolgen.dispatch.http import Dispatcher
from toolgen.dispatch.settings import Http
from toolgen.errors import CredentialsMissing
from toolgen.tools.model import Toolset


class Span(trace.NonRecordingSpan):
    """A span that keeps what it is told."""

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name, self.attributes, self.events = name, dict(attributes), []
        self.ended = False

    def is_recording(self) -> bool:
        return True

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        self.attributes |= attributes

    def record_exception(self, exception: BaseException, *_: Any, **__: Any) -> None:
        self.events.append(repr(exception))

    def set_status(self, *status: Any) -> None:
        self.events.append(str(status))

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class Tracer(trace.NoOpTracer):
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.parents: list[Any] = []

    @contextmanager
    def start_as_current_span(self, name: str, *_: Any, attributes: Any = None, **options: Any) -> Iterator[Span]:  # type: ignore[override]
        span = Span(name, attributes or {})
        self.spans.append(span)
        self.parents.append(trace.get_current_span())
        with trace.use_span(span, end_on_exit=True, **options):
            yield span


class Histogram(metrics.NoOpHistogram):
    def __init__(self) -> None:
        super().__init__("kept")
        self.records: list[tuple[float, dict[str, Any]]] = []

    def record(self, amount: float, attributes: Any = None, context: Any = None) -> None:
        self.records.append((amount, dict(attributes)))


class Meter(metrics.NoOpMeter):
    def __init__(self, histogram: Histogram) -> None:
        super().__init__("kept")
        self.kept, self.names = histogram, []

    def create_histogram(self, name: str, *_: Any, **__: Any) -> Any:
        self.names.append(name)
        return self.kept


class Provider(trace.NoOpTracerProvider):
    """Both providers at once."""

    def __init__(self) -> None:
        self.tracer, self.histogram = Tracer(), Histogram()

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return self.tracer

    def get_meter(self, *_: Any, **__: Any) -> metrics.Meter:
        return Meter(self.histogram)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    found = Provider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: found)
    monkeypatch.setattr(metrics._internal, "get_meter_provider", lambda: found)
    for cached in (telemetry._tracer, telemetry._durations):
        cached.cache_clear()
    yield found
    for cached in (telemetry._tracer, telemetry._durations):
        cached.cache_clear()


@pytest.fixture(scope="module")
def toolset() -> Toolset:
    done = {"200": {"description": "ok"}}
    schemes = {"key": {"type": "apiKey", "in": "query", "name": "k"}}
    operation = {"operationId": "write", "parameters": [parameter("q")], "security": [{"key": []}], "responses": done}
    return made(
        document({"/x": {"post": operation}}, components={"securitySchemes": schemes}),
        api="small",
        server="https://api.example",
    )


def answers(status: int) -> httpx2.MockTransport:
    return httpx2.MockTransport(lambda request: httpx2.Response(status, json={"echo": str(request.url)}))


def fails(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("could not reach https://api.example/x?k=s3cr3t-value&q=an-argument")


@pytest.mark.parametrize(
    ("transport", "outcome"),
    [
        (answers(201), {"toolgen.sent": "answered", "http.response.status_code": 201}),
        (answers(503), {"toolgen.sent": "answered", "http.response.status_code": 503}),
        (httpx2.MockTransport(fails), {"toolgen.sent": "not_sent"}),
        (None, {"toolgen.sent": "refused"}),
    ],
)
def test_a_call_is_a_span_and_a_duration_that_say_what_became_of_it_and_nothing_of_what_was_sent(
    provider: Provider, toolset: Toolset, monkeypatch: pytest.MonkeyPatch, transport: Any, outcome: dict[str, Any]
) -> None:
    if transport is not None:
        monkeypatch.setenv("S", "s3cr3t-value")
    with Dispatcher(toolset, transport=transport, credentials={"key": "${env:S}"}, http=Http()) as dispatcher:
        try:
            dispatcher.call("write", {"q": "an-argument"})
        except CredentialsMissing:
            assert transport is None
    (span,), ((seconds, recorded),) = provider.tracer.spans, provider.histogram.records
    known = {"toolgen.api": "small", "http.request.method": "POST"}
    assert (span.name, span.ended, span.events) == ("call small", True, [])
    assert span.attributes == {**known, "toolgen.tool": "write", **outcome}
    assert recorded == {**known, **outcome}
    assert 0 < seconds < 5


def test_a_call_that_is_cancelled_says_so(
    provider: Provider, toolset: Toolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S", "s3cr3t-value")
    began = asyncio.Event()

    async def waits(_: httpx2.Request) -> httpx2.Response:
        began.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        dispatcher = Dispatcher(toolset, transport=httpx2.MockTransport(waits), credentials={"key": "${env:S}"})
        task = asyncio.create_task(dispatcher.acall("write", {}))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [span.attributes["toolgen.sent"] for span in provider.tracer.spans] == ["cancelled"]


def test_the_span_of_plain_code_is_inside_that_of_its_caller(
    provider: Provider, toolset: Toolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S", "s3cr3t-value")
    outer = Span("outer", {})
    dispatcher = Dispatcher(toolset, transport=answers(200), credentials={"key": "${env:S}"})
    with dispatcher, trace.use_span(outer):
        dispatcher.call("write", {})
    assert provider.tracer.parents == [outer]
