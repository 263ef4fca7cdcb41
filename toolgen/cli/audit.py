"""`toolgen audit`: whether the log of decisions is whole, and what is in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgen.cli.command import Command, FormatOption, group
from toolgen.cli.output import Cell, Format, Page, print_json, to_line, visible, write
from toolgen.cli.stores import KeyOption, StoreOption, opened
from toolgen.errors import ToolgenError, UsageError

if TYPE_CHECKING:
    from toolgen.approvals.audit import Head, Recorded

SHORT_HELP = "Verify and read the log of decisions."
HELP = """\b
Example: toolgen audit verify --head head.json
         toolgen audit tail -n 50
         toolgen audit head > head.json

The log of what was asked, decided, sent and refused, of all tenants. Each entry is signed together with the one before
it, so that an edit, a deletion, an insertion and another order are found; a cut-off end is found against a head that
was kept elsewhere. There are no arguments and no secrets in it.

\b
Exit codes: 0 fine, 1 the log is not whole, or problems with the store;
            2 wrong usage
`toolgen audit COMMAND --help` says more.
"""
VERIFY_HELP = """\b
Example: toolgen audit verify
         toolgen audit verify --head head.json
         toolgen audit verify audit.jsonl --key-file toolgen.key

Check every entry of the log, and with --head that it goes on from that end. It needs the store's key, and previous keys
where entries were signed with them. FILE, an export of the whole log, is checked without the store: with the key of
--key-file or TOOLGEN_KEY.

\b
Exit codes: 0 the log is whole, 1 it is not, or problems with the store;
            2 wrong usage
"""
EXPORT_HELP = """\b
Example: toolgen audit export > audit.jsonl
         toolgen audit export --after 1200

Print the entries as JSON, one a line, the oldest first. `toolgen audit verify FILE` checks them without the store. What
--after prints is checked behind what was printed before. What is erased later stays in an export.

\b
Exit codes: 0 printed, 1 problems with the store, 2 wrong usage
"""
TAIL_HELP = """\b
Example: toolgen audit tail
         toolgen audit tail -n 50

Print the last entries.

\b
Exit codes: 0 printed, 1 problems with the store, 2 wrong usage
"""
HEAD_HELP = """\b
Example: toolgen audit head > head.json

Print the signed end of the log as JSON. Keep it where those who can write the store cannot: `toolgen audit verify --head`
finds with it whether entries were cut off since.

\b
Exit codes: 0 printed, 1 problems with the store, 2 wrong usage
"""

app = group("audit", HELP)


@app.command("verify", cls=Command, help=VERIFY_HELP, short_help="Check that the log is whole.")
def verify(
    exported: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="What `audit export` printed; - is stdin. Default: the store."),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", metavar="FILE", help="An end that was kept; - is stdin. Default: none.")
    ] = None,
    store: StoreOption = None,
    key_file: KeyOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Check that the log is whole."""
    if exported is not None and store is not None:
        raise UsageError("FILE is checked without a store: leave out --store")
    if exported == "-" == head:
        raise UsageError("stdin is one file: FILE or --head")
    kept = None if head is None else _head(head)
    if exported is not None:
        faults, number = _export(exported, kept, key_file)
    else:
        with opened(store, key_file) as found:
            faults, number = found.faults(kept), found.head().seq
    if format_ is Format.json:
        print_json({"whole": not faults, "entries": number, "faults": faults}, sys.stdout)
    else:
        for fault in faults:
            write(f"error: {visible(fault)}\n", sys.stderr)
        if not faults:
            unseen = "" if kept is not None else "; only --head finds whether its end was cut off"
            write(f"the log is whole: {_entries(number)}{unseen}\n", sys.stdout)
    if faults:
        raise typer.Exit(ToolgenError.exit_code)


@app.command("export", cls=Command, help=EXPORT_HELP, short_help="Print the entries as JSON lines.")
def export(
    after: Annotated[
        int,
        typer.Option(
            "--after", metavar="N", min=0, help="Only entries behind this number. Default: 0, all.", show_default=False
        ),
    ] = 0,
    store: StoreOption = None,
    key_file: KeyOption = None,
) -> None:
    """Print the entries as JSON lines."""
    from toolgen.approvals import audit

    with opened(store, key_file) as found, found.database.read() as connection:
        for entry in audit.entries(connection, after=after):
            write(to_line(entry.to_dict()), sys.stdout)


@app.command("tail", cls=Command, help=TAIL_HELP, short_help="Print the last entries.")
def tail(
    lines: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="How many. Default: 20.", show_default=False)
    ] = 20,
    store: StoreOption = None,
    key_file: KeyOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Print the last entries."""
    from toolgen.approvals import audit

    with opened(store, key_file) as found:
        last = found.head().seq
        with found.database.read() as connection:
            entries = list(audit.entries(connection, after=max(last - lines, 0)))
    if format_ is Format.json:
        print_json({"entries": [entry.to_dict() for entry in entries]}, sys.stdout)
        return
    page = Page(sys.stdout)
    page.table(("entry", "at", "what", "who", "tool", "pause"), [_row(entry) for entry in entries])
    page.print()


@app.command("head", cls=Command, help=HEAD_HELP, short_help="Print the signed end of the log.")
def head_(store: StoreOption = None, key_file: KeyOption = None) -> None:
    """Print the signed end of the log."""
    with opened(store, key_file) as found:
        print_json(found.head().to_dict(), sys.stdout)


def _head(name: str) -> Head:
    """The head of a file. Raises UsageError for what is none."""
    from toolgen.approvals.heads import head_of

    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return head_of(json.loads(text))
    except OSError as error:
        raise UsageError(f"--head: {name} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"--head: {name} is not what `toolgen audit head` prints") from None


def _export(name: str, kept: Head | None, key_file: str | None) -> tuple[list[str], int]:
    """What is wrong with an exported log, and how many lines it has. Raises UsageError and CredentialsError."""
    from toolgen.approvals.exported import export_faults
    from toolgen.identity.keys import Keys

    keys, number = Keys.load(file=key_file), 0

    def counted(lines: Iterable[str]) -> Iterator[str]:
        nonlocal number
        for line in lines:
            number += 1
            yield line

    try:
        with nullcontext(sys.stdin) if name == "-" else open(name, encoding="utf-8") as file:
            return list(export_faults(counted(file), keys, kept)), number
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not what `toolgen audit export` prints") from None


def _entries(number: int) -> str:
    return f"{number:,} entries" if number != 1 else "1 entry"


def _row(entry: Recorded) -> list[Cell]:
    details: Mapping[str, Any] = entry.details if entry.details is not None else {"actor": "erased"}
    tool = details.get("tool") or ", ".join(str(call.get("tool")) for call in details.get("calls", ()))
    pause = (entry.pause or "")[:8]
    at = entry.at.strftime("%Y-%m-%d %H:%M:%S")
    texts = (str(entry.seq), at, entry.kind, str(details.get("actor", "")), str(tool), pause)
    return [(text, "") for text in texts]
