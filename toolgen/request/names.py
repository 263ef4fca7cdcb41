"""Names that a value of the model must never fill, since servers and proxies act on them.

A header with one of these names changes the connection, who the request is for, or which method or path
a server sees: another request than the one that was classified. Servers that read headers through CGI
take `_` for `-`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote_plus

from toolgen.overrides import METHOD_HEADERS, canonical, is_method_header, is_method_key
from toolgen.request.pertool import PerTool
from toolgen.request.text import NotWritable
from toolgen.tools.model import Tool

# RFC 9110 section 7.6.1 and what proxies treat alike; who and where the request is for; the path a server sees.
_FORBIDDEN: Final = METHOD_HEADERS | frozenset(
    """
    connection keep-alive te trailer transfer-encoding upgrade http2-settings content-length expect via max-forwards
    host forwarded x-forwarded x-host x-real-ip x-client-ip x-cluster-client-ip true-client-ip cf-connecting-ip
    x-rewrite-url x-accel-redirect x-sendfile proxy
    authorization cookie cookie2 set-cookie accept content-type
    """.split()
)
_FAMILIES: Final = ("proxy-", "sec-", "x-forwarded-", "x-original-", "x-envoy-", ":")
_AS_UNDERSCORE = re.compile(r"[ .\[]")


def header_fault(name: str) -> str:
    """Why no value of the model may fill a header, or nothing."""
    known = canonical(name)
    if is_method_header(name):
        return f"{name} would have the server use another method than the one that was classified"
    if known in _FORBIDDEN or known.startswith(_FAMILIES):
        return f"{name} belongs to the connection, to credentials or to the client, never to an argument"
    return ""


def key_fault(name: str) -> str:
    """Why no value of the model may be a query parameter, cookie or body field of that name, or nothing."""
    if is_method_key(name) or is_method_key(_plainest(name)):
        return f"{name[:60]!r} would have some servers use another method than the one that was classified"
    return ""


def spread_faults(own: str, names: Iterable[str], taken: frozenset[str]) -> Iterator[str]:
    """What is wrong with the names that the keys of the value of `own` became, since it is exploded or a whole query:
    each that is spoken for, or that some servers act on. `taken` is in the form of `as_taken`."""
    others = taken - {_plainest(own)}
    for name in names:
        if name == own:
            continue
        if fault := key_fault(name):
            yield fault
        elif not others.isdisjoint((_plainest(name), _plainest(name.partition("[")[0]))):
            yield f"{name[:60]!r} is the name of another parameter or of a credential"


def check_spread(name: str, keys: Iterable[str], taken: frozenset[str]) -> None:
    """The same for the fields that one property of a form became. Raises NotWritable."""
    for fault in spread_faults(name, keys, taken):
        raise NotWritable(fault)


def as_taken(names: Iterable[str]) -> frozenset[str]:
    """Names as the least careful server compares them."""
    return frozenset(map(_plainest, names))


def query_names(query: str) -> Iterator[str]:
    """The decoded names in a query."""
    return (unquote_plus(pair.partition("=")[0]) for pair in query.split("&") if pair)


def _plainest(name: str) -> str:
    """A name as PHP has it: spaces in front and what follows a NUL are dropped, `.`, space and `[` become `_`."""
    return _AS_UNDERSCORE.sub("_", name.partition("\0")[0].lstrip(" ")).casefold().rstrip()


def _names_taken(tool: Tool) -> dict[str, frozenset[str]]:
    request = tool.request
    owned = [scheme for scheme in tool.home.security_schemes.values() if scheme.get("type") == "apiKey"]
    template = (request.template or "").partition("?")[2]
    found = {"query": [*query_names(template), *(leaf.name for leaf in request.query)]}
    found["cookie"] = [leaf.name for leaf in request.cookie]
    return {
        place: as_taken([*names, *(str(s.get("name", "")) for s in owned if s.get("in") == place)])
        for place, names in found.items()
    }


# Names in a tool's `query` and `cookie` that a key of an object must not become, as `as_taken` has them.
taken_names = PerTool(_names_taken)
