"""A transport for tests: it keeps what it is sent and answers from a script; nothing leaves the process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it would have left: `headers` in lower case, credentials and all."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = b""

    def json(self) -> Any:
        """The body as JSON data."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: `body` is bytes as they are, or data that is written as JSON."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Script = Callable[[Recorded], Answer | Exception] | Iterable[Answer | Exception]


class RecordingTransport(httpx2.AsyncBaseTransport):
    """The `transport` of a Dispatcher in tests.

    `answers` is a function of the request, or the answers in turn (the last one again for all that follow);
    an exception is raised in the place of an answer. `requests` are those that came, in order.
    """

    def __init__(self, answers: Script = (Answer(body={}),)) -> None:
        self.requests: list[Recorded] = []
        self._say = answers if callable(answers) else _in_turn(answers)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Keep a request, and answer it."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = Recorded(request.method, str(request.url), headers, await request.aread())
        self.requests.append(found)
        answer = self._say(found)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer.body, bytes):
            return httpx2.Response(answer.status, headers=answer.headers, content=answer.body)
        kind = {"content-type": "application/json", **answer.headers}
        return httpx2.Response(answer.status, headers=kind, content=json.dumps(answer.body).encode())


def _in_turn(answers: Iterable[Answer | Exception]) -> Callable[[Recorded], Answer | Exception]:
    left = list(answers)
    if not left:
        raise ValueError("a script has at least one answer")
    return lambda _: left.pop(0) if len(left) > 1 else left[0]
