from __future__ import annotations

import json
from collections import UserDict, deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from any_policies import configs, mappings
from hypothesis import given, settings
from hypothesis import strategies as st
from small_policies import api, classified, outcomes, pets

from toolgen.errors import ApprovalConfigError, Problem, RegistrationError, SourceError, SyntaxFault
from toolgen.policy import values
from toolgen.policy.address import ToolList
from toolgen.policy.config import ApprovalConfig, NoProgress, TimeoutPolicy, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import ToolCall
from toolgen.tools.files.places import Place, parts

WRITES = {"requireApproval": ["http.post:*", "http.delete:*"]}
FILES = ToolList("mcp", ["read_file", "wipe_disk"], server="files", destructive=["wipe_disk"])
TOOLSETS = (pets(), FILES)
GATED_WRITES = {"listPets": "allowed", "getPet": "allowed", "createPet": "gated", "deletePet": "gated"}
ALL_RUN = dict.fromkeys(GATED_WRITES, "allowed")


def problems(data: Any, *toolsets: Any) -> tuple[Problem, ...]:
    with pytest.raises(ApprovalConfigError) as caught:
        ApprovalConfig.parse(data, toolsets)
    return caught.value.problems


def the_problem(data: Any, *toolsets: Any) -> Problem:
    """The only problem there is: one fault is told once."""
    found = problems(data, *toolsets)
    assert len(found) == 1, [str(problem) for problem in found]
    return found[0]


# what a config may say


def test_without_a_config_and_with_an_empty_one_the_defaults_hold() -> None:
    for config in (None, ApprovalConfig(), ApprovalConfig.parse({})):
        gate = Gate(config, pets())
        assert gate.max_pauses_per_turn == 3
        assert gate.max_auto_approvals_per_turn == 2
        assert gate.on_no_progress is NoProgress.WAIT_FOR_HUMAN
        (call,) = gate.classify([ToolCall("1", "createPet")]).calls
        terms = call.result.terms
        assert terms is not None
        assert terms.timeout_policy is TimeoutPolicy.WAIT_INDEFINITELY
        assert terms.approval_timeout is None
        assert terms.approval_validity == timedelta(hours=1)
        assert (terms.approvers, terms.allow_self_approval) == ((), True)


