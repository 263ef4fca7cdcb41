from __future__ import annotations

import json
import os
import shutil
import sqlite3

import pytest

SHOWN = "the log is whole: "


@pytest.fixture
def audit(toolgen, folder, monkeypatch):
    """`toolgen audit ...`, over the log of one call that was approved and another that waits."""
    monkeypatch.delenv("TOOLGEN_STORE", raising=False)
    monkeypatch.delenv("TOOLGEN_KEY", raising=False)
    monkeypatch.setenv("SHOP_TOKEN", "tok-0123456789abcdef")
    toolgen("generate", "petstore.yaml")
    for name in ("Rex-the-dog", "Max-the-dog"):
        args = json.dumps({"requestBody": {"name": name, "species": "dog"}})
        credential = ["--credential", "bearerAuth=${env:SHOP_TOKEN}"]
        asked = toolgen("call", "petstore.tools.yaml", "createPet", "--args", args, *credential, "--format", "json")
        assert asked.exit_code == 3
    toolgen("approvals", "approve", json.loads(asked.stdout)["pause"]["id"], "--note", "a-private-note")

    def run(*args: str, **options):
        return toolgen("audit", *args, **options)

    return run


def change(statement: str) -> None:
    """Do to the database what its owner can."""
    with sqlite3.connect("toolgen.db") as connection:
        connection.execute(statement)
    connection.close()


def test_a_whole_log_verifies_and_against_its_head(audit, folder):
    plain = audit("verify")
    assert (plain.exit_code, plain.stderr) == (0, "")
    assert plain.stdout == f"{SHOWN}3 entries; only --head finds whether its end was cut off\n"
    (folder / "head.json").write_text(audit("head").stdout, encoding="utf-8")
    assert audit("verify", "--head", "head.json").stdout == f"{SHOWN}3 entries\n"
    assert audit("verify", "--head", "-", stdin=audit("head").stdout).exit_code == 0
    data = json.loads(audit("verify", "--format", "json").stdout)
    assert data == {"whole": True, "entries": 3, "faults": []}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM toolgen_audit WHERE seq = 2",
        "UPDATE toolgen_audit SET kind = 'seen' WHERE seq = 2",
        "UPDATE toolgen_audit SET details = replace(details, 'approved', 'rejected') WHERE seq = 3",
        "UPDATE toolgen_audit SET seq = 9 WHERE seq = 1",
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_that_was_tampered_with_is_exit_code_1_and_each_fault_is_told(audit, statement, form):
    change(statement)
    result = audit("verify", "--format", form)
    assert result.exit_code == 1
    if form == "json":
        data = json.loads(result.stdout)
        assert (data["whole"], bool(data["faults"])) == (False, True)
    else:
        assert (result.stdout, "error: " in result.stderr) == ("", True)


def test_an_export_verifies_without_the_store_and_says_what_was_done_to_it(audit, folder):
    (folder / "audit.jsonl").write_text(audit("export").stdout, encoding="utf-8")
    (folder / "head.json").write_text(audit("head").stdout, encoding="utf-8")
    for name in ("toolgen.db", "toolgen.db-wal", "toolgen.db-shm"):
        (folder / name).unlink(missing_ok=True)
    given = ("verify", "audit.jsonl", "--key-file", "toolgen.key")
    assert audit(*given, "--head", "head.json").stdout == f"{SHOWN}3 entries\n"
    text = (folder / "audit.jsonl").read_text(encoding="utf-8")
    assert audit("verify", "-", "--key-file", "toolgen.key", stdin=text).exit_code == 0
    (folder / "audit.jsonl").write_text(text.replace("approved", "rejected"), encoding="utf-8")
    edited = audit(*given)
    assert (edited.exit_code, edited.stdout, "entry 3: its details were changed" in edited.stderr) == (1, "", True)
    (folder / "audit.jsonl").write_text("".join(text.splitlines(keepends=True)[:2]), encoding="utf-8")
    assert audit(*given).exit_code == 0
    assert "cut off" in audit(*given, "--head", "head.json").stderr


