from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from toolgen.tools.template import (
    FILTERS,
    RESERVED,
    TemplateFault,
    argument_of,
    arguments_in,
    environment,
    leaf_of,
)

keys = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True) | st.sampled_from(sorted(RESERVED))


@given(keys)
def test_the_leaf_of_an_argument_is_exactly_that_argument(key: str) -> None:
    assert argument_of(leaf_of(key)) == key
    assert arguments_in(leaf_of(key)) == {key}


@given(keys)
def test_jinja2_reads_the_same_argument_out_of_a_leaf(key: str) -> None:
    rendered = environment().from_string(leaf_of(key)).render({key: "value", "arguments": {key: "value"}})
    assert rendered == "value"


@pytest.mark.parametrize(
    ("key", "leaf"),
    [
        ("petId", "{{ petId }}"),
        ("_", "{{ _ }}"),
        ("a-b", "{{ arguments['a-b'] }}"),
        ("2fa", "{{ arguments['2fa'] }}"),
        ("in", "{{ arguments['in'] }}"),
        ("self", "{{ arguments['self'] }}"),
        ("arguments", "{{ arguments['arguments'] }}"),
        ("none", "{{ arguments['none'] }}"),
    ],
)
def test_a_key_that_is_no_name_in_a_template_is_read_by_its_text(key: str, leaf: str) -> None:
    assert leaf_of(key) == leaf


@pytest.mark.parametrize(
    "value",
    [
        "x",
        "",
        "{{ a }} ",
        " {{ a }}",
        "{{ a }}{{ b }}",
        "{{ a.b }}",
        "{{ a | upper }}",
        "{{ 'a' }}",
        "{{ 1 }}",
        "{{ in }}",
        "{{ true }}",
        "{{ arguments }}",
        "{{ arguments[0] }}",
        "{{ a }}\n",
        "${a}",
        "{a}",
        5,
        None,
        True,
        ["{{ a }}"],
        {"a": "{{ a }}"},
    ],
)
def test_anything_else_is_not_exactly_one_argument(value: Any) -> None:
    assert argument_of(value) is None


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("plain", set()),
        ("${env:X} {a} $a %s {", set()),
        ("{{a}}", {"a"}),
        ("{{ a }}-{{ b }}", {"a", "b"}),
        ("x {{ a.b.c }} {{ a['d'][0] }}", {"a"}),
        ("{{ arguments['a-b'].c }}", {"a-b"}),
        ("{{ arguments.self }}", {"self"}),
        ("{{ a | default('x') | upper }}", {"a"}),
        ("{{ a | default(b) }}", {"a", "b"}),
        ("{{ a | replace('x', y) }}", {"a", "y"}),
        ("{{ a | join(sep) }}", {"a", "sep"}),
        ("{{ 'constant' }}", set()),
        ("{# a comment {{ a }} #}", set()),
        ("{% raw %}{{ a }}{% endraw %}", set()),
        (["{{ a }}", {"k {{ c }}": "{{ b }}"}, 5, None], {"a", "b"}),
        (5, set()),
        (None, set()),
    ],
)
def test_the_arguments_a_value_reads_are_found(value: Any, names: set[str]) -> None:
    assert arguments_in(value) == names


@pytest.mark.parametrize(
    "text",
    [
        "{{ a + 1 }}",
        "{{ 7*7 }}",
        "{{ a ~ b }}",
        "{{ a if b else c }}",
        "{{ a == b }}",
        "{{ not a }}",
        "{{ a() }}",
        "{{ a.upper() }}",
        "{{ [a] }}",
        "{{ {'a': a} }}",
        "{{ (a, b) }}",
        "{{ a[b] }}",
        "{{ a[1:2] }}",
        "{{ a.__class__ }}",
        "{{ a['__class__'] }}",
        "{{ arguments.__class__ }}",
        "{{ arguments }}",
        "{{ self }}",
        "{{ loop.index }}",
        "{{ caller }}",
        "{{ a | attr('x') }}",
        "{{ a | map('upper') }}",
        "{{ a | tojson }}",
        "{{ a is defined }}",
        "{% for x in a %}{{ x }}{% endfor %}",
        "{% if a %}x{% endif %}",
        "{% set x = 1 %}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{% macro m() %}{% endmacro %}",
        "{% block b %}{% endblock %}",
        "{% filter upper %}x{% endfilter %}",
        "{{ a",
        "{% for %}",
        "{{ }}",
        "{{ a b }}",
        "{# open",
    ],
)
def test_what_the_language_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(TemplateFault):
        arguments_in(text)
    with pytest.raises(TemplateFault):
        arguments_in({"deep": [text]})


def test_a_fault_says_what_is_wrong_in_the_words_of_a_template() -> None:
    with pytest.raises(TemplateFault, match="'self' is not an argument; write arguments\\['self'\\] for a key"):
        arguments_in("{{ self }}")
    with pytest.raises(TemplateFault, match="no filter 'tojson'; there are " + re.escape(", ".join(FILTERS))):
        arguments_in("{{ a | tojson }}")
    with pytest.raises(TemplateFault, match="Call is not allowed in a leaf"):
        arguments_in("{{ a() }}")


@pytest.mark.parametrize(
    "text", ["{{ a.items }}", "{{ a['items'] }}", "{{ arguments.items }}", "{{ arguments['items'] }}"]
)
def test_a_member_is_read_and_never_an_attribute_of_a_python_object(text: str) -> None:
    values = {"a": {"items": "mine"}, "arguments": {"items": "mine"}}
    assert environment().from_string(text).render(values) == "mine"


@pytest.mark.parametrize(
    "text", ["{{ a.items }}", "{{ a.upper }}", "{{ b.append }}", "{{ b[5] }}", "{{ n.real }}", "{{ x }}"]
)
def test_a_member_that_is_not_there_is_an_error(text: str) -> None:
    with pytest.raises(UndefinedError):
        environment().from_string(text).render({"a": {}, "b": [], "n": 1})


def test_the_environment_has_nothing_but_the_filters_of_the_language() -> None:
    made = environment()
    assert set(made.filters) == set(FILTERS)
    assert not made.globals
    assert not made.tests
    assert made.loader is None
