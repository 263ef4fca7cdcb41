"""What both loops stand on: the sample shop behind a gate, and a person who is asked."""

import argparse
import asyncio
import os
import sys
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from scripted import scripted

from toolgen import ApprovalConfig, Caller, Decider, Decision, Dispatcher, Runtime, generate

PETSTORE = Path(__file__).resolve().parent.parent / "petstore"
sys.path.insert(0, str(PETSTORE))  # where the shop is

from server import running  # noqa: E402

SCRIPT = [[("getPet", {"petId": "7"}), ("deletePet", {"petId": "7"})], "Rex is sold and gone."]


def options(doc):
    """The options of a loop."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--online", action="store_true", help="ask the provider")
    parser.add_argument("--yes", action="store_true", help="approve everything")
    parser.add_argument("--model", help="which model")
    parser.add_argument("--wish", default="Pet 7 was sold: show it, then delete it.", help="what is asked for")
    return parser.parse_args()


@asynccontextmanager
async def opened(options, key):
    """The runtime over the shop, the caller, and the scripted provider (None online)."""
    if options.online and not os.environ.get(key):
        sys.exit(f"--online needs {key}")
    os.environ.setdefault("SHOP_TOKEN", "any-token")
    with running() as shop, nullcontext() if options.online else scripted(SCRIPT) as provider:
        toolset = generate(PETSTORE / "petstore.yaml", server=shop.url)
        config = ApprovalConfig.load(PETSTORE / "approvals.yaml", [toolset])
        async with Runtime(Dispatcher(toolset, credentials={"bearerAuth": "${env:SHOP_TOKEN}"}), config) as runtime:
            yield runtime, Caller("ada"), provider


def ask_with(runtime, options):
    """A function that asks the manager: here in the terminal, in a program on a page of its own."""

    async def ask(pause):
        print(pause.reason)
        for call in pause.calls:
            print(f"  {call.preview['method']} {call.preview['url']}")
        said = "y" if options.yes else await asyncio.to_thread(input, "approve? [y/N] ")
        boss = Decider("grace", frozenset({"shop-manager"}))  # as your own sign-in knows her
        verdict = "approved" if said.strip().lower() == "y" else "rejected"
        await runtime.decide(pause.id, Decision(verdict, revision=pause.revision), decider=boss)

    return ask
