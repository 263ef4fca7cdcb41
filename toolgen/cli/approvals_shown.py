"""What waits and what was decided, as people read it: the list, and one pause with its previews."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from toolgen.approvals.model import Pause, PausedCall, stamp
from toolgen.approvals.states import CallState
from toolgen.cli.output import Cell, Format, Page, columns, print_json, to_json
from toolgen.cli.stores import SHORT
from toolgen.policy.config import TimeoutPolicy
from toolgen.request.render import as_text, from_dict

if TYPE_CHECKING:
    from toolgen.approvals.rows import Listed
    from toolgen.runtime.remembered import Kept

_STYLES = {"pending": "yellow", "approved": "green", "executed": "green", "rejected": "red", "outcome_unknown": "red"}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
Fact = tuple[str, str, str]  # label, text, style


def print_list(pauses: Sequence[Listed], now: datetime) -> None:
    """A table of pauses."""
    page = Page(sys.stdout)
    short = short_ids([pause.id for pause in pauses])
    header = ("id", "age", "requester", "state", "tools", "reason", "due")
    page.table(header, [_row(pause, short[pause.id], now) for pause in pauses])
    page.print()


def _row(pause: Listed, short: str, now: datetime) -> list[Cell]:
    state = each_once(call[3].value for call in pause.calls)
    due = "-" if pause.due is None else f"in {length(pause.due - now)}" if pause.due > now else "now"
    return [
        (short, "bold"),
        (length(now - pause.created), ""),
        (pause.requester, ""),
        (state, _STYLES.get(state, "")),
        (each_once(call[1] for call in pause.calls), ""),
        (each_once(call[4] for call in pause.calls), ""),
        (due, ""),
    ]


def print_line(pause: Listed) -> None:
    """A pause that is new or has changed, on one line."""
    page = Page(sys.stdout)
    shown = (each_once(call[3].value for call in pause.calls), each_once(call[1] for call in pause.calls))
    page.line("  ".join((pause.id[:SHORT], *shown, pause.requester)))
    page.print()


def each_once(texts: Iterable[str]) -> str:
    """Texts, each once."""
    return ", ".join(dict.fromkeys(texts))


def due(pause: Pause, now: datetime) -> str:
    """When time decides, and what."""
    if pause.due is None or not pause.waiting:
        return "-"
    what = "" if pause.timeout_policy is TimeoutPolicy.WAIT_INDEFINITELY else f", then {pause.timeout_policy.value}"
    return (f"in {length(pause.due - now)}" if pause.due > now else "now") + what


def length(span: timedelta) -> str:
    """A length of time in its largest unit: `4 min`."""
    seconds = max(int(span.total_seconds()), 0)
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size} {unit}"


def print_after(pause: Pause, format_: Format, now: datetime) -> None:
    """What became of a pause: the state of each call, and what comes next."""
    if format_ is Format.json:
        print_json(pause.to_dict(), sys.stdout)
        return
    page = Page(sys.stdout)
    page.facts((call.id, f"{call.tool} is {call.state.value}", "bold") for call in pause.calls)
    if pause.waiting:
        page.line(f"{', '.join(call.id for call in pause.waiting)} still waits for a decision, due {due(pause, now)}")
    elif any(call.state is CallState.approved for call in pause.calls):
        page.line("nothing has run: the requester resumes it, as with toolgen call TOOLSET --resume ID")
    page.print()


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """Each id cut to as many characters as tell them apart, 8 at least."""
    size = SHORT
    while len({one[:size] for one in ids}) < len(set(ids)):
        size += 1
    return {one: one[:size] for one in ids}


def print_pause(pause: Pause, now: datetime) -> None:
    """One pause: what is asked for, by whom, until when, and what each call would send."""
    page = Page(sys.stdout)
    facts: list[Fact] = [
        ("pause", pause.id, "bold"),
        ("requester", pause.requester or "nobody", ""),
        ("made", f"{stamp(pause.created)}, {length(now - pause.created)} ago", ""),
        ("due", due(pause, now), ""),
        ("reason", pause.reason, ""),
        ("message", pause.message or "", ""),
        ("ran before", ", ".join(pause.executed), ""),
        ("revision", str(pause.revision), ""),
    ]
    page.facts([fact for fact in facts if fact[1]])
    for call in pause.calls:
        page.line()
        print_call(page, call)
    page.print()


def print_call(page: Page, call: PausedCall) -> None:
    """One call: its state and terms, then the preview, indented so that no value can look like a fact."""
    page.line(f"{call.id}: {call.tool} of {call.source} is {call.state.value}", style=_STYLES.get(call.state.value, ""))
    page.facts([fact for fact in _facts(call) if fact[1]], indent=2)
    page.line()
    width = columns(sys.stdout)
    lines = preview_text(call.preview, None if width is None else width - 4).split("\n")
    page.verbatim("\n".join(f"    {line}" for line in lines))


def _facts(call: PausedCall) -> list[Fact]:
    approvers = ", and ".join(" or ".join(group) for group in call.terms.approvers)
    votes = [
        f"{vote.verdict.value} by {vote.decider}, {stamp(vote.at)}" + (f": {vote.note}" if vote.note else "")
        for vote in call.votes
    ]
    return [
        ("reason", call.reason, ""),
        ("rule", call.terms.rule or "", ""),
        ("approvers", approvers, ""),
        ("requester", "" if call.terms.allow_self_approval else "may not approve it", ""),
        ("destructive", "yes" if call.destructive else "", "red"),
        *(("decided", vote, "") for vote in votes),
        ("amended", "yes: this is not what the model asked for" if call.proposed is not None else "", "yellow"),
        ("detail", call.detail, ""),
    ]


def preview_text(preview: Mapping[str, Any], width: int | None = None) -> str:
    """A preview that is kept with a call: of a request by the one renderer, of another call as redacted JSON."""
    if not preview:
        return "erased"
    if "method" not in preview:
        return to_json(dict(preview))
    return as_text(from_dict(preview), width)


def print_remembered(kept: Sequence[Kept], now: datetime) -> None:
    """A table of remembered approvals."""
    page = Page(sys.stdout)
    short = short_ids([one.id for one in kept])
    rows: list[list[Cell]] = []
    for one in kept:
        scope = one.scope.value + (f" {','.join(one.fields)}" if one.fields else "")
        left = "any" if one.left is None else str(one.left)
        until = "-" if one.until is None else f"in {length(one.until - now)}" if one.until > now else "over"
        ends = "revoked" if one.revoked else until
        names = (short[one.id], one.tool, scope, one.requester, one.owner, left)
        rows.append([(names[0], "bold"), *((text, "") for text in names[1:]), (ends, "")])
    page.table(("id", "tool", "scope", "for", "by", "uses", "ends"), rows)
    page.print()
