"""What a document says, in OpenAPI's own words and in the shape of 3.1 whatever it was written in.

Schemas are Places: where the Schema Object stands, not converted yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from toolgen.openapi.diagnostics import Diagnostic
from toolgen.openapi.references import Place

ParameterLocation = Literal["path", "query", "querystring", "header", "cookie"]
ServerVariable = tuple[str | None, tuple[str, ...]]


@dataclass(slots=True)
class Parameter:
    """A Parameter Object. `media_type` is set where `content` describes it instead of `schema`.

    `twin` is the first one that is written letter by letter like it, elsewhere in the document.
    """

    name: str
    location: ParameterLocation
    required: bool
    schema: Place | None
    place: Place
    description: str = ""
    style: str | None = None
    explode: bool | None = None
    allow_reserved: bool = False
    media_type: str | None = None
    deprecated: bool = False
    examples: list[Any] = field(default_factory=list)
    twin: Parameter | None = None

    def at(self, place: Place) -> Parameter:
        """The same parameter, written at another place."""
        return Parameter(
            self.name,
            self.location,
            self.required,
            self.schema,
            place,
            self.description,
            self.style,
            self.explode,
            self.allow_reserved,
            self.media_type,
            self.deprecated,
            self.examples,
            self.twin or self,
        )

    def own_schema(self) -> Place | None:
        """The schema at this parameter's own place, where `schema` may be its twin's."""
        if self.schema is None or self.twin is None:
            return self.schema
        here = self.place.child("schema")
        return here if isinstance(here.node, dict) else Place(self.schema.node, self.place.resource, self.pointer)

    @property
    def pointer(self) -> str:
        """JSON pointer of the Parameter Object, or of the operation for one nobody declared."""
        return str(self.place)


@dataclass(slots=True)
class MediaType:
    """A Media Type Object under its media type's `name`, written as in the document."""

    name: str
    schema: Place | None
    encoding: dict[str, dict[str, Any]] = field(default_factory=dict)
    examples: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class RequestBody:
    """A Request Body Object with at least one media type."""

    content: list[MediaType]
    required: bool
    pointer: str
    description: str = ""


@dataclass(slots=True)
class Response:
    """A Response Object under its status code (`200`, `4XX`, `default`); `headers` are names."""

    status: str
    description: str
    content: list[MediaType]
    headers: tuple[str, ...]


@dataclass(slots=True)
class Server:
    """A Server Object. `variables` maps a name to (default, enum); without a default a value must be given."""

    url: str
    variables: dict[str, ServerVariable] = field(default_factory=dict)


@dataclass(slots=True)
class Operation:
    """An Operation Object with what its path item and document add to it.

    `method` is lower case, `wire_method` as it is sent; `path` as written in the document;
    `server` is set where the operation or its path item has its own. `security` is an OR of ANDs
    of scheme names.
    """

    method: str
    wire_method: str
    path: str
    pointer: str
    operation_id: str | None
    summary: str
    description: str
    tags: tuple[str, ...]
    deprecated: bool
    parameters: list[Parameter]
    body: RequestBody | None
    responses: list[Response]
    server: Server | None
    security: tuple[tuple[str, ...], ...]
    diagnostics: list[Diagnostic]
