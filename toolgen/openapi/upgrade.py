"""Swagger 2.0 and OpenAPI 3.0 in the shape of 3.1, object by object, as the reader meets them.

Nothing here follows references or walks a document: each function takes one object and returns
the object 3.1 would have in its place, so a large document is never copied.

Source: OpenAPI Specification 2.0; 3.0.4, "Schema Object"; the 3.0 to 3.1 migration notes of the
OpenAPI Initiative.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolgen.openapi.version import Dialect

# 2.0 describes a parameter's type with these keys beside `name` and `in`; 3.x puts them in `schema`.
_SCHEMA_KEYS = frozenset(
    {
        "type",
        "format",
        "items",
        "default",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "enum",
        "multipleOf",
        "example",
        "x-nullable",
        "x-example",
    }
)
# collectionFormat -> (style in a query, explode); in path and header only csv has a style (`simple`).
_COLLECTION = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
NULL = {"type": "null"}


def schema(node: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """A 2.0 or 3.0 Schema Object (no reference) in the words of JSON Schema 2020-12.

    Returns the same object where nothing is to do. `nullable` beside a `type` adds the type
    `null` and leaves an `enum` as written (3.0.4); without a `type` authors mean that null is
    allowed beside what the schema says, and so it is read.
    """
    changed = node
    nullable = node.get("nullable", node.get("x-nullable"))
    for limit, boundary in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(node.get(limit), bool):
            changed = {key: value for key, value in changed.items() if key != limit}
            if node[limit] and boundary in changed:
                changed[limit] = changed.pop(boundary)
    if node.get("type") == "file":
        changed = {**changed, "type": "string", "format": "binary"}
    if nullable is True:
        changed = _nullable(changed)
    return changed


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in node.items() if key not in ("nullable", "x-nullable")}
    kind = kept.get("type")
    if isinstance(kind, str):
        return {**kept, "type": [kind, "null"]}
    if isinstance(kind, list):
        return {**kept, "type": [*kind, "null"]}
    for composition in ("anyOf", "oneOf"):
        members = kept.get(composition)
        if isinstance(members, list) and members and "allOf" not in kept:
            return {**kept, composition: [*members, NULL]}
    if isinstance(kept.get("allOf"), list) and kept["allOf"]:
        around: dict[str, Any] = {
            key: kept.pop(key) for key in ("description", "title", "readOnly", "writeOnly") if key in kept
        }
        return {**around, "anyOf": [kept, NULL]}
    return kept  # no type and no composition: null is allowed already


def parameter(node: Mapping[str, Any], dialect: Dialect = "2.0") -> tuple[dict[str, Any], str | None]:
    """A 2.0 parameter in path, query or header as 3.x has it, and what could not be kept (or None).

    A 3.x document may still describe a parameter as 2.0 did; its style is then 3.x's default.
    """
    kept = {key: value for key, value in node.items() if key not in _SCHEMA_KEYS and key != "collectionFormat"}
    if "schema" not in kept:
        kept["schema"] = _schema_of(node)
    if node.get("type") != "array" or dialect != "2.0":
        return kept, None
    wanted = node.get("collectionFormat", "csv")
    style, explode = _COLLECTION.get(wanted if isinstance(wanted, str) else "", ("", False))
    if kept.get("in") == "query" and style:
        return {**kept, "style": style, "explode": explode}, None
    lost = (
        None if wanted == "csv" else f"collectionFormat {str(wanted)[:20]!r} has no counterpart here; commas are sent"
    )
    return ({**kept, "style": "form", "explode": False} if kept.get("in") == "query" else kept), lost


def _schema_of(node: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: node[key] for key in node if key in _SCHEMA_KEYS}
    if "x-example" in schema:
        schema.setdefault("example", schema.pop("x-example"))
    return schema


def body(node: Mapping[str, Any], consumes: Iterable[str]) -> dict[str, Any]:
    """A 2.0 `in: body` parameter as a Request Body Object, under each media type consumed."""
    media = {"schema": node.get("schema", {})}
    wrapped = {key: node[key] for key in ("description", "required", "x-example", "x-examples") if key in node}
    return {**wrapped, "content": dict.fromkeys(list(consumes) or ["application/json"], media)}


def form(fields: list[dict[str, Any]], consumes: Iterable[str]) -> dict[str, Any]:
    """2.0 `in: formData` parameters as one Request Body Object.

    A file makes it multipart whatever `consumes` says, since nothing else can carry one.
    """
    has_file = any(field.get("type") == "file" for field in fields)
    named = [name for name in consumes if name.partition(";")[0].strip().lower() in (FORM, MULTIPART)]
    if has_file or not named:
        named = [MULTIPART] if has_file else [FORM]
    properties: dict[str, Any] = {}
    encoding: dict[str, Any] = {}
    for field in fields:
        name = str(field.get("name"))
        schema = _schema_of(field)
        properties[name] = {**schema, "description": field["description"]} if "description" in field else schema
        if field.get("type") == "array":
            style, explode = _COLLECTION.get(str(field.get("collectionFormat", "csv")), ("form", False))
            encoding[name] = {"style": style, "explode": explode}
    required = [str(field.get("name")) for field in fields if field.get("required") is True]
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        whole["required"] = required
    media = {"schema": whole, "encoding": encoding} if encoding else {"schema": whole}
    return {"required": bool(required), "content": dict.fromkeys(named, media)}


def response(node: Mapping[str, Any], produces: Iterable[str]) -> dict[str, Any]:
    """A 2.0 Response Object as 3.x has it."""
    kept = {key: value for key, value in node.items() if key not in ("schema", "examples")}
    if "schema" in node:
        media = {"schema": node["schema"]}
        kept["content"] = dict.fromkeys(list(produces) or ["application/json"], media)
    return kept


def servers(tree: Mapping[str, Any], schemes: Any, document_uri: str | None) -> list[dict[str, Any]]:
    """`host`, `basePath` and `schemes` of 2.0 as Server Objects; empty if the document names none.

    Without a host or scheme the document's own URL gives it (2.0, "Swagger Object").
    """
    host, base = tree.get("host"), tree.get("basePath")
    base = base if isinstance(base, str) and base else ""
    base = base if not base or base.startswith("/") else "/" + base
    own, _, rest = (document_uri or "").partition("://")
    own = own.lower()
    if (not isinstance(host, str) or not host) and own in ("http", "https"):
        host = rest.partition("/")[0].partition("?")[0]
    if not isinstance(host, str) or not host:
        return [{"url": base}] if base else []
    default = own if own in ("http", "https") else "https"
    usable = [s for s in schemes if s in ("http", "https")] if isinstance(schemes, list) else []
    host = host.partition("://")[2] if "://" in host else host
    return [{"url": f"{scheme}://{host.rstrip('/')}{base}"} for scheme in sorted(usable, reverse=True) or [default]]


_FLOWS = {
    "implicit": "implicit",
    "password": "password",
    "application": "clientCredentials",
    "accessCode": "authorizationCode",
}


def security_scheme(node: Mapping[str, Any]) -> dict[str, Any]:
    """A 2.0 Security Scheme Object as 3.x has it."""
    if node.get("type") == "basic":
        return {**{k: v for k, v in node.items() if k != "type"}, "type": "http", "scheme": "basic"}
    if node.get("type") != "oauth2":
        return dict(node)
    details = {key: node[key] for key in ("authorizationUrl", "tokenUrl", "scopes") if key in node}
    kept = {key: value for key, value in node.items() if key not in (*details, "flow")}
    flow = _FLOWS.get(str(node.get("flow")))
    return {**kept, "flows": {flow: details} if flow else {}}
