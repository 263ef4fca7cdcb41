"""Decisions: every check before any change, each call by its own rule, and nothing but an explicit approval runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from small_runtimes import (
    ANN,
    APPROVED,
    BOB,
    EVE,
    REJECTED,
    World,
    add,
    config,
    edit,
    listing,
    paused,
    remove,
    runs,
    state,
)

from toolgen import Decider, Decision, Remember, Runtime, Verdict
from toolgen.approvals.binding import arguments_digest
from toolgen.approvals.model import LARGEST_AMENDMENT, LONGEST_NOTE, Scope
from toolgen.errors import ApprovalError, DecisionForbidden, DecisionInvalid, NameInvalid, PauseConflict, PauseUnknown
from toolgen.result import Refused

WAITS = config(requireApproval=["*"])
GOOD = {"requestBody": {"name": "Max"}}


def on(call: str = "c1", **verdict: Any) -> Decision:
    """A decision that approves, with something else for one call."""
    return Decision("approved", calls={call: Verdict(**{"verdict": "approved", **verdict})})


NOT_VALID: dict[str, tuple[Any, str]] = {
    "no verdict": (Decision(None), "verdict"),
    "another word": (Decision("yes"), "verdict"),
    "no text": (Decision(True), "verdict"),  # type: ignore[arg-type]
    "note too long": (Decision("approved", note="x" * (LONGEST_NOTE + 1)), "note"),
    "note that cannot be sent": (Decision("approved", note="half \ud83d"), "note"),
    "note no text": (Decision("approved", note=5), "note"),  # type: ignore[arg-type]
    "unknown call": (on("nope"), "calls.nope"),
    "no verdict on a call": (on(verdict=None), "calls.c1.verdict"),
    "another word on a call": (on(verdict="ok"), "calls.c1.verdict"),
    "note of a call": (on(note="x" * (LONGEST_NOTE + 1)), "calls.c1.note"),
    "approved in a rejected batch": (Decision("rejected", calls={"c1": Verdict("approved")}), "calls.c1"),
    "amended and rejected": (on(verdict="rejected", arguments=GOOD), "calls.c1.arguments"),
    "amended with no object": (on(arguments=[1]), "calls.c1.arguments"),
    "amended with what is no JSON": (on(arguments={"requestBody": {"name": {1}}}), "calls.c1.arguments"),
    "amended too large": (on(arguments={"requestBody": {"name": "x" * LARGEST_AMENDMENT}}), "calls.c1.arguments"),
    "amended against the schema": (on(arguments={"requestBody": {"name": 5}}), "calls.c1.arguments"),
    "amended without what it needs": (on(arguments={}), "calls.c1.arguments"),
    "retry of an approval": (Decision("approved", retry=True), "retry"),
    "retry of an approved call": (on(retry=True), "calls.c1.retry"),
    "remembered rejection": (on(verdict="rejected", remember=Remember()), "calls.c1.remember"),
    "remembered fields without fields": (on(remember=Remember(Scope.fields)), "calls.c1.remember.scope"),
    "remembered fields for another scope": (on(remember=Remember(Scope.exact, ("a",))), "calls.c1.remember.scope"),
    "remembered for no use": (on(remember=Remember(uses=0)), "calls.c1.remember.uses"),
    "destructive and remembered": (on("d1", remember=Remember()), "calls.d1.remember"),
    "remembered until no time": (on(remember=Remember(until=datetime(2027, 1, 1))), "calls.c1.remember.until"),
    "nothing listed and the others wait": (Decision("approved", others_wait=True), "calls"),
    "amended with an argument there is not": (on(arguments={**GOOD, "more": 1}), "calls.c1.arguments"),
    "one amended well and one not": (
        Decision(
            "approved",
            calls={"c1": Verdict("approved", arguments=GOOD), "d1": Verdict("approved", arguments={"id": ""})},
        ),
        "calls.d1.arguments",
    ),
}


@pytest.mark.parametrize("what", NOT_VALID)
@runs
async def test_a_decision_that_is_not_valid_changes_nothing(world: World, what: str) -> None:
    decision, where = NOT_VALID[what]
    timed = config(requireApproval=["*"], approvalTimeout="PT1H", timeoutPolicy="AUTO_REJECT")
    told: list[str] = []
    runtime = world.runtime(timed, on_change=lambda pause, what: told.append(what))
    pause = await paused(runtime, add(), remove())
    entries = world.audit()
    with pytest.raises(DecisionInvalid) as caught:
        await runtime.decide(pause.id, decision, decider=BOB)
    assert caught.value.status == 400
    assert any(problem.where.startswith(where) for problem in caught.value.problems), caught.value.problems
    assert world.store.pause(pause.id, "default") == pause, "state, votes, revision and due time"
    assert (world.audit(), told) == (entries, ["paused"])
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    assert await state(runtime, pause) == {"c1": "approved", "d1": "approved"}


@runs
async def test_a_decision_that_is_refused_for_another_reason_changes_nothing_either(world: World) -> None:
    runtime = world.runtime(RULES)
    over, pause = await paused(runtime), await paused(runtime, add(), remove())
    await runtime.decide(over.id, REJECTED, decider=BOB)
    before = world.store.pause(over.id, "default"), pause
    entries = world.audit()
    refusals: list[tuple[str, Decision, Decider, type[ApprovalError]]] = [
        ("nope", APPROVED, BOB, PauseUnknown),
        (pause.id, APPROVED, replace(BOB, tenant="other"), PauseUnknown),
        (over.id, APPROVED, BOB, PauseConflict),
        (pause.id, replace(APPROVED, revision=7), BOB, PauseConflict),
        (pause.id, APPROVED, Decider("b\nob"), NameInvalid),
        (pause.id, on("d1"), EVE, DecisionForbidden),
    ]
    for pause_id, decision, decider, kind in refusals:
        with pytest.raises(kind):
            await runtime.decide(pause_id, decision, decider=decider)
    assert (world.store.pause(over.id, "default"), world.store.pause(pause.id, "default")) == before
    (refused,) = world.audit()[len(entries) :]
    assert (world.audit()[:-1], refused.kind, refused.pause) == (entries, "refused", pause.id)


@runs
async def test_every_problem_is_told_and_which_calls_wait(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, add("c1"), add("c2"))
    with pytest.raises(DecisionInvalid) as caught:
        await runtime.decide(pause.id, Decision("yes", note=5, calls={"x": Verdict("approved")}), decider=BOB)  # type: ignore[arg-type]
    assert [problem.where for problem in caught.value.problems] == ["verdict", "note", "calls.x"]
    assert "c1, c2" in str(caught.value)


@pytest.mark.parametrize("word", ["approved", " Approved ", "APPROVED\n"])
@runs
async def test_case_and_white_space_of_a_verdict_do_not_matter(world: World, word: str) -> None:
    runtime = world.runtime(WAITS)
    pause = await runtime.decide((await paused(runtime)).id, Decision(word), decider=BOB)
    assert [call.state.value for call in pause.calls] == ["approved"]
    assert world.sent == [], "deciding runs nothing"


@runs
async def test_a_pause_that_is_not_there_or_another_tenant_s_is_unknown(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, caller=replace(ANN, tenant="one"))
    for pause_id, decider in (("nope", BOB), (pause.id, BOB), (pause.id, replace(BOB, tenant="two"))):
        with pytest.raises(PauseUnknown) as caught:
            await runtime.decide(pause_id, APPROVED, decider=decider)
        assert caught.value.status == 404
    await runtime.decide(pause.id, APPROVED, decider=replace(BOB, tenant="one"))


@runs
async def test_what_is_decided_is_decided_and_the_error_says_how_it_stands(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime)
    await runtime.decide(pause.id, REJECTED, decider=BOB)
    for decision in (APPROVED, on()):
        with pytest.raises(PauseConflict, match="rejected") as caught:
            await runtime.decide(pause.id, decision, decider=EVE)
        assert caught.value.status == 409
    assert await state(runtime, pause) == {"c1": "rejected"}


@runs
async def test_a_decision_on_an_older_revision_is_refused(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime)
    await runtime.extend(pause.id, None, actor="bob")
    with pytest.raises(PauseConflict, match="revision 2, not 1"):
        await runtime.decide(pause.id, replace(APPROVED, revision=1), decider=BOB)
    await runtime.decide(pause.id, replace(APPROVED, revision=2), decider=BOB)


@runs
async def test_calls_that_are_not_listed_have_the_top_verdict_and_only_approved_ones_run(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, add("c1", "one"), edit("c2"), remove("c3"))
    decision = Decision("approved", note="fine", calls={"c2": Verdict("rejected", "not this one")})
    await runtime.decide(pause.id, decision, decider=BOB)
    assert await state(runtime, pause) == {"c1": "approved", "c2": "rejected", "c3": "approved"}
    results = await runtime.resume(pause.id, caller=ANN)
    assert world.lines == ["POST /pets", "DELETE /pets/1"]
    assert list(results) == ["c1", "c2", "c3"]
    assert results["c2"].refused is Refused.rejected
    assert "not this one" in results["c2"].message
    assert "fine" in results["c1"].message


@runs
async def test_a_pause_with_a_call_that_still_waits_is_not_resumed(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, add("c1"), edit("c2"))
    await runtime.decide(pause.id, replace(on("c1"), others_wait=True), decider=BOB)
    with pytest.raises(PauseConflict, match="c2 wait"):
        await runtime.resume(pause.id, caller=ANN)
    assert world.sent == []


RULES = config(
    requireApproval=["*"],
    rules=[
        {"match": "http.delete:*", "approvers": ["role:lead", "zoe"]},
        {"match": "edit", "allowSelfApproval": False},
    ],
)
SELF = Decider("ann")


@pytest.mark.parametrize(
    ("decider", "counts"),
    [
        (BOB, {"c1", "c2", "d1"}),
        (EVE, {"c1", "c2"}),
        (SELF, {"c1"}),
        (Decider("ann", frozenset({"lead"})), {"c1"}),  # approvers named: self-approval is off
        (Decider("zoe"), {"c1", "c2", "d1"}),
        (Decider("role:lead"), {"c1", "c2"}),  # a name like a role is no role
        (Decider("x", frozenset({"Lead"})), {"c1", "c2"}),
    ],
)
@runs
async def test_a_verdict_counts_for_the_calls_its_decider_may_decide_and_the_others_stay_pending(
    world: World, decider: Decider, counts: set[str]
) -> None:
    runtime = world.runtime(RULES)
    pause = await paused(runtime, add("c1"), edit("c2"), remove("d1"))
    await runtime.decide(pause.id, APPROVED, decider=decider)
    found = await state(runtime, pause)
    assert {name for name, one in found.items() if one == "approved"} == counts
    assert {name for name, one in found.items() if one == "pending"} == {"c1", "c2", "d1"} - counts


@pytest.mark.parametrize("decider", [EVE, SELF, Decider(""), Decider("system:timeout"), Decider("role:lead")])
@runs
async def test_who_may_not_decide_is_refused_and_in_the_audit_log(world: World, decider: Decider) -> None:
    runtime = world.runtime(RULES)
    pause = await paused(runtime, remove("d1"), add("c1"))
    with pytest.raises(DecisionForbidden) as caught:
        await runtime.decide(pause.id, on("d1"), decider=decider)
    assert caught.value.status == 403
    assert world.store.pause(pause.id, "default") == pause
    assert [one.details["actor"] for one in world.audit("refused")] == [decider.subject]


@runs
async def test_nobody_decides_in_the_name_of_the_system_where_anybody_may_decide(world: World) -> None:
    runtime = world.runtime()
    pause = await paused(runtime, add("c1"))
    with pytest.raises(DecisionForbidden):
        await runtime.decide(pause.id, APPROVED, decider=Decider("system:timeout"))
    assert world.store.pause(pause.id, "default") == pause


@runs
async def test_who_asked_must_be_known_where_they_may_not_approve(world: World) -> None:
    runtime = world.runtime(RULES)
    pause = await paused(runtime, remove("d1"), caller=None)
    with pytest.raises(DecisionForbidden):
        await runtime.decide(pause.id, APPROVED, decider=BOB)


@runs
async def test_self_approval_is_told_in_the_audit_log(world: World) -> None:
    runtime = world.runtime(WAITS)
    for decider in (SELF, EVE):
        await runtime.decide((await paused(runtime)).id, APPROVED, decider=decider)
    assert [one.details["selfApproval"] for one in world.audit("decided")] == [True, False]


async def two_groups(world: World) -> tuple[Runtime, Any]:
    """A pause that somebody of each of two layers has to approve."""
    layers = [config(requireApproval=["*"], approvers=[name]) for name in ("bob", "eve")]
    runtime = world.runtime(layers)
    return runtime, await paused(runtime)


@runs
async def test_somebody_of_every_group_has_to_approve_and_one_rejection_is_enough(world: World) -> None:
    runtime, pause = await two_groups(world)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    assert await state(runtime, pause) == {"c1": "pending"}
    with pytest.raises(PauseConflict):
        await runtime.resume(pause.id, caller=ANN)
    await runtime.decide(pause.id, APPROVED, decider=EVE)
    assert (await runtime.resume(pause.id, caller=ANN))["c1"].ok
    runtime, other = await two_groups(world)
    await runtime.decide(other.id, APPROVED, decider=BOB)
    await runtime.decide(other.id, REJECTED, decider=EVE)
    assert await state(runtime, other) == {"c1": "rejected"}


@runs
async def test_an_amendment_by_one_group_has_to_be_approved_by_the_other_again(world: World) -> None:
    runtime, pause = await two_groups(world)
    await runtime.decide(pause.id, APPROVED, decider=BOB)
    await runtime.decide(pause.id, on(arguments=GOOD), decider=EVE)
    assert await state(runtime, pause) == {"c1": "pending"}, "bob approved another request"
    with pytest.raises(PauseConflict, match="revision"):
        await runtime.decide(pause.id, APPROVED, decider=BOB)
    await runtime.decide(pause.id, replace(APPROVED, revision=3), decider=BOB)
    assert await state(runtime, pause) == {"c1": "approved"}
    await runtime.resume(pause.id, caller=ANN)
    assert world.sent[0].content == b'{"name":"Max"}'


@runs
async def test_an_amended_call_is_the_one_that_runs_and_the_model_is_told(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime)
    seen = await runtime.amended(pause.id, "c1", GOOD)
    assert "Max" in str(seen)
    assert world.store.pause(pause.id, "default") == pause, "a look changes nothing"
    after = await runtime.decide(pause.id, on(arguments=GOOD, note="his name"), decider=BOB)
    (call,) = after.calls
    assert (call.arguments, call.proposed) == (GOOD, add().arguments)
    assert call.preview == seen
    assert call.fingerprint != pause.calls[0].fingerprint
    assert call.binding != pause.calls[0].binding
    assert world.store.pause(pause.id, "default").calls[0].proposed == add().arguments
    result = (await runtime.resume(pause.id, caller=ANN))["c1"]
    assert [request.content for request in world.sent] == [b'{"name":"Max"}']
    told = str(result)
    assert "changed the arguments" in told
    assert "do not repeat yours" in told
    assert "his name" in told
    assert result.ok
    (entry,) = world.audit("decided")
    assert entry.details["amends"] == pause.calls[0].fingerprint
    assert entry.details["argumentsDigest"] == arguments_digest(world.store.keys, GOOD)
    assert "Max" not in str([one.to_dict() for one in world.audit()])


@runs
async def test_a_call_keeps_its_endpoint_whatever_it_is_amended_to(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, edit())
    for id in ("../../other", "", "1/../2"):
        with pytest.raises(DecisionInvalid):
            await runtime.decide(pause.id, on(arguments={"id": id, "requestBody": {"name": "a"}}), decider=BOB)
    assert await state(runtime, pause) == {"c1": "pending"}


@runs
async def test_an_amended_call_is_classified_again_and_the_stricter_rule_holds(world: World) -> None:
    pause = await paused(world.runtime(WAITS))
    with pytest.raises(DecisionInvalid, match="denied"):
        await world.runtime(config(deny=["add"])).decide(pause.id, on(arguments=GOOD), decider=BOB)
    stricter = world.runtime(config(requireApproval=["*"], rules=[{"match": "add", "approvers": ["zoe"]}]))
    with pytest.raises(DecisionForbidden):
        await stricter.decide(pause.id, on(arguments=GOOD), decider=BOB)
    assert world.store.pause(pause.id, "default") == pause


@runs
async def test_the_decision_hook_is_asked_about_the_amended_call(world: World) -> None:
    async def hook(call: Any, caller: Any) -> Any:
        return "denied" if "Max" in str(call.preview) else "allowed"

    runtime = world.runtime(WAITS, decision_hook=hook)
    pause = await paused(runtime)
    with pytest.raises(DecisionInvalid, match="denied"):
        await runtime.decide(pause.id, on(arguments=GOOD), decider=BOB)
    await runtime.decide(pause.id, APPROVED, decider=BOB)


@runs
async def test_notes_of_four_thousand_characters_reach_the_model(world: World) -> None:
    note = "n" * LONGEST_NOTE
    runtime = world.runtime(WAITS)
    for decision in (Decision("approved", note=note), Decision("rejected", note=note)):
        pause = await paused(runtime)
        await runtime.decide(pause.id, decision, decider=BOB)
        assert note in str((await runtime.resume(pause.id, caller=ANN))["c1"])


@runs
async def test_a_rejection_asks_for_a_new_proposal_three_times_at_most(world: World) -> None:
    runtime = world.runtime(config(requireApproval=["*"], maxPausesPerTurn=10))
    again = Decision("rejected", note="cheaper", retry=True)
    for number in range(3):
        pause = await paused(runtime, add(f"c{number}", f"n{number}"), thread="t", turn="1")
        await runtime.decide(pause.id, again, decider=BOB)
        result = (await runtime.resume(pause.id, caller=ANN))[f"c{number}"]
        assert "Propose something else" in result.message
        assert "cheaper" in result.message
    last = await paused(runtime, add("c9"), thread="t", turn="1")
    with pytest.raises(DecisionInvalid, match="3 times"):
        await runtime.decide(last.id, again, decider=BOB)
    await runtime.decide(last.id, REJECTED, decider=BOB)
    result = (await runtime.resume(last.id, caller=ANN))["c9"]
    assert "Do not call it again with these arguments" in result.message


@runs
async def test_another_requester_s_or_thread_s_decision_touches_nothing_else(world: World) -> None:
    runtime = world.runtime(WAITS)
    one, two = await paused(runtime, thread="a", turn="1"), await paused(runtime, thread="b", turn="1")
    await runtime.decide(one.id, APPROVED, decider=BOB)
    assert await state(runtime, two) == {"c1": "pending"}


@runs
async def test_a_pause_is_decided_at_any_time_and_call_by_call_id(world: World) -> None:
    runtime = world.runtime(WAITS)
    old = await paused(runtime, add("c1"), edit("c2"), thread="a", turn="1")
    await runtime.submit([listing()], caller=ANN, thread="a", turn="2")
    world.clock.passes(days=90)
    decision = Decision("approved", calls={"c2": Verdict("rejected")})
    await world.runtime(WAITS).decide(old.id, decision, decider=BOB)
    assert await state(runtime, old) == {"c1": "approved", "c2": "rejected"}


def test_the_status_of_each_error_is_that_of_http() -> None:
    assert {kind.__name__: kind.status for kind in ApprovalError.__subclasses__()} == {
        "DecisionInvalid": 400,
        "NameInvalid": 400,
        "DecisionForbidden": 403,
        "CallerMismatch": 403,
        "ApprovalPending": 202,
        "CallRefused": 403,
        "PauseUnknown": 404,
        "PauseConflict": 409,
    }


@runs
async def test_each_verdict_is_one_entry_with_who_whom_what_and_when_and_never_what_was_said(world: World) -> None:
    runtime = world.runtime(WAITS)
    pause = await paused(runtime, add("c1"), edit("c2"), caller=replace(ANN, tenant="one"))
    world.clock.passes(minutes=3)
    decision = Decision("approved", calls={"c2": Verdict("rejected", "kept-note-7361")})
    bob = replace(BOB, tenant="one")
    await runtime.decide(pause.id, decision, decider=bob)
    with pytest.raises(PauseConflict):
        await runtime.decide(pause.id, decision, decider=bob)
    found = world.audit("decided")
    assert [(one.pause, one.call, one.tenant, one.at) for one in found] == [
        (pause.id, name, "one", world.clock.now) for name in ("c1", "c2")
    ]
    said = [[one.details[key] for key in ("actor", "requester", "tool", "verdict", "note")] for one in found]
    assert said == [["bob", "ann", "add", "approved", False], ["bob", "ann", "edit", "rejected", True]]
    for entry, call in zip(found, pause.calls, strict=True):
        assert entry.details["fingerprint"] == call.fingerprint
        assert entry.details["argumentsDigest"] == arguments_digest(world.store.keys, call.arguments)
    assert "kept-note-7361" not in str([one.to_dict() for one in world.audit()])
