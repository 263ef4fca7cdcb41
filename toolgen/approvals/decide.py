"""What a decision does to a pause: every check before any change, and nothing but an explicit approval approves.

Pure: it takes a pause and gives the changed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from toolgen.approvals.model import (
    LONGEST_NOTE,
    MOST_ROUNDS,
    SYSTEM,
    Decider,
    Decision,
    Pause,
    PausedCall,
    Remember,
    Scope,
    Verdict,
    VerdictKind,
    Vote,
)
from toolgen.approvals.names import check_names
from toolgen.approvals.states import CallState
from toolgen.errors import DecisionForbidden, DecisionInvalid, PauseConflict, Problem


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a decision comes to: the verdict for each call its decider may decide."""

    verdicts: Mapping[str, Verdict]
    skipped: tuple[str, ...] = ()  # waiting calls that somebody else has to decide


def ruling(pause: Pause, decision: Decision, decider: Decider) -> Ruling:
    """The verdict for each waiting call that the decider may decide; nothing changes yet.

    Raises DecisionInvalid with every problem, PauseConflict where the pause is not waiting or has changed
    since the decider saw it, and DecisionForbidden where the decider may decide none of the calls, or one
    that the decision names. NameInvalid is for a decider who cannot be kept whole.
    """
    check_names(decider=decider.subject)
    problems = list(_problems(pause, decision))
    if problems:
        raise DecisionInvalid("the decision is not valid; nothing was changed", problems)
    if not pause.waiting:
        states = ", ".join(sorted({call.state.value for call in pause.calls}))
        raise PauseConflict(f"nothing of this pause waits for a decision any more: {states}")
    if decision.revision is not None and decision.revision != pause.revision:
        raise PauseConflict(f"the pause has changed since: it is at revision {pause.revision}, not {decision.revision}")
    settled = [name for name in decision.calls if pause.call(name).state is not CallState.pending]
    if settled:
        raise PauseConflict(f"{settled[0]} is {pause.call(settled[0]).state.value} already")
    if decision.revision is None and any(call.proposed is not None for call in pause.waiting):
        raise PauseConflict(f"a reviewer has changed a call: say which revision was seen; it is at {pause.revision}")
    verdicts: dict[str, Verdict] = {}
    skipped: list[str] = []
    for call in pause.waiting:
        given = decision.calls.get(call.id)
        if given is None and decision.others_wait:
            skipped.append(call.id)
        elif may_decide(call, pause, decider):
            verdicts[call.id] = given or Verdict(decision.verdict, decision.note, retry=decision.retry)
        elif given is not None:
            raise DecisionForbidden(f"{decider.subject!r} may not decide {call.id}: {_who(call)}")
        else:
            skipped.append(call.id)
    if not verdicts:
        raise DecisionForbidden(f"{decider.subject!r} may decide none of these calls: {_who(pause.waiting[0])}")
    return Ruling(verdicts, tuple(skipped))


def may_decide(call: PausedCall, pause: Pause, decider: Decider) -> bool:
    """Whether a verdict of this person counts for a call, by the call's own rule."""
    if not decider.subject or decider.subject.startswith(SYSTEM) or decider.tenant != pause.tenant:
        return False
    # Where nobody knows who asked, nobody can tell that it is somebody else.
    if not call.terms.allow_self_approval and pause.requester in ("", decider.subject):
        return False
    return not call.terms.approvers or bool(_groups(call, decider))


def check_amended(pause: Pause, calls: Iterable[PausedCall], decider: Decider) -> None:
    """Raises DecisionForbidden where the decider may not decide a call as amended: its rule may be stricter now."""
    for call in calls:
        if not may_decide(call, pause, decider):
            raise DecisionForbidden(f"{decider.subject!r} may not decide {call.id} as amended: {_who(call)}")


def voted(call: PausedCall, verdict: Verdict, decider: Decider, now: datetime) -> PausedCall:
    """The call with a verdict on it: approved once somebody of every group has approved."""
    kind = kind_of(verdict.verdict)
    vote = Vote(decider.subject, kind or VerdictKind.rejected, now, verdict.note, _groups(call, decider))
    votes = (*call.votes, vote)
    if kind is not VerdictKind.approved:
        return replace(call, votes=votes, state=CallState.rejected, retry=verdict.retry)
    agreed = {group for one in votes if one.verdict is VerdictKind.approved for group in one.groups}
    complete = agreed >= set(range(len(call.terms.approvers)))
    return replace(call, votes=votes, state=CallState.approved if complete else CallState.pending)


