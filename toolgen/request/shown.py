"""The pieces of a preview, and the one way text gets into them: redacted, visible, cut."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolgen.identity.redact import Redactor
from toolgen.request.visible import visible

Kind = Literal["json", "form", "text", "bytes", "multipart"]
CHARACTERS: Final = 2_000  # shown of a value
LINES: Final = 200  # shown of a body
_MOST_FLAGS: Final = 20
_LONGEST_PLACE: Final = 120


@dataclass(frozen=True, slots=True)
class Field:
    """A name and its value, both decoded and safe to show."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Later:
    """What is filled in when the request is sent: the unresolved text of a reference, or words for it."""

    location: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A value that is not shown whole: `shown` of `total` characters or lines.

    `sha256` is that of the whole as `Preview.whole(place)` gives it, UTF-8, in hexadecimal.
    """

    place: str
    shown: int
    total: int
    unit: Literal["characters", "lines"]
    sha256: str

    def __str__(self) -> str:
        return f"{self.place}: {self.shown:,} of {self.total:,} {self.unit}, sha256 {self.sha256}"


@dataclass(frozen=True, slots=True)
class Content:
    """A body, or a part of one. `size` is in bytes.

    `text` is pretty JSON, the text, or for bytes nothing or the text they also are; `fields` are those of a
    form, `parts` those of a multipart body. `sha256` is that of the bytes, and None where something in them
    is redacted: a digest of a short secret can be guessed.
    """

    kind: Kind
    media_type: str | None
    size: int
    sha256: str | None
    text: str | None = None
    fields: tuple[Field, ...] = ()
    parts: tuple[Content, ...] = ()
    name: str | None = None
    filename: str | None = None
    headers: tuple[Field, ...] = ()


class Shower:
    """Makes text safe to show, and keeps what it had to flag and to cut."""

    def __init__(self, redactor: Redactor, limit: int | None) -> None:
        self.redactor, self.limit = redactor, limit
        self.cuts: list[Cut] = []
        self.wholes: dict[str, str] = {}
        self._flags: dict[str, None] = {}

    def flag(self, text: str) -> None:
        """Tell the reader something, once; `text` is safe to show."""
        self._flags[text] = None

    @property
    def flags(self) -> tuple[str, ...]:
        told = list(self._flags)
        more = [f"and {len(told) - _MOST_FLAGS} more of these"] if len(told) > _MOST_FLAGS else []
        return tuple(told[:_MOST_FLAGS] + more)

    def text(self, place: str, text: str) -> str:
        """Any text on one line, redacted by what it looks like."""
        return self.safe(place, self.redactor.text(text))

    def named(self, place: str, name: str, value: str) -> Field:
        """A name and its value, redacted by the name, too."""
        shown = self.redactor.named(name, value)
        return Field(self.text(f"name of {place}", name), self.safe(place, str(shown)))

    def safe(self, place: str, text: str, keep: str = "") -> str:
        """Redacted text as it may be shown: nothing hidden in it, and not longer than the limit."""
        shown, told = visible(text, keep)
        if told:
            self.flag(f"{self.place(place)}: hidden characters or white space: {', '.join(told[:8])}")
        if self.limit is not None and len(shown) > self.limit:
            self._cut(place, shown, self.limit, len(shown), "characters")
            return shown[: self.limit] + "…"
        return shown

    def lines(self, place: str, text: str, whole: str | None = None) -> str:
        """Text of many lines, none of them and not all of them too long; `whole` is what was not cut before."""
        lines, whole = text.split("\n"), text if whole is None else whole
        if self.limit is None:
            return text
        if len(lines) > LINES:
            self._cut(place, whole, LINES, len(lines), "lines")
            lines = [*lines[:LINES], "…"]
        if any(len(line) > self.limit for line in lines):
            if len(lines) <= LINES:
                shown = sum(min(len(line), self.limit) for line in lines) + len(lines) - 1
                self._cut(place, whole, shown, len(whole), "characters")
            lines = [line if len(line) <= self.limit else line[: self.limit] + "…" for line in lines]
        return "\n".join(lines)

    def json(self, place: str, data: Any) -> str:
        """Redacted JSON data, pretty; it is JSON unless lines of it are cut."""
        shown = json.dumps(self._strings(place, data), ensure_ascii=False, indent=2)
        if self.limit is None or shown.count("\n") < LINES:
            return shown
        return self.lines(place, shown, Shower(self.redactor, None).json(place, data))

    def place(self, place: str) -> str:
        """A place as a reader is told of it; names in it are whatever a model calls them."""
        shown = visible(self.redactor.text(place))[0]
        return shown if len(shown) <= _LONGEST_PLACE else shown[:_LONGEST_PLACE] + "…"

    def _strings(self, place: str, data: Any) -> Any:
        if isinstance(data, str):
            return self.safe(place, data, keep="\n\r\t")  # JSON escapes these itself
        if isinstance(data, list):
            return [self._strings(f"{place}/{index}", item) for index, item in enumerate(data)]
        if isinstance(data, dict):
            found: dict[str, Any] = {}
            for key, item in data.items():
                name = self.safe(f"name in {place}", key, keep="\n\r\t")
                while name in found:
                    name += "'"
                found[name] = self._strings(f"{place}/{_escaped(key)}", item)
            return found
        return data

    def _cut(self, place: str, whole: str, shown: int, total: int, unit: Literal["characters", "lines"]) -> None:
        name, number = self.place(place), 2
        while name in self.wholes:  # a name that is there twice, or was cut itself
            name, number = f"{self.place(place)} ({number})", number + 1
        digest = hashlib.sha256(whole.encode()).hexdigest()
        self.cuts.append(Cut(name, shown, total, unit, digest))
        self.wholes[name] = whole


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")  # RFC 6901


def as_fields(fields: tuple[Field, ...]) -> list[Mapping[str, str]]:
    """Fields as JSON-ready data."""
    return [{"name": field.name, "value": field.value} for field in fields]


_PLAIN_NAME = re.compile(r"[\w.$@\[\]-]+")


def label(name: str) -> str:
    """A name in front of its value: in quotes where it could be taken for more than a name."""
    return name if _PLAIN_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)
