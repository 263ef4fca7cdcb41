from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import yaml
from small_policies import api

import toolgen as package
from toolgen.errors import ApprovalConfigError
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.coverage import coverage

SAMPLE = Path(__file__).resolve().parents[2] / "samples/petstore/approvals.yaml"
INVALID = """\
requireApproval:
- http.post:*
- htp:read_*
exempt: [http.post:*]
timeoutPolcy: ABORT
"""
# Valid; without a source `http*` matches names only, which is a warning.
DOUBTFUL = "requireApproval: [http.*:*, 'http*']\n"


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    """Nobody says how wide lines are, so that none is wrapped."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def config(folder):
    """Writes approvals.yaml, the sample's unless told otherwise."""

    def write(text: str = SAMPLE.read_text(encoding="utf-8"), name: str = "approvals.yaml") -> str:
        (folder / name).write_text(text, encoding="utf-8")
        return name

    return write


@pytest.fixture
def tools(toolgen):
    assert toolgen("generate", "petstore.yaml").exit_code == 0
    return "petstore.tools.yaml"


@pytest.fixture
def other(folder):
    """The toolset of a second API, which has a createPet, too."""
    api("other", createPet="post /animals", dropAll="delete /animals").save("other.tools.yaml")
    return "other.tools.yaml"


# a config alone


def test_a_valid_config_is_said_to_be(toolgen, config):
    result = toolgen("check", config())
    assert (result.exit_code, result.stdout, result.stderr) == (0, "approvals.yaml: valid\n", "")


def test_every_problem_is_told_with_its_line_the_character_and_what_to_write(toolgen, config):
    result = toolgen("check", config(INVALID))
    assert result.exit_code == 1
    with pytest.raises(ApprovalConfigError) as caught:
        ApprovalConfig.load("approvals.yaml")
    told = {problem.where: problem for problem in caught.value.problems}
    twice, unknown, misspelt = (told[where] for where in ("requireApproval[0]", "requireApproval[1]", "timeoutPolcy"))
    assert result.stdout == (
        f"approvals.yaml:2: error: requireApproval[0]: {twice.message} [config-invalid]\n"
        f"    {twice.hint}\n"
        f"approvals.yaml:3: error: requireApproval[1]: {unknown.message} [config-invalid]\n"
        "    htp:read_*\n"
        "      ^\n"
        f"    {unknown.hint}\n"
        f"approvals.yaml:5: error: timeoutPolcy: {misspelt.message} [config-invalid]\n"
        f"    {misspelt.hint}\n"
        "\n"
        "approvals.yaml: not valid, 3 errors\n"
    )


def test_a_warning_is_told_and_fails_only_where_it_is_strict(toolgen, config):
    result = toolgen("check", config(DOUBTFUL))
    assert result.exit_code == 0
    assert re.match(
        r"approvals\.yaml:1: warning: requireApproval\[1\]: .*http.* \[config-doubtful\]\n    ", result.stdout
    )
    assert result.stdout.endswith("approvals.yaml: valid, 1 warning\n")
    assert toolgen("check", "approvals.yaml", "--strict").exit_code == 1
    assert toolgen("check", config(), "--strict").exit_code == 0


# with tools


def test_findings_come_first_then_the_tools_by_outcome_then_the_counts(toolgen, config, tools):
    text = "deny: [http.delete:*]\nexempt: [http.patch:*, 'http.get:/stok']\nunmatched: requireWrites\n"
    result = toolgen("check", config(text), "--tools", tools)
    assert result.exit_code == 0
    order = ["exempt[1]: ", "denied: 1 tool\n", "gated: 3 tools\n", "allowed: 6 tools\n", "approvals.yaml: 1 denied"]
    places = [result.stdout.index(text) for text in order]
    assert places == sorted(places)
    assert re.search(r"deletePet +DELETE /pets/\{petId\} +http\.delete:\*\n", result.stdout)
    assert re.search(r"createPet +POST /pets +unmatched\n", result.stdout)
    assert result.stdout.endswith("approvals.yaml: 1 denied, 3 gated, 6 allowed, 1 warning\n")
    assert toolgen("check", "approvals.yaml", "--tools", tools, "--strict").exit_code == 1


def test_what_holds_while_a_call_waits_is_told_shortly(toolgen, config, tools):
    text = toolgen("check", config(), "--tools", tools).stdout
    assert re.search(r"createPet +POST /pets +AUTO_REJECT after PT30M \(rule http\.\*:\*\) +http\.post:\*\n", text)
    assert re.search(r"deletePet .* by role:shop-manager \(rule http\.delete:\*\) +http\.delete:\*\n", text)


