"""References: which object a `$ref` means, in this document or in another.

A target is identified by (resource, JSON pointer), a resource by its absolute URI, so two files
can both have a `Pet` and nothing is merged by its name. Other documents are read when a reference
into them is followed, through the loader's rules.

Source: RFC 6901 (JSON Pointer), RFC 3986 section 5 (relative references), OpenAPI 3.2 `$self`,
JSON Schema 2020-12 core sections 8.2.1 and 8.2.2 (`$id`, `$anchor`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin

from toolgen.errors import SourceError
from toolgen.openapi.source import Document, Loader
from toolgen.openapi.version import Dialect, declared_dialect

MAX_HOPS = 100


class Dangling(Exception):
    """A reference leads nowhere; the message says why."""


@dataclass(slots=True, eq=False)
class Resource:
    """One document: its base URI (None for text without one), its tree and the dialect of its schemas.

    `label` is what diagnostics put before a pointer: empty for the root document. `read_from` is
    where the document was read, whatever it calls itself. A schema with an `$id` is a resource
    inside another: `home` is that other one and where in it the schema stands.
    """

    uri: str | None
    tree: Any
    dialect: Dialect
    label: str
    read_from: str | None
    home: tuple[Resource, str] | None = None
    anchors: dict[str, tuple[Any, str]] | None = field(default=None)


class Place:
    """An object in a document. `pointer` is its JSON pointer without `#`, put together when asked for."""

    __slots__ = ("_above", "_pointer", "_token", "node", "resource")

    def __init__(self, node: Any, resource: Resource, pointer: str | None = "", above: Place | None = None) -> None:
        self.node = node
        self.resource = resource
        self._pointer = pointer
        self._above = above
        self._token: str | int = ""

    def __str__(self) -> str:
        return f"{self.resource.label}#{self.pointer}" if self.resource.label else self.pointer

    @property
    def pointer(self) -> str:
        if self._pointer is None:
            assert self._above is not None
            self._pointer = f"{self._above.pointer}/{escape(str(self._token))}"
        return self._pointer

    def child(self, *tokens: str | int) -> Place:
        """The place below, without following references; the node is MISSING if there is none."""
        place = self
        for token in tokens:
            below = Place(_step(place.node, token), place.resource, None, place)
            below._token = token
            place = below
        return place


class References:
    """Follows references from the root document."""

    def __init__(self, document: Document, dialect: Dialect, loader: Loader) -> None:
        self._loader = loader
        uri = _own_uri(document)
        self.root = Resource(uri, document.tree, dialect, "", document.uri)
        self._resources: dict[str, Resource] = {u: self.root for u in (uri, document.uri) if u}
        self._found: dict[tuple[int, str], Place] = {}
        self._resolving: set[tuple[int, str]] = set()

    def resolve(self, ref: str, resource: Resource) -> Place:
        """The place a reference means, one step: it may hold a reference itself. Raises Dangling."""
        key = (id(resource), ref)
        found = self._found.get(key)
        if found is not None:
            return found
        if key in self._resolving:
            raise Dangling(f"{ref!r} refers to itself")
        if len(self._resolving) > MAX_HOPS:
            raise Dangling(f"{ref!r} leads through more than {MAX_HOPS} references")
        self._resolving.add(key)
        try:
            address, _, fragment = ref.partition("#")
            target = resource if not address else self._resource(address, resource)
            found = self._found[key] = self._at(target, fragment, ref)
        except Dangling as fault:
            if resource.home is None:
                raise
            try:  # authors write an `$id` and go on to refer as if there were none
                found = self._found[key] = self.resolve(ref, resource.home[0])
            except Dangling:
                raise fault from None
        finally:
            self._resolving.discard(key)
        return found

    def within(self, node: dict[str, Any], resource: Resource) -> Resource:
        """The resource that a schema with an `$id` is, which the references inside are relative to."""
        own = node["$id"]
        if not isinstance(own, str) or not own or own.startswith("#") or node is resource.tree:
            return resource
        try:
            uri = _joined(resource.uri, own)
        except Dangling:
            return resource
        known = self._resources.get(uri)
        if known is None:
            embedded = self._anchors(resource).get(uri)
            if embedded is None or embedded[0] is not node:
                return resource
            known = self._resources[uri] = self._embedded(uri, embedded, resource)
        return known if known.tree is node else resource

    def follow(self, place: Place) -> Place:
        """The place itself, or where its chain of `$ref`s ends. Raises Dangling, also for a circle."""
        for _ in range(MAX_HOPS):
            ref = place.node.get("$ref") if place.node.__class__ is dict else None
            if ref.__class__ is not str:
                return place
            place = self.resolve(ref, place.resource)
        raise Dangling(f"{ref!r} refers to itself")

    def _resource(self, address: str, base: Resource) -> Resource:
        uri = _joined(base.uri, address)
        known = self._resources.get(uri)
        if known is None:
            home = next((r for r in (base, self.root) if uri in self._anchors(r)), None)
            if home is not None:
                known = self._embedded(uri, self._anchors(home)[uri], home)
            else:
                known = self._read(uri, address, base)
            self._resources[uri] = known
        return known

    @staticmethod
    def _embedded(uri: str, found: tuple[Any, str], home: Resource) -> Resource:
        label = f"{home.label}#{found[1]}"
        return Resource(uri, found[0], home.dialect, label, home.read_from, (home, found[1]))

    def _read(self, uri: str, address: str, base: Resource) -> Resource:
        if not base.read_from and ":" not in uri.partition("/")[0]:
            raise Dangling(f"{uri!r} is relative, and a document given as text or mapping has no place of its own")
        try:
            document = self._fetch(uri, base)
        except Dangling as refused:
            # What a document calls itself (`$self`) need not be where it and its neighbours were found.
            beside = _joined(base.read_from, address)
            if beside == uri or not base.read_from:
                raise
            try:
                document = self._fetch(beside, base)
            except Dangling:
                raise refused from None
        known = self._resources.get(document.uri or uri)
        if known is not None:  # redirected to what was read before
            return known
        dialect = declared_dialect(document.tree) or base.dialect
        label = _label(document.uri or uri, self.root.read_from)
        made = Resource(_own_uri(document) or uri, document.tree, dialect, label, document.uri or uri)
        self._resources[document.uri or uri] = made
        if made.uri:
            self._resources.setdefault(made.uri, made)
        return made

    def _fetch(self, uri: str, base: Resource) -> Document:
        try:
            return self._loader.fetch(uri, base=base.read_from, root=self.root.read_from)
        except SourceError as error:
            raise Dangling(str(error)) from None

    def _at(self, resource: Resource, fragment: str, ref: str) -> Place:
        if fragment in ("", "/"):
            return Place(resource.tree, resource, "")
        if not fragment.startswith("/"):
            anchored = self._anchors(resource).get("#" + unquote(fragment))
            if anchored is None:
                raise Dangling(f"{ref!r} leads nowhere: there is no anchor {fragment!r}")
            return Place(anchored[0], resource, anchored[1])
        place = Place(resource.tree, resource, "")
        for index, raw in enumerate(fragment[1:].split("/")):
            if index:  # a pointer may lead through an object that is itself a reference
                place = self.follow(place)
            token = unescape(unquote(raw))
            below = place.child(token)
            if below.node is MISSING and token != unescape(raw):
                below = place.child(unescape(raw))
            if below.node is MISSING:
                raise Dangling(
                    f"{ref!r} leads nowhere: {repr(str(place)) if str(place) else 'the document'} has no {token!r}"
                )
            place = below
        return place

    def _anchors(self, resource: Resource) -> dict[str, tuple[Any, str]]:
        if resource.anchors is None:
            resource.anchors = _find_anchors(resource)
        return resource.anchors


class _Missing:
    """Stands for an object that is not there, where None would be a value."""


MISSING = _Missing()


def _step(node: Any, token: str | int) -> Any:
    if node.__class__ is dict:
        return node.get(token, MISSING)
    if node.__class__ is list:
        index = token if token.__class__ is int else int(token) if str(token).isascii() and str(token).isdigit() else -1
        return node[index] if 0 <= index < len(node) else MISSING
    return MISSING


def _find_anchors(resource: Resource) -> dict[str, tuple[Any, str]]:
    """What a document names by `$id` (a URI) and `$anchor` (`#name`); names of its own before those of schemas inside."""
    own: dict[str, tuple[Any, str]] = {}
    inner: dict[str, tuple[Any, str]] = {}
    waiting: list[tuple[Any, str, str, dict[str, tuple[Any, str]]]] = [(resource.tree, "", resource.uri or "", own)]
    while waiting:
        node, pointer, base, names = waiting.pop()
        if isinstance(node, dict):
            identifier = node.get("$id")
            if isinstance(identifier, str) and identifier and not identifier.startswith("#"):
                try:
                    base = _joined(base, identifier)
                except Dangling:
                    pass
                else:
                    own[base] = node, pointer
                    names = inner if pointer else own
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(keyword), str):
                    names["#" + node[keyword]] = node, pointer
            waiting.extend((value, f"{pointer}/{escape(key)}", base, names) for key, value in node.items())
        elif isinstance(node, list):
            waiting.extend((value, f"{pointer}/{index}", base, names) for index, value in enumerate(node))
    return {**inner, **own}


def _own_uri(document: Document) -> str | None:
    """What a document calls itself (3.2, `$self`), or else where it was read."""
    own = document.tree.get("$self") if isinstance(document.tree, dict) else None
    if not isinstance(own, str) or not own:
        return document.uri
    try:
        return _joined(document.uri, own)
    except Dangling:
        return document.uri


def _joined(base: str | None, reference: str) -> str:
    """A reference resolved against a base URI (RFC 3986, section 5), without fragment. Raises Dangling."""
    try:
        uri = urldefrag(urljoin(base or "", reference)).url
    except ValueError:
        raise Dangling(f"{reference!r} is no URI") from None
    # A file's URI has its name percent-encoded, references to it often have not.
    return quote(uri, safe="%/:?@!$&'()*+,;=~") if uri.startswith("file:") else uri


def _label(uri: str, root: str | None) -> str:
    """A document's URI relative to the root document's folder, so that it is the same on every machine."""
    folder = root.rpartition("/")[0] + "/" if root else ""
    return uri[len(folder) :] if folder and uri.startswith(folder) else uri.rpartition("/")[2] or uri


def pointer_below(place: Place, node: Any) -> str:
    """Where a node stands below a place, found by its identity; the place itself if it is not there."""
    waiting = [(place.node, "")]
    while waiting:
        here, pointer = waiting.pop()
        if here is node:
            return str(Place(None, place.resource, place.pointer + pointer))
        if isinstance(here, dict):
            waiting.extend((value, f"{pointer}/{escape(key)}") for key, value in here.items())
        elif isinstance(here, list):
            waiting.extend((value, f"{pointer}/{index}") for index, value in enumerate(here))
    return str(place)


def escape(token: str) -> str:
    """A key as a JSON pointer token (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """A JSON pointer token as the key it means (RFC 6901, section 4)."""
    return token.replace("~1", "/").replace("~0", "~")
