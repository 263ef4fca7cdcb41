"""Names that a value of the model must never fill, since servers and proxies act on them.

A header with one of these names changes the connection, who the request is for, or which method or path
a server sees: another request than the one that was classified. Servers that read headers through CGI
take `_` for `-`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolgen.request.pertool import PerTool
from toolgen.tools.model import Leaf, Tool
from toolgen.openapi.overrides import METHOD_HEADERS, canonical, is_method_header, is_method_key

# RFC 9110 section 7.6.1 and what proxies treat alike; who and where the request is for; the path a server sees.
_FORBIDDEN: Final = METHOD_HEADERS | frozenset(
    """
    connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding
    upgrade http2-settings content-length expect
    host forwarded x-forwarded-for x-forwarded-host x-forwarded-server x-forwarded-port x-forwarded-proto
    x-forwarded-scheme x-forwarded-prefix x-host x-original-host x-real-ip x-client-ip true-client-ip
    x-original-url x-original-uri x-rewrite-url x-forwarded-uri x-forwarded-path x-accel-redirect x-sendfile
    authorization cookie set-cookie accept content-type
    """.split()
)


def header_fault(name: str) -> str:
    """Why no value of the model may fill a header, or nothing."""
    known = canonical(name)
    if is_method_header(name):
        return f"{name} would have the server use another method than the one that was classified"
    if known in _FORBIDDEN or known.startswith(("proxy-", ":", "sec-")):
        return f"{name} belongs to the connection, to credentials or to the client, never to an argument"
    return ""


def key_fault(name: str) -> str:
    """Why no value of the model may be a query parameter, cookie or body field of that name, or nothing."""
    if is_method_key(name):
        return f"{name!r} would have some servers use another method than the one that was classified"
    return ""


def spread_faults(leaf: Leaf, value: Any, taken: frozenset[str], *, whole: bool = False) -> Iterator[str]:
    """What is wrong with the keys of an object that become names of their own, since it is exploded or a whole query:
    each that is spoken for, or that some servers act on."""
    styled = leaf.media_type is None and leaf.style in ("form", "cookie", None) and leaf.explode is not False
    for key in value if isinstance(value, dict) and (whole or styled) else ():
        if fault := key_fault(key):
            yield fault
        elif key.partition("[")[0].casefold() in taken - {leaf.name.casefold()}:
            yield f"{key!r} is the name of another parameter or of a credential"


def _names_taken(tool: Tool) -> dict[str, frozenset[str]]:
    request = tool.request
    template = (request.template or "").partition("?")[2]
    constants = {pair.partition("=")[0].casefold() for pair in template.split("&") if pair}
    owned = [scheme for scheme in tool.home.security_schemes.values() if scheme.get("type") == "apiKey"]
    found = {"query": constants | {leaf.name.casefold() for leaf in request.query}}
    found["cookie"] = {leaf.name.casefold() for leaf in request.cookie}
    return {
        place: frozenset(names | {str(s.get("name", "")).casefold() for s in owned if s.get("in") == place})
        for place, names in found.items()
    }


# Names in a tool's `query` and `cookie` that a key of an object must not become, in lower case.
taken_names = PerTool(_names_taken)
