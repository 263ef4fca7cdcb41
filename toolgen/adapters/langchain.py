"""Tools for LangChain and LangGraph whose every call goes through the gate.

    tools = as_langchain_tools(runtime)
    agent = create_agent(model, tools, checkpointer=saver)
    agent.invoke({"messages": [...]}, {"configurable": {"thread_id": "1", "toolgen_caller": ada}})

A call that waits becomes an `interrupt()` with the pause as JSON where a graph has a checkpointer; it goes on when
the graph is resumed after somebody decided, wherever that was: `runtime.decide`, the command line, another process.
Elsewhere, and to plain arguments in place of a ToolCall, the tool answers that it waits.

What a graph is resumed with is a sign to look again and never a decision: anybody who reaches the graph can resume it,
and langgraph gives an earlier value again in every later run of the tool, whoever started that.

Who asks is the Caller under `toolgen_caller` in the config's `configurable`, else `caller` of the graph's runtime
context, else the bound one (`bind_caller`); nothing a model writes is ever read as one.

A node of your own that calls a tool and then `interrupt()`s itself gives the call a `@task` or a node: in one body
langgraph counts the interrupts of both as one row. A sub-agent compiled with `checkpointer=False` keeps nothing: each
time its call is another one, which is asked about again and never sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from toolgen.adapters.answers import Answer, answer, pending, review
from toolgen.adapters.offered import Offer, OfferedTool
from toolgen.errors import MissingExtra, ToolgenError, UsageError
from toolgen.identity.caller import Caller, current_caller

try:
    from langchain_core.messages import ToolMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
except ImportError:
    raise MissingExtra("LangChain's tools need langchain-core: pip install 'toolgen[langchain]'") from None

if TYPE_CHECKING:
    from toolgen.approvals.model import Pause
    from toolgen.runtime.core import Runtime

CALLER: Final = "toolgen_caller"
# What langgraph puts into the config of a task (langgraph 1.x): there is no public name for it.
_CHECKPOINTER: Final = "__pregel_checkpointer"
_TAKING: Final = Lock()  # calls of one node run beside each other, and langgraph counts the interrupts of them all


@dataclass
class _Step:
    """One thing that is asked of the runtime: in plain code and in async code alike."""

    method: str
    given: tuple[Any, ...]
    named: dict[str, Any]
    found: Any = None
    fault: ToolgenError | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what is raised inside for `result`."""
        try:
            yield
        except ToolgenError as error:
            self.fault = error

    def result(self) -> Any:
        """What was found, or what was raised."""
        if self.fault is not None:
            raise self.fault
        return self.found


def as_langchain_tools(
    runtime: Runtime, *, names: Iterable[str] | None = None, review_url: str | None = None
) -> list[BaseTool]:
    """The tools of a runtime, or those of these names, for sync and async agents.

    Their `args_schema` is the tool's own JSON Schema. Models that are given the tools themselves see what
    `bind_tools` makes of it (definitions written out, recursion dropped); bind `as_openai_tools(runtime)` or
    `as_anthropic_tools(runtime)` instead for the schemas as they are: the names are the same. Raises UsageError for
    a name that no tool has.
    """
    offer = Offer(runtime)
    wanted = list(offer.tools) if names is None else list(names)
    if unknown := [name for name in wanted if name not in offer.tools]:
        raise UsageError(f"there is no tool {', '.join(map(repr, unknown))}")
    return [GatedTool.of(offer, offer.tools[name], review_url) for name in wanted]


class GatedTool(BaseTool):
    """One tool. It has nothing to send with: to run it is to submit a call to its runtime."""

    offer: Any = None
    review_url: str | None = None

    @classmethod
    def of(cls, offer: Offer, tool: OfferedTool, review_url: str | None) -> GatedTool:
        """The tool of what a runtime offers."""
        return cls(
            name=tool.name,
            description=tool.description,
            args_schema=tool.input_schema(),
            offer=offer,
            review_url=review_url,
        )

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[str, ...], dict[str, Any]]:
        # Whole, as one value: spread out, an argument called `config` or `self` would be taken for something else.
        return (), {"asked": tool_input, "call_id": tool_call_id}

    def _run(self, *, asked: Any, call_id: str | None, config: RunnableConfig) -> Any:
        for step in self._steps(asked, call_id, config):
            if not isinstance(step, _Step):
                return step
            with step.kept():
                step.found = getattr(self.offer.runtime.sync, step.method)(*step.given, **step.named)
        return None

    async def _arun(self, *, asked: Any, call_id: str | None, config: RunnableConfig) -> Any:
        for step in self._steps(asked, call_id, config):
            if not isinstance(step, _Step):
                return step
            with step.kept():
                step.found = await getattr(self.offer.runtime, step.method)(*step.given, **step.named)
        return None

    def _steps(self, asked: Any, call_id: str | None, config: RunnableConfig) -> Iterator[Any]:
        """What is asked of the runtime, one after another, and at last the tool's answer.

        After an interrupt all of it runs again: the runtime knows the call by thread, turn and id.
        """
        place: Mapping[str, Any] = config.get("configurable") or {}
        caller = _caller(place)
        thread = place.get("thread_id")
        # The task itself: its id is made from those of all it is in, whose whole row may be too long for a turn.
        turn = str(place.get("checkpoint_ns") or "").rpartition("|")[2]
        id = call_id or f"call-{uuid4().hex}"
        call = self.offer.tool_call(self.name, asked, id)
        named = {"caller": caller, "thread": None if thread is None else str(thread), "turn": turn}
        yield (submitted := _Step("submit", ([call],), named))
        done = submitted.result()
        waits = id not in done.results and done.pause.waiting
        # A call without an id of its own would be another one when the graph goes on.
        if call_id and place.get(_CHECKPOINTER) and (waits or id in done.recognised):
            _interrupted(done.pause if waits else None, self.review_url)
        if id in done.results:
            yield self._told(answer(done.results[id]), call_id)
        if waits:
            yield self._told(pending(done.pause, self.review_url), call_id)
        # A PauseConflict goes to the host: somebody else is running it, and the graph is resumed when they are done.
        yield (resumed := _Step("resume", (done.pause.id,), {"caller": caller}))
        yield self._told(answer(resumed.result()[id]), call_id)

    def _told(self, found: Answer, call_id: str | None) -> Any:
        if call_id is None:
            return found.text
        return ToolMessage(
            content=found.text,
            artifact=dict(found.data),
            tool_call_id=call_id,
            name=self.name,
            status="error" if found.is_error else "success",
        )


def _interrupted(waiting: Pause | None, review_url: str | None) -> None:
    """Stop the graph here if the call waits.

    All that the graph was resumed with is taken, and not looked at: what is left would answer the next `interrupt()`
    of the host's own.
    """
    from langgraph.errors import GraphInterrupt
    from langgraph.types import interrupt

    asked = waiting and {"type": "approval", **waiting.to_dict(), "reviewUrl": review(review_url, waiting.id)}
    try:
        with _TAKING:
            while True:
                interrupt(asked)
    except GraphInterrupt:
        if waiting:
            raise


def _caller(place: Mapping[str, Any]) -> Caller | None:
    """Who the host says asks. Raises UsageError for something else under the name: data from a client is no Caller."""
    found = place.get(CALLER)
    if found is None:
        context = getattr(place.get("__pregel_runtime"), "context", None)
        found = context.get("caller") if isinstance(context, Mapping) else getattr(context, "caller", None)
    if found is not None and not isinstance(found, Caller):
        raise UsageError(f"{CALLER} (or caller of the context) is a toolgen.Caller, and nothing else")
    return found or current_caller()
