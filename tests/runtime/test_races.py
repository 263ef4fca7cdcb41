"""Many decide and many resume at once, in several connections: one wins, and one request goes out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, REJECTED, World, add, config, paused, runs, state

from toolgen import Decider, Decision, Runtime, Verdict
from toolgen.errors import PauseConflict

WAITS = config(requireApproval=["*"])
DECIDERS, RESUMERS, ROUNDS = 50, 20, 3


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each call gave or raised, all of them started together in threads of their own."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait(20)
        try:
            return call()
        except PauseConflict as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def in_own_loop(call: Callable[[], Any]) -> Callable[[], Any]:
    import asyncio

    return lambda: asyncio.run(call())


def deciding(runtime: Runtime, pause: Any, number: int) -> Callable[[], Any]:
    decision = APPROVED if number % 2 else REJECTED
    return in_own_loop(lambda: runtime.decide(pause.id, decision, decider=Decider(f"d{number}")))


def resuming(runtime: Runtime, pause: Any) -> Callable[[], Any]:
    return in_own_loop(lambda: runtime.resume(pause.id, caller=ANN))


def test_of_fifty_deciders_and_twenty_resumers_one_wins_and_one_request_goes_out(stored: World) -> None:
    import asyncio

    for number in range(ROUNDS):
        runtimes = [stored.runtime(WAITS) for _ in range(4)]
        pause = asyncio.run(paused(runtimes[0], add("c1"), thread="t", turn=str(number)))
        before = len(stored.sent)
        found = at_once(
            *(deciding(runtimes[n % 4], pause, n) for n in range(DECIDERS)),
            *(resuming(runtimes[n % 4], pause) for n in range(RESUMERS)),
        )
        winners = [one for one in found[:DECIDERS] if not isinstance(one, PauseConflict)]
        assert len(winners) == 1
        (vote,) = winners[0].calls[0].votes
        settled = at_once(*(resuming(runtimes[n % 4], pause) for n in range(RESUMERS)))
        last = asyncio.run(runtimes[0].resume(pause.id, caller=ANN))
        assert last["c1"].ok is (vote.verdict == "approved")
        assert len(stored.sent) - before == (vote.verdict == "approved")
        results = [one["c1"] for one in [*found[DECIDERS:], *settled] if not isinstance(one, PauseConflict)]
        assert all(result == last["c1"] for result in results), "whoever gets an answer gets the same one"


def test_of_twenty_resumers_of_an_approved_pause_one_sends(stored: World) -> None:
    import asyncio

    runtimes = [stored.runtime(WAITS) for _ in range(4)]
    pause = asyncio.run(paused(runtimes[0], add("c1"), add("c2", "Max")))
    asyncio.run(runtimes[0].decide(pause.id, APPROVED, decider=Decider("bob")))
    at_once(*(resuming(runtimes[n % 4], pause) for n in range(RESUMERS)))
    assert sorted(request.content for request in stored.sent) == [b'{"name":"Max"}', b'{"name":"Rex"}']
    assert [one.call for one in stored.audit("claimed")].count("c1") == 1


def test_the_same_write_submitted_twenty_times_at_once_is_sent_once(stored: World) -> None:
    runtimes = [stored.runtime(config(unmatched="allow")) for _ in range(4)]

    def submitting(runtime: Runtime) -> Callable[[], Any]:
        return in_own_loop(lambda: runtime.submit([add("c1")], caller=ANN, thread="t", turn="1"))

    found = at_once(*(submitting(runtimes[n % 4]) for n in range(RESUMERS)))
    assert len(stored.sent) == 1
    assert any(one.results["c1"].ok for one in found)


def test_the_same_batch_submitted_twenty_times_at_once_is_one_pause(stored: World) -> None:
    runtimes = [stored.runtime(WAITS) for _ in range(4)]

    def submitting(runtime: Runtime) -> Callable[[], Any]:
        return in_own_loop(lambda: runtime.submit([add("c1")], caller=ANN, thread="t", turn="1"))

    found = at_once(*(submitting(runtimes[n % 4]) for n in range(RESUMERS)))
    assert len({one.pause.id for one in found}) == 1
    assert len(stored.store.pauses()) == 1


def between(runtime: Runtime, does: Callable[[], Any]) -> None:
    """Have something happen between the look of the next decision at its pause and its write."""
    in_store, first = runtime.in_store, True

    async def slow(do: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal first
        if first and do == runtime.store.change:
            first = False
            await does()
        return await in_store(do, *arguments, **named)

    runtime.in_store = slow  # type: ignore[method-assign]


EVE = Decider("eve")
AMENDED = Decision("approved", calls={"c1": Verdict("approved", arguments={"requestBody": {"name": "Max"}})})


@pytest.mark.parametrize(("late", "early"), [(APPROVED, AMENDED), (AMENDED, APPROVED)], ids=["vote", "amendment"])
@runs
async def test_neither_a_vote_nor_an_amendment_counts_for_a_call_that_is_another_by_now(
    world: World, late: Decision, early: Decision
) -> None:
    """What the one who is late saw is not what would run; and an amendment takes no vote that it did not see."""
    layers = [config(requireApproval=["*"], approvers=[name]) for name in ("bob", "eve")]
    runtime = world.runtime(layers)
    pause = await paused(runtime)
    between(runtime, lambda: runtime.decide(pause.id, early, decider=EVE))
    with pytest.raises(PauseConflict):
        await runtime.decide(pause.id, late, decider=BOB)
    now = world.store.pause(pause.id, "default").calls[0]
    assert (now.state.value, [vote.decider for vote in now.votes]) == ("pending", ["eve"])


@runs
async def test_a_batch_of_which_a_call_was_decided_meanwhile_is_looked_at_again_and_another_call_is_not(
    world: World,
) -> None:
    runtime = world.runtime(WAITS)
    no = Decision("rejected", calls={"c1": Verdict("rejected")}, others_wait=True)
    yes = Decision("approved", calls={"c2": Verdict("approved")}, others_wait=True)
    for late, expected in ((APPROVED, "pending"), (yes, "approved")):
        pause = await paused(runtime, add("c1"), add("c2"))
        between(runtime, lambda pause=pause: runtime.decide(pause.id, no, decider=EVE))  # type: ignore[misc]
        with pytest.raises(PauseConflict, match="meanwhile") if late is APPROVED else nullcontext():
            await runtime.decide(pause.id, late, decider=BOB)
        assert await state(runtime, pause) == {"c1": "rejected", "c2": expected}
