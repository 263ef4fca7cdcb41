"""A config to start from: every write waits, reads run, said in endpoints and with comments that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from toolgen.policy.address import HTTP, KnownTool, Toolsets, Vocabulary, known_tools
from toolgen.policy.checks.verbs import change_of
from toolgen.policy.patterns import LONGEST, can_match
from toolgen.policy.text import counted, several
from toolgen.policy.yaml_text import comment, scalar

_WRITES_FIRST: Final = ("post", "put", "patch", "delete")
_WORDS: Final = Vocabulary()  # what a config can say of any tools
_RULE: Final = """\
What holds while a call waits. For example, for calls that cannot be undone:
rules:
- match: {}
  approvers: [role:admin]     # names, or role:NAME; nobody approves a call of their own then
  timeoutPolicy: AUTO_REJECT  # without it calls wait until somebody decides
  approvalTimeout: PT4H"""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A pattern, and what a comment says of it."""

    pattern: str
    note: str = ""


def suggest(toolsets: Toolsets) -> str:
    """A starting config for these tools, as YAML text that `ApprovalConfig.parse` takes with them; deterministic.

    A read whose operation says that it changes something waits as well. Raises RegistrationError as `Gate` does.
    """
    tools = known_tools(toolsets)
    doubtful = {tool: said for tool in tools if not tool.is_write and (said := _change(tool))}
    words = _WORDS.with_tools(tools)
    require = [entry for entry in _required(tools, doubtful) if can_match(entry.pattern, words)]
    exempt = [entry for entry in _exempt(tools, doubtful) if can_match(entry.pattern, words)]
    lines = [
        comment("Which calls wait for a person: a start, written by `toolgen check --suggest`. Read it, change it."),
        *_apis(tools, [*require, *exempt]),
        *_list("requireApproval", "Waits until a person decides: what writes, or may.", require),
        *_list("exempt", "Runs: what only reads.", exempt),
        "",
        comment("What happens to a call that no pattern speaks of, as of a tool that is added later:"),
        comment("requireWrites (reads run, writes wait), require, deny or allow."),
        "unmatched: requireWrites",
        "",
        *(comment(line) for line in _RULE.format(_destructive(tools, require)).splitlines()),
    ]
    return "\n".join(lines) + "\n"


def _change(tool: KnownTool) -> str:
    """What says that the tool changes something, whatever its method is; else empty."""
    if tool.marked_destructive:
        return "it is marked as destructive"
    return change_of(tool.tool) if tool.tool is not None else ""


def _required(tools: Sequence[KnownTool], doubtful: Mapping[KnownTool, str]) -> Iterator[_Entry]:
    writes = [tool for tool in tools if tool.is_write]
    for method in _methods(writes):
        having = _having(writes, method)
        if method in _WORDS.all_methods:
            yield _Entry(f"{HTTP}.{method}:*", _told(having))
        else:  # what it means is the API's own affair
            for api in dict.fromkeys(tool.source for tool in having):
                yield _Entry(f"{api}.{method}:*", _told([tool for tool in having if tool.source == api]))
    for source in dict.fromkeys(tool.sources[0] for tool in writes if tool.endpoint is None):
        having = [tool for tool in writes if tool.sources[0] == source]
        yield _Entry(f"{source}:*", _told(having))
    seen: set[str] = set()
    for tool, said in doubtful.items():
        pattern = _pattern(tool)
        if pattern not in seen:
            seen.add(pattern)
            yield _Entry(
                pattern if len(pattern) <= LONGEST else pattern[: LONGEST - 1] + "*", f"seems to write: {said}"
            )


def _exempt(tools: Sequence[KnownTool], doubtful: Mapping[KnownTool, str]) -> Iterator[_Entry]:
    reads = [tool for tool in tools if not tool.is_write]
    for method in _methods(reads):
        having = _having(reads, method)
        if not doubtful.keys() & set(having):
            yield _Entry(f"{HTTP}.{method}:*", _told(having))
            continue
        for api in dict.fromkeys(tool.source for tool in having):
            own = [tool for tool in having if tool.source == api]
            waiting = {_pattern(tool) for tool in own if tool in doubtful}
            if not waiting:
                yield _Entry(f"{api}.{method}:*", _told(own))
                continue
            # A `*` in a path would match others as well. What is left out here reads, and runs unmatched.
            patterns = dict.fromkeys(_pattern(tool) for tool in own)
            yield from (_Entry(one) for one in patterns if one not in waiting and "*" not in one)


def _methods(tools: Sequence[KnownTool]) -> list[str]:
    found = {tool.endpoint.method for tool in tools if tool.endpoint is not None}
    order = dict.fromkeys((*_WRITES_FIRST, *_WORDS.all_methods, *sorted(found)))
    return [method for method in order if method in found]


def _having(tools: Sequence[KnownTool], method: str) -> list[KnownTool]:
    return [tool for tool in tools if tool.endpoint is not None and tool.endpoint.method == method]


def _pattern(tool: KnownTool) -> str:
    assert tool.endpoint is not None
    return f"{tool.source}.{tool.endpoint.key}"


def _told(tools: Sequence[KnownTool]) -> str:
    """How many tools a pattern matches, and a few of them."""
    named = [f"{tool.endpoint.method.upper()} {tool.endpoint.path}" if tool.endpoint else tool.name for tool in tools]
    return f"{counted(len(tools), 'tool')}: {several(named)}"


def _apis(tools: Sequence[KnownTool], entries: Sequence[_Entry]) -> Iterator[str]:
    """The APIs that patterns name: with them the config can be read where no toolset is at hand."""
    named = {entry.pattern.partition(".")[0] for entry in entries}
    apis = [api for api in dict.fromkeys(tool.source for tool in tools if tool.endpoint) if api in named]
    if apis:
        yield "apis:"
        yield from (f"  - {scalar(api, 4)}" for api in apis)


def _list(key: str, says: str, entries: Sequence[_Entry]) -> Iterator[str]:
    if not entries:
        return  # written empty `requireApproval` would say that the gate is off
    yield ""
    yield comment(says)
    yield f"{key}:"
    for entry in entries:
        if entry.note:
            yield comment(entry.note, 2)
        yield f"  - {scalar(entry.pattern, 4)}"


def _destructive(tools: Sequence[KnownTool], require: Sequence[_Entry]) -> str:
    """The match of the example rule, as YAML."""
    deletes = any(tool.endpoint is not None and tool.endpoint.is_destructive for tool in tools)
    marked = [f"{tool.source}:{tool.name}" for tool in tools if tool.marked_destructive]
    if deletes or not (marked or require):
        return f"{HTTP}.delete:*"
    return scalar(marked[0] if marked else require[-1].pattern, 12)
