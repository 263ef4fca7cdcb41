"""Where an MCP server is and what it is sent to be let in: the settings of a source, checked and never filled in."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from toolgen.adapters.mcp_sessions import Own, Way
from toolgen.dispatch.addresses import Allowed
from toolgen.dispatch.mcp_http import Headers, Invocation, mcp_client
from toolgen.dispatch.settings import Http
from toolgen.errors import CredentialsError, Problem, UsageError
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.credentials import Chosen, Credentials
from toolgen.identity.exchange import Exchanges
from toolgen.identity.origin import Origin


@dataclass(frozen=True)
class HttpUpstream:
    """A server over Streamable HTTP. `credential` goes with calls, `standing` with everything else."""

    url: str = field(repr=False)
    origin: Origin
    credential: Chosen
    standing: Chosen
    http: Http
    allowed: Allowed = field(repr=False)
    exchanges: Exchanges = field(repr=False)
    method: Final = "POST"

    @property
    def digest(self) -> str:
        """SHA-256 of where the server is and of the unresolved credentials and what they fill, as 64 hex digits."""
        return _digest([self.url, self.credential.digest, self.standing.digest])

    @property
    def is_caller_bound(self) -> bool:
        """Whether each call has a credential of its caller's."""
        return _is_callers(self.credential)

    def own(self) -> Headers:
        """What goes with everything but calls. Raises CredentialsMissing."""
        return self.standing.apply(None, self.origin).headers

    async def filled(self, caller: Caller | None) -> tuple[Headers, Sequence[Secret]]:
        """What goes with a call of a caller, and what of it is secret. Raises CredentialsMissing."""
        tokens = await self.exchanges.tokens(self.credential.references, caller, self.origin)
        applied = self.credential.apply(caller, self.origin, tokens=tokens)
        return applied.headers, applied.secrets

    def way(self, own: Own) -> Way:
        """A new way to it. Raises UsageError and CredentialsMissing for TLS settings that cannot be used."""
        from mcp.client.streamable_http import streamable_http_client

        client, sent = mcp_client(self.url, self.http, self.allowed, own)
        most = self.http.max_answer_bytes
        return Way(streamable_http_client(self.url, http_client=client, max_sse_event_size=most), client, sent)

    def has_answered(self, error: Exception, invocation: Invocation) -> bool:
        """Whether the server answered a call that came to nothing."""
        return invocation.is_answered and not isinstance(error, TimeoutError)


@dataclass(frozen=True)
class StdioUpstream:
    """A server that is a process of ours, spoken to over its standard input and output."""

    command: tuple[str, ...] = field(repr=False)
    env: tuple[str, ...]
    method: Final = "_OTHER"
    is_caller_bound: Final = False

    @property
    def digest(self) -> str:
        """SHA-256 of the command and the names of its variables, as 64 hex digits."""
        return _digest([self.command, self.env])

    def own(self) -> Headers:
        """Nothing goes with a message."""
        return ()

    async def filled(self, _: Caller | None) -> tuple[Headers, Sequence[Secret]]:
        """Nothing goes with a call."""
        return (), ()

    def way(self, _: Own) -> Way:
        """A new process."""
        from mcp import StdioServerParameters
        from mcp.client.stdio import get_default_environment, stdio_client

        given = {name: os.environ[name] for name in self.env if name in os.environ}
        command, *arguments = self.command
        started = StdioServerParameters(command=command, args=arguments, env={**get_default_environment(), **given})
        return Way(stdio_client(started))

    def has_answered(self, error: Exception, _: Invocation) -> bool:
        """Whether the server answered a call that came to nothing."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
        from pydantic import ValidationError

        if isinstance(error, MCPError):
            return error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT)
        return isinstance(error, ValidationError)


Upstream = HttpUpstream | StdioUpstream


@dataclass(frozen=True)
class Bound:
    """What an operator binds to a server: credentials as texts with references, and the header they are for."""

    name: str
    credential: str | None
    header: str
    discovery: str | None
    caller_references: bool

    def chosen(self, what: Literal["credential", "discovery"], origin: Origin) -> Chosen:
        """One of them, checked as one of an API's would be. Raises CredentialsError."""
        text = self.credential if what == "credential" else self.discovery
        bearer = {"type": "http", "scheme": "bearer"}
        own = {"type": "apiKey", "in": "header", "name": self.header}
        loaded = Credentials.load(
            {} if text is None else {what: text},
            api=self.name,
            schemes={what: bearer if self.header.lower() == "authorization" else own},
            origin=origin,
            caller_references=self.caller_references,
            where=self.name,
        )
        return loaded.choose([[what]] if text is not None else [], origin)


def http_upstream(
    url: str, bound: Bound, http: Http, allow_private: Sequence[str], exchanges: Exchanges
) -> HttpUpstream:
    """A server over HTTP. Raises UsageError and CredentialsError for settings that are not valid."""
    name = bound.name
    origin = Origin.of(url)
    if origin is None or "#" in url or "${" in url or not url.isprintable() or " " in url:
        raise UsageError(f"{name}: the url of an MCP server is an http:// or https:// URL with a host")
    credential, standing = bound.chosen("credential", origin), bound.chosen("discovery", origin)
    if _is_callers(standing):
        said = "lists of tools are shared by all callers"
        problem = Problem(said, f"{name}.discovery", hint="write ${env:NAME} or ${file:PATH}")
        raise CredentialsError(f"the credentials of {name} cannot be used", [problem])
    if not _is_callers(credential):
        if bound.discovery is not None:
            said = "discovery is for where the credential is the caller's; any other goes with every message"
            raise UsageError(f"{name}: {said}")
        standing = credential
    allowed = Allowed([origin.host], allow_private, port=origin.port)
    return HttpUpstream(url, origin, credential, standing, http, allowed, exchanges)


def stdio_upstream(
    name: str, url: str | None, command: Sequence[str], env: Sequence[str], credential: str | None
) -> StdioUpstream:
    """A server that is a process. Raises UsageError."""
    if url is not None or not command:
        raise UsageError(f"{name}: an MCP server has either a url or a command; env is for a command")
    if credential is not None:
        raise UsageError(f"{name}: a process is given no credentials; name the variables it needs in env")
    if isinstance(command, str):
        raise UsageError(f"{name}: a command is a list of texts: the program, then its arguments")
    if isinstance(env, str) or any("=" in one for one in env):
        raise UsageError(f"{name}: env is a list of names of variables; their values stand in the environment")
    return StdioUpstream(tuple(command), tuple(env))


def _is_callers(chosen: Chosen) -> bool:
    return any(one.kind == "caller" for one in chosen.references)


def _digest(what: list[Any]) -> str:
    return hashlib.sha256(json.dumps(what).encode("utf-8", "surrogatepass")).hexdigest()
