"""Why a text is no pattern: the character at fault, and the nearest text that is one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import product

from toolgen.errors import Problem
from toolgen.openapi.endpoint import endpoint_path
from toolgen.policy.address import HTTP, LONGEST_NAME, Vocabulary
from toolgen.policy.patterns import LONGEST, Form, Glob, beginnings, can_begin, can_match, split
from toolgen.policy.possible import impossible_in_name, impossible_in_path
from toolgen.policy.text import visible

_NEAR = 2  # edits between a word and one that may have been meant
_SHOWN = 120  # characters of a text in a message
_METHOD_AND_PATH = re.compile(r"\s*([A-Za-z]+|\*)\s+(\S+)\s*")
_SOURCE_AND_PATH = re.compile(r"([^/:]+)(/.*)", re.DOTALL)
_DOT_SEGMENT = re.compile(r"/\.(?=/|$)")
_ENCODED_SEPARATOR = re.compile(r"%(?:2F|5C|00)", re.IGNORECASE)
_PARENT_SEGMENT = re.compile(r"(?:/[^/]*)?/\.\.(?=/|$)")
_UNCLOSED = re.compile(r"(\{[^{}/]+)(?=(?:/[^{}]*)?(?:\{|$))")


def pattern_problem(text: str, words: Vocabulary) -> Problem:
    """What keeps a text from being a pattern, with a caret under the character and the nearest pattern."""
    message, offset = _fault(text, words)
    near = nearest(text, words)
    hint = f"write {visible(near)}" if near else _hint(text, words)
    if not text.strip():
        return Problem(message, hint="leave it out, or write * for every tool")
    excerpt, caret = _excerpt(text, offset)
    return Problem(message, hint=hint, excerpt=excerpt, caret=caret, suggestion=near)


def nearest(text: str, words: Vocabulary) -> str:
    """The nearest pattern that can match, empty where none is near."""
    if len(text) > LONGEST:
        return ""
    return next((candidate for candidate in _candidates(text, words) if can_match(candidate, words)), "")


def edits(one: str, other: str) -> int:
    """How many characters are added, dropped, changed or swapped with their neighbour between two words."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, char in enumerate(one, 1):
        oldest, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (char != wanted)))
            if i > 1 and j > 1 and char == other[j - 2] and wanted == one[i - 2]:
                row[j] = min(row[j], oldest[j - 2] + 1)
    return row[-1]


def _fault(text: str, words: Vocabulary) -> tuple[str, int]:
    if not text.strip():
        return "the pattern is empty", 0
    if len(text) > LONGEST:
        return f"the pattern is longer than {LONGEST} characters", LONGEST
    form, before, target = split(text)
    if before is None:
        return _fault_in_name(text, words)
    if not can_begin(before, form, words):
        return _fault_in_beginning(before, form, words)
    offset = impossible_in_path(target) if form is Form.endpoint else impossible_in_name(target)
    assert offset is not None, text
    if not target:
        message = "nothing stands behind the colon"
    else:
        message = _path_fault(target, offset) if form is Form.endpoint else _name_fault(target, offset)
    return message, len(before) + 1 + offset


def _fault_in_name(text: str, words: Vocabulary) -> tuple[str, int]:
    offset = impossible_in_name(text)
    if offset is not None:
        return _name_fault(text, offset), offset
    what = "a source" if text in words.sources else "a source with a method"
    return f"{text} is {what}: the colon behind it is missing", len(text)


def _fault_in_beginning(before: str, form: Form, words: Vocabulary) -> tuple[str, int]:
    """What is wrong before the colon; the offset is that of the character no source (and method) has there."""
    known = beginnings(form, words)
    ends = range(1, len(before) + 1)
    offset = next((end - 1 for end in ends if not any(map(Glob(before[:end] + "*").matches, known))), len(before))
    source, dot, method = before.partition(".")
    if not before:
        return "nothing stands before the colon", 0
    if form is Form.source:
        return f"no source is called {_quoted(source)}", offset
    if _matches_any(source, words.with_endpoints):
        return (f"no tool has the method {_quoted(method)}" if dot else "the method before the path is missing"), offset
    if _matches_any(source, words.sources):
        what, offset = ("takes no method", len(source)) if dot else ("takes no path", len(before) + 1)
        return f"tools of the source {_quoted(source)} have no endpoint, so that it {what}", offset
    return f"no source that has endpoints is called {_quoted(source)}", offset


def _name_fault(target: str, offset: int) -> str:
    if impossible_in_name(target[offset]) is None:
        return f"no tool's name is longer than {LONGEST_NAME} characters"
    return f"no tool's name has {_quoted(target[offset])}"


def _path_fault(target: str, offset: int) -> str:
    char, before = target[offset : offset + 1], target[:offset]
    if offset == 0:
        return "a path starts with /"
    if char in ("/", "") and before.endswith("."):
        return "a path has no . or .. segment"
    if not char:
        return "no path of an endpoint ends like this"
    if char == "/":
        return "runs of / count as one in the path of an endpoint"
    if char in "?#":
        return f"the path of an endpoint has no {'query' if char == '?' else 'fragment'}"
    if char in "{}":
        return "braces stand in pairs around a name"
    if char in "\\\0" or _ENCODED_SEPARATOR.match(target, target.rfind("%", 0, offset + 1)):
        return "no path of an endpoint has a backslash, NUL or an encoded slash"
    if "\ud800" <= char <= "\udfff":
        return "half of a surrogate pair is no character"
    if re.search(r"%[0-9A-F]?$", before):
        return "this is not encoded as in the path of an endpoint"
    return f"{_quoted(char)} stands percent-encoded in the path of an endpoint"


