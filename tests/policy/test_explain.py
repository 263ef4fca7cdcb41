from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_policies import api, known, outcomes, pets

from toolgen.errors import ApprovalConfigError, ToolgenError
from toolgen.policy.address import ToolList, known_tools
from toolgen.policy.config import ApprovalConfig, TimeoutPolicy
from toolgen.policy.explain import Explanation, explain, find_tools
from toolgen.policy.gate import Gate


def explained(config: dict[str, Any] | ApprovalConfig | None, name: str, *toolsets: Any) -> Explanation:
    toolsets = toolsets or (pets(),)
    if isinstance(config, dict):
        config = ApprovalConfig.parse(config, toolsets)
    (tool,) = find_tools(known_tools(toolsets), name)
    return explain(config, toolsets, tool)


def applied(config: dict[str, Any], edits: list[dict[str, str]]) -> dict[str, Any]:
    """What a person makes of a config who follows the advice."""
    made = {key: list(value) if isinstance(value, list) else value for key, value in config.items()}
    gone = [edit["where"] for edit in edits if edit["action"] == "remove"]
    for where in sorted(gone, key=lambda text: int(re.sub(r"\D", "", text) or 0), reverse=True):
        key, _, number = where.rstrip("]").partition("[")
        if number:
            del made[key][int(number)]
        else:
            del made[key]
    for edit in edits:
        if edit["action"] == "add":
            made.setdefault(edit["where"], []).append(edit["value"])
        elif edit["action"] == "set":
            made[edit["where"]] = edit["value"]
    return made


def advice(config: dict[str, Any], name: str, *toolsets: Any) -> dict[str, list[list[str]]]:
    """What would change it, by outcome, each edit in a line."""
    found: dict[str, list[list[str]]] = {}
    for change in explained(config, name, *toolsets).changes:
        edits = [" ".join(edit.to_dict().values()) for edit in change.edits]
        found.setdefault(change.outcome.name, []).append(edits)
    return found


# what would change it

PATTERNS = [
    "http.*:*",
    "http.get:*",
    "http.get:/pets",
    "http.post:/pets",
    "http.delete:*",
    "*:createPet",
    "deletePet",
    "petstore:*",
    "*",
]
LISTED = st.lists(st.sampled_from(PATTERNS), max_size=3, unique=True)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "requireApproval": LISTED,
        "exempt": LISTED,
        "deny": LISTED,
        "unmatched": st.sampled_from(["allow", "requireWrites", "require", "deny"]),
        "rules": st.lists(st.sampled_from(PATTERNS), max_size=2, unique=True).map(
            lambda found: [{"match": one, "approvers": ["role:lead"]} for one in found]
        ),
    },
)
PETS = pets()


@settings(max_examples=300)
@given(config=CONFIGS, name=st.sampled_from(["listPets", "createPet", "deletePet"]))
def test_every_advice_is_true_names_who_else_is_reached_and_there_is_one_for_each_outcome(config, name):
    try:
        before = outcomes(config, PETS)
    except ApprovalConfigError:
        return
    explanation = explained(config, name, PETS).to_dict()
    assert {change["outcome"] for change in explanation["changes"]} == {"allowed", "gated", "denied"} - {before[name]}
    edits = [change["edits"] for change in explanation["changes"]]
    assert all(one not in edits[:number] for number, one in enumerate(edits))
    for change in explanation["changes"]:
        after = outcomes(applied(config, change["edits"]), PETS)
        assert after[name] == change["outcome"], change
        others = {other for other in before if after[other] != before[other]} - {name}
        assert {f"petstore:{other}" for other in others} == set(change["others"])


