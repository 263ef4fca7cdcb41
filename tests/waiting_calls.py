"""Small runtimes whose calls wait: functions that note what ran, a clock that is moved, a requester and a decider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolgen import ApprovalConfig, Caller, Runtime, ToolCall, functions
from toolgen.approvals.model import Decider, Decision, Pause
from toolgen.approvals.states import CallState

ADA = Caller("ada")
BOB = Decider("bob")
YES = Decision("approved")
NO = Decision("rejected", note="not today")


class Log(list[str]):
    """What ran."""

    def note(self, text: str = "x") -> str:
        self.append(text)
        return text

    def drop(self, text: str = "x") -> str:
        self.append(text)
        return text


def config(**mapping: Any) -> ApprovalConfig:
    return ApprovalConfig.parse(mapping)


def runtime(log: Log, given: ApprovalConfig | None = None, **options: Any) -> Runtime:
    return Runtime(functions({"note": log.note}), given or config(), **options)


async def paused(runtime: Runtime, *texts: str, **options: Any) -> Pause:
    """A pause of one call for each text."""
    calls = [ToolCall(f"c{n}", "note", {"text": text}) for n, text in enumerate(texts or ("x",))]
    found = (await runtime.submit(calls, caller=ADA, **options)).pause
    assert found is not None
    return found


def states(runtime: Runtime, pause: Pause) -> list[CallState]:
    return [call.state for call in runtime.store.pause(pause.id, pause.tenant).calls]


def kinds(runtime: Runtime) -> list[str]:
    """The kinds of the audit log's entries, in order."""
    from toolgen.approvals import audit

    with runtime.store.database.read() as connection:
        return [entry.kind for entry in audit.entries(connection)]


async def until(true: Callable[[], Awaitable[bool]] | Callable[[], bool]) -> None:
    """Give way until something holds; the test's own time limit ends it otherwise."""
    import asyncio
    import inspect

    while True:
        found = true()
        if await found if inspect.isawaitable(found) else found:
            return
        await asyncio.sleep(0.005)
