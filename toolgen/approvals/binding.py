"""What an approval is bound to: change any of it, and the approved call does not run."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolgen.identity.keys import Keys
from toolgen.policy.config import ApprovalConfig
from toolgen.policy.gate import Gate

# What decides; texts for people do not.
_PROSE: Final = ("pauseReason", "pendingMessage")


def gating_digest(gate: Gate) -> str:
    """SHA-256 over everything of a gate's layers that decides: patterns, `unmatched`, approvers, timeouts."""
    layers = [_deciding(layer) for layer in gate.layers]
    return hashlib.sha256(json.dumps(layers, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def binding(
    keys: Keys, *, fingerprint: str, tool: str, gating: str, requester: str, tenant: str, credential: str
) -> str:
    """HMAC over the fingerprint of the request, the digests of tool, gating and unresolved credential, requester
    and tenant; 64 hex digits."""
    parts = [fingerprint, tool, gating, requester, tenant, credential]
    return _keyed(keys, "binding", parts)


def batch_fingerprint(keys: Keys, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """The keyed digest of a batch's (tool, arguments), whatever their order and call ids."""
    lines = sorted(json.dumps([name, arguments], sort_keys=True, separators=(",", ":")) for name, arguments in calls)
    return _keyed(keys, "batch", lines)


def arguments_digest(keys: Keys, arguments: Any) -> str | None:
    """The keyed digest of a call's arguments, for the audit log; None for what is no JSON data."""
    try:
        text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None
    return _keyed(keys, "arguments", [text])


def _keyed(keys: Keys, purpose: str, parts: list[str]) -> str:
    text = json.dumps([purpose, *parts], separators=(",", ":"))
    return hmac.new(keys.subkey("fingerprint"), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _deciding(layer: ApprovalConfig) -> Any:
    if layer.unreadable_reason is not None:
        return {"unreadable": True}
    stated = layer.to_dict()
    rules = [{k: v for k, v in rule.items() if k not in _PROSE} for rule in stated.get("rules", [])]
    return {**{k: v for k, v in stated.items() if k not in _PROSE}, "rules": rules, "default": layer.default.value}
