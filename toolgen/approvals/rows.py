"""Pauses and calls as rows, and back, sealed and opened on the way.

In the clear is what a list is made of: who asked when for which tools, by which rule, and the states.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from toolgen.approvals.model import CallTerms, Pause, PausedCall, VerdictKind, Vote
from toolgen.approvals.sealed import Seal
from toolgen.approvals.states import CallState
from toolgen.errors import StoreError
from toolgen.policy.config import TimeoutPolicy
from toolgen.result import ToolResult

Row = Mapping[Any, Any]


def seconds(moment: datetime | None) -> float | None:
    """A time as the tables have it."""
    return None if moment is None else moment.timestamp()


def moment(at: float | None) -> datetime | None:
    """A time of the tables, in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC)


def pause_row(pause: Pause, seal: Seal) -> dict[str, Any]:
    """The row of a pause."""
    data = {
        "gating": pause.gating_digest,
        "reason": pause.reason,
        "message": pause.message,
        "rule": pause.rule,
        "policy": pause.timeout_policy.value,
        "executed": list(pause.executed),
        "round": pause.round,
        "unattended": pause.unattended,
    }
    return {
        "id": pause.id,
        "tenant": pause.tenant,
        "thread": pause.thread,
        "turn": pause.turn,
        "requester": pause.requester,
        "created": seconds(pause.created),
        "due": seconds(pause.due),
        "decided": seconds(pause.decided),
        "expires": seconds(_expires(pause)),
        "revision": pause.revision,
        "waiting": bool(pause.waiting),
        "open": pause.is_open,
        "batch": pause.batch,
        "data": _json(data),
        "state": None if pause.state is None else seal.seal(pause.state, "pauses", pause.id, "state"),
    }


def _expires(pause: Pause) -> datetime | None:
    """When the first of a pause's approvals is not good any more; None before the last verdict, and without any."""
    approved = [call.terms.validity for call in pause.calls if call.state is CallState.approved]
    return pause.decided + min(approved) if approved and pause.decided and not pause.waiting else None


def call_row(call: PausedCall, pause_id: str, position: int, seal: Seal) -> dict[str, Any]:
    """The row of a call."""
    data = {
        "endpoint": call.endpoint,
        "reason": call.reason,
        "approvers": [list(group) for group in call.terms.approvers],
        "selfApproval": call.terms.allow_self_approval,
        "validity": call.terms.validity.total_seconds(),
        "rule": call.terms.rule,
        "fingerprint": call.fingerprint,
        "binding": call.binding,
        "key": call.key,
        "destructive": call.destructive,
        "retry": call.retry,
    }
    shown = {
        "preview": dict(call.preview),
        "votes": [_vote_data(vote) for vote in call.votes],
        "detail": call.detail,
    }
    arguments = {"effective": call.arguments, "proposed": call.proposed}
    result = None if call.result is None else call.result.to_dict()
    return {
        "pause": pause_id,
        "id": call.id,
        "position": position,
        "state": call.state.value,
        "lease": seconds(call.lease),
        "worker": call.worker,
        "source": call.source,
        "tool": call.tool,
        "digest": call.tool_digest,
        "data": _json(data),
        "shown": seal.json(shown, "calls", pause_id, call.id, "shown"),
        "arguments": seal.json(arguments, "calls", pause_id, call.id, "arguments"),
        "result": None if result is None else seal.json(result, "calls", pause_id, call.id, "result"),
    }


@dataclass(frozen=True, slots=True)
class Listed:
    """A pause as a list has it: nothing of it was sealed, so that long lists are fast.

    `calls` are (id, tool, source, state, reason) of each call, in order.
    """

    id: str
    tenant: str
    thread: str
    turn: str
    requester: str
    created: datetime
    due: datetime | None
    decided: datetime | None
    revision: int
    waiting: bool
    open: bool
    reason: str
    calls: tuple[tuple[str, str, str, CallState, str], ...]


