"""The OpenAI SDK for Python, asynchronous: the calls that are given, as JSON what it saw."""

import asyncio
import json
import os
import sys

from openai import AsyncOpenAI

settings = {"model": os.environ["MODEL"], "temperature": 0, "max_tokens": 40}


async def plain(client: AsyncOpenAI, question: str) -> dict:
    raw = await client.chat.completions.with_raw_response.create(
        messages=[{"role": "user", "content": question}], **settings
    )
    answer = raw.parse()
    return {
        "cache": raw.headers.get("x-cache"),
        "coalesced": raw.headers.get("x-cache-coalesced"),
        "text": answer.choices[0].message.content,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.total_tokens,
        "id": answer.id,
        "request": raw.headers.get("x-request-id"),
    }


async def streamed(client: AsyncOpenAI, question: str) -> dict:
    """With the SDK's own reader of events, which refuses a stream that does not fit together."""
    async with client.chat.completions.stream(
        messages=[{"role": "user", "content": question}], stream_options={"include_usage": True}, **settings
    ) as stream:
        text = "".join([event.delta async for event in stream if event.type == "content.delta"])
        answer = await stream.get_final_completion()
        headers = stream._response.headers
    assert answer.choices[0].message.content == text
    return {
        "cache": headers.get("x-cache"),
        "coalesced": headers.get("x-cache-coalesced"),
        "text": text,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.total_tokens,
        "id": answer.id,
        "request": headers.get("x-request-id"),
    }


async def main() -> None:
    async with AsyncOpenAI(max_retries=0) as client:
        calls = json.loads(sys.argv[1])
        print(
            json.dumps(
                [await {"plain": plain, "streamed": streamed}[kind](client, question) for kind, question in calls]
            )
        )


asyncio.run(main())
