"""What an MCP client can read besides calling tools: each API's toolset, and its documentation as a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from toolgen.identity.redact import Redactor
from toolgen.runtime.sources import ApiSource
from toolgen.tools.export import export
from toolgen.tools.files.form import to_dict

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime
    from toolgen.tools.model import Toolset

LARGEST: Final = 2_000_000  # characters of one resource
_KINDS: Final = {"docs": "text/markdown", "toolset": "application/json"}


def listed_resources(runtime: Runtime) -> list[dict[str, Any]]:
    """The entries of `resources/list`: two for each API."""
    found = []
    for api in _toolsets(runtime):
        told = {"docs": f"What the tools of {api} do, as a page.", "toolset": f"The toolset of {api}."}
        found += [
            {"uri": f"toolgen://{api}/{kind}", "name": f"{api} {kind}", "description": told[kind], "mimeType": type_}
            for kind, type_ in _KINDS.items()
        ]
    return found


def read_resource(runtime: Runtime, uri: str) -> dict[str, Any] | None:
    """The content of a resource, cut where it is larger than 2,000,000 characters; None where there is none."""
    api, _, kind = uri.removeprefix("toolgen://").partition("/")
    toolset = _toolsets(runtime).get(api) if uri.startswith("toolgen://") else None
    if toolset is None or kind not in _KINDS:
        return None
    text: str = export(toolset, "markdown").data if kind == "docs" else _written(toolset)
    cut = f"{text[:LARGEST]}\n(cut: {len(text):,} characters in all)" if len(text) > LARGEST else text
    return {"uri": uri, "mimeType": _KINDS[kind], "text": cut}


def _written(toolset: Toolset) -> str:
    """The toolset's file as JSON; secrets that somebody wrote into a request by hand are in no client's copy."""
    data, hidden = to_dict(toolset), Redactor()
    tools = [{**tool, "request": hidden.value(tool["request"])} for tool in data["tools"]]
    return json.dumps({**data, "tools": tools}, ensure_ascii=False, indent=2)


def _toolsets(runtime: Runtime) -> dict[str, Toolset]:
    return {source.name: source.toolset for source in runtime.known if isinstance(source, ApiSource)}
