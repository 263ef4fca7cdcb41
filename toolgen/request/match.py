"""A raw request -> the operation it calls: by server, method and path template, and only if nobody could read it otherwise.

OpenAPI 3.2 "Path Templating Matching": concrete paths go before templated ones. Paths are compared as they are sent,
segment by segment; what a server, proxy or framework could take for another path is refused, not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, unquote_plus

from toolgen.errors import RequestError
from toolgen.identity.origin import Origin
from toolgen.openapi.endpoint import endpoint_path, placeholders
from toolgen.request.path import has_separator, path_template, value_fault
from toolgen.request.server import Base
from toolgen.tools.model import Tool

_PATH = re.compile(r"/[!$&'()*+,\-./0-9:;=@A-Z_a-z~%]*")
_ESCAPES = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Operation(NamedTuple):
    """A tool and the server its requests go to."""

    tool: Tool
    base: Base


@dataclass(frozen=True, slots=True)
class Matched:
    """What a request calls: a tool with the encoded values of its path, or none that is declared.

    `path` is the request's without the server's own; `base` is the server it goes to.
    """

    api: str
    base: Base
    path: str
    tool: Tool | None = None
    values: tuple[tuple[str, str], ...] = ()


def match(operations: Iterable[Operation], method: str, url: str) -> Matched:
    """The operation of a request. `url` is absolute and as it is sent.

    Raises RequestError for a server that none of the operations has, a path that could be read as another, and one
    that several operations have alike.
    """
    origin = Origin.of(url)
    rest = url.partition("://")[2].partition("#")[0]
    target, _, query = rest.partition("?")
    path = "/" + target.partition("/")[2]
    here = [one for one in operations if origin is not None and _origin(one.base.url) == origin]
    if origin is None or "@" in target.partition("/")[0] or not here:
        raise RequestError("no toolset has the server of this request; nothing was sent")
    _check_path(path)
    found = [matched for one in here if (matched := _of(one, method, path, query)) is not None]
    if not found:
        return _undeclared(here, path)
    chosen = _best(found)
    alike = [one for one in here if _constant(one.tool) and _is_at(one, path)]
    if alike:
        _check_query(chosen, alike, query)
    return chosen


@lru_cache(maxsize=1024)
def _origin(url: str) -> Origin | None:
    return Origin.of(url)


def _is_at(one: Operation, path: str) -> bool:
    """Whether a path is of an operation's template, whatever the method and the query."""
    own = _below(one.base, path)
    return own is not None and path_template(one.tool).values(own) is not None


def _of(one: Operation, method: str, path: str, query: str) -> Matched | None:
    """The match of a request with one operation, or None."""
    tool = one.tool
    if (tool.request.method or tool.endpoint.method.upper()) != method:
        return None
    own = _below(one.base, path)
    # The text before the first expression is compared first: it is quick, and most operations end there.
    head = (tool.request.template or tool.endpoint.path).partition("?")[0].partition("{")[0]
    if own is None or not own.startswith(head) or not _has(one, query):
        return None
    values = path_template(tool).values(own)
    if values is None:
        return None
    names = placeholders((tool.request.template or tool.endpoint.path).partition("?")[0])
    return Matched(tool.home.api, one.base, own, tool, tuple(zip(names, values, strict=True)))


def _has(one: Operation, query: str) -> bool:
    """Whether the constant query of a path, which tells operations apart, is in a request's."""
    constant = "&".join(filter(None, (one.base.query, (one.tool.request.template or "").partition("?")[2])))
    if not constant:
        return True
    given = parse_qsl(query, keep_blank_values=True)
    return all(pair in given for pair in parse_qsl(constant, keep_blank_values=True))


def _plain_keys(query: str) -> list[str]:
    """The keys of a query as the least careful server compares them: parted at `;` too, without case and brackets."""
    keys = (unquote_plus(pair.partition("=")[0]) for pair in re.split("[&;]", query))
    return [key.partition("[")[0].strip().lower() for key in keys if key]


