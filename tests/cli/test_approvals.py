from __future__ import annotations

import json
import os
import pty
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from shown import ROOT, petstore

from toolgen import ApprovalConfig, Caller, Dispatcher, Runtime, ToolCall, load_toolset
from toolgen.approvals.store import Store
from toolgen.cli.who import login

TOKEN = "tok-0123456789abcdef"
CREDENTIAL = ["--credential", "bearerAuth=${env:SHOP_TOKEN}"]
PET = {"requestBody": {"name": "Rex", "species": "dog"}}
ID = re.compile(r"[0-9a-f]{32}")


@pytest.fixture
def server():
    with petstore() as running:
        yield running


@pytest.fixture
def shop(toolgen, folder, monkeypatch):
    """A folder with a toolset and the environment's token; the store is the default one."""
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.delenv("TOOLGEN_STORE", raising=False)
    monkeypatch.delenv("TOOLGEN_KEY", raising=False)
    toolgen("generate", "petstore.yaml")
    return folder


@pytest.fixture
def approvals(toolgen, shop):
    """`toolgen approvals ...`, which shows neither the token nor anything of the key."""

    def run(*args: str, **options):
        result = toolgen("approvals", *args, **options)
        assert TOKEN not in result.output
        return result

    return run


@contextmanager
def runtime(config: str | None = None, *, clock=None, server: str | None = None) -> Iterator[Runtime]:
    """What a program has: a runtime on the folder's store."""
    store = Store("sqlite:///toolgen.db", **({} if clock is None else {"clock": clock}))
    dispatcher = Dispatcher(
        load_toolset(Path("petstore.tools.yaml")), server=server, credentials={"bearerAuth": "${env:SHOP_TOKEN}"}
    )
    parsed = None if config is None else ApprovalConfig.parse(json.loads(config))
    made = Runtime(dispatcher, parsed, store=store, background=False)
    try:
        yield made
    finally:
        made.sync.close()
        dispatcher.close()
        store.close()


def paused(
    *calls: tuple[str, str, dict], requester: str = "ada", config: str | None = None, server: str | None = None, **more
) -> str:
    """The id of a new pause of these calls."""
    asked = [ToolCall(id, name, arguments) for id, name, arguments in calls]
    with runtime(config, server=server, **more) as made:
        return made.sync.submit(asked, caller=Caller(requester)).pause.id


def two(**more) -> str:
    return paused(("c1", "createPet", PET), ("c2", "deletePet", {"petId": "7"}), **more)


def kept(id: str):
    store = Store("sqlite:///toolgen.db")
    try:
        return store.pause(id, "default")
    finally:
        store.close()


def states(id: str) -> list[str]:
    return [call.state.value for call in kept(id).calls]


# looking


