"""The person a turn runs for, bound to what runs in it.

The token is a secret: it is in no `repr`, `str`, pickle or traceback, and only
`toolgen.identity.references` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from toolgen.errors import CredentialsError
from toolgen.identity.origin import Origin

DEFAULT_TENANT: Final = "default"


class Secret:
    """A text that shows itself to nobody who does not ask for it by `reveal()`; it cannot be pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return "<secret>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not pickled: it belongs to the process that was given it")


@dataclass(frozen=True)
class Caller:
    """Who is asking, as the host authenticated them.

    `subject` is their user id, `token` their bearer token, `origin` the URL (scheme, host, port count)
    under which they addressed the host: the only place their token may go. `context` holds values the
    host gives for the turn (`${context:NAME}`): not secrets, JSON data only. `tenant` separates
    customers of one host.

    Raises CredentialsError for an origin that is no http(s) URL and a context that is no plain data.
    """

    subject: str
    token: Secret | str | None = field(default=None, repr=False)
    origin: str | None = None
    tenant: str = DEFAULT_TENANT
    context: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        token = self.token
        if isinstance(token, str):
            token = Secret(token.strip()) if token.strip() else None
        object.__setattr__(self, "token", token)
        object.__setattr__(self, "context", MappingProxyType(dict(self.context)))
        if self.origin is not None and Origin.of(self.origin) is None:
            raise CredentialsError("the origin of a caller is no http(s) URL with a host")
        for name in self.context:
            if not isinstance(name, str):
                raise CredentialsError("the context of a caller maps names to values; a name is no text")

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the token: a copy in another process has none, and calls that need it are refused."""
        return {**self.__dict__, "token": None, "context": dict(self.context)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, context=MappingProxyType(state["context"]))


_bound: ContextVar[Caller | None] = ContextVar("toolgen_caller", default=None)


def current_caller() -> Caller | None:
    """The caller bound to this turn, or None."""
    return _bound.get()


@contextmanager
def bind_caller(caller: Caller | None) -> Iterator[None]:
    """Bind the caller for what runs inside; nested ones come back afterwards, None hides an outer one.

    Tasks started inside see it. A thread does not, unless it is given the context
    (`contextvars.copy_context().run`): a pooled thread must not keep somebody's identity.
    """
    before = _bound.set(caller)
    try:
        yield
    finally:
        _bound.reset(before)
