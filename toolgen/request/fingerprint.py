"""The keyed digest of a resolved request: two requests that differ for a server differ here.

Order of headers, case of header names and of the method, and the order of query parameters of different
names do not count. Credentials are no part of a resolved request; a reference counts as its unresolved text.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator

from toolgen.identity.references import ReferenceText
from toolgen.request.model import Deferred, ResolvedRequest


def fingerprint(request: ResolvedRequest, key: bytes) -> str:
    """HMAC-SHA-256 over the request, as 64 hex digits. Raises ValueError for a key under 16 bytes.

    It lets nobody guess what was redacted who does not have the key; it is for stores, not for clients.
    """
    if len(key) < 16:
        raise ValueError("a fingerprint takes a key of at least 16 bytes")
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for field in _fields(request):
        digest.update(len(field).to_bytes(8, "big") + field)  # lengths, so that no byte moves between fields
    return digest.hexdigest()


def _fields(request: ResolvedRequest) -> Iterator[bytes]:
    url, _, query = request.url.partition("?")
    yield b"toolgen request 1"
    yield request.method.upper().encode()
    yield url.encode()
    pairs = [pair for pair in query.split("&") if pair]
    yield from _group(b"query", sorted(pairs, key=lambda pair: pair.partition("=")[0]))
    lines = [(name.lower(), value) for name, value in request.headers]
    yield from _group(b"headers", (part for line in sorted(lines, key=lambda line: line[0]) for part in line))
    deferred = sorted((_named(one) for one in request.deferred), key=lambda one: one[:2])
    yield from _group(b"references", (part for one in deferred for part in (str(len(one)), *one)))
    yield from _group(b"idempotency", [request.idempotency.lower()] if request.idempotency else [])
    yield b"body" if request.body is not None else b"no body"
    yield request.body or b""


def _named(one: Deferred) -> tuple[str, ...]:
    name = one.name.lower() if one.location == "header" else one.name  # other names have a case
    return one.location, name, *_typed(one.value)


def _typed(text: ReferenceText) -> Iterator[str]:
    """The pieces, each marked: a text that looks like a reference is another thing than the reference."""
    for piece in text.pieces:
        yield f"text {piece}" if isinstance(piece, str) else f"reference {piece}"


def _group(name: bytes, texts: Iterable[str]) -> Iterator[bytes]:
    listed = [text.encode() for text in texts]
    yield name + b" %d" % len(listed)
    yield from listed
