from __future__ import annotations

import ast
import getpass
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shown import petstore

import toolgen as package
from toolgen.approvals.model import Pause
from toolgen.approvals.store import Store
from toolgen.cli import call_options
from toolgen.cli.who import login
from toolgen.errors import Problem, UsageError
from toolgen.request.contract import Contract
from toolgen.tools.model import Leaf, Server, ServerVariable, Tool

TOKEN = "tok-0123456789abcdef"
BEARER = "bearerAuth=${env:SHOP_TOKEN}"
NEW_PET = '{"requestBody": {"name": "Rex", "species": "dog"}}'


@pytest.fixture
def server():
    with petstore() as running:
        yield running


@pytest.fixture
def call(toolgen, monkeypatch):
    """`toolgen call petstore.tools.yaml ...` with a token in the environment."""
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.delenv("TOOLGEN_STORE", raising=False)
    monkeypatch.delenv("TOOLGEN_KEY", raising=False)
    toolgen("generate", "petstore.yaml")

    def run(name: str, *more: str, **options):
        result = toolgen("call", "petstore.tools.yaml", name, *more, **options)
        assert TOKEN not in result.output
        return result

    return run


def pauses() -> list[Pause]:
    """Everything in the folder's store."""
    store = Store("sqlite:///toolgen.db")
    try:
        return store.pauses("default")
    finally:
        store.close()


def edit(folder: Path, name: str, change: Callable[[Tool], Tool]) -> None:
    """Change one tool of petstore.tools.yaml."""
    path = folder / "petstore.tools.yaml"
    loaded = package.load_toolset(path)
    tools = tuple(change(tool) if tool.name == name else tool for tool in loaded.tools)
    loaded.model_copy(update={"tools": tools}).save(path)


# the real thing


def test_a_read_is_sent_with_the_credential_and_its_answer_is_printed(call, server):
    result = call("getPet", "--args", '{"petId": "7"}', "--server", server.url, "--credential", BEARER)
    assert (result.exit_code, result.stderr) == (0, "")
    assert server.requests == ["GET /v1/pets/7"]
    head, _, body = result.stdout.partition("\n\n")
    assert head == 'HTTP 200 OK\netag: "1"'
    assert json.loads(body) == server.pets["7"]


