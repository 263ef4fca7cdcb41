"""Where tools come from and what runs them, and one call made ready to be looked at, approved and sent."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolgen.errors import ArgumentsError, Problem
from toolgen.identity.caller import Caller
from toolgen.policy.address import Source as Listed
from toolgen.policy.address import ToolList
from toolgen.request.text import NotWritable, json_text
from toolgen.result import ToolResult
from toolgen.tools.model import Toolset

if TYPE_CHECKING:
    from toolgen.dispatch.http import Dispatcher
    from toolgen.request.model import ResolvedRequest

Before = Callable[[], Awaitable[None]]


@runtime_checkable
class Source(Protocol):
    """Where tools come from and what runs them: functions of a program, an MCP server.

    `name` is what the tools answer to, `tools()` gives them with their names and input schemas. A source
    may have `check(name, arguments)`, which raises ArgumentsError for a call that no person should be asked about.
    """

    @property
    def name(self) -> str: ...

    def tools(self) -> Iterable[Any]: ...

    async def call(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ToolResult: ...


@runtime_checkable
class RemoteSource(Source, Protocol):
    """A source that has to be asked for its tools, such as an MCP server.

    `refresh` asks it where that is due, and raises nothing: what was listed last stays. `unreadable` is why there
    is no list at all, or nothing; `tools()` raises SourceUnavailable then. `listing` is what the gate looks at, another
    object for every other list. `credential` is the digest of where calls go and of the unresolved credential they are
    made with, `seconds` the longest time of one.
    """

    @property
    def unreadable(self) -> str: ...
    @property
    def listing(self) -> ToolList: ...
    @property
    def credential(self) -> str: ...
    @property
    def seconds(self) -> float: ...

    async def refresh(self) -> None: ...
    async def aclose(self) -> None: ...


class Work(Protocol):
    """One call made ready: what is shown, what is approved and what is sent are this."""

    @property
    def is_read(self) -> bool: ...
    @property
    def tool_digest(self) -> str: ...
    @property
    def credential(self) -> str:
        """The digest of the unresolved credential that is used."""

    def preview(self) -> Mapping[str, Any]:
        """What a person reads, redacted, as JSON-ready data."""

    def fingerprint(self, key: bytes) -> str: ...

    async def send(self, caller: Caller | None, before: Before | None = None, call: str | None = None) -> ToolResult:
        """Carry it out. `before` is awaited when everything is ready, right before the first byte may leave.

        `call` names the call for a declared idempotency header.
        """


@dataclass(frozen=True)
class ApiWork:
    """A call of an API's tool: the resolved request."""

    dispatcher: Dispatcher
    request: ResolvedRequest

    @property
    def is_read(self) -> bool:
        """Whether the method only reads."""
        return self.request.tool.endpoint.is_read

    @property
    def tool_digest(self) -> str:
        """The digest of the tool, prose aside."""
        return self.request.tool.digest

    @property
    def credential(self) -> str:
        """The digest of the unresolved credential; raises CredentialsMissing where none can be chosen."""
        return self.dispatcher.credential_digest(self.request)

    def preview(self) -> Mapping[str, Any]:
        """The request as a person reads it."""
        return self.request.preview().to_dict()

    def fingerprint(self, key: bytes) -> str:
        """The keyed digest of the request."""
        return self.request.fingerprint(key)

    async def send(self, caller: Caller | None, before: Before | None = None, call: str | None = None) -> ToolResult:
        """Send the request; raises like `Dispatcher.send`."""
        return await self.dispatcher.send(self.request, caller=caller, idempotency_key=call, before=before)


@dataclass(frozen=True)
class NamedWork:
    """A call of a tool without an endpoint: source, name and arguments are the request."""

    source: Source
    name: str
    arguments: Mapping[str, Any] = field(repr=False)

    @property
    def is_read(self) -> bool:
        """False: nobody knows what it does."""
        return False

    @property
    def tool_digest(self) -> str:
        """The digest of its name and input schema, prose aside."""
        from toolgen.tools.digest import schema_digest

        tool = next((one for one in self.source.tools() if getattr(one, "name", one) == self.name), None)
        schema = getattr(tool, "input_schema", None)
        return schema_digest(self.source.name, self.name, schema() if callable(schema) else schema or {})

    @property
    def credential(self) -> str:
        """That of its source; a function is given none."""
        return self.source.credential if isinstance(self.source, RemoteSource) else "none"

    def preview(self) -> Mapping[str, Any]:
        """Source, name and arguments, redacted by name and shape."""
        from toolgen.identity.redact import Redactor

        return {"source": self.source.name, "tool": self.name, "arguments": Redactor().value(dict(self.arguments))}

    def fingerprint(self, key: bytes) -> str:
        """The keyed digest of source, name and canonical arguments."""
        text = json.dumps(
            [self.source.name, self.name, self.arguments], sort_keys=True, separators=(",", ":"), allow_nan=False
        )
        return hmac.new(key, b"toolgen call 1" + text.encode(), hashlib.sha256).hexdigest()

    async def send(self, caller: Caller | None, before: Before | None = None, call: str | None = None) -> ToolResult:
        """Run it. Raises whatever it raises, and some error for what is no result in JSON data."""
        if before is not None:
            await before()
        return await asyncio.to_thread(_shown, await self.source.call(self.name, self.arguments, caller), caller)


