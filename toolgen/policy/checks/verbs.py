"""Whether an operation says that it changes something, whatever its method is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from toolgen.openapi.endpoint import skeleton
from toolgen.tools.model import Tool

# Words that say it wherever they stand.
_CLEAR: Final = frozenset(
    """accept activate approve assign cancel clear confirm create deactivate decline delete destroy disable enable
    erase execute flush grant insert install kill modify publish purge reboot regenerate reject remove rename replace
    restart revoke rotate send shutdown submit suspend terminate unassign unblock uninstall unlock unpublish unregister
    unsubscribe upsert wipe""".split()
)
# Words that are as often the name of a thing (`/runs/{run}/start`, but `/sets/{set}/update-history`).
_VAGUE: Final = frozenset(
    "add copy deploy import merge move put register reset restore retry run save set start stop trigger update".split()
)
# Words in a name that say that it reads: `update_list`, `runStatus`.
_READING: Final = frozenset(
    """details fetch find get history info list log logs query read retrieve search show state status view watch""".split()
)
_ARTICLES: Final = frozenset("a all an each every one the this your".split())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def change_of(tool: Tool) -> str:
    """What says that the operation changes something, as `'delete' at the start of its operationId`; else empty."""
    return next(_changes(tool), "")


def _changes(tool: Tool) -> Iterator[str]:
    names = {"its operationId": tool.operation.operation_id or "", "its name": tool.name}
    for what, name in names.items():
        # `GET_DeleteUser`: documents made from other descriptions put the method in front.
        words = _words(name.removeprefix(f"{tool.endpoint.method.upper()}_"))
        if words and (words[0] in _CLEAR or (words[0] in _VAGUE and len(words) > 1 and not _READING & {*words})):
            yield f"{words[0]!r} at the start of {what}"
    # `/reports/{report}:cancel`: a colon stands in front of a verb, too.
    segments = [part for segment in skeleton(tool.endpoint.path) for part in segment.split(":") if part]
    for number, segment in enumerate(segments):
        words, is_last = _words(segment), number == len(segments) - 1
        if words and (words[0] in _CLEAR or (words[0] in _VAGUE and len(words) == 1 and is_last)):
            yield f"{words[0]!r} in its path, in {segment!r}"
    words = _words(tool.annotations.title)
    if words and (verb := _verb(words[0])) and (verb in _CLEAR or (len(words) > 1 and words[1] in _ARTICLES)):
        yield f"{verb!r} at the start of its summary"


def _verb(word: str) -> str:
    """A verb of these as it stands in a list: `deletes` and `publishes` are `delete` and `publish`."""
    forms = (word, word.removesuffix("s"), word.removesuffix("es"))
    return next((form for form in forms if form in _CLEAR or form in _VAGUE), "")


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