@pytest.mark.parametrize(
    ("config", "name", "outcome", "edits"),
    [
        ({}, "createPet", "allowed", [["add exempt http.post:/pets", "set unmatched requireWrites"]]),
        ({}, "listPets", "gated", [["add requireApproval http.get:/pets"]]),
        ({"requireApproval": ["http.get:*"]}, "listPets", "allowed", [["remove requireApproval"], ["add exempt http.get:/pets"]]),
        (
            {"requireApproval": ["http.get:*", "http.post:*"]},
            "listPets",
            "allowed",
            [["remove requireApproval[0] http.get:*"], ["add exempt http.get:/pets"]],
        ),
        # The same pattern may not stand in two lists.
        (
            {"requireApproval": ["http.post:/pets"], "unmatched": "requireWrites"},
            "createPet",
            "allowed",
            [["remove requireApproval", "add exempt http.post:/pets"]],
        ),
        (
            {"unmatched": "requireWrites", "rules": [{"match": "http.post:/pets", "pauseReason": "x"}]},
            "createPet",
            "denied",
            [["remove rules[0] http.post:/pets", "add deny http.post:/pets"]],
        ),
        ({"deny": ["*:createPet", "http.post:*"]}, "createPet", "gated", [["remove deny[0] *:createPet", "remove deny[1] http.post:*"]]),
        # Without an entry of `requireApproval` the rule would have no effect, and be refused: another form is left.
        (
            {"requireApproval": ["http.get:/pets"], "unmatched": "allow", "rules": [{"match": "*", "pauseReason": "x"}]},
            "listPets",
            "denied",
            [["add deny petstore.get:/pets"]],
        ),
        ({"deny": ["*"], "exempt": ["http.get:*"], "unmatched": "requireWrites"}, "listPets", "gated",
         [["remove deny[0] *", "remove exempt[0] http.get:*", "add requireApproval http.get:/pets"]]),
        # Of what waits there may be a rule.
        (
            {"requireApproval": ["http.get:*"], "unmatched": "allow", "rules": [{"match": "http.post:/pets", "pauseReason": "x"}]},
            "createPet",
            "gated",
            [["add requireApproval http.post:/pets"]],
        ),
        # A gate that is off stays off for everything else.
        ({"requireApproval": []}, "createPet", "gated", [["add requireApproval http.post:/pets", "set unmatched allow"]]),
    ],
)  # fmt: skip
def test_the_smallest_changes_are_told(config, name, outcome, edits):
    assert advice(config, name)[outcome] == edits


def test_advice_names_a_tool_by_what_no_other_tool_has():
    toolsets = api("petstore", createPet="post /pets"), api("other", addPet="post /pets")
    assert advice({}, "addPet", *toolsets)["denied"] == [["add deny other.post:/pets"]]


def test_advice_names_a_tool_whose_endpoint_is_longer_than_a_pattern_by_its_name():
    assert advice({}, "long", api("petstore", long="post /" + "x" * 260))["denied"] == [["add deny http:long"]]


def test_nothing_is_advised_for_a_config_that_could_not_be_read():
    explanation = explained(ApprovalConfig.unreadable("the disk is gone"), "listPets")
    assert (explanation.outcome.name, explanation.changes) == ("gated", ())
    assert "the disk is gone" in explanation.reason


# the lists


def test_every_pattern_that_matches_is_told_with_its_address_and_the_one_that_decides():
    config = {"requireApproval": ["http.get:*", "*:createPet", "createPet"], "exempt": ["http.post:*"], "deny": ["x"]}
    explanation = explained(config, "createPet")
    told = {
        key: [(m.where, m.pattern, m.address, m.decides) for m in found] for key, found in explanation.lists.items()
    }
    assert list(told.items()) == [
        ("deny", []),
        ("exempt", [("exempt[0]", "http.post:*", "http.post:/pets", True)]),
        (
            "requireApproval",
            [
                ("requireApproval[1]", "*:createPet", "http:createPet", False),
                ("requireApproval[2]", "createPet", "createPet", False),
            ],
        ),
    ]
    assert (explanation.outcome.name, explanation.where) == ("allowed", "exempt[0]")


@pytest.mark.parametrize(
    ("config", "value", "stated"), [({}, "requireWrites", False), ({"unmatched": "deny"}, "deny", True)]
)
def test_what_happens_to_the_unmatched_is_told_and_whether_it_is_stated(config, value, stated):
    assert explained(config, "createPet").to_dict()["unmatched"] == {"value": value, "stated": stated, "decides": True}


