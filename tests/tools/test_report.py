from __future__ import annotations

import json

from small_documents import OK, document, made

from toolgen.openapi.diagnostics import Diagnostic
from toolgen.tools.report import OperationReport, Report

NOTE = Diagnostic("note", "a note", "/a")
LOST = Diagnostic("degraded", "something is lost", "/b")
REASON = Diagnostic("skipped", "no request", "/c")

REPORT = Report(
    (
        OperationReport("get", "/a", "/paths/~1a/get", "a", (NOTE,)),
        OperationReport("get", "/b", "/paths/~1b/get", "b", (NOTE, LOST)),
        OperationReport("get", "/c", "/paths/~1c/get", None, (REASON,)),
    ),
    (NOTE,),
    filtered=4,
    servers=("https://a.test",),
)


def test_a_note_leaves_an_operation_ok_and_without_a_tool_it_is_skipped() -> None:
    assert [operation.status for operation in REPORT.operations] == ["ok", "degraded", "skipped"]
    assert REPORT.counts() == {"ok": 1, "degraded": 1, "skipped": 1}
    assert Report().counts() == {"ok": 0, "degraded": 0, "skipped": 0}


def test_a_report_is_json_data() -> None:
    data = json.loads(json.dumps(REPORT.to_dict()))
    assert data["counts"] == {"ok": 1, "degraded": 1, "skipped": 1}
    assert data["filtered"] == 4
    assert data["servers"] == ["https://a.test"]
    assert data["document"] == [{"level": "note", "message": "a note", "pointer": "/a"}]
    assert data["operations"][1] == {
        "method": "get",
        "path": "/b",
        "pointer": "/paths/~1b/get",
        "status": "degraded",
        "tool": "b",
        "diagnostics": [
            {"level": "note", "message": "a note", "pointer": "/a"},
            {"level": "degraded", "message": "something is lost", "pointer": "/b"},
        ],
    }


def test_a_diagnostic_reads_as_a_sentence_with_its_place_and_is_never_endless() -> None:
    assert str(LOST) == "something is lost at /b"
    assert str(Diagnostic("note", "the whole", "")) == "the whole at /"
    long = Diagnostic("note", "x" * 10_000, "/a").message
    assert len(long) <= 500
    assert long.endswith("[cut]")


def test_every_selected_operation_is_reported_in_the_documents_order() -> None:
    paths = {
        "/z": {"get": {"operationId": "z", "responses": OK}, "post": 5},
        "/a/./b": {"get": {"responses": OK}},
        "/a/{id}": {"get": {"operationId": "a", "responses": OK}},
        "/filtered": {"get": {"responses": OK}},
    }
    report = made(document(paths), exclude=["GET /filtered"]).report
    assert report is not None
    assert [(o.method, o.path, o.status, o.tool) for o in report.operations] == [
        ("get", "/z", "ok", "z"),
        ("post", "/z", "skipped", None),
        ("get", "/a/./b", "skipped", None),
        ("get", "/a/{id}", "degraded", "a"),
    ]
    assert [d.pointer for o in report.operations for d in o.diagnostics] == [
        "/paths/~1z/post",
        "/paths/~1a~1.~1b/get",
        "/paths/~1a~1{id}/get",
    ]
    assert report.filtered == 1


def test_faults_of_a_shared_schema_are_reported_with_every_operation_that_reaches_it() -> None:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Outer"}}}}
    schemas = {
        "Outer": {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Inner"}}},
        "Inner": {"type": "object", "properties": {"broken": {"$ref": "#/components/schemas/Nowhere"}}},
    }
    paths = {
        "/a": {"post": {"operationId": "a", "requestBody": body, "responses": OK}},
        "/b": {"post": {"operationId": "b", "requestBody": body, "responses": OK}},
        "/c": {"get": {"operationId": "c", "responses": OK}},
    }
    report = made(document(paths, components={"schemas": schemas})).report
    assert report is not None
    assert [(o.tool, o.status) for o in report.operations] == [("a", "degraded"), ("b", "degraded"), ("c", "ok")]
    for operation in report.operations[:2]:
        assert [d.pointer for d in operation.diagnostics] == ["/components/schemas/Inner/properties/broken"]


def test_an_unknown_keyword_is_told_once_for_the_document() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "lenght": 5}, "b": {"type": "string", "lenght": 6}},
    }
    body = {"content": {"application/json": {"schema": schema}}}
    report = made(document({"/a": {"post": {"requestBody": body, "responses": OK}}})).report
    assert report is not None
    assert [d.message for d in report.document] == [
        "schemas use 'lenght', which is no keyword of JSON Schema; it is left out"
    ]
    assert report.counts()["ok"] == 1


def test_the_servers_of_all_requests_are_named_once() -> None:
    own = [{"url": "https://b.test"}]
    paths = {
        "/a": {"get": {"responses": OK}},
        "/b": {"get": {"servers": own, "responses": OK}, "put": {"servers": own, "responses": OK}},
        "/c": {
            "servers": [{"url": "https://{x}.test", "variables": {"x": {"default": "c"}}}],
            "get": {"responses": OK},
        },
    }
    report = made(document(paths, servers=[{"url": "https://a.test"}])).report
    assert report is not None
    assert report.servers == ("https://a.test", "https://b.test", "https://{x}.test")
