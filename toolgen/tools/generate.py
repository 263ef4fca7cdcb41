"""generate(): a document becomes a Toolset."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import unquote, urlsplit

from toolgen.errors import Problem, SelectionError, UsageError
from toolgen.openapi.diagnostics import Diagnostic
from toolgen.openapi.endpoint import endpoint_path
from toolgen.openapi.model import Operation
from toolgen.openapi.operations import Reader, Skipped
from toolgen.openapi.references import References
from toolgen.openapi.source import Limits, Loader
from toolgen.openapi.source.json_text import paused_gc
from toolgen.openapi.version import dialect_of
from toolgen.tools.build import Builder
from toolgen.tools.model import Toolset
from toolgen.tools.naming import API_NAME, NAME_LIMIT, RESERVED_SOURCES, api_name, tool_names
from toolgen.tools.report import OperationReport, Report
from toolgen.tools.selection import Selection
from toolgen.tools.siblings import Siblings

Progress = Callable[[int, int], None]


def generate(
    source: str | os.PathLike[str] | bytes | Mapping[str, Any],
    *,
    api: str | None = None,
    server: str | None = None,
    include: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    skip_deprecated: bool = False,
    name_prefix: str = "",
    name_limit: int = NAME_LIMIT,
    allow_roots: Sequence[str | os.PathLike[str]] | None = None,
    allow_hosts: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Toolset:
    """Tools for the operations of an OpenAPI document (2.0, 3.0, 3.1, 3.2; JSON or YAML).

    `source` is a path, an http(s) URL, a text or a mapping. `include` and `exclude` hold filters:
    `GET /pets/*` (`*` within a segment, `**` over segments), `tag:NAME`, `operationId:NAME`; without
    `include` everything is taken, an empty list takes nothing. `server` replaces the document's
    server (an operation's own stays). `name_limit` counts a client's `name_prefix`. References may
    read files below `allow_roots` (default: the document's folder) and hosts in `allow_hosts`
    (default: none); `headers` are sent to the origin of a URL given as `source`, nowhere else.
    `progress(done, total)` is called now and then.

    `Toolset.report` says of each operation whether it is ok, degraded or skipped, and why.

    Raises SourceError (the document cannot be read), DocumentError (it is no OpenAPI document),
    SelectionError (no operation is left), UsageError (an argument is wrong).
    """
    _check_arguments(api, server, name_prefix, name_limit)
    selection = Selection(include, exclude)
    loader = Loader(limits=limits or Limits(), allowed_roots=allow_roots, allowed_hosts=allow_hosts, headers=headers)

    def made() -> Toolset:  # the document is gone before the collector looks at what is left
        document = loader.load(source)
        reader = Reader(References(document, dialect_of(document.tree, document.uri or ""), loader))
        run = _Run(reader, selection, skip_deprecated, progress or (lambda done, total: None))
        run.read()
        run.build(server, name_prefix, name_limit)
        digest = _digest(loader.contents())
        loader.forget()
        return run.toolset(api or api_name(reader.title, _stem(document.uri)), server, digest)

    with paused_gc():  # a million objects are made here, and no cycle among them is garbage
        return made()


def _check_arguments(api: str | None, server: str | None, name_prefix: str, name_limit: int) -> None:
    if api is not None and (not API_NAME.fullmatch(api) or api in RESERVED_SOURCES):
        raise UsageError(f"{api!r} is no name for an API: it takes [a-z][a-z0-9-]*, at most 32, and no source's name")
    if not re.fullmatch(r"[A-Za-z0-9_-]*", name_prefix) or not len(name_prefix) + 8 <= name_limit <= NAME_LIMIT:
        raise UsageError(f"name_limit is from the prefix's length + 8 to {NAME_LIMIT}; the prefix takes [A-Za-z0-9_-]")
    if server is not None:
        try:
            parts = urlsplit(server)
            whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            whole = False
        if not whole or parts.query or parts.fragment or re.search(r"[\s\x00-\x20\x7f{}\\]", server):
            raise UsageError("server is an absolute http(s) URL without variables, query and fragment")
        if "@" in parts.netloc:
            raise UsageError("server holds a user name or password; credentials are bound to security schemes instead")


def _stem(uri: str | None) -> str:
    """The name of the document's file without what follows its first dot; empty for a text or a mapping."""
    return unquote(urlsplit(uri or "").path).rpartition("/")[2].partition(".")[0]


class _Run:
    """One generation, step by step: read, build, put together."""

    def __init__(self, reader: Reader, selection: Selection, skip_deprecated: bool, progress: Progress) -> None:
        self.reader = reader
        self.selection = selection
        self.skip_deprecated = skip_deprecated
        self.progress = progress
        self.taken: list[tuple[Operation, str]] = []
        self.skipped: list[Skipped] = []
        self.order: list[Operation | Skipped] = []
        self.filtered = 0

    def read(self) -> None:
        """Read every operation and select; an operation whose path no request can be sent to is skipped."""
        for operation in self.reader.operations():
            try:
                path = endpoint_path(operation.path)
            except ValueError as error:
                reason = Diagnostic("skipped", str(error), operation.pointer)
                operation, path = Skipped(operation.method, operation.path, operation.pointer, reason), operation.path
            tags, identifier = (
                (operation.tags, operation.operation_id) if isinstance(operation, Operation) else ((), None)
            )
            wanted = self.selection.takes(operation.method, path, tags, identifier)
            if not wanted or (self.skip_deprecated and getattr(operation, "deprecated", False)):
                self.filtered += 1
                continue
            self.order.append(operation)
            if isinstance(operation, Operation):
                self.taken.append((operation, path))
        if not self.taken:
            raise self._nothing_left()

    def _nothing_left(self) -> SelectionError:
        reasons = [Problem(o.reason.message, o.reason.pointer) for o in self.order if isinstance(o, Skipped)][:20]
        if reasons:
            return SelectionError("no operation can be made into a tool", reasons)
        if self.filtered:
            why = f"{self.filtered} operations were left out by include, exclude or skip_deprecated"
            return SelectionError(
                f"no operation is left: {why}", [Problem(f"{f!r} matches nothing") for f in self.unused()]
            )
        filters = "filters were set" if self.selection.is_set else "no filter was set"
        return SelectionError(f"no operation is left: the document has none ({filters})")

    def unused(self) -> list[str]:
        return self.selection.unused()

    def build(self, server: str | None, name_prefix: str, name_limit: int) -> None:
        """Make the tools as raw data, the request's side first."""
        named = [(one.method, path, one.operation_id, one.pointer) for one, path in self.taken]
        names = tool_names(named, prefix=name_prefix, limit=name_limit)
        self.builder = Builder(self.reader.references, Siblings(self._all_paths()))
        self.tools: list[dict[str, Any]] = []
        total = len(names)
        for done, ((operation, path), name) in enumerate(zip(self.taken, names, strict=True)):
            self.tools.append(self.builder.tool(operation, path, name))
            if done % 64 == 0:
                self.progress(done, total)
        self.builder.responses(self.tools, [operation for operation, _ in self.taken])
        self.progress(total, total)

    def _all_paths(self) -> list[str]:
        found: dict[str, None] = {}
        for path in self.reader.paths():
            try:
                found[endpoint_path(path)] = None
            except ValueError:
                continue
        return list(found)

    def toolset(self, api: str, server: str | None, digest: str) -> Toolset:
        """The finished Toolset with its report."""
        reader = self.reader
        own = server or (self.builder.server(reader.servers[0]) if reader.servers else None)
        definitions = self.builder.definitions(self.tools)
        made = Toolset.model_validate(
            {
                "api": api,
                "document": {"title": reader.title, "version": reader.version, "digest": digest},
                "server": own,
                "securitySchemes": self._security_schemes(),
                "schemas": definitions.schemas,
                "tools": self.tools,
            }
        )
        made.adopt(definitions)
        made._report = self._report(made)
        return made

    def _security_schemes(self) -> dict[str, dict[str, Any]]:
        """The document's schemes; one that is required and not declared is there without a type: nothing fits it."""
        needed = (name for tool in self.tools for names in tool["request"]["security"] for name in names)
        return {**self.reader.security_schemes, **{n: {} for n in needed if n not in self.reader.security_schemes}}

    def _report(self, made: Toolset) -> Report:
        tools = iter(made.tools)
        entries: list[OperationReport] = []
        for operation in self.order:
            if isinstance(operation, Skipped):
                entry = OperationReport(operation.method, operation.path, operation.pointer, None, (operation.reason,))
            else:
                tool = next(tools)
                found = (*operation.diagnostics, *self.builder.faults(tool.name))
                entry = OperationReport(operation.method, operation.path, operation.pointer, tool.name, tuple(found))
            entries.append(entry)
        notes = [Diagnostic("note", f"the filter {text!r} matches no operation", "") for text in self.unused()]
        document = (*self.reader.diagnostics, *self.builder.unknown(), *notes)
        return Report(tuple(entries), document, self.filtered, _servers(made))


def _servers(made: Toolset) -> tuple[str, ...]:
    found = [made.server, *(tool.request.server for tool in made.tools)]
    return tuple(dict.fromkeys(s if isinstance(s, str) else s.url for s in found if s is not None))


def _digest(contents: Sequence[bytes]) -> str:
    """Of everything that was read: one document's bytes, or all of them with their lengths."""
    whole = sha256(contents[0])
    for content in contents[1:]:
        whole.update(len(content).to_bytes(8, "big") + sha256(content).digest())
    return f"sha256:{whole.hexdigest()}"
