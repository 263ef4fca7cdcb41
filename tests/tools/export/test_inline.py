"""References are written out, whatever they are named; recursion and bombs end, and what was cut is said."""

from __future__ import annotations

import builtins
import copy
import json
import sys
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgen.errors import MissingExtra
from toolgen.tools.export import inline
from toolgen.tools.export.inline import EXPANSIONS, MAX_CHARACTERS, Inliner
from toolgen.tools.export.notes import Notes


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def written(root: dict[str, Any], definitions: dict[str, Any], **limits: int) -> tuple[dict[str, Any], list[str]]:
    notes = Notes("t")
    found = Inliner(definitions, **limits)({**root, "$defs": definitions}, notes)
    return found, [str(note) for note in notes.all()]


def references_left(data: Any) -> bool:
    """Whether a `$ref` keyword (a property of the name has a schema, not text) is anywhere."""
    if isinstance(data, dict):
        return isinstance(data.get("$ref"), str) or any(map(references_left, data.values()))
    return isinstance(data, list) and any(map(references_left, data))


def bomb(levels: int, width: int) -> dict[str, Any]:
    found = {f"L{i}": obj(**{f"p{j}": ref(f"L{i + 1}") for j in range(width)}) for i in range(levels)}
    return {**found, f"L{levels}": {"type": "string"}}


def test_a_reference_becomes_what_it_means() -> None:
    found, notes = written(obj(pet=ref("Pet")), {"Pet": obj(tag=ref("Tag")), "Tag": {"type": "string"}})
    assert found == obj(pet=obj(tag={"type": "string"}))
    assert notes == []


def test_keywords_beside_a_reference_are_kept() -> None:
    found, _ = written(obj(pet={**ref("Pet"), "description": "Mine", "allOf": [{"minProperties": 1}]}), {"Pet": obj()})
    assert found["properties"]["pet"] == {"description": "Mine", "allOf": [obj(), {"minProperties": 1}]}


def test_a_root_that_is_a_reference_with_keywords_beside_it_is_written_out() -> None:
    found, _ = written({**ref("Pet"), "description": "All of it"}, {"Pet": obj(a={"type": "string"})})
    assert found == {"description": "All of it", "allOf": [obj(a={"type": "string"})]}


def test_properties_named_ref_are_properties() -> None:
    pet = obj(**{"$ref": {"type": "string"}, "_$ref": ref("Tag"), "__$ref": {"type": "integer"}})
    found, _ = written(obj(**{"$ref": ref("Pet")}), {"Pet": pet, "Tag": {"type": "boolean"}})
    inner = obj(**{"$ref": {"type": "string"}, "_$ref": {"type": "boolean"}, "__$ref": {"type": "integer"}})
    assert found == obj(**{"$ref": inner})


@pytest.mark.parametrize("keyword", ["default", "const", "enum", "examples", "x-unknown"])
def test_data_that_looks_like_a_reference_is_data(keyword: str) -> None:
    data = [{"$ref": "#/$defs/Pet"}, {"$ref": "file:///etc/passwd"}, "\x00data:0"]
    value: Any = data if keyword in ("enum", "examples") else {"deep": data}
    found, _ = written(obj(a=ref("Pet"), b={keyword: value}, c={keyword: "\x00data:0"}), {"Pet": {keyword: value}})
    assert found == obj(a={keyword: value}, b={keyword: value}, c={keyword: "\x00data:0"})


def test_names_that_need_escaping_in_a_pointer_are_found() -> None:
    names = ("a/b", "c~d", "e%7Bf", "g h", "~1")
    definitions = {name: {"const": name} for name in names}
    root = obj(**{str(i): ref(name.replace("~", "~0").replace("/", "~1")) for i, name in enumerate(names)})
    found, notes = written(root, definitions)
    assert found == obj(**{str(i): {"const": name} for i, name in enumerate(names)})
    assert notes == []


def test_a_recursive_type_is_written_out_twice_and_the_cut_is_noted() -> None:
    node = obj(kids={"type": "array", "items": ref("Node")})
    found, notes = written(obj(root=ref("Node")), {"Node": node})
    cut = {"type": "object", "description": "Node, not expanded further"}
    inner = obj(kids={"type": "array", "items": cut})
    assert EXPANSIONS == 2
    assert found == obj(root=obj(kids={"type": "array", "items": inner}))
    assert notes == ["t /$defs/Node/properties/kids/items: 'Node' is not expanded further"]


def test_types_that_refer_to_each_other_are_written_out() -> None:
    definitions = {"A": obj(b=ref("B")), "B": obj(a=ref("A"), c=ref("C")), "C": {"type": "string"}}
    found, _ = written(obj(a=ref("A")), definitions)
    cut = {"type": "object", "description": "A, not expanded further"}
    second = obj(b=obj(a=cut, c={"type": "string"}))
    assert found == obj(a=obj(b=obj(a=second, c={"type": "string"})))


def test_a_type_that_is_nothing_but_itself_ends() -> None:
    found, notes = written(obj(a=ref("A")), {"A": ref("A")})
    assert found == obj(a={"type": "object", "description": "A, not expanded further"})
    assert len(notes) == 1


def test_a_cut_keeps_the_kind_of_the_type() -> None:
    found, _ = written(obj(a=ref("A")), {"A": {"type": "array", "items": ref("A")}})
    assert found["properties"]["a"]["items"]["items"] == {"type": "array", "description": "A, not expanded further"}


