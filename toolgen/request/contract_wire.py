"""A resolved request as openapi-core takes it: its URL, headers and cookies taken apart again.

openapi-core splits values that are decoded already, where OpenAPI splits and then decodes: a value whose
pieces hold the delimiter cannot be told apart by it, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from toolgen.errors import Problem
from toolgen.openapi.references import escape
from toolgen.request.contract_document import OneOperation, query_names
from toolgen.request.model import ResolvedRequest

if TYPE_CHECKING:
    from openapi_core.datatypes import RequestParameters

DELIMITER_INSIDE = "a value holds the delimiter of its style, which openapi-core cannot tell apart"
EMPTY_VALUE = "openapi-core takes no empty query value"
LATER = "it is filled in when the request is sent"
UNKNOWN = "the operation declares no query parameter of this name"
EMPTY_BODY = "openapi-core takes an empty body for none"

_EXPRESSION = re.compile(r"\{([^{}]+)\}")
# Style -> what stands between its pieces on the wire, in the order openapi-core joins and splits them.
_BETWEEN = {"spaceDelimited": ("%20", "+"), "pipeDelimited": ("%7C", "|")}


@dataclass(slots=True)
class Wire:
    """What openapi-core calls a request. `unreadable` are the (location, name) whose errors say nothing."""

    method: str
    parameters: RequestParameters
    content_type: str
    body: bytes | None
    host_url: str = "http://localhost"
    path: str = "/operation"
    unreadable: set[tuple[str, str]] = field(default_factory=set)
    left_out: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def leave_out(self, location: str, name: str, why: str) -> None:
        """Say that something is not looked at, and why."""
        self.unreadable.add((location, name))
        where = f"/{location}/{escape(name)}" if name else f"/{location}"
        self.left_out.append(Problem(why, where))


def read_request(request: ResolvedRequest, operation: OneOperation) -> Wire:
    """The request as its bytes say."""
    from openapi_core.datatypes import RequestParameters
    from werkzeug.datastructures import Headers, ImmutableMultiDict

    wire = Wire(request.method.lower(), RequestParameters(), request.media_type or "", request.body)
    if wire.method != operation.method.lower():
        wire.problems.append(Problem(f"method: expected {operation.method.upper()}", "/method"))
    cookies = [pair for name, text in request.headers if name.lower() == "cookie" for pair in text.split("; ")]
    query = urlsplit(request.url).query
    wire.parameters = RequestParameters(
        query=ImmutableMultiDict(_pairs(query.split("&"), "query", operation, wire)),
        header=Headers(request.headers),
        cookie=ImmutableMultiDict(_pairs(cookies, "cookie", operation, wire)),
        path=_path(request, operation, wire),
    )
    _not_yet(request, operation, wire)
    if request.body == b"":
        wire.leave_out("body", "", EMPTY_BODY)
    return wire


def _not_yet(request: ResolvedRequest, operation: OneOperation, wire: Wire) -> None:
    """What is not in the bytes, or not in any schema, or cannot be split."""
    for (location, name), (_, explode, kind) in operation.styles.items():
        if location == "header" and kind == "object" and explode:
            pieces = wire.parameters.header.get(name, "").split(",")
            if any(piece.count("=") > 1 for piece in pieces):
                wire.leave_out(location, name, DELIMITER_INSIDE)
    for one in request.deferred:
        name = unquote(one.name) if one.location != "header" else one.name
        wire.leave_out(one.location, name, LATER)
    if request.idempotency is not None:
        for location, name in operation.styles:
            if location == "header" and name.lower() == request.idempotency.lower():
                wire.leave_out("header", name, LATER)
    for (location, name), why in operation.opaque.items():
        wire.leave_out(location, name, why)
    constant = {unquote(name) for name in query_names(operation.path)}
    for name in wire.parameters.query:
        deep = name.partition("[")[0]
        opaque = ("query", name) in operation.opaque
        if not operation.loose_query and not {name, deep} & (operation.known | constant) and not opaque:
            wire.leave_out("query", name, UNKNOWN)


def _pairs(raw: list[str], location: str, operation: OneOperation, wire: Wire) -> Iterator[tuple[str, str]]:
    """Names and values, decoded; the pieces of a value joined as openapi-core splits them."""
    for pair in raw:
        if not pair:
            continue
        name, _, text = pair.partition("=")
        name = unquote(name)
        style, explode, kind = operation.styles.get((location, name), ("form", True, ""))
        if explode or kind not in ("array", "object"):
            if location == "query" and not text and kind != "array":
                wire.leave_out(location, name, EMPTY_VALUE)
            yield name, unquote(text)
            continue
        yield name, _joined(text, _BETWEEN.get(style, (",",)), (location, name), wire)


def _joined(text: str, between: tuple[str, ...], where: tuple[str, str], wire: Wire, inner: str = "") -> str:
    """The decoded pieces of a value with openapi-core's delimiter between them."""
    delimiter = between[0] if between[0] != "%7C" else "|"
    pieces = re.split("|".join(map(re.escape, between)), text, flags=re.IGNORECASE)
    decoded = [inner.join(map(unquote, piece.split(inner, 1))) if inner else unquote(piece) for piece in pieces]
    held = [
        d
        for d, piece in zip(decoded, pieces, strict=True)
        if delimiter in d or (inner and d.count(inner) != piece.count(inner))
    ]
    if held:
        wire.leave_out(*where, DELIMITER_INSIDE)
    return delimiter.join(decoded)


def _path(request: ResolvedRequest, operation: OneOperation, wire: Wire) -> dict[str, str]:
    """The path's values under the names openapi-core looks for: with the mark of their style."""
    base = urlsplit(request.server).path.rstrip("/")
    path = urlsplit(request.url).path
    template = operation.path.partition("?")[0]
    pieces = _EXPRESSION.split(template)
    pattern = "".join("([^/]*)" if index % 2 else re.escape(piece) for index, piece in enumerate(pieces))
    match = re.fullmatch(re.escape(base) + pattern, path)
    if match is None:
        wire.problems.append(Problem(f"path: it is not {template}", "/path"))
        wire.unreadable.update(("path", name) for name in pieces[1::2])  # said once
        return {}
    found: dict[str, str] = {}
    for name, text in zip(pieces[1::2], match.groups(), strict=True):
        style, explode, kind = operation.styles.get(("path", name), ("simple", False, ""))
        mark = {"label": ".", "matrix": ";"}.get(style, "")
        key = f"{mark}{name}{'*' if mark and explode else ''}"
        found[key] = _path_text(name, text, (style, explode, kind), wire)
    return found


def _path_text(name: str, text: str, how: tuple[str, bool, str], wire: Wire) -> str:
    style, explode, kind = how
    where = "path", name
    start = "" if style == "simple" else "." if style == "label" else ";" if explode else f";{name}="
    if kind not in ("array", "object"):
        bare = text.partition("=") if style == "matrix" else None
        if bare is not None and not bare[1]:  # RFC 6570, 3.2.7: an empty value has no `=`
            return f"{unquote(text)}="
        return unquote(text)
    inner = "=" if explode and (kind == "object" or style == "matrix") else ""
    between = {"label": ".", "matrix": ";"}.get(style, ",") if explode else ","
    return start + _joined(text.removeprefix(start), (between,), where, wire, inner)
