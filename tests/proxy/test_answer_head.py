"""The head of an answer, as the contract writes it: exactly these header lines of ours, in exactly these forms."""

import re

import pytest

from tests.fakes.backend import completion, gives, plain, streams, text_chunk
from tests.proxy import wire
from tests.rig import BODY, Client

STAGES = {"parse", "normalise", "auth", "exact", "embed", "search", "verify", "queue", "upstream", "total"}
FRAMING = {b"date", b"content-length", b"transfer-encoding", b"connection"}


def names(answer: wire.Wire) -> set[bytes]:
    return {n.lower() for n, _ in answer.headers} - FRAMING


async def ask(proxy, *lines: bytes, **fields) -> wire.Wire:
    return await wire.ask(proxy.port, wire.request({**BODY, **fields}, *lines))


def stages(answer: wire.Wire) -> dict[str, str]:
    """The entries of `Server-Timing`."""
    entries = [e.split(";dur=") for e in (answer.get(b"server-timing") or b"").decode().split(", ")]
    assert len({name for name, _ in entries}) == len(entries)
    return dict(entries)


def assert_timed(answer: wire.Wire, *expected: str) -> None:
    """`Server-Timing`: one entry a stage with its duration in milliseconds; the whole is not less than its parts."""
    found = stages(answer)
    assert found.keys() >= {*expected, "total"}
    assert all(re.fullmatch(r"\d+\.\d+|\d+", d) for d in found.values())
    durations = {name: float(duration) for name, duration in found.items()}
    total = durations.pop("total")
    assert sum(durations.values()) <= total + 0.1


@pytest.mark.parametrize("stream", [False, True])
async def test_head_of_a_hit(clock, proxy, backend, stream):
    await ask(proxy, stream=stream)
    clock.time += 7
    hit = await ask(proxy, stream=stream)
    assert hit.line == b"HTTP/1.1 200 OK"
    assert names(hit) == {
        b"content-type", b"x-request-id", b"cache-control", b"vary", b"cache-status", b"x-cache", b"age",
        b"x-cache-tier", b"x-cache-entry-id", b"server-timing", *([b"x-accel-buffering"] if stream else []),
    }  # fmt: skip
    assert hit.get(b"x-cache") == b"HIT"
    assert hit.get(b"x-cache-tier") == b"exact"
    assert hit.get(b"age") == b"7"
    assert re.fullmatch(rb"cacheproxy; hit; ttl=[1-9]\d*; detail=exact", hit.get(b"cache-status") or b"")
    assert hit.get(b"cache-control") == b"private, no-store"
    assert hit.get(b"vary") == b"Authorization"
    assert re.fullmatch(rb"[0-9a-f]{32}", hit.get(b"x-cache-entry-id") or b"")
    assert_timed(hit, "parse", "normalise", "exact", "auth")


async def test_head_of_a_miss(proxy, backend):
    miss = await ask(proxy)
    backends = {b"content-type"}
    assert names(miss) == backends | {
        b"cache-control", b"vary", b"cache-status", b"x-cache", b"x-cache-reason", b"x-cache-entry-id", b"server-timing",
    }  # fmt: skip
    assert (miss.get(b"x-cache"), miss.get(b"cache-status")) == (b"MISS", b"cacheproxy; fwd=miss; stored")
    assert miss.get(b"x-cache-reason") == b"absent"
    assert_timed(miss, "parse", "normalise", "exact", "upstream")


async def test_stages_are_those_of_the_contract(proxy, backend):
    """`Server-Timing` names no stage that the contract does not."""
    answers = [
        await ask(proxy),
        await ask(proxy),
        await ask(proxy, b"Cache-Control: no-store"),
        await ask(proxy, stream=True),
    ]
    for answer in answers:
        assert stages(answer).keys() <= STAGES


async def test_entry_id_is_that_of_the_entry(proxy, backend):
    """The same for whoever stored it and is served it, another for every other question, opaque in itself."""
    ids = [(await ask(proxy, **fields)).get(b"x-cache-entry-id") for fields in ({}, {}, {"stream": True}, {"seed": 1})]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    other = await wire.ask(proxy.port, wire.request(BODY, key="B"))
    assert other.get(b"x-cache-entry-id") not in ids
    not_kept = await ask(proxy, b"X-Cache-TTL: 0", seed=2)
    assert not_kept.get(b"x-cache-entry-id") is None


