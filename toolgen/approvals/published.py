"""The published JSON Schemas of pauses and decisions, for those who show and make them.

`pause.schema.json` and `decision.schema.json` beside this module are its output:

    python -m toolgen.approvals.published pause > toolgen/approvals/pause.schema.json
    python -m toolgen.approvals.published decision > toolgen/approvals/decision.schema.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from toolgen.approvals.model import LONGEST_NOTE, Scope, VerdictKind
from toolgen.approvals.states import CallState
from toolgen.policy.config import TimeoutPolicy
from toolgen.tools.files.published import METASCHEMA

_TIME = {"type": "string", "format": "date-time"}
_RETRY = "Whether the model is asked for a new proposal; only with a rejection."


def pause_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of `Pause.to_dict()`."""
    properties = {
        "id": _text("What the pause is decided and resumed by."),
        "status": {"enum": ["pending", "decided", "done"], "description": "pending: some call waits for a verdict."},
        "tenant": _text("Whose pause it is; only deciders of the same tenant see it."),
        "thread": _text("The conversation."),
        "turn": _text("The turn of the conversation."),
        "requester": _text("The subject the calls are for; they run with that person's credential."),
        "created": {**_TIME, "description": "When the calls paused, UTC."},
        "due": {**_nullable(_TIME), "description": "When time decides; null: never."},
        "timeoutPolicy": {"enum": [one.value for one in TimeoutPolicy], "description": "What time decides then."},
        "reason": _text("Why the calls wait, for the person who decides."),
        "message": _nullable_text("What is said to the one who waits."),
        "rule": _nullable_text("The pattern of the rule that governs timeout and texts."),
        "executed": {"type": "array", "items": {"type": "string"}, "description": "Ids of calls that ran before."},
        "revision": {"type": "integer", "minimum": 1, "description": "Grows with every change."},
        "calls": {"type": "array", "items": {"$ref": "#/$defs/call"}, "minItems": 1, "description": "What waits."},
    }
    return {
        "$schema": METASCHEMA,
        "title": "toolgen pause",
        "description": "Calls of one turn that wait together for a person, as a person reads them.",
        **_object(properties, list(properties)),
        "$defs": {"call": _call(), "vote": _vote()},
    }


def decision_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of what `Decision.from_dict` reads."""
    properties = {
        "verdict": _verdict("For every waiting call that is not listed; nothing but approved approves."),
        "note": _note(),
        "calls": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/verdict"},
            "description": "Verdicts for single calls, by call id.",
        },
        "retry": {"type": "boolean", "default": False, "description": _RETRY},
        "revision": {
            "type": ["integer", "null"],
            "description": "That of the pause that was seen; an older one is refused.",
        },
        "othersWait": {
            "type": "boolean",
            "default": False,
            "description": "Whether calls that are not listed are left waiting.",
        },
    }
    return {
        "$schema": METASCHEMA,
        "title": "toolgen decision",
        "description": "A person's answer to a pause. Who decides is never in it: the host's authenticator says so.",
        **_object(properties, ["verdict"]),
        "examples": [
            {"verdict": "approved"},
            {"verdict": "approved", "calls": {"c2": {"verdict": "rejected", "note": "not this one", "retry": True}}},
            {
                "verdict": "approved",
                "calls": {"c1": {"verdict": "approved", "arguments": {"amount": 5}}},
                "revision": 1,
            },
        ],
        "$defs": {"verdict": _call_verdict(), "remember": _remember()},
    }


def published_text(schema: dict[str, Any]) -> str:
    """The text of a published file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _call() -> dict[str, Any]:
    properties = {
        "id": _text("The model's id of the call."),
        "tool": _text("The tool's name."),
        "source": _text("The API or other source of the tool."),
        "endpoint": _nullable_text("Method and path, such as post:/pets."),
        "reason": _text("The pattern that has it wait."),
        "rule": _nullable_text("The pattern of its own rule."),
        "approvers": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "description": "Groups; somebody of every group has to approve. None: anybody may.",
        },
        "allowSelfApproval": {"type": "boolean", "description": "Whether the requester may approve it."},
        "approvalValidity": _text("How long an approval holds, an ISO 8601 duration."),
        "destructive": {"type": "boolean", "description": "Whether it counts as destructive: time never approves it."},
        "state": {"enum": [state.value for state in CallState], "description": "Where it stands."},
        "votes": {"type": "array", "items": {"$ref": "#/$defs/vote"}, "description": "Verdicts so far."},
        "amended": {"type": "boolean", "description": "Whether a person changed the arguments."},
        "detail": {"type": "string", "description": "Why it ended as it did."},
        "preview": {"type": "object", "description": "What is sent, redacted."},
    }
    return {"description": "One call that waits, or did.", **_object(properties, list(properties))}


def _vote() -> dict[str, Any]:
    properties = {
        "decider": _text("Who; system:timeout for time."),
        "verdict": {"enum": [kind.value for kind in VerdictKind], "description": "What they said."},
        "at": {**_TIME, "description": "When, UTC."},
        "note": _nullable_text("What they said to the model."),
    }
    return {"description": "A verdict that was given.", **_object(properties, list(properties))}


def _call_verdict() -> dict[str, Any]:
    properties = {
        "verdict": _verdict("What is said of this call."),
        "note": _note(),
        "arguments": {
            "type": ["object", "null"],
            "description": "These in the place of the model's, all of them; only with an approval.",
        },
        "retry": {"type": "boolean", "default": False, "description": _RETRY},
        "remember": {"anyOf": [{"$ref": "#/$defs/remember"}, {"type": "null"}], "description": "Allow the like later."},
    }
    return {"description": "A verdict on one call.", **_object(properties, ["verdict"])}


def _remember() -> dict[str, Any]:
    scope = "exact: this very request. fields: this tool with the named arguments as they are. endpoint: any arguments."
    properties = {
        "scope": {"enum": [one.value for one in Scope], "default": Scope.exact.value, "description": scope},
        "fields": {"type": "array", "items": {"type": "string"}, "description": "Names of arguments, for fields."},
        "uses": {"type": ["integer", "null"], "minimum": 1, "description": "How often; null: any number of times."},
        "until": {
            **_nullable(_TIME),
            "description": "Until when, RFC 3339 with a time zone; null: until it is revoked.",
        },
    }
    return {"description": "How an approval is remembered.", **_object(properties, [])}


def _verdict(text: str) -> dict[str, Any]:
    return {"enum": [kind.value for kind in VerdictKind], "description": text}


def _note() -> dict[str, Any]:
    return {"type": ["string", "null"], "maxLength": LONGEST_NOTE, "description": "What the model reads."}


def _text(text: str) -> dict[str, Any]:
    return {"type": "string", "description": text}


def _nullable_text(text: str) -> dict[str, Any]:
    return {"type": ["string", "null"], "description": text}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found


if __name__ == "__main__":
    print(published_text({"pause": pause_schema, "decision": decision_schema}[sys.argv[1]]()), end="")
