"""What was read from a wire, and whether it is a value that was given."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Text:
    """A text of the wire and the types its schema allows."""

    text: str
    types: frozenset[str]


@dataclass(frozen=True)
class Json:
    """A value that was JSON on the wire."""

    value: Any


@dataclass(frozen=True)
class Bytes:
    """Bytes, with what a multipart part says of them."""

    data: bytes
    filename: str | None = None
    content_type: str | None = None


def same(expected: Any, reading: Any, *, readings: bool = False) -> bool:
    """Whether a value is what was read; `readings`: the members of the object are lists of readings."""
    if isinstance(reading, Json):
        return equal(expected, reading.value)
    if isinstance(reading, Bytes):
        return _same_bytes(expected, reading)
    if isinstance(reading, Text):
        return _denotes(reading, expected)
    if isinstance(reading, list):
        return isinstance(expected, list) and len(expected) == len(reading) and all(map(same, expected, reading))
    if not isinstance(reading, dict) or not isinstance(expected, dict) or set(expected) != set(reading):
        return False
    if readings:
        return all(any(same(expected[key], one) for one in reading[key]) for key in reading)
    return all(same(expected[key], reading[key]) for key in reading)


def equal(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 is 1.0 and neither is true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _denotes(found: Text, value: Any) -> bool:
    """Whether a text stands for a value, and its schema allows a value of that type."""
    text, types = found.text, found.types
    if isinstance(value, str):
        return "string" in types and text == value
    if isinstance(value, bool):
        return "boolean" in types and text == ("true" if value else "false")
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        if "number" not in types and not ("integer" in types and whole):
            return False
        return (
            re.fullmatch(r"-?\d+", text) is not None and int(text) == value
            if whole and "e" not in text.lower()
            else float(text) == value
        )
    if isinstance(value, dict | list) and types & {"array", "object"}:
        try:
            return equal(value, loads(text))
        except ValueError:
            return False
    return False


def _same_bytes(expected: Any, found: Bytes) -> bool:
    given = expected if isinstance(expected, dict) else {"data": expected}
    try:
        data = base64.b64decode(given.get("data"), validate=True)
    except (ValueError, TypeError):
        return False
    named = all(
        given.get(key) in (None, value)
        for key, value in (("filename", found.filename), ("contentType", found.content_type))
    )
    return data == found.data and named


def loads(text: str | bytes) -> Any:
    return json.loads(text)
