"""Tools with a server, made of one operation, and the requests that become of their calls."""

from __future__ import annotations

from typing import Any

from small_documents import parameter, tool_of

from toolgen.request.model import ResolvedRequest
from toolgen.request.resolve import resolve
from toolgen.tools.model import Leaf, Tool

SERVER = "https://api.example/v1"
KEY = b"a key of a test, 32 bytes of it."
# What a reference, or a template, looks like when a model writes it.
SMUGGLED = ("${caller:token}", "${env:HOME}", "${file:/etc/passwd}", "{{ 7*7 }}", "{% raw %}", "{caller:token}")


def tool(*parameters: dict[str, Any], path: str = "/x", method: str = "post", **more: Any) -> Tool:
    """The tool of `POST https://api.example/v1/x` with these parameters; `body` is the `content` of its body."""
    operation: dict[str, Any] = {"parameters": list(parameters)}
    if "body" in more:
        operation["requestBody"] = {"content": more.pop("body"), "required": more.pop("required", False)}
    keys = {"servers": [{"url": SERVER}], "version": "3.2.0", **more}
    return tool_of(operation, path=path, method=method, **keys)


def one(name: str, location: str = "query", schema: Any = True, **more: Any) -> dict[str, Any]:
    """A Parameter Object that takes anything."""
    return parameter(name, location, schema=schema, **more) if "content" not in more else {
        "name": name, "in": location, "required": location == "path", **more
    }  # fmt: skip


def edited(made: Tool, **request: Any) -> Tool:
    """The tool as a person edited its request: lists of leaves, each (name, value) or a mapping."""
    leaves = {
        place: tuple(Leaf(**leaf) if isinstance(leaf, dict) else Leaf(name=leaf[0], value=leaf[1]) for leaf in value)
        for place, value in request.items()
        if place in ("path", "query", "header", "cookie")
    }
    changed = made.model_copy(update={"request": made.request.model_copy(update={**request, **leaves})})
    changed.__dict__["home"] = made.home
    return changed


def sent(made: Tool, arguments: dict[str, Any] | None = None, **options: Any) -> ResolvedRequest:
    return resolve(made, arguments or {}, **options)


def query_of(request: ResolvedRequest) -> str:
    return request.url.partition("?")[2]


def path_of(request: ResolvedRequest) -> str:
    return request.url.partition("?")[0].removeprefix(SERVER)


def header(request: ResolvedRequest, name: str) -> str | None:
    found = [value for key, value in request.headers if key.lower() == name.lower()]
    assert len(found) <= 1
    return found[0] if found else None
