from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_policies import ALL, calls_of, configs
from small_documents import document, said
from small_policies import api, classified, known, outcomes, pets

from toolgen.errors import PatternError, RegistrationError, ToolgenError
from toolgen.policy.address import ToolList
from toolgen.policy.config import ApprovalConfig, Unmatched
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import UNKNOWN_TOOL, Outcome, ToolCall
from toolgen.policy.patterns import Pattern
from toolgen.tools.generate import generate

OFF = ApprovalConfig.off()
FILES = ToolList("mcp", ["read_file", "write_file"], server="files")
AGENTS = api("agents", listAgents="get /agents", createAgent="post /agents", updateLlm="put /llmstore/llms/{id}")
READS = {"listPets": "allowed", "getPet": "allowed"}
WRITES = {"createPet": "gated", "deletePet": "gated"}


def call(name: Any, source: Any = None, id: Any = "1", arguments: Any = None) -> ToolCall:
    return ToolCall(id, name, arguments, source)


def told(config: Any, one: ToolCall, *toolsets: Any) -> tuple[str, str]:
    """The outcome and the reason of one call."""
    (found,) = classified(config, one, toolsets=toolsets).calls
    return found.outcome.name, found.reason


# What is gated


@pytest.mark.parametrize(
    ("config", "gated"),
    [
        ({"requireApproval": ["http.post:*", "http.put:*", "http.patch:*", "http.delete:*"]}, "createAgent updateLlm"),
        ({"requireApproval": ["http:*"], "exempt": ["http.get:*"]}, "createAgent updateLlm"),
        ({"requireApproval": ["http.put:/llmstore/llms/{id}"]}, "updateLlm"),
        ({"requireApproval": ["http.put:/llmstore/llms/7"]}, ""),  # the template is matched, not what is sent
        ({"requireApproval": ["agents:*"]}, "listAgents createAgent updateLlm"),
        ({"requireApproval": ["agents.get:*", "create*"]}, "listAgents createAgent"),
        ({"requireApproval": ["*"]}, "listAgents createAgent updateLlm"),
        ({"requireApproval": ["mcp:*"]}, ""),
    ],
)
def test_what_is_required_waits_in_the_order_of_the_batch_and_the_rest_runs(config: Any, gated: str) -> None:
    calls = [call(name, id=name) for name in ("listAgents", "createAgent", "updateLlm")]
    found = classified({**config, "unmatched": "allow"}, *calls, toolsets=[AGENTS])
    assert [one.name for one in found.gated] == gated.split()
    assert found.allowed == [one for one in calls if one not in found.gated]
    assert found.denied == []
    assert [one.call for one in found.calls] == calls


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, READS | WRITES),
        ({}, READS | WRITES),
        ({"requireApproval": ["getPet"]}, READS | WRITES | {"getPet": "gated"}),
        ({"unmatched": "requireWrites"}, READS | WRITES),
        ({"requireApproval": [], "unmatched": "requireWrites"}, READS | WRITES),
        ({"unmatched": "require"}, dict.fromkeys(READS | WRITES, "gated")),
        ({"unmatched": "deny", "exempt": ["getPet"]}, dict.fromkeys(READS | WRITES, "denied") | {"getPet": "allowed"}),
        ({"unmatched": "allow"}, dict.fromkeys(READS | WRITES, "allowed")),
        ({"requireApproval": []}, dict.fromkeys(READS | WRITES, "allowed")),
        ({"requireApproval": [], "unmatched": "allow"}, dict.fromkeys(READS | WRITES, "allowed")),
        (OFF, dict.fromkeys(READS | WRITES, "allowed")),
        (
            {"requireApproval": [], "deny": ["http.delete:*"]},
            dict.fromkeys(READS | WRITES, "allowed") | {"deletePet": "denied"},
        ),
        (ApprovalConfig.unreadable("gone"), dict.fromkeys(READS | WRITES, "gated")),
    ],
)
def test_only_a_config_that_says_so_is_off_and_then_its_denials_hold(config: Any, expected: dict[str, str]) -> None:
    assert outcomes(config, pets()) == expected


