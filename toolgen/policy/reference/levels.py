"""Approval configs of the reference system: their levels, what is wrong with them, and what they gate there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from toolgen.errors import ApprovalConfigError, Problem, did_you_mean
from toolgen.policy.address import KnownTool
from toolgen.policy.config import TimeoutPolicy
from toolgen.policy.patterns import LONGEST, Glob
from toolgen.policy.text import counted, several, visible
from toolgen.policy.values import BUDGETS, FRICTION, Values, shown
from toolgen.tools.files.places import Place, written


@dataclass(frozen=True, slots=True)
class Entry:
    """A pattern and its place in the config."""

    text: str
    place: Place

    @property
    def specificity(self) -> int:
        """The higher is the more specific."""
        return len(self.text) - 1024 * self.text.count("*")


@dataclass(frozen=True, slots=True)
class ReferenceRule:
    """Friction for what `match` matches; `stated` has the keys that have a value."""

    match: Entry
    stated: Mapping[str, Any]

    @property
    def policy(self) -> TimeoutPolicy | None:
        found = self.stated.get("timeoutPolicy")
        return None if found is None else TimeoutPolicy(found)


@dataclass(slots=True)
class ReferenceConfig:
    """A config as the reference system reads it: keys without a value are not there.

    `stated` has what is neither a list of patterns nor a rule, of both levels, the inner before the outer;
    `places` says where each key stands and `root` where the keys of the gate do. `left_out` is what has no
    counterpart here.
    """

    root: Place = ()
    require: list[Entry] = field(default_factory=list)
    exempt: list[Entry] = field(default_factory=list)
    rules: list[ReferenceRule] = field(default_factory=list)
    stated: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    left_out: list[Problem] = field(default_factory=list)

    @property
    def never_by_time(self) -> bool:
        """Whether AUTO_APPROVE is inherited from the outer level, which means there that calls of tools wait."""
        inherited = self.places.get("timeoutPolicy", self.root)[:-1] != self.root
        return inherited and self.stated.get("timeoutPolicy") == TimeoutPolicy.AUTO_APPROVE

    def gates(self, tool: KnownTool) -> bool:
        """Whether calls of a tool wait there. `exempt` beats `requireApproval`, and what neither speaks of runs."""
        source, endpoint = tool.sources[0], tool.endpoint
        texts = [f"{source}:{tool.name}", tool.name]
        if endpoint is not None:
            texts.append(f"{source}.{endpoint.key}")

        def matched(entries: Iterable[Entry]) -> bool:
            return any(Glob(entry.text).matches(text) for entry in entries for text in texts)

        return matched(self.require) and not matched(self.exempt)


def read_reference(data: Any) -> ReferenceConfig:
    """A config of the reference system, from any of its levels: an agent's `hitlConfig`, its `toolApprovals`, the keys.

    Raises ApprovalConfigError with everything that the reference system would refuse, patterns apart.
    """
    reader = _ReferenceReader()
    config = reader.levels(data)
    if reader.problems:
        told = [replace(one, where=visible(one.where)) for one in reader.problems]
        raise ApprovalConfigError(f"the config to import has {counted(len(reader.problems), 'problem')}", told)
    return config


class _ReferenceReader(Values):
    """Reads the levels; single values are read, and refused, as in any approval config."""

    def levels(self, data: Any) -> ReferenceConfig:
        config = ReferenceConfig()
        place: Place = ()
        stated = self._keys(place, data)
        if "hitlConfig" in stated:
            others = [key for key in stated if key != "hitlConfig"]
            if others:
                named, verb = several(list(map(visible, others)), 5), "is" if len(others) == 1 else "are"
                message = f"only `hitlConfig` is imported: {named} {verb} left out"
                config.left_out.append(Problem(message, hint="nothing else of an agent says what needs approval"))
            place = ("hitlConfig",)
            stated = self._keys(place, stated["hitlConfig"])
        if "toolApprovals" in stated:
            config.root = (*place, "toolApprovals")
            inner = self._keys(config.root, stated.pop("toolApprovals"))
            self._outer(config, place, stated)
        elif stated and not set(stated).intersection(_INNER):
            self.add(place, "there is no approval config in it", "import the whole `hitlConfig`")
            return config
        else:
            config.root, inner = place, stated
        self._inner(config, inner)
        self._durations(config)
        return config

    def _keys(self, place: Place, data: Any) -> dict[str, Any]:
        """What a mapping states; null is not stated."""
        if not isinstance(data, Mapping):
            if data is not None or not place:
                self.add(place, f"expected a mapping, this is {shown(data)}")
            return {}
        return {str(key): value for key, value in data.items() if value is not None or key in _LEVELS}

    def _outer(self, config: ReferenceConfig, place: Place, stated: dict[str, Any]) -> None:
        for key, value in stated.items():
            if key in _FRICTION:
                self._state(config, (*place, key), key, value)
            elif key == IN_GROUPS:
                config.left_out.append(_in_groups((*place, key), value))
            elif key in _INNER or did_you_mean(key, _INNER):
                hint = "it belongs under toolApprovals" if key in _INNER else ""
                self.add((*place, key), f"there is no such key{did_you_mean(key, _INNER) if not hint else ''}", hint)
            else:
                config.left_out.append(Problem("this key is not imported", visible(written((*place, key)))))

    def _inner(self, config: ReferenceConfig, stated: dict[str, Any]) -> None:
        for key, value in stated.items():
            place = (*config.root, key)
            if key in _VALUES:
                self._state(config, place, key, value)
            elif key == "requireApproval":
                config.require = self._entries(place, value)
            elif key == "exempt":
                config.exempt = self._entries(place, value)
            elif key == "rules":
                rules = (self._rule_of((*place, index), item) for index, item in enumerate(self.sequence(place, value)))
                config.rules = [rule for rule in rules if rule is not None]
            elif key == IN_GROUPS:
                config.left_out.append(_in_groups(place, value))
            else:
                self.add(place, f"there is no such key{did_you_mean(key, _INNER)}")

    def _rule_of(self, place: Place, value: Any) -> ReferenceRule | None:
        if not isinstance(value, Mapping):
            self.add(place, f"expected a mapping with `match`, this is {shown(value)}")
            return None
        stated = self._keys(place, value)
        match = self._entry((*place, "match"), stated.pop("match", None))
        read: dict[str, Any] = {}
        for key, item in stated.items():
            if key in _FRICTION:
                self._read(read, (*place, key), key, item)
            else:
                self.add((*place, key), f"there is no such key{did_you_mean(key, [*_FRICTION, 'match'])}")
        return None if match is None else ReferenceRule(match, read)

    def _state(self, config: ReferenceConfig, place: Place, key: str, value: Any) -> None:
        """A value of the level that is read last holds: the inner one."""
        if self._read(config.stated, place, key, value):
            config.places[key] = place

    def _read(self, into: dict[str, Any], place: Place, key: str, value: Any) -> bool:
        """Whether the value says anything; it is kept then."""
        if key in ("pauseReason", "pendingMessage") and isinstance(value, str) and not value.strip():
            return False
        if key == "approvalTimeout" and isinstance(value, str):
            value = value.strip().upper()  # read in either case there
        _VALUES[key](self, place, value)
        into[key] = value
        return True

    def _entries(self, place: Place, value: Any) -> list[Entry]:
        found = (self._entry((*place, index), item) for index, item in enumerate(self.sequence(place, value)))
        return [entry for entry in found if entry is not None]

    def _entry(self, place: Place, value: Any) -> Entry | None:
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST:
            self.add(place, f"expected a pattern of 1 to {LONGEST} characters")
            return None
        return Entry(value, place)

    def _durations(self, config: ReferenceConfig) -> None:
        """Something happens by time only where a time is stated."""
        if self.problems:
            return
        levels: list[tuple[Place, Mapping[str, Any]]] = [
            ((*rule.match.place[:-1],), rule.stated) for rule in config.rules
        ]
        if "timeoutPolicy" in config.stated and not config.never_by_time:
            levels.append((config.places["timeoutPolicy"][:-1], config.stated))
        for place, stated in levels:
            policy = stated.get("timeoutPolicy", _WAITS)
            if policy != _WAITS and "approvalTimeout" not in stated and "approvalTimeout" not in config.stated:
                self.add((*place, "timeoutPolicy"), f"{policy} needs an `approvalTimeout`")


def _in_groups(place: Place, value: Any) -> Problem:
    hint = "a turn among several agents waits as any other"
    return Problem(f"{IN_GROUPS} ({shown(value)}) is left out: it has no counterpart here", written(place), hint=hint)


IN_GROUPS: Final = "inGroupTurns"
_WAITS = TimeoutPolicy.WAIT_INDEFINITELY.value
_LEVELS = frozenset({"hitlConfig", "toolApprovals"})
_FRICTION = {key: FRICTION[key] for key in ("timeoutPolicy", "approvalTimeout", "pauseReason", "pendingMessage")}
_VALUES = _FRICTION | BUDGETS
_INNER = ("requireApproval", "exempt", "rules", IN_GROUPS, *_VALUES)
