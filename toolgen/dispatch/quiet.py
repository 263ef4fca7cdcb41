"""Keeps what is sent and answered out of the logs of the libraries that carry it.

httpcore2 writes answers to its log at DEBUG level, headers, reason phrases and what it could not read included,
and httpx2 the URLs of token requests at INFO level. An API may repeat a credential in any of these.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LOGGERS: Final = ("httpx2", *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))
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


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_passes)
