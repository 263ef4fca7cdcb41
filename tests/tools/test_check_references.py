"""References in the leaves of a toolset: where they may stand, and that none ever comes out of a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_documents import OK, document, leaves, made

from toolgen.identity.references import Reference
from toolgen.tools.files import load_toolset
from toolgen.tools.files.check import check_toolset
from toolgen.tools.model import Toolset
from toolgen.tools.template import TemplateFault, arguments_in, environment, pieces

PLACES = ["path", "query", "querystring", "header", "cookie", "body"]


def toolset(request: dict[str, Any], names: list[str]) -> Toolset:
    """A toolset of one tool with this request and arguments of these names."""
    (tool,) = made(document({"/x/{id}": {"post": {"responses": OK}}})).tools
    found = tool.model_dump(mode="json", by_alias=True)
    found["parameters"]["properties"] = {"id": {}, **{name: {} for name in names}}
    found["request"] = {"path": [{"name": "id", "value": "{{ id }}"}], **request}
    return Toolset.model_validate({"api": "small", "tools": [found]})


def faults(location: str, value: Any, *names: str, name: str = "X-A") -> list[tuple[str, str]]:
    """(place in the leaf, message) for one leaf more in this location."""
    request: dict[str, Any] = {location: [{"name": name, "value": value}]}
    if location == "path":
        request = {"path": [{"name": "id", "value": value}]}
    elif location == "querystring":
        request = {location: {"name": name, "value": value}}
    elif location == "body":
        request = {location: {"value": value, "mediaType": "application/json"}}
    found = check_toolset(toolset(request, list(names)))
    unread = "no leaf uses the argument 'id'"
    return [
        (problem.where.partition(f"request.{location}")[2].removeprefix("[0]"), problem.message)
        for problem in found
        if problem.message != unread or location != "path"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ("plain",)),
        ("", ("",)),
        ("{{ a }}", ("{{ a }}",)),
        ("${env:X}", (Reference("env", "X"),)),
        ("t-${context:t}-{{ id }}\n", ("t-", Reference("context", "t"), "-{{ id }}\n")),
        ("{{ a }}${caller:userId}{{ b }}", ("{{ a }}", Reference("caller", "userId"), "{{ b }}")),
        ("{% raw %}{{ a }}{% endraw %}${env:X}", ("{% raw %}{{ a }}{% endraw %}", Reference("env", "X"))),
        ("costs ${{ a }}", ("costs ${{ a }}",)),
        ("{{ '}}' }}${env:X}", ("{{ '}}' }}", Reference("env", "X"))),
    ],
)
def test_a_text_is_cut_into_templates_and_the_references_between_them(text: str, expected: tuple[Any, ...]) -> None:
    assert pieces(text) == expected


FORMS = ["{{ a }}", "{{- a -}}", "{{ 'x' }}", " ", "\n", "y", "{# c #}", "{% raw %}{{ z }}{% endraw %}", "$", "}}", "é"]


@given(st.lists(st.sampled_from(FORMS), max_size=6), st.lists(st.sampled_from(FORMS), max_size=6))
def test_texts_rendered_one_by_one_give_what_the_whole_gives(before: list[str], after: list[str]) -> None:
    def rendered(text: str) -> str:
        return environment().from_string(text).render(a="A")

    mark = "MARK"
    text = "".join(before) + "${env:X}" + "".join(after)
    found = "".join(mark if isinstance(piece, Reference) else rendered(piece) for piece in pieces(text))
    assert found == rendered(text.replace("${env:X}", mark))


@pytest.mark.parametrize(
    "text",
    [
        "{{ '${env:X}' }}",
        "{{ a | default('${caller:token}') }}",
        "{# ${env:X} #}",
        "{% raw %}${env:X}{% endraw %}",
        "{{ ${env:X} }}",
        "{{ a }}{env:X}",
        "{{ '{caller:token}' }}",
        "${env:{{ a }}}",
        "${env:X{{ a }}}",
        "${{ a }}${x}",
        "{{ a }}${caller:tokn}",
        "${caller:tokn}",
        "{caller:token}",
    ],
)
def test_no_reference_is_made_or_hidden_by_an_expression(text: str) -> None:
    for look in (pieces, arguments_in):
        with pytest.raises(TemplateFault):
            look(text)
    ((place, _),) = faults("header", {"deep": [text]})
    assert place == ".value.deep[0]"


def test_the_arguments_around_references_are_found() -> None:
    assert arguments_in("t-${context:t}-{{ id }}${env:X}{{ other.x }}") == {"id", "other"}
    assert faults("header", "t-${context:t}-{{ other }}", "other") == []
    assert ("", "") not in faults("header", "${context:t}-{{ othr }}", "other")
    assert any("did you mean 'other'?" in message for _, message in faults("header", "${env:X}-{{ othr }}", "other"))


@pytest.mark.parametrize(
    ("reference", "allowed"),
    [
        ("${caller:token}", {"header"}),
        ("${caller:userId}", {"header", "query"}),
        ("${env:X}", {"header", "query", "cookie"}),
        ("${file:/run/x}", {"header", "query", "cookie"}),
        ("${context:t}", set(PLACES)),
    ],
)
@pytest.mark.parametrize("location", PLACES)
def test_a_reference_is_refused_where_its_kind_may_not_stand(reference: str, allowed: set[str], location: str) -> None:
    for value, place in [(reference, ".value"), ([{"k": f"a {reference}"}], ".value[0].k")]:
        found = faults(location, value)
        if location in allowed:
            assert found == []
        else:
            ((where, message),) = found
            assert where == place
            assert f"{reference} cannot stand in the {location}" in message


def test_a_key_of_a_value_holds_no_reference_and_a_template_in_it_is_text() -> None:
    assert faults("body", {"${context:t}": "x"}) == [(".value['${context:t}']", "a key cannot hold a reference")]
    assert [place for place, _ in faults("body", {"${x}": "x"})] == [".value['${x}']"]
    assert faults("body", {"{{ a": "x", "{{ b }}": "y"}) == []


@pytest.mark.parametrize("value", ["DELETE", ["a"], "${env:X}", "{{ 'a' }}", 5])
@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("header", "X-HTTP-Method-Override"),
        ("header", "x_http_method"),
        ("header", "X-Method_Override"),
        ("query", "_method"),
        ("query", "X-HTTP-Method-Override"),
    ],
)
def test_a_constant_does_not_override_the_method_that_approval_patterns_see(
    location: str, name: str, value: Any
) -> None:
    assert [(place, "another method" in message) for place, message in faults(location, value, name=name)] == [
        (".name", True)
    ]
    assert faults(location, "{{ a }}", "a", name=name) == []  # refused at the call, by value
    assert faults(location, value, name="X-Method") == []


def test_neither_does_a_constant_of_the_body_or_of_the_path() -> None:
    assert [place for place, _ in faults("body", {"_method": "delete", "method": "x"})] == [".value._method"]
    assert faults("body", {"_method": "{{ a }}", "deep": {"_method": 1}}, "a") == []
    for query in ("_method=delete", "a=1&%5Fmethod=delete", "_METHOD"):
        found = check_toolset(toolset({"template": f"/x/{{id}}?{query}"}, []))
        assert [p.where for p in found if "another method" in p.message] == ["tools[0].request.template"]


@pytest.mark.parametrize(
    "text", ["${env:HOME}", "${caller:token}", "${file:/etc/passwd}", "{caller:token}", "${context:a}"]
)
def test_what_a_document_writes_like_a_reference_stays_text_and_loads_again(text: str, tmp_path: Path) -> None:
    schema = {"type": "string", "default": text, "example": text, "enum": [text, "b"], "const": text}
    encoding = {"a": {"contentType": "text/plain", "headers": {"X-Part": {"schema": {"const": text}}}}}
    body = {"schema": {"type": "object", "properties": {"a": schema, text: schema}}, "encoding": encoding}
    operation = {
        "operationId": text,
        "responses": OK,
        "parameters": [{"name": text, "in": place, "schema": schema, "example": text} for place in ("query", "cookie")],
        "requestBody": {"content": {"multipart/form-data": body}},
        "servers": [{"url": f"https://a.example/{text}"}],
    }
    api = made(document({f"/x/{text}": {"post": operation}}))
    api.save(tmp_path / "a.yaml")
    loaded = load_toolset(tmp_path / "a.yaml")
    (tool,) = loaded.tools
    assert text in str(tool.input_schema())
    assert tool.request.body is not None
    assert list(tool.request.body.encoding["a"].headers.values()) == [text]
    for _, _, value in leaves(tool):
        assert [piece for piece in pieces(value) if isinstance(piece, Reference)] == []
        assert arguments_in(value)
