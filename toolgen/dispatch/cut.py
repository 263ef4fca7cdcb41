"""Cuts JSON data to a length, so that what is left is JSON of the same shape and says where to go on.

Cursors and counts stay whole before anything else; a list keeps its first items, an object its keys as
far as they fit, a long text its start. What is left is what was there: no value is changed but a text that
is cut, and that is marked.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any, Final

from toolgen.openapi.text import CUT, one_line

DEEPEST: Final = 100  # levels; what is nested deeper is elided even where there is room, since few readers take it
_LEAST: Final = 40  # characters a value gets before its object gives up keys
_NAMED: Final = 8  # places that a note names
_SEPARATORS = re.compile(r"[^a-z0-9]")
# Where an API says how to go on, or of how much this is a part; compared without case and separators.
_CURSORS = frozenset(
    """next nextpage nextpagetoken nextcursor nexttoken nextlink nexturl nexturi nextmarker nextrecordsurl nextoffset
    odatanextlink odatacount previous prev previouspage prevpage previouscursor prevcursor cursor cursors endcursor
    startcursor pagetoken pagecursor continue continuation continuationtoken marker bookmark scrollid searchafter
    startafter after before hasmore hasnext hasnextpage haspreviouspage istruncated incompleteresults more total
    totalcount totalresults totalitems totalpages totalelements totalhits count itemcount page pages pagecount
    pagenumber perpage pagesize limit offset links meta metadata paging pagination pageinfo responsemetadata""".split()
)

Pointer = tuple[str | int, ...]


def cut(data: Any, limit: int) -> tuple[Any, str]:
    """The data in at most `limit` characters of JSON (as `json.dumps(..., ensure_ascii=False)` writes it), and what was cut.

    The note is empty where nothing was cut. It names places by JSON pointer (RFC 6901), outermost first:
    `/items: 20 of 500 items`. Data that fits comes back as the same object. A number is never changed, so a
    limit below 10 may be exceeded.
    """
    if _size(data, limit) <= limit:
        return data, ""
    cutter = _Cutter()
    kept = cutter.fit(data, limit, ())
    return kept, cutter.note()


def _size(data: Any, cap: int, deepest: int = DEEPEST) -> int:
    """How many characters of JSON the data has; more than `cap` for more, and for what is nested too deep.

    It looks at no more of the data than `cap` characters.
    """
    size = 0
    pending: list[tuple[Any, int]] = [(data, 1)]
    while pending and size <= cap:
        value, level = pending.pop()
        if isinstance(value, str):
            size += len(encode_basestring(value[: cap + 1]))
        elif isinstance(value, dict | list):
            size += max(2, 2 * len(value))  # brackets, and `, ` between
            if level > deepest and value:
                return cap + 1
            if isinstance(value, dict):
                size += 2 * len(value) + (sum(map(_key_size, value)) if size <= cap else 0)
            if size <= cap:
                pending += [(item, level + 1) for item in (value.values() if isinstance(value, dict) else value)]
        else:
            size += len(json.dumps(value))
    return size


def _key_size(key: str) -> int:
    return len(encode_basestring(key))


def _is_cursor(key: str) -> bool:
    return len(key) < 40 and _SEPARATORS.sub("", key.lower()) in _CURSORS


class _Cutter:
    """Cuts one value and keeps count of what it left out."""

    def __init__(self) -> None:
        self._left_out: list[tuple[Pointer, str]] = []

    def note(self) -> str:
        """What was left out, the outermost first."""
        places = sorted(self._left_out, key=lambda entry: len(entry[0]))
        told = [f"{_written(pointer)}: {what}" for pointer, what in places[:_NAMED]]
        more = len(places) - _NAMED
        return "; ".join([*told, *([f"and {more} more places"] if more > 0 else [])])

    def fit(self, value: Any, room: int, at: Pointer) -> Any:
        """The value in that room, which is at least what `_floor` asks for."""
        if _size(value, room, DEEPEST - len(at)) <= room or not isinstance(value, str | list | dict):
            return value
        if isinstance(value, str):
            return self._text(value, room, at)
        if len(at) >= DEEPEST:
            kind = "items" if isinstance(value, list) else "keys"
            self._tell(at, 0, len(value), f"{kind}, nested too deep")
            return type(value)()
        return self._list(value, room, at) if isinstance(value, list) else self._object(value, room, at)

    def _tell(self, at: Pointer, kept: int, total: int, what: str) -> None:
        if kept < total:
            self._left_out.append((at, f"{kept:,} of {total:,} {what}"))

    def _text(self, value: str, room: int, at: Pointer) -> str:
        kept = value[: max(0, room - len(CUT) - 2)]
        while kept and (over := len(encode_basestring(kept)) + len(CUT) - room) > 0:
            kept = kept[: -max(1, over // 6)]  # an escape is at most six characters long
        self._tell(at, len(kept), len(value), "characters")
        return kept + CUT

    def _list(self, value: list[Any], room: int, at: Pointer) -> list[Any]:
        kept: list[Any] = []
        left = room  # of the two brackets one item needs no separator: that is their room
        for index, item in enumerate(value):
            size = _size(item, left, DEEPEST - len(at) - 1)
            if size + 2 > left:
                # Many small items: whole ones only. An item that is large itself is cut rather than left out.
                if (kept and 4 * left < room) or _floor(item, left) + 2 > left:
                    break
                item = self.fit(item, left - 2, (*at, index))
                size = _size(item, left)
            kept.append(item)
            left -= size + 2
        self._tell(at, len(kept), len(value), "items")
        return kept

    def _object(self, value: dict[str, Any], room: int, at: Pointer) -> dict[str, Any]:
        deepest = DEEPEST - len(at) - 1
        sizes = {key: _size(item, room, deepest) for key, item in value.items()}
        left, whole = self._cursors(value, sizes, room)
        rest: dict[str, int] = {}
        reserved = 0
        for key, size in sizes.items():
            if left - reserved < 6:
                break
            least = _key_size(key) + 4 + min(size, max(_LEAST, _floor(value[key], size)))
            if key not in whole and reserved + least <= left:
                rest[key] = size
                reserved += least
        kept = {key: value[key] for key in whole} | self._shared(value, rest, left, at)
        self._tell(at, len(kept), len(value), "keys")
        return {key: kept[key] for key in value if key in kept}

    def _cursors(self, value: dict[str, Any], sizes: dict[str, int], room: int) -> tuple[int, set[str]]:
        """The keys that stay whole before anything else, and the room that is left: plain values first."""
        left, whole = room, set()
        cursors = sorted((key for key in value if _is_cursor(key)), key=lambda key: isinstance(value[key], dict | list))
        for key in cursors:
            size = _key_size(key) + 4 + sizes[key]
            most = room // 2 if isinstance(value[key], dict | list) else left
            if size <= min(left, most):
                whole.add(key)
                left -= size
        return left, whole

    def _shared(self, value: dict[str, Any], sizes: dict[str, int], room: int, at: Pointer) -> dict[str, Any]:
        """These keys in that room: the small ones whole, the large ones in equal shares of what is left."""
        kept: dict[str, Any] = {}
        left = room - sum(_key_size(key) + 4 for key in sizes)
        # What cannot be cut comes first: then each share is at least what was reserved for it.
        order = sorted(sizes, key=lambda key: (isinstance(value[key], str | list | dict), sizes[key]))
        for done, key in enumerate(order):
            share = left // (len(sizes) - done)
            kept[key] = self.fit(value[key], share, (*at, key))
            left -= _size(kept[key], left)
        return kept


def _floor(value: Any, cap: int) -> int:
    """The fewest characters a value can be cut to."""
    if isinstance(value, dict | list):
        return 2
    return min(_size(value, cap), len(CUT) + 2) if isinstance(value, str) else _size(value, cap)


def _written(pointer: Pointer) -> str:
    text = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)
    return one_line(text, 100) or "the whole"
