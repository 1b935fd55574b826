"""What a caller may ask of the cache with `Cache-Control`: the request directives of RFC 9111 section 5.2.1."""

import json
import re

import pytest

from cacheproxy.core.outcome import Reason
from tests.fakes.backend import Numbered
from tests.proxy import wire
from tests.rig import BODY, Answer, Client


@pytest.fixture
def backend(backend):
    """Every answer of the backend is another text."""
    backend.script = Numbered()
    return backend


@pytest.fixture
async def proxy(start):
    """One that refreshes nothing: whether a use near the end of a lifetime does is left to chance."""
    return await start(exact__refresh=0)


def status(answer: Answer) -> dict[str, str | bool]:
    """The parameters of our member of `Cache-Status`."""
    found = [v for v in answer.all("cache-status") if v.startswith("cacheproxy; ")]
    assert len(found) == 1
    parts = [p.partition("=") for p in found[0].removeprefix("cacheproxy; ").split("; ")]
    return {name: value or True for name, _, value in parts}


async def test_no_cache_refreshes_the_stored_answer(client, backend):
    """B52: not read, but written: the next plain request gets the new one."""
    assert (await client.chat()).text == "answer 1"
    fresh = await client.chat(Cache_Control="no-cache")
    assert (fresh.cache, fresh.text, fresh.get("x-cache-reason")) == ("MISS", "answer 2", "no_cache")
    assert status(fresh)["fwd"] == "request" and status(fresh)["stored"] is True
    again = await client.chat()
    assert (again.cache, again.text, backend.calls) == ("HIT", "answer 2", 2)


async def test_no_store_is_neither_read_nor_written(client, backend):
    """B52: cold it leaves nothing behind, warm it leaves what is there."""
    cold = await client.chat(Cache_Control="no-store")
    assert (cold.cache, cold.text, cold.get("x-cache-reason")) == ("BYPASS", "answer 1", "no_store")
    assert status(cold) == {"fwd": "bypass", "detail": "no_store"}
    assert (await client.chat()).text == "answer 2"
    warm = await client.chat(Cache_Control="no-store", stream=True)
    assert (warm.cache, warm.text) == ("BYPASS", "answer 3")
    assert (await client.chat()).text == "answer 2"


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        ((b"Cache-Control: No-Cache",), b"no_cache"),
        ((b"CACHE-CONTROL: NO-STORE",), b"no_store"),
        ((b"Cache-Control: max-age=60", b"Cache-Control: no-cache"), b"no_cache"),
        ((b"Cache-Control: no-cache", b"Cache-Control: no-store"), b"no_store"),
        ((b'Cache-Control: foo="a, no-store" , no-cache',), b"no_cache"),
        ((b"Cache-Control: ,, no-cache ,",), b"no_cache"),
        ((b"X-Cache-Control: no-cache",), b"no_cache"),
        ((b"X-Cache-Control: no-store",), b"no_store"),
        ((b"Cache-Control: max-age=60", b"X-Cache-Control: no-store"), b"no_store"),
        ((b"Cache-Control: no-store", b"X-Cache-Control: max-age=60"), b"no_store"),
        ((b"Pragma: no-cache",), b"no_cache"),
        ((b"Cache-Control: max-age=0",), b"too_old"),
        ((b"Cache-Control: s-maxage=0",), b"too_old"),
        ((b"Cache-Control: max-age=60", b"Cache-Control: max-age=0"), b"too_old"),
        ((b'Cache-Control: max-age="0"',), b"too_old"),
        ((b"Cache-Control: max-age=soon",), b"too_old"),
        ((b"Cache-Control: max-age",), b"too_old"),
        ((b"Cache-Control: max-age=-1",), b"too_old"),
        # not asked for
        ((b"Cache-Control: max-age=60",), None),
        ((b"Cache-Control: s-maxage=60",), None),
        ((b"Cache-Control: no-transform, immutable, must-revalidate, foo=bar",), None),
        ((b"Cache-Control: xno-cache, no-cachex, no-storage",), None),
        ((b'Cache-Control: foo="no-cache, no-store"',), None),
        ((b"Pragma: no-cache", b"Cache-Control: max-age=60"), None),  # RFC 9111 section 5.4
        ((b"Cache-Control: ",), None),
    ],
)  # fmt: skip
async def test_how_directives_are_read(proxy, client, backend, lines, outcome):
    """B52: any case, any number of lines, quoted or not, the strictest wins; unknown words are ignored."""
    await client.chat()
    answer = await wire.ask(proxy.port, wire.request(BODY, *lines))
    if outcome is None:
        assert (answer.get(b"x-cache"), backend.calls) == (b"HIT", 1)
    else:
        assert answer.get(b"x-cache") == (b"BYPASS" if outcome == b"no_store" else b"MISS")
        assert (answer.get(b"x-cache-reason"), backend.calls) == (outcome, 2)