def test_reads_run_by_default_and_everything_that_may_change_something_waits() -> None:
    methods = ["get", "head", "options", "trace", "query", "put", "post", "delete", "patch", "m-search"]
    toolset = api("all", **{f"tool_{method.replace('-', '_')}": f"{method} /x" for method in methods})
    found = outcomes(None, toolset, FILES, ToolList("builtin", ["now"]))
    assert {name for name, outcome in found.items() if outcome == "allowed"} == {f"tool_{m}" for m in methods[:5]}
    assert set(found.values()) == {"allowed", "gated"}


# Which list wins, and the reason


@pytest.mark.parametrize("unmatched", list(Unmatched))
@pytest.mark.parametrize(
    ("lists", "outcome", "decides"),
    [
        (("deny", "exempt", "require_approval"), Outcome.denied, "deny"),
        (("deny", "exempt"), Outcome.denied, "deny"),
        (("deny", "require_approval"), Outcome.denied, "deny"),
        (("exempt", "require_approval"), Outcome.allowed, "exempt"),
        (("require_approval",), Outcome.gated, "requireApproval"),
    ],
)
def test_deny_beats_exempt_beats_require_beats_unmatched(
    unmatched: Unmatched, lists: tuple[str, ...], outcome: Outcome, decides: str
) -> None:
    texts = {"deny": "*Pet", "exempt": "http.post:/pets", "require_approval": "http:create*"}
    config = ApprovalConfig(unmatched=unmatched, **{key: (Pattern(texts[key]),) for key in lists})  # type: ignore[arg-type]
    result = Gate(config, pets()).classify([call("createPet")]).calls[0].result
    assert (result.outcome, result.reason, result.where) == (outcome, texts[lists[0]], f"{decides}[0]")


def test_the_reason_is_the_first_pattern_of_the_config_that_matches_as_it_is_written() -> None:
    written = ["mcp:*", "create**", "petstore:createPet", "http.post:/pets"]
    for first in range(1, 4):
        config = {"requireApproval": [written[0], *written[first:], *written[1:first]]}
        result = classified(config, call("createPet"), toolsets=[pets()]).calls[0].result
        assert (result.reason, result.where) == (written[first], "requireApproval[1]")
    assert told({"requireApproval": ["mcp:*"]}, call("createPet"), pets()) == ("gated", "unmatched")


@given(configs(), st.randoms())
def test_the_order_of_patterns_and_rules_never_changes_what_happens(config: ApprovalConfig, random: Any) -> None:
    def shuffled(items: tuple[Any, ...] | None) -> Any:
        return items if items is None else tuple(random.sample(items, len(items)))

    lists = ("require_approval", "exempt", "deny", "destructive", "rules")
    other = replace(config, **{name: shuffled(getattr(config, name)) for name in lists})
    one, two = Gate(config, ALL), Gate(other, ALL)
    for before, after in zip(one.tools, two.tools, strict=True):
        results = one.outcome_of(before), two.outcome_of(after)
        assert results[0].outcome is results[1].outcome
        assert results[0].terms == results[1].terms


@given(configs(), st.recursive(st.none() | st.text(), lambda some: st.lists(some) | st.dictionaries(st.text(), some)))
def test_arguments_and_ids_decide_nothing(config: ApprovalConfig, arguments: Any) -> None:
    gate, calls = Gate(config, ALL), calls_of(known(*ALL).values())
    others = [one._replace(arguments=arguments, id="x") for one in calls]
    assert [one.result for one in gate.classify(calls).calls] == [one.result for one in gate.classify(others).calls]


# Calls that name no tool, or more than one