def test_without_a_store_nothing_is_made_and_it_is_said_what_is_missing(approvals, files):
    before = files()
    for command in (["list"], ["show", "abcd"], ["approve", "abcd"], ["remembered"], ["sweep"]):
        result = approvals(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no store toolgen.db" in result.stderr
    assert files() == before
    assert approvals("list", "--store", "sqlite://").exit_code == 2


def test_the_list_has_what_waits_and_the_filters_hold(approvals, shop):
    first, second = two(), paused(("c1", "deletePet", {"petId": "8"}), requester="bob")
    shown = approvals("list").stdout.splitlines()
    assert shown[0].split() == ["id", "age", "requester", "state", "tools", "reason", "due"]
    assert [line.split()[0] for line in shown[1:]] == [second[:8], first[:8]]
    assert "createPet, deletePet" in shown[2]
    assert "unmatched" in shown[2]
    assert approvals("list", "--requester", "bob").stdout.count("\n") == 2
    assert approvals("list", "--limit", "1").stdout.splitlines()[1].startswith(second[:8])
    approvals("reject", second)
    assert second[:8] not in approvals("list").stdout
    assert second[:8] in approvals("list", "--status", "all").stdout
    assert approvals("list", "--tenant", "other").stdout == "nothing waits\n"


def test_the_list_fits_a_narrow_screen(approvals, shop):
    id = two()
    shown = approvals("list", env={"COLUMNS": "50"}).stdout
    assert max(map(len, shown.splitlines())) <= 50
    assert shown.startswith(id[:8])


def test_the_list_as_json_has_no_arguments_but_the_preview(approvals, shop):
    id = two()
    (pause,) = json.loads(approvals("list", "--format", "json").stdout)["pauses"]
    assert (pause["id"], pause["status"], pause["requester"]) == (id, "pending", "ada")
    assert {"arguments", "result", "binding", "fingerprint"} & set(pause["calls"][0]) == set()


def test_show_has_who_asks_why_each_call_waits_and_the_request_by_the_one_renderer(approvals, shop):
    id = paused(("c1", "createPet", PET), config='{"requireApproval": ["http.post:*"], "rules": '
                '[{"match": "createPet", "approvers": ["carol"], "approvalTimeout": "PT1H", '
                '"timeoutPolicy": "AUTO_REJECT"}]}')  # fmt: skip
    shown = approvals("show", id[:6]).stdout
    (call,) = kept(id).calls
    for line in (
        f"pause      {id}",
        "requester  ada",
        "due        in 59 min, then AUTO_REJECT",
        "c1: createPet of petstore is pending",
        "  reason     http.post:*",
        "  rule       createPet",
        "  approvers  carol",
        "  requester  may not approve it",
        "    POST https://petstore.example/v1/pets",
        '        "species": "dog"',
    ):
        assert line in shown.splitlines(), shown
    with runtime() as made:
        request = made.work("petstore", "createPet", call.arguments, None).request
    assert "\n".join(f"    {line}" for line in str(request.preview()).split("\n")) in shown


def test_a_value_cannot_make_up_a_line_of_its_own_nor_command_the_terminal(approvals, shop):
    name = "Rex\n\nc2: getPet of petstore is approved\x1b[2J"
    id = paused(("c1", "createPet", {"requestBody": {"name": name, "species": "dog"}}))
    with sqlite3.connect("toolgen.db") as connection:  # what no runtime writes
        connection.execute("UPDATE toolgen_pauses SET requester = ?", ("a\nb\u202e",))
    connection.close()
    for command in (["list"], ["show", id]):
        shown = approvals(*command).stdout
        assert not re.search("[\x1b\u202e]", shown)
        assert not any(line.startswith("c2:") for line in shown.splitlines())


def test_an_id_may_be_cut_to_what_tells_it_apart(approvals, shop, monkeypatch):
    numbers = iter(["abcd" + "0" * 28, "abcd" + "1" * 28])
    monkeypatch.setattr("toolgen.runtime.pausing.uuid4", lambda: type("Id", (), {"hex": next(numbers)}), raising=True)
    first, second = two(), two(requester="bob")
    assert first in approvals("show", "abcd0").stdout
    several = approvals("show", "abcd")
    assert (several.exit_code, several.stdout) == (2, "")
    assert "several ids begin with 'abcd'" in several.stderr
    assert approvals("approve", "abcd").exit_code == 2
    for wanted, says in [("abc", "at least 4 characters"), ("ffff", "there is no pause 'ffff'"), ("%%%%", "no pause")]:
        result = approvals("show", wanted)
        assert (result.exit_code, says in result.stderr) == (1, True)
    assert states(second) == ["pending", "pending"]


def test_following_prints_each_pause_that_is_new_or_changes(shop, approvals):
    id = two()
    command = [sys.executable, "-m", "toolgen", "approvals", "list", "--follow"]
    with subprocess.Popen(command, cwd=shop, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline().split()[:2] == [id[:8], "pending"]
        approvals("reject", id)
        assert running.stdout.readline().split()[:2] == [id[:8], "rejected"]
        other = two(requester="bob")
        assert running.stdout.readline().split() == [other[:8], "pending", "createPet,", "deletePet", "bob"]
        running.send_signal(2)
        assert running.wait(20) == 130
        assert "Traceback" not in running.stderr.read()


# deciding


def test_approving_runs_nothing_and_the_requester_resumes_it(approvals, toolgen, shop, server):
    id = two(server=server.url)
    done = approvals("approve", id[:8], "--note", "go on")
    assert done.exit_code == 0
    assert "createPet is approved" in done.stdout
    assert "nothing has run" in done.stdout
    assert (states(id), server.requests) == (["approved", "approved"], [])
    (vote,) = kept(id).calls[0].votes
    assert (vote.decider, vote.note) == (login(), "go on")
    with runtime(server=server.url) as made:
        results = made.sync.resume(id, caller=Caller("ada"))
    assert "go on" in results["c1"].message
    assert sorted(server.requests) == ["DELETE /v1/pets/7", "POST /v1/pets"]


def test_only_the_named_calls_are_decided_and_the_others_go_on_waiting(approvals, shop):
    id = two()
    done = approvals("approve", id, "--call", "c2")
    assert "c1 still waits" in done.stdout
    assert states(id) == ["pending", "approved"]
    rejected = approvals("reject", id, "--call", "c1", "--note", "no", "--retry", "--format", "json")
    assert [call["state"] for call in json.loads(rejected.stdout)["calls"]] == ["rejected", "approved"]
    assert kept(id).call("c1").retry


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["approve", "ID", "--call", "c9"], 1, "calls.c9: the pause has no such call (waiting are c1, c2)"),
        (["approve", "ID", "--note", "x" * 4_001], 1, "at most 4,000 characters"),
        (["approve", "ID", "--revision", "7"], 1, "it is at revision 1, not 7"),
        (["approve", "ID", "--uses", "2"], 2, "for --remember"),
        (["approve", "ID", "--remember", "everything"], 2, "--remember takes exact, endpoint, or fields=A,B"),
        (["approve", "ID", "--remember", "fields"], 2, "--remember takes"),
        (["approve", "ID", "--remember", "exact=a"], 2, "--remember takes"),
        (["approve", "ID", "--remember", "fields=petid"], 2, "has no argument 'petid'"),
        (["approve", "ID", "--remember", "exact", "--until", "7d"], 2, "did you mean P7D?"),
        (["extend", "ID", "soon"], 2, "no ISO 8601 duration"),
        (["revoke", "abcd"], 1, "there is no remembered approval 'abcd'"),
        (["purge", "--subject", "ada"], 2, "give --yes"),
        (["list", "--store", "mysql://x:secretpw@y/z"], 1, "sqlite:///PATH or postgresql://"),
        (["list", "--key-file", "none.key"], 1, "none.key cannot be read"),
    ],
)
def test_what_is_refused_changes_nothing(approvals, shop, args, code, says):
    id = two()
    result = approvals(*(id if arg == "ID" else arg for arg in args))
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert "secretpw" not in result.output
    assert (states(id), kept(id).revision) == (["pending", "pending"], 1)