@pytest.mark.parametrize("value", ["no-cache", "no-store", "max-age=0, no-transform", "min-fresh=9999999"])
async def test_directives_are_forwarded(client, backend, value):
    """B51, B52: a cache behind us gets the caller's wish too."""
    await client.chat(Cache_Control=value, Pragma="no-cache")
    seen = backend.seen[0]
    assert (seen.all(b"cache-control"), seen.all(b"pragma")) == ([value.encode()], [b"no-cache"])


async def test_max_age(clock, client, backend):
    """An answer of exactly N seconds will do, an older one is fetched anew and stored."""
    await client.chat()
    clock.time += 10
    for age in ("10", "11", "10.5"):
        assert (await client.chat(Cache_Control=f"max-age={age}")).cache == "HIT"
    older = await client.chat(Cache_Control="max-age=9")
    assert (older.cache, older.get("x-cache-reason"), older.text) == ("MISS", "too_old", "answer 2")
    assert status(older)["fwd"] == "request" and status(older)["stored"] is True
    younger = await client.chat(Cache_Control="max-age=9")
    assert (younger.cache, younger.text, younger.get("age")) == ("HIT", "answer 2", "0")


async def test_min_fresh(clock, client, backend):
    """Only what stays fresh for N seconds more."""
    await client.chat(X_Cache_TTL="60")
    clock.time += 20
    assert (await client.chat(Cache_Control="min-fresh=40")).cache == "HIT"
    assert (await client.chat(Cache_Control="min-fresh=5")).cache == "HIT"
    short = await client.chat(Cache_Control="min-fresh=41", X_Cache_TTL="60")
    assert (short.cache, short.get("x-cache-reason"), short.text) == ("MISS", "too_old", "answer 2")


async def test_max_stale(clock, client, backend):
    """What is past its lifetime is served to who takes it, said to be stale, and to nobody else."""
    await client.chat(X_Cache_TTL="60")
    clock.time += 90
    for value in ("max-stale", "max-stale=30", "max-stale=31, max-age=90"):
        stale = await client.chat(Cache_Control=value)
        assert (stale.cache, stale.text, stale.get("age"), stale.get("x-cache-tier")) == (
            "STALE",
            "answer 1",
            "90",
            "exact",
        )
        assert status(stale) == {"hit": True, "ttl": "-30", "detail": "exact"}
    assert backend.calls == 1


@pytest.mark.parametrize("value", ["max-stale=29", "max-stale=0", "min-fresh=0", "max-age=60", "max-age=10", "foo"])
async def test_expired_answer_is_replaced(clock, client, backend, value):
    """It was stale before it was anything else: `fwd=stale` (RFC 9211 section 2.2: `request` is for fresh ones)."""
    await client.chat(X_Cache_TTL="60")
    clock.time += 90
    answer = await client.chat(Cache_Control=value)
    assert (answer.cache, answer.text, answer.get("x-cache-reason")) == ("MISS", "answer 2", "expired")
    assert status(answer)["fwd"] == "stale" and status(answer)["stored"] is True
    assert (await client.chat()).text == "answer 2"


async def test_max_stale_has_an_end(clock, start, session, backend):
    """Past its lifetime an answer is kept for `exact.keep_stale` and no longer."""
    proxy = await start(exact__keep_stale="100s")
    client = Client(proxy.base, session)
    await client.chat(X_Cache_TTL="60")
    clock.time += 159
    assert (await client.chat(Cache_Control="max-stale")).cache == "STALE"
    clock.time += 1
    assert (await client.chat(Cache_Control="max-stale")).cache == "MISS"


