from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from toolgen.errors import CredentialsError, CredentialsMissing
from toolgen.identity.caller import Caller, Secret
from toolgen.identity.exchange import Exchange, Exchanges
from toolgen.identity.origin import Origin
from toolgen.identity.references import Reference

THERE = Origin("https", "other.example", 443)
CALLER = Caller("u-1", "tok-5f0c9d", "https://api.example")
TOKEN = (Reference("caller", "token"),)


def exchanged(hook: Exchange, caller: Caller | None = CALLER, origin: Origin = THERE) -> Mapping[Origin, Secret]:
    return asyncio.run(Exchanges({"https://other.example": hook}).tokens(TOKEN, caller, origin))


async def later(caller: Caller, origin: Origin) -> str:
    await asyncio.sleep(0)
    return f" {caller.subject}@{origin.host}\n"


def now(caller: Caller, origin: Origin) -> str:
    return f"{caller.subject}@{origin.host}"


@pytest.mark.parametrize("hook", [later, now])
def test_a_hook_gives_the_token_for_its_origin_from_the_caller(hook: Exchange) -> None:
    assert exchanged(hook) == {THERE: Secret("u-1@other.example")}


def test_a_hook_is_called_only_for_its_origin_and_for_the_callers_token() -> None:
    hooks = Exchanges({"https://other.example:443/": later})
    assert hooks.needed(TOKEN, THERE)
    assert not hooks.needed(TOKEN, Origin("https", "api.example", 443))
    assert not hooks.needed([Reference("caller", "userId"), Reference("env", "X")], THERE)
    assert asyncio.run(hooks.tokens([Reference("env", "X")], None, THERE)) == {}
    assert asyncio.run(Exchanges().tokens(TOKEN, None, THERE)) == {}


def failing(caller: Caller, origin: Origin) -> str:
    assert isinstance(caller.token, Secret)
    raise RuntimeError(f"refused for {caller.token.reveal()}")


@pytest.mark.parametrize(
    ("hook", "caller", "says"),
    [
        (now, None, "no caller is bound"),
        (now, Caller("u", None, "https://api.example"), "the caller has none"),
        (now, replace(CALLER, expires=datetime(2026, 1, 1, tzinfo=UTC)), "has expired"),
        (failing, CALLER, "failed: RuntimeError"),
        (lambda *_: "  ", CALLER, "returned no token"),
        (lambda *_: None, CALLER, "returned no token"),
    ],
)
def test_an_exchange_that_gives_nothing_is_an_error_and_tells_no_token(hook: Any, caller: Any, says: str) -> None:
    with pytest.raises(CredentialsMissing, match=says) as caught:
        exchanged(hook, caller)
    assert "tok-5f0c9d" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_what_is_no_origin_and_no_function_is_refused_all_at_once() -> None:
    hooks: Any = {
        "other.example": now,
        "https://other.example/path": now,
        "https://a.example": "now",
        "https://b.example": now,
        "https://b.example:443": now,
    }
    with pytest.raises(CredentialsError) as caught:
        Exchanges(hooks)
    assert [problem.where for problem in caught.value.problems] == [
        f"exchange['{key}']" for key in hooks if key != "https://b.example"
    ]
