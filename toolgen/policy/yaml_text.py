"""Approval configs as YAML that people read and edit: one key, one pattern a line, comments that stay comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolgen.policy.text import visible

WIDTH: Final = 100
# Text that no reader of any YAML version takes for something else.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./*{}-]*(?::[A-Za-z0-9_./*{}:-]*[A-Za-z0-9_/*}])?")
_WORDS = frozenset("y n yes no on off true false null".split())
_CONTINUED = " " * 4
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def scalar(value: str | int, column: int = 0) -> str:
    """A value as it stands in YAML behind so many characters: plain where that is safe, long ones on several lines."""
    if isinstance(value, int):
        return str(value)
    room = WIDTH - column
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and len(value) <= room:
        return value
    lines, line = [], '"'
    for char in value:
        escaped = _escaped(char)
        if len(line) + len(escaped) >= room:  # one is for what ends the line
            lines.append(line + "\\")
            line, escaped = "", "\\x20" if char == " " else escaped
        line += escaped
    return f"\n{_CONTINUED}".join([*lines, line + '"'])


def comment(text: str, indent: int = 0) -> str:
    """One line of a comment. What could end it is written as an escape, what does not fit is cut."""
    line = f"{' ' * indent}# {visible(text)}"
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def block(mapping: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a config."""
    for key, value in mapping.items():
        if not isinstance(value, list):
            yield f"{key}: {scalar(value, len(key) + 2)}"
        elif not value:
            yield f"{key}: []"
        else:
            yield f"{key}:"
            for item in value:
                yield from _item(item)


def _item(item: Any) -> Iterator[str]:
    if isinstance(item, Mapping):
        for number, (key, value) in enumerate(item.items()):
            yield f"{'  ' if number else '- '}{key}: {scalar(value, len(key) + 4)}"
    else:
        yield f"- {scalar(item, 4)}"


def _escaped(char: str) -> str:
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
