"""References in operator text: `${caller:token}` and the like, parsed once into typed parts.

Only text that a person wrote is parsed: the values of `credentials:` and the leaves of a toolset. What
a model or a document says is never looked at, so a value that looks like a reference is sent as it is.

| reference | is |
|---|---|
| `${caller:token}` | the caller's token; in headers only, to the origin the caller addressed only |
| `${caller:userId}` | the caller's subject |
| `${context:NAME}` | a value the host gives for the turn; no secret |
| `${env:NAME}` | an environment variable of this process, without white space around it |
| `${file:PATH}` | the content of a file, without white space around it; read anew for every request |

`toolgen.identity.secrets` fills them in when a request is sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["caller", "context", "env", "file"]
Place = Literal["path", "query", "querystring", "header", "cookie", "body"]

_MARK = re.compile(r"\$\{([^{}]*)\}?")
_BARE = re.compile(r"\{\s*(?:caller|context|env|file)\s*:", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CALLER: Final = ("token", "userId")
_GRAMMAR: Final = "${caller:token}, ${caller:userId}, ${context:NAME}, ${env:NAME} or ${file:PATH}"
# Where a reference of each kind may stand: a secret never in what is shown, logged or fingerprinted as it is sent.
_PLACES: Final[dict[str, frozenset[str]]] = {
    "caller:token": frozenset({"header"}),
    "caller:userId": frozenset({"header", "query"}),
    "context": frozenset({"path", "query", "querystring", "header", "cookie", "body"}),
    "env": frozenset({"header", "query", "cookie"}),
    "file": frozenset({"header", "query", "cookie"}),
}


class ReferenceFault(ValueError):
    """Operator text holds what is no reference; the message says what would be, and shows no text."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference; `name` is `token` or `userId`, a context name, a variable, a path."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}"

    @property
    def is_secret(self) -> bool:
        """Whether what it stands for must not be shown."""
        return self.kind in ("env", "file") or self.is_caller_token

    @property
    def is_caller_token(self) -> bool:
        """Whether it stands for the caller's token, or for what an exchange gives in its place."""
        return self.kind == "caller" and self.name == "token"

    def place_fault(self, place: Place) -> str:
        """Why it must not stand in a place of a request, or nothing."""
        allowed = _PLACES.get(f"{self.kind}:{self.name}") or _PLACES.get(self.kind, frozenset())
        if place in allowed:
            return ""
        return f"{self} cannot stand in the {place}, only in: {', '.join(sorted(allowed))}"


@dataclass(frozen=True, slots=True)
class ReferenceText:
    """Operator text with its references; a piece that is a text is literal."""

    pieces: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Reference))

    def __str__(self) -> str:
        """The text as it was written, nothing resolved."""
        return "".join(map(str, self.pieces))


def parse(text: str) -> ReferenceText:
    """Operator text as its pieces. Raises ReferenceFault for anything in `${...}` that is no reference."""
    pieces: list[str | Reference] = []
    at = 0
    for match in _MARK.finditer(text):
        pieces += [_literal(text[at : match.start()])] if match.start() > at else []
        pieces.append(_reference(match))
        at = match.end()
    if at < len(text) or not pieces:
        pieces.append(_literal(text[at:]))
    return ReferenceText(tuple(pieces))


def _literal(text: str) -> str:
    bare = _BARE.search(text)
    if bare is not None:
        raise ReferenceFault(f"`{{...}}` without its `$` is no reference; write {_GRAMMAR}")
    return text


def _reference(match: re.Match[str]) -> Reference:
    if not match[0].endswith("}"):
        raise ReferenceFault(f"`${{` is not closed; write {_GRAMMAR}")
    kind, colon, name = match[1].partition(":")
    if kind == "caller" and colon and name in _CALLER:
        return Reference("caller", name)
    if kind == "context" and _NAME.fullmatch(name):
        return Reference("context", name)
    if kind == "env" and _ENV.fullmatch(name):
        return Reference("env", name)
    if kind == "file" and name.strip() == name and name and name.isprintable():
        return Reference("file", name)
    raise ReferenceFault(f"`${{...}}` holds no reference; write {_GRAMMAR}")
