"""Token exchange (RFC 8693): the caller's token for one that another origin takes.

It is the only way for a caller to be known to an origin they did not address: nothing sends their own
token there.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from toolgen.errors import CredentialsError, CredentialsMissing, Problem
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.origin import Origin
from toolgen.identity.references import Reference

Exchange = Callable[[Caller, Origin], Awaitable[str] | str]


class Exchanges:
    """The host's hooks by origin: `Exchanges({"https://b.example": hook})`.

    A hook is given the caller and the origin and returns the token for it; a plain function should not wait.

    Raises CredentialsError with every key that is no origin and every hook that cannot be called.
    """

    def __init__(self, hooks: Mapping[str, Exchange] | None = None) -> None:
        self._hooks: dict[Origin, Exchange] = {}
        found: list[Problem] = []
        given: Mapping[str, Any] = hooks or {}
        for key, hook in given.items():
            origin, fault = parse_origin(key)
            where = f"exchange['{key}']"
            if origin is None:
                found.append(Problem(fault, where))
            elif origin in self._hooks:
                found.append(Problem(f"there are two hooks for {origin}", where))
            elif not callable(hook):
                found.append(Problem("the hook is no function of a caller and an origin", where))
            else:
                self._hooks[origin] = hook
        if found:
            raise CredentialsError("the token exchange cannot be used", found)

    def needed(self, references: Iterable[Reference], origin: Origin) -> bool:
        """Whether a request with these references to that origin takes an exchanged token."""
        return origin in self._hooks and any(one.is_caller_token for one in references)

    async def tokens(
        self, references: Iterable[Reference], caller: Caller | None, origin: Origin
    ) -> Mapping[Origin, Secret]:
        """The exchanged token that `fill` needs for these references, by its origin; nothing if it needs none.

        Raises CredentialsMissing: no caller, no token to exchange, or the hook failed or returned nothing.
        """
        if not self.needed(references, origin):
            return {}
        missing = "no caller is bound to this call" if caller is None else caller.lacks_token
        if caller is None or missing is not None:
            raise CredentialsMissing(f"the token exchange for {origin} needs the caller's token, and {missing}")
        try:
            given = self._hooks[origin](caller, origin)
            token = _secret(await given if inspect.isawaitable(given) else given)
        except Exception as error:  # noqa: BLE001 (what the host says of it may hold the token)
            raise CredentialsMissing(f"the token exchange for {origin} failed: {type(error).__name__}") from None
        if token is None:
            raise CredentialsMissing(f"the token exchange for {origin} returned no token")
        return {origin: token}


def _secret(given: object) -> Secret | None:
    text = given.reveal() if isinstance(given, Secret) else given
    return Secret(text.strip()) if isinstance(text, str) and text.strip() else None


def parse_origin(text: object) -> tuple[Origin | None, str]:
    """A text that is an origin and nothing else, or what is wrong with it."""
    origin = Origin.of(text) if isinstance(text, str) else None
    if origin is None:
        return None, "this is no http(s) origin"
    if not isinstance(text, str) or text.partition("://")[2].rstrip("/").count("/") or "?" in text or "#" in text:
        return None, f"an origin is scheme, host and port only: write {origin}"
    return origin, ""
