"""What an operation takes, from the toolset's tool or from the document: the same plain parts either way.

Schemas are JSON Schema 2020-12, their references `#/$defs/NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from toolgen.openapi.endpoint import request_target
from toolgen.openapi.model import Operation
from toolgen.openapi.operations import Reader
from toolgen.openapi.references import References
from toolgen.openapi.schema import Schemas
from toolgen.openapi.schema.names import Names
from toolgen.openapi.source import Document, Loader
from toolgen.openapi.version import dialect_of
from toolgen.tools.model import Leaf, Tool
from toolgen.tools.template import argument_of

PERSON = "its value was written by a person and stands in no schema"


@dataclass(frozen=True, slots=True)
class Part:
    """A parameter: `style` and `explode`, or the media type it is written as. No schema means any value."""

    name: str
    location: str
    required: bool
    schema: Any
    style: str | None = None
    explode: bool = False
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class BodyPart:
    """A body in one media type; `encoding` as in the document, `files` the parts that are bytes."""

    schema: Any
    encoding: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Described:
    """An operation's request; `path` is the template as it is sent. `opaque` are (location, name) of what is sent
    and not described, with why."""

    method: str
    path: str
    parts: tuple[Part, ...]
    bodies: Mapping[str, BodyPart]
    body_required: bool
    definitions: Mapping[str, Any]
    opaque: Mapping[tuple[str, str], str] = field(default_factory=dict)


def from_tool(tool: Tool) -> Described:
    """The request of a tool, by its own schemas."""
    whole = tool.input_schema()
    properties, required = whole.get("properties", {}), whole.get("required", [])
    parts: list[Part] = []
    opaque: dict[tuple[str, str], str] = {}
    for location, leaf in _leaves(tool):
        argument = argument_of(leaf.value)
        if argument is None:
            opaque[location, leaf.name] = PERSON
            continue
        schema = properties.get(argument, True)
        style, explode = leaf.style, bool(leaf.explode)
        parts.append(Part(leaf.name, location, argument in required, schema, style, explode, leaf.media_type))
    bodies: dict[str, BodyPart] = {}
    body, needed = tool.request.body, False
    if body is not None:
        argument = argument_of(body.value)
        schema = properties.get(argument, True) if argument is not None else True
        encoding = {name: entry.model_dump(by_alias=True, exclude_none=True) for name, entry in body.encoding.items()}
        files = frozenset(name for name, entry in body.encoding.items() if entry.binary)
        bodies[body.media_type] = BodyPart(schema, encoding, files, body.binary)
        needed = argument in required
        if argument is None:
            opaque["body", ""] = PERSON
    path = tool.request.template or tool.endpoint.path
    return Described(tool.endpoint.method, path, tuple(parts), bodies, needed, whole.get("$defs", {}), opaque)


def _leaves(tool: Tool) -> list[tuple[str, Leaf]]:
    request = tool.request
    found = [("path", leaf) for leaf in request.path] + [("query", leaf) for leaf in request.query]
    found += [("querystring", request.querystring)] if request.querystring is not None else []
    return found + [("header", leaf) for leaf in request.header] + [("cookie", leaf) for leaf in request.cookie]


def from_document(document: Document | Mapping[str, Any]) -> Callable[[Tool], Described | str]:
    """What finds the operation of a tool in a document, by the tool's pointer.

    The document is read when the first tool is looked for; its references lead into files of its own folder at
    most. The answer is a text where the document does not have the operation.
    """
    read: list[tuple[References, dict[str, Operation]]] = []

    def describe(tool: Tool) -> Described | str:
        if not read:
            given = document if isinstance(document, Document) else Loader().load(document)
            references = References(given, dialect_of(given.tree, given.uri or ""), Loader())
            found = (one for one in Reader(references).operations() if isinstance(one, Operation))
            read.append((references, {one.pointer: one for one in found}))
        references, operations = read[0]
        operation = operations.get(tool.pointer)
        if operation is None:
            return f"the document has no operation at {tool.pointer or 'the pointer of this tool'}"
        return _from_operation(operation, references, tool)

    return describe


def _from_operation(operation: Operation, references: References, tool: Tool) -> Described:
    schemas = Schemas(references, "request", Names(references.root))
    parts = []
    for one in operation.parameters:
        schema = schemas.convert(one.schema) if one.schema is not None else True
        parts.append(Part(one.name, one.location, one.required, schema, one.style, bool(one.explode), one.media_type))
    bodies: dict[str, BodyPart] = {}
    for media in operation.body.content if operation.body is not None else ():
        schema = schemas.convert(media.schema) if media.schema is not None else True
        name = media.name
        if "*" in name and tool.request.body is not None and fnmatchcase(tool.request.body.media_type, name):
            name = tool.request.body.media_type  # a range: what is sent is one of it
        sent = tool.request.body
        as_bytes = sent is not None and sent.binary and sent.media_type == name
        bodies.setdefault(name, BodyPart(schema, media.encoding, binary=as_bytes))
    schemas.drain()
    schemas.finish()
    needed = operation.body is not None and operation.body.required
    return Described(
        operation.method, request_target(operation.path), tuple(parts), bodies, needed, schemas.definitions
    )
