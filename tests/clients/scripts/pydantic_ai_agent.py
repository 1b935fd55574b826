"""An agent of Pydantic AI: the calls that are given, as JSON what it saw."""

import asyncio
import json
import os
import sys

from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

heads: list = []


async def note(response) -> None:
    heads.append(response.headers)


def seen(text: str, response, usage) -> dict:
    headers = heads.pop()
    return {
        "cache": headers.get("x-cache"),
        "coalesced": headers.get("x-cache-coalesced"),
        "text": text,
        "finish": response.finish_reason,
        "usage": usage.total_tokens,
        "id": response.provider_response_id,
        "request": headers.get("x-request-id"),
    }


async def plain(agent: Agent, question: str) -> dict:
    result = await agent.run(question)
    return seen(result.output, result.response, result.usage)


async def streamed(agent: Agent, question: str) -> dict:
    async with agent.run_stream(question) as result:
        text = "".join([piece async for piece in result.stream_text(delta=True, debounce_by=None)])
        assert await result.get_output() == text
        return seen(text, result.response, result.usage)


async def main() -> None:
    async with DefaultAsyncHttpxClient(event_hooks={"response": [note]}) as http:
        client = AsyncOpenAI(max_retries=0, http_client=http)
        model = OpenAIChatModel(os.environ["MODEL"], provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, model_settings={"temperature": 0, "max_tokens": 40})
        calls = json.loads(sys.argv[1])
        print(json.dumps([await {"plain": plain, "streamed": streamed}[kind](agent, said) for kind, said in calls]))


asyncio.run(main())
