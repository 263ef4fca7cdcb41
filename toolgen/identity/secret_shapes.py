"""Secrets in running text: by the shape of well-known keys, and beside a name that says what they are.

Text here is anything: a log line, YAML, a query, JSON that was cut or escaped once more, XML. Every
search begins at a boundary and gives up or goes on behind what it read, so the time is linear.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Final

from toolgen.identity.secret_names import is_secret_name

REDACTED: Final = "<redacted>"

_REFERENCE = re.compile(r"\$\{(?:caller|context|env|file|vault):[^{}\s]*\}")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|digest|negotiate)[ \t]+")
# Values that say nothing, and the types that stand beside names in schemas and code.
_HARMLESS: Final = frozenset(
    "true false null none undefined yes no on off string str integer int number boolean bool object array".split()
)

_SHAPES = re.compile(
    r"""
      -----BEGIN(?:[ +]|%20)[A-Z0-9 +%]{0,40}PRIVATE(?:[ +]|%20)KEY(?:[ +]BLOCK)?-----
        .*?(?:-----END[A-Z0-9 +%]{1,60}-----|\Z)
    | (?<![\w-])eyJ[\w-]{8,}+\.[\w-]{4,}+(?:\.[\w-]*+)*+                    # JWT, JWE
    | (?<![A-Za-z0-9])(?:
        (?:sk|rk|pk)[-_](?=[\w-]{0,200}[0-9])[\w-]{16,}+                    # OpenAI, Anthropic, Stripe
      | (?:gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|whsec_|npm_|pypi-|hf_|shp(?:at|ss|ca|pa)_|dop_v1_|lin_api_
          |GOCSPX-|hvs\.|ya29\.)(?=[\w-]{0,200}[0-9])[\w-]{10,}+
      | (?:AKIA|ASIA)[A-Z0-9]{12,}+ | AIza[\w-]{30,}+ | SG\.[\w-]{16,}+\.[\w-]{16,}+ | [0-9]{8,10}:AA[\w-]{30,}+
      )
    | (?<=://)(?P<userinfo>(?:[^\s/?\#"'<>\\@]*@)+)                           # up to the last @ of an authority
    | (?<![\w-])(?P<flag>(?:-u|--user)[ =])(?P<quote>["']?)[^\s"':]++:[^\s"']++
    | (?<![\w])(?P<scheme>(?i:bearer|basic|token)[ \t+]{1,4})(?P<value>[\w.~+/-]{6,}+={0,2})
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_QUOTE = r"\\*+[\"']|&quot;|&\#3[49];|&\#x2[27];"
_PAIR = re.compile(
    rf"""
    (?<![\w.-]) (?P<flag>--)?+ (?P<name>(?:(?i:api|private|secret|access|signing|auth)[ ])?+[\w.\[\]-]++)
    (?: (?P<after>{_QUOTE})?+ \]?+ [ \t]*+ (?P<sign>=>|:=|:(?!//)|=) (?P<gap>[ \t]*+) | (?(flag)[ ]++|(?!)) )
    """,
    re.VERBOSE,
)
_OPENING = re.compile(_QUOTE)
_AT_LINE_START = re.compile(r"(?:^|\n)[ \t>]*(?:-[ \t]+)?(?:export[ \t]+)?\Z")
_INDENT: Final = 80  # how far a line is looked back
_LINE = re.compile(r"[^\r\n]*")
_WORD = re.compile(
    r"""(?:[^\s&,;"'<>()\[\]{}\\] | \\(?![nrt"'\\]) | [,;](?!\s|\Z|["']?[\w-]+["']?\s*[:=])
        | [(\[{] | <(?!/) | [)\]}](?![\s,;.)\]}"'\\]|\Z))*+""",
    re.VERBOSE,
)
_SHOWN_BEFORE = re.compile(rf"(?:{REDACTED}|{_REFERENCE.pattern})*+")
_BLOCK = re.compile(r"(?:[|>][+-]?[0-9]?)?[ \t]*(?:\r?\n|\Z)")
_BRACKET = re.compile(r"[\[\]{}]")
_BEHIND_SCHEME = re.compile(r"[^\r\n\"'\\]*")
_XML = re.compile(r"<(?P<name>[\w:.-]++)(?:\s[^<>]*+)?>(?P<value>(?:<!\[CDATA\[)?[^<]++)(?=<)")


def hide_in_text(text: str) -> str:
    """The text with `<redacted>` for what looks like a secret or stands beside the name of one."""
    text = _SHAPES.sub(_hidden_shape, text)
    if "<" in text:
        text = _XML.sub(_hidden_element, text)
    return _hide_pairs(text) if ":" in text or "=" in text or "--" in text else text


def hide(text: str) -> str:
    """A text that is a secret as a whole: references and the scheme before them stay legible."""
    if not text.strip():
        return text
    scheme = _SCHEME.match(text)
    if scheme is not None and _REFERENCE.search(text) is not None:
        return scheme[0] + hide(text[scheme.end() :])
    pieces = _REFERENCE.split(text)
    if len(pieces) == 1:
        return REDACTED
    found = [REDACTED if pieces[0] else ""]
    for reference, literal in zip(_REFERENCE.findall(text), pieces[1:], strict=True):
        found += [reference, REDACTED if literal else ""]
    return "".join(found)


def _hidden_shape(match: re.Match[str]) -> str:
    if match["userinfo"] is not None:
        return match[0] if match[0] == "git@" else REDACTED + "@"
    if match["flag"] is not None:
        return f"{match['flag']}{match['quote']}{REDACTED}"
    if match["scheme"] is not None:
        return match["scheme"] + REDACTED if _is_scheme_value(match["scheme"], match["value"]) else match[0]
    return REDACTED


def _is_scheme_value(scheme: str, value: str) -> bool:
    """Whether it is a credential behind `Bearer`, `Basic` or `Token`, and not prose like `basic functions`."""
    kind = scheme.rstrip(" \t+").lower()
    if kind == "basic":
        try:
            return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            return False
    mixed = any(c.isdigit() for c in value) or (value[1:] != value[1:].lower() and value != value.upper())
    return mixed if kind == "bearer" else mixed and len(value) >= 12


def _hidden_element(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if not value.strip() or not is_secret_name(name.rpartition(":")[2], value):
        return match[0]
    return match[0][: match.start("value") - match.start()] + hide(value)


def _hide_pairs(text: str) -> str:
    kept: list[str] = []
    done = at = 0
    while (match := _PAIR.search(text, at)) is not None:
        at = match.end()
        if is_secret_name(match["name"]):
            shown, at = _hidden_value(text, match)
            if shown is not None:
                kept += [text[done : match.end()], shown]
                done = at
    return "".join([*kept, text[done:]])


def _hidden_value(text: str, match: re.Match[str]) -> tuple[str | None, int]:
    """What is shown in place of the value behind a name, or None; and where to read on."""
    start, quote = match.end(), match["after"] or ""  # a bare value is shown in the quotes of its name
    opening = _OPENING.match(text, start)
    if opening is not None:
        end, closed = _end_of_quoted(text, opening)
        value = text[opening.end() : end]
        return (opening[0] + hide(value), end) if _counts(match, value) else (None, closed)
    if text.startswith(("[", "{"), start):
        end = _end_of_brackets(text, start)
        return quote + REDACTED + quote, end
    end = _end_of_unquoted(text, match)
    value = text[start:end]
    if not _counts(match, value) or (_is_prose(match) and value.isalpha() and len(value) < 8):
        return None, start
    return quote + hide(value) + quote, end


def _counts(match: re.Match[str], value: str) -> bool:
    """Whether a value is there that can be a secret."""
    word = value.strip()
    return bool(word) and word.lower() not in _HARMLESS and word != REDACTED and is_secret_name(match["name"], word)


def _is_prose(match: re.Match[str]) -> bool:
    return match["sign"] == ":" and bool(match["gap"]) and not match["after"] and not _starts_line(match)


def _starts_line(match: re.Match[str]) -> bool:
    start = match.start()
    before = match.string[max(0, start - _INDENT) : start]
    return _AT_LINE_START.search(before if start <= _INDENT else "x" + before) is not None


def _end_of_unquoted(text: str, match: re.Match[str]) -> int:
    """Where a value without quotes ends: a line of YAML or of headers is one value, else a word is."""
    start = match.end()
    if match["sign"] == ":" and _starts_line(match):
        block = _BLOCK.match(text, start)
        if block is not None:
            return _end_of_block(text, match.start(), block.end())
        if match["gap"]:
            return _end(_LINE, text, start)
    scheme = _SCHEME.match(text, start)
    if scheme is not None:
        return _end(_BEHIND_SCHEME, text, scheme.end())
    return _end(_WORD, text, _end(_SHOWN_BEFORE, text, start))


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where the match of a pattern that always matches ends."""
    match = pattern.match(text, start)
    return match.end() if match is not None else start


def _end_of_block(text: str, name: int, at: int) -> int:
    """The end of the lines that stand deeper than the line of a YAML key."""
    line = text.rfind("\n", max(0, name - _INDENT), name) + 1
    indent = name - line
    end = at
    while at < len(text):
        after = text.find("\n", at)
        after = len(text) if after < 0 else after + 1
        content = text[at:after]
        depth = len(content) - len(content.lstrip(" \t"))
        if content.strip() and depth <= indent and not (depth == indent and content.lstrip().startswith("- ")):
            break
        end = at + len(content.rstrip()) if content.strip() else end
        at = after
    return end


def _end_of_quoted(text: str, opening: re.Match[str]) -> tuple[int, int]:
    """Where the value behind an opening quote ends, and where its closing quote does; an open one ends the text.

    In JSON inside JSON a quote has one backslash per level and level; `level` counts them.
    """
    quote = opening[0]
    if quote.startswith("&"):
        end = text.find(quote, opening.end())
        return (len(text), len(text)) if end < 0 else (end, end + len(quote))
    level = len(quote).bit_length() - 1
    at = opening.end()
    while (end := text.find(quote[-1], at)) >= 0:
        run = 0
        while end - run > opening.end() and text[end - run - 1] == "\\":
            run += 1
        if _closes(run, level):
            return end - min(run, len(quote) - 1), end + 1
        at = end + 1
    return len(text), len(text)


def _closes(backslashes: int, level: int) -> bool:
    """Whether a quote behind so many backslashes ends a string that began this many levels of JSON deep."""
    for _ in range(level):
        if backslashes % 2 == 0:
            return True
        backslashes = (backslashes - 1) // 2
    return backslashes % 2 == 0


def _end_of_brackets(text: str, start: int) -> int:
    """Where a list or mapping ends; an open one ends the text."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        pass
    depth = 0
    for found in _BRACKET.finditer(text, start):
        depth += 1 if found[0] in "[{" else -1
        if depth == 0:
            return found.end()
    return len(text)
