"""YAML 1.2's core schema, strictly: what each scalar is, and what is refused, with its place."""

from __future__ import annotations

import gc
import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from toolgen.errors import LimitExceeded, SyntaxFault
from toolgen.openapi.source import yaml12

JSON_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda child: st.lists(child, max_size=4) | st.dictionaries(st.text(max_size=8), child, max_size=4),
    max_leaves=20,
)


def load(text: str, *, nesting: int = 200, nodes: int = 1_000_000) -> Any:
    return yaml12.load_yaml(text, "spec", nesting=nesting, nodes=nodes)


@pytest.fixture(params=["libyaml", "python"])
def either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PyYAML built on libyaml, and without."""
    if request.param == "python":
        monkeypatch.setattr(yaml12, "_LOADER", yaml.SafeLoader)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")


SCALARS = [
    *[(word, None) for word in ["", "~", "null", "Null", "NULL"]],
    *[(word, True) for word in ["true", "True", "TRUE"]],
    *[(word, False) for word in ["false", "False", "FALSE"]],
    *[(word, word) for word in ["no", "NO", "yes", "on", "Off", "y", "tRUE", "nULL", "None"]],
    *[(word, word) for word in ["2020-01-01", "2020-01-01T00:00:00Z", "12:30:45", "1:30", "1_000", "0b101", "="]],
    *[(word, word) for word in [".inf", "-.INF", ".nan", "NaN", "Infinity", "-0x1F", "+0o7", "0o8", "0xG", "-x", "."]],
    *[(word, word) for word in ["1.2.3", "1e", "e3", "-e3", "--1", "+-1", "1-1", "<<x", "٣"]],
    *[("0777", 777), ("0o17", 15), ("0x1F", 31), ("+12", 12), ("-0", 0), ("-007", -7)],
    *[("1e3", 1000.0), ("1E+2", 100.0), (".5", 0.5), ("-.5", -0.5), ("5.", 5.0), ("1.0", 1.0), ("+1.5e-3", 0.0015)],
    *[("123456789012345678901234567890", 123456789012345678901234567890)],
    *[('"12"', "12"), ("'true'", "true"), ('"\\x41"', "A"), ("!!str 12", "12"), ("!!str", ""), ("! a", "a")],
    *[("!!int '12'", 12), ("!!float 1", 1.0), ("!!bool 'true'", True), ("!!null ''", None), ("|-\n  12", "12")],
]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_scalar_is_what_the_core_schema_says(text: str, value: object) -> None:
    read = load(f"a: {text}\n")["a"]
    assert (type(read), read) == (type(value), value)


@pytest.mark.usefixtures("either_parser")
def test_keys_are_strings_as_they_are_written() -> None:
    text = "200: a\n1.0: b\nnull: c\ntrue: d\n0x10: e\n2020-01-01: f\n'q': g\n~: h\n=: i\n"
    assert list(load(text)) == ["200", "1.0", "null", "true", "0x10", "2020-01-01", "q", "~", "="]


def test_numbers_that_are_equal_are_different_keys() -> None:
    assert load("1: a\n1.0: b\ntrue: c\n") == {"1": "a", "1.0": "b", "true": "c"}


@pytest.mark.usefixtures("either_parser")
def test_every_duplicate_key_is_reported_with_line_and_column() -> None:
    with pytest.raises(SyntaxFault) as caught:
        load("a: 1\nb:\n  c: 1\n  'c': 2\na: 3\n")
    assert [(p.line, p.column) for p in caught.value.problems] == [(4, 3), (5, 1)]
    assert 'duplicate key "c"' in caught.value.problems[0].message
    assert "     4 |   'c': 2\n       |   ^" in str(caught.value)


def test_a_number_and_its_string_are_the_same_key() -> None:
    with pytest.raises(SyntaxFault, match='duplicate key "200"'):
        load("200: a\n'200': b\n")


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        ("  <<: *x\n  b: 9\n", {"a": 1, "b": 9}),
        ("  b: 9\n  <<: *x\n", {"a": 1, "b": 9}),
        ("  <<: [*y, *x]\n", {"a": 7, "b": 2}),
        ("  <<: {a: 5}\n  c: 6\n", {"a": 5, "c": 6}),
        ("  '<<': 1\n", {"<<": 1}),
        ("  <<: []\n  c: 6\n", {"c": 6}),
    ],
)
def test_merge_keys_are_overridden_by_explicit_keys_and_by_earlier_sources(merge: str, expected: object) -> None:
    assert load(f"x: &x {{a: 1, b: 2}}\ny: &y {{a: 7}}\nz:\n{merge}")["z"] == expected


def test_a_merge_leaves_what_it_takes_from_unchanged() -> None:
    tree = load("x: &x {a: 1}\nz:\n  <<: *x\n  a: 2\n")
    assert tree["x"] == {"a": 1}


def test_duplicates_are_found_before_merging_and_also_beside_a_merge() -> None:
    with pytest.raises(SyntaxFault, match='duplicate key "a"'):
        load("x: &x {a: 1}\nz:\n  <<: *x\n  a: 2\n  a: 3\n")


@pytest.mark.usefixtures("either_parser")
def test_aliases_of_scalars_lists_and_mappings_and_of_keys() -> None:
    tree = load("a: &n 12\nb: *n\nc: &l [1]\nd: *l\n&k key: 1\ne: *k\n")
    assert tree == {"a": 12, "b": 12, "c": [1], "d": [1], "key": 1, "e": "key"}
    assert load("a: &k name\nb: {*k : 1}\n")["b"] == {"name": 1}


def test_an_anchor_can_be_given_anew() -> None:
    assert load("a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


REFUSED = [
    ("&a [*a]\n", 1, 5, "stands inside"),
    ("a: &x\n  b: {c: *x}\n", 2, 10, "stands inside"),
    ("a: &x\n  <<: *x\n", 2, 7, "stands inside"),
    ("a: *x\n", 1, 4, "no anchor"),
    ("a: 1\n---\nb: 2\n", 2, 1, "second document"),
    ("a: 1\n...\n---\n", 3, 1, "second document"),
    ("? [a]\n: b\n", 1, 3, "key must be a scalar"),
    ("? {a: 1}\n: b\n", 1, 3, "key must be a scalar"),
    ("a: &x [1]\n*x : 2\n", 2, 1, "key must be a scalar"),
    ("a: !!binary aGk=\n", 1, 4, "tag !!binary"),
    ("a: !!set {b}\n", 1, 4, "tag !!set"),
    ("a: !!omap [b: 1]\n", 1, 4, "tag !!omap"),
    ("a: !!timestamp 2020-01-01\n", 1, 4, "tag !!timestamp"),
    ("a: !!python/object/apply:os.system [ls]\n", 1, 4, "tag !!python/object/apply:os.system"),
    ("a: !Foo b\n", 1, 4, "tag !Foo"),
    ("a: !Foo {b: 1}\n", 1, 4, "tag !Foo"),
    ("!Foo a: 1\n", 1, 1, "tag !Foo"),
    ("a: !!int b\n", 1, 4, "no value of the tag !!int"),
    ("a: !!map [1]\n", 1, 4, "tag !!map"),
    ("a:\n\t- b\n", 2, 1, "cannot start any token"),
    ("a: [1, 2\n", 2, 1, "flow sequence"),
    ("a: 'b\n", 2, 1, "quoted scalar"),
    ("a: b: c\n", 1, 5, "mapping values are not allowed"),
    ("a: \x01\n", 1, 4, "not allowed"),
    ("a:\n  <<: 1\n", 2, 7, "takes a mapping"),
    ("b: &x {a: 1}\na:\n  <<: *x\n  <<: *x\n", 4, 3, "duplicate key `<<`"),
    ("# only a comment\n", 1, 1, "empty"),
    ("---\n", 1, 1, "empty"),
    ("a: 1e999\n", 1, 4, "too large"),
    ("a: 1" + "0" * 5000 + "\n", 1, 4, "too long"),
    ("a: 0x" + "f" * 5000 + "\n", 1, 4, "too long"),
]


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize(("text", "line", "column", "message"), REFUSED, ids=[case[0][:24] for case in REFUSED])
def test_what_is_not_plain_data_is_refused_with_its_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(SyntaxFault) as caught:
        load(text)
    problem = caught.value.problems[-1]
    assert message in problem.message
    assert (problem.line, problem.column) == (line, column)
    assert problem.message.rstrip().endswith("^")


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("text", ['a: "\\ud800"\n', '"\\udfff": a\n', 'a: "\\U00110000"\n'])
def test_an_escape_that_is_no_character_is_refused(text: str) -> None:
    with pytest.raises(SyntaxFault):
        load(text)


def test_duplicates_found_before_a_syntax_error_are_reported_with_it() -> None:
    with pytest.raises(SyntaxFault) as caught:
        load("a: 1\na: 2\nb: [\n")
    assert [p.line for p in caught.value.problems] == [2, 4]


def test_an_excerpt_shows_a_part_of_a_long_line_and_no_control_characters() -> None:
    with pytest.raises(SyntaxFault) as caught:
        load("{" + ", ".join(f"k{i}: 1" for i in range(1000)) + ", k500: \u202e1}")
    excerpt = caught.value.problems[0].message
    assert len(excerpt) < 300
    assert "\u202e" not in excerpt
    shown, caret = excerpt.splitlines()[1:]
    assert shown[caret.index("^") :].startswith("k500")


ALIAS_BOMBS = [
    "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*{f'b{i - 1}' if i else 'a'}, *a]\n" for i in range(2000)),
    "b0: &b0 [x, x]\n" + "".join(f"b{i}: &b{i} [*b{i - 1}, *b{i - 1}]\n" for i in range(1, 100)),
    "b0: &b0 {x: y}\n" + "".join(f"b{i}: &b{i} {{p: *b{i - 1}, q: *b{i - 1}}}\n" for i in range(1, 100)),
    "a: &a {" + ", ".join(f"k{i}: 1" for i in range(1000)) + "}\nb:\n" + "- <<: *a\n" * 5000,
]


@pytest.mark.parametrize("text", ALIAS_BOMBS, ids=["chain", "lists", "mappings", "merges"])
def test_an_alias_bomb_is_refused_quickly(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(LimitExceeded, match="more than 1000000 values"):
        load(text)
    assert time.perf_counter() - start < 2  # a tenth of that in truth; expanded it would take hours


def test_nodes_are_counted_with_aliases_expanded() -> None:
    text = "a: &a [1, 2]\nb: *a\nc: *a\n"  # a mapping and three times a list of two
    assert load(text, nodes=10)
    with pytest.raises(LimitExceeded):
        load(text, nodes=9)


def test_nesting_is_limited_exactly() -> None:
    assert load("[[[x]]]", nesting=3) == [[["x"]]]
    with pytest.raises(LimitExceeded, match="deeper than 2 levels"):
        load("[[[x]]]", nesting=2)


@pytest.mark.usefixtures("either_parser")
@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000], ids=["flow", "block", "mapping"])
def test_any_nesting_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(LimitExceeded):
        load(text)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        load("a: 1\n")
        with pytest.raises(SyntaxFault):
            load("a: [\n")
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


@given(JSON_DATA)
def test_what_yaml_writes_is_read_back(data: object) -> None:
    # PyYAML writes YAML 1.1, where 1e3 and 0o7 are strings that need no quotes.
    text = yaml.safe_dump({"data": _quoted(data)}, allow_unicode=True)
    assert load(text) == {"data": data}


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029"))


@given(st.dictionaries(TEXT, TEXT))
def test_json_strings_in_flow_style_mean_the_same_in_yaml(data: dict[str, str]) -> None:
    text = json.dumps(data, ensure_ascii=False)
    try:
        read = load(text)
    except SyntaxFault:
        return  # YAML takes fewer characters, and keys of up to 1,024
    assert read == data


@given(st.text(alphabet="-+.0123456789eExoabf_:~ntrulsNTF =<&*!#[]{}'\"\n\t,|>?%@`", max_size=30))
def test_any_text_is_read_or_refused_and_is_plain_data(text: str) -> None:
    try:
        tree = load(text)
    except (SyntaxFault, LimitExceeded):
        return
    assert json.loads(json.dumps(tree, allow_nan=False)) == tree


class _Quoted(str):
    """A string that PyYAML writes in double quotes."""


yaml.SafeDumper.add_representer(
    _Quoted, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, '"')
)


def _quoted(data: Any) -> Any:
    if isinstance(data, str):
        return _Quoted(data)
    if isinstance(data, list):
        return [_quoted(item) for item in data]
    return {_Quoted(key): _quoted(value) for key, value in data.items()} if isinstance(data, dict) else data
