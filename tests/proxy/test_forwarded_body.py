"""The forwarded body is the caller's, byte for byte, whatever it looks like; the two rules that touch it touch nothing
else."""

import json

import pytest

from tests import rig
from tests.fakes.backend import completion, gives
from tests.proxy import wire
from tests.rig import BODY

MESSAGES = b'"messages":[{"role":"user","content":"x"}]'
ODD = {
    "spaces": b'{ "model" :\t"m" , \r\n' + MESSAGES + b" }",
    "around it": b"\n\n {" + MESSAGES + b"} \r\n\r\n",
    "order": b'{"z":1,' + MESSAGES + b',"a":2}',
    "numbers": b"{" + MESSAGES + b',"temperature":1.0E+0,"top_p":-0.0,"seed":0,"x":1e5,"y":0.10000000000000000555}',
    "escapes": b"{" + MESSAGES + b',"stop":"\\u0041\\/\\b\\f\\ud83d\\ude00\\"\\\\"}',
    "beyond ASCII": b"{" + MESSAGES + ',"stop":"é漢🙂\u2028\u0085"}'.encode(),
    "empty names": b"{" + MESSAGES + b',"":{"":[[],{},"",null,true]}}',
    "names with quotes": b"{" + MESSAGES + b',"a\\"b":"c\\\\","cache\\"":1}',
    "deep": b"{" + MESSAGES + b',"x":' + b"[" * 200 + b"]" * 200 + b"}",
    "nulls": b"{" + MESSAGES + b',"temperature":null,"n":null,"user":null,"tools":null}',
}
"""Bodies that are kept like any other."""

UNKEYABLE = {
    "name twice": b"{" + MESSAGES + b',"seed":1,"seed":2}',
    "name twice inside": b'{"messages":[{"role":"user","content":"x","content":"y"}]}',
    "huge integer": b"{" + MESSAGES + b',"seed":18446744073709551616}',
    "huge integer below": b"{" + MESSAGES + b',"x":{"y":[-9223372036854775809]}}',
    "not a number": b"{" + MESSAGES + b',"temperature":NaN}',
    "infinite": b"{" + MESSAGES + b',"temperature":-Infinity}',
    "half a character": b"{" + MESSAGES + b',"stop":"\\ud83d"}',
    "very deep": b"{" + MESSAGES + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "array": b"[" + b"1,2]",
    "text": b'"hello"',
    "stream is a number": b"{" + MESSAGES + b',"stream":1}',
    "stream is a text": b"{" + MESSAGES + b',"stream":"true"}',
}
"""Bodies that could not be told apart safely: forwarded, never looked up."""

NO_JSON = [
    b"",
    b"{",
    b"{" + MESSAGES,
    b"nothing",
    b'{"a":1,}',
    b"{'a':1}",
    b'{"a":"\xff"}',
    b'{"a":1}{"b":2}',
    b'{"a":"\n"}',
]


@pytest.mark.parametrize("case", ODD)
async def test_odd_body_is_forwarded_byte_for_byte(proxy, backend, case):
    """And then answered from the cache: looking at a body is not changing it."""
    backend.script = gives(completion())
    found = [await wire.ask(proxy.port, wire.request(ODD[case])) for _ in range(2)]
    assert [a.get(b"x-cache") for a in found] == [b"MISS", b"HIT"]
    assert [s.body for s in backend.seen] == [ODD[case]]


