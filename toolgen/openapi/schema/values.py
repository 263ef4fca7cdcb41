"""Keywords whose value is data: each checker copies what a validator takes, or says what is wrong.

A checker gets (out, key, value, schema), writes into `out` and returns the fault as text, or None.

Source: JSON Schema 2020-12, validation sections 6 to 9.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from toolgen.openapi.text import clean, one_line

Checker = Callable[[dict[str, Any], str, Any, dict[str, Any]], str | None]

TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
# Names authors use for a type, and what they mean by them.
_MEANT: dict[str, dict[str, Any]] = {
    "any": {},
    "file": {"type": "string", "format": "binary"},
    "binary": {"type": "string", "format": "binary"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "date-time": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "int": {"type": "integer"},
    "int32": {"type": "integer"},
    "int64": {"type": "integer"},
    "long": {"type": "integer"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "decimal": {"type": "number"},
    "bool": {"type": "boolean"},
    "str": {"type": "string"},
    "text": {"type": "string"},
    "list": {"type": "array"},
    "map": {"type": "object"},
    "dict": {"type": "object"},
}
EXAMPLE_CAP = 1000
TITLE_CAP = 200
WORD_CAP = 100


def _type(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if value.__class__ is str:
        if value in TYPES:
            out[key] = value
            return None
        meant = _MEANT.get(value.strip().lower(), {"type": value.lower()} if value.lower() in TYPES else None)
        if meant is None:
            return f"there is no type {_shown(value)}; any is allowed"
        out.update(meant)
        return None if not meant else f"there is no type {_shown(value)}; it is read as {meant['type']}"
    if value.__class__ is not list:
        return None if value is None else f"`type` is text or an array of texts, this is {_shown(value)}"
    kept = list(dict.fromkeys(v for v in value if isinstance(v, str) and v in TYPES))
    if kept:
        out[key] = kept if len(kept) > 1 else kept[0]
    return None if len(kept) == len(set(map(str, value))) else f"`type` has members that are no types: {_shown(value)}"


def _word(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if value.__class__ is str:
        out[key] = (
            value if len(value) <= WORD_CAP and value.isascii() and value.isprintable() else one_line(value, WORD_CAP)
        )
    return None


def _title(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if value.__class__ is str:
        out[key] = clean(value, TITLE_CAP)
    return None


def _number(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    number = _as_number(value)
    if number is None or (key == "multipleOf" and number <= 0):
        return f"`{key}` is a number, this is {_shown(value)}; it is not checked"
    out[key] = number
    return None


def _count(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    number = _as_number(value)
    if number is None or number < 0 or number != int(number):
        return f"`{key}` is a whole number from 0 on, this is {_shown(value)}; it is not checked"
    out[key] = int(number)
    return None


def _as_number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            value = int(value) if re.fullmatch(r"[+-]?[0-9]{1,300}", value) else float(value)
        except ValueError:
            return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or (value.__class__ is float and not math.isfinite(value))
    ):
        return None
    return value


def _flag(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if value is True or (isinstance(value, str) and value.lower() == "true"):
        out[key] = True
    return None


def _enum(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    values = value if isinstance(value, list) else None if isinstance(value, dict) or value is None else [value]
    if not values:
        return f"`enum` is an array of the values allowed, this is {_shown(value)}; it is not checked"
    kind = schema.get("type")
    if kind.__class__ is list:  # `[string, 'null']`
        kind = next((k for k in kind if k != "null"), None) if len(kind) == 2 and "null" in kind else None
    cast = _CASTS.get(kind) if kind.__class__ is str else None
    as_written = cast is None or (kind == "string" and set(map(type, values)) == {str})
    out[key] = values if as_written or cast is None else [cast(v) for v in values]
    return None


def _cast_text(value: Any) -> Any:
    """`enum: [1, true]` of a string: YAML took what the author wrote for other types."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _cast_number(value: Any) -> Any:
    number = _as_number(value) if isinstance(value, str) else None
    return value if number is None else number


def _cast_boolean(value: Any) -> Any:
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


_CASTS: dict[str, Callable[[Any], Any]] = {
    "string": _cast_text,
    "integer": _cast_number,
    "number": _cast_number,
    "boolean": _cast_boolean,
}