@pytest.mark.parametrize("config", [None, OFF, {"requireApproval": ["*"]}, ApprovalConfig.unreadable("x")])
@pytest.mark.parametrize(
    ("name", "source"),
    [
        (None, None),
        (None, "http"),
        ("", None),
        ("nothing", None),
        ("ListPets", None),
        ("listPets ", None),
        ("listPets\n", None),
        ("list\u0440ets", None),
        ("petstore:listPets", None),
        ("http.get:/pets", None),
        ("listPets", ""),
        ("listPets", "mcp"),
        ("listPets", "HTTP"),
        ("listPets", "nowhere"),
        ("read_file", "petstore"),
        (["listPets"], None),
        ({"name": "listPets"}, None),
        (7, None),
        (True, None),
        ("listPets", ["http"]),
        ("listPets", {"http": 1}),
        ("listPets", 0),
        (b"listPets", None),
        ("x" * 1_000_000, "y" * 1_000_000),
    ],
)
def test_a_call_of_no_known_tool_is_refused_whatever_the_config(config: Any, name: Any, source: Any) -> None:
    found = classified(config, call(name, source), toolsets=[pets(), FILES])
    assert [one.id for one in found.denied] == ["1"]
    assert found.reasons == {"1": UNKNOWN_TOOL}
    (one,) = found.calls
    assert one.result.tool is None
    assert len(one.result.detail) < 600


def test_a_name_nested_beyond_all_depth_is_refused_without_reading_it() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert told(OFF, call(deep), pets()) == ("denied", UNKNOWN_TOOL)
    assert told(OFF, call("listPets", deep), pets()) == ("denied", UNKNOWN_TOOL)


def test_a_name_that_two_sources_have_must_come_with_one_that_tells_them_apart() -> None:
    toolsets = [pets(), api("zoo", listPets="delete /zoo"), ToolList("mcp", ["listPets"], server="files")]
    for config in (OFF, {"exempt": ["*"], "unmatched": "require"}):
        for source in (None, "http"):
            assert told(config, call("listPets", source), *toolsets) == ("denied", UNKNOWN_TOOL)
        assert told(config, call("listPets", "mcp"), *toolsets)[0] == "allowed"
    found = classified({}, *(call("listPets", one) for one in ("petstore", "zoo", "files", None)), toolsets=toolsets)
    assert [one.outcome.name for one in found.calls] == ["allowed", "gated", "gated", "denied"]
    assert found.calls[3].result.detail == (
        "petstore, zoo, files each have a tool 'listPets': a call of it names its source"
    )


def test_a_tool_that_no_source_tells_apart_is_refused_since_no_call_can_mean_it() -> None:
    gate = Gate(OFF, [ToolList("mcp", ["read_file"]), FILES])
    assert [gate.outcome_of(tool).outcome.name for tool in gate.tools] == ["denied", "allowed", "allowed"]
    found = gate.classify([call("read_file", "mcp"), call("read_file", "files")])
    assert [one.outcome.name for one in found.calls] == ["denied", "allowed"]


def test_an_exemption_for_one_source_says_nothing_of_a_tool_of_the_same_name_elsewhere() -> None:
    toolsets = [pets(), ToolList("mcp", ["createPet"])]
    config = {"requireApproval": ["*"], "exempt": ["http:createPet"]}
    assert told(config, call("createPet", "petstore"), *toolsets) == ("allowed", "http:createPet")
    assert told(config, call("createPet", "mcp"), *toolsets) == ("gated", "*")


def test_a_call_without_a_source_is_matched_by_the_source_and_endpoint_of_its_tool() -> None:
    assert told({"requireApproval": ["mcp:*"]}, call("read_file"), FILES) == ("gated", "mcp:*")
    assert told({"requireApproval": ["files:read_*"]}, call("read_file"), FILES) == ("gated", "files:read_*")
    assert told({"deny": ["petstore.get:*"]}, call("getPet"), pets()) == ("denied", "petstore.get:*")


@pytest.mark.parametrize("name", ["http.get:x", "http.get:/x", "read\nfile", "read file", "", "x" * 129, "r\u00e9ad"])
def test_a_tool_named_like_an_endpoint_or_with_hidden_characters_is_not_registered(name: str) -> None:
    with pytest.raises(RegistrationError):
        Gate(OFF, [ToolList("mcp", [name])])


