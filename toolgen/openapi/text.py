"""Text of a document is data: control characters out, capped, and the cut is marked."""

from __future__ import annotations

import re
from typing import Any

CUT = "… [cut]"
# C0 and C1 controls but for newline and tab; zero-width and bidirectional marks; fillers, tag characters and
# supplementary variation selectors, which no person sees and every model reads. Joiners stay: some scripts
# and emoji need them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)


def clean(text: str, cap: int) -> str:
    """The text without invisible characters and at most `cap` characters long, a cut marked at its end."""
    if not text.isascii() or not text.isprintable():
        text = _INVISIBLE.sub("", text.replace("\r\n", "\n"))
    text = text.strip()
    return text if len(text) <= cap else text[: cap - len(CUT)].rstrip() + CUT


def one_line(text: str, cap: int) -> str:
    """The same on one line, runs of white space as one space."""
    return clean(" ".join(text.split()), cap)


def shown(value: Any) -> str:
    """A value of a document in a message: what kind of thing it is, or its first characters."""
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return clean(repr(value), 40)
