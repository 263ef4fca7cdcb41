"""The declarative contract: a Toolset, its Tools, and what each of them sends.

Everything here is data, frozen, and says nothing of networks. In memory a reference to a shared
schema is written `#/$defs/NAME`, as JSON Schema has it; in a file it is `#/schemas/NAME`
(`toolgen.tools.files` translates). Keys are camelCase in files and snake_case in Python.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, Strict
from pydantic.alias_generators import to_camel

from toolgen.errors import did_you_mean
from toolgen.tools.schemas import Definitions
from toolgen.tools.template import argument_of

if TYPE_CHECKING:
    from os import PathLike

    from toolgen.tools.report import Report

Location = Literal["path", "query", "querystring", "header", "cookie", "body"]
LOCATIONS: tuple[Location, ...] = ("path", "query", "querystring", "header", "cookie", "body")
READ_METHODS = frozenset({"get", "head", "options", "trace", "query"})
FORMAT_VERSION: Final = 1
# Headers in lower case by which a server tells a repeated call from a new one.
IDEMPOTENCY = frozenset("idempotency-key x-idempotency-key idempotency-token x-idempotency-token".split())

# A list in YAML or JSON becomes a tuple here; what stands in it is still checked strictly.
type_of_list = Strict(False)


class Model(BaseModel):
    """Frozen, strict, and closed: a key nobody knows is a typing error in a hand edit."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    def __eq__(self, other: object) -> bool:
        """Two models are equal when they declare the same; caches and the load report do not count."""
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)


class Endpoint(Model):
    """Where a tool goes: the method in lower case and the path template without the server's base path.

    `path` is normalised by `toolgen.openapi.endpoint.endpoint_path`; `key` is the text approval
    patterns are matched against, for example `post:/pets/{petId}`.
    """

    method: str
    path: str

    @property
    def key(self) -> str:
        return f"{self.method}:{self.path}"

    @property
    def is_read(self) -> bool:
        """Whether the method only reads: GET, HEAD, OPTIONS, TRACE or QUERY."""
        return self.method in READ_METHODS

    @property
    def is_destructive(self) -> bool:
        """Whether the method alone makes its tool destructive for policy: DELETE."""
        return self.method == "delete"


class Annotations(Model):
    """MCP tool annotations, derived from the method; hints for a client that never feed policy."""

    title: str
    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class Provenance(Model):
    """Where in the document a tool comes from. `pointer` is the JSON pointer of its Operation Object."""

    pointer: str = ""
    operation_id: str | None = None
    tags: Annotated[tuple[str, ...], type_of_list] = ()


class Leaf(Model):
    """One parameter of the request: its wire `name` and a jinja2 template (or a constant) for its value.

    `style`, `explode` and `allow_reserved` are OpenAPI's; `media_type` is set for a parameter that
    the document describes by `content`, whose value is then serialised as that media type.
    """

    name: str
    value: Any
    style: str | None = None
    explode: bool | None = None
    allow_reserved: bool = False
    media_type: str | None = None


class Encoding(Model):
    """How one property of a form or multipart body is sent (OpenAPI, Encoding Object).

    `binary` marks a part whose text is base64 for the model and is decoded before it is sent.
    """

    content_type: str | None = None
    style: str | None = None
    explode: bool | None = None
    allow_reserved: bool = False
    headers: dict[str, Any] = Field(default_factory=dict)
    binary: bool = False


class Body(Model):
    """The request body: a template for the whole value, and the media type chosen for it.

    `alternatives` are the media types the document also declares. `binary`: the value is base64
    text, decoded before it is sent.
    """

    value: Any
    media_type: str
    alternatives: Annotated[tuple[str, ...], type_of_list] = ()
    encoding: dict[str, Encoding] = Field(default_factory=dict)
    binary: bool = False


class ServerVariable(Model):
    """A variable of a server URL (OpenAPI, Server Variable Object); without a default it must be given a value."""

    default: str | None = None
    enum: Annotated[tuple[str, ...], type_of_list] = ()


class Server(Model):
    """A server URL with variables; a URL without any is written as plain text."""

    url: str
    variables: dict[str, ServerVariable] = Field(default_factory=dict)


class RequestTemplate(Model):
    """What is sent, as declarative leaves.

    `template` is the path as it is sent where that differs from the endpoint's path (a constant
    query, doubled slashes). `method` is set only where the wire wants other than upper case.
    `security` is an OR of ANDs of scheme names: `[]` sends no credential, `[[]]` allows none.
    `siblings` are paths of the same document that a value in this path could be steered into; of longer
    ones, which take a slash in a value, one stands for all.
    """

    method: str | None = None
    template: str | None = None
    server: str | Server | None = None
    path: Annotated[tuple[Leaf, ...], type_of_list] = ()
    query: Annotated[tuple[Leaf, ...], type_of_list] = ()
    querystring: Leaf | None = None
    header: Annotated[tuple[Leaf, ...], type_of_list] = ()
    cookie: Annotated[tuple[Leaf, ...], type_of_list] = ()
    body: Body | None = None
    security: Annotated[tuple[Annotated[tuple[str, ...], type_of_list], ...], type_of_list] = ()
    siblings: Annotated[tuple[str, ...], type_of_list] = ()

    def leaves(self) -> Iterator[tuple[Location, str, Any]]:
        """Every (location, wire name, value) of the request; the body's wire name is empty."""
        for leaf in self.path:
            yield "path", leaf.name, leaf.value
        for leaf in self.query:
            yield "query", leaf.name, leaf.value
        if self.querystring is not None:
            yield "querystring", self.querystring.name, self.querystring.value
        for leaf in self.header:
            yield "header", leaf.name, leaf.value
        for leaf in self.cookie:
            yield "cookie", leaf.name, leaf.value
        if self.body is not None:
            yield "body", "", self.body.value


