"""Webhooks: told what happened and no argument, signed, at least once, and never in the way of a pause."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from raw_server import RawServer, Received, answer, answering, serving
from waiting_calls import ADA, BOB, YES, Log, config, paused, runtime, until

from toolgen import Runtime
from toolgen.approvals import notify
from toolgen.approvals.store import Store
from toolgen.approvals.tables import meta, outbox
from toolgen.dispatch.webhook import Webhook, secret_text, signature
from toolgen.errors import UsageError
from toolgen.identity.keys import Keys
from toolgen.testing import Clock, memory_store

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def server() -> Iterator[RawServer]:
    with serving(answering(lambda _: answer(204, b""))) as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


def told(server: RawServer) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in server.requests]


def types(server: RawServer) -> list[str]:
    return [one["type"].removeprefix("approval.") for one in told(server)]


def waiting(made: Runtime) -> int:
    from sqlalchemy import func, select

    with made.store.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(outbox)).scalar_one())


def is_signed(request: Received, secret: str) -> bool:
    """As a receiver checks it, by the specification alone."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{request.header('webhook-id')}.{request.header('webhook-timestamp')}.".encode() + request.body
    expected = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return request.header("webhook-signature") == expected


def test_the_signature_is_that_of_the_specification_s_example() -> None:
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    found = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_happens_to_a_pause_is_told_with_who_and_what_and_no_argument(server: RawServer) -> None:
    async def run() -> None:
        hook = Webhook(f"{server.url}/hook?token=s3cr3t", review_url="https://review.example/p/{id}")
        made = runtime(Log(), config(approvalTimeout="PT1H", timeoutPolicy="AUTO_REJECT"), webhook=hook)
        pause = await paused(made, "an-argument")
        await made.sweep()
        await made.decide(pause.id, YES, decider=BOB)
        await made.resume(pause.id, caller=ADA)
        await made.sweep()
        assert types(server) == ["paused", "decided", "finished"]
        first = told(server)[0]["data"]
        assert pause.due is not None
        assert first == {
            "pause": pause.id,
            "tenant": "default",
            "requester": "ada",
            "status": "pending",
            "tools": ["note"],
            "revision": 1,
            "due": pause.due.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "calls": [{"id": "c0", "tool": "note", "source": "builtin", "state": "pending"}],
            "review": f"https://review.example/p/{pause.id}",
        }
        assert b"an-argument" not in b"".join(one.raw for one in server.requests)
        assert waiting(made) == 0
        await made.aclose()

    asyncio.run(run())


def test_previews_are_told_only_where_that_is_asked_for(server: RawServer) -> None:
    async def run() -> None:
        made = runtime(Log(), webhook=server.url, webhook_previews=True)
        await paused(made, "an-argument")
        await made.sweep()
        assert told(server)[0]["data"]["calls"][0]["preview"]["arguments"] == {"text": "an-argument"}
        await made.aclose()

    asyncio.run(run())


@pytest.mark.parametrize("secret", [None, SECRET])
def test_messages_are_signed_with_the_store_s_key_or_one_s_own_secret(server: RawServer, secret: str | None) -> None:
    async def run() -> None:
        made = runtime(Log(), webhook=Webhook(server.url, secret))
        await paused(made)
        await made.sweep()
        (request,) = server.requests
        assert made.webhook_secret == (secret or secret_text(made.store.keys.subkey("webhook")))
        assert is_signed(request, made.webhook_secret)
        assert not is_signed(request, secret_text(b"x" * 32))
        assert request.header("content-type") == "application/json"
        await made.aclose()

    asyncio.run(run())
    assert runtime(Log()).webhook_secret is None


def test_each_kind_of_end_is_told_as_what_it_is(server: RawServer, clock: Clock) -> None:
    async def run() -> None:
        given = config(approvalTimeout="PT10M", timeoutPolicy="AUTO_REJECT")
        made = runtime(Log(), given, store=memory_store(clock), webhook=server.url, remind=timedelta(minutes=2))
        expires, cancelled = await paused(made, thread="1"), await paused(made, thread="2")
        await made.cancel(cancelled.id, actor="bob")
        clock.move(timedelta(minutes=9))
        await made.extend(expires.id, clock.now + timedelta(minutes=1), actor="bob")
        await made.sweep()
        clock.move(timedelta(minutes=2))
        await made.sweep()
        by_pause = {
            one.id: [m["type"] for m in told(server) if m["data"]["pause"] == one.id] for one in (expires, cancelled)
        }
        assert sorted(by_pause[cancelled.id]) == ["approval.cancelled", "approval.paused"]
        assert sorted(by_pause[expires.id]) == [
            "approval.expired",
            "approval.extended",
            "approval.paused",
            "approval.reminded",
        ]
        await made.aclose()

    asyncio.run(run())


