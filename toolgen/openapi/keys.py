"""Which keys an object of a document can have; others are reported, since a misspelt one is lost.

Source: OpenAPI 3.2 and 2.0, "Path Item Object", "Operation Object", "Parameter Object", "Request
Body Object".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from toolgen.errors import did_you_mean
from toolgen.openapi.text import one_line
from toolgen.openapi.version import Dialect

Kind = Literal["Path Item", "Operation", "Parameter", "Request Body"]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_SHARED: dict[Kind, frozenset[str]] = {
    "Path Item": frozenset({*METHODS, "$ref", "parameters"}),
    "Operation": frozenset(
        {"tags", "summary", "description", "externalDocs", "operationId", "parameters", "responses", "deprecated"}
    )
    | {"security"},
    "Parameter": frozenset({"name", "in", "description", "required", "schema", "allowEmptyValue", "$ref"}),
    "Request Body": frozenset({"$ref", "description", "content", "required", "summary"}),
}
_NEW: dict[Kind, frozenset[str]] = {
    "Path Item": frozenset({"summary", "description", "servers", "additionalOperations"}),
    "Operation": frozenset({"requestBody", "callbacks", "servers"}),
    "Parameter": frozenset({"deprecated", "style", "explode", "allowReserved", "example", "examples", "content"}),
    "Request Body": frozenset(),
}
_OLD: dict[Kind, frozenset[str]] = {
    "Path Item": frozenset(),
    "Operation": frozenset({"consumes", "produces", "schemes"}),
    "Parameter": frozenset({"type", "format", "items", "collectionFormat", "default", "enum", "example"})
    | {"maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"}
    | {"maxItems", "minItems", "uniqueItems", "multipleOf"},
    "Request Body": frozenset(),
}
_KNOWN = {(kind, old): _SHARED[kind] | (_OLD if old else _NEW)[kind] for kind in _SHARED for old in (False, True)}


def unknown_keys(node: Mapping[str, Any], kind: Kind, dialect: Dialect) -> list[str]:
    """One message for each key (extensions apart) that an object of this kind does not have, sorted."""
    known = _KNOWN[kind, dialect == "2.0"]
    if known.issuperset(node):
        return []
    others = sorted(key for key in node if key not in known and not key.startswith("x-"))
    return [
        f"{one_line(key, 60)!r} is no key of {'an' if kind == 'Operation' else 'a'} {kind} Object{did_you_mean(key, known)}"
        for key in others
    ]
