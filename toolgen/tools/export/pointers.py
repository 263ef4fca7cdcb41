"""References into a schema's own definitions, and JSON pointers for notes (RFC 6901)."""

from __future__ import annotations

from typing import Any

_PREFIX = "#/$defs/"


def escape(token: str) -> str:
    """A key as a JSON pointer token."""
    return token.replace("~", "~0").replace("/", "~1")


def target_of(schema: Any) -> str | None:
    """The name of the definition a schema refers to; a reference to anything else is given as it stands."""
    target = schema.get("$ref") if isinstance(schema, dict) else None
    if not isinstance(target, str):
        return None
    name = target.removeprefix(_PREFIX)
    return name.replace("~1", "/").replace("~0", "~") if name != target else target


def reference_to(name: str) -> str:
    """The reference to a definition of that name."""
    return _PREFIX + escape(name)
