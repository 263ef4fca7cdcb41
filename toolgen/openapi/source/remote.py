"""http(s) URL -> bytes: which host may be asked, what is sent to it, and when to stop.

What httpx2 parsed is what is checked, so that two parsers cannot disagree about the host. Messages
name neither header values nor userinfo nor a query: any of them can be a secret.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolgen.errors import LimitExceeded, SourceRefused, SourceUnavailable, UsageError

if TYPE_CHECKING:
    import httpx2

_REDIRECTS = (301, 302, 303, 307, 308)
_ENCODINGS = ("", "identity", "gzip", "deflate")  # others, or several, unpack a chunk to any size before it is counted
_PORTS = {"http": 80, "https": 443}
_HOST_HINT = "allow it with allow_hosts= or --allow-host HOST"


class Remote:
    """Fetches documents for one Loader.

    `hosts` are those that may be asked besides the one of the URL a person gave: `host` (any port)
    or `host:port`. `headers` are sent to that URL's origin only, on every hop anew.
    """

    def __init__(
        self, size: int, seconds: float, redirects: int, hosts: Sequence[str], headers: Mapping[str, str]
    ) -> None:
        for name, value in headers.items():
            if not (name.isascii() and name.isprintable() and value.isascii() and value.isprintable()):
                raise UsageError(f"the header {name!r} has characters that a header cannot have")
        self._size, self._seconds, self._redirects = size, seconds, redirects
        self._hosts = frozenset(map(_host_entry, hosts))
        self._headers = dict(headers)
        self.origin: tuple[str, str, int] | None = None  # gets the headers: that of the URL a person gave

    def get(self, url: str, *, reference: bool = False) -> tuple[str, bytes]:
        """The final URL, without fragment, and the content, unpacked.

        Without `reference` the URL is one a person gave: its host needs no permission and its
        origin gets the headers from now on. Raises SourceRefused, SourceUnavailable, LimitExceeded.
        """
        target = self._parsed(url.partition("#")[0])
        if reference:
            self._check_host(target)
        else:
            self.origin = _origin(target)
        home = None if reference else target.host
        return _run(self._follow(target, home))

    def check_allowed(self, url: str) -> None:
        """Raise SourceRefused unless a reference may point to this URL."""
        self._check_host(self._parsed(url))

    def shown(self, url: str) -> str:
        """The URL as a message may show it."""
        return _shown(self._parsed(url))

    def _parsed(self, url: str) -> httpx2.URL:
        import httpx2

        try:
            target = httpx2.URL(url)
        except (httpx2.InvalidURL, UnicodeError, ValueError):
            raise SourceRefused("the URL is not valid") from None
        if target.scheme not in _PORTS or not target.host or not 0 < (target.port or 1) < 65536:
            raise SourceRefused("only URLs with http:// or https:// and a host are fetched")
        if target.userinfo:
            raise SourceRefused(
                f"the URL of {target.host} carries credentials (give them with headers= or --spec-header)"
            )
        return target

    def _check_host(self, target: httpx2.URL, home: str | None = None) -> None:
        _, host, port = _origin(target)
        if target.host != home and not self._hosts & {(host, None), (host, port)}:
            raise SourceRefused(f"the host {_host_port(target)} may not be asked for documents ({_HOST_HINT})")

    async def _follow(self, target: httpx2.URL, home: str | None) -> tuple[str, bytes]:
        import asyncio

        try:
            async with asyncio.timeout(self._seconds):
                for _ in range(self._redirects + 1):
                    content, location = await self._hop(target)
                    if location is None:
                        return str(target), content
                    target = self._redirected(target, location, home)
        except TimeoutError:
            raise LimitExceeded(f"{_shown(target)} took longer than {self._seconds:g} seconds") from None
        raise LimitExceeded(f"{_shown(target)}: more than {self._redirects} redirects")

    def _redirected(self, target: httpx2.URL, location: str, home: str | None) -> httpx2.URL:
        import httpx2

        try:
            joined = str(target.join(location)).partition("#")[0]
        except (httpx2.InvalidURL, UnicodeError, ValueError):
            raise SourceRefused(f"{_shown(target)} redirects to a URL that is not valid") from None
        following = self._parsed(joined)
        if target.scheme == "https" and following.scheme == "http":
            raise SourceRefused(f"{_shown(target)} redirects from https to http")
        self._check_host(following, home)
        return following

    async def _hop(self, target: httpx2.URL) -> tuple[bytes, str | None]:
        """One request: the content, or where it redirects to."""
        import httpx2

        headers = httpx2.Headers(self._headers if _origin(target) == self.origin else {})
        headers["Accept-Encoding"] = "gzip"
        try:
            async with (
                httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
                client.stream("GET", target, headers=headers) as response,
            ):
                if response.status_code in _REDIRECTS and (location := response.headers.get("location")):
                    return b"", location
                return await self._body(target, response), None
        except httpx2.ConnectError as exc:
            raise SourceUnavailable(f"{_shown(target)} cannot be reached: {exc}") from None
        except httpx2.HTTPError as exc:  # its text may quote a header
            raise SourceUnavailable(f"{_shown(target)} cannot be read: {type(exc).__name__}") from None

    async def _body(self, target: httpx2.URL, response: httpx2.Response) -> bytes:
        if response.status_code != 200:
            raise SourceUnavailable(f"{_shown(target)} answered with status {response.status_code}")
        if response.headers.get("content-encoding", "").strip().lower() not in _ENCODINGS:
            raise SourceUnavailable(f"{_shown(target)} is packed in a way that was not asked for")
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > self._size:
                raise LimitExceeded(f"{_shown(target)} is larger than {self._size} bytes")
        return bytes(content)


def _run(fetch: Coroutine[Any, Any, tuple[str, bytes]]) -> tuple[str, bytes]:
    """Run a coroutine from plain code, also from plain code that an event loop called.

    It is async inside for the deadline: only a cancelled task stops while headers trickle in.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(fetch)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, fetch).result()


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host.lower().rstrip("."), url.port or _PORTS[url.scheme]


def _host_entry(text: str) -> tuple[str, int | None]:
    """`host` or `host:port` as (host, port or None); an IPv6 address with a port stands in brackets."""
    host, port = text.strip().lower(), ""
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    if not host or "/" in host or "@" in host or (port and not port.isdecimal()):
        raise UsageError(f"{text!r} is no host (write HOST or HOST:PORT)")
    return host.rstrip("."), int(port) if port else None


def _host_port(url: httpx2.URL) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return f"{host}:{url.port}" if url.port else host


def _shown(url: httpx2.URL) -> str:
    path = url.raw_path.partition(b"?")[0].decode("ascii", "replace")
    return f"{url.scheme}://{_host_port(url)}{path}{'?...' if url.query else ''}"