def test_the_tables_fit_eighty_columns(toolgen, config, tools):
    text = toolgen("check", config(), "--tools", tools, env={"COLUMNS": "80"}).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "  createPet  http.post:*\n      POST /pets  AUTO_REJECT after PT30M (rule http.*:*)\n" in text


def test_a_write_that_runs_is_an_error(toolgen, config, tools):
    result = toolgen("check", config("unmatched: allow\n"), "--tools", tools)
    assert result.exit_code == 1
    assert result.stdout.startswith("approvals.yaml:1: error: ")
    assert "[write-ungated]" in result.stdout


def test_a_config_that_these_tools_make_invalid_is_told_as_one(toolgen, config, tools):
    text = "requireApproval: ['*:*']\nrules:\n- {match: '*:*', timeoutPolicy: AUTO_APPROVE, approvalTimeout: PT5M}\n"
    assert toolgen("check", config(text)).exit_code == 0
    result = toolgen("check", "approvals.yaml", "--tools", tools)
    assert result.exit_code == 1
    assert "approvals.yaml:3: error: rules[0].timeoutPolicy: AUTO_APPROVE would reach deletePet" in result.stdout
    assert result.stdout.endswith("approvals.yaml: not valid, 1 error\n")


@pytest.mark.parametrize("args", [["--tools", "TOOLS", "OTHER"], ["--tools", "TOOLS", "--tools", "OTHER"]])
def test_several_toolsets_may_be_given_as_a_shell_expands_them(toolgen, config, tools, other, args):
    args = [{"TOOLS": tools, "OTHER": other}.get(arg, arg) for arg in args]
    text = toolgen("check", config(), *args).stdout
    assert re.search(r"petstore:createPet +POST /pets ", text)
    assert re.search(r"other:createPet +POST /animals ", text)
    assert text.splitlines()[-1].startswith("approvals.yaml: 0 denied, 6 gated, 6 allowed")


# for programs


def test_as_json_it_is_one_object(toolgen, config, tools):
    text = "unmatched: requireWrites\ndeny: ['http.get:/stok']\n"
    result = toolgen("check", config(text), "--tools", tools, "--format", "json")
    data = json.loads(result.stdout)
    toolset = package.load_toolset(tools)
    covered = coverage(ApprovalConfig.load("approvals.yaml", [toolset]), [toolset]).to_dict()
    assert list(data) == ["config", "valid", "findings", "counts", "tools"]
    assert (data["config"], data["valid"]) == ("approvals.yaml", True)
    assert (data["counts"], data["tools"]) == (covered["counts"], covered["tools"])
    assert data["findings"] == [{**finding, "file": "approvals.yaml", "line": 2} for finding in covered["findings"]]
    assert len(data["findings"]) == 1


def test_an_invalid_config_as_json_has_its_findings_and_no_tools(toolgen, config, tools):
    result = toolgen("check", config(INVALID), "--tools", tools, "--format", "json")
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (data["valid"], data["tools"], set(data["counts"].values())) == (False, [], {0})
    found = data["findings"]
    assert [(one["line"], one["where"], one["rule"], one["level"]) for one in found] == [
        (2, "requireApproval[0]", "config-invalid", "error"),
        (3, "requireApproval[1]", "config-invalid", "error"),
        (5, "timeoutPolcy", "config-invalid", "error"),
    ]
    assert (found[1]["excerpt"], found[1]["caret"], found[1]["suggestion"]) == ("htp:read_*", 2, "http:read_*")


@pytest.mark.parametrize("text", [INVALID, DOUBTFUL, "unmatched: allow\n"])
def test_as_sarif_every_finding_has_its_rule_described_and_its_line(toolgen, config, tools, text):
    args = ["check", config(text), "--tools", tools]
    result = toolgen(*args, "--format", "sarif")
    (run,) = json.loads(result.stdout)["runs"]
    found = json.loads(toolgen(*args, "--format", "json").stdout)["findings"]
    assert result.exit_code == toolgen(*args).exit_code
    assert [one["ruleId"] for one in run["results"]] == [one["rule"] for one in found]
    for one, finding in zip(run["results"], found, strict=True):
        assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == finding["rule"]
        physical = one["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"]["uri"] == "approvals.yaml"
        assert physical["region"]["startLine"] == finding["line"]


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nothing.yaml"], "there is no file nothing.yaml"),
        (["broken.yaml"], "broken.yaml"),
        (["approvals.yaml", "--tools", "nothing.tools.yaml"], "there is no file nothing.tools.yaml"),
        (["approvals.yaml", "--tools", "approvals.yaml"], "approvals.yaml is not"),
        (["approvals.yaml", "--tools", "petstore.tools.yaml", "petstore.tools.yaml"], "two sources are called"),
    ],
)
def test_what_cannot_be_checked_is_one_error(toolgen, config, tools, form, args, says):
    config()
    config("a: [", "broken.yaml")
    result = toolgen("check", *args, "--format", form)
    assert result.exit_code == 1
    assert says in (result.stdout if form == "json" else result.stderr)
    if form == "json":
        assert json.loads(result.stdout)["error"]["message"]
    else:
        assert (result.stdout, result.stderr[:7]) == ("", "error: ")


