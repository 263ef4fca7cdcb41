"""Parameters and request bodies of one operation, from any version, in the shape of 3.1.

Source: OpenAPI 3.2 "Parameter Object", "Request Body Object", "Media Type Object", "Encoding
Object"; OpenAPI 2.0 "Parameter Object".
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from toolgen.openapi import upgrade
from toolgen.openapi.diagnostics import Diagnostic, Level, Unusable
from toolgen.openapi.encoding import MEDIA_TYPE, read_encoding
from toolgen.openapi.keys import unknown_keys
from toolgen.openapi.model import MediaType, Parameter, ParameterLocation, RequestBody
from toolgen.openapi.references import Dangling, Place, References
from toolgen.openapi.text import one_line

# Location -> (default style, styles allowed). OpenAPI 3.2, "Style Values".
STYLES: dict[str, tuple[str, frozenset[str]]] = {
    "path": ("simple", frozenset({"simple", "label", "matrix"})),
    "query": ("form", frozenset({"form", "spaceDelimited", "pipeDelimited", "deepObject"})),
    "header": ("simple", frozenset({"simple"})),
    "cookie": ("form", frozenset({"form", "cookie"})),
}
LOCATIONS = frozenset({*STYLES, "querystring"})
_MEANT = (("json", "application/json"), ("urlencoded", upgrade.FORM), ("form-data", upgrade.MULTIPART))

KnownParameter = tuple[tuple[str, str], Parameter, list[Diagnostic]]


class KnownParameters:
    """Parameter Objects that were read, so that none is read twice.

    Operations share them by reference, and repeat them letter by letter far more often: nine of ten
    inline ones in public documents. One that had faults is known by its node only, since its
    diagnostics say where it stands.
    """

    def __init__(self) -> None:
        self._by_node: dict[int, KnownParameter] = {}  # a document's nodes live as long as it is read
        self._by_content: dict[tuple[int, bytes], KnownParameter] = {}

    def get(self, place: Place) -> KnownParameter | None:
        """What was read of this object or one written like it: (location and name), parameter, diagnostics."""
        known = self._by_node.get(id(place.node))
        if known is None:
            twin = self._by_content.get((id(place.resource), marshal.dumps(place.node, 2)))
            if twin is not None:
                known = self._by_node[id(place.node)] = twin[0], twin[1].at(place), []
        return known

    def add(self, place: Place, read: KnownParameter) -> None:
        """Remember what was read at a place."""
        self._by_node[id(place.node)] = read
        if not read[2]:
            self._by_content[id(place.resource), marshal.dumps(place.node, 2)] = read


class OperationParts:
    """Reads what a request of one operation consists of; faults are appended to `diagnostics`."""

    def __init__(self, references: References, diagnostics: list[Diagnostic], known: KnownParameters) -> None:
        self._references = references
        self.diagnostics = diagnostics
        self._known = known

    def say(self, level: Level, message: str, where: Place | str) -> None:
        self.diagnostics.append(Diagnostic(level, message, str(where)))

    def follow(self, place: Place, what: str) -> Place | None:
        """Where a reference leads, as an object; None with a diagnostic if it leads nowhere."""
        if place.node.__class__ is dict and "$ref" not in place.node:
            return place
        try:
            found = self._references.follow(place)
        except Dangling as error:
            self.say("degraded", f"{what} is left out: {error}", place)
            return None
        if not isinstance(found.node, dict):
            self.say("degraded", f"{what} is left out: it is no object", place)
            return None
        return found

    # Parameters

    def parameters(self, lists: list[Place]) -> tuple[list[Parameter], list[Place]]:
        """The parameters of these lists, a later list overriding an earlier one by (name, in).

        The second value holds 2.0's `body` and `formData` parameters, merged the same way.
        """
        merged: dict[tuple[str, str], Place] = {}
        for index, group in enumerate(lists):
            seen: set[tuple[str, str]] = set()
            for place in self._members(group):
                known = self._known.get(place)
                key = known[0] if known is not None else self._identity(place)
                if key is None:
                    continue
                if key in seen:
                    self.say("note", f"the {key[0]} parameter {one_line(key[1], 60)!r} is declared twice", place)
                    continue
                seen.add(key)
                if index and key[0] == "body":  # 2.0 has one body whatever its name
                    merged = {k: v for k, v in merged.items() if k[0] != "body"}
                merged[key] = place
        bodies = [place for (location, _), place in merged.items() if location in ("body", "formdata")]
        return [self._parameter(key, place) for key, place in merged.items() if key[0] in LOCATIONS], bodies

    def _members(self, group: Place) -> Iterator[Place]:
        node = group.node
        if isinstance(node, dict) and isinstance(node.get("$ref"), str) and "name" not in node:
            try:
                group = self._references.follow(group)
            except Dangling as error:
                self.say("degraded", f"the parameters are left out: {error}", group)
                return
            node = group.node
        if isinstance(node, dict) and "name" in node:
            self.say("note", "`parameters` is an array, this is an object; it is read as its only member", group)
            yield group
        elif isinstance(node, list):
            for index in range(len(node)):
                place = self.follow(group.child(index), "a parameter")
                if place is not None:
                    yield place
        elif isinstance(node, dict | str | int | float):
            self.say("degraded", "`parameters` is an array, this is not; no parameter is read", group)

    def _identity(self, place: Place) -> tuple[str, str] | None:
        name, location = place.node.get("name"), place.node.get("in")
        where = location.strip().lower() if isinstance(location, str) else ""
        if where not in LOCATIONS and where not in ("body", "formdata"):
            self.say("degraded", f"a parameter is left out: `in: {one_line(str(location), 30)}` is no location", place)
            return None
        if isinstance(name, int | float) and not isinstance(name, bool):
            name = str(name)
        if where == "body" and not isinstance(name, str):
            name = "body"
        if not isinstance(name, str) or not name:
            self.say("degraded", "a parameter is left out: it has no `name`", place)
            return None
        return where, name.lower() if where == "header" else name

    def _parameter(self, key: tuple[str, str], place: Place) -> Parameter:
        """A Parameter Object, read once however many operations use it."""
        known = self._known.get(place)
        if known is None:
            before = len(self.diagnostics)
            found = self._read_parameter(key, place)
            self._known.add(place, (key, found, self.diagnostics[before:]))
            return found
        self.diagnostics.extend(known[2])
        return known[1]

    def _read_parameter(self, key: tuple[str, str], place: Place) -> Parameter:
        node = place.node
        for said in unknown_keys(node, "Parameter", place.resource.dialect):
            self.say("note", said, place)
        if "schema" not in node and "content" not in node and (place.resource.dialect == "2.0" or "type" in node):
            node, lost = upgrade.parameter(node, place.resource.dialect)
            if lost:
                self.say("degraded", lost, place)
            place = Place(node, place.resource, place.pointer)
        location = cast("ParameterLocation", key[0])
        found = Parameter(
            name=str(node["name"]),
            location=location,
            required=location == "path" or node.get("required") is True or node.get("required") == "true",
            schema=place.child("schema") if isinstance(node.get("schema"), dict | bool) else None,
            place=place,
            description=_text(node, "description"),
            allow_reserved=node.get("allowReserved") is True,
            deprecated=node.get("deprecated") is True,
            examples=_examples(node),
        )
        if location == "path" and node.get("required") is not True:
            self.say("note", f"the path parameter {one_line(found.name, 60)!r} is not marked as required; it is", place)
        if isinstance(node.get("content"), dict):
            self._by_content(found, place.child("content"))
        elif location == "querystring":
            found.media_type = upgrade.FORM
        else:
            self._styled(found, node, place)
        return found

    def _styled(self, found: Parameter, node: dict[str, Any], place: Place) -> None:
        default, allowed = STYLES[found.location]
        style = node.get("style", default)
        if not isinstance(style, str) or style not in allowed:
            self.say("degraded", f"style {one_line(str(style), 30)!r} is not for {found.location} parameters", place)
            style = default
        explode = node.get("explode")
        found.style = style
        found.explode = explode if isinstance(explode, bool) else style in ("form", "cookie", "deepObject")
        if found.schema is None:
            self.say("note", f"the parameter {one_line(found.name, 60)!r} has no schema; it is read as text", place)

    def _by_content(self, found: Parameter, content: Place) -> None:
        media = self.content(content)
        if not media and found.location == "querystring":
            found.media_type = upgrade.FORM
            return
        if not media:
            self.say("degraded", f"the parameter {one_line(found.name, 60)!r} has no media type; it is text", content)
            found.style, found.explode = STYLES.get(found.location, ("form", frozenset()))[0], False
            return
        first = next((m for m in media if is_json(m.name)), media[0])
        found.media_type, found.schema = first.name, first.schema
        if "*" in first.name.partition(";")[0]:  # a range is nothing a value can be written as
            found.media_type = "text/plain" if self._is_text(first.schema) else "application/json"
        found.examples = found.examples or first.examples

    def _is_text(self, schema: Place | None) -> bool:
        try:
            node = self._references.follow(schema).node if schema is not None else None
        except Dangling:
            return False
        return isinstance(node, dict) and node.get("type") == "string"

    # Bodies

    def body(self, place: Place) -> RequestBody | None:
        """A Request Body Object at a place that has one, or None with a diagnostic."""
        found = self.follow(place, "the request body")
        if found is None:
            if isinstance(place.node, dict) and isinstance(place.node.get("$ref"), str):
                reason = self.diagnostics[-1].message
                raise Unusable(f"{reason}; without it nothing right can be sent", str(place))
            return None
        for said in unknown_keys(found.node, "Request Body", "3.1"):
            self.say("note", said, found)
        content = self.content(found.child("content"))
        if not content:
            self.say("degraded", "the request body declares no media type; it is read as JSON", found)
            content = [MediaType("application/json", None)]
        required = found.node.get("required") is True
        return RequestBody(content, required, str(found), _text(found.node, "description"))

    def content(self, place: Place, *, answer: bool = False) -> list[MediaType]:
        """The media types of a `content` object, in its order; references are followed, on the object too.

        A name that is no media type is read as the one it resembles; in an answer nothing hangs on
        it, and it is left out.
        """
        if not isinstance(place.node, dict):
            return []
        if isinstance(place.node.get("$ref"), str):
            found = self.follow(place, "`content`")
            return self.content(found, answer=answer) if found is not None else []
        read = (self._media_type(name, place.child(name), answer) for name in place.node)
        return [media for media in read if media is not None]

    def _media_type(self, name: str, place: Place, answer: bool) -> MediaType | None:
        found = self.follow(place, "a media type") if place.node is not None else Place({}, place.resource, str(place))
        if found is None:
            return None
        node = found.node
        if name != "application/json" and not MEDIA_TYPE.fullmatch(name.strip()):
            bare = name.partition(";")[0].strip()
            meant = (
                bare if MEDIA_TYPE.fullmatch(bare) else next((m for part, m in _MEANT if part in bare.lower()), None)
            )
            if meant is None and not isinstance(node.get("schema"), dict):
                return None  # `examples` and the like beside the media types
            if answer:
                self.say("note", f"{one_line(name, 60)!r} is no media type; it is left out of the answers", place)
                return None
            meant = meant or "application/json"
            self.say("degraded", f"{one_line(name, 60)!r} is no media type; it is read as {meant}", place)
            name = meant
        return MediaType(
            name=name.strip(),
            schema=found.child("schema") if isinstance(node.get("schema"), dict | bool) else None,
            encoding=read_encoding(node["encoding"], partial(self.say, "degraded", where=place))
            if "encoding" in node
            else {},
            examples=_examples(node),
        )

    def old_body(self, places: list[Place], consumes: list[str]) -> RequestBody | None:
        """2.0's `body` or `formData` parameters as one Request Body Object."""
        if not places:
            return None
        whole = next((place for place in places if str(place.node.get("in")).strip().lower() == "body"), None)
        if whole is not None:
            if len(places) > 1:
                self.say("degraded", "a body and form fields cannot both be sent; the body is", whole)
            node, place = upgrade.body(whole.node, consumes), whole
        else:
            node, place = upgrade.form([p.node for p in places], consumes), places[0]
        content = self.content(Place(node["content"], place.resource, place.pointer))
        return RequestBody(content, node.get("required") is True, str(place), _text(node, "description"))


def is_json(media_type: str) -> bool:
    """Whether a media type is of the JSON family (RFC 6839 for `+json`)."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence in ("application/json", "text/json") or essence.endswith("+json")


def _text(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _examples(node: dict[str, Any]) -> list[Any]:
    """`example`, or the values of `examples` (a map of Example Objects, or a list)."""
    if "example" in node:
        return [node["example"]]
    found = node.get("examples", node.get("x-example"))
    if isinstance(found, dict):
        return [v["value"] for v in found.values() if isinstance(v, dict) and "value" in v]
    return list(found) if isinstance(found, list) else []
