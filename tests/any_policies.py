"""Any approval config: valid ones as mappings, and data that is keyed like one and says anything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolgen.policy.reading import CONFIG, RULE
from toolgen.tools.naming import RESERVED_SOURCES

# Of no two of them does one make the other's list entry pointless; the API and the server are named below.
PATTERNS = (
    *("http.post:*", "http.put:/pets/{petId}", "http.*:/admin/*", "http.delete:/pets/*", "*.patch:/owners"),
    *("petstore.post:/a**", "petstore:create*", "files:write_*", "mcp:*", "http:*", "delete_*", "send_mail"),
)
NEVER_DESTRUCTIVE = ("http.post:/search", "http.post:/reports*")
APIS, SERVERS = ["petstore"], ["files"]

durations = st.one_of(
    st.builds("P{}W".format, st.integers(1, 500)),
    st.builds("P{}D".format, st.integers(1, 3000)),
    st.builds("P{}DT{}H".format, st.integers(0, 90), st.integers(1, 99)),
    st.builds("PT{}H{}M".format, st.integers(0, 99), st.integers(1, 99)),
    st.builds("PT{}.{}S".format, st.integers(1, 999), st.integers(0, 999_999)),
)
texts = st.one_of(st.text(min_size=1, max_size=500), st.just("{toolNames} wait")).filter(str.strip)
people = st.text(st.characters(categories=["L", "N", "P"], exclude_characters=":"), min_size=1, max_size=40)
approvers = st.lists(st.one_of(people, people.map("role:{}".format)), min_size=1, max_size=3, unique=True)
names = st.from_regex(r"[a-z][a-z0-9-]{0,31}", fullmatch=True).filter(
    lambda name: name not in {*RESERVED_SOURCES, *APIS, *SERVERS}
)


def _some(draw: Any, **values: Any) -> dict[str, Any]:
    """Some of the keys."""
    return {key: draw(value) for key, value in values.items() if draw(st.booleans())}


def _friction(draw: Any, *, may_name: bool = True) -> dict[str, Any]:
    made = _some(
        draw,
        approvalTimeout=durations,
        approvalValidity=durations,
        pauseReason=texts,
        pendingMessage=texts,
        allowSelfApproval=st.booleans(),
        **({"approvers": approvers} if may_name else {}),
    )
    policies = ["WAIT_INDEFINITELY", *(["ABORT", "AUTO_REJECT"] if "approvalTimeout" in made else [])]
    return made | _some(draw, timeoutPolicy=st.sampled_from(policies))


def _rules(draw: Any, matches: list[str], *, approves: bool) -> list[dict[str, Any]]:
    rules = [{"match": match, **_friction(draw)} for match in matches]
    if approves:
        by_time = {"timeoutPolicy": "AUTO_APPROVE", "approvalTimeout": draw(durations), "allowSelfApproval": True}
        rules.append({"match": draw(st.sampled_from(NEVER_DESTRUCTIVE)), **by_time})
    return rules


@st.composite
def configs(draw: Any) -> dict[str, Any]:
    """A mapping that is a valid config."""
    order = draw(st.permutations(PATTERNS))
    required, exempt, denied, matches = order[:4], order[4:6], order[6:8], order[8:]
    gate = draw(st.sampled_from(["none", "off", "required", "unmatched", "both"]))
    data: dict[str, Any] = {}
    if gate == "off":
        data = draw(st.sampled_from([{"requireApproval": []}, {"unmatched": "allow"}]))
    if gate in ("required", "both"):
        data["requireApproval"] = draw(st.sampled_from([required, required[:1]]))
    if gate in ("unmatched", "both"):
        data["unmatched"] = draw(st.sampled_from(["requireWrites", "require"]))
    may_name = draw(st.booleans())
    if gate in ("required", "unmatched", "both"):
        rules = _rules(draw, matches[: draw(st.integers(0, 3))], approves=not may_name)
        data |= _some(draw, exempt=st.just(exempt), rules=st.just(rules))
    data |= _some(draw, deny=st.just(denied), destructive=st.lists(st.sampled_from(PATTERNS), unique=True))
    data |= _friction(draw, may_name=may_name)
    data |= _some(
        draw,
        maxPausesPerTurn=st.integers(1, 10),
        maxAutoApprovalsPerTurn=st.integers(0, 10),
        onNoProgress=st.sampled_from(["WAIT_FOR_HUMAN", "ABORT", "AUTO_REJECT"]),
    )
    more = draw(st.lists(names, max_size=4, unique=True))
    return {**data, "apis": [*APIS, *more[:2]], "mcpServers": [*SERVERS, *more[2:]]}


_words = st.sampled_from(
    [
        *PATTERNS,
        "allow",
        "deny",
        "ABORT",
        "AUTO_APPROVE",
        "WAIT_INDEFINITELY",
        "PT5M",
        "30m",
        "role:x",
        "htp:x",
        "",
        " ",
    ]
)
_scalars = st.one_of(
    _words, st.none(), st.booleans(), st.integers(-1, 12), st.integers(), st.floats(), st.text(max_size=12)
)
_keys = st.one_of(st.sampled_from([*CONFIG, *RULE]), st.text(max_size=12), st.none(), st.integers(), st.floats())
anything = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_keys, inner, max_size=4)),
    max_leaves=12,
)
# Mostly real keys, and often a list of texts behind them.
mappings = st.dictionaries(st.one_of(st.sampled_from(list(CONFIG)), _keys), st.one_of(st.lists(_words), anything))
