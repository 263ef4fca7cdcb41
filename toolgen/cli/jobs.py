"""One API: what `toolgen generate` and `toolgen call` are told of it, on the command line or in a toolgen.yaml."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgen.errors import UsageError, did_you_mean

_REFERENCE = re.compile(r"\$\{([^{}]*)\}?")
_ENV = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True)
class Job:
    """One API to generate, and how it is called. Paths are absolute or relative to the current folder.

    `headers` hold `${env:NAME}` as it was written; `headers_of` resolves it. `credentials` are references, too.
    """

    spec: str
    api: str | None = None
    server: str | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    skip_deprecated: bool = False
    name_prefix: str = ""
    name_limit: int | None = None
    allow_roots: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Mapping[str, Any] = field(default_factory=dict)
    output: str | None = None
    folder: Path = Path()
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    server_variables: Mapping[str, str] = field(default_factory=dict)
    allow_private: tuple[str, ...] = ()
    caller_references: bool = True

    @property
    def is_url(self) -> bool:
        """Whether the document is read from a URL."""
        return "://" in self.spec

    @property
    def is_stdin(self) -> bool:
        """Whether the document is read from standard input."""
        return self.spec == "-"

    @property
    def target(self) -> str:
        """The file of its toolset, without symbolic links."""
        return os.path.realpath(self.output or self.folder / f"{self.api}.tools.yaml")


def headers_of(job: Job) -> dict[str, str]:
    """The request headers for the document. Raises UsageError naming a variable that is not set, never a value."""
    missing = sorted({name for value in job.headers.values() for name in _ENV.findall(value) if name not in os.environ})
    if missing:
        raise UsageError(
            f"the environment variable {', '.join(missing)} is not set; a header for the document needs it"
        )
    return {
        name: re.sub(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}", lambda m: os.environ[m[1]], value)
        for name, value in job.headers.items()
    }


def header_problem(name: str, value: str) -> str | None:
    """What is wrong with a header for the document; never tells its value."""
    if not _HEADER_NAME.fullmatch(name):
        return "this is no name of a header"
    for match in _REFERENCE.finditer(value):
        if not match[0].endswith("}") or not _ENV.fullmatch(match[1]):
            return "the only reference there is here is ${env:NAME}"
    return None


def prefix_problem(prefix: str, longest: int | None) -> str | None:
    """What is wrong with a prefix of tool names, given the longest name allowed."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", prefix):
        return "it takes letters, digits, _ and -"
    longest = longest or 64
    return None if len(prefix) + 8 <= longest else f"it leaves fewer than 8 of {longest} characters for the name"


def limit_problem(name: str, value: Any) -> str:
    """What is wrong with a limit of reading, or nothing."""
    from dataclasses import fields

    from toolgen.openapi.source import Limits

    kinds = {one.name: one.type for one in fields(Limits)}
    if name not in kinds:
        return f"no limit; there are {', '.join(kinds)}{did_you_mean(name, kinds)}"
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value > 0:
        return ""
    if kinds[name] == "float":
        return "" if isinstance(value, float) and value > 0 else "expected a number above 0"
    return "expected a whole number above 0"
