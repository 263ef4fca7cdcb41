"""The published JSON Schema of approval configs, for editors to complete by.

`approvals.schema.json` beside this module is its output:

    python -m toolgen.policy.published > toolgen/policy/approvals.schema.json

Reading does not use it: it says more than a schema can, and a test holds the two together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from toolgen.policy.config import (
    AUTO_APPROVALS,
    MOST_AUTO_APPROVALS,
    MOST_PAUSES,
    PAUSES,
    NoProgress,
    TimeoutPolicy,
    Unmatched,
)
from toolgen.policy.patterns import LONGEST
from toolgen.policy.values import LONGEST_APPROVER, LONGEST_TEXT
from toolgen.tools.files.published import METASCHEMA
from toolgen.tools.naming import RESERVED_SOURCES

_NOT_BLANK = "\\S"
_DURATION = "^(?=.*[1-9])P(?:[0-9]+W|(?:[0-9]+D)?(?:T(?=.)(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\\.[0-9]{1,6})?S)?)?)$"
_PATTERNS = (
    "`http.post:/pets/*` (method and path), `petstore:createPet` or `mcp:*` (source and name), `delete_*` (name)."
)
_EXAMPLE: dict[str, Any] = {
    "requireApproval": ["http.post:*", "http.put:*", "http.patch:*", "http.delete:*"],
    "exempt": ["http.post:/pets/search"],
    "deny": ["http.delete:/owners/*"],
    "unmatched": "requireWrites",
    "rules": [{"match": "http.delete:*", "approvers": ["role:admin"], "pauseReason": "{toolNames} deletes for good"}],
    "timeoutPolicy": "AUTO_REJECT",
    "approvalTimeout": "PT30M",
}


def published_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of an approval config."""
    in_rules = _friction("What nobody has decided when approvalTimeout is over", TimeoutPolicy)
    for_all = _friction(
        "The same for calls whose rule does not say; only a rule lets time approve",
        [policy for policy in TimeoutPolicy if policy is not TimeoutPolicy.AUTO_APPROVE],
    )
    match = {"$ref": "#/$defs/pattern", "description": "The gated calls that the rule is for."}
    rule = {
        "description": "What holds while calls that one pattern matches wait; a rule never gates or ungates.",
        **_object({"match": match, **in_rules}),
        "required": ["match"],
    }
    return {
        "$schema": METASCHEMA,
        "title": "toolgen approval config",
        "description": "What needs a person's approval, what never does, and what holds while a call waits.",
        **_object({**_lists(), **for_all, **_budgets(), **_sources()}),
        "examples": [_EXAMPLE],
        "$defs": {"pattern": _pattern(), "rule": rule, "duration": _duration(), "source": _source()},
    }


def published_text() -> str:
    """The published file's text."""
    return json.dumps(published_schema(), indent=2, ensure_ascii=False) + "\n"


def _lists() -> dict[str, Any]:
    rules = "What holds while calls wait; of the rules that match a call, the most specific."
    return {
        "$schema": {"type": "string", "description": "The address of this schema, for editors."},
        "requireApproval": _patterns("What waits for a person. [] without unmatched switches the gate off."),
        "exempt": _patterns("What runs although requireApproval or unmatched would have it wait."),
        "deny": _patterns("What is refused, whatever else matches it and also when the gate is off."),
        "destructive": _patterns("What counts as destructive, beside every DELETE: time never approves it."),
        "unmatched": _words(
            "What happens to a call that no pattern matches; requireWrites lets reads run and has writes wait.",
            Unmatched,
            Unmatched.require_writes,
        ),
        "rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}, "description": rules},
    }


def _friction(policy: str, policies: Iterable[TimeoutPolicy]) -> dict[str, Any]:
    approvers = "Who may approve: names, or role: and a role; one of them has to."
    self_approval = "Whether who asked for the call may approve it; without it, where no approvers are named."
    return {
        "timeoutPolicy": _words(f"{policy}.", policies, TimeoutPolicy.WAIT_INDEFINITELY),
        "approvalTimeout": _length("How long a call waits, from the pause on."),
        "approvalValidity": _length("How long an approval holds, from the last verdict on; one hour without it."),
        "pauseReason": _text("Why the call waits, for the person who decides; {toolNames} names the tools."),
        "pendingMessage": _text("What is said to the one who waits; {toolNames} names the tools."),
        "approvers": {
            "type": "array",
            "items": {
                "type": "string",
                "maxLength": LONGEST_APPROVER,
                "pattern": "^(?!role:(?:\\s|$))\\S(?:.*\\S)?$",
                "examples": ["alice", "role:admin"],
            },
            "minItems": 1,
            "uniqueItems": True,
            "description": approvers,
        },
        "allowSelfApproval": {"type": "boolean", "description": self_approval},
    }


def _budgets() -> dict[str, Any]:
    return {
        "maxPausesPerTurn": _number("How often one turn may pause.", 1, MOST_PAUSES, PAUSES),
        "maxAutoApprovalsPerTurn": _number(
            "How many calls of one turn time may approve.", 0, MOST_AUTO_APPROVALS, AUTO_APPROVALS
        ),
        "onNoProgress": _words(
            "What happens when the same calls of a turn keep being decided without a person.",
            NoProgress,
            NoProgress.WAIT_FOR_HUMAN,
        ),
    }


def _sources() -> dict[str, Any]:
    return {
        "apis": _unique("source", "Names of APIs that patterns speak of, where the toolsets are not at hand."),
        "mcpServers": _unique("source", "Names of MCP servers that patterns speak of."),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _pattern() -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST,
        "pattern": _NOT_BLANK,
        "description": f"* stands for any run of characters: {_PATTERNS}",
        "examples": ["http.post:*", "http.*:/pets/*", "mcp:read_*", "delete_*"],
    }


def _duration() -> dict[str, Any]:
    text = "An ISO 8601 duration in weeks, or in days and hours, minutes and seconds behind a T."
    return {"type": "string", "pattern": _DURATION, "description": text, "examples": ["PT30M", "P1D", "P2W"]}


def _source() -> dict[str, Any]:
    text = "The name of an API or MCP server: lower-case letters, digits and hyphens, never a reserved source."
    not_reserved = {"not": {"enum": sorted(RESERVED_SOURCES)}}
    return {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}$", **not_reserved, "description": text}


def _patterns(text: str) -> dict[str, Any]:
    return _unique("pattern", text)


def _unique(kind: str, text: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{kind}"}, "uniqueItems": True, "description": text}


def _words(text: str, words: Iterable[StrEnum], default: StrEnum) -> dict[str, Any]:
    return {"enum": [word.value for word in words], "default": default.value, "description": text}


def _length(text: str) -> dict[str, Any]:
    return {"$ref": "#/$defs/duration", "description": text}


def _text(text: str) -> dict[str, Any]:
    limits = {"maxLength": LONGEST_TEXT, "pattern": _NOT_BLANK}
    return {"type": "string", **limits, "description": text}


def _number(text: str, least: int, most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default, "description": text}


if __name__ == "__main__":
    print(published_text(), end="")
