"""A mapping -> an ApprovalConfig, or every problem of it; a file's with their lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from toolgen.errors import ApprovalConfigError, PatternError, Problem, SyntaxFault
from toolgen.policy.address import KnownTool, Toolsets, Vocabulary, is_source_name, known_tools
from toolgen.policy.config import (
    ApprovalConfig,
    Friction,
    Rule,
    Unmatched,
    key_of,
)
from toolgen.policy.contradictions import contradictions, warnings
from toolgen.policy.patterns import Glob, Pattern
from toolgen.policy.text import counted, visible
from toolgen.policy.values import BUDGETS, FRICTION, Values, shown
from toolgen.tools.files.places import Place, written
from toolgen.tools.naming import api_name

_NAMES = ("apis", "mcpServers")
_YAML_HINT = "in YAML a pattern stands in quotes where it begins with *, and within [ ] where it has braces"
# Files that are easily given in place of a config, by what each of them has.
_OTHER_FILES = {"openapi": "an OpenAPI document", "swagger": "an OpenAPI document", "toolgen": "a toolset"}


def load(path: str | os.PathLike[str], toolsets: Toolsets = ()) -> ApprovalConfig:
    """The config of a file; see `ApprovalConfig.load`."""
    from toolgen.openapi.source import Limits, Loader

    try:  # a path is meant, whatever the text looks like
        document = Loader(limits=Limits(bytes=16 * 1024 * 1024)).load(Path(path))
    except SyntaxFault as fault:
        hinted = [replace(one, hint=one.hint or _YAML_HINT) for one in fault.problems]
        raise SyntaxFault(fault.message, hinted) from None
    config, problems = _read(document.tree, toolsets)
    if not problems:
        return config
    from toolgen.tools.files.lines import Lines

    lines, name = Lines(document.content), os.fspath(path)
    raise _error([replace(one, line=lines.of(one.where), file=name) for one in problems], f"{name}: ")


def parse(mapping: Any, toolsets: Toolsets = ()) -> ApprovalConfig:
    """The config that data states; see `ApprovalConfig.parse`."""
    config, problems = _read(mapping, toolsets)
    if problems:
        raise _error(problems)
    return config


def _read(data: Any, toolsets: Toolsets) -> tuple[ApprovalConfig, list[Problem]]:
    """The config as far as it could be read, and what is wrong with it."""
    tools = known_tools(toolsets)
    reader = Reader(tools)
    config = reader.config(data)
    problems = [*reader.problems, *contradictions(config, reader, reader.words, tools)]
    return replace(config, warnings=() if problems else tuple(warnings(config, reader.words))), problems


def _error(problems: Sequence[Problem], start: str = "") -> ApprovalConfigError:
    told = [replace(one, where=visible(one.where)) for one in problems]
    return ApprovalConfigError(f"{start}the approval config has {counted(len(problems), 'problem')}", told)


class Reader(Values):
    """Reads a config; the words of its patterns are those it names itself and those of these tools."""

    def __init__(self, tools: Sequence[KnownTool]) -> None:
        super().__init__()
        self._tools = tools
        self.words = Vocabulary()

    def config(self, data: Any) -> ApprovalConfig:
        """The config as far as it could be read."""
        other = next((_OTHER_FILES[key] for key in _OTHER_FILES if isinstance(data, Mapping) and key in data), "")
        if other:
            self.add((), f"this is {other} and no approval config")
            return ApprovalConfig()
        stated = self.mapping((), data, CONFIG)
        # First what the patterns need.
        apis, servers = (self.names((key,), stated.pop(key, ())) for key in _NAMES)
        self._learn(apis, servers)
        read = {key: CONFIG[key](self, (key,), value) for key, value in stated.items()}
        return ApprovalConfig(**_by_field(ApprovalConfig, read), apis=tuple(apis), mcp_servers=tuple(servers))

    def _learn(self, apis: Mapping[str, int], servers: Mapping[str, int]) -> None:
        """Takes the names of APIs and MCP servers into the vocabulary; a name is of one kind only."""
        is_api = {tool.source: tool.endpoint is not None for tool in self._tools}
        for name, index in apis.items():
            if is_api.get(name) is False:
                self.add(("apis", index), f"'{name}' is an MCP server", "name it under mcpServers")
        for name, index in servers.items():
            if is_api.get(name):
                self.add(("mcpServers", index), f"'{name}' is an API", "name it under apis")
            elif name in apis and name not in is_api:
                self.add(("mcpServers", index), f"'{name}' stands in apis[{apis[name]}], too")
        self.words = Vocabulary(frozenset(apis), frozenset(servers)).with_tools(self._tools)

    def names(self, place: Place, value: Any) -> dict[str, int]:
        return self.items(place, value, self._name)

    def _name(self, place: Place, value: Any) -> str | None:
        if is_source_name(value):
            return str(value)
        what = "an API" if place[0] == "apis" else "an MCP server"
        meant = api_name(value) if isinstance(value, str) else "api"
        hint = "it takes [a-z][a-z0-9-]*, at most 32, and no reserved source's name"
        self.add(place, f"{shown(value)} is no name of {what}", hint, "" if meant == "api" else meant)
        return None

    def rules(self, place: Place, value: Any) -> tuple[Rule, ...]:
        found: dict[Pattern, Rule] = {}
        for index, item in enumerate(self.sequence(place, value)):
            rule = self._rule((*place, index), item)
            if rule is None:
                continue
            if found.setdefault(rule.match, rule) is rule:
                self.positions["rules", rule.match] = index
            else:
                first = written(self.place_of("rules", rule.match))
                self.add((*place, index, "match"), f"{shown(rule.match.text)} is the match of {first}, too")
        return tuple(found.values())

    def _rule(self, place: Place, value: Any) -> Rule | None:
        stated = self.mapping(place, value, RULE)
        if isinstance(value, Mapping) and "match" not in value and self.is_sure(*place, "match"):
            self.add(place, "`match` is missing: the pattern of the calls the rule is for")
        read = {key: RULE[key](self, (*place, key), item) for key, item in stated.items()}
        return Rule(**_by_field(Rule, read)) if read.get("match") is not None else None

    def patterns(self, place: Place, value: Any) -> tuple[Pattern, ...]:
        found = self.items(place, value, self.pattern)
        self.positions.update({(str(place[0]), pattern): index for pattern, index in found.items()})
        return tuple(found)

    def pattern(self, place: Place, value: Any) -> Pattern | None:
        if not isinstance(value, str):
            self.add(place, f"expected a pattern, this is {shown(value)}")
            return None
        try:
            return Pattern.of(value, self.words)
        except PatternError as error:
            for problem in error.problems:
                if problem.suggestion or not self._may_be_named(value):
                    self.add_problem(place, problem)
            self.doubt(place)
            return None

    def _may_be_named(self, text: str) -> bool:
        """Whether a pattern's source may be one of the APIs or MCP servers whose list is wrong itself."""
        source, colon, _ = text.partition(":")
        known = map(Glob(source.partition(".")[0]).matches, self.words.sources)
        return bool(colon) and not all(map(self.is_sure, _NAMES)) and not any(known)


def _by_field(kind: type[Friction], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by field instead of by key; what is wrong is left out, it is reported already."""
    names = {key_of(field.name): field.name for field in fields(kind)}
    return {names[key]: value for key, value in values.items() if value is not None}


_Reads = Callable[[Reader, Place, Any], Any]
# How the value of each key is read.
RULE: dict[str, _Reads] = {"match": Reader.pattern, **FRICTION}
CONFIG: dict[str, _Reads] = {
    "$schema": Reader.schema,
    "requireApproval": Reader.patterns,
    "exempt": Reader.patterns,
    "deny": Reader.patterns,
    "destructive": Reader.patterns,
    "unmatched": lambda reader, place, value: reader.word(place, value, Unmatched),
    "rules": Reader.rules,
    **FRICTION,
    **BUDGETS,
    "apis": Reader.names,
    "mcpServers": Reader.names,
}