def test_what_is_decided_cannot_be_decided_again(approvals, shop):
    id = two()
    assert approvals("reject", id).exit_code == 0
    again = approvals("approve", id, "--format", "json")
    assert again.exit_code == 1
    assert json.loads(again.stdout)["error"]["type"] == "PauseConflict"
    assert states(id) == ["rejected", "rejected"]


def test_who_is_no_approver_may_not_decide_and_the_user_has_no_roles(approvals, shop, monkeypatch):
    monkeypatch.setenv("LOGNAME", "carol")  # which names nobody: the system's user counts
    config = '{"requireApproval": ["*"], "rules": [{"match": "deletePet", "approvers": ["carol", "role:admin"]}]}'
    id = two(config=config)
    refused = approvals("approve", id, "--call", "c2")
    assert refused.exit_code == 1
    assert "may not decide c2: approvers are carol or role:admin" in refused.stderr
    assert states(id) == ["pending", "pending"]
    assert approvals("approve", id).exit_code == 0
    assert states(id) == ["approved", "pending"]


# amending


def amendment(id: str, *more: str, call: str = "c1", name: str = "Max") -> list[str]:
    args = json.dumps({"requestBody": {"name": name, "species": "dog"}})
    return ["amend", id, call, "--tools", "petstore.tools.yaml", "--args", args, *more]


