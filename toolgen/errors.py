"""Every error toolgen raises, in one tree. This module imports nothing of toolgen.

    ToolgenError                      catch this to catch them all
    ├── UsageError                    the call or the command line is wrong (exit code 2)
    │   ├── ConfigError               a toolgen.yaml has problems
    │   └── MissingExtra              an optional package is not installed
    ├── SourceError                   a document, or a server's list of tools, could not be read
    │   ├── SourceRefused             a rule forbids reading it: scheme, root, host, redirect
    │   ├── SourceUnavailable         it is not there, or the network failed
    │   ├── LimitExceeded             it is larger, deeper or slower than allowed
    │   └── SyntaxFault               it is neither JSON nor YAML, or has duplicate keys
    ├── DocumentError                 it was read, but is no OpenAPI document
    ├── SelectionError                no operation is left to make a tool of
    ├── ToolsetError                  a toolset file is not valid
    │   └── ToolsetEdited             a toolset file was edited by hand and would be overwritten
    ├── ApprovalConfigError           an approval config is not valid
    │   └── PatternError              a pattern can match nothing
    ├── RegistrationError             tools that approval patterns could not tell apart
    ├── RequestError                  no request can be made of a call
    │   ├── ArgumentsError            the model's arguments are not valid, or lead where they must not
    │   ├── ServerError               it is not known which server the request goes to
    │   └── ContractError             the request is not what the document describes
    ├── CredentialsError              references or credentials are not valid; found when they are loaded
    ├── ApprovalError                 a pause cannot be changed or resumed; `status` is the HTTP status it is like
    │   ├── DecisionInvalid           400: the decision is not valid
    │   ├── NameInvalid               400: a tenant, thread, turn, call id or person is named by what cannot be kept
    │   ├── DecisionForbidden         403: the decider may not decide it
    │   ├── CallerMismatch            403: somebody else than the requester resumes it
    │   ├── ApprovalPending           202: a request waits for a person; made again once approved, it goes out
    │   ├── CallRefused               403: a request was not sent, or nothing is known of it; `result` says why
    │   ├── PauseUnknown              404: there is no such pause
    │   └── PauseConflict             409: it is in another state, or somebody was faster
    ├── StoreError                    the store cannot be opened, read or written
    └── DispatchRefused               a request must not be sent as things are; nothing was
        ├── CredentialsMissing        a credential it needs is not there, or must not go to this origin
        └── AddressRefused            its host has an address that requests must not go to

Faults *inside* a document are values (`toolgen.openapi.diagnostics.Diagnostic`) and never stop
the rest. What is raised here is what a person has to act on; no message contains a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: what is wrong, where, and what to do about it.

    `where` is a JSON pointer, a config path (`apis.petstore.spec`), a file or a URL; `file` names the
    file that a config path is in. `line` and `column` count from 1 and are set where the text is known.
    `excerpt` is the text at fault with hidden characters as escapes, `caret` the offset in it of the
    character that is wrong, from 0; `suggestion` the nearest text that would be right.
    """

    message: str
    where: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""
    file: str = ""
    excerpt: str = ""
    caret: int | None = None
    suggestion: str = ""

    def __str__(self) -> str:
        position = "" if self.line is None else f":{self.line}" + (f":{self.column}" if self.column else "")
        if self.file:  # `FILE:LINE:`, which editors and terminals open
            place = f"{self.file}{position}: " + (f"{self.where}: " if self.where else "")
        else:
            place = f"{self.where}{position}: " if self.where or position else ""
        told = f"{place}{self.message}" + (f" ({self.hint})" if self.hint else "")
        if self.caret is not None:
            told += f"\n      {self.excerpt}\n      {' ' * self.caret}^"
        return told

    def to_dict(self) -> dict[str, Any]:
        """The problem as JSON-ready data; keys without a value are left out."""
        return {field: value for field, value in asdict(self).items() if value not in (None, "")}


