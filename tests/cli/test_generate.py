from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgen as package
from toolgen.cli.app import app
from toolgen.tools.export import TARGETS

HEAD = "openapi: 3.1.0\ninfo: {title: Zoo, version: '1'}\nservers: [{url: https://zoo.example}]\n"
DEGRADED = HEAD + (
    "paths:\n"
    "  /fine: {get: {operationId: fine, responses: {}}}\n"
    "  /lost: {get: {operationId: lost, parameters: [{name: a, in: query, schema: {$ref: '#/nowhere'}}], responses: {}}}\n"
)
SKIPPED = HEAD + (
    "paths:\n"
    "  /fine: {get: {operationId: fine, responses: {}}}\n"
    "  /a/../b: {get: {operationId: climbs, responses: {}}}\n"
)


def edit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    changed = text.replace("description: What it is called.", "description: Its name.", 1)
    assert changed != text
    path.write_text(changed, encoding="utf-8")


# what is written, and where


def test_the_toolset_is_written_beside_and_can_be_loaded(toolgen, folder, files):
    result = toolgen("generate", "petstore.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert files() == ["petstore.tools.yaml", "petstore.yaml"]
    assert package.load_toolset("petstore.tools.yaml") == package.generate("petstore.yaml").model_copy(
        update={"generated": package.load_toolset("petstore.tools.yaml").generated}
    )


def test_the_file_is_that_of_the_python_api_byte_for_byte(toolgen, folder):
    toolgen("generate", "petstore.yaml")
    package.generate("petstore.yaml").save("other.tools.yaml")
    assert Path("petstore.tools.yaml").read_bytes() == Path("other.tools.yaml").read_bytes()


def test_output_and_api_name_it(toolgen, files):
    assert toolgen("generate", "petstore.yaml", "--api", "shop").exit_code == 0
    assert toolgen("generate", "petstore.yaml", "-o", "mine.json").exit_code == 0
    assert files() == ["mine.json", "petstore.yaml", "shop.tools.yaml"]
    assert json.loads(Path("mine.json").read_text(encoding="utf-8"))["api"] == "petstore"


def test_options_reach_the_toolset(toolgen):
    toolgen(
        *["generate", "petstore.yaml", "--server", "https://test.example/v2", "--name-prefix", "shop_"],
        *["--include", "tag:pets", "--include", "tag:orders", "--exclude", "DELETE /**", "--skip-deprecated"],
        *["--name-limit", "20"],
    )
    made = package.load_toolset("petstore.tools.yaml")
    assert made.server == "https://test.example/v2"
    names = [tool.name for tool in made.tools]
    assert len(names) == 8
    assert all(name.startswith("shop_") and len(name) <= 20 for name in names)
    assert not any("deletePet" in name or "getStock" in name for name in names)


def test_stdin_is_a_document(toolgen, folder, files):
    text = Path("petstore.yaml").read_text(encoding="utf-8")
    assert toolgen("generate", "-", stdin=text).exit_code == 0
    assert files() == ["petstore.tools.yaml", "petstore.yaml"]


def test_output_dash_prints_the_toolset_and_nothing_else_on_stdout(toolgen, files):
    result = toolgen("generate", "petstore.yaml", "-o", "-")
    assert result.exit_code == 0
    assert [tool["name"] for tool in yaml.safe_load(result.stdout)["tools"]][:2] == ["listPets", "createPet"]
    assert "10 tools of Petstore" in result.stderr
    assert files() == ["petstore.yaml"]


def test_output_dash_with_a_report_for_programs_keeps_it_off_stdout(toolgen):
    result = toolgen("generate", "petstore.yaml", "-o", "-", "--target", "anthropic", "--format", "json")
    assert json.loads(result.stdout)[0]["name"] == "listPets"
    assert json.loads(result.stderr)["written"] == "-"


def test_an_error_with_output_dash_leaves_stdout_empty(toolgen):
    result = toolgen("generate", "nothing.yaml", "-o", "-", "--format", "json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads(result.stderr)["error"]["type"] == "SourceUnavailable"


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_written_under_its_name(toolgen, files, target):
    result = toolgen("generate", "petstore.yaml", "--target", target)
    assert result.exit_code == 0, result.output
    name = f"petstore.{target}.{'md' if target == 'markdown' else 'json'}"
    assert files() == sorted([name, "petstore.yaml"])
    content = Path(name).read_text(encoding="utf-8")
    assert content.startswith("# Petstore") if target == "markdown" else len(json.loads(content)) == 10


def test_the_notes_of_an_export_are_reported(toolgen):
    text = toolgen("generate", "petstore.yaml", "--target", "gemini").stdout
    assert re.search(r"\d+ notes on the target gemini", text)
    noted = json.loads(toolgen("generate", "petstore.yaml", "--target", "gemini", "--format", "json").stdout)["notes"]
    assert noted
    assert {"tool", "message", "pointer"} == set(noted[0])


def test_an_unknown_target_is_refused_before_the_document_is_read(toolgen):
    result = toolgen("generate", "nothing.yaml", "--target", "anthropik")
    assert result.exit_code == 2
    assert "did you mean 'anthropic'?" in result.stderr


# the report


def test_the_report_shows_tools_endpoints_counts_servers_and_where_it_was_written(toolgen):
    lines = toolgen("generate", "petstore.yaml", "--exclude", "tag:orders").stdout.splitlines()
    assert lines[0] == "petstore: 9 tools of Petstore 1.0.0"
    rows = [line.split(maxsplit=3) for line in lines]
    assert ["listPets", "GET", "/pets", "read"] in rows
    assert ["deletePet", "DELETE", "/pets/{petId}", "write, destructive"] in rows
    assert ["getStock", "GET", "/stock", "read, deprecated"] in rows
    assert lines[-3:] == [
        "operations  9 ok, 0 degraded, 0 skipped, 1 filtered out",
        "server      https://petstore.example/v1",
        "written     petstore.tools.yaml",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(toolgen, width):
    text = toolgen("generate", "petstore.yaml", env={"COLUMNS": str(width)}).stdout
    assert max(map(len, text.splitlines())) <= width
    assert all(word in text for word in ("listOrdersOfOwner", "/owners/{ownerId}/orders", "destructive"))


def test_a_pipe_gets_whole_lines(process, folder):
    path = "/" + "/".join(["a-rather-long-segment"] * 20)
    (folder / "petstore.yaml").write_text(HEAD + f"paths: {{{path}: {{get: {{responses: {{}}}}}}}}", encoding="utf-8")
    assert f"GET {path}" in process("generate", "petstore.yaml", COLUMNS="").stdout


@pytest.mark.parametrize(("document", "status"), [(DEGRADED, "degraded"), (SKIPPED, "skipped")])
def test_what_is_not_ok_is_named_with_reason_and_pointer(toolgen, folder, document, status):
    (folder / "petstore.yaml").write_text(document, encoding="utf-8")
    result = toolgen("generate", "petstore.yaml")
    assert result.exit_code == 0
    assert f"{status}: 1 operation" in result.stdout
    assert "/paths/~1" in result.stdout
    data = json.loads(toolgen("generate", "petstore.yaml", "--format", "json").stdout)
    found = [operation for operation in data["report"]["operations"] if operation["status"] == status]
    assert len(found) == 1
    assert found[0]["diagnostics"][0]["pointer"].startswith("/paths/")


def test_long_lists_end_with_how_many_more_and_json_has_all(toolgen, folder):
    bad = "".join(
        f"  /p{i}: {{get: {{parameters: [{{name: a, in: query, schema: {{$ref: '#/no{i}'}}}}], responses: {{}}}}}}\n"
        for i in range(70)
    )
    (folder / "petstore.yaml").write_text(HEAD + "paths:\n" + bad, encoding="utf-8")
    text = toolgen("generate", "petstore.yaml").stdout
    assert "and 40 more: toolgen show FILE lists all" in text
    assert "degraded: 70 operations" in text
    assert "and 20 more: --format json shows all" in text
    data = json.loads(toolgen("generate", "petstore.yaml", "--format", "json").stdout)
    assert len(data["report"]["operations"]) == 70


def test_a_tool_that_goes_to_another_origin_is_flagged(toolgen, folder):
    away = "paths: {/a: {servers: [{url: https://elsewhere.example}], get: {operationId: away, responses: {}}}, "
    same = "/b: {servers: [{url: https://zoo.example/v2}], get: {operationId: near, responses: {}}}}"
    (folder / "petstore.yaml").write_text(HEAD + away + same, encoding="utf-8")
    text = toolgen("generate", "petstore.yaml").stdout
    assert re.search(r"away +GET /a +read, other origin\n", text)
    assert re.search(r"near +GET /b +read\n", text)
    assert "elsewhere   1 tool with another origin than https://zoo.example" in text
    assert "https://elsewhere.example" in text


def test_a_document_without_a_server_is_told_so(toolgen, folder):
    (folder / "petstore.yaml").write_text(DEGRADED.replace("servers: [{url: https://zoo.example}]\n", ""))
    assert "server      none: give one with --server URL" in toolgen("generate", "petstore.yaml").stdout


def test_a_filter_that_matches_nothing_is_noted(toolgen):
    text = toolgen("generate", "petstore.yaml", "--exclude", "tag:petz").stdout
    assert "1 note on the document" in text
    assert "'tag:petz' matches no operation" in text


def test_json_is_one_object(toolgen):
    data = json.loads(toolgen("generate", "petstore.yaml", "--format", "json").stdout)
    assert data.keys() == {"api", "written", "report", "notes"}
    assert (data["api"], data["written"]) == ("petstore", "petstore.tools.yaml")
    assert data["report"]["counts"] == {"ok": 10, "degraded": 0, "skipped": 0}


def test_document_text_cannot_command_the_terminal(toolgen, folder):
    title = r'"[bold red]Zoo[/] \x1b[31m\x9b2J \u202e \x07"'
    document = HEAD.replace("title: Zoo", f"title: {title}") + (
        'paths: {"/a\\x1b[2J": {get: {operationId: "x\\x1b[31m", tags: ["[link=x]t[/link]\\x1b]0;hi\\x07"], '
        'summary: "s\\x1b[0m\\u202e", responses: {}}}, /b/../c: {get: {responses: {}}}}'
    )
    (folder / "petstore.yaml").write_text(document, encoding="utf-8")
    made = toolgen("generate", "petstore.yaml", "--api", "zoo")
    assert made.exit_code == 0
    assert "[bold red]Zoo[/]" in made.stdout
    outputs = [made.output]
    name = package.load_toolset("zoo.tools.yaml").tools[0].name
    shown = ([], ["--format", "json"], ["--target", "markdown"], ["--target", "mcp"], [name])
    outputs += [toolgen("show", "zoo.tools.yaml", *args).output for args in shown]
    for text in outputs:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_a_hostile_toolset_file_cannot_command_the_terminal(toolgen, folder):
    toolgen("generate", "petstore.yaml")
    path = folder / "petstore.tools.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("What it is called.", r'"[blink]\e]0;x\a\u202e"').replace("group: pets", r'group: "\e[2J"')
    )
    for args in ([], ["createPet"], ["--format", "json"], ["createPet", "--format", "json"], ["--target", "json"]):
        result = toolgen("show", "petstore.tools.yaml", *args)
        assert result.exit_code == 0, result.output
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.output)
    assert r"\x1b[2J" in toolgen("show", "petstore.tools.yaml").stdout


def test_an_error_cannot_command_the_terminal(toolgen, folder):
    result = toolgen("generate", "no\x1b[31m.yaml")
    assert result.exit_code == 1
    assert "\x1b" not in result.output


def test_colour_is_for_terminals(toolgen, monkeypatch, folder):
    from toolgen.cli.output import Page

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    for no_color, coloured in ((None, True), ("1", False)):
        monkeypatch.delenv("NO_COLOR", raising=False)
        if no_color:
            monkeypatch.setenv("NO_COLOR", no_color)
        stream = Terminal()
        page = Page(stream)
        page.line("red", style="red")
        page.print()
        assert ("\x1b[31m" in stream.getvalue()) is coloured
    assert "\x1b" not in toolgen("generate", "petstore.yaml").stdout


# a progress bar


class _Watched(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("watched", "late", "shown"), [(True, True, True), (True, False, False), (False, True, False)])
def test_progress_shows_only_for_long_work_on_a_terminal(monkeypatch, watched, late, shown):
    from toolgen.cli import progress

    stream: Any = _Watched() if watched else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "_AFTER", -1 if late else 1000)
    with progress.Bar("generating [bold]zoo") as bar:
        bar(1, 2)
        bar(2, 2)
    assert ("generating [bold]zoo" in stream.getvalue()) is shown