def kind_of(verdict: object) -> VerdictKind | None:
    """The verdict a text says, whatever its case; None for anything else."""
    text = verdict.strip().lower() if isinstance(verdict, str) else ""
    return VerdictKind(text) if text in {kind.value for kind in VerdictKind} else None


def _groups(call: PausedCall, decider: Decider) -> tuple[int, ...]:
    return tuple(n for n, group in enumerate(call.terms.approvers) if not decider.names.isdisjoint(group))


def _who(call: PausedCall) -> str:
    named = [" or ".join(group) for group in call.terms.approvers]
    said = f"approvers are {', and '.join(named)}" if named else "the requester is not among those who may"
    return said + ("" if call.terms.allow_self_approval else "; the requester may not approve it")


def _problems(pause: Pause, decision: Decision) -> Iterator[Problem]:
    top = kind_of(decision.verdict)
    if top is None:
        yield Problem("a verdict is approved or rejected", "verdict")
    if decision.others_wait and not decision.calls:
        yield Problem("no call is decided: list those that are", "calls")
    yield from _note_problem("note", decision.note)
    if decision.retry and top is VerdictKind.approved:
        yield Problem("only a rejection asks for a new proposal", "retry")
    known = {call.id: call for call in pause.calls}
    for name, verdict in decision.calls.items():
        where = f"calls.{name}"
        if name not in known:
            waiting = ", ".join(call.id for call in pause.waiting) or "none"
            yield Problem("the pause has no such call", where, hint=f"waiting are {waiting}")
            continue
        kind = kind_of(verdict.verdict)
        if kind is None:
            yield Problem("a verdict is approved or rejected", f"{where}.verdict")
        elif kind is VerdictKind.approved and top is VerdictKind.rejected:
            yield Problem("a rejected batch has no approved call; approve it and reject the others", where)
        yield from _note_problem(f"{where}.note", verdict.note)
        if verdict.remember is not None:
            yield from _remember_problems(f"{where}.remember", verdict.remember, kind, known[name])
        if verdict.arguments is not None and kind is not VerdictKind.approved:
            yield Problem("only an approved call has other arguments", f"{where}.arguments")
        if verdict.retry and kind is VerdictKind.approved:
            yield Problem("only a rejection asks for a new proposal", f"{where}.retry")
    if (decision.retry or any(one.retry for one in decision.calls.values())) and pause.round >= MOST_ROUNDS:
        yield Problem(f"a new proposal was asked for {MOST_ROUNDS} times already: approve or reject", "retry")


def _remember_problems(where: str, asked: Remember, kind: VerdictKind | None, call: PausedCall) -> Iterator[Problem]:
    """What is wrong with a wish to remember; "no arguments" must never come to mean "any arguments"."""
    wish: Any = asked  # whatever the type checker of the host said of it
    if kind is not VerdictKind.approved:
        yield Problem("only an approval is remembered", where)
    if call.destructive:
        yield Problem("what is destructive is approved each time", where)
    names = all(isinstance(name, str) and name for name in wish.fields)
    if wish.scope not in list(Scope) or not names or (wish.scope == Scope.fields) != bool(wish.fields):
        yield Problem("a scope is exact or endpoint, or fields with the names of arguments", f"{where}.scope")
    if wish.uses is not None and (isinstance(wish.uses, bool) or not isinstance(wish.uses, int) or wish.uses < 1):
        yield Problem("uses are a number from 1 on", f"{where}.uses")
    if wish.until is not None and (not isinstance(wish.until, datetime) or wish.until.tzinfo is None):
        yield Problem("until is a time with a time zone", f"{where}.until")


def _note_problem(where: str, note: object) -> Iterator[Problem]:
    if note is not None and (not isinstance(note, str) or len(note) > LONGEST_NOTE):
        yield Problem(f"a note is a text of at most {LONGEST_NOTE:,} characters", where)
    elif note is not None and any("\ud800" <= char <= "\udfff" for char in note):
        yield Problem("half of a surrogate pair is no character: nobody could be sent the note", where)
