"""The person a turn runs for, bound to what runs in it.

The token is a secret: it is in no `repr`, `str`, pickle or traceback, and only `toolgen.identity.secrets`
and a token exchange of the host read it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
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

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: Any) -> Secret:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not pickled: it belongs to the process that was given it")


@dataclass(frozen=True)
class Caller:
    """Who is asking, as the host authenticated them.

    `subject` is their user id, `token` their bearer token (blank is none), `origin` the URL (scheme, host,
    port count) under which they addressed the host: the only place their token may go. `context` holds
    values the host gives for the turn (`${context:NAME}`): not secrets, JSON data only, and a copy is
    kept. `tenant` separates customers of one host. `expires` is when the token does (`exp` of a JWT): it is
    not sent from then on.

    Raises CredentialsError for an origin that is no http(s) URL, a context that is no JSON data, a time without
    its zone, and texts that are none.
    """

    subject: str
    token: Secret | str | None = field(default=None, repr=False)
    origin: str | None = None
    tenant: str = DEFAULT_TENANT
    context: Mapping[str, Any] = field(default_factory=dict, hash=False)
    expires: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", _token(self.token))
        object.__setattr__(self, "context", MappingProxyType(_json_copy(self.context)))
        given: dict[str, Any] = vars(self)  # whatever the type checker of the host said of it
        subject, tenant, origin = given["subject"], given["tenant"], given["origin"]
        if not isinstance(subject, str):
            raise CredentialsError("the subject of a caller is a text: their user id")
        if not isinstance(tenant, str) or not tenant.strip():
            raise CredentialsError("the tenant of a caller is a text that is not blank")
        if origin is not None and (not isinstance(origin, str) or Origin.of(origin) is None):
            raise CredentialsError("the origin of a caller is no http(s) URL with a host")
        if given["expires"] is not None and getattr(given["expires"], "tzinfo", None) is None:
            raise CredentialsError("the time a caller's token expires is a datetime with its zone")

    @property
    def lacks_token(self) -> str | None:
        """Why there is no token that can be used, for a message; None where there is one."""
        if self.token is None:
            return "the caller has none"
        if self.expires is not None and self.expires <= datetime.now(UTC):
            return "that of the caller has expired"
        return None

    def __copy__(self) -> Caller:
        return self

    def __deepcopy__(self, memo: Any) -> Caller:
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the token: a copy in another process has none, and calls that need it are refused."""
        return {**self.__dict__, "token": None, "context": dict(self.context)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, context=MappingProxyType(state["context"]))


def _token(given: Any) -> Secret | None:
    if given is None:
        return None
    if not isinstance(given, str | Secret):
        raise CredentialsError("the token of a caller is a text or a Secret")
    text = (given if isinstance(given, str) else given.reveal()).strip()
    return Secret(text) if text else None


def _json_copy(context: Any) -> dict[str, Any]:
    """The host's values as plain data of our own, which nobody changes between preview and dispatch."""
    if not isinstance(context, Mapping) or not all(isinstance(name, str) for name in context):
        raise CredentialsError("the context of a caller maps names to values")
    try:
        copied: dict[str, Any] = json.loads(json.dumps(dict(context), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise CredentialsError("the context of a caller holds JSON data only: a value is none") from None
    return copied


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
