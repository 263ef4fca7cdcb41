"""Measures the gate: preparing a config for tools, classifying calls, and how both grow. See `--help`."""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from toolgen import ApprovalConfig, Gate, ToolCall, Toolset, generate

DESCRIPTION = """\
example: python benchmarks/gate.py --patterns 10000 --tools 1000

Prepares configs of each kind of pattern for an API of so many tools, classifies calls, compares with
trying every pattern on every tool, and doubles each side. Exit code 1 if a bar is missed.
"""
PREPARED_WITHIN = 1.0  # seconds, reading the config included
CLASSIFIED_WITHIN = 5.0  # microseconds per call
METHODS = ("get", "post", "put", "patch", "delete")
WORDS = "users orders items invoices teams projects reports files events hooks keys roles plans carts".split()


def api(count: int, seed: int) -> Toolset:
    """An API of so many tools, its paths like those of real ones."""
    rng = random.Random(seed)
    paths: dict[str, dict[str, Any]] = {}
    for number in range(count):
        words = [*rng.choices(WORDS, k=rng.randint(1, 3)), f"{rng.choice(WORDS)}{number // len(METHODS)}"]
        path = f"/v1/{'/{id}/'.join(words)}" + rng.choice(["", "/{itemId}"])
        method = METHODS[number % len(METHODS)]
        paths.setdefault(path, {})[method] = {"operationId": f"{method}{words[-1].title()}_{number}"}
    document = {"openapi": "3.1.0", "info": {"title": "Large", "version": "1"}, "paths": paths}
    return generate(document, api="large")


def kinds(toolset: Toolset) -> dict[str, Callable[[int], str]]:
    """A pattern by its number, for each kind. Half of those that name a tool name one that is there."""
    tools = toolset.tools

    def tool(number: int) -> tuple[str, str, str]:
        found = tools[number % len(tools)]
        gone = f"{number}" if number >= len(tools) // 2 else ""
        return found.endpoint.method, found.endpoint.path + gone, found.name + gone

    def endpoint(number: int) -> str:
        method, path, _ = tool(number)
        return f"http.{method}:{path}"

    return {
        "endpoints, literal": endpoint,
        "endpoints, path and below": lambda number: f"{endpoint(number)}*",
        "endpoints, any method, end of the path": lambda number: f"large.*:*{tool(number)[1][-12:]}_{number}",
        "source and name": lambda number: f"large:{tool(number)[2]}",
        "names, beginning": lambda number: f"{tool(number)[2]}*",
        "names, short pieces": lambda number: f"*{'abcdefghijklmnop'[number % 16]}*{number % 1000}*{number // 1000}*",
        "one literal for all": lambda number: f"http.*:/v1/*x{number}y*",
    }


def mixed(toolset: Toolset) -> Callable[[int], str]:
    """All kinds in turn."""
    makers = list(kinds(toolset).values())
    return lambda number: makers[number % len(makers)](number)


def config_of(make: Callable[[int], str], count: int) -> dict[str, Any]:
    """A config that requires approval by so many patterns, each of which is there once."""
    return {"requireApproval": list(dict.fromkeys(make(number) for number in range(count)))}


def seconds(work: Callable[[], Any], repeat: int) -> float:
    """The best of several runs."""
    best = float("inf")
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def prepared(mapping: dict[str, Any], toolset: Toolset, repeat: int) -> dict[str, float]:
    """How long a config takes to be read and to be prepared for the tools."""
    config = ApprovalConfig.parse(mapping, [toolset])
    return {
        "patterns": len(mapping["requireApproval"]),
        "read": seconds(lambda: ApprovalConfig.parse(mapping, [toolset]), repeat),
        "prepare": seconds(lambda: Gate(config, [toolset]), repeat),
    }


def per_call(gate: Gate, calls: Sequence[ToolCall], batch: int, repeat: int, *, terms: bool = False) -> float:
    """Microseconds a call takes, with the lists and reasons of its batch; with `terms` also how its pause waits."""
    batches = [calls[start : start + batch] for start in range(0, len(calls), batch)]

    def work() -> None:
        for one in batches:
            found = gate.classify(one)
            _ = found.gated, found.allowed, found.denied, found.reasons, terms and found.terms

    return seconds(work, repeat) / len(calls) * 1e6


