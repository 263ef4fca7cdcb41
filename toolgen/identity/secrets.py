"""References filled in, at the moment a request is sent and never before.

Everything that cannot be filled in is an error: no reference becomes an empty text, another person's token or
anonymous access.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from toolgen.errors import CredentialsMissing
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.origin import Origin
from toolgen.identity.references import Place, Reference, ReferenceText

LARGEST_FILE: Final = 65_536  # bytes
NO_TOKENS: Final[Mapping[Origin, Secret]] = MappingProxyType({})
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_IN_HEADER = re.compile(r"[^\x20-\x7e]")  # RFC 9110 section 5.5; beyond ASCII nobody agrees what it means


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with its references filled in, and the secrets that are in it: what must be shown nowhere."""

    text: Secret
    secrets: tuple[Secret, ...] = ()


def fill(
    text: ReferenceText,
    *,
    caller: Caller | None,
    origin: Origin,
    place: Place = "header",
    encoded: bool = False,
    environ: Mapping[str, str] = os.environ,
    tokens: Mapping[Origin, Secret] = NO_TOKENS,
) -> Filled:
    """Operator text as it is sent to `origin`. Replacement is literal, files are read anew each time.

    `place` is where it stands in the request. `encoded` says that it is encoded before it is sent (a query,
    Basic credentials), so that it may hold any characters but controls. `tokens` are this caller's
    exchanged tokens: for an origin that is among them `${caller:token}` is that token.

    Raises CredentialsMissing, which never shows a value.
    """
    parts: list[Secret] = []
    secrets: list[Secret] = []
    for piece in text.pieces:
        if isinstance(piece, str):
            parts.append(Secret(piece))
            continue
        found = _resolved(piece, caller, origin, place, environ, tokens)
        _sendable(found, str(piece), encoded)
        parts.append(found)
        if piece.is_secret:
            secrets.append(found)
    whole = Secret("".join(part.reveal() for part in parts))
    _sendable(whole, "the text around the references", encoded)
    if secrets and len(parts) > 1:
        secrets.insert(0, whole)
    return Filled(whole, tuple(dict.fromkeys(secrets)))


def _resolved(
    reference: Reference,
    caller: Caller | None,
    origin: Origin,
    place: Place,
    environ: Mapping[str, str],
    tokens: Mapping[Origin, Secret],
) -> Secret:
    fault = reference.place_fault(place)
    if fault:
        raise CredentialsMissing(fault)
    if reference.kind == "env":
        return _variable(reference, environ)
    if reference.kind == "file":
        return _content(reference)
    if reference.kind == "context":  # shown, validated and fingerprinted; too late for all three here
        raise CredentialsMissing(f"{reference} is no secret; it is filled in when the request is made")
    if caller is None:
        raise CredentialsMissing(f"{reference} needs a caller, and no caller is bound to this call")
    return _subject(reference, caller) if reference.name == "userId" else _token(reference, caller, origin, tokens)


def _subject(reference: Reference, caller: Caller) -> Secret:
    if not caller.subject.strip():
        raise CredentialsMissing(f"{reference} needs the caller's user id, and the caller has none")
    return Secret(caller.subject.strip())


def _token(reference: Reference, caller: Caller, origin: Origin, tokens: Mapping[Origin, Secret]) -> Secret:
    missing = caller.lacks_token
    if missing is not None:
        raise CredentialsMissing(f"{reference} needs the caller's token, and {missing}")
    if origin in tokens:
        return tokens[origin]
    if caller.origin is None:
        raise CredentialsMissing(
            f"{reference} goes only to the origin the caller addressed, which is not known: give Caller(origin=)"
        )
    addressed = Origin.of(caller.origin)
    if addressed != origin:
        raise CredentialsMissing(
            f"{reference} goes only to the origin the caller addressed ({addressed}), and this request goes to {origin};"
            " another audience needs a token exchange for that origin"
        )
    assert isinstance(caller.token, Secret)
    return caller.token


def _variable(reference: Reference, environ: Mapping[str, str]) -> Secret:
    value = environ.get(reference.name)
    if value is None:
        raise CredentialsMissing(f"{reference}: the environment variable is not set")
    if not value.strip():
        raise CredentialsMissing(f"{reference}: the environment variable is empty")
    return Secret(value.strip())


def _content(reference: Reference) -> Secret:
    try:
        content, fault = _read(reference.name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is none"
        raise CredentialsMissing(f"{reference}: the file cannot be read: {reason}") from None
    if content is None or fault:
        raise CredentialsMissing(f"{reference}: the file {fault}")
    return content


def _read(path: str) -> tuple[Secret | None, str]:
    """A file's text, or what is wrong with it."""
    # Without waiting: opening a pipe nobody writes to would block the call for ever.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None, "is no regular file"
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        return None, f"is larger than {LARGEST_FILE // 1024} KiB"
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return None, "is no UTF-8 text"
    return (Secret(text), "") if text else (None, "is empty")


def _sendable(value: Secret, named: str, encoded: bool) -> None:
    fault = next(_character_faults(value, encoded), "")
    if fault:
        raise CredentialsMissing(f"{named} has a {fault}, and was not sent")


def _character_faults(value: Secret, encoded: bool) -> Iterator[str]:
    """What keeps a value from being sent. It holds the text so that no frame of a traceback does."""
    if _CONTROLS.search(value.reveal()):
        yield "line break or other control character"
    elif any(0xD800 <= ord(character) <= 0xDFFF for character in value.reveal()):
        yield "character that is none"
    elif not encoded and _NOT_IN_HEADER.search(value.reveal()):
        yield "character beyond ASCII, which no header can hold"
