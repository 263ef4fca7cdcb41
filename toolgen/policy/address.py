"""What a call can be matched by: the only place that says it.

A tool has up to three kinds of address, and each is a type of its own, so that a pattern written
for one kind is never tried on another's text: a tool *named* `http.get:x` is no endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

from toolgen.errors import Problem, RegistrationError
from toolgen.openapi.endpoint import endpoint_path
from toolgen.openapi.keys import METHODS
from toolgen.tools.model import Endpoint, Tool, Toolset
from toolgen.tools.naming import API_NAME, RESERVED_SOURCES

# Names come from generation, which is stricter, and from MCP servers and functions.
LONGEST_NAME: Final = 128
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")  # RFC 9110, section 5.6.2, in lower case
# Only tools that came from a document have an endpoint; they all answer to this source.
HTTP: Final = "http"
MCP: Final = "mcp"
_KINDS: Final = tuple(sorted(RESERVED_SOURCES - {HTTP}))  # of source, for a list of names


class EndpointAddress(NamedTuple):
    """`http.post:/pets/{petId}`: what an API's tool does."""

    source: str
    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.source}.{self.method}:{self.path}"


class SourceAddress(NamedTuple):
    """`mcp:read_file`: a tool's name with where it comes from."""

    source: str
    name: str

    def __str__(self) -> str:
        return f"{self.source}:{self.name}"


class NameAddress(NamedTuple):
    """`read_file`: a tool's bare name."""

    name: str

    def __str__(self) -> str:
        return self.name


Address: TypeAlias = EndpointAddress | SourceAddress | NameAddress


@dataclass(frozen=True)
class ToolList:
    """Tools that no document describes: the functions of a program, the tools of an MCP server.

    `source` is one of `builtin`, `mcp`, `a2a`, `dynamic`, `memory`, `recall`; `server` the name of
    the MCP server, to which its tools answer as well. `destructive` names the tools that policy
    counts as destructive.
    """

    source: str
    names: Sequence[str]
    server: str | None = None
    destructive: Sequence[str] = ()


@runtime_checkable
class NamedTools(Protocol):
    """Anything with named tools: `tools()` gives names, or things with a `name` (and `destructive`, where true).

    `name` is a reserved source (`builtin`), else that of an MCP server.
    """

    @property
    def name(self) -> str:
        """What the tools answer to."""

    def tools(self) -> Iterable[Any]:
        """The tools there are."""


Source: TypeAlias = Toolset | ToolList | NamedTools
# Where tools come from, one or several: what everything takes that looks at tools.
Toolsets: TypeAlias = Iterable[Source] | Source


@dataclass(frozen=True, eq=False)
class KnownTool:
    """A tool as policy sees it: its name, the sources it answers to, its endpoint if it has one.

    `sources` is the kind of source first (`http`, `mcp`, `builtin`), then the name of the API or MCP
    server. `marked_destructive` is what a person wrote into the toolset.
    """

    name: str
    sources: tuple[str, ...]
    endpoint: Endpoint | None = None
    marked_destructive: bool = False
    tool: Tool | None = field(default=None, repr=False)

    @property
    def source(self) -> str:
        """The most telling source: the API's or server's name where there is one."""
        return self.sources[-1]

    @property
    def is_write(self) -> bool:
        """Whether it may change something: every method that does not only read, and every tool without an endpoint."""
        return self.endpoint is None or not self.endpoint.is_read

    @property
    def is_destructive(self) -> bool:
        """Whether it is destructive whatever a config says: DELETE, or marked by a person."""
        return self.marked_destructive or (self.endpoint is not None and self.endpoint.is_destructive)

    @cached_property
    def addresses(self) -> tuple[Address, ...]:
        """Everything the tool can be matched by, the most telling first."""
        found: list[Address] = []
        if self.endpoint is not None:
            found += [EndpointAddress(source, self.endpoint.method, self.endpoint.path) for source in self.sources]
        found += [SourceAddress(source, self.name) for source in self.sources]
        return (*found, NameAddress(self.name))


