from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from stored_pauses import NOW, Clock, a_call, a_vote, added, moved, stored_bytes, stored_rows, to

from toolgen.approvals.audit import Entry, last
from toolgen.approvals.erase import details_of, ranges
from toolgen.approvals.model import Pause, VerdictKind, Vote
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, JournalKey, Store
from toolgen.approvals.tables import audit, calls, remembered
from toolgen.errors import PauseConflict, StoreError
from toolgen.result import Sent, ToolResult

RESULT = ToolResult(True, Sent.answered, 200, "application/json", {"said": "result"})
KEY = JournalKey("t", "th", "tu", "c1")


def ran(store: Store, key: JournalKey = KEY, requester: str = "ann") -> None:
    store.claim(key, "f" * 64, requester=requester, worker="w", lease=store.clock() + timedelta(minutes=1))
    store.finish(key, CallState.executed, RESULT, [Entry("ran", key.tenant, requester, None, key.call)])


def remember(store: Store, id: str, requester: str = "ann", **given: Any) -> None:
    row = {"tenant": "t", "source": "shop", "tool": "x", "created": NOW.timestamp(), "data": "{}"}
    values = {"id": id, "requester": requester, "expires": None, "left": None, "revoked": None, **row, **given}
    with store.database.change() as connection:
        connection.execute(insert(remembered).values(**values))


def column(store: Store, what: Any, *where: Any) -> list[Any]:
    with store.database.read() as connection:
        return list(connection.execute(select(what).where(*where)).scalars())


def sealed(store: Store, pause: str) -> list[Any]:
    with store.database.read() as connection:
        query = select(calls.c.arguments, calls.c.shown, calls.c.result).where(calls.c.pause == pause)
        return [value for row in connection.execute(query) for value in row if value is not None]


def executed(store: Store, **given: Any) -> str:
    pause = moved(store, added(store, **given), CallState.approved, CallState.executing)
    store.change(pause.id, pause.tenant, to(CallState.executed, result=RESULT))
    return pause.id


# A person


def test_a_purge_leaves_nothing_of_a_person_and_the_chain_whole(store: Store) -> None:
    head = None
    for who in ("ann@example.com", "bob"):
        executed(store, requester=who)
        ran(store, JournalKey("t", "th", who[:3], "c1"), who)
        remember(store, who[:3], who)
        head = store.head()
    counts = store.purge("ann@example.com", actor="admin")
    assert counts.to_dict() == {"pauses": 1, "journal": 2, "remembered": 1, "votes": 0, "audit": 6, "left": 0}
    assert store.faults() == [] == store.faults(head)
    assert not [row for row in stored_rows(store) if b"ann@example.com" in row]
    assert column(store, remembered.c.requester) == ["bob"]
    bobs = store.pauses(requester="bob")
    assert (bobs[0].state, bobs[0].calls[0].result) == (b"kept-state-7361", RESULT)


def test_the_purged_pause_has_no_content_and_cannot_be_changed(store: Store) -> None:
    pause = executed(store)
    store.purge("ann", actor="admin")
    assert sealed(store, pause) == []
    found = store.pause(pause, "t")
    assert (found.requester, found.state, found.calls[0].arguments, found.calls[0].preview) == ("", None, {}, {})
    assert (found.calls[0].state, found.calls[0].note, found.calls[0].result) == (CallState.executed, None, None)
    with pytest.raises(StoreError):
        store.change(pause, "t", to(CallState.executing))


@pytest.mark.parametrize("states", [[], [CallState.approved]])
def test_calls_that_wait_are_cancelled_by_a_purge(states: list[CallState], store: Store) -> None:
    pause = moved(store, added(store, due=NOW), *states)
    store.purge("ann", actor="admin")
    assert store.pause(pause.id, "t").calls[0].state is CallState.cancelled
    assert (store.count_waiting(), store.due(NOW), store.listed(is_open=True)) == (0, [], [])
    assert column(store, audit.c.kind)[-2:] == ["purged", "cancelled"]


def test_a_pause_that_is_being_carried_out_is_left_and_told(store: Store) -> None:
    pause = moved(store, added(store), CallState.approved, CallState.executing)
    assert store.purge("ann", actor="admin").left == 1
    assert store.pause(pause.id, "t") == pause
    moved(store, pause, CallState.executed)
    assert store.purge("ann", actor="admin").to_dict()["pauses"] == 1
    assert sealed(store, pause.id) == []


