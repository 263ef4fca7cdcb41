"""Places inside a toolset, as errors write them: `tools[3].request.query[0].value`."""

from __future__ import annotations

import re

Part = str | int
Place = tuple[Part, ...]

_PLAIN = re.compile(r"[A-Za-z0-9_$-]+")
_PARTS = re.compile(r"\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|([A-Za-z0-9_$-]+)", re.DOTALL)


def written(place: Place) -> str:
    """A place as text; `parts` reads it back."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += "['" + re.sub(r"(['\\])", r"\\\1", part) + "']"
    return text


def parts(text: str) -> Place:
    """The place a text writes."""
    found: list[Part] = []
    for index, quoted, plain in _PARTS.findall(text):
        found.append(int(index) if index else plain or re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
    return tuple(found)
