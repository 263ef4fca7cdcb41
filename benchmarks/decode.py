"""Reads a request back by the document alone: an independent decoder, which imports nothing of toolgen.

Written from the OpenAPI Specification ("Style Values", "Encoding Object", appendices C to E; 2.0's
`collectionFormat`), RFC 6570, RFC 7578 and the URL standard. What the wire leaves open (text has no types,
one item looks like a text) gives several readings.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from _documents import read

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
OLD_STYLES = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
Pairs = list[tuple[str, str]]


class Undecodable(Exception):
    """The request does not follow the document; the message says where."""


@dataclass(frozen=True)
class Text:
    """A text of the wire and the types its schema allows."""

    text: str
    types: frozenset[str]


@dataclass(frozen=True)
class Json:
    """A value that was JSON on the wire."""

    value: Any


@dataclass(frozen=True)
class Bytes:
    """Bytes, with what a multipart part says of them."""

    data: bytes
    filename: str | None = None
    content_type: str | None = None


@dataclass(frozen=True)
class Node:
    """Something in a document, and the file it is in."""

    value: Any
    path: Path


@dataclass
class Parameter:
    """A Parameter Object with its defaults filled in."""

    name: str
    location: str
    style: str
    explode: bool
    schema: Node
    media_type: str = ""


@dataclass
class Decoded:
    """The readings of each parameter by (location, name) and of the body, the likeliest first."""

    parameters: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    body: list[Any] = field(default_factory=list)


class Decoder:
    """Reads requests of one document."""

    def __init__(self, path: Path, tree: Any | None = None) -> None:
        self.root = Node(read(path.read_bytes())[0] if tree is None else tree, path)
        self._files: dict[Path, Any] = {path: self.root.value}
        self._types: dict[tuple[int, int], frozenset[str]] = {}
        self.old = "swagger" in self.root.value

    def decode(
        self, pointer: str, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> Decoded:
        """What the operation at a pointer is given by a request. Raises Undecodable."""
        item, operation, template = self._operation(pointer)
        parameters, old_body = self._parameters(item, operation)
        found = Decoded()
        parts = urlsplit(url)
        for location, pairs in (
            ("query", _pairs(parts.query, "&")),
            ("cookie", [p for name, text in headers if name.lower() == "cookie" for p in _pairs(text, "; ")]),
        ):
            there = [p for p in parameters if p.location == location]
            for parameter in there:
                self._keep(found, parameter, self._query(parameter, pairs, there))
        values = self._path_values(template, parts.path)
        for parameter in parameters:
            if parameter.location == "path" and parameter.name in values:
                self._keep(found, parameter, self._path(parameter, values[parameter.name]))
            elif parameter.location == "header":
                texts = [text for name, text in headers if name.lower() == parameter.name.lower()]
                self._keep(found, parameter, self._simple(parameter, texts[0], ",", str) if texts else [])
            elif parameter.location == "querystring" and parts.query:
                self._keep(found, parameter, self._querystring(parameter, parts.query))
        if body is not None:
            found.body = self._body(operation, old_body, headers, body)
        return found

    @staticmethod
    def _keep(found: Decoded, parameter: Parameter, readings: list[Any]) -> None:
        name = parameter.name.lower() if parameter.location == "header" else parameter.name
        if readings:
            found.parameters[parameter.location, name] = readings

    # The document

    def follow(self, node: Node) -> Node:
        """Where a chain of references ends."""
        for _ in range(50):
            reference = node.value.get("$ref") if isinstance(node.value, dict) else None
            if not isinstance(reference, str):
                return node
            node = self._at(reference, node.path)
        raise Undecodable("a reference refers to itself")

    def _at(self, reference: str, path: Path) -> Node:
        name, _, pointer = reference.partition("#")
        if name:
            path = (path.parent / unquote(name)).resolve()
            if path not in self._files:
                self._files[path] = read(path.read_bytes())[0]
        here = Node(self._files[path], path)
        for token in pointer.split("/")[1:]:
            here = self.below(self.follow(here), unquote(token).replace("~1", "/").replace("~0", "~"))
        return here

    @staticmethod
    def below(node: Node, key: str) -> Node:
        value = node.value
        if isinstance(value, list):
            return Node(value[int(key)], node.path)
        return Node(value.get(key) if isinstance(value, dict) else None, node.path)

    def _operation(self, pointer: str) -> tuple[Node, Node, str]:
        _, _, path, *rest = (token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/"))
        item = self.below(self.below(self.root, "paths"), path)
        operation = item if isinstance(item.value, dict) and rest[0] in item.value else self.follow(item)
        if operation.value.get(rest[0]) is None:  # written in capitals
            rest[0] = next(key for key in operation.value if key.lower() == rest[0].lower())
        for token in rest:
            operation = self.below(operation, token)
        return item, self.follow(operation), path

    def _parameters(self, item: Node, operation: Node) -> tuple[list[Parameter], list[Node]]:
        merged: dict[tuple[str, str], Node] = {}
        for owner in (self.follow(item), item, operation):
            group = self.below(owner, "parameters")
            for index in range(len(group.value) if isinstance(group.value, list) else 0):
                node = self.follow(self.below(group, str(index)))
                if isinstance(node.value, dict) and "name" in node.value:
                    location = str(node.value.get("in")).lower()
                    name = str(node.value["name"])
                    merged[location, name.lower() if location == "header" else name] = node
        bodies = [node for (location, _), node in merged.items() if location in ("body", "formdata")]
        found = [
            self._parameter(location, n) for (location, _), n in merged.items() if location not in ("body", "formdata")
        ]
        return found, bodies

    def _parameter(self, location: str, node: Node) -> Parameter:
        value, name = node.value, str(node.value["name"])
        content = self.follow(self.below(node, "content"))
        if isinstance(content.value, dict) and content.value:
            names = list(content.value)
            media = next((n for n in names if _is_json(n)), names[0])
            schema = self.below(self.follow(self.below(content, media)), "schema")
            return Parameter(name, location, "", False, schema, media.partition(";")[0].strip().lower())
        default = "simple" if location in ("path", "header") else "form"
        if "schema" not in value and (self.old or "type" in value):
            style, explode = OLD_STYLES.get(value.get("collectionFormat", "csv"), ("form", False))
            style = "simple" if default == "simple" else style
            return Parameter(name, location, style, explode, node)
        style = value.get("style", default)
        allowed = {"path": "simple label matrix", "header": "simple", "cookie": "form cookie"}
        if style not in allowed.get(location, "form spaceDelimited pipeDelimited deepObject").split():
            style = default
        explode = value.get("explode")
        explode = explode if isinstance(explode, bool) else style in ("form", "cookie", "deepObject")
        return Parameter(name, location, style, explode, self.below(node, "schema"))

    # Schemas

    def types(self, schema: Node, depth: int = 0) -> frozenset[str]:
        """The types a schema allows; all where it does not say."""
        key = id(schema.value), depth
        if not isinstance(schema.value, dict) or depth > 12:
            return TYPES
        if key not in self._types:
            self._types[key] = self._types_of(schema, depth)
        return self._types[key]

    def _types_of(self, schema: Node, depth: int) -> frozenset[str]:
        value = schema.value
        if isinstance(value.get("$ref"), str):
            try:
                target = self._at(value["$ref"], schema.path)
            except (Undecodable, OSError, ValueError, KeyError, IndexError):
                return TYPES
            return self.types(target, depth + 1)
        kinds = value.get("type")
        named = {str(kind).lower() for kind in (kinds if isinstance(kinds, list) else [kinds] if kinds else [])}
        found = TYPES & named if named & TYPES else frozenset({"string"}) if "file" in named else TYPES
        found |= {"integer"} if "number" in found else set()
        if not named and "properties" in value:
            found = frozenset({"object"})
        elif not named and "items" in value:
            found = frozenset({"array"})
        for index in range(len(value.get("allOf") or ())):
            found &= self.types(self.below(self.below(schema, "allOf"), str(index)), depth + 1)
        for key in ("anyOf", "oneOf"):
            if value.get(key):
                group = self.below(schema, key)
                found &= frozenset().union(
                    *(self.types(self.below(group, str(i)), depth + 1) for i in range(len(value[key])))
                )
        return found or TYPES

    def member(self, schema: Node, key: str, name: str = "", depth: int = 0) -> Node:
        """The schema of an object's property (`properties`) or an array's items, through compositions."""
        node = schema if not isinstance(schema.value, dict) else self._safe(schema)
        nothing = Node(None, node.path)
        if not isinstance(node.value, dict) or depth > 12:
            return nothing
        found = self.below(node, key)
        if name:
            found = self.below(found, name)
        if isinstance(found.value, dict):
            return found
        for group in ("allOf", "anyOf", "oneOf"):
            for index in range(len(node.value.get(group) or ())):
                below = self.member(self.below(self.below(node, group), str(index)), key, name, depth + 1)
                if isinstance(below.value, dict):
                    return below
        extra = self.below(node, "additionalProperties")
        return extra if name and isinstance(extra.value, dict) else nothing

    def names(self, schema: Node, depth: int = 0) -> set[str]:
        """The names of an object's properties, through compositions."""
        node = self._safe(schema)
        if not isinstance(node.value, dict) or depth > 12:
            return set()
        found = set(node.value.get("properties") or ())
        for group in ("allOf", "anyOf", "oneOf"):
            for index in range(len(node.value.get(group) or ())):
                found |= self.names(self.below(self.below(node, group), str(index)), depth + 1)
        return found

    def _safe(self, schema: Node) -> Node:
        try:
            return self.follow(schema)
        except (Undecodable, OSError, ValueError, KeyError, IndexError):
            return Node(None, schema.path)

    def is_bytes(self, schema: Node, depth: int = 0) -> bool:
        """Whether a part is raw bytes (`format: binary`, 2.0's `file`, `contentMediaType` without an encoding)."""
        value = self._safe(schema).value
        if not isinstance(value, dict) or depth > 12:
            return False
        if value.get("format") == "binary" or value.get("type") == "file":
            return True
        if "contentMediaType" in value and "contentEncoding" not in value and value.get("type") in ("string", None):
            return not _is_textual(str(value["contentMediaType"]))
        node = self._safe(schema)
        inner = [self.below(node, "items")] if "items" in value else []
        for group in ("allOf", "anyOf", "oneOf"):
            inner += [self.below(self.below(node, group), str(i)) for i in range(len(value.get(group) or ()))]
        return any(self.is_bytes(one, depth + 1) for one in inner)

    # Styles

    def _query(self, parameter: Parameter, pairs: Pairs, all_of_them: list[Parameter]) -> list[Any]:
        decode: Callable[[str], str] = str if parameter.style == "cookie" else unquote
        own = [text for name, text in pairs if decode(name) == parameter.name]
        if parameter.media_type:
            return [self._content(parameter, unquote(own[0]))] if own else []
        if parameter.style == "deepObject":
            return self._deep(parameter, pairs, unquote)
        return self._delimited(parameter, own, pairs, decode, {p.name for p in all_of_them if p is not parameter})

    def _delimited(
        self, parameter: Parameter, own: list[str], pairs: Pairs, decode: Callable[[str], str], others: set[str]
    ) -> list[Any]:
        """Styles form, cookie, spaceDelimited and pipeDelimited, for each type the schema allows."""
        types = self.types(parameter.schema)
        between = {"spaceDelimited": " " if decode is str else r"%20|\+", "pipeDelimited": r"%7[Cc]|\|"}.get(
            parameter.style, ","
        )
        readings: list[Any] = []
        if "object" in types and parameter.explode and parameter.style in ("form", "cookie"):
            known = self.names(parameter.schema)
            members = [(decode(n), decode(t)) for n, t in pairs if decode(n) in known or decode(n) not in others]
            if members:
                readings.append({n: self._text(t, self.member(parameter.schema, "properties", n)) for n, t in members})
        elif "object" in types and own:
            words = [decode(word) for word in re.split(between, own[0])]
            if len(words) % 2 == 0:
                couples = zip(words[::2], words[1::2], strict=True)
                readings.append({n: self._text(t, self.member(parameter.schema, "properties", n)) for n, t in couples})
        if "array" in types and own:
            words = own if parameter.explode else re.split(between, own[0])
            readings.append([self._text(decode(word), self.member(parameter.schema, "items")) for word in words])
        if types - {"array", "object"} and len(own) == 1:
            readings.append(Text(decode(own[0]), types))
        return readings

    def _text(self, text: str, schema: Node) -> Text:
        return Text(text, self.types(schema))

    def _deep(self, parameter: Parameter, pairs: Pairs, decode: Callable[[str], str]) -> list[Any]:
        """`name[key][0]=value`: keys of objects, positions in arrays."""
        whole: Any = None
        for raw, text in pairs:
            name = decode(raw)
            if not name.startswith(parameter.name + "[") or not name.endswith("]"):
                if name == parameter.name:
                    return [self._text(decode(text), parameter.schema)]
                continue
            keys = name[len(parameter.name) + 1 : -1].split("][")
            whole = self._put(whole, keys, decode(text), parameter.schema)
        return [] if whole is None else [whole]

    def _put(self, whole: Any, keys: list[str], text: str, schema: Node) -> Any:
        if not keys:
            return self._text(text, schema)
        key, *rest = keys
        types = self.types(schema)
        if "array" in types and key.isdigit() and not ("object" in types and isinstance(whole, dict)):
            whole = [] if whole is None else whole
            index = int(key)
            whole += [None] * (index + 1 - len(whole))
            whole[index] = self._put(whole[index], rest, text, self.member(schema, "items"))
            return whole
        whole = {} if whole is None else whole
        whole[key] = self._put(whole.get(key), rest, text, self.member(schema, "properties", key))
        return whole

    def _path_values(self, template: str, path: str) -> dict[str, str]:
        template = re.sub(r"^https?://[^/]*", "", template.strip(), flags=re.IGNORECASE)
        pieces = re.split(r"\{([^{}]+)\}", re.split(r"[?#]", template)[0])
        pattern = "".join("([^/]*?)" if i % 2 else re.escape(unquote(p)) for i, p in enumerate(pieces))
        # Literal text may be spelled in several ways: compared decoded, values as they are.
        match = re.fullmatch("(?:.*?)" + pattern, _decoded_but_values(path))
        if match is None:
            raise Undecodable(f"the path {path!r} does not match {template!r}")
        return {name: text.translate(_BACK) for name, text in zip(pieces[1::2], match.groups(), strict=True)}

    def _path(self, parameter: Parameter, text: str) -> list[Any]:
        if parameter.media_type:
            return [self._content(parameter, unquote(text))]
        if parameter.style == "label":
            return self._simple(parameter, text[1:], "." if parameter.explode else ",", unquote)
        if parameter.style != "matrix":
            return self._simple(parameter, text, ",", unquote)
        pairs = _pairs(text[1:], ";")
        own = [value for name, value in pairs if unquote(name) == parameter.name]
        return self._delimited(
            Parameter(parameter.name, "path", "form", parameter.explode, parameter.schema), own, pairs, unquote, set()
        )

    def _simple(self, parameter: Parameter, text: str, between: str, decode: Callable[[str], str]) -> list[Any]:
        if parameter.media_type:
            return [self._content(parameter, text)]
        types = self.types(parameter.schema)
        words = text.split(between)
        readings: list[Any] = []
        if "object" in types:
            couples = (
                [tuple(word.split("=", 1)) for word in words]
                if parameter.explode
                else list(zip(words[::2], words[1::2], strict=False))
            )
            if all(len(couple) == 2 for couple in couples):
                members = ((decode(name), decode(value)) for name, value in couples)
                readings.append({n: self._text(t, self.member(parameter.schema, "properties", n)) for n, t in members})
        if "array" in types:
            readings.append([self._text(decode(word), self.member(parameter.schema, "items")) for word in words])
        if types - {"array", "object"}:
            readings.append(Text(decode(text), types))
        return readings

    def _content(self, parameter: Parameter, text: str) -> Any:
        if _is_json(parameter.media_type) or (
            "*" in parameter.media_type and self.types(parameter.schema) != {"string"}
        ):
            return Json(_loads(text))
        if parameter.media_type == FORM:
            return self._fields(parameter.schema, {}, _pairs(text, "&"))
        return Text(text, self.types(parameter.schema))

    def _querystring(self, parameter: Parameter, query: str) -> list[Any]:
        if parameter.media_type in ("", FORM):
            return [self._fields(parameter.schema, {}, _pairs(query, "&"))]
        return [self._content(parameter, unquote(query))]

    # Bodies

    def _body(self, operation: Node, old: list[Node], headers: list[tuple[str, str]], body: bytes) -> list[Any]:
        sent = next((text for name, text in headers if name.lower() == "content-type"), "")
        essence = sent.partition(";")[0].strip().lower()
        schema, encoding = self._described(operation, old, essence)
        if _is_json(essence):
            return [Json(_loads(body))]
        if essence == FORM:
            return [self._fields(schema, encoding, _pairs(body.decode("ascii"), "&"))]
        if essence == MULTIPART:
            return [self._parts(schema, encoding, sent, body)]
        charset = re.search(r'charset="?([^";\s]+)', sent)
        try:
            text = [Text(body.decode(charset[1] if charset else "utf-8"), TYPES)]
        except UnicodeDecodeError:
            text = []
        return [Bytes(body), *text]

    def _described(self, operation: Node, old: list[Node], essence: str) -> tuple[Node, Mapping[str, Any]]:
        """Schema and encoding of the media type that was sent; 2.0's fields as an object."""
        if old:
            whole = next((node for node in old if str(node.value.get("in")).lower() == "body"), None)
            if whole is not None:
                return self.below(whole, "schema"), {}
            fields = {str(node.value["name"]): node.value for node in old}
            styles = {n: OLD_STYLES.get(v["collectionFormat"]) for n, v in fields.items() if "collectionFormat" in v}
            default = {n: ("form", False) for n, v in fields.items() if v.get("type") == "array"}
            styled = {n: {"style": s[0], "explode": s[1]} for n, s in {**default, **styles}.items() if s}
            return Node({"type": "object", "properties": fields}, old[0].path), styled
        content = self.follow(self.below(self.follow(self.below(operation, "requestBody")), "content"))
        entries = content.value if isinstance(content.value, dict) else {}
        for name in entries:
            declared = name.partition(";")[0].strip().lower()
            if declared == essence or ("*" in declared and re.fullmatch(declared.replace("*", ".*"), essence)):
                media = self.follow(self.below(content, name))
                encoding = self.below(media, "encoding").value
                return self.below(media, "schema"), encoding if isinstance(encoding, dict) else {}
        return Node(None, content.path), {}

    def _fields(self, schema: Node, encoding: Mapping[str, Any], pairs: Pairs) -> dict[str, Any]:
        """A form as the object it was: each property by its encoding, the others by their name."""
        found, taken = self._styled_fields(schema, encoding, pairs, unquote_plus)
        for raw, _ in pairs:
            name = unquote_plus(raw)
            if raw not in taken and name not in found:
                texts = [unquote_plus(text) for other, text in pairs if other == raw]
                found[name] = self._repeated(texts, self.member(schema, "properties", name))
        return found

    def _styled_fields(
        self, schema: Node, encoding: Mapping[str, Any], pairs: Pairs, decode: Callable[[str], str]
    ) -> tuple[dict[str, Any], set[str]]:
        """The properties whose encoding has a style, and the names their fields have on the wire."""
        found: dict[str, Any] = {}
        taken: set[str] = set()
        for name in self.names(schema):
            entry, member = encoding.get(name) or {}, self.member(schema, "properties", name)
            if (
                not isinstance(entry, dict)
                or ("style" not in entry and "explode" not in entry)
                or self.is_bytes(member)
            ):
                continue
            style = entry.get("style", "form")
            styled = Parameter(name, "query", style, entry.get("explode", style in ("form", "deepObject")), member)
            if style == "deepObject":
                readings = self._deep(styled, pairs, decode)
                taken |= {n for n, _ in pairs if decode(n).startswith(name + "[")}
            else:
                own = [text for raw, text in pairs if decode(raw) == name]
                members = [p for p in pairs if decode(p[0]) in self.names(member)] if styled.explode else []
                readings = self._delimited(styled, own, members, decode, set())
                taken |= {n for n, _ in members} | {n for n, _ in pairs if decode(n) == name}
            found |= {name: readings} if readings else {}
        return found, taken

    def _repeated(self, texts: list[str], schema: Node) -> list[Any]:
        """The readings of a field that is there once or more: a list is one of them, not an array."""
        types = self.types(schema)
        readings: list[Any] = (
            [[self._text(text, self.member(schema, "items")) for text in texts]] if "array" in types else []
        )
        return [*readings, Text(texts[0], types)] if len(texts) == 1 else readings

    def _parts(self, schema: Node, encoding: Mapping[str, Any], sent: str, body: bytes) -> dict[str, Any]:
        """A multipart body as the object it was."""
        parts: dict[str, list[Any]] = {}
        texts: Pairs = []
        for headers, data in _split_parts(sent, body):
            disposition = headers.get("content-disposition", "")
            name = re.search(r'[; ]name="([^"]*)"', disposition)
            if name is None:
                raise Undecodable("a part has no name")
            filename = re.search(r'filename="([^"]*)"', disposition)
            key = _unescaped(name[1])
            member = self.member(schema, "properties", key)
            own = headers.get("content-type")
            if filename is not None or self.is_bytes(member):
                one: Any = Bytes(data, _unescaped(filename[1]) if filename else None, own)
            elif own is not None and _is_json(own):
                one = Json(_loads(data))
            else:
                one = data.decode()
                texts.append((key, one))
            parts.setdefault(key, []).append(one)
        found, taken = self._styled_fields(schema, encoding, texts, str)
        rest = [key for key in parts if key not in taken]
        return {**found, **{key: self._part(parts[key], self.member(schema, "properties", key)) for key in rest}}

    def _part(self, found: list[Any], schema: Node) -> list[Any]:
        def typed(one: Any, of: Node) -> Any:
            return Text(one, self.types(of)) if isinstance(one, str) else one

        several = [[typed(one, self.member(schema, "items")) for one in found]]
        return [*several, typed(found[0], schema)] if len(found) == 1 else several