@dataclass(frozen=True)
class Vocabulary:
    """The words a pattern may use in front of its colon: sources, which of them have endpoints, methods.

    The reserved sources and the methods of OpenAPI are always in it; `apis` and `servers` are the
    names of APIs and MCP servers, `methods` what documents declare in `additionalOperations`.
    """

    apis: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Every source, in a fixed order."""
        return (*sorted(RESERVED_SOURCES), *sorted((self.apis | self.servers) - RESERVED_SOURCES))

    @cached_property
    def with_endpoints(self) -> tuple[str, ...]:
        """The sources whose tools have an endpoint, and which therefore take a method."""
        return (HTTP, *sorted(self.apis))

    @cached_property
    def all_methods(self) -> tuple[str, ...]:
        """Every method, in lower case."""
        return (*METHODS, *sorted(self.methods - set(METHODS)))

    @cached_property
    def qualified(self) -> tuple[str, ...]:
        """Every `source.method` that can stand in front of a path."""
        return tuple(f"{source}.{method}" for source in self.with_endpoints for method in self.all_methods)

    @cached_property
    def beginnings(self) -> frozenset[str]:
        """Everything that can stand before a colon; what has a dot is an endpoint's."""
        return frozenset((*self.sources, *self.qualified))

    @cached_property
    def text(self) -> str:
        """All of them in one text, to look for pieces in."""
        return "\n".join((*self.sources, *self.qualified))

    def with_tools(self, tools: Iterable[KnownTool]) -> Vocabulary:
        """The vocabulary with the words of these tools added."""
        tools = list(tools)
        named = {(tool.source, tool.endpoint is not None) for tool in tools if tool.source not in RESERVED_SOURCES}
        return Vocabulary(
            self.apis | {name for name, is_api in named if is_api},
            self.servers | {name for name, is_api in named if not is_api},
            self.methods | {tool.endpoint.method for tool in tools if tool.endpoint},
        )


def listed(toolsets: Toolsets) -> list[Toolset | ToolList]:
    """The toolsets as a list, also where it is a single one; what merely has named tools as a list of names.

    Raises TypeError for what is none of these.
    """
    is_one = isinstance(toolsets, Toolset | ToolList | NamedTools)
    return [_as_toolset(one) for one in ([toolsets] if is_one else toolsets)]  # type: ignore[union-attr]


def known_tools(toolsets: Toolsets) -> tuple[KnownTool, ...]:
    """The tools of all sources, in order.

    Raises RegistrationError, with all problems, for names that could be taken for something else: a
    name with other characters than `[A-Za-z0-9_.-]` or longer than 128, twice in one source, a source
    that is there twice or has no valid name, an endpoint in no normal form.
    """
    found: list[KnownTool] = []
    problems: list[Problem] = []
    seen: set[str] = set()
    for given in listed(toolsets):
        where, tools = _tools(given)
        problems += _source_problems(where, given)
        if where in seen:
            problems.append(Problem(f"two sources are called {where!r}", where, hint="give each a name of its own"))
        seen.add(where)
        names: set[str] = set()
        for tool in tools:
            problems += _tool_problems(where, tool, names)
        found += tools
    if problems:
        told = [replace(one, where=one.where if one.where.isprintable() else repr(one.where)) for one in problems]
        raise RegistrationError("tools that approval patterns cannot tell apart are not registered", told)
    return tuple(found)


