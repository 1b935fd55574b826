"""LangChain's OpenAI chat model: the calls that are given, as JSON what it saw."""

import json
import os
import sys

from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model=os.environ["MODEL"], temperature=0, max_tokens=40, max_retries=0, include_response_headers=True,
    stream_usage=True,
)  # fmt: skip


def seen(message) -> dict:
    headers = message.response_metadata["headers"]
    return {
        "cache": headers.get("x-cache"),
        "coalesced": headers.get("x-cache-coalesced"),
        "text": message.content,
        "finish": message.response_metadata["finish_reason"],
        "usage": message.usage_metadata["total_tokens"],
        "id": message.id,
        "request": headers.get("x-request-id"),
    }


def plain(question: str) -> dict:
    return seen(model.invoke([("human", question)]))


def streamed(question: str) -> dict:
    whole = None
    for piece in model.stream([("human", question)]):
        whole = piece if whole is None else whole + piece
    return seen(whole)


print(
    json.dumps([{"plain": plain, "streamed": streamed}[kind](question) for kind, question in json.loads(sys.argv[1])])
)
