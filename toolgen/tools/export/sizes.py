"""Sizes of JSON data that shares structure, counted without writing it out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


def characters_of(data: Any, lengths: Mapping[str, int]) -> int:
    """Length of the data as compact JSON; a string found in `lengths` stands for text of that length."""

    def scalar(value: Any) -> int:
        if isinstance(value, str) and value in lengths:
            return lengths[value]
        return len(json.dumps(value, ensure_ascii=False))

    def container(value: Any, inside: list[int]) -> int:
        keys = sum(len(json.dumps(key, ensure_ascii=False)) + 1 for key in value) if isinstance(value, dict) else 0
        return 2 + keys + sum(inside) + max(len(inside) - 1, 0)

    return _fold(data, scalar, container)


def height_of(data: Any) -> int:
    """How many objects and lists stand inside each other."""
    return _fold(data, lambda _: 0, lambda _, inside: 1 + max(inside, default=0))


def _fold(data: Any, scalar: Callable[[Any], int], container: Callable[[Any, list[int]], int]) -> int:
    """Compute a number bottom-up, each shared object once; takes time in proportion to what is stored."""
    known: dict[int, int] = {}
    stack = [data]
    while stack:
        here = stack[-1]
        children = list(here.values()) if isinstance(here, dict) else here if isinstance(here, list) else ()
        missing = [child for child in children if isinstance(child, dict | list) and id(child) not in known]
        if missing and id(here) not in known:
            stack.extend(missing)
            continue
        stack.pop()
        if id(here) not in known:
            if not isinstance(here, dict | list):
                return scalar(here)
            inside = [known[id(c)] if isinstance(c, dict | list) else scalar(c) for c in children]
            known[id(here)] = container(here, inside)
    return known[id(data)]
