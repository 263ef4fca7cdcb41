"""Reads plain values of an approval config, and collects everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from toolgen.errors import Problem
from toolgen.policy.advice import edits
from toolgen.policy.config import MOST_AUTO_APPROVALS, MOST_PAUSES, NoProgress, TimeoutPolicy
from toolgen.policy.durations import meant_duration, read_duration
from toolgen.policy.patterns import Pattern
from toolgen.policy.text import visible
from toolgen.tools.files.places import Place, written

LONGEST_TEXT: Final = 500
LONGEST_APPROVER: Final = 256
ROLE: Final = "role:"
_SHOWN = 80  # characters of a value in a message
_LONGEST_KEY = 64  # that may be a misspelt one
# Keys of the reference system's levels around this config, which `--import` takes apart.
_OF_THE_REFERENCE = frozenset({"hitlConfig", "toolApprovals", "inGroupTurns"})
_IMPORT = "`toolgen check --import FILE` converts a config that has it"
_Word = TypeVar("_Word", bound=StrEnum)
_Item = TypeVar("_Item", bound=Hashable)


class Values:
    """A reader of values. It returns None for what is wrong, and what it adds to `problems` tells why."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.positions: dict[tuple[str, Pattern], int] = {}  # of patterns in their list; a rule's by `rules`
        self._wrong: set[Place] = set()

    def place_of(self, key: str, pattern: Pattern, *rest: str) -> Place:
        """Where a pattern of that list stands, or a key of the rule that has it."""
        return (key, self.positions[key, pattern], *rest)

    def is_sure(self, *place: str | int) -> bool:
        """Whether nothing is wrong at or below a place: only then does a missing value mean that none is stated."""
        return place not in self._wrong

    def add(self, place: Place, message: str, hint: str = "", suggestion: str = "") -> None:
        """Something is wrong at a place."""
        self.add_problem(place, Problem(message, hint=hint, suggestion=suggestion))

    def add_problem(self, place: Place, problem: Problem) -> None:
        """The same with a problem that is made already."""
        self.problems.append(replace(problem, where=written(place)))
        self.doubt(place)

    def doubt(self, place: Place) -> None:
        """What a place says is not known; the problem is told elsewhere."""
        self._wrong.update(place[:end] for end in range(len(place) + 1))

    def mapping(self, place: Place, value: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        """The entries of a mapping whose keys are known."""
        if not isinstance(value, Mapping):
            self.add(place, f"expected a mapping, this is {shown(value)}")
            return {}
        for key in value:
            if key not in known:
                self._unknown(place, key, list(known))
        return {key: item for key, item in value.items() if key in known}

    def sequence(self, place: Place, value: Any) -> Sequence[Any]:
        """The items of a list; none of what is no list."""
        if isinstance(value, list | tuple):
            return value
        hint = "an empty list is written []" if value is None else ""
        self.add(place, f"expected a list, this is {shown(value)}", hint)
        return ()

    def items(self, place: Place, value: Any, read: Callable[[Place, Any], _Item | None]) -> dict[_Item, int]:
        """The items of a list with their index, each once; one that repeats another is wrong."""
        found: dict[_Item, int] = {}
        for index, item in enumerate(self.sequence(place, value)):
            one = read((*place, index), item)
            if one is not None and found.setdefault(one, index) != index:
                self.add((*place, index), f"{shown(item)} stands in {written((*place, found[one]))}, too")
        return found

    def approvers(self, place: Place, value: Any) -> tuple[str, ...]:
        if isinstance(value, list | tuple) and not value:
            self.add(place, "nobody is named", "leave the key out where everybody who may decide may approve")
        return tuple(self.items(place, value, self._approver))

    def _approver(self, place: Place, value: Any) -> str | None:
        if not isinstance(value, str) or not _is_approver(value):
            hint = f"at most {LONGEST_APPROVER} visible characters, without spaces around them"
            self.add(place, f"expected a name or {ROLE}NAME, this is {shown(value)}", hint)
            return None
        kind, colon, name = value.partition(":")
        if colon and not value.startswith(ROLE) and edits(kind.lower() + ":", ROLE) <= 1:
            meant = ROLE + name.strip() if name.strip() else ""
            self.add(place, f"{shown(value)} is nobody's name", f"a role is written {ROLE}NAME", meant)
            return None
        return value

    def duration(self, place: Place, value: Any) -> timedelta | None:
        if not isinstance(value, str):
            self.add(place, f"expected an ISO 8601 duration such as PT30M, this is {shown(value)}")
            return None
        try:
            return read_duration(value)
        except ValueError as error:
            meant = meant_duration(value)
            self.add(place, str(error), f"write {meant}" if meant else "", meant)
            return None

    def text(self, place: Place, value: Any) -> str | None:
        if not isinstance(value, str) or not value.strip():
            self.add(place, f"expected text, this is {shown(value)}", "leave the key out for the default")
            return None
        if len(value) > LONGEST_TEXT:
            self.add(place, f"the text has {len(value)} characters, {LONGEST_TEXT} are allowed")
        elif any("\ud800" <= char <= "\udfff" for char in value):
            self.add(place, "the text has half of a surrogate pair, which cannot be stored")
        return value

    def flag(self, place: Place, value: Any) -> bool | None:
        if isinstance(value, bool):
            return value
        self.add(place, f"expected true or false, this is {shown(value)}")
        return None

    def word(self, place: Place, value: Any, words: type[_Word]) -> _Word | None:
        known = [word.value for word in words]
        if isinstance(value, str) and value in known:
            return words(value)
        near = _nearest(value, known) if isinstance(value, str) else ""
        hint = f"write {near}" if near else ""
        self.add(place, f"expected {', '.join(known[:-1])} or {known[-1]}, this is {shown(value)}", hint, near)
        return None

    def number(self, place: Place, value: Any, least: int, most: int) -> int | None:
        if type(value) is not int or not least <= value <= most:
            self.add(place, f"expected a whole number from {least} to {most}, this is {shown(value)}")
            return None
        return value

    def schema(self, place: Place, value: Any) -> None:
        """`$schema` is for editors."""
        if not isinstance(value, str):
            self.add(place, f"expected the address of a JSON Schema, this is {shown(value)}")

    def _unknown(self, place: Place, key: Any, known: Sequence[str]) -> None:
        text = key if isinstance(key, str) else shown(key)
        here = (*place, text[:_SHOWN])
        if key in _OF_THE_REFERENCE:
            self.add(here, "this key is another system's", _IMPORT)
            for one in known:  # could stand below it
                self.doubt((*place, one))
            return
        near = _nearest(text, known)
        hint = f"write {near}" if near else f"known are {', '.join(key for key in known if key != '$schema')}"
        self.add(here, "there is no such key", hint, near)
        if near:
            self.doubt((*place, near))


def shown(value: Any) -> str:
    """A value in a message: in short, with hidden characters as escapes."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "empty"
    if isinstance(value, str):
        return f"'{visible(value[:_SHOWN])}'" + ("..." if len(value) > _SHOWN else "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**15):
        return str(value)
    kinds = ((int, "a number"), (Mapping, "a mapping"), (list | tuple, "a list"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "none of what YAML and JSON have")


def _is_approver(text: str) -> bool:
    name = text.removeprefix(ROLE)
    return bool(name) and name == name.strip() and len(text) <= LONGEST_APPROVER and text.isprintable()


def _nearest(text: str, known: Sequence[str]) -> str:
    """The known word that is nearest, within a third of its length; empty where none is."""
    if len(text) > _LONGEST_KEY:
        return ""
    alike = [word for word in known if abs(len(word) - len(text)) <= _most_edits(word)]
    distance, nearest = min(((edits(text.lower(), word.lower()), word) for word in alike), default=(0, ""))
    return nearest if distance <= _most_edits(nearest) else ""


def _most_edits(word: str) -> int:
    return max(2, len(word) // 3)


Reads = Callable[[Values, Place, Any], Any]
# How the values of keys are read that are no patterns: what holds while calls wait, and what a turn may spend.
FRICTION: Final[dict[str, Reads]] = {
    "timeoutPolicy": lambda reader, place, value: reader.word(place, value, TimeoutPolicy),
    "approvalTimeout": Values.duration,
    "approvalValidity": Values.duration,
    "pauseReason": Values.text,
    "pendingMessage": Values.text,
    "approvers": Values.approvers,
    "allowSelfApproval": Values.flag,
}
BUDGETS: Final[dict[str, Reads]] = {
    "maxPausesPerTurn": lambda reader, place, value: reader.number(place, value, 1, MOST_PAUSES),
    "maxAutoApprovalsPerTurn": lambda reader, place, value: reader.number(place, value, 0, MOST_AUTO_APPROVALS),
    "onNoProgress": lambda reader, place, value: reader.word(place, value, NoProgress),
}
