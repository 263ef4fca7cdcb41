"""Text of a document inside Markdown: it reads as it was written and can do nothing.

Prose is one line in which Markdown's and HTML's own characters are escaped. What renderers turn
into links by themselves (addresses of any kind) stands in a code span, where nothing is live.
"""

from __future__ import annotations

import re

from toolgen.openapi.text import one_line

CAP = 2_000
_MARKUP = re.compile(r"([\\`*_\[\]|~!$^{}])")
_AT_START = re.compile(r"^(\d+(?=[.)])|(?=[-+=#:]))")
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LIVE = re.compile(r"\w[\w+.-]*:/|www\.|@|\bmailto:|\bxmpp:", re.IGNORECASE)


def prose(text: str, *, cell: bool = False) -> str:
    """Text as one line of Markdown prose, safe in a table cell too."""
    words = [code(word, cell=cell) if _LIVE.search(word) else _escaped(word) for word in one_line(text, CAP).split()]
    return _AT_START.sub(r"\1\\", " ".join(words))


def _escaped(word: str) -> str:
    return _MARKUP.sub(r"\\\1", word).translate(_HTML)


def code(text: str, *, cell: bool = False) -> str:
    """Text as a code span, fenced by more backticks than it has in a row."""
    text = one_line(text, CAP)
    if not text:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text.replace('|', chr(92) + '|') if cell else text}{pad}{fence}"


class Anchors:
    """The fragment each heading gets from renderers that follow GitHub; a repeated one gets a number."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def add(self, heading: str) -> str:
        """The fragment of the next heading."""
        base = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = self._seen.get(base, 0)
        self._seen[base] = count + 1
        return f"{base}-{count}" if count else base
