"""A call made again while it waits: doors whose wire format has no call ids recognise it by what it is."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from toolgen.request.text import NotWritable, json_text

if TYPE_CHECKING:
    from toolgen.approvals.model import Pause
    from toolgen.identity.caller import Caller
    from toolgen.runtime.core import Runtime


def thread_of(runtime: Runtime, door: str, caller: Caller | None, *parts: Any) -> str:
    """The thread of one requester's calls of one kind: `door:` and a keyed digest that tells nobody what they are.

    Two of the same `parts` (JSON data) by one requester share it; what is no JSON data shares it with nothing.
    """
    who = [runtime.tenant_of(caller), caller.subject if caller is not None else ""]
    try:
        text = json_text([door, *who, *parts])
    except NotWritable:
        return ""
    key = runtime.store.keys.subkey("fingerprint")
    return f"{door}:{hmac.new(key, text.encode('utf-8', 'surrogatepass'), hashlib.sha256).hexdigest()}"


async def waiting(runtime: Runtime, thread: str, caller: Caller | None) -> Pause | None:
    """The pause in which the requester's call of this thread waits already."""
    requester = caller.subject if caller is not None else ""
    found = await runtime.in_store(
        runtime.store.pauses,
        runtime.tenant_of(caller),
        limit=1,
        waiting=True,
        requester=requester,
        thread=thread,
    )
    return found[0] if found else None
