"""A raw request, from a program's own HTTP client, as the resolved request it is: checked, and without its credentials.

What may be in it is what the operation declares, as far as it can be read back: values of the path, required
parameters, a JSON body. Headers that carry credentials are the runtime's to add, and none of the program's is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from toolgen.errors import ArgumentsError, LimitExceeded, Problem, RequestError, SyntaxFault
from toolgen.identity.secret_names import is_secret_name
from toolgen.openapi.keys import METHODS
from toolgen.openapi.parameters import is_json
from toolgen.openapi.source.json_text import load_json
from toolgen.overrides import canonical, is_method_header
from toolgen.request.arguments import validated
from toolgen.request.match import Matched
from toolgen.request.model import ResolvedRequest
from toolgen.request.multipart import rewritten
from toolgen.request.names import header_fault, key_fault
from toolgen.tools.generate import generate
from toolgen.tools.model import Tool, Toolset

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Of the connection, and of who asks: the runtime's own.
_DROPPED: Final = frozenset(
    "accept-encoding authorization connection content-length cookie cookie2 expect forwarded host keep-alive"
    " proxy-authorization proxy-connection te trailer transfer-encoding upgrade via x-forwarded-for x-forwarded-host"
    " x-forwarded-port x-forwarded-proto x-real-ip".split()
)
_Headers = tuple[tuple[str, str], ...]
_OF_THE_BODY: Final = frozenset({"accept", "content-type"})


@dataclass(frozen=True, slots=True)
class RawRequest:
    """What a client would send: an absolute URL as it is sent, headers in their order, the whole body."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def resolved(raw: RawRequest, found: Matched, tool: Tool, schemes: Mapping[str, Any]) -> ResolvedRequest:
    """The request as it would be sent for a match: of its tool, or of what stands for it (`undeclared`). `schemes` are
    the API's security schemes.

    Raises ArgumentsError for what is not as the operation declares it, and RequestError for what would have a server
    do something else than what is classified.
    """
    owned = _owned(schemes)
    declared = {canonical(one.name) for one in tool.bindings if one.location == "header"}
    headers = tuple(
        (name, value)
        for name, value in raw.headers
        if canonical(name) in declared or not (_is_dropped(name) or ("header", canonical(name)) in owned)
    )
    _check_steering(headers, raw)
    _check_fields(headers, raw.body)
    rest, _, query = raw.url.partition("#")[0].partition("?")
    kept = [pair for pair in query.split("&") if pair and not _is_owned(pair, owned)]
    if found.tool is not None:
        _check(found.tool, found, kept, headers, raw.body)
    headers, body = _with_own_boundary(headers, raw.body)
    return ResolvedRequest(
        tool=tool,
        method=raw.method,
        url=f"{found.base.url}{found.path if found.path != '/' or rest.endswith('/') else ''}"
        + (f"?{'&'.join(kept)}" if kept else ""),
        headers=headers,
        body=body or None,
        server=found.base.url,
        notes=() if found.tool is not None else ("the API's document has no such operation",),
        is_undeclared=found.tool is None,
    )


def _with_own_boundary(headers: _Headers, body: bytes) -> tuple[_Headers, bytes]:
    """A form in parts under a boundary that follows from them: a client makes up another each time, and what was
    approved would never be made again."""
    given = next((value for name, value in headers if canonical(name) == "content-type"), "")
    if given.partition(";")[0].strip().lower() != "multipart/form-data":
        return headers, body
    media_type, body = rewritten(given, body)
    return tuple((name, media_type if canonical(name) == "content-type" else value) for name, value in headers), body


def undeclared(found: Matched, method: str) -> Toolset:
    """What stands for an operation that no document declares: its method and path, no arguments, no credentials."""
    if method.lower() not in METHODS:
        raise RequestError(f"the method of this request is none of {', '.join(METHODS)}; nothing was sent")
    path = quote(found.path, safe="/!$&'()*+,;=:@-._~%")
    operation: dict[str, Any] = {"responses": {"default": {"description": ""}}, "security": []}
    document = {
        "openapi": "3.2.0",
        "info": {"title": found.api, "version": "0"},
        "paths": {path: {method.lower(): operation}},
    }
    return generate(document, api=found.api, server=found.base.url)


def _is_dropped(name: str) -> bool:
    """Whether a header is of the connection, or says who asks: known by its name, or by what its name says."""
    known = canonical(name)
    return known in _DROPPED or known.startswith(("proxy-", "sec-", "x-forwarded-")) or is_secret_name(name)


