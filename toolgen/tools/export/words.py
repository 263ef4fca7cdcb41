"""What a keyword demands, as a sentence a model can read, for targets that do not have the keyword."""

from __future__ import annotations

import json
from typing import Any

MAX_SHOWN = 1_000  # characters of values in one sentence

_SENTENCES = {
    "exclusiveMinimum": "Greater than {}.",
    "exclusiveMaximum": "Less than {}.",
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "multipleOf": "A multiple of {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "pattern": "Matches the regular expression {}.",
    "format": "Format: {}.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
    "minProperties": "At least {} properties.",
    "maxProperties": "At most {} properties.",
    "contentEncoding": "Encoded as {}.",
    "contentMediaType": "Content of type {}.",
}


def sentence(keyword: str, value: Any) -> str:
    """The demand of one keyword, or nothing where no short sentence says it."""
    if keyword in _SENTENCES:
        return _SENTENCES[keyword].format(value)
    if keyword == "uniqueItems":
        return "No item twice." if value else ""
    if keyword == "enum":
        return one_of(value)
    if keyword == "default":
        return f"Default: {json.dumps(value, ensure_ascii=False)[:MAX_SHOWN]}."
    if keyword == "deprecated":
        return "Deprecated." if value else ""
    return ""


def one_of(values: list[Any]) -> str:
    """`One of: 1, 2.`; a long list is cut, and says so."""
    shown: list[str] = []
    size = 0
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        size += len(text)
        if size > MAX_SHOWN:
            return f"One of: {', '.join(shown)}, and {len(values) - len(shown)} more."
        shown.append(text)
    return f"One of: {', '.join(shown)}." if len(values) != 1 else f"Always {shown[0]}."


def described(schema: dict[str, Any], sentences: list[str]) -> dict[str, Any]:
    """The schema with sentences at the end of its description."""
    said = " ".join(filter(None, sentences))
    before = schema.get("description", "")
    between = " " if before.rstrip().endswith((".", "!", "?", ":", ")")) else ". "
    text = before + between + said if before and said else before or said
    return {**schema, "description": text} if text else schema
