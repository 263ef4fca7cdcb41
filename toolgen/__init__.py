"""toolgen: tools a language model can call, from any OpenAPI document.

The public names live in the modules that define them and are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgen.errors import ToolgenError
    from toolgen.policy.config import ApprovalConfig
    from toolgen.policy.coverage import coverage
    from toolgen.policy.gate import Gate
    from toolgen.policy.outcomes import ToolCall
    from toolgen.policy.patterns import Pattern
    from toolgen.tools.files import load_toolset
    from toolgen.tools.generate import generate
    from toolgen.tools.model import Tool, Toolset

__version__ = "0.1.0"

_WHERE = {
    "ApprovalConfig": "toolgen.policy.config",
    "Gate": "toolgen.policy.gate",
    "Pattern": "toolgen.policy.patterns",
    "Tool": "toolgen.tools.model",
    "ToolCall": "toolgen.policy.outcomes",
    "ToolgenError": "toolgen.errors",
    "Toolset": "toolgen.tools.model",
    "coverage": "toolgen.policy.coverage",
    "generate": "toolgen.tools.generate",
    "load_toolset": "toolgen.tools.files",
}

__all__ = [
    "ApprovalConfig",
    "Gate",
    "Pattern",
    "Tool",
    "ToolCall",
    "ToolgenError",
    "Toolset",
    "__version__",
    "coverage",
    "generate",
    "load_toolset",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
