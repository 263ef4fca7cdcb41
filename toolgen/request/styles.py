"""Parameters as OpenAPI's styles write them.

Sources: OpenAPI 3.2 "Style Values", "Style Examples", appendices C and D; RFC 6570 section 2.3: an empty
array or object and null are undefined, and so are null members: they are left out. What the styles do not
define: an array or object inside another is compact JSON (deepObject nests by brackets, in arrays by
index), exploded cookies are cookies of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from toolgen.openapi.parameters import is_json
from toolgen.openapi.upgrade import FORM
from toolgen.request.text import (
    RESERVED_IN_COOKIE,
    RESERVED_IN_QUERY,
    NotWritable,
    form,
    json_text,
    percent,
    reserved,
    spelled,
)
from toolgen.tools.model import Leaf

Encode = Callable[[str], str]
Pair = tuple[str, str]
_COOKIE_NAME = re.compile(r"""(?:(?![",;=\\])[!-~])+""")
_COOKIE = re.compile(r"[!#-+\--:<-\[\]-~]*")  # RFC 6265 section 4.1.1, cookie-octet
_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


def query_pairs(leaf: Leaf, value: Any) -> list[Pair]:
    """The (name, value) pairs of a query parameter, encoded; none for what is undefined."""
    name = percent(leaf.name)
    if leaf.media_type is not None:
        return [(name, percent(content(leaf.media_type, value)))]
    return _pairs(leaf, name, value, _encoder(leaf, RESERVED_IN_QUERY), percent)


def form_pairs(leaf: Leaf, value: Any) -> list[Pair]:
    """The same as fields of a form body."""
    return _pairs(leaf, form(leaf.name), value, form, form)


def plain_pairs(leaf: Leaf, value: Any) -> list[Pair]:
    """The same with nothing encoded, as the parts of a multipart body have it."""
    return _pairs(leaf, leaf.name, value, str, str, plain=True)


def cookie_pairs(leaf: Leaf, value: Any) -> list[Pair]:
    """The (name, value) pairs of a cookie parameter; the style `cookie` encodes nothing, and refuses the rest."""
    name = cookie_name(leaf.name)
    if leaf.media_type is not None:
        return [(name, percent(content(leaf.media_type, value)))]
    if leaf.style == "cookie":
        as_form = leaf.model_copy(update={"style": "form", "explode": explodes(leaf)})
        return _pairs(as_form, name, value, _cookie_octets, cookie_name)
    return _pairs(leaf, name, value, _encoder(leaf, RESERVED_IN_COOKIE), percent)


def cookie_name(name: str) -> str:
    """The name itself. Raises NotWritable where a cookie cannot have it."""
    if not _COOKIE_NAME.fullmatch(name):
        raise NotWritable("a cookie's name is printable ASCII without space, quote, comma, `;`, `=` and backslash")
    return name


def explodes(leaf: Leaf) -> bool:
    """Whether members are pairs of their own; unsaid, that is so for `form` and `cookie` only (and for deepObject)."""
    return leaf.explode if leaf.explode is not None else leaf.style in ("form", "cookie", "deepObject", None)


def loses(leaf: Leaf, value: Any) -> bool:
    """Whether members of a value are not sent, since a style has no null (RFC 6570), and deepObject nothing empty."""
    if leaf.media_type is not None or not isinstance(value, dict | list | tuple):
        return False
    members = value.values() if isinstance(value, dict) else value
    if leaf.style != "deepObject":
        return any(member is None for member in members)
    return any(member is None or member in ({}, [], ()) or loses(leaf, member) for member in members)


def header_text(leaf: Leaf, value: Any) -> str | None:
    """The value of a header parameter, nothing encoded (OpenAPI 3.2 appendix D); None for what is undefined."""
    if leaf.media_type is not None:
        return content(leaf.media_type, value, ascii_only=True)
    return _simple(value, leaf.explode is True, str, ",")


def path_text(leaf: Leaf, value: Any) -> str | None:
    """What stands for a path parameter's expression, encoded; None for what is undefined."""
    if leaf.media_type is not None:
        return percent(content(leaf.media_type, value))
    encode = _path_encoder(leaf)
    if leaf.style == "matrix":
        return _matrix(percent(leaf.name), value, bool(leaf.explode), encode)
    if leaf.style == "label":
        text = _simple(value, bool(leaf.explode), encode, "." if leaf.explode else ",")
        return None if text is None else "." + text
    return _simple(value, bool(leaf.explode), encode, ",")


def whole_query(leaf: Leaf, value: Any) -> str:
    """A whole query string (OpenAPI 3.2, `in: querystring`): a form as it is, any other media type encoded."""
    media_type = leaf.media_type or FORM
    text = content(media_type, value)
    is_form = media_type.partition(";")[0].strip().lower() == FORM
    return text if is_form and isinstance(value, dict) else percent(text)


def content(media_type: str, value: Any, *, ascii_only: bool = False) -> str:
    """A value as its media type writes it, for parameters described by `content`."""
    essence = media_type.partition(";")[0].strip().lower()
    if is_json(media_type):
        return json_text(value, ascii_only=ascii_only)
    if essence == FORM and isinstance(value, dict):
        fields = (pair for name, item in value.items() if item is not None for pair in _field(name, item))
        return "&".join(f"{name}={text}" for name, text in fields)
    if isinstance(value, dict | list | tuple):
        raise NotWritable(f"an object or array cannot be written as {essence}; give the text itself")
    return spelled(value)


def _field(name: str, value: Any) -> list[Pair]:
    items = value if isinstance(value, list) else [value]
    return [(form(name), form(spelled(item))) for item in items if item is not None]


def _encoder(leaf: Leaf, safe: str) -> Encode:
    if not leaf.allow_reserved:
        return percent
    # A delimiter of the style that is not encoded would add an item.
    allowed = safe if explodes(leaf) else safe.replace(",", "")
    return lambda text: reserved(text, allowed)


def _path_encoder(leaf: Leaf) -> Encode:
    """Reserved characters that may pass in a path segment; `/`, `?` and `#` never, nor what the styles use."""
    return (lambda text: percent(text, "!$&'()*+:@")) if leaf.allow_reserved else percent


def _cookie_octets(text: str) -> str:
    if not _COOKIE.fullmatch(text):
        raise NotWritable("a cookie's value is printable ASCII without space, quote, comma, `;` and backslash")
    return text


def _pairs(leaf: Leaf, name: str, value: Any, encode: Encode, names: Encode, *, plain: bool = False) -> list[Pair]:
    if not isinstance(value, dict | list | tuple):
        return [] if value is None else [(name, encode(spelled(value)))]
    style, explode = leaf.style or "form", explodes(leaf)
    if style == "deepObject":
        return [(name + names(path), encode(text)) for path, text in _deep(value)]
    if isinstance(value, dict):
        members = [(key, spelled(item)) for key, item in value.items() if item is not None]
        if explode and style == "form":
            return [(names(key), encode(text)) for key, text in members]
        words = [word for pair in members for word in pair]
    else:
        words = [spelled(item) for item in value if item is not None]
        if explode:
            return [(name, encode(word)) for word in words]
    delimiter = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(style, ",") if plain else _DELIMITERS[style]
    if style == "spaceDelimited" and encode is form:
        delimiter = "+"
    return [(name, delimiter.join(map(encode, words)))] if words else []


def _deep(value: Any, path: str = "") -> Iterator[Pair]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _deep(item, f"{path}[{key}]")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _deep(item, f"{path}[{index}]")
    elif value is not None:
        yield path, spelled(value)


def _simple(value: Any, explode: bool, encode: Encode, delimiter: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, dict):
        members = [(encode(key), encode(spelled(item))) for key, item in value.items() if item is not None]
        words = ["=".join(pair) for pair in members] if explode else [word for pair in members for word in pair]
    elif isinstance(value, list | tuple):
        words = [encode(spelled(item)) for item in value if item is not None]
    else:
        return encode(spelled(value))
    return delimiter.join(words) if words else None


def _matrix(name: str, value: Any, explode: bool, encode: Encode) -> str | None:
    if not isinstance(value, dict | list | tuple):
        return None if value is None else f";{name}={encode(spelled(value))}".removesuffix("=")
    if explode:
        pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        members = [(name if key is None else encode(key), item) for key, item in pairs if item is not None]
        return "".join(f";{key}={encode(spelled(item))}" for key, item in members) or None
    text = _simple(value, False, encode, ",")
    return None if text is None else f";{name}={text}"
