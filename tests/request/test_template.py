"""Leaves rendered with arguments: types, absence, references, and text that only looks like one."""

from __future__ import annotations

from typing import Any

import pytest

from toolgen.errors import RequestError
from toolgen.identity.references import Reference, ReferenceText
from toolgen.request.template import ABSENT, holds_references, reads_model, render
from toolgen.request.text import NotWritable

ARGUMENTS = {
    "text": "Ab c", "zero": 0, "no": False, "empty": "", "none": None, "list": [1, "2"], "object": {"items": 3, "k": None},
    "float": 5.0, "in": "word", "2fa-code": "1", "smuggled": "${env:HOME} {{ 7*7 }} {% raw %}",
}  # fmt: skip
CONTEXT = {"tenant": "acme", "number": 7, "tags": ["a", "b"], "none": None, "smuggled": "${env:HOME} {{ 7*7 }}"}


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        ("{{ text }}", "Ab c"),
        ("{{ zero }}", 0),
        ("{{ no }}", False),
        ("{{ empty }}", ""),
        ("{{ none }}", None),
        ("{{ list }}", [1, "2"]),
        ("{{ object.items }}", 3),
        ("{{ object['k'] }}", None),
        ("{{ list[1] }}", "2"),
        ("{{ arguments['in'] }}", "word"),
        ("{{ arguments['2fa-code'] }}", "1"),
        ("{{- float -}}", 5.0),
        ("{{ float }}", 5.0),
        ("v{{ float }}", "v5"),
        ("v{{ no }}", "vfalse"),
        ("{{ zero }}{{ zero }}", "00"),
        ("{{ text | lower }}", "ab c"),
        ("{{ list | join('-') }}", "1-2"),
        ("{{ gone | default('d') }}", "d"),
        ("{{ gone | default(4) }}", 4),
        ("{{ '}}' }}", "}}"),
        ("{{ text }}{# a comment #}", "Ab c"),
        ("{% raw %}{{ text }}{% endraw %}", "{{ text }}"),
        ("fixed\n", "fixed\n"),
        (5, 5),
        (None, None),
        (False, False),
        ("", ""),
        (
            {"a": "{{ zero }}", "b": "{{ gone }}", "{{ text }}": ["{{ none }}", "{{ gone }}"]},
            {"a": 0, "{{ text }}": [None]},
        ),
        ("{{ smuggled }}", "${env:HOME} {{ 7*7 }} {% raw %}"),
        ("x{{ smuggled }}", "x${env:HOME} {{ 7*7 }} {% raw %}"),
        ("{{ gone }}", ABSENT),
        ("x{{ gone }}", ABSENT),
        ("x{{ none }}", ABSENT),
        ("{{ object.gone }}", ABSENT),
        ("{{ object.gone.more }}", ABSENT),
        ("{{ list[7] }}", ABSENT),
        ("{{ text.upper }}", ABSENT),
        ("{{ list.append }}", ABSENT),
        ("${context:tenant}", "acme"),
        ("${context:number}", 7),
        ("${context:tags}", ["a", "b"]),
        ("t-${context:number}-{{ zero }}", "t-7-0"),
        ("${context:tenant}{{ gone }}", ABSENT),
        ("${context:smuggled}", "${env:HOME} {{ 7*7 }}"),
        ("a-${context:smuggled}", "a-${env:HOME} {{ 7*7 }}"),
    ],
)
def test_render(leaf: Any, value: Any) -> None:
    found = render(leaf, ARGUMENTS, CONTEXT)
    assert found is value if value is ABSENT else (found == value and type(found) is type(value))


def test_references_to_secrets_are_kept_as_references_and_never_looked_for_in_values() -> None:
    env = Reference("env", "K")
    assert render("${env:K}", {}, {}) == ReferenceText((env,))
    assert render("a {{ smuggled }} ${env:K}", ARGUMENTS, {}) == ReferenceText(
        ("a ${env:HOME} {{ 7*7 }} {% raw %} ", env)
    )
    assert render("${context:smuggled}${caller:userId}", {}, CONTEXT) == ReferenceText(
        ("${env:HOME} {{ 7*7 }}", Reference("caller", "userId"))
    )
    assert render("${env:K}{{ gone }}", {}, {}) is ABSENT
    assert holds_references(render({"a": ["${env:K}"]}, {}, {}))
    assert not holds_references(render({"a": ["{{ smuggled }}"]}, ARGUMENTS, {}))


@pytest.mark.parametrize("name", ["gone", "none"])
@pytest.mark.parametrize("around", ["", "x-"])
def test_a_context_value_that_is_not_given_is_an_error(name: str, around: str) -> None:
    with pytest.raises(RequestError, match=f"the caller's context does not have '{name}'"):
        render(f"{around}${{context:{name}}}", {}, CONTEXT)


@pytest.mark.parametrize(
    "leaf", ["x{{ list }}", "x{{ object }}", "x-${context:tags}", "{{ zero | join }}", "{{ list | replace('a') }}"]
)
def test_what_cannot_stand_in_text_is_not_written(leaf: str) -> None:
    with pytest.raises(NotWritable):
        render(leaf, ARGUMENTS, CONTEXT)


@pytest.mark.parametrize(
    ("leaf", "reads"),
    [
        ("{{ a }}", True),
        ("x{{ a | lower }}", True),
        ({"k": ["{{ a }}"]}, True),
        ("x", False),
        ("${context:a}", False),
        ({"{{ a }}": "x"}, False),
        (7, False),
    ],
)
def test_constants_are_told_from_what_a_model_writes(leaf: Any, reads: bool) -> None:
    assert reads_model(leaf) is reads


def test_arguments_are_not_changed() -> None:
    arguments = {"a": {"b": [1]}}
    render({"x": "{{ a }}", "y": "{{ a.b | join }}"}, arguments, {})
    assert arguments == {"a": {"b": [1]}}
