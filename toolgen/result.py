"""What became of a call, for a model and for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Sent(StrEnum):
    """Whether a request went out, as far as anyone can know."""

    not_sent = "not_sent"  # provably no byte left
    answered = "answered"  # an answer came, whatever its status
    unknown = "outcome_unknown"  # bytes may have left, and no answer came: it may have been carried out


class Refused(StrEnum):
    """Why a call was not sent, where that is not for the model to mend."""

    gated = "gated"  # a person has to approve it
    denied = "denied"  # the approval config forbids it, or no tool is called so
    rejected = "rejected"  # a person, or the system, said no
    expired = "expired"  # nobody answered in time, or what was approved was not run in time
    cancelled = "cancelled"
    not_executed = "not_executed"  # something changed after it was approved
    error = "error"  # a person has to put something right: a credential, a server, an address


@dataclass(frozen=True)
class ToolResult:
    """What became of a call.

    `ok`: the call did what it was meant to (an answer of 2xx, or 3xx whose `location` is among `headers`).
    `body` is parsed JSON, a text, or for bytes `{"base64": ..., "bytes": 1234, "mediaType": ...}`.
    `message` says what went wrong, or what a reader has to know (what was cut). `retry_after` is in
    seconds. `headers` are those that carry the answer, names in lower case. `problems` are those of
    arguments a model can correct.
    """

    ok: bool
    sent: Sent
    status: int | None = None
    media_type: str | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    retry_after: float | None = None
    problems: tuple[Mapping[str, Any], ...] = ()
    refused: Refused | None = None

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON-ready data; what is not there is left out."""
        found: dict[str, Any] = {"ok": self.ok, "sent": self.sent.value}
        optional = {
            "status": self.status,
            "mediaType": self.media_type,
            "headers": dict(self.headers) or None,
            "message": self.message or None,
            "retryAfterSeconds": self.retry_after,
            "refused": self.refused.value if self.refused else None,
            "problems": [dict(problem) for problem in self.problems] or None,
        }
        found |= {key: value for key, value in optional.items() if value is not None}
        if self.sent is Sent.answered:
            found["body"] = self.body
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolResult:
        """The result that `to_dict` wrote."""
        return cls(
            ok=data["ok"],
            sent=Sent(data["sent"]),
            status=data.get("status"),
            media_type=data.get("mediaType"),
            body=data.get("body"),
            headers=data.get("headers", {}),
            message=data.get("message", ""),
            retry_after=data.get("retryAfterSeconds"),
            problems=tuple(data.get("problems", ())),
            refused=Refused(data["refused"]) if "refused" in data else None,
        )

    def __str__(self) -> str:
        """What a model reads."""
        if self.sent is not Sent.answered:
            return self.message
        shown = self.body if isinstance(self.body, str) else json.dumps(self.body, ensure_ascii=False)
        told = (self.ok and self.status in (200, None)) or self.message.startswith(f"HTTP {self.status}")
        lines = [] if told or self.status is None else [f"HTTP {self.status}"]
        lines += [self.message] if self.message else []
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\n".join([*lines, *([shown] if self.body is not None else [])])
