"""Decisions as JSON says them: what comes over HTTP, MCP or the command line, checked whole.

The decider is never among it: who decides is what the host's authenticator says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from toolgen.approvals.model import Decision, Remember, Scope, Verdict
from toolgen.errors import DecisionInvalid, Problem

VERDICT: Final = ("verdict", "note", "arguments", "retry", "remember")
DECISION: Final = ("verdict", "note", "calls", "retry", "revision", "othersWait")
REMEMBER: Final = ("scope", "fields", "uses", "until")


def decision_of(data: Any) -> Decision:
    """The decision of JSON data. What it means for a pause is checked where it is decided.

    Raises DecisionInvalid with every key that is not known and every value of another type.
    """
    problems: list[Problem] = list(_problems(data))
    if problems:
        raise DecisionInvalid("the decision is not valid; nothing was changed", problems)
    return Decision(
        data.get("verdict"),
        note=data.get("note"),
        calls={name: _verdict(one) for name, one in data.get("calls", {}).items()},
        retry=data.get("retry", False),
        revision=data.get("revision"),
        others_wait=data.get("othersWait", False),
    )


def _problems(data: Any) -> Iterator[Problem]:
    yield from _faults(data, "", DECISION, {"retry": bool, "othersWait": bool, "revision": int, "calls": dict})
    calls = data.get("calls") if isinstance(data, Mapping) else None
    for name, verdict in calls.items() if isinstance(calls, Mapping) else ():
        where = f"calls.{name}"
        yield from _faults(verdict, where, VERDICT, {"retry": bool, "arguments": dict, "remember": dict})
        wish = verdict.get("remember") if isinstance(verdict, Mapping) else None
        if isinstance(wish, Mapping):
            yield from _faults(wish, f"{where}.remember", REMEMBER, {"fields": list, "uses": int})
            yield from _remember_faults(wish, f"{where}.remember")


def _faults(data: Any, where: str, known: tuple[str, ...], types: Mapping[str, type]) -> Iterator[Problem]:
    """Keys that are not known and values of another type; null is a key that is not there."""
    if not isinstance(data, Mapping):
        yield Problem("expected an object", where)
        return
    start = f"{where}." if where else ""
    for key, value in data.items():
        wanted = types.get(key, str)
        if key not in known:
            yield Problem(f"there is no such key; there are {', '.join(known)}", f"{start}{key}")
        elif value is None and key not in _NEVER_NULL:
            continue
        elif not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            yield Problem(f"expected {_TYPES[wanted]}", f"{start}{key}")


_NEVER_NULL: Final = ("retry", "othersWait", "calls", "fields", "scope")
_TYPES: Final = {str: "a text", bool: "true or false", int: "an integer", dict: "an object", list: "a list"}


def _remember_faults(wish: Mapping[str, Any], where: str) -> Iterator[Problem]:
    scope, until = wish.get("scope"), wish.get("until")
    if isinstance(scope, str) and scope not in list(Scope):
        yield Problem(f"a scope is one of {', '.join(Scope)}", f"{where}.scope")
    if isinstance(until, str) and _time(until) is None:
        yield Problem("until is a time in RFC 3339 with a time zone", f"{where}.until")


def _verdict(data: Mapping[str, Any]) -> Verdict:
    wish = data.get("remember")
    return Verdict(
        data.get("verdict"),
        note=data.get("note"),
        arguments=data.get("arguments"),
        retry=data.get("retry", False),
        remember=None if wish is None else _remember(wish),
    )


def _remember(wish: Mapping[str, Any]) -> Remember:
    until = wish.get("until")
    return Remember(
        Scope(wish.get("scope") or Scope.exact),
        tuple(wish.get("fields", ())),
        wish.get("uses"),
        None if until is None else _time(until),
    )


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
