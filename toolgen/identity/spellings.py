"""The spellings in which a known secret may come back: percent-encoded, escaped, in base64, in hexadecimal."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable
from typing import Final

SHORTEST: Final = 4  # a shorter secret is found as a whole value only; inside a text it would be anywhere
_SHORTEST_BASE64: Final = 6
# As many as four levels of JSON write; without a bound the time were quadratic.
_ESCAPE: Final = r"(?:\\|%(?:25)*5[Cc]){1,15}"


def spellings(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for every spelling of these secrets inside a text, or None where there is none to find.

    Spelled raw, percent-encoded any number of times (RFC 3986, `+` for a space), JSON- and HTML-escaped, all of
    them mixed; in base64 and base64url (RFC 4648), whatever stands before and behind it; in hexadecimal.
    """
    known = sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True)
    found = [form for secret in known for form in _forms(secret)]
    return re.compile("|".join(found)) if found else None


class Needles:
    """Tells fast, without what encodes single characters, that no spelling of these secrets is in a text."""

    _FLAT: Final = str.maketrans("-_ ", "+/+")

    def __init__(self, secrets: Iterable[str]) -> None:
        known = [secret for secret in secrets if len(secret) >= SHORTEST]
        data = [secret.encode("utf-8", "surrogatepass") for secret in known]
        cores = [core for one in data for core in (_base64_core(one, offset) for offset in range(3))]
        found = [*known, *(core for core in cores if len(core) >= _SHORTEST_BASE64), *(one.hex() for one in data)]
        self._needles = tuple(dict.fromkeys(map(self._flat, found)))

    def are_absent(self, text: str) -> bool:
        """Whether none is there for sure; False where it takes a closer look."""
        if "%" in text or "\\" in text or "&" in text:
            return False
        flat = self._flat(text)
        return not any(needle in flat for needle in self._needles)

    def _flat(self, text: str) -> str:
        return text.casefold().translate(self._FLAT)


def _forms(secret: str) -> list[str]:
    data = secret.encode("utf-8", "surrogatepass")
    characters = "".join(_character(c) for c in secret)
    cores = {_base64_core(data, offset) for offset in range(3)}
    encoded = ["".join(map(_base64_character, core)) for core in cores if len(core) >= _SHORTEST_BASE64]
    edge = "[A-Za-z0-9+/_-]?"  # holds the last bits of the secret, and bits of its neighbour
    return [characters, *(f"{edge}{core}{edge}={{0,2}}" for core in encoded), f"(?i:{data.hex()})"]


def _character(char: str) -> str:
    """A pattern for one character in any mixture of encodings."""
    data = char.encode("utf-8", "surrogatepass")
    units = char.encode("utf-16-be", "surrogatepass")
    forms = [
        "".join(f"%(?:25)*(?i:{byte:02x})" for byte in data),
        "".join(rf"{_ESCAPE}u(?i:{units[at : at + 2].hex()})" for at in range(0, len(units), 2)),
        re.escape(char),
    ]
    if char in '"\\/':
        forms.insert(0, _ESCAPE + ("" if char == "\\" else _written(char)))
    if char in "\n\r\t":
        forms.append(_ESCAPE + {"\n": "n", "\r": "r", "\t": "t"}[char])
    if char == " ":
        forms.append(r"\+")
    if char in "&<>\"'":
        entities = [html.escape(char), *(["&apos;"] if char == "'" else [])]
        forms = ["".join(map(_written, entity)) for entity in entities] + forms  # `&amp;` before `&`
        forms.append(f"{_written('&')}{_written('#')}0*{ord(char)}{_written(';')}")
    return f"(?:{'|'.join(forms)})"


def _written(char: str) -> str:
    """A character of an escape, which may be percent-encoded itself."""
    return char if char.isalnum() else f"(?:{re.escape(char)}|%(?:25)*(?i:{ord(char):02x}))"


def _base64_core(data: bytes, offset: int) -> str:
    """The characters that base64 has for these bytes, whatever stands around them, behind `offset` others mod 3."""
    text = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
    return text[(0, 2, 3)[offset] : len(text) if (offset + len(data)) % 3 == 0 else -1]


def _base64_character(char: str) -> str:
    return {"+": "(?:[+-]|%(?:25)*2[Bb])", "/": r"(?:[/_]|\\+/|%(?:25)*2[Ff])"}.get(char, char)
