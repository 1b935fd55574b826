"""Whose question it is: answers never cross credentials or namespaces, and what a caller sends beside the body counts
unless it is known not to matter."""

import pytest

from tests.fakes.backend import Numbered
from tests.proxy import wire
from tests.rig import BODY

CREDENTIALS = {
    "bearer": ({"Authorization": "Bearer A"}, {"Authorization": "Bearer B"}),
    "scheme": ({"Authorization": "Bearer A"}, {"Authorization": "Basic A"}),
    "case of the token": ({"Authorization": "Bearer A"}, {"Authorization": "Bearer a"}),
    "none": ({}, {"Authorization": "Bearer A"}),
    "organization": (
        {"Authorization": "Bearer A"},
        {"Authorization": "Bearer A", "OpenAI-Organization": "o1"},
        {"Authorization": "Bearer A", "OpenAI-Organization": "o2"},
    ),
    "project": (
        {"Authorization": "Bearer A", "OpenAI-Project": "p1"},
        {"Authorization": "Bearer A", "OpenAI-Project": "p2"},
        {"Authorization": "Bearer A", "OpenAI-Organization": "p1"},
    ),
    "api-key": ({"api-key": "A"}, {"api-key": "B"}, {"Authorization": "A"}),
    "x-api-key": ({"x-api-key": "A"}, {"x-api-key": "B"}, {"api-key": "A"}),
    "one beside another": ({"api-key": "A"}, {"api-key": "A", "x-api-key": "B"}),
    "cookie": ({"Cookie": "session=A"}, {"Cookie": "session=B"}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", CREDENTIALS)
async def test_other_credential_gets_its_own_answer(client, backend, name, stream):
    """B30: never another caller's answer, and the backend sees each caller's own credential."""
    backend.script = Numbered()
    callers = CREDENTIALS[name]
    body = {**BODY, "stream": stream}
    first = [await client.send(body, key=None, **lines) for lines in callers]
    again = [await client.send(body, key=None, **lines) for lines in callers]
    assert [a.cache for a in first] == ["MISS"] * len(callers)
    assert [a.cache for a in again] == ["HIT"] * len(callers)
    assert [a.text for a in again] == [f"answer {i + 1}" for i in range(len(callers))]
    for seen, lines in zip(backend.seen, callers, strict=True):
        for header in ("Authorization", "api-key", "x-api-key", "OpenAI-Organization", "OpenAI-Project", "Cookie"):
            assert seen.get(header.encode()) == (lines[header].encode() if header in lines else None)


async def test_second_line_of_a_credential_is_part_of_it(proxy, backend):
    """B30: `Authorization: A, B` in two lines is neither A nor B."""
    backend.script = Numbered()
    lines = [(b"Authorization: Bearer A",), (b"Authorization: Bearer A", b"Authorization: Bearer B")]
    lines += [(b"Authorization: Bearer B", b"Authorization: Bearer A")]
    found = []
    for _ in range(2):
        for more in lines:
            async with wire.dial(proxy.port) as caller:
                await caller.write(wire.request(BODY, *more, key=None))
                found.append((await caller.whole()).get(b"x-cache"))
    assert found == [b"MISS"] * 3 + [b"HIT"] * 3


async def test_case_of_a_header_name_makes_no_other_caller(client, backend):
    assert (await client.send(BODY, key=None, Authorization="Bearer A")).cache == "MISS"
    assert (await client.send(BODY, key=None, AUTHORIZATION="Bearer A")).cache == "HIT"
    assert backend.calls == 1


async def test_connection_header_cannot_take_the_credential_away(proxy, backend):
    """B48: `Connection: close, Authorization` leaves the scope and the backend's sight of it as they were."""
    backend.script = Numbered()
    nominated = b"Connection: close, Authorization, api-key, x-api-key, OpenAI-Organization, OpenAI-Project, Cookie"
    callers = [
        (b"Authorization: Bearer A",), (b"Authorization: Bearer B",), (b"api-key: A",), (b"x-api-key: A",),
        (b"Authorization: Bearer A", b"OpenAI-Organization: o"), (b"Authorization: Bearer A", b"OpenAI-Project: p"),
        (b"Cookie: s=A",), (),
    ]  # fmt: skip
    for expected in (b"MISS", b"HIT"):
        for number, lines in enumerate(callers):
            async with wire.dial(proxy.port) as caller:
                await caller.write(wire.request(BODY, *lines, nominated, key=None, close=False))
                answer = await caller.whole()
            assert (answer.get(b"x-cache"), answer.body.count(b"answer %d" % (number + 1))) == (expected, 1)
    for seen, lines in zip(backend.seen, callers, strict=True):
        assert set(lines) <= {b"%b: %b" % line for line in seen.headers}


async def test_namespace_is_a_cache_of_its_own(client, backend):
    """Percent-encoded and plain spelling are one name; the backend never sees it."""
    backend.script = Numbered()
    names = [{}, {"X_Cache_Namespace": "a"}, {"X_Cache_Namespace": "b"}, {"X_Cache_Namespace": "%C3%A9%2C"}]
    assert [(await client.chat(**n)).cache for n in names] == ["MISS"] * 4
    assert [(await client.chat(**n)).text for n in names] == [f"answer {i + 1}" for i in range(4)]
    assert (await client.chat(X_Cache_Namespace="%61")).text == "answer 2"
    assert all(s.get(b"x-cache-namespace") is None for s in backend.seen)


@pytest.mark.parametrize(
    "spelled", ["", "A", "Bearer%20A", "tenant:A", "A%00x", "A:x", "%00", "..", "/", "authorization", "%F0%9F%94%91"]
)
async def test_namespace_never_reaches_another_scope(client, backend, spelled):
    """B32: whatever the namespace spells, it stays inside its caller's own scope."""
    backend.script = Numbered()
    for lines in ({}, {"X_Cache_Namespace": "x"}, {"X_Cache_Namespace": "A"}):
        await client.chat(key="A", **lines)
    warmed = backend.calls
    answer = await client.chat(key="B", X_Cache_Namespace=spelled)
    assert (answer.cache, answer.text) == ("MISS", f"answer {warmed + 1}")
    assert (await client.chat(key="B", X_Cache_Namespace=spelled)).text == answer.text


@pytest.mark.parametrize("junk", ["%FF", "a" * 20_000, "%C3"])
async def test_namespace_that_is_no_name_is_refused(client, backend, junk):
    """B32: junk is a 400 that says which header, and no call."""
    answer = await client.chat(X_Cache_Namespace=junk)
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_header")
    assert answer.json["error"]["param"] == "X-Cache-Namespace"
    assert backend.calls == 0


async def test_knowledge_bases_are_part_of_the_question(client, backend):
    """Which ones, in which version; not in which order they are named."""
    backend.script = Numbered()
    names = [None, "docs@1", "docs@2", "docs", "docs@1,faq"]
    lines = [{} if name is None else {"X_Cache_KB": name} for name in names]
    assert [(await client.chat(**n)).cache for n in lines] == ["MISS"] * 5
    assert [(await client.chat(**n)).text for n in lines] == [f"answer {i + 1}" for i in range(5)]
    assert (await client.chat(X_Cache_KB="faq , docs@1")).text == "answer 5"
    assert all(s.get(b"x-cache-kb") is None for s in backend.seen)


MATTERS = ["X-Anything", "OpenAI-Beta", "Accept-Language", "X-Model-Version", "LiteLLM-Tags", "X-Portkey-Config"]


@pytest.mark.parametrize("name", MATTERS)
async def test_unknown_header_is_part_of_the_question(client, backend, name):
    """B03's kind for headers: what is not known to be harmless may change the answer."""
    backend.script = Numbered()
    lines = [{}, {name: "1"}, {name: "2"}]
    assert [(await client.send(BODY, **n)).cache for n in lines] == ["MISS"] * 3
    assert [(await client.send(BODY, **n)).text for n in lines] == ["answer 1", "answer 2", "answer 3"]
    assert backend.seen[1].get(name.encode()) == b"1"


HARMLESS = {
    "User-Agent": "other/1", "X-Request-Id": "r", "traceparent": "00-1-2-01", "X-Stainless-Retry-Count": "1",
    "Accept-Encoding": "gzip", "Accept": "*/*", "X-Forwarded-For": "10.0.0.1", "Idempotency-Key": "i",
    "Origin": "https://a.example", "Priority": "u=1", "X-Priority": "P1", "baggage": "a=b", "Referer": "https://a/",
    "Content-Type": "application/json; charset=utf-8",
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
async def test_header_that_says_nothing_of_the_question_is_not_part_of_it(client, backend, name):
    assert (await client.chat()).cache == "MISS"
    assert (await client.send(BODY, **{name: HARMLESS[name]})).cache == "HIT"
    assert backend.calls == 1
