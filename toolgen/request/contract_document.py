"""The OpenAPI document of one operation that openapi-core checks against, and what it leaves out.

openapi-core 0.23 cannot read everything OpenAPI allows. What it cannot is not given to it and stands, with its
reason, in `left_out`; everything else is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolgen.errors import Problem
from toolgen.openapi.parameters import is_json
from toolgen.openapi.references import escape
from toolgen.openapi.upgrade import FORM, MULTIPART
from toolgen.request.contract_parts import BodyPart, Described, Part
from toolgen.request.contract_schemas import Schemas

_PATH: Final = "/operation"
_EXPLODED_OBJECT: Final = "openapi-core does not read exploded objects of the style form"
_DEEP: Final = "openapi-core reads a deepObject of plain texts only"
_NAME: Final = "openapi-core reads this style only where the name is letters, digits and `_`"
_STYLE: Final = "OpenAPI does not define this style for this type"
_CONTENT: Final = "openapi-core reads JSON and plain text here, and no other media type"
_QUERYSTRING: Final = "openapi-core does not know the location querystring"
_BODY: Final = "openapi-core does not read this media type; only the Content-Type is checked"
_FORM: Final = "openapi-core reads a form only where its schema names its fields; only the Content-Type is checked"
_FIELD: Final = "openapi-core does not read objects in fields, nor fields without a type"
_MULTIPART: Final = "openapi-core does not cast the parts of a multipart body"


@dataclass(slots=True)
class OneOperation:
    """The document and how to read a request for it.

    `styles` has (style, explode, type) of the styled parameters by (location, name), in the words of the
    document made; `known` are the query names that need no comment, `json` and `text` the media types of the
    document that are read so.
    """

    method: str
    path: str
    document: dict[str, Any]
    styles: dict[tuple[str, str], tuple[str, bool, str]]
    opaque: Mapping[tuple[str, str], str]
    known: set[str] = field(default_factory=set)
    loose_query: bool = False
    json: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    left_out: tuple[Problem, ...] = ()


def one_operation(described: Described) -> OneOperation:
    """The document of an operation whose request this is."""
    made = _Making(described)
    parameters = [one for part in described.parts if (one := made.parameter(part)) is not None]
    operation: dict[str, Any] = {"parameters": parameters, "responses": {}}
    if described.bodies:
        content = {name: made.body(name, body) for name, body in described.bodies.items()}
        for name in described.bodies:  # openapi-core takes a name with parameters by the letter
            content.setdefault(name.partition(";")[0].strip().lower(), content[name])
        operation["requestBody"] = {"required": described.body_required, "content": content}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "", "version": ""},
        "paths": {_PATH: {described.method: operation}},
        "components": {"schemas": made.schemas.components},
    }
    made.one.document = document
    made.one.left_out = tuple(made.left_out)
    return made.one


class _Making:
    """One document in the making."""

    def __init__(self, described: Described) -> None:
        self.schemas = Schemas(described.definitions)
        self.left_out: list[Problem] = []
        self.one = OneOperation(described.method, described.path, {}, {}, described.opaque)

    def _leave_out(self, where: str, why: str) -> None:
        self.left_out.append(Problem(why, where))

    def _said(self, where: str) -> None:
        """Tell what the schemas left out since the last time."""
        for why in self.schemas.said:
            self._leave_out(where, why)
        self.schemas.said.clear()

    # Parameters

    def parameter(self, part: Part) -> dict[str, Any] | None:
        """The Parameter Object, or None for one that openapi-core cannot read."""
        where = f"/{part.location}/{escape(part.name)}"
        self.one.known.add(part.name)
        if part.location == "querystring":
            self.one.loose_query = True
            self._leave_out(where, _QUERYSTRING)
            return None
        base = {"name": part.name, "in": part.location, "required": part.required}
        if part.media_type is not None:
            content = self._content(part.media_type, part.schema)
            self._said(where)
            if content is None:
                self._leave_out(where, _CONTENT)
                return None
            return {**base, "content": content}
        kind = self.schemas.kind(part.schema)
        style, explode, why = _restated(part, kind)
        if not why and style == "deepObject" and not self._is_shallow(part.schema):
            why = _DEEP
        if why:
            self.one.loose_query = self.one.loose_query or part.location == "query"
            self._leave_out(where, why)
            return None
        schema = self.schemas.styled(part.schema)
        self._said(where)
        self.one.styles[part.location, part.name] = style, explode, str(schema.get("type", ""))
        return {**base, "style": style, "explode": explode, "schema": schema}

    def _content(self, media_type: str, schema: Any) -> dict[str, Any] | None:
        essence = media_type.partition(";")[0].strip().lower()
        if is_json(media_type):
            self.one.json.append(essence)
        elif essence.startswith("text/"):
            self.one.text.append(essence)
        else:
            return None
        return {essence: {"schema": self.schemas.copy(schema)}}

    def _is_shallow(self, schema: Any) -> bool:
        flat = self.schemas.flat(schema)
        below = [*flat.get("properties", {}).values()]
        below += [flat["additionalProperties"]] if isinstance(flat.get("additionalProperties"), dict) else []
        return bool(below) and all(self.schemas.kind(member) == "scalar" for member in below)

    # Bodies

    def body(self, name: str, body: BodyPart) -> dict[str, Any]:
        """The Media Type Object."""
        essence = name.partition(";")[0].strip().lower()
        where = "/body"
        if is_json(name):
            self.one.json.append(name)
            made = {"schema": self.schemas.copy(body.schema)}
        elif body.binary or self._is_bytes(body.schema):
            return {}  # bytes are whatever they are
        elif essence.startswith("text/") and essence != "text/xml":
            self.one.text.append(name)
            made = {"schema": self.schemas.styled(body.schema)}
        elif essence in (FORM, MULTIPART):
            made = self._form(body, multipart=essence == MULTIPART)
        else:
            self._leave_out(where, _BODY)
            return {}
        self._said(where)
        return made

    def _is_bytes(self, schema: Any) -> bool:
        flat = self.schemas.flat(schema)
        return flat.get("format") == "binary" or ("contentMediaType" in flat and "contentEncoding" not in flat)

    def _form(self, body: BodyPart, *, multipart: bool) -> dict[str, Any]:
        flat = self._fields(self.schemas.flat(body.schema))
        if flat is None:
            self._leave_out("/body", _FORM)
            return {}
        properties: dict[str, Any] = {}
        encoding: dict[str, Any] = {}
        for name, schema in flat["properties"].items():
            entry = body.encoding.get(name, {})
            if name in body.files or self._holds_bytes(schema):
                field_schema = self._file(schema) if multipart else None
            elif multipart:
                field_schema = self._part(schema, entry)
            else:
                field_schema, encoding[name] = self._urlencoded(schema, entry)
            if field_schema is None:
                self._leave_out(f"/body/{escape(name)}", _MULTIPART if multipart else _FIELD)
            else:
                properties[name] = field_schema
        required = [name for name in flat["required"] if name in properties]
        made: dict[str, Any] = {"schema": {"type": "object", "properties": properties, "required": required}}
        kept = {name: entry for name, entry in encoding.items() if entry and name in properties}
        return {**made, "encoding": kept} if kept else made

    def _fields(self, flat: dict[str, Any], depth: int = 0) -> dict[str, Any] | None:
        """The named fields of an object and of all it is made of; None where there are alternatives."""
        if depth > 20 or any(key in flat for key in ("anyOf", "oneOf", "if", "not", "dependentSchemas")):
            return None
        found: dict[str, Any] = {
            "properties": dict(flat.get("properties", {})),
            "required": [*flat.get("required", ())],
        }
        for member in flat.get("allOf", ()):
            below = self._fields(self.schemas.flat(member), depth + 1)
            if below is None:
                return None
            found["properties"] = {**below["properties"], **found["properties"]}
            found["required"] += below["required"]
        return found if found["properties"] or depth else None

    def _holds_bytes(self, schema: Any) -> bool:
        flat = self.schemas.flat(schema)
        return self._is_bytes(flat.get("items", {}) if flat.get("type") == "array" else flat)

    def _file(self, schema: Any) -> dict[str, Any]:
        """No schema: a part that is bytes to openapi-core."""
        return {"type": "array", "items": {}} if self.schemas.kind(schema) == "array" else {}

    def _part(self, schema: Any, entry: Mapping[str, Any]) -> dict[str, Any] | None:
        """A part of text, which stays text whatever its type, or of JSON."""
        if entry:
            return None
        flat = self.schemas.flat(schema)
        inner = self.schemas.flat(flat.get("items", {})) if flat.get("type") == "array" else flat
        if inner.get("type") not in ("string", "object") or inner.get("format") in ("binary", "base64"):
            return None
        made = self.schemas.copy(inner)
        assert isinstance(made, dict)
        return {"type": "array", "items": made} if flat.get("type") == "array" else made

    def _urlencoded(self, schema: Any, entry: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """A field's schema, or None, and its Encoding Object."""
        flat = self.schemas.flat(schema)
        kind = self.schemas.kind(schema)
        if kind in ("", "object") or entry.get("contentType") or entry.get("style", "form") != "form":
            return None, {}
        if kind == "array" and self.schemas.kind(flat.get("items", {})) not in ("", "scalar"):
            return None, {}
        explode = entry.get("explode", True)
        return self.schemas.styled(schema), {"style": "form", "explode": explode}


def _restated(part: Part, kind: str) -> tuple[str, bool, str]:
    """(style, explode, why not) in which openapi-core reads what OpenAPI means by a parameter's style."""
    style, explode = part.style or "form", part.explode
    if style == "cookie":
        style = "form"
    plain_name = part.name.replace("_", "a").isalnum() and part.name.isascii()
    if style == "form" and explode and kind == "object":
        return style, explode, _EXPLODED_OBJECT
    if style in ("spaceDelimited", "pipeDelimited"):
        if kind in ("scalar", "") or (kind == "array" and explode):
            return "form", True, ""  # the same on the wire
        return style, explode, _STYLE if explode else ""
    if style == "deepObject" and kind != "object":
        return ("form", True, "") if kind == "scalar" else (style, True, _STYLE)
    if style in ("deepObject", "matrix") and not plain_name:
        return style, explode, _NAME
    return style, explode, ""


def query_names(path: str) -> Iterator[str]:
    """The names in the constant query of a template."""
    for pair in path.partition("?")[2].split("&"):
        if pair:
            yield pair.partition("=")[0]
