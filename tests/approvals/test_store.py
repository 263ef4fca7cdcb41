from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from time import perf_counter
from typing import Any

import pytest
from sqlalchemy import select, text
from stored_pauses import NOW, Clock, a_call, a_pause, a_vote, added, moved, to

from toolgen.approvals.audit import Entry
from toolgen.approvals.model import Pause, VerdictKind, Vote
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Change, JournalKey, Store, Turn
from toolgen.approvals.stored import load, write
from toolgen.approvals.tables import audit, journal
from toolgen.errors import PauseConflict, PauseUnknown
from toolgen.result import Sent, ToolResult

KEY = JournalKey("t", "th", "tu", "c1")
ANSWER = ToolResult(True, Sent.answered, 200, "application/json", {"said": ["é", None, 1.5]}, {"location": "/x"})
NOTHING = ToolResult(False, Sent.not_sent, message="connection refused")
LOST = ToolResult(False, Sent.unknown, message="no answer came")


def claim(store: Store, key: JournalKey = KEY, fingerprint: str = "f" * 64) -> ToolResult | None:
    lease = store.clock() + timedelta(minutes=1)
    return store.claim(key, fingerprint, requester="ann", worker="w", lease=lease)


def journaled(store: Store, key: JournalKey = KEY) -> Any:
    with store.database.read() as connection:
        return connection.execute(select(journal).where(journal.c.call == key.call, journal.c.turn == key.turn)).one()


def kinds(store: Store) -> list[str]:
    with store.database.read() as connection:
        return list(connection.execute(select(audit.c.kind).order_by(audit.c.seq)).scalars())


# Pauses


def test_a_pause_comes_back_as_it_was_in_another_process(
    store: Store, opened: Callable[..., Store], store_url: str
) -> None:
    calls = (a_call("c1", votes=(a_vote(),), proposed={"a": [1, "é\ud800\0"]}), a_call("c2", arguments={"b": None}))
    pause = added(store, *calls, due=NOW + timedelta(days=3), executed=("c0",), message="m", rule="r", round=2)
    assert opened(store_url).pause(pause.id, "t") == pause


def test_a_pause_of_another_tenant_is_not_there(store: Store) -> None:
    pause = added(store)
    with pytest.raises(PauseUnknown):
        store.pause(pause.id, "other")
    with pytest.raises(PauseUnknown):
        store.change(pause.id, "other", to(CallState.approved))
    assert store.listed("other") == []


def test_two_tenants_with_the_same_names_for_everything_share_nothing(store: Store) -> None:
    key = JournalKey("t", "thread", "turn", "c1")
    pauses = [added(store, tenant=tenant, turn="turn", due=NOW) for tenant in ("t", "u")]
    assert [store.turn(tenant, "thread", "turn").all for tenant in ("t", "u")] == [(pause,) for pause in pauses]
    assert [store.pauses(tenant, requester="ann") for tenant in ("t", "u")] == [[pause] for pause in pauses]
    assert store.listed("t", prefix=pauses[1].id) == []
    assert (store.count_waiting("t"), store.count_waiting()) == (1, 2)
    claim(store, key)
    store.finish(key, CallState.executed, ANSWER, [])
    assert store.carried_out(replace(key, tenant="u"), "f" * 64, "ann") is None
    assert store.purge("ann", actor="admin", tenant="t").pauses == 1
    assert store.pause(pauses[1].id, "u") == pauses[1]
    with store.database.read() as connection:
        erased = connection.execute(select(audit.c.tenant).where(audit.c.details.is_(None))).scalars()
        assert set(erased) == {"t"}


def test_every_change_has_a_revision_and_none_changes_nothing(store: Store) -> None:
    pause = added(store)
    assert store.change(pause.id, "t", lambda _: None) == pause
    assert moved(store, pause, CallState.approved).revision == 2
    assert store.pause(pause.id, "t").revision == 2


