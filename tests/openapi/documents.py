"""Small documents, and what reading them gives: what the tests of `toolgen.openapi` share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import small_documents
import yaml

from toolgen import Tool, Toolset, generate
from toolgen.openapi.model import Operation
from toolgen.openapi.operations import Reader, Skipped
from toolgen.openapi.references import References
from toolgen.openapi.source import Loader
from toolgen.openapi.version import dialect_of

JSON = "application/json"


def parsed(text: str) -> Any:
    return yaml.safe_load(text)


def document(paths: Any = None, version: str = "3.1.0", **rest: Any) -> dict[str, Any]:
    """A document with these paths (YAML or data); `version` 2.0 makes a Swagger document."""
    given = parsed(paths) if isinstance(paths, str) else paths
    return small_documents.document(given or {}, version, **rest)


def one(operation: Any, *, path: str = "/x", method: str = "post", **rest: Any) -> dict[str, Any]:
    """A document with one operation (YAML or data)."""
    given = parsed(operation) if isinstance(operation, str) else operation
    return document({path: {method: given}}, **rest)


def tool(source: Any, **settings: Any) -> Tool:
    """The only tool of a document."""
    (found,) = generate(source, **settings).tools
    return found


def operations(source: Any, **settings: Any) -> list[Operation | Skipped]:
    loaded = Loader(**settings)
    read = loaded.load(source)
    return list(Reader(References(read, dialect_of(read.tree, ""), loaded)).operations())


def operation(source: Any, **settings: Any) -> Operation:
    (found,) = operations(source, **settings)
    assert isinstance(found, Operation), found
    return found


def said(made: Toolset) -> list[str]:
    """Every diagnostic of a toolset's report as `level: message at pointer`."""
    assert made.report is not None
    entries = [*made.report.document, *(d for o in made.report.operations for d in o.diagnostics)]
    return [f"{d.level}: {d}" for d in entries]


def with_schema(schema: Any, *, version: str = "3.1.0", **schemas: Any) -> dict[str, Any]:
    """A document whose only operation sends and answers this schema; `schemas` are its components."""
    media = {"content": {JSON: {"schema": schema}}}
    operation = {"requestBody": media, "responses": {"200": {"description": "ok", **media}}}
    if version == "2.0":
        body = {"name": "b", "in": "body", "schema": schema}
        operation = {"parameters": [body], "responses": {"200": {"description": "ok", "schema": schema}}}
        return document({"/x": {"post": operation}}, version, definitions=schemas)
    return document({"/x": {"post": operation}}, version, components={"schemas": schemas})


def undescribed(schema: Any) -> Any:
    """The schema without the description that a body gets from us."""
    return {k: v for k, v in schema.items() if k != "description"} if isinstance(schema, dict) else schema


def sent(schema: Any, *, version: str = "3.1.0", **schemas: Any) -> Any:
    """What a schema becomes in a request."""
    made = tool(with_schema(schema, version=version, **schemas))
    return undescribed(made.parameters["properties"]["requestBody"])


def answered(schema: Any, *, version: str = "3.1.0", **schemas: Any) -> Any:
    """What a schema becomes in an answer."""
    return tool(with_schema(schema, version=version, **schemas)).response.schema_


def argument(schema: Any, **rest: Any) -> Any:
    """What a schema becomes as the schema of a query parameter."""
    given = {"name": "q", "in": "query", "description": "q", "schema": schema}
    return undescribed(tool(one({"parameters": [given], "responses": {}}, **rest)).parameters["properties"]["q"])


def write(folder: Path, **files: str) -> Path:
    """Write files (`root` is root.yaml and so on) and return the path of root.yaml."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / "root.yaml"