def _shown(given: Any, caller: Caller | None) -> ToolResult:
    """What a source answered, as an API's answer is shown: JSON data, without the caller's token, cut to a length."""
    from pydantic_core import to_jsonable_python

    from toolgen.dispatch.cut import cut
    from toolgen.dispatch.settings import Http
    from toolgen.identity.redact import Redactor

    most = Http().max_result_chars
    redactor = Redactor([] if caller is None or caller.token is None else [caller.token])
    stated = to_jsonable_python(given.to_dict(), inf_nan_mode="null")
    notes: list[str] = []
    for name in stated.keys() & {"body", "message", "headers", "problems"}:
        stated[name], note = cut(redactor.known(stated[name]), most)  # half a secret would not be known as one
        notes += [f"cut to {most:,} characters: {note}"] if note else []
    found = ToolResult.from_dict(stated)
    return replace(found, message="; ".join(filter(None, [found.message, *notes])))


@dataclass(frozen=True)
class ApiSource:
    """One toolset of a dispatcher."""

    dispatcher: Dispatcher
    name: str

    @property
    def toolset(self) -> Toolset:
        """The toolset as it is now: a dispatcher can be given a new one."""
        return self.dispatcher.upstreams[self.name].toolset

    def work(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ApiWork:
        """A call made ready. Raises like `Dispatcher.resolve`."""
        return ApiWork(self.dispatcher, self.dispatcher.resolve(self.toolset.tool(name), arguments, caller=caller))


@dataclass(frozen=True)
class OtherSource:
    """Functions, an MCP server: tools that are named and called."""

    source: Source

    @property
    def name(self) -> str:
        """What the tools answer to."""
        return self.source.name

    @property
    def remote(self) -> RemoteSource | None:
        """The source, if it is elsewhere."""
        return self.source if isinstance(self.source, RemoteSource) else None

    def tools(self) -> list[Any]:
        """The tools it is known to have."""
        return [] if self.remote is not None and self.remote.unreadable else list(self.source.tools())

    def work(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> NamedWork:
        """A call made ready. Raises ArgumentsError for arguments that are no JSON object, or that its `check` refuses."""
        if not isinstance(arguments, Mapping):
            raise ArgumentsError(f"the arguments of {name} are an object", [Problem("expected an object")])
        given = dict(arguments)
        try:
            json_text(given)
        except NotWritable as fault:
            raise ArgumentsError(f"the arguments of {name} are no JSON data", [Problem(str(fault))]) from None
        check = getattr(self.source, "check", None)
        if check is not None:
            check(name, given)
        return NamedWork(self.source, name, given)


Known = ApiSource | OtherSource


def known_sources(given: Iterable[Dispatcher | Source] | Dispatcher | Source) -> list[Known]:
    """The sources of a runtime; each toolset of a dispatcher is one."""
    from toolgen.dispatch.http import Dispatcher

    found: list[Known] = []
    for one in [given] if isinstance(given, Dispatcher | Source) else given:
        if isinstance(one, Dispatcher):
            found += [ApiSource(one, api) for api in one.upstreams]
        else:
            found.append(OtherSource(one))
    return found


def listed(sources: Sequence[Known]) -> list[Listed]:
    """The sources as the gate takes them."""
    return [
        one.toolset if isinstance(one, ApiSource) else one.remote.listing if one.remote else one.source
        for one in sources
    ]


async def refreshed(sources: Sequence[Known]) -> None:
    """Ask the sources that are elsewhere for their tools, where that is due."""
    remote = [one.remote for one in sources if isinstance(one, OtherSource) and one.remote is not None]
    if remote:
        await asyncio.gather(*(one.refresh() for one in remote))


def unreadable(sources: Sequence[Known], name: str | None = None) -> str:
    """Why the tools of a source, or of any without a name, are not known; nothing where they are."""
    remote = [one.remote for one in sources if isinstance(one, OtherSource) and name in (None, one.name)]
    return "; ".join(
        f"the tools of {one.name} are not known: {one.unreadable}" for one in remote if one and one.unreadable
    )
