"""Batches that pause: what runs before, what one turn may do, and what is recognised when it comes again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from small_runtimes import ANN, APPROVED, BOB, World, add, config, edit, listing, paused, remove, runs, state

from toolgen import Caller, Decision, Runtime, ToolCall, Verdict
from toolgen.approvals.binding import arguments_digest
from toolgen.approvals.model import LARGEST_ARGUMENTS, LARGEST_STATE
from toolgen.errors import PauseConflict, StoreError, UsageError
from toolgen.policy.config import TimeoutPolicy
from toolgen.result import Refused, Sent
from toolgen.runtime.core import host_state

WAITS = config(requireApproval=["*"])
TURN: dict[str, Any] = {"caller": ANN, "thread": "t", "turn": "1"}


@runs
async def test_what_needs_nobody_runs_first_and_once_and_only_the_rest_pauses(world: World) -> None:
    given = config(unmatched="allow", requireApproval=["http.post:*"], deny=["http.delete:*"])
    runtime = world.runtime(given)
    calls = [add("c1"), listing("c2"), edit("c3"), remove("c4"), add("c5", "Max"), edit("c6")._replace(arguments={})]
    found = await runtime.submit(calls, **TURN)
    assert found.pause is not None
    assert [call.id for call in found.pause.calls] == ["c1", "c5"]
    assert sorted(found.pause.executed) == ["c2", "c3"]
    assert list(found.results) == ["c2", "c3", "c4", "c6"]
    assert found.results["c4"].refused is Refused.denied
    (denied,) = world.audit("denied")
    assert denied.details["argumentsDigest"] == arguments_digest(world.store.keys, calls[3].arguments)
    assert found.results["c6"].problems
    assert sorted(world.lines) == ["GET /pets", "PUT /pets/1"]
    await runtime.decide(found.pause.id, APPROVED, decider=BOB)
    results = await runtime.resume(found.pause.id, caller=ANN)
    assert list(results) == ["c1", "c5"]
    assert sorted(world.lines) == ["GET /pets", "POST /pets", "POST /pets", "PUT /pets/1"]


@runs
async def test_a_pause_keeps_what_a_person_and_the_host_need_and_no_secret(world: World) -> None:
    given = config(requireApproval=["*"], pauseReason="{toolNames} changes pets", pendingMessage="{toolNames} waits")
    pause = await paused(world.runtime(given), add("c1"), edit("c2"), state=b"mine", thread="t", turn="1")
    kept = world.store.pause(pause.id, "default")
    assert kept == pause
    assert (kept.requester, kept.thread, kept.turn, kept.reason) == ("ann", "t", "1", "add, edit changes pets")
    assert kept.message == "add, edit waits"
    assert host_state(kept) == b"mine"
    assert "token-of-ann" not in f"{kept.to_dict()} {kept!r} {kept.state!r}"
    (entry,) = world.audit("paused")
    digests = [arguments_digest(world.store.keys, call.arguments) for call in kept.calls]
    assert [one["argumentsDigest"] for one in entry.details["calls"]] == digests
    assert len({*digests, None}) == 3
    assert "Rex" not in str([entry.to_dict() for entry in world.audit()])
    with pytest.raises(UsageError):
        await paused(world.runtime(given), state=b"x" * (LARGEST_STATE + 1))


@runs
async def test_the_same_batch_again_is_the_same_pause_and_then_its_results(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow", requireApproval=["http.post:*"]))
    batch = [add("c1"), edit("c2")]
    first = await runtime.submit(batch, **TURN)
    again = await world.runtime(config(unmatched="allow", requireApproval=["http.post:*"])).submit(batch, **TURN)
    assert first.pause is not None
    assert again.pause is not None
    assert again.pause.id == first.pause.id
    assert again.results == first.results, "the write that needed nobody is replayed"
    assert world.lines == ["PUT /pets/1"]
    await runtime.decide(first.pause.id, APPROVED, decider=BOB)
    results = await runtime.resume(first.pause.id, caller=ANN)
    last = await runtime.submit(batch, **TURN)
    assert (last.pause, last.results) == (None, {**first.results, **results})
    assert len(world.sent) == 2
    denying = await world.runtime(config(deny=["*"])).submit([add("c1")], **TURN)
    assert denying.results == results, "what ran, ran: whatever the config says by now"


@pytest.mark.parametrize(
    "other",
    [
        add("c1", "Max"),
        edit("c1"),
        add("c1")._replace(arguments=None),
        add("c1")._replace(arguments={"requestBody": {"name": {1}}}),
    ],
)
@pytest.mark.parametrize("given", [{"requireApproval": ["*"]}, {"unmatched": "allow"}])
@runs
async def test_an_id_of_this_turn_stands_for_no_other_call(world: World, given: Any, other: ToolCall) -> None:
    runtime = world.runtime(config(**given))
    await runtime.submit([add("c1")], **TURN)
    before = len(world.sent)
    found = await runtime.submit([other], **TURN)
    assert found.pause is None
    assert (found.results["c1"].ok, found.results["c1"].sent) == (False, Sent.not_sent)
    assert len(world.sent) == before


@pytest.mark.parametrize("given", [{"requireApproval": ["*"]}, {"unmatched": "allow"}])
@runs
async def test_nobody_is_shown_what_another_requester_s_turn_of_the_same_name_did(world: World, given: Any) -> None:
    runtime = world.runtime(config(**given))
    first = await runtime.submit([add("c1")], **TURN)
    if first.pause is not None:
        await runtime.decide(first.pause.id, APPROVED, decider=BOB)
        await runtime.resume(first.pause.id, caller=ANN)
    found = await runtime.submit([add("c1")], **{**TURN, "caller": replace(ANN, subject="eve")})
    assert (found.pause, found.results["c1"].sent, found.results["c1"].body) == (None, Sent.not_sent, None)
    assert len(world.sent) == 1
    elsewhere = await runtime.submit([add("c1")], **{**TURN, "caller": replace(ANN, tenant="other")})
    assert elsewhere.pause is not None or elsewhere.results["c1"].ok, "another tenant's turn is another turn"


@runs
async def test_after_an_amendment_the_model_s_own_call_is_recognised_and_no_other(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, add("c1"), thread="t", turn="1")
    verdict = Verdict("approved", arguments={"requestBody": {"name": "Max"}})
    await runtime.decide(pause.id, Decision("approved", calls={"c1": verdict}), decider=BOB)
    results = await runtime.resume(pause.id, caller=ANN)
    assert (await runtime.submit([add("c1")], **TURN)).results == results
    other = (await runtime.submit([add("c1", "Eve")], **TURN)).results["c1"]
    assert (other.ok, other.sent) == (False, Sent.not_sent)
    assert len(world.sent) == 1


@pytest.mark.parametrize("left_out", ["thread", "turn"])
@runs
async def test_without_thread_or_turn_nothing_is_recognised_and_both_are_told(world: World, left_out: str) -> None:
    runtime = world.runtime(WAITS)
    named = {key: value for key, value in TURN.items() if key != left_out}
    first, second = [await runtime.submit([add()], **named) for _ in range(2)]
    assert first.pause is not None
    assert second.pause is not None
    assert first.pause.id != second.pause.id
    assert (first.pause.thread, first.pause.turn) == (first.thread, first.turn)
    assert getattr(first, left_out) != getattr(second, left_out)


@runs
async def test_a_write_that_needs_nobody_is_in_the_journal_before_it_is_sent_and_a_read_is_not(world: World) -> None:
    from sqlalchemy import select

    from toolgen.approvals.tables import journal

    seen: list[Any] = []
    answers = world.answers

    def looking(request: Any) -> Any:
        with world.store.database.read() as connection:
            seen.append(connection.execute(select(journal.c.call, journal.c.state)).all())
        return answers(request)

    world.answers = looking  # type: ignore[method-assign]
    runtime = world.runtime(config(unmatched="allow"))
    await runtime.submit([listing("r1")], **TURN)
    await runtime.submit([edit("c1")], **TURN)
    assert seen == [[], [("c1", "executing")]]
    assert [one.details["state"] for one in world.audit("ran")] == ["executed"]
    (claimed,), (ran,) = world.audit("claimed"), world.audit("ran")
    assert (claimed.call, claimed.details["fingerprint"]) == ("c1", ran.details["fingerprint"])


@runs
async def test_a_write_whose_journal_cannot_be_written_is_not_sent_and_costs_no_other(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    in_store = runtime.in_store

    async def broken(do: Any, *arguments: Any, **named: Any) -> Any:
        if do in (runtime.store.claim, runtime.store.finish):
            raise StoreError("the store cannot be written")
        return await in_store(do, *arguments, **named)

    runtime.in_store = broken  # type: ignore[method-assign]
    found = await runtime.submit([edit("c1"), listing("c2")], **TURN)
    assert (found.results["c1"].sent, found.results["c2"].ok) == (Sent.not_sent, True)
    assert world.lines == ["GET /pets"]


@runs
async def test_a_write_whose_result_cannot_be_kept_has_its_result_and_is_not_sent_again(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    in_store = runtime.in_store

    async def broken(do: Any, *arguments: Any, **named: Any) -> Any:
        if do == runtime.store.finish:
            raise StoreError("the store cannot be written")
        return await in_store(do, *arguments, **named)

    runtime.in_store = broken  # type: ignore[method-assign]
    assert (await runtime.submit([edit("c1")], **TURN)).results["c1"].ok
    again = (await runtime.submit([edit("c1")], **TURN)).results["c1"]
    assert again.sent is Sent.unknown
    assert len(world.sent) == 1


@runs
async def test_a_turn_pauses_so_often_and_then_its_gated_calls_are_refused_and_the_others_run(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow", requireApproval=["http.post:*"], maxPausesPerTurn=2))
    for number in range(2):
        pause = await paused(runtime, add(f"c{number}"), thread="t", turn="1")
        await runtime.decide(pause.id, APPROVED, decider=BOB)
    found = await runtime.submit([add("c7"), edit("c8")], **TURN)
    assert found.pause is None
    assert found.results["c7"].refused is Refused.denied
    assert "do not call it again in this turn" in found.results["c7"].message
    assert found.results["c8"].ok
    assert [one.details["actor"] for one in world.audit("guard")] == ["system:pause-cap"]
    assert (await runtime.submit([add("c7")], **{**TURN, "turn": "2"})).pause is not None


async def by_time(world: World, runtime: Runtime, number: int, name: str = "Rex") -> Any:
    """A pause of the same call that time decides."""
    found = await runtime.submit([add(f"c{number}", name)], **TURN)
    if found.pause is not None:
        world.clock.passes(minutes=6)
        await runtime.sweep()
    return found


@pytest.mark.parametrize("policy", ["AUTO_REJECT", "ABORT", "AUTO_APPROVE"])
@pytest.mark.parametrize(
    ("action", "refusal"),
    [("WAIT_FOR_HUMAN", None), ("AUTO_REJECT", Refused.rejected), ("ABORT", Refused.cancelled)],
)
@runs
async def test_the_same_batch_that_only_time_decides_is_stopped_at_the_third(
    world: World, policy: str, action: str, refusal: Refused | None
) -> None:
    rule = {"match": "*", "timeoutPolicy": policy, "approvalTimeout": "PT5M"}
    given = config(requireApproval=["*"], rules=[rule], onNoProgress=action, maxPausesPerTurn=10)
    runtime = world.runtime(given)
    for number in range(2):
        assert (await by_time(world, runtime, number)).pause.due is not None
    third = await by_time(world, runtime, 2)
    assert world.audit("guard")[-1].details["actor"] == "system:no-progress"
    if refusal is None:
        assert (third.pause.due, third.pause.timeout_policy) == (None, TimeoutPolicy.WAIT_INDEFINITELY)
        assert await state(runtime, third.pause) == {"c2": "pending"}
    else:
        assert third.pause is None
        assert third.results["c2"].refused is refusal
        assert "something else" in third.results["c2"].message


@pytest.mark.parametrize("by", ["a person", "another batch"])
@runs
async def test_a_person_s_decision_or_another_batch_is_progress(world: World, by: str) -> None:
    rule = {"match": "*", "timeoutPolicy": "AUTO_REJECT", "approvalTimeout": "PT5M"}
    runtime = world.runtime(config(requireApproval=["*"], rules=[rule], maxPausesPerTurn=10))
    for number in range(2):
        await by_time(world, runtime, number)
    if by == "a person":
        runtime_pause = await paused(runtime, add("p1"), thread="t", turn="1")
        await runtime.decide(runtime_pause.id, Decision("rejected"), decider=BOB)
    else:
        await by_time(world, runtime, 5, "Max")
    assert (await by_time(world, runtime, 6)).pause.due is not None


@pytest.mark.parametrize("action", ["WAIT_FOR_HUMAN", "AUTO_REJECT", "ABORT"])
@runs
async def test_where_time_may_approve_one_call_the_second_of_the_same_is_no_progress(world: World, action: str) -> None:
    rule = {"match": "*", "timeoutPolicy": "AUTO_REJECT", "approvalTimeout": "PT5M"}
    given = config(requireApproval=["*"], rules=[rule], onNoProgress=action, maxAutoApprovalsPerTurn=1)
    first, second = [await by_time(world, world.runtime(given), number) for number in range(2)]
    assert first.pause.due is not None
    assert (second.pause is None) == (action != "WAIT_FOR_HUMAN"), "counted from process to process"
    assert [one.details["action"] for one in world.audit("guard")] == [action]
    other = await by_time(world, world.runtime(given), 3, "Max")
    assert other.pause is not None, "another batch is progress, also after that"


@runs
async def test_one_verdict_of_a_person_in_a_batch_is_progress_and_so_is_their_answer_to_one_that_was_stopped(
    world: World,
) -> None:
    rule = {"match": "*", "timeoutPolicy": "AUTO_REJECT", "approvalTimeout": "PT5M"}
    runtime = world.runtime(config(requireApproval=["*"], rules=[rule], maxPausesPerTurn=10))

    async def asked(number: int, verdict: str | None) -> Any:
        ids = [f"a{number}", f"b{number}"]
        pause = await paused(runtime, add(ids[0]), edit(ids[1]), thread="t", turn="1")
        if verdict is not None:
            one = Decision("rejected", calls={ids[0]: Verdict(verdict)}, others_wait=True)
            await runtime.decide(pause.id, one, decider=BOB)
        world.clock.passes(minutes=6)
        await runtime.sweep()
        return pause

    counted = [(await asked(n, verdict)).unattended for n, verdict in enumerate([None, None, None])]
    assert counted == [0, 1, 2]
    last = world.store.turn("default", "t", "1").last
    assert last is not None
    assert last.due is None, "it waits for a person"
    await runtime.decide(last.id, Decision("rejected"), decider=BOB)
    counted = [(await asked(n, verdict)).unattended for n, verdict in enumerate(["rejected", None, None], 5)]
    assert counted == [0, 0, 1]


@runs
async def test_time_approves_so_many_calls_of_a_turn_and_then_a_person_is_waited_for(world: World) -> None:
    rule = {"match": "*", "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}
    given = config(requireApproval=["*"], rules=[rule], maxAutoApprovalsPerTurn=2, maxPausesPerTurn=10)
    runtime = world.runtime(given)
    found = [await by_time(world, runtime, number, f"n{number}") for number in range(3)]
    states = [list((await state(runtime, one.pause)).values()) for one in found]
    assert states == [["approved"], ["approved"], ["pending"]]
    assert world.store.pause(found[2].pause.id, "default").due is None


@runs
async def test_arguments_that_are_too_large_to_keep_are_refused_and_never_cut(world: World) -> None:
    runtime = world.runtime(WAITS)
    found = await runtime.submit([add("c1", "x" * LARGEST_ARGUMENTS), add("c2")], **TURN)
    assert found.results["c1"].refused is Refused.denied
    assert f"{LARGEST_ARGUMENTS:,}" in found.results["c1"].message
    assert found.pause is not None
    assert [call.id for call in found.pause.calls] == ["c2"]
    assert [one.details["actor"] for one in world.audit("guard")] == ["system:size-cap"]


@runs
async def test_nobody_is_asked_about_a_call_whose_credential_is_not_bound_and_the_others_wait(world: World) -> None:
    runtime = world.runtime(WAITS, sources=[world.dispatcher(credentials={})])
    found = await runtime.submit([add("c1"), edit("c2")], **TURN)
    assert found.results["c1"].refused is Refused.error
    assert found.pause is not None
    assert [call.id for call in found.pause.calls] == ["c2"]


@pytest.mark.parametrize("id", ["x" * 257, "a\0b", "a\nb", "\ud800"])
@runs
async def test_an_id_that_cannot_be_kept_is_refused_and_so_is_such_a_thread(world: World, id: str) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    found = await runtime.submit([edit(id), edit("c2")], **TURN)
    assert (found.results[id].sent, found.results["c2"].ok) == (Sent.not_sent, True)
    for key in ("thread", "turn"):
        with pytest.raises(UsageError):
            await runtime.submit([edit("c3")], **{**TURN, key: id})
    assert len(world.sent) == 1


@runs
async def test_calls_that_share_an_id_run_neither_and_calls_without_one_get_their_own(world: World) -> None:
    runtime = world.runtime(config(unmatched="allow"))
    found = await runtime.submit([edit("c1"), add("c1"), edit("")._replace(id=None), edit("")], **TURN)
    assert found.results["c1"].sent is Sent.not_sent
    assert len(found.results) == 3
    assert len(world.sent) == 2


@runs
async def test_a_call_that_waits_in_another_pause_of_the_turn_says_so(world: World) -> None:
    runtime = world.runtime(WAITS)
    await runtime.submit([add("c1")], **TURN)
    found = await runtime.submit([add("c1"), edit("c2")], **TURN)
    assert found.pause is not None
    assert [call.id for call in found.pause.calls] == ["c2"]
    assert found.results["c1"].refused is Refused.gated
    assert len(world.store.pauses()) == 2


@runs
async def test_a_journaled_call_that_would_wait_by_now_is_replayed(world: World) -> None:
    first = (await world.runtime(config(unmatched="allow")).submit([edit()], **TURN)).results
    again = await world.runtime(WAITS).submit([edit()], **TURN)
    assert (again.pause, again.results) == (None, first)
    assert len(world.sent) == 1


@runs
async def test_deciders_of_another_tenant_never_see_it(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, caller=Caller("ann", tenant="one"))
    assert world.store.pauses("two") == []
    assert [one.id for one in world.store.pauses("one")] == [pause.id]
    with pytest.raises(PauseConflict):
        await runtime.resume(pause.id, caller=Caller("ann", tenant="one"))