@pytest.mark.parametrize(
    "stated",
    [
        *[{"maxPausesPerTurn": number} for number in (1, 10)],
        *[{"maxAutoApprovalsPerTurn": number} for number in (0, 10)],
        *[{"onNoProgress": word} for word in ("WAIT_FOR_HUMAN", "ABORT", "AUTO_REJECT")],
        *[{"unmatched": word} for word in ("allow", "requireWrites", "require", "deny")],
        {"timeoutPolicy": "WAIT_INDEFINITELY"},
        *[{"timeoutPolicy": word, "approvalTimeout": "P14D"} for word in ("ABORT", "AUTO_REJECT")],
        {"approvalValidity": "PT5M"},
        {"pauseReason": "x" * 500, "pendingMessage": "{toolNames} " + "é" * 488},
        {"approvers": ["alice", "role:admin", "x" * 256], "allowSelfApproval": False},
        {"deny": ["http.delete:*"], "destructive": ["http.post:/pets"]},
        {"apis": ["petstore"], "mcpServers": ["files"], "deny": ["petstore.delete:*", "files:*"]},
        {"$schema": "approvals.schema.json"},
        {**WRITES, "exempt": ["http.post:/pets/search"]},
        {**WRITES, "rules": []},
        {"exempt": ["http.post:/pets"], "unmatched": "require"},
        {"exempt": ["http.post:/pets"], "unmatched": "deny"},
        {**WRITES, "rules": [{"match": "http.post:*"}, {"match": "http.post:/pets"}]},
        {**WRITES, "rules": [{"match": "http.*:*", "timeoutPolicy": "ABORT"}], "approvalTimeout": "PT5M"},
        {**WRITES, "rules": [{"match": "http.*:*", "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}]},
        {"unmatched": "require", "exempt": ["http.get:*"], "rules": [{"match": "http.*:*", "pauseReason": "x"}]},
    ],
    ids=json.dumps,
)
def test_what_a_config_may_say(stated: dict[str, Any]) -> None:
    given_data = deepcopy(stated)
    config = ApprovalConfig.parse(stated)
    assert stated == given_data
    assert config.to_dict() == {key: value for key, value in stated.items() if key != "$schema" and value != []}


def test_every_mapping_and_sequence_of_python_is_read() -> None:
    data = {"requireApproval": ("http.post:*",), "rules": (UserDict({"match": "http.*:*"}),)}
    assert ApprovalConfig.parse(MappingProxyType(data)) == ApprovalConfig.parse(
        {"requireApproval": ["http.post:*"], "rules": [{"match": "http.*:*"}]}
    )


# when the gate is off


@pytest.mark.parametrize(
    "stated", [{"requireApproval": []}, {"requireApproval": [], "unmatched": "allow"}, {"unmatched": "allow"}]
)
def test_the_gate_is_off_where_that_is_spelled_and_what_is_denied_stays_denied(stated: dict[str, Any]) -> None:
    config = ApprovalConfig.parse(stated)
    assert config.is_off
    assert outcomes(config, pets()) == ALL_RUN
    assert outcomes({**stated, "deny": ["http.delete:*"]}, pets()) == {**ALL_RUN, "deletePet": "denied"}


def test_off_is_a_config_that_switches_the_gate_off() -> None:
    assert ApprovalConfig.off().is_off
    assert ApprovalConfig.off() == ApprovalConfig.parse({"requireApproval": []})
    assert outcomes(ApprovalConfig.off(), pets()) == ALL_RUN


@pytest.mark.parametrize("stated", [None, {}, {"deny": ["send_mail"]}, {"maxPausesPerTurn": 1}, {"apis": ["petstore"]}])
def test_a_config_that_lacks_requireApproval_has_writes_wait(stated: dict[str, Any] | None) -> None:
    assert outcomes(stated, pets()) == GATED_WRITES


@pytest.mark.parametrize("unmatched", ["requireWrites", "require", "deny"])
def test_an_empty_requireApproval_does_not_outrule_a_written_unmatched(unmatched: str) -> None:
    config = ApprovalConfig.parse({"requireApproval": [], "unmatched": unmatched})
    assert config.default is Unmatched(unmatched)
    assert not config.is_off
    assert outcomes(config, pets())["deletePet"] != "allowed"


def test_the_gate_is_on_for_what_is_named_where_everything_else_runs() -> None:
    config = ApprovalConfig.parse({"requireApproval": ["deletePet"], "unmatched": "allow"})
    assert not config.is_off
    assert outcomes(config, pets()) == {**ALL_RUN, "deletePet": "gated"}


@settings(max_examples=200)
@given(mappings)
def test_no_data_switches_the_gate_off_but_those_spellings(data: dict[Any, Any]) -> None:
    try:
        config = ApprovalConfig.parse(data)
    except ApprovalConfigError:
        return
    spelled = data.get("requireApproval", []) == [] and data.get("unmatched", "allow") == "allow"
    assert config.is_off == (spelled and ("requireApproval" in data or "unmatched" in data))


def test_an_unreadable_config_has_every_call_wait_and_is_not_saved() -> None:
    config = ApprovalConfig.unreadable("the disk is full")
    assert set(outcomes(config, pets(), FILES).values()) == {"gated"}
    assert not config.is_off
    assert config.default is Unmatched.require
    (call,) = classified(config, ToolCall("1", "listPets"), toolsets=[pets()]).calls
    assert call.reason == "the approval config could not be read: the disk is full"
    assert config != ApprovalConfig()
    assert set(outcomes(ApprovalConfig.unreadable(""), pets()).values()) == {"gated"}
    with pytest.raises(ValueError, match="could not be read"):
        config.to_dict()


# what is refused: each with its place, and told once

RANGES = [
    *[("maxPausesPerTurn", number, f"from 1 to 10, this is {number}") for number in (0, 11, -1, 2.5, 3.0)],
    *[("maxAutoApprovalsPerTurn", number, f"from 0 to 10, this is {number}") for number in (-1, 11)],
    ("maxPausesPerTurn", True, "this is true"),
    ("maxPausesPerTurn", "3", "this is '3'"),
    pytest.param("maxPausesPerTurn", 10**5000, "this is a number", id="5001 digits"),
    ("maxPausesPerTurn", float("nan"), "this is nan"),
]
KINDS = [
    *[(key, None, "expected a list, this is empty") for key in ("requireApproval", "exempt", "deny", "rules", "apis")],
    *[(key, None, "this is empty") for key in ("unmatched", "timeoutPolicy", "approvalTimeout", "approvers")],
    *[(key, None, "this is empty") for key in ("pauseReason", "maxPausesPerTurn", "allowSelfApproval", "destructive")],
    *[(key, None, "this is empty") for key in ("approvalValidity", "pendingMessage", "onNoProgress", "mcpServers")],
    ("$schema", None, "this is empty"),
    ("requireApproval", "http.post:*", "expected a list, this is 'http.post:*'"),
    ("requireApproval", {"http.post:*": True}, "expected a list, this is a mapping"),
    ("requireApproval", MappingProxyType({}), "expected a list, this is a mapping"),
    ("exempt", deque(["a"]), "none of what YAML and JSON have"),
    ("exempt", {"a"}, "none of what YAML and JSON have"),
    ("deny", False, "expected a list, this is false"),
    ("unmatched", ["allow"], "this is a list"),
    ("unmatched", False, "expected allow, requireWrites, require or deny, this is false"),
    ("allowSelfApproval", "yes", "expected true or false, this is 'yes'"),
    ("allowSelfApproval", 1, "expected true or false, this is 1"),
    ("approvalTimeout", 30, "expected an ISO 8601 duration such as PT30M, this is 30"),
    ("pauseReason", 5, "expected text, this is 5"),
    ("pauseReason", "", "expected text, this is empty"),
    ("pendingMessage", " \n", "expected text, this is empty"),
    ("pauseReason", "x" * 501, "the text has 501 characters, 500 are allowed"),
    ("pendingMessage", "é" * 501, "the text has 501 characters"),
    ("pauseReason", "\ud83d alone", "half of a surrogate pair"),
    ("approvers", [], "nobody is named"),
    ("approvers", (), "nobody is named"),
    ("approvers", "alice", "expected a list, this is 'alice'"),
]


@pytest.mark.parametrize(("key", "value", "message"), [*RANGES, *KINDS])
def test_a_value_of_another_kind_or_range_is_refused(key: str, value: Any, message: str) -> None:
    problem = the_problem({**WRITES, key: value})
    assert problem.where == key
    assert message in problem.message


@pytest.mark.parametrize(
    ("where", "data", "message", "suggestion"),
    [
        ("unmatched", {"unmatched": "require_writes"}, "this is 'require_writes'", "requireWrites"),
        ("unmatched", {"unmatched": "Deny"}, "this is 'Deny'", "deny"),
        ("unmatched", {"unmatched": "off"}, "expected allow, requireWrites, require or deny", ""),
        ("timeoutPolicy", {"timeoutPolicy": "auto_reject"}, "this is 'auto_reject'", "AUTO_REJECT"),
        ("timeoutPolicy", {"timeoutPolicy": "WAIT_INDEFINITLY"}, "WAIT_INDEFINITELY, ABORT", "WAIT_INDEFINITELY"),
        ("onNoProgress", {"onNoProgress": "AUTO_APPROVE"}, "WAIT_FOR_HUMAN, ABORT or AUTO_REJECT", ""),
        ("rules[0].timeoutPolicy", {**WRITES, "rules": [{"match": "a", "timeoutPolicy": "abrt"}]}, "'abrt'", "ABORT"),
        ("approvalTimeout", {"approvalTimeout": "30m"}, "ISO 8601", "PT30M"),
        ("approvalTimeout", {"approvalTimeout": "5 minutes", "timeoutPolicy": "ABORT"}, "ISO 8601", "PT5M"),
        (
            "rules[0].approvalTimeout",
            {**WRITES, "rules": [{"match": "a", "timeoutPolicy": "ABORT", "approvalTimeout": "5m"}]},
            "ISO 8601",
            "PT5M",
        ),
        ("approvalTimeout", {"approvalTimeout": "P1M"}, "years and months have no fixed length", ""),
        ("approvalTimeout", {"approvalTimeout": "PT0S"}, "longer than zero", ""),
        ("approvalTimeout", {"approvalTimeout": "-PT5M"}, "ISO 8601", ""),
        ("approvalValidity", {"approvalValidity": "9" * 5000 + "m"}, "ISO 8601", ""),
        ("approvers[0]", {"approvers": ["rol:admin"]}, "'rol:admin' is nobody's name", "role:admin"),
        ("approvers[0]", {"approvers": ["ROLE: admin"]}, "'ROLE: admin' is nobody's name", "role:admin"),
        ("approvers[0]", {"approvers": ["roles:"]}, "'roles:' is nobody's name", ""),
        ("approvers[1]", {"approvers": ["alice", "role:"]}, "expected a name or role:NAME, this is 'role:'", ""),
        ("approvers[1]", {"approvers": ["alice", "alice"]}, "'alice' stands in approvers[0], too", ""),
        ("approvers[0]", {"approvers": ["x" * 257]}, "expected a name or role:NAME", ""),
        ("approvers[0]", {"approvers": [None]}, "this is empty", ""),
        ("approvers[0]", {"approvers": [" alice"]}, "this is ' alice'", ""),
        ("approvers[0]", {"approvers": ["a\u202eb"]}, r"this is 'a\u202eb'", ""),
        ("apis[1]", {"apis": ["pets", "Pet Store"]}, "'Pet Store' is no name of an API", "pet-store"),
        ("apis[0]", {"apis": ["http"]}, "'http' is no name of an API", ""),
        ("mcpServers[0]", {"mcpServers": ["a" * 33]}, "is no name of an MCP server", "a" * 32),
        ("mcpServers[1]", {"mcpServers": ["files", "files"]}, "'files' stands in mcpServers[0], too", ""),
        ("mcpServers[0]", {"mcpServers": ["files"], "apis": ["files"]}, "'files' stands in apis[0], too", ""),
        ("requireAproval", {"requireAproval": ["http.post:*"]}, "there is no such key", "requireApproval"),
        ("require_approval", {"require_approval": []}, "there is no such key", "requireApproval"),
        ("default", {"default": "allow"}, "there is no such key", ""),
        ("x" * 80, {"x" * 1_000_000: "allow"}, "there is no such key", ""),
        ("['a\\x1b']", {"a\x1b": 1}, "there is no such key", ""),
        ("1", {1: 2}, "there is no such key", ""),
        ("rules[0].exempt", {**WRITES, "rules": [{"match": "a", "exempt": []}]}, "there is no such key", ""),
        ("rules[0].match", {**WRITES, "rules": [{"match": "htp:x"}]}, "no source is called 'htp'", "http:x"),
        ("rules[0].match", {**WRITES, "rules": [{"match": ""}]}, "the pattern is empty", ""),
        ("rules[0].match", {**WRITES, "rules": [{"match": None}]}, "expected a pattern, this is empty", ""),
        ("rules[0]", {**WRITES, "rules": [{"pauseReason": "x"}]}, "`match` is missing", ""),
        ("rules[1]", {**WRITES, "rules": [{"match": "a"}, None]}, "expected a mapping, this is empty", ""),
        ("requireApproval[1]", {"requireApproval": ["a", "http.pots:/x"]}, "no tool has the method", "http.post:/x"),
        ("deny[0]", {"deny": [5]}, "expected a pattern, this is 5", ""),
        ("", ["http.post:*"], "expected a mapping, this is a list", ""),
        ("", None, "expected a mapping, this is empty", ""),
        ("", "requireApproval: []", "expected a mapping, this is 'requireApproval: []'", ""),
    ],
)
def test_a_wrong_value_is_refused_with_its_place_and_what_was_meant(
    where: str, data: Any, message: str, suggestion: str
) -> None:
    problem = the_problem(data)
    assert problem.where == where
    assert message in problem.message
    assert problem.suggestion == suggestion
    assert not suggestion or problem.hint


@pytest.mark.parametrize("key", ["hitlConfig", "toolApprovals", "inGroupTurns"])
def test_a_config_of_the_reference_system_is_refused_with_the_command_that_converts_it(key: str) -> None:
    problem = the_problem({key: {"requireApproval": ["*"]}, "exempt": ["a"], "timeoutPolicy": "ABORT"})
    assert problem.where == key
    assert "check --import" in problem.hint


@pytest.mark.parametrize(
    ("data", "where", "message"),
    [
        # twice in one list
        ({"requireApproval": ["a*", "b", "a*"]}, "requireApproval[2]", "'a*' stands in requireApproval[0], too"),
        ({"requireApproval": ["a*", "a**"]}, "requireApproval[1]", "'a**' stands in requireApproval[0], too"),
        ({**WRITES, "exempt": ["a", "a"]}, "exempt[1]", "'a' stands in exempt[0], too"),
        ({"deny": ["a", "a"]}, "deny[1]", "'a' stands in deny[0], too"),
        ({"destructive": ["a", "a"]}, "destructive[1]", "'a' stands in destructive[0], too"),
        ({**WRITES, "rules": [{"match": "a*"}, {"match": "a**"}]}, "rules[1].match", "is the match of rules[0], too"),
        # in two lists
        ({"requireApproval": ["b", "a*"], "exempt": ["a**"]}, "requireApproval[1]", "stands in exempt[0], too"),
        ({"requireApproval": ["a"], "deny": ["a"]}, "requireApproval[0]", "what is denied never waits"),
        ({**WRITES, "exempt": ["a"], "deny": ["b", "a"]}, "exempt[0]", "'a' stands in deny[1], too"),
        ({**WRITES, "exempt": ["a"], "rules": [{"match": "b"}, {"match": "a"}]}, "rules[1].match", "can never apply"),
        ({**WRITES, "deny": ["a"], "rules": [{"match": "a"}]}, "rules[0].match", "the rule can never apply"),
        # without effect
        ({"exempt": ["a"]}, "exempt", "neither `requireApproval` nor `unmatched` is stated"),
        ({"exempt": ["a"], "requireApproval": []}, "exempt", "the gate is off"),
        ({"exempt": ["a"], "unmatched": "allow"}, "exempt", "the gate is off"),
        ({"rules": [{"match": "a"}]}, "rules", "neither `requireApproval` nor `unmatched` is stated"),
        ({"rules": [{"match": "a"}], "requireApproval": []}, "rules", "the gate is off"),
        ({"rules": [{"match": "a"}], "unmatched": "deny"}, "rules", "nothing needs approval"),
        # a policy that would never act
        ({"timeoutPolicy": "ABORT"}, "timeoutPolicy", "ABORT needs an `approvalTimeout`"),
        ({"timeoutPolicy": "AUTO_REJECT"}, "timeoutPolicy", "AUTO_REJECT needs an `approvalTimeout`"),
        *[
            (
                {**WRITES, "rules": [{"match": "http.post:*", "timeoutPolicy": policy}]},
                "rules[0].timeoutPolicy",
                f"{policy} needs an `approvalTimeout`",
            )
            for policy in ("ABORT", "AUTO_REJECT", "AUTO_APPROVE")
        ],
    ],
)
def test_what_contradicts_itself_or_has_no_effect_is_refused(data: dict[str, Any], where: str, message: str) -> None:
    problem = the_problem(data)
    assert problem.where == where
    assert message in problem.message


def test_a_pattern_in_three_lists_is_told_once_for_each_entry_that_loses() -> None:
    found = problems({"requireApproval": ["a"], "exempt": ["a"], "deny": ["a"], "rules": [{"match": "a"}]})
    assert [problem.where for problem in found] == ["requireApproval[0]", "exempt[0]", "rules[0].match"]


# AUTO_APPROVE


def by_time(match: str, **more: Any) -> dict[str, Any]:
    return {"match": match, "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M", **more}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"rules": [by_time("http.post:*", approvers=["alice"])]}, "the approvers this rule names"),
        ({"rules": [by_time("http.post:*")], "approvers": ["alice"]}, "the approvers the config names"),
        ({"rules": [by_time("http.delete:*")]}, "'http.delete:*' matches destructive calls"),
        ({"rules": [by_time("*.delete:/pets")]}, "matches destructive calls"),
        ({"rules": [by_time("http.del*:/pets")]}, "matches destructive calls"),
        ({"rules": [by_time("send_mail")], "destructive": ["send_mail"]}, "matches destructive calls"),
    ],
)
def test_time_never_approves_for_named_people_or_what_destroys(data: dict[str, Any], message: str) -> None:
    for toolsets in ((), TOOLSETS):
        problem = the_problem({"unmatched": "require", **data}, *toolsets)
        assert problem.where == "rules[0].timeoutPolicy"
        assert message in problem.message


