"""A document as the decoder reads it: operations, parameters and schemas, straight from the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from _documents import read

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
OLD_STYLES = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}


class Undecodable(Exception):
    """The request does not follow the document; the message says where."""


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


class Described:
    """The data of one document and of those it refers to."""

    def __init__(self, path: Path, tree: Any | None = None) -> None:
        self.root = Node(read(path.read_bytes())[0] if tree is None else tree, path)
        self._files: dict[Path, Any] = {path: self.root.value}
        self._types: dict[tuple[int, int], frozenset[str]] = {}
        self.old = "swagger" in self.root.value

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

    def operation(self, pointer: str) -> tuple[Node, Node, str]:
        _, _, path, *rest = (token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/"))
        item = self.below(self.below(self.root, "paths"), path)
        operation = item if isinstance(item.value, dict) and rest[0] in item.value else self.follow(item)
        if operation.value.get(rest[0]) is None:  # written in capitals
            rest[0] = next(key for key in operation.value if key.lower() == rest[0].lower())
        for token in rest:
            operation = self.below(operation, token)
        return item, self.follow(operation), path

    def parameters(self, item: Node, operation: Node) -> tuple[list[Parameter], list[Node]]:
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
            media = next((n for n in names if is_json(n)), names[0])
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
            return not is_textual(str(value["contentMediaType"]))
        node = self._safe(schema)
        inner = [self.below(node, "items")] if "items" in value else []
        for group in ("allOf", "anyOf", "oneOf"):
            inner += [self.below(self.below(node, group), str(i)) for i in range(len(value.get(group) or ()))]
        return any(self.is_bytes(one, depth + 1) for one in inner)


def is_json(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return essence in ("application/json", "text/json") or essence.endswith(("+json", "/json"))


def is_textual(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return (
        essence.startswith("text/")
        or is_json(essence)
        or essence in (FORM, "application/xml")
        or essence.endswith("+xml")
    )
