"""The resolved request: what would be sent, down to the byte, and what is filled in only when it is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from toolgen.identity.origin import Origin
from toolgen.identity.references import ReferenceText
from toolgen.tools.model import Tool

if TYPE_CHECKING:
    from toolgen.request.preview import Preview


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart body; `headers` are those besides Content-Disposition and Content-Type."""

    name: str
    data: bytes
    filename: str | None = None
    content_type: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Deferred:
    """A value that holds references to secrets or to the caller: filled in when the request is sent.

    `name` is the wire name, in a query and in cookies already percent-encoded. What a literal piece of
    `value` says is sent as data, like every other value.
    """

    location: Literal["header", "query", "cookie"]
    name: str
    value: ReferenceText


@dataclass(frozen=True)
class ResolvedRequest:
    """The unsent request. The same tool and arguments give the same bytes.

    `url` is absolute and has the query; `headers` stand in the order they are sent and hold no
    credential. `server` is the URL of the server without the path of the operation. `deferred` values and
    credentials are added when it is sent; `idempotency` names a header that then gets one value per
    call. `parts` are those of a multipart body. `notes` tell a reader what became of arguments that are
    not sent. `is_undeclared`: the API's document has no such operation, and `tool` only stands for it.
    """

    tool: Tool = field(repr=False)
    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    server: str
    deferred: tuple[Deferred, ...] = ()
    idempotency: str | None = None
    parts: tuple[Part, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    is_undeclared: bool = False

    @property
    def origin(self) -> Origin:
        """Scheme, host and port the request goes to."""
        found = Origin.of(self.url)
        assert found is not None  # resolve() refuses a server without one
        return found

    @property
    def media_type(self) -> str | None:
        """The body's Content-Type, parameters and all; None without a body."""
        return next((value for name, value in self.headers if name.lower() == "content-type"), None)

    def preview(self) -> Preview:
        """What a person reads before deciding: everything that is sent, redacted and escaped."""
        from toolgen.request.preview import preview

        return preview(self)

    def fingerprint(self, key: bytes) -> str:
        """HMAC-SHA-256 of the request under a key, as 64 hex digits; see `toolgen.request.fingerprint`."""
        from toolgen.request.fingerprint import fingerprint

        return fingerprint(self, key)
