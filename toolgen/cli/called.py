"""What became of a call, for people and for programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from http import HTTPStatus

from toolgen.cli.output import Format, in_line, print_json, to_json, visible, write
from toolgen.result import Refused, Sent, ToolResult

_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_HINTS = {
    Refused.denied: "the approval config forbids it; `toolgen explain` says why",
}


class Contract(StrEnum):
    """What a request that is not as the document describes comes to."""

    off = "off"
    warn = "warn"
    enforce = "enforce"


def print_result(result: ToolResult, format_: Format) -> None:
    """An answer goes to stdout; why there is none goes to stderr. As JSON everything is on stdout."""
    if format_ is Format.json:
        print_json(result.to_dict(), sys.stdout)
    elif result.sent is Sent.answered:
        write(_text(result), sys.stdout)
    else:
        write(f"error: {visible(result.message)}\n", sys.stderr)
    if result.refused in _HINTS:
        write(f"hint: {_HINTS[result.refused]}\n", sys.stderr)


def _text(result: ToolResult) -> str:
    """Status, what a reader has to know, the headers that carry the answer, the body."""
    told = result.message.startswith(f"HTTP {result.status}")
    lines = [] if told else [f"HTTP {result.status} {_PHRASES.get(result.status or 0, '')}".rstrip()]
    lines += [visible(result.message)] if result.message else []
    lines += [f"{in_line(name)}: {in_line(value)}" for name, value in result.headers.items()]
    if result.body is not None:
        body = visible(result.body) if isinstance(result.body, str) else to_json(result.body)
        lines += ["", body.rstrip("\n")]
    return "\n".join(lines) + "\n"
