"""Origins: scheme, host and effective port (RFC 6454), by which it is decided where a credential may go."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """An http(s) origin; the host in lower case, the port always a number."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """The origin of a URL; None where it has none that could be compared."""
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
        except ValueError:
            return None
        if scheme not in _PORTS or not host or port == 0 or "%" in host:
            return None
        return cls(scheme, host.lower().rstrip("."), _PORTS[scheme] if port is None else port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")
