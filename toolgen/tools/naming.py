"""Names of tools and keys of arguments: valid everywhere, unique, independent of the document's order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NAME_LIMIT = 64
BODY = "requestBody"
API_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
RESERVED_SOURCES = frozenset({"builtin", "http", "mcp", "a2a", "dynamic", "memory", "recall"})
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]+")
_HASH = 6
# Which of two arguments with one key keeps it; the other gets its location as a suffix.
_PRECEDENCE = {"path": 0, "query": 1, "querystring": 2, "header": 3, "cookie": 4}


def slug(text: str) -> str:
    """The text with each run of characters that no name has as one underscore; may be empty."""
    return _ILLEGAL.sub("_", text).strip("_")


def name_from_path(method: str, path: str) -> str:
    """The name of an operation without an id: `get_users_id_posts` for GET /users/{id}/posts."""
    return slug(f"{method} {path.replace('{', '').replace('}', '')}").lower()


def tool_names(
    operations: Sequence[tuple[str, str, str | None, str]], *, prefix: str = "", limit: int = NAME_LIMIT
) -> list[str]:
    """One name per (method, path, operationId, pointer), unique, at most `limit` characters with the prefix.

    A valid operationId is the name. Operations that would share a name all get a suffix made from
    what only they have, so that adding one never hands its name to another; only an operationId
    that is the name letter by letter keeps it against ids that merely resemble it. The pointer
    tells operations apart that have the same endpoint.
    """
    room = limit - len(prefix)
    if room < _HASH + 2:
        raise ValueError(f"the prefix {prefix!r} leaves no room for names of at most {limit} characters")
    wanted = [_wanted(method, path, identifier, room) for method, path, identifier, _ in operations]
    claims = Counter(wanted)
    exact = Counter(one[2] for one, name in zip(operations, wanted, strict=True) if one[2] == name)
    endpoints = Counter(one[:2] for one in operations)
    names: list[str] = []
    for one, name in zip(operations, wanted, strict=True):
        keeps = claims[name] == 1 or (exact[name] == 1 and one[2] == name)
        names.append(name if keeps else _suffixed(name, _seed(one, endpoints[one[:2]]), room))
    return [prefix + name for name in _told_apart(operations, wanted, names, room)]


def _seed(operation: tuple[str, str, str | None, str], sharing: int) -> str:
    method, path, _, pointer = operation
    return f"{method} {path}" if sharing == 1 else pointer


def _wanted(method: str, path: str, identifier: str | None, room: int) -> str:
    name = (slug(identifier) if identifier else "") or name_from_path(method, path) or "operation"
    if identifier and NAME.fullmatch(identifier) and len(identifier) <= room:
        return identifier
    return name if len(name) <= room else _suffixed(name, identifier or f"{method} {path}", room)


def _suffixed(name: str, seed: str, room: int, size: int = _HASH) -> str:
    digest = sha256(seed.encode("utf-8", "replace")).hexdigest()[:size]
    return f"{name[: room - size - 1].rstrip('_-')}_{digest}"


def _told_apart(
    operations: Sequence[tuple[str, str, str | None, str]], wanted: list[str], names: list[str], room: int
) -> list[str]:
    """Made names that are those of others (a hash that equals an id or another hash) get longer hashes."""
    size = _HASH
    while len(set(names)) < len(names):
        size += 2
        counts = Counter(names)
        names = [
            _suffixed(base, f"{one[3]} {size}", room, min(size, room - 1))
            if counts[name] > 1 and name != one[2]
            else name
            for one, base, name in zip(operations, wanted, names, strict=True)
        ]
    return names


def argument_keys(parameters: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A key for each (location, wire name), unique within the tool.

    The wire name is the key if it is valid; two parameters of one name in two locations are two
    arguments, and the path's (then query's, ...) keeps the plain key.
    """
    parameters = list(parameters)
    names = {name for _, name in parameters}
    if len(names) == len(parameters) and all(map(_is_name, names)):
        return {(location, name): name for location, name in parameters}
    keys: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    ranked = sorted(parameters, key=lambda p: (not _is_name(p[1]), _PRECEDENCE[p[0]], p[1]))
    for location, name in ranked:
        plain = _plain_key(name)
        key, count = plain or location, 1
        while key in taken:
            tail = f"_{location}" if count == 1 else f"_{location}_{count}"
            key, count = (plain or location)[: NAME_LIMIT - len(tail)] + tail, count + 1
        keys[location, name] = key
        taken.add(key)
    return keys


@lru_cache(maxsize=4096)
def _plain_key(name: str) -> str:
    if _is_name(name):
        return name
    plain = slug(name)
    return plain if len(plain) <= NAME_LIMIT else _suffixed(plain[:NAME_LIMIT], name, NAME_LIMIT)


@lru_cache(maxsize=4096)
def _is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None


def body_key(taken: Iterable[str]) -> str:
    """The body's argument: `requestBody`, or with `Body` appended until no parameter bears the name."""
    names, key = set(taken), BODY
    while key in names:
        key += "Body"
    return key


def api_name(*candidates: str) -> str:
    """The first candidate that makes an API name (`[a-z][a-z0-9-]{0,31}`, never a source's), else `api`."""
    for candidate in candidates:
        name = re.sub(r"[^a-z0-9]+", "-", candidate.lower()).strip("-")
        name = name[re.search(r"[a-z]|$", name).start() :][:32].rstrip("-")  # type: ignore[union-attr]
        if name and name not in RESERVED_SOURCES:
            return name
    return "api"
