"""Why a tool's calls run, wait or are refused: every step of the gate's answer, and what would change it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Final

from toolgen.errors import ToolgenError
from toolgen.openapi.endpoint import endpoint_path
from toolgen.policy.address import EndpointAddress, KnownTool, NameAddress, SourceAddress, Toolsets, listed
from toolgen.policy.changes import Change, changes, matching
from toolgen.policy.config import ApprovalConfig, Friction, Rule, TimeoutPolicy, key_of
from toolgen.policy.durations import written_duration
from toolgen.policy.gate import Gate
from toolgen.policy.outcomes import UNMATCHED, Outcome, ToolCall
from toolgen.policy.patterns import Pattern
from toolgen.policy.terms import Terms, by_specificity, rules_tried
from toolgen.policy.text import visible

_NEAR: Final = 3  # names and endpoints that an error proposes
# What holds while a call waits.
_TERMS: Final = (
    *("timeout_policy", "approval_timeout", "approval_validity"),
    *("approvers", "allow_self_approval"),
    *("pause_reason", "pending_message"),
)


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern that matches the tool: its place in the config, and the address it matches.

    `decides` says of a list's pattern that it is the reason of the outcome, of a rule that it is the call's own.
    """

    where: str
    pattern: str
    address: str
    decides: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What holds while a call waits: the key as configs write it, its value, and who states it.

    `origin` is `rule`, `broader rule`, `config` or `default`, and `where` the place. `note` says why something
    else holds than what is stated there.
    """

    key: str
    value: Any
    origin: str
    where: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Every step from a tool to what happens to its calls.

    `lists` has the patterns that match, by `deny`, `exempt` and `requireApproval`; each list beats those
    behind it. `unmatched` is what happens to calls that none of them speaks of, `unmatched_stated` whether
    the config says so itself. `destructive` are the reasons to count it so, none where it is not. `rules`
    are the rules that match, the most specific first; `terms` what holds while a call waits, empty where it
    does not wait. `shared` says that a call has to name the source, since another tool has the name too.
    """

    tool: KnownTool
    outcome: Outcome
    reason: str
    where: str
    addresses: tuple[str, ...]
    shared: str
    lists: dict[str, tuple[Match, ...]]
    unmatched: str
    unmatched_stated: bool
    destructive: tuple[str, ...]
    rules: tuple[Match, ...]
    terms: tuple[Held, ...]
    changes: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, keys in camelCase as configs have them."""
        endpoint = self.tool.endpoint
        return {
            "name": self.tool.name,
            "source": self.tool.source,
            "method": endpoint.method if endpoint else None,
            "path": endpoint.path if endpoint else None,
            "outcome": self.outcome.name,
            "reason": self.reason,
            "where": self.where,
            "addresses": list(self.addresses),
            "shared": self.shared,
            **{key: [asdict(match) for match in found] for key, found in self.lists.items()},
            "unmatched": {
                "value": self.unmatched,
                "stated": self.unmatched_stated,
                "decides": self.reason == UNMATCHED,
            },
            "destructive": list(self.destructive),
            "rules": [asdict(match) for match in self.rules],
            "terms": [asdict(held) for held in self.terms],
            "changes": [change.to_dict() for change in self.changes],
        }


def explain(config: ApprovalConfig | None, toolsets: Toolsets, tool: KnownTool) -> Explanation:
    """Why the calls of a tool of these toolsets run, wait or are refused.

    Raises RegistrationError as `Gate` does, and ValueError for a tool that is in none of the toolsets.
    """
    config, toolsets = config or ApprovalConfig(), listed(toolsets)
    gate = Gate(config, toolsets)
    own = next((one for one in gate.tools if (one.source, one.name) == (tool.source, tool.name)), None)
    if own is None:
        raise ValueError(f"{tool.source}:{tool.name} is in none of these toolsets")
    # By `classify`, as calls are.
    named, bare = (gate.classify([ToolCall(None, own.name, {}, source)]).calls[0] for source in (own.source, None))
    result = named.result
    rules = [rule for rule in by_specificity(config.rules) if any(map(rule.match.matches, own.addresses))]
    decisive = result.terms.rule if result.terms else None
    return Explanation(
        tool=own,
        outcome=result.outcome,
        reason=result.reason,
        where=result.where,
        addresses=tuple(map(str, own.addresses)),
        shared=result.detail or bare.result.detail,
        lists={
            key: tuple(_match(f"{key}[{number}]", one, own, result.where) for number, one in found.items())
            for key, found in matching(config, own).items()
        },
        unmatched=config.default.value,
        unmatched_stated=config.unmatched is not None,
        destructive=tuple(_destructive(config, own)),
        rules=tuple(_match(_place(config, rule), rule.match, own, _place(config, decisive)) for rule in rules),
        terms=tuple(_held(config, result.terms, rules, own in gate.destructive)) if result.terms else (),
        changes=changes(config, toolsets, gate, own),
    )


def find_tools(tools: Sequence[KnownTool], wanted: str) -> list[KnownTool]:
    """The tools that `createPet`, `petstore:createPet`, `POST /pets` or `http.post:/pets` means.

    More than one where operations share an endpoint. Raises ToolgenError for what is no tool, with the nearest
    there are, and for a name that several sources have.
    """
    method, _, path = wanted.strip().partition(" ")
    if path:
        try:
            path = endpoint_path(path)
        except ValueError as error:
            raise ToolgenError(f"{wanted!r} is no endpoint: {error}") from None
        found = [tool for tool in tools if tool.endpoint and tool.endpoint.key == f"{method.lower()}:{path}"]
    else:
        found = [tool for tool in tools if wanted in map(str, tool.addresses)]
    if not found:
        raise ToolgenError(_nothing_at(tools, method, path) if path else _nothing_called(tools, wanted))
    if len(found) > 1 and not path and "/" not in wanted:
        names = ", ".join(str(SourceAddress(tool.source, tool.name)) for tool in found)
        raise ToolgenError(f"several tools are called {wanted!r}; name one of {names}")
    return found


def _nothing_at(tools: Sequence[KnownTool], method: str, path: str) -> str:
    """Nothing has that endpoint; other methods of its path are nearest."""
    there = [tool.endpoint for tool in tools if tool.endpoint]
    known = [f"{one.method.upper()} {one.path}" for one in there]
    near = [text for text, one in zip(known, there, strict=True) if one.path == path]
    wanted = f"{method.upper()} {path}"
    return f"no tool has the endpoint {wanted!r}{_nearest(wanted, known, near)}"


def _nothing_called(tools: Sequence[KnownTool], wanted: str) -> str:
    form = EndpointAddress if "/" in wanted else SourceAddress if ":" in wanted else NameAddress
    known = [str(address) for tool in tools for address in tool.addresses if isinstance(address, form)]
    return f"no tool is called {wanted!r}{_nearest(wanted, known, [])}"


def _nearest(wanted: str, known: Sequence[str], near: Sequence[str]) -> str:
    found = list(dict.fromkeys(near)) or difflib.get_close_matches(wanted, dict.fromkeys(known), n=_NEAR)
    return f"; near are {', '.join(map(visible, found))}" if found else ""


def _match(where: str, pattern: Pattern, tool: KnownTool, decisive: str) -> Match:
    address = next(str(address) for address in tool.addresses if pattern.matches(address))
    return Match(where, pattern.text, address, where == decisive)


def _place(config: ApprovalConfig, rule: Rule | None) -> str:
    return "" if rule is None else f"rules[{config.rules.index(rule)}]"


def _destructive(config: ApprovalConfig, tool: KnownTool) -> Iterator[str]:
    """Every reason there is to count a tool as destructive."""
    if tool.endpoint is not None and tool.endpoint.is_destructive:
        yield "its method is DELETE"
    if tool.marked_destructive:
        yield "it is marked destructive in its toolset"
    for number, pattern in enumerate(config.destructive):
        if any(map(pattern.matches, tool.addresses)):
            yield f"destructive[{number}] is {pattern}"


def _held(config: ApprovalConfig, terms: Terms, rules: Sequence[Rule], destructive: bool) -> Iterator[Held]:
    """What holds, as `terms_of` found it, and which of those that may state it does."""
    _, naming, forbidding = rules_tried(rules)
    broader = {"approvers": naming[:1], "allow_self_approval": [*forbidding[:1], *naming[:1]]}
    for field in _TERMS:
        states = [
            ("rule", terms.rule),
            *(("broader rule", rule) for rule in broader.get(field, ())),
            ("config", config),
        ]
        stated = ((name, one) for name, one in states if one and getattr(one, field) is not None)
        origin, by = next(stated, ("default", None))
        key = key_of(field)
        where = "" if by is None else f"{_place(config, by)}.{key}" if isinstance(by, Rule) else key
        value = getattr(terms, field)
        note = _note(field, by, terms, destructive)
        if value is not None or field == "approval_timeout":
            yield Held(key, _written(value), origin, where, note)


def _note(field: str, by: Friction | None, terms: Terms, destructive: bool) -> str:
    """Why something else holds than what is stated."""
    if field == "allow_self_approval" and by is None and terms.approvers:
        return "approvers are named"
    if by is None or terms.timeout_policy is not TimeoutPolicy.WAIT_INDEFINITELY:
        return ""
    if field == "approval_timeout":
        return "a call that waits without end has no due time"
    if field != "timeout_policy" or by.timeout_policy is TimeoutPolicy.WAIT_INDEFINITELY:
        return ""
    if by.timeout_policy is TimeoutPolicy.AUTO_APPROVE and not isinstance(by, Rule):
        return "AUTO_APPROVE holds in a rule only"
    if by.timeout_policy is TimeoutPolicy.AUTO_APPROVE and (
        destructive or terms.approvers or not terms.allow_self_approval
    ):
        others = "approvers are named" if terms.approvers else "somebody else than the requester has to approve"
        why = "the call is destructive" if destructive else others
        return f"AUTO_APPROVE does not hold: {why}"
    return f"{by.timeout_policy} needs an approvalTimeout, and none is stated"


def _written(value: Any) -> Any:
    """A value as configs write it; approvers are those of the only layer."""
    if isinstance(value, timedelta):
        return written_duration(value)
    if isinstance(value, tuple):
        return list(value[0]) if value else []
    return value.value if isinstance(value, TimeoutPolicy) else value
