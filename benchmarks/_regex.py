"""Texts of a regular expression."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as sre_parse  # type: ignore[attr-defined]


class NoValue(Exception):
    """No value was found for a schema."""


def text_of(pattern: str, chance: random.Random, number: int) -> str:
    """A text of a regular expression, or NoValue where Python cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = sre_parse.parse(re.sub(r"\(\?<(?![=!])", "(?P<", pattern))
    except (re.error, OverflowError):
        raise NoValue from None
    return _text_of(tree, chance, number, {})


def _text_of(tree: Any, chance: random.Random, number: int, groups: dict[int, str]) -> str:
    out = []
    for op, given in tree:
        if op is sre.LITERAL:
            out.append(chr(given))
        elif op is sre.NOT_LITERAL:
            out.append("a" if given != ord("a") else "b")
        elif op is sre.ANY:
            out.append("a")
        elif op is sre.IN:
            out.append(_one_of(given, chance))
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            low, high, below = given
            times = min(low + number, high if high is not sre.MAXREPEAT else low + number)
            out += [_text_of(below, chance, number, groups) for _ in range(min(times, 1000))]
        elif op is sre.SUBPATTERN:
            groups[given[0]] = text = _text_of(given[3], chance, number, groups)
            out.append(text)
        elif op is sre.BRANCH:
            out.append(_text_of(chance.choice(given[1]), chance, number, groups))
        elif op is sre.GROUPREF:
            out.append(groups.get(given, ""))
        elif op is sre.ATOMIC_GROUP:
            out.append(_text_of(given, chance, number, groups))
    return "".join(out)


_CLASSES = {sre.CATEGORY_DIGIT: "7", sre.CATEGORY_WORD: "w", sre.CATEGORY_SPACE: " ", sre.CATEGORY_NOT_DIGIT: "d"}
_CLASSES |= {sre.CATEGORY_NOT_SPACE: "s", sre.CATEGORY_NOT_WORD: "-"}


def _one_of(members: Any, chance: random.Random) -> str:
    found, negated = [], False
    for op, given in members:
        if op is sre.NEGATE:
            negated = True
        elif op is sre.LITERAL:
            found.append(chr(given))
        elif op is sre.RANGE:
            found += [chr(c) for c in range(given[0], min(given[1], given[0] + 100) + 1)]
        elif op is sre.CATEGORY:
            found.append(_CLASSES[given])
    if negated:
        spaced = {" "} if " " in found else set()
        return next((c for c in "axZ09_-.~!" if c not in found and c not in spaced), "a")
    return chance.choice([c for c in found if c.isalnum()] or found)
