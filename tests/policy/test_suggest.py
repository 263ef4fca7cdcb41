"""The suggested config: what it gates, that the check finds nothing in it, and that document text stays text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_documents import made
from small_policies import api, outcomes, pets

from toolgen.findings import Level
from toolgen.openapi.source.yaml12 import load_yaml
from toolgen.policy.address import ToolList
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.coverage import coverage
from toolgen.policy.suggest import suggest
from toolgen.tools.model import Toolset


def read(text: str) -> Any:
    return load_yaml(text, "suggested", nesting=100, nodes=100_000)


def suggested(*toolsets: Any) -> tuple[str, dict[str, Any]]:
    """The text and what it says; it is a config in which the check finds nothing, and no line is too long."""
    text = suggest(toolsets)
    mapping = read(text)
    found = coverage(ApprovalConfig.parse(mapping, toolsets), toolsets).findings
    assert [str(finding.message) for finding in found if finding.level is not Level.note] == []
    assert max(map(len, text.split("\n"))) <= 100
    assert mapping["unmatched"] == "requireWrites"
    assert suggest(toolsets) == text
    return text, mapping


def example_rule(text: str) -> Any:
    """The rule that stands there as a comment, read as if it were none."""
    lines = text[text.index("# rules:") :].splitlines()
    return read("\n".join(line.removeprefix("# ") for line in lines))


def test_writes_wait_and_reads_run_by_method() -> None:
    text, mapping = suggested(pets())
    assert mapping["requireApproval"] == ["http.post:*", "http.delete:*"]
    assert mapping["exempt"] == ["http.get:*"]
    assert outcomes(mapping, pets()) == {
        "listPets": "allowed",
        "getPet": "allowed",
        "createPet": "gated",
        "deletePet": "gated",
    }
    assert "# 2 tools: GET /pets, GET /pets/{petId}\n  - http.get:*\n" in text
    assert "# 1 tool: POST /pets\n  - http.post:*\n" in text
    assert "apis" not in mapping


def test_a_config_for_tools_without_endpoints_names_their_sources() -> None:
    _, mapping = suggested(ToolList("mcp", ["read_file", "x"], server="files"), ToolList("builtin", ["search"]))
    assert mapping["requireApproval"] == ["mcp:*", "builtin:*"]
    assert "exempt" not in mapping


def test_a_method_of_a_document_is_said_with_its_api() -> None:
    tools = [api("cache", purgeAll="purge /all", look="query /all"), api("other", purgeIt="purge /it"), pets()]
    _, mapping = suggested(*tools)
    assert mapping["requireApproval"] == ["http.post:*", "http.delete:*", "cache.purge:*", "other.purge:*"]
    assert mapping["exempt"] == ["http.get:*", "http.query:*"]
    assert mapping["apis"] == ["cache", "other"]
    assert outcomes(mapping, *tools)["purgeIt"] == "gated"


def marked(toolset: Toolset, name: str) -> Toolset:
    tools = [tool.model_copy(update={"destructive": tool.name == name or None}) for tool in toolset.tools]
    return toolset.model_copy(update={"tools": tuple(tools)})


@pytest.mark.parametrize(
    "shop",
    [
        api("shop", listOrders="get /orders", deleteOrder="get /orders/{id}/gone", head="head /orders"),
        marked(api("shop", listOrders="get /orders", odd="get /orders/{id}/gone", head="head /orders"), "odd"),
    ],
    ids=["said by the operation", "marked by a person"],
)
def test_a_read_that_changes_something_waits_and_the_others_are_exempt_one_by_one(shop: Toolset) -> None:
    text, mapping = suggested(pets(), shop)
    assert mapping["requireApproval"] == ["http.post:*", "http.delete:*", "shop.get:/orders/{id}/gone"]
    assert mapping["exempt"] == ["petstore.get:*", "shop.get:/orders", "http.head:*"]
    assert outcomes(mapping, pets(), shop) == {
        "listPets": "allowed",
        "getPet": "allowed",
        "createPet": "gated",
        "deletePet": "gated",
        "listOrders": "allowed",
        shop.tools[2].name: "gated",
        "head": "allowed",
    }
    assert "# seems to write: " in text
    # It can be read where the toolsets are not at hand.
    assert ApprovalConfig.parse(mapping).apis == ("petstore", "shop")


def test_two_operations_of_one_endpoint_wait_if_one_of_them_changes_something() -> None:
    """`/a` and `/a?x=1` are one endpoint; the operations are two tools."""
    paths = {"/a": {"get": {"operationId": "look"}}, "/a?x=1": {"get": {"operationId": "deleteAll"}}}
    shared = made({"openapi": "3.1.0", "info": {"title": "x", "version": "1"}, "paths": paths}, api="shared")
    assert {tool.endpoint.key for tool in shared.tools} == {"get:/a"}
    _, mapping = suggested(shared)
    assert mapping["requireApproval"] == ["shared.get:/a"]
    assert "exempt" not in mapping
    assert outcomes(mapping, shared) == {"look": "gated", "deleteAll": "gated"}


def test_an_exemption_never_reaches_a_read_that_changes_something() -> None:
    """A `*` in a path is a wildcard in a pattern, and a long path has no pattern: both run unmatched."""
    long = "/" + "x" * 300
    shop = api("shop", star="get /a*b", deleteIt="get /a/cut/b", long=f"get {long}", deleteLong=f"get {long}/y")
    _, mapping = suggested(shop)
    assert mapping["requireApproval"][0] == "shop.get:/a/cut/b"
    assert "exempt" not in mapping
    found = outcomes(mapping, shop)
    assert (found["deleteIt"], found["deleteLong"], found["star"]) == ("gated", "gated", "allowed")


def test_no_tools_at_all_do_not_switch_the_gate_off() -> None:
    _, mapping = suggested()
    assert mapping == {"unmatched": "requireWrites"}
    assert not ApprovalConfig.parse(mapping).is_off


@pytest.mark.parametrize(
    ("tools", "match"),
    [
        (pets(), "http.delete:*"),
        (ToolList("mcp", ["read", "wipe"], server="files", destructive=["wipe"]), "files:wipe"),
        (api("cache", look="get /a", **{"pay": "put /b"}), "http.put:*"),
        (api("cache", look="get /a"), "http.delete:*"),
    ],
)
def test_the_example_rule_may_be_taken_as_it_stands(tools: Any, match: str) -> None:
    text, mapping = suggested(tools)
    rules = example_rule(text)
    config = ApprovalConfig.parse(mapping | rules, [tools])
    assert config.rules[0].match.text == match
    assert config.rules[0].approvers == ("role:admin",)


HOSTILE = [
    "/x/{a\n- http.post:*\nexempt: ['*']}",
    "/x/{a\r\x85\u2028exempt}",
    "/{a # comment}",
    "/{\"}/{'}",
    "/{\\n}",
    "/{{b}",
    "/{a: b}",
    "/{\u202e\U0001f600\U000e0001}",
    "/{" + " x" * 60 + "}",
    "/" + "long" * 60,
]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}/\\\0"), min_size=1), max_size=3),
    st.booleans(),
)
@example(["a\n- http.post:*", "\x85", "'\""], True)
def test_text_of_a_document_stays_in_its_comment_or_its_value(names: list[str], changes: bool) -> None:
    paths = [*HOSTILE, *(f"/p/{{{name}}}/{number}" for number, name in enumerate(names))]
    endpoints = {f"{'deleteIt' if changes else 'look'}{number}": f"get {path}" for number, path in enumerate(paths)}
    endpoints |= {f"look{number}x": f"get {path}/y" for number, path in enumerate(paths) if changes}
    endpoints |= {f"create{number}": f"post {path}" for number, path in enumerate(paths)}
    shop = api("shop", **endpoints)
    _, mapping = suggested(shop)
    broad = {"http.post:*"} if not changes else {"http.post:*", *(f"shop.{tool.endpoint.key}" for tool in shop.tools)}
    assert set(mapping) <= {"apis", "requireApproval", "exempt", "unmatched"}
    assert set(mapping["requireApproval"]) <= broad
    assert set(mapping["exempt"]) <= broad | {"http.get:*"}
    found = outcomes(mapping, shop)
    assert {name: outcome for name, outcome in found.items() if outcome == "allowed"} == {
        name: "allowed" for name in found if name.startswith("look")
    }