# --strict and --check


@pytest.mark.parametrize("document", [DEGRADED, SKIPPED])
def test_strict_writes_nothing_when_an_operation_is_not_ok(toolgen, folder, files, document):
    (folder / "petstore.yaml").write_text(document, encoding="utf-8")
    result = toolgen("generate", "petstore.yaml", "--strict")
    assert result.exit_code == 1
    assert "nothing was written" in result.stderr
    assert "written     nothing" in result.stdout
    assert files() == ["petstore.yaml"]


def test_strict_as_json_has_the_report_and_the_error(toolgen, folder):
    (folder / "petstore.yaml").write_text(DEGRADED, encoding="utf-8")
    result = toolgen("generate", "petstore.yaml", "--strict", "--format", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert data["written"] is None
    assert data["report"]["counts"]["degraded"] == 1
    assert "--strict" in data["error"]["message"]


def test_strict_prints_no_toolset_on_stdout(toolgen, folder):
    (folder / "petstore.yaml").write_text(DEGRADED, encoding="utf-8")
    result = toolgen("generate", "petstore.yaml", "--strict", "-o", "-")
    assert (result.exit_code, result.stdout) == (1, "")


@pytest.mark.parametrize("fault", ["security: none", "paths: {/lost: {$ref: 'elsewhere.yaml#/lost'}, /a: {get: {}}}"])
def test_strict_counts_what_concerns_the_whole_document(toolgen, folder, files, fault):
    start = "openapi: 3.1.0\ninfo: {title: Petstore, version: '1'}\n"
    paths = "" if fault.startswith("paths") else "paths: {/a: {get: {}}}\n"
    (folder / "petstore.yaml").write_text(f"{start}{paths}{fault}\n", encoding="utf-8")
    result = toolgen("generate", "petstore.yaml", "--strict")
    assert (result.exit_code, files()) == (1, ["petstore.yaml"])
    assert "--strict allows none" in result.stderr


def test_strict_is_content_with_ok_operations(toolgen, files):
    assert toolgen("generate", "petstore.yaml", "--strict").exit_code == 0
    assert "petstore.tools.yaml" in files()


def test_check_writes_nothing_and_says_what_would_change(toolgen, folder, files):
    missing = toolgen("generate", "petstore.yaml", "--check")
    assert missing.exit_code == 1
    assert "petstore.tools.yaml would change\n  the file is not there\n" in missing.stdout
    assert files() == ["petstore.yaml"]
    toolgen("generate", "petstore.yaml")
    same = toolgen("generate", "petstore.yaml", "--check")
    assert same.exit_code == 0
    assert "petstore.tools.yaml is up to date" in same.stdout
    before = Path("petstore.tools.yaml").read_bytes()
    text = Path("petstore.yaml").read_text(encoding="utf-8")
    Path("petstore.yaml").write_text(text.replace("minLength: 1, maxLength: 40", "maxLength: 50"), encoding="utf-8")
    changed = toolgen("generate", "petstore.yaml", "--exclude", "tag:orders", "--check")
    assert changed.exit_code == 1
    assert "maxLength: 40 -> 50" in changed.stdout
    assert "tools[listOrdersOfOwner]: removed" in changed.stdout
    assert Path("petstore.tools.yaml").read_bytes() == before


def test_check_as_json(toolgen):
    data = json.loads(toolgen("generate", "petstore.yaml", "--check", "--format", "json").stdout)
    assert data["written"] is None
    assert data["check"] == {"file": "petstore.tools.yaml", "changes": [{"message": "the file is not there"}]}


def test_check_knows_edits_made_by_hand(toolgen, folder):
    toolgen("generate", "petstore.yaml")
    edit(folder / "petstore.tools.yaml")
    result = toolgen("generate", "petstore.yaml", "--check")
    assert result.exit_code == 1
    assert "edited by hand; writing it needs --force" in result.stdout


def test_check_of_an_export_compares_the_export(toolgen):
    args = ("generate", "petstore.yaml", "--target", "mcp")
    assert toolgen(*args, "--check").exit_code == 1
    toolgen(*args)
    assert toolgen(*args, "--check").exit_code == 0
    changed = toolgen(*args, "--exclude", "tag:orders", "--check")
    assert changed.exit_code == 1
    assert "tools[listOrdersOfOwner]: removed" in changed.stdout


def test_check_against_stdout_is_wrong_usage(toolgen):
    assert toolgen("generate", "petstore.yaml", "--check", "-o", "-").exit_code == 2


# what is there already


def test_edits_made_by_hand_are_shown_and_kept(toolgen, folder):
    toolgen("generate", "petstore.yaml")
    path = folder / "petstore.tools.yaml"
    edit(path)
    before = path.read_bytes()
    result = toolgen("generate", "petstore.yaml")
    assert result.exit_code == 1
    assert "schemas.NewPet.properties.name.description: 'What it is called.' -> 'Its name.'" in result.stderr
    assert result.stdout == ""
    assert path.read_bytes() == before


def test_force_drops_edits(toolgen, folder):
    toolgen("generate", "petstore.yaml")
    path = folder / "petstore.tools.yaml"
    before = path.read_bytes()
    edit(path)
    assert toolgen("generate", "petstore.yaml", "--force").exit_code == 0
    assert path.read_bytes() == before


def test_edits_as_json(toolgen, folder):
    toolgen("generate", "petstore.yaml")
    edit(folder / "petstore.tools.yaml")
    result = toolgen("generate", "petstore.yaml", "--format", "json")
    error = json.loads(result.stdout)["error"]
    assert (result.exit_code, error["type"]) == (1, "ToolsetEdited")
    assert error["problems"][0]["where"] == "schemas.NewPet.properties.name.description"


@pytest.mark.parametrize("args", [[], ["--target", "json"], ["--target", "markdown"]])
def test_a_file_that_toolgen_did_not_write_is_not_overwritten(toolgen, folder, args):
    (folder / "notes.yaml").write_text("mine: true\n", encoding="utf-8")
    result = toolgen("generate", "petstore.yaml", "-o", "notes.yaml", *args)
    assert result.exit_code == 1
    assert "--force overwrites it" in result.stderr
    assert (folder / "notes.yaml").read_text(encoding="utf-8") == "mine: true\n"
    assert toolgen("generate", "petstore.yaml", "-o", "notes.yaml", *args, "--force").exit_code == 0


@pytest.mark.parametrize("target", ["json", "openai", "markdown"])
def test_an_export_may_be_written_again(toolgen, folder, target):
    args = ("generate", "petstore.yaml", "--target", target, "-o", "out")
    assert toolgen(*args).exit_code == 0
    assert toolgen(*args, "--skip-deprecated").exit_code == 0


@pytest.mark.parametrize("name", ["petstore.yaml", "./petstore.yaml"])
def test_the_document_itself_is_never_overwritten_not_even_by_force(toolgen, folder, name):
    before = (folder / "petstore.yaml").read_bytes()
    result = toolgen("generate", "petstore.yaml", "-o", name, "--force")
    assert result.exit_code == 2
    assert (folder / "petstore.yaml").read_bytes() == before


@pytest.mark.parametrize("args", [[], ["--target", "mcp"]])
@pytest.mark.parametrize("output", ["no/such/folder/x.yaml", ".", "petstore.yaml/x.yaml"])
def test_where_nothing_can_be_written_the_message_is_clean_and_no_file_is_left(toolgen, files, args, output):
    result = toolgen("generate", "petstore.yaml", "-o", output, *args)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert files() == ["petstore.yaml"]


@pytest.mark.parametrize("args", [[], ["--target", "mcp"]])
def test_a_disk_that_fails_is_a_clean_message_and_leaves_the_old_file(toolgen, folder, files, monkeypatch, args):
    from toolgen.cli.writing import Output

    def full(self: Output, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(path))

    (folder / "out.json").write_text("[]", encoding="utf-8")
    monkeypatch.setattr(Output, "save", full)
    result = toolgen("generate", "petstore.yaml", "-o", "out.json", "--force", *args)
    assert (result.exit_code, result.stderr) == (1, "error: out.json cannot be written: No space left on device\n")
    assert files() == ["out.json", "petstore.yaml"]
    assert (folder / "out.json").read_text(encoding="utf-8") == "[]"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions and links")
def test_permissions_and_links_stay(toolgen, folder):
    (folder / "real.json").write_text("", encoding="utf-8")
    (folder / "real.json").chmod(0o640)
    (folder / "link.json").symlink_to("real.json")
    assert toolgen("generate", "petstore.yaml", "-o", "link.json", "--target", "json").exit_code == 0
    assert (folder / "link.json").is_symlink()
    assert stat.S_IMODE((folder / "real.json").stat().st_mode) == 0o640
    assert len(json.loads((folder / "real.json").read_text(encoding="utf-8"))) == 10


# what may be read


def test_references_leave_the_folder_only_where_a_root_is_allowed_and_the_own_folder_stays(toolgen, folder):
    for name in ("api", "common"):
        (folder / name).mkdir()
    (folder / "common/s.yaml").write_text("Id: {type: string, maxLength: 7}\n", encoding="utf-8")
    (folder / "api/own.yaml").write_text("Id: {type: string, maxLength: 9}\n", encoding="utf-8")
    parameters = (
        "[{name: a, in: query, schema: {$ref: '../common/s.yaml#/Id'}}, "
        "{name: b, in: query, schema: {$ref: 'own.yaml#/Id'}}]"
    )
    document = HEAD + f"paths: {{/x: {{get: {{operationId: x, parameters: {parameters}, responses: {{}}}}}}}}"
    (folder / "api/zoo.yaml").write_text(document, encoding="utf-8")
    refused = toolgen("generate", "api/zoo.yaml")
    assert "--allow-root DIR" in " ".join(refused.stdout.split())  # it stands behind a path of any length
    assert "degraded: 1 operation" in refused.stdout
    allowed = toolgen("generate", "api/zoo.yaml", "--allow-root", "common", "--force", "--strict")
    assert allowed.exit_code == 0, allowed.output


def test_a_root_that_is_no_folder_is_wrong_usage(toolgen):
    assert toolgen("generate", "petstore.yaml", "--allow-root", "nowhere").exit_code == 2


def test_a_url_gets_its_headers_and_no_output_shows_them(toolgen, folder, httpserver, monkeypatch):
    monkeypatch.setenv("SPEC_TOKEN", "s3cret-from-env")
    document = (folder / "petstore.yaml").read_text(encoding="utf-8")
    httpserver.expect_request(
        "/openapi.yaml", headers={"X-Key": "s3cret-literal", "Authorization": "Bearer s3cret-from-env"}
    ).respond_with_data(document)
    headers = ["--spec-header", "X-Key=s3cret-literal", "--spec-header", "Authorization=Bearer ${env:SPEC_TOKEN}"]
    result = toolgen("generate", httpserver.url_for("/openapi.yaml"), *headers)
    assert result.exit_code == 0, result.output
    refused = toolgen("generate", httpserver.url_for("/other.yaml"), *headers, "--format", "json")
    assert refused.exit_code == 1
    written = Path("petstore.tools.yaml").read_text(encoding="utf-8")
    assert "s3cret" not in result.output + refused.output + written


@pytest.mark.parametrize(
    "given", ["s3cret", "Bad Name=s3cret", "A=${caller:s3cret}", "A=${env:s3cret", "A=s3cret ${env:TOOLGEN_NOT_SET}"]
)
def test_a_header_that_is_wrong_is_refused_without_its_value(toolgen, given):
    result = toolgen("generate", "http://127.0.0.1:9/x", "--spec-header", given)
    assert result.exit_code == 2
    assert "s3cret" not in result.output


def test_a_variable_that_is_not_set_is_named(toolgen):
    result = toolgen("generate", "http://127.0.0.1:9/x", "--spec-header", "A=${env:TOOLGEN_NOT_SET}")
    assert "TOOLGEN_NOT_SET is not set" in result.stderr


# wrong usage


@pytest.mark.parametrize(
    "args",
    [
        ["petstore.yaml", "--include", "GET"],
        ["petstore.yaml", "--server", "petstore.example"],
        ["petstore.yaml", "--name-limit", "3"],
        ["petstore.yaml", "--name-prefix", "a b"],
        ["petstore.yaml", "--name-prefix", "x" * 60],
        ["petstore.yaml", "--format", "xml"],
        ["petstore.yaml", "--spec-header", "A=b"],
        ["petstore.yaml", "--config", "toolgen.yaml"],
        ["petstore.yaml", "-o", ""],
        ["petstore.yaml", "more.yaml"],
        ["--include", "tag:pets"],
    ],
)
def test_wrong_usage_is_exit_2_and_leaves_no_file(toolgen, files, args):
    result = toolgen("generate", *args)
    assert result.exit_code == 2
    assert result.stderr
    assert files() == ["petstore.yaml"]


@pytest.mark.parametrize("text", ["", "{", "a: [", "openapi: 3.1.0\npaths: {}\n", "openapi: 9.0.0\n", "- 1\n"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_document_that_is_none_is_exit_1_and_leaves_no_file(toolgen, folder, files, text, as_json):
    (folder / "petstore.yaml").write_text(text, encoding="utf-8")
    result = toolgen("generate", "petstore.yaml", *(["--format", "json"] if as_json else []))
    assert result.exit_code == 1
    if as_json:
        assert json.loads(result.stdout)["error"]["message"]
        assert result.stderr == ""
    else:
        assert result.stderr.startswith("error: ")
    assert files() == ["petstore.yaml"]


def test_the_app_is_what_the_console_script_names():
    from toolgen.cli.app import main

    assert callable(main)
    assert app is not None


# --limit


def test_a_limit_is_set_from_the_command_line(toolgen, files):
    small = toolgen("generate", "petstore.yaml", "--limit", "bytes=1000")
    assert (small.exit_code, files()) == (1, ["petstore.yaml"])
    assert "petstore.yaml is larger than 1000 bytes" in small.stderr
    flat = toolgen("generate", "petstore.yaml", "--limit", "nesting=3", "--limit", "seconds=0.5")
    assert "nested deeper than 3 levels" in flat.stderr
    assert toolgen("generate", "petstore.yaml", "--limit", "nesting=300").exit_code == 0


def test_a_limit_counts_for_standard_input(toolgen):
    assert "larger than 10 bytes" in toolgen("generate", "-", "--limit", "bytes=10", stdin="{" + " " * 99).stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("byte=1", "no limit; there are bytes, nesting, nodes, seconds, redirects, documents; did you mean 'bytes'?"),
        ("bytes", "write NAME=NUMBER"),
        ("bytes=many", "write NAME=NUMBER"),
        ("bytes=0", "expected a whole number above 0"),
        ("nesting=1.5", "expected a whole number above 0"),
        ("seconds=-1.0", "expected a number above 0"),
    ],
)
def test_a_limit_that_is_none_is_wrong_usage(toolgen, files, given, said):
    result = toolgen("generate", "petstore.yaml", "--limit", given)
    assert (result.exit_code, files()) == (2, ["petstore.yaml"])
    assert said in result.stderr


def test_help_tells_the_limits_of_the_code(toolgen):
    from dataclasses import asdict

    from toolgen.openapi.source import Limits

    text = " ".join(toolgen("generate", "--help").stdout.split())
    assert all(f"{name}={int(value)}" in text for name, value in asdict(Limits()).items())
