"""What an export says about itself: its data, and a note for everything that was lost or will not fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Note:
    """One thing a target does not take as it is: a cut, a dropped keyword, a limit that is passed.

    `tool` is empty where the note is about the whole set; `pointer` is the JSON pointer, inside the
    tool's input schema, of the first place it is about.
    """

    tool: str
    message: str
    pointer: str = ""

    def __str__(self) -> str:
        place = " ".join(part for part in (self.tool, self.pointer) if part)
        return f"{place}: {self.message}" if place else self.message

    def to_dict(self) -> dict[str, str]:
        """JSON-ready data."""
        return {"tool": self.tool, "message": self.message, "pointer": self.pointer}


@dataclass(frozen=True, slots=True)
class Export:
    """Tools in the form one target takes. `data` is JSON-ready (text for markdown), to be read only.

    Exported schemas share their definitions with the toolset and with each other.
    """

    target: str
    data: Any
    notes: tuple[Note, ...] = ()


class Notes:
    """Collects the notes about one tool; what happens at many places becomes one note with a count."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self._places: dict[str, list[str]] = {}

    def add(self, message: str, pointer: str = "") -> None:
        """Note something; the same message again only counts."""
        self._places.setdefault(message, []).append(pointer)

    def dropped(self, keyword: str, pointer: str) -> None:
        """Note that a keyword the target does not have was left out."""
        self.add(f"{keyword} is left out: this target does not have it", pointer)

    def extend(self, other: Notes) -> None:
        """Take over what another collector noted."""
        for message, places in other._places.items():
            self._places.setdefault(message, []).extend(places)

    def all(self) -> tuple[Note, ...]:
        """Everything noted, in the order it was first seen."""
        return tuple(
            Note(self.tool, message + (f" ({len(places)} places)" if len(places) > 1 else ""), places[0])
            for message, places in self._places.items()
        )
