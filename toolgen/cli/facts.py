"""What a person wants to know of a tool at a glance."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from toolgen.cli.output import Cell
from toolgen.tools.model import Server, Tool, Toolset

_PORTS = {"http": 80, "https": 443}


def endpoint(tool: Tool) -> str:
    """`GET /pets`."""
    return f"{tool.endpoint.method.upper()} {tool.endpoint.path}"


def url_of(server: str | Server | None) -> str:
    """A server's URL, its variables as they are written."""
    return "" if server is None else server if isinstance(server, str) else server.url


def goes_elsewhere(tool: Tool, toolset: Toolset) -> bool:
    """Whether the tool's own server has another origin than the toolset's."""
    return tool.request.server is not None and _origin(tool.request.server) != _origin(toolset.server)


def _origin(server: str | Server | None) -> tuple[str, str, int | None]:
    url = url_of(server)
    for name, variable in server.variables.items() if isinstance(server, Server) else ():
        url = url.replace(f"{{{name}}}", variable.default or "")
    try:
        parts = urlsplit(url)
        return parts.scheme.lower(), parts.hostname or "", parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError:
        return "", url, None


def flags(tool: Tool, toolset: Toolset) -> Cell:
    """`write, destructive` and the like, with its style."""
    words = ["read" if tool.endpoint.is_read else "write"]
    words += ["destructive"] if tool.is_destructive else []
    words += ["deprecated"] if tool.deprecated else []
    words += ["other origin"] if goes_elsewhere(tool, toolset) else []
    style = "red" if tool.is_destructive or "other origin" in words else "green" if tool.endpoint.is_read else "yellow"
    return ", ".join(words), style


def server_facts(urls: Iterable[str]) -> list[tuple[str, str, str]]:
    """Lines that list servers, for `Page.facts`."""
    return [("" if index else "server", url, "") for index, url in enumerate(urls)]


def title(toolset: Toolset) -> str:
    """The document's title and version."""
    return " ".join(filter(None, (toolset.document.title, toolset.document.version))) or "a document without a title"