def test_json_is_the_result_as_programs_have_it(call, server):
    result = call("getStock", "--server", server.url, "--credential", BEARER, "--format", "json")
    assert json.loads(result.stdout) == {
        "ok": True,
        "sent": "answered",
        "status": 200,
        "mediaType": "application/json",
        "headers": {"deprecation": "@1767225600"},
        "body": {"available": 2, "sold": 1},
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_of_the_api_is_shown_and_is_exit_code_1(call, server, form):
    result = call(
        *["getPet", "--args", '{"petId": "99"}', "--server", server.url, "--credential", BEARER, "--format", form]
    )
    assert result.exit_code == 1
    assert "HTTP 404: There is no such thing: Nothing is at /pets/99." in result.stdout


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_write_waits_for_a_person_is_not_sent_is_kept_and_is_exit_code_3(call, files, server, form):
    result = call("createPet", "--args", NEW_PET, "--server", server.url, "--credential", BEARER, "--format", form)
    assert (result.exit_code, server.requests) == (3, [])
    (waiting,) = pauses()
    assert {"toolgen.db", "toolgen.key"} <= set(files())
    for told in (
        "createPet waits for a person: by 'unmatched'; nothing was sent",
        f"toolgen approvals approve {waiting.id[:8]}",
        f"toolgen call petstore.tools.yaml --resume {waiting.id[:8]}",
    ):
        assert told in result.stderr
    if form == "text":
        assert result.stdout == ""
    else:
        data = json.loads(result.stdout)
        assert (data["refused"], data["ok"], data["pause"]["id"]) == ("gated", False, waiting.id)


def test_what_was_approved_runs_once_when_it_is_resumed(call, toolgen, server):
    options = ["--server", server.url, "--credential", BEARER]
    call("createPet", "--args", NEW_PET, *options)
    (waiting,) = pauses()
    resume = ["call", "petstore.tools.yaml", "--resume", waiting.id[:8], *options]
    early = toolgen(*resume)
    assert (early.exit_code, early.stdout, server.requests) == (3, "", [])
    assert "createPet waits for a person" in early.stderr
    toolgen("approvals", "approve", waiting.id, "--note", "well then")
    for _ in range(2):  # the second time what became of it is told again
        done = toolgen(*resume)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith("HTTP 201 Created\n")
        assert "Note of the reviewer: well then" in done.stdout
    assert server.requests == ["POST /v1/pets"]


def test_what_was_rejected_is_exit_code_1_and_never_runs(call, toolgen, server):
    options = ["--server", server.url, "--credential", BEARER]
    call("createPet", "--args", NEW_PET, *options)
    (waiting,) = pauses()
    toolgen("approvals", "reject", waiting.id, "--note", "no more dogs")
    done = toolgen("call", "petstore.tools.yaml", "--resume", waiting.id, *options, "--format", "json")
    data = json.loads(done.stdout)
    assert (done.exit_code, data["refused"], server.requests) == (1, "rejected", [])
    assert "no more dogs" in data["message"]


def test_another_server_than_the_approved_one_gets_nothing(call, toolgen, server):
    call("createPet", "--args", NEW_PET, "--server", "https://petstore.example/v1", "--credential", BEARER)
    (waiting,) = pauses()
    toolgen("approvals", "approve", waiting.id)
    given = ["--server", server.url, "--credential", BEARER]
    done = toolgen("call", "petstore.tools.yaml", "--resume", waiting.id, *given)
    assert (done.exit_code, server.requests) == (1, [])
    assert "changed since" in done.stderr


def test_resuming_takes_the_context_that_the_call_was_made_with(call, toolgen, folder, server):
    def told(tool: Tool) -> Tool:
        header = (Leaf(name="X-Desk", value="${context:desk}"),)
        return tool.model_copy(update={"request": tool.request.model_copy(update={"header": header})})

    edit(folder, "createPet", told)
    options = ["--server", server.url, "--credential", BEARER]
    assert call("createPet", "--args", NEW_PET, *options, "--context", "desk=north").exit_code == 3
    (waiting,) = pauses()
    toolgen("approvals", "approve", waiting.id)
    assert toolgen("call", "petstore.tools.yaml", "--resume", waiting.id, *options).exit_code == 0
    assert server.requests == ["POST /v1/pets"]


@pytest.mark.parametrize(("verdict", "code", "sent"), [("approve", 0, ["POST /v1/pets"]), ("reject", 1, [])])
def test_waiting_runs_what_is_approved_meanwhile(call, toolgen, folder, server, verdict, code, sent):
    call("getStock", "--dry-run")  # which has generated the toolset
    command = [sys.executable, "-m", "toolgen", "call", "petstore.tools.yaml", "createPet", "--args", NEW_PET]
    command += ["--server", server.url, "--credential", BEARER, "--wait", "--timeout", "60"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert "waits for a person" in running.stderr.readline()
        toolgen("approvals", verdict, pauses()[0].id)
        out, err = running.communicate(timeout=30)
    assert (running.returncode, server.requests) == (code, sent)
    assert out.startswith("HTTP 201 Created") == (code == 0)
    assert code == 0 or "rejected" in err


def test_waiting_in_vain_is_exit_code_3_and_the_call_goes_on_waiting(call, server):
    given = ["--args", NEW_PET, "--server", server.url, "--credential", BEARER]
    result = call("createPet", *given, "--wait", "--timeout", "0.01")
    assert (result.exit_code, result.stdout, server.requests) == (3, "", [])
    assert "it goes on waiting" in result.stderr
    assert [call.state for call in pauses()[0].calls] == ["pending"]


def test_waiting_ends_when_time_decides(call, folder, server):
    config = "{requireApproval: ['http.post:*'], approvalTimeout: PT0.1S, timeoutPolicy: AUTO_REJECT}"
    (folder / "approvals.yaml").write_text(config, encoding="utf-8")
    given = ["--args", NEW_PET, "--approvals", "approvals.yaml", "--server", server.url, "--credential", BEARER]
    result = call("createPet", *given, "--wait", "--timeout", "60")
    assert (result.exit_code, server.requests) == (1, [])
    assert "nobody answered in time" in result.stderr


def test_an_interrupt_while_waiting_says_how_to_go_on(call, folder, server):
    call("getStock", "--dry-run")
    command = [sys.executable, "-m", "toolgen", "call", "petstore.tools.yaml", "createPet", "--args", NEW_PET, "--wait"]
    command += ["--server", server.url, "--credential", BEARER]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert "it runs here" in "".join(running.stderr.readline() for _ in range(4))
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, out, server.requests) == (130, "", [])
    assert f"--resume {pauses()[0].id[:8]}" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("tool", "args", "more"),
    [
        ("getStock", "{}", []),
        ("createPet", NEW_PET, ["--no-gate"]),
        ("createPet", "{}", []),
        ("createPet", NEW_PET, ["--dry-run"]),
        ("createPet", NEW_PET, ["--approvals", "deny.yaml"]),
    ],
)
def test_what_waits_for_nobody_leaves_no_file(call, folder, files, server, tool, args, more):
    (folder / "deny.yaml").write_text("deny: ['*']", encoding="utf-8")
    before = files()
    call(tool, "--args", args, *more, "--server", server.url, "--credential", BEARER)
    assert files() == before


