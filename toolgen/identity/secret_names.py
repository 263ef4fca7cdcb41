"""Which names say that their value is a secret: of headers, query keys, cookies, JSON keys, settings.

A name is read as words, whatever its case and separators, so that `X-Api-Key`, `api_key`, `apiKey` and
`auth[apikey]` are one name. Unsure means secret. Left legible is what a person needs in order to decide
and what gives nobody access:

- what is said *about* a secret (`token_type`, `secretName`, `password_policy`, `apiKeyId`); a
  `secret_id` and a `session_id` are secrets themselves,
- cursors (`nextPageToken`, `page_token`): they say which page is read, and do nothing without a credential,
- counts (`max_tokens`), and other words that only begin like a secret (`tokenize`, `secretary`).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any, Final

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
# Found anywhere in the name, its separators gone.
_ANYWHERE = re.compile(
    "authori[sz]ation|token|secret|credential|passw(?:or)?d|passphrase|passcode|cookie|signature"
    "|(?:api|private|access|auth|encryption|signing|master|shared|subscription|account|storage|functions)key"
    "|connectionstring|codeverifier|clientassertion"
)
_WHOLE_WORDS: Final = frozenset("auth bearer creds cvc cvv hmac jwt otp pwd session sid sig totp".split())
# Words of which a secret's name is only the beginning or the end.
_OTHER_WORD = re.compile(r"tokeni[sz](?:e|er|ers|ed|es|ation|ing)|secretar(?:y|ies|ial|iat)")
_CURSOR_WORDS: Final = frozenset("continuation cursor next page pagination prev previous skip start sync".split())
_COUNT_WORDS: Final = frozenset(
    "budget cached completion count estimated input limit max maximum min minimum num number output per prompt "
    "reasoning remaining thinking total used".split()
)
_JOINED_COUNT = re.compile(r"(?:max|min|num|n|total|prompt|input|output|completion)tokens")
_ABOUT: Final = frozenset(
    "alg algorithm at count duration enabled endpoint expiration expires expiry id ids length lifetime limit method "
    "name names policy required status ttl type types uri url uuid version".split()
)
_SESSION_ID = re.compile(r"[a-z]*sess(?:ion)?ids?")
_SECRET_IDS = re.compile(r"(?:secret|session|cookie)ids?$")
_PLURAL = re.compile(r"(?i)tokens$")


def is_secret_name(name: str, value: Any = None) -> bool:
    """Whether a value of this name is a secret; a number under `tokens` is a count and none."""
    if not _says_secret(name):
        return False
    return not (_PLURAL.search(name) and _is_count(value))


def _is_count(value: Any) -> bool:
    if isinstance(value, str):
        return value.isdecimal() and len(value) < 8
    return isinstance(value, int)


@lru_cache(maxsize=4096)
def _says_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(unicodedata.normalize("NFKC", name))]
    words = [word for word in words if not _OTHER_WORD.fullmatch(word) and not _JOINED_COUNT.fullmatch(word)]
    words = _without_cursors(_without_counts(words))
    joined = "".join(words)
    if words and words[-1] in _ABOUT and not _SECRET_IDS.search(joined):
        return False
    if _ANYWHERE.search(joined) is not None or not _WHOLE_WORDS.isdisjoint(words):
        return True
    return any(_SESSION_ID.fullmatch(word) for word in words)


def _without_counts(words: list[str]) -> list[str]:
    if "tokens" not in words or _COUNT_WORDS.isdisjoint(words):
        return words
    return [word for word in words if word != "tokens"]


def _without_cursors(words: list[str]) -> list[str]:
    """The words without each `token` that follows a word like `page`."""
    before = ["", *words]
    return [word for at, word in enumerate(words) if word != "token" or before[at] not in _CURSOR_WORDS]
