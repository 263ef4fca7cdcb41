"""The keys of a store: the ones given or found, if they are those it was written with."""

from __future__ import annotations

import os

from toolgen.approvals.database import Database
from toolgen.approvals.tables import meta
from toolgen.errors import CredentialsError
from toolgen.identity.keys import VARIABLE, Keys, create_key_file


def _keys(database: Database, written_with: str | None) -> Keys:
    """The keys of the environment, else of the file beside a SQLite database, made where nothing is encrypted yet."""
    if os.environ.get(VARIABLE, "").strip():
        return Keys.load()
    if database.in_memory:
        return Keys(os.urandom(32))
    if database.path is None:
        raise CredentialsError(f"a PostgreSQL store needs a key: set {VARIABLE}, or give key= or --key-file")
    beside = database.path.with_name("toolgen.key")
    if not beside.exists():
        if written_with is not None:
            raise CredentialsError(
                f"the store was written with the key {written_with!r}, and {beside} is gone: put it back, or set {VARIABLE}"
            )
        try:
            return create_key_file(beside)
        except CredentialsError:
            if not beside.exists():
                raise
    return Keys.load(file=beside)  # this process's, or that of one that was faster


def store_keys(database: Database, keys: Keys | None) -> Keys:
    """The keys, if they are those of the store: the first ones it is opened with, and those that follow on them."""
    from sqlalchemy import insert, select, update

    known = select(meta.c.value).where(meta.c.key == "key")
    with database.read() as connection:
        written_with = connection.execute(known).scalar()
    keys = keys or _keys(database, written_with)
    if written_with == keys.id:
        return keys
    with database.change() as connection:
        database.lock_chain(connection)
        written_with = connection.execute(known).scalar()
        if written_with is None:
            connection.execute(insert(meta).values(key="key", value=keys.id))
            return keys
        try:
            keys.by_id(written_with)
        except CredentialsError:
            raise CredentialsError(
                f"the store was written with the key {written_with!r}, and this is {keys.id!r}: give the store's key,"
                " or both, the new one first"
            ) from None
        connection.execute(update(meta).where(meta.c.key == "key").values(value=keys.id))
    return keys