class Response(Model):
    """What a good answer looks like.

    `media_types` in the document's order; `schema_` (`schema` in files) is JSON Schema 2020-12 of
    a good answer's JSON (an `anyOf` where several differ); `headers` are the documented headers of answers that carry their result
    there (201, 202, 3xx, 2xx without content), never `Set-Cookie`.
    """

    media_types: Annotated[tuple[str, ...], type_of_list] = ()
    schema_: dict[str, Any] | bool | None = Field(default=None, alias="schema")
    headers: Annotated[tuple[str, ...], type_of_list] = ()


class Binding(Model):
    """Which wire name and location an argument fills; `argument` is a key of the tool's input."""

    argument: str
    location: Location
    name: str


class Home(NamedTuple):
    """What a tool has from its toolset: the API's name, its server, the security schemes by name."""

    api: str = ""
    server: str | Server | None = None
    security_schemes: Mapping[str, dict[str, Any]] = MappingProxyType({})


class Tool(Model):
    """What a model calls, and the request that becomes of it.

    `destructive` is written by people only, never generated; approval policy reads it.
    `parameters` is the input schema whose `$ref`s point into the toolset's shared schemas.
    """

    name: str
    description: str
    group: str = "General"
    endpoint: Endpoint
    annotations: Annotations
    deprecated: bool = False
    destructive: bool | None = None
    parameters: dict[str, Any]
    request: RequestTemplate
    response: Response = Response()
    operation: Provenance = Provenance()

    @property
    def pointer(self) -> str:
        """JSON pointer of the operation in its document."""
        return self.operation.pointer

    @property
    def is_destructive(self) -> bool:
        """Whether policy counts it as destructive whatever a config says: DELETE, or marked by a person."""
        return self.destructive is True or self.endpoint.is_destructive

    @cached_property
    def bindings(self) -> tuple[Binding, ...]:
        """The leaves that are exactly one argument."""
        found = ((argument_of(value), location, name) for location, name, value in self.request.leaves())
        return tuple(Binding(argument=a, location=where, name=name) for a, where, name in found if a is not None)

    @cached_property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over everything but prose; see `toolgen.tools.digest`."""
        from toolgen.tools.digest import tool_digest

        return tool_digest(self)

    @cached_property
    def _definitions(self) -> Definitions:
        """The shared schemas the references point into; a toolset puts its own here."""
        return Definitions({})

    @cached_property
    def home(self) -> Home:
        """What the tool has from its toolset; the toolset puts its own here."""
        return Home()

    def input_schema(self) -> dict[str, Any]:
        """The tool's input as a self-contained JSON Schema 2020-12.

        The returned object is the caller's own, the definitions under `$defs` are shared by all
        tools of the set: copy them before changing them.
        """
        own: dict[str, Any] = marshal.loads(marshal.dumps(self.parameters, 2))  # noqa: S302 (our own bytes)
        return self._definitions.close(own)

    def output_schema(self, *, root: bool = True) -> dict[str, Any] | bool | None:
        """JSON Schema 2020-12 of a good answer's JSON body, or None; shared like `input_schema`.

        It is never a mere reference, since clients look for a type at the root; `root=False` leaves
        it as it is, for a place inside another schema.
        """
        schema = self.response.schema_
        if not isinstance(schema, dict):
            return schema
        whole = self._definitions.named(schema) if root else schema
        return self._definitions.close(dict(whole)) if isinstance(whole, dict) else bool(whole)


class DocumentInfo(Model):
    """The document a toolset was generated from; `digest` is `sha256:` and 64 hex digits of what was read."""

    title: str = ""
    version: str = ""
    digest: str = ""


class Toolset(Model):
    """One API's tools, as one file.

    `report` says what generation did with each operation; it is not part of the file.
    """

    toolgen: Literal[1] = FORMAT_VERSION
    api: str
    document: DocumentInfo = DocumentInfo()
    generated: str = ""
    server: str | Server | None = None
    security_schemes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    schemas: dict[str, Any] = Field(default_factory=dict)
    tools: Annotated[tuple[Tool, ...], type_of_list] = ()

    _report: Report | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        self.adopt(Definitions(self.schemas))

    def adopt(self, definitions: Definitions) -> None:
        """Let the tools find their shared schemas, equal to the toolset's own, in these definitions."""
        home = Home(self.api, self.server, self.security_schemes)
        for tool in self.tools:
            tool.__dict__.pop("digest", None)
            tool.__dict__.update(_definitions=definitions, home=home)  # in the place of the cached properties' values

    @property
    def report(self) -> Report | None:
        """The load report; None for a toolset that was loaded from a file."""
        return self._report

    def tool(self, name: str) -> Tool:
        """The tool of that name. Raises KeyError, naming the nearest one."""
        found = self._by_name.get(name)
        if found is None:
            raise KeyError(f"no tool {name!r} in {self.api!r}" + did_you_mean(name, self._by_name))
        return found

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the toolset: YAML, or JSON for a `.json` name and above 2 MB unless the name says YAML.

        The file is replaced in one step; if writing fails the old one stays as it was.
        """
        from toolgen.tools.files import save_toolset

        save_toolset(self, path)
