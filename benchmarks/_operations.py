"""Counts the operations of a document, from its data alone: the other half of the bookkeeping."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from _documents import read

METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
Key = tuple[str, str]


def operations(document: Any, path: Path) -> dict[Key, str]:
    """(method, path) of every operation, with its JSON pointer; path items are followed where they can be."""
    paths = document.get("paths") if isinstance(document, dict) else None
    if not isinstance(paths, dict):
        return {}
    version = version_of(document)
    methods = METHODS + (("trace",) if version >= (3,) else ()) + (("query",) if version >= (3, 2) else ())
    found: dict[Key, str] = {}
    for name, item in paths.items():
        if name.startswith("x-"):
            continue
        for part in _parts(item, document, path):
            pointer = f"/paths/{name.replace('~', '~0').replace('/', '~1')}"
            for method in methods:
                if isinstance(part.get(method), dict):
                    found.setdefault((method, name), f"{pointer}/{method}")
            more = part.get("additionalOperations") if version >= (3, 2) else None
            for method, operation in more.items() if isinstance(more, dict) else ():
                if isinstance(operation, dict):
                    found.setdefault((method.lower(), name), f"{pointer}/additionalOperations/{method}")
    return found


def version_of(document: Any) -> tuple[int, ...]:
    """The document's version as numbers; (3,) where it says nothing a number can be read from."""
    text = str(document.get("openapi", document.get("swagger", ""))) if isinstance(document, dict) else ""
    numbers = [int(part) for part in text.split("-")[0].split(".") if part.isascii() and part.isdigit()]
    return tuple(numbers) or (3,)


def _parts(item: Any, root: Any, path: Path) -> list[dict[str, Any]]:
    """A path item and what it refers to, the nearest first."""
    found: list[dict[str, Any]] = []
    seen: set[tuple[Path, str]] = set()
    while isinstance(item, dict):
        found.append(item)
        reference = item.get("$ref")
        if not isinstance(reference, str) or (path, reference) in seen:
            break
        seen.add((path, reference))
        root, path, item = _follow(reference, root, path)
    return found


def _follow(reference: str, root: Any, path: Path) -> tuple[Any, Path, Any]:
    """The file a reference leads to, as data and path, and what it names there; None where there is nothing."""
    name, _, pointer = reference.partition("#")
    if name:
        path = path.parent / unquote(name)
        try:
            root = read(path.read_bytes())[0]
        except Exception:
            return None, path, None
    here = root
    for token in unquote(pointer).split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list):
            here = here[int(token)] if token.isascii() and token.isdigit() and int(token) < len(here) else None
        else:
            here = here.get(token) if isinstance(here, dict) else None
    return root, path, here
