"""Errors of ours: the OpenAI form, a code of the contract's list, what a client needs to know about trying again, and
nothing of what was sent."""

import json
import re

import pytest

from tests import rig
from tests.fakes.backend import bare
from tests.proxy import wire
from tests.rig import BODY

SECRET = "SECRET-77"


def assert_form(answer: wire.Wire, status: int, code: str, kind: str, *, retry: bytes | None) -> None:
    assert answer.status == status
    assert answer.get(b"content-type") == b"application/json"
    assert (answer.all(b"cache-control"), answer.all(b"vary")) == ([b"private, no-store"], [b"Authorization"])
    assert answer.get(b"x-should-retry") == retry
    document = json.loads(answer.body)
    assert document.keys() == {"error"}
    assert document["error"].keys() == {"message", "type", "param", "code"}
    assert (document["error"]["code"], document["error"]["type"]) == (code, kind)
    assert len(document["error"]["message"]) > 10
    assert SECRET.encode() not in answer.body
    assert not any(SECRET.encode() in value for _, value in answer.headers)


REFUSED = {
    "no JSON": ((), SECRET.encode(), "invalid_json", 400),
    "bad header": ((b"X-Cache-TTL: " + SECRET.encode(),), BODY, "invalid_header", 400),
    "bad namespace": ((b"X-Cache-Namespace: %FF" + SECRET.encode(),), BODY, "invalid_header", 400),
    "too large": ((), {**BODY, "user": SECRET * 300}, "request_too_large", 413),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("case", REFUSED)
async def test_refused_request(start, backend, case, stream):
    """Trying again is no use, and says so; the connection takes the next request."""
    proxy = await start(limits__body_bytes=2000)
    lines, body, code, status = REFUSED[case]
    body = {**body, "stream": stream} if isinstance(body, dict) else body
    async with wire.dial(proxy.port) as caller:
        await caller.write(wire.request(body, *lines, close=False))
        assert_form(await caller.whole(), status, code, "invalid_request_error", retry=b"false")
        await caller.write(wire.request(BODY, close=False))
        assert (await caller.whole()).status == 200
    assert len(backend.seen) == 1


async def test_message_that_is_no_http(proxy, backend):
    answer = wire.wire(await rig.raw(proxy.port, b"GET /" + SECRET.encode() + b" \r\nnonsense\r\n\r\n"))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "invalid_header")
    assert SECRET.encode() not in answer.body
    assert backend.seen == []


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_backend_that_cannot_be_reached(start, path):
    proxy = await start(upstream="http://127.0.0.1:1")
    answer = await wire.ask(proxy.port, wire.request({**BODY, "user": SECRET}, path=path))
    assert_form(answer, 502, "upstream_unreachable", "upstream_error", retry=None)


async def test_backend_that_closes_without_an_answer(start):
    async def close(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with bare(close) as url:
        proxy = await start(upstream=url)
        answer = await wire.ask(proxy.port, wire.request(BODY))
        assert_form(answer, 502, "upstream_unreachable", "upstream_error", retry=None)


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_backend_that_is_silent(start, path):
    async def hang(reader, writer) -> None:
        await reader.read()

    async with bare(hang) as url:
        proxy = await start(upstream=url, limits__first_byte_timeout="100ms")
        answer = await wire.ask(proxy.port, wire.request(BODY, path=path))
        assert_form(answer, 504, "upstream_timeout", "upstream_error", retry=None)


async def test_nothing_stored_and_only_if_cached(proxy):
    answer = await wire.ask(proxy.port, wire.request(BODY, b"Cache-Control: only-if-cached"))
    assert_form(answer, 504, "cache_miss", "cache_error", retry=b"false")


@pytest.mark.parametrize("path", ["/v1/x", rig.CHAT])
async def test_proxy_that_shuts_down(proxy, backend, path):
    """B47: 503 says when to come back, and that coming back is of use."""
    proxy.house.proxy.refusing = True
    answer = await wire.ask(proxy.port, wire.request(BODY, path=path))
    assert_form(answer, 503, "draining", "server_error", retry=b"true")
    assert (answer.get(b"retry-after") or b"").isdigit()
    assert backend.seen == []


async def test_fault_of_our_own_is_an_answer_too(proxy, backend, monkeypatch, caplog):
    """Should the proxy itself fail, the caller gets the same form, and no inside of it."""

    async def fail(_call):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(proxy.house.proxy._pipeline, "answer", fail)
    answer = await wire.ask(proxy.port, wire.request(BODY))
    assert_form(answer, 500, "internal_error", "server_error", retry=None)
    assert re.search(
        r"a request failed inside the proxy: .*cacheproxy\.http\.handlers:\d+ > .*RuntimeError", caplog.text
    )
    assert SECRET not in caplog.text
    assert "Traceback" not in caplog.text


async def test_every_error_is_counted_by_its_code(proxy, session):
    await wire.ask(proxy.port, wire.request(b"{"))
    await wire.ask(proxy.port, wire.request(BODY, b"Cache-Control: only-if-cached"))
    async with session.get(proxy.admin + "/metrics") as answer:
        text = await answer.text()
    assert 'cacheproxy_errors_total{code="invalid_json"} 1.0' in text
    assert 'cacheproxy_errors_total{code="cache_miss"} 1.0' in text
