"""Answers that come event by event, and may never end: as many events as time and limits allow.

Sources: WHATWG HTML, section 9.2 (text/event-stream); JSON lines (application/x-ndjson); RFC 7464
(application/json-seq).
"""

from __future__ import annotations

import asyncio
import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolgen.dispatch.content import json_of
from toolgen.dispatch.reading import End, read
from toolgen.dispatch.settings import Http

if TYPE_CHECKING:
    import httpx2

_LINES: Final = frozenset(
    "application/x-ndjson application/ndjson application/jsonl application/x-jsonl application/jsonlines "
    "application/x-jsonlines application/json-lines application/stream+json".split()
)
_LINE_END = re.compile(r"\r\n|\n|\r")
_DIGITS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Stream:
    """The events that came, why there are no more, and after how many seconds the API wants to be asked again."""

    events: list[Any]
    message: str
    retry: float | None = None


class Parser(Protocol):
    """Makes events of bytes as they come."""

    retry: float | None

    def feed(self, piece: bytes) -> list[Any]:
        """The events that this piece completes."""

    def end(self) -> list[Any]:
        """The event that the end of the stream completes, if it does."""


def parser_of(media_type: str | None) -> Parser | None:
    """The parser for a media type in lower case without parameters; None for what is no stream of events."""
    if media_type == "text/event-stream":
        return EventStream()
    if media_type in _LINES:
        return Records("\n")
    is_sequence = media_type is not None and (media_type == "application/json-seq" or media_type.endswith("+json-seq"))
    return Records("\x1e") if is_sequence else None


async def read_events(response: httpx2.Response, parser: Parser, http: Http, until: float) -> Stream:
    """The events of an answer, and a message that says why it ended; the response is closed then.

    It ends after `http.stream_seconds` and at `until` (a time of the event loop), with
    `http.stream_events` events or `http.max_answer_bytes` bytes. What comes of an event then is left out.
    """
    events: list[Any] = []
    size = 0

    def take(piece: bytes) -> bool:
        nonlocal size
        room = http.max_answer_bytes - size
        size += len(piece)
        events.extend(parser.feed(piece[:room]))
        return len(events) < http.stream_events and size <= http.max_answer_bytes

    start = asyncio.get_running_loop().time()
    end = await read(response, min(until, start + http.stream_seconds), take)
    if end is End.complete:
        events += parser.end()
    found = events[: http.stream_events]
    enough = (
        f"{http.stream_events:,} events" if len(events) >= http.stream_events else f"{http.max_answer_bytes:,} bytes"
    )
    why = {
        End.complete: "the stream ended",
        End.enough: f"stopped after {enough}, the stream goes on",
        End.late: f"stopped after {round(min(until - start, http.stream_seconds), 1):g} s, the stream goes on",
        End.silent: f"stopped as nothing came for {http.read:g} s, the stream goes on",
        End.broken: "the stream broke off",
    }
    return Stream(found, f"{why[end]} ({len(found):,} event{'' if len(found) == 1 else 's'})", parser.retry)


class EventStream:
    """text/event-stream: each event is `{"event", "id", "data"}` with what the API gave it.

    `data` that is a JSON object or list is parsed. An event without data is none, and neither is what
    stands behind the last empty line (WHATWG HTML, section 9.2.6).
    """

    def __init__(self) -> None:
        self.retry: float | None = None
        self._text = _Text()
        self._fields: dict[str, str] = {}
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[Any]:
        """The events whose empty line is in this piece."""
        return [event for line in self._text.lines(piece) if (event := self._line(line)) is not None]

    def end(self) -> list[Any]:
        """An event that the stream does not finish is none."""
        return []

    def _line(self, line: str) -> dict[str, Any] | None:
        if not line:
            event = {**self._fields, "data": _data("\n".join(self._data))} if self._data else None
            self._fields, self._data = {}, []
            return event
        name, _, value = line.partition(":")  # a comment has an empty name
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif (name == "event" and value) or (name == "id" and "\0" not in value):
            self._fields[name] = value
        elif name == "retry" and _DIGITS.fullmatch(value):
            self.retry = int(value) / 1000
        return None


class Records:
    """JSON texts, each ended by a newline, or begun by a record separator (RFC 7464); what is no JSON stays text."""

    def __init__(self, mark: str) -> None:
        self.retry: float | None = None
        self._mark, self._text = mark, _Text()

    def feed(self, piece: bytes) -> list[Any]:
        """The records that this piece completes."""
        return [_record(text) for text in self._text.split(piece, self._mark) if text.strip()]

    def end(self) -> list[Any]:
        """The last record, which needs nothing behind it."""
        return [_record(text) for text in [self._text.rest()] if text.strip()]


class _Text:
    """UTF-8 bytes as pieces of text, in time that grows with their number only."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._parts: list[str] = []
        self._after_cr = False

    def lines(self, piece: bytes) -> list[str]:
        """The lines that end in this piece, by CR, LF or both."""
        text = self._decode(piece)
        if not text:
            return []
        if self._after_cr and text.startswith("\n"):  # the line has ended with the CR of the last piece
            text = text[1:]
        self._after_cr = text.endswith("\r") if text else False
        return self._complete(_LINE_END.split(text))

    def split(self, piece: bytes, mark: str) -> list[str]:
        """The texts that end in this piece, by the mark."""
        return self._complete(self._decode(piece).split(mark))

    def rest(self) -> str:
        """What stands behind the last end."""
        return "".join([*self._parts, self._decode(b"", True)])

    def _complete(self, texts: list[str]) -> list[str]:
        if len(texts) == 1:
            self._parts += texts
            return []
        first = "".join([*self._parts, texts[0]])
        self._parts = [texts[-1]]
        return [first, *texts[1:-1]]


def _data(text: str) -> Any:
    return _record(text) if text.lstrip().startswith(("{", "[")) else text


def _record(text: str) -> Any:
    try:
        return json_of(text)
    except ValueError:
        return text.strip()
