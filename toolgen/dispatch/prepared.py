"""A resolved request with its credentials in place: the bytes of one HTTP request.

What was resolved is sent as it was: nothing is dropped, renamed or normalised. What is added is named here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote_plus
from uuid import uuid4

import httpx2

from toolgen.errors import DispatchRefused
from toolgen.overrides import canonical
from toolgen.request.model import ResolvedRequest

USER_AGENT: Final = "toolgen"
# Encodings that are unpacked in steps, so that a small answer cannot become a large one before it is counted.
ACCEPT_ENCODING: Final = "gzip, deflate"
_OWN: Final = (("User-Agent", USER_AGENT), ("Accept-Encoding", ACCEPT_ENCODING))


class Addition(NamedTuple):
    """A value that is filled in when the request is sent; in a query name and value are percent-encoded."""

    location: Literal["header", "query", "cookie"]
    name: str
    value: str

    def __repr__(self) -> str:
        return f"Addition({self.location!r}, {self.name!r})"


class Prepared(httpx2.Request):
    """A request with its credentials; it shows nothing of itself."""

    def __repr__(self) -> str:
        return "<Prepared>"


def prepared(request: ResolvedRequest, added: Iterable[Addition], idempotency_key: str | None = None) -> Prepared:
    """The request as it is sent: what was resolved, the additions, and the client's own headers.

    A declared idempotency header that the model left out gets `idempotency_key`, or a new value.

    Raises DispatchRefused where a credential would stand beside a value of the same name, and where the HTTP
    client would send another URL than the one that was resolved.
    """
    listed = list(added)
    _check_names(request, listed)
    headers = [(name, value) for name, value in request.headers if name.lower() != "cookie"]
    headers += [(one.name, one.value) for one in listed if one.location == "header"]
    cookies = [value for name, value in request.headers if name.lower() == "cookie"]
    cookies += [f"{one.name}={one.value}" for one in listed if one.location == "cookie"]
    if cookies:
        headers.append(("Cookie", "; ".join(cookies)))
    if request.idempotency is not None:
        headers.append((request.idempotency, idempotency_key or str(uuid4())))
    given = {name.lower() for name, _ in headers}
    headers += [(name, value) for name, value in _OWN if name.lower() not in given]
    url = _with_query(request.url, [f"{one.name}={one.value}" for one in listed if one.location == "query"])
    return Prepared(request.method, _checked_url(url), headers=headers, content=request.body)


def _with_query(url: str, pairs: list[str]) -> str:
    return url + ("&" if "?" in url else "?") + "&".join(pairs) if pairs else url


def _check_names(request: ResolvedRequest, added: Iterable[Addition]) -> None:
    """A credential is the only value of its name: of two, servers take the first, the last, or both."""
    taken = {("header", canonical(name)) for name, _ in request.headers}
    taken |= {("query", _key(pair)) for pair in request.url.partition("?")[2].split("&")}
    cookies = (value for name, value in request.headers if name.lower() == "cookie")
    taken |= {("cookie", pair.partition("=")[0].strip()) for value in cookies for pair in value.split(";")}
    for one in added:
        key = one.location, _compared(one)
        if key in taken:
            raise DispatchRefused(
                f"{request.tool.name}: the {one.location} {one.name} is filled twice, and servers differ in which counts"
            )
        taken.add(key)


def _compared(one: Addition) -> str:
    if one.location == "cookie":
        return one.name
    return canonical(one.name) if one.location == "header" else _key(one.name)


def _key(pair: str) -> str:
    """The name in `name=value` as the least careful server compares it: decoded, without case and brackets."""
    return unquote_plus(pair.partition("=")[0]).partition("[")[0].casefold()


def _checked_url(url: str) -> httpx2.URL:
    """The URL as httpx2 has it, if that is the URL letter by letter. Its text is a secret by now."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise DispatchRefused("the HTTP client cannot read the URL of the request") from None
    authority, slash, target = url.partition("://")[2].partition("/")
    same_host = parsed.netloc.decode("ascii") == _without_default_port(parsed.scheme, authority)
    if not slash or not same_host or parsed.raw_path != f"/{target}".encode():
        raise DispatchRefused("the HTTP client would send another URL than the one that was resolved")
    return parsed


def _without_default_port(scheme: str, authority: str) -> str:
    port: Mapping[str, str] = {"http": ":80", "https": ":443"}
    return authority.removesuffix(port[scheme]).removesuffix(":")
