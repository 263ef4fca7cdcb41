"""Text that shows what is in it: no character hides, moves others about, or looks like more lines."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

SPACES: Final = 40  # more in a row are shown as their number
# Nothing is seen of these, though Unicode counts them among letters, marks and symbols: fillers, joiners of
# combining marks, blank Braille, Mongolian and variation selectors.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_RUN = re.compile(rf"[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]{{{SPACES + 1},}}")


def visible(text: str, keep: str = "") -> tuple[str, tuple[str, ...]]:
    """The text as it may be shown, and what a reader has to know of it (`U+202E`, `90 spaces in a row`).

    Characters of the categories Cc, Cf, Zl, Zp, Cs, Co and Cn and blank ones become `\\u{...}`, but for those
    in `keep`; a run of more than 40 spaces becomes `[90 spaces]`.
    """
    told: dict[str, None] = {}
    if not text.isprintable() or _BLANK.search(text) is not None:
        pieces = []
        for char in text:
            if char not in keep and (unicodedata.category(char) in _HIDDEN or _BLANK.match(char) is not None):
                told[f"U+{ord(char):04X}"] = None
                char = f"\\u{{{ord(char):x}}}"
            pieces.append(char)
        text = "".join(pieces)

    def counted(run: re.Match[str]) -> str:
        told[f"{len(run[0])} spaces in a row"] = None
        return f"[{len(run[0])} spaces]"

    return _RUN.sub(counted, text), tuple(told)


def shown_host(host: str) -> tuple[str, str]:
    """The host in ASCII (RFC 3492), and what a reader has to know of it, or nothing."""
    labels = [_label(label) for label in host.split(".")]
    ascii_host = ".".join(shown for shown, _ in labels)
    written = ".".join(name for _, name in labels)
    if written == ascii_host:
        return ascii_host, ""
    scripts = sorted({script for _, name in labels for script in _scripts(name)})
    mixed = any(_is_mixed(name) for _, name in labels)
    looks = f"the host is not ASCII and is shown encoded; it reads as {visible(written)[0]!r}"
    return ascii_host, looks + (f" and mixes scripts: {', '.join(scripts)}" if mixed else "")


def _label(label: str) -> tuple[str, str]:
    """A label of a host in ASCII, and as it reads."""
    if label.isascii():
        if not label.lower().startswith("xn--"):
            return label, label
        try:
            return label, label[4:].encode().decode("punycode")
        except ValueError:
            return label, label
    try:
        return "xn--" + unicodedata.normalize("NFC", label.lower()).encode("punycode").decode(), label
    except ValueError:
        return visible(label)[0], label


# Scripts that are written together.
_TOGETHER: Final = (
    frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "LATIN"}),
    frozenset({"CJK", "HANGUL", "LATIN"}),
    frozenset({"CJK", "BOPOMOFO", "LATIN"}),
)


def _scripts(label: str) -> set[str]:
    """The first words of the characters' names, which for letters are their scripts."""
    return {unicodedata.name(char, "UNKNOWN").split()[0] for char in label if char.isalpha()}


def _is_mixed(label: str) -> bool:
    scripts = _scripts(label)
    return len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)