def naive(mapping: dict[str, Any], toolset: Toolset) -> float:
    """Seconds it takes to try every pattern on every address of every tool."""
    config = ApprovalConfig.parse(mapping, [toolset])
    tools = Gate(None, [toolset]).tools

    def work() -> int:
        patterns = config.require_approval or ()
        return sum(any(map(pattern.matches, tool.addresses)) for tool in tools for pattern in patterns)

    return seconds(work, 1)


def measure(patterns: int, tools: int, repeat: int, seed: int) -> dict[str, Any]:
    """Everything that is measured."""
    toolset = api(tools, seed)
    calls = [ToolCall(f"call-{n}", tool.name, {"id": n}) for n, tool in enumerate(toolset.tools)]
    square = Gate(ApprovalConfig.parse(config_of(mixed(toolset), min(patterns, 1000)), [toolset]), [toolset])
    small = config_of(mixed(toolset), max(1, patterns // 10))
    found: dict[str, Any] = {
        "kinds": {
            name: prepared(config_of(make, patterns), toolset, repeat)
            for name, make in {**kinds(toolset), "all kinds": mixed(toolset)}.items()
        },
        "calls": {f"batches of {size}": per_call(square, calls, size, max(5, repeat)) for size in (1, 10)},
        "pauses": {f"batches of {size}": per_call(square, calls, size, max(5, repeat), terms=True) for size in (1, 10)},
        "naive": {"patterns": len(small["requireApproval"]), "all on all": naive(small, toolset)},
        "more patterns": [],
        "more tools": [],
    }
    found["naive"] |= {"prepare": prepared(small, toolset, repeat)["prepare"]}
    for part in (8, 4, 2, 1):
        count = max(1, patterns // part)
        found["more patterns"].append(prepared(config_of(mixed(toolset), count), toolset, repeat) | {"tools": tools})
    for part in (8, 4, 2, 1):
        some = api(max(1, tools // part), seed)
        found["more tools"].append(
            prepared(config_of(mixed(some), patterns), some, repeat) | {"tools": len(some.tools)}
        )
    slowest = max(one["read"] + one["prepare"] for one in found["kinds"].values())
    found["bars"] = [
        {"bar": "read and prepared, slowest kind: seconds", "at most": PREPARED_WITHIN, "measured": slowest},
        {"bar": "classified: us per call", "at most": CLASSIFIED_WITHIN, "measured": max(found["calls"].values())},
    ]
    return found


def write(found: dict[str, Any]) -> None:
    """The figures as text."""
    print(f"{'patterns by kind':42} {'count':>7} {'read ms':>9} {'prepare ms':>11}")
    for name, one in found["kinds"].items():
        print(f"{name:42} {one['patterns']:7,} {one['read'] * 1e3:9.1f} {one['prepare'] * 1e3:11.1f}")
    for title in ("more patterns", "more tools"):
        print(f"\n{title:42} {'tools':>7} {'read ms':>9} {'prepare ms':>11}")
        for one in found[title]:
            print(f"{one['patterns']:>42,} {one['tools']:7,} {one['read'] * 1e3:9.1f} {one['prepare'] * 1e3:11.1f}")
    print(f"\n{'classified, us per call':42} {'':7} {'with the terms of the pause':>29}")
    for name, value in found["calls"].items():
        print(f"{name:42} {value:7.2f} {found['pauses'][name]:29.2f}")
    ratio = found["naive"]["all on all"] / found["naive"]["prepare"]
    print(f"\nevery pattern on every tool takes {ratio:.0f} times as long ({found['naive']['patterns']:,} patterns)\n")
    for bar in found["bars"]:
        verdict = "ok" if bar["measured"] <= bar["at most"] else "MISSED"
        print(f"{bar['bar']:42} <= {bar['at most']:<5} {bar['measured']:7.2f}   {verdict}")


def main(given: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="gate.py", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--patterns", type=int, default=10_000)
    parser.add_argument("--tools", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the best counts (default: 3)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    args = parser.parse_args(given)
    if min(args.patterns, args.tools, args.repeat) < 1:
        parser.error("numbers are 1 or more")
    found = measure(args.patterns, args.tools, args.repeat, args.seed)
    if args.format == "json":
        print(json.dumps(found, indent=2))
    else:
        write(found)
    return int(any(bar["measured"] > bar["at most"] for bar in found["bars"]))


if __name__ == "__main__":
    sys.exit(main())