@pytest.mark.parametrize("form", ["option", "environment"])
def test_a_store_that_is_named_has_every_write(call, toolgen, files, server, form):
    url = "sqlite:///writes.db"
    named = ["--store", url] if form == "option" else []
    env = {} if named else {"TOOLGEN_STORE": url}
    given = ["--args", NEW_PET, "--no-gate", "--server", server.url, "--credential", BEARER]
    assert call("createPet", *given, *named, env=env).exit_code == 0
    assert "writes.db" in files()
    entries = json.loads(toolgen("audit", "tail", "--store", url, "--format", "json").stdout)["entries"]
    assert [entry["kind"] for entry in entries] == ["claimed", "ran"]
    assert entries[-1]["details"]["tool"] == "createPet"


def test_a_password_in_the_stores_url_is_not_printed():
    from toolgen.cli.pausing import Session

    session = Session(None, None, None, "x.yaml", "postgresql://me:s3cretpw@db/x", None, 0.0, "text")
    assert "s3cretpw" not in session._place()
    assert "--store postgresql://me:***@db/x" in session._place().replace("'", "")


def test_no_gate_sends_a_write_and_says_that_nobody_is_asked(call, server):
    result = call("createPet", "--args", NEW_PET, "--server", server.url, "--credential", BEARER, "--no-gate")
    assert (result.exit_code, server.requests) == (0, ["POST /v1/pets"])
    assert "location: /v1/pets/10" in result.stdout
    assert "nobody is asked" in result.stderr


@pytest.mark.parametrize(
    ("config", "tool", "code", "says"),
    [
        ("requireApproval: ['http.get:/stock']", "getStock", 3, "waits for a person: by 'http.get:/stock'"),
        ("deny: ['getStock']", "getStock", 1, "is denied: by 'getStock'"),
        ("{requireApproval: ['http.post:*'], exempt: ['http.post:/pets']}", "createPet", 0, "HTTP 201"),
        ("requireApproval: ['http.gte:*']", "getStock", 1, "approvals.yaml"),
    ],
)
def test_an_approval_config_decides(call, folder, server, config, tool, code, says):
    (folder / "approvals.yaml").write_text(config, encoding="utf-8")
    given = ["--args", NEW_PET] if tool == "createPet" else []
    result = call(tool, *given, "--approvals", "approvals.yaml", "--server", server.url, "--credential", BEARER)
    assert result.exit_code == code
    assert says in result.output
    assert len(server.requests) == (code == 0)


