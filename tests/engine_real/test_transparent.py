"""What is not cached passes as if there were no proxy: status, header lines and body."""

import json

import pytest

from tests import rig
from tests.engine_real.asking import EXACTLY, KEY, fields, shape

OURS = {"cache-status", "x-cache", "x-cache-reason", "server-timing"}
CACHED_TOO = {"cache-control", "vary"}


def passed(answer: rig.Answer, *, cacheable: bool = False) -> list[tuple[str, str]]:
    """The lines of an answer through the proxy without those that it may add."""
    added = OURS | CACHED_TOO if cacheable else OURS
    assert added <= {n.lower() for n, _ in answer.headers}
    return [(n, v) for n, v in fields(answer) if n.lower() not in added]


READS = ["/v1/models", "/models", "/health", "/slots", "/props", "/metrics", "/v1/nothing", "/", "/v1/models?a=%2F"]


@pytest.mark.parametrize("path", READS)
async def test_reads_pass(client, direct, path):
    through, truth = [await c.send(method="GET", path=path, key=None) for c in (client, direct)]
    assert through.status == truth.status
    assert through.phrase == truth.phrase
    lines = passed(through, cacheable=path.startswith("/v1/models"))
    assert [line for line in lines if line[0] != "X-Cache-Entry-Id"] == fields(truth)
    assert through.get("content-length") is not None
    if (truth.get("content-type") or "").startswith("application/json"):
        assert shape(through.json) == shape(truth.json)
    else:
        names = [[line.split(b" ")[0] for line in a.body.splitlines()] for a in (through, truth)]
        assert names[0] == names[1]


@pytest.mark.parametrize("path", ["/v1/models", "/health"])
async def test_heads_pass(client, direct, path):
    through, truth = [await c.send(method="HEAD", path=path, key=None) for c in (client, direct)]
    assert (through.status, through.body) == (truth.status, b"")
    assert passed(through) == fields(truth)
    assert through.get("content-length") == truth.get("content-length")


async def test_a_browsers_preflight_passes(client, direct):
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    through, truth = [await c.send(method="OPTIONS", path=rig.CHAT, key=None, **asked) for c in (client, direct)]
    assert (through.status, through.body) == (truth.status, truth.body)
    assert passed(through) == fields(truth)
    assert truth.get("access-control-allow-origin") == "https://page.example"


POSTS = [
    ("/tokenize", b'{"content": "Good morning"}', 200),
    ("/v1/responses", json.dumps({**EXACTLY, "input": "Say hi.", "max_output_tokens": 4}).encode(), 200),
    ("/v1/embeddings", b'{"input": "a"}', 501),
    ("/v1/nothing", b"{}", 404),
]


@pytest.mark.parametrize(("path", "body", "status"), POSTS, ids=[p for p, *_ in POSTS])
async def test_other_calls_pass(client, direct, path, body, status):
    through, truth = [await c.send(body, path=path, key=None) for c in (client, direct)]
    assert through.status == truth.status == status
    assert passed(through, cacheable=path in ("/v1/responses", "/v1/embeddings")) == fields(truth)
    assert shape(through.json) == shape(truth.json)


REFUSED = {
    "no messages": b"{}",
    "messages of the wrong type": b'{"messages": 1}',
    "too long": json.dumps({**EXACTLY, "messages": [{"role": "user", "content": "word " * 4000}]}).encode(),
    "more choices than slots": json.dumps({**EXACTLY, "messages": [{"role": "user", "content": "a"}], "n": 2}).encode(),
    "a bad grammar": json.dumps({**EXACTLY, "messages": [{"role": "user", "content": "a"}], "grammar": "%"}).encode(),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
async def test_the_engines_own_refusals_pass_and_are_not_stored(client, direct, body, stream):
    """B55: the engine's 4xx, byte for byte, the second time too."""
    body = body.replace(b"{", b'{"stream": true, ' if body != b"{}" else b'{"stream": true', 1) if stream else body
    truth = await direct.send(body, key=None)
    assert truth.status == 400
    for _ in range(2):
        through = await client.send(body, key=None)
        assert (through.status, through.phrase, through.body) == (truth.status, truth.phrase, truth.body)
        assert passed(through, cacheable=True) == fields(truth)
        assert through.cache == "MISS"
        assert through.get("x-cache-reason") == "status"


def close(vector):
    """The engine computes a batch otherwise than its inputs alone: the last digits differ."""
    if isinstance(vector, str):
        return len(vector)
    return [round(number, 2) for number in vector]


async def test_embeddings_are_the_engines_own(start, guarded, session):
    """B13: both encodings, one or several inputs, some known, all known: always what the engine says itself."""
    proxy = await start(upstream=guarded.url)
    base64 = {"encoding_format": "base64"}
    for fields_of, state in (
        ({"input": "a"}, "MISS"), ({"input": ["b", "a", "c"]}, "MISS"), ({"input": ["c", "b", "a"]}, "HIT"),
        ({"input": "a", **base64}, "MISS"), ({"input": ["a"], **base64}, "HIT"),
    ):  # fmt: skip
        body = {"model": "m", **fields_of}
        truth = await rig.Client(guarded.url, session).send(body, path="/v1/embeddings", key=KEY)
        asking = rig.Client(proxy.base, session)
        through = await asking.send(body, path="/v1/embeddings", key=KEY, Accept_Encoding="identity")
        assert (through.status, through.cache) == (200, state)
        assert shape(through.json) == shape(truth.json)
        assert [close(d["embedding"]) for d in through.json["data"]] == [
            close(d["embedding"]) for d in truth.json["data"]
        ]
        assert [d["index"] for d in through.json["data"]] == [d["index"] for d in truth.json["data"]]
        assert through.json["usage"] == truth.json["usage"]


async def test_the_engines_401_passes(start, guarded, session):
    proxy = await start(upstream=guarded.url)
    for method, path, body in [("POST", rig.CHAT, {**EXACTLY, "messages": []}), ("GET", "/v1/models", None)]:
        for key in ("wrong", None):
            truth = await rig.Client(guarded.url, session).send(body, method=method, path=path, key=key)
            through = await rig.Client(proxy.base, session).send(body, method=method, path=path, key=key)
            assert (through.status, through.body) == (truth.status, truth.body)
            assert through.status == 401
            assert passed(through, cacheable=True) == fields(truth)