def test_every_reason_to_be_destructive_is_told():
    tools = ToolList("mcp", ["drop"], "files", destructive=["drop"])
    config = ApprovalConfig.parse({"destructive": ["http.*:*", "mcp:*"]})
    for name, told in {
        "deletePet": ("its method is DELETE", "destructive[0] is http.*:*"),
        "drop": ("it is marked destructive in its toolset", "destructive[1] is mcp:*"),
        "createPet": ("destructive[0] is http.*:*",),
    }.items():
        assert explained(config, name, pets(), tools).destructive == told
    assert explained({}, "createPet").destructive == ()


# what holds while a call waits

RULES: dict[str, Any] = {
    "unmatched": "require",
    "approvalValidity": "PT2H",
    "rules": [
        {"match": "http.*:*", "approvers": ["role:lead"], "timeoutPolicy": "ABORT", "approvalTimeout": "PT1H"},
        {"match": "http.post:*", "timeoutPolicy": "AUTO_REJECT", "approvalTimeout": "PT5M"},
    ],
}


def test_everything_that_holds_is_told_with_who_states_it():
    explanation = explained(RULES, "createPet")
    assert [(match.where, match.decides) for match in explanation.rules] == [("rules[1]", True), ("rules[0]", False)]
    assert [(held.key, held.value, held.origin, held.where, held.note) for held in explanation.terms] == [
        ("timeoutPolicy", "AUTO_REJECT", "rule", "rules[1].timeoutPolicy", ""),
        ("approvalTimeout", "PT5M", "rule", "rules[1].approvalTimeout", ""),
        ("approvalValidity", "PT2H", "config", "approvalValidity", ""),
        ("approvers", ["role:lead"], "broader rule", "rules[0].approvers", ""),
        ("allowSelfApproval", False, "default", "", "approvers are named"),
    ]


def test_of_a_broader_rule_only_what_concerns_approvers_holds():
    rules = [RULES["rules"][0] | {"allowSelfApproval": True}, {"match": "http.post:*", "pauseReason": "why"}]
    held = {held.key: (held.value, held.origin) for held in explained({**RULES, "rules": rules}, "createPet").terms}
    assert held == {
        "timeoutPolicy": ("WAIT_INDEFINITELY", "default"),
        "approvalTimeout": (None, "default"),
        "approvalValidity": ("PT2H", "config"),
        "approvers": (["role:lead"], "broader rule"),
        "allowSelfApproval": (True, "broader rule"),
        "pauseReason": ("why", "rule"),
    }


def test_a_broader_rule_that_forbids_self_approval_is_named_for_it():
    rules = [
        {"match": "http.*:*", "allowSelfApproval": False},
        {"match": "http.p*:*", "approvers": ["role:lead"], "allowSelfApproval": True},
        {"match": "http.post:*", "pauseReason": "why"},
    ]
    (held,) = [one for one in explained({**RULES, "rules": rules}, "createPet").terms if one.key == "allowSelfApproval"]
    assert (held.value, held.origin, held.where) == (False, "broader rule", "rules[0].allowSelfApproval")


