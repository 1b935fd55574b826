"""The OpenAI SDK for Python, one call after another on one client: how many were what, as JSON."""

import json
import sys
from collections import Counter

from openai import OpenAI

client = OpenAI(max_retries=0)
seen: Counter[str] = Counter()
for i in range(int(sys.argv[1])):
    if i % 4 == 3:
        with client.chat.completions.with_streaming_response.create(
            model="m", messages=[{"role": "user", "content": "Say hello."}], stream=True
        ) as raw:
            text = "".join(c.delta.content or "" for chunk in raw.parse() for c in chunk.choices)
    else:
        raw = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "Say hello."}]
        )
        text = raw.parse().choices[0].message.content
    seen[f"{raw.headers['x-cache']} {text}"] += 1
print(json.dumps(seen))
