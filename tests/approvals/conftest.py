from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stored_pauses import Clock

from toolgen.approvals.store import Store


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened() -> Iterator[Callable[..., Store]]:
    """Opens stores, and closes them."""
    stores: list[Store] = []

    def open_store(*arguments: Any, **named: Any) -> Store:
        stores.append(Store(*arguments, **named))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(store_url: str, clock: Clock, opened: Callable[..., Store]) -> Store:
    """An empty store, on SQLite and on PostgreSQL."""
    return opened(store_url, clock=clock)


@pytest.fixture
def memory(clock: Clock, opened: Callable[..., Store]) -> Store:
    """An empty store in memory, for what is the same everywhere."""
    return opened(clock=clock)