def same(expected: Any, reading: Any, *, readings: bool = False) -> bool:
    """Whether a value is what was read; `readings`: the members of the object are lists of readings."""
    if isinstance(reading, Json):
        return equal(expected, reading.value)
    if isinstance(reading, Bytes):
        return _same_bytes(expected, reading)
    if isinstance(reading, Text):
        return _denotes(reading, expected)
    if isinstance(reading, list):
        return isinstance(expected, list) and len(expected) == len(reading) and all(map(same, expected, reading))
    if not isinstance(reading, dict) or not isinstance(expected, dict) or set(expected) != set(reading):
        return False
    if readings:
        return all(any(same(expected[key], one) for one in reading[key]) for key in reading)
    return all(same(expected[key], reading[key]) for key in reading)


def equal(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 is 1.0 and neither is true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return (type(one) is type(other) and one == other) or (_is_number(one) and _is_number(other) and one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _denotes(found: Text, value: Any) -> bool:
    """Whether a text stands for a value, and its schema allows a value of that type."""
    text, types = found.text, found.types
    if isinstance(value, str):
        return "string" in types and text == value
    if isinstance(value, bool):
        return "boolean" in types and text == ("true" if value else "false")
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        if "number" not in types and not ("integer" in types and whole):
            return False
        return (
            re.fullmatch(r"-?\d+", text) is not None and int(text) == value
            if whole and "e" not in text.lower()
            else float(text) == value
        )
    if isinstance(value, dict | list) and types & {"array", "object"}:
        try:
            return equal(value, _loads(text))
        except ValueError:
            return False
    return False


def _same_bytes(expected: Any, found: Bytes) -> bool:
    given = expected if isinstance(expected, dict) else {"data": expected}
    try:
        data = base64.b64decode(given.get("data"), validate=True)
    except (ValueError, TypeError):
        return False
    named = all(
        given.get(key) in (None, value)
        for key, value in (("filename", found.filename), ("contentType", found.content_type))
    )
    return data == found.data and named


def _loads(text: str | bytes) -> Any:
    return json.loads(text)


def _is_json(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return essence in ("application/json", "text/json") or essence.endswith(("+json", "/json"))


def _is_textual(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return (
        essence.startswith("text/")
        or _is_json(essence)
        or essence in (FORM, "application/xml")
        or essence.endswith("+xml")
    )


def _pairs(text: str, between: str) -> Pairs:
    """(name, value), neither decoded."""
    return [(name, value) for pair in text.split(between) if pair for name, _, value in [pair.partition("=")]]


def _split_parts(sent: str, body: bytes) -> Iterator[tuple[dict[str, str], bytes]]:
    boundary = re.search(r'boundary="?([^";\s]+)', sent)
    if boundary is None:
        raise Undecodable("the body has no boundary")
    mark = b"--" + boundary[1].encode()
    if not (b"\r\n" + body).endswith(b"\r\n" + mark + b"--\r\n"):
        raise Undecodable("the body does not end with its boundary")
    for piece in (b"\r\n" + body).split(b"\r\n" + mark)[1:-1]:
        head, _, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        lines = (line.partition(":") for line in head.decode().split("\r\n"))
        yield {name.strip().lower(): value.strip() for name, _, value in lines}, data


def _unescaped(text: str) -> str:
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")


# The path decoded, except for what an encoded value must keep: `%` and the delimiters of styles, as private characters.
_KEPT = "%/,.;=&"
_BACK = {0xE000 + index: f"%{ord(char):02X}" for index, char in enumerate(_KEPT)}


def _decoded_but_values(path: str) -> str:
    for index, char in enumerate(_KEPT):
        path = re.sub(f"%{ord(char):02X}", chr(0xE000 + index), path, flags=re.IGNORECASE)
    return unquote(path)
