"""What is printed: text that cannot command a terminal, tables, JSON."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_KEPT = "\n\t\u200c\u200d"  # joiners: some scripts and emoji need them
_NO_LIMIT = 100_000  # columns where no terminal cuts or wraps

Cell = tuple[str, str]  # text and style


class Format(StrEnum):
    """Whom the output is for: `text` for people, `json` for programs."""

    text = "text"
    json = "json"


def visible(text: str) -> str:
    """The text with control, bidirectional and zero-width characters as escapes."""
    return _escaped(text, lambda c: c.encode("unicode_escape").decode())


def in_line(text: str) -> str:
    """The same with line ends and tabs as escapes, so that no text makes up a line of its own."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in _KEPT or unicodedata.category(c) not in _HIDDEN else escape(c) for c in text)


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def to_json(data: Any) -> str:
    """Indented JSON in which hidden characters are escapes."""
    return _escaped(json.dumps(data, indent=2, ensure_ascii=False), _json_escape)


def to_line(data: Any) -> str:
    """JSON in one line of ASCII, with its line end: one of many in a stream."""
    return json.dumps(data, ensure_ascii=True) + "\n"


def print_json(data: Any, stream: TextIO) -> None:
    """Print a JSON value."""
    write(to_json(data) + "\n", stream)


def write(text: str, stream: TextIO) -> None:
    """Print text at once, so that a broken pipe shows here."""
    stream.write(text)
    stream.flush()


def rest(seconds: float, stream: TextIO) -> None:
    """Do nothing for a time, or until nobody reads what is printed: BrokenPipeError. Where that shows, at once."""
    import select
    import time

    try:
        poll = select.poll()  # not on every platform: there the next write shows it
        poll.register(stream.fileno(), 0)  # an error or a hang-up is told always
    except (AttributeError, OSError, ValueError):
        time.sleep(seconds)
        return
    if poll.poll(seconds * 1000):
        raise BrokenPipeError


def write_bytes(content: bytes) -> None:
    """Bytes on stdout, as they are."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def columns(stream: TextIO) -> int | None:
    """How many columns the terminal behind a stream has; None where lines are not wrapped."""
    import shutil

    return shutil.get_terminal_size().columns if _width(stream) is None else None


def count(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class Page:
    """Collects lines and tables, and prints them in one go: styled and wrapped where a terminal shows them."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._stream = stream
        self._console = Console(file=stream, width=_width(stream), markup=False, emoji=False, highlight=False)
        self._parts: list[RenderableType] = []
        self._verbatim: set[int] = set()

    def line(self, text: str = "", *, style: str = "", indent: int = 0) -> None:
        """A line of text; what does not fit is wrapped and stays indented."""
        self._parts.append(_indented(_text(text, style), indent))

    def paragraphs(self, text: str) -> None:
        """Text that may have several lines of its own."""
        self._parts.append(_plain(text))

    def verbatim(self, text: str) -> None:
        """Text whose lines are not wrapped, so that it can be copied."""
        self._parts.append(_plain(text))
        self._verbatim.add(len(self._parts) - 1)

    def facts(self, pairs: Iterable[tuple[str, str, str]], *, indent: int = 0) -> None:
        """Lines of (label, value, style of the value), the values below each other."""
        self._table((), [((label, "dim"), (value, style)) for label, value, style in pairs], indent)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Cell]], *, indent: int = 0) -> None:
        """A table without lines. Where it does not fit, each row takes two lines, the middle cells below."""
        listed = list(rows)
        columns = zip(header, *([text for text, _ in row] for row in listed), strict=True)
        if sum(max(map(len, column)) + 2 for column in columns) - 2 + indent <= self._console.width:
            self._table(header, listed, indent)
            return
        for first, *middle, last in listed:
            self._parts.append(_indented(_text(first[0], first[1]).append("  ").append_text(_text(*last)), indent))
            shown = [
                f"{name} {text}" if text.isdigit() else text
                for name, (text, _) in zip(header[1:-1], middle, strict=True)
            ]
            if below := "  ".join(filter(None, shown)):
                self.line(below, style="dim", indent=indent + 4)

    def _table(self, header: Sequence[str], rows: Sequence[Sequence[Cell]], indent: int) -> None:
        from rich.table import Table

        table = Table(box=None, show_header=bool(header), header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        for index in range(len(rows[0]) if rows else len(header)):
            table.add_column(header[index] if header else "", overflow="fold")
        for row in rows:
            table.add_row(*(_text(text, style) for text, style in row))
        self._parts.append(_indented(table, indent))

    def print(self) -> None:
        """Print what was collected."""
        with self._console.capture() as captured:
            for index, part in enumerate(self._parts):
                self._console.print(part, soft_wrap=index in self._verbatim)
        write(re.sub(r"[ ]+$", "", captured.get(), flags=re.MULTILINE), self._stream)


def _indented(part: RenderableType, by: int) -> RenderableType:
    from rich.padding import Padding

    return Padding.indent(part, by) if by else part


def _text(text: str, style: str) -> Text:
    from rich.text import Text

    return Text(in_line(text), style=style)


def _plain(text: str) -> Text:
    from rich.text import Text

    return Text(visible(text))


def _width(stream: TextIO) -> int | None:
    """None: what the terminal has. Where nobody looks and COLUMNS does not say, lines are as long as they are."""
    return None if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal() else _NO_LIMIT
