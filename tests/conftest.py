"""What every test stands on: a clean environment, no network beyond this machine, repeatable examples."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import postgres as own_postgres
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "default")

MACHINE_ENVIRON: Mapping[str, str] = dict(os.environ)


def _is_noise(name: str) -> bool:
    lowered = name.lower()
    return (
        lowered.endswith("_proxy")
        or lowered.startswith("toolgen_")
        or lowered in {"no_color", "force_color", "clicolor", "clicolor_force", "lines", "py_colors"}
        or lowered in {"ssl_cert_file", "ssl_cert_dir", "netrc"}
    )


@pytest.fixture(autouse=True)
def clean_environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy, no TOOLGEN_* setting, no colour, 100 columns: whatever shell the tests run from.

    What a test starts keeps what it compiles, as compiling all of it again is half of the time of a short command.
    """
    for name in [name for name in os.environ if _is_noise(name)]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture
def machine_environ() -> dict[str, str]:
    """The environment the tests were started in, for a slow test that runs npm (proxies and all)."""
    return dict(MACHINE_ENVIRON)


def _stays_here(family: int, address: Any) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return family == socket.AF_UNIX
    host = str(address[0])
    if host == "localhost":
        return True
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return bool((mapped or ip).is_loopback)


@pytest.fixture(scope="session")
def outside_attempts() -> Iterator[list[str]]:
    attempts: list[str] = []

    def guarded(original: Any) -> Any:
        def call(self: socket.socket, address: Any) -> Any:
            if not _stays_here(self.family, address):
                attempts.append(repr(address))
                self.close()
                pytest.fail(f"a test tried to leave this machine: connect to {address!r}")
            return original(self, address)

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
        yield attempts


@pytest.fixture(autouse=True)
def no_network(outside_attempts: list[str]) -> Iterator[None]:
    """Fails a test that opens a connection beyond loopback, even where the error was swallowed."""
    outside_attempts.clear()
    yield
    attempts, outside_attempts[:] = list(outside_attempts), []
    assert not attempts, f"a test tried to leave this machine: connect to {', '.join(attempts)}"


STORE_KEY = "9f" + "".join(f"{n:02x}" for n in range(7, 38))  # of the stores of tests


@pytest.fixture(scope="session")
def postgres() -> Iterator[own_postgres.Postgres]:
    """A PostgreSQL of these tests' own; they are skipped where the machine has none."""
    tools = own_postgres.tools()
    if tools is None:
        pytest.skip("PostgreSQL is not installed: neither on PATH nor in /usr/lib/postgresql")
    with own_postgres.running(tools) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(
    request: pytest.FixtureRequest, tmp_path: Path, clean_environ: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of an empty store: a SQLite file, then PostgreSQL. Its key is in TOOLGEN_KEY."""
    monkeypatch.setenv("TOOLGEN_KEY", STORE_KEY)
    if request.param == "sqlite":
        (tmp_path / "store").mkdir()
        yield f"sqlite:///{tmp_path / 'store' / 'toolgen.db'}"
        return
    server: own_postgres.Postgres = request.getfixturevalue("postgres")
    with server.empty() as url:
        yield url
