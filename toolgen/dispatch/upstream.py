"""One API as the dispatcher knows it: a toolset with its server, its credentials and where it may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgen.dispatch.addresses import Allowed
from toolgen.errors import CredentialsError, Problem, ServerError, UsageError, did_you_mean
from toolgen.identity.caller import Caller
from toolgen.identity.credentials import Credentials
from toolgen.identity.origin import Origin
from toolgen.identity.references import Reference
from toolgen.request.model import ResolvedRequest
from toolgen.request.resolve import resolve
from toolgen.request.server import Base, filled, server_of
from toolgen.tools.model import Server, Tool, Toolset
from toolgen.tools.template import pieces


@dataclass(frozen=True)
class Upstream:
    """A toolset that can be called."""

    toolset: Toolset
    server: str | None
    variables: Mapping[str, str]
    credentials: Credentials = field(repr=False)
    allowed: Allowed = field(repr=False)
    document: Mapping[str, Any] | None = field(default=None, repr=False)

    def resolve(self, tool: Tool, arguments: Mapping[str, Any], caller: Caller | None) -> ResolvedRequest:
        """The request of a call; raises like `toolgen.request.resolve.resolve`."""
        return resolve(tool, arguments, server=self.server, server_variables=self._variables(tool), caller=caller)

    def base(self, tool: Tool) -> Base:
        """The server a tool's requests go to. Raises ServerError."""
        return server_of(tool, self.server, self._variables(tool))

    def _variables(self, tool: Tool) -> dict[str, str]:
        server = tool.request.server or self.toolset.server
        declared = server.variables if self.server is None and isinstance(server, Server) else {}
        return {name: value for name, value in self.variables.items() if name in declared}


def upstream(
    toolset: Toolset,
    *,
    credentials: Any = None,
    server: str | None = None,
    server_variables: Mapping[str, str] | None = None,
    allow_private: Sequence[str] = (),
    caller_references: bool = True,
    document: Mapping[str, Any] | None = None,
) -> Upstream:
    """A toolset made ready to be called.

    Raises CredentialsError, UsageError and ServerError for settings that are not valid.
    """
    variables = dict(server_variables or {})
    _check_variables(toolset, variables)
    url = server or _url(toolset.server, variables)
    origin = Origin.of(url) if url else None
    if server is not None and origin is None:
        raise ServerError(f"{toolset.api}: the server is no http(s) URL with a host")
    if not caller_references:
        _check_no_caller(toolset)
    loaded = Credentials.load(
        credentials or {},
        api=toolset.api,
        schemes=toolset.security_schemes,
        origin=origin,
        caller_references=caller_references,
    )
    allowed = Allowed([origin.host] if origin else [], allow_private, port=origin.port if origin else None)
    return Upstream(toolset, server, variables, loaded, allowed, document)


def _url(server: str | Server | None, variables: Mapping[str, str]) -> str | None:
    """The toolset's server as far as it is known by now: a variable may be left for nobody to fill."""
    if not isinstance(server, Server):
        return server
    known = {name: value for name, value in variables.items() if name in server.variables}
    if any(one.default is None and name not in known for name, one in server.variables.items()):
        return None
    return filled(server, known)


def _check_variables(toolset: Toolset, variables: Mapping[str, str]) -> None:
    servers = [toolset.server, *(tool.request.server for tool in toolset.tools)]
    known = {name for server in servers if isinstance(server, Server) for name in server.variables}
    unknown = [
        Problem(f"no server has the variable {n!r}{did_you_mean(n, known)}") for n in variables if n not in known
    ]
    if unknown:
        raise UsageError(f"{toolset.api}: server variables that are not there", unknown)


def _check_no_caller(toolset: Toolset) -> None:
    """Refuse a toolset that refers to the caller where such references are switched off."""
    found = [
        Problem(f"{reference} is switched off", f"{tool.name}: {location} {name}")
        for tool in toolset.tools
        for location, name, value in tool.request.leaves()
        for reference in _references(value)
        if reference.kind == "caller"
    ]
    if found:
        raise CredentialsError(f"{toolset.api} refers to the caller, and caller references are switched off", found)


def _references(value: Any) -> Iterable[Reference]:
    if isinstance(value, str):
        yield from (piece for piece in (pieces(value) if "${" in value else ()) if isinstance(piece, Reference))
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _references(item)
