"""What careless servers make of a request: every method, path, host and name that one of them could see.

Written without a look at how requests are built, from what real servers, proxies and frameworks do: decoding
more than once, `\\` as `/`, `;` cut off, case and dots and formats ignored, overrides obeyed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import product
from urllib.parse import unquote, unquote_plus

from raw_server import Received

_METHOD_HEADERS = {"x-http-method", "x-http-method-override", "x-method-override"}
_PATH_HEADERS = {"x-original-url", "x-rewrite-url", "x-forwarded-uri", "x-original-uri"}
_HOST_HEADERS = {"host", "x-forwarded-host", "x-host", "x-forwarded-server", "x-original-host"}
_METHOD_KEYS = {"_method", "_httpmethod", *_METHOD_HEADERS}


def name_of(header: str) -> str:
    return header.strip().lower().replace("_", "-")


_TOO_LONG = re.compile("%c0%(af|ae)|%e0%80%(af|ae)|%u00(2f|2e|5c)", re.IGNORECASE)


def decodings(text: str) -> Iterator[str]:
    """The text, decoded up to four times, also where UTF-8 is too long (`%c0%af`) or as old IIS has it (`%u002f`)."""
    for _ in range(5):
        yield text
        text = _TOO_LONG.sub(lambda match: _LONG[(match[1] or match[2] or match[3]).lower()], text)
        text = unquote(text, errors="replace")


_LONG = {"af": "/", "ae": ".", "2f": "/", "2e": ".", "5c": "\\"}


def paths(target: str) -> set[str]:
    """Every path that a server could route by."""
    target = re.sub(r"^https?://[^/]*", "", target, flags=re.IGNORECASE)
    cut: set[str] = set()  # most are the same, and each is dear
    for decoded in decodings(target.partition("?")[0]):
        cut |= {decoded, *(decoded.partition(end)[0] for end in "?#\0\r\n")}
    return {path for one in cut for path in _normal(one)}


def _normal(path: str) -> Iterator[str]:
    for slashes, parameters, dots, merged in product((False, True), repeat=4):
        now = path.replace("\\", "/") if slashes else path
        if parameters:
            now = "/".join(segment.partition(";")[0] for segment in now.split("/"))
        if merged:
            now = re.sub(r"/+", "/", now)
        if dots:
            now = _without_dots(now)
        yield now.casefold()
        tidy = "/".join(segment.strip().rstrip(".") for segment in now.split("/")).rstrip("/") or "/"
        yield tidy.casefold()
        yield re.sub(r"\.[a-z0-9]{1,8}$", "", tidy.casefold())


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for segment in path.split("/"):
        if segment.strip() == "..":
            kept = kept[:-1] or [""]
        elif segment.strip() != ".":
            kept.append(segment)
    return "/".join(kept) or "/"


def matches(template: str, path: str) -> bool:
    parts = re.split(r"\{[^}]*\}", template.casefold())
    return re.fullmatch("[^/]+".join(map(re.escape, parts)), path, re.DOTALL) is not None


def operations(received: Received, known: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Every (method, template) that some server takes the request for, literal paths before templates.

    A path that is no known one is `(method, path)` in full.
    """
    headers = [(name_of(name), value) for name, value in received.headers]
    methods = {received.method} | {value.strip().upper() for name, value in headers if name in _METHOD_HEADERS}
    methods |= {value.strip().upper() for name, value in fields(received) if name in _METHOD_KEYS}
    targets = [received.target] + [value for name, value in headers if name in _PATH_HEADERS]
    ordered = sorted({template for _, template in known}, key=lambda template: "{" in template)
    found: set[tuple[str, str]] = set()
    for path in {path for target in targets for path in paths(target)}:
        literal = [one for one in ordered if "{" not in one and matches(one, path)]
        templates = literal or [one for one in ordered if matches(one, path)] or [path]
        found |= {(method, template) for method in methods for template in templates}
    return found


def fields(received: Received) -> Iterator[tuple[str, str]]:
    """Names and values of the query, and of a body that is a form, multipart or a JSON object, in lower case."""
    kind = (received.header("content-type") or "").partition(";")[0]
    texts = [received.target.partition("?")[2]]
    if kind == "application/x-www-form-urlencoded":
        texts.append(received.body.decode())
    for text in texts:
        for pair in re.split("[&;]", text):
            for decoded in decodings(pair.replace("+", " ")):
                name, _, value = decoded.partition("=")
                yield name.strip().lower(), value
    if kind == "multipart/form-data":
        for part in re.finditer(rb'(?i)name="([^"\r\n]*)"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n([^\r]*)', received.body):
            yield part[1].decode().lower(), part[2].decode()
    if kind == "application/json" and received.body:
        data = json.loads(received.body)
        for name, value in data.items() if isinstance(data, dict) else ():
            yield name.strip().lower(), str(value)


def query_names(received: Received) -> set[str]:
    """The names of the query as a server reads them, `;` as a separator, `#` as its end, decoded once."""
    query = re.split("#", received.target.partition("?")[2])[0]
    return {unquote_plus(pair.partition("=")[0]) for pair in re.split("[&;]", query) if pair}


def cookie_names(received: Received) -> set[str]:
    """The names of the cookies, at every separator that some server takes."""
    text = received.header("cookie") or ""
    return {pair.partition("=")[0].strip() for pair in re.split("[;,]", text) if pair.strip()}


def hosts(received: Received) -> set[str]:
    """Every host that a server could take the request to be for."""
    found = {value for name, value in received.headers if name_of(name) in _HOST_HEADERS}
    absolute = re.match(r"https?://([^/]*)|//([^/?#]*)", received.target, re.IGNORECASE)
    return found | ({absolute[1] or absolute[2]} if absolute else set())
