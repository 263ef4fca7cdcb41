from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from small_policies import api

SAMPLE = Path(__file__).resolve().parents[2] / "samples/petstore/approvals.yaml"
DELETE_PET = """\
Calls of petstore:deletePet wait for a person: requireApproval[3] is http.delete:*.

Can be matched as
  http.delete:/pets/{petId}
  petstore.delete:/pets/{petId}
  http:deletePet
  petstore:deletePet
  deletePet

Lists, each beats those below
  deny                none matches
  exempt              none matches
  requireApproval[3]  http.delete:* matches http.delete:/pets/{petId}, which decides
  unmatched           requireWrites, as nothing else is stated

Destructive
  its method is DELETE

Rules that match, the most specific first
  rules[1]  http.delete:* matches http.delete:/pets/{petId}, the call's own
  rules[0]  http.*:* matches http.delete:/pets/{petId}

While a call waits
  timeoutPolicy      WAIT_INDEFINITELY (rules[1].timeoutPolicy)
  approvalTimeout    none (default)
  approvalValidity   PT1H (default)
  approvers          role:shop-manager (rules[1].approvers)
  allowSelfApproval  false (default: approvers are named)
  pauseReason        Deletes a pet for good ({toolNames}). (rules[1].pauseReason)

What would change it
  adding http.delete:/pets/{petId} to exempt would let them run
  adding http.delete:/pets/{petId} to deny would have them refused
"""


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    """Nobody says how wide lines are, so that none is wrapped."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def explain(toolgen, folder):
    """Runs `toolgen explain approvals.yaml --tools petstore.tools.yaml ARGS`; the config is the sample's."""
    assert toolgen("generate", "petstore.yaml").exit_code == 0
    (folder / "approvals.yaml").write_bytes(SAMPLE.read_bytes())
    return lambda *args: toolgen("explain", "approvals.yaml", "--tools", "petstore.tools.yaml", *args)


@pytest.fixture
def other(folder):
    """The toolset of a second API, which shares a name and an endpoint with the first."""
    api("other", createPet="post /animals", addPet="post /pets").save("other.tools.yaml")
    return "other.tools.yaml"


@pytest.mark.parametrize(
    "words",
    [
        ["deletePet"],
        ["petstore:deletePet"],
        ["DELETE", "/pets/{petId}"],
        ["delete", "pets/{petId}"],
        ["DELETE /pets/{petId}"],
    ],
)
def test_every_step_of_a_call_that_waits_is_told(explain, words):
    result = explain(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, DELETE_PET, "")


def test_a_call_that_runs_is_told_with_what_would_stop_it(explain):
    text = explain("listPets").stdout
    assert text.startswith("Calls of petstore:listPets run: exempt[0] is http.get:*.\n")
    assert "\n  exempt[0]        http.get:* matches http.get:/pets, which decides\n" in text
    assert "While a call waits" not in text
    assert "  adding http.get:/pets to deny would have them refused\n" in text


def test_advice_says_which_other_tools_it_reaches(explain, folder):
    (folder / "approvals.yaml").write_text("deny: [http.get:*]\n", encoding="utf-8")
    shown = "petstore:listMyPets, petstore:getPet, petstore:listOrdersOfOwner and 1 more"
    told = f"  removing deny[0] (http.get:*) would let them run (and change what happens to {shown})\n"
    assert told in explain("listPets").stdout
    (folder / "approvals.yaml").write_text("exempt: [http.post:*]\nunmatched: require\n", encoding="utf-8")
    told = (
        "  removing exempt[0] (http.post:*) would make them wait (and change what happens to petstore:uploadPetPhoto)\n"
    )
    assert told in explain("createPet").stdout
    (folder / "approvals.yaml").write_text("{}\n", encoding="utf-8")
    text = explain("createPet").stdout
    assert text.startswith(
        "Calls of petstore:createPet wait for a person: no list has a pattern that matches, and unmatched is requireWrites"
    )
    assert "  adding http.post:/pets to exempt and writing unmatched: requireWrites would let them run\n" in text


def test_as_json_it_has_every_step(explain):
    data = json.loads(explain("deletePet", "--format", "json").stdout)
    (one,) = data["explanations"]
    assert data["config"] == "approvals.yaml"
    assert (one["name"], one["outcome"], one["where"]) == ("deletePet", "gated", "requireApproval[3]")
    assert one["requireApproval"] == [
        {
            "where": "requireApproval[3]",
            "pattern": "http.delete:*",
            "address": "http.delete:/pets/{petId}",
            "decides": True,
        }
    ]
    assert [change["outcome"] for change in one["changes"]] == ["allowed", "denied"]


def test_every_operation_of_an_endpoint_is_explained(explain, other):
    text = explain(other, "POST", "/pets").stdout
    assert re.findall(r"^Calls of (\S+)", text, re.MULTILINE) == ["petstore:createPet", "other:addPet"]


def test_a_name_that_two_apis_have_needs_its_source(explain, other):
    result = explain(other, "createPet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "name one of petstore:createPet, other:createPet" in result.stderr
    text = explain(other, "other:createPet").stdout
    assert text.startswith("Calls of other:createPet wait for a person")
    assert "petstore, other each have a tool 'createPet': a call of it names its source.\n" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["creatPet"], "no tool is called 'creatPet'; near are createPet"),
        (["POST", "/pet"], "no tool has the endpoint 'POST /pet'; near are POST /pets"),
        (["PUT", "/pets"], "near are GET /pets, POST /pets"),
        (["nothing.tools.yaml", "createPet"], "there is no file nothing.tools.yaml"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_what_is_not_there_is_one_error_with_the_nearest(explain, words, says, form):
    result = explain(*words, "--format", form)
    assert result.exit_code == 1
    assert says in (json.loads(result.stdout)["error"]["message"] if form == "json" else result.stderr)


def test_an_invalid_config_is_not_explained(explain, folder):
    (folder / "approvals.yaml").write_text("exempt: [http.get:*]\n", encoding="utf-8")
    result = explain("listPets")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "approvals.yaml:1: exempt: `exempt` has no effect" in result.stderr


@pytest.mark.parametrize("args", [[], ["approvals.yaml"], ["approvals.yaml", "createPet"]])
def test_wrong_usage_is_told(toolgen, explain, args):
    result = toolgen("explain", *args)
    assert (result.exit_code, result.stdout) == (2, "")
