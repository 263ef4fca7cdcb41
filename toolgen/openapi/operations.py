"""A document as its Operations: one by one, so that a broken one costs itself only.

Source: OpenAPI 3.2 "OpenAPI Object", "Paths Object", "Path Item Object", "Operation Object".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from toolgen.openapi import upgrade
from toolgen.openapi.diagnostics import Diagnostic, Unusable
from toolgen.openapi.endpoint import fragment_placeholders, placeholders, request_target
from toolgen.openapi.keys import METHODS, unknown_keys
from toolgen.openapi.model import MediaType, Operation, Parameter, RequestBody, Response, Server
from toolgen.openapi.parameters import KnownParameters, OperationParts
from toolgen.openapi.references import Dangling, Place, References
from toolgen.openapi.servers import old_servers, read_security, read_security_schemes, read_servers
from toolgen.openapi.text import one_line
from toolgen.openapi.version import dialect_of
from toolgen.overrides import is_method_key

# Header parameters that describe the message itself or carry credentials; RFC 9110 and OpenAPI
# ("Parameter Object") give them other owners than the model.
OWNED_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "content-type",
        "authorization",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "cookie",
    }
)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Names that nothing can encode; cookies in use have more than the token of RFC 6265, and never these separators.
_NAMES_SENT_RAW = {"header": _TOKEN, "cookie": re.compile(r"""(?:(?![",;=\\])[!-~])+""")}
_NO_BODY = frozenset({"get", "head", "delete"})
# The document's server is another place: neither the request nor a credential is meant for it.
_NO_SERVER = "none of its own servers can be called"


@dataclass(slots=True)
class Skipped:
    """An operation no correct request exists for."""

    method: str
    path: str
    pointer: str
    reason: Diagnostic


class Reader:
    """Reads the operations of a document.

    `title`, `version`, `servers`, `security_schemes` and `diagnostics` are what it says as a whole;
    reading operations adds to `diagnostics` what concerns none of them.
    """

    def __init__(self, references: References) -> None:
        self.references = references
        self.diagnostics: list[Diagnostic] = []
        root = references.root
        self._root = Place(root.tree, root, "")
        self.dialect = dialect_of(root.tree, root.uri or "")
        info = root.tree.get("info")
        info = info if isinstance(info, dict) else {}
        self.title = one_line(str(info.get("title") or ""), 200)
        self.version = one_line(str(info.get("version") or ""), 100)
        self.servers = self._document_servers()
        self.security_schemes = read_security_schemes(references, self.diagnostics)
        self._owned = {
            (str(s.get("in")), str(s.get("name")).lower() if s.get("in") == "header" else str(s.get("name")))
            for s in self.security_schemes.values()
            if s.get("type") == "apiKey"
        }
        self._known_parameters = KnownParameters()
        self._known_answers: dict[int, tuple[list[MediaType], tuple[str, ...], list[Diagnostic]]] = {}
        self._security = read_security(root.tree.get("security"))
        if self._security is None and root.tree.get("security") is not None:
            message = "`security` is an array of requirements, this is not; no credential is sent for it"
            self.diagnostics.append(Diagnostic("degraded", message, "/security"))

    def _document_servers(self) -> list[Server]:
        root = self._root
        if self.dialect == "2.0":
            return old_servers(root, root.node.get("schemes"), self.diagnostics)
        found = read_servers(root.child("servers"), self.diagnostics)
        uri = root.resource.read_from or ""
        if not found and uri.startswith(("http://", "https://")):  # no server means `/` of the document's own host
            return [Server("/".join(re.split(r"[?#]", uri, maxsplit=1)[0].split("/")[:3]))]
        return found

    def paths(self) -> list[str]:
        """Every path of the document, as written, whether its operations are usable or not."""
        paths = self._root.node.get("paths")
        return [p for p in paths if not p.startswith("x-")] if isinstance(paths, dict) else []

    def operations(self) -> Iterator[Operation | Skipped]:
        """Every operation, in the document's order."""
        paths = self._root.child("paths")
        if not isinstance(paths.node, dict):
            if paths.node is not None and "paths" in self._root.node:
                self.diagnostics.append(Diagnostic("degraded", "`paths` is not an object", "/paths"))
            return
        for path in self.paths():
            yield from self._path_item(path, paths.child(path))

    def _path_item(self, path: str, item: Place) -> Iterator[Operation | Skipped]:
        if not isinstance(item.node, dict):
            if item.node is not None:
                self.diagnostics.append(Diagnostic("note", "a path item is an object, this is not", str(item)))
            return
        target: Place | None = None
        if isinstance(item.node.get("$ref"), str):
            fault = "it refers to no object"
            try:
                target = self.references.follow(item)
            except Dangling as error:
                fault = str(error)
            if target is None or not isinstance(target.node, dict):
                # How many operations are lost nobody knows: they are reported as one of every method.
                reason = Diagnostic("skipped", f"the path item cannot be read: {fault}", str(item))
                yield Skipped("*", path, item.pointer, reason)
                target = None
        # What stands beside a `$ref` wins over what it refers to.
        layers = [layer for layer in (target, item) if layer is not None]
        for layer in layers:
            keys = {key: None for key in layer.node if key.lower() not in METHODS}
            for said in unknown_keys(keys, "Path Item", self.dialect):
                self.diagnostics.append(Diagnostic("note", said, str(layer)))
        for method, wire_method, place, pointer in self._methods(layers, item):
            try:
                yield self._operation(method, wire_method, path, place, layers, pointer)
            except Unusable as fault:
                yield Skipped(method, path, pointer, fault.diagnostic)

    def _methods(self, layers: list[Place], item: Place) -> Iterator[tuple[str, str, Place, str]]:
        found: dict[str, tuple[str, Place, str]] = {}
        for layer in layers:
            for key, value in layer.node.items():
                method = key.lower()
                if method in METHODS and value is not None:
                    if key != method and layer.node.get(method) is not None:
                        note = f"method {key!r} is left out: it is there in lower case, too"
                        self.diagnostics.append(Diagnostic("degraded", note, layer.child(key).pointer))
                        continue
                    if key != method:
                        note = f"method {key!r} is written in lower case in a document"
                        self.diagnostics.append(Diagnostic("note", note, str(item)))
                    found[method] = (method.upper(), layer.child(key), item.child(key).pointer)
            extra = layer.node.get("additionalOperations")
            for key in extra if isinstance(extra, dict) else ():
                pointer = item.child("additionalOperations", key).pointer
                if key.lower() in METHODS and key.lower() in found:
                    note = f"{one_line(key, 30)!r} in `additionalOperations` is left out: the method has its own key"
                    self.diagnostics.append(Diagnostic("degraded", note, pointer))
                    continue
                name = key.lower() if key.lower() in METHODS else key
                found[name] = (key, layer.child("additionalOperations", key), pointer)
        for method, (wire_method, place, pointer) in found.items():
            yield method.lower(), wire_method, place, pointer

    def _operation(
        self, method: str, wire_method: str, path: str, place: Place, layers: list[Place], pointer: str
    ) -> Operation:
        node = place.node
        if not _TOKEN.fullmatch(wire_method):
            raise Unusable(f"{one_line(wire_method, 30)!r} is no HTTP method", pointer)
        if "#" in path and (lost := fragment_placeholders(path)):
            raise Unusable(f"{{{one_line(lost[0], 60)}}} stands in the path's fragment, which is never sent", pointer)
        if "?" in path and (override := _method_in_query(path)):
            said = "in the path would have some servers use another method than the operation's"
            raise Unusable(f"{one_line(override, 40)!r} {said}", pointer)
        if isinstance(node, dict) and isinstance(node.get("$ref"), str) and "responses" not in node:
            try:  # not allowed by the specification, written all the same
                place = self.references.follow(place)
            except Dangling as error:
                raise Unusable(f"the operation cannot be read: {error}", pointer) from None
            node = place.node
        if not isinstance(node, dict):
            raise Unusable("an operation is an object, this is not", pointer)
        diagnostics: list[Diagnostic] = []
        parts = OperationParts(self.references, diagnostics, self._known_parameters)
        for said in unknown_keys(node, "Operation", self.dialect):
            parts.say("note", said, pointer)
        lists = [layer.child("parameters") for layer in layers] + [place.child("parameters")]
        parameters, old_bodies = parts.parameters(lists)
        body = self._body(place, parts, old_bodies)
        if body is not None and method in _NO_BODY and self.dialect != "3.1":
            parts.say("note", f"{self.dialect} says a body on {wire_method} shall be ignored; it is kept", pointer)
        tags = node.get("tags")
        return Operation(
            method=method,
            wire_method=wire_method,
            path=path,
            pointer=pointer,
            operation_id=_text(node, "operationId").strip() or None,
            summary=_text(node, "summary")
            or next((t for p in reversed(layers) if (t := _text(p.node, "summary"))), ""),
            description=_text(node, "description")
            or next((t for p in reversed(layers) if (t := _text(p.node, "description"))), ""),
            tags=tuple(one_line(t, 100) for t in tags if isinstance(t, str)) if isinstance(tags, list) else (),
            deprecated=node.get("deprecated") is True,
            parameters=self._usable(path, parameters, parts, place, pointer),
            body=body,
            responses=self._responses(place, parts),
            server=self._own_server(place, layers, diagnostics),
            security=self._security_of(node, parts, pointer),
            diagnostics=diagnostics,
        )

    def _body(self, place: Place, parts: OperationParts, old_bodies: list[Place]) -> RequestBody | None:
        if self.dialect == "2.0":
            return parts.old_body(old_bodies, self._media_names(place, "consumes"))
        if old_bodies:
            parts.say("degraded", "`in: body` and `in: formData` are 2.0's; the parameter is left out", old_bodies[0])
        if place.node.get("requestBody") is None:
            return None
        return parts.body(place.child("requestBody"))

    def _media_names(self, place: Place, key: str) -> list[str]:
        own = place.node.get(key)
        names = own if isinstance(own, list) else self._root.node.get(key)
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def _usable(
        self, path: str, parameters: list[Parameter], parts: OperationParts, place: Place, pointer: str
    ) -> list[Parameter]:
        """The parameters a model may fill, and one for each path expression nobody declared."""
        names = list(dict.fromkeys(placeholders(path if "#" not in path else _without_fragment(path))))
        kept: list[Parameter] = []
        declared: set[str] = set()
        for parameter in parameters:
            name = parameter.name.lower() if parameter.location == "header" else parameter.name
            if (parameter.location, name) in self._owned or (parameter.location == "header" and name in OWNED_HEADERS):
                continue
            grammar = _NAMES_SENT_RAW.get(parameter.location)
            if grammar is not None and not grammar.fullmatch(parameter.name):
                shown = one_line(parameter.name, 40)
                parts.say("degraded", f"{shown!r} is no {parameter.location} name; left out", parameter.pointer)
                continue
            if parameter.location == "querystring" and any(p.location == "querystring" for p in kept):
                parts.say("degraded", "a request has one query string; this parameter is left out", parameter.pointer)
                continue
            if parameter.location == "path":
                if parameter.name not in names:
                    shown = one_line(parameter.name, 60)
                    parts.say("degraded", f"the path has no {{{shown}}}; the parameter is left out", parameter.pointer)
                    continue
                declared.add(parameter.name)
            kept.append(parameter)
        queries = {p.name for p in kept if p.location == "query"}
        for name in names:
            if name not in declared and not (name in queries and "?" in path):
                message = f"the path parameter {one_line(name, 60)!r} is not declared; a text argument is added"
                parts.say("degraded", message, pointer)
                kept.append(Parameter(name, "path", True, None, place, style="simple", explode=False))
        return kept

    def _responses(self, place: Place, parts: OperationParts) -> list[Response]:
        found_group = place.child("responses")
        group = parts.follow(found_group, "`responses`") if isinstance(found_group.node, dict) else None
        if group is None:
            return []
        found: list[Response] = []
        for status in group.node:
            if status.startswith("x-"):
                continue
            response = parts.follow(group.child(status), "a response")
            if response is not None:
                found.append(self._response(status, response, place, parts))
        return found

    def _response(self, status: str, response: Place, operation: Place, parts: OperationParts) -> Response:
        if self.dialect == "2.0":
            upgraded = upgrade.response(response.node, self._media_names(operation, "produces"))
            response = Place(upgraded, response.resource, response.pointer)
        description = _text(response.node, "description")
        if status[:1] in "45":  # only told of, never read as an answer
            return Response(status, description, [], ())
        known = self._known_answers.get(id(response.node))
        if known is None:
            before = len(parts.diagnostics)
            content = parts.content(response.child("content"), answer=True) if "content" in response.node else []
            headers = response.node.get("headers")
            names = tuple(name for name in headers if _TOKEN.fullmatch(name)) if isinstance(headers, dict) else ()
            known = content, names, parts.diagnostics[before:]
            if self.dialect != "2.0":  # an upgraded object is not the document's, and may be gone
                self._known_answers[id(response.node)] = known
        else:
            parts.diagnostics.extend(known[2])
        return Response(status, description, known[0], known[1])

    def _own_server(self, place: Place, layers: list[Place], diagnostics: list[Diagnostic]) -> Server | None:
        root = self._root
        if self.dialect == "2.0":
            schemes = place.node.get("schemes")
            if not isinstance(schemes, list) or schemes == root.node.get("schemes"):
                return None
            own = old_servers(root, schemes, diagnostics)
            return own[0] if own and own != self.servers else None
        for level in (place, *reversed(layers)):
            if level.node.get("servers"):
                own = read_servers(level.child("servers"), diagnostics)
                if own:
                    return own[0] if own[0] != (self.servers[0] if self.servers else None) else None
                raise Unusable(_NO_SERVER, str(level.child("servers")))
        return None

    def _security_of(self, node: dict[str, Any], parts: OperationParts, pointer: str) -> tuple[tuple[str, ...], ...]:
        own = read_security(node.get("security"))
        security = own if own is not None else self._security or ()
        if own is None and node.get("security") is not None:
            parts.say(
                "degraded", "`security` is an array of requirements, this is not; the document's is used", pointer
            )
        for name in dict.fromkeys(name for alternative in security for name in alternative):
            if not self.security_schemes.get(name):
                shown = one_line(name, 60)
                parts.say("degraded", f"the security scheme {shown!r} is not declared; no credential fits it", pointer)
                self.security_schemes.setdefault(name, {})  # still demanded: without it the call would be anonymous
        return security


def _without_fragment(path: str) -> str:
    try:
        return request_target(path)
    except ValueError:
        return path  # no request can be sent there anyway


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _method_in_query(path: str) -> str:
    """The name in a path's constant query by which some servers take another method, or nothing."""
    pairs = path.partition("?")[2].partition("#")[0].split("&")
    return next((name for pair in pairs if is_method_key(name := unquote_plus(pair.partition("=")[0]))), "")