def test_arguments_that_are_not_valid_are_exit_code_1_and_told_one_by_one(call, server):
    result = call("listPets", "--args", '{"limit": 0, "statsu": "sold"}', "--server", server.url)
    assert (result.exit_code, result.stdout, server.requests) == (1, "", [])
    assert "/limit: expected at least 1" in result.stderr
    assert "/statsu: this key is not known (did you mean 'status'?)" in result.stderr


def test_without_a_credential_nothing_is_sent_and_the_scheme_is_named(call, server):
    result = call("listPets", "--server", server.url)
    assert (result.exit_code, server.requests) == (1, [])
    assert "bearerAuth" in result.stderr
    assert "--credential" in result.stderr


def test_an_operations_own_private_address_needs_the_option(call, folder, server):
    def moved(tool: Tool) -> Tool:
        return tool.model_copy(update={"request": tool.request.model_copy(update={"server": server.url})})

    edit(folder, "getStock", moved)
    credential = f"bearerAuth@{server.url.removesuffix('/v1')}=${{env:SHOP_TOKEN}}"
    refused = call("getStock", "--credential", credential)
    assert (refused.exit_code, server.requests) == (1, [])
    assert "--allow-private 127.0.0.1" in refused.stderr
    assert call("getStock", "--credential", credential, "--allow-private", "127.0.0.1").exit_code == 0


def test_a_server_that_does_not_listen_is_exit_code_1_and_nothing_was_sent(call, server):
    closed = server.url
    server.shutdown()
    server.server_close()
    result = call("deletePet", "--args", '{"petId": "7"}', "--server", closed, "--credential", BEARER, "--no-gate")
    assert result.exit_code == 1
    assert "nothing was sent: connect error" in result.stderr


def test_an_interrupt_while_a_write_is_under_way_says_that_it_may_have_been_carried_out(call, folder):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        call("getStock", "--dry-run")  # which has generated the toolset
        command = [sys.executable, "-m", "toolgen", "call", "petstore.tools.yaml", "deletePet", "--no-gate"]
        command += ["--args", '{"petId": "7"}', "--server", url, "--credential", BEARER]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as running:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(100).startswith(b"DELETE /pets/7 ")
                running.send_signal(signal.SIGINT)
                out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (130, "")
    assert "may have been sent, and carried out" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(("mode", "code"), [("off", 0), ("warn", 0), ("enforce", 1)])
def test_a_request_that_breaks_the_contract_is_not_sent_where_that_is_enforced(call, server, monkeypatch, mode, code):
    verdict = Contract("failed", "toolset", problems=(Problem("type: expected integer", "/query/limit"),))
    monkeypatch.setattr("toolgen.request.contract.check", lambda request, document=None: verdict)
    result = call("getStock", "--server", server.url, "--credential", BEARER, "--contract", mode)
    assert (result.exit_code, len(server.requests)) == (code, 1 - code)
    assert ("not what the" in result.output) == (mode != "off")


def test_hidden_characters_of_an_answer_do_not_reach_the_terminal(call, server):
    server.pets["7"] = {"id": "7", "name": "\x1b[2JRex\u202e", "note": "\u200b"}
    given = ["--args", '{"petId": "7"}', "--server", server.url, "--credential", BEARER]
    for form in ("text", "json"):
        shown = call("getPet", *given, "--format", form).stdout
        assert not re.search("[\x1b\u202e\u200b]", shown)
        assert r"\u001b[2JRex\u202e" in shown