# configs to start with


def test_a_suggested_config_has_no_finding(toolgen, tools, other):
    result = toolgen("check", "--suggest", "--tools", tools, other)
    assert (result.exit_code, result.stderr) == (0, "")
    Path("start.yaml").write_text(result.stdout, encoding="utf-8")
    checked = json.loads(toolgen("check", "start.yaml", "--tools", tools, other, "--format", "json").stdout)
    assert [one for one in checked["findings"] if one["level"] != "note"] == []
    assert checked["counts"]["gated"] == 7
    data = json.loads(toolgen("check", "--suggest", "--tools", tools, other, "--format", "json").stdout)
    assert data == {"config": yaml.safe_load(result.stdout)}


OLD = {"hitlConfig": {"toolApprovals": {"requireApproval": ["http.post:*", "htp:x"], "exempt": ["http.get:*"]}}}


def test_an_imported_config_is_on_stdout_and_what_changed_on_stderr(toolgen, config):
    old = config(json.dumps(OLD), "old.json")
    result = toolgen("check", "--import", old)
    assert result.exit_code == 0
    mapping = yaml.safe_load(result.stdout)
    assert mapping["requireApproval"] == ["http.post:*"]
    assert ApprovalConfig.parse(mapping).exempt
    assert re.search(r"^old\.json:1: \S+requireApproval\[1\]: .*htp:x", result.stderr, re.MULTILINE)
    assert "^" not in result.stderr
    as_json = toolgen("check", "--import", old, "--format", "json")
    data = json.loads(as_json.stdout)
    assert (list(data), as_json.stderr) == (["config", "changes"], "")
    assert data["config"] == mapping
    assert any("htp:x" in json.dumps(change) for change in data["changes"])


def test_an_import_looks_at_the_tools_it_is_given(toolgen, config, tools):
    rule = {"match": "http.*:*", "timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": "PT5M"}
    old = config(json.dumps({"requireApproval": ["http.*:*"], "rules": [rule]}), "old.json")
    alone = toolgen("check", "--import", old)
    assert "AUTO_APPROVE" in alone.stdout
    with_tools = toolgen("check", "--import", old, "--tools", tools)
    assert (with_tools.exit_code, "AUTO_APPROVE" in with_tools.stdout) == (0, False)
    assert "deletePet" in with_tools.stderr
    for missing in (["nothing.yaml"], [old, "--tools", "nothing.yaml"]):
        result = toolgen("check", "--import", *missing)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no file nothing.yaml" in result.stderr


def test_what_cannot_be_imported_is_one_error_with_every_problem(toolgen, config):
    old = config(json.dumps({"requireApproval": 1, "exempt": "x"}), "old.json")
    result = toolgen("check", "--import", old)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: old.json: ")
    assert re.findall(r"^  old\.json:1: (\w+): ", result.stderr, re.MULTILINE) == ["requireApproval", "exempt"]


# A path of an endpoint with what looks like a line of a report, and what clears a terminal.
FORGING = "/x/{a\nforged.yaml:1: error: \x1b[2Jforged\u2028forged}"