def _hint(text: str, words: Vocabulary) -> str:
    form, before, _ = split(text)
    if before is None or can_begin(before, form, words):
        return ""
    source, dot, _ = before.partition(".")
    if form is Form.endpoint and dot and _matches_any(source, words.with_endpoints):
        return f"known are {_some(words.all_methods)}; an API's others are known from its tools"
    if form is Form.endpoint:
        return f"known are {_some(words.with_endpoints)}; APIs are named under apis"
    return f"known are {_some(words.sources)}; APIs are named under apis, MCP servers under mcpServers"


def _candidates(text: str, words: Vocabulary) -> Iterator[str]:
    """Texts that may have been meant, the nearest first; some are no patterns either."""
    stripped = text.strip()
    yield stripped
    if written := _METHOD_AND_PATH.fullmatch(text):  # `POST /pets`
        yield from _joined([f"{HTTP}.{written[1].lower()}"], _paths(written[2]))
    if re.match(r"https?://", stripped, re.IGNORECASE):
        yield from _joined([f"{HTTP}.*"], _paths(stripped))
    form, before, target = split(stripped)
    if before is None:
        yield from _names_meant(stripped, words)
        return
    if not target:
        yield from _joined(_beginnings_meant(before, form, words), ["*", ""])
    elif form is Form.endpoint:
        source, _, method = before.partition(".")
        if not method:  # `http.:x`
            yield f"{source}:{target}"
        if not _matches_any(source, words.with_endpoints):  # `mcp:/x`
            yield f"{source}:{target.removeprefix('/')}"
        yield from _joined(_beginnings_meant(before, form, words), _paths(target))
        yield from _joined(_near(source, words.sources), [target])
    else:
        yield from _joined(_beginnings_meant(before, form, words), [target])
        if ":" in target:  # `http:http.post:/x`
            yield target
            yield from _candidates(target, words)
    if not before:
        yield "*" + stripped


def _names_meant(text: str, words: Vocabulary) -> Iterator[str]:
    if text in words.sources or text in words.qualified:
        yield f"{text}:*"
    if text.startswith("/"):
        yield from _joined([f"{HTTP}.*"], _paths(text))
    elif written := _SOURCE_AND_PATH.fullmatch(text):  # `http.post/pets`
        yield from _joined(_beginnings_meant(written[1], Form.endpoint, words), _paths(written[2]))


def _beginnings_meant(before: str, form: Form, words: Vocabulary) -> Iterator[str]:
    """What may have been meant before the colon, itself first."""
    yield before
    if form is Form.source:
        yield from _near(before, words.sources)
        return
    source, dot, method = before.partition(".")
    if not dot:
        yield from (f"{one}.*" for one in _near(source, words.with_endpoints))
        yield from _near(before, words.qualified)
        yield f"{HTTP}.*"
        return
    for one, verb in product(_near(source, words.with_endpoints), _near(method or "*", words.all_methods)):
        yield f"{one}.{verb}"
    yield from _near(before, words.qualified)


def _near(word: str, known: Sequence[str]) -> list[str]:
    """The word if it matches a known one, else known ones within two edits, the nearest first.

    Wildcards are kept where they stand at the word's ends.
    """
    if _matches_any(word, known):
        return [word]
    bare = word.lower().strip("*")
    # A short word is nearly everything's neighbour.
    most = min(_NEAR, max(1, len(bare) - 1))
    alike = ((index, one) for index, one in enumerate(known) if abs(len(one) - len(bare)) <= most)
    ranked = sorted((distance, index, one) for index, one in alike if (distance := edits(bare, one)) <= most)
    head, tail = ("*" if word.startswith("*") else ""), ("*" if word.endswith("*") else "")
    return [f"{head}{one}{tail}" for _, _, one in ranked]


def _paths(path: str) -> Iterator[str]:
    """The path as an endpoint has it: encoded, no query, no dot segments, one slash each."""
    yield path
    path = _DOT_SEGMENT.sub("", path)
    while _PARENT_SEGMENT.search(path):
        path = _PARENT_SEGMENT.sub("", path, count=1)
    for one in (_UNCLOSED.sub(r"\1}", path), path):
        with suppress(ValueError):
            yield endpoint_path(one)


def _joined(befores: Iterable[str], targets: Iterable[str]) -> Iterator[str]:
    targets = list(targets)
    for before in befores:
        for target in targets:
            yield f"{before}:{target}"


def _excerpt(text: str, offset: int) -> tuple[str, int]:
    """The text with hidden characters as escapes, long ones cut around the fault; and where the caret stands."""
    start = max(0, offset - _SHOWN // 2) if len(text) > _SHOWN else 0
    before, after = visible(text[start:offset]), visible(text[offset : start + _SHOWN])
    lead = "..." if start else ""
    tail = "..." if start + _SHOWN < len(text) else ""
    return f"{lead}{before}{after}{tail}", len(lead) + len(before)


def _matches_any(word: str, known: Iterable[str]) -> bool:
    return any(map(Glob(word).matches, known))


def _some(words: Sequence[str]) -> str:
    return ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")


def _quoted(text: str) -> str:
    return f"'{visible(text[:40])}'"
