"""A PostgreSQL of the tests' own: made in a temporary folder, reached by a socket in it, gone afterwards."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_USUAL = "/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin"
_SETTINGS = {
    "fsync": "off",  # the tests kill clients, never the server
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "32MB",
}
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def tools() -> Path | None:
    """The folder of initdb and pg_ctl, the newest where there are several; None where there is none."""
    on_path = shutil.which("initdb")
    folders = [Path(found) for usual in _USUAL for found in glob.glob(usual)]
    folders.sort(key=lambda folder: [int(part) for part in str(folder).split("/") if part.isdecimal()])
    found = [Path(os.path.realpath(on_path)).parent, Path(on_path).parent] if on_path else []
    for folder in (*found, *reversed(folders)):
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


@dataclass(frozen=True)
class Postgres:
    """A running server; `socket` is the folder of its socket."""

    socket: str
    _emptied: list[str] = field(default_factory=list)  # databases that nobody uses now

    def url(self, database: str = "postgres") -> str:
        """The URL of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self.socket}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new database, which is dropped whoever still uses it."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self.run(f'CREATE DATABASE "{name}"')
        try:
            yield self.url(name)
        finally:
            self.run(f'DROP DATABASE "{name}" WITH (FORCE)')

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of an empty database that another test may have used before, which is faster than a new one.

        Only what is in its schema is taken away: a test that alters the database itself takes a new one.
        """
        if not self._emptied:
            self._emptied.append(f"test_{uuid.uuid4().hex[:12]}")
            self.run(f'CREATE DATABASE "{self._emptied[-1]}"')
        name = self._emptied.pop()
        try:
            yield self.url(name)
        finally:
            self.run(_END_OTHERS, name)
            self.run("DROP SCHEMA public CASCADE", name)
            self.run("CREATE SCHEMA public", name)
            self._emptied.append(name)

    def run(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """The rows of a statement that runs outside a transaction."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []


@contextmanager
def running(tools: Path) -> Iterator[Postgres]:
    """A server that runs as long as this is held."""
    # Not in pytest's folder: a socket's path has about a hundred bytes, and the server may be another user.
    folder = tempfile.mkdtemp(prefix="toolgen-pg-")
    user = _user()
    try:
        if user is not None:
            shutil.chown(folder, user)
        made = ("-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        _run([str(tools / "initdb"), *made], user)
        options = " ".join(f"-c {name}='{value}'" for name, value in _SETTINGS.items())
        options += f" -c unix_socket_directories='{folder}'"
        control = [str(tools / "pg_ctl"), "-D", f"{folder}/data", "-w", "-t", "60"]
        _run([*control, "-o", options, "-l", f"{folder}/log", "start"], user)
        try:
            yield Postgres(folder)
        finally:
            _run([*control, "-m", "immediate", "stop"], user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    """Whom the server runs as where the tests run as root, as it refuses to be root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _run(command: Sequence[str], user: str | None) -> None:
    extra: dict[str, Any] = {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid}
    # To a file: a server would keep a pipe open, and reading it would never end.
    with tempfile.TemporaryFile() as said:
        code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", **extra)
        said.seek(0)
        if code:
            raise RuntimeError(f"{command[0]} failed: {said.read().decode(errors='replace')}")
