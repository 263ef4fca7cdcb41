"""What a toolset's values must mean together: the checks of a file that a person may have edited.

The models check structure; this checks sense, every fault at once, in time that grows with the
toolset. A toolset that passes has templates that can be rendered, paths that approval patterns see
as they are sent, and schemas that a validator can use. What a model writes is checked at each call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote_plus

from toolgen.errors import Problem, did_you_mean
from toolgen.identity.references import Reference
from toolgen.openapi.encoding import MEDIA_TYPE
from toolgen.openapi.endpoint import endpoint_path, placeholders, request_target
from toolgen.openapi.operations import OWNED_HEADERS
from toolgen.openapi.parameters import STYLES
from toolgen.openapi.servers import VARIABLE, expanded, server_fault
from toolgen.overrides import is_method_header, is_method_key
from toolgen.tools.files.check_schemas import SchemaCheck
from toolgen.tools.files.places import Place, written
from toolgen.tools.model import Body, Leaf, Location, Server, Tool, Toolset
from toolgen.tools.naming import API_NAME, RESERVED_SOURCES
from toolgen.tools.template import TemplateFault, argument_of, arguments_in, pieces

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
_METHOD = "remove it: approval patterns see endpoint.method"


def check_toolset(toolset: Toolset) -> list[Problem]:
    """Every fault of a toolset, in the order of its file; `where` is the place inside it."""
    schemas = SchemaCheck(toolset.schemas)
    found = [*_api(toolset.api), *_server(("server",), toolset.server)]
    found += schemas.shared()
    seen: dict[str, int] = {}
    for index, tool in enumerate(toolset.tools):
        place = ("tools", index)
        if tool.name in seen:
            message = f"the name {tool.name!r} is taken by tools[{seen[tool.name]}]"
            found.append(_problem((*place, "name"), message, "every tool needs a name of its own"))
        seen.setdefault(tool.name, index)
        found += _tool(place, tool)
        found += schemas.of(tool.parameters, (*place, "parameters"))
        found += schemas.of(tool.response.schema_, (*place, "response", "schema"))
        found += _security((*place, "request", "security"), tool, toolset.security_schemes)
    return found


def _problem(place: Place, message: str, hint: str = "") -> Problem:
    return Problem(message, written(place), hint=hint)


def _api(api: str) -> Iterator[Problem]:
    if not API_NAME.fullmatch(api):
        yield _problem(("api",), f"{api!r} is no API name", "a letter, then at most 31 of a-z, 0-9 and -")
    elif api in RESERVED_SOURCES:
        yield _problem(("api",), f"{api!r} is the name of a source of its own", "choose another name")


def _server(place: Place, server: str | Server | None) -> Iterator[Problem]:
    if server is None:
        return
    url, variables = (server, {}) if isinstance(server, str) else (server.url, server.variables)
    for name in dict.fromkeys(VARIABLE.findall(url)):
        if name not in variables:
            message = f"the server variable {name!r} is not declared" + did_you_mean(name, variables)
            yield _problem(place, message, "a server with variables is a mapping of url and variables")
    for name, variable in variables.items():
        if variable.enum and variable.default is not None and variable.default not in variable.enum:
            yield _problem((*place, "variables", name, "default"), "the default is not in the variable's enum")
    filled = expanded(url, {name: variable.default for name, variable in variables.items()})
    here = place if isinstance(server, str) else (*place, "url")
    if "@" in filled.partition("://")[2].partition("/")[0]:  # never shown: it is a credential
        yield _problem(here, "the server URL holds a user name or password", "bind credentials to security schemes")
    elif server_fault(filled):
        yield _problem(here, "this is no server URL", "an http(s) URL, or one relative to the document's")


def _tool(place: Place, tool: Tool) -> Iterator[Problem]:
    if not _NAME.fullmatch(tool.name):
        yield _problem((*place, "name"), f"{tool.name!r} is no tool name", "1 to 64 of A-Z, a-z, 0-9, _ and -")
    yield from _arguments(place, tool)
    yield from _endpoint(place, tool)
    request = (*place, "request")
    yield from _server((*request, "server"), tool.request.server)
    for location in ("path", "query", "header", "cookie"):
        for index, leaf in enumerate(getattr(tool.request, location)):
            yield from _leaf((*request, location, index), location, leaf)
    headers = [leaf.name.lower() for leaf in tool.request.header]
    for index, name in enumerate(headers):
        if name in headers[:index]:
            yield _problem((*request, "header", index, "name"), f"the header {name} is there twice", "case is the same")
    if tool.request.querystring is not None:
        yield from _leaf((*request, "querystring"), "querystring", tool.request.querystring)
    if tool.request.body is not None:
        yield from _body((*request, "body"), tool.request.body)


def _arguments(place: Place, tool: Tool) -> Iterator[Problem]:
    """The arguments that are declared and those that leaves read are the same."""
    properties = tool.parameters.get("properties", {})
    declared = properties if isinstance(properties, dict) else {}
    for name in declared:
        if not _NAME.fullmatch(name):
            hint = "1 to 64 of A-Z, a-z, 0-9, _ and -; the wire name stays in the leaf's name"
            yield _problem((*place, "parameters", "properties", name), f"{name!r} is no argument name", hint)
    used: set[str] = set()
    for where, location, value in _values(place, tool):
        try:
            faults, read = _read(where, location, value)
        except RecursionError:
            yield _problem(where, "the value is nested too deep")
            continue
        yield from faults
        used |= read
        for name in sorted(read - declared.keys()):
            message = f"the argument {name!r} is not declared" + did_you_mean(name, declared)
            yield _problem(where, message, "declare it in parameters.properties")
    required = tool.parameters.get("required", ())
    for index, leaf in enumerate(tool.request.path):
        name = argument_of(leaf.value)
        if name in declared and name not in required:
            where = (*place, "request", "path", index, "value")
            yield _problem(where, f"the path needs the argument {name!r}", "name it in parameters.required")
    for name in declared:
        if name not in used:
            hint = "use it in a leaf, or remove it"
            yield _problem((*place, "parameters", "properties", name), f"no leaf uses the argument {name!r}", hint)


def _values(place: Place, tool: Tool) -> Iterator[tuple[Place, Location, Any]]:
    """Every leaf's value and where it stands."""
    request = (*place, "request")
    counts: dict[str, int] = {}
    for location, _, value in tool.request.leaves():
        if location in ("querystring", "body"):
            yield (*request, location, "value"), location, value
            continue
        index = counts[location] = counts.get(location, -1) + 1
        yield (*request, location, index, "value"), location, value


