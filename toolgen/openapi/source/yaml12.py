"""YAML text -> plain data, as the YAML 1.2 core schema reads it (YAML 1.2.2, section 10.3.2).

PyYAML parses, and its events are built into data here: its own constructor follows YAML 1.1 (`no`
is a boolean, `12:30:45` a number), keeps the last of two equal keys and recurses without a limit.
Of YAML 1.1 stays the merge key `<<`, and that U+0085, U+2028 and U+2029 break lines. Beyond JSON's
types there is nothing: dates, `.inf` and `.nan` stay strings, and a key is the text that was written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from toolgen.errors import LimitExceeded
from toolgen.openapi.source.json_text import duplicate, number_fault, paused_gc, syntax_fault

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml: the same events, slower

_WORDS = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MOST_DIGITS = 3_500  # of an octal or hexadecimal integer: Python prints integers of up to 4,300 decimal digits

_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {
    _TAG + "null": (type(None),),
    _TAG + "bool": (bool,),
    _TAG + "int": (int,),
    _TAG + "float": (float, int),
}

_OPEN = object()  # stands for a collection whose end is not read yet
_MERGE = object()  # the key `<<`


class _Fault(Exception):
    """A fault at an offset of the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message, offset)
        self.message, self.offset = message, offset


def load_yaml(text: str, where: str, *, nesting: int, nodes: int) -> Any:
    """The value of the one document in a YAML text: dict (str keys), list, str, int, float, bool, None.

    What an alias points to is shared, never copied, so the value can stand for far more than was
    read. Raises SyntaxFault, and LimitExceeded when the text is nested deeper than `nesting` or has
    more than `nodes` values, those of aliases counted each time; how deep aliases reach is for the
    caller to check.
    """
    faults: list[tuple[str, int]] = []
    try:
        with paused_gc():
            value = _Builder(text, where, nesting, nodes, faults).document()
    except RecursionError:
        raise LimitExceeded(f"{where} is nested too deep to be read") from None
    except (_Fault, yaml.YAMLError, ValueError) as exc:
        if "maximum nesting" in str(exc):  # libyaml's own limit, 1,000 levels
            raise LimitExceeded(f"{where} is nested too deep to be read") from exc
        raise syntax_fault(where, "YAML", text, [*faults, _described(exc, text)]) from exc
    if faults:
        raise syntax_fault(where, "YAML", text, faults)
    return value


def _described(exc: Exception, text: str) -> tuple[str, int]:
    """What an error says and the offset it points at."""
    if isinstance(exc, _Fault):
        return exc.message, exc.offset
    if isinstance(exc, yaml.MarkedYAMLError):
        mark = exc.problem_mark or exc.context_mark
        message = ", ".join(part for part in (exc.context, exc.problem) if part)
        return message, mark.index if mark else 0
    if isinstance(exc, yaml.reader.ReaderError):
        bad = yaml.reader.Reader.NON_PRINTABLE.search(text)
        return str(exc.reason), bad.start() if bad else 0
    return "an escape for a character that Unicode does not have", 0  # chr() in the parser without libyaml


