"""Text in messages: hidden characters as escapes, lists that stay short, counted nouns."""

from __future__ import annotations

from collections.abc import Sequence


def visible(text: str) -> str:
    """The text with hidden characters as escapes, line ends too."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def several(texts: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def counted(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