def test_a_change_from_a_state_that_is_not_there_any_more_is_refused(store: Store) -> None:
    pause = added(store)

    def behind(now: Any) -> Change:
        with store.database.change() as connection:  # what a writer that ignores the lock would do
            connection.execute(text("UPDATE toolgen_calls SET state = 'rejected'"))
        return to(CallState.approved)(now)

    if not store.database.is_sqlite:
        with pytest.raises(PauseConflict, match="c1 is not pending any more"):
            store.change(pause.id, "t", behind)
        return
    with store.database.change() as connection:
        before = load(connection, pause.id, "t", store._seal)
        connection.execute(text("UPDATE toolgen_calls SET state = 'rejected'"))
        with pytest.raises(PauseConflict, match="c1 is not pending any more"):
            write(connection, before, to(CallState.approved)(before).pause, store._seal, store.clock())


def expired(pause: Pause, _: Turn) -> Change:
    return to(CallState.expired)(pause)


def test_several_pauses_are_changed_together_each_whole_or_not_at_all(store: Store) -> None:
    made = [added(store) for _ in range(4)]
    made[1] = moved(store, made[1], CallState.approved)
    claim(store, JournalKey("t", "thread", made[1].turn, "c1"))  # so that its change fails when half of it is written
    ids = [pause.id for pause in made]

    def change(pause: Pause, turn: Turn) -> Change | None:
        assert turn.all == (pause,)
        if pause.id == ids[2]:
            return None
        return to(CallState.executing)(pause) if pause.id == ids[1] else expired(pause, turn)

    changed, failed = store.change_each([*ids, "gone"], change)
    assert ([pause.id for pause in changed], list(failed)) == ([ids[0], ids[3]], [ids[1]])
    assert [store.pause(one, "t") for one in (ids[0], ids[3])] == changed
    assert [store.pause(one.id, "t") for one in made[1:3]] == made[1:3]
    assert kinds(store) == ["paused"] * 4 + ["approved", "claimed"] + ["expired"] * 2
    assert store.faults() == []


def test_a_pause_that_somebody_is_changing_holds_up_no_other(store: Store) -> None:
    held, free = added(store), added(store)
    if store.database.is_sqlite:  # whose writers take turns
        assert [pause.id for pause in store.change_each([held.id, free.id], expired)[0]] == [held.id, free.id]
        return
    with store.database.change() as connection:
        load(connection, held.id, "t", store._seal, lock=True)
        changed, failed = store.change_each([held.id, free.id], expired)
    assert ([pause.id for pause in changed], failed) == ([free.id], {})


# The journal


def test_a_call_is_claimed_once_and_its_result_is_replayed(store: Store) -> None:
    assert claim(store) is None
    store.finish(KEY, CallState.executed, ANSWER, [Entry("ran", "t", "ann")])
    assert claim(store) == ANSWER == claim(store)
    assert journaled(store).state == "executed"


def test_an_unknown_outcome_is_replayed_too(store: Store) -> None:
    claim(store)
    store.finish(KEY, CallState.outcome_unknown, LOST, [])
    assert claim(store) == LOST


def test_what_provably_did_not_leave_may_be_claimed_again(store: Store) -> None:
    claim(store)
    store.finish(KEY, CallState.failed, NOTHING, [])
    assert claim(store) is None
    store.finish(KEY, CallState.executed, ANSWER, [])
    assert claim(store) == ANSWER


def test_a_call_that_is_being_carried_out_is_not_claimed(store: Store) -> None:
    claim(store)
    found = claim(store)
    assert found is not None
    assert found.sent is Sent.unknown
    assert "right now" in found.message


def test_a_claim_that_ran_out_has_an_unknown_outcome_for_good(store: Store, clock: Clock) -> None:
    claim(store)
    clock.forward(seconds=61)
    found = claim(store)
    assert found is not None
    assert "its outcome is not known, and it is not repeated" in found.message
    assert journaled(store).state == "outcome_unknown"
    assert kinds(store) == ["claimed", "outcome_unknown"]
    with pytest.raises(PauseConflict, match="not claimed any more"):
        store.finish(KEY, CallState.executed, ANSWER, [])
    assert store.faults() == []


def test_claims_that_ran_out_are_swept_once(store: Store, clock: Clock) -> None:
    claim(store)
    clock.forward(seconds=30)
    claim(store, replace(KEY, call="c2"))
    assert store.lapse(clock()) == 0
    clock.forward(seconds=31)
    assert (store.lapse(clock()), store.lapse(clock())) == (1, 0)
    assert (journaled(store).state, journaled(store, replace(KEY, call="c2")).state) == ("outcome_unknown", "executing")
    assert kinds(store) == ["claimed", "claimed", "outcome_unknown"]