@pytest.mark.parametrize(
    "args",
    [
        ["check", "new.json"],
        ["check", "new.json", "--format", "json"],
        ["check", "new.json", "--format", "sarif"],
        ["check", "--import", "old.json"],
        ["check", "--suggest"],
        ["explain", "new.json", "one"],
        ["explain", "new.json", "PUT", FORGING],
    ],
)
def test_no_text_of_a_document_or_config_forges_a_line_of_what_is_told(toolgen, config, args):
    api("evil", one=f"post {FORGING}", two=f"get {FORGING}", three="get /y/reset").save("evil.tools.yaml")
    patterns = [f"http.put:{FORGING}", f"http.post:{FORGING}"]
    config(json.dumps({"requireApproval": patterns}), "new.json")
    config(json.dumps({"requireApproval": patterns, "exempt": patterns[:1]}), "old.json")
    if args[0] == "explain":
        result = toolgen(*args[:2], "--tools", "evil.tools.yaml", *args[2:])
    else:
        result = toolgen(*args, "--tools", "evil.tools.yaml")
    told = result.stdout + result.stderr
    assert "forged" in told
    assert not re.search(r"^\s*forged", told, re.MULTILINE)
    assert not re.search("[\x1b\u2028]", told)


@pytest.mark.parametrize("option", ["--suggest", "--import"])
def test_a_config_is_written_to_a_file_and_over_one_only_if_forced(toolgen, config, tools, files, option):
    args = ["check", *(["--suggest"] if option == "--suggest" else ["--import", config(json.dumps(OLD), "old.json")])]
    args += ["--tools", tools, "-o", "new.yaml"]
    before = files()
    done = toolgen(*args)
    assert (done.exit_code, done.stdout) == (0, "written  new.yaml\n")
    assert files() == sorted([*before, "new.yaml"])
    written = Path("new.yaml").read_bytes()
    assert ApprovalConfig.load("new.yaml").require_approval
    Path("new.yaml").write_text("mine", encoding="utf-8")
    refused = toolgen(*args)
    assert (refused.exit_code, Path("new.yaml").read_text(encoding="utf-8")) == (1, "mine")
    assert "--force overwrites it" in refused.stderr
    assert toolgen(*args, "--force").exit_code == 0
    assert Path("new.yaml").read_bytes() == written
    assert files() == sorted([*before, "new.yaml"])


def test_a_toolset_that_is_none_is_one_error(toolgen, config, tools):
    result = toolgen("check", "--suggest", "--tools", config())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: approvals.yaml is not a")


def test_a_file_that_cannot_be_written_is_one_error(toolgen, tools, files):
    before = files()
    result = toolgen("check", "--suggest", "--tools", tools, "-o", "nowhere/new.yaml")
    assert (result.exit_code, result.stdout, files()) == (1, "", before)
    assert "nowhere/new.yaml cannot be written" in result.stderr


# wrong usage


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "give CONFIG"),
        (["approvals.yaml", "petstore.tools.yaml"], "unexpected petstore.tools.yaml: toolset files are given with"),
        (["approvals.yaml", "-o", "x.yaml"], "-o is for --suggest and --import"),
        (["approvals.yaml", "--force"], "--force is for --suggest and --import"),
        (["--suggest"], "--suggest needs the tools"),
        (["approvals.yaml", "--suggest"], "--suggest writes a config and takes no CONFIG: what is approvals.yaml?"),
        (["approvals.yaml", "--suggest", "--tools", "petstore.tools.yaml"], "approvals.yaml is no toolset"),
        (["approvals.yaml", "--import", "old.yaml"], "--import writes a config and takes no CONFIG"),
        (["--import", "old.yaml", "--suggest", "--tools", "petstore.tools.yaml"], "cannot stand together"),
        (["--suggest", "--tools", "petstore.tools.yaml", "--strict"], "--strict is for checking"),
        (["--import", "old.yaml", "--format", "sarif"], "--format sarif is for findings"),
        (["approvals.yaml", "--format", "xml"], "xml"),
    ],
)
def test_wrong_usage_is_one_clear_message(toolgen, config, tools, files, args, says):
    config()
    before = files()
    result = toolgen("check", *args)
    assert (result.exit_code, result.stdout, files()) == (2, "", before)
    assert says in result.stderr


def test_a_config_that_is_written_replaces_files_only_and_keeps_their_permissions(toolgen, tools, tmp_path):
    target = tmp_path / "made.yaml"
    target.write_text("old: true\n", encoding="utf-8")
    target.chmod(0o640)
    assert toolgen("check", "--suggest", "--tools", tools, "-o", str(target), "--force").exit_code == 0
    assert (target.stat().st_mode & 0o777, "requireApproval:" in target.read_text(encoding="utf-8")) == (0o640, True)
    os.mkfifo(tmp_path / "pipe.yaml")
    result = toolgen("check", "--suggest", "--tools", tools, "-o", str(tmp_path / "pipe.yaml"), "--force")
    assert (result.exit_code, "is not a regular file" in result.stderr) == (1, True)
    assert (tmp_path / "pipe.yaml").is_fifo()