def _read(place: Place, location: Location, value: Any) -> tuple[list[Problem], set[str]]:
    """What is wrong with the texts of a value, and the arguments they read."""
    found: list[Problem] = []
    used: set[str] = set()
    for where, text, is_key in _texts(place, value):
        try:
            references = [piece for piece in pieces(text) if isinstance(piece, Reference)]
            used |= frozenset() if is_key else arguments_in(text)
        except TemplateFault as fault:
            if not is_key or "${" in text:  # a key is sent as it is written, and holds no template
                found.append(_problem(where, str(fault), fault.hint))
            continue
        if is_key and references:
            found.append(_problem(where, "a key cannot hold a reference", "references stand in values"))
            continue
        misplaced = filter(None, (reference.place_fault(location) for reference in references))
        found += [_problem(where, told, "`credentials:` binds secrets to security schemes") for told in misplaced]
    return found, used


def _texts(place: Place, value: Any) -> Iterator[tuple[Place, str, bool]]:
    """Every text of a value, with its place and whether it is the key of a mapping."""
    if isinstance(value, str):
        yield place, value, False
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*place, str(key)), str(key), True
            yield from _texts((*place, str(key)), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts((*place, index), item)


def _endpoint(place: Place, tool: Tool) -> Iterator[Problem]:
    method, path, request = tool.endpoint.method, tool.endpoint.path, tool.request
    if not _TOKEN.fullmatch(method) or method != method.lower():
        yield _problem((*place, "endpoint", "method"), f"{method!r} is no HTTP method", "a method in lower case")
    if request.method is not None and request.method.lower() != method:
        hint = "approval patterns see endpoint.method"
        yield _problem((*place, "request", "method"), f"{request.method!r} is not the endpoint's method", hint)
    yield from _normalised((*place, "endpoint", "path"), path, endpoint_path)
    template = path
    if request.template is not None:
        template = request.template
        where = (*place, "request", "template")
        yield from _normalised(where, template, request_target)
        if _quietly(endpoint_path, template) not in (None, path):
            yield _problem(where, "this is not the endpoint's path", "approval patterns see endpoint.path")
        for pair in template.partition("?")[2].split("&"):
            name = unquote_plus(pair.partition("=")[0])
            if is_method_key(name):
                yield from _overriding(where, name, "")
    yield from _placeholders((*place, "request", "path"), placeholders(template), request.path)


def _normalised(place: Place, path: str, normalise: Any) -> Iterator[Problem]:
    try:
        right = normalise(path)
    except ValueError as error:
        yield _problem(place, str(error))
        return
    if right != path:
        yield _problem(place, "the path is not in its normal form", f"write {right}")


def _quietly(normalise: Any, path: str) -> Any:
    try:
        return normalise(path)
    except ValueError:
        return None


def _placeholders(place: Place, names: list[str], leaves: Iterable[Leaf]) -> Iterator[Problem]:
    filled = [leaf.name for leaf in leaves]
    for index, name in enumerate(filled):
        if name not in names:
            yield _problem((*place, index, "name"), f"the path has no {{{name}}}" + did_you_mean(name, names))
        elif name in filled[:index]:
            yield _problem((*place, index, "name"), f"{{{name}}} of the path is filled twice")
    for name in dict.fromkeys(names):
        if name not in filled:
            yield _problem(place, f"nothing fills {{{name}}} of the path", "add a leaf of that name")


def _leaf(place: Place, location: str, leaf: Leaf) -> Iterator[Problem]:
    if location == "header":
        if not _TOKEN.fullmatch(leaf.name):
            yield _problem((*place, "name"), f"{leaf.name!r} is no header name")
        elif leaf.name.lower() in OWNED_HEADERS:
            hint = "it is set by the body's media type, by credentials or by the client"
            yield _problem((*place, "name"), f"the header {leaf.name} cannot be a leaf", hint)
    if is_method_header(leaf.name) if location == "header" else is_method_key(leaf.name):
        yield from _overriding((*place, "name"), leaf.name, leaf.value)
    legal = STYLES[location][1] if location in STYLES else frozenset()  # a whole query string has none
    if leaf.style is not None and leaf.style not in legal:
        yield _style((*place, "style"), f"{leaf.style!r} is no style of a {location} parameter", legal)
    if leaf.media_type is not None:
        yield from _media_type((*place, "mediaType"), leaf.media_type)
    if isinstance(leaf.value, str):
        yield from _constant((*place, "value"), location, leaf.value)


def _overriding(place: Place, name: str, value: Any) -> Iterator[Problem]:
    """A constant that has a server use another method; what a model writes there is refused at each call."""
    try:
        constant = not arguments_in(value)
    except (TemplateFault, RecursionError):  # said of its value
        return
    if constant:
        yield _problem(place, f"{name} would have some servers use another method than the endpoint's", _METHOD)


def _constant(place: Place, location: str, value: str) -> Iterator[Problem]:
    """What a person wrote into a path or header must not lead elsewhere or start another header."""
    if location == "path" and set(re.split(r"[/\\]", value)) & {"", ".", ".."}:
        yield _problem(place, "the value has an empty, `.` or `..` segment, which leads to another endpoint")
    elif location in ("header", "cookie") and re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
        yield _problem(place, "the value has a control character, which no header can hold")


def _body(place: Place, body: Body) -> Iterator[Problem]:
    yield from _media_type((*place, "mediaType"), body.media_type)
    for key, value in body.value.items() if isinstance(body.value, dict) else ():
        if is_method_key(str(key)):
            yield from _overriding((*place, "value", str(key)), str(key), value)
    for name, encoding in body.encoding.items():
        where = (*place, "encoding", name)
        legal = STYLES["query"][1]
        if encoding.style is not None and encoding.style not in legal:
            yield _style((*where, "style"), f"{encoding.style!r} is no style of a form field", legal)
        if encoding.content_type is not None:
            for part in encoding.content_type.split(","):
                yield from _media_type((*where, "contentType"), part.strip(" "))


def _style(place: Place, message: str, legal: frozenset[str]) -> Problem:
    return _problem(place, message, f"allowed: {', '.join(sorted(legal))}" if legal else "leave it out")


def _media_type(place: Place, text: str) -> Iterator[Problem]:
    if not MEDIA_TYPE.fullmatch(text):
        yield _problem(place, f"{text!r} is no media type", "as in application/json")


def _security(place: Place, tool: Tool, schemes: dict[str, dict[str, Any]]) -> Iterator[Problem]:
    for index, alternative in enumerate(tool.request.security):
        for position, name in enumerate(alternative):
            if name not in schemes:
                message = f"the security scheme {name!r} is not declared" + did_you_mean(name, schemes)
                yield _problem((*place, index, position), message, "declare it in securitySchemes")