def test_a_paused_claim_that_ran_out_is_left_to_its_pause(store: Store, clock: Clock) -> None:
    pause = moved(store, added(store), CallState.approved, CallState.executing)
    clock.forward(hours=1)
    assert store.lapse(clock()) == 0
    assert store.unfinished(clock()) == [(pause.id, "t")]


@pytest.mark.parametrize("state", [CallState.executing, CallState.executed, CallState.failed])
def test_the_same_call_with_another_request_is_an_error(state: CallState, store: Store) -> None:
    claim(store)
    if state is not CallState.executing:
        store.finish(KEY, state, ANSWER, [])
    with pytest.raises(PauseConflict, match="made another request before: give it another id"):
        claim(store, fingerprint="e" * 64)


@pytest.mark.parametrize("other", [{"tenant": "u"}, {"thread": "x"}, {"turn": "x"}, {"call": "x"}])
def test_another_tenant_thread_turn_or_id_is_another_call(other: dict[str, str], store: Store) -> None:
    assert claim(store) is None
    assert claim(store, replace(KEY, **other), "e" * 64) is None


def test_a_result_is_kept_once(store: Store) -> None:
    claim(store)
    store.finish(KEY, CallState.executed, ANSWER, [Entry("ran", "t", "ann")])
    with pytest.raises(PauseConflict):
        store.finish(KEY, CallState.failed, NOTHING, [Entry("ran", "t", "ann")])
    assert kinds(store) == ["claimed", "ran"]


def test_a_paused_call_is_in_the_journal_from_its_claim_to_its_end(store: Store) -> None:
    pause = moved(store, added(store, turn="tu"), CallState.approved)
    moved(store, pause, CallState.executing)
    row = journaled(store)
    assert (row.state, row.pause, row.worker, row.fingerprint) == ("executing", pause.id, "w", "f" * 64)
    moved(store, pause, CallState.executed)
    assert journaled(store).state == "executed"


def test_a_call_that_ran_before_cannot_be_claimed_through_a_pause(store: Store) -> None:
    claim(store, replace(KEY, thread="thread"))
    pause = moved(store, added(store, turn="tu"), CallState.approved)
    with pytest.raises(PauseConflict, match="'c1' of this turn was carried out before"):
        moved(store, pause, CallState.executing)
    assert store.pause(pause.id, "t").calls[0].state is CallState.approved


# Lists


def test_lists_are_filtered_and_the_newest_is_first(store: Store) -> None:
    made = [
        added(store, a_call(source=f"s{n % 2}"), tenant=f"t{n % 2}", requester=f"r{n % 3}", thread=f"th{n % 3}",
              created=NOW + timedelta(seconds=n))
        for n in range(6)
    ]  # fmt: skip
    moved(store, made[5], CallState.approved)
    moved(store, made[4], CallState.rejected)

    def found(*tenant: str, **filters: Any) -> list[int]:
        ids = [pause.id for pause in made]
        listed = [ids.index(one.id) for one in store.listed(*tenant, **filters)]
        assert listed == [ids.index(one.id) for one in store.pauses(*tenant, **filters)]
        return listed

    assert found() == [5, 4, 3, 2, 1, 0]
    assert found("t1") == [5, 3, 1]
    assert found(requester="r0") == [3, 0]
    assert found("t1", thread="th1") == [1]
    assert (found(waiting=False), found(is_open=False), found(waiting=False, is_open=True)) == ([5, 4], [4], [5])
    assert found(prefix=made[2].id[:12]) == [2]
    assert found(prefix="%") == []
    assert found(limit=2) == [5, 4]
    assert found(before=made[2].created.timestamp()) == [1, 0]
    assert (store.count_waiting(), store.count_waiting("t0")) == (4, 2)
    digests = {"updatePet": "d" * 64}
    assert store.outdated("s1", digests) == []
    assert {pause for pause, _ in store.outdated("s1", {})} == {made[n].id for n in (1, 3, 5)}
    assert {pause for pause, _ in store.outdated("s0", {"updatePet": "e" * 64})} == {made[n].id for n in (0, 2)}


