"""What a front door answers for each call of a batch: a text that a model reads, and the same as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from toolgen.result import Refused, Sent, ToolResult

if TYPE_CHECKING:
    from toolgen.approvals.model import Pause
    from toolgen.runtime.submit import Submission

PENDING: Final = "pending"
ERROR: Final = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one call.

    `data` is one of `{"result": ...}`, `{"status": "pending", "approvalId", "reason", "reviewUrl"}`, and
    `{"status", "message", ...}` of a call that was not carried out as asked: its status is `error`,
    `outcome_unknown` or what refused it (`denied`, `rejected`, `expired`, `cancelled`, `not_executed`).
    `is_error` holds for the last kind alone: what waits is no fault, and nothing to try again.
    """

    text: str
    data: Mapping[str, Any] = field(repr=False)

    @property
    def status(self) -> str:
        """`ok`, `pending`, or the status in `data`."""
        return str(self.data["status"]) if "result" not in self.data else "ok"

    @property
    def is_error(self) -> bool:
        """Whether the call was not carried out as asked, or its outcome is not known."""
        return self.status not in ("ok", PENDING)


def answers(done: Submission, review_url: str | None = None) -> dict[str, Answer]:
    """The answers to a batch by call id: those that have a result, then those that wait."""
    found = {id: answer(result) for id, result in done.results.items()}
    if done.pause is not None:
        waits = pending(done.pause, review_url)
        found |= {call.id: waits for call in done.pause.calls if call.id not in found}
    return found


def answer(result: ToolResult) -> Answer:
    """A result as a front door gives it."""
    if result.ok:
        told = {"message": result.message or None, "headers": dict(result.headers) or None}
        return Answer(str(result), {"result": result.body, **_present(told)})
    if result.refused is Refused.gated:  # of a pause that was there before this batch
        return Answer(str(result), {"status": PENDING, "reason": result.message})
    unknown = result.sent is Sent.unknown
    status = Sent.unknown.value if unknown else result.refused.value if result.refused else ERROR
    extra: dict[str, Any] = {
        "httpStatus": result.status,
        "body": result.body,
        "headers": dict(result.headers) or None,
        "retryAfterSeconds": result.retry_after,
        "problems": [dict(problem) for problem in result.problems] or None,
    }
    said = result.message or str(result)
    return Answer(str(result), {"status": status, "message": said, **_present(extra)})


def pending(pause: Pause, review_url: str | None = None) -> Answer:
    """What a call that waits is answered with: no fault, and nothing to call again."""
    where = review(review_url, pause.id)
    data = {"status": PENDING, "approvalId": pause.id, "reason": pause.reason, "reviewUrl": where}
    said = [
        pause.message or f"A person has to approve this first: {pause.reason}",
        f"It has not run, and is not to be called again. Its approval has the id {pause.id}.",
        *([f"It is decided at {where}"] if where else []),
    ]
    return Answer("\n".join(said), _present(data))


def review(template: str | None, pause_id: str) -> str | None:
    """Where a person decides a pause: `{id}` in the URL stands for it, else it is the last segment of the path."""
    if template is None:
        return None
    return template.replace("{id}", pause_id) if "{id}" in template else f"{template.rstrip('/')}/{pause_id}"


def _present(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}
