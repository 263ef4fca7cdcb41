"""What a person changed in a toolset file: differences between two file forms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolgen.errors import Problem
from toolgen.tools.files.places import written

MOST_EDITS = 20
_SHOWN = 60  # characters of a value
_MISSING = object()
# Constants a person wrote there may be credentials.
_SECRET_PLACES = (".request.header", ".request.cookie")


def differences(generated: Mapping[str, Any], edited: Mapping[str, Any]) -> list[Problem]:
    """What stands in the edited file instead of what was generated; tools and leaves go by name."""
    found = list(_compare("", _content(generated), _content(edited)))
    more = len(found) - MOST_EDITS
    return [*found[:MOST_EDITS], Problem(f"and {more} more")] if more > 0 else found


def _content(data: Mapping[str, Any]) -> dict[str, Any]:
    content = {key: value for key, value in data.items() if key != "generated"}
    if isinstance(document := content.get("document"), dict):
        content["document"] = {key: value for key, value in document.items() if key != "digest"}
    return content


def _compare(where: str, old: Any, new: Any) -> Iterator[Problem]:
    if old == new and _text(old) == _text(new):  # 1, 1.0 and True are equal and not the same
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _members(where, old, new, _key)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _lists(where, old, new)
    else:
        yield _changed(where, old, new)


def _members(where: str, old: dict[Any, Any], new: dict[Any, Any], place: Any) -> Iterator[Problem]:
    for key in [*old, *(key for key in new if key not in old)]:
        here = place(where, key)
        if key not in new or key not in old:
            yield _changed(here, old.get(key, _MISSING), new.get(key, _MISSING))
        else:
            yield from _compare(here, old[key], new[key])


def _lists(where: str, old: list[Any], new: list[Any]) -> Iterator[Problem]:
    before, after = _named(old), _named(new)
    if before is not None and after is not None:
        yield from _members(where, before, after, _item)
        if [name for name in before if name in after] != [name for name in after if name in before]:
            yield Problem("in another order", where)
    elif any(isinstance(item, dict | list) for item in old + new):
        yield from _members(where, dict(enumerate(old)), dict(enumerate(new)), _item)
    else:
        yield _changed(where, old, new)


def _named(items: list[Any]) -> dict[str, Any] | None:
    """The items by their names, if each has one of its own."""
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    return {str(name): item for name, item in zip(names, items, strict=True)}


def _key(where: str, key: str) -> str:
    text = written((key,))
    return where + text if text.startswith("[") or not where else f"{where}.{text}"


def _item(where: str, key: str | int) -> str:
    return f"{where}[{key}]"


def _changed(where: str, old: Any, new: Any) -> Problem:
    hidden = any(place in where for place in _SECRET_PLACES)
    if new is _MISSING:
        return Problem("removed", where)
    if old is _MISSING:
        return Problem("added" if hidden else f"added: {_shown(new)}", where)
    return Problem("changed" if hidden else f"{_shown(old)} -> {_shown(new)}", where)


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else _text(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
