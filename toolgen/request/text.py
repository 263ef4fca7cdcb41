"""How values are spelled and percent-encoded.

Sources: RFC 8259 (a float without a fraction is written as an integer, with all its digits), RFC 3986
section 2 (percent-encoding), RFC 6570 section 3.2 (expansion), the URL standard
(application/x-www-form-urlencoded).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from typing import Any, Final
from urllib.parse import quote, quote_plus

# Reserved characters that may stand raw in a query's value; none of them ends it or begins something else
# for any parser in use (`;` separates parameters for old ones, `+` is a space, `[` and `]` are no query characters).
RESERVED_IN_QUERY: Final = ":/?@!$'()*,="
# The same in a cookie, where old servers also take `,` for the end of it (RFC 2965 section 3.3.4).
RESERVED_IN_COOKIE: Final = RESERVED_IN_QUERY.replace(",", "")
_TRIPLE = re.compile(r"(%[0-9A-Fa-f]{2})")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]+")
_EXPONENT: Final = 1e21  # from here on an exponent is written (RFC 8785 section 3.2.2.3)
_DIGITS: Final = 4_000  # of an integer; CPython writes no more than 4,300
_LARGEST: Final = 10**_DIGITS


class NotWritable(ValueError):
    """A value that a request cannot hold; the message says why and shows no value."""


def spelled(value: Any) -> str:
    """A value as text: text as it is, numbers and booleans as JSON spells them, what is nested as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple) or value is None:
        return json_text(value)
    return _scalar(value)


def _scalar(value: Any) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return json.dumps(_number(value))
    if isinstance(value, int):
        return str(_integer(value))
    raise NotWritable(f"{type(value).__name__} is nothing that JSON has")


def _number(value: float) -> float | int:
    if not math.isfinite(value):
        raise NotWritable("NaN and infinity are no numbers of JSON")
    return int(value) if value.is_integer() and abs(value) < _EXPONENT else value


def _integer(value: int) -> int:
    if not -_LARGEST < value < _LARGEST:
        raise NotWritable(f"an integer has at most {_DIGITS} digits")
    return value


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """Compact JSON in the order of the keys; integers are exact, one without a fraction has none.

    Raises NotWritable for NaN, infinity, lone surrogates, other types than JSON's, and nesting too deep to write.
    """
    try:
        plain = _plain(value)
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
        utf8(text)  # an escape would hide a lone surrogate, which has no meaning (RFC 8259 section 8.2)
        return _escaped(text) if ascii_only else text
    except RecursionError:
        raise NotWritable("the value is nested too deep") from None
    except (TypeError, ValueError) as error:
        if isinstance(error, NotWritable):
            raise
        raise NotWritable("the value is nothing that JSON has") from None


def _escaped(text: str) -> str:
    """JSON text in ASCII: what is not ASCII stands inside strings, as UTF-16 code units."""
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _plain(value: Any) -> Any:
    """The value with numbers as they are spelled; anything that is not JSON's is refused."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise NotWritable("a key of an object is no text")
        return {key: _plain(item) for key, item in value.items()}
    raise NotWritable(f"{type(value).__name__} is nothing that JSON has")


def utf8(text: str, charset: str = "utf-8") -> bytes:
    """Text as bytes. Raises NotWritable for what the charset does not have, and for an unknown charset."""
    try:
        return text.encode(charset)
    except LookupError:
        raise NotWritable(f"the charset {charset[:40]!r} is not known") from None
    except UnicodeError:
        raise NotWritable(f"the text has characters that {charset} cannot write") from None


def percent(text: str, safe: str = "") -> str:
    """Percent-encoded UTF-8 of everything but RFC 3986's unreserved characters and `safe`."""
    utf8(text)
    return quote(text, safe=safe)


def reserved(text: str, safe: str) -> str:
    """The same where `safe` reserved characters and percent-encoded triples pass (RFC 6570 section 3.2.3)."""
    pieces = _TRIPLE.split(text)
    return "".join(piece if index % 2 else percent(piece, safe) for index, piece in enumerate(pieces))


def form(text: str) -> str:
    """The text as a name or value of application/x-www-form-urlencoded."""
    utf8(text)
    return quote_plus(text, safe="*")


def from_base64(value: Any) -> bytes:
    """The bytes of base64 text (RFC 4648 section 4), white space allowed. Raises NotWritable for anything else."""
    if not isinstance(value, str):
        raise NotWritable("bytes are given as base64 text")
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise NotWritable("this is no base64 text (RFC 4648, with padding)") from None
