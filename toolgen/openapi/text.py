"""Text of a document is data: control characters out, capped, and the cut is marked."""

from __future__ import annotations

import re
from typing import Any

CUT = "… [cut]"
DIRECTIVE = "[directive removed]"
# C0 and C1 controls but for newline and tab; zero-width and bidirectional marks; fillers, tag characters and
# supplementary variation selectors, which no person sees and every model reads. Joiners stay: some scripts
# and emoji need them.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)

# What text does that is written for a model to obey rather than to read: it takes back what the model was told, gives
# it another part to play, passes itself off as instructions of a system, imitates the marks of a conversation, asks
# it to keep something from its user, to do something before or after every call, or to hand over what it knows.
_DIRECTIVES = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|preceding|all other)\b"
        r"[^.\n]{0,40}\b(?:instructions?|prompts?|rules|messages|guidelines|directions)\b",
        r"\b(?:you are now|from now on,? you|(?:pretend|imagine) (?:to be|that you are|you are))\b",
        r"\b(?:new|updated|real|actual|hidden|secret) (?:system )?(?:instructions?|prompt)\s*:|\bsystem (?:prompt|message"
        r"|override)\s*:",
        r"</?(?:system|assistant|important|instructions?|admin)>|<\|[a-z_]{2,30}\|>|\[/?(?:INST|SYS)\]|^\s*(?:system|assistant)\s*:",
        r"\b(?:do not|don't|never|without) (?:tell|telling|inform|informing|mention|mentioning|alert|alerting|notify|"
        r"notifying|reveal|revealing|show|showing)\b[^.\n]{0,40}\b(?:to )?(?:the |your )?(?:users?|humans?|person|operator)\b",
        r"\b(?:before|after|whenever|prior to|instead of) (?:using|calling|invoking|running)\b[^.\n]{0,40}\b(?:tools?|functions?)"
        r"\b[^.\n]{0,20}\byou (?:must|should|need to|have to)\b|\byou must (?:always |first |also )+(?:call|use|run|invoke|read)\b",
        r"\b(?:send|reveal|print|output|forward|include|share|leak|upload|post|pass|repeat)\b[^.\n]{0,40}\b(?:system prompt|"
        r"(?:your|the|entire|whole|full) (?:instructions|conversation|chat history|context)|api keys?|passwords?|credentials|"
        r"private keys?|access tokens?)\b|(?:~|/)/?\.(?:ssh|aws|env)\b|\bid_(?:rsa|ed25519)\b",
    )
)


def without_directives(text: str) -> str:
    """The text with a mark in the place of phrases that would order a model about; any other is the same object.

    Seven kinds of phrases, in English: they are known by their shape, so this makes no text safe.
    """
    for pattern in _DIRECTIVES:
        if pattern.search(text):
            text = pattern.sub(DIRECTIVE, text)
    return text


def clean(text: str, cap: int) -> str:
    """The text without invisible characters and at most `cap` characters long, a cut marked at its end."""
    if not text.isascii() or not text.isprintable():
        text = _INVISIBLE.sub("", text.replace("\r\n", "\n"))
    text = text.strip()
    return text if len(text) <= cap else text[: cap - len(CUT)].rstrip() + CUT


def one_line(text: str, cap: int) -> str:
    """The same on one line, runs of white space as one space."""
    return clean(" ".join(text.split()), cap)


def shown(value: Any) -> str:
    """A value of a document in a message: what kind of thing it is, or its first characters."""
    if value is None:
        return "null"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return clean(repr(value), 40)
