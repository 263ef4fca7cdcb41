"""One tool: what a model sees of it, and the request it makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from toolgen.cli.facts import flags, goes_elsewhere, url_of
from toolgen.cli.output import Cell, Page, to_json
from toolgen.tools.model import Body, Location, Server, Tool, Toolset
from toolgen.tools.template import argument_of

_HIDDEN = "a text of the file, not shown"  # a constant a person put into a header may be a credential
_MOST_SIBLINGS = 20


def to_dict(toolset: Toolset) -> dict[str, Any]:
    """JSON-ready data of the only tool of a toolset."""
    tool = toolset.tools[0]
    names = {name for alternative in tool.request.security for name in alternative}
    return {
        "api": toolset.api,
        "name": tool.name,
        "description": tool.description,
        "group": tool.group,
        "annotations": tool.annotations.model_dump(by_alias=True),
        "read": tool.endpoint.is_read,
        "destructive": tool.is_destructive,
        "deprecated": tool.deprecated,
        "inputSchema": tool.input_schema(),
        "request": {
            "method": _method(tool),
            "server": url_of(tool.request.server or toolset.server) or None,
            "otherOrigin": goes_elsewhere(tool, toolset),
            "path": tool.request.template or tool.endpoint.path,
            "values": [
                {"in": where, "name": name, "argument": argument, **({} if argument else {"value": value})}
                for where, name, value, argument in _values(tool)
            ],
            "mediaType": tool.request.body.media_type if tool.request.body else None,
            "alternatives": list(tool.request.body.alternatives) if tool.request.body else [],
            "security": [list(alternative) for alternative in tool.request.security],
            "securitySchemes": {name: toolset.security_schemes.get(name) for name in sorted(names)},
            "refusedPaths": list(tool.request.siblings),
        },
        "response": tool.response.model_dump(by_alias=True),
        "pointer": tool.pointer,
    }


def print_text(toolset: Toolset, stream: TextIO) -> None:
    """The only tool of a toolset, for people."""
    tool, page = toolset.tools[0], Page(stream)
    words, _ = flags(tool, toolset)
    page.line(tool.name, style="bold")
    page.line(f"{toolset.api}, {tool.group}: {words}", style="dim")
    page.line()
    page.paragraphs(tool.description)
    page.line()
    _request(page, tool, toolset)
    page.line("Input schema", style="bold")
    page.verbatim(to_json(tool.input_schema()))
    page.print()


def _request(page: Page, tool: Tool, toolset: Toolset) -> None:
    server = url_of(tool.request.server or toolset.server)
    path = tool.request.template or tool.endpoint.path
    page.line("Request", style="bold")
    page.line(f"{_method(tool)} {server.rstrip('/') if path.startswith('/') else server}{path}", indent=2)
    page.line()
    rows = [_row(tool, *value) for value in _values(tool)]
    if rows:
        page.table(("in", "name", "value"), rows, indent=2)
        page.line()
    facts = [*_variables(tool.request.server or toolset.server), ("security", _security(tool, toolset), "")]
    if tool.request.body is not None:
        facts.insert(0, ("media type", _media(tool.request.body), ""))
    if goes_elsewhere(tool, toolset):
        facts.append(("server", f"not that of the toolset, {url_of(toolset.server) or 'which has none'}", "red"))
    shown = tool.request.siblings[:_MOST_SIBLINGS]
    more = len(tool.request.siblings) - len(shown)
    if shown:
        facts.append(("refused", "values that lead to " + ", ".join(shown) + (f" and {more} more" * (more > 0)), ""))
    facts.append(("answers", _answers(tool), ""))
    page.facts(facts, indent=2)
    page.line()


def _method(tool: Tool) -> str:
    return tool.request.method or tool.endpoint.method.upper()


def _values(tool: Tool) -> Iterator[tuple[Location, str, Any, str | None]]:
    """(location, wire name, what is sent, the argument it is) of every value; constants in headers are hidden."""
    for where, name, value in tool.request.leaves():
        argument = argument_of(value)
        hidden = argument is None and where in ("header", "cookie")
        yield where, name, _HIDDEN if hidden else value, argument


def _row(tool: Tool, where: str, name: str, value: Any, argument: str | None) -> list[Cell]:
    if argument is None:
        return [
            (where, ""),
            (name, ""),
            (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), ""),
        ]
    required = argument in tool.parameters.get("required", ())
    return [(where, ""), (name, ""), (f"argument {argument}" + ", required" * required, "")]


def _media(body: Body) -> str:
    also = f" (the document also has {', '.join(body.alternatives)})" if body.alternatives else ""
    return body.media_type + (", from base64" if body.binary else "") + also


def _variables(server: str | Server | None) -> list[tuple[str, str, str]]:
    if not isinstance(server, Server):
        return []
    found = []
    for name, variable in server.variables.items():
        choice = f" (one of {', '.join(variable.enum)})" if variable.enum else ""
        value = "must be given" if variable.default is None else f"is {variable.default}"
        found.append(("variable", f"{{{name}}} {value}{choice}", ""))
    return found


def _security(tool: Tool, toolset: Toolset) -> str:
    if not tool.request.security:
        return "none"
    schemes = toolset.security_schemes
    return " or ".join(
        " and ".join(f"{name} ({_scheme(schemes.get(name, {}))})" for name in alternative) or "no credential"
        for alternative in tool.request.security
    )


def _scheme(scheme: dict[str, Any]) -> str:
    kind = str(scheme.get("type", "not declared"))
    if kind == "apiKey":
        return f"{scheme.get('in', '?')} {scheme.get('name', '?')}"
    return f"{kind} {scheme['scheme']}" if "scheme" in scheme else kind


def _answers(tool: Tool) -> str:
    media = ", ".join(tool.response.media_types) or "no content"
    schema = tool.response.schema_
    name = schema.get("$ref", "").rpartition("/")[2] if isinstance(schema, dict) else ""
    headers = f"; headers {', '.join(tool.response.headers)}" if tool.response.headers else ""
    return media + (f": {name}" if name else "") + headers
