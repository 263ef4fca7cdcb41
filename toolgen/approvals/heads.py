"""Signed heads of the audit log, kept where those who can write the store cannot: in a file, or by a function.

A head is never replaced by one of a log that is shorter or another: it is what tells that something was cut off.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toolgen.approvals.audit import Head, is_signed
from toolgen.approvals.tables import audit
from toolgen.approvals.telemetry import head_failed
from toolgen.errors import StoreError
from toolgen.tools.files.atomic import replace_file

if TYPE_CHECKING:
    from toolgen.approvals.store import Store

HeadTarget = str | PathLike[str] | Callable[[Head], object]
EVERY: Final = timedelta(minutes=1)
_HEX = re.compile(r"[0-9a-f]{1,64}")
_log = logging.getLogger("toolgen.approvals")


def head_of(data: Any) -> Head:
    """The head of JSON data, as `Head.to_dict` makes it. Raises ValueError for what is none."""
    try:
        texts = [data[name] for name in ("mac", "key", "signature")]
        if all(_HEX.fullmatch(one) for one in texts) and type(data["seq"]) is int and type(data["at"]) is float:
            return Head(data["seq"], data["mac"], data["at"], data["key"], data["signature"])
    except (TypeError, KeyError):
        pass
    raise ValueError("it is no head of an audit log")


class Heads:
    """Keeps the head of a store's audit log, in a file that is replaced whole or by a function that is given it.

    The function blocks, and is called in a thread.
    """

    def __init__(self, store: Store, target: HeadTarget) -> None:
        self._store = store
        self._target = target
        self._last: Head | None = None
        self._tried: datetime | None = None

    def keep(self) -> bool:
        """Keep the head, at most once in `EVERY`, if the log has grown; whether it was. What fails is logged."""
        now = self._store.clock()
        if self._tried is not None and self._tried <= now < self._tried + EVERY:
            return False
        self._tried = now
        try:
            return self.write()
        except Exception as error:  # noqa: BLE001 - whatever it is, the sweep goes on
            head_failed()
            said = error.message if isinstance(error, StoreError) else type(error).__name__
            _log.error("the head of the audit log could not be kept: %s", said)
            return False

    def write(self) -> bool:
        """Keep the head now, if the log has grown; whether it was.

        Raises StoreError where the log does not go on from the head that is kept, or the file cannot be written.
        """
        target = self._target
        before = self._last if callable(target) else _read(Path(target))
        head = self._store.head()
        if before is not None:
            self._check(before, head)
            if head.seq == before.seq:
                return False
        if callable(target):
            target(head)
        else:
            replace_file(Path(target), (json.dumps(head.to_dict(), indent=2) + "\n").encode(), StoreError)
        self._last = head
        return True

    def _check(self, before: Head, head: Head) -> None:
        """Raise StoreError where the log does not go on from the head that was kept before."""
        from sqlalchemy import select

        if not is_signed(before, self._store.keys):
            raise StoreError("the one that is kept is not signed with this store's keys, and is left as it is")
        with self._store.database.read() as connection:
            mac = connection.execute(select(audit.c.mac).where(audit.c.seq == before.seq)).scalar()
        if head.seq < before.seq or (before.seq and mac != before.mac):
            raise StoreError(
                f"the log does not go on from entry {before.seq}, whose head is kept: entries were cut off or changed"
            )


def _read(path: Path) -> Head | None:
    """The head in a file; None where there is no file. Raises StoreError for any other file."""
    if not os.path.lexists(path):
        return None
    try:
        return head_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        raise StoreError("the file holds something else than a head, and is left as it is") from None
