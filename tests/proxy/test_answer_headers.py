"""Headers of answers on the cached operations: what is the first caller's stays the first caller's, no cache in front
of us keeps an answer, and the backend's own word on caching is heard."""

import re

import pytest

from tests.fakes.backend import Numbered, chunk, completion, gives, streams, usage_chunk
from tests.proxy import wire
from tests.rig import BODY

PERSONAL = {
    "Set-Cookie": "s=A", "x-request-id": "r1", "x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-tokens": "6m0s",
    "openai-processing-ms": "900", "openai-organization": "org-a", "openai-version": "2020-10-01",
    "Date": "Mon, 01 Jan 2001 00:00:00 GMT", "CF-RAY": "1-AMS", "Server": "uvicorn", "ETag": '"x"',
    "Server-Timing": "backend;dur=900", "Age": "11", "Via": "1.1 cdn",
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_hit_has_nothing_of_the_first_caller(proxy, backend, stream):
    """B43: quota counters, cookies and ids are the first caller's; a HIT has its own id, its age, no name twice."""
    extra = b"".join(f"{n}: {v}\r\n".encode() for n, v in PERSONAL.items())
    pieces = [chunk({"content": "Hello."}), chunk(finish="stop"), usage_chunk()]
    backend.script = streams(*pieces, extra=extra) if stream else gives(completion(), extra=extra)
    body = {**BODY, "stream": stream}
    one = await wire.ask(proxy.port, wire.request(body))
    two = await wire.ask(proxy.port, wire.request(body))
    three = await wire.ask(proxy.port, wire.request(body))
    assert [a.get(b"x-cache") for a in (one, two, three)] == [b"MISS", b"HIT", b"HIT"]
    assert {n: one.get(n.encode()) for n in PERSONAL} == {n: v.encode() for n, v in PERSONAL.items()}
    for hit in (two, three):
        names = [n.lower() for n, _ in hit.headers]
        assert len(names) == len(set(names))
        mine = {b"date", b"server-timing", b"age", b"x-request-id"}
        assert not ({n.lower().encode() for n in PERSONAL} - mine) & set(names)
        assert not {v.encode() for v in PERSONAL.values()} & {v for _, v in hit.headers}
        assert re.fullmatch(rb"\d+", hit.get(b"age") or b"")
        assert hit.get(b"date")
    ids = [a.get(b"x-request-id") for a in (one, two, three)]
    assert None not in ids and len(set(ids)) == 3


def guards(answer: wire.Wire) -> tuple[list[bytes], list[bytes]]:
    return answer.all(b"cache-control"), answer.all(b"vary")


KEPT_OUT = ([b"private, no-store"], [b"Authorization"])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_no_shared_cache_in_front_keeps_an_answer(proxy, backend, path, stream):
    """B44: MISS, HIT, BYPASS and errors of either side say `private, no-store` and `Vary: Authorization`."""
    backend.script = Numbered()
    body = {**BODY, "prompt": "x", "stream": stream}
    for lines, expected in (((), b"MISS"), ((), b"HIT"), ((b"Cache-Control: no-store",), b"BYPASS")):
        answer = await wire.ask(proxy.port, wire.request(body, *lines, path=path))
        assert (answer.get(b"x-cache"), guards(answer)) == (expected, KEPT_OUT)
    refused = await wire.ask(proxy.port, wire.request(b"{", path=path))
    assert (refused.status, guards(refused)) == (400, KEPT_OUT)
    backend.script = gives({"error": {"message": "no"}}, "429 Too Many Requests", b"Cache-Control: max-age=60\r\n")
    failed = await wire.ask(proxy.port, wire.request({**body, "seed": 1}, path=path))
    assert (failed.status, guards(failed)) == (429, KEPT_OUT)


@pytest.mark.parametrize(
    ("given", "vary", "control", "varies"),
    [
        (b"public, max-age=600", b"Accept-Encoding", b"private, no-store", b"Accept-Encoding, Authorization"),
        (b"no-cache", b"authorization", b"private, no-store", b"authorization"),
        (b"private", b"*", b"private, no-store", b"*"),
        (b"no-store, no-transform", b"X-Foo, AUTHORIZATION", b"no-store, no-transform", b"X-Foo, AUTHORIZATION"),
        (b"No-Store", b"X-Foo", b"No-Store", b"X-Foo, Authorization"),
        (b"s-maxage=600", b"X-Foo\r\nVary: X-Bar", b"private, no-store", b"X-Foo, X-Bar, Authorization"),
    ],
)
async def test_backends_own_directives_are_kept_where_stricter(proxy, backend, given, vary, control, varies):
    """B44: or made as strict; one line of each."""
    backend.script = gives(completion(), extra=b"Cache-Control: %b\r\nVary: %b\r\n" % (given, vary))
    answer = await wire.ask(proxy.port, wire.request(BODY))
    assert guards(answer) == ([control], [varies])


async def test_other_paths_keep_the_backends_directives(proxy, backend):
    """B44: pass-through answers are the backend's."""
    backend.script = gives({}, extra=b"Cache-Control: public, max-age=600\r\nVary: X-Foo\r\n")
    answer = await wire.ask(proxy.port, wire.request(None, method="GET", path="/v1/files"))
    assert guards(answer) == ([b"public, max-age=600"], [b"X-Foo"])
    backend.script = gives({})
    bare = await wire.ask(proxy.port, wire.request(None, method="GET", path="/v1/files"))
    assert guards(bare) == ([], [])


WORDS = {
    # B51: said on every answer by hosted APIs, so heard as nothing
    "no-cache": (b"Cache-Control: no-cache\r\n", None),
    "private": (b"Cache-Control: private, max-age=5\r\n", None),
    "max-age=0": (b"Cache-Control: max-age=0, must-revalidate\r\n", None),
    "pragma": (b"Pragma: no-cache\r\nExpires: 0\r\n", None),
    "vary on what is keyed": (b"Vary: X-Foo, Accept-Language\r\n", None),
    "vary on what does not matter": (b"Vary: Accept-Encoding, Origin, Authorization\r\n", None),
    # obeyed
    "no-store": (b"Cache-Control: no-store\r\n", b"response_no_store"),
    "no-store among others": (b"Cache-Control: no-cache\r\nCache-Control: private, NO-STORE\r\n", b"response_no_store"),
    "vary on everything": (b"Vary: *\r\n", b"vary"),
    "vary on what is not keyed": (b"Vary: Accept-Encoding, User-Agent\r\n", b"vary"),
}


@pytest.mark.parametrize("case", WORDS)
async def test_backends_word_on_keeping(proxy, backend, case):
    """B51: the documented table."""
    lines, refusal = WORDS[case]
    backend.script = gives(completion(), extra=lines)
    found = [await wire.ask(proxy.port, wire.request(BODY)) for _ in range(2)]
    assert [a.get(b"x-cache") for a in found] == [b"MISS", b"MISS" if refusal else b"HIT"]
    if refusal:
        assert [a.get(b"x-cache-reason") for a in found] == [refusal] * 2
    else:
        assert int(re.search(rb"ttl=(\d+)", found[1].get(b"cache-status") or b"").group(1)) > 3000


@pytest.mark.parametrize("stream", [False, True])
async def test_refusals_for_now_pass_with_their_wait(proxy, backend, stream):
    """B47: status, body and every hint of when to come back, unchanged, and nothing kept."""
    hints = b"Retry-After: 30\r\nretry-after-ms: 1500\r\nx-should-retry: false\r\nx-ratelimit-reset-requests: 1s\r\n"
    document = {"error": {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
    for status in ("429 Too Many Requests", "503 Service Unavailable"):
        backend.script = gives(document, status, hints)
        for _ in range(2):
            answer = await wire.ask(proxy.port, wire.request({**BODY, "stream": stream}))
            assert answer.line == b"HTTP/1.1 " + status.encode()
            assert (
                answer.body
                == b'{"error": {"message": "slow down", "type": "requests", "param": null, "code": "rate_limit_exceeded"}}'
            )
            given = [
                answer.all(n)
                for n in (b"retry-after", b"retry-after-ms", b"x-should-retry", b"x-ratelimit-reset-requests")
            ]
            assert given == [[b"30"], [b"1500"], [b"false"], [b"1s"]]
    assert backend.calls == 4
    assert proxy.house.store.census().entries == 0