def _owned(schemes: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Where the API's keys stand: (header or query, name)."""
    found = set()
    for scheme in schemes.values():
        data = scheme if isinstance(scheme, Mapping) else scheme.model_dump(by_alias=True)
        if data.get("type") == "apiKey":
            where, name = str(data.get("in")), str(data.get("name"))
            found.add((where, canonical(name) if where == "header" else name))
    return frozenset(found)


def _is_owned(pair: str, owned: frozenset[tuple[str, str]]) -> bool:
    """Whether a server could take a pair of the query for a key: parted at `;` too, without case and brackets."""
    names = {name.lower() for where, name in owned if where == "query"}
    return any({key, key.partition("[")[0]} & names for key in (_key(part).strip().lower() for part in pair.split(";")))


def _key(pair: str) -> str:
    return unquote(pair.partition("=")[0].replace("+", " "))


def _check_steering(headers: Sequence[tuple[str, str]], raw: RawRequest) -> None:
    """Raise RequestError for what some servers take for another method, or another header than it says."""
    for name, value in headers:
        if is_method_header(name):
            raise RequestError(f"the header {name!r} says another method than the request's; nothing was sent")
        if canonical(name) not in _OF_THE_BODY and header_fault(name):
            raise RequestError(f"the header {name!r} would have some servers read another request; nothing was sent")
        if not _NAME.fullmatch(name) or any(ord(one) < 32 and one != "\t" for one in value):
            raise RequestError("a header of this request is not one that can be sent; nothing was sent")
    for pair in re.split("[&;]", raw.url.partition("?")[2].partition("#")[0]):
        if key_fault(key := _key(pair)):
            raise RequestError(f"the query has {key!r}, which says another method than the request's; nothing was sent")


def _check_fields(headers: Sequence[tuple[str, str]], body: bytes) -> None:
    """Raise RequestError for a body that is read in two ways, or has a field that says another method."""
    if any(canonical(name) == "content-encoding" and value.strip().lower() != "identity" for name, value in headers):
        raise RequestError("the body of the request is packed, and cannot be looked at; nothing was sent")
    types = [value for name, value in headers if canonical(name) == "content-type"]
    if len(types) > 1:
        raise RequestError("the request says more than once of which type its body is; nothing was sent")
    kind, _, options = (types[0] if types else "").lower().partition(";")
    charset = re.search(r"charset\s*=\s*[\"']?([^\s;\"']*)", options)
    if is_json(kind.strip()) and charset is not None and charset[1] not in ("utf-8", "utf8", "us-ascii"):
        raise RequestError("the JSON body of the request is not said to be UTF-8; nothing was sent")
    keys: list[str] = []
    if is_json(kind.strip()):
        with suppress(UnicodeDecodeError, SyntaxFault, LimitExceeded):
            data = load_json(body.decode("utf-8"), "the body")
            keys = list(data) if isinstance(data, dict) else []
    elif kind.strip() == "multipart/form-data":
        found = re.findall(rb"""name\*?\s*=\s*(?:"([^"]*)"|([^\s;"]+))""", body, re.IGNORECASE)
        keys = [(quoted or bare).decode("latin-1") for quoted, bare in found]
    elif kind.strip() in ("", "application/x-www-form-urlencoded"):
        keys = [_key(pair) for pair in re.split("[&;]", body.decode("latin-1"))]
    for key in keys:
        if key_fault(key):
            raise RequestError(f"the body has {key[:60]!r}, which says another method than the request's")


def _check(
    tool: Tool, found: Matched, query: Sequence[str], headers: Sequence[tuple[str, str]], content: bytes
) -> None:
    """Raise ArgumentsError for what is missing, and for values that are not what the tool's schema says."""
    required = set(tool.parameters.get("required", ()))
    there = {
        "query": {name for key in map(_key, query) for name in (key, key.partition("[")[0])},
        "header": {name.lower() for name, _ in headers},
        "path": {name for name, _ in found.values},
    }
    missing = [
        Problem(f"the {where} {name!r} is missing", f"/{argument}")
        for argument, where, name in ((one.argument, one.location, one.name) for one in tool.bindings)
        if argument in required and where in there and (name.lower() if where == "header" else name) not in there[where]
        if not (where == "query" and _is_spread(tool, argument, name))
    ]
    if missing:
        raise ArgumentsError(f"the request is not one of {tool.name}; nothing was sent", missing)
    body = _body_of(tool, headers, content)
    if body is not None:
        argument, value = body
        validated(_Part(tool, argument), {argument: value})


def _is_spread(tool: Tool, argument: str, name: str) -> bool:
    """Whether a parameter of the query may be an object whose keys stand in it, and not its own name."""
    kinds = tool.parameters["properties"][argument]
    kind = kinds.get("type") if isinstance(kinds, Mapping) else None
    plain = {kind} if isinstance(kind, str) else set(kind or ())
    is_object = not plain or "object" in plain
    leaves = [leaf for leaf in tool.request.query if leaf.name == name and leaf.media_type is None]
    return is_object and any(leaf.style in (None, "form") and leaf.explode is not False for leaf in leaves)


def _body_of(tool: Tool, headers: Sequence[tuple[str, str]], content: bytes) -> tuple[str, Any] | None:
    """The JSON body with the argument it is of; None where there is none to check. Raises ArgumentsError."""
    argument = next((one.argument for one in tool.bindings if one.location == "body"), None)
    if argument is None or tool.request.body is None:
        return None
    if not content:
        if argument in tool.parameters.get("required", ()):
            raise ArgumentsError(
                f"the request has no body, which {tool.name} needs", [Problem("is missing", f"/{argument}")]
            )
        return None
    given = next((value for name, value in headers if name.lower() == "content-type"), "").partition(";")[0].strip()
    if given.lower() not in (tool.request.body.media_type.lower(), *map(str.lower, tool.request.body.alternatives)):
        said = f"expected {tool.request.body.media_type}, got {given or 'none'}"
        raise ArgumentsError(f"the body of {tool.name} is of another type", [Problem(said, f"/{argument}")])
    if not is_json(given.lower()):
        return None
    try:
        return argument, load_json(content.decode("utf-8"), "the body")
    except (UnicodeDecodeError, SyntaxFault, LimitExceeded):
        raise ArgumentsError(
            f"the body of {tool.name} is not valid JSON", [Problem("not valid JSON", f"/{argument}")]
        ) from None


class _Part:
    """A tool as far as one of its arguments goes."""

    def __init__(self, tool: Tool, argument: str) -> None:
        self._tool, self._argument = tool, argument

    @property
    def name(self) -> str:
        return self._tool.name

    def input_schema(self) -> dict[str, Any]:
        schema = self._tool.input_schema()
        only = {self._argument: schema["properties"][self._argument]}
        return {**schema, "properties": only, "required": [self._argument]}
