"""Origins: scheme, host and effective port (RFC 6454), by which it is decided where a credential may go."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
# What URL parsers read differently, or drop without a word: two of them would then see two hosts.
_AMBIGUOUS = re.compile(r"[\x00-\x20\x7f\\]|[^\x00-\x7f]")
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class Origin(NamedTuple):
    """An http(s) origin; the host in lower case, the port always a number."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Origin | None:
        """The origin of a URL; None where it has none that could be compared.

        That is any scheme but http and https, a host that is not ASCII (write `xn--...`), a user name
        before the host, and characters that parsers do not agree about.
        """
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme.lower(), parts.hostname, parts.port
        except ValueError:
            return None
        if scheme not in _PORTS or not host or port == 0 or "@" in parts.netloc or _AMBIGUOUS.search(_head(url)):
            return None
        comparable = _host(host.lower(), bracketed="[" in parts.netloc)
        return None if comparable is None else cls(scheme, comparable, _PORTS[scheme] if port is None else port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")


def _head(url: str) -> str:
    """Scheme and authority, as they are written."""
    return re.split(r"(?<=[^:/])[/?#]", url, maxsplit=1)[0]


def _host(host: str, *, bracketed: bool) -> str | None:
    if bracketed:
        try:
            return ipaddress.IPv6Address(host).compressed if "%" not in host else None
        except ValueError:
            return None
    name = host.removesuffix(".")  # the same name in DNS
    return name if _NAME.fullmatch(name) else None
