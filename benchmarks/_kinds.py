"""Messages by kind: what remains of them when names, paths, numbers and quoted parts are masked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_MASKS = (
    (re.compile(r"'(?:[^'\\\n]|\\.)*'(?![A-Za-z])|\"(?:[^\"\\\n]|\\.)*\"|`[^`\n]*`"), "'…'"),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://\S+"), "URL"),
    (re.compile(r"#?(?<![\w.…])/[^\s:,;()]*"), "/…"),
    (re.compile(r"\{[^{}\s]*\}"), "{…}"),
    (re.compile(r"\b[0-9a-f]{16,}\b|\b\d[\d,.]*\b"), "N"),
)
_LENGTH = 160


def kind_of(message: str) -> str:
    """The message on one line, with what is particular to a document masked."""
    text = " ".join(message.split())
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"


@dataclass
class Kind:
    """How often something was found, in how many documents, and one example."""

    count: int
    documents: int
    example: str


class Kinds(dict[str, Kind]):
    """Kinds by name."""

    def note(self, kind: str, example: str, count: int = 1) -> None:
        """Count what was found, all of it in one document."""
        if kind in self:
            self[kind].count += count
        else:
            self[kind] = Kind(count, 1, example)

    def merge(self, other: Kinds, document: str) -> None:
        """Add what was found in one document."""
        for kind, found in other.items():
            known = self.get(kind)
            if known is None:
                self[kind] = Kind(found.count, 1, f"{document}: {found.example}")
            else:
                known.count += found.count
                known.documents += 1

    def ranked(self) -> list[tuple[str, Kind]]:
        """The most frequent first."""
        return sorted(self.items(), key=lambda item: (-item[1].count, item[0]))

    def to_dict(self) -> list[dict[str, Any]]:
        """JSON-ready data, the most frequent first."""
        return [{"kind": k, "count": v.count, "documents": v.documents, "example": v.example} for k, v in self.ranked()]