def test_a_call_that_does_not_wait_has_no_terms_and_no_rule_of_its_own():
    explanation = explained({**RULES, "exempt": ["http.post:/pets"]}, "createPet")
    assert explanation.terms == ()
    assert [match.decides for match in explanation.rules] == [False, False]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"destructive": ["createPet"]}, "AUTO_APPROVE does not hold: the call is destructive"),
        ({"rules": [{"match": "*", "approvers": ["ann"]}]}, "AUTO_APPROVE does not hold: approvers are named"),
        ({}, ""),
    ],
)
def test_it_is_told_why_time_does_not_approve(more, why):
    by_time = {"match": "http.post:*", "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}
    rules = [by_time, *more.get("rules", ())]
    # Parsed without the tools: with them it is refused.
    config = ApprovalConfig.parse({"unmatched": "require", **more, "rules": rules})
    policy, timeout, *_ = explained(config, "createPet").terms
    assert (policy.value, policy.note) == ("WAIT_INDEFINITELY" if why else "AUTO_APPROVE", why)
    assert (policy.origin, policy.where) == ("rule", "rules[0].timeoutPolicy")
    assert (timeout.value, timeout.note) == (
        (None, "a call that waits without end has no due time") if why else ("PT5M", "")
    )


@pytest.mark.parametrize(
    ("policy", "timeout", "why"),
    [
        (TimeoutPolicy.AUTO_APPROVE, timedelta(minutes=5), "AUTO_APPROVE holds in a rule only"),
        (TimeoutPolicy.ABORT, None, "ABORT needs an approvalTimeout, and none is stated"),
    ],
)
def test_it_is_told_why_a_policy_does_not_hold_that_only_a_program_can_have_stated(policy, timeout, why):
    config = ApprovalConfig(timeout_policy=policy, approval_timeout=timeout)
    held = explained(config, "createPet").terms[0]
    assert (held.value, held.origin, held.note) == ("WAIT_INDEFINITELY", "config", why)


@settings(max_examples=100)
@given(config=CONFIGS, name=st.sampled_from(["listPets", "createPet", "deletePet"]))
def test_what_is_explained_is_what_the_gate_does(config, name):
    try:
        parsed = ApprovalConfig.parse(config, [PETS])
    except ApprovalConfigError:
        return
    explanation = explained(parsed, name, PETS)
    gate = Gate(parsed, PETS)
    (tool,) = [tool for tool in gate.tools if tool.name == name]
    result = gate.outcome_of(tool)
    assert (explanation.outcome, explanation.reason, explanation.where) == (result.outcome, result.reason, result.where)
    deciding = [match.where for found in explanation.lists.values() for match in found if match.decides]
    assert deciding == ([] if result.where == "unmatched" else [result.where])
    assert bool(explanation.destructive) is (tool in gate.destructive)
    own = [match.pattern for match in explanation.rules if match.decides]
    assert own == ([result.terms.rule.match.text] if result.terms and result.terms.rule else [])


# which tool is meant


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("createPet", "createPet"),
        ("petstore:createPet", "createPet"),
        ("POST /pets", "createPet"),
        ("post pets", "createPet"),
        ("POST https://petstore.example//pets?x=1", "createPet"),
        ("http.post:/pets", "createPet"),
        ("DELETE /pets/{petId}", "deletePet"),
    ],
)
def test_a_tool_is_found_by_name_source_and_endpoint(wanted, name):
    assert [tool.name for tool in find_tools(known_tools([pets()]), wanted)] == [name]


def test_all_tools_of_an_endpoint_are_found():
    toolsets = api("petstore", createPet="post /pets"), api("other", addPet="post /pets")
    assert [tool.name for tool in find_tools(known_tools(toolsets), "POST /pets")] == ["createPet", "addPet"]


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("creatPet", "no tool is called 'creatPet'; near are createPet, getPet"),
        ("petstor:createPet", "near are petstore:createPet"),
        ("PUT /pets", "no tool has the endpoint 'PUT /pets'; near are GET /pets, POST /pets"),
        ("GET /pets/{id}", "near are GET /pets/{petId}"),
        ("http.post:/petz", "near are http.post:/pets"),
        ("GET /a/../b", "'GET /a/../b' is no endpoint: the path has a '..' segment"),
        ("qqqqqq", "no tool is called 'qqqqqq'"),
    ],
)
def test_what_is_no_tool_is_refused_with_the_nearest(wanted, says):
    with pytest.raises(ToolgenError) as caught:
        find_tools(known_tools([pets()]), wanted)
    assert caught.value.message.find(says) >= 0, caught.value.message


def test_a_name_that_two_sources_have_is_refused_with_what_to_write_and_explained_as_shared():
    toolsets = api("petstore", createPet="post /pets"), api("other", createPet="post /animals")
    with pytest.raises(ToolgenError, match="name one of petstore:createPet, other:createPet"):
        find_tools(known_tools(toolsets), "createPet")
    explanation = explained({}, "other:createPet", *toolsets)
    assert explanation.tool.source == "other"
    assert "petstore, other each have a tool 'createPet'" in explanation.shared
    assert explained({}, "createPet").shared == ""


def test_a_tool_of_other_toolsets_is_refused():
    with pytest.raises(ValueError, match="petstore:createPet is in none"):
        explain(None, [api("other", createPet="post /pets")], known(pets())["createPet"])
