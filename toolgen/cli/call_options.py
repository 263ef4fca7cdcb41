"""What the options of commands that call say, checked: arguments, credentials, ranges; no message quotes a secret."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolgen.errors import CredentialsError, SourceError, UsageError, did_you_mean

if TYPE_CHECKING:
    from toolgen.tools.model import Toolset

_OPTION: Final = "--credential"


def arguments(given: str) -> dict[str, Any]:
    """The arguments of a call: a JSON object, `@FILE` or `@-` (stdin). Integers are exact at any length.

    Raises UsageError with line and column for what is no JSON (RFC 8259), repeats a key or is no object.
    """
    from toolgen.openapi.source.json_text import load_json

    where = given[1:] if given.startswith("@") else ""
    text = _text_of(where) if where else given
    named = "--args" if not where else "--args from stdin" if where == "-" else f"--args from {where}"
    try:
        found = load_json(text, named)
    except SourceError as error:
        raise UsageError(f"{named}: {_first_fault(error)}") from None
    if not isinstance(found, dict):
        raise UsageError(f'{named}: the arguments of a tool are a JSON object, as in \'{{"petId": "7"}}\'')
    return found


def _text_of(name: str) -> str:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"--args: {name} cannot be read: {error.strerror or error}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"--args: {name} is no UTF-8 text") from None


def _first_fault(error: SourceError) -> str:
    """The fault without the line it quotes, which may hold anything."""
    if not error.problems:
        return error.message
    found = error.problems[0]
    return f"line {found.line}, column {found.column}: {found.message.partition(chr(10))[0]}"


def pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    """NAME=VALUE as a mapping. Raises UsageError for one that is none, or a name that is there twice."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} takes NAME=VALUE; one has no name or no '='")
        if name in found:
            raise UsageError(f"{option} {name} is there twice")
        found[name] = value
    return found


def by_api(
    option: str, given: Sequence[str] | None, apis: Sequence[str], after: str, form: str
) -> dict[str, list[str]]:
    """What an option says of each API: of the only one as it is, of several with the name and `after` in front.

    Raises UsageError for what is of none of them; `form` is what it should have been, as nothing given is shown.
    """
    if len(apis) == 1:
        return {apis[0]: list(given or ())}
    found: dict[str, list[str]] = {api: [] for api in apis}
    for text in given or ():
        api, there, rest = text.partition(after)
        if not there or api not in found:
            raise UsageError(
                f"{option}: there are several toolsets, so that it takes {form}; APIs are {', '.join(apis)}"
            )
        found[api].append(rest)
    return found


def credentials(given: Sequence[str] | None, toolset: Toolset) -> dict[str, Any]:
    """SCHEME=REF and SCHEME@ORIGIN=REF as `credentials:` has them.

    Raises UsageError for a scheme the toolset does not have, and CredentialsError for what is no reference;
    nothing that was given is shown, for it may be a secret in the wrong place.
    """
    from toolgen.identity.credentials import Credentials

    found: dict[str, Any] = {}
    known = toolset.security_schemes
    for text in given or ():
        name, equals, value = text.partition("=")
        scheme, at, origin = name.partition("@")
        if not equals or (at and "://" not in origin):
            raise UsageError("--credential takes SCHEME=REF, or SCHEME@https://other.example=REF for another origin")
        if scheme not in known:
            listed = f"it has {', '.join(known)}" if known else "it has none"
            near = did_you_mean(scheme, known)
            raise UsageError(f"--credential: {toolset.api} has no such security scheme; {listed}{near}")
        entries = found.setdefault(origin, {}) if at else found
        if scheme in entries:
            raise UsageError(f"--credential: {scheme} is there twice")
        entries[scheme] = _reference(scheme, value)
    try:
        Credentials.load(found, api=toolset.api, schemes=known, origin=None, where=_OPTION)
    except CredentialsError as error:
        problems = [replace(one, where=one.where.replace(f"{_OPTION}.", f"{_OPTION} ", 1)) for one in error.problems]
        raise CredentialsError(error.message, problems) from None
    return found


def _reference(scheme: str, value: str) -> Any:
    """A reference, or the JSON object of a structured credential."""
    if not value.lstrip().startswith('{"'):
        return value
    from toolgen.openapi.source.json_text import load_json

    try:
        return load_json(value, "it")
    except SourceError as error:
        raise UsageError(f"--credential {scheme}: {_first_fault(error)}") from None


def private_ranges(given: Sequence[str] | None) -> tuple[str, ...]:
    """The ranges of --allow-private. Raises UsageError for one that is none."""
    from toolgen.dispatch.addresses import Allowed

    for text in given or ():
        try:
            Allowed(ranges=[text])
        except UsageError as error:
            (problem,) = error.problems
            raise UsageError(f"--allow-private: {problem.message} ({problem.hint})") from None
    return tuple(given or ())


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Credentials of a file with those of the command line over them, scheme by scheme."""
    found = {**under, **over}
    for key in under.keys() & over.keys():
        if "://" in key:  # an origin: its schemes
            found[key] = {**under[key], **over[key]}
    return found
