"""What is kept, sealed, beside a pause: the requester's context, for requests that are built again, and the host's state."""

from __future__ import annotations

import json

from toolgen.approvals.model import Pause
from toolgen.identity.caller import Caller

_NOTHING = b"\0\0\0\2{}\0"


def packed(caller: Caller | None, state: bytes | None) -> bytes:
    """The context of a caller and the state of a host as one."""
    head = json.dumps(dict(caller.context) if caller is not None else {}).encode()
    return len(head).to_bytes(4, "big") + head + (b"\1" + state if state is not None else b"\0")


def requester_of(pause: Pause) -> Caller:
    """The requester as far as a request is built from them: without a token."""
    data = pause.state or _NOTHING
    size = int.from_bytes(data[:4], "big")
    return Caller(pause.requester, tenant=pause.tenant, context=json.loads(data[4 : 4 + size]))


def host_state(pause: Pause) -> bytes | None:
    """The state the host gave with a pause."""
    data = pause.state or _NOTHING
    rest = data[4 + int.from_bytes(data[:4], "big") :]
    return rest[1:] if rest[:1] == b"\1" else None