def test_an_amendment_shows_the_new_request_and_needs_a_yes(approvals, shop, server):
    id = two(server=server.url)
    given = [*CREDENTIAL, "--server", server.url]
    asked = approvals(*amendment(id, *given))
    assert asked.exit_code == 2
    assert '"name": "Max"' in asked.stdout
    assert "--yes" in asked.stderr
    assert states(id) == ["pending", "pending"]
    done = approvals(*amendment(id, *given, "--yes", "--note", "a better name"))
    assert done.exit_code == 0, done.stderr
    assert states(id) == ["approved", "pending"]
    call = kept(id).call("c1")
    assert (call.arguments["requestBody"]["name"], call.proposed) == ("Max", PET)
    assert "this is not what the model asked for" in approvals("show", id).stdout
    approvals("reject", id)
    with runtime(server=server.url) as made:
        made.sync.resume(id, caller=Caller("ada"))
    assert server.requests == ["POST /v1/pets"]
    assert "Max" in {pet["name"] for pet in server.pets.values()}


@pytest.mark.parametrize(
    ("answer", "code", "state"), [("y\n", 0, "approved"), ("\n", 1, "pending"), ("n\n", 1, "pending")]
)
def test_on_a_terminal_a_person_is_asked(shop, answer, code, state):
    id = two()
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "toolgen", "approvals", *amendment(id, *CREDENTIAL)]
    os.write(ours, answer.encode())
    done = subprocess.run(command, cwd=shop, stdin=theirs, capture_output=True, text=True, check=False, timeout=30)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, states(id)[0]) == (code, state), done.stderr
    assert "Approve this request?" in done.stderr


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "needs credentials that are not bound"),
        ([*CREDENTIAL, "--server", "https://other.example"], "toolset, server or credentials are not those"),
        ([*CREDENTIAL, "--approvals", "approvals.yaml"], "the approval config is not the one"),
    ],
)
def test_an_amendment_that_could_never_run_is_not_decided(approvals, shop, more, says):
    shutil.copy(ROOT / "samples/petstore/approvals.yaml", shop)
    id = two()
    refused = approvals(*amendment(id, *more, "--yes"))
    assert refused.exit_code == 1
    assert says in refused.stderr
    assert states(id) == ["pending", "pending"]


def test_an_amendment_that_is_not_valid_is_told_where(approvals, shop):
    id = two()
    given = ["amend", id, "c2", "--tools", "petstore.tools.yaml", "--args", '{"petid": "8"}', *CREDENTIAL, "--yes"]
    refused = approvals(*given)
    assert refused.exit_code == 1
    assert "calls.c2.arguments/petid" in refused.stderr
    assert approvals(*amendment(id, *CREDENTIAL, "--yes", call="c9")).exit_code == 1
    assert states(id) == ["pending", "pending"]


# what is kept, and how long


def test_the_due_time_is_moved_or_taken_away(approvals, shop):
    config = '{"requireApproval": ["*"], "approvalTimeout": "PT5M", "timeoutPolicy": "AUTO_REJECT"}'
    id = two(config=config)
    before = datetime.now(UTC)
    moved = approvals("extend", id, "PT2H")
    assert (moved.exit_code, "in 1 h, then AUTO_REJECT" in moved.stdout) == (0, True)
    assert timedelta(hours=2) <= kept(id).due - before < timedelta(hours=2, minutes=1)
    assert approvals("extend", id, "never").exit_code == 0
    assert kept(id).due is None


def test_cancelling_ends_what_waits_and_what_was_approved(approvals, shop):
    id = two()
    approvals("approve", id, "--call", "c1")
    done = approvals("cancel", id, "--note", "by mistake")
    assert (done.exit_code, states(id)) == (0, ["cancelled", "cancelled"])
    assert kept(id).call("c2").detail == "by mistake"
    assert approvals("cancel", id).exit_code == 1


