"""Finds documents in folders, draws a sample of them, and reads one without toolgen's help."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

SUFFIXES = frozenset({".json", ".yaml", ".yml"})
LARGEST = 30
FAMILY = 20  # a provider with as many documents is a stratum of its own, the others share one

_HEAD = 4096
_JSON_FIRST_KEY = re.compile(rb'\s*\{\s*"(?:openapi|swagger)"\s*:')
_JSON_ANY_KEY = re.compile(rb'"(?:openapi|swagger)"\s*:')
_YAML_TOP_KEY = re.compile(rb"""^(["']?)(?:openapi|swagger)\1[ \t]*:(?:\s|$)""", re.MULTILINE)
_REFERENCE = re.compile(rb"""\$ref["']?\s*:\s*["']?([^#"'\s,}][^"'\s,}]*)""")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Document:
    """A file that is a document. `name` is its path below the folder it was found in."""

    path: Path
    name: str
    provider: str
    size: int


def find(folders: Sequence[Path]) -> list[Document]:
    """Every document below the folders, by name; a file that is in two of them counts once."""
    found: dict[Path, Document] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if (
                path.suffix.lower() in SUFFIXES
                and path.is_file()
                and path.resolve() not in found
                and _is_document(path)
            ):
                below = path.relative_to(folder)
                name = below.as_posix() if len(folders) == 1 else f"{folder.name}/{below.as_posix()}"
                provider = f"{folder.name}/{below.parts[0]}"
                found[path.resolve()] = Document(path, name, provider, path.stat().st_size)
    return sorted(found.values(), key=lambda document: (document.name, str(document.path)))


def _is_document(path: Path) -> bool:
    """True for an object with `openapi` or `swagger` at the top; parsed only where the text leaves it open."""
    with path.open("rb") as file:
        head = file.read(_HEAD).removeprefix(_BOM)
        if not head.lstrip().startswith(b"{"):
            return _YAML_TOP_KEY.search(head + file.read()) is not None
        if _JSON_FIRST_KEY.match(head):
            return True
        text = head + file.read()
    if not _JSON_ANY_KEY.search(text):
        return False
    try:
        top = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(top, dict) and ("openapi" in top or "swagger" in top)


def sample(documents: Sequence[Document], size: int, seed: int) -> list[Document]:
    """The largest documents, and of the others every k-th of a list ordered by provider and size quartile."""
    if size >= len(documents):
        return list(documents)
    by_size = sorted(documents, key=lambda document: (-document.size, document.name))
    drawn, rest = by_size[: min(LARGEST, size)], by_size[min(LARGEST, size) :]
    number = Counter(document.provider for document in rest)
    chance = random.Random(seed)
    keyed = []
    for rank, document in enumerate(rest):
        family = document.provider if number[document.provider] >= FAMILY else ""
        keyed.append((family, 4 * rank // len(rest), chance.random(), document))
    ordered = [document for *_, document in sorted(keyed, key=lambda item: item[:3])]
    wanted = size - len(drawn)
    step = len(ordered) / wanted if wanted else 1.0
    start = chance.random() * step
    drawn += [ordered[int(start + step * index)] for index in range(wanted)]
    return sorted(drawn, key=lambda document: (document.name, str(document.path)))


class _Loader(yaml.CSafeLoader):
    """YAML with the scalars of JSON only: dates, `no` and `12:30` stay text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own name)


for _tag, _form, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_form})$"), _first)


def read(text: bytes) -> tuple[Any, bytes, str]:
    """The data of a document, the same as JSON text, and the form it has: `json` or `yaml`.

    Raises ValueError or yaml.YAMLError for what is neither.
    """
    if text.removeprefix(_BOM).lstrip().startswith(b"{"):
        try:
            return json.loads(text), text, "json"
        except ValueError:
            pass
    data = yaml.load(text, Loader=_Loader)
    as_json = json.dumps(data, default=str).encode()
    return json.loads(as_json), as_json, "yaml"


def neighbours(document: Document, text: bytes) -> list[Path]:
    """The files beside the document that its references name and that are there."""
    names = {unquote(match.decode("utf-8", "replace").split("#")[0]) for match in _REFERENCE.findall(text)}
    return sorted(path for path in _beside(document.path.parent, names) if path != document.path)


def _beside(folder: Path, names: set[str]) -> Iterator[Path]:
    for name in names:
        if name and "://" not in name and "\0" not in name and len(name) < 256 and (folder / name).is_file():
            yield folder / name
