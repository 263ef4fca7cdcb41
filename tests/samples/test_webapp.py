"""The sample application: what waits in it outlives the process, and is decided by whoever may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from shown import ROOT, petstore

APP = ROOT / "samples/webapp/app.py"


@contextmanager
def started(shop: str, folder: Path) -> Iterator[httpx2.Client]:
    """The application in a process of its own, which is killed at the end."""
    command = [sys.executable, "-W", "error", str(APP), "--port", "0", "--server", shop]
    command += ["--store", f"sqlite:///{folder / 'webapp.db'}"]
    environ = {**os.environ, "SHOP_TOKEN": "s3cret-token"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            assert process.stdout is not None
            _, _, url = process.stdout.readline().strip().partition("listening on ")
            assert url
            with httpx2.Client(base_url=url, timeout=30, trust_env=False) as client:
                yield client
        finally:
            process.kill()


@pytest.fixture(scope="module")
def shop() -> Iterator[Any]:
    with petstore() as running:
        yield running


@pytest.fixture(scope="module")
def web(shop: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with started(shop.url, tmp_path_factory.mktemp("web")) as client:
        yield client


def ask(web: httpx2.Client, method: str, path: str, who: str | None, body: Any = None) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {who}"} if who else {}
    return web.request(method, path, headers=headers, json=body)


def paused(web: httpx2.Client, pet: str = "8") -> str:
    answer = ask(web, "POST", "/chat", "ada", {"text": f"remove pet {pet}"})
    assert answer.status_code == 202
    return str(answer.json()["pause"])


def test_a_call_waits_over_two_restarts_and_then_runs_once(tmp_path: Path) -> None:
    with petstore() as shop:
        with started(shop.url, tmp_path) as web:
            shown = ask(web, "POST", "/chat", "ada", {"text": "show pet 7"})
            assert (shown.status_code, "Rex" in shown.json()["answer"]) == (200, True)
            id = paused(web, "7")
        with started(shop.url, tmp_path) as web:
            assert [one["id"] for one in ask(web, "GET", "/pauses", "grace").json()] == [id]
            seen = ask(web, "GET", f"/pauses/{id}", "grace").json()
            assert seen["calls"][0]["preview"]["url"].endswith("/pets/7")
            assert ask(web, "POST", f"/pauses/{id}/resume", "ada").status_code == 409
            said = {"verdict": "approved", "note": "He was sold.", "revision": seen["revision"]}
            assert ask(web, "POST", f"/pauses/{id}/decision", "grace", said).status_code == 200
            assert shop.requests == ["GET /v1/pets/7"]  # deciding runs nothing
        with started(shop.url, tmp_path) as web:
            for _ in range(2):
                answer = ask(web, "POST", f"/pauses/{id}/resume", "ada")
                assert answer.status_code == 200
                assert answer.json()["answer"] == "HTTP 204\nNote of the reviewer: He was sold."
        assert shop.requests == ["GET /v1/pets/7", "DELETE /v1/pets/7"]
    assert b"s3cret-token" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("who", "body", "status"),
    [
        ("grace", {"verdict": "yes"}, 400),
        ("grace", {"verdict": "approved", "decider": "grace"}, 400),
        ("grace", [], 400),
        ("ada", {"verdict": "approved"}, 403),
        ("mallory", {"verdict": "approved"}, 404),
        (None, {"verdict": "approved"}, 401),
        ("nobody", {"verdict": "approved"}, 401),
        ("grace", {"verdict": "approved", "revision": 7}, 409),
    ],
)
def test_a_decision_that_does_not_count_has_the_status_of_its_error(
    web: httpx2.Client, shop: Any, who: str | None, body: Any, status: int
) -> None:
    before = list(shop.requests)
    id = paused(web)
    assert ask(web, "POST", f"/pauses/{id}/decision", who, body).status_code == status
    pause = ask(web, "GET", f"/pauses/{id}", "grace").json()
    assert (pause["status"], pause["revision"], shop.requests) == ("pending", 1, before)


@pytest.mark.parametrize("body", [{"text": "remove pet 8", "thread": "x" * 300}, ["remove pet 8"], None])
def test_a_chat_that_is_not_understood_is_the_clients_fault(web: httpx2.Client, body: Any) -> None:
    assert ask(web, "POST", "/chat", "ada", body).status_code == 400


def test_only_the_requester_resumes_and_what_was_rejected_is_not_sent(web: httpx2.Client, shop: Any) -> None:
    id = paused(web)
    assert ask(web, "POST", f"/pauses/{id}/decision", "grace", {"verdict": "rejected", "note": "Keep it."}).is_success
    assert ask(web, "POST", f"/pauses/{id}/decision", "grace", {"verdict": "approved"}).status_code == 409
    assert ask(web, "POST", f"/pauses/{id}/resume", "grace").status_code == 403
    answer = ask(web, "POST", f"/pauses/{id}/resume", "ada").json()["answer"]
    assert "was rejected" in answer
    assert "Keep it." in answer
    assert "DELETE /v1/pets/8" not in shop.requests


def test_a_pause_that_is_not_there_and_one_of_others_are_told_alike(web: httpx2.Client) -> None:
    unknown, others = ask(web, "GET", "/pauses/x", "mallory"), ask(web, "GET", f"/pauses/{paused(web)}", "mallory")
    assert unknown.status_code == others.status_code == 404
    assert unknown.json()["error"].startswith("there is no pause")
    assert others.json()["error"].startswith("there is no pause")
    assert ask(web, "GET", "/pauses", "mallory").json() == []
