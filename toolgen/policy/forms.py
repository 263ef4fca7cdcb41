"""What a pattern without a colon would match if all forms of address shared one space of texts.

In the reference system they do: there `http*` matches every tool of the source `http`, and `*post*`
every POST. Here such a pattern matches names, and these are the patterns to write for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolgen.policy.address import Vocabulary
from toolgen.policy.patterns import Form, Pattern, can_match


def colon_forms(pattern: Pattern, words: Vocabulary, *, only_by_source: bool = False) -> list[str]:
    """The patterns with a colon that together match, as endpoints and with their source, what the text would.

    `only_by_source` leaves out those that say nothing of the source or method (`*_delete` could stand at
    the end of a path, which hardly anybody means). Empty for a pattern of another form.
    """
    if pattern.form is not Form.name or pattern.says == "*":
        return []
    found: dict[str, None] = {}
    for before, target in _halves(pattern.says):
        if only_by_source and before == "*":
            continue
        if before != "*" or target != pattern.says:  # that names match, too
            found[f"{before}:{target}"] = None
        for dotted in _dotted(before) if "." not in before else ():
            found[f"{dotted}:{target}"] = None
    return [text for text in found if can_match(text, words) and not (text.startswith("*:") and only_by_source)]


def _halves(text: str) -> Iterator[tuple[str, str]]:
    """What stands before and behind the colon where a `*` covers it."""
    for index, char in enumerate(text):
        if char == "*":
            yield text[: index + 1], text[index:]


def _dotted(before: str) -> Iterator[str]:
    """The patterns with a dot that together match every `source.method` that `before`, without one, matches."""
    for index, char in enumerate(before):
        if char == "*":
            yield f"{before[: index + 1]}.{before[index:]}"