def test_time_never_approves_by_the_config_itself() -> None:
    for data in ({"timeoutPolicy": "AUTO_APPROVE"}, {"timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}):
        problem = the_problem(data)
        assert problem.where == "timeoutPolicy"
        assert "in a rule only" in problem.message


@pytest.mark.parametrize(
    ("data", "reached"),
    [
        ({"rules": [by_time("http.*:*")]}, "deletePet"),
        ({"rules": [by_time("delete*")]}, "deletePet"),
        ({"rules": [by_time("files:*")]}, "wipe_disk"),
        ({"rules": [by_time("http.post:*")], "destructive": ["create*"]}, "createPet"),
        ({"rules": [by_time("createPet"), {"match": "http.post:*", "approvers": ["alice"]}]}, "createPet"),
        ({"rules": [by_time("*:*")]}, "deletePet, wipe_disk"),
    ],
)
def test_time_never_approves_what_the_toolsets_show_to_be_destructive(data: dict[str, Any], reached: str) -> None:
    problem = the_problem({"unmatched": "requireWrites", **data}, pets(), FILES)
    assert problem.where == "rules[0].timeoutPolicy"
    assert f"would reach {reached}: destructive" in problem.message
    ApprovalConfig.parse({"unmatched": "requireWrites", "mcpServers": ["files"], **data})  # nothing shows it


def test_time_never_approves_what_a_person_marked_in_the_toolset() -> None:
    toolset = api(sendMail="post /mails", createDraft="post /drafts")
    marked = [tool.model_copy(update={"destructive": tool.name == "sendMail"}) for tool in toolset.tools]
    data = {**WRITES, "rules": [by_time("http.post:*")]}
    problem = the_problem(data, toolset.model_copy(update={"tools": tuple(marked)}))
    assert "would reach sendMail: destructive" in problem.message
    ApprovalConfig.parse(data, [toolset])


@pytest.mark.parametrize(
    "data",
    [
        {"exempt": ["deletePet"]},
        {"deny": ["deletePet"]},
        {"rules": [by_time("http.*:*"), {"match": "http.delete:*", "timeoutPolicy": "WAIT_INDEFINITELY"}]},
        {"rules": [by_time("http.*:*"), {"match": "deletePet", "pauseReason": "x"}]},
    ],
)
def test_time_may_approve_beside_what_is_destructive(data: dict[str, Any]) -> None:
    stated = {**WRITES, "rules": [by_time("http.*:*")], **data}
    assert not ApprovalConfig.parse(stated, [pets()]).is_off


def test_a_problem_elsewhere_does_not_hide_what_time_would_approve() -> None:
    data = {**WRITES, "pauseReason": "", "timeoutPolicy": "ABORT", "rules": [by_time("http.*:*")]}
    found = [problem.where for problem in problems(data, pets())]
    assert found == ["pauseReason", "timeoutPolicy", "rules[0].timeoutPolicy"]


@pytest.mark.parametrize(
    ("where", "more"),
    [
        ("exempt[0]", {"exempt": ["htp:deletePet"]}),
        ("dney", {"dney": ["deletePet"]}),
        ("rules[1].match", {"rules": [by_time("http.*:*"), {"match": "http.delete:"}]}),
        (
            "approvalTimeout",
            {"approvalTimeout": "5m", "rules": [{"match": "http.*:*", "timeoutPolicy": "AUTO_APPROVE"}]},
        ),
    ],
)
def test_what_time_would_approve_is_not_guessed_from_a_part_of_the_config(where: str, more: dict[str, Any]) -> None:
    assert the_problem({"unmatched": "requireWrites", "rules": [by_time("http.*:*")], **more}, pets()).where == where


# names of sources, and the toolsets


def test_a_name_is_of_the_kind_that_the_toolsets_show() -> None:
    problem = the_problem({"apis": ["petstore", "files"], "deny": ["files:*"]}, pets(), FILES)
    assert (problem.where, problem.message) == ("apis[1]", "'files' is an MCP server")
    problem = the_problem({"mcpServers": ["petstore"], "deny": ["petstore.get:*"]}, pets(), FILES)
    assert (problem.where, problem.message) == ("mcpServers[0]", "'petstore' is an API")
    problem = the_problem({"apis": ["petstore"], "mcpServers": ["petstore"]}, pets(), FILES)
    assert (problem.where, problem.message) == ("mcpServers[0]", "'petstore' is an API")
    problem = the_problem({"apis": ["files"], "mcpServers": ["files"]}, pets(), FILES)
    assert (problem.where, problem.message) == ("apis[0]", "'files' is an MCP server")
    assert ApprovalConfig.parse({"apis": ["petstore"], "mcpServers": ["files"]}, [pets(), FILES]).apis == ("petstore",)


def test_toolsets_bring_their_names_and_methods_and_a_config_without_them_names_its_own() -> None:
    data = {"deny": ["petstore.delete:*", "files:wipe_*", "petstore:create*"]}
    assert len(ApprovalConfig.parse(data, [pets(), FILES]).deny) == 3
    assert [problem.where for problem in problems(data)] == ["deny[0]", "deny[1]", "deny[2]"]
    assert len(ApprovalConfig.parse({**data, "apis": ["petstore"], "mcpServers": ["files"]}).deny) == 3
    ApprovalConfig.parse({"deny": ["http.purge:/pets"]}, [api(purgePets="purge /pets")])
    assert the_problem({"deny": ["http.purge:/pets"]}, pets()).where == "deny[0]"


@pytest.mark.parametrize("wrong", [{"apis": ["Petstore "]}, {"apis": "petstore"}, {"api": ["petstore"]}])
def test_patterns_of_an_api_whose_name_is_wrong_are_no_fault_of_their_own(wrong: dict[str, Any]) -> None:
    data = {**wrong, "requireApproval": ["petstore.post:*"], "exempt": ["http.post:/pets"]}
    assert the_problem(data).where == next(iter(wrong)) + ("[0]" if wrong.get("apis") == ["Petstore "] else "")
    assert [problem.where for problem in problems({**data, "deny": ["http.pots:/x"]})][-1] == "deny[0]"


def test_tools_that_could_be_taken_for_something_else_are_refused_before_the_config() -> None:
    with pytest.raises(RegistrationError):
        ApprovalConfig.parse({}, [ToolList("mcp", ["http.get:x"])])


# all problems at once, and never a config with one


def test_every_problem_of_a_config_is_told_at_once_as_json_ready_data() -> None:
    found = problems(
        {
            "requireApproval": ["http.post:*", "htp:x", "http.post:*"],
            "exempt": ["http.post:*"],
            "rules": [{"match": "a", "timeoutPolicy": "ABORT", "pauseReason": "x" * 501}, {"match": "a"}],
            "maxPausesPerTurn": 99,
            "onNoProgres": "ABORT",
        }
    )
    assert {problem.where for problem in found} == {
        *("requireApproval[1]", "requireApproval[2]", "requireApproval[0]", "maxPausesPerTurn", "onNoProgres"),
        *("rules[0].timeoutPolicy", "rules[0].pauseReason", "rules[1].match"),
    }
    assert len(found) == 8
    told = [problem.to_dict() for problem in found]
    assert json.loads(json.dumps(told)) == told
    assert all(entry["message"] for entry in told)


def places(data: Any, place: Place = ()) -> Iterator[Place]:
    """Every place in data, the data itself left out."""
    for part, item in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*place, part)
        yield from places(item, (*place, part))


def with_value(data: Any, place: Place, change: Callable[[Any, Any], None]) -> Any:
    """A copy in which what holds a place was changed."""
    here = changed = deepcopy(data)
    for part in place[:-1]:
        here = here[part]
    change(here, place[-1])
    return changed


@settings(max_examples=200)
@given(configs(), st.data())
def test_one_damaged_value_is_one_problem_at_its_place(data: dict[str, Any], choice: st.DataObject) -> None:
    place = choice.draw(st.sampled_from(list(places(data))))
    damage = choice.draw(st.sampled_from([None, {}, 1.5, "", b"x", object()]))
    problem = the_problem(with_value(data, place, lambda here, part: here.__setitem__(part, damage)))
    assert parts(problem.where)[: len(place)] == place


@settings(max_examples=200)
@given(configs(), st.data())
def test_one_misspelt_key_is_one_problem_with_the_key_that_was_meant(
    data: dict[str, Any], choice: st.DataObject
) -> None:
    place = choice.draw(st.sampled_from([place for place in places(data) if isinstance(place[-1], str)]))
    key = str(place[-1])
    misspelt = choice.draw(st.sampled_from([key[0] + key, key[1] + key[0] + key[2:], key.upper()]))
    problem = the_problem(with_value(data, place, lambda here, part: here.update({misspelt: here.pop(part)})))
    assert parts(problem.where) == (*place[:-1], misspelt)
    assert problem.suggestion == key


@settings(max_examples=150)
@given(mappings)
def test_any_data_is_a_config_or_problems_that_can_be_shown(data: dict[Any, Any]) -> None:
    try:
        config = ApprovalConfig.parse(data, TOOLSETS)
    except ApprovalConfigError:
        found = problems(data, *TOOLSETS)
        assert found
        for problem in found:
            json.dumps(problem.to_dict())
            assert problem.message
            for text in (problem.message, problem.where, problem.hint, problem.excerpt):
                assert text.isprintable()
                assert len(text) < 400
    else:
        assert ApprovalConfig.parse(config.to_dict(), TOOLSETS) == config


@given(configs())
def test_a_config_is_written_as_it_is_read(data: dict[str, Any]) -> None:
    config = ApprovalConfig.parse(data)
    written = json.loads(json.dumps(config.to_dict()))
    assert ApprovalConfig.parse(written) == config
    # Durations may be written another way, empty lists but `requireApproval` say nothing.
    assert set(written) == {key for key, value in data.items() if value != [] or key == "requireApproval"}
    for config in (ApprovalConfig(), ApprovalConfig.off()):
        assert ApprovalConfig.parse(config.to_dict()) == config


def test_a_key_that_no_known_one_is_near_is_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[object] = []
    monkeypatch.setattr(values, "edits", lambda *words: compared.append(words) or 99)
    with pytest.raises(ApprovalConfigError) as raised:
        ApprovalConfig.parse({"x" * 31: 1, "y" * 63: 1, "z" * 1000: 1})
    assert [problem.message for problem in raised.value.problems] == ["there is no such key"] * 3
    assert compared == []


def test_ten_thousand_entries_in_every_list_are_read() -> None:
    size = 10_000  # where every entry is compared with every other, longer than a test may take
    lists = {"requireApproval": "*", "exempt": "get", "deny": "put", "destructive": "post"}
    good = {key: [f"http.{method}:/a{number}/*" for number in range(size)] for key, method in lists.items()}
    matches = [f"http.post:/a{number}" for number in range(size)]
    ApprovalConfig.parse(
        {
            **good,
            "rules": [{"match": match, "approvers": ["alice"]} for match in matches],
            "approvers": [f"person-{number}" for number in range(size)],
            "apis": [f"a{number}" for number in range(size)],
        }
    )
    wrong = {"unmatched": "require", "rules": [{"match": match, "pauseReason": ""} for match in matches]}
    assert len(problems(wrong)) == size


# files

YAML = """\
# who may do what
$schema: approvals.schema.json
requireApproval:
  - http.post:*
  - http.delete:*
exempt: [http.post:/pets/search]
rules:
  - match: http.delete:*
    approvers: [role:admin]
approvalTimeout: PT30M
timeoutPolicy: AUTO_REJECT
"""


def test_a_file_of_yaml_or_json_says_what_its_mapping_says(tmp_path: Path) -> None:
    expected = ApprovalConfig.parse(yaml.safe_load(YAML))
    (tmp_path / "a.yaml").write_text(YAML)
    (tmp_path / "a.json").write_text(json.dumps(yaml.safe_load(YAML)))
    assert ApprovalConfig.load(tmp_path / "a.yaml") == expected
    assert ApprovalConfig.load(str(tmp_path / "a.json")) == expected


def test_each_problem_of_a_file_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(YAML.replace("http.delete:*\ne", "http.delete:\ne").replace("PT30M", "30m") + "maxPauses: 1\n")
    with pytest.raises(ApprovalConfigError) as caught:
        ApprovalConfig.load(path)
    assert [(one.file, one.line, one.where) for one in caught.value.problems] == [
        (str(path), 12, "maxPauses"),
        (str(path), 5, "requireApproval[1]"),
        (str(path), 10, "approvalTimeout"),
    ]
    assert f"{path}: the approval config has 3 problems" in str(caught.value)
    assert f"{path}:10: approvalTimeout: " in str(caught.value)


def test_a_file_is_checked_against_the_toolsets(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "unmatched: require\nrules:\n- match: http:*\n  timeoutPolicy: AUTO_APPROVE\n  approvalTimeout: PT5M\n"
    )
    ApprovalConfig.load(path)
    with pytest.raises(ApprovalConfigError, match="would reach deletePet"):
        ApprovalConfig.load(path, [pets()])


def test_a_json_file_cut_short_anywhere_is_never_a_config(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    text = json.dumps({"unmatched": "allow", "deny": ["send_mail"], "maxPausesPerTurn": 10}, indent=1)
    for length in range(len(text)):
        path.write_text(text[:length])
        with pytest.raises(SourceError):
            ApprovalConfig.load(path)
    path.write_text(text)
    assert ApprovalConfig.load(path).deny


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"\n",
            b"---\n",
            b"# nothing\n",
            b"\x00\x00\x00",
            b"\xff\xfe\x00",
            b"requireApproval: [http.po",
            b"\x89PNG",
        ),
        b"requireApproval: [http.post:*]\nrequireApproval: []\n",
        b"deny: [a]\n---\nrequireApproval: []\n",
        b"deny: &a [*a]\n",
        b"!!python/object:os.system {}\n",
    ],
)
def test_a_file_without_a_config_in_it_is_an_error_and_never_no_config(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(SyntaxFault):
        ApprovalConfig.load(path)


def test_a_file_that_is_not_there_or_no_file_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path, "http://127.0.0.1:9/a.yaml"):
        with pytest.raises(SourceError):
            ApprovalConfig.load(path)


