"""Reads a request back by the document alone: an independent decoder, which imports nothing of toolgen.

Written from the OpenAPI Specification ("Style Values", "Encoding Object", appendices C to E; 2.0's
`collectionFormat`), RFC 6570, RFC 7578 and the URL standard. What the wire leaves open (text has no types,
one item looks like a text) gives several readings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from _described import FORM, MULTIPART, OLD_STYLES, TYPES, Described, Node, Parameter, Undecodable, is_json
from _readings import Bytes, Json, Text, loads

EXPRESSION = re.compile(r"\{([^{}]+)\}")
IGNORED_HEADERS = (
    "accept",
    "content-type",
    "authorization",
)  # OpenAPI, Parameter Object: such a definition counts for nothing
Pairs = list[tuple[str, str]]


@dataclass
class Decoded:
    """The readings of each parameter by (location, name) and of the body, the likeliest first."""

    parameters: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    body: list[Any] = field(default_factory=list)


class Decoder(Described):
    """Reads requests of one document."""

    def decode(
        self, pointer: str, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None
    ) -> Decoded:
        """What the operation at a pointer is given by a request. Raises Undecodable."""
        item, operation, template = self.operation(pointer)
        parameters, old_body = self.parameters(item, operation)
        for name in self._undeclared(template, parameters):  # a path parameter all the same, of which nothing is said
            parameters.append(Parameter(name, "path", "simple", False, Node({"type": "string"}, item.path)))
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
            elif parameter.location == "header" and parameter.name.lower() not in IGNORED_HEADERS:
                texts = [text for name, text in headers if name.lower() == parameter.name.lower()]
                self._keep(found, parameter, self._simple(parameter, texts[0], ",", str) if texts else [])
            elif parameter.location == "querystring" and parts.query:
                self._keep(found, parameter, self._querystring(parameter, parts.query))
        if body is not None:
            found.body = self._body(operation, old_body, headers, body)
        return found

    @staticmethod
    def _undeclared(template: str, parameters: list[Parameter]) -> list[str]:
        declared = {p.name for p in parameters if p.location == "path"}
        return [name for name in EXPRESSION.findall(re.split(r"[?#]", template)[0]) if name not in declared]

    @staticmethod
    def _keep(found: Decoded, parameter: Parameter, readings: list[Any]) -> None:
        name = parameter.name.lower() if parameter.location == "header" else parameter.name
        if readings:
            found.parameters[parameter.location, name] = readings

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
            named = ((decode(n), decode(t)) for n, t in pairs)
            members = [(n, t) for n, t in named if n in known or others.isdisjoint((n, n.partition("[")[0]))]
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
        pieces = EXPRESSION.split(re.split(r"[?#]", template)[0])
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
        if is_json(parameter.media_type) or (
            "*" in parameter.media_type and self.types(parameter.schema) != {"string"}
        ):
            return Json(loads(text))
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
        if is_json(essence):
            return [Json(loads(body))]
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
            elif own is not None and is_json(own):
                one = Json(loads(data))
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
