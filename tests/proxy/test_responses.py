"""The Responses API through the proxy: both forms from either, its id kept, nothing stateful looked up."""

import json

import pytest

PATH = "/v1/responses"


def document(text: str = "Hello.", **fields) -> dict:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": None,
        "incomplete_details": None, "model": "m", "output": [message], "usage": usage, **fields,
    }  # fmt: skip


async def respond(exchange) -> None:
    whole = document()
    if not exchange.seen.json.get("stream"):
        await exchange.json(whole)
        return
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": begun, "sequence_number": 0},
        {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
         "delta": "Hello.", "sequence_number": 1},
        {"type": "response.completed", "response": whole, "sequence_number": 2},
    ]  # fmt: skip
    pieces = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]
    await exchange.events(*pieces, done=False)


@pytest.fixture(autouse=True)
def responder(backend):
    backend.script = respond
    return backend


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
async def test_second_call_is_a_hit_in_the_form_asked_for(client, backend, first, second):
    """B21's kind: a document or its events, whichever way it was recorded; the id is the backend's."""
    body = {"model": "m", "input": "Say hello."}
    miss = await client.send({**body, "stream": first}, path=PATH)
    hit = await client.send({**body, "stream": second}, path=PATH)
    assert (miss.cache, hit.cache, backend.calls + len(backend.seen)) == ("MISS", "HIT", backend.calls + 1)
    final = hit.documents[-1]["response"] if second else hit.json
    assert final == document()
    if second:
        assert hit.documents[-1]["type"] == "response.completed"
        assert "Hello." in [d.get("delta") for d in hit.documents] or len(hit.documents) > 3


@pytest.mark.parametrize("reference", [{"previous_response_id": "resp_0"}, {"background": True}, {"conversation": "c"}])
async def test_what_refers_to_the_backends_memory_is_never_looked_up(client, reference):
    answers = [await client.send({"model": "m", "input": "x", **reference}, path=PATH) for _ in range(2)]
    assert [(a.cache, a.get("x-cache-reason")) for a in answers] == [("BYPASS", "stateful")] * 2


@pytest.mark.parametrize("change", [{"instructions": "b"}, {"user": "v"}, {"metadata": {"a": "b"}}, {"input": "y"}])
async def test_what_the_answer_would_show_is_part_of_the_key(client, change):
    """B03; and what the answer repeats of a request is never another request's."""
    body = {"model": "m", "input": "x", "instructions": "a", "user": "u"}
    await client.send(body, path=PATH)
    assert (await client.send({**body, **change}, path=PATH)).cache == "MISS"


@pytest.mark.parametrize("state", ["incomplete", "failed", "in_progress"])
async def test_what_is_not_complete_is_not_kept(client, backend, state):
    """B15's kind."""

    async def unfinished(exchange) -> None:
        await exchange.json(document(status=state))

    backend.script = unfinished
    body = {"model": "m", "input": "x"}
    assert [(await client.send(body, path=PATH)).cache for _ in range(2)] == ["MISS", "MISS"]
