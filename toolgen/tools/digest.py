"""The digest of a tool: what an approval of one of its calls is bound to, beside the call itself.

It covers what decides where a request goes, what it may hold and whose credentials it takes, and no prose:
a document whose descriptions changed gives the same digests.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from toolgen.openapi.schema.keywords import LIST, MAP, ONE

if TYPE_CHECKING:
    from toolgen.tools.model import Tool

_PROSE: Final = frozenset({"description", "title", "examples", "example", "$comment", "deprecated", "summary"})


def tool_digest(tool: Tool) -> str:
    """`sha256:` and 64 hex digits over everything but prose; the order of keys does not count.

    Left out are what only people and models read (description, title, group, annotations, deprecation), where
    in the document the tool comes from, and of the response all but its media types, which are asked for.
    """
    covered = {
        "version": 1,
        "api": tool.home.api,
        "name": tool.name,
        "endpoint": tool.endpoint.model_dump(),
        "destructive": tool.destructive,
        "request": tool.request.model_dump(),
        "server": _server(tool.home.server),
        "securitySchemes": _security_schemes(tool),
        "parameters": _bare(tool.input_schema()),
        "accept": tool.response.media_types,
    }
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def schema_digest(source: str, name: str, schema: Any) -> str:
    """The same for a tool without an endpoint: source, name and input schema."""
    covered = {"version": 1, "source": source, "name": name, "parameters": _bare(schema)}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _server(server: Any) -> Any:
    return server if server is None or isinstance(server, str) else server.model_dump()


def _security_schemes(tool: Tool) -> dict[str, Any]:
    """The definitions of the schemes that some alternative of the tool uses; None where there is none."""
    used = {name for alternative in tool.request.security for name in alternative}
    found = {name: tool.home.security_schemes.get(name) for name in used}
    return {name: scheme and {k: v for k, v in scheme.items() if k != "description"} for name, scheme in found.items()}


def _bare(schema: Any) -> Any:
    """A schema without its prose; a property *named* `description` is none, and what stands in `enum` is data."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _PROSE:
            continue
        if key in MAP and isinstance(value, dict):
            value = {name: _bare(one) for name, one in value.items()}
        elif key in LIST and isinstance(value, list | tuple):
            value = [_bare(one) for one in value]
        found[key] = _bare(value) if key in ONE else value
    return found
