"""What a pattern would match as well if all forms of address shared one space of texts.

In the reference system they do: there `http*` matches every tool of the source `http`, `*post*` every
POST, and `*:*pets` the end of a path. Here a pattern matches addresses of its own form, and these are the
patterns to write for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolgen.policy.address import Vocabulary
from toolgen.policy.patterns import Form, Pattern, can_begin, can_match


def other_forms(pattern: Pattern, words: Vocabulary, *, only_by_source: bool = False) -> list[str]:
    """The patterns that together with this one match every address whose text it matches.

    `only_by_source` leaves out those that say nothing of the source or method (`*_delete` could stand at
    the end of a path, which hardly anybody means), and those for which a path has to contain a colon.
    """
    if not pattern.says.strip("*:"):
        return []  # `*` and `*:*` match every tool already
    found: dict[str, None] = {}
    for before, target in halves(pattern.says, colon_only=only_by_source and pattern.form is not Form.name):
        if not any(can_begin(before, form, words) for form in (Form.source, Form.endpoint)):
            break  # nor can what follows, which begins with the same
        if only_by_source and before == "*":
            continue
        if before != "*" or target != pattern.says:  # that names match, too
            found[f"{before}:{target}"] = None
        if ("." not in before and target != "*") or pattern.form is Form.name:
            found |= {f"{dotted}:{target}": None for dotted in _dotted(before)}
    return [text for text in found if text != pattern.says and can_match(text, words)]


def halves(says: str, *, colon_only: bool = False) -> Iterator[tuple[str, str]]:
    """What stands before and behind the first colon of a text that matches: a colon, or where a `*` covers it."""
    before, colon, target = says.partition(":")
    if colon:
        yield before, target
    for index, char in enumerate("" if colon_only else before):
        if char == "*":
            yield says[: index + 1], says[index:]


def _dotted(before: str) -> Iterator[str]:
    """The patterns with a dot that together match every `source.method` that `before`, without one, matches."""
    for index, char in enumerate(before if "." not in before else ""):
        if char == "*":
            yield f"{before[: index + 1]}.{before[index:]}"
