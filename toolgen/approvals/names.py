"""What can be the name of a tenant, a thread, a turn, a call or a person: what both databases keep whole."""

from __future__ import annotations

from typing import Final

from toolgen.errors import NameInvalid

LONGEST_ID: Final = 256  # characters of a call id, a thread, a turn, a tenant, a subject
RESERVED: Final = "toolgen:"  # what a thread of toolgen's own begins with, which no host gives
LARGEST_ID: Final = 512  # bytes of one in UTF-8: the four of the journal's key fit into one entry of an index


def is_name(text: object) -> bool:
    """Whether a text can be a name."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_ID or not text.isprintable():
        return False
    return len(text.encode()) <= LARGEST_ID


def check_names(**names: str | None) -> None:
    """Raises NameInvalid for the first that cannot be one; nobody's, "" or None, is fine."""
    for what, name in names.items():
        if name and not is_name(name):
            raise NameInvalid(
                f"a {what.replace('_', ' ')} is a text of at most {LONGEST_ID} characters and {LARGEST_ID} bytes,"
                " all of them printable"
            )
