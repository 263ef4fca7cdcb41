"""Secrets out of what is shown: by value, by name, by shape, at every depth and through encodings.

What a person, a log or a model reads goes through here. A secret of unknown shape under a neutral name that
nobody told the Redactor passes: a config names it, or the API does not take it there.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote, unquote, unquote_plus

from toolgen.identity.caller import Secret
from toolgen.identity.secret_names import is_secret_name
from toolgen.identity.secret_shapes import REDACTED, hide, hide_in_text
from toolgen.identity.spellings import SHORTEST, Needles, spellings

__all__ = ["REDACTED", "Redactor", "exact_json"]

_ENCODINGS_DEEP: Final = 4  # JSON in base64 in a form in JSON: what is deeper is judged as it stands
_PASSES: Final = 4  # what stands beside a secret may be seen for what it is once that is gone
_NESTING: Final = 100  # arrays and objects inside each other; what is deeper is not shown
_NUMBER = re.compile(r"[-+0-9.eE]+")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey)\s+(?=\S)")
# Separators stand outside, so that a path or a sentence is judged piece by piece.
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{8,}+={0,2}|(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{8,}+={0,2}")
_BASE64URL = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{8,}+={0,2}")
_PIECE = re.compile(r"([^\s\"'<>\\&?#=]++)(?:(=)([^\s\"'<>\\&?#]*+))?")
_URL = re.compile(
    r"(?P<start>(?:[^:/?#]+:)?(?://[^/?#]*)?)(?P<path>[^?#]*)(?P<query>\?[^#]*)?(?P<rest>#.*)?", re.DOTALL
)
_UNQUOTED: Final = "<>/:@!$()*,;[]{}"
_VALUE_KEYS: Final = ("value", "Value", "VALUE")
_NAME_KEYS: Final = ("name", "key", "header", "field", "Name", "Key")


class Redactor:
    """Hides secrets; `secrets` are those whose value is known. Immutable, and never shows what it knows.

    A text comes back with `<redacted>` in place of what must not be seen; what comes back once goes through
    again unchanged. References such as `${env:KEY}` stay legible. Time is linear in the size of what is shown.
    """

    __slots__ = ("_has_odd", "_known", "_needles", "_secrets")

    def __init__(self, secrets: Iterable[str | Secret] = ()) -> None:
        given = [secret.reveal() if isinstance(secret, Secret) else secret for secret in secrets]
        trimmed = {form for text in given for form in (text, text.strip(), _SCHEME.sub("", text.strip(), count=1))}
        self._secrets = frozenset(trimmed - {""})
        self._known = spellings(self._secrets)
        self._needles = Needles(self._secrets)
        # Those that are found as a whole value only, or could be written as another number.
        self._has_odd = any(len(text) < SHORTEST or _NUMBER.fullmatch(text) for text in self._secrets)

    def __repr__(self) -> str:
        return "<Redactor>"

    def __reduce__(self) -> Any:
        raise TypeError("a Redactor is not pickled: it knows secrets")

    def with_secrets(self, secrets: Iterable[str | Secret]) -> Redactor:
        """One that knows these secrets too."""
        return Redactor([*self._secrets, *secrets])

    def known(self, data: Any) -> Any:
        """JSON data or a text without the secrets whose value is known, and otherwise as it is."""
        if not self._secrets:
            return data
        return self._without_known(data, 0)

    def is_free(self, json_text: str) -> bool:
        """Whether `known` would change nothing in the data of a JSON text; False where only a closer look tells."""
        if self._known is None:
            return not self._secrets
        return not self._has_odd and self._needles.are_absent(json_text)

    def text(self, text: str) -> str:
        """Any text: known secrets in every spelling, well-known shapes, values beside the name of a secret."""
        return self._text(text, _ENCODINGS_DEEP)

    def named(self, name: str, value: Any) -> Any:
        """The value of a header, query key, cookie or JSON key: hidden as a whole where the name says so."""
        return self._named(name, value, _ENCODINGS_DEEP, 0)

    def value(self, data: Any) -> Any:
        """JSON data: each key by its name, each text by what it is; JSON stays JSON."""
        return self._value(data, _ENCODINGS_DEEP, 0)

    def url(self, url: str) -> str:
        """A URL: scheme and host kept, userinfo out, path and query judged decoded, each value by its name."""
        match = _URL.fullmatch(url)
        if match is None:
            return self.text(url)
        start, path, query, rest = (match[part] or "" for part in ("start", "path", "query", "rest"))
        scheme, slashes, authority = start.partition("//")
        _, at, host = authority.rpartition("@")
        return "".join(
            [
                f"{scheme}{slashes}{REDACTED + at if at else ''}{self._known_out(host)}",
                "/".join(self._segment(segment) for segment in path.split("/")),
                query[:1] + self.query(query[1:]),
                rest[:1] + self.query(rest[1:]),
            ]
        )

    def query(self, query: str) -> str:
        """A query or form, without its `?`: each value by its decoded name."""
        return "&".join(map(self._pair, query.split("&")))

    def _segment(self, segment: str) -> str:
        pieces = segment.split(";")  # matrix parameters: `;token=abc`
        return ";".join(self._encoded(pieces[:1]) + [self._pair(piece, plus=False) for piece in pieces[1:]])

    def _encoded(self, pieces: list[str]) -> list[str]:
        return [self._judged(piece, "", unquote(piece)) for piece in pieces]

    def _pair(self, pair: str, plus: bool = True) -> str:
        name, equals, value = pair.partition("=")
        decode = unquote_plus if plus else unquote
        if not equals:
            return self._judged(name, "", decode(name))
        return self._judged(name, "", decode(name)) + equals + self._judged(value, decode(name), decode(value))

    def _judged(self, raw: str, name: str, value: str) -> str:
        """The raw text where nothing of its decoded form has to be hidden."""
        shown = self._named(name, value, _ENCODINGS_DEEP, 0)
        return self._known_out(raw) if shown == value else _quoted(shown)

    def _without_known(self, data: Any, depth: int) -> Any:
        if isinstance(data, str):
            return REDACTED if data in self._secrets else self._known_out(data)
        if data is None or isinstance(data, bool):
            return data
        if depth > _NESTING:
            return REDACTED
        if isinstance(data, list | tuple):
            return [self._without_known(item, depth + 1) for item in data]
        if isinstance(data, dict):
            return {self._known_out(str(key)): self._without_known(item, depth + 1) for key, item in data.items()}
        return REDACTED if str(data) in self._secrets else data

    def _known_out(self, text: str) -> str:
        return text if self._known is None else self._known.sub(REDACTED, text)

    def _named(self, name: str, value: Any, levels: int, depth: int) -> Any:
        if is_secret_name(name, value):
            return self._hidden(value, depth)
        return self._value(value, levels, depth)

    def _value(self, data: Any, levels: int, depth: int) -> Any:
        if isinstance(data, str):
            return self._text(data, levels)
        if data is None or isinstance(data, bool):
            return data
        if isinstance(data, int | float):
            return REDACTED if str(data) in self._secrets else data
        if depth > _NESTING:
            return REDACTED
        if isinstance(data, list | tuple):
            return [self._value(item, levels, depth + 1) for item in data]
        if isinstance(data, dict):
            return self._object(data, levels, depth)
        return self._text(str(data), levels)

    def _object(self, data: dict[Any, Any], levels: int, depth: int) -> dict[str, Any]:
        spoken = next(
            (data[key] for key in _NAME_KEYS if isinstance(data.get(key), str)), ""
        )  # {"name": ..., "value": ...}
        found: dict[str, Any] = {}
        for key, value in data.items():
            name = str(key)
            shown = self._text(name, levels)
            while shown in found:  # two keys that look alike now
                shown += "'"
            names = (spoken, name) if name in _VALUE_KEYS else (name,)
            secret = any(is_secret_name(one, value) for one in names)
            found[shown] = self._hidden(value, depth + 1) if secret else self._value(value, levels, depth + 1)
        return found

    def _hidden(self, value: Any, depth: int) -> Any:
        """A secret value: its structure, and nothing of what is in it."""
        if value is None or isinstance(value, bool):
            return value
        if depth > _NESTING or not isinstance(value, str | dict | list | tuple):
            return REDACTED
        if isinstance(value, str):
            return hide(value)
        if isinstance(value, dict):
            shown = [(self._text(str(key), 1), self._hidden(item, depth + 1)) for key, item in value.items()]
            return dict(shown)
        return [self._hidden(item, depth + 1) for item in value]

    def _text(self, text: str, levels: int) -> str:
        for _ in range(_PASSES):
            shown = self._once(text, levels)
            if shown == text:
                break
            text = shown
        return text

    def _once(self, text: str, levels: int) -> str:
        if text in self._secrets:
            return REDACTED
        if levels > 0:
            nested = self._json(text, levels)
            if nested is not None:
                return nested
            text = self._decoded(text, levels)
        return hide_in_text(self._known_out(text))

    def _json(self, text: str, levels: int) -> str | None:
        """A text that is JSON itself, redacted as such; None where it is not."""
        if text.lstrip()[:1] not in ("{", "[", '"'):
            return None
        try:
            data = exact_json(text)
        except ValueError:
            return None
        shown = self._value(data, levels - 1, 0)
        return self._known_out(text) if shown == data else json.dumps(shown, ensure_ascii=False)

    def _decoded(self, text: str, levels: int) -> str:
        """The text with what is hidden in its base64 and percent-encoded pieces."""
        for pattern in (_BASE64, _BASE64URL):
            text = pattern.sub(lambda match: self._from_base64(match[0], levels), text)
        if "%" not in text:
            return text
        return _PIECE.sub(lambda match: self._from_percent(match, levels), text)

    def _from_base64(self, run: str, levels: int) -> str:
        padded = run.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            inner = base64.b64decode(padded + "=" * (-len(padded) % 4)).decode()
        except (binascii.Error, ValueError):
            return run
        if not inner.translate(_LINES).isprintable():
            return run
        return run if self._text(inner, levels - 1) == inner else REDACTED

    def _from_percent(self, match: re.Match[str], levels: int) -> str:
        if "%" not in match[0]:
            return match[0]
        name, equals, value = match[1], match[2] or "", match[3] or ""
        inner_name, inner = unquote_plus(name), unquote_plus(value)
        shown_name = self._text(inner_name, levels - 1)
        shown = self._named(inner_name, inner, levels - 1, 0)
        left = name if shown_name == inner_name else _quoted(shown_name)
        return left + equals + (value if shown == inner else _quoted(shown))


def _quoted(text: str) -> str:
    return quote(text, safe=_UNQUOTED, errors="surrogatepass")


_LINES: Final = {ord(char): " " for char in "\r\n\t"}


def exact_json(text: str) -> Any:
    """JSON text as data that says all the text says.

    Raises ValueError for what is no JSON, for repeated keys (readers differ in which one counts), NaN and
    Infinity, numbers that a double does not hold, and what is nested more than 100 deep.
    """
    try:
        data = json.loads(text, parse_constant=_refused, parse_float=_exact_float, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [data]
    for _ in range(_NESTING + 1):
        inside = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [item for items in inside for item in items]
        if not level:
            return data
    raise ValueError("nested too deeply")


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _exact_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or Decimal(repr(number)) != Decimal(text):
        raise ValueError("a number that would be rounded")
    return number


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a repeated key")
    return found