def listed_of(row: Row, calls: Iterable[Row]) -> Listed:
    """What a list has of the row of a pause and its calls' rows. Raises StoreError."""
    with _whole(row):
        created = moment(row["created"])
        assert created is not None
        same = ("id", "tenant", "thread", "turn", "requester", "revision", "waiting", "open")
        return Listed(
            **{name: row[name] for name in same},
            created=created,
            due=moment(row["due"]),
            decided=moment(row["decided"]),
            reason=json.loads(row["data"])["reason"],
            calls=tuple(
                (one["id"], one["tool"], one["source"], CallState(one["state"]), json.loads(one["data"])["reason"])
                for one in sorted(calls, key=lambda one: one["position"])
            ),
        )


@contextmanager
def _whole(row: Row) -> Iterator[None]:
    """What is in the tables was written by this module; anything else is no pause."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError):
        raise StoreError(
            f"the pause {row['id']} is not as it was written: the store was changed from outside"
        ) from None


def pause_of(row: Row, calls: Iterable[Row], seal: Seal) -> Pause:
    """The pause of a row and its calls' rows. Raises StoreError, and CredentialsError where the key is not there."""
    with _whole(row):
        return _pause(row, calls, seal)


def _pause(row: Row, calls: Iterable[Row], seal: Seal) -> Pause:
    data = json.loads(row["data"])
    created = moment(row["created"])
    assert created is not None
    return Pause(
        id=row["id"],
        tenant=row["tenant"],
        thread=row["thread"],
        turn=row["turn"],
        requester=row["requester"],
        created=created,
        calls=tuple(_call(one, seal) for one in sorted(calls, key=lambda one: one["position"])),
        gating_digest=data["gating"],
        batch=row["batch"],
        reason=data["reason"],
        message=data["message"],
        rule=data["rule"],
        due=moment(row["due"]),
        timeout_policy=TimeoutPolicy(data["policy"]),
        executed=tuple(data["executed"]),
        revision=row["revision"],
        round=data["round"],
        unattended=data["unattended"],
        decided=moment(row["decided"]),
        state=None if row["state"] is None else seal.open(row["state"], "pauses", row["id"], "state"),
    )


def _call(row: Row, seal: Seal) -> PausedCall:
    data = json.loads(row["data"])
    place = "calls", row["pause"], row["id"]
    erased: dict[str, Any] = {"effective": {}, "proposed": None}
    arguments = erased if row["arguments"] is None else seal.open_json(row["arguments"], *place, "arguments")
    nothing: dict[str, Any] = {"preview": {}, "votes": [], "detail": "its content was erased"}
    shown = nothing if row["shown"] is None else seal.open_json(row["shown"], *place, "shown")
    result = None if row["result"] is None else seal.open_json(row["result"], *place, "result")
    return PausedCall(
        id=row["id"],
        tool=row["tool"],
        source=row["source"],
        endpoint=data["endpoint"],
        reason=data["reason"],
        terms=CallTerms(
            approvers=tuple(map(tuple, data["approvers"])),
            allow_self_approval=data["selfApproval"],
            validity=timedelta(seconds=data["validity"]),
            rule=data["rule"],
        ),
        preview=shown["preview"],
        fingerprint=data["fingerprint"],
        binding=data["binding"],
        key=data["key"],
        tool_digest=row["digest"],
        arguments=arguments["effective"],
        destructive=data["destructive"],
        state=CallState(row["state"]),
        votes=tuple(map(_vote, shown["votes"])),
        proposed=arguments["proposed"],
        retry=data["retry"],
        detail=shown["detail"],
        result=None if result is None else ToolResult.from_dict(result),
        lease=moment(row["lease"]),
        worker=row["worker"],
    )


def _vote_data(vote: Vote) -> dict[str, Any]:
    return {
        "decider": vote.decider,
        "verdict": vote.verdict.value,
        "at": vote.at.timestamp(),
        "note": vote.note,
        "groups": list(vote.groups),
    }


def _vote(data: Mapping[str, Any]) -> Vote:
    at = moment(data["at"])
    assert at is not None
    return Vote(data["decider"], VerdictKind(data["verdict"]), at, data["note"], tuple(data["groups"]))


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))
