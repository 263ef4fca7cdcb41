"""One operation becomes one tool, as the raw data the model is validated from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolgen.openapi.diagnostics import Diagnostic
from toolgen.openapi.endpoint import origin_of, placeholders, request_target
from toolgen.openapi.model import MediaType, Operation, Parameter, RequestBody, Server
from toolgen.openapi.parameters import is_json
from toolgen.openapi.references import Dangling, References
from toolgen.openapi.schema import Schemas
from toolgen.openapi.schema.keywords import references
from toolgen.openapi.schema.names import Names
from toolgen.openapi.schema.values import keep_examples
from toolgen.openapi.text import clean
from toolgen.tools import describe, media
from toolgen.tools.forms import Form, holds_file
from toolgen.tools.model import IDEMPOTENCY, READ_METHODS
from toolgen.tools.naming import argument_keys, body_key
from toolgen.tools.schemas import Definitions
from toolgen.tools.siblings import Siblings
from toolgen.tools.template import leaf_of

_IDEMPOTENT = READ_METHODS | {"put", "delete"}
_UNSENT_HEADERS = frozenset({"set-cookie", "set-cookie2", "content-type"})


class Builder:
    """Makes tools one after the other; what they share is converted once."""

    def __init__(self, found: References, siblings: Siblings) -> None:
        self._references = found
        self._siblings = siblings
        self._names = Names(found.root)
        self._request = Schemas(found, "request", self._names)
        self._response: Schemas | None = None
        self._arguments: dict[int, tuple[dict[str, Any], tuple[Diagnostic, ...], Parameter]] = {}
        self._shapes: dict[str, str] = {}
        self._sibling_paths: dict[str, tuple[str, ...]] = {}
        self._inline_faults: dict[str, list[Diagnostic]] = {}
        self._shared_faults: dict[str, list[Diagnostic]] = {}
        self._tool_references: dict[str, frozenset[str]] = {}
        self._copied = False

    def tool(self, operation: Operation, path: str, name: str) -> dict[str, Any]:
        """The request's side of a tool: everything but `response`."""
        self._request.found = []
        keys = argument_keys((p.location, p.name) for p in operation.parameters)
        properties: dict[str, Any] = {}
        required: list[str] = []
        request: dict[str, Any] = {}
        for parameter in operation.parameters:
            key = keys[parameter.location, parameter.name]
            properties[key] = self._argument(parameter)
            # A key that makes a repeated call one call is the dispatcher's to fill: a model would invent it.
            if parameter.required and not (parameter.location == "header" and parameter.name.lower() in IDEMPOTENCY):
                required.append(key)
            leaf = _leaf(parameter, key)
            if parameter.location == "querystring":
                request["querystring"] = leaf
            else:
                request.setdefault(parameter.location, []).append(leaf)
        if operation.body is not None:
            key = body_key(properties)
            properties[key], request["body"] = self._body(operation.body, key)
            if operation.body.required:
                required.append(key)
        self._target(request, operation, path)
        parameters: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            parameters["required"] = required
        parameters["additionalProperties"] = False
        self._inline_faults[name] = self._request.found
        tool: dict[str, Any] = {
            "name": name,
            "description": describe.tool_description(operation),
            "group": operation.tags[0] if operation.tags and operation.tags[0] else "General",
            "endpoint": {"method": operation.method, "path": path},
            "annotations": _annotations(operation, name),
            "parameters": parameters,
            "request": request,
            "operation": {"pointer": operation.pointer, "operationId": operation.operation_id, "tags": operation.tags},
        }
        if operation.deprecated:
            tool["deprecated"] = True
        return tool

    def _target(self, request: dict[str, Any], operation: Operation, path: str) -> None:
        """Where the request goes, as far as the endpoint's path does not say it."""
        target = request_target(operation.path)
        if target != path:
            names = {leaf["name"] for leaf in request.get("query", ())}
            target = _without_query_leaves(target, names - {leaf["name"] for leaf in request.get("path", ())})
        if target != path:
            request["template"] = target
        if operation.wire_method != operation.method.upper():
            request["method"] = operation.wire_method
        origin = origin_of(operation.path)
        if operation.server is not None or origin is not None:
            request["server"] = origin or self.server(operation.server)  # type: ignore[arg-type]
        request["security"] = operation.security
        if path not in self._sibling_paths:
            self._sibling_paths[path] = self._siblings.of(path)
        request["siblings"] = self._sibling_paths[path]

    @staticmethod
    def server(server: Server) -> str | dict[str, Any]:
        """A server as a toolset writes it: a URL, or a URL with variables."""
        if not server.variables:
            return server.url
        variables = {name: {"default": default, "enum": enum} for name, (default, enum) in server.variables.items()}
        return {"url": server.url, "variables": variables}

    # Arguments

    def _argument(self, parameter: Parameter) -> dict[str, Any]:
        """The schema of a parameter's argument; one Parameter Object gives one schema however often it is used."""
        first = parameter.twin or parameter
        known = self._arguments.get(id(first))
        if known is None or (known[1] and first is not parameter):  # faults say where they stand
            before, self._request.found = self._request.found, []
            schema = self._argument_schema(parameter)
            known = self._arguments[id(parameter)] = schema, tuple(self._request.found), parameter
            self._request.found = before
        schema, faults, _ = known  # the parameter is kept, and with it its id
        if faults:
            self._request.found.extend(faults)
        return schema

    def _argument_schema(self, parameter: Parameter) -> dict[str, Any]:
        place = parameter.own_schema()
        if place is None:
            schema: dict[str, Any] = {"type": "string"}
        else:
            converted = self._request.convert(place)
            self._request.drain()
            schema = converted if isinstance(converted, dict) else {} if converted else {"not": {}}
        if parameter.examples and "examples" not in schema:
            keep_examples(schema, parameter.examples)
        if parameter.deprecated:
            schema["deprecated"] = True
        prose = clean(parameter.description, describe.ARGUMENT_CAP)
        if prose:
            schema["description"] = prose
        elif "description" not in schema:
            said = describe.hints(schema, self._request.definitions)
            if said:
                schema["description"] = said
        return schema

    def _body(self, body: RequestBody, key: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The body's argument and its template."""
        choice = media.choose(body.content, self._shape)
        converted: Any = {}
        if choice.media.schema is not None:
            converted = self._request.convert(choice.media.schema)
            self._request.drain()
        encoding = {name: dict(entry) for name, entry in choice.media.encoding.items()}
        if choice.kind in ("form", "multipart"):
            form = Form(self._request, choice.kind, encoding)
            converted = form.schema(converted)
            self._copied = self._copied or form.copied
            for name in form.files:
                encoding.setdefault(name, {})["binary"] = True
        binary, plain = choice.kind == "binary", describe.resolved(converted, self._request.definitions)
        if binary:
            schema = media.binary_schema(plain)
        elif choice.kind in ("text", "xml", "opaque"):
            schema = media.text_schema(plain)
        else:
            schema = converted if isinstance(converted, dict) else {} if converted else {"not": {}}
        if "examples" not in schema and not binary:
            texts_only = schema.get("type") == "string"
            keep_examples(schema, [e for e in choice.media.examples[:1] if isinstance(e, str) or not texts_only])
        own = converted.get("description") if isinstance(converted, dict) else ""
        shape = "" if binary or choice.kind == "text" else self._shape_of(converted)
        prose = body.description or own or schema.get("description", "")
        schema["description"] = describe.body_description(choice.kind, choice.media_type, shape, prose)
        template: dict[str, Any] = {"value": leaf_of(key), "mediaType": choice.media_type}
        if choice.alternatives:
            template["alternatives"] = choice.alternatives
        if encoding and choice.kind in ("form", "multipart"):
            template["encoding"] = encoding
        if binary:
            template["binary"] = True
        return schema, template

    def _shape_of(self, schema: Any) -> str:
        """The words for a body's schema, found once for each definition."""
        ref = schema.get("$ref") if isinstance(schema, dict) and len(schema) == 1 else None
        if ref is None:
            return describe.body_shape(schema, self._request.definitions)
        if ref not in self._shapes:
            self._shapes[ref] = describe.body_shape(schema, self._request.definitions)
        return self._shapes[ref]

    def _shape(self, found: MediaType) -> str:
        """What a media type's schema is about, looked at before it is converted."""
        if found.schema is None:
            return ""
        try:
            node = self._references.follow(found.schema).node
        except Dangling:
            return ""
        if holds_file(self._references, found.schema):
            return "file"
        if media.is_binary(node):
            return "binary"
        return "" if not isinstance(node, dict) else "text" if node.get("type") == "string" else "object"

    # Answers

    def responses(self, tools: list[dict[str, Any]], operations: Iterable[Operation]) -> None:
        """Add `response` to tools whose request's side is complete."""
        self._request.finish()
        self._response = Schemas(self._references, "response", self._names, self._request)
        for tool, operation in zip(tools, operations, strict=True):
            self._response.found = []
            described = self._answer(operation)
            if described:
                tool["response"] = described
            self._inline_faults[tool["name"]] += self._response.found
        self._response.finish()

    def _answer(self, operation: Operation) -> dict[str, Any]:
        assert self._response is not None
        good = [r for r in operation.responses if r.status[:1] == "2"]
        good = good or [r for r in operation.responses if r.status == "default"]
        types = dict.fromkeys(m.name for r in good for m in r.content)
        schemas: list[Any] = []
        for response in good:
            found = next((m for m in response.content if is_json(m.name) and m.schema is not None), None)
            if found is not None and found.schema is not None:
                schema = self._response.convert(found.schema)
                self._response.drain()
                if schema not in schemas:
                    schemas.append(schema)
        carrying = [
            r
            for r in operation.responses
            if r.status in ("201", "202")
            or r.status[:1] == "3"
            or (r.status[:1] == "2" and (operation.method == "head" or not r.content))
        ]
        headers = dict.fromkeys(h for r in carrying for h in r.headers if h.lower() not in _UNSENT_HEADERS)
        described: dict[str, Any] = {}
        if types:
            described["mediaTypes"] = tuple(types)
        if schemas:
            described["schema"] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
        if headers:
            described["headers"] = tuple(headers)
        return described

    # What all tools together share

    def definitions(self, tools: list[dict[str, Any]]) -> Definitions:
        """Every shared schema some tool reaches, by name."""
        assert self._response is not None
        found = {**self._request.definitions, **self._response.definitions}
        self._shared_faults = {**self._request.faults, **self._response.faults}
        if self._copied or self._shared_faults:
            self._tool_references = {
                tool["name"]: references(tool["parameters"]) | references(tool.get("response", {}).get("schema"))
                for tool in tools
            }
        uses = {**self._request.uses, **self._response.uses}
        if self._copied:  # a multipart body was written out, which may have left its definition without a user
            reached = Definitions(found, uses).reached(frozenset().union(*self._tool_references.values()))
            found = {name: found[name] for name in sorted(reached)}
        self._all = Definitions(dict(sorted(found.items())), uses)
        return self._all

    def faults(self, name: str) -> list[Diagnostic]:
        """What is wrong with the schemas of a tool's arguments and its answer."""
        found = self._inline_faults[name]
        if not self._shared_faults:
            return found
        reached = self._all.reached(self._tool_references[name])
        return found + [fault for used in reached for fault in self._shared_faults.get(used, ())]

    def unknown(self) -> list[Diagnostic]:
        """Keywords in schemas that JSON Schema does not have, each once."""
        said = "schemas use {!r}, which is no keyword of JSON Schema; it is left out"
        return [Diagnostic("note", said.format(key[:40]), where) for key, where in self._request.unknown.items()]


def _leaf(parameter: Parameter, key: str) -> dict[str, Any]:
    leaf: dict[str, Any] = {"name": parameter.name, "value": leaf_of(key)}
    if parameter.media_type is not None:
        leaf["mediaType"] = parameter.media_type
    else:
        leaf["style"], leaf["explode"] = parameter.style, parameter.explode
    if parameter.allow_reserved:
        leaf["allowReserved"] = True
    return leaf


def _annotations(operation: Operation, name: str) -> dict[str, Any]:
    reads = operation.method in READ_METHODS
    return {
        "title": describe.title(operation, name),
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "idempotentHint": operation.method in _IDEMPOTENT,
        "openWorldHint": True,
    }


def _without_query_leaves(target: str, names: set[str]) -> str:
    """Drop `name={name}` pairs from a constant query where a query parameter sends them."""
    path, mark, query = target.partition("?")
    if not mark:
        return target
    kept = [pair for pair in query.split("&") if not (set(placeholders(pair)) and set(placeholders(pair)) <= names)]
    return path + ("?" + "&".join(kept) if any(kept) else "")
