"""A mapping -> an ApprovalConfig, or every problem of it; a file's with their lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from toolgen.errors import ApprovalConfigError, PatternError, Problem
from toolgen.policy.address import Vocabulary, is_source_name, known_tools
from toolgen.policy.advice import edits
from toolgen.policy.config import ApprovalConfig, Friction, NoProgress, Rule, TimeoutPolicy, Unmatched, key_of
from toolgen.policy.contradictions import Places, contradictions, doubts
from toolgen.policy.durations import meant_duration, read_duration
from toolgen.policy.patterns import Pattern
from toolgen.tools.files.places import Place, written

LONGEST_TEXT: Final = 500
LONGEST_NAME: Final = 256  # of an approver
ROLE: Final = "role:"
# Keys of the reference system's levels around this config, which `--import` takes apart.
_OF_THE_REFERENCE = frozenset({"hitlConfig", "toolApprovals", "inGroupTurns"})
_IMPORT = "`toolgen check --import FILE` converts a config that has it"
_NAMES = ("apis", "mcpServers")
_Word = TypeVar("_Word", bound=StrEnum)


def load(path: str | os.PathLike[str], toolsets: Iterable[Any] = ()) -> ApprovalConfig:
    """The config of a file; see `ApprovalConfig.load`."""
    from toolgen.openapi.source import Limits, Loader

    # `os.fspath`: a path is meant, whatever the text looks like.
    document = Loader(limits=Limits(bytes=16 * 1024 * 1024)).load(_as_path(path))
    try:
        return parse(document.tree, toolsets)
    except ApprovalConfigError as error:
        from toolgen.tools.files.lines import Lines

        lines, name = Lines(document.content), os.fspath(path)
        found = [replace(one, line=lines.of(one.where), file=name) for one in error.problems]
        raise ApprovalConfigError(f"{name}: {error.message}", found) from None


def parse(mapping: Any, toolsets: Iterable[Any] = ()) -> ApprovalConfig:
    """The config that data states; see `ApprovalConfig.parse`."""
    tools = known_tools(toolsets)
    reader = Reader()
    config = reader.config(mapping, lambda words: words.with_tools(tools))
    problems = [*reader.problems, *contradictions(config, reader.places, tools)]
    if not problems:
        return replace(config, warnings=tuple(doubts(config, reader.words)))
    count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    raise ApprovalConfigError(f"the approval config has {count}", problems)


class Reader:
    """Reads the values of a config and collects what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.places = Places()
        self.words = Vocabulary()

    def add(self, place: Place, message: str, hint: str = "", suggestion: str = "") -> None:
        self._add(place, Problem(message, hint=hint, suggestion=suggestion))

    def _add(self, place: Place, problem: Problem) -> None:
        self.problems.append(replace(problem, where=written(place)))
        self.places.wrong.add(place)

    def config(self, data: Any, extended: Callable[[Vocabulary], Vocabulary]) -> ApprovalConfig:
        """The config as far as it could be read; `extended` adds the tools' words to its own."""
        stated = self._mapping((), data, _CONFIG)
        # First what the patterns need.
        names = {key: self.names((key,), stated.pop(key)) for key in _NAMES if key in stated}
        apis, servers = (frozenset(names.get(key, ())) for key in _NAMES)
        for name in sorted(apis & servers):
            self.add(("mcpServers", names["mcpServers"].index(name)), f"{name!r} stands under apis, too")
        self.words = extended(Vocabulary(apis, servers))
        stated.pop("$schema", None)
        read: dict[str, Any] = {key: _CONFIG[key](self, (key,), value) for key, value in stated.items()}
        return ApprovalConfig(**_fields(ApprovalConfig, read | names))

    def rules(self, place: Place, value: Any) -> tuple[Rule, ...]:
        found: dict[Pattern, Rule] = {}
        for index, item in enumerate(self._list(place, value)):
            rule = self._rule((*place, index), item)
            if rule is not None and found.setdefault(rule.match, rule) is not rule:
                first = written((*place, self.places.patterns[str(place[0]), rule.match]))
                self.add((*place, index, "match"), f"{rule.match} is the match of {first}, too")
            elif rule is not None:
                self.places.patterns[str(place[0]), rule.match] = index
        return tuple(found.values())

    def _rule(self, place: Place, value: Any) -> Rule | None:
        stated = self._mapping(place, value, _RULE)
        if isinstance(value, Mapping) and "match" not in value:
            self.add(place, "`match` is missing: the pattern of the calls the rule is for")
        read = {key: _RULE[key](self, (*place, key), item) for key, item in stated.items()}
        return Rule(**_fields(Rule, read)) if read.get("match") is not None else None

    def pattern(self, place: Place, value: Any) -> Pattern | None:
        if not isinstance(value, str):
            self.add(place, f"expected a pattern, this is {_kind(value)}")
            return None
        try:
            return Pattern.of(value, self.words)
        except PatternError as error:
            for problem in error.problems:
                self._add(place, problem)
            return None

    def patterns(self, place: Place, value: Any) -> tuple[Pattern, ...]:
        found: dict[Pattern, int] = {}
        for index, item in enumerate(self._list(place, value)):
            pattern = self.pattern((*place, index), item)
            if pattern is not None and found.setdefault(pattern, index) != index:
                self.add((*place, index), f"{pattern} stands in {written((*place, found[pattern]))}, too")
        self.places.patterns |= {(str(place[0]), pattern): index for pattern, index in found.items()}
        return tuple(found)

    def names(self, place: Place, value: Any) -> tuple[str, ...]:
        found: list[str] = []
        for index, item in enumerate(self._list(place, value)):
            if not is_source_name(item):
                hint = "it takes [a-z][a-z0-9-]*, at most 32, and no reserved source's name"
                self.add((*place, index), f"this is no name of {'an API' if place[0] == 'apis' else 'a server'}", hint)
            elif item in found:
                self.add((*place, index), f"{item!r} stands there twice")
            else:
                found.append(item)
        return tuple(found)

    def approvers(self, place: Place, value: Any) -> tuple[str, ...]:
        found: list[str] = []
        listed = self._list(place, value)
        if isinstance(value, list) and not value:
            self.add(place, "nobody is named", "leave the key out where everybody who may decide may approve")
        for index, item in enumerate(listed):
            here = (*place, index)
            if not isinstance(item, str) or not _is_approver(item):
                self.add(here, f"expected a name or {ROLE}NAME, this is {_kind(item)}")
            elif item in found:
                self.add(here, f"{item!r} stands there twice")
            elif not item.startswith(ROLE) and edits(item.partition(":")[0].lower() + ":", ROLE) <= 1 and ":" in item:
                meant = ROLE + item.partition(":")[2].strip()
                self.add(here, f"{item!r} is nobody's name", f"write {meant}", meant)
            else:
                found.append(item)
        return tuple(found)

    def duration(self, place: Place, value: Any) -> timedelta | None:
        if not isinstance(value, str):
            self.add(place, f"expected an ISO 8601 duration such as PT30M, this is {_kind(value)}")
            return None
        try:
            return read_duration(value)
        except ValueError as error:
            meant = meant_duration(value)
            self.add(place, str(error), f"write {meant}" if meant else "", meant)
            return None

    def text(self, place: Place, value: Any) -> str | None:
        if not isinstance(value, str) or not value.strip():
            self.add(place, f"expected text, this is {_kind(value)}", "leave the key out for the default")
            return None
        if len(value) > LONGEST_TEXT:
            self.add(place, f"the text has {len(value)} characters, {LONGEST_TEXT} are allowed")
        return value

    def flag(self, place: Place, value: Any) -> bool | None:
        if not isinstance(value, bool):
            self.add(place, f"expected true or false, this is {_kind(value)}")
        return value is True

    def word(self, place: Place, value: Any, words: type[_Word]) -> _Word | None:
        known = [word.value for word in words]
        if isinstance(value, str) and value in known:
            return words(value)
        near = _nearest(value, known) if isinstance(value, str) else ""
        hint = f"write {near}" if near else f"known are {', '.join(known)}"
        self.add(place, f"{_shown(value)} is none of the values there are", hint, near)
        return None

    def number(self, place: Place, value: Any, least: int, most: int) -> int | None:
        if type(value) is not int or not least <= value <= most:
            self.add(place, f"expected a whole number from {least} to {most}, this is {_shown(value)}")
            return None
        return value

    def _list(self, place: Place, value: Any) -> Sequence[Any]:
        if isinstance(value, list | tuple):
            return value
        hint = "an empty list is written []" if value is None else ""
        self.add(place, f"expected a list, this is {_kind(value)}", hint)
        return ()

    def _mapping(self, place: Place, value: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.add(place, f"expected a mapping, this is {_kind(value)}")
            return {}
        for key in value:
            if key not in known:
                self._unknown(place, key, known)
        return {key: item for key, item in value.items() if key in known}

    def _unknown(self, place: Place, key: Any, known: Mapping[str, Any]) -> None:
        here = (*place, str(key))
        if key in _OF_THE_REFERENCE:
            self.add(here, "this key is another system's", _IMPORT)
            return
        near = _nearest(str(key), list(known))
        hint = f"write {near}" if near else f"known are {', '.join(key for key in known if key != '$schema')}"
        self.add(here, "there is no such key", hint, near)


def _fields(kind: type[Friction], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by field instead of by key; what is wrong is left out, it is reported already."""
    names = {key_of(name): name for name in kind.__dataclass_fields__}
    return {names[key]: value for key, value in values.items() if value is not None}


def _as_path(path: str | os.PathLike[str]) -> Any:
    from pathlib import Path

    return Path(path)


def _is_approver(text: str) -> bool:
    name = text.removeprefix(ROLE)
    return bool(name) and name == name.strip() and len(text) <= LONGEST_NAME and text.isprintable()


def _nearest(text: str, known: Sequence[str]) -> str:
    """The known word that is nearest, within a third of its length; empty where none is."""
    ranked = sorted((edits(text.lower(), word.lower()), word) for word in known)
    return ranked[0][1] if ranked and ranked[0][0] <= max(2, len(ranked[0][1]) // 3) else ""


def _kind(value: Any) -> str:
    if value is None or (isinstance(value, str) and not value.strip()):
        return "empty"
    if isinstance(value, str):
        return _shown(value)
    names = {bool: "true or false", list: "a list", dict: "a mapping"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a number")


def _shown(value: Any) -> str:
    return (
        repr(value[:60])
        if isinstance(value, str) and value.strip()
        else _kind(value)
        if not isinstance(value, int)
        else str(value)
    )


_Reads = Callable[[Reader, Place, Any], Any]
_FRICTION: dict[str, _Reads] = {
    "timeoutPolicy": lambda reader, place, value: reader.word(place, value, TimeoutPolicy),
    "approvalTimeout": Reader.duration,
    "approvalValidity": Reader.duration,
    "pauseReason": Reader.text,
    "pendingMessage": Reader.text,
    "approvers": Reader.approvers,
    "allowSelfApproval": Reader.flag,
}
_RULE: dict[str, _Reads] = {"match": Reader.pattern, **_FRICTION}
_CONFIG: dict[str, _Reads] = {
    "$schema": lambda reader, place, value: value,
    "requireApproval": Reader.patterns,
    "exempt": Reader.patterns,
    "deny": Reader.patterns,
    "destructive": Reader.patterns,
    "unmatched": lambda reader, place, value: reader.word(place, value, Unmatched),
    "rules": Reader.rules,
    **_FRICTION,
    "maxPausesPerTurn": lambda reader, place, value: reader.number(place, value, 1, 10),
    "maxAutoApprovalsPerTurn": lambda reader, place, value: reader.number(place, value, 0, 10),
    "onNoProgress": lambda reader, place, value: reader.word(place, value, NoProgress),
    "apis": Reader.names,
    "mcpServers": Reader.names,
}
