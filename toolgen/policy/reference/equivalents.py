"""What a pattern of the reference system matches there, as patterns that match the same here.

There the addresses of a tool are plain texts (`http.post:/pets`, `http:createPet`, `createPet`), a
pattern is tried on all of them, and a `*` may stand for the colon. Sources are the reserved ones only:
there no API and no MCP server lends its tools a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from toolgen.policy.address import HTTP, MCP, Vocabulary
from toolgen.policy.advice import nearest
from toolgen.policy.forms import halves
from toolgen.policy.patterns import LONGEST, Form, Glob, Pattern, can_match, split
from toolgen.policy.possible import impossible_in_name, impossible_in_path
from toolgen.tools.naming import RESERVED_SOURCES

_RUNS = re.compile(r"\*+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")  # and `*`, so that runs become one


def equivalents(text: str, words: Vocabulary, *, paths: Sequence[str] = (), wider: bool = False) -> list[str]:
    """The patterns that together match every tool that the text matches there, and no other; the text first.

    Empty where it matches nothing. `paths` are those of the endpoints there are. `wider`: where what it
    matched is written otherwise here (a name with a colon, a path with `//`), patterns that match more.
    """
    says = _RUNS.sub("*", text)
    found = [*_names(says, words), *_by_source(says), *_endpoints(says, paths)]
    if wider:
        found += _wider(says, words)
        found = [one if len(one) <= LONGEST else one[: LONGEST - 1] + "*" for one in found]
    patterns = [Pattern.of(one, words) for one in dict.fromkeys(found) if can_match(one, words)]
    kept = [one.text for one in patterns if not any(covers(other, one) for other in patterns if other is not one)]
    return [text if one == says else one for one in sorted(kept, key=lambda one: one != says)]


def covers(one: Pattern, other: Pattern) -> bool:
    """Whether every tool that `other` matches is certainly one that `one` matches, too."""
    if one.form is Form.name:
        # The `*` of another pattern is a character that only a `*` matches.
        return one.target.text == "*" or (other.form is not Form.endpoint and one.target.matches(other.target.text))
    assert one.before is not None
    if one.form is Form.source and other.form is Form.endpoint:
        return one.target.text == "*" and one.before.matches(HTTP)
    same = one.form is other.form and other.before is not None
    return same and one.before.matches(_before(other)) and one.target.matches(other.target.text)


def _before(pattern: Pattern) -> str:
    return "" if pattern.before is None else pattern.before.text


def _names(says: str, words: Vocabulary) -> Iterator[str]:
    if ":" not in says:
        # `http` is refused for a forgotten colon; this is the tool of that name.
        yield f"*:{says}" if says in words.sources or says in words.qualified else says


def _by_source(says: str) -> Iterator[str]:
    for before, target in halves(says):
        sources = _sources(before)
        if not sources or impossible_in_name(target) is not None:
            continue
        # An API's tools are `http`'s, a server's are `mcp`'s. Only where it matches neither or one of the two
        # could a `*` take in the name of an API or a server, too.
        exact = "*" not in before or {HTTP, MCP}.issubset(sources)
        yield from [f"{before}:{target}"] if exact else [f"{source}:{target}" for source in sources]


def _endpoints(says: str, paths: Iterable[str]) -> Iterator[str]:
    form, _, behind = split(says)
    is_endpoint = form is Form.endpoint and impossible_in_path(behind) is None
    for before, target in halves(says):
        if impossible_in_path(target) is not None:
            continue
        # Where the `*` of `http.*:/x` stands for the colon, a path has `:/x` in it; hardly one has.
        if is_endpoint and target != behind and not any(map(Glob(target).matches, paths)):
            continue
        methods = _methods(before)
        # What names no source but `http`, or every method, takes in no more where APIs have names.
        if methods and is_endpoint and target == behind and ("*" in methods or before.startswith((f"{HTTP}.", "*."))):
            yield f"{before}:{target}"
        else:
            yield from (f"{HTTP}.{method}:{target}" for method in methods)


def _sources(before: str) -> list[str]:
    return sorted(filter(Glob(before).matches, RESERVED_SOURCES))


def _methods(before: str) -> list[str]:
    """What is left of it for the method, once `http.` is read."""
    rests = {before}
    for char in f"{HTTP}.":
        rests = {rest for one in rests for rest in _behind(one, char)}
    return sorted(rest for rest in rests if rest and not any(Glob(one).matches(rest) for one in rests - {rest}))


def _behind(pattern: str, char: str) -> Iterator[str]:
    """The patterns that are left of one when a character of the text is read."""
    if pattern.startswith("*"):
        yield pattern
        pattern = pattern[1:]
    if pattern.startswith(char):
        yield pattern[1:]


def _wider(says: str, words: Vocabulary) -> Iterator[str]:
    """What matches the tool under the name or path it has to have here, if it cannot keep its own."""
    before, colon, target = says.partition(":")
    if not colon or not target:
        return
    if target.startswith("/"):
        if _methods(before) and impossible_in_path(target) is not None and (near := nearest(says, words)):
            yield near
    elif _sources(before) and impossible_in_name(target) is not None:
        yield from _by_source(f"{before}:{_NOT_IN_NAMES.sub('*', target)}")
