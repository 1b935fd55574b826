"""Content codings: the header always matches the bytes and what the caller takes; the kept form is plain."""

import gzip
import json
import zlib

import pytest

from tests.fakes.backend import chunk, completion, gives, sends, usage_chunk
from tests.proxy import wire
from tests.rig import BODY

SMALL = json.dumps(completion("Hello.")).encode()
LARGE = json.dumps(completion("".join(map(str, range(700_000))))).encode()  # 4 MB: more than is held before it leaves


def deflated(data: bytes) -> bytes:
    return zlib.compress(data)


def bare_deflated(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


CODINGS = {
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"x-gzip", gzip.compress),
    "capitals": (b"GZIP", gzip.compress),
    "deflate": (b"deflate", deflated),
    "deflate without its frame": (b"deflate", bare_deflated),
    "twice": (b"gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
    "two kinds": (b"deflate, gzip", lambda data: gzip.compress(deflated(data))),
    "beside identity": (b"identity, gzip", gzip.compress),
}
FOREIGN = {"br": b"br", "zstd": b"zstd", "one of two": b"gzip, br", "three": b"gzip, gzip, gzip", "unknown": b"rot13"}


def answers(body: bytes, coding: bytes, *, chunked: bool = False, status: str = "200 OK"):
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n".encode()
    head += b"Content-Encoding: %b\r\n" % coding if coding else b""
    if not chunked:
        return sends(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    parts = [body[i : i + 50_000] for i in range(0, len(body), 50_000)]
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts)
    return sends(head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n")


async def ask(proxy, accepts: bytes | None, **options) -> wire.Wire:
    lines = [] if accepts is None else [b"Accept-Encoding: " + accepts]
    return await wire.ask(proxy.port, wire.request(BODY, *lines, **options))


def assert_framed(answer: wire.Wire) -> None:
    assert answer.whole and not answer.rest
    assert len(answer.all(b"content-length") + answer.all(b"transfer-encoding")) == 1


PLAIN_TAKERS = [None, b"identity", b"br", b"gzip;q=0, deflate;q=0", b"", b"*;q=0"]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("document", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("case", CODINGS)
async def test_caller_of_plain_text_gets_plain_text(proxy, backend, case, document, chunked):
    """B41: a coding that nobody asked for is taken off with its header, however long the answer; then a HIT."""
    coding, squeeze = CODINGS[case]
    backend.script = answers(squeeze(document), coding, chunked=chunked)
    for number, accepts in enumerate(PLAIN_TAKERS):
        answer = await ask(proxy, accepts)
        assert answer.get(b"x-cache") == (b"HIT" if number else b"MISS")
        assert (answer.get(b"content-encoding"), json.loads(answer.body)["choices"]) == (
            None, json.loads(document)["choices"],
        )  # fmt: skip
        assert_framed(answer)
    assert backend.calls == 1


@pytest.mark.parametrize("accepts", [b"gzip", b"br, gzip;q=0.5", b"*", b"GZIP", b"x-gzip", b"deflate;q=0, *"])
@pytest.mark.parametrize("document", [SMALL, LARGE], ids=["small", "large"])
async def test_caller_that_takes_gzip_gets_the_backends_bytes(proxy, backend, document, accepts):
    """B41: untouched, with their length; the next caller gets plain text from the cache and the reverse."""
    squeezed = gzip.compress(document)
    backend.script = answers(squeezed, b"gzip")
    one = await ask(proxy, accepts)
    assert (one.get(b"content-encoding"), one.body) == (b"gzip", squeezed)
    assert one.get(b"content-length") == b"%d" % len(squeezed)
    for taken in (b"identity", accepts):
        two = await ask(proxy, taken)
        assert (two.get(b"x-cache"), two.get(b"content-encoding")) == (b"HIT", None)
        assert json.loads(two.body)["choices"] == json.loads(document)["choices"]
        assert_framed(two)
    assert backend.calls == 1


@pytest.mark.parametrize("accepts", [None, b"gzip", b"br, zstd"])
@pytest.mark.parametrize("case", FOREIGN)
async def test_coding_that_is_not_understood_passes_unkept(proxy, backend, case, accepts):
    """B41: the bytes and the header as they came, to every caller, and nothing is kept."""
    body = b"\x28\xb5\x2f\xfd not for us"
    backend.script = answers(body, FOREIGN[case])
    for _ in range(2):
        answer = await ask(proxy, accepts)
        assert (answer.get(b"content-encoding"), answer.body) == (FOREIGN[case], body)
        assert (answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (b"MISS", b"content_encoding")
        assert_framed(answer)
    assert backend.calls == 2


@pytest.mark.parametrize("accepts", [None, b"gzip"])
async def test_compressed_error(proxy, backend, accepts):
    """B41: the body of a 429 is as readable as any."""
    document = b'{"error":{"message":"slow down"}}'
    backend.script = answers(gzip.compress(document), b"gzip", status="429 Too Many Requests")
    answer = await ask(proxy, accepts)
    body = gzip.decompress(answer.body) if answer.get(b"content-encoding") == b"gzip" else answer.body
    assert (answer.status, body) == (429, document)
    assert answer.get(b"content-encoding") == accepts
    assert_framed(answer)


BROKEN = {
    "cut": lambda data: gzip.compress(data)[:-9],
    "bad checksum": lambda data: gzip.compress(data)[:-8] + b"\0" * 8,
    "no gzip": lambda data: data,
    "more after the end": lambda data: gzip.compress(data) + b"more",
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("case", BROKEN)
async def test_broken_coding_is_never_kept(proxy, backend, case):
    """B15's kind: what does not unpack to its end is not proven; a caller of gzip gets the bytes as they are."""
    body = BROKEN[case](SMALL)
    backend.script = answers(body, b"gzip")
    for _ in range(2):
        answer = await ask(proxy, b"gzip")
        assert (answer.status, answer.get(b"content-encoding"), answer.body) == (200, b"gzip", body)
        assert answer.get(b"x-cache") == b"MISS"
    plain = await ask(proxy, None)
    assert plain.status == 502 or not plain.whole or plain.body in (SMALL, b"")
    assert proxy.house.store.census().entries == 0
    assert proxy.house.budget.held == 0


async def test_bomb_passes_unkept_in_little_memory(start, backend):
    """An answer that unpacks to far more than may be kept is given up early; the caller still gets it."""
    proxy = await start(limits__answer_bytes="1MiB")
    body = gzip.compress(b"[" + b" " * 50 * 2**20 + b"]")
    backend.script = answers(body, b"gzip")
    answer = await ask(proxy, b"gzip")
    assert (answer.body, answer.get(b"x-cache-reason")) == (body, b"content_encoding")
    assert (proxy.house.store.census().entries, proxy.house.budget.held) == (0, 0)


@pytest.mark.parametrize("accepts", [None, b"gzip", b"identity"])
async def test_coding_on_another_path_is_the_callers_affair(proxy, backend, accepts):
    """Pass-through means pass-through."""
    body = gzip.compress(SMALL)
    backend.script = answers(body, b"gzip")
    answer = await ask(proxy, accepts, path="/v1/embeddings")
    assert (answer.get(b"content-encoding"), answer.body) == (b"gzip", body)


@pytest.mark.parametrize("accepts", [None, b"gzip"])
async def test_no_store_answer_is_readable_too(proxy, backend, accepts):
    """B41 on a cached path that is not looked up."""
    backend.script = answers(gzip.compress(SMALL), b"gzip")
    answer = await wire.ask(
        proxy.port,
        wire.request(BODY, b"Cache-Control: no-store", *([b"Accept-Encoding: " + accepts] if accepts else [])),
    )
    body = gzip.decompress(answer.body) if answer.get(b"content-encoding") == b"gzip" else answer.body
    assert (answer.get(b"x-cache"), body, answer.get(b"content-encoding")) == (b"BYPASS", SMALL, accepts)
    assert_framed(answer)


async def test_encoded_request_passes_as_it_is(proxy, backend):
    """A request body in a coding is not looked into: forwarded, never answered from the cache."""
    body = gzip.compress(json.dumps(BODY).encode())
    backend.script = gives(completion())
    for _ in range(2):
        answer = await wire.ask(proxy.port, wire.request(body, b"Content-Encoding: gzip"))
        assert (answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (b"BYPASS", b"encoded_request")
    assert [(s.body, s.get(b"content-encoding")) for s in backend.seen] == [(body, b"gzip")] * 2


async def test_stream_kept_from_gzip_answers_json_in_plain(client, backend):
    """B41, B21: the stored form does not depend on the first caller's coding or mode."""

    async def squeezed(exchange) -> None:
        whole = chunk({"content": "Hello."}) + chunk(finish="stop") + usage_chunk() + b"data: [DONE]\n\n"
        await exchange.events(gzip.compress(whole), done=False, extra=b"Content-Encoding: gzip\r\n")

    backend.script = squeezed
    await client.chat(stream=True, Accept_Encoding="gzip")
    answer = await client.chat(Accept_Encoding="gzip")
    assert (answer.cache, answer.get("content-encoding"), answer.text) == ("HIT", None, "Hello.")