def test_a_reference_to_nothing_is_left_open_and_noted() -> None:
    found, notes = written(obj(a=ref("Gone"), b={"$ref": "file:///etc/passwd"}), {})
    assert found == obj(a={}, b={})
    assert notes == [
        "t /properties/a: 'Gone' is not defined and left open",
        "t /properties/b: 'file:///etc/passwd' is not defined and left open",
    ]


@pytest.mark.parametrize(("levels", "width"), [(8, 8), (60, 8), (500, 2), (1000, 1)])
def test_a_bomb_is_cut_to_the_limit_at_once(levels: int, width: int) -> None:
    began = time.monotonic()
    found, notes = written(obj(x=ref("L0")), bomb(levels, width))
    assert time.monotonic() - began < 5
    assert len(json.dumps(found)) < 1.1 * MAX_CHARACTERS
    assert "references" in notes[0]
    assert "deep only" in notes[0]


def test_everything_refers_to_everything() -> None:
    definitions = {f"K{i}": obj(**{f"p{j}": ref(f"K{j}") for j in range(40)}) for i in range(40)}
    began = time.monotonic()
    found, _ = written(obj(x=ref("K0")), definitions)
    assert time.monotonic() - began < 10
    assert not references_left(found)
    assert len(json.dumps(found, separators=(",", ":"))) <= MAX_CHARACTERS


def test_more_is_expanded_while_it_fits() -> None:
    sizes = [len(json.dumps(written(obj(x=ref("L0")), bomb(5, 4), max_characters=n)[0])) for n in (300, 3_000, 10**6)]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 3


def test_a_root_that_is_too_large_by_itself_is_kept_and_noted() -> None:
    found, notes = written(obj(**{f"p{i}": {"type": "string"} for i in range(50)}), {}, max_characters=100)
    assert len(found["properties"]) == 50
    assert "it still has" in notes[1]


def test_deep_nesting_is_cut_and_noted() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = obj(a=schema)
    found, notes = written(schema, {})
    assert json.dumps(found).count("{") < 200
    assert any("nested too deep" in note for note in notes)


def test_the_definitions_are_not_changed_and_nothing_is_shared_with_them() -> None:
    definitions = {"Pet": {**obj(tag=ref("Tag")), "default": {"a": [1]}}, "Tag": {"enum": ["a"]}}
    root = obj(one=ref("Pet"), two=ref("Pet"))
    before = copy.deepcopy((root, definitions))
    found, _ = written(root, definitions)
    found["properties"]["one"]["default"]["a"].append(2)
    found["properties"]["one"]["properties"]["tag"]["enum"].append("b")
    assert (root, definitions) == before
    assert found["properties"]["two"]["default"] == {"a": [1]}


def test_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from prance.util import url

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("read something")

    monkeypatch.setattr(url, "fetch_url_text", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    definitions = {"A": {"allOf": [{"$ref": "http://h.test/a.json"}, {"$ref": "python://os/x"}, ref("B")]}, "B": obj()}
    found, notes = written(obj(a=ref("A")), definitions)
    assert found["properties"]["a"]["allOf"] == [{}, {}, obj()]
    assert len(notes) == 2


def test_the_gate_knows_no_other_document() -> None:
    with pytest.raises(LookupError):
        inline._Gate().get(("file:///etc/passwd", True))


def test_without_prance_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prance.util.resolver", None)
    with pytest.raises(MissingExtra, match=r"pip install 'toolgen\[inline\]'"):
        written(obj(a=ref("A")), {"A": obj()})


def test_without_prance_a_schema_without_references_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prance.util.resolver", None)
    assert written(obj(a={"type": "string"}), {})[0] == obj(a={"type": "string"})


GRAPHS = st.dictionaries(
    st.sampled_from("ABCDEF"),
    st.lists(st.tuples(st.sampled_from(["p", "q", "$ref", "ü"]), st.sampled_from("ABCDEF")), max_size=3),
    min_size=1,
)


@settings(max_examples=300, deadline=None)
@given(GRAPHS)
def test_any_graph_is_written_out_and_its_size_was_known(graph: dict[str, list[tuple[str, str]]]) -> None:
    definitions: dict[str, Any] = {
        name: {**obj(**{key: ref(to) for key, to in edges}), "title": name} for name, edges in graph.items()
    }
    root = obj(**{name: ref(name) for name in definitions})
    inliner = Inliner(definitions)
    found = inliner(root, Notes("t"))
    assert not references_left(found)
    assert most_of_one_title(found) <= EXPANSIONS
    size = inliner._weigh(inline.shape_of(root), inline.Plan())
    if size.characters <= MAX_CHARACTERS:
        assert size.characters == len(json.dumps(found, separators=(",", ":"), ensure_ascii=False))
        assert size.height == height(found)


def most_of_one_title(schema: Any, above: tuple[str, ...] = ()) -> int:
    path = (*above, schema["title"]) if "title" in schema else above
    below = [most_of_one_title(value, path) for value in schema.get("properties", {}).values()]
    return max([*map(path.count, path), *below, 0])


def height(data: Any) -> int:
    if isinstance(data, dict | list):
        return 1 + max(map(height, data.values() if isinstance(data, dict) else data), default=0)
    return 0