class ToolgenError(Exception):
    """Base of every error. `problems` lists all faults found, never only the first."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, problems: Sequence[Problem] = ()) -> None:
        self.message = message
        self.problems = tuple(problems)
        super().__init__(message)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"  {problem}" for problem in self.problems)])


class UsageError(ToolgenError):
    """The call or the command line is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """A toolgen.yaml has problems."""


class MissingExtra(UsageError):
    """An optional package is not installed; the message names the extra that brings it."""


class SourceError(ToolgenError):
    """A document, or a server's list of tools, could not be read."""


class SourceRefused(SourceError):
    """A rule forbids reading it: the URL's scheme, the allowed roots or hosts, a redirect."""


class SourceUnavailable(SourceError):
    """It is not there, cannot be opened, or the network failed."""


class LimitExceeded(SourceError):
    """It is larger, deeper, or slower than the limits allow."""


class SyntaxFault(SourceError):
    """The text is neither JSON nor YAML, or repeats a key; the problem has line and column."""


class DocumentError(ToolgenError):
    """The text was read, but is not an OpenAPI document of a version toolgen knows."""


class SelectionError(ToolgenError):
    """No operation is left to make a tool of."""


class ToolsetError(ToolgenError):
    """A toolset file is not valid."""


class ToolsetEdited(ToolsetError):
    """A toolset file was edited by hand and writing it would drop the edits."""


class ApprovalConfigError(ToolgenError):
    """An approval config is not valid; there is no config then, and nothing runs by it."""


class PatternError(ApprovalConfigError):
    """A pattern can match nothing; the problem has the character and the nearest pattern that can."""


class RegistrationError(ToolgenError):
    """Tools that approval patterns could not tell apart: bad or repeated names, a source that is there twice."""


class RequestError(ToolgenError):
    """No request can be made of a call."""


class ArgumentsError(RequestError):
    """The model's arguments are not valid, or lead where they must not; the problems tell it what to change."""


class ServerError(RequestError):
    """It is not known which server the request goes to; the message says what to set."""


class ContractError(RequestError):
    """The request is not what the document describes, or it cannot be told."""


class CredentialsError(ToolgenError):
    """References or credentials are not valid; found when they are loaded, never told with a value."""


class DispatchRefused(ToolgenError):
    """A request must not be sent as things are; no byte of it was."""


class CredentialsMissing(DispatchRefused):
    """A credential the request needs is not there, or must not go to its origin."""


class AddressRefused(DispatchRefused):
    """The host has an address that requests must not go to; the message names the setting that allows it."""


class ApprovalError(ToolgenError):
    """A pause cannot be changed or resumed; `status` is the HTTP status it is like."""

    status: ClassVar[int] = 400


class DecisionInvalid(ApprovalError):
    """The decision is not valid; nothing was changed."""


class NameInvalid(ApprovalError, UsageError):
    """A tenant, thread, turn, call id or person has a name that not every store can keep whole; nothing was changed."""


class DecisionForbidden(ApprovalError):
    """The decider may not decide it; nothing was changed."""

    status = 403


class CallerMismatch(ApprovalError):
    """Somebody else than the requester resumes it; nothing was run."""

    status = 403


class ApprovalPending(ApprovalError):
    """A program's request waits for a person, in `pause`; nothing was sent. Made again once approved, it goes out."""

    status = 202

    def __init__(self, message: str, pause: Any) -> None:
        super().__init__(message)
        self.pause = pause


class CallRefused(ApprovalError):
    """A program's request was not sent, or nothing is known of what became of it; `result` (a ToolResult) says why."""

    status = 403

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class PauseUnknown(ApprovalError):
    """There is no such pause, or it is another tenant's."""

    status = 404


class PauseConflict(ApprovalError):
    """It is in another state than it would have to be, or somebody was faster; the message names the state."""

    status = 409


class StoreError(ToolgenError):
    """The store cannot be opened, read or written; the message says what to do."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known word, or nothing."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
