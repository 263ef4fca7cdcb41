"""The store of approvals as the command line opens it, and the options that say which."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from toolgen.cli.who import person
from toolgen.errors import PauseUnknown, StoreError, UsageError

if TYPE_CHECKING:
    from toolgen.approvals.model import Decider, Pause
    from toolgen.approvals.store import Store
    from toolgen.runtime.core import Runtime

T = TypeVar("T")
VARIABLE: Final = "TOOLGEN_STORE"
DEFAULT_STORE: Final = "sqlite:///toolgen.db"
SHORT: Final = 8  # characters of an id that are shown
SHORTEST: Final = 4  # characters of an id that stand for it

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help=f"sqlite:///FILE or postgresql://USER@HOST/NAME. Default: {VARIABLE}, else {DEFAULT_STORE}.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key-file",
        metavar="FILE",
        help="The store's key. Default: TOOLGEN_KEY, else toolgen.key beside a SQLite file.",
    ),
]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A pause.")]


def store_url(given: str | None) -> str | None:
    """The URL that an option or the environment names, or None."""
    return given or os.environ.get(VARIABLE, "").strip() or None


@contextmanager
def opened(given: str | None, key_file: str | None, *, make: bool = False) -> Iterator[Store]:
    """The store that is named, or the default one; only with `make` is a file made that is not there.

    Raises StoreError, CredentialsError, and UsageError for one in memory, which would be gone at once.
    """
    from toolgen.approvals.store import Store
    from toolgen.identity.keys import Keys

    url = store_url(given) or DEFAULT_STORE
    _check(url, make=make)
    store = Store(url, Keys.load(file=key_file) if key_file else None)
    try:
        yield store
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class Desk:
    """A store, and who is at it. The runtime has no sources: it decides, cancels and extends, and can run nothing."""

    runtime: Runtime
    who: Decider

    @property
    def store(self) -> Store:
        """The store."""
        return self.runtime.store

    def pause(self, wanted: str) -> Pause:
        """A pause of the tenant of who is here; raises like `find_pause`."""
        return find_pause(self.store, wanted, self.who.tenant)


@contextmanager
def desk(given: str | None, key_file: str | None, config: str | None, tenant: str | None) -> Iterator[Desk]:
    """A store for who is here. Raises like `person` and `opened`."""
    from toolgen.runtime.core import Runtime

    who = person(config, tenant)
    with opened(given, key_file) as store:
        yield Desk(Runtime([], store=store, background=False), who)


def _check(url: str, *, make: bool) -> None:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # a port that is no number
        return  # which opening it tells
    if not parsed.drivername.startswith("sqlite"):
        return
    name = parsed.database or ""
    if name in ("", ":memory:"):
        raise UsageError("--store: a store in memory is gone when the command ends; name a file, as sqlite:///FILE")
    if not make and not name.startswith("file:") and not Path(name).exists():
        hint = f"--store or {VARIABLE} names another" if url == DEFAULT_STORE else "nothing was ever kept there"
        raise StoreError(f"there is no store {name}: {hint}")


def find_pause(store: Store, wanted: str, tenant: str) -> Pause:
    """The pause of an id, or of the beginning of one: at least 4 characters that no other pause has.

    Raises PauseUnknown, and UsageError where several begin so.
    """
    begun = store.listed(tenant, limit=2, prefix=wanted) if len(wanted) >= SHORTEST else []
    return store.pause(only_one(wanted, [one.id for one in begun], "pause"), tenant)


def only_one(wanted: str, found: list[str], what: str) -> str:
    """The one id of those that begin like the wanted one. Raises PauseUnknown and UsageError."""
    if wanted in found or len(found) == 1:
        return wanted if wanted in found else found[0]
    if found:
        raise UsageError(f"several ids begin with {wanted!r}: give more of the one that is meant")
    short = f"; the beginning of an id is at least {SHORTEST} characters" if len(wanted) < SHORTEST else ""
    raise PauseUnknown(f"there is no {what} {wanted!r}{short}")


def run(work: Coroutine[Any, Any, T]) -> T:
    """What async work gives."""
    import asyncio

    return asyncio.run(work)