def test_a_tool_whose_name_looks_like_the_beginning_of_an_endpoint_is_matched_by_its_name_only() -> None:
    tools = ToolList("mcp", ["http.get", "http"])
    config = {"requireApproval": ["*"], "exempt": ["http.get:*", "http:*", "*.*:*"]}
    assert outcomes(config, tools) == {"http.get": "gated", "http": "gated"}


# Ids


def test_a_call_id_clears_nothing_and_may_be_missing_repeated_or_no_text() -> None:
    gate = Gate(None, pets())
    calls = [
        call(name, id=one) for name, one in [("createPet", "1"), ("getPet", "1"), ("createPet", None), ("nix", ["x"])]
    ]
    for _ in range(2):  # nothing is remembered
        found = gate.classify(calls)
        assert found.gated == [calls[0], calls[2]]
        assert found.allowed == [calls[1]]
        assert found.denied == [calls[3]]
        assert found.reasons == {"1": "unmatched"}
    later = gate.classify([call("listPets", id="1"), call("x", id="1"), call("createPet", id="1")])
    assert later.reasons == {"1": UNKNOWN_TOOL}, "of calls that share an id the strictest tells the reason"


# Configs that cannot be read


def test_a_config_that_cannot_be_read_gates_every_known_tool_and_says_so() -> None:
    reason = "the approval config could not be read: line 3: no"
    for config in (
        ApprovalConfig.unreadable("line 3: no"),
        ApprovalConfig(unreadable_reason="line 3: no", exempt=(Pattern("*"),), unmatched=Unmatched.allow),
        ApprovalConfig(unreadable_reason="line 3: no", require_approval=()),
    ):
        assert {told(config, call(name), pets()) for name in READS | WRITES} == {("gated", reason)}
    assert set(outcomes(ApprovalConfig.unreadable(""), pets()).values()) == {"gated"}


@pytest.mark.parametrize(
    "text", ["requireApproval: [", "exempt: ['http.get:*']\nrequireApproval: ['*', 'http.pots:*']", "deny:", ""]
)
def test_a_config_with_a_fault_is_no_config(text: str, tmp_path: Path) -> None:
    (tmp_path / "approvals.yaml").write_text(text)
    with pytest.raises(ToolgenError) as raised:
        ApprovalConfig.load(tmp_path / "approvals.yaml")
    assert [bool(problem.line) for problem in raised.value.problems] == [True], "the line that keeps all of it from use"


# What documents say


def test_what_a_document_says_of_a_tool_never_loosens() -> None:
    toolset = pets()
    safe = {"read_only_hint": True, "destructive_hint": False, "idempotent_hint": True}
    tools = [
        tool.model_copy(update={"annotations": tool.annotations.model_copy(update=safe), "destructive": False})
        for tool in toolset.tools
    ]
    hinted = toolset.model_copy(update={"tools": tools})
    assert outcomes(None, hinted) == READS | WRITES
    gate = Gate(None, hinted)
    assert {tool.name for tool in gate.destructive} == {"deletePet"}


@pytest.mark.parametrize("path", ["//admin", "/%61dmin", "/admin?x=1", "https://h.example/admin", "/admin#x"])
def test_other_spellings_of_a_path_are_the_endpoint_that_patterns_name(path: str) -> None:
    toolset = generate(document({path: {"get": {"operationId": "admin"}}}), api="x")
    assert outcomes({"deny": ["http.get:/admin"]}, toolset) == {"admin": "denied"}


@pytest.mark.parametrize("path", ["/public/..%2fadmin", "/a/../admin", "/a%2Fb", "/./admin"])
def test_a_path_that_servers_could_read_differently_is_no_tool(path: str) -> None:
    paths = {path: {"get": {"operationId": "odd"}}, "/fine": {"get": {"operationId": "fine"}}}
    toolset = generate(document(paths), api="x")
    assert list(known(toolset)) == ["fine"]
    assert said(toolset)


def test_a_slash_at_the_end_makes_another_endpoint_and_a_double_one_is_no_pattern() -> None:
    toolset = api("x", one="get /api/admin", two="get /api/admin/")
    assert outcomes({"deny": ["http.get:/api/admin"]}, toolset) == {"one": "denied", "two": "allowed"}
    assert outcomes({"deny": ["http.get:/api/admin/"]}, toolset) == {"one": "allowed", "two": "denied"}
    with pytest.raises(PatternError):
        Pattern("http.get://admin")


