from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_policies import WORDS, matching, patterns, toolsets
from small_policies import api

from toolgen.policy.address import EndpointAddress, KnownTool, SourceAddress, ToolList, known_tools
from toolgen.policy.index import ToolIndex
from toolgen.policy.patterns import Pattern


def naive(text: str, tools: tuple[KnownTool, ...]) -> list[int]:
    """The tools a pattern matches, by regular expressions over all their addresses."""
    before, colon, target = text.partition(":")
    kind = "name" if not colon else "endpoint" if target.startswith("/") or "." in before else "source"
    found = []
    for number, tool in enumerate(tools):
        addresses = {("name", "", tool.name)}
        for source in tool.sources:
            addresses.add(("source", source, tool.name))
            if tool.endpoint:
                addresses.add(("endpoint", f"{source}.{tool.endpoint.method}", tool.endpoint.path))
        start, end = matching(before if colon else ""), matching(target if colon else text)
        if any(kind == form and start.fullmatch(one) and end.fullmatch(other) for form, one, other in addresses):
            found.append(number)
    return found


@settings(max_examples=300)
@given(toolsets(), st.lists(patterns(), max_size=5))
def test_the_index_finds_what_trying_every_pattern_on_every_address_finds(
    chosen: list[object], some: list[Pattern]
) -> None:
    tools = known_tools(chosen)  # type: ignore[arg-type]
    index = ToolIndex(tools)
    expected = [naive(pattern.text, tools) for pattern in some]
    assert [index.matched(pattern) for pattern in some] == expected
    firsts = {
        number: min(i for i, one in enumerate(expected) if number in one) for found in expected for number in found
    }
    assert index.first_matches(iter(some)) == firsts
    among = set(range(0, len(tools), 2))
    assert [index.matched(pattern, among) for pattern in some] == [sorted(among & set(one)) for one in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "shop:a bank:a"),  # shorter than what is indexed
        ("a*", "shop:a bank:a mcp:aaa"),
        ("*a", "shop:a bank:a mcp:aaa"),
        ("a*a", "mcp:aaa"),
        ("**", "shop:listPets shop:b shop:a bank:a mcp:aaa"),
        ("shop:*", "shop:listPets shop:b shop:a"),
        ("bank:a", "bank:a"),
        ("mcp:aaa", "mcp:aaa"),
        ("http.put:/a", "shop:a"),
        ("*.p*:/a", "shop:a bank:a"),
        ("http.*:/pets", "shop:listPets"),
        ("builtin:*", ""),
        ("bank.get:*", ""),
        ("nothing*", ""),
    ],
)
def test_short_long_and_open_patterns_find_their_tools(text: str, expected: str) -> None:
    shop, bank = api("shop", listPets="get /pets", b="get /b", a="put /a"), api("bank", a="patch /a")
    tools = known_tools([shop, bank, ToolList("mcp", ["aaa"])])
    found = [tools[number] for number in ToolIndex(tools).matched(Pattern.of(text, WORDS))]
    assert " ".join(f"{tool.source}:{tool.name}" for tool in found) == expected


def test_a_pattern_with_text_in_it_is_tried_on_few_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    many = ToolList("builtin", [f"tool_{number:03}_x" for number in range(500)])
    tools = known_tools([many, ToolList("mcp", ["one", "two"])])
    tried: list[object] = []
    matches = Pattern.matches

    def counted(pattern: Pattern, address: EndpointAddress | SourceAddress) -> bool:
        tried.append(address)
        return matches(pattern, address)

    monkeypatch.setattr(Pattern, "matches", counted)
    texts = [
        form.format(number) for number in range(500) for form in ("tool_{:03}_*", "builtin:*_{:03}_x", "tool_{:03}_x")
    ]
    found = ToolIndex(tools).first_matches(map(Pattern, texts))
    assert len(found) == 500
    assert len(tried) < 20 * len(texts), "of 500 tools each pattern is tried on a handful"
    tried.clear()
    assert len(ToolIndex(tools).matched(Pattern("mcp:*"))) == len(tried) == 2
