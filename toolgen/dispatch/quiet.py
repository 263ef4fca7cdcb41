"""Keeps what is sent and answered out of the logs of the libraries that carry it.

httpcore2 writes answers to its log at DEBUG level, headers, reason phrases and what it could not read included,
and httpx2 the URLs of token requests at INFO level. An API may repeat a credential in any of these. The MCP client
writes whole messages, arguments and results, and at ERROR level what it could not read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_HTTP: Final = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
_MCP: Final = (
    "client",  # the session's, which calls itself so
    *(f"mcp.client.{part}" for part in ("client", "session", "stdio", "streamable_http")),
    *(f"mcp.shared.{part}" for part in ("dispatcher", "jsonrpc_dispatcher", "tool_name_validation")),
)
_is_quiet: ContextVar[bool] = ContextVar("toolgen_quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Let the HTTP libraries log nothing of what is done inside; whatever else uses them logs as before."""
    before = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(before)


def _passes(_: logging.LogRecord) -> bool:
    return not _is_quiet.get()


for _name in (*_HTTP, *_MCP):
    logging.getLogger(_name).addFilter(_passes)
