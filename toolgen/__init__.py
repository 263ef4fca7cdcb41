"""toolgen: tools a language model can call, from any OpenAPI document.

The public names live in the modules that define them and are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgen.approvals.model import Decider, Decision, Pause, Remember, Verdict
    from toolgen.builtin import functions
    from toolgen.dispatch.http import Dispatcher
    from toolgen.errors import ToolgenError
    from toolgen.identity.caller import Caller
    from toolgen.policy.config import ApprovalConfig
    from toolgen.policy.coverage import coverage
    from toolgen.policy.gate import Gate
    from toolgen.policy.outcomes import ToolCall
    from toolgen.policy.patterns import Pattern
    from toolgen.request.resolve import resolve
    from toolgen.result import ToolResult
    from toolgen.runtime.core import Runtime
    from toolgen.tools.files import load_toolset
    from toolgen.tools.generate import generate
    from toolgen.tools.model import Tool, Toolset

__version__ = "0.1.0"

_WHERE = {
    "ApprovalConfig": "toolgen.policy.config",
    "Caller": "toolgen.identity.caller",
    "Decider": "toolgen.approvals.model",
    "Decision": "toolgen.approvals.model",
    "Dispatcher": "toolgen.dispatch.http",
    "Gate": "toolgen.policy.gate",
    "Pattern": "toolgen.policy.patterns",
    "Pause": "toolgen.approvals.model",
    "Remember": "toolgen.approvals.model",
    "Runtime": "toolgen.runtime.core",
    "Tool": "toolgen.tools.model",
    "ToolCall": "toolgen.policy.outcomes",
    "ToolResult": "toolgen.result",
    "ToolgenError": "toolgen.errors",
    "Toolset": "toolgen.tools.model",
    "Verdict": "toolgen.approvals.model",
    "coverage": "toolgen.policy.coverage",
    "functions": "toolgen.builtin",
    "generate": "toolgen.tools.generate",
    "load_toolset": "toolgen.tools.files",
    "resolve": "toolgen.request.resolve",
}

__all__ = [
    "ApprovalConfig",
    "Caller",
    "Decider",
    "Decision",
    "Dispatcher",
    "Gate",
    "Pattern",
    "Pause",
    "Remember",
    "Runtime",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolgenError",
    "Toolset",
    "Verdict",
    "__version__",
    "coverage",
    "functions",
    "generate",
    "load_toolset",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