def _data(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    out[key] = value
    return None


def _example(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if "examples" not in schema:
        keep_examples(out, [value])
    return None


def _examples(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if isinstance(value, dict):  # Example Objects, where only a parameter or media type has them
        value = [v["value"] if isinstance(v, dict) and "value" in v else v for v in value.values()]
    keep_examples(out, value if isinstance(value, list) else [value])
    return None


def keep_examples(out: dict[str, Any], values: list[Any]) -> None:
    """Add the examples that are small enough to be of use; the first is kept before later ones."""
    kept, size = [], 0
    for value in values:
        size += len(value) if isinstance(value, str) else _size(value)
        if size > EXAMPLE_CAP:
            break
        kept.append(value)
    if kept:
        out["examples"] = kept


def _size(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 8
    return len(repr(value)) if len(value) <= EXAMPLE_CAP // 4 else EXAMPLE_CAP + 1


def _pattern(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    usable = usable_pattern(value) if isinstance(value, str) else None
    if usable is not None:
        out[key] = usable
        return None
    said = f"Pattern (not checked): {one_line(str(value), 200)}"
    before = out.get("description") or schema.get("description")
    out["description"] = f"{clean(before, 800)}\n{said}" if isinstance(before, str) and before else said
    return f"the pattern {_shown(value)} is no regular expression of ECMA-262; it stands in the description"


@lru_cache(maxsize=4096)
def usable_pattern(pattern: str) -> str | None:
    """The pattern as ECMA-262 has it (Unicode mode), mended where the meaning is plain, or None."""
    if _SIMPLE_PATTERN.fullmatch(pattern):
        return pattern
    pattern = _ASTRAL.sub(r"\\u{10000}-\\u{10FFFF}", _FOREIGN.sub(_translated, pattern))
    pattern = pattern.replace(r"\p{XDigit}", r"\p{Hex_Digit}")  # Java's name of the property
    if _NOT_ECMA.search(pattern):
        return None
    for candidate in (pattern, _HYPHEN.sub(r"\1\-", pattern)):
        if _compiles(candidate):
            return candidate
    return None


# Anchored runs of literals and simple classes, each with an optional count: always valid.
_SIMPLE_PATTERN = re.compile(
    r"\^?(?:(?:[A-Za-z0-9_:/ @-]|\\[dws.]|\[(?:a-z|A-Z|0-9|1-9|a-f|A-F|[A-Za-z0-9_ .:/@])+\])(?:[*+?]|\{\d{1,3}\})?)*\$?"
)
# What other dialects have, our validator takes, and ECMA-262 reads as something else or refuses.
_FOREIGN = re.compile(r"\\([\s\S])|\(\?P<(?![=!])")
_NOT_ECMA = re.compile(r"(?<!\\)\(\?(?:[a-zA-Z-]+[:)]|>|#|P)")
# The two ways to write the range of all surrogate pairs, which Unicode mode writes as code points.
_ASTRAL = re.compile(r"(?i)\\uD800\\u(?:DC00-\\uDBFF|DBFF-\\uDC00)\\uDFFF")
_HYPHEN = re.compile(r"(\\[wdsWDS])-")  # `[\w-.]` is legal outside Unicode mode


def _translated(match: re.Match[str]) -> str:
    if match[1] is None:
        return "(?<"
    return {"A": "^", "Z": "$", "z": "$"}.get(match[1], match[0])


def _compiles(pattern: str) -> bool:
    import jsonschema_rs

    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, offline=True)
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True


def _required(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if value.__class__ is list:
        names = list(dict.fromkeys(v for v in value if v.__class__ is str))
        if names:
            out[key] = names
        return None if all(isinstance(v, str) for v in value) else "`required` has members that are no names"
    if isinstance(value, bool):
        return None  # draft 3 put it on the property; 2.0 and 3.x do not read it there
    return f"`required` is an array of names, this is {_shown(value)}; it is not checked"


def _dependent(out: dict[str, Any], key: str, value: Any, schema: dict[str, Any]) -> str | None:
    lists = value if isinstance(value, dict) else {}
    kept = {k: [n for n in v if isinstance(n, str)] for k, v in lists.items() if isinstance(v, list)}
    if kept:
        out.setdefault(key, {}).update(kept)
    return None if isinstance(value, dict) and len(kept) == len(value) else f"`{key}` maps names to arrays of names"


def _shown(value: Any) -> str:
    return clean(repr(value), 60)


VALUES: dict[str, Checker] = {
    "type": _type,
    "title": _title,
    "format": _word,
    "enum": _enum,
    "const": _data,
    "default": _data,
    "example": _example,
    "examples": _examples,
    "pattern": _pattern,
    "required": _required,
    "dependentRequired": _dependent,
    "contentEncoding": _word,
    "contentMediaType": _word,
    "uniqueItems": _flag,
    "deprecated": _flag,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _count),
    **dict.fromkeys(("minProperties", "maxProperties"), _count),
}
