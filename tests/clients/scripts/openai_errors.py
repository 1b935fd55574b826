"""The OpenAI SDK for Python when calls go wrong: for each case the exception that it raised, as JSON."""

import json
import sys

import openai

client = openai.OpenAI(max_retries=0)


def ask(case: dict) -> dict:
    pieces: list[str] = []
    asking = openai.OpenAI() if case.get("with_retries") else client
    try:
        answer = asking.chat.completions.create(
            model="m", messages=[{"role": "user", "content": case["question"]}], stream=case.get("stream", False),
            extra_headers=case.get("headers"),
        )  # fmt: skip
        if case.get("stream"):
            pieces.extend(c.delta.content or "" for chunk in answer for c in chunk.choices)
    except Exception as error:
        return {"kinds": [kind.__name__ for kind in type(error).__mro__], "pieces": pieces, **details(error)}
    return {"kinds": [], "pieces": pieces}


def details(error: Exception) -> dict:
    if not isinstance(error, openai.APIStatusError):
        return {}
    headers = error.response.headers
    return {
        "status": error.status_code,
        "code": error.code,
        "type": error.type,
        "body": error.body,
        "headers": dict(headers),
        "request": error.request_id,
    }


print(json.dumps([ask(case) for case in json.loads(sys.argv[1])]))
