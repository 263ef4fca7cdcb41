"""Names by which a request says another method than its own; some servers and proxies act on them.

Approval policy sees the endpoint's method, so it must be the one a server uses.
"""

from __future__ import annotations

from typing import Final

METHOD_HEADERS: Final = frozenset(
    "x-http-method x-http-method-override x-method-override x-original-method x-forwarded-method".split()
)
METHOD_KEYS: Final = frozenset({"_method", "_httpmethod", "x-http-method-override", "x-http-method"})


def canonical(name: str) -> str:
    """A header's name as the least careful server compares it: through CGI, `_` is `-`."""
    return name.strip().lower().replace("_", "-")


def is_method_header(name: str) -> bool:
    """Whether a header of that name overrides the method."""
    return canonical(name) in METHOD_HEADERS


def is_method_key(name: str) -> bool:
    """Whether a query parameter, cookie or body field of that name overrides the method."""
    return name.strip().lower() in METHOD_KEYS or is_method_header(name)