def test_the_caller_is_the_user_of_the_operating_system_and_has_no_token(call, server, monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert getpass.getuser() == "somebody-else"
    assert login() == pwd.getpwuid(os.getuid()).pw_name
    result = call("getStock", "--server", server.url, "--credential", "bearerAuth=${caller:token}")
    assert (result.exit_code, server.requests) == (1, [])
    assert "${caller:token} needs the caller's token, and the caller has none" in result.stderr


def test_a_context_value_is_sent_where_the_toolset_says_and_missed_where_it_is_not_given(call, folder, server):
    def fixed(tool: Tool) -> Tool:
        (leaf,) = tool.request.path
        path = (leaf.model_copy(update={"value": "${context:owner}"}),)
        properties = {name: one for name, one in tool.parameters["properties"].items() if name != "ownerId"}
        parameters = {**tool.parameters, "properties": properties, "required": []}
        return tool.model_copy(
            update={"parameters": parameters, "request": tool.request.model_copy(update={"path": path})}
        )

    edit(folder, "listOrdersOfOwner", fixed)
    options = ["--server", server.url, "--credential", BEARER]
    assert call("listOrdersOfOwner", *options, "--context", "owner=me/you").exit_code == 0
    assert server.requests == ["GET /v1/owners/me%2Fyou/orders"]
    missing = call("listOrdersOfOwner", *options)
    assert (missing.exit_code, len(server.requests)) == (1, 1)
    assert "owner" in missing.stderr


# without sending


def test_a_dry_run_sends_nothing_and_shows_request_gate_credential_and_contract(call, folder, server):
    (folder / "approvals.yaml").write_text(
        "requireApproval: ['http.post:*']\nrules: [{match: createPet, approvalTimeout: PT5M}]\n", encoding="utf-8"
    )
    result = call(
        *["createPet", "--args", NEW_PET, "--approvals", "approvals.yaml", "--server", server.url, "--dry-run"],
        *["--credential", "bearerAuth=${env:NOT_SET}"],
    )
    assert (result.exit_code, result.stderr, server.requests) == (0, "", [])
    assert result.stdout.startswith(f"POST {server.url}/pets\n")
    for line in (
        '    "species": "dog"',
        "gate         waits for a person: requireApproval[0] is http.post:*",
        "rule         createPet",
        "credentials  bearerAuth: header Authorization from ${env:NOT_SET}",
        "contract     ok, against the toolset",
        "sent         nothing: this is a dry run",
    ):
        assert line in result.stdout.splitlines()


def test_a_dry_run_as_json(call):
    text = call("createPet", "--args", NEW_PET, "--dry-run", "--format", "json", "--credential", BEARER).stdout
    data = json.loads(text)
    assert data["sent"] is False
    assert (data["request"]["method"], data["request"]["url"]) == ("POST", "https://petstore.example/v1/pets")
    assert data["gate"] == {"outcome": "gated", "pattern": "unmatched", "where": "unmatched"}
    assert data["credentials"] == [
        {"scheme": "bearerAuth", "in": "header", "name": "Authorization", "references": ["${env:SHOP_TOKEN}"]}
    ]
    assert data["contract"]["status"] == "ok"


def test_a_dry_run_shows_no_text_beside_a_reference(call):
    shown = call("getStock", "--dry-run", "--credential", "bearerAuth=s3cretprefix-${env:SHOP_TOKEN}").output
    assert "s3cretprefix" not in shown
    assert "bearerAuth: header Authorization from ${env:SHOP_TOKEN}" in shown


def test_a_dry_run_says_what_the_call_would_lack_and_that_no_gate_asks_nobody(call):
    shown = call("deletePet", "--args", '{"petId": "7"}', "--dry-run", "--no-gate").stdout
    assert "gate         off (--no-gate): it runs, and nobody is asked" in shown
    assert "credentials  missing, so that the call would be refused: the request needs credentials" in shown


@pytest.mark.parametrize("status", ["failed", "unchecked"])
@pytest.mark.parametrize(
    ("options", "code"),
    [([], 1), (["--contract", "enforce"], 1), (["--contract", "warn"], 0), (["--contract", "off"], 0)],
)
def test_a_dry_run_whose_request_breaks_the_contract_is_exit_code_1_unless_told_otherwise(
    call, monkeypatch, status, options, code
):
    problem = Problem("type: expected integer", "/query/limit")
    verdict = Contract(status, "toolset", problems=(problem,), left_out=(problem,))
    monkeypatch.setattr("toolgen.request.contract.check", lambda request: verdict)
    result = call("getStock", "--dry-run", *options)
    assert result.exit_code == code
    shown = "unchecked: --contract off" if options[1:] == ["off"] else f"{status}, against the toolset"
    assert f"contract     {shown}" in result.stdout
    assert (code == 1) == ("error: the request" in result.stderr)
    assert options[1:] == ["off"] or "/query/limit: type: expected integer" in result.stdout


def test_without_the_extra_a_dry_run_says_how_to_get_it_and_enforcing_is_wrong_usage(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "openapi_core", None)
    result = call("getStock", "--dry-run")
    assert result.exit_code == 0
    assert "contract     unchecked: pip install 'toolgen[contract]'" in result.stdout
    enforced = call("getStock", "--dry-run", "--contract", "enforce")
    assert enforced.exit_code == 2
    assert "pip install 'toolgen[contract]'" in enforced.stderr


# wrong usage


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ('{"a": 1,\n "b": }', "--args: line 2, column 7: "),
        ('{"a": NaN}', "NaN is not a number JSON has"),
        ('{"a": Infinity}', "Infinity is not a number JSON has"),
        ('{"a": 1, "a": 2}', 'duplicate key "a"'),
        ("[]", "a JSON object"),
        ("null", "a JSON object"),
        ("", "line 1, column 1"),
        ("[" * 100_000, "nested too deep"),
        ("@missing.json", "missing.json cannot be read: No such file"),
        ("@latin1.json", "latin1.json is no UTF-8 text"),
    ],
)
def test_arguments_that_are_no_json_object_are_wrong_usage(call, folder, given, says):
    (folder / "latin1.json").write_bytes(b'{"a": "\xe4"}')
    result = call("getStock", "--args", given)
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr


