from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import json
import logging
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from toolgen.errors import CredentialsError
from toolgen.identity.caller import Caller, Secret, bind_caller, current_caller

TOKEN = "tok-5f0c9d"
ORIGIN = "https://host.example"


def caller(**more: Any) -> Caller:
    return Caller("u1", **{"token": TOKEN, "origin": ORIGIN, **more})


def test_the_token_is_in_no_rendering_of_a_caller_or_a_secret() -> None:
    one = caller(context={"region": "eu"})
    secret = Secret(TOKEN)
    shown = [repr(one), str(one), f"{one}", repr([one]), repr(secret), str(secret), f"{secret}"]
    shown += [repr(vars(one))]
    shown += [logging.LogRecord("x", 10, "x", 1, "%s %r", (one, secret), None).getMessage()]
    assert not [text for text in shown if TOKEN in text]
    assert isinstance(one.token, Secret)
    assert one.token.reveal() == TOKEN


def test_the_token_is_in_no_traceback_that_shows_locals() -> None:
    def fail(one: Caller) -> None:
        held = one.token
        raise RuntimeError(f"{held}")

    try:
        fail(caller())
    except RuntimeError as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "held = <secret>" in told
    assert TOKEN not in told


def test_a_pickled_caller_has_no_token_and_a_secret_is_not_pickled_at_all() -> None:
    one = caller(tenant="t", context={"a": [1]})
    content = pickle.dumps(one)
    assert TOKEN.encode() not in content
    again = pickle.loads(content)
    assert again == dataclasses.replace(one, token=None)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(TOKEN))


def test_a_copy_within_the_process_is_the_same_caller() -> None:
    one = caller()
    assert copy.copy(one) is one
    assert copy.deepcopy({"caller": one})["caller"].token == Secret(TOKEN)
    assert len({one, caller()}) == 1


@pytest.mark.parametrize("token", ["", "  ", None, Secret(" ")])
def test_a_blank_token_is_none_and_others_are_trimmed(token: Any) -> None:
    assert caller(token=token).token is None
    assert caller(token=f" {TOKEN}\n").token == caller(token=Secret(f" {TOKEN} ")).token == Secret(TOKEN)


@pytest.mark.parametrize(
    "wrong",
    [
        {"origin": "host.example"},
        {"origin": "ftp://host.example"},
        {"origin": ""},
        {"origin": 5},
        {"token": 5},
        {"token": TOKEN.encode()},
        {"tenant": " "},
        {"tenant": None},
        {"expires": datetime(2026, 1, 1)},
        {"expires": 1767225600},
        {"context": {"a": object()}},
        {"context": {"a": float("nan")}},
        {"context": {5: "a"}},
        {"context": "abc"},
    ],
)
def test_what_a_host_gives_wrongly_is_refused_without_the_token(wrong: dict[str, Any]) -> None:
    with pytest.raises(CredentialsError) as caught:
        caller(**wrong)
    assert TOKEN not in str(caught.value)
    with pytest.raises(CredentialsError, match="subject"):
        Caller(None)  # type: ignore[arg-type]


def test_the_context_is_a_copy_that_nobody_changes() -> None:
    given: dict[str, Any] = {"regions": ["eu"]}
    one = caller(context=given)
    given["regions"].append("us")
    given["more"] = 1
    assert one.context == {"regions": ["eu"]}
    with pytest.raises(TypeError):
        one.context["more"] = 1  # type: ignore[index]
    assert json.dumps(dict(one.context)) == '{"regions": ["eu"]}'


def test_nested_binds_restore_the_outer_one_and_none_hides_it() -> None:
    outer, inner = caller(), Caller("u2")
    assert current_caller() is None
    with bind_caller(outer):
        with bind_caller(inner):
            assert current_caller() is inner
            with bind_caller(None):
                assert current_caller() is None
            assert current_caller() is inner
        assert current_caller() is outer
        with pytest.raises(RuntimeError), bind_caller(inner):
            raise RuntimeError
        assert current_caller() is outer
    assert current_caller() is None


def test_a_thread_sees_the_caller_only_when_it_is_carried() -> None:
    one = caller()
    with ThreadPoolExecutor(1) as pool, bind_caller(one):
        assert pool.submit(current_caller).result() is None
        assert pool.submit(contextvars.copy_context().run, current_caller).result() is one
        assert pool.submit(current_caller).result() is None  # the pooled thread kept nothing


def test_each_task_has_the_caller_it_was_started_under() -> None:
    async def turn(one: Caller | None) -> Caller | None:
        with bind_caller(one):
            await asyncio.sleep(0)
            return await asyncio.create_task(seen())

    async def seen() -> Caller | None:
        return current_caller()

    async def turns() -> list[Caller | None]:
        return list(await asyncio.gather(*map(turn, wanted)))

    wanted = [caller(), Caller("u2"), None]
    assert asyncio.run(turns()) == wanted