def test_pages_show_each_pause_once_though_they_were_made_at_the_same_time(store: Store) -> None:
    made = {added(store).id for _ in range(7)}
    pages = [store.listed(limit=3)]
    while pages[-1]:
        pages.append(store.listed(limit=3, before=pages[-1][-1]))
    seen = [one.id for page in pages for one in page]
    assert ([len(page) for page in pages], len(seen), set(seen)) == ([3, 3, 1, 0], 7, made)


def test_pauses_that_are_due_come_the_longest_overdue_first(store: Store) -> None:
    times = [3, 1, 2, 9]
    made = [added(store, due=NOW + timedelta(seconds=seconds)) for seconds in times]
    added(store)
    moved(store, made[2], CallState.rejected)
    assert store.due(NOW + timedelta(seconds=3)) == [(made[1].id, "t"), (made[0].id, "t")]


def _approved(pause: Pause) -> Change:
    return Change(replace(to(CallState.approved)(pause).pause, decided=NOW))


def test_unfinished_are_the_claims_and_the_approvals_that_ran_out(store: Store, clock: Clock) -> None:
    pauses = [added(store) for _ in range(4)]
    for pause in pauses[1:]:
        store.change(pause.id, "t", _approved)
    moved(store, pauses[2], CallState.executing)
    moved(store, pauses[3], CallState.executing, CallState.executed)
    assert store.unfinished(clock()) == []
    assert {found[1] for found in store.approved()} == {pauses[1].id, pauses[2].id}
    clock.forward(minutes=6)
    assert store.unfinished(clock()) == [(pauses[2].id, "t")]
    clock.forward(hours=1)
    assert set(store.unfinished(clock())) == {(pauses[1].id, "t"), (pauses[2].id, "t")}


def test_how_much_of_a_turn_time_approved_is_counted() -> None:
    by_time = Vote("system:timeout", VerdictKind.approved, NOW)
    late = replace(by_time, verdict=VerdictKind.rejected)
    calls = a_call("c1", votes=(by_time,)), a_call("c2", votes=(a_vote(),)), a_call("c3", votes=(late,))
    assert Turn((a_pause(*calls),)).by_time == 1


def test_a_hundred_thousand_pauses_stay_fast(store: Store) -> None:
    kept = added(store, due=NOW - timedelta(days=1), created=NOW + timedelta(seconds=50))
    _many(store, kept.id, 100_000)
    took: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        times = []
        for _ in range(3):
            start = perf_counter()
            found = run()
            times.append(perf_counter() - start)
        took[name] = min(times)
        return found

    assert len(timed("list", store.listed)) == 100
    assert len(timed("tenant", lambda: store.listed("t", waiting=True))) == 100
    assert len(timed("waiting", lambda: store.listed(waiting=True))) == 100
    assert len(timed("page", lambda: store.listed("t", before=(NOW + timedelta(seconds=50_000)).timestamp()))) == 100
    assert len(timed("due", lambda: store.due(NOW))) == 100
    assert timed("unfinished", lambda: store.unfinished(NOW)) == []
    assert timed("show", lambda: store.pause(kept.id, "t")) == kept
    assert timed("turn", lambda: store.turn("t", "thread", kept.turn)).all == (kept,)
    assert timed("decide", lambda: store.change(kept.id, "t", lambda now: Change(now))).id == kept.id
    slow = {name: round(seconds, 3) for name, seconds in took.items() if seconds > 0.05}
    assert not slow, slow


def _many(store: Store, like: str, count: int) -> None:
    """Rows like those of one pause; their sealed texts would not open."""
    numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
    for table, other in (
        ("toolgen_pauses", {"id": "'p' || i", "turn": "'t' || i", "created": "created + i"}),
        ("toolgen_calls", {"pause": "'p' || i"}),
    ):
        with store.database.read() as connection:
            names = list(connection.execute(text(f"SELECT * FROM {table} LIMIT 1")).keys())
        listed = ", ".join(f'"{name}"' for name in names)
        values = ", ".join(other.get(name, f'"{name}"') for name in names)
        where = f"WHERE {'id' if 'id' in other else 'pause'} = '{like}'"
        command = f"INSERT INTO {table} ({listed}) {numbers} SELECT {values} FROM {table}, n {where}"
        with store.database.change() as connection:
            connection.execute(text(command))
    with store.database.change() as connection:
        connection.execute(text("ANALYZE"))
