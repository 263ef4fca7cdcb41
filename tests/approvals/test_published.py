"""The published schemas of pauses and decisions, held against what is written and what is read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runtimes import BOB, World, add, config, paused, remove, runs

from toolgen import Decision, Remember, Verdict, approvals
from toolgen.approvals.model import Scope
from toolgen.approvals.published import decision_schema, pause_schema, published_text
from toolgen.approvals.reading import DECISION, REMEMBER, VERDICT
from toolgen.errors import DecisionInvalid

PAUSE = jsonschema_rs.Draft202012Validator(pause_schema(), offline=True, validate_formats=True)
DECISION_SCHEMA = jsonschema_rs.Draft202012Validator(decision_schema(), offline=True, validate_formats=True)


@pytest.mark.parametrize(("name", "schema"), [("pause", pause_schema()), ("decision", decision_schema())])
def test_the_published_file_is_what_the_code_says(name: str, schema: dict[str, Any]) -> None:
    committed = Path(approvals.__file__).with_name(f"{name}.schema.json").read_text(encoding="utf-8")
    assert committed == published_text(schema), f"python -m toolgen.approvals.published {name}"
    jsonschema_rs.meta.validate(schema)
    for found in (schema, *schema["$defs"].values()):
        assert found["additionalProperties"] is False
        assert found["description"]
        assert all(member.get("description") or "$ref" in member for member in found["properties"].values())


@runs
async def test_every_pause_is_what_its_schema_says() -> None:
    world = World()
    rule = {"match": "add", "approvers": ["bob"], "timeoutPolicy": "ABORT", "approvalTimeout": "PT5M"}
    runtime = world.runtime(config(requireApproval=["*"], rules=[rule], pendingMessage="wait"))
    pause = await paused(runtime, add("c1"), remove("c2"))
    PAUSE.validate(pause.to_dict())
    decision = Decision("approved", "fine", {"c1": Verdict("approved", arguments={"requestBody": {"name": "Max"}})})
    pause = await runtime.decide(pause.id, decision, decider=BOB)
    PAUSE.validate(pause.to_dict())
    assert not PAUSE.is_valid({**pause.to_dict(), "arguments": {}})
    assert set(pause.to_dict()) == set(pause_schema()["required"])
    world.store.close()


def test_the_schema_has_every_key_that_is_read() -> None:
    schema = decision_schema()
    assert set(schema["properties"]) == set(DECISION)
    assert set(schema["$defs"]["verdict"]["properties"]) == set(VERDICT)
    assert set(schema["$defs"]["remember"]["properties"]) == set(REMEMBER)
    for example in schema["examples"]:
        DECISION_SCHEMA.validate(example)
        Decision.from_dict(example)


def test_everything_a_decision_says_is_read() -> None:
    wish = {"scope": "fields", "fields": ["id"], "uses": 3, "until": "2026-05-01T12:00:00Z"}
    call = {"verdict": "approved", "note": "a", "arguments": {"id": 1}, "retry": False, "remember": wish}
    data = {"verdict": "approved", "note": "b", "calls": {"c1": call}, "retry": True, "revision": 2, "othersWait": True}
    until = datetime(2026, 5, 1, 12, tzinfo=UTC)
    remembered = Remember(Scope.fields, ("id",), 3, until)
    expected = {"c1": Verdict("approved", "a", {"id": 1}, False, remembered)}
    assert Decision.from_dict(data) == Decision("approved", "b", expected, True, 2, True)


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ([], ""),
        ("approved", ""),
        ({"verdict": "approved", "decider": "bob"}, "decider"),
        ({"verdict": True}, "verdict"),
        ({"verdict": "approved", "retry": "no"}, "retry"),
        ({"verdict": "approved", "retry": None}, "retry"),
        ({"verdict": "approved", "revision": True}, "revision"),
        ({"verdict": "approved", "calls": []}, "calls"),
        ({"verdict": "approved", "calls": {"c1": "approved"}}, "calls.c1"),
        ({"verdict": "approved", "calls": {"c1": {"verdict": "approved", "args": {}}}}, "calls.c1.args"),
        ({"verdict": "approved", "calls": {"c1": {"verdict": "approved", "arguments": "{}"}}}, "calls.c1.arguments"),
        ({"verdict": "approved", "calls": {"c1": {"remember": {"scope": "all"}}}}, "calls.c1.remember.scope"),
        ({"verdict": "approved", "calls": {"c1": {"remember": {"until": "2026-05-01T12:00"}}}}, "calls.c1.remember.until"),
    ],
)  # fmt: skip
def test_what_is_no_decision_is_refused_with_its_place(data: Any, where: str) -> None:
    with pytest.raises(DecisionInvalid) as caught:
        Decision.from_dict(data)
    assert caught.value.status == 400
    assert where in [problem.where for problem in caught.value.problems]
    assert not DECISION_SCHEMA.is_valid(data)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["approved", "rejected", "x", "2026-05-01T12:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([*DECISION, *VERDICT, *REMEMBER, "c1", "more"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(ANYTHING)
def test_whatever_is_given_is_read_or_refused_and_what_the_schema_allows_is_read(data: Any) -> None:
    try:
        found = Decision.from_dict(data)
    except DecisionInvalid:
        assert not DECISION_SCHEMA.is_valid(data)
    else:
        assert found.verdict is None or isinstance(found.verdict, str)
