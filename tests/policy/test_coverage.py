"""What coverage says of tools, and what it finds wrong: each finding where it belongs, and not one step beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_documents import document, made
from small_policies import api, pets

from toolgen.findings import Finding, to_sarif
from toolgen.policy.address import ToolList
from toolgen.policy.checks import RULES
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.coverage import Coverage, coverage
from toolgen.policy.patterns import Pattern
from toolgen.tools.generate import generate
from toolgen.tools.model import Toolset

PETSTORE = Path(__file__).parents[2] / "samples" / "petstore" / "petstore.yaml"
WRITES = ["http.post:*", "http.put:*", "http.patch:*", "http.delete:*"]
AGENTS = api(
    "agents",
    listAgents="get /agents",
    getAgent="get /agents/{agentId}",
    readStore="get /agentstore",
    getStoreItem="get /agentstore/items/{itemId}",
    createAgent="post /agents",
    updateAgent="put /agents/{agentId}",
    deleteAgent="delete /agents/{agentId}",
)
SLASHES = api("slashes", one="post /a", other="post /a/", third="post /A", read="get /b", readToo="get /b/")


def covered(config: dict[str, Any] | ApprovalConfig | None, *toolsets: Toolset | ToolList) -> Coverage:
    toolsets = toolsets or (pets(),)
    return coverage(ApprovalConfig.parse(config, toolsets) if isinstance(config, dict) else config, toolsets)


def found(rule: str, config: Any, *toolsets: Toolset | ToolList) -> list[Finding]:
    return [finding for finding in covered(config, *toolsets).findings if finding.rule == rule]


def places(rule: str, config: Any, *toolsets: Toolset | ToolList) -> list[tuple[str, str]]:
    """(level, place) of every finding of a rule."""
    return [(str(finding.level), finding.where) for finding in found(rule, config, *toolsets)]


def operation(method: str, path: str, **keys: Any) -> Toolset:
    return made(document({path: {method: {"responses": {"200": {"description": "ok"}}, **keys}}}), api="shop")


def test_every_tool_has_its_outcome_the_pattern_that_decided_and_what_holds_while_its_calls_wait() -> None:
    config = {
        "requireApproval": ["http.post:*"],
        "exempt": ["http:listPets"],
        "deny": ["http.delete:*"],
        "rules": [
            {"match": "http:*", "timeoutPolicy": "ABORT", "approvalTimeout": "PT5M", "approvers": ["ada", "role:vet"]}
        ],
    }
    result = covered(config)
    assert result.counts() == {"allowed": 2, "gated": 1, "denied": 1}
    told = {tool["name"]: tool for tool in result.to_dict()["tools"]}
    assert list(told) == ["listPets", "createPet", "getPet", "deletePet"]
    assert told["createPet"] == {
        "name": "createPet",
        "source": "petstore",
        "method": "post",
        "path": "/pets",
        "write": True,
        "destructive": False,
        "outcome": "gated",
        "reason": "http.post:*",
        "where": "requireApproval[0]",
        "rule": "http:*",
        "timeoutPolicy": "ABORT",
        "approvalTimeout": "PT5M",
        "approvalValidity": "PT1H",
        "approvers": [["ada", "role:vet"]],
        "allowSelfApproval": False,
    }
    reasons = {name: (tool["outcome"], tool["reason"], tool["where"]) for name, tool in told.items()}
    assert reasons["listPets"] == ("allowed", "http:listPets", "exempt[0]")
    assert reasons["getPet"] == ("allowed", "unmatched", "unmatched")
    assert reasons["deletePet"] == ("denied", "http.delete:*", "deny[0]")
    assert told["deletePet"]["destructive"] is True


def test_two_sources_that_share_a_name_each_have_the_outcome_of_their_own_tool() -> None:
    config = {"requireApproval": ["builtin:*"], "exempt": ["petstore:createPet"]}
    result = covered(config, pets(), ToolList("builtin", ["createPet"]))
    assert {tool.source: tool.outcome.name for tool in result.tools if tool.name == "createPet"} == {
        "petstore": "allowed",
        "builtin": "gated",
    }


@pytest.mark.parametrize(
    "config", [{"requireApproval": WRITES, "exempt": ["http.get:*"]}, None], ids=["config", "none"]
)
def test_a_config_that_gates_writes_and_lets_reads_run_has_no_error_or_warning(config: Any) -> None:
    assert covered(config, generate(PETSTORE)).findings == ()


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        ("http.get:/agents/{id}", "http.get:/agents/{agentId}"),
        ("*.get:/agents/{id}", "*.get:/agents/{agentId}"),
        ("http.get:/Agents", "http.get:/agents"),
        ("http.get:/agents/", "http.get:/agents"),
        ("http.patch:/agents/{id}", "http.put:/agents/{agentId}"),
        ("http.get:/Agents/{x}/", "http.get:/agents/{agentId}"),
        ("http.delete:/agents/{x}", "http.delete:/agents/{agentId}"),
        ("http.get:/agent", "http.get:/agents"),
        ("http.get:/agnetstore/items/{itemId}", "http.get:/agentstore/items/{itemId}"),
        ("http.get:/agentstore/item/*", "http.get:/agentstore/items/*"),
        ("http.get:/AGENTST*", "http.get:/agentst*"),
        ("http.get:/*/{id}", "http.get:/agents/{agentId}"),
        ("http.get:/agentstore/items/{id}*", "http.get:/agentstore/items/{itemId}*"),
        ("http:createAgnet", "http:createAgent"),
        ("http:create_agent", "http:createAgent"),
        ("create_agent", "createAgent"),
        ("http:Create*", "http:create*"),
    ],
)
def test_a_pattern_without_a_tool_names_the_nearest(pattern: str, suggestion: str) -> None:
    for config in ({"requireApproval": [pattern]}, {"deny": [pattern]}, {"destructive": [pattern]}):
        (finding,) = found("pattern-matches-nothing", config, AGENTS)
        assert (finding.level, finding.where) == ("warning", f"{next(iter(config))}[0]")
        assert finding.suggestion == suggestion
        assert f"write {suggestion};" in finding.hint


def test_every_nearest_pattern_matches_a_tool() -> None:
    words = ["agents", "Agents", "agent", "agentstore", "agnetstore", "items", "item"]
    methods = ["get", "post", "put", "delete", "*"]
    patterns = [
        f"http.{method}:/{one}{rest}" for method in methods for one in words for rest in ("", "/", "/{x}", "*{x}")
    ]
    result = found("pattern-matches-nothing", {"requireApproval": patterns}, AGENTS)
    suggested = [finding.suggestion for finding in result if finding.suggestion]
    assert len(suggested) > 40
    assert found("pattern-matches-nothing", {"requireApproval": list(dict.fromkeys(suggested))}, AGENTS) == []


def test_the_nearest_tool_is_one_of_the_source_that_has_it() -> None:
    config = {"requireApproval": ["files:createPet", "petstore.get:/files"]}
    toolsets = pets(), ToolList("mcp", ["read"], server="files"), api("disk", listFiles="get /files")
    hints = [finding.suggestion for finding in found("pattern-matches-nothing", config, *toolsets)]
    assert hints == ["petstore:createPet", "disk.get:/files"]


def test_of_several_near_tools_the_nearest_is_named() -> None:
    letters = api("letters", abcdef="get /x", bcdefh="get /y")
    for pattern, toolset, suggestion in [
        ("http:bcdefg", letters, "http:bcdefh"),
        ("http.post:/A/", SLASHES, "http.post:/a/"),
    ]:
        (finding,) = found("pattern-matches-nothing", {"requireApproval": [pattern]}, toolset)
        assert finding.suggestion == suggestion


@pytest.mark.parametrize(
    ("pattern", "differs"),
    [
        ("http.get:/agents/{id}", "the names of parameters"),
        ("http.get:/Agents/{x}/", "the names of parameters and upper and lower case and a slash at the end"),
        ("http.get:/agents/", "a slash at the end"),
        ("http.patch:/agents/{agentId}", "what stands before the colon"),
        ("http:create_agent", "upper and lower case and separators"),
        ("http:createAgnet", "a few characters"),
    ],
)
def test_the_hint_says_in_what_the_nearest_tool_differs(pattern: str, differs: str) -> None:
    (finding,) = found("pattern-matches-nothing", {"requireApproval": [pattern]}, AGENTS)
    assert finding.hint.endswith(f"; they differ in {differs}")


def test_a_pattern_that_is_far_from_every_tool_suggests_none_of_them() -> None:
    config = {"requireApproval": ["http.get:/invoices/{id}", "http.post:/agnetstore"]}  # that is a GET
    result = found("pattern-matches-nothing", config, AGENTS)
    assert [(finding.suggestion, str(finding.level)) for finding in result] == [("", "warning")] * 2


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"requireApproval": ["mcp:*"]}, "requireApproval[0]"),
        ({"requireApproval": ["mcp:red_file"]}, "requireApproval[0]"),
        ({"deny": ["other.delete:/pets"], "apis": ["other"]}, "deny[0]"),
        ({"requireApproval": ["http.put:*"]}, "requireApproval[0]"),
        ({"requireApproval": ["http:*"], "rules": [{"match": "builtin:*"}]}, "rules[0].match"),
    ],
)
def test_what_speaks_of_a_source_that_is_not_here_or_of_a_whole_method_is_only_noted(config: Any, where: str) -> None:
    assert places("pattern-matches-nothing", config) == [("note", where)]


def test_a_pattern_that_matches_a_tool_is_not_said_to_match_nothing() -> None:
    config = {"requireApproval": ["http.post:/pets", "http:deletePet", "get*"], "exempt": ["petstore:listPets"]}
    assert found("pattern-matches-nothing", config) == []


@pytest.mark.parametrize(
    ("rule", "config", "expected"),
    [
        (
            "exemption-never-applies",
            {"requireApproval": ["http:*"], "exempt": ["http.delete:/pets/*", "http.get:*"], "deny": ["http.delete:*"]},
            [("warning", "exempt[0]")],
        ),
        (
            "exemption-never-applies",
            {"requireApproval": ["http:*"], "exempt": ["http.*:/pets/*"], "deny": ["http.delete:*"]},
            [],
        ),
        (
            "pattern-shadowed",
            {"requireApproval": ["http.get:/pets", "http.post:*"], "exempt": ["http.get:*"]},
            [("warning", "requireApproval[0]")],
        ),
        (
            "pattern-shadowed",  # said once, though the other entry matches its tool as well
            {"requireApproval": ["http.get:/pets", "http.*:/pets"], "exempt": ["http.get:*"]},
            [("warning", "requireApproval[0]")],
        ),
        (
            "pattern-shadowed",
            {"requireApproval": ["http.*:/pets"], "exempt": ["http.get:*"]},  # createPet waits
            [],
        ),
        (
            "pattern-shadowed",
            {"requireApproval": ["http.post:/pets", "http.post:*", "http.delete:*"]},
            [("note", "requireApproval[0]")],
        ),
        (
            "pattern-shadowed",  # both match one tool: the broader stays
            {"requireApproval": ["http.post:*", "http:createPet"]},
            [("note", "requireApproval[1]")],
        ),
        (
            "pattern-shadowed",  # what two entries match together, each of them in part
            {"deny": ["http.*:/pets", "http.get:*", "http.delete:*"]},
            [],
        ),
        (
            "rule-never-applies",
            {"requireApproval": ["http.post:*"], "rules": [{"match": "http.get:*"}, {"match": "http.post:*"}]},
            [("warning", "rules[0].match")],
        ),
        (
            "rule-never-applies",
            {
                "requireApproval": ["http:*"],
                "rules": [{"match": "http.*:*"}, {"match": "http.*:/pets"}, {"match": "http.*:/pets/{petId}"}],
            },
            [("warning", "rules[0].match")],
        ),
        (
            "rule-never-applies",  # its approvers hold for the more specific rules as well
            {
                "requireApproval": ["http:*"],
                "rules": [
                    {"match": "http.*:*", "approvers": ["ada"]},
                    {"match": "http.*:/pets"},
                    {"match": "http.*:/pets/{petId}"},
                ],
            },
            [],
        ),
        (
            "rule-never-applies",  # and so does what it forbids
            {
                "requireApproval": ["http:*"],
                "rules": [{"match": "http.*:*", "allowSelfApproval": False}, {"match": "http.*:/pets*"}],
            },
            [],
        ),
        (
            "rule-never-applies",  # but not where those name their own
            {
                "requireApproval": ["http:*"],
                "rules": [
                    {"match": "http.*:*", "approvers": ["ada"]},
                    {"match": "http.*:/pets*", "approvers": ["bob"]},
                ],
            },
            [("warning", "rules[0].match")],
        ),
        (
            "rule-auto-approves",
            {
                "requireApproval": ["http.post:*"],
                "rules": [{"match": "http:createPet", "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}],
            },
            [("note", "rules[0].timeoutPolicy")],
        ),
        (
            "rule-auto-approves",
            {
                "requireApproval": ["http.post:*"],
                "rules": [{"match": "http:createPet", "timeoutPolicy": "AUTO_REJECT", "approvalTimeout": "PT5M"}],
            },
            [],
        ),
    ],
)
def test_entries_that_do_nothing(rule: str, config: Any, expected: list[tuple[str, str]]) -> None:
    assert places(rule, config) == expected


def test_a_write_that_runs_ungated_is_an_error_that_says_what_to_write() -> None:
    config = {"requireApproval": ["http.delete:*"], "unmatched": "allow", "exempt": ["http:createPet"]}
    toolsets = pets(), ToolList("mcp", ["send_mail"], server="mail"), api("shop", order="put /orders/{id}")
    result = found("write-ungated", config, *toolsets)
    assert [(str(one.level), one.where, one.suggestion) for one in result] == [
        ("error", "unmatched", "mcp:send_mail"),
        ("error", "unmatched", "shop.put:/orders/{id}"),
    ]
    fixed = {**config, "requireApproval": ["http.delete:*", *(one.suggestion for one in result)]}
    assert found("write-ungated", fixed, *toolsets) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"requireApproval": []}, "requireApproval"),
        ({"unmatched": "allow"}, "unmatched"),
        (ApprovalConfig.off(), "requireApproval"),
        ({"requireApproval": [], "deny": ["http.post:*", "http.delete:*"]}, None),
        ({"requireApproval": [], "unmatched": "requireWrites"}, None),
        ({"unmatched": "deny"}, None),
        (None, None),
    ],
)
def test_a_gate_that_is_off_is_one_error_for_all_writes_that_run(config: Any, expected: str | None) -> None:
    result = found("write-ungated", config)
    assert [finding.where for finding in result] == ([] if expected is None else [expected])
    for finding in result:
        assert finding.level == "error"
        assert "2 writes" in finding.message
        assert "createPet, deletePet" in finding.message


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [("listPets", "http:listPets"), ("get*", "http:get*"), ("http:listPets", None), ("http.get:*", None)],
)
def test_an_exemption_without_a_source_is_a_warning_that_has_the_pattern_with_it(
    pattern: str, suggestion: str | None
) -> None:
    result = found("exemption-by-name", {"requireApproval": ["http:*"], "exempt": [pattern]})
    assert [(finding.where, finding.suggestion) for finding in result] == (
        [("exempt[0]", suggestion)] if suggestion else []
    )
    assert found("exemption-by-name", {"requireApproval": [pattern]}) == []


def test_an_exemption_by_name_that_matches_tools_of_several_sources_names_each() -> None:
    config = {"requireApproval": ["*"], "exempt": ["list*"]}
    (finding,) = found("exemption-by-name", config, pets(), AGENTS, ToolList("builtin", ["listFiles"]))
    assert finding.hint == "write petstore:list* and agents:list* and builtin:list*"
    assert finding.suggestion == ""


@pytest.mark.parametrize(
    ("path", "keys", "word"),
    [
        ("/pets", {"operationId": "deletePets"}, "'delete' at the start of its operationId"),
        ("/pets", {"operationId": "GET_CreatePet"}, "'create'"),
        ("/pets/{id}/cancel", {"operationId": "x"}, "'cancel' in its path"),
        ("/pets:revoke", {"operationId": "x"}, "'revoke' in its path"),
        ("/delete/pets/{id}", {"operationId": "x"}, "'delete' in its path"),
        ("/jobs/{id}/start", {"operationId": "x"}, "'start' in its path"),
        ("/bot/sendMessage", {"operationId": "x"}, "'send' in its path"),
        ("/pets", {"operationId": "x", "summary": "Deletes a pet."}, "'delete' at the start of its summary"),
        ("/pets", {"operationId": "x", "summary": "Publishes pets"}, "'publish' at the start of its summary"),
        ("/pets", {"operationId": "x", "summary": "Update the pet"}, "'update' at the start of its summary"),
        ("/pets", {"operationId": "runJob"}, "'run' at the start of its operationId"),
    ],
)
def test_a_read_that_says_it_changes_something_is_a_warning_with_the_word(path: str, keys: Any, word: str) -> None:
    toolset = operation("get", path, **keys)
    (finding,) = found("read-that-writes", None, toolset)
    assert finding.level == "warning"
    assert word in finding.message
    pattern = f"http.get:{path}"
    assert finding.suggestion == pattern
    for settled in (
        {"requireApproval": [pattern]},
        {"deny": [pattern]},
        {"requireApproval": ["http.post:*"], "exempt": [pattern]},
    ):
        assert found("read-that-writes", settled, toolset) == []
    by_all_reads = {"requireApproval": ["http.post:*"], "exempt": ["http.get:*"]}
    assert places("read-that-writes", by_all_reads, toolset) == [("warning", "exempt[0]")]


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/pets", {"operationId": "listDeletedPets", "summary": "Lists deleted pets"}),
        ("/pets", {"operationId": "update"}),
        ("/updates", {"operationId": "updates", "summary": "Updates of the pets"}),
        ("/runs/{run}", {"operationId": "run_get", "summary": "Run details"}),
        ("/sets/set/{id}", {"operationId": "setList"}),
        ("/update-history", {"operationId": "updateHistory", "summary": "Update history"}),
        ("/start/{id}/logs", {"operationId": "startLogs"}),
        ("/creators/{id}", {"operationId": "creators", "summary": "Creators"}),
        ("/pets/{delete}", {"operationId": "pets"}),
    ],
)
def test_a_read_that_only_speaks_of_changes_is_no_finding(path: str, keys: Any) -> None:
    assert found("read-that-writes", None, operation("get", path, **keys)) == []


def test_a_read_that_counts_as_destructive_is_a_write_that_runs_ungated() -> None:
    assert found("read-that-writes", {"unmatched": "allow"}, operation("post", "/pets/delete")) == []
    marked = {"destructive": ["http:getPet"], "requireApproval": ["http.post:*", "http.delete:*"], "unmatched": "allow"}
    (finding,) = found("write-ungated", marked)
    assert (finding.level, finding.suggestion) == ("error", "http.get:/pets/{petId}")
    assert found("read-that-writes", marked) == []
    assert found("write-ungated", {**marked, "exempt": ["http.get:*"]}) == []


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"requireApproval": ["http.post:/a"], "unmatched": "allow"}, ["http.post:/a/", "http.post:/A"]),
        ({"requireApproval": ["http.post:/a/"], "unmatched": "allow"}, ["http.post:/a", "http.post:/A"]),
        ({"requireApproval": ["http.post:/a"]}, []),  # a write waits anyway
        ({"requireApproval": ["http.post:/a", "http.post:/A"], "unmatched": "allow"}, ["http.post:/a/"]),
        ({"requireApproval": ["http.get:/b"]}, ["http.get:/b/"]),
        ({"requireApproval": ["http.get:/b*"]}, []),
        ({"requireApproval": ["http.get:/b*"], "deny": ["http.get:/b/"]}, ["http.get:/b"]),  # of the denial
        ({"deny": ["http.post:/a"]}, ["http.post:/a/", "http.post:/A"]),
        (
            {"requireApproval": ["http.post:/a"], "deny": ["http:one"]},
            ["http.post:/a/", "http.post:/A"],
        ),  # of the denial
        ({"deny": ["http.post:/a*"]}, ["http.post:/A"]),
        ({"deny": ["http.post:*"]}, []),
        ({"requireApproval": ["http.post:*"], "exempt": ["http.post:/a"]}, []),
        ({"requireApproval": ["http.post:/a", "http.delete:*"], "exempt": ["http.post:/*"], "unmatched": "allow"}, []),
        ({"destructive": ["http.post:/a"]}, ["http.post:/a/", "http.post:/A"]),
        ({"destructive": ["http.post:/a", "http.post:/a/", "http.post:/A"]}, []),
    ],
)
def test_an_endpoint_that_a_server_may_take_for_a_guarded_one_and_is_guarded_less(
    config: dict[str, Any], expected: list[str]
) -> None:
    result = [one for rule in ("endpoint-one-slash-away", "case-differs") for one in found(rule, config, SLASHES)]
    assert [one.suggestion for one in result] == expected
    for finding in result:
        key = finding.where.removesuffix("[0]")
        assert (finding.level, finding.rule == "case-differs") == ("warning", finding.suggestion.endswith("A"))
        fixed = {**config, key: [*config[key], finding.suggestion]}
        assert finding.suggestion not in [one.suggestion for one in found(finding.rule, fixed, SLASHES)]


@pytest.mark.parametrize(
    "pattern",
    [
        "http.get:/agents*",
        "http.get:/agent*",  # nothing is called so: a beginning is meant
        "http.get:/agents/*",
        "http.get:/agents",
        "http.get:*",
        "http:get*",
    ],
)
def test_an_exemption_that_stays_within_its_segment_is_no_finding(pattern: str) -> None:
    config = {"requireApproval": ["http:*"], "exempt": [pattern]}
    toolset = api("agents", a="get /agents", b="get /agents/{id}", c="get /agents/", d="get /stores")
    assert found("exemption-reaches-further", config, toolset) == []


def test_an_exemption_that_reaches_a_longer_segment_names_both() -> None:
    toolset = api("agents", a="get /agents", b="get /agents/{id}", c="get /agentstore", d="get /agents-old/{id}")
    config = {"requireApproval": ["http:*"], "exempt": ["http.get:/agents*"]}
    (finding,) = found("exemption-reaches-further", config, toolset)
    assert (finding.level, finding.where) == ("warning", "exempt[0]")
    assert "not only /agents but /agents-old/{id}, /agentstore as well" in finding.message
    assert (
        found(
            "exemption-reaches-further", {**config, "deny": ["http.get:/agents-old/*", "http.get:/agentst*"]}, toolset
        )
        == []
    )
    narrow = {**config, "exempt": ["http.get:/agents", "http.get:/agents/*"]}
    assert found("exemption-reaches-further", narrow, toolset) == []


def test_a_name_that_looks_like_a_source_or_method_names_what_it_misses_and_the_colon_form() -> None:
    config = {"requireApproval": ["*post*", "delete*"]}
    (finding,) = found("form-matches-less", config)
    assert (finding.level, finding.where) == ("warning", "requireApproval[0]")
    assert "createPet" in finding.message
    assert "deletePet" not in finding.message
    assert Pattern(finding.suggestion).text in finding.hint
    assert found("form-matches-less", {"requireApproval": [finding.suggestion, "delete*"]}) == []
    # The same is a warning of the config, which knows no tools; it is told once.
    assert [problem.where for problem in ApprovalConfig.parse(config).warnings] == ["requireApproval[0]"]
    assert found("config-doubtful", config) == found("pattern-matches-nothing", config) == []


def test_what_the_colon_forms_match_by_name_as_well_is_no_finding() -> None:
    assert found("form-matches-less", {"requireApproval": ["*post*"]}, api("blog", postEntry="post /x")) == []


def test_a_shared_endpoint_and_a_shared_name_are_noted_once_for_the_sources_that_share_them() -> None:
    one = api("first", listPets="get /pets", addPet="post /pets")
    other = api("second", listPets="get /pets", makePet="post /pets", own="get /own")
    (shared,) = found("endpoint-shared", None, one, other)
    assert (shared.level, shared.message) == ("note", "first and second share 2 endpoints: get:/pets, post:/pets")
    (name,) = found("name-shared", None, one, other)
    assert (name.level, name.message) == ("note", "first and second share 1 tool name: listPets")
    for rule in ("endpoint-shared", "name-shared"):
        assert found(rule, None, one, api("third", own="get /own")) == []


def test_warnings_of_the_config_are_findings() -> None:
    config = {"requireApproval": [], "destructive": ["http.delete:*"]}
    (finding,) = found("config-doubtful", config)
    assert (finding.level, finding.where) == ("warning", "destructive")


def test_a_config_that_could_not_be_read_is_one_error() -> None:
    result = covered(ApprovalConfig.unreadable("line 3"))
    assert [(finding.rule, str(finding.level)) for finding in result.findings] == [("config-unreadable", "error")]
    assert "line 3" in result.findings[0].message
    assert result.counts() == {"allowed": 0, "gated": 4, "denied": 0}


def test_findings_are_ordered_by_level_and_place_and_come_out_alike_each_time() -> None:
    config = {
        "requireApproval": ["http.patch:/x", "http.delete:/pets", "http.get:/pets", "mcp:*"],
        "exempt": ["list*"],
        "deny": ["http.head:/y"],
        "unmatched": "allow",
        "rules": [{"match": "http.put:/z"}],
    }
    result = covered(config)
    assert [(str(finding.level), finding.where) for finding in result.findings] == [
        ("error", "unmatched"),
        ("error", "unmatched"),
        ("warning", "requireApproval[0]"),
        ("warning", "requireApproval[1]"),
        ("warning", "requireApproval[2]"),
        ("warning", "exempt[0]"),
        ("warning", "deny[0]"),
        ("warning", "rules[0].match"),
        ("note", "requireApproval[3]"),
    ]
    assert covered(config).to_dict() == result.to_dict() == json.loads(json.dumps(result.to_dict()))


def test_every_rule_is_explained_in_a_sentence_and_every_finding_has_one() -> None:
    assert all(text.endswith(".") and text[0].isupper() for text in RULES.values())
    config = {"requireApproval": ["http.get:/pets"], "exempt": ["list*"], "unmatched": "allow"}
    result = covered(config).findings
    log = to_sarif(result, RULES, version="1")
    assert [one["ruleId"] for one in log["runs"][0]["results"]] == [finding.rule for finding in result]
    assert all("ruleIndex" in one for one in log["runs"][0]["results"])


def test_thousands_of_patterns_are_checked_against_a_thousand_tools() -> None:
    tools = {f"tool{n}": f"{('get', 'post', 'delete')[n % 3]} /area{n % 40}/thing{n}/{{id}}" for n in range(1000)}
    patterns = [
        *(f"http.get:/area{n % 40}/thing{n}/{{other}}" for n in range(1000)),
        *(f"http.*:/area{n % 50}/thnig{n}/*" for n in range(1000)),
        *(f"*{n}*thing" for n in range(200)),
        *(f"http.*:/area{n}*/*" for n in range(200)),
    ]
    toolset = api("large", **tools)
    config = ApprovalConfig.parse({"requireApproval": patterns}, [toolset])
    result = coverage(config, [toolset])  # where every pattern is compared with every tool, longer than a test may take
    assert sum(finding.rule == "pattern-matches-nothing" for finding in result.findings) > 2000


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"unmatched": "require", "exempt": ["http.*:*"]}, ["deletePet"]),
        (
            {"unmatched": "require", "exempt": ["http:*"], "destructive": ["http.post:/pets"]},
            ["createPet", "deletePet"],
        ),
        ({"unmatched": "require", "exempt": ["http.*:*"], "deny": ["http.delete:*"]}, []),
        ({"unmatched": "require", "exempt": ["http.get:*", "http.delete:/pets/{petId}"]}, []),
        ({"unmatched": "require", "exempt": ["http.*:/pets/{petId}"]}, ["deletePet"]),
    ],
)
def test_an_exemption_with_a_star_that_lets_destructive_calls_run_names_them(config: Any, names: list[str]) -> None:
    told = [finding.message for finding in found("exemption-of-destructive", config)]
    assert told == [f"{config['exempt'][0]} exempts {', '.join(names)}: destructive calls run"] * bool(names)
