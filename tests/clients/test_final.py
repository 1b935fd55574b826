"""What the API's own client has in the end of a call is the same live, replayed, and from the other form."""

from typing import Any

import pytest

from tests.fakes.backend import Exchange, event
from tests.proxy.test_same_answer import KINDS, PIECE, USAGE

CHATS = {name: kind for name, kind in KINDS.items() if name != "completions" and not kind[0].get("n")}
"""Not those of several choices; nor what this client's accumulator does not gather: it joins an id that is repeated,
and passes over unknown members beside the delta."""
del CHATS["calls that repeat their id"], CHATS["unknown fields"]
OUTPUT = [
    {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Let me think."}]},
    {
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [
            {"type": "output_text", "text": "Hello, 世界. And more of it.", "annotations": [], "logprobs": []},
            {"type": "refusal", "refusal": "I would rather not."},
        ],
    },
    {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": "b c"}', "status": "completed"},
]  # fmt: skip
RESPONSE: dict[str, Any] = {
    "id": "resp_1", "object": "response", "created_at": 1700000000, "status": "completed", "error": None, "model": "m",
    "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
    "tool_choice": "auto", "tools": [], "top_p": 1.0, "output": OUTPUT, "x_unknown": {"a": 1},
    "usage": {
        "input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}  # fmt: skip


async def answering(exchange: Exchange) -> None:
    """A backend that says what the question names, in either form."""
    asked = exchange.seen.json
    if "input" in asked:
        await exchange.json(RESPONSE)
        return
    _, document, chunks = CHATS[asked["messages"][-1]["content"]]
    if asked.get("stream"):
        usage = event({**PIECE, "choices": [], "usage": USAGE})
        wants = (asked.get("stream_options") or {}).get("include_usage")
        await exchange.events(*map(event, chunks), *([usage] if wants else []))
    else:
        await exchange.json(document)


def bare(final: Any) -> Any:
    """Without its id and time, nulls, and what this client adds for its own use."""
    return _bare({n: v for n, v in final.items() if n not in ("id", "created", "created_at")}) if final else final


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return [_bare(v) for v in value] if isinstance(value, list) else value
    own = ("parsed", "parsed_arguments", *(["index"] if "function" in value else []))
    kept = {n: _bare(v) for n, v in value.items() if v is not None and n not in own}
    return {n: v for n, v in kept.items() if not (n == "content" and v == "")}


_ORDERS = {
    "recorded as a stream": (["chat_streamed", "chat_streamed", "chat_plain"], ["MISS", "HIT", "HIT"]),
    "recorded as JSON": (["chat_plain", "chat_streamed", "chat_plain"], ["MISS", "HIT", "HIT"]),
}


@pytest.mark.parametrize("order", _ORDERS)
async def test_a_chat_is_the_same_in_the_end(run, backend, proxy, order):
    """B17, B21."""
    backend.script = answering
    kinds, caches = _ORDERS[order]
    seen = await run("openai_final.py", proxy.base, [(kind, name, True) for name in CHATS for kind in kinds])
    assert backend.calls == len(CHATS)
    for number, name in enumerate(CHATS):
        told = seen[3 * number : 3 * number + 3]
        assert [s["cache"] for s in told] == caches, name
        truth = bare(CHATS[name][1])
        assert [bare(s["final"]) for s in told] == [truth] * 3, name


async def test_usage_is_in_the_end_of_who_asked_for_it(run, backend, proxy):
    backend.script = answering
    calls = [("chat_streamed", "text", counted) for counted in (False, True, False)]
    seen = await run("openai_final.py", proxy.base, calls)
    assert [s["cache"] for s in seen] == ["MISS", "HIT", "HIT"]
    assert [bare(s["final"].get("usage")) for s in seen] == [None, USAGE, None]


async def test_a_response_is_the_same_in_the_end(run, backend, proxy):
    """A document recorded, then streamed: its accumulator takes every event, and ends with the document."""
    backend.script = answering
    calls = [(kind, "Hello", True) for kind in ("responses_plain", "responses_streamed", "responses_plain")]
    seen = await run("openai_final.py", proxy.base, calls)
    assert [s["cache"] for s in seen] == ["MISS", "HIT", "HIT"]
    assert [bare(s["final"]) for s in seen] == [bare(RESPONSE)] * 3
