"""What is left of data that is too long: JSON of the same shape, the cursors, and a note of what is gone."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgen.dispatch.cut import DEEPEST, cut
from toolgen.openapi.text import CUT

LEAF = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6) | st.text(max_size=60)
KEY = st.text(max_size=12) | st.sampled_from(["next", "items", "has_more", "_links", "total"])
JSON = st.recursive(
    LEAF, lambda child: st.lists(child, max_size=8) | st.dictionaries(KEY, child, max_size=8), max_leaves=60
)


def written(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def pairs(kept: Any, original: Any) -> Iterator[tuple[Any, Any]]:
    """Every value that is left with the one that stood at its pointer."""
    yield kept, original
    if isinstance(kept, dict):
        for key, item in kept.items():
            yield from pairs(item, original[key])
    elif isinstance(kept, list):
        for item, one in zip(kept, original, strict=False):
            yield from pairs(item, one)


@given(JSON, st.integers(30, 400))
def test_what_is_left_fits_is_json_and_equals_the_original_at_its_place(data: Any, limit: int) -> None:
    kept, note = cut(data, limit)
    assert len(written(kept)) <= limit
    assert cut(data, limit) == (kept, note)
    assert (kept is data) == (note == "") == (len(written(data)) <= limit)
    for left, original in pairs(kept, data):
        assert type(left) is type(original)
        if isinstance(left, str) and left != original:
            assert left.endswith(CUT)
            assert original.startswith(left.removesuffix(CUT))
        elif isinstance(left, dict):
            assert list(left) == [key for key in original if key in left]
        elif isinstance(left, list):
            assert len(left) <= len(original)
        else:
            assert left == original


@given(JSON, st.integers(30, 300))
def test_the_note_counts_what_is_left_at_each_pointer(data: Any, limit: int) -> None:
    kept, note = cut({"a/b": {"~": data}}, limit)
    for kept_count, total in re.findall(r"(?:^|; )/a~1b/~0: ([\d,]+) of ([\d,]+) (?:items|keys)", note):
        assert (len(kept["a/b"]["~"]), len(data)) == (int(kept_count), int(total))
    if isinstance(data, list) and "~" in kept.get("a/b", {}) and len(kept["a/b"]["~"]) < len(data):
        assert f"/a~1b/~0: {len(kept['a/b']['~'])} of {len(data)} items" in note


PAGE = [{"id": number, "name": f"item {number}"} for number in range(500)]


@pytest.mark.parametrize(
    "cursors",
    [
        {"next": "t" * 300},
        {"next_page_token": "t" * 300, "has_more": True, "total": 500},
        {"nextPageToken": "t" * 300},
        {"@odata.nextLink": "https://api.example/x?$skip=" + "1" * 300, "@odata.count": 500},
        {"_links": {"next": {"href": "/x?after=" + "1" * 300}}},
        {"meta": {"cursor": {"after": "c" * 200}}, "paging": {"limit": 20}},
    ],
)
@pytest.mark.parametrize("last", [True, False])
def test_cursors_stay_whole_wherever_they_stand_while_the_list_gives_way(cursors: dict[str, Any], last: bool) -> None:
    page = {"items": PAGE, "description": "d" * 5000}
    kept, note = cut({**page, **cursors} if last else {**cursors, **page}, 1500)
    assert {key: kept[key] for key in cursors} == cursors
    assert 0 < len(kept["items"]) < 500
    assert kept["items"] == PAGE[: len(kept["items"])]
    assert f"/items: {len(kept['items'])} of 500 items" in note


def test_a_cursor_is_whole_where_an_equal_share_would_cut_it() -> None:
    data = {**{f"text{number}": "x" * 1000 for number in range(20)}, "next": "t" * 300}
    kept, _ = cut(data, 2000)
    assert kept["next"] == data["next"]
    assert len(kept) == 21


def test_a_large_meta_leaves_room_for_the_items_and_keeps_its_own_cursor() -> None:
    kept, _ = cut({"meta": {"debug": "x" * 700, "next": "t" * 100}, "items": PAGE}, 1000)
    assert kept["meta"]["next"] == "t" * 100
    assert len(kept["items"]) > 10


def test_a_cursor_deep_inside_gets_through() -> None:
    info = {"endCursor": "c" * 200, "hasNextPage": True}
    data = {"data": {"viewer": {"repositories": {"nodes": PAGE, "pageInfo": info}}, "other": "x" * 9000}}
    kept, _ = cut(data, 2000)
    assert kept["data"]["viewer"]["repositories"]["pageInfo"] == info


def test_an_object_keeps_all_its_keys_and_its_large_values_share_the_room() -> None:
    data = {"id": 7, "text": "t" * 9000, "state": "open", "log": ["l" * 10] * 900, "owner": {"name": "a"}}
    kept, note = cut(data, 1000)
    assert list(kept) == list(data)
    assert (kept["id"], kept["state"], kept["owner"]) == (7, "open", {"name": "a"})
    assert len(kept["text"]) > 300
    assert len(kept["log"]) > 20
    assert note == f"/text: {len(kept['text']) - len(CUT)} of 9,000 characters; /log: {len(kept['log'])} of 900 items"
    assert len(written(kept)) > 900


def test_a_map_of_many_entries_keeps_its_first_keys_with_something_in_them() -> None:
    data = {f"user-{number}": {"name": f"n{number}", "bio": "b" * 100} for number in range(1000)}
    kept, note = cut(data, 2000)
    assert list(kept) == list(data)[: len(kept)]
    assert 20 < len(kept) < 100
    assert all(value["name"] for value in kept.values())
    assert note.startswith(f"the whole: {len(kept)} of 1,000 keys")
    assert note.endswith("more places")


def test_a_large_item_behind_a_small_one_is_cut_and_not_left_out() -> None:
    kept, note = cut([{"page": 1, "total": 500}, PAGE], 1000)
    assert kept[0] == {"page": 1, "total": 500}
    assert len(kept[1]) > 10
    assert note == f"/1: {len(kept[1])} of 500 items"


def test_what_is_nested_too_deep_is_left_out_even_where_it_fits_and_the_rest_stays() -> None:
    deep: Any = 1
    for _ in range(DEEPEST + 50):
        deep = [deep]
    kept, note = cut([deep, "after"], 10_000)
    assert kept[1] == "after"
    assert "nested too deep" in note
    assert written(kept[0]).count("[") == DEEPEST
    shallow = json.loads("[" * DEEPEST + "]" * DEEPEST)
    assert cut(shallow, 10_000) == (shallow, "")


def test_whole_integers_of_any_length_stay_exact_or_are_left_out() -> None:
    number = int("7" * 300)
    data = {"a": "x" * 1000, "b": "y" * 1000, "number": number, "c": "z" * 1000}
    assert cut(data, 500)[0]["number"] == number
    assert "number" not in cut(data, 200)[0]


@pytest.mark.parametrize("limit", range(100, 1500, 50))
@pytest.mark.parametrize(
    "data",
    [
        {**{f"k{n}": "x" * 48 for n in range(10)}, "number": int("7" * 300), "more": [int("7" * 90)] * 9},
        {"text": '\n"\\' * 1000, "a": "\x00" * 1000},
        ["\x01" * 1000, {"\x02" * 20: "\x03" * 50}],
        {f"k{n}": {"a": [n, {"b": "c" * n}]} for n in range(60)},
    ],
)
def test_long_numbers_escapes_and_maps_stay_within_the_limit(data: Any, limit: int) -> None:
    kept, note = cut(data, limit)
    assert len(written(kept)) <= limit
    assert note
    assert len(written(kept)) > limit // 3


@pytest.mark.parametrize(
    "data",
    [
        [{"id": n, "tags": ["a", "b"], "text": "some words"} for n in range(150_000)],
        {f"k{n}": [n] * 10 for n in range(100_000)},
        "x" * 10_000_000,
        {"a": {"b": {"c": {"d": {"e": [["x" * 50] * 40] * 4000}}}}},
        json.loads('{"a":' * 90 + "[" + ",".join(['"0123456789"'] * 700_000) + "]" + "}" * 90),
    ],
    ids=["list", "map", "text", "nested", "deep"],
)
def test_ten_megabytes_are_cut_in_about_a_second(data: Any) -> None:
    start = time.process_time()
    kept, _ = cut(data, 40_000)
    assert time.process_time() - start < 2
    assert 30_000 < len(written(kept)) <= 40_000
