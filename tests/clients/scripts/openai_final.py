"""The OpenAI SDK for Python: what it has in the end of a call, as JSON; of a stream, what its own accumulator made."""

import json
import os
import sys

from openai import OpenAI

client = OpenAI(max_retries=0)
settings = {"model": os.environ["MODEL"]}


def chat_plain(question: str, counted: bool):
    raw = client.chat.completions.with_raw_response.create(messages=[{"role": "user", "content": question}], **settings)
    return raw.headers["x-cache"], raw.parse()


def chat_streamed(question: str, counted: bool):
    options = {"stream_options": {"include_usage": True}} if counted else {}
    with client.chat.completions.stream(
        messages=[{"role": "user", "content": question}], **options, **settings
    ) as stream:
        cache = stream._response.headers["x-cache"]
        return cache, stream.get_final_completion()


def responses_plain(question: str, counted: bool):
    raw = client.responses.with_raw_response.create(input=question, **settings)
    return raw.headers["x-cache"], raw.parse()


def responses_streamed(question: str, counted: bool):
    """The events are gathered by the accumulator, which wants each of them to fit the ones before."""
    with client.responses.stream(input=question, **settings) as stream:
        cache = stream._response.headers["x-cache"]
        return cache, stream.get_final_response()


seen = []
for kind, question, counted in json.loads(sys.argv[1]):
    cache, final = globals()[kind](question, counted)
    seen.append({"cache": cache, "final": final.to_dict(mode="json")})
print(json.dumps(seen))
