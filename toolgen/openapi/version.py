"""Which version of the specification a document says it follows."""

from __future__ import annotations

import re
from typing import Any, Literal

from toolgen.errors import DocumentError, Problem

Dialect = Literal["2.0", "3.0", "3.1"]
"""How schemas are written: 3.1 and 3.2 are JSON Schema 2020-12, the older ones are not."""


def declared_dialect(tree: Any) -> Dialect | None:
    """The dialect a document declares, or None if it declares none toolgen knows."""
    if not isinstance(tree, dict):
        return None
    if re.fullmatch(r"2(\.0)*", str(tree.get("swagger", ""))):
        return "2.0"
    version = re.match(r"3(?:\.([012])(?!\d)|\.?$)", str(tree.get("openapi", "")).strip())
    if version is None:
        return None
    return "3.0" if version[1] in (None, "0") else "3.1"


def dialect_of(tree: Any, where: str) -> Dialect:
    """The dialect of a root document. Raises DocumentError, saying what the document is instead."""
    dialect = declared_dialect(tree)
    if dialect is not None:
        return dialect
    if not isinstance(tree, dict):
        raise DocumentError("not an OpenAPI document", [Problem(f"it is {_kind(tree)}, not an object", where)])
    for key in ("openapi", "swagger", "swaggerVersion"):
        if key in tree:
            problem = Problem(
                f"{key}: {str(tree[key])[:40]!r} is not supported", where, hint="2.0, 3.0, 3.1 and 3.2 are"
            )
            raise DocumentError("not a version toolgen reads", [problem])
    hint = "a document starts with `openapi: 3.x.y` or `swagger: '2.0'`"
    raise DocumentError(
        "not an OpenAPI document", [Problem("it has no `openapi` and no `swagger` key", where, hint=hint)]
    )


def _kind(value: Any) -> str:
    names = {list: "an array", str: "text", bool: "a boolean", type(None): "empty"}
    return names.get(type(value), "a number")