def test_operations_that_share_an_endpoint_are_all_matched() -> None:
    toolset = api("x", one="post /pets", two="post //pets", three="post /%70ets")
    assert outcomes({"deny": ["http.post:/pets"]}, toolset) == dict.fromkeys(("one", "two", "three"), "denied")


def test_a_star_inside_a_path_crosses_slashes_and_the_rest_is_literal() -> None:
    toolset = api("x", a="get /files/{a}/b/etc/{c}", b="get /files/etc", c="get /files/x/etcetera/y")
    assert outcomes({"deny": ["http.get:/files/*/etc/*"]}, toolset) == {"a": "denied", "b": "allowed", "c": "allowed"}


def test_a_broad_permission_does_not_outweigh_what_needs_approval() -> None:
    config = {"unmatched": "allow", "requireApproval": ["http.get:/pets/{petId}"]}
    assert outcomes(config, pets())["getPet"] == "gated"


def test_tools_may_be_given_alone_or_one_after_the_other_and_each_has_its_outcome() -> None:
    def each(given: Any) -> dict[str, str]:
        gate = Gate(None, given)
        return {tool.name: gate.outcome_of(tool).outcome.name for tool in gate.tools}

    assert each(FILES) == each([FILES]) == {"read_file": "gated", "write_file": "gated"}
    assert each(pets()) == each(iter([pets()])) == READS | WRITES
    assert each(()) == {}


def test_a_read_that_a_person_calls_destructive_waits_where_writes_do() -> None:
    marked = {"destructive": ["http.get:/pets/{petId}"]}
    assert outcomes({**marked, "unmatched": "requireWrites"}, pets())["getPet"] == "gated"
    assert outcomes({**marked, "requireApproval": ["http.post:*"], "unmatched": "allow"}, pets())["getPet"] == "allowed"
    assert outcomes({**marked, "unmatched": "requireWrites", "exempt": ["http.get:*"]}, pets())["getPet"] == "allowed"
    by_file = pets().model_copy(
        update={"tools": tuple(tool.model_copy(update={"destructive": True}) for tool in pets().tools)}
    )
    assert outcomes(None, by_file)["listPets"] == "gated"


def test_a_gate_takes_one_toolset_or_several_and_nothing_that_is_no_config() -> None:
    assert Gate(None, pets()).tools[0].name == Gate(None, [pets()]).tools[0].name
    assert ApprovalConfig.parse({"requireApproval": ["petstore:*"]}, pets()).require_approval
    for wrong in ({"requireApproval": ["*"]}, "approvals.yaml", [3]):
        with pytest.raises(TypeError, match=r"expected ApprovalConfig, not (str|int);"):
            Gate(wrong, pets())  # type: ignore[arg-type]
    gate = Gate(None, pets())
    assert [gate.outcome_of(tool).tool for tool in gate.tools] == list(gate.tools)


def test_a_refused_call_says_which_name_is_unknown_and_where() -> None:
    gate = Gate(None, [pets(), api("shop", getPet="get /pets")])
    called = (
        ToolCall("1", "gone"),
        ToolCall("2", "gone", {}, "shop"),
        ToolCall("3", "x" * 500),
        ToolCall("4", "getPet"),
    )
    details = [one.result.detail for one in gate.classify(called).calls]
    assert details == [
        "no tool is called 'gone'",
        "no tool is called 'gone' in 'shop'",
        f"no tool is called '{'x' * 128}'",
        "petstore, shop each have a tool 'getPet': a call of it names its source",
    ]


def test_a_config_that_could_not_be_read_has_no_place() -> None:
    found = classified(ApprovalConfig.unreadable(""), ToolCall("1", "getPet"), toolsets=[pets()])
    assert found.calls[0].result.where == ""
    assert found.reasons == {"1": "the approval config could not be read: no reason given"}