async def test_two_limits_combine_to_the_stricter(clock, client, backend):
    await client.chat(X_Cache_TTL="60")
    clock.time += 30
    older = await client.chat(Cache_Control="max-age=100", X_Cache_Control="max-age=20", X_Cache_TTL="60")
    assert (older.cache, older.text) == ("MISS", "answer 2")
    clock.time += 70
    assert (await client.chat(Cache_Control="max-stale")).cache == "STALE"
    assert (await client.chat(Cache_Control="max-stale", X_Cache_Control="max-stale=1")).cache == "MISS"


def missed(answer: Answer) -> bool:
    error = answer.json["error"]
    return (answer.status, error["code"], error["type"]) == (504, "cache_miss", "cache_error")


async def test_only_if_cached(clock, client, backend):
    """A stored answer, or 504 and no call: cold, expired, too old, or where the cache may not be asked."""
    assert missed(await client.chat(Cache_Control="only-if-cached"))
    assert backend.calls == 0
    await client.chat(X_Cache_TTL="60")
    hit = await client.chat(Cache_Control="only-if-cached", stream=True)
    assert (hit.cache, hit.text) == ("HIT", "answer 1")
    for value in ("no-cache", "no-store", "max-age=0", "min-fresh=61"):
        assert missed(await client.chat(Cache_Control=f"only-if-cached, {value}"))
    assert missed(await client.send(b'{"seed":1,"seed":1}', Cache_Control="only-if-cached"))
    clock.time += 90
    assert missed(await client.chat(Cache_Control="only-if-cached"))
    assert (await client.chat(Cache_Control="only-if-cached, max-stale")).cache == "STALE"
    assert backend.calls == 1


async def test_only_if_cached_is_not_served_to_another_caller(client, backend):
    """B30: what one caller stored is a miss for another, hit or 504."""
    await client.chat(key="A")
    assert missed(await client.chat(key="B", Cache_Control="only-if-cached"))


LITELLM = {
    "no-cache": ({"no-cache": True}, "MISS", "no_cache"),
    "no-store": ({"no-store": True}, "BYPASS", "no_store"),
    "both": ({"no-store": True, "no-cache": True}, "BYPASS", "no_store"),
    "s-maxage": ({"s-maxage": 0}, "MISS", "too_old"),
    "s-max-age": ({"s-max-age": 0}, "MISS", "too_old"),
    "ttl": ({"ttl": 5}, "HIT", None),
    "nothing said": ({"no-cache": False, "no-store": None, "s-maxage": 60, "use-cache": True}, "HIT", None),
    "namespace": ({"namespace": "n"}, "MISS", "absent"),
}


@pytest.mark.parametrize("case", LITELLM)
async def test_litellm_form(client, backend, case):
    """The body field says the same things."""
    field, cache, reason = LITELLM[case]
    await client.chat()
    answer = await client.chat(cache=field)
    assert (answer.cache, answer.get("x-cache-reason")) == (cache, reason)
    if case == "namespace":
        assert (await client.chat(X_Cache_Namespace="n")).text == answer.text
    assert all("cache" not in json.loads(s.body) for s in backend.seen)


@pytest.mark.parametrize(
    "field",
    [
        {"ttl": -1},
        {"ttl": "60"},
        {"ttl": True},
        {"s-maxage": "x"},
        {"no-cache": "true"},
        {"no-store": 2},
        {"namespace": 5},
    ],
)
async def test_litellm_form_with_junk_is_refused(client, backend, field):
    answer = await client.chat(cache=field)
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_header")
    assert answer.json["error"]["param"] == f"cache.{next(iter(field))}"
    assert backend.calls == 0


async def test_every_reason_is_a_word_of_the_closed_list(clock, client, backend):
    """The header, the detail and the metric use the same word."""
    words = {reason.word for reason in Reason}
    await client.chat(X_Cache_TTL="60")
    clock.time += 90
    for value in ("no-cache", "no-store", "max-age=0", "foo"):
        answer = await client.chat(Cache_Control=value, X_Cache_TTL="0")
        reason = answer.get("x-cache-reason")
        assert reason in words
        assert re.search(rf"; detail={reason}$", answer.get("cache-status") or "")