def test_a_message_that_fails_is_tried_again_later_and_later_with_the_same_id(clock: Clock) -> None:
    statuses = [500, 301, 429, 200]

    async def run(server: RawServer) -> None:
        made = runtime(Log(), store=memory_store(clock), webhook=server.url)
        await paused(made)
        await made.sweep()
        for number, seconds in enumerate((5, 15, 45), 1):
            clock.move(timedelta(seconds=seconds - 1))
            await made.sweep()
            assert len(server.requests) == number, "not before its time"
            clock.move(timedelta(seconds=1))
            await made.sweep()
            assert len(server.requests) == number + 1
        assert waiting(made) == 0
        assert len({one.header("webhook-id") for one in server.requests}) == 1
        assert made.webhook_secret is not None
        assert all(is_signed(one, made.webhook_secret) for one in server.requests)
        await made.aclose()

    with serving(answering(lambda _: answer(statuses.pop(0), b"", ("Location", "/elsewhere")))) as server:
        asyncio.run(run(server))


def test_a_message_is_given_up_in_the_end(server: RawServer, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgen.runtime.notices.MOST_ATTEMPTS", 2)
    server.script = answering(lambda _: answer(500))

    async def run() -> None:
        made = runtime(Log(), store=memory_store(clock), webhook=server.url)
        await paused(made)
        for _ in range(4):
            await made.sweep()
            clock.move(timedelta(days=1))
        assert (len(server.requests), waiting(made)) == (2, 0)
        await made.aclose()

    asyncio.run(run())


def test_what_was_accepted_is_counted_and_what_is_given_up_is_said_once(
    server: RawServer, clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgen.runtime.notices.MOST_ATTEMPTS", 2)

    async def run() -> None:
        made = runtime(Log(), store=memory_store(clock), webhook=server.url)
        notices = made.life.notices
        assert notices is not None
        for thread in ("1", "2"):
            await paused(made, thread=thread)
        assert await notices.deliver() == 2
        assert await notices.deliver() == 0
        server.script = answering(lambda _: answer(500))
        await paused(made, thread="3")
        for given_up in (False, True):
            caplog.clear()
            assert await notices.deliver() == 0
            assert ["it is given up" in one.getMessage() for one in caplog.records] == [given_up]
            clock.move(timedelta(days=1))
        await made.aclose()

    asyncio.run(run())


def test_of_a_pause_that_is_gone_nothing_is_told(server: RawServer, clock: Clock) -> None:
    from toolgen.approvals.audit import Entry

    async def run() -> None:
        made = runtime(Log(), store=memory_store(clock), webhook=server.url)
        notices = made.life.notices
        assert notices is not None
        made.store.record([Entry("paused", "default", "ada", "gone")])
        assert (await notices.deliver(), server.requests, waiting(made)) == (0, [], 0)
        await made.aclose()

    asyncio.run(run())


def test_what_was_not_delivered_is_delivered_by_the_next_process_once(store_url: str, clock: Clock) -> None:
    up = False

    async def run(server: RawServer) -> None:
        nonlocal up
        first = runtime(Log(), store=Store(store_url, clock=clock), webhook=server.url)
        failed = await paused(first, thread="1")
        await first.sweep()
        untold = await paused(first, thread="2")  # and the process ends before anything is sent
        await first.aclose()
        first.store.close()
        server.requests.clear()
        up = True
        clock.move(timedelta(minutes=1))
        many = [runtime(Log(), store=Store(store_url, clock=clock), webhook=server.url) for _ in range(3)]
        await asyncio.gather(*(one.sweep() for one in many))
        assert sorted(one["data"]["pause"] for one in told(server)) == sorted([failed.id, untold.id])
        for one in many:
            await one.aclose()
            one.store.close()

    with serving(answering(lambda _: answer(200 if up else 503))) as server:
        asyncio.run(run(server))


def test_what_other_processes_decide_is_told_too(store_url: str, server: RawServer) -> None:
    async def run() -> None:
        watching = runtime(Log(), store=Store(store_url), webhook=server.url)
        plain = runtime(Log(), store=Store(store_url))
        pause = await paused(plain)
        await plain.decide(pause.id, YES, decider=BOB)
        await watching.sweep()
        assert sorted(types(server)) == ["decided", "paused"]
        await watching.aclose()
        for one in (watching, plain):
            one.store.close()

    asyncio.run(run())


def test_what_happened_before_there_was_a_webhook_is_not_told(store_url: str, server: RawServer) -> None:
    async def run() -> None:
        store = Store(store_url)
        await paused(runtime(Log(), store=store))
        made = runtime(Log(), store=store, webhook=server.url)
        await made.sweep()
        assert server.requests == []
        await made.aclose()
        store.close()

    asyncio.run(run())


def test_a_webhook_that_hangs_or_is_gone_holds_up_no_pause_and_no_decision() -> None:
    async def run(server: RawServer) -> None:
        log = Log()
        async with runtime(log, webhook=server.url) as made:
            await paused(made, thread="1")
            await until(server.came.is_set)  # it hangs from here on
            pause = await paused(made, thread="2")
            await made.decide(pause.id, YES, decider=BOB)
            async with asyncio.timeout(5):
                assert (await made.wait(pause.id, caller=ADA))["c0"].ok

    def hang(connection: Any) -> None:
        connection.receive()
        connection.hold()

    with serving(hang) as server:
        asyncio.run(run(server))


def test_failures_are_logged_without_path_query_secret_or_answer(
    caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    async def run(server: RawServer) -> None:
        made = runtime(Log(), store=memory_store(clock), webhook=Webhook(f"{server.url}/s3cr3t-path?t=s3cr3t", SECRET))
        await paused(made, "an-argument")
        await made.sweep()
        await made.aclose()

    with serving(answering(lambda _: answer(500, b"s3cr3t-answer"))) as server, caplog.at_level(logging.DEBUG):
        asyncio.run(run(server))
    assert "status 500" in caplog.text
    assert server.url in caplog.text
    for secret in ("s3cr3t", SECRET, SECRET[6:], "an-argument"):
        assert secret not in caplog.text


def test_an_address_that_is_not_open_is_not_reached(caplog: pytest.LogCaptureFixture, server: RawServer) -> None:
    async def run(**options: Any) -> None:
        url = server.url.replace("127.0.0.1", "hooks.internal.example")
        from toolgen.dispatch import transport

        async def resolve(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transport, "resolve", resolve)
            made = runtime(Log(), webhook=Webhook(url, **options))
            await paused(made)
            await made.sweep()
            await made.aclose()

    asyncio.run(run())
    assert server.connections == 0
    assert "AddressRefused" in caplog.text
    asyncio.run(run(allow_private=["127.0.0.1"]))
    assert server.connections == 1


def test_the_database_holds_neither_the_url_nor_the_secret(server: RawServer) -> None:
    made = runtime(Log(), webhook=Webhook(f"{server.url}/s3cr3t", SECRET))
    asyncio.run(paused(made))
    assert notify.Outbox(made.store, f"{server.url}/s3cr3t").collect() == 1
    from sqlalchemy import select

    with made.store.database.read() as connection:
        text = f"{connection.execute(select(meta)).all()} {connection.execute(select(outbox)).all()}"
    assert "webhook" in text
    for secret in (server.url, "s3cr3t", SECRET):
        assert secret not in text


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("ftp://a.example/x", None),
        ("https://user:pass@a.example/s3cr3t", None),
        ("s3cr3t", None),
        ("https://a.example/", "s3cr3t"),
        ("https://a.example/", "whsec_c2hvcnQ="),
        ("https://a.example/", "whsec_***"),
    ],
)
def test_a_url_or_a_secret_that_is_not_valid_is_refused_without_being_shown(url: str, secret: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        Webhook(url, secret)
    assert "s3cr3t" not in str(caught.value)
    assert "pass" not in str(caught.value)


def test_neither_url_nor_secret_is_in_a_repr() -> None:
    found = repr(Webhook("https://a.example/s3cr3t", SECRET))
    assert "s3cr3t" not in found
    assert SECRET not in found


def test_each_webhook_of_a_store_is_told_everything(server: RawServer) -> None:
    async def run(other: RawServer) -> None:
        store = Store(None, Keys(bytes(range(32))))
        made = [runtime(Log(), store=store, webhook=one.url) for one in (server, other)]
        await paused(made[0])
        for one in made:
            await one.sweep()
            await one.aclose()
        assert types(server) == types(other) == ["paused"]

    with serving(answering(lambda _: answer(200))) as other:
        asyncio.run(run(other))
