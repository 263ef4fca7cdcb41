"""Asking the user of an MCP client, where the config says that who asks may approve the call themselves.

A client answers for its user, and nobody can check that it asked them: so this is no second pair of eyes. It is offered
only for calls without approvers whose config allows self-approval, and what comes back is a decision of the requester
like any other, held to the same rules. Elicitation: https://modelcontextprotocol.io/specification (2026-07-28, in the
result of a call; before it, a request of the server's own).
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolgen.approvals.model import Decider, Decision, Pause
from toolgen.errors import ApprovalError, ToolgenError
from toolgen.identity.caller import Caller
from toolgen.request.render import as_text, from_dict

if TYPE_CHECKING:
    from toolgen.runtime.core import Runtime

_KEY: Final = "approval"
_LONGEST: Final = 8_000  # characters of what is shown: nothing is approved that is not shown whole
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Send it", "description": "once, as it is shown"}},
    "required": ["approve"],
}


def boundary(name: str) -> RequestStateBoundary:
    """What seals the state that a client carries back: to this process, the request, and who is behind it."""
    return RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=name)


async def asked(runtime: Runtime, context: Any, caller: Caller | None, approval: str, since: datetime) -> Any:
    """Ask about an approval that is not older than the call, once: an InputRequiredResult for a client of today, True where an older one has answered, and
    None where nobody may be asked, or nobody answered."""
    pause = await _own(runtime, caller, approval)
    if pause is None or caller is None or pause.created < since or not _has_forms(context.session.client_capabilities):
        return None
    told = _told(pause)
    if told is None:
        return None
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        params = types.ElicitRequestFormParams(message=told, requested_schema=_SCHEMA)
        state = json.dumps([pause.id, pause.revision])
        return types.InputRequiredResult(input_requests={_KEY: types.ElicitRequest(params=params)}, request_state=state)
    try:
        found = await context.session.elicit_form(told, _SCHEMA, related_request_id=context.request_id)
    except Exception:  # noqa: BLE001 - a client that cannot be asked after all: the call waits
        return None
    return await _decided(runtime, pause, pause.revision, caller, found)


async def answered(runtime: Runtime, caller: Caller | None, state: str, responses: Any) -> str | None:
    """Take a client's answer to what it was asked: the approval's id; None for a state of nobody's.

    `state` has come through the boundary.
    """
    try:
        approval, revision = json.loads(state)
    except (ValueError, TypeError):
        return None
    if not isinstance(approval, str) or type(revision) is not int:
        return None
    pause = await _own(runtime, caller, approval)
    if pause is not None and caller is not None:
        await _decided(runtime, pause, revision, caller, (responses or {}).get(_KEY))
    return approval


async def _own(runtime: Runtime, caller: Caller | None, approval: str) -> Pause | None:
    """The caller's own pause, if all that waits in it may be approved by who asked for it."""
    if caller is None:
        return None
    try:
        pause: Pause = await runtime.in_store(runtime.store.pause, approval, caller.tenant)
    except ApprovalError:
        return None
    free = all(not call.terms.approvers and call.terms.allow_self_approval for call in pause.waiting)
    return pause if pause.waiting and pause.requester == caller.subject and free else None


def _has_forms(client: types.ClientCapabilities | None) -> bool:
    """Whether the client can show its user a form; one that names no kind of question can."""
    can = client.elicitation if client is not None else None
    return can is not None and (can.form is not None or can.url is None)


def _told(pause: Pause) -> str | None:
    """What is asked; None for a request that cannot be shown whole."""
    texts = []
    for call in pause.waiting:
        if "method" not in call.preview:
            texts.append(json.dumps(dict(call.preview), indent=2, ensure_ascii=True))
            continue
        preview = from_dict(call.preview)
        if preview.cuts:
            return None
        texts.append(as_text(preview))
    told = "\n\n".join([pause.reason, *texts, "Shall this be sent?"])
    return told if len(told) <= _LONGEST else None


async def _decided(runtime: Runtime, pause: Pause, revision: int, caller: Caller, found: Any) -> bool | None:
    """Write down what a client answered; None for anything but a yes or a no: then it waits."""
    action = getattr(found, "action", None)
    content = getattr(found, "content", None) or {}
    if action == "accept" and content.get("approve") is True:
        verdict = "approved"
    elif action == "decline" or (action == "accept" and content.get("approve") is False):
        verdict = "rejected"
    else:
        return None
    try:
        decider = Decider(caller.subject, tenant=caller.tenant)
        await runtime.decide(pause.id, Decision(verdict, revision=revision), decider=decider)
    except ToolgenError:  # it changed meanwhile, or is not theirs to decide after all
        return None
    return True
