"""The only place that reads documents: a path, a URL, a text or a mapping -> plain data.

What may be read is decided here too. A document names others (`$ref`), and whoever wrote it must
not learn what is in files or on hosts of whoever reads it: files only below allowed roots, hosts
only when named, nothing local for a document that came over the network.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import is_
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolgen.errors import LimitExceeded, SourceRefused, SourceUnavailable, SyntaxFault
from toolgen.openapi.source.json_text import load_json, syntax_fault
from toolgen.openapi.source.mapping import private_copy
from toolgen.openapi.source.remote import Remote

_BOMS = (  # UTF-32's begins like UTF-16's
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_BLANK = "\ufeff \t\r\n"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: `C:\spec.yaml` is a path
_FIRST_KEY = re.compile(r"""["']?(openapi|swagger)["']?\s*:""")
_ROOT_HINT = "allow its folder with allow_roots= or --allow-root DIR"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is read at most."""

    bytes: int = 64 * 1024 * 1024  # of one document
    nesting: int = 200  # levels of objects and arrays
    nodes: int = 20_000_000  # values after aliases are expanded
    seconds: float = 30.0  # for one fetch in total, not per read
    redirects: int = 5
    documents: int = 500  # that references lead to


@dataclass(frozen=True, slots=True)
class Document:
    """A document that was read.

    `uri` is absolute (file:///..., https://...) and None for text and mappings. `tree` holds dict
    (str keys), list, str, int, float, bool and None, exactly these types and private to us; equal
    YAML aliases share objects, cycles there are none. `content` is what was read, for the digest.
    """

    uri: str | None
    tree: Any
    content: bytes


class Loader:
    """Reads a root document and those it refers to, within limits and rules.

    `allowed_roots` are the folders that refs may read from; without it that is the root document's
    own folder. `allowed_hosts` (`host` or `host:port`) are the hosts that refs may be fetched from.
    `headers` go to the origin of the URL given to `load`, and nowhere else.
    """

    def __init__(
        self,
        *,
        limits: Limits = Limits(),
        allowed_roots: Sequence[str | os.PathLike[str]] | None = None,
        allowed_hosts: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._limits = limits
        self._roots = None if allowed_roots is None else [os.path.realpath(root) for root in allowed_roots]
        self._remote = Remote(limits.bytes, limits.seconds, limits.redirects, allowed_hosts, headers or {})
        self._root: Document | None = None
        self._cache: dict[str, Document] = {}

    def load(self, source: str | os.PathLike[str] | bytes | Mapping[str, Any]) -> Document:
        """The root document. Raises SourceError of every kind."""
        self._remote.origin = None
        if isinstance(source, Mapping):
            document = self._mapping(source)
        elif isinstance(source, bytes):
            document = self._document(None, source, "text")
        elif isinstance(source, str) and _is_text(source):
            document = self._text(source)
        elif isinstance(source, str) and (scheme := _scheme(source)):
            document = self._url(source, scheme)
        else:
            document = self._path(os.fsdecode(source))
        self._root = document
        if document.uri is not None:
            self._cache[document.uri] = document
        return document

    def fetch(self, uri: str, *, base: str | None, root: str | None = None) -> Document:
        """A document that a `$ref` points to.

        `uri` is absolute, `base` the URI of the document with the ref (None: a text or a mapping),
        `root` that of the root document (None: the one `load` read). Raises SourceRefused when the
        rules forbid it, each time the rule is named that would allow it; the rest as `load` does.
        """
        uri = uri.partition("#")[0]
        scheme = _scheme(uri)
        if scheme not in ("file", "http", "https"):
            raise SourceRefused(f"a reference with the scheme {scheme!r} is not read: only files and http(s) are")
        path = ""
        if scheme == "file":
            path = self._allowed_file(uri, base, root)
        elif base is None or self._root is None or uri != self._root.uri:  # the root may be referred to
            self._remote.check_allowed(uri)
        if uri not in self._cache:
            if len(self._cache) > self._limits.documents:
                raise LimitExceeded(f"references lead to more than {self._limits.documents} documents")
            if path:
                document = self._document(uri, _read_file(path, self._limits.bytes), _shown(path))
            else:
                final, content = self._remote.get(uri, reference=True)
                document = self._document(final, content, self._remote.shown(final))
                self._cache[final] = document
            self._cache[uri] = document
        return self._cache[uri]

    def contents(self) -> list[bytes]:
        """What was read: the root document first, then the others in the order of their URIs."""
        others = {id(d): d for _, d in sorted(self._cache.items()) if d is not self._root}
        return [d.content for d in (*([self._root] if self._root else ()), *others.values())]

    def forget(self) -> None:
        """Let go of everything that was read."""
        self._root = None
        self._cache.clear()

    def _allowed_file(self, uri: str, base: str | None, root: str | None) -> str:
        """The path of a file: URI, all links resolved, if the rules allow to read it."""
        if base is not None and _scheme(base) != "file":
            raise SourceRefused("a document read from a URL refers to a local file, which is never read")
        path = _path_of(uri)
        roots = self._roots
        if roots is None and base is not None:
            root = root or (self._root.uri if self._root else None)
            roots = [os.path.dirname(_path_of(root))] if root and _scheme(root) == "file" else []
        real = os.path.realpath(path)
        if not any(Path(real).is_relative_to(os.path.realpath(allowed)) for allowed in roots or ()):
            raise SourceRefused(f"{_shown(path)} is outside the folders that references may read ({_ROOT_HINT})")
        return real

    def _path(self, path: str) -> Document:
        content = _read_file(path, self._limits.bytes)
        folder, name = os.path.split(os.path.abspath(path))
        # Refs are relative to where the document is seen, which need not be where a link leads.
        return self._document((Path(os.path.realpath(folder)) / name).as_uri(), content, _shown(path))

    def _url(self, url: str, scheme: str) -> Document:
        if scheme not in ("http", "https"):
            hint = "give a file as a path" if scheme == "file" else "give a path or an http(s) URL"
            raise SourceRefused(f"a document is not read from a URL with the scheme {scheme!r} ({hint})")
        uri, content = self._remote.get(url)
        return self._document(uri, content, self._remote.shown(uri))

    def _text(self, text: str) -> Document:
        try:
            content = text.encode()
        except UnicodeEncodeError as exc:
            raise syntax_fault("text", "Unicode", text, [("an unpaired surrogate", exc.start)]) from None
        return self._document(None, content, "text")

    def _mapping(self, source: Mapping[str, Any]) -> Document:
        check_size(source, "mapping", self._limits, shared=True)
        tree, content = private_copy(source)
        if len(content) > self._limits.bytes:
            raise LimitExceeded(f"mapping is larger than {self._limits.bytes} bytes")
        return Document(None, tree, content)

    def _document(self, uri: str | None, content: bytes, where: str) -> Document:
        limits = self._limits
        if len(content) > limits.bytes:
            raise LimitExceeded(f"{where} is larger than {limits.bytes} bytes")
        tree = _parse(_decode(content, where), where, limits)
        return Document(uri, tree, content)


def check_size(tree: Any, where: str, limits: Limits, *, shared: bool = False) -> None:
    """Raise LimitExceeded when a tree is too deep or, with shared objects counted each time, too big.

    Level by level and without a loop over values in Python: a third of the time of json.loads.
    A level is counted before it is made. `shared` is for trees that may hold one object many
    times: then characters count, too, and so do the members of subclasses (a caller's mapping).
    """
    level, nodes, depth, length = [tree], 1, 0, 0
    while True:
        types = list(map(type, level))
        if shared:
            bases = {kind: _base(kind) for kind in set(types)}
            types = list(map(bases.__getitem__, types))
            length += sum(map(len, compress(level, map(is_, types, repeat(str)))))
        dicts = list(compress(level, map(is_, types, repeat(dict))))
        lists = list(compress(level, map(is_, types, repeat(list))))
        if shared:
            length += sum(map(len, filter(_is_str, chain.from_iterable(dicts))))
        if length > limits.bytes:
            raise LimitExceeded(f"{where} holds more than {limits.bytes} characters once it is expanded")
        if not dicts and not lists:
            return
        depth += 1
        nodes += sum(map(len, dicts)) + sum(map(len, lists))
        if depth > limits.nesting:
            raise LimitExceeded(f"{where} is nested deeper than {limits.nesting} levels")
        if nodes > limits.nodes:
            raise LimitExceeded(f"{where} holds more than {limits.nodes} values once it is expanded")
        level = list(chain(chain.from_iterable(map(dict.values, dicts)), chain.from_iterable(lists)))


def _base(kind: type) -> type:
    """The type whose JSON form a value of this type has."""
    if issubclass(kind, list | tuple):
        return list
    return dict if issubclass(kind, dict) else str if issubclass(kind, str) else kind


def _is_str(value: object) -> bool:
    return isinstance(value, str)


def _parse(text: str, where: str, limits: Limits) -> Any:
    """The tree of a text: JSON when it is that, YAML otherwise; file names say nothing."""
    start = text.lstrip(_BLANK)
    fault: SyntaxFault | None = None
    if not start:
        raise syntax_fault(where, "JSON or YAML", text, [("the document is empty", 0)])
    if start[0] in "{[":
        try:
            tree = load_json(text, where)
        except SyntaxFault as exc:
            if not isinstance(exc.__cause__, json.JSONDecodeError):
                raise
            fault = exc
        else:
            check_size(tree, where, limits)
            return tree
    from toolgen.openapi.source.yaml12 import load_yaml

    try:
        tree = load_yaml(text, where, nesting=limits.nesting, nodes=limits.nodes)
    except SyntaxFault:
        if fault is not None and re.match(r"[{\[]\s*[\[{\"}\]]", start):  # as JSON begins
            raise fault from None
        raise
    check_size(tree, where, limits, shared=True)
    return tree


def _decode(content: bytes, where: str) -> str:
    """Bytes as text: UTF-8, or what the byte order mark says. Raises SyntaxFault at the first bad byte."""
    bom, encoding = next(((bom, name) for bom, name in _BOMS if content.startswith(bom)), (b"", "utf-8"))
    content = content[len(bom) :]
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as exc:
        before = content[: exc.start].decode(encoding, "replace")
        message = f"byte {len(bom) + exc.start} ({content[exc.start]:#04x}) does not belong there"
        raise syntax_fault(where, encoding.upper(), before, [(message, len(before))]) from None


def _is_text(source: str) -> bool:
    start = source.lstrip(_BLANK)
    return not start or start[0] == "{" or "\n" in source or _FIRST_KEY.match(start) is not None


def _scheme(uri: str) -> str:
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


def _path_of(uri: str) -> str:
    """The path a file: URI names (RFC 8089), decoded once."""
    from urllib.request import url2pathname  # slow to import

    try:
        parts = urlsplit(uri)
    except ValueError:
        raise SourceRefused("a file: URI that is not valid is not read") from None
    if parts.netloc not in ("", "localhost"):
        raise SourceRefused("a file: URI that names a host is not read")
    path = url2pathname(parts.path)
    if "\0" in path:
        raise SourceRefused("a file: URI with a NUL character is not read")
    return path


def _read_file(path: str, limit: int) -> bytes:
    try:
        # Looked at before it is opened and not waited for when it is: opening a FIFO or a device
        # can block or do something.
        if not stat.S_ISREG(os.stat(path).st_mode):
            kind = "a directory" if os.path.isdir(path) else "not a regular file"
            raise SourceUnavailable(f"{_shown(path)} is {kind}")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            if found.st_size > limit:
                raise LimitExceeded(f"{_shown(path)} is larger than {limit} bytes")
            content = file.read(limit + 1)
    except FileNotFoundError:
        raise SourceUnavailable(f"there is no file {_shown(path)}{_near(path)}") from None
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not a path"
        raise SourceUnavailable(f"{_shown(path)} cannot be read: {reason}") from exc
    if len(content) > limit:
        raise LimitExceeded(f"{_shown(path)} is larger than {limit} bytes")
    return content


def _near(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        names = difflib.get_close_matches(name, os.listdir(folder or "."), n=3)
    except OSError:
        return ""
    return f" (near it: {', '.join(map(_shown, names))})" if names else ""


def _shown(path: str) -> str:
    """A path as a message may show it."""
    short = path if len(path) < 200 else "..." + path[-197:]
    return "".join(c if c.isprintable() else "?" for c in short)