def test_what_cannot_be_verified_as_an_export_is_told(audit, folder):
    (folder / "audit.jsonl").write_bytes(b"\xff\n")
    for given, said in (
        (["verify", "none.jsonl", "--key-file", "toolgen.key"], "none.jsonl cannot be read"),
        (["verify", "audit.jsonl", "--key-file", "toolgen.key"], "is not what `toolgen audit export` prints"),
        (["verify", "audit.jsonl", "--store", "sqlite:///toolgen.db"], "leave out --store"),
        (["verify", "-", "--head", "-"], "stdin is one file"),
    ):
        result = audit(*given)
        assert (result.exit_code, result.stdout) == (2, ""), given
        assert said in result.stderr
    assert "there is no key" in audit("verify", "audit.jsonl").stderr


def test_a_sweep_keeps_a_head_that_finds_what_was_cut_off_since(audit, toolgen, folder):
    swept = ("approvals", "sweep", "--audit-head", "head.json")
    assert toolgen(*swept).exit_code == 0
    before = (folder / "head.json").read_bytes()
    assert audit("verify", "--head", "head.json").stdout == f"{SHOWN}3 entries\n"
    change("DELETE FROM toolgen_audit WHERE seq = 3")
    failed = toolgen(*swept)
    assert (failed.exit_code, "does not go on from entry 3" in failed.stderr) == (1, True)
    assert (folder / "head.json").read_bytes() == before
    assert audit("verify", "--head", "head.json").exit_code == 1


def test_an_end_that_was_cut_off_is_found_against_the_head(audit, folder):
    (folder / "head.json").write_text(audit("head").stdout, encoding="utf-8")
    change("DELETE FROM toolgen_audit WHERE seq = 3")
    assert audit("verify").exit_code == 0
    cut = audit("verify", "--head", "head.json")
    assert cut.exit_code == 1
    assert "cut off" in cut.stderr


@pytest.mark.parametrize("given", ["", "[]", "{}", "[" * 100_000, '{"seq": "1"}', None])
def test_what_is_no_head_is_wrong_usage(audit, folder, given):
    if given is not None:
        (folder / "head.json").write_text(given, encoding="utf-8")
    result = audit("verify", "--head", "head.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--head: head.json" in result.stderr


def test_a_head_that_somebody_made_up_is_no_head(audit, folder):
    head = json.loads(audit("head").stdout)
    (folder / "head.json").write_text(json.dumps({**head, "seq": head["seq"] - 1}), encoding="utf-8")
    result = audit("verify", "--head", "head.json")
    assert result.exit_code == 1
    assert "not signed with these keys" in result.stderr


def test_another_key_verifies_nothing(audit, folder):
    shutil.copy("toolgen.db", "copy.db")
    result = audit("verify", "--store", "sqlite:///copy.db", env={"TOOLGEN_KEY": os.urandom(32).hex()})
    assert (result.exit_code, result.stdout) == (1, "")
    assert "key" in result.stderr


def test_the_export_is_every_entry_as_a_line_of_json_without_arguments_or_notes(audit):
    lines = audit("export").stdout.splitlines()
    entries = [json.loads(line) for line in lines]
    assert [(one["seq"], one["kind"]) for one in entries] == [(1, "paused"), (2, "paused"), (3, "decided")]
    for hidden in ("the-dog", "a-private-note", "tok-0123"):
        assert hidden not in "".join(lines)
    assert [json.loads(line)["seq"] for line in audit("export", "--after", "2").stdout.splitlines()] == [3]


def test_the_tail_is_the_last_entries(audit):
    shown = audit("tail", "-n", "1").stdout.splitlines()
    assert shown[0].split() == ["entry", "at", "what", "who", "tool", "pause"]
    assert len(shown) == 2
    assert shown[1].startswith("3 ")
    assert "decided" in shown[1]
    assert "createPet" in shown[1]
    assert [one["seq"] for one in json.loads(audit("tail", "--format", "json").stdout)["entries"]] == [1, 2, 3]


def test_without_a_store_there_is_no_log(toolgen, files, monkeypatch):
    monkeypatch.delenv("TOOLGEN_STORE", raising=False)
    for command in ("verify", "export", "tail", "head"):
        result = toolgen("audit", command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "there is no store toolgen.db" in result.stderr
    assert files() == ["petstore.yaml"]
