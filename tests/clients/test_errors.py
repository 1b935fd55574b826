"""Errors as real clients see them: ours and the backend's come out as the SDK's own exceptions."""

import asyncio
import re

import pytest

from tests.fakes.backend import Exchange, chunk, completion

SCRIPTS = ["openai_errors.py", "openai_errors.mjs"]
LIMITED = {
    "error": {"message": "Too many requests.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
}  # fmt: skip
CASES = {
    "bad control": {"question": "a", "headers": {"X-Cache-TTL": "junk"}},
    "too large": {"question": "a" * 5000},
    "broken off": {"question": "break off"},
    "too slow": {"question": "wait"},
    "only if cached": {"question": "a", "headers": {"Cache-Control": "only-if-cached"}},
    "rate limited": {"question": "limit"},
    "refused credential": {"question": "refuse"},
}
SEEN = {
    "bad control": ("BadRequestError", 400, "invalid_header"),
    "too large": ("APIStatusError", 413, "request_too_large"),
    "broken off": ("InternalServerError", 502, "upstream_unreachable"),
    "too slow": ("InternalServerError", 504, "upstream_timeout"),
    "only if cached": ("InternalServerError", 504, "cache_miss"),
    "rate limited": ("RateLimitError", 429, "rate_limit_exceeded"),
    "refused credential": ("AuthenticationError", 401, "invalid_api_key"),
}


async def failing(exchange: Exchange) -> None:
    question = exchange.seen.json["messages"][-1]["content"]
    if question == "break off":
        exchange.cut()
    elif question == "wait":
        await exchange.gone()
    elif question == "limit":
        extra = b"Retry-After: 30\r\nretry-after-ms: 30500\r\nx-should-retry: false\r\nx-request-id: r1\r\n"
        await exchange.json(LIMITED, "429 Too Many Requests", extra)
    elif question == "refuse":
        body = {"error": {"message": "No.", "type": "invalid_request_error", "param": None, "code": "invalid_api_key"}}
        await exchange.json(body, "401 Unauthorized")
    elif question == "break off in the middle":
        await exchange.head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        for piece in (chunk({"role": "assistant", "content": ""}), chunk({"content": "Half of"})):
            await exchange.chunk(piece)
        exchange.close = True
    else:
        await exchange.json(completion())


@pytest.fixture
async def strict(start, backend):
    """A proxy with small limits before a backend that fails on demand."""
    backend.script = failing
    return await start(limits__body_bytes="4KiB", limits__first_byte_timeout="400ms")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("script", SCRIPTS)
async def test_an_error_is_the_sdks_own_exception(run, strict, script, stream):
    seen = await run(script, strict.base, [{**case, "stream": stream} for case in CASES.values()])
    for (name, (kind, status, code)), one in zip(SEEN.items(), seen, strict=True):
        kinds = [{"APIError": "APIStatusError"}.get(k, k) for k in one["kinds"]]  # the one's word is the other's
        assert kind in kinds, (name, one)
        assert (one["status"], one["code"]) == (status, code), name
        assert set(one["body"]) == {"message", "type", "param", "code"}, name
        assert one["body"]["message"], name
        assert one["pieces"] == [], name


@pytest.mark.parametrize("script", SCRIPTS)
async def test_the_backends_429_passes_unchanged(run, strict, backend, script):
    """B47: body, `Retry-After`, its kin and the request id; asked twice, it is the backend's both times."""
    for one in await run(script, strict.base, [CASES["rate limited"]] * 2):
        assert one["body"] == LIMITED["error"]
        kept = ("retry-after", "retry-after-ms", "x-should-retry", "x-request-id")
        assert [one["headers"][name] for name in kept] == ["30", "30500", "false", "r1"]
        assert one["request"] == "r1"
    assert backend.calls == 2


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_stream_that_breaks_off_is_an_error_not_an_end(run, strict, backend, script):
    """B15: what came is delivered, the SDK raises, and the next call asks the backend again."""
    case = {"question": "break off in the middle", "stream": True}
    for one in await run(script, strict.base, [case, case]):
        assert "".join(one["pieces"]) == "Half of"
        assert one["kinds"], "the stream looked complete"
    assert backend.calls == 2


@pytest.mark.parametrize("script", SCRIPTS)
async def test_what_cannot_get_better_is_not_tried_again(run, strict, session, script):
    """B77: SDKs retry 5xx by themselves; `x-should-retry: false` keeps them from it where it is useless."""
    names = ("bad control", "too large", "only if cached")
    seen = await run(script, strict.base, [{**CASES[name], "with_retries": True} for name in names])
    assert [one["code"] for one in seen] == [SEEN[name][2] for name in names]
    assert {one["headers"]["x-should-retry"] for one in seen} == {"false"}
    async with session.get(strict.admin + "/metrics") as answer:
        counted = re.findall(r'^cacheproxy_errors_total{code="(\w+)"} (\S+)', await answer.text(), re.MULTILINE)
    assert {code: float(count) for code, count in counted} == {SEEN[name][2]: 1 for name in names}


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_dead_backend_is_a_502(run, start, script):
    unused = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = unused.sockets[0].getsockname()[1]
    unused.close()
    await unused.wait_closed()
    proxy = await start(upstream=f"http://127.0.0.1:{port}")
    (one,) = await run(script, proxy.base, [{"question": "a"}])
    assert "InternalServerError" in one["kinds"]
    assert (one["status"], one["code"]) == (502, "upstream_unreachable")
