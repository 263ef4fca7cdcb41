"""Why a request does not say what was given: the rules of OpenAPI, and the faults of openapi-core."""

from __future__ import annotations

from typing import Any

from _kinds import kind_of
from _readings import same
from decode import Decoded

from toolgen.tools.model import Tool

UNDEFINED = "RFC 6570 section 2.3: null, empty arrays and empty objects are undefined; a style sends nothing for them"
NO_FIELD = "RFC 7578, URL standard: a form has no null and no empty array; nothing is sent for them"
LABEL = "RFC 6570 section 3.2.5: `.` separates the items of a label and is not encoded in them"
DELIMITER = "OpenAPI 3.2 appendix E: a space or pipe in an item cannot be told from the delimiter"
PLAIN = (
    "RFC 7578: parts are not percent-encoded; a delimiter in an item of a styled part cannot be told from the others"
)
HEADER = "OpenAPI 3.2 appendix D: headers are not encoded; a comma in an item cannot be told from the delimiter"
BRACKETS = "OpenAPI 3.2, deepObject: brackets in a key cannot be told from those of the style"
UNEXPLAINED = "UNEXPLAINED: "
# What openapi-core says -> the rule of OpenAPI or the fault of openapi-core behind it.
REJECTIONS = {
    "format: expected": "JSON Schema 2020-12 validation 7.2.1: a format is an annotation; openapi-core asserts it",
    "its media type is not declared": "OpenAPI, Media Type Object: a range names no type to send; bytes go as octet-stream",
    "could not read the request": "openapi-core stumbles over the document",
}


def place(where: str) -> str:
    """`query`, `path`, `body`, ..."""
    return where.split("/")[1] if where.count("/") else "request"


def rejection(where: str, message: str) -> str:
    where = place(where)
    rule = next((rule for said, rule in REJECTIONS.items() if said in message), "")
    return f"{where}: {kind_of(message)} ({rule})" if rule else f"{UNEXPLAINED}{where}: {kind_of(message)}"


def mismatch(tool: Tool, given: dict[str, Any], found: Decoded) -> str:
    """Why the values read are not those given, or nothing."""
    expected: dict[tuple[str, str], Any] = {}
    for binding in tool.bindings:
        if binding.argument in given:
            name = binding.name.lower() if binding.location == "header" else binding.name
            expected[binding.location, name] = given[binding.argument]
    for (location, name), value in expected.items():
        readings = found.body if location == "body" else found.parameters.get((location, name), [])
        if any(same(value, reading, readings=_is_form(tool, location)) for reading in readings):
            continue
        return explained(tool, location, name, value, readings)
    for key, readings in found.parameters.items():
        if key not in expected and not all(isinstance(one, dict) for one in readings):
            return f"{UNEXPLAINED}a {key[0]} parameter is there that was not given"
    return f"{UNEXPLAINED}a body is there that was not given" if found.body and ("body", "") not in expected else ""


def _is_form(tool: Tool, location: str) -> bool:
    media = {"body": tool.request.body, "querystring": tool.request.querystring}.get(location)
    named = (media.media_type or "") if media is not None else ""
    return named.startswith(("application/x-www-form-urlencoded", "multipart/form-data"))


def explained(tool: Tool, location: str, name: str, value: Any, readings: list[Any]) -> str:
    """The rule by which a value cannot be read back."""
    leaf = (
        next((one for one in getattr(tool.request, location, None) or () if one.name == name), None)
        if location in ("path", "query", "header", "cookie")
        else None
    )
    form = _is_form(tool, location)
    if leaf is not None or form:
        for pruned in (without_undefined(value), without_undefined(value, deep=False)):
            gone = pruned in (None, [], {}) and not readings
            if gone or (pruned != value and any(same(pruned, reading, readings=form) for reading in readings)):
                return NO_FIELD if form else UNDEFINED
    texts = list(_texts(value))
    style = leaf.style if leaf is not None else ""
    if style == "label" and leaf is not None and leaf.explode and any("." in text for text in texts):
        return LABEL
    if style in ("spaceDelimited", "pipeDelimited") and any(mark in t for t in texts for mark in (" ", "|", "+")):
        return DELIMITER
    if location == "body" and any(mark in text for text in texts for mark in ",|= ") and _is_plain(tool):
        return PLAIN
    if location == "header" and (any("," in text or "=" in text for text in texts) or _is_nested(value)):
        return HEADER
    if style == "deepObject" and any("[" in text or "]" in text for text in texts):
        return BRACKETS
    return f"{UNEXPLAINED}{location}, style {style or 'none'}"


def without_undefined(value: Any, *, deep: bool = True) -> Any:
    """The value without what RFC 6570 calls undefined: null and empty arrays; `deep`: empty objects, too."""
    if isinstance(value, dict):
        kept = {key: without_undefined(below, deep=deep) for key, below in value.items()}
        return {k: v for k, v in kept.items() if v is not None and v != [] and not (deep and v == {})}
    if isinstance(value, list):
        return [one for one in value if one is not None]
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *_texts(item))]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [str(value)]


def _is_plain(tool: Tool) -> bool:
    """Whether the body is multipart with a property that a style joins."""
    body = tool.request.body
    return (
        body is not None
        and body.media_type.startswith("multipart/")
        and any(one.explode is False or one.style for one in body.encoding.values())
    )


def _is_nested(value: Any) -> bool:
    """Whether an array or object is inside another: its JSON text has commas."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(one, dict | list) for one in inside)
