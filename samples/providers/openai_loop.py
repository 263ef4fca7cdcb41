"""A loop with OpenAI's client whose risky calls wait for a person.

    python samples/providers/openai_loop.py                  offline: a scripted provider and the sample shop
    python samples/providers/openai_loop.py --online         with OPENAI_API_KEY, and a shop on this machine all the same

Needs `pip install openai`. `--yes` approves in the manager's name instead of asking in the terminal.
"""

import asyncio

from openai import AsyncOpenAI
from shop import ask_with, opened

from toolgen.adapters.openai import as_openai_tools, read_calls, write_results


async def loop(client, model, runtime, caller, ask, messages):
    while True:
        response = await client.chat.completions.create(
            model=model, messages=messages, tools=as_openai_tools(runtime), stream=False
        )
        turn = read_calls(runtime, response)
        if not turn.ids:
            return response.choices[0].message.content
        done, results = await runtime.submit(turn.calls, caller=caller, thread="chat-1", turn=turn.id), {}
        if done.pause:
            await ask(done.pause)
            results = await runtime.wait(done.pause.id, caller=caller)
        messages += [*turn.said, *write_results(turn, done, results)]


async def main(options):
    async with opened(options, key="OPENAI_API_KEY") as (runtime, caller, provider):
        client = AsyncOpenAI(**({} if options.online else {"base_url": f"{provider.url}/v1", "api_key": "offline"}))
        messages = [{"role": "user", "content": options.wish}]
        print(
            await loop(client, options.model or "gpt-5.4-mini", runtime, caller, ask_with(runtime, options), messages)
        )
        for message in messages:
            if isinstance(message, dict) and message["role"] == "tool":
                print(f"{message['tool_call_id']}: {message['content']}")


if __name__ == "__main__":
    from shop import options

    asyncio.run(main(options(__doc__)))
