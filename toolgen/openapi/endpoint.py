"""The path of an endpoint: the one function that normalises it, and what a path template contains.

RFC 3986 section 6.2.2 says which spellings of a path are equivalent; the OpenAPI Specification
("Path Templating") says what a template is. What two servers could read differently is refused.
"""

from __future__ import annotations

import re

_URL = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^{}\s\\%<>\"|^`\[\]:@]+)(?::[0-9]{0,5})?")
EXPRESSION = re.compile(r"(\{[^{}]+\})")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?]")
_PLAIN = re.compile(r"(?:/[A-Za-z0-9\-_~!$&'()*+,;=:@]+(?:\.[A-Za-z0-9\-_~]+)*|/\{[A-Za-z0-9_-]+\})+")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SLASHES = re.compile(r"/{2,}")
# An encoded separator is decoded by some servers and routers and not by others.
_REFUSED = {"/": "an encoded slash", "\\": "a backslash", "\0": "NUL"}


def endpoint_path(path: str) -> str:
    """A path template as it stands in an endpoint's key; idempotent.

    An absolute http(s) URL gives its path. The result starts with `/`, has no query and no
    fragment; runs of `/` count as one, unreserved `%xx` are decoded and others upper-cased, what a
    URL cannot carry raw is percent-encoded. Template expressions (`{petId}`) stay as written.

    Raises ValueError for a `.` or `..` segment, an encoded `/`, `\\` or NUL, and a URL without a
    readable host.
    """
    if _PLAIN.fullmatch(path):  # nearly every path of every document
        return path
    return _SLASHES.sub("/", _normalised(path, keep_query=False))


def request_target(path: str) -> str:
    """The path template as it is sent: like `endpoint_path`, with a constant query and `//` kept.

    Raises ValueError like `endpoint_path`.
    """
    return path if _PLAIN.fullmatch(path) else _normalised(path, keep_query=True)


def origin_of(path: str) -> str | None:
    """`scheme://authority` of a path that is an absolute URL, else None."""
    match = _URL.match(path.strip())
    return match[0] if match else None


def placeholders(template: str) -> list[str]:
    """The names in a path template's expressions, in order, repeated ones repeated."""
    return [expression[1:-1] for expression in EXPRESSION.findall(template)]


def fragment_placeholders(path: str) -> list[str]:
    """The names in expressions behind a path's `#`, which is not part of a request."""
    pieces = EXPRESSION.split(path)
    first = next((index for index in range(0, len(pieces), 2) if "#" in pieces[index]), len(pieces))
    return [piece[1:-1] for piece in pieces[first + 1 :: 2]]


def skeleton(path: str) -> list[str]:
    """The segments of a normalised path; every template expression is written `{}`."""
    return EXPRESSION.sub("{}", path).split("/")[1:]


def _normalised(path: str, *, keep_query: bool) -> str:
    pieces: list[str] = []
    in_query = False
    for index, piece in enumerate(EXPRESSION.split(_without_authority(path.strip()))):
        if index % 2:  # an expression
            pieces.append(piece)
            continue
        text, hash_mark, _ = piece.partition("#")
        if not in_query:
            text, in_query, query = text.partition("?")[0], "?" in text, text.partition("?")[2]
            pieces.append(_ESCAPE.sub(_escape, text))
            if in_query and keep_query:
                pieces.append("?" + _ESCAPE.sub(_escape_query, query))
        elif keep_query:
            pieces.append(_ESCAPE.sub(_escape_query, text))
        if hash_mark or (in_query and not keep_query):
            break
    whole = "".join(pieces)
    if whole[-1:] == "?":
        whole = whole[:-1]
    whole = whole if whole.startswith("/") else "/" + whole
    dots = [s for s in EXPRESSION.sub("{}", whole).partition("?")[0].split("/") if s in (".", "..")]
    if dots:
        raise ValueError(f"the path has a {dots[0]!r} segment, which clients and servers resolve differently")
    return whole


def _without_authority(path: str) -> str:
    match = _URL.match(path)
    if match is None:
        return path
    if not _HOST.fullmatch(match[1]):
        raise ValueError("the path is a URL whose host cannot be read")
    return path[match.end() :] or "/"


def _escape(match: re.Match[str]) -> str:
    char = match[0] if match[1] is None else chr(int(match[1], 16))
    if char in _REFUSED:
        raise ValueError(f"the path contains {_REFUSED[char]}, which servers read differently")
    return _encoded(match, char)


def _escape_query(match: re.Match[str]) -> str:
    if match[1] is None and match[0] in "[]":  # never encoded by clients, read raw by servers
        return match[0]
    return _encoded(match, match[0] if match[1] is None else chr(int(match[1], 16)))


def _encoded(match: re.Match[str], char: str) -> str:
    if match[1] is None:
        return "".join(f"%{byte:02X}" for byte in char.encode())
    return char if char in _UNRESERVED else match[0].upper()
