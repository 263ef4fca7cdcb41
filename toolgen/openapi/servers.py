"""Servers and security of a document, on each of the levels that can have them.

Source: OpenAPI 3.2 "Server Object", "Security Scheme Object", "Security Requirement Object".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from toolgen.openapi import upgrade
from toolgen.openapi.diagnostics import Diagnostic
from toolgen.openapi.model import Server, ServerVariable
from toolgen.openapi.references import Dangling, Place, References
from toolgen.openapi.text import one_line

VARIABLE = re.compile(r"\{([^{}]+)\}")
_CREDENTIALS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://|//)[^/?#@]*@")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f\\{}]")
_SCHEME_KEYS = ("type", "scheme", "in", "name", "bearerFormat", "openIdConnectUrl", "flows")


def read_servers(place: Place, diagnostics: list[Diagnostic]) -> list[Server]:
    """The usable servers of a `servers` array; URLs are relative to where its document was read.

    `$self` has no part in it: it names the document, and the API may well be elsewhere.
    """
    if not isinstance(place.node, list):
        return []
    read_from = place.resource.read_from
    found = [_server(place.child(index), read_from, diagnostics) for index in range(len(place.node))]
    return [server for server in found if server is not None]


def _server(place: Place, document_uri: str | None, diagnostics: list[Diagnostic]) -> Server | None:
    node = place.node
    url = node.get("url") if isinstance(node, dict) else None
    if not isinstance(url, str):
        diagnostics.append(Diagnostic("note", "a server without a `url` is left out", str(place)))
        return None
    url = _resolved(url.strip(), document_uri)
    found: list[Diagnostic] = []
    url = _without_credentials(url, place, found)
    variables = _variables(url, node.get("variables"), place, found)
    fault = server_fault(expanded(url, {name: default for name, (default, _) in variables.items()}))
    if fault:
        diagnostics.append(Diagnostic("note", f"a server is left out: {fault}", str(place)))
        return None
    diagnostics += found
    return Server(url, variables)


def _without_credentials(url: str, place: Place, found: list[Diagnostic]) -> str:
    """A server URL without user name and password: a toolset is kept in git, credentials are not."""
    bare = _CREDENTIALS.sub(r"\1", url)
    if bare != url:
        message = "a server's user name and password are left out; credentials belong to security schemes"
        found.append(Diagnostic("degraded", message, str(place)))
    return bare


def server_fault(url: str) -> str:
    """Why no request can go to a URL (its variables filled in), or nothing."""
    scheme = url.partition(":")[0] if ":" in url.partition("/")[0] else ""
    if scheme and scheme.lower() not in ("http", "https"):
        return f"{one_line(scheme, 20)!r} URLs are not called"
    try:
        parts = urlsplit(url)
        whole = not parts.scheme or (bool(parts.hostname) and parts.port != 0)
    except ValueError:
        whole = False
    return "" if whole and not _NOT_IN_URL.search(url) else f"{one_line(url, 60)!r} is no URL"


def _resolved(url: str, document_uri: str | None) -> str:
    if not document_uri or not document_uri.lower().startswith(("http://", "https://")):
        return url
    base = re.split(r"[?#]", document_uri, maxsplit=1)[0]  # its query may be a credential
    try:
        return url if VARIABLE.match(url) else urljoin(base, url)
    except ValueError:
        return url  # left out when it is looked at as a whole


def expanded(url: str, values: Mapping[str, str | None]) -> str:
    """A server URL with its variables replaced; one without a value becomes `x`."""
    return VARIABLE.sub(lambda match: "x" if (value := values.get(match[1])) is None else value, url)


def _variables(url: str, declared: Any, place: Place, diagnostics: list[Diagnostic]) -> dict[str, ServerVariable]:
    found: dict[str, ServerVariable] = {}
    for name in dict.fromkeys(VARIABLE.findall(url)):
        node = declared.get(name) if isinstance(declared, dict) else None
        node = node if isinstance(node, dict) else {}
        values = node.get("enum")
        enum = tuple(str(v) for v in values if isinstance(v, str | int | float)) if isinstance(values, list) else ()
        default = node.get("default", enum[0] if enum else None)
        if not isinstance(default, str | int | float):
            message = f"the server variable {one_line(name, 60)!r} has no default; it must be given to call anything"
            diagnostics.append(Diagnostic("degraded", message, str(place)))
            found[name] = (None, enum)
            continue
        if enum and str(default) not in enum:
            message = f"the default of the server variable {one_line(name, 60)!r} is none of its values; it is added"
            diagnostics.append(Diagnostic("note", message, str(place)))
            enum = (str(default), *enum)
        found[name] = (str(default), enum)
    return found


def old_servers(root: Place, schemes: Any, diagnostics: list[Diagnostic]) -> list[Server]:
    """The servers of a 2.0 document, for the schemes an operation or the document names."""
    found = []
    for node in upgrade.servers(root.node, schemes, root.resource.read_from):
        url = _without_credentials(_resolved(node["url"], root.resource.read_from), root.child("host"), diagnostics)
        if fault := server_fault(url):
            diagnostics.append(Diagnostic("note", f"a server is left out: {fault}", str(root.child("host"))))
        else:
            found.append(Server(url))
    return found


def read_security_schemes(references: References, diagnostics: list[Diagnostic]) -> dict[str, dict[str, Any]]:
    """Every security scheme by name, in 3.x's words and without its prose."""
    root = references.root
    place = Place(root.tree, root, "")
    if root.dialect == "2.0":
        group = place.child("securityDefinitions")
    else:
        group = place.child("components").child("securitySchemes")
    found: dict[str, dict[str, Any]] = {}
    for name in group.node if isinstance(group.node, dict) else ():
        try:
            node = references.follow(group.child(name)).node
        except Dangling as error:
            diagnostics.append(Diagnostic("degraded", f"a security scheme is left out: {error}", str(group)))
            continue
        if not isinstance(node, dict) or not isinstance(node.get("type"), str):
            diagnostics.append(Diagnostic("degraded", "a security scheme without a type is left out", str(group)))
            continue
        node = upgrade.security_scheme(node) if root.dialect == "2.0" else node
        found[name] = {key: node[key] for key in _SCHEME_KEYS if key in node}
    return found


def read_security(value: Any) -> tuple[tuple[str, ...], ...] | None:
    """A `security` array as an OR of ANDs of scheme names; None where there is no array.

    A bare name is read as a requirement of that scheme: without it the call would be anonymous.
    """
    if not isinstance(value, list):
        return None
    found = [(a,) if isinstance(a, str) else tuple(a) for a in value if isinstance(a, dict | str)]
    return None if value and not found else tuple(found)
