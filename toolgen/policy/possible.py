"""Which texts can be an address at all: the grammars of endpoint paths and of tool names.

A pattern is run through a grammar with every `*` standing for anything. Where no text of the
grammar is left that could still match, the pattern cannot match either, and the character is known
at which that is so.
"""

from __future__ import annotations

import string
from enum import IntEnum
from functools import lru_cache

from toolgen.policy.address import LONGEST_NAME

_NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_.-")
# RFC 3986: what a path carries raw; everything else stands percent-encoded in an endpoint's key.
_RAW = frozenset(string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@")
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_HEX = frozenset("0123456789ABCDEF")
_NEVER_ENCODED = frozenset(map(ord, _UNRESERVED)) | {ord("/"), ord("\\"), 0}


class _S(IntEnum):
    """Where a reader of an endpoint's path is. Nothing leads back to START."""

    START = 0
    SLASH = 1  # behind a slash
    DOT = 2  # the segment is `.` so far
    DOTS = 3  # the segment is `..` so far
    SEGMENT = 4
    OPENED = 5  # behind `{`
    EXPRESSION = 6
    EXPRESSION_SLASH = 7  # a slash inside braces
    PERCENT = 8
    HEX = 9  # HEX + n: behind `%n`, n from 0 to 15


_ENDS = frozenset({_S.SLASH, _S.SEGMENT})
_IN_BRACES = frozenset({_S.OPENED, _S.EXPRESSION, _S.EXPRESSION_SLASH})
# Where a `*` ends: wherever else it could, a path goes on in no way in which it does not from one of these.
_BEHIND_STAR: frozenset[int] = frozenset({_S.SEGMENT, _S.EXPRESSION})


def _step(state: int, char: str) -> int | None:
    """The state behind one more character, None where no path goes on so."""
    if state == _S.START:
        return _S.SLASH if char == "/" else None
    if _S.OPENED <= state <= _S.EXPRESSION_SLASH:
        if char in "{}":
            return _S.SEGMENT if char == "}" and state != _S.OPENED else None
        if char == "/":
            return None if state == _S.EXPRESSION_SLASH else _S.EXPRESSION_SLASH
        return None if "\ud800" <= char <= "\udfff" else _S.EXPRESSION  # half a pair stands in no document
    if state == _S.PERCENT:
        return _S.HEX + int(char, 16) if char in _HEX else None
    if state >= _S.HEX:
        return _S.SEGMENT if char in _HEX and (state - _S.HEX) * 16 + int(char, 16) not in _NEVER_ENCODED else None
    return _step_outside(state, char)


def _step_outside(state: int, char: str) -> int | None:
    if char == "/":
        return _S.SLASH if state == _S.SEGMENT else None
    if char == "{":
        return _S.OPENED
    if char == "%":
        return _S.PERCENT
    if char == "." and state in (_S.SLASH, _S.DOT):
        return _S.DOT if state == _S.SLASH else _S.DOTS
    return _S.SEGMENT if char in _RAW else None


@lru_cache(maxsize=8192)
def _after(states: frozenset[int], char: str) -> frozenset[int]:
    """Where the next character of a pattern can lead to."""
    if char == "*":
        return _BEHIND_STAR
    return frozenset(after for state in states if (after := _step(state, char)) is not None)


def impossible_in_path(pattern: str) -> int | None:
    """Where the pattern of an endpoint's path stops being one that a path can match; None if it never does.

    The offset is that of the first character no path has there, the pattern's length where it ends
    too early.
    """
    states: frozenset[int] = frozenset({_S.START})
    closed = max(pattern.rfind("}"), pattern.rfind("*"))  # nothing closes braces behind this
    for offset, char in enumerate(pattern):
        states = _after(states, char)
        if offset >= closed:
            states -= _IN_BRACES
        if not states:
            return offset
    return None if states & _ENDS else len(pattern)


def impossible_in_name(pattern: str) -> int | None:
    """The same for a tool's name: one to 128 characters of `[A-Za-z0-9_.-]`."""
    length = 0
    for offset, char in enumerate(pattern):
        if char == "*":
            continue
        length += 1
        if char not in _NAME_CHARACTERS or length > LONGEST_NAME:
            return offset
    return None if pattern else 0