@pytest.mark.parametrize(
    ("remember", "again", "waits"),
    [
        ("exact", {"name": "Rex", "species": "dog"}, False),
        ("exact", {"name": "Max", "species": "dog"}, True),
        ("endpoint", {"name": "Max", "species": "cat"}, False),
        ("fields=requestBody", {"name": "Rex", "species": "dog"}, False),
        ("fields=requestBody", {"name": "Max", "species": "dog"}, True),
    ],
)
def test_a_remembered_approval_lets_the_like_run_as_it_says(approvals, shop, server, remember, again, waits):
    config = '{"requireApproval": ["http.post:*"]}'
    id = paused(("c1", "createPet", PET), config=config, server=server.url)
    assert approvals("approve", id, "--remember", remember, "--uses", "5", "--until", "P1D").exit_code == 0
    with runtime(config, server=server.url) as made:
        submitted = made.sync.submit([ToolCall("x", "createPet", {"requestBody": again})], caller=Caller("ada"))
    assert (submitted.pause is not None) == waits
    assert len(server.requests) == (not waits)


def test_remembered_approvals_are_listed_and_revoked(approvals, shop):
    id = paused(("c1", "createPet", PET))
    approvals("approve", id, "--remember", "endpoint", "--uses", "3")
    shown = approvals("remembered").stdout.splitlines()
    assert shown[1].split()[1:] == ["createPet", "endpoint", "ada", login(), "3", "-"]
    (one,) = json.loads(approvals("remembered", "--format", "json").stdout)["remembered"]
    assert approvals("revoke", one["id"][:8]).stdout == f"revoked {one['id']}\n"
    assert approvals("remembered").stdout == "nothing is remembered\n"
    assert "revoked" in approvals("remembered", "--all").stdout


def test_an_approval_of_what_is_destructive_cannot_be_remembered(approvals, shop):
    id = paused(("c1", "deletePet", {"petId": "7"}))
    refused = approvals("approve", id, "--remember", "exact")
    assert refused.exit_code == 1
    assert "destructive" in refused.stderr
    assert states(id) == ["pending"]


def test_a_purge_erases_a_persons_content_and_the_log_still_verifies(approvals, toolgen, shop):
    id, other = two(), two(requester="bob")
    done = approvals("purge", "--subject", "ada", "--yes")
    assert done.exit_code == 0
    assert re.search(r"^pauses +1$", done.stdout, re.MULTILINE)
    assert "petId" not in json.dumps([dict(call.arguments) for call in kept(id).calls])
    assert states(other) == ["pending", "pending"]
    assert approvals("show", id).exit_code == 0
    assert toolgen("audit", "verify").exit_code == 0


def test_a_sweep_does_what_is_due(approvals, shop):
    config = '{"requireApproval": ["*"], "approvalTimeout": "PT5M", "timeoutPolicy": "AUTO_REJECT"}'
    id = two(config=config, clock=lambda: datetime.now(UTC) - timedelta(hours=1))
    assert approvals("sweep").stdout == "1 done\n"
    assert states(id) == ["expired", "expired"]
    assert approvals("sweep").stdout == "0 done\n"


@pytest.mark.parametrize(("given", "state"), [(["--approvals", "timed.json"], "approved"), ([], "pending")])
def test_time_approves_only_by_the_config_that_the_pause_was_made_under(approvals, shop, given, state):
    rule = '{"match": "createPet", "approvalTimeout": "PT1H", "timeoutPolicy": "AUTO_APPROVE"}'
    config = f'{{"requireApproval": ["*"], "rules": [{rule}]}}'
    (shop / "timed.json").write_text(config, encoding="utf-8")
    id = paused(("c1", "createPet", PET), config=config, clock=lambda: datetime.now(UTC) - timedelta(hours=2))
    assert approvals("sweep", *given).exit_code == 0
    assert states(id) == [state]


def test_another_store_and_its_key_are_named_by_options_or_the_environment(approvals, shop):
    id = two()
    (shop / "toolgen.db").rename(shop / "other.db")
    (shop / "toolgen.key").rename(shop / "their.key")
    given = ["--key-file", "their.key"]
    assert id in approvals("show", id, "--store", "sqlite:///other.db", *given).stdout
    assert id in approvals("show", id, *given, env={"TOOLGEN_STORE": "sqlite:///other.db"}).stdout
    wrong = approvals("show", id, "--store", "sqlite:///other.db", env={"TOOLGEN_KEY": os.urandom(32).hex()})
    assert (wrong.exit_code, wrong.stdout) == (1, "")
    assert "key" in wrong.stderr
