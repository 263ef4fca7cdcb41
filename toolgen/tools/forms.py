"""Files in forms: which properties of a body are files, and what the model writes for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolgen.openapi.references import Dangling, Place, References
from toolgen.openapi.schema import Schemas
from toolgen.openapi.schema.sides import COMPOSITIONS
from toolgen.tools import media
from toolgen.tools.describe import resolved


def holds_file(references: References, schema: Place) -> bool:
    """Whether a property of a schema that is not converted yet is a file, or an array of them."""
    waiting, seen = [(schema, False)], set()
    while waiting:
        place, inside = waiting.pop()
        try:
            place = references.follow(place)
        except Dangling:
            continue
        if not isinstance(place.node, dict) or (id(place.node), inside) in seen:
            continue
        if inside and media.is_binary(place.node):
            return True
        seen.add((id(place.node), inside))
        waiting += _below(place, inside)
    return False


def _below(place: Place, inside: bool) -> Iterator[tuple[Place, bool]]:
    node = place.node
    if inside and "items" in node:
        yield place.child("items"), True
    if not inside and isinstance(node.get("properties"), dict):
        for name in node["properties"]:
            yield place.child("properties", name), True
    for key in COMPOSITIONS:
        if isinstance(node.get(key), list):
            for index in range(len(node[key])):
                yield place.child(key, index), inside


class Form:
    """Writes the files of one form's schema as base64 text.

    `files` are the names of their parts. `copied` says whether a definition was written out, which
    it may have left without a user.
    """

    def __init__(self, schemas: Schemas, kind: media.Kind, encoding: Mapping[str, Mapping[str, Any]]) -> None:
        self.files: list[str] = []
        self.copied = False
        self._schemas = schemas
        self._file: dict[str, Any] = media.FILE if kind == "multipart" else media.BASE64
        types = {name: str(entry.get("contentType") or "text/plain").split(",") for name, entry in encoding.items()}
        # Parts whose media type alone says that they are bytes.
        self._raw = {name for name, given in types.items() if not any(map(media.is_textual, given))}
        self._seen: set[int] = set()
        self._parts: dict[tuple[int, bool], dict[str, Any] | None] = {}

    def schema(self, schema: Any) -> Any:
        """A converted schema with its files written so; the same object where there are none."""
        root = resolved(schema, self._schemas.definitions)
        if not isinstance(root, dict) or id(root) in self._seen:
            return schema
        self._seen.add(id(root))
        changed: dict[str, Any] = {}
        properties = root.get("properties", {})
        parts = {name: part for name in properties if (part := self._part(properties[name], name)) is not None}
        if parts:
            changed["properties"] = {**properties, **parts}
            self.files += [name for name in parts if name not in self.files]
        for key in COMPOSITIONS:
            members = root.get(key, [])
            written = [self.schema(member) for member in members]
            if any(new is not old for new, old in zip(written, members, strict=True)):
                changed[key] = written
        if not changed:
            return schema
        made = {**root, **{key: value for key, value in schema.items() if key != "$ref"}, **changed}
        self._schemas.sides.adopt(root, made)
        self.copied = self.copied or root is not schema
        return made

    def _part(self, schema: Any, name: str) -> dict[str, Any] | None:
        """The schema of a property that is a file, an array of files, or one of these or something else."""
        found = resolved(schema, self._schemas.definitions)
        if not isinstance(found, dict):
            return None
        where = id(found), name in self._raw
        if where not in self._parts:
            self._parts[where] = None  # what holds itself is no file
            self._parts[where] = self._written(found, name)
        return self._parts[where]

    def _written(self, found: dict[str, Any], name: str) -> dict[str, Any] | None:
        kept: dict[str, Any] = {key: found[key] for key in ("title", "description", "deprecated") if key in found}
        if media.is_binary(found) or (name in self._raw and media.is_untyped(found)):
            return {**self._file, **kept}
        if "items" in found:
            inner = self._part(found["items"], name)
            return {**found, "items": inner} if inner is not None else None
        for key in COMPOSITIONS:
            members = found.get(key, [])
            written = [self._part(member, name) for member in members]
            first = next((one for one in written if one is not None), None)
            if first is not None and key == "allOf":
                return {**first, **kept}
            if first is not None:  # base64 may look like another member too: any of them will do
                choice = [new or old for new, old in zip(written, members, strict=True)]
                return {**{k: v for k, v in found.items() if k not in ("oneOf", "anyOf")}, "anyOf": choice}
        return None
