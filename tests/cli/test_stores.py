"""The command line over both stores: from a call that waits to its answer, and what is wrong with a store."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from postgres import Postgres
from shown import petstore

TOKEN = "tok-0123456789abcdef"
NEW_PET = '{"requestBody": {"name": "Rex", "species": "dog"}}'


@pytest.fixture
def server() -> Iterator[Any]:
    with petstore() as running:
        yield running


def test_from_a_call_that_waits_to_its_answer_every_command_works_on_both_stores_and_is_json(
    toolgen: Callable[..., Any], store_url: str, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.setenv("TOOLGEN_STORE", store_url)
    toolgen("generate", "petstore.yaml")
    sent = ["petstore.tools.yaml", "--server", server.url, "--credential", "bearerAuth=${env:SHOP_TOKEN}"]

    def told(*args: str, code: int = 0) -> Any:
        result = toolgen(*args, "--format", "json")
        assert (result.exit_code, "\x1b" in result.output, TOKEN in result.output) == (code, False, False), (
            result.output
        )
        return json.loads(result.stdout)

    def call() -> str:
        found = re.search("[0-9a-f]{32}", json.dumps(told("call", *sent, "createPet", "--args", NEW_PET, code=3)))
        assert found is not None
        return found[0]

    first, second = call(), call()
    assert {one["id"] for one in told("approvals", "list")["pauses"]} == {first, second}
    assert told("approvals", "show", first[:16])["status"] == "pending"
    told("approvals", "extend", first, "PT2H")
    told("approvals", "approve", first, "--remember", "exact", "--uses", "1")
    told("approvals", "reject", second, "--note", "one is enough")
    assert server.requests == []
    told("call", *sent, "--resume", first)
    told("call", *sent, "--resume", second, code=1)
    assert server.requests == ["POST /v1/pets"]
    (kept,) = told("approvals", "remembered")["remembered"]
    told("approvals", "revoke", kept["id"])
    told("approvals", "cancel", call())
    assert told("approvals", "sweep") == {"changed": 0}
    assert told("approvals", "purge", "--subject", "nobody", "--yes")["erased"]["pauses"] == 0
    told("audit", "verify")
    told("audit", "tail")
    assert json.loads(toolgen("audit", "head").stdout)
    assert [json.loads(line) for line in toolgen("audit", "export").stdout.splitlines()]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://postgres:hunter2@/no_such_database?host={socket}", "does not exist"),
        ("postgresql://no_such_role:hunter2@/postgres?host={socket}", "does not exist"),
        ("postgresql://postgres:hunter2@/postgres?host={socket}/nowhere", "No such file"),
    ],
)
def test_a_database_that_cannot_be_opened_is_said_in_a_line_without_the_password(
    toolgen: Callable[..., Any], postgres: Postgres, monkeypatch: pytest.MonkeyPatch, url: str, says: str
) -> None:
    monkeypatch.setenv("TOOLGEN_KEY", bytes(range(7, 39)).hex())
    for command in (["approvals", "list"], ["audit", "verify"], ["approvals", "sweep"]):
        result = toolgen(*command, "--store", url.format(socket=postgres.socket))
        assert (result.exit_code, result.stdout) == (1, "")
        assert says in result.stderr
        assert "hunter2" not in result.output
        assert len(result.stderr.splitlines()) == 1
