from __future__ import annotations

from collections.abc import Iterator

import pytest
from small_runtimes import World


@pytest.fixture
def world() -> Iterator[World]:
    """A store in memory, a clock, an API that keeps what it is sent."""
    found = World()
    yield found
    found.store.close()


@pytest.fixture
def stored(store_url: str) -> Iterator[World]:
    """The same with a store that outlives a process: on SQLite, then on PostgreSQL."""
    found = World(store_url)
    yield found
    found.store.close()
