from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from any_policies import anything, configs
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgen import policy
from toolgen.errors import ApprovalConfigError
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.gate import Gate
from toolgen.policy.published import published_schema, published_text
from toolgen.policy.reading import CONFIG, RULE

SCHEMA = jsonschema_rs.Draft202012Validator(published_schema(), offline=True)
CLOSE_TO_A_DURATION = r"P([0-9]?[DWYM])?T?([0-9]H)?([0-9]M)?([0-9.]{1,4}S)?"
BASE: dict[str, Any] = {"requireApproval": ["http.post:*"], "rules": [{"match": "http.post:/a"}]}


def is_read(data: Any) -> bool:
    try:
        ApprovalConfig.parse(data)
    except ApprovalConfigError:
        return False
    return True


def test_the_published_file_is_what_the_code_says() -> None:
    committed = Path(policy.__file__).with_name("approvals.schema.json").read_text(encoding="utf-8")
    assert committed == published_text(), "python -m toolgen.policy.published > toolgen/policy/approvals.schema.json"


def test_the_schema_has_every_key_that_is_read_and_no_other_and_describes_it() -> None:
    made = published_schema()
    jsonschema_rs.meta.validate(made)
    assert set(made["properties"]) == set(CONFIG)
    assert set(made["$defs"]["rule"]["properties"]) == set(RULE)
    for found in (made, made["$defs"]["rule"]):
        assert found["additionalProperties"] is False
        assert found["description"]
        assert all(member["description"] for member in found["properties"].values())


def test_the_examples_are_configs_and_the_defaults_are_those_of_the_gate() -> None:
    made = published_schema()
    for example in made["examples"]:
        SCHEMA.validate(example)
        ApprovalConfig.parse(example)
    for text in made["$defs"]["pattern"]["examples"]:
        ApprovalConfig.parse({"requireApproval": [text]})
    gate = Gate(None)
    assert made["properties"]["unmatched"]["default"] == ApprovalConfig().default
    assert made["properties"]["maxPausesPerTurn"]["default"] == gate.max_pauses_per_turn
    assert made["properties"]["maxAutoApprovalsPerTurn"]["default"] == gate.max_auto_approvals_per_turn
    assert made["properties"]["onNoProgress"]["default"] == gate.on_no_progress


@settings(max_examples=100)
@given(configs())
def test_the_schema_accepts_every_config_that_is_read(data: dict[str, Any]) -> None:
    ApprovalConfig.parse(data)
    SCHEMA.validate(data)


@settings(max_examples=100)
@given(configs(), st.sampled_from(list(CONFIG)), anything)
def test_no_value_that_is_read_is_refused_by_the_schema(data: dict[str, Any], key: str, value: Any) -> None:
    changed = {**data, key: value}
    assert not is_read(changed) or SCHEMA.is_valid(changed)


@settings(max_examples=300)
@given(
    st.one_of(
        st.tuples(st.just("approvalValidity"), st.text("PTWDHMS0123456789.", max_size=5)),
        st.tuples(st.just("approvalValidity"), st.from_regex(CLOSE_TO_A_DURATION, fullmatch=True)),
        st.tuples(st.just("apis"), st.lists(st.text("ab9-A_ ", max_size=33), min_size=1, max_size=2)),
        st.tuples(
            st.just("approvers"), st.lists(st.sampled_from(["a", "a b", " a", "role:", "role:a", ""]), max_size=2)
        ),
        st.tuples(st.just("pauseReason"), st.text(" \t\nx", max_size=3)),
    )
)
def test_schema_and_reading_agree_on_texts(entry: tuple[str, Any]) -> None:
    data = dict([entry])
    assert SCHEMA.is_valid(data) == is_read(data)


@pytest.mark.parametrize("in_rule", [False, True])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[(key, None) for key in ("timeoutPolicy", "approvalTimeout", "pauseReason", "approvers", "allowSelfApproval")],
        ("timeoutPolicy", "WAIT"),
        ("timeoutPolicy", "wait_indefinitely"),
        *[("approvalTimeout", value) for value in ("30m", "P1M", "P1Y", "PT0S", "-PT5M", "PT", "P1W1D", 30, "PT5M\n")],
        ("approvalValidity", "PT1.5H"),
        ("pauseReason", "x" * 501),
        ("pendingMessage", " "),
        *[("approvers", value) for value in ([], "alice", ["alice", "alice"], [" alice"], [1], ["x" * 257])],
        ("allowSelfApproval", "yes"),
        ("allow_self_approval", True),
    ],
)
def test_schema_and_reading_refuse_the_same_friction(key: str, value: Any, in_rule: bool) -> None:
    data = deepcopy(BASE)
    (data["rules"][0] if in_rule else data)[key] = value
    assert not SCHEMA.is_valid(data)
    assert not is_read(data)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[(key, None) for key in CONFIG],
        *[(key, {}) for key in CONFIG],
        *[(key, [""]) for key in ("requireApproval", "exempt", "deny", "destructive", "apis", "mcpServers")],
        *[(key, "http.post:*") for key in ("requireApproval", "exempt", "deny", "destructive", "rules")],
        ("requireApproval", ["http.get:*", "http.get:*"]),
        ("deny", ["a" * 257]),
        ("unmatched", "off"),
        ("unmatched", False),
        ("rules", [{}]),
        ("rules", [{"pauseReason": "x"}]),
        ("rules", [{"match": "http.post:*", "requireApproval": []}]),
        ("timeoutPolicy", "AUTO_APPROVE"),
        *[("maxPausesPerTurn", value) for value in (0, 11, 1.5, "3", True)],
        *[("maxAutoApprovalsPerTurn", value) for value in (-1, 11)],
        ("onNoProgress", "AUTO_APPROVE"),
        *[("apis", [name]) for name in ("http", "Pets", "9a", "a" * 33)],
        ("requireAproval", []),
        ("hitlConfig", {}),
    ],
)
def test_schema_and_reading_refuse_the_same_configs(key: str, value: Any) -> None:
    data = {**BASE, key: value}
    assert not SCHEMA.is_valid(data)
    assert not is_read(data)


@pytest.mark.parametrize("data", [None, [], "requireApproval", 5])
def test_only_a_mapping_is_a_config(data: Any) -> None:
    assert not SCHEMA.is_valid(data)
    assert not is_read(data)
