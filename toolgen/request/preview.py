"""What a person reads before deciding: the request that would be sent, redacted and made visible.

It is made from the resolved request alone, URL, headers and body bytes, never from what a model said it
does. Nothing in it hides: what was escaped is flagged, what was cut is named and can be had whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from toolgen.errors import did_you_mean
from toolgen.identity.redact import Redactor
from toolgen.request.model import ResolvedRequest
from toolgen.request.path import path_template
from toolgen.request.shown import CHARACTERS, Content, Cut, Field, Later, Shower
from toolgen.request.shown_body import body_content, pairs
from toolgen.request.visible import shown_host

# RFC 3986 appendix B; no library that repairs a URL before it is shown.
_URL = re.compile(r"(?P<scheme>[^:/?#]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Preview:
    """A request as it may be shown to anybody who decides about it; every text in it is safe to show.

    `host` is ASCII, `template` the tool's path with `path_values` for its placeholders, decoded. `query`,
    `headers` and `cookies` are decoded, in the order they are sent; `later` is filled in when it is sent.
    `credentials` are the names of security schemes: the alternatives, each with all it needs; empty where none
    is sent. `flags` are what a reader must know, `notes` what became of arguments that are not sent, `cuts` what
    is not shown whole.
    """

    tool: str
    method: str
    url: str
    host: str
    template: str
    path_values: tuple[Field, ...] = ()
    query: tuple[Field, ...] = ()
    headers: tuple[Field, ...] = ()
    cookies: tuple[Field, ...] = ()
    later: tuple[Later, ...] = ()
    credentials: tuple[tuple[str, ...], ...] = ()
    body: Content | None = None
    notes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    cuts: tuple[Cut, ...] = ()
    _wholes: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether everything is shown whole; what was redacted counts as shown."""
        return not self.cuts

    def whole(self, place: str) -> str:
        """The whole of a value that was cut, redacted and visible. Raises KeyError for a place without a cut."""
        if place not in self._wholes:
            raise KeyError(f"nothing was cut at {place!r}" + did_you_mean(place, self._wholes))
        return self._wholes[place]

    def to_dict(self) -> dict[str, Any]:
        """The preview as JSON-ready data."""
        from toolgen.request.render import as_dict

        return as_dict(self)

    def text(self, width: int | None = None) -> str:
        """The preview for a terminal; lines longer than `width` columns go on below, indented."""
        from toolgen.request.render import as_text

        return as_text(self, width)

    def __str__(self) -> str:
        return self.text()


def preview(request: ResolvedRequest, redactor: Redactor | None = None, *, limit: int | None = CHARACTERS) -> Preview:
    """The preview of a request.

    `redactor` may know secrets by their value. `limit` is how many characters of one value are shown; of a
    body 200 lines are. With None nothing is cut.
    """
    show = Shower(redactor or Redactor(), limit)
    tool = request.tool
    url = _Url(show, request)
    headers, cookies = _headers(show, request)
    body = None
    if request.body is not None:
        body = body_content(show, request.body, request.media_type, request.parts)
    elif request.media_type is not None:
        show.flag("there is a Content-Type and no body")
    return Preview(
        tool=show.text("tool", tool.name),
        method=show.text("method", request.method),
        url=url.shown,
        host=url.host,
        template=show.text("path", tool.request.template or tool.endpoint.path),
        path_values=url.values,
        query=pairs(show, "query", url.query),
        headers=headers,
        cookies=cookies,
        later=_later(show, request),
        credentials=tuple(tuple(show.text("credentials", name) for name in all_of) for all_of in tool.request.security),
        body=body,
        notes=tuple(show.text("notes", note) for note in request.notes),
        flags=show.flags,
        cuts=tuple(show.cuts),
        _wholes=MappingProxyType(show.wholes),
    )


class _Url:
    """A request's URL, shown as a whole and in its pieces."""

    def __init__(self, show: Shower, request: ResolvedRequest) -> None:
        match = _URL.fullmatch(request.url)
        if match is None:
            show.flag("the URL cannot be read")
            self.shown, self.host, self.query = show.safe("url", show.redactor.url(request.url)), "", ""
            self.values: tuple[Field, ...] = ()
            return
        path, self.values = _path(show, request, match["path"])
        self.query = match["rest"].partition("#")[0].removeprefix("?")
        if "#" in match["rest"]:
            show.flag("the URL has a fragment")
        authority, self.host = _authority(show, match["authority"])
        url = f"{match['scheme']}://{authority}{path}{match['rest']}"
        self.shown = show.safe("url", show.redactor.url(url))


def _authority(show: Shower, authority: str) -> tuple[str, str]:
    """The authority with its host in ASCII, and the host."""
    userinfo, at, place = authority.rpartition("@")
    if at:
        show.flag("the URL has userinfo in front of its host")
    host, colon, port = place.rpartition(":") if re.search(r":[^\]]*$", place) else (place, "", "")
    shown, told = shown_host(host)
    if told:
        show.flag(told)
    return f"{userinfo}{at}{shown}{colon}{port}", show.text("host", shown)


def _path(show: Shower, request: ResolvedRequest, path: str) -> tuple[str, tuple[Field, ...]]:
    """The path without the values that their placeholders say are secrets, and the values, decoded."""
    base = urlsplit(request.server).path.rstrip("/")
    template = path_template(request.tool)
    names = template.pieces[1::2]
    values = template.values(path.removeprefix(base)) if path.startswith(base) else None
    if values is None:
        show.flag("the path of the URL is not one of the tool's path template")
        return path, ()
    fields, redacted = [], {}
    for name, value in zip(names, values, strict=True):
        decoded = unquote(value, errors="surrogateescape")
        fields.append(show.named(f"path {name}", name, decoded))
        shown = show.redactor.named(name, decoded)
        redacted[name] = value if shown == decoded else quote(shown, safe="<>", errors="surrogatepass")
    return base + template.fill(redacted), tuple(fields)


def _headers(show: Shower, request: ResolvedRequest) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """The headers, and the cookies among them (RFC 6265 section 4.2.1), each judged by its own name."""
    headers, cookies = [], []
    if sum(name.lower() == "content-type" for name, _ in request.headers) > 1:
        show.flag("there is more than one Content-Type")
    for name, value in request.headers:
        if name.lower() != "cookie":
            headers.append(show.named(f"header {name}", name, value))
            continue
        for pair in value.split(";"):
            key, _, text = pair.strip(" ").partition("=")
            cookies.append(show.named(f"cookie {key}", unquote(key), unquote(text, errors="surrogateescape")))
    return tuple(headers), tuple(cookies)


def _later(show: Shower, request: ResolvedRequest) -> tuple[Later, ...]:
    found = []
    for deferred in request.deferred:
        name = deferred.name if deferred.location == "header" else unquote(deferred.name)
        shown = show.named(f"{deferred.location} {name}", name, str(deferred.value))
        found.append(Later(deferred.location, shown.name, shown.value))
    if request.idempotency is not None:
        found.append(Later("header", show.text("headers", request.idempotency), "one value per call"))
    return tuple(found)
