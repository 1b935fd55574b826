"""What the engine is asked, and how its answers are compared."""

import re
from typing import Any

from tests import rig
from tests.parts.engine import MODEL

KEY = "sk-of-the-engine"
COMPLETIONS = "/v1/completions"
# Greedy and from an empty prompt cache: the same question has the same answer and the same usage.
EXACTLY = {"model": MODEL, "temperature": 0, "cache_prompt": False, "max_tokens": 48}
QUESTION = "What is the capital of France? Answer in one word."
BODIES: dict[str, dict[str, Any]] = {
    rig.CHAT: {**EXACTLY, "messages": [{"role": "user", "content": QUESTION}]},
    COMPLETIONS: {**EXACTLY, "prompt": f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"},
}
JSON: dict[str, Any] = {}
STREAM = {"stream": True}
STREAM_WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}
FORMS = (JSON, STREAM, STREAM_WITH_USAGE)

PER_CONNECTION = frozenset({"date", "keep-alive", "connection", "content-length", "transfer-encoding"})


def name_of(form: Any) -> str:
    """A form's or path's name in a test's id."""
    if isinstance(form, str):
        return form.rsplit("/", 1)[-1]
    return "+".join(form) or "json"


def fields(answer: rig.Answer) -> list[tuple[str, str]]:
    """The header lines that must cross a proxy as they are."""
    return [(n, v) for n, v in answer.headers if n.lower() not in PER_CONNECTION]


def usages(answer: rig.Answer) -> list[Any]:
    """Every usage told, with the documents of a stream in order."""
    documents = answer.documents if is_stream(answer) else [answer.json]
    return [d["usage"] for d in documents if d.get("usage") is not None]


def is_stream(answer: rig.Answer) -> bool:
    return (answer.get("content-type") or "").startswith("text/event-stream")


def timings(answer: rig.Answer) -> list[Any]:
    documents = answer.documents if is_stream(answer) else [answer.json]
    return [d["timings"] for d in documents if "timings" in d]


def finishes(answer: rig.Answer) -> list[str]:
    documents = answer.documents if is_stream(answer) else [answer.json]
    return [c["finish_reason"] for d in documents for c in d["choices"] if c.get("finish_reason")]


def same_but_for_identity(document: Any) -> Any:
    """A document without what each answer has of its own."""
    return {n: v for n, v in document.items() if n not in ("id", "created")}


def shape(value: Any) -> Any:
    """Names and types, without the values."""
    if isinstance(value, dict):
        return {n: shape(v) for n, v in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


async def work_done(direct: rig.Client) -> int:
    """How many tokens the engine has read and written so far, by its own count."""
    text = (await direct.send(method="GET", path="/metrics", key=KEY)).body.decode()
    counts = re.findall(r"^llamacpp:(?:prompt_tokens_total|tokens_predicted_total) (\d+)", text, re.MULTILINE)
    assert len(counts) == 2, text
    return sum(int(count) for count in counts)
