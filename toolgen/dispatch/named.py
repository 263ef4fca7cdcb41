"""Values of a request that their names say are secrets: an API that repeats them puts them under other names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, unquote_plus

from toolgen.identity.secret_names import is_secret_name
from toolgen.openapi.parameters import is_json
from toolgen.openapi.upgrade import FORM
from toolgen.request.model import Part, ResolvedRequest
from toolgen.request.path import path_template

SHORTEST: Final = 8  # characters; a shorter one is a word that an answer may well have of its own (`auth: basic`)


def named_secrets(request: ResolvedRequest) -> list[str]:
    """Every such value, decoded; what is in texts, lists and objects under such a name is one, too."""
    url = request.url.partition("?")
    pairs = [*_path(request, url[0]), *_form(url[2])]
    for name, value in request.headers:
        pairs += [_pair(one) for one in value.split("; ")] if name.lower() == "cookie" else [(name, value)]
    for part in request.parts or [Part("", request.body or b"", None, request.media_type)]:
        pairs.append((part.name, _content(part)))
    return list(dict.fromkeys(text for pair in pairs for text in _secrets(*pair) if len(text) >= SHORTEST))


def _path(request: ResolvedRequest, url: str) -> list[tuple[str, Any]]:
    template = path_template(request.tool)
    names = template.pieces[1::2]
    if not any(map(is_secret_name, names)):
        return []
    return list(zip(names, map(unquote, template.values(url.removeprefix(request.server)) or []), strict=False))


def _form(text: str) -> list[tuple[str, Any]]:
    return [_pair(pair) for pair in text.split("&") if pair]


def _pair(pair: str) -> tuple[str, Any]:
    name, _, value = pair.partition("=")
    return unquote_plus(name), unquote_plus(value)


def _content(part: Part) -> Any:
    """The data of a part or body as JSON data, a form as its pairs."""
    kind = (part.content_type or "text/plain").partition(";")[0].strip().lower()
    try:
        text = part.data.decode()
        if is_json(kind):
            return json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [{name: value} for name, value in _form(text)] if kind == FORM else text


def _secrets(name: str, value: Any) -> Iterator[str]:
    if is_secret_name(name, value):
        yield from _texts(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _secrets(str(key), item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets("", item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