def _check_query(chosen: Matched, alike: Iterable[Operation], query: str) -> None:
    """Raises RequestError for a query from which a server could take another operation of the same path."""
    own = _plain_keys(_constant(chosen.tool))
    others = [_plain_keys(_constant(one.tool)) for one in alike]
    given = _plain_keys(query)
    for key in {*own, *(key for keys in others for key in keys)}:
        if given.count(key) != own.count(key):
            raise RequestError(f"the query has {key!r} otherwise than the operation, which it names; nothing was sent")


def _constant(tool: Tool | None) -> str:
    return (tool.request.template or "").partition("?")[2] if tool is not None else ""


@lru_cache(maxsize=1024)
def _prefix(url: str) -> str:
    """The path of a server, without a slash at its end."""
    _, slash, path = url.partition("://")[2].partition("/")
    return (slash + path).rstrip("/")


def _below(base: Base, path: str) -> str | None:
    """A path without that of the server, or None for one that is not below it."""
    prefix = _prefix(base.url)
    if not path.startswith(prefix):
        return None
    own = path[len(prefix) :]
    return own if own.startswith("/") else "/" if not own else None


def _best(found: Sequence[Matched]) -> Matched:
    """The one match that is in every segment as exact as all others. Raises RequestError where none is."""
    ranks = [_exactness(one) for one in found]
    best = [
        one
        for one, rank in zip(found, ranks, strict=True)
        if all(len(rank) == len(other) and all(a >= b for a, b in zip(rank, other, strict=True)) for other in ranks)
    ]
    chosen, tool = best[0] if len(best) == 1 else None, best[0].tool if len(best) == 1 else None
    if chosen is None or tool is None:
        raise RequestError("several operations have the path of this request: which is called is not known")
    template = path_template(tool)
    for name, value in chosen.values:
        fault = value_fault(unquote(value)) or (
            "has a slash, which servers read differently" if has_separator(unquote(value)) else ""
        )
        if fault:
            raise RequestError(f"the value of {name!r} in the path {fault}; nothing was sent")
    if chosen.values and template.is_sibling(chosen.path):
        raise RequestError("a server could take the path of this request for that of another operation")
    return chosen


def _exactness(one: Matched) -> tuple[int, ...]:
    """How much of each segment is text: all of it, some, nothing; the constant query last."""
    assert one.tool is not None
    segments = path_template(one.tool).segments
    query = (one.tool.request.template or "").partition("?")[2]
    return (*(2 if len(each) == 1 else int(any(each)) for each in segments), query.count("=") if query else 0)


def _undeclared(here: Sequence[Operation], path: str) -> Matched:
    """The API a request goes to that none of its operations describes. Raises RequestError for more than one."""
    below = {one.tool.home.api: one.base for one in here if _below(one.base, path) is not None}
    if not below:
        raise RequestError("no toolset has the server of this request; nothing was sent")
    if len(below) > 1:
        raise RequestError(f"{', '.join(below)} have this server, and none of them the path: whose it is is not known")
    ((api, base),) = below.items()
    own = _below(base, path) or "/"
    for segment in own.split("/")[1:-1] + ([own.rpartition("/")[2]] if not own.endswith("/") else []):
        fault = value_fault(unquote(segment))
        if fault or has_separator(unquote(segment)):
            raise RequestError(f"a segment of the path {fault or 'has a slash'}; nothing was sent")
    return Matched(api, base, own)


def _check_path(path: str) -> None:
    """Raises RequestError for a path that is not written as one is sent, or goes up."""
    if not _PATH.fullmatch(path) or _ESCAPES.search(path):
        raise RequestError("the path of this request is not percent-encoded as a URL's is; nothing was sent")
    try:
        endpoint_path(path)
    except ValueError as error:
        raise RequestError(f"the path of this request is refused: {error}; nothing was sent") from None
