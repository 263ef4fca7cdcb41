"""What the bytes of an answer are: text by its charset, JSON as far as it can be read, or neither.

An answer is of a call that was carried out, so nothing here fails because of what an API writes: what is
not what its media type says is text, or bytes.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, Final

from toolgen.openapi.encoding import MEDIA_TYPE

_TEXTS: Final = frozenset(
    "application/xml application/xml-dtd application/javascript application/ecmascript application/yaml "
    "application/x-yaml application/toml application/sql application/graphql application/x-www-form-urlencoded".split()
)
_TEXT_ENDINGS: Final = ("+xml", "+yaml")
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([!-~]+?)\"?\s*(?:;|$)", re.I)
_XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]{1,100}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})""")
# They are no charsets of the web, and some take time out of proportion to the length of the text.
_NO_CHARSETS: Final = frozenset("idna punycode unicode_escape raw_unicode_escape undefined".split())
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # UTF-32's begin like that of UTF-16
_LONG_INT: Final = 640  # digits; Python can be told to convert no more
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def essence(content_type: str | None) -> str | None:
    """The media type in lower case without parameters; None for what is none (RFC 9110, section 8.3.1)."""
    text = (content_type or "").strip()
    return text.partition(";")[0].strip().lower() if MEDIA_TYPE.fullmatch(text) and len(text) <= 200 else None


def is_text(media_type: str) -> bool:
    """Whether a media type, not of the JSON family, is text for a reader: `text/*`, XML, YAML, forms, scripts."""
    return media_type.startswith("text/") or media_type in _TEXTS or media_type.endswith(_TEXT_ENDINGS)


def text_of(content: bytes, content_type: str | None) -> str:
    """The bytes as text: by byte order mark, charset parameter, or XML declaration, else as UTF-8.

    What no character can be made of becomes U+FFFD. JSON without a charset may be UTF-16 or UTF-32.
    """
    if content.startswith(_MARKS):
        return content.decode(json.detect_encoding(content), "replace")
    named = _CHARSET.search(content_type or "")
    declared = _XML_ENCODING.match(content)
    name = named[1] if named else declared[1].decode() if declared else json.detect_encoding(content[:4])
    try:
        known = codecs.lookup(name).name
        return content.decode("utf-8" if known in _NO_CHARSETS else known, "replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", "replace")


def json_of(text: str) -> Any:
    """JSON as it is meant: integers exact, of equal keys the last; what JSON cannot write is its text.

    `NaN`, infinities and integers of more than 640 digits become texts, halves of surrogate pairs
    U+FFFD. Raises ValueError for what is no JSON or nested too deep to read.
    """
    try:
        data = json.loads(text, parse_constant=str, parse_float=_float, parse_int=_int)
        if _SURROGATE.search(text):  # no text with such a half could be printed
            again = json.dumps(data, ensure_ascii=False).encode("utf-16", "surrogatepass")
            return json.loads(again.decode("utf-16", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return data


def _float(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text


def _int(text: str) -> int | str:
    return int(text) if len(text) <= _LONG_INT else text
