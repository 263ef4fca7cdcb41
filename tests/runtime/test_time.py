"""Due times: they fire late rather than never, once rather than twice, and never do what is a person's to do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from waiting_calls import ADA, BOB, YES, Log, config, kinds, paused, runtime, states

from toolgen import Caller, Decision, Runtime, ToolCall, Verdict, functions
from toolgen.approvals.model import Pause
from toolgen.approvals.states import CallState
from toolgen.approvals.store import Store
from toolgen.errors import PauseConflict
from toolgen.result import Refused
from toolgen.testing import Clock, memory_store

MINUTE = timedelta(minutes=1)
SHORT: dict[str, Any] = {"approvalTimeout": "PT10M"}
BY_TIME: dict[str, Any] = {
    "requireApproval": ["note"],
    "rules": [{"match": "note", **SHORT, "timeoutPolicy": "AUTO_APPROVE"}],
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def after(clock: Clock, log: Log, by: timedelta, **given: Any) -> tuple[Runtime, Pause]:
    """A runtime with a pause of this config, swept after a time."""
    made = runtime(log, config(**given), store=memory_store(clock))
    pause = await paused(made)
    clock.move(by)
    await made.sweep()
    return made, pause


@pytest.mark.parametrize(
    ("policy", "state", "refused", "said"),
    [
        ("AUTO_REJECT", CallState.expired, Refused.expired, "nobody answered"),
        ("ABORT", CallState.cancelled, Refused.cancelled, "cancelled"),
    ],
)
def test_when_time_is_up_a_call_ends_as_its_policy_says_and_the_model_reads_why(
    clock: Clock, policy: str, state: CallState, refused: Refused, said: str
) -> None:
    async def run() -> None:
        log = Log()
        made, pause = await after(clock, log, 11 * MINUTE, **SHORT, timeoutPolicy=policy)
        assert states(made, pause) == [state]
        (result,) = (await made.resume(pause.id, caller=ADA)).values()
        assert (result.ok, result.refused, log) == (False, refused, [])
        assert said in result.message
        assert "timeout" in kinds(made)

    asyncio.run(run())


def test_nothing_happens_before_the_time_is_up(clock: Clock) -> None:
    made, pause = asyncio.run(after(clock, Log(), 9 * MINUTE, **SHORT, timeoutPolicy="AUTO_REJECT"))
    assert states(made, pause) == [CallState.pending]


def test_time_approves_where_the_config_says_so_and_resume_runs_it(clock: Clock) -> None:
    async def run() -> None:
        log = Log()
        made, pause = await after(clock, log, 11 * MINUTE, **BY_TIME)
        (vote,) = made.store.pause(pause.id, pause.tenant).calls[0].votes
        assert (vote.decider, states(made, pause), log) == ("system:timeout", [CallState.approved], [])
        assert (await made.resume(pause.id, caller=ADA))["c0"].ok
        assert log == ["x"]

    asyncio.run(run())


@pytest.mark.parametrize(
    "rule", [{"approvers": ["bob"]}, {"allowSelfApproval": False}, {"approvers": ["bob"], "allowSelfApproval": True}]
)
def test_time_never_approves_what_only_certain_people_may(clock: Clock, rule: dict[str, Any]) -> None:
    async def run() -> None:
        log = Log()
        made = runtime(
            log, config(requireApproval=["note"], rules=[{"match": "note", **rule}]), store=memory_store(clock)
        )
        pause = await paused(made)
        await _by_approval(made, pause, clock.now + MINUTE)
        clock.move(2 * MINUTE)
        await made.sweep()
        kept = made.store.pause(pause.id, pause.tenant)
        assert (states(made, pause), kept.due, kept.timeout_policy.value) == (
            [CallState.pending],
            None,
            "WAIT_INDEFINITELY",
        )
        assert "guard" in kinds(made)

    asyncio.run(run())


async def _by_approval(made: Runtime, pause: Pause, due: Any) -> None:
    """Have a pause approved by time, whatever the config would say."""
    from dataclasses import replace

    from toolgen.approvals.store import Change
    from toolgen.policy.config import TimeoutPolicy

    def change(now: Pause) -> Change:
        return Change(replace(now, due=due, timeout_policy=TimeoutPolicy.AUTO_APPROVE))

    made.store.change(pause.id, pause.tenant, change)


def test_time_never_approves_what_destroys(clock: Clock) -> None:
    async def run() -> None:
        from small_documents import document, made, parameter

        from toolgen import Dispatcher
        from toolgen.testing import RecordingTransport

        operation = {
            "operationId": "drop",
            "parameters": [parameter("id", "path")],
            "responses": {"200": {"description": "ok"}},
        }
        server = RecordingTransport()
        toolset = made(document({"/x/{id}": {"delete": operation}}), api="x", server="https://api.example")
        one = Runtime(Dispatcher(toolset, transport=server), config(), store=memory_store(clock))
        pause = (await one.submit([ToolCall("1", "drop", {"id": "7"})], caller=ADA)).pause
        assert pause is not None
        await _by_approval(one, pause, clock.now + MINUTE)
        clock.move(2 * MINUTE)
        await one.sweep()
        assert (states(one, pause), server.requests) == ([CallState.pending], [])

    asyncio.run(run())


def test_of_one_turn_time_approves_only_so_many_calls(clock: Clock) -> None:
    async def run() -> None:
        given = config(**BY_TIME, maxAutoApprovalsPerTurn=2)
        made = runtime(Log(), given, store=memory_store(clock))
        first = await paused(made, "a", "b", thread="t", turn="1")
        calls = [ToolCall("d0", "note", {"text": "d"})]
        second = (await made.submit(calls, caller=ADA, thread="t", turn="1")).pause
        other = await paused(made, "e", thread="t", turn="2")
        assert second is not None
        clock.move(11 * MINUTE)
        await made.sweep()
        found = [states(made, one) for one in (first, second, other)]
        assert found == [[CallState.approved] * 2, [CallState.pending], [CallState.approved]]

    asyncio.run(run())


def test_what_waits_without_end_is_never_touched(clock: Clock) -> None:
    made, pause = asyncio.run(
        after(clock, Log(), timedelta(days=4000), approvalTimeout="PT1M", timeoutPolicy="WAIT_INDEFINITELY")
    )
    assert states(made, pause) == [CallState.pending]


def given_by(policy: str) -> Any:
    """A config by whose rule for every call time decides so."""
    limit = {} if policy == "WAIT_INDEFINITELY" else SHORT
    return config(requireApproval=["note"], rules=[{"match": "note", "timeoutPolicy": policy, **limit}])


BECOMES = {
    "AUTO_REJECT": CallState.expired,
    "ABORT": CallState.cancelled,
    "AUTO_APPROVE": CallState.approved,
    "WAIT_INDEFINITELY": CallState.pending,
}


def test_after_a_restart_each_policy_fires_at_its_original_time_and_what_waits_without_end_waits(
    store_url: str, clock: Clock
) -> None:
    async def run() -> None:
        first = Store(store_url, clock=clock)
        pauses = {policy: await paused(runtime(Log(), given_by(policy), store=first)) for policy in BECOMES}
        first.close()

        async def found(by: timedelta) -> dict[str, CallState]:
            """How each stands for processes that are started this much later."""
            clock.move(by)
            again = Store(store_url, clock=clock)
            for policy in BECOMES:
                await runtime(Log(), given_by(policy), store=again).sweep()
            made = runtime(Log(), store=again)
            now = {policy: states(made, pause)[0] for policy, pause in pauses.items()}
            again.close()
            return now

        assert await found(9 * MINUTE) == dict.fromkeys(BECOMES, CallState.pending)
        assert await found(3 * MINUTE) == BECOMES, "late, and due as if nothing had been restarted"
        assert await found(MINUTE) == BECOMES

    asyncio.run(run())


@pytest.mark.parametrize("policy", ["AUTO_REJECT", "ABORT", "AUTO_APPROVE"])
def test_time_ends_what_nobody_decided_and_leaves_what_somebody_did(clock: Clock, policy: str) -> None:
    async def run() -> None:
        log = Log()
        made = runtime(log, given_by(policy), store=memory_store(clock))
        pause = await paused(made, "a", "b", "c")
        some = {"c0": Verdict("approved"), "c1": Verdict("rejected")}
        await made.decide(pause.id, Decision("approved", calls=some, others_wait=True), decider=BOB)
        clock.move(11 * MINUTE)
        await made.sweep()
        assert states(made, pause) == [CallState.approved, CallState.rejected, BECOMES[policy]]
        votes = [[vote.decider for vote in call.votes] for call in made.store.pause(pause.id, "default").calls]
        assert votes == [["bob"], ["bob"], ["system:timeout"]]
        results = await made.resume(pause.id, caller=ADA)
        assert log == (["a", "c"] if policy == "AUTO_APPROVE" else ["a"])
        assert results["c1"].refused is Refused.rejected
        assert "expired" not in results["c1"].message, "a person's no is no timeout"
        if policy == "AUTO_REJECT":
            assert results["c2"].refused is Refused.expired
            assert "was rejected by" not in results["c2"].message, "nor a timeout a person's no"

    asyncio.run(run())


@pytest.mark.parametrize("policy", ["AUTO_REJECT", "ABORT", "AUTO_APPROVE"])
@pytest.mark.parametrize("meanwhile", ["approved", "rejected", "cancelled", "extended", "fired"])
def test_a_time_that_fires_after_all_is_a_no_op(clock: Clock, policy: str, meanwhile: str) -> None:
    from toolgen.runtime.sweep import _timed

    async def run() -> None:
        made = runtime(Log(), given_by(policy), store=memory_store(clock))
        pause = await paused(made)
        clock.move(11 * MINUTE)
        if meanwhile == "cancelled":
            await made.cancel(pause.id, actor="bob")
        elif meanwhile == "extended":
            await made.extend(pause.id, clock.now + MINUTE, actor="bob")
        elif meanwhile == "fired":
            await made.sweep()
        else:
            await made.decide(pause.id, Decision(meanwhile), decider=BOB)
        before = made.store.pause(pause.id, "default"), kinds(made)
        clock.move(MINUTE / 2)
        assert await _timed(made, [pause.id], clock.now) == (0, 0), "whoever found it due was too late"
        assert (made.store.pause(pause.id, "default"), kinds(made)) == before

    asyncio.run(run())


def test_what_time_did_is_an_entry_with_whose_call_it_was_and_who_decides_for_nobody(clock: Clock) -> None:
    from toolgen.approvals import audit

    async def run() -> None:
        for policy, kind in (("AUTO_REJECT", "timeout"), ("ABORT", "timeout"), ("AUTO_APPROVE", "decided")):
            made = runtime(Log(), given_by(policy), store=memory_store(clock))
            pause = await paused(made)
            clock.move(11 * MINUTE)
            await made.sweep()
            with made.store.database.read() as connection:
                (entry,) = [one for one in audit.entries(connection) if one.kind == kind]
            told = [entry.details[name] for name in ("actor", "requester", "state", "fingerprint")]
            assert told == ["system:timeout", "ada", BECOMES[policy].value, pause.calls[0].fingerprint]
            assert (entry.pause, entry.call, entry.tenant, entry.at) == (pause.id, "c0", "default", clock.now)

    asyncio.run(run())


@pytest.mark.parametrize("policy", ["AUTO_REJECT", "AUTO_APPROVE"])
def test_of_many_that_sweep_at_once_one_fires(store_url: str, clock: Clock, policy: str) -> None:
    async def run() -> None:
        given = config(**BY_TIME) if policy == "AUTO_APPROVE" else config(**SHORT, timeoutPolicy=policy)
        told: list[Any] = []
        stores = [Store(store_url, clock=clock) for _ in range(4)]
        many = [
            runtime(Log(), given, store=store, on_change=lambda pause, what: told.append((pause.id, what)))
            for store in stores
        ]
        pauses = [await paused(many[0], str(n), thread=str(n), turn="1") for n in range(5)]
        told.clear()
        clock.move(11 * MINUTE)
        await asyncio.gather(*(one.sweep() for one in many))
        assert sorted(told) == sorted((pause.id, "timeout") for pause in pauses)
        kind = "timeout" if policy == "AUTO_REJECT" else "decided"
        assert kinds(many[0]).count(kind) == len(pauses)
        for store in stores:
            store.close()

    asyncio.run(run())


def test_two_that_sweep_at_once_do_not_approve_more_of_a_turn_than_may_be(store_url: str, clock: Clock) -> None:
    async def run() -> None:
        given = config(**BY_TIME, maxAutoApprovalsPerTurn=1)
        stores = [Store(store_url, clock=clock) for _ in range(4)]
        many = [runtime(Log(), given, store=store) for store in stores]
        for n in range(3):
            calls = [ToolCall(f"d{n}", "note", {"text": f"{n}"})]
            assert (await many[0].submit(calls, caller=ADA, thread="t", turn="1")).pause is not None
        clock.move(11 * MINUTE)
        await asyncio.gather(*(one.sweep() for one in many))
        assert many[0].store.turn("default", "t", "1").by_time == 1
        for store in stores:
            store.close()

    asyncio.run(run())


def test_time_approves_for_a_layered_runtime_by_its_own_config_and_for_no_unknown_one(clock: Clock) -> None:
    async def run() -> None:
        log = Log()
        given = config(**BY_TIME)
        one = runtime(log, given, store=memory_store(clock))
        layered = one.layered(config(**BY_TIME))
        theirs = await paused(layered, thread="l")
        stranger = runtime(log, config(**{**BY_TIME, "requireApproval": ["note", "x*"]}), store=one.store)
        unknown = await paused(stranger, thread="s")
        clock.move(11 * MINUTE)
        await one.sweep()
        assert (states(one, theirs), states(one, unknown)) == ([CallState.approved], [CallState.pending])
        assert one.store.pause(unknown.id, "default").due is not None, "left to a process that knows the config"
        clock.move(10 * MINUTE)
        await one.sweep()
        assert one.store.pause(unknown.id, "default").due is None, "then it waits for a person"
        assert states(one, unknown) == [CallState.pending]

    asyncio.run(run())


def test_a_pause_is_extended_and_fires_at_its_new_time(clock: Clock) -> None:
    async def run() -> None:
        made = runtime(Log(), config(**SHORT, timeoutPolicy="AUTO_REJECT"), store=memory_store(clock))
        pause, endless = await paused(made, thread="1"), await paused(made, thread="2")
        await made.extend(pause.id, clock.now + 30 * MINUTE, actor="bob")
        await made.extend(endless.id, None, actor="bob")
        clock.move(11 * MINUTE)
        await made.sweep()
        assert states(made, pause) == [CallState.pending]
        clock.move(20 * MINUTE)
        await made.sweep()
        assert (states(made, pause), states(made, endless)) == ([CallState.expired], [CallState.pending])
        with pytest.raises(PauseConflict):
            await made.extend(pause.id, None, actor="bob")

    asyncio.run(run())


def test_a_pause_is_told_of_again_once_before_it_is_due_whoever_sweeps(store_url: str, clock: Clock) -> None:
    async def run() -> None:
        told: list[str] = []
        given = config(**SHORT, timeoutPolicy="AUTO_REJECT")
        stores = [Store(store_url, clock=clock) for _ in range(3)]
        many = [
            runtime(Log(), given, store=one, remind=2 * MINUTE, on_change=lambda _, what: told.append(what))
            for one in stores
        ]

        async def swept(by: timedelta) -> list[str]:
            told.clear()
            clock.move(by)
            await asyncio.gather(*(one.sweep() for one in many))
            return list(told)

        pause = await paused(many[0])
        assert await swept(7 * MINUTE) == []
        assert await swept(1.5 * MINUTE) == ["remind"]
        assert await swept(MINUTE / 2) == []
        await many[0].extend(pause.id, clock.now + 10 * MINUTE, actor="bob")
        assert await swept(MINUTE) == []
        assert await swept(8 * MINUTE) == ["remind"], "it has another due time"
        assert many[0].store.pause(pause.id, "default").revision == 2, "a reminder changes nothing a decider saw"
        for store in stores:
            store.close()

    asyncio.run(run())


def test_an_approval_that_is_not_used_in_time_expires(clock: Clock) -> None:
    async def run() -> None:
        log = Log()
        made = runtime(log, config(approvalValidity="PT5M"), store=memory_store(clock))
        pause = await paused(made)
        await made.decide(pause.id, YES, decider=BOB)
        clock.move(4 * MINUTE)
        assert await made.sweep() == 0
        clock.move(2 * MINUTE)
        assert await made.sweep() == 1
        (result,) = (await made.resume(pause.id, caller=ADA)).values()
        assert (states(made, pause), result.refused, log) == ([CallState.expired], Refused.expired, [])

    asyncio.run(run())


def test_a_claim_whose_process_is_gone_has_an_unknown_outcome_once_its_lease_is_over(clock: Clock) -> None:
    async def run() -> None:
        log = Log()
        made = runtime(log, store=memory_store(clock))
        pause = await paused(made)
        await made.decide(pause.id, YES, decider=BOB)
        from toolgen.runtime.resume import _claim  # what a process does right before it dies

        (call,) = made.store.pause(pause.id, "default").calls
        made.store.change(pause.id, "default", _claim(made, call, ADA))
        await made.sweep()
        assert states(made, pause) == [CallState.executing]
        clock.move(timedelta(minutes=6))
        assert await made.sweep() == 1
        assert states(made, pause) == [CallState.outcome_unknown]
        (result,) = (await made.resume(pause.id, caller=ADA)).values()
        assert "not known" in result.message
        assert log == []

    asyncio.run(run())


def test_a_worker_runs_what_was_approved_and_only_by_the_config_it_was_approved_by(clock: Clock) -> None:
    async def run() -> None:
        log, store = Log(), memory_store(clock)

        async def callers(subject: str, tenant: str) -> Caller:
            return Caller(subject, tenant=tenant)

        other = runtime(log, config(requireApproval=["n*"]), store=store)
        theirs = await paused(other, "theirs", thread="1")
        worker = runtime(log, store=store, callers=callers)
        layered = worker.layered(config(requireApproval=["note"]))
        own, nested = await paused(worker, "own", thread="2"), await paused(layered, "nested", thread="3")
        for pause in (theirs, own, nested):
            await other.decide(pause.id, YES, decider=BOB)
        await worker.sweep()
        assert sorted(log) == ["nested", "own"]
        assert states(worker, theirs) == [CallState.approved], "its own process may still run it"

    asyncio.run(run())


def test_a_pause_that_cannot_be_read_does_not_stop_the_others(clock: Clock) -> None:
    async def run() -> None:
        from sqlalchemy import update

        from toolgen.approvals.tables import calls

        made = runtime(Log(), config(**SHORT, timeoutPolicy="AUTO_REJECT"), store=memory_store(clock))
        broken, whole = await paused(made, thread="1"), await paused(made, thread="2")
        with made.store.database.change() as connection:
            connection.execute(update(calls).where(calls.c.pause == broken.id).values(arguments=b"no sealed text"))
        clock.move(11 * MINUTE)
        await made.sweep()
        assert states(made, whole) == [CallState.expired]

    asyncio.run(run())


def test_what_ended_long_ago_is_erased_and_what_waits_is_not(clock: Clock) -> None:
    async def run() -> None:
        made = runtime(Log(), store=memory_store(clock), retention=timedelta(days=30))
        old, waits = await paused(made, "old-text", thread="1"), await paused(made, "new-text", thread="2")
        await made.decide(old.id, YES, decider=BOB)
        await made.resume(old.id, caller=ADA)
        clock.move(timedelta(days=29))
        await made.sweep()
        assert made.store.pause(old.id, "default").calls[0].arguments == {"text": "old-text"}
        clock.move(timedelta(days=2))
        await made.sweep()
        assert made.store.pause(old.id, "default").calls[0].arguments == {}
        assert made.store.pause(waits.id, "default").calls[0].arguments == {"text": "new-text"}
        assert made.store.faults() == []

    asyncio.run(run())


def test_a_function_is_not_run_by_time(clock: Clock) -> None:
    async def run() -> None:
        log = Log()
        made = Runtime(functions({"note": log.note}), config(**BY_TIME), store=memory_store(clock))
        await paused(made)
        clock.move(11 * MINUTE)
        await made.sweep()
        await made.sweep()
        assert log == [], "deciding never executes"

    asyncio.run(run())


def test_a_sweep_keeps_the_head_of_what_it_recorded_and_goes_on_where_that_fails(clock: Clock) -> None:
    told: list[Any] = []

    def keep(head: Any) -> None:
        told.append(head)
        raise OSError

    async def run() -> None:
        made = runtime(Log(), config(**SHORT, timeoutPolicy="AUTO_REJECT"), store=memory_store(clock), audit_head=keep)
        pause = await paused(made)
        clock.move(11 * MINUTE)
        assert await made.sweep() == 1
        assert states(made, pause) == [CallState.expired]
        assert [head.seq for head in told] == [made.store.head().seq]

    asyncio.run(run())


def test_many_that_are_due_at_once_are_done_together_and_one_that_cannot_be_read_costs_no_other(clock: Clock) -> None:
    from sqlalchemy import update

    from toolgen.approvals.tables import calls

    async def run() -> None:
        made = runtime(Log(), config(**SHORT, timeoutPolicy="AUTO_REJECT"), store=memory_store(clock))
        pauses = [await paused(made, thread=f"th{number}") for number in range(3)]
        with made.store.database.change() as connection:
            connection.execute(update(calls).where(calls.c.pause == pauses[1].id).values(shown=b"x" * 64))
        before = len(kinds(made))
        clock.move(11 * MINUTE)
        assert await made.sweep() == 2
        assert [states(made, pause) for pause in (pauses[0], pauses[2])] == [[CallState.expired]] * 2
        assert kinds(made)[before:] == ["timeout", "timeout"]
        assert made.store.faults() == []

    asyncio.run(run())