def test_what_a_person_said_of_a_pause_that_was_left_is_still_theirs_to_be_erased(store: Store) -> None:
    pause = added(store)

    def approve(now: Pause) -> Change:
        call = replace(now.call("c1"), state=CallState.approved, votes=(a_vote("bob"),))
        entry = Entry("decided", "t", "bob", pause.id, "c1", {"requester": "ann"})
        return Change(now.with_call(call), (entry,))

    store.change(pause.id, "t", approve)
    moved(store, pause, CallState.executing)
    assert store.purge("ann", actor="admin").left == 1
    assert store.purge("bob", actor="admin").votes == 1
    (vote,) = store.pause(pause.id, "t").call("c1").votes
    assert (vote.decider, vote.note) == ("", None)
    assert store.faults() == []


def test_of_many_that_erase_what_is_old_each_pause_is_erased_and_told_by_one(store: Store) -> None:
    for _ in range(3):
        moved(store, added(store), CallState.rejected)
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: store.expire(NOW + timedelta(days=1)).pauses, range(6)))
    assert sum(found) == 3


def test_what_a_purged_call_did_is_not_done_again(store: Store) -> None:
    ran(store)
    store.purge("ann", actor="admin")
    found = store.claim(KEY, "f" * 64, requester="ann", worker="w", lease=NOW + timedelta(hours=1))
    assert found is not None
    assert "it was carried out, and its result is not kept any more" in found.message
    with pytest.raises(PauseConflict):
        store.claim(KEY, "e" * 64, requester="ann", worker="w", lease=NOW)


def test_a_purge_of_one_tenant_leaves_the_others(store: Store) -> None:
    for tenant in ("t", "u"):
        executed(store, tenant=tenant)
        ran(store, JournalKey(tenant, "th", "tu", "c1"))
    counts = store.purge("ann", actor="admin", tenant="t")
    assert (counts.pauses, counts.journal) == (1, 2)
    [kept] = store.pauses("u")
    assert kept.calls[0].result == RESULT
    assert all(
        details is None for details in column(store, audit.c.details, audit.c.tenant == "t", audit.c.seq < 11)[:4]
    )
    assert None not in column(store, audit.c.details, audit.c.tenant == "u")
    assert store.faults() == []


def test_what_an_erased_person_said_of_others_is_gone_and_that_somebody_voted_stays(store: Store) -> None:
    kept, mine = Vote("carl", VerdictKind.approved, NOW, "kept-note-5521"), "note-of-eve@example.com"
    vote = Vote("eve@example.com", VerdictKind.approved, NOW, mine, (0,))
    about = {"verdict": "approved"}

    def change(kind: str, **given: Any) -> Any:
        def made(pause: Any) -> Change:
            entry = Entry(kind, "t", "eve@example.com", pause.id, "c1", {**about, "detail": mine})
            return Change(pause.with_call(replace(pause.calls[0], **given)), (entry,))

        return made

    voted, ended = added(store, requester="bob"), added(store, requester="bob", thread=mine[:4])
    store.change(voted.id, "t", change("decided", votes=(kept, vote)))
    store.change(ended.id, "t", change("cancelled", state=CallState.cancelled, detail=mine))
    remember(store, "r1", "bob", data=json.dumps({"owner": "eve@example.com", "scope": "exact"}))
    before, old = store.head(), stored_shown(store)
    counts = store.purge("eve@example.com", actor="admin")
    assert (counts.votes, counts.audit, counts.pauses, counts.left) == (1, 2, 0, 0)
    after = store.pause(voted.id, "t").calls[0]
    assert after.votes == (kept, replace(vote, decider="", note=None))
    assert after.state is CallState.pending
    assert store.pause(voted.id, "t").revision == 3
    assert store.pause(ended.id, "t").calls[0].detail == "its content was erased"
    everything = b"".join(stored_bytes(store)) + repr([store.pause(one.id, "t") for one in (voted, ended)]).encode()
    for gone in (b"eve@example.com", *old):  # nor is anything there that a key could still open
        assert gone not in everything
    assert b"carl" in everything
    assert column(store, audit.c.kind, audit.c.kind.in_(["decided", "cancelled"])) == ["decided", "cancelled"]
    assert store.faults() == [] == store.faults(before)


def stored_shown(store: Store) -> list[bytes]:
    return column(store, calls.c.shown)


def test_a_vote_of_another_tenant_is_another_persons(store: Store) -> None:
    pause = added(store, requester="bob")
    vote = a_vote("eve")
    entry = Entry("decided", "t", "eve", pause.id, "c1")
    store.change(pause.id, "t", lambda now: Change(now.with_call(replace(now.calls[0], votes=(vote,))), (entry,)))
    assert store.purge("eve", actor="admin", tenant="u").to_dict()["votes"] == 0
    assert store.pause(pause.id, "t").calls[0].votes == (vote,)


