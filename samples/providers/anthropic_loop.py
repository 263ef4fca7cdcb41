"""A loop with Anthropic's client, streamed, whose risky calls wait for a person.

    python samples/providers/anthropic_loop.py               offline: a scripted provider and the sample shop
    python samples/providers/anthropic_loop.py --online      with ANTHROPIC_API_KEY, and a shop on this machine all the same

Needs `pip install anthropic`. `--yes` approves in the manager's name instead of asking in the terminal.
"""

import asyncio

from anthropic import AsyncAnthropic
from shop import ask_with, opened

from toolgen.adapters.anthropic import as_anthropic_tools, read_calls, write_results


async def loop(client, model, runtime, caller, ask, messages):
    while True:
        stream = await client.messages.create(
            model=model, max_tokens=1000, messages=messages, tools=as_anthropic_tools(runtime), stream=True
        )
        turn = read_calls(runtime, [event async for event in stream])
        messages += turn.said
        if not turn.ids:
            return "".join(block.get("text", "") for message in turn.said for block in message["content"])
        done, results = await runtime.submit(turn.calls, caller=caller, thread="chat-1", turn=turn.id), {}
        if done.pause:
            await ask(done.pause)
            results = await runtime.wait(done.pause.id, caller=caller)
        messages += write_results(turn, done, results)


async def main(options):
    async with opened(options, key="ANTHROPIC_API_KEY") as (runtime, caller, provider):
        client = AsyncAnthropic(**({} if options.online else {"base_url": provider.url, "api_key": "offline"}))
        messages = [{"role": "user", "content": options.wish}]
        model = options.model or "claude-sonnet-5-5"
        print(await loop(client, model, runtime, caller, ask_with(runtime, options), messages))
        for message in messages:
            for block in message["content"] if message["role"] == "user" else ():
                if isinstance(block, dict) and block["type"] == "tool_result":
                    print(f"{block['tool_use_id']}: {block['content']}")


if __name__ == "__main__":
    from shop import options

    asyncio.run(main(options(__doc__)))
