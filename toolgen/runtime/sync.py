"""The runtime for plain code: the same calls, run in an event loop of their own."""

from __future__ import annotations

import weakref
from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from toolgen.dispatch.portal import Portal
from toolgen.identity.caller import DEFAULT_TENANT, Caller, current_caller

if TYPE_CHECKING:
    from toolgen.approvals.model import Decider, Decision, Pause
    from toolgen.policy.outcomes import ToolCall
    from toolgen.result import ToolResult
    from toolgen.runtime.core import Runtime
    from toolgen.runtime.submit import Submission
    from toolgen.tools.model import Toolset

T = TypeVar("T")


class Sync:
    """`runtime.sync`: every method of the runtime that is async, for code that is not.

    `with runtime.sync:` also runs what a runtime does in the background, and closes at the end.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._portal = Portal()
        self._closing = weakref.finalize(self, self._portal.close)

    def __enter__(self) -> Sync:
        self._portal.run(self._runtime.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._portal.run(self._runtime.__aexit__())
        finally:
            self._portal.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what is async in the thread that calls of plain code run in."""
        return self._portal.run(work)

    def submit(
        self,
        calls: Iterable[ToolCall],
        *,
        caller: Caller | None = None,
        thread: str | None = None,
        turn: str | None = None,
        state: bytes | None = None,
    ) -> Submission:
        """`Runtime.submit`."""
        caller = caller if caller is not None else current_caller()
        return self._portal.run(self._runtime.submit(calls, caller=caller, thread=thread, turn=turn, state=state))

    def decide(self, pause_id: str, decision: Decision, *, decider: Decider) -> Pause:
        """`Runtime.decide`."""
        return self._portal.run(self._runtime.decide(pause_id, decision, decider=decider))

    def amended(
        self, pause_id: str, call_id: str, arguments: Mapping[str, Any], *, tenant: str = DEFAULT_TENANT
    ) -> Any:
        """`Runtime.amended`."""
        return self._portal.run(self._runtime.amended(pause_id, call_id, arguments, tenant=tenant))

    def resume(
        self, pause_id: str, *, caller: Caller | None = None, tenant: str | None = None
    ) -> Mapping[str, ToolResult]:
        """`Runtime.resume`."""
        caller = caller if caller is not None else current_caller()
        return self._portal.run(self._runtime.resume(pause_id, caller=caller, tenant=tenant))

    def wait(
        self, pause_id: str, *, caller: Caller | None = None, timeout: float | None = None
    ) -> Mapping[str, ToolResult]:
        """`Runtime.wait`."""
        caller = caller if caller is not None else current_caller()
        return self._portal.run(self._runtime.wait(pause_id, caller=caller, timeout=timeout))

    def cancel(self, pause_id: str, *, actor: str, tenant: str = DEFAULT_TENANT, reason: str = "") -> Pause:
        """`Runtime.cancel`."""
        return self._portal.run(self._runtime.cancel(pause_id, actor=actor, tenant=tenant, reason=reason))

    def extend(self, pause_id: str, until: datetime | None, *, actor: str, tenant: str = DEFAULT_TENANT) -> Pause:
        """`Runtime.extend`."""
        return self._portal.run(self._runtime.extend(pause_id, until, actor=actor, tenant=tenant))

    def reload(self, toolset: Toolset) -> list[str]:
        """`Runtime.reload`."""
        return self._portal.run(self._runtime.reload(toolset))

    def sweep(self) -> int:
        """`Runtime.sweep`."""
        return self._portal.run(self._runtime.sweep())

    def aclose(self) -> None:
        """`Runtime.aclose`, and the end of the thread that calls run in; the next call starts a new one."""
        try:
            self._portal.run(self._runtime.aclose())
        finally:
            self._portal.close()

    close = aclose
