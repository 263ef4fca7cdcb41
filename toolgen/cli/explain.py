"""`toolgen explain`: why the calls of a tool run, wait or are refused."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolgen.cli.output import Format, print_json
from toolgen.errors import UsageError
from toolgen.openapi.keys import METHODS

if TYPE_CHECKING:
    from toolgen.cli.output import Page
    from toolgen.policy.changes import Change, Edit
    from toolgen.policy.explain import Explanation, Held, Match

SHORT_HELP = "Say why a tool's calls run, wait or are refused."
HELP = """\b
Example: toolgen explain approvals.yaml --tools petstore.tools.yaml createPet
         toolgen explain approvals.yaml --tools petstore.tools.yaml POST /pets

Say step by step why the calls of a tool run, wait for a person or are refused: what the tool can be matched by, which
patterns match, which of them decides, what holds while a call waits, and what would change it.

TOOL is a name (petstore:createPet where several APIs have it) or a method and a path. Toolset files may follow --tools
one after the other, as a shell expands --tools *.tools.yaml; TOOL stands last.

\b
Exit codes: 0 explained
            1 problems: a file cannot be read or is not valid, or there is
              no such tool
            2 wrong usage
"""
_METHOD = re.compile(r"[A-Za-z-]+")
_HAPPENS = {"allowed": "run", "gated": "wait for a person", "denied": "are refused"}
_WOULD = {"allowed": "let them run", "gated": "make them wait", "denied": "have them refused"}
_STYLES = {"allowed": "green", "gated": "yellow", "denied": "red"}
_OTHERS = 3  # tools named that a change reaches as well
_UNMATCHED = "unmatched"  # as a place of the config
Fact = tuple[str, str, str]  # label, text, style


def explain(
    config: Annotated[str, typer.Argument(metavar="CONFIG", help="An approval config, YAML or JSON.")],
    words: Annotated[
        list[str], typer.Argument(metavar="TOOL", help="NAME, or METHOD /path; before it more toolset files.")
    ],
    tools: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A toolset file, needed at least once. Default: none.")
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="text for people, json for programs.")] = Format.text,
) -> None:
    """Say why a tool's calls run, wait or are refused."""
    if not tools:
        raise UsageError("give the toolset file that has the tool: --tools FILE")
    from pathlib import Path

    from toolgen.policy import explain as policy
    from toolgen.policy.address import known_tools
    from toolgen.policy.config import ApprovalConfig
    from toolgen.tools.files import load_toolset

    more, wanted = _split(words)
    toolsets = [load_toolset(Path(file)) for file in (*tools, *more)]
    checked = ApprovalConfig.load(config, toolsets)
    found = policy.find_tools(known_tools(toolsets), wanted)
    explained = [policy.explain(checked, toolsets, tool) for tool in found]
    if format_ is Format.json:
        print_json({"config": config, "explanations": [one.to_dict() for one in explained]}, sys.stdout)
        return
    from toolgen.cli.output import Page

    page = Page(sys.stdout)
    for number, one in enumerate(explained):
        if number:
            page.line()
        _print(page, one)
    page.print()


def _split(words: list[str]) -> tuple[list[str], str]:
    """The toolset files, and what the last word or two mean: a name, or a method and a path."""
    method, last = words[-2] if len(words) > 1 else "", words[-1]
    if method.lower() in METHODS or (last.startswith("/") and _METHOD.fullmatch(method)):
        return words[:-2], " ".join(words[-2:])
    return words[:-1], words[-1]


def _print(page: Page, one: Explanation) -> None:
    tool, outcome = one.tool, one.outcome.name
    page.line(f"Calls of {tool.source}:{tool.name} {_HAPPENS[outcome]}: {_because(one)}.", style=_STYLES[outcome])
    if one.shared:
        page.line(f"{one.shared}.", style="yellow")
    sections = {
        "Can be matched as": [("", address, "") for address in one.addresses],
        "Lists, each beats those below": _lists(one),
        "Destructive": [("", "; ".join(one.destructive) or "no", "")],
        "Rules that match, the most specific first": [_rule(match) for match in one.rules],
        "While a call waits": [_held(held) for held in one.terms],
        "What would change it": [("", _change(change), "") for change in one.changes],
    }
    for title, facts in sections.items():
        if facts:
            page.line()
            page.line(title, style="bold")
        if any(label for label, _, _ in facts):
            page.facts(facts, indent=2)
        else:
            for _, text, style in facts:
                page.line(text, style=style, indent=2)


def _because(one: Explanation) -> str:
    if one.where == _UNMATCHED:
        return f"no list has a pattern that matches, and unmatched is {one.unmatched}"
    return f"{one.where} is {one.reason}" if one.where else one.reason


def _lists(one: Explanation) -> list[Fact]:
    """Every pattern that matches, list by list; `unmatched` last."""
    facts: list[Fact] = []
    for key, matches in one.lists.items():
        for match in matches:
            decides = ", which decides" if match.decides else ""
            facts.append((match.where, f"{match.pattern} matches {match.address}{decides}", "bold" if decides else ""))
        if not matches:
            facts.append((key, "none matches", "dim"))
    stated = "" if one.unmatched_stated else ", as nothing else is stated"
    decides = ", which decides" if one.where == _UNMATCHED else ""
    return [*facts, (_UNMATCHED, f"{one.unmatched}{stated}{decides}", "bold" if decides else "dim")]


def _rule(match: Match) -> Fact:
    own = ", the call's own" if match.decides else ""
    return match.where, f"{match.pattern} matches {match.address}{own}", ""


def _held(held: Held) -> Fact:
    value = held.value
    if isinstance(value, list):
        value = ", ".join(value) or "anybody who may decide"
    elif isinstance(value, bool):
        value = "true" if value else "false"
    by = ", ".join(filter(None, [held.where or held.origin, "a broader rule" * (held.origin == "broader rule")]))
    note = f": {held.note}" if held.note else ""
    return held.key, f"{'none' if value is None else value} ({by}{note})", ""


def _change(change: Change) -> str:
    """`adding http.post:/pets to exempt would let them run`."""
    edits = " and ".join(map(_edit, change.edits))
    shown = ", ".join(change.others[:_OTHERS])
    more = len(change.others) - _OTHERS
    others = f" (and change what happens to {shown}{f' and {more} more' if more > 0 else ''})" if shown else ""
    return f"{edits} would {_WOULD[change.outcome.name]}{others}"


def _edit(edit: Edit) -> str:
    if edit.action == "add":
        return f"adding {edit.value} to {edit.where}"
    if edit.action == "set":
        return f"writing {edit.where}: {edit.value}"
    return f"removing {edit.where}" + (f" ({edit.value})" if edit.value else "")