FORMS = {
    "miss": ((), {}, b"cacheproxy; fwd=miss; stored"),
    "miss of a stream": ((), {"stream": True}, b"cacheproxy; fwd=miss; stored"),
    "not stored": ((b"X-Cache-TTL: 0",), {}, b"cacheproxy; fwd=miss; detail=zero_ttl"),
    "bypass": ((b"Cache-Control: no-store",), {}, b"cacheproxy; fwd=bypass; detail=no_store"),
    "bypass by the body": ((), {"cache": {"no-store": True}}, b"cacheproxy; fwd=bypass; detail=no_store"),
    "request": ((b"Cache-Control: no-cache",), {}, b"cacheproxy; fwd=request; stored; detail=no_cache"),
    "unkeyable": ((), {"stream": 1}, b"cacheproxy; fwd=bypass; detail=unkeyable"),
}


@pytest.mark.parametrize("case", FORMS)
async def test_forms_of_cache_status(proxy, backend, case):
    """RFC 9211, and the same reason in `X-Cache-Reason`."""
    lines, fields, expected = FORMS[case]
    answer = await ask(proxy, *lines, **fields)
    assert answer.all(b"cache-status") == [expected]
    detail = expected.partition(b"detail=")[2] or b"absent"
    assert answer.all(b"x-cache-reason") == [detail]
    assert answer.all(b"x-cache") == [b"BYPASS" if b"bypass" in expected else b"MISS"]
    assert answer.get(b"x-cache-tier") is None and answer.get(b"age") is None


async def test_answer_that_is_not_kept_does_not_say_stored(proxy, backend):
    """What a JSON answer's head says of its keeping is true."""
    backend.script = gives(completion(choices=[]))
    empty = await ask(proxy)
    assert empty.get(b"cache-status") == b"cacheproxy; fwd=miss; detail=empty"
    backend.script = gives({"error": {}}, "500 Oops")
    failed = await ask(proxy)
    assert failed.get(b"cache-status") == b"cacheproxy; fwd=miss; detail=status"
    assert {failed.get(b"x-cache-entry-id"), empty.get(b"x-cache-entry-id")} == {None}


async def test_other_paths_say_bypass(proxy, backend):
    answer = await wire.ask(proxy.port, wire.request(None, method="GET", path="/v1/files"))
    assert (answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (b"BYPASS", b"uncacheable_path")
    assert answer.get(b"cache-status") == b"cacheproxy; fwd=bypass; detail=uncacheable_path"
    assert_timed(answer, "upstream")


TELLING = re.compile(rb"x-cache.*|cache-status|age|server-timing")


@pytest.mark.parametrize("stream", [False, True])
async def test_hidden_hits(start, backend, stream):
    """B84, `access.hide_hits`: no header of ours that tells a hit from a miss; it is one nevertheless."""
    proxy = await start(access__hide_hits=True)
    answers = [await ask(proxy, stream=stream) for _ in range(2)]
    answers.append(await ask(proxy, b"Cache-Control: no-store", stream=stream))
    assert backend.calls == 2
    for answer in answers:
        assert not [n for n in names(answer) if TELLING.fullmatch(n)]
        assert (answer.get(b"cache-control"), answer.get(b"vary")) == (b"private, no-store", b"Authorization")


@pytest.mark.parametrize("identified", [True, False])
@pytest.mark.parametrize("stream", [False, True])
async def test_hidden_hits_have_the_same_header_names(start, backend, stream, identified):
    """B84: a name that only hits have, or only misses, tells as much as a word would."""
    proxy = await start(access__hide_hits=True)
    extra = b"x-request-id: r1\r\n" if identified else b""

    async def script(exchange) -> None:
        if stream:
            await streams(text_chunk("Hi"), text_chunk(finish="stop"), extra=extra)(exchange)
        else:
            await gives(
                {**completion(), "choices": [{"index": 0, "text": "Hi", "finish_reason": "stop"}]}, extra=extra
            )(exchange)

    backend.script = script
    data = wire.request({"model": "m", "prompt": "x", "stream": stream}, path="/v1/completions")
    one, two = [await wire.ask(proxy.port, data) for _ in range(2)]
    assert backend.calls == 1
    assert sorted(n.lower() for n, _ in two.headers) == sorted(n.lower() for n, _ in one.headers)


async def test_hidden_hits_are_still_counted(start, session, backend):
    """Hidden from callers, not from the operator."""
    proxy = await start(access__hide_hits=True)
    client = Client(proxy.base, session)
    backend.script = plain
    for _ in range(3):
        await client.chat()
    assert proxy.house.telemetry.summary()["requests"] == {"HIT": 2, "STALE": 0, "MISS": 1, "BYPASS": 0, "SHADOW": 0}
