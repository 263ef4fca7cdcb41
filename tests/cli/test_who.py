"""Who is at the command line: the user of the system, or whom the authenticator of toolgen.yaml gives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toolgen import ApprovalConfig, Caller, Dispatcher, Runtime, ToolCall, load_toolset
from toolgen.approvals.store import Store

SECRET = "tok-0123456789abcdef"
PET = '{"requestBody": {"name": "Rex", "species": "dog"}}'
CREDENTIAL = ["--credential", "bearerAuth=${env:SHOP_TOKEN}"]
PEOPLE = f"""
import sys
from toolgen import Decider
from toolgen.errors import ToolgenError

def lead(): return Decider("ada", frozenset({{"leads"}}))
async def async_lead(): return lead()
def elsewhere(): return Decider("ada", frozenset({{"leads"}}), "acme")
def out(): raise ToolgenError("log in first")
def broken(): raise ValueError("{SECRET}")
def ends(): sys.exit("{SECRET}")
def name(): return "ada"
def nobody(): return None
def blank(): return Decider(" ")
def system(): return Decider("system:timeout")
def tenantless(): return Decider("ada", tenant="")
def letters(): return Decider("ada", "leads")
there = 7
"""


@pytest.fixture
def shop(toolgen, folder, tmp_path_factory, monkeypatch):
    """A folder with a toolset, whose authenticators stand in a folder that Python looks into."""
    for name in ("TOOLGEN_STORE", "TOOLGEN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    modules = tmp_path_factory.mktemp("modules")
    (modules / "shop_people.py").write_text(PEOPLE, encoding="utf-8")
    (modules / "shop_faulty.py").write_text(f"raise ValueError('{SECRET}')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(modules))
    toolgen("generate", "petstore.yaml")
    yield folder
    for name in ("shop_people", "shop_faulty"):
        sys.modules.pop(name, None)


def known_as(folder: Path, function: str, module: str = "shop_people") -> None:
    (folder / "toolgen.yaml").write_text(f"authenticator: {module}:{function}\n", encoding="utf-8")


def paused(tenant: str = "default") -> str:
    """The id of a new pause that only leads may decide."""
    config = ApprovalConfig.parse({"requireApproval": ["*"], "approvers": ["role:leads"]})
    store = Store("sqlite:///toolgen.db")
    toolset = load_toolset(Path("petstore.tools.yaml"))
    dispatcher = Dispatcher(toolset, credentials={"bearerAuth": "${env:SHOP_TOKEN}"})
    made = Runtime(dispatcher, config, store=store, background=False)
    try:
        asked = [ToolCall("c1", "deletePet", {"petId": "7"})]
        return made.sync.submit(asked, caller=Caller("bob", tenant=tenant)).pause.id
    finally:
        made.sync.close()
        dispatcher.close()
        store.close()


def votes(id: str, tenant: str = "default") -> list[tuple[str, str]]:
    store = Store("sqlite:///toolgen.db")
    try:
        return [(vote.decider, vote.verdict.value) for call in store.pause(id, tenant).calls for vote in call.votes]
    finally:
        store.close()


@pytest.mark.parametrize("function", ["lead", "async_lead"])
def test_the_roles_an_authenticator_gives_are_those_that_approvers_name(toolgen, shop, function):
    id = paused()
    assert toolgen("approvals", "approve", id).exit_code == 1
    known_as(shop, function)
    assert toolgen("approvals", "approve", id).exit_code == 0
    assert votes(id) == [("ada", "approved")]


FAULTS = {
    "shop_people:out": "log in first",
    "shop_people:broken": "failed: ValueError",
    "shop_people:ends": "failed: SystemExit",
    "shop_people:name": "gave no toolgen.Decider",
    "shop_people:nobody": "gave no toolgen.Decider",
    "shop_people:blank": "gave a subject that is no name",
    "shop_people:system": "gave a subject that is no name",
    "shop_people:tenantless": "gave a tenant that is no name",
    "shop_people:letters": "gave roles that are no frozenset of names",
    "shop_people:there": "has no function 'there'",
    "shop_people:missing": "has no function 'missing'",
    "shop_faulty:who": "cannot be imported: ValueError",
    "shop_nowhere:who": "there is no module 'shop_nowhere'",
    "shop_people": "expected module:function",
}


def test_where_the_authenticator_fails_nobody_is_known_and_no_secret_is_told(toolgen, shop):
    id = paused()
    for named, says in FAULTS.items():
        (shop / "toolgen.yaml").write_text(f"authenticator: {named}\n", encoding="utf-8")
        result = toolgen("approvals", "approve", id)
        assert (result.exit_code, result.stdout) == (2, ""), named
        assert says in result.stderr
        assert SECRET not in result.output
    assert votes(id) == []


def test_without_knowing_who_is_here_no_command_does_anything(toolgen, shop):
    id = paused()
    known_as(shop, "broken")
    commands = [["approve", id], ["reject", id], ["cancel", id], ["extend", id, "never"], ["list"], ["show", id]]
    commands += [["remembered"], ["revoke", "abcd"], ["purge", "--subject", "bob", "--yes"]]
    commands += [["amend", id, "c1", "--tools", "petstore.tools.yaml", "--args", "{}", "--yes"]]
    for command in [["approvals", *one] for one in commands] + [["call", "petstore.tools.yaml", "getStock"]]:
        result = toolgen(*command)
        assert (result.exit_code, result.stdout) == (2, ""), command
    (shop / "toolgen.yaml").unlink()
    assert json.loads(toolgen("approvals", "show", id, "--format", "json").stdout)["revision"] == 1


def test_only_pauses_of_the_authenticators_tenant_are_seen_and_decided_whatever_the_option_says(toolgen, shop):
    ours, theirs = paused("acme"), paused()
    known_as(shop, "elsewhere")
    listed = json.loads(toolgen("approvals", "list", "--format", "json").stdout)
    assert [one["id"] for one in listed["pauses"]] == [ours]
    assert toolgen("approvals", "approve", theirs).exit_code == 1
    for command in (["approve", theirs], ["list"], ["purge", "--subject", "bob", "--yes"]):
        refused = toolgen("approvals", *command, "--tenant", "default")
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "'ada' is of the tenant 'acme'" in refused.stderr
    assert votes(theirs) == []
    assert toolgen("approvals", "approve", ours, "--tenant", "acme").exit_code == 0


def test_a_call_is_asked_for_and_resumed_by_whom_the_authenticator_gives(toolgen, shop):
    known_as(shop, "elsewhere")
    asked = toolgen("call", "petstore.tools.yaml", "createPet", "--args", PET, *CREDENTIAL, "--format", "json")
    pause = json.loads(asked.stdout)["pause"]
    assert (pause["requester"], pause["tenant"]) == ("ada", "acme")
    (shop / "toolgen.yaml").unlink()
    assert toolgen("call", "petstore.tools.yaml", "--resume", pause["id"], *CREDENTIAL).exit_code == 1
    known_as(shop, "elsewhere")
    assert toolgen("call", "petstore.tools.yaml", "--resume", pause["id"], *CREDENTIAL).exit_code == 3


def test_the_config_that_is_named_is_asked_and_an_authenticator_alone_generates_nothing(toolgen, shop):
    id = paused()
    known_as(shop, "out")
    (shop / "me.yaml").write_text("authenticator: shop_people:lead\n", encoding="utf-8")
    assert toolgen("approvals", "approve", id, "--config", "me.yaml").exit_code == 0
    assert toolgen("approvals", "list", "--config", "none.yaml").exit_code == 2
    alone = toolgen("generate", "--config", "me.yaml")
    assert alone.exit_code == 2
    assert "has no `apis`" in alone.stderr


def test_the_current_folder_is_no_place_for_code(shop):
    """Whoever looks at what waits in a folder that somebody sent must not run what is in it."""
    paused()
    (shop / "sent.py").write_text("open('ran', 'w').close()\n", encoding="utf-8")
    known_as(shop, "who", module="sent")
    command = [str(Path(sys.executable).with_name("toolgen")), "approvals", "list"]
    run = subprocess.run(command, cwd=shop, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "there is no module 'sent': install it, or name its folder in PYTHONPATH" in run.stderr
    assert not (shop / "ran").exists()


def test_a_port_that_is_no_number_is_told_without_the_password(toolgen, shop):
    refused = toolgen("approvals", "list", "--store", "postgresql://ada:hunter2@db:port/approvals")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "the store's URL is" in refused.stderr
    assert "hunter2" not in refused.output
