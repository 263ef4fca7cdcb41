"""The database behind a store: SQLite in a file (or in memory), or PostgreSQL.

Every change is one transaction that holds the pause's row, and is durable when it returns.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.tables import VERSION, meta, metadata
from toolgen.errors import MissingExtra, StoreError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

BUSY_TIMEOUT: Final = 30.0  # seconds a writer waits for another
_MEMORY: Final = "sqlite://"
_LOCK: Final = 0x746F6F6C67656E  # PostgreSQL's advisory lock of the audit chain and of creating the tables
_PRAGMAS: Final = (
    f"busy_timeout={int(BUSY_TIMEOUT * 1000)}",
    "journal_mode=WAL",
    "synchronous=FULL",
    "fullfsync=ON",  # macOS keeps what was synced in the disk's cache otherwise
    "foreign_keys=ON",
    "secure_delete=ON",  # what a purge erased is overwritten in the file
)


class Database:
    """An engine whose tables are there and of the version this code knows.

    `url` is SQLAlchemy's: `sqlite:///toolgen.db`, `postgresql://user@host/name`; None is SQLite in memory. A file
    that is made here can be read by its owner only.

    Raises StoreError for a database that cannot be opened, and for one of another version.
    """

    def __init__(self, url: str | None) -> None:
        parsed = _parsed(url or _MEMORY)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.in_memory = self.is_sqlite and parsed.database in (None, "", ":memory:")
        self.path = Path(str(parsed.database)) if self.is_sqlite and not self.in_memory else None  # of SQLite's file
        self.engine = _engine(parsed, self.in_memory)
        self._password = parsed.password
        self._lock = threading.Lock()
        if self.path is not None:
            _create_file(self.path)
        try:
            _create(self)
        except BaseException:
            self.close()
            raise

    def _turn(self, *, writes: bool) -> AbstractContextManager[Any]:
        """What is in memory has one connection, and whoever uses it has it alone.

        Threads that write to one file take turns here, which is fair and fast; the busy timeout is for other processes.
        """
        return self._lock if self.in_memory or (writes and self.is_sqlite) else nullcontext()

    @contextmanager
    def change(self) -> Iterator[Connection]:
        """A transaction that writes; of SQLite's there is one at a time. Raises StoreError."""
        with self._told("written"), self._turn(writes=True), self.engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads, and sees one moment of the database. Raises StoreError."""
        with self._told("read"), self._turn(writes=False), self.engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            yield connection

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """What the driver raises, without what it was given."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            said = _said(getattr(error, "orig", None) or error, self.is_sqlite)
            if self._password:
                said = said.replace(str(self._password), "***")
            raise StoreError(f"the store cannot be {done}: {said}") from None
        except UnicodeEncodeError:
            raise StoreError(f"the store cannot be {done}: a name has half of a surrogate pair") from None

    def lock_key(self, connection: Connection, key: str) -> None:
        """Hold what is called so until this transaction ends; SQLite's writers take turns anyway."""
        from sqlalchemy import text

        if not self.is_sqlite:
            number = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8]
            where = {"key": int.from_bytes(number, "big", signed=True)}
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), where)

    def lock_chain(self, connection: Connection) -> None:
        """Hold what only one transaction may hold at a time, until this one ends."""
        if not self.is_sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

    def forget(self) -> None:
        """Take what was erased out of SQLite's write-ahead log too, as far as nobody is reading it right now."""
        if self.path is not None:
            with self._told("written"), self._turn(writes=True), self.engine.connect() as connection:
                try:
                    connection.exec_driver_sql("PRAGMA busy_timeout=1000").close()  # a long read holds nobody up
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()
                finally:
                    connection.exec_driver_sql(f"PRAGMA {_PRAGMAS[0]}").close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _parsed(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    with suppress(ArgumentError, ValueError):  # a port that is no number
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
            return parsed.set(drivername="postgresql+psycopg")
        is_plain = not parsed.host and not parsed.query and not str(parsed.database or "").startswith("file:")
        if parsed.drivername == "sqlite" and is_plain:
            return parsed
    raise StoreError("the store's URL is sqlite:///PATH or postgresql://USER@HOST/DATABASE")


def _engine(url: URL, in_memory: bool) -> Engine:
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    if url.get_backend_name() == "sqlite":
        # The driver begins no transactions of its own: `change` and `read` do.
        arguments: dict[str, Any] = {"timeout": BUSY_TIMEOUT, "isolation_level": None, "check_same_thread": False}
        pool: dict[str, Any] = {"poolclass": StaticPool} if in_memory else {"pool_size": 10, "max_overflow": 20}
        engine = create_engine(url, connect_args=arguments, hide_parameters=True, **pool)
    else:
        pool = {"pool_pre_ping": True, "pool_size": 10, "max_overflow": 20}
        try:
            engine = create_engine(url, isolation_level="READ COMMITTED", hide_parameters=True, **pool)
        except ModuleNotFoundError:
            raise MissingExtra("PostgreSQL needs psycopg: pip install 'toolgen[postgres]'") from None
    _on_connect(engine)
    return engine


def _on_connect(engine: Engine) -> None:
    from sqlalchemy import event

    def prepare(connection: Any, _: Any) -> None:
        if engine.dialect.name == "sqlite":
            for pragma in _PRAGMAS:
                _patiently(connection, f"PRAGMA {pragma}")
            return
        with connection.cursor() as cursor:
            if cursor.execute("SHOW synchronous_commit").fetchone()[0] == "off":
                cursor.execute("SET synchronous_commit = on")  # a claim has to be on disk before it is sent
        connection.commit()

    event.listen(engine, "connect", prepare)


def _patiently(connection: Any, statement: str) -> None:
    """SQLite does not wait its busy timeout where two connections change the journal's mode at once."""
    import sqlite3

    end = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute(statement).close()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


def _create_file(path: Path) -> None:
    """SQLite gives the files beside it, the journal's, the same permissions.

    Of a symbolic link it makes the target, which `O_EXCL` would take to be there.
    """
    try:
        os.close(
            os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), 0o600)
        )
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"the store {path} cannot be opened: {error.strerror}") from None


def _create(database: Database) -> None:
    """Make the tables where there are none. Raises StoreError for those of another version."""
    from sqlalchemy import insert

    with database.read() as connection:
        found = _version(connection)
    if found is None:
        with database.change() as connection:
            database.lock_chain(connection)
            found = _version(connection)
            if found is None:  # else somebody was faster
                metadata.create_all(connection)
                connection.execute(insert(meta).values(key="version", value=str(VERSION)))
                connection.execute(insert(meta).values(key="created", value=str(time.time())))
                return
    if found == str(VERSION):
        return
    newer = found.isdecimal() and int(found) > VERSION
    hint = "update toolgen" if newer else "use the toolgen that wrote it"
    raise StoreError(f"the store's schema has version {found}, this toolgen knows {VERSION}: {hint}, or name another")


def _version(connection: Connection) -> str | None:
    """The version of the tables; None where there are none."""
    from sqlalchemy import inspect, select

    if not inspect(connection).has_table(meta.name):
        return None
    return connection.execute(select(meta.c.value).where(meta.c.key == "version")).scalar() or "unknown"


def _said(error: BaseException, is_sqlite: bool) -> str:
    """What a driver's error says, if it says nothing of what is stored."""
    state = getattr(error, "sqlstate", None)
    if state is None and (is_sqlite or type(error).__name__ == "OperationalError"):  # of psycopg: no connection
        return str(error).strip().partition("\n")[0]
    return type(error).__name__ + (f" (SQLSTATE {state})" if state else "")