class _Builder:
    """Builds data from the events of one text."""

    def __init__(self, text: str, where: str, nesting: int, nodes: int, faults: list[tuple[str, int]]) -> None:
        self._faults = faults  # gets the repeated keys: reading goes on to find them all
        self._loader = _LOADER(text)
        self._next: Callable[[], Event] = self._loader.get_event
        self._where, self._nesting, self._nodes = where, nesting, nodes
        self._count = 0  # values so far, aliases expanded
        self._anchors: dict[str, tuple[Any, int]] = {}  # a scalar's event or the data; how many values it is
        self._texts: dict[str, str] = {}  # one object for all equal keys: they hash once and take less room

    def document(self) -> Any:
        self._next()  # the stream's start
        start = self._next()
        if not isinstance(start, DocumentStartEvent):
            raise _Fault("the document is empty", 0)
        event = self._next()
        if isinstance(event, ScalarEvent) and not event.value and not event.style and event.tag is None:
            raise _Fault("the document is empty", 0)
        value = self._value(event, 0)
        self._next()  # the document's end
        another = self._next()
        if isinstance(another, DocumentStartEvent):
            raise _Fault("a second document starts here; one file holds one document", _offset(another))
        return value

    def _value(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is AliasEvent:
            target, count = self._aliased(event)
            self._count += count
            if self._count > self._nodes:
                raise LimitExceeded(f"{self._where} holds more than {self._nodes} values once aliases are expanded")
            return _scalar(target) if type(target) is ScalarEvent else target
        before = self._count
        self._count += 1
        if kind is ScalarEvent:
            if event.anchor is not None:
                self._anchors[event.anchor] = event, 1
            return _scalar(event)
        if depth >= self._nesting:
            raise LimitExceeded(f"{self._where} is nested deeper than {self._nesting} levels")
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN, 0
        value = self._mapping(event, depth + 1) if kind is MappingStartEvent else self._sequence(event, depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._count - before
        return value

    def _sequence(self, start: SequenceStartEvent, depth: int) -> list[Any]:
        _check_tag(start, _TAG + "seq")
        items = []
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._value(event, depth))
        return items

    def _mapping(self, start: MappingStartEvent, depth: int) -> dict[str, Any]:
        _check_tag(start, _TAG + "map")
        members: dict[str, Any] = {}
        sources: list[dict[str, Any]] | None = None
        while type(event := self._next()) is not MappingEndEvent:
            key = self._key(event)
            if key is _MERGE:
                if sources is not None:
                    raise _Fault("duplicate key `<<`: several mappings are merged as a list", _offset(event))
                sources = self._merged(self._next(), depth)
                continue
            if key in members:
                self._faults.append((duplicate(key), _offset(event)))
            members[key] = self._value(self._next(), depth)
        return members if not sources else self._flatten(members, sources)

    def _key(self, event: Event) -> Any:
        """A key as it is written (`200`, `1.0`, `null`), or the mark of a merge key."""
        target = self._aliased(event)[0] if type(event) is AliasEvent else event
        if type(target) is not ScalarEvent:
            raise _Fault("a key must be a scalar", _offset(event))
        if target.anchor is not None:
            self._anchors[target.anchor] = target, 1
        if target.tag is not None or target.style:
            _scalar(target)  # has the checks
        text: str = target.value
        if text == "<<" and not target.style and target.tag is None:
            return _MERGE
        return self._texts.setdefault(text, text)

    def _merged(self, event: Event, depth: int) -> list[dict[str, Any]]:
        """The mappings a merge key names: one, or a list of them, the first one weighing most."""
        value = self._value(event, depth)
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _Fault("`<<` takes a mapping or a list of mappings", _offset(event))
        return sources

    @staticmethod
    def _flatten(members: dict[str, Any], sources: list[dict[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for source in reversed(sources):
            merged.update(source)
        merged.update(members)
        return merged

    def _aliased(self, event: Any) -> tuple[Any, int]:
        """What an alias stands for, a scalar's event or a finished dict or list, and how many values it is."""
        found = self._anchors.get(event.anchor)
        if found is None:
            raise _Fault(f"no anchor has the name {event.anchor!r}", _offset(event))
        if found[0] is _OPEN:
            raise _Fault(f"the alias {event.anchor!r} stands inside what it repeats", _offset(event))
        return found


def _scalar(event: Any) -> Any:
    if event.tag is not None:
        return _tagged(event)
    text: str = event.value
    if event.style:  # quoted or a block
        if event.style == '"' and not text.isascii():
            _check_unicode(event)
        return text
    if text in _WORDS:
        return _WORDS[text]
    return _number(event) if text[0] in "0123456789-+." else text


def _check_unicode(event: Any) -> None:
    """Refuse an unpaired surrogate, which the parser without libyaml lets pass."""
    try:
        event.value.encode()
    except UnicodeEncodeError:
        raise _Fault("an escape for an unpaired surrogate", _offset(event)) from None


def _number(event: Any) -> Any:
    """The number a plain scalar writes, or its text when it writes none."""
    text: str = event.value
    if _DECIMAL.fullmatch(text):
        try:
            return int(text)
        except ValueError:
            raise _Fault(number_fault(text), _offset(event)) from None
    if base := 8 if _OCTAL.fullmatch(text) else 16 if _HEXADECIMAL.fullmatch(text) else 0:
        if len(text) > _MOST_DIGITS:
            raise _Fault(f"an integer of {len(text)} characters is too long", _offset(event))
        return int(text, base)
    if _FLOAT.fullmatch(text):
        if math.isinf(number := float(text)):
            raise _Fault(number_fault(text), _offset(event))
        return number
    return text


def _tagged(event: Any) -> Any:
    """A scalar with one of the core schema's tags; every other tag is refused."""
    text: str = event.value
    if event.tag in ("!", _TAG + "str"):
        return text
    types = _TYPES.get(event.tag)
    if types is None:
        raise _unknown_tag(event)
    value: Any = _WORDS[text] if text in _WORDS else _number(event)
    if type(value) not in types:
        raise _Fault(f"this is no value of the tag {_short(event.tag)}", _offset(event))
    return float(value) if types == (float, int) else value


def _check_tag(event: Any, expected: str) -> None:
    if event.tag not in (None, "!", expected):
        raise _unknown_tag(event)


def _unknown_tag(event: Any) -> _Fault:
    return _Fault(f"the tag {_short(event.tag)} is not of YAML 1.2's core schema", _offset(event))


def _short(tag: str) -> str:
    return tag.replace(_TAG, "!!") if len(tag) < 80 else tag[:77] + "..."


def _offset(event: Any) -> int:
    index: int = event.start_mark.index
    return index
