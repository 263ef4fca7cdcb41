"""JSON text -> plain data, strictly, and the faults that point at a place in a text (JSON or YAML).

RFC 8259 leaves repeated keys, unpaired surrogates and numbers out of range to each reader. Here
repeated keys and such numbers are faults, an unpaired surrogate becomes U+FFFD.
"""

from __future__ import annotations

import gc
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from toolgen.errors import LimitExceeded, Problem, SyntaxFault

MOST_FAULTS = 20  # of one text that are listed

_LEFT, _RIGHT = 60, 40  # characters of a line that an excerpt shows around the fault

_SURROGATE = re.compile(r"\\u[dD]")
# Escapes are consumed from the left, so that the second backslash of `\\ud800` starts nothing.
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


class _Refused(ValueError):
    """Well-formed JSON that is refused; where it is, a second and slower pass finds out."""


def load_json(text: str, where: str) -> Any:
    """The value of a JSON text: dict, list, str, int, float, bool, None.

    Raises SyntaxFault (its cause is a JSONDecodeError when the text is not JSON at all) and
    LimitExceeded when the text is nested too deep for the parser.
    """
    if _SURROGATE.search(text):  # a quarter of the time of `in`
        text = _ESCAPES.sub(_pair_or_replacement, text)
    try:
        with paused_gc():
            return _DECODER.decode(text)
    except json.JSONDecodeError as exc:
        raise syntax_fault(where, "JSON", text, [(exc.msg, exc.pos)]) from exc
    except RecursionError:
        raise LimitExceeded(f"{where} is nested too deep to be read") from None
    except ValueError as exc:  # also what int() says of more digits than Python converts
        raise syntax_fault(where, "JSON", text, _refusals(text)) from exc


def syntax_fault(where: str, language: str, text: str, faults: Iterable[tuple[str, int]]) -> SyntaxFault:
    """The error for faults given as (message, offset in the text), each with line, column and a caret."""
    problems = []
    for message, offset in faults:
        line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
        problems.append(Problem(f"{message}\n{_excerpt(text, offset, line)}", where, line, column))
        if len(problems) == MOST_FAULTS:
            break
    return SyntaxFault(f"{where} is not valid {language}", problems)


@contextmanager
def paused_gc() -> Iterator[None]:
    """No cyclic garbage collection meanwhile: parsing makes many objects and no garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _excerpt(text: str, offset: int, line: int) -> str:
    """The line around an offset with a caret below; documents can be one line of megabytes."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    left, right = max(start, offset - _LEFT), min(end, offset + _RIGHT)
    before, after = ("..." if left > start else ""), ("..." if right < end else "")
    # Control and bidi characters could rewrite what a terminal shows.
    shown = "".join(c if c.isprintable() else " " for c in text[left:right])
    margin = f"{line:>6} | "
    return f"{margin}{before}{shown}{after}\n{' ' * (len(margin) - 2)}| {' ' * (len(before) + offset - left)}^"


def _pair_or_replacement(match: re.Match[str]) -> str:
    return "\\ufffd" if match[1] else match[0]  # as long as what it replaces: offsets stay right


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Refused
    return members


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise _Refused
    return number


def _constant(_name: str) -> NoReturn:
    raise _Refused


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_constant)


def _refusals(text: str) -> Iterator[tuple[str, int]]:
    """(message, offset) of every repeated key and every number that is refused."""
    objects: list[set[str] | None] = []  # keys seen in each open object; None for an array
    previous = ""
    for token in _TOKENS.finditer(text):
        word = token[0]
        if word in ("{", "["):
            objects.append(set() if word == "{" else None)
        elif word in ("}", "]"):
            del objects[-1:]
        elif word[0] == '"':
            keys = objects[-1] if objects and previous in ("{", ",") else None
            if keys is not None:
                key = json.loads(word, strict=False)
                if key in keys:
                    yield duplicate(key), token.start()
                keys.add(key)
        elif word not in (":", ",") and (message := number_fault(word)):
            yield message, token.start()
        previous = word


def duplicate(key: str) -> str:
    """What a fault says of a repeated key."""
    return f"duplicate key {json.dumps(key if len(key) < 80 else key[:77] + '...', ensure_ascii=False)}"


def number_fault(word: str) -> str:
    """What is wrong with a number as it is written, or an empty string."""
    if word in ("NaN", "Infinity", "-Infinity"):
        return f"{word} is not a number JSON has"
    try:
        int(word)
    except ValueError:
        if re.fullmatch(r"[-+]?[0-9]+", word):
            return f"an integer of {len(word)} characters is too long"
    try:
        return "a number too large for a float" if math.isinf(float(word)) else ""
    except ValueError:
        return ""
