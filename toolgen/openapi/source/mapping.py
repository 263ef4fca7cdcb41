"""A mapping that a caller built -> a private copy that holds what JSON holds, and its text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from toolgen.errors import LimitExceeded, Problem, SyntaxFault
from toolgen.openapi.source.json_text import duplicate, load_json

_WHERE = "mapping"


def private_copy(source: Mapping[str, Any]) -> tuple[Any, bytes]:
    """The mapping as plain data and as JSON text; the mapping itself is left as it is.

    Keys that are no strings become what YAML 1.2 would have read (200 -> "200", True -> "true"),
    dates and times their ISO form, tuples lists. Raises SyntaxFault with the JSON pointer of a
    value that JSON does not have or of a key that is there twice, and LimitExceeded.
    """
    try:
        text = json.dumps(source, allow_nan=False)
        return load_json(text, _WHERE), text.encode()
    except (TypeError, ValueError, RecursionError, SyntaxFault):
        pass  # converted in Python then, or refused with the place
    try:
        text = json.dumps(_plain(source, ""))
    except RecursionError:
        raise LimitExceeded("mapping is nested too deep to be read, or contains itself") from None
    return load_json(text, _WHERE), text.encode()


def _plain(value: Any, pointer: str) -> Any:
    if isinstance(value, Mapping):
        members: dict[str, Any] = {}
        for key, member in value.items():
            name = _key(key, pointer)
            if name in members:
                raise _fault(duplicate(name), pointer)
            members[name] = _plain(member, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
        return members
    if isinstance(value, list | tuple):
        return [_plain(item, f"{pointer}/{index}") for index, item in enumerate(value)]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise _fault("a float that is no finite number", pointer)
    if value is None or isinstance(value, str | int | float):
        try:
            json.dumps(value)
        except ValueError:
            raise _fault("an integer of too many digits", pointer) from None
        return value
    raise _fault(f"a value of type {type(value).__name__}, which JSON does not have", pointer)


def _key(key: Any, pointer: str) -> str:
    if isinstance(key, str):
        return str(key)
    plain = _plain(key, pointer)
    if isinstance(plain, dict | list):
        raise _fault(f"a key of type {type(key).__name__}", pointer)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _fault(message: str, pointer: str) -> SyntaxFault:
    return SyntaxFault("the mapping is no JSON-like data", [Problem(message, pointer or "/")])
