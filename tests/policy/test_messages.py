"""What people read of a wrong config: every message, place, hint, caret and suggestion as messages.json has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_policies import pets

from toolgen.errors import ApprovalConfigError
from toolgen.policy.address import ToolList
from toolgen.policy.config import ApprovalConfig

CASES = json.loads((Path(__file__).parent / "messages.json").read_text(encoding="utf-8"))
TOOLS = (pets(), ToolList("mcp", ["read"], "files"))


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case, id=json.dumps(case["config"])[:60]) for case in CASES if kind in case]


@pytest.mark.parametrize("case", of_kind("problems"))
def test_a_wrong_config_is_refused_in_these_words(case: dict[str, Any]) -> None:
    with pytest.raises(ApprovalConfigError) as caught:
        ApprovalConfig.parse(case["config"], TOOLS if case.get("tools") else ())
    assert [problem.to_dict() for problem in caught.value.problems] == case["problems"]


@pytest.mark.parametrize("case", of_kind("warnings"))
def test_a_doubtful_config_is_read_with_these_warnings(case: dict[str, Any]) -> None:
    assert [problem.to_dict() for problem in ApprovalConfig.parse(case["config"]).warnings] == case["warnings"]


def test_an_error_prints_every_problem_with_its_hint_and_the_caret_under_the_character() -> None:
    with pytest.raises(ApprovalConfigError) as caught:
        ApprovalConfig.parse({"requireApproval": ["http.pots:/x"], "timeoutPolicy": "ABORT"})
    assert str(caught.value).splitlines() == [
        "the approval config has 2 problems",
        "  requireApproval[0]: no tool has the method 'pots' (write http.post:/x)",
        "      http.pots:/x",
        "             ^",
        "  timeoutPolicy: ABORT needs an `approvalTimeout` (add approvalTimeout: PT30M, or how long it is)",
    ]