def test_arguments_come_from_text_a_file_or_stdin_and_integers_are_exact(call, folder):
    text = '\ufeff{"petId": "7", "requestBody": {"price": 123456789012345678901234567890}}'
    (folder / "pet.json").write_text(text, encoding="utf-8")
    for given, stdin in [(text[1:], None), ("@pet.json", None), ("@-", text)]:
        result = call("updatePet", "--args", given, "--dry-run", "--format", "json", stdin=stdin)
        assert json.loads(json.loads(result.stdout)["request"]["body"]["text"]) == {
            "price": 123456789012345678901234567890
        }


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--approvals", "x", "--no-gate"], 2, "cannot stand together"),
        (["--resume", "abcd"], 2, "give no NAME"),
        (["--timeout", "5"], 2, "--timeout is for --wait"),
        (["--wait", "--dry-run"], 2, "nobody is asked"),
        (["--credential", TOKEN], 2, "--credential takes SCHEME=REF"),
        (["--credential", f"{TOKEN}=="], 2, "petstore has no such security scheme; it has bearerAuth"),
        (["--credential", "bearerAut=${env:A}"], 2, "did you mean 'bearerAuth'?"),
        (["--credential", f"bearerAuth={TOKEN}"], 1, "--credential bearerAuth: a secret is not written"),
        (["--credential", f'bearerAuth={{"token": {TOKEN}'], 2, "--credential bearerAuth: line 1, column"),
        (["--credential", "bearerAuth@other=${env:A}"], 2, "SCHEME@https://other.example=REF"),
        (["--credential", BEARER, "--credential", BEARER], 2, "bearerAuth is there twice"),
        (["--server", "ftp://petstore.example"], 1, "no http(s) URL"),
        (["--server-variable", "region"], 2, "--server-variable takes NAME=VALUE"),
        (["--server-variable", "region=eu"], 2, "no server has the variable 'region'"),
        (["--allow-private", "10.1.0.0/8"], 2, "--allow-private: '10.1.0.0/8' has bits behind its prefix"),
        (["--context", "=x"], 2, "--context takes NAME=VALUE"),
        (["--config", "gone.yaml"], 2, "gone.yaml"),
        (["--contract", "strict"], 2, "'strict' is not one of"),
    ],
)
def test_an_option_that_is_wrong_is_told_before_anything_is_sent(call, options, code, says):
    result = call("getStock", *options)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ([], 2, "give the NAME of the tool"),
        (["--resume", "abcd"], 1, "there is no store toolgen.db"),
        (["--resume", "abcd", "--dry-run"], 2, "runs what was approved"),
        (["--resume", "abcd", "--args", "{}"], 2, "give no NAME and no --args"),
    ],
)
def test_what_cannot_be_resumed_is_told_and_leaves_no_file(call, toolgen, files, given, code, says):
    before = files()
    result = toolgen("call", "petstore.tools.yaml", *given)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert files() == before


