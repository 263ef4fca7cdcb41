"""An exported audit log: lines of JSON that say whether they are whole, without the database they came from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolgen.approvals.audit import Head, faults, recorded, written_details
from toolgen.identity.keys import Keys

_TYPES: Mapping[str, tuple[type, ...]] = {
    "seq": (int,),
    "seconds": (float, int),
    "kind": (str,),
    "tenant": (str,),
    "pause": (str, type(None)),
    "call": (str, type(None)),
    "details": (dict, type(None)),
    "salt": (str, type(None)),
    "digest": (str,),
    "key": (str,),
    "mac": (str,),
}


def export_faults(lines: Iterable[str], keys: Keys, kept: Head | None = None) -> Iterator[str]:
    """Everything that is wrong with an export, as `audit.faults` tells it of the log itself; nothing for a whole one."""
    other: list[str] = []

    def rows() -> Iterator[Mapping[Any, Any]]:
        for number, line in enumerate(lines, 1):
            row = _row(line)
            if row is None:
                other.append(f"line {number}: it is not an entry as it was exported")
            else:
                yield row

    yield from faults(rows(), keys, kept)
    yield from other


def _row(line: str) -> dict[str, Any] | None:
    """The row that a line was made of; None where it says anything else, or says it twice."""
    try:
        data = json.loads(line, object_pairs_hook=_once)
        if not all(type(data[name]) in types for name, types in _TYPES.items()):
            return None
        row = {name: data[name] for name in _TYPES if name != "seconds"}
        row["at"] = float(data["seconds"])
        row["details"] = None if data["details"] is None else written_details(data["details"])
        return row if recorded(row).to_dict() == data else None  # what people read too, such as the time
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice, and readers differ in which they take")
    return found
