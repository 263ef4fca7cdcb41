"""A model's calls, a person's answer, and the results: the whole loop, on this machine.

    python samples/petstore/loop.py

The model is a script and the API is the sample server, so that nothing beyond this machine is asked.
"""

import asyncio

from toolgen import ApprovalConfig, Caller, Decider, Decision, Dispatcher, Runtime, ToolCall, generate


async def loop(model, runtime, caller, ask):
    results = {}
    while calls := model(results):
        done = await runtime.submit(calls, caller=caller)
        results = dict(done.results)
        if done.pause:
            await ask(done.pause)
            results |= await runtime.wait(done.pause.id, caller=caller)


def scripted():
    """Stands for a model: prints what it reads, and asks for what is next in its script."""
    script = [[ToolCall("1", "getPet", {"petId": "7"}), ToolCall("2", "deletePet", {"petId": "7"})], []]

    def model(results):
        for id, result in results.items():
            print(f"{id}: {result}")
        return script.pop(0)

    return model


async def main(server):
    toolset = generate("petstore.yaml", server=server)
    config = ApprovalConfig.load("approvals.yaml", [toolset])
    boss = Decider("grace", roles=frozenset({"shop-manager"}))  # as your own sign-in knows her
    async with Runtime(Dispatcher(toolset, credentials={"bearerAuth": "${env:SHOP_TOKEN}"}), config) as runtime:

        async def ask(pause):
            print(pause.reason, *(f"[{call.id}: {call.endpoint}]" for call in pause.calls))
            await runtime.decide(pause.id, Decision("approved", note="He was sold."), decider=boss)

        await loop(scripted(), runtime, Caller("ada"), ask)


if __name__ == "__main__":
    import os

    from server import running

    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    os.environ.setdefault("SHOP_TOKEN", "any-token")
    with running() as shop:
        asyncio.run(main(shop.url))
        print(*shop.requests, sep="\n")
