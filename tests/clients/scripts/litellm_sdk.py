"""LiteLLM as a library: the calls that are given, as JSON what it saw."""

import json
import os
import sys

import litellm

litellm.telemetry = False
settings = {
    "model": "openai/" + os.environ["MODEL"], "api_base": os.environ["OPENAI_BASE_URL"], "temperature": 0,
    "max_tokens": 40, "num_retries": 0, "max_retries": 0,
}  # fmt: skip


def headers_of(answer) -> dict:
    return {
        name.removeprefix("llm_provider-").lower(): value
        for name, value in answer._hidden_params["additional_headers"].items()
    }


def plain(question: str) -> dict:
    answer = litellm.completion(messages=[{"role": "user", "content": question}], **settings)
    headers = headers_of(answer)
    return {
        "cache": headers.get("x-cache"),
        "coalesced": headers.get("x-cache-coalesced"),
        "text": answer.choices[0].message.content,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.total_tokens,
        "id": answer.id,
        "request": headers.get("x-request-id"),
    }


def streamed(question: str) -> dict:
    messages = [{"role": "user", "content": question}]
    stream = litellm.completion(messages=messages, stream=True, stream_options={"include_usage": True}, **settings)
    chunks = list(stream)
    answer = litellm.stream_chunk_builder(chunks, messages=messages)
    headers = headers_of(stream)
    return {
        "cache": headers.get("x-cache"),
        "coalesced": headers.get("x-cache-coalesced"),
        "text": answer.choices[0].message.content,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.total_tokens,
        "id": answer.id,
        "request": headers.get("x-request-id"),
    }


print(
    json.dumps([{"plain": plain, "streamed": streamed}[kind](question) for kind, question in json.loads(sys.argv[1])])
)
