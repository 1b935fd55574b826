"""What becomes of answers that are none: the caller gets them as they are, the cache never does (B55)."""

import json

import pytest

from tests.fakes.backend import Numbered, chunk, completion, gives, sends, streams, text_completion
from tests.proxy import wire
from tests.rig import BODY, CHAT

COMPLETIONS = "/v1/completions"
ERROR = {"error": {"message": "The engine is overloaded.", "type": "server_error", "param": None, "code": None}}
OK = b"HTTP/1.1 200 OK\r\n"


def choice(message=None, finish="stop", **fields) -> dict:
    return {"index": 0, "message": message, "finish_reason": finish, **fields}


def said(text="Hi", **fields) -> dict:
    return {"role": "assistant", "content": text, **fields}


def with_choices(*choices) -> dict:
    return completion(choices=list(choices))


def typed(media: bytes, body: bytes):
    return sends(OK + b"Content-Type: %b\r\nContent-Length: %d\r\n\r\n" % (media, len(body)) + body)


WHOLE = json.dumps(completion()).encode()
SICK = {
    # by their status
    "400": gives(ERROR, "400 Bad Request"),
    "401": gives(ERROR, "401 Unauthorized"),
    "403": gives(ERROR, "403 Forbidden"),
    "404": gives(ERROR, "404 Not Found"),
    "429": gives(ERROR, "429 Too Many Requests"),
    "500": gives(ERROR, "500 Internal Server Error"),
    "503": gives(ERROR, "503 Service Unavailable"),
    "a good answer called 500": gives(completion(), "500 Internal Server Error"),
    "a good answer called 201": gives(completion(), "201 Created"),
    "a good answer called 206": gives(completion(), "206 Partial Content"),
    "a redirection": gives(completion(), "307 Temporary Redirect", b"Location: /v1/elsewhere\r\n"),
    "502 in HTML": sends(b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<h1>"),
    # by their kind
    "HTML": typed(b"text/html", b"<h1>Sorry</h1>"),
    "text": typed(b"text/plain", WHOLE),
    "no type": sends(OK + b"Content-Length: %d\r\n\r\n" % len(WHOLE) + WHOLE),
    "HTML called JSON": typed(b"application/json", b"<h1>Sorry</h1>"),
    "nothing called JSON": typed(b"application/json", b""),
    "half a document": typed(b"application/json", WHOLE[:-1]),
    "two documents": typed(b"application/json", WHOLE + WHOLE),
    "not UTF-8": typed(b"application/json", WHOLE.replace(b"Hello", b"H\xffllo")),
    "events": streams(chunk({"content": "Hi"}), chunk(finish="stop")),
    # by what they say
    "error": gives(ERROR),
    "error as a text": gives({"error": "overloaded"}),
    "error beside choices": gives({**completion(), **ERROR}),
    "array": gives([completion()]),
    "null": gives(b"null"),
    "no choices": gives({"id": "x", "object": "chat.completion"}),
    "choices null": gives(completion(choices=None)),
    "choices empty": gives(completion(choices=[])),
    "choices an object": gives(completion(choices={"0": choice(said())})),
    "choice null": gives(with_choices(None)),
    "message null": gives(with_choices(choice(None))),
    "content empty": gives(with_choices(choice(said("")))),
    "content null": gives(with_choices(choice(said(None)))),
    "tool calls empty": gives(with_choices(choice(said(None, tool_calls=[]), "tool_calls"))),
    "no finish": gives(with_choices(choice(said(), None))),
    "cut by its limit": gives(with_choices(choice(said(), "length"))),
    "filtered": gives(with_choices(choice(said(), "content_filter"))),
    "finish of another kind": gives(with_choices(choice(said(), 1))),
    "unknown finish": gives(with_choices(choice(said(), "error"))),
    "one choice too many": gives(with_choices(choice(said()), {**choice(said()), "index": 1})),
    "same choice twice, one unfinished": gives(with_choices(choice(said()), choice(said(), None))),
    "sound": gives(with_choices(choice(said("Hi", audio={"id": "a", "data": "AAAA"})))),
}  # fmt: skip


@pytest.mark.parametrize("case", SICK)
async def test_sick_answer_passes_and_is_never_kept(proxy, backend, case):
    """B55: status and body as they are, each time from the backend; then a healthy one is fetched and kept."""
    backend.script = SICK[case]
    found = [await wire.ask(proxy.port, wire.request(BODY)) for _ in range(2)]
    assert backend.calls == 2
    assert found[0].line == found[1].line
    assert found[0].body == found[1].body
    assert {a.get(b"x-cache") for a in found} == {b"MISS"}
    assert not any(b"stored" in (a.get(b"cache-status") or b"") for a in found if case != "events")
    assert (proxy.house.store.census().entries, proxy.house.engine.budget.held) == (0, 0)
    backend.script = gives(completion("Healthy."))
    healthy = [await wire.ask(proxy.port, wire.request(BODY)) for _ in range(2)]
    assert [a.get(b"x-cache") for a in healthy] == [b"MISS", b"HIT"]
    assert [json.loads(a.body)["choices"][0]["message"]["content"] for a in healthy] == ["Healthy."] * 2
    assert backend.calls == 3


@pytest.mark.parametrize("case", ["400", "401", "429", "500", "502 in HTML", "HTML", "error", "choices empty", "null"])
async def test_sick_answer_to_a_stream_passes_and_is_never_kept(proxy, backend, case):
    """B55 for a caller that asked for events; a refusal is asked for once more without our addition, at most."""
    backend.script = SICK[case]
    data = wire.request({**BODY, "stream": True})
    found = [await wire.ask(proxy.port, data) for _ in range(2)]
    assert 2 <= backend.calls <= 4
    assert (found[0].line, found[0].body) == (found[1].line, found[1].body)
    assert found[0].status != 200 or case not in ("400", "401", "429", "500", "502 in HTML")
    assert proxy.house.store.census().entries == 0
    backend.script = Numbered()
    assert [(await wire.ask(proxy.port, data)).get(b"x-cache") for _ in range(2)] == [b"MISS", b"HIT"]


SHORT = {
    "one choice of two": ({"n": 2}, completion(), CHAT),
    "one unfinished of two": ({"n": 2}, with_choices(choice(said()), {**choice(said(), None), "index": 1}), CHAT),
    "same index twice": ({"n": 2}, with_choices(choice(said()), choice(said())), CHAT),
    "completions: one of two": ({"n": 2}, text_completion("a"), COMPLETIONS),
    "completions: one of two prompts": ({"prompt": ["x", "y"]}, text_completion("a"), COMPLETIONS),
    "completions: two of two by two": ({"prompt": ["x", "y"], "n": 2}, text_completion("a", "b"), COMPLETIONS),
    "completions: empty": ({}, text_completion(""), COMPLETIONS),
    "completions: a chat's answer": ({}, completion(), COMPLETIONS),
    "chat: a completion's answer": ({}, text_completion("a"), CHAT),
}


@pytest.mark.parametrize("case", SHORT)
async def test_answer_that_is_not_what_was_asked_for_is_not_kept(client, proxy, backend, case):
    """B15's kind for documents: every choice that was asked for, finished."""
    fields, document, path = SHORT[case]
    backend.script = gives(document)
    for _ in range(2):
        answer = await client.send({**BODY, "prompt": "x", **fields}, path=path)
        assert (answer.status, answer.json, answer.cache) == (200, document, "MISS")
    assert (backend.calls, proxy.house.store.census().entries) == (2, 0)


FULL = {
    "two choices": ({"n": 2}, with_choices(choice(said("a")), {**choice(said("b")), "index": 1}), CHAT),
    "one of two is empty": ({"n": 2}, with_choices(choice(said("a")), {**choice(said("")), "index": 1}), CHAT),
    "two prompts": ({"prompt": ["x", "y"]}, text_completion("a", "b"), COMPLETIONS),
    "two prompts twice": ({"prompt": ["x", "y"], "n": 2}, text_completion("a", "b", "c", "d"), COMPLETIONS),
    "tokens": ({"prompt": [1, 2, 3]}, text_completion("a"), COMPLETIONS),
    "lists of tokens": ({"prompt": [[1, 2], [3]]}, text_completion("a", "b"), COMPLETIONS),
    "a refusal": ({}, with_choices(choice(said(None, refusal="I would rather not."))), CHAT),
    "a call": ({}, with_choices(choice(said(None, tool_calls=[{"id": "c", "type": "function"}]), "tool_calls")), CHAT),
    "a call that stops": ({}, with_choices(choice(said(None, tool_calls=[{"id": "c"}]), "stop")), CHAT),
    "error null": ({}, completion(error=None), CHAT),
    "type with parameters": ({}, completion(), CHAT),
}


@pytest.mark.parametrize("case", FULL)
async def test_answer_that_is_what_was_asked_for_is_kept(client, backend, case):
    """The other side of the rules: none of them keeps a good answer out."""
    fields, document, path = FULL[case]
    backend.script = gives(document)
    if case == "type with parameters":
        backend.script = typed(b"Application/JSON; Charset=UTF-8", json.dumps(document).encode())
    one, two = [await client.send({**BODY, "prompt": "x", **fields}, path=path) for _ in range(2)]
    assert (one.cache, two.cache, backend.calls) == ("MISS", "HIT", 1)
    assert one.json == document
    assert {**two.json, "id": 0, "created": 0} == {**document, "id": 0, "created": 0}


@pytest.mark.parametrize("case", ["500", "HTML", "error", "choices empty", "cut by its limit"])
async def test_failed_refresh_leaves_the_stored_answer(client, backend, case):
    """B55: what goes wrong on a `no-cache` takes nothing away from the others."""
    backend.script = gives(completion("Healthy."))
    await client.chat()
    backend.script = SICK[case]
    assert (await client.chat(Cache_Control="no-cache")).cache == "MISS"
    again = await client.chat()
    assert (again.cache, again.text) == ("HIT", "Healthy.")


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_refused_credential_is_served_nothing(client, backend, status):
    """B55, B30: after a refusal the credential has to prove itself before it gets a stored answer again."""
    await client.chat()
    backend.script = gives(ERROR, status)
    assert (await client.chat(seed=1)).status == int(status[:3])
    answer = await client.chat()
    assert (answer.status, answer.cache, answer.json) == (int(status[:3]), "MISS", ERROR)
    backend.script = Numbered()
    again = await client.chat()
    assert (again.cache, again.text) == ("HIT", "Hello.")
    assert backend.seen[-1].target == b"/v1/models"
    assert backend.seen[-1].get(b"authorization") == b"Bearer A"
