"""Tells a webhook what happened to pauses: from the outbox, at least once, whatever fails and whoever restarts."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from toolgen.approvals.notify import MOST_ATTEMPTS, Notice, Outbox
from toolgen.dispatch.webhook import Webhook, WebhookSender, secret_text
from toolgen.runtime.threads import in_thread

if TYPE_CHECKING:
    from toolgen.approvals.store import Store

AT_ONCE: Final = 20  # messages under way
_log = logging.getLogger("toolgen.approvals")


class Notices:
    """The messages of one webhook."""

    def __init__(self, store: Store, webhook: Webhook) -> None:
        secret = store.keys.subkey("webhook")
        self.secret = webhook.secret or secret_text(secret)
        self._webhook = webhook
        self._outbox = Outbox(store, webhook.url)
        self._sender = WebhookSender(webhook, secret)
        self._outbox.start()

    async def deliver(self) -> int:
        """Send what is due, each message once, those of a pause in order; how many were accepted."""
        while await in_thread(self._outbox.collect):
            pass
        delivered = 0
        while claimed := await in_thread(self._outbox.claim, AT_ONCE):
            by_pause: dict[str, list[Notice]] = {}
            for notice in claimed:
                by_pause.setdefault(notice.pause, []).append(notice)
            delivered += sum(await asyncio.gather(*map(self._in_order, by_pause.values())))
        return delivered

    async def _in_order(self, notices: list[Notice]) -> int:
        return sum([await self._deliver(notice) for notice in notices])

    async def _deliver(self, notice: Notice) -> bool:
        webhook = self._webhook
        body = await in_thread(self._outbox.body, notice, previews=webhook.previews, review_url=webhook.review_url)
        fault = await self._sender.send(notice.id, body) if body is not None else ""
        if not fault or notice.attempt >= MOST_ATTEMPTS:
            await in_thread(self._outbox.done, notice)
        if fault:
            over = "; it is given up" if notice.attempt >= MOST_ATTEMPTS else ""
            told = "webhook %s: message %s failed (attempt %d): %s%s"
            _log.warning(told, webhook.origin, notice.id, notice.attempt, fault, over)
        return body is not None and not fault

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._sender.aclose()