def test_an_unknown_tool_is_told_with_the_nearest(call):
    result = call("getPets")
    assert result.exit_code == 1
    assert "no tool 'getPets' in 'petstore'; did you mean 'getPet'?" in result.stderr


def test_a_document_is_no_toolset_and_the_error_says_what_makes_one(toolgen):
    result = toolgen("call", "petstore.yaml", "getPet")
    assert result.exit_code == 1
    assert "run `toolgen generate` with it first" in result.stderr


def test_structured_credentials_and_other_origins_are_read():
    toolset = package.generate(
        {
            "openapi": "3.1.0",
            "info": {"title": "T", "version": "1"},
            "servers": [{"url": "https://api.example"}],
            "paths": {"/x": {"get": {"security": [{"basic": []}, {"bearer": []}]}}},
            "components": {
                "securitySchemes": {
                    "basic": {"type": "http", "scheme": "basic"},
                    "bearer": {"type": "http", "scheme": "bearer"},
                }
            },
        }
    )
    given = ['basic={"username": "me", "password": "${env:PW}"}', "bearer@https://other.example:8443=${env:B}"]
    found = call_options.credentials(given, toolset)
    assert found == {
        "basic": {"username": "me", "password": "${env:PW}"},
        "https://other.example:8443": {"bearer": "${env:B}"},
    }
    over = call_options.merged({"bearer": "${env:A}", "https://other.example:8443": {"basic": "x"}}, found)
    assert over["bearer"] == "${env:A}"
    assert set(over["https://other.example:8443"]) == {"basic", "bearer"}
    with pytest.raises(UsageError, match="twice"):
        call_options.credentials([given[1], given[1]], toolset)


# toolgen.yaml


def config(folder: Path, name: str = "toolgen.yaml", **api: object) -> None:
    text = json.dumps({"apis": {"petstore": {"spec": "petstore.yaml", **api}}, "http": {"total": 5}})
    (folder / name).write_text(text, encoding="utf-8")


def test_the_current_folders_toolgen_yaml_gives_credentials_for_its_own_file(call, folder, server):
    config(folder, credentials={"bearerAuth": "${env:SHOP_TOKEN}"})
    assert call("getStock", "--server", server.url).exit_code == 0
    assert server.requests == ["GET /v1/stock"]


def test_a_file_that_only_has_the_name_of_an_api_gets_no_credentials_unless_the_config_is_named(
    call, toolgen, folder, server, monkeypatch
):
    config(folder, credentials={"bearerAuth": "${env:SHOP_TOKEN}"})
    (folder / "petstore.tools.yaml").rename(folder / "other.tools.yaml")
    given = ["call", "other.tools.yaml", "getStock", "--server", server.url]
    refused = toolgen(*given)
    assert (refused.exit_code, server.requests) == (1, [])
    assert "note: no API of toolgen.yaml is used" in refused.stderr
    assert toolgen(*given, "--config", "toolgen.yaml").exit_code == 0
    config(folder, "else.yaml")
    text = (folder / "else.yaml").read_text(encoding="utf-8").replace('"petstore":', '"petstor":')
    (folder / "else.yaml").write_text(text, encoding="utf-8")
    unknown = toolgen(*given, "--config", "else.yaml")
    assert unknown.exit_code == 2
    assert "has no API 'petstore'; did you mean 'petstor'?" in unknown.stderr


def test_an_option_comes_before_what_toolgen_yaml_says(call, folder):
    config(folder, credentials={"bearerAuth": "${env:FROM_FILE}"})
    assert "from ${env:FROM_FILE}" in call("getStock", "--dry-run").stdout
    assert "from ${env:SHOP_TOKEN}" in call("getStock", "--dry-run", "--credential", BEARER).stdout


