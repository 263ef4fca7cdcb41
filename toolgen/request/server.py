"""Which server a request goes to: what the operator said, else the operation's, else the toolset's.

OpenAPI 3.2 "Server Object". No argument has a part in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from toolgen.errors import ServerError, did_you_mean
from toolgen.identity.origin import Origin
from toolgen.openapi.endpoint import request_target
from toolgen.openapi.servers import VARIABLE, server_fault
from toolgen.openapi.text import one_line
from toolgen.tools.model import Server, Tool

_SET = "set it with `server=`, `--server URL` or `server:` in the toolset"


class Base(NamedTuple):
    """A server as a request is built on it: `url` without a slash at its end and without the query, which is kept."""

    url: str
    query: str


def server_of(tool: Tool, server: str | None = None, variables: Mapping[str, str] | None = None) -> Base:
    """The server a tool's requests go to. `server` overrides every other.

    Raises ServerError: there is none, it is relative, a variable has no value or one that is not allowed.
    """
    # An override that is empty is a variable nobody set: the document's server is not what was meant.
    chosen = server if server is not None else tool.request.server or tool.home.server
    if not chosen:
        raise ServerError(f"{tool.name} has no server to be sent to; {_SET}")
    return _base(chosen if isinstance(chosen, str) else filled(chosen, variables or {}), tool)


def filled(server: Server, given: Mapping[str, str]) -> str:
    """A server's URL with its variables filled in, by what is given or their defaults. Raises ServerError."""
    for name in given:
        if name not in server.variables:
            raise ServerError(f"the server has no variable {name!r}" + did_you_mean(name, server.variables))
    values: dict[str, str] = {}
    for name, variable in server.variables.items():
        value = given.get(name, variable.default)
        if value is None:
            raise ServerError(f"the server variable {name!r} has no value; give it with `server_variables=`")
        value = str(value)  # a port that a config has as a number
        if variable.enum and value not in variable.enum:
            raise ServerError(f"the server variable {name!r} is one of {', '.join(variable.enum)}")
        values[name] = value
    return VARIABLE.sub(lambda match: values.get(match[1], match[0]), server.url)


def _base(url: str, tool: Tool) -> Base:
    shown = one_line(url.partition("?")[0], 100)
    if not re.match(r"https?://", url, re.IGNORECASE):
        if server_fault(url):
            raise ServerError(f"the server of {tool.name} is no http(s) URL; {_SET}")
        raise ServerError(f"the server {shown!r} of {tool.name} is relative, and to what is not known; {_SET}")
    if "@" in urlsplit(url).netloc:
        raise ServerError(f"the server of {tool.name} holds a user name; bind credentials to security schemes")
    if server_fault(url) or Origin.of(url) is None or not url.isascii() or "#" in url:
        raise ServerError(f"the server of {tool.name} is no URL that requests can go to; {_SET}")
    parts = urlsplit(url)
    try:
        path = request_target(parts.path or "/").rstrip("/")
    except ValueError as error:
        raise ServerError(f"the server {shown!r} of {tool.name} cannot be called: {error}") from None
    return Base(f"{parts.scheme.lower()}://{parts.netloc.lower()}{path}", parts.query)
