"""The second opinion: what openapi-core accepts, what it refuses, what it cannot read, and that it fails closed."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from small_documents import OK, document, made, parameter

from toolgen.errors import ContractError, MissingExtra
from toolgen.openapi.source import Loader
from toolgen.request.contract import Contract, Contracts, check, enforce
from toolgen.request.model import Deferred, ResolvedRequest
from toolgen.request.resolve import resolve
from toolgen.tools.model import Tool

SERVER = "https://api.example/v1"
NUMBERS = {"type": "array", "items": {"type": "integer"}}
POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
NAMED = {"type": "object", "properties": {"o": POINT}}
JSON = "application/json"


def api(*parameters: dict[str, Any], path: str = "/x", content: Any = None, **more: Any) -> dict[str, Any]:
    """A document of one operation."""
    operation: dict[str, Any] = {"operationId": "op", "responses": OK, "parameters": list(parameters)}
    if content is not None:
        operation["requestBody"] = {"required": True, "content": content}
    return document({path: {"post": operation}}, **more)


def only(source: Any) -> Tool:
    (tool,) = made(source).tools
    return tool


def both(source: Any, arguments: dict[str, Any], old: str = "", new: str = "") -> list[Contract]:
    """What is said of the request, checked against the toolset and against the document; `old` in it becomes `new`."""
    request = resolve(only(source), arguments, server=SERVER)
    request = changed(request, old, new) if old else request
    found = [check(request), check(request, document=source)]
    assert [one.source for one in found] == ["toolset", "document"]
    return found


def changed(request: ResolvedRequest, old: str, new: str) -> ResolvedRequest:
    body = request.body
    headers = tuple((name, text.replace(old, new)) for name, text in request.headers)
    made = replace(
        request,
        url=request.url.replace(old, new),
        headers=headers,
        body=None if body is None else body.replace(old.encode(), new.encode()),
    )
    assert (made.url, made.headers, made.body) != (request.url, request.headers, request.body)
    return made


STYLED = [
    ("path", "simple", False, {"type": "integer"}, 34, "34"),
    ("path", "simple", False, NUMBERS, [34, 5], "34"),
    ("path", "simple", True, POINT, {"x": 34, "y": 5}, "34"),
    ("path", "simple", False, POINT, {"x": 34, "y": 5}, "34"),
    ("path", "label", False, NUMBERS, [34, 5], "34"),
    ("path", "label", True, POINT, {"x": 34, "y": 5}, "34"),
    ("path", "label", False, {"type": "integer"}, 34, "34"),
    ("path", "matrix", False, NUMBERS, [34, 5], "34"),
    ("path", "matrix", True, NUMBERS, [34, 5], "34"),
    ("path", "matrix", True, POINT, {"x": 34, "y": 5}, "34"),
    ("path", "matrix", False, {"type": "integer"}, 34, "34"),
    ("query", "form", True, {"type": "integer"}, 34, "34"),
    ("query", "form", True, NUMBERS, [34, 5], "34"),
    ("query", "form", False, NUMBERS, [34, 5], "34"),
    ("query", "form", False, POINT, {"x": 34, "y": 5}, "34"),
    ("query", "spaceDelimited", False, NUMBERS, [34, 5], "34"),
    ("query", "pipeDelimited", False, NUMBERS, [34, 5], "34"),
    ("query", "spaceDelimited", True, NUMBERS, [34, 5], "34"),
    ("query", "deepObject", True, POINT, {"x": 34, "y": 5}, "34"),
    ("header", "simple", False, NUMBERS, [34, 5], "34"),
    ("header", "simple", True, POINT, {"x": 34, "y": 5}, "34"),
    ("cookie", "form", True, {"type": "integer"}, 34, "34"),
    ("cookie", "form", True, NUMBERS, [34, 5], "34"),
]


@pytest.mark.parametrize(("location", "style", "explode", "schema", "value", "sent"), STYLED)
def test_every_style_it_can_read_is_accepted_and_a_value_of_another_type_is_not(
    location: str, style: str, explode: bool, schema: Any, value: Any, sent: str
) -> None:
    source = api(
        parameter("p", location, style=style, explode=explode, schema=schema, required=True),
        path="/x/{p}" if location == "path" else "/x",
    )
    assert both(source, {"p": value}) == [Contract("ok", "toolset"), Contract("ok", "document")]
    for found in both(source, {"p": value}, sent, "ab"):
        assert found.status == "failed"
        assert [problem.where.startswith(f"/{location}/p") for problem in found.problems] == [True]


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        ({"type": ["integer", "null"], "minimum": 3}, 34, "1"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 34, "ab"),
        ({"anyOf": [{**NUMBERS, "minItems": 1}, {"type": "null"}]}, [34, 5], "ab"),
        ({"allOf": [{"$ref": "#/components/schemas/Kind"}]}, "34", "ab"),
        ({"enum": ["34", None]}, "34", "ab"),
        ({"type": "string", "pattern": r"^\p{N}+$"}, "34", "ab"),
    ],
    ids=["several types", "null beside it", "array or null", "reference", "enum with null", "pattern of ECMA-262"],
)
def test_schemas_it_would_crash_on_or_misread_are_restated_and_still_checked(
    schema: Any, value: Any, wrong: str
) -> None:
    kind = {"schemas": {"Kind": {"type": "string", "enum": ["34", "35"]}}}
    source = api(parameter("p", schema=schema), components=kind)
    assert [one.status for one in both(source, {"p": value})] == ["ok", "ok"]
    assert [one.status for one in both(source, {"p": value}, "34", wrong)] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("parameters", "content", "arguments", "where", "why"),
    [
        ([parameter("p", schema=POINT)], None, {"p": {"x": 1}}, "/query/p", "exploded objects"),
        ([parameter("p", style="deepObject", schema=NUMBERS)], None, {"p": [1]}, "/query/p", "does not define"),
        (
            [parameter("p", style="deepObject", schema={"type": "object", "properties": {"a": POINT}})],
            None,
            {"p": {"a": {"x": 1}}},
            "/query/p",
            "plain texts only",
        ),
        ([parameter("p", schema={"type": ["integer", "string"]})], None, {"p": 1}, "/query/p", "several types"),
        ([parameter("p", schema={"type": "array", "items": POINT})], None, {"p": [{"x": 1}]}, "/query/p", "inside"),
        ([parameter("p", explode=False, schema={"type": "array"})], None, {"p": ["a,b"]}, "/query/p", "delimiter"),
        (
            [parameter("a.b", style="deepObject", schema=POINT, required=True)],
            None,
            {"a_b": {"x": 1}},
            "/query/a.b",
            "letters, digits",
        ),
        (
            [
                parameter(
                    "p", "header", explode=True, schema={"type": "object", "properties": {"x": {"type": "string"}}}
                )
            ],
            None,
            {"p": {"x": "a=b"}},
            "/header/p",
            "delimiter",
        ),
        ([parameter("p")], None, {"p": ""}, "/query/p", "empty query value"),
        ([], {"application/xml": {}}, {"requestBody": "<a/>"}, "/body", "media type"),
        ([], {"text/plain": {}}, {"requestBody": ""}, "/body", "empty body"),
        (
            [],
            {"multipart/form-data": {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}},
            {"requestBody": {"n": 1}},
            "/body/n",
            "parts",
        ),
        (
            [],
            {"application/x-www-form-urlencoded": {"schema": {**NAMED, "required": ["o"]}}},
            {"requestBody": {"o": {"x": 1}}},
            "/body/o",
            "objects in fields",
        ),
        (
            [],
            {JSON: {"schema": {"type": "object", "patternProperties": {"^a": {"type": "integer"}}}}},
            {"requestBody": {"a": 1}},
            "/body",
            "patternProperties",
        ),
    ],
)
def test_what_it_cannot_read_is_left_out_and_said(
    parameters: list[Any], content: Any, arguments: dict[str, Any], where: str, why: str
) -> None:
    for found in both(api(*parameters, content=content), arguments):
        assert (found.status, found.problems) == ("partial", ())
        assert any(one.where == where and why in one.message for one in found.left_out), found
        enforce(found)  # the known limits of openapi-core refuse nothing


@pytest.mark.parametrize("media", [JSON, "application/merge-patch+json", "*/*", "application/json; charset=utf-8"])
def test_a_json_body_is_read_whatever_its_media_type_is_called(media: str) -> None:
    source = api(content={media: {"schema": {**POINT, "required": ["x"]}}})
    assert [one.status for one in both(source, {"requestBody": {"x": 34}})] == ["ok", "ok"]
    for found in both(source, {"requestBody": {"x": 34}}, '"x"', '"y"'):
        assert [(one.where, one.message) for one in found.problems] == [("/body", "required: 'x'")]


FORM = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}, "s": NUMBERS}}


@pytest.mark.parametrize(
    ("media", "schema", "value"),
    [
        ("application/x-www-form-urlencoded", FORM, {"n": 34, "s": [1, 2]}),
        ("multipart/form-data", {**FORM, "properties": {"n": {"type": "string", "maxLength": 2}}}, {"n": "34"}),
        (
            "multipart/form-data; boundary=theirs",
            {**FORM, "properties": {"n": {"type": "string", "maxLength": 2}}},
            {"n": "34"},
        ),
        ("text/plain", {"type": "string", "maxLength": 2}, "34"),
    ],
)
def test_forms_and_text_are_read(media: str, schema: Any, value: Any) -> None:
    source = api(content={media: {"schema": schema}})
    assert [one.status for one in both(source, {"requestBody": value})] == ["ok", "ok"]
    assert [one.status for one in both(source, {"requestBody": value}, "34", "abc")] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("edit", "where"),
    [
        ({"method": "PUT"}, "/method"),
        ({"url": f"{SERVER}/y/1?q=2"}, "/path"),
        ({"url": "https://api.example/x/1?q=2"}, "/path"),
        ({"url": f"{SERVER}/x/1"}, "/query/q"),
        ({"headers": (("Content-Type", "text/plain"),)}, "/body"),
        ({"body": None}, "/body"),
        ({"body": b"{"}, "/body"),
    ],
)
def test_what_is_not_as_described_fails_and_is_not_let_through(edit: dict[str, Any], where: str) -> None:
    content = {JSON: {"schema": {"type": "object"}}}
    source = api(parameter("id", "path"), parameter("q", required=True), path="/x/{id}", content=content)
    request = resolve(only(source), {"id": "1", "q": "2", "requestBody": {}}, server=SERVER)
    assert check(request).status == "ok"
    for found in (check(replace(request, **edit)), check(replace(request, **edit), document=source)):
        assert (found.status, [one.where for one in found.problems]) == ("failed", [where])
        with pytest.raises(ContractError, match="nothing was sent") as refused:
            enforce(found)
        assert refused.value.problems == found.problems


def test_no_value_and_no_key_of_a_request_is_in_what_is_said_of_it() -> None:
    secret = "s3cr3t-value"
    schema = {"type": "object", "additionalProperties": {"type": "integer", "not": {"const": 5}}}
    source = api(parameter("q", schema={"type": "integer"}), content={JSON: {"schema": schema}})
    request = resolve(only(source), {"q": 34, "requestBody": {"n": 7}}, server=SERVER)
    for body in (b'{"s3cr3t-value": "s3cr3t-value"}', b'["s3cr3t-value"]', b"s3cr3t-value", b'{"s3cr3t-value": 5}'):
        broken = replace(request, url=request.url.replace("34", secret), body=body)
        for found in (check(broken), check(broken, document=source)):
            assert {one.where.split("/")[1] for one in found.problems} == {"query", "body"}
            assert secret not in repr(found)
            with pytest.raises(ContractError) as refused:
                enforce(found)
            assert secret not in str(refused.value)


def test_without_an_opinion_a_request_is_not_let_through() -> None:
    tool = only(api(parameter("q")))
    other = document({"/other": {"get": {"responses": OK}}})
    far = tool.model_copy(update={"parameters": {"properties": {"q": {"$ref": "https://host.test/s.json"}}}})
    request = resolve(tool, {"q": "1"}, server=SERVER)
    for found in (check(request, document=other), check(replace(request, tool=far)), check(request, document={"a": 1})):
        assert (found.status, found.problems, len(found.left_out)) == ("unchecked", (), 1)
        with pytest.raises(ContractError, match="could not be checked"):
            enforce(found)


FILE = {"type": "string", "format": "binary"}


@pytest.mark.parametrize(
    ("media", "schema", "value", "version"),
    [
        ("application/octet-stream", FILE, "/wA=", "3.0.3"),
        ("image/png", {}, "/wA=", "3.1.0"),
        (
            "multipart/form-data",
            {"type": "object", "properties": {"f": FILE}, "required": ["f"]},
            {"f": "/wA="},
            "3.0.3",
        ),
        (
            "multipart/form-data",
            {"type": "object", "properties": {"f": {"type": "array", "items": FILE}}},
            {"f": ["/wA=", {"filename": "a.txt", "data": "/wA="}]},
            "3.0.3",
        ),
    ],
)
def test_bytes_are_whatever_they_are(media: str, schema: Any, value: Any, version: str) -> None:
    source = api(content={media: {"schema": schema}}, version=version)
    assert [one.status for one in both(source, {"requestBody": value})] == ["ok", "ok"]


def test_a_cookie_that_is_not_encoded_is_read_as_it_is() -> None:
    source = api(parameter("c", "cookie", style="cookie", schema={"type": "integer"}), version="3.2.0")
    assert [one.status for one in both(source, {"c": 34})] == ["ok", "ok"]
    assert [one.status for one in both(source, {"c": 34}, "34", "ab")] == ["failed", "failed"]


def test_what_a_person_wrote_into_a_toolset_has_no_schema_and_is_said() -> None:
    tool = only(api(parameter("q", required=True), content={JSON: {"schema": POINT}}))
    (leaf,) = tool.request.query
    query = (leaf, leaf.model_copy(update={"name": "tenant", "value": "us"}))
    edited = tool.model_copy(update={"request": tool.request.model_copy(update={"query": query})})
    found = check(resolve(edited, {"q": "1", "requestBody": {"x": 1}}, server=SERVER))
    assert [(one.where, found.status) for one in found.left_out] == [("/query/tenant", "partial")]
    assert "by a person" in found.left_out[0].message


def test_a_thousand_faults_are_told_as_twenty() -> None:
    source = api(content={JSON: {"schema": NUMBERS}})
    request = resolve(only(source), {"requestBody": [1]}, server=SERVER)
    assert len(check(replace(request, body=json.dumps(["a"] * 1000).encode())).problems) == 20


def test_nothing_is_fetched_whatever_a_hand_made_tool_refers_to(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/s.json").respond_with_json({"type": "string"})
    tool = only(api(parameter("q")))
    request = resolve(tool, {"q": "1"}, server=SERVER)
    for keyword in ("$ref", "$dynamicRef"):
        schema = {"type": "string", "not": {keyword: httpserver.url_for("/s.json")}}
        far = tool.model_copy(update={"parameters": {"properties": {"q": schema}}})
        assert check(replace(request, tool=far)).status == "unchecked"
    assert httpserver.log == []


def test_the_document_counts_where_it_is_given_and_the_toolset_where_not() -> None:
    source = api(parameter("q", schema={"type": "integer", "maximum": 9}))
    edited = api(parameter("q", schema={"type": "integer"}))
    request = resolve(only(edited), {"q": 34}, server=SERVER)
    assert (check(request).status, check(request, document=source).status) == ("ok", "failed")


def test_schemas_in_files_beside_the_document_are_read(tmp_path: Path) -> None:
    source = api(content={JSON: {"schema": {"$ref": "schemas.json#/Point"}}})
    (tmp_path / "api.json").write_text(json.dumps(source))
    (tmp_path / "schemas.json").write_text(json.dumps({"Point": POINT}))
    contracts = Contracts(Loader().load(tmp_path / "api.json"))
    request = resolve(only(tmp_path / "api.json"), {"requestBody": {"x": 34}}, server=SERVER)
    assert contracts.check(request) == Contract("ok", "document")
    assert contracts.check(changed(request, "34", "true")).status == "failed"


def test_what_is_filled_in_later_is_not_missed_now() -> None:
    source = api(
        parameter("key", required=True),
        parameter("X-Key", "header", required=True),
        parameter("Idempotency-Key", "header"),
    )
    request = resolve(only(source), {"key": "1", "X-Key": "2"}, server=SERVER)
    from toolgen.identity.references import parse

    later = (Deferred("query", "key", parse("${env:KEY}")), Deferred("header", "X-Key", parse("${env:KEY}")))
    waiting = replace(request, url=f"{SERVER}/x", headers=request.headers[:1])
    assert check(waiting).status == "failed"
    found = check(replace(waiting, deferred=later))
    assert (found.status, {one.where for one in found.left_out}) == (
        "partial",
        {"/query/key", "/header/X-Key", "/header/Idempotency-Key"},
    )


def test_a_query_parameter_nobody_described_is_named() -> None:
    request = resolve(only(api(parameter("q"))), {"q": "1"}, server=SERVER)
    found = check(replace(request, url=request.url + "&admin=1"))
    assert [(one.where, found.status) for one in found.left_out] == [("/query/admin", "partial")]


def test_what_was_built_for_a_tool_goes_with_it() -> None:
    tool = only(api(parameter("q")))
    assert check(resolve(tool, {"q": "1"}, server=SERVER)).status == "ok"
    gone = weakref.ref(tool)
    del tool
    gc.collect()
    assert gone() is None


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    request = resolve(only(api(parameter("q"))), {"q": "1"}, server=SERVER)
    monkeypatch.setitem(sys.modules, "openapi_core", None)
    with pytest.raises(MissingExtra, match=r"toolgen\[contract\]"):
        check(request)


def test_openapi_core_is_imported_only_when_a_request_is_checked() -> None:
    code = "import sys, toolgen.request.contract; print('openapi_core' in sys.modules, 'werkzeug' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
