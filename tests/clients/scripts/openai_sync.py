"""The OpenAI SDK for Python, synchronous: the calls that are given, as JSON what it saw."""

import json
import os
import sys

from openai import OpenAI

client = OpenAI(max_retries=0)
settings = {"model": os.environ["MODEL"], "temperature": 0, "max_tokens": 40}


def plain(question: str) -> dict:
    raw = client.chat.completions.with_raw_response.create(
        messages=[{"role": "user", "content": question}], **settings
    )  # fmt: skip
    answer = raw.parse()
    return {
        "cache": raw.headers.get("x-cache"),
        "coalesced": raw.headers.get("x-cache-coalesced"),
        "text": answer.choices[0].message.content,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.total_tokens,
        "id": answer.id,
        "request": answer._request_id,
    }


def streamed(question: str) -> dict:
    with client.chat.completions.with_streaming_response.create(
        messages=[{"role": "user", "content": question}],
        stream=True,
        stream_options={"include_usage": True},
        **settings,
    ) as raw:
        chunks = list(raw.parse())
        choices = [c for chunk in chunks for c in chunk.choices]
        return {
            "cache": raw.headers.get("x-cache"),
            "coalesced": raw.headers.get("x-cache-coalesced"),
            "text": "".join(c.delta.content or "" for c in choices),
            "finish": next(c.finish_reason for c in choices if c.finish_reason),
            "usage": chunks[-1].usage.total_tokens,
            "id": chunks[0].id,
            "request": raw.headers.get("x-request-id"),
        }


print(
    json.dumps([{"plain": plain, "streamed": streamed}[kind](question) for kind, question in json.loads(sys.argv[1])])
)
