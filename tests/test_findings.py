from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolgen.errors import Problem
from toolgen.findings import Finding, Level, to_sarif

RULES = {"unused": "Nothing is about this.", "write-ungated": "A write runs.", "config": "It is not meant."}


def finding(**more: Any) -> Finding:
    return Finding(**{"rule": "write-ungated", "level": Level.error, "message": "createPet runs", **more})


def result(**more: Any) -> dict[str, Any]:
    (run,) = to_sarif([finding(**more)], RULES, version="1.2.3")["runs"]
    (found,) = run["results"]
    return found


def test_a_problem_becomes_a_finding_with_everything_it_says():
    problem = Problem("no source is called 'htp'", "exempt[0]", 3, 5, "write http:x", "a.yaml", "htp:x", 1, "http:x")
    made = Finding.of(problem, "config-invalid", Level.warning)
    assert made.to_dict() == {"rule": "config-invalid", "level": "warning", **problem.to_dict()}


def test_what_a_finding_does_not_say_is_left_out_and_a_caret_at_the_start_is_kept():
    assert finding().to_dict() == {"rule": "write-ungated", "level": "error", "message": "createPet runs"}
    assert finding(caret=0).to_dict()["caret"] == 0


# SARIF


def test_a_log_names_the_tool_and_describes_the_rules_that_occur():
    found = [finding(), finding(rule="config", level=Level.warning), finding(rule="of-nobody", level=Level.note)]
    log = to_sarif(found, RULES, version="1.2.3")
    (run,) = log["runs"]
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    assert (run["tool"]["driver"]["name"], run["tool"]["driver"]["version"]) == ("toolgen", "1.2.3")
    assert run["tool"]["driver"]["rules"] == [
        {"id": "write-ungated", "shortDescription": {"text": "A write runs."}},
        {"id": "config", "shortDescription": {"text": "It is not meant."}},
    ]
    told = [(one["ruleId"], one.get("ruleIndex"), one["level"]) for one in run["results"]]
    assert told == [("write-ungated", 0, "error"), ("config", 1, "warning"), ("of-nobody", None, "note")]


def test_a_log_without_findings_says_that_nothing_was_found():
    (run,) = to_sarif([], RULES, version="1.2.3")["runs"]
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_the_message_has_the_hint():
    assert result(hint="exempt it")["message"] == {"text": "createPet runs; exempt it"}
    assert result()["message"] == {"text": "createPet runs"}


@pytest.mark.parametrize(
    ("more", "region"),
    [({"line": 4, "column": 2}, {"startLine": 4, "startColumn": 2}), ({"line": 4}, {"startLine": 4}), ({}, None)],
)
def test_a_place_is_file_line_and_config_path(more, region):
    (location,) = result(file="a.yaml", where="exempt[0]", **more)["locations"]
    assert location["logicalLocations"] == [{"fullyQualifiedName": "exempt[0]"}]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "a.yaml"}
    assert location["physicalLocation"].get("region") == region


def test_what_is_at_no_place_has_no_location():
    assert "locations" not in result(line=4)
    assert result(where="exempt")["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "exempt"}]}]


@pytest.mark.parametrize(
    ("file", "uri"),
    [("config/a b.yaml", "config/a%20b.yaml"), ("http:x.yaml", "http%3Ax.yaml"), ("ü#1?.yaml", "%C3%BC%231%3F.yaml")],
)
def test_a_file_is_a_reference_that_means_nothing_else(file, uri):
    (location,) = result(file=file)["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_an_absolute_file_is_a_url(tmp_path: Path):
    (location,) = result(file=str(tmp_path / "a b.yaml"))["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == (tmp_path / "a b.yaml").as_uri()


def test_a_file_whose_name_is_no_text_is_told_by_its_bytes():
    (location,) = result(file="b\udcff.yaml")["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "b%FF.yaml"