@pytest.mark.parametrize("case", UNKEYABLE)
async def test_body_that_cannot_be_keyed_is_forwarded_and_not_looked_up(proxy, backend, case):
    backend.script = gives(completion())
    for _ in range(2):
        answer = await wire.ask(proxy.port, wire.request(UNKEYABLE[case]))
        assert (answer.status, answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (200, b"BYPASS", b"unkeyable")
    assert [s.body for s in backend.seen] == [UNKEYABLE[case]] * 2
    assert proxy.house.store.census().entries == 0


@pytest.mark.parametrize("body", NO_JSON)
async def test_body_that_is_no_json_is_refused(proxy, backend, body):
    answer = await wire.ask(proxy.port, wire.request(body))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_json")
    assert backend.seen == []


@pytest.mark.parametrize("body", NO_JSON)
async def test_other_paths_take_any_body(proxy, backend, body):
    backend.script = gives({})
    answer = await wire.ask(proxy.port, wire.request(body, path="/v1/audio/transcriptions"))
    assert (answer.status, [s.body for s in backend.seen]) == (200, [body])


def streamed(body: bytes) -> bytes:
    """The same body, asking for a stream at its end."""
    end = body.rindex(b"}")
    return body[:end] + b' ,"stream" : true' + body[end:]


@pytest.mark.parametrize("case", ODD)
async def test_stream_without_asking_for_usage_is_forwarded_byte_for_byte(start, backend, case):
    """`stream.ask_usage: false` leaves nothing that touches a body."""
    proxy = await start(stream__ask_usage=False)
    body = streamed(ODD[case])
    answer = await wire.ask(proxy.port, wire.request(body))
    assert (answer.status, [s.body for s in backend.seen]) == (200, [body])


@pytest.mark.parametrize("case", ODD)
async def test_asking_for_usage_adds_one_member_and_changes_nothing(proxy, backend, case):
    body = streamed(ODD[case])
    answer = await wire.ask(proxy.port, wire.request(body))
    assert answer.status == 200
    at = body.index(b"{") + 1
    assert backend.seen[0].body == body[:at] + b'"stream_options":{"include_usage":true},' + body[at:]
    assert backend.seen[0].get(b"content-length") == b"%d" % len(backend.seen[0].body)


CACHE = b'"cache" : {"ttl":60, "no-cache" :false}'
PLACES = {
    "first": (b"{ " + CACHE + b' ,"seed":1,' + MESSAGES + b"}", b'{ "seed":1,' + MESSAGES + b"}"),
    "between": (b'{"seed":1, ' + CACHE + b" , " + MESSAGES + b"}", b'{"seed":1, ' + MESSAGES + b"}"),
    "last": (b'{"seed":1,' + MESSAGES + b" , " + CACHE + b" }", b'{"seed":1,' + MESSAGES + b" }"),
    "alone": (b"{ " + CACHE + b" }", b"{  }"),
    "empty": (b'{"cache":{},' + MESSAGES + b"}", b"{" + MESSAGES + b"}"),
    "beside its own name in a text": (
        b'{"x":"\\"cache\\":{}","cache":{"ttl":1,"namespace":"}{\\"cache"},' + MESSAGES + b"}",
        b'{"x":"\\"cache\\":{}",' + MESSAGES + b"}",
    ),
    "beside its own name inside": (
        b'{"x":{"cache":{"ttl":1}},"cache":{"ttl":60},' + MESSAGES + b"}",
        b'{"x":{"cache":{"ttl":1}},' + MESSAGES + b"}",
    ),
}


@pytest.mark.parametrize("case", PLACES)
async def test_litellm_field_is_removed_and_nothing_else(proxy, backend, case):
    """And its absence is the same question."""
    body, left = PLACES[case]
    backend.script = gives(completion())
    assert (await wire.ask(proxy.port, wire.request(body))).get(b"x-cache") == b"MISS"
    assert [s.body for s in backend.seen] == [left]
    assert backend.seen[0].get(b"content-length") == b"%d" % len(left)
    if b"namespace" not in body:
        assert (await wire.ask(proxy.port, wire.request(left))).get(b"x-cache") == b"HIT"


@pytest.mark.parametrize("value", [True, "yes", None, [], {"ttl": 1, "other": 2}, {"type": "ephemeral"}])
async def test_cache_field_of_another_meaning_is_the_backends(client, backend, value):
    """Only LiteLLM's own names are understood; anything else passes, and counts for the key."""
    first, second = [await client.chat(cache=value), await client.chat()]
    assert (first.cache, second.cache) == ("MISS", "MISS")
    assert backend.seen[0].json == {**BODY, "cache": value}


async def test_litellm_field_passes_when_switched_off(start, session, backend):
    proxy = await start(compat__litellm_body=False)
    client = rig.Client(proxy.base, session)
    body = {**BODY, "cache": {"no-store": True}}
    assert [(await client.send(body)).cache for _ in range(2)] == ["MISS", "HIT"]
    assert [s.json for s in backend.seen] == [body]


@pytest.mark.parametrize("lines", [(), (b"Cache-Control: no-store",), (b"Content-Encoding: identity",)])
async def test_litellm_field_never_reaches_the_backend(proxy, backend, lines):
    """Whatever else keeps the request from the cache: a backend may refuse a field that it does not know."""
    backend.script = gives(completion())
    await wire.ask(proxy.port, wire.request({**BODY, "cache": {"no-store": True}}, *lines))
    assert [s.json for s in backend.seen] == [BODY]


async def test_cache_switched_off_leaves_everything_as_it_is(start, session, backend):
    """`exact.mode: off`: no look, no store, no change of a byte."""
    proxy = await start(exact__mode="off")
    body = b' {"stream" :true,"messages":[]}'
    for _ in range(2):
        answer = await rig.Client(proxy.base, session).send(body)
        assert (answer.cache, answer.get("x-cache-reason"), answer.text) == ("BYPASS", "cache_off", "Hello.")
    assert [s.body for s in backend.seen] == [body] * 2
