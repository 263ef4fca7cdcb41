"""`toolgen approvals sweep` and what is followed: the real command, a real store, a real receiver."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer, Received, answer, serving
from sqlalchemy import update
from waiting_calls import BOB, YES, Log, config, paused, runtime

from toolgen import Runtime
from toolgen.approvals.store import Store
from toolgen.approvals.tables import pauses
from toolgen.dispatch.webhook import secret_text

TOKEN = "s3cr3t-of-the-hook"
TIMED: dict[str, Any] = {"approvalTimeout": "PT1H", "timeoutPolicy": "AUTO_REJECT"}


@contextmanager
def host(**more: Any) -> Iterator[Runtime]:
    """What a program has: a runtime on the folder's store."""
    clock = more.pop("clock", None)
    store = Store("sqlite:///toolgen.db", **({} if clock is None else {"clock": clock}))
    try:
        yield runtime(Log(), config(**TIMED), store=store, **more)
    finally:
        store.close()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[RawServer]:
    """A receiver that accepts; its URL, which has a secret, is in the environment."""
    with serving(lambda connection: _receive(connection, [204])) as server:
        monkeypatch.setenv("HOOK_URL", f"{server.url}/hook?token={TOKEN}")
        yield server


def _receive(connection: Any, codes: list[int]) -> None:
    """Answer with each code in turn, and then with the last."""
    while connection.receive() is not None:
        connection.send(answer(codes[0], b""))
        if len(codes) > 1:
            codes.pop(0)


def told(server: RawServer) -> list[str]:
    return [json.loads(one.body)["type"].removeprefix("approval.") for one in server.requests]


def is_signed(request: Received, secret: str) -> bool:
    """As a receiver checks it, by the specification alone."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{request.header('webhook-id')}.{request.header('webhook-timestamp')}.".encode() + request.body
    expected = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return request.header("webhook-signature") == expected


Sweep = Callable[..., Any]


@pytest.fixture
def sweep(toolgen: Callable[..., Any]) -> Sweep:
    """`toolgen approvals sweep --webhook ...`, which shows nothing of the secret of the URL."""

    def run(*more: str, code: int = 0) -> Any:
        result = toolgen("approvals", "sweep", "--webhook", "${env:HOOK_URL}", *more)
        assert TOKEN not in result.output
        assert result.exit_code == code, result.output
        return result

    return run


async def waiting(**more: Any) -> str:
    with host(**more) as made:
        return (await paused(made, "an-argument")).id


def run(work: Any) -> Any:
    import asyncio

    return asyncio.run(work)


def test_a_sweep_tells_the_webhook_signed_with_the_stores_key_and_tells_nothing_twice(
    sweep: Sweep, hook: RawServer
) -> None:
    with host():
        assert sweep().stdout == "0 done\n", "there is a store, and from now on it is told"
    id = run(waiting())
    assert json.loads(sweep("--format", "json").stdout) == {"changed": 1}
    (request,) = hook.requests
    assert json.loads(request.body)["data"]["pause"] == id
    assert b"an-argument" not in request.body
    store = Store("sqlite:///toolgen.db")
    assert is_signed(request, secret_text(store.keys.subkey("webhook")))
    store.close()
    assert sweep().stdout == "0 done\n"
    assert told(hook) == ["paused"]


def test_a_sweep_reminds_once_and_tells_previews_where_that_is_asked_for(sweep: Sweep, hook: RawServer) -> None:
    with host():
        sweep("--remind", "PT30M")
    run(waiting(clock=lambda: datetime.now(UTC) - timedelta(minutes=45)))
    sweep("--remind", "PT30M", "--webhook-previews")
    sweep("--remind", "PT30M", "--webhook-previews")
    assert told(hook) == ["paused", "reminded"]
    assert b"an-argument" in hook.requests[-1].body


def test_a_sweep_erases_what_ended_longer_ago_than_is_kept(toolgen: Callable[..., Any], folder: Path) -> None:
    async def rejected(days: int) -> str:
        with host(clock=lambda: datetime.now(UTC) - timedelta(days=days)) as made:
            pause = await paused(made, thread=f"{days}")
            await made.cancel(pause.id, actor="bob")
            return pause.id

    old, new = run(rejected(100)), run(rejected(80))
    assert toolgen("approvals", "sweep", "--retention", "P90D").stdout == "1 done\n"
    with host() as made:
        kept = [dict(made.store.pause(id, "default").calls[0].arguments) for id in (old, new)]
    assert [bool(arguments) for arguments in kept] == [False, True]


def test_a_message_that_is_not_accepted_is_exit_code_1_and_everything_else_is_done(
    toolgen: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch, sweep: Sweep
) -> None:
    with serving(lambda connection: _receive(connection, [500])) as server:
        monkeypatch.setenv("HOOK_URL", f"{server.url}/hook?token={TOKEN}")
        with host():
            sweep()
        id = run(waiting(clock=lambda: datetime.now(UTC) - timedelta(hours=2)))
        failed = sweep(code=1)
        assert failed.stderr.startswith("warning: webhook http://127.0.0.1:")
        assert failed.stdout == "1 done\n", "time was up for the pause"
        assert len(failed.stderr.splitlines()) == len(server.requests) == 2
        with host() as made:
            assert made.store.pause(id, "default").calls[0].state == "expired"
        assert sweep().stderr == "", "it is tried again later, and not now"


def test_a_pause_that_cannot_be_swept_is_exit_code_1_and_the_others_are(
    toolgen: Callable[..., Any], folder: Path
) -> None:
    early = {"clock": lambda: datetime.now(UTC) - timedelta(hours=2)}
    broken, fine = run(waiting(**early)), run(waiting(**early))
    with host() as made, made.store.database.change() as connection:
        connection.execute(update(pauses).where(pauses.c.id == broken).values(data="no JSON"))
    done = toolgen("approvals", "sweep", "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, {"changed": 1})
    (said,) = set(done.stderr.splitlines())
    assert said.startswith(f"warning: pause {broken} could not be swept: ")
    with host() as made:
        assert made.store.pause(fine, "default").calls[0].state == "expired"


@contextmanager
def command(*args: str) -> Iterator[subprocess.Popen[str]]:
    """`toolgen approvals ARGS` as a process, which ends with the test."""
    given = [sys.executable, "-m", "toolgen", "approvals", *args]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def test_every_sweeps_again_and_again_until_it_is_interrupted_which_is_exit_code_130(
    sweep: Sweep, hook: RawServer
) -> None:
    with host():
        sweep()
    first = run(waiting())
    with command("sweep", "--every", "PT0.05S", "--webhook", "${env:HOOK_URL}", "--format", "json") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline()) == {"changed": 1}
        with host() as made:
            run(made.decide(first, YES, decider=BOB))
        assert json.loads(running.stdout.readline()) == {"changed": 1}
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
        assert running.stderr.read() == "interrupted\n"
    assert told(hook) == ["paused", "decided"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where a closed pipe shows at once")
def test_following_ends_when_nobody_reads_any_more_though_nothing_changes(folder: Path) -> None:
    id = run(waiting())
    with command("list", "--follow") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(id[:8])
        running.stdout.close()
        assert running.wait(20) == 141
        assert running.stderr.read() == ""
