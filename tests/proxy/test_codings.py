"""Content codings: the header always matches the bytes and what the caller takes; the kept form is plain."""

import gzip
import json
import zlib

import brotli
import pytest
import zstandard

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
    "br": (b"br", brotli.compress),
    "zstd": (b"zstd", zstandard.compress),
}
FOREIGN = {"compress": b"compress", "one of two": b"gzip, lz4", "three": b"gzip, gzip, gzip", "unknown": b"rot13"}


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


PLAIN_TAKERS = [None, b"identity", b"exi", b"gzip;q=0, deflate;q=0", b"", b"*;q=0"]


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


TAKERS = {
    b"gzip": b"gzip", b"br, gzip;q=0.5": b"br", b"*": b"zstd", b"GZIP": b"gzip", b"x-gzip": b"gzip",
    b"gzip, deflate, br": b"br", b"gzip;q=1, zstd;q=0.4": b"gzip",
}  # fmt: skip
UNPACK = {
    None: bytes, b"gzip": gzip.decompress, b"br": brotli.decompress,
    b"zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}  # fmt: skip


@pytest.mark.parametrize("accepts", TAKERS)
@pytest.mark.parametrize("document", [SMALL, LARGE], ids=["small", "large"])
async def test_caller_that_takes_gzip_gets_the_backends_bytes(proxy, backend, document, accepts):
    """B41: untouched, with their length; later callers get it as each of them likes it best, short ones plain."""
    packed = TAKERS[accepts] if document is LARGE else None
    squeezed = gzip.compress(document)
    backend.script = answers(squeezed, b"gzip")
    one = await ask(proxy, accepts)
    assert (one.get(b"content-encoding"), one.body) == (b"gzip", squeezed)
    assert one.get(b"content-length") == b"%d" % len(squeezed)
    for taken in (b"identity", accepts):
        two = await ask(proxy, taken)
        coding = two.get(b"content-encoding")
        assert (two.get(b"x-cache"), coding) == (b"HIT", None if taken == b"identity" else packed)
        assert json.loads(UNPACK[coding](two.body))["choices"] == json.loads(document)["choices"]
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
    assert proxy.house.engine.budget.held == 0


async def test_bomb_passes_unkept_in_little_memory(start, backend):
    """An answer that unpacks to far more than may be kept is given up early; the caller still gets it."""
    proxy = await start(limits__answer_bytes="1MiB")
    body = gzip.compress(b"[" + b" " * 50 * 2**20 + b"]")
    backend.script = answers(body, b"gzip")
    answer = await ask(proxy, b"gzip")
    assert (answer.body, answer.get(b"x-cache-reason")) == (body, b"content_encoding")
    assert (proxy.house.store.census().entries, proxy.house.engine.budget.held) == (0, 0)


@pytest.mark.parametrize("accepts", [None, b"gzip", b"identity"])
async def test_coding_on_another_path_is_the_callers_affair(proxy, backend, accepts):
    """Pass-through means pass-through."""
    body = gzip.compress(SMALL)
    backend.script = answers(body, b"gzip")
    answer = await ask(proxy, accepts, path="/v1/audio/speech")
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


@pytest.mark.parametrize("case", CODINGS)
async def test_encoded_request_is_understood_and_passes_as_it_is(proxy, backend, case):
    """The very bytes go to the backend; the question is the same as in any other coding."""
    coding, squeeze = CODINGS[case]
    body = squeeze(json.dumps(BODY).encode())
    backend.script = gives(completion())
    answers = [await wire.ask(proxy.port, wire.request(body, b"Content-Encoding: " + coding)) for _ in range(2)]
    answers.append(await wire.ask(proxy.port, wire.request(BODY)))
    assert [a.get(b"x-cache") for a in answers] == [b"MISS", b"HIT", b"HIT"]
    assert [(s.body, s.get(b"content-encoding")) for s in backend.seen] == [(body, coding)]


async def test_changed_body_is_packed_again_as_it_came(proxy, backend):
    """What we ask for beside goes to the backend in the coding that the header names."""
    backend.script = gives(completion())
    for coding, squeeze in ((b"gzip", gzip.compress), (b"deflate, br", lambda d: brotli.compress(deflated(d)))):
        body = squeeze(json.dumps({**BODY, "stream": True, "seed": len(coding)}).encode())
        await wire.ask(proxy.port, wire.request(body, b"Content-Encoding: " + coding))
        seen = backend.seen[-1]
        plain = gzip.decompress(seen.body) if coding == b"gzip" else zlib.decompress(brotli.decompress(seen.body))
        assert (seen.get(b"content-encoding"), json.loads(plain)["stream_options"]) == (coding, {"include_usage": True})


@pytest.mark.parametrize("case", FOREIGN)
async def test_request_in_an_unknown_coding_passes(proxy, backend, case):
    """What it says is the backend's to understand."""
    backend.script = gives(completion())
    for _ in range(2):
        answer = await wire.ask(proxy.port, wire.request(b"\x00\x01", b"Content-Encoding: " + FOREIGN[case]))
        assert (answer.get(b"x-cache"), answer.get(b"x-cache-reason")) == (b"BYPASS", b"encoded_request")
    assert [s.body for s in backend.seen] == [b"\x00\x01"] * 2


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
@pytest.mark.parametrize("garbage", [b"", b"{}", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"])
async def test_request_that_is_not_of_its_coding(proxy, backend, coding, garbage):
    """A clear error, and nothing reaches the backend."""
    answer = await wire.ask(proxy.port, wire.request(garbage, b"Content-Encoding: " + coding))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) in (
        (415, "unsupported_encoding"),
        (400, "invalid_json"),
    )
    assert backend.seen == []


@pytest.mark.parametrize("case", ["gzip", "deflate", "br", "zstd", "twice"])
async def test_request_bomb_is_too_large(start, backend, case):
    """The limit is on the unpacked size; a bomb is answered before it is unpacked."""
    coding, squeeze = CODINGS[case]
    proxy = await start(limits__body_bytes="1MiB")
    answer = await wire.ask(proxy.port, wire.request(squeeze(b" " * 40 * 2**20), b"Content-Encoding: " + coding))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, "request_too_large")
    assert backend.seen == []


async def test_stream_kept_from_gzip_answers_json_in_plain(client, backend):
    """B41, B21: the stored form does not depend on the first caller's coding or mode."""

    async def squeezed(exchange) -> None:
        whole = chunk({"content": "Hello."}) + chunk(finish="stop") + usage_chunk() + b"data: [DONE]\n\n"
        await exchange.events(gzip.compress(whole), done=False, extra=b"Content-Encoding: gzip\r\n")

    backend.script = squeezed
    await client.chat(stream=True, Accept_Encoding="gzip")
    answer = await client.chat(Accept_Encoding="gzip")
    assert (answer.cache, answer.get("content-encoding"), answer.text) == ("HIT", None, "Hello.")