def test_the_settings_of_sending_hold(call, folder, server):
    config(folder, credentials={"bearerAuth": "${env:SHOP_TOKEN}"})
    text = (folder / "toolgen.yaml").read_text(encoding="utf-8")
    (folder / "toolgen.yaml").write_text(text.replace('"total": 5', '"maxResultChars": 100'), encoding="utf-8")
    server.pets["7"] = {"id": "7", "name": "R" * 1_000}
    result = call("getPet", "--args", '{"petId": "7"}', "--server", server.url)
    assert "cut to 100 characters" in result.stdout


def test_servers_variables_and_private_ranges_of_toolgen_yaml_hold_with_those_of_options(call, folder, server):
    variables = {"port": ServerVariable(default="80"), "version": ServerVariable(default="v2")}
    host = Server(url="http://127.0.0.1:{port}/{version}", variables=variables)

    def moved(tool: Tool) -> Tool:
        return tool.model_copy(update={"request": tool.request.model_copy(update={"server": host})})

    edit(folder, "getStock", moved)
    origin = server.url.removesuffix("/v1")
    config(
        folder,
        credentials={origin: {"bearerAuth": "${env:SHOP_TOKEN}"}},
        serverVariables={"port": origin.rpartition(":")[2], "version": "v3"},
        allowPrivate=["127.0.0.1"],
    )
    result = call("getStock", "--server-variable", "version=v1", "--allow-private", "10.0.0.0/8")
    assert (result.exit_code, server.requests) == (0, ["GET /v1/stock"]), result.output


def test_switched_off_caller_references_hold_for_the_toolset_too(call, folder):
    def told(tool: Tool) -> Tool:
        header = (Leaf(name="X-User", value="${caller:userId}"),)
        return tool.model_copy(update={"request": tool.request.model_copy(update={"header": header})})

    edit(folder, "getStock", told)
    config(folder)
    assert "${caller:userId}" in call("getStock", "--dry-run").stdout
    config(folder, callerReferences=False)
    refused = call("getStock", "--dry-run")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "${caller:userId} is switched off" in refused.stderr


def test_switched_off_caller_references_and_unknown_schemes_are_told_with_their_lines(call, folder):
    (folder / "toolgen.yaml").write_text(
        "apis:\n  petstore:\n    spec: petstore.yaml\n    callerReferences: false\n"
        f"    credentials:\n      bearerAuth: ${{caller:token}}\n      bearer: {TOKEN}\n",
        encoding="utf-8",
    )
    result = call("getStock")
    assert result.exit_code == 2
    assert "toolgen.yaml:6: apis.petstore.credentials.bearerAuth: " in result.stderr
    assert "toolgen.yaml:7: apis.petstore.credentials.bearer: the document has no security scheme" in result.stderr


# the one way to an API


def test_nothing_but_the_runtime_calls_a_dispatcher_and_the_command_line_makes_one_for_it():
    root = Path(package.__file__).parent
    made: list[str] = []
    for path in sorted(root.rglob("*.py")):
        if path.parent.name in ("runtime", "dispatch"):
            continue
        in_cli = path.parent.name == "cli"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            used = node.func if isinstance(node, ast.Call) else node if in_cli else None
            if isinstance(used, ast.Attribute):
                sending = used.attr in {"call", "acall", "send", "asend", "_call"}
                # the module of the command, and the calls of a pause; an MCP server's session, of a source
                harmless = {"session.call"} if path.name == "mcp_client.py" else {"call.call", "pause.call"}
                assert not sending or ast.unparse(used) in harmless, path
            elif isinstance(used, ast.Name) and isinstance(node, ast.Call):
                assert not (in_cli and used.id in {"getattr", "ApiSource"}), path
                made += [path.name] if used.id == "Dispatcher" else []
            elif isinstance(node, ast.ImportFrom) and in_cli and (node.module or "").startswith("toolgen.dispatch"):
                assert {one.name for one in node.names} <= {"Dispatcher", "ContractMode", "Http", "Allowed"}, path
    assert made == ["upstream.py"]