def is_tool_name(name: object) -> bool:
    """Whether a tool may bear the name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def is_source_name(name: object) -> bool:
    """Whether an API or MCP server may bear the name: `[a-z][a-z0-9-]{0,31}`, never a reserved source."""
    return isinstance(name, str) and API_NAME.fullmatch(name) is not None and name not in RESERVED_SOURCES


def is_method(text: object) -> bool:
    """Whether it is an HTTP method as endpoints have it: any token in lower case."""
    return isinstance(text, str) and _METHOD.fullmatch(text) is not None


def _tools(given: Toolset | ToolList) -> tuple[str, list[KnownTool]]:
    if isinstance(given, Toolset):
        sources = (HTTP, given.api)
        return str(given.api), [
            KnownTool(tool.name, sources, tool.endpoint, tool.destructive is True, tool) for tool in given.tools
        ]
    own = (given.source,) if given.server is None else (given.source, given.server)
    destructive = _listed(given.destructive)
    return str(own[-1]), [KnownTool(name, own, None, name in destructive) for name in _listed(given.names)]


def _as_toolset(given: object) -> Toolset | ToolList:
    if isinstance(given, Toolset | ToolList):
        return given
    if not isinstance(given, NamedTools):
        raise TypeError(f"expected Toolset, ToolList or something with a name and tools(), not {type(given).__name__}")
    held: Any = given.tools
    tools = list(held() if callable(held) else held)
    # What has no name that is a text is refused with the others, all at once.
    names: list[Any] = [tool if isinstance(tool, str) else getattr(tool, "name", None) for tool in tools]
    destructive = [name for name, tool in zip(names, tools, strict=True) if getattr(tool, "destructive", None) is True]
    if given.name in RESERVED_SOURCES:
        return ToolList(given.name, names, destructive=destructive)
    return ToolList(MCP, names, given.name, destructive)


def _listed(value: object) -> list[Any]:
    """The items of a list. A text has none, though Python would give its characters."""
    return list(value) if _is_list(value) else []


def _is_list(value: object) -> TypeGuard[Collection[Any]]:
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def _source_problems(where: str, given: Toolset | ToolList) -> Iterator[Problem]:
    name = given.api if isinstance(given, Toolset) else given.server
    if (isinstance(given, Toolset) or name is not None) and not is_source_name(name):
        hint = "it takes [a-z][a-z0-9-]*, at most 32, and no reserved source's name"
        yield Problem(f"{name!r} is no name of a source", where, hint=hint)
    if isinstance(given, ToolList):
        yield from _list_problems(where, given)


def _list_problems(where: str, given: ToolList) -> Iterator[Problem]:
    if given.source not in _KINDS:
        hint = f"known are {', '.join(_KINDS)}"
        yield Problem(f"{given.source!r} is no kind of source for a list of names", where, hint=hint)
    if given.server is not None and given.source != MCP:
        yield Problem(f"only the source 'mcp' has servers, this is {given.source!r}", where)
    for field_name, value in (("names", given.names), ("destructive", given.destructive)):
        if not _is_list(value):
            yield Problem(f"`{field_name}` is no list of names: {value!r}", where)
    names = _listed(given.names)
    for name in _listed(given.destructive):
        if name not in names:
            yield Problem(f"{name!r} is marked destructive and is none of the tools", where)


def _tool_problems(where: str, tool: KnownTool, names: set[str]) -> Iterator[Problem]:
    """What is wrong with a tool; its name is added to those that its source has."""
    if not is_tool_name(tool.name):
        hint = "names take A-Z a-z 0-9 _ . - and at most 128 characters"
        yield Problem(f"the tool name {tool.name!r} is refused", where, hint=hint)
    elif tool.name in names:
        yield Problem(f"two tools are called {tool.name!r}", where, hint="rename one of them")
    else:
        names.add(tool.name)
    if tool.tool is not None and not _is_endpoint(tool.endpoint):
        hint = "generation writes method and path in their normal form; patterns are made for that"
        key = tool.endpoint.key if isinstance(tool.endpoint, Endpoint) else tool.endpoint
        yield Problem(f"the endpoint {key!r} of {tool.name!r} is in no normal form", where, hint=hint)


def _is_endpoint(endpoint: object) -> bool:
    """Whether an endpoint is as the one function that makes them writes it."""
    if not isinstance(endpoint, Endpoint) or not is_method(endpoint.method) or not isinstance(endpoint.path, str):
        return False
    try:
        return endpoint_path(endpoint.path) == endpoint.path
    except ValueError:
        return False