@pytest.mark.parametrize(
    "text",
    [
        *[f"allowSelfApproval: {word}\n" for word in ("yes", "on", "y", "True_", "~")],
        *[f"requireApproval: {word}\n" for word in ("", "~", "null", "off", "no")],
        *[f"unmatched: {word}\n" for word in ("off", "no", "", "'allow '")],
        *("null\n", "[]\n", "off\n"),
    ],
)
def test_words_that_some_parsers_take_for_something_else_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(ApprovalConfigError):
        ApprovalConfig.load(path)


# what may go ahead and should be read


@pytest.mark.parametrize(
    ("data", "where", "hint"),
    [
        ({"requireApproval": ["http*"]}, "requireApproval[0]", "http*:*"),
        ({"requireApproval": ["a", "*post*"]}, "requireApproval[1]", "*.*post*:*"),
        ({**WRITES, "rules": [{"match": "mcp*"}]}, "rules[0].match", "mcp*:*"),
        ({"deny": ["http*"]}, "deny[0]", "http*:*"),
        ({**WRITES, "approvalTimeout": "PT5M"}, "approvalTimeout", "timeoutPolicy"),
        (
            {**WRITES, "approvalTimeout": "PT5M", "timeoutPolicy": "WAIT_INDEFINITELY"},
            "approvalTimeout",
            "timeoutPolicy",
        ),
        ({**WRITES, "rules": [{"match": "a", "approvalTimeout": "PT5M"}]}, "rules[0].approvalTimeout", "timeoutPolicy"),
        (
            {**WRITES, "approvalTimeout": "PT5M", "rules": [by_time("a")]},
            "approvalTimeout",
            "timeoutPolicy",
        ),
        ({"unmatched": "allow", "approvers": ["alice"]}, "approvers", "requireApproval"),
        ({"unmatched": "allow", "destructive": ["a"]}, "destructive", "requireApproval"),
        ({"requireApproval": [], "maxAutoApprovalsPerTurn": 0}, "maxAutoApprovalsPerTurn", "requireApproval"),
        ({"unmatched": "deny", "pauseReason": "x"}, "pauseReason", "requireApproval"),
    ],
)
def test_what_is_probably_not_meant_is_a_warning(data: dict[str, Any], where: str, hint: str) -> None:
    (warning,) = ApprovalConfig.parse(data).warnings
    assert warning.where == where
    assert hint in warning.hint


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"requireApproval": ["*", "delete_*", "*_delete", "http:*", "http.*:*"]},
        {"approvers": ["alice"], "destructive": ["a"], "pauseReason": "x"},
        {"unmatched": "allow", "deny": ["a"]},
        {**WRITES, "approvalTimeout": "PT5M", "rules": [{"match": "a", "timeoutPolicy": "ABORT"}]},
        {
            **WRITES,
            "approvalTimeout": "PT5M",
            "timeoutPolicy": "ABORT",
            "rules": [{"match": "a", "approvalTimeout": "PT9M"}],
        },
    ],
)
def test_what_is_meant_is_none(data: dict[str, Any]) -> None:
    assert ApprovalConfig.parse(data).warnings == ()


def test_a_name_with_a_colon_is_an_approvers_name_unless_it_is_nearly_a_role() -> None:
    names = ["auth0|7", "mailto:a@b.example", "rate:x", "urn:user:7"]
    assert ApprovalConfig.parse({"approvers": names}).approvers == tuple(names)


def test_one_problem_is_told_as_one() -> None:
    with pytest.raises(ApprovalConfigError, match=r"^the approval config has 1 problem\n"):
        ApprovalConfig.parse({"unmatched": 3})


@pytest.mark.parametrize("text", ["exempt: [http.get:/x/{y}]\n", "exempt:\n- *:*\n"])
def test_a_pattern_that_yaml_reads_as_something_else_is_told_to_stand_in_quotes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "approvals.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        ApprovalConfig.load(path)
    assert caught.value.message == f"{path} is not valid YAML"
    assert {problem.hint for problem in caught.value.problems} == {
        "in YAML a pattern stands in quotes where it begins with *, and within [ ] where it has braces"
    }


def test_a_value_that_no_file_could_hold_is_told_as_that() -> None:
    (problem,) = problems({"maxPausesPerTurn": object()})
    assert problem.message == "expected a whole number from 1 to 10, this is none of what YAML and JSON have"
