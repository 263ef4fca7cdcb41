"""Random toolsets, patterns and configs for properties of policies: few words, so that patterns often match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TypeVar

from hypothesis import strategies as st
from small_policies import api

from toolgen.errors import PatternError
from toolgen.policy.address import KnownTool, ToolList, Vocabulary, known_tools
from toolgen.policy.config import ApprovalConfig, NoProgress, Rule, TimeoutPolicy, Unmatched
from toolgen.policy.outcomes import ToolCall
from toolgen.policy.patterns import Pattern
from toolgen.tools.model import Toolset

_Item = TypeVar("_Item")
SHOP = api(
    "shop",
    listPets="get /pets",
    slash="get /pets/",
    getPet="get /pets/{petId}",
    createPet="post /pets",
    deletePet="delete /pets/{petId}",
    findPets="m-search /pets:find",
    run="post /v1/{name}:run",
    odata="get /users('{id}')",
    a="put /a",
)
BANK = api(
    "bank", listPets="get /accounts", pay="post /pay", read_file="get /files/{path}", a="patch /a", root="head /"
)
LISTS = (
    ToolList("builtin", ["run", "http.get", "a", "delete_all"], destructive=["delete_all"]),
    ToolList("mcp", ["read_file", "write_file", "listPets"], server="files"),
    ToolList("mcp", ["read_file", "shop", "aaa"]),
    ToolList("memory", ["read", "http"]),
)
ALL: tuple[Toolset | ToolList, ...] = (SHOP, BANK, *LISTS)
TOOLS = known_tools(ALL)
WORDS = Vocabulary().with_tools(TOOLS)
COMMON = [
    "*", "*:*", "*.*:*", "http:*", "http.*:*", "shop:*", "shop.*:/*", "mcp:*", "files:*", "mem*:*", "h*:*", "*a*", "a*",
    "*:/pets*", "http.*:*/", "bank.get:*", "*.m-search:*", "nothing", "http.get:/nothing", "a2a:*",
]  # fmt: skip


def texts() -> st.SearchStrategy[str]:
    """An address of a tool with up to three pieces of it as `*`, or a pattern that people write; some are none."""
    return st.one_of(st.sampled_from(COMMON), _blurred())


def patterns(words: Vocabulary = WORDS) -> st.SearchStrategy[Pattern]:
    """Patterns that can match, most of which match one of these tools."""
    return texts().filter(lambda text: _is_pattern(text, words)).map(lambda text: Pattern.of(text, words))


def toolsets() -> st.SearchStrategy[list[Toolset | ToolList]]:
    """Some of the sources, in any order, each with some of its tools; names are shared between sources."""
    return st.lists(st.sampled_from(range(len(ALL))), max_size=len(ALL), unique=True).flatmap(
        lambda chosen: st.tuples(*(_part(ALL[index]) for index in chosen)).map(list)
    )


def lists_of(some: st.SearchStrategy[Pattern], most: int = 4) -> st.SearchStrategy[tuple[Pattern, ...]]:
    """Lists as configs have them."""
    return st.lists(some, max_size=most, unique=True).map(tuple)


def rules(some: st.SearchStrategy[Pattern]) -> st.SearchStrategy[tuple[Rule, ...]]:
    """Rules that state now this, now that."""
    return st.lists(_rule(some), max_size=4, unique_by=lambda rule: rule.match).map(tuple)


def configs(some: st.SearchStrategy[Pattern] | None = None) -> st.SearchStrategy[ApprovalConfig]:
    """Any config, contradictions included; now and then one that could not be read."""
    one = patterns() if some is None else some
    # `deny` is kept short, so that something is left.
    readable = st.builds(
        ApprovalConfig,
        require_approval=st.none() | lists_of(one),
        exempt=lists_of(one),
        deny=lists_of(one, 1),
        destructive=lists_of(one, 1),
        unmatched=st.none() | st.sampled_from(Unmatched),
        rules=rules(one),
        max_pauses_per_turn=st.none() | st.integers(1, 10),
        max_auto_approvals_per_turn=st.none() | st.integers(0, 10),
        on_no_progress=st.none() | st.sampled_from(NoProgress),
        **_friction(),
    )
    return readable | readable | readable | st.just(ApprovalConfig.unreadable("no such file"))


def calls_of(tools: Iterable[KnownTool]) -> list[ToolCall]:
    """Every way to call these tools, and some that are none."""
    named = [
        (name, source) for tool in tools for name in (tool.name, tool.name + "x") for source in (None, *tool.sources)
    ]
    more = [("listPets", "zzz"), ("pay", "shop"), (None, None), ("", ""), ("http.get:/pets", None)]
    return [ToolCall(f"id{number}", name, {}, source) for number, (name, source) in enumerate([*named, *more])]


def matching(text: str) -> re.Pattern[str]:
    """What a text with `*` means, as a regular expression."""
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


@st.composite
def _blurred(draw: st.DrawFn) -> str:
    tool = draw(st.sampled_from(TOOLS))
    text = str(draw(st.sampled_from(tool.addresses)))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, len(text)))
        text = f"{text[:start]}*{text[end:]}"
    return text


def _is_pattern(text: str, words: Vocabulary) -> bool:
    try:
        Pattern.of(text, words)
    except PatternError:
        return False
    return True


def _part(whole: Toolset | ToolList) -> st.SearchStrategy[Toolset | ToolList]:
    if isinstance(whole, Toolset):
        return _some(whole.tools).map(lambda tools: whole.model_copy(update={"tools": tools}))
    return _some(whole.names).map(
        lambda names: ToolList(whole.source, names, whole.server, [one for one in whole.destructive if one in names])
    )


def _some(items: Sequence[_Item]) -> st.SearchStrategy[list[_Item]]:
    return st.sets(st.sampled_from(range(len(items)))).map(lambda kept: [items[index] for index in sorted(kept)])


def _rule(some: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Rule]:
    return st.builds(Rule, match=some, **_friction())


def _friction() -> dict[str, st.SearchStrategy[object]]:
    minutes = st.integers(1, 90).map(lambda number: timedelta(minutes=number))
    return {
        "timeout_policy": st.none() | st.sampled_from(TimeoutPolicy) | st.just(TimeoutPolicy.AUTO_APPROVE),
        "approval_timeout": minutes | st.none(),
        "approval_validity": st.none() | minutes,
        "pause_reason": st.none() | st.sampled_from(["why", "because"]),
        "pending_message": st.none() | st.just("wait"),
        "approvers": st.none() | st.sampled_from([("alice",), ("role:ops", "bob")]),
        "allow_self_approval": st.none() | st.booleans(),
    }
