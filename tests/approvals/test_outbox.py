"""The outbox and reminders in the store: each message in its order and turn, each pause by itself."""

from __future__ import annotations

from datetime import timedelta

from stored_pauses import NOW, Clock, a_call, added

from toolgen.approvals.audit import Entry
from toolgen.approvals.notify import Outbox, reminders
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Store

HOUR = timedelta(hours=1)


def outbox(store: Store, url: str = "https://hook.example") -> Outbox:
    found = Outbox(store, url)
    found.start()
    return found


def happened(store: Store, pause: str, *kinds: str) -> None:
    store.record([Entry(kind, "t", "bob", pause) for kind in kinds])


def test_messages_are_collected_and_claimed_so_many_at_once_and_in_the_order_of_what_happened(
    memory: Store, clock: Clock
) -> None:
    box = outbox(memory)
    for n in range(12):
        happened(memory, f"p{n}", "paused")
    assert [box.collect(limit=8), box.collect(limit=8), box.collect(limit=8)] == [8, 4, 0]
    claimed = [box.claim(limit=11), box.claim(limit=11), box.claim(limit=11)]
    assert [len(some) for some in claimed] == [11, 1, 0]
    assert [notice.pause for some in claimed for notice in some] == [f"p{n}" for n in range(12)]


def test_what_waits_the_longest_is_claimed_first(memory: Store, clock: Clock) -> None:
    box = outbox(memory)
    happened(memory, "late", "paused")
    box.collect()
    (first,) = box.claim()
    clock.forward(seconds=1)
    happened(memory, "soon", "paused")
    box.collect()
    clock.forward(hours=1)
    assert [notice.pause for notice in box.claim(limit=1)] == ["soon"]
    (again,) = box.claim()
    assert (again.id, again.pause, again.attempt) == (first.id, "late", 2)


def test_what_is_told_of_one_kind_at_one_time_is_one_message(memory: Store, clock: Clock) -> None:
    box = outbox(memory)
    happened(memory, "p", "executed", "failed", "claimed", "decided")
    assert box.collect() == 2
    assert sorted(notice.kind for notice in box.claim()) == ["decided", "finished"]


def test_a_webhook_is_given_its_own_messages_and_what_is_done_is_that_one(memory: Store, clock: Clock) -> None:
    one, two = outbox(memory), outbox(memory, "https://other.example")
    for pause in ("p1", "p2"):
        happened(memory, pause, "paused")
    assert (one.collect(), two.collect()) == (2, 2)
    first, _ = one.claim()
    one.done(first)
    theirs = two.claim()
    assert [notice.pause for notice in theirs] == ["p1", "p2"]
    assert not {notice.id for notice in theirs} & {first.id}
    clock.forward(hours=1)
    assert [notice.pause for notice in one.claim()] == ["p2"], "it was not delivered"
    assert len(two.claim()) == 2


def test_what_is_of_no_pause_is_told_to_no_webhook(memory: Store) -> None:
    box = outbox(memory)
    memory.record([Entry("outcome_unknown", "t", "system:sweep", None, "c1")])
    assert box.collect() == 0
    happened(memory, "p", "paused")
    assert box.collect() == 1, "and it stands in no one's way"


def test_each_pause_is_reminded_of_by_itself(memory: Store, clock: Clock) -> None:
    one, two = [added(memory, due=NOW + minutes * HOUR / 60).id for minutes in (70, 65)]
    clock.forward(minutes=20)
    assert reminders(memory, HOUR, limit=1) == [(two, "t")], "the one that is due first"
    happened(memory, two, "decided")
    assert reminders(memory, HOUR) == [(one, "t")], "another one's reminder is not its own"
    happened(memory, two, "extended")
    assert reminders(memory, HOUR) == [(two, "t")]
    assert reminders(memory, HOUR) == []
    happened(memory, one, "voided")
    assert reminders(memory, HOUR) == [], "only what is extended has another due time"


def test_reminded_is_of_what_waits_and_is_due_within_the_time_and_was_not_made_within_it(
    memory: Store, clock: Clock
) -> None:
    earlier = NOW - 5 * HOUR
    added(memory, a_call(state=CallState.rejected), due=NOW + HOUR / 2, created=earlier)
    added(memory, due=NOW, created=earlier)
    added(memory, due=NOW + HOUR + timedelta(seconds=1), created=earlier)
    added(memory, due=NOW + HOUR / 2, created=NOW)
    within = [added(memory, due=NOW + by, created=NOW + by - HOUR).id for by in (HOUR / 2, HOUR)]
    assert [id for id, _ in reminders(memory, HOUR)] == within
