"""The runtime: what a model asks for is validated, resolved and classified; then it runs, or it does not.

The only caller of a source. A call that waits for a person, or is denied, is a result that says so and is
never sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from toolgen.dispatch.http import Dispatcher, not_valid
from toolgen.errors import ArgumentsError, DispatchRefused, Problem, RequestError, UsageError
from toolgen.identity.caller import Caller, bind_caller, current_caller
from toolgen.policy.address import LONGEST_NAME
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import ClassifiedCall, Outcome, ToolCall
from toolgen.result import Refused, Sent, ToolResult
from toolgen.tools.model import Tool, Toolset

if TYPE_CHECKING:
    from toolgen.request.model import ResolvedRequest


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


class ApiSource:
    """One toolset of a dispatcher: its requests are resolved first, so that the one approved is the one sent."""

    def __init__(self, dispatcher: Dispatcher, toolset: Toolset) -> None:
        self.toolset = toolset
        self._dispatcher = dispatcher

    @property
    def name(self) -> str:
        """The API's name."""
        return self.toolset.api

    def tools(self) -> Sequence[Tool]:
        """The toolset's tools."""
        return self.toolset.tools

    def resolve(self, name: str, arguments: Mapping[str, Any], caller: Caller | None) -> ResolvedRequest:
        """The request a call makes, unsent; raises like `Dispatcher.resolve`."""
        return self._dispatcher.resolve(self.toolset.tool(name), arguments, caller=caller)

    async def send(
        self, request: ResolvedRequest, caller: Caller | None, idempotency_key: str | None = None
    ) -> ToolResult:
        """Send a request that `resolve` made; raises like `Dispatcher.send`."""
        return await self._dispatcher.send(request, caller=caller, idempotency_key=idempotency_key)


class Runtime:
    """Runs a model's calls by an approval config.

    `sources` are dispatchers (each of their toolsets is a source), functions and other sources. `config`
    is one config, or several in layers; None lets reads run and writes wait.

    Raises RegistrationError for sources whose tools could be taken for one another's.
    """

    def __init__(
        self,
        sources: Iterable[Dispatcher | Source] | Dispatcher | Source,
        config: ApprovalConfig | Sequence[ApprovalConfig | None] | None = None,
    ) -> None:
        listed = list(_sources(sources))
        self.gate = Gate(config, [one.toolset if isinstance(one, ApiSource) else one for one in listed])
        self._sources = {one.name: one for one in listed}

    async def submit(self, calls: Iterable[ToolCall], *, caller: Caller | None = None) -> list[ToolResult]:
        """The result of each call, in order. Calls that are allowed run together; the others are not sent.

        The caller is the one given, else the one bound to this turn.
        """
        caller = caller if caller is not None else current_caller()
        listed = list(calls)
        found = self.gate.classify(listed).calls
        return list(await asyncio.gather(*(self._result(one, caller) for one in found)))

    async def _result(self, classified: ClassifiedCall, caller: Caller | None) -> ToolResult:
        """What becomes of one call; whatever goes wrong with it does not cost the others."""
        began = False
        try:
            ready = self._ready(classified, caller)
            if isinstance(ready, ToolResult):
                return ready
            began = True
            with bind_caller(caller):
                return await ready()
        except ArgumentsError as error:
            return not_valid(error)
        except (RequestError, DispatchRefused, UsageError) as error:
            return ToolResult(False, Sent.not_sent, message=str(error), refused=Refused.error)
        except Exception as error:  # noqa: BLE001 - of a fault nothing is told that could hold a secret
            told = "it may have been carried out" if began else "nothing was sent"
            sent = Sent.unknown if began else Sent.not_sent
            message = f"{_name(classified)} failed unexpectedly ({type(error).__name__}): {told}"
            return ToolResult(False, sent, message=message, refused=Refused.error)

    def _ready(
        self, classified: ClassifiedCall, caller: Caller | None
    ) -> ToolResult | Callable[[], Awaitable[ToolResult]]:
        """What runs the call, or why it does not run: denied, not valid, or waiting, in this order."""
        call, result = classified.call, classified.result
        if result.outcome is Outcome.denied or result.tool is None:
            return _refused(classified, Refused.denied, "is denied")
        name, arguments = result.tool.name, {} if call.arguments is None else call.arguments
        source = self._sources[result.tool.source]
        run: Callable[[], Awaitable[ToolResult]]
        if isinstance(source, ApiSource):
            run = partial(source.send, source.resolve(name, arguments, caller), caller)
        else:
            _check(source, name, arguments)
            run = partial(source.call, name, arguments, caller)
        return run if result.outcome is Outcome.allowed else _refused(classified, Refused.gated, "waits for a person")


def _sources(given: Iterable[Dispatcher | Source] | Dispatcher | Source) -> Iterable[ApiSource | Source]:
    for one in [given] if isinstance(given, Dispatcher | Source) else given:
        if isinstance(one, Dispatcher):
            yield from (ApiSource(one, each.toolset) for each in one.upstreams.values())
        else:
            yield one


def _check(source: Source, name: str, arguments: Any) -> None:
    if not isinstance(arguments, Mapping):
        raise ArgumentsError(f"the arguments of {name} are an object", [Problem("expected an object", "/")])
    check = getattr(source, "check", None)
    if check is not None:
        check(name, arguments)


def _refused(classified: ClassifiedCall, refused: Refused, said: str) -> ToolResult:
    detail = classified.result.detail or f"by {classified.reason!r}"
    message = f"{_name(classified)} {said}: {detail}; nothing was sent"
    return ToolResult(False, Sent.not_sent, message=message, refused=refused)


def _name(classified: ClassifiedCall) -> str:
    return str(classified.call.name)[:LONGEST_NAME]