def test_what_was_said_while_a_purge_began_is_left_whole_for_the_next(memory: Store) -> None:
    pause = added(memory, requester="bob")
    with memory.database.change() as connection:
        until = last(connection)
        memory.record_in(connection, [Entry("decided", "t", "eve", pause.id, "c1")])
        assert details_of(connection, "eve", None, [], until) == ([], 1)
        assert details_of(connection, "eve", None, [], until + 1) == ([until + 1], 0)


def test_a_subject_that_is_part_of_another_is_another_person(store: Store) -> None:
    for who in ("ann", "joann", "ann%", "a_n"):
        store.record([Entry("ran", "t", who)])
    assert store.purge("a_n", actor="admin").audit == 1
    assert store.purge("ann", actor="admin").audit == 1
    assert [json.loads(text)["actor"] for text in column(store, audit.c.details, audit.c.kind == "ran") if text] == [
        "joann",
        "ann%",
    ]


def test_who_erased_what_is_never_erased_and_twice_is_fine(store: Store) -> None:
    executed(store)
    store.purge("ann", actor="admin")
    store.purge("ann", actor="admin")
    store.purge("admin", actor="admin")
    assert [kind for kind in column(store, audit.c.kind) if kind == "purged"] == ["purged"] * 3
    assert None not in column(store, audit.c.details, audit.c.kind == "purged")
    assert store.faults() == []


def test_an_erasing_that_is_changed_does_not_cover_what_it_did_not_erase(store: Store) -> None:
    executed(store)
    store.purge("nobody", actor="admin")
    with store.database.change() as connection:
        connection.execute(update(audit).where(audit.c.seq == 1).values(details=None, salt=None))
        forged = json.dumps({"entries": [[1, 10**12]]})
        connection.execute(update(audit).where(audit.c.kind == "purged").values(details=forged))
    assert store.faults() == ["entry 5: its details were changed"]


def test_a_purge_needs_a_subject(store: Store) -> None:
    added(store, requester="")
    with pytest.raises(StoreError, match="needs the subject"):
        store.purge("", actor="admin")


# Old content


def test_pauses_that_closed_long_ago_lose_their_content_and_the_audit_says_so(store: Store, clock: Clock) -> None:
    old, waiting = executed(store), added(store)
    clock.forward(days=40)
    young = added(store, created=clock())
    moved(store, young, CallState.rejected)
    counts = store.expire(clock() - timedelta(days=30))
    assert counts.pauses == 1
    assert sealed(store, old) == []
    assert store.pause(waiting.id, "t") == waiting
    assert store.pause(young.id, "t").calls[0].arguments
    assert column(store, audit.c.kind)[-1] == "retention"
    assert store.faults() == []


def test_a_pause_that_was_decided_late_is_kept_from_then_on(store: Store, clock: Clock) -> None:
    pause = added(store)
    clock.forward(days=40)

    def rejected(now: Any) -> Any:
        from dataclasses import replace

        made = to(CallState.rejected)(now)
        return replace(made, pause=replace(made.pause, decided=clock()))

    store.change(pause.id, "t", rejected)
    assert store.expire(clock() - timedelta(days=30)).pauses == 0
    clock.forward(days=31)
    assert store.expire(clock() - timedelta(days=30)).pauses == 1


def test_old_results_and_spent_approvals_go_and_what_ran_stays_run(store: Store, clock: Clock) -> None:
    ran(store)
    remember(store, "over", expires=NOW.timestamp())
    remember(store, "revoked", revoked=NOW.timestamp())
    remember(store, "used", left=0)
    remember(store, "good", left=1)
    clock.forward(days=40)
    counts = store.expire(clock() - timedelta(days=30))
    assert (counts.journal, counts.remembered, column(store, remembered.c.id)) == (1, 3, ["good"])
    assert store.claim(KEY, "f" * 64, requester="ann", worker="w", lease=clock()) is not None


def test_a_sweep_takes_so_many_at_once_and_nothing_twice(store: Store, clock: Clock) -> None:
    for number in range(3):
        moved(store, added(store, a_call(f"c{number}")), CallState.rejected, name=f"c{number}")
    clock.forward(days=1)
    assert [store.expire(clock(), limit=2).pauses for _ in range(3)] == [2, 1, 0]
    assert column(store, audit.c.kind).count("retention") == 2


def test_numbers_are_told_as_ranges() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == [[1, 3], [7, 7], [9, 10]]
    assert ranges([]) == []
