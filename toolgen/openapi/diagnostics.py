"""Faults of a document, as values: they are reported and never stop the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolgen.openapi.text import clean

MESSAGE_CAP = 500
Level = Literal["note", "degraded", "skipped"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault of a document.

    A `note` changes nothing about the tool, `degraded` means that it says or sends less than the
    document meant, `skipped` that no correct request exists and there is no tool. `pointer` is the
    JSON pointer (RFC 6901) of the fault, behind its document's URI where that is another document.
    """

    level: Level
    message: str
    pointer: str

    def __post_init__(self) -> None:
        # It quotes the document, which can hold anything: a reference as long as the whole, characters nobody sees.
        object.__setattr__(self, "message", clean(self.message, MESSAGE_CAP))

    def __str__(self) -> str:
        return f"{self.message} at {self.pointer or '/'}"


class Unusable(Exception):
    """No correct request exists for an operation; carries the reason as a Diagnostic."""

    def __init__(self, message: str, pointer: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic("skipped", message, pointer)
