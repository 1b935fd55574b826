"""``cacheproxy replay``: what a log would have hit is what a proxy would have done with it."""

import json
import re
import struct
import zlib
from collections import Counter

import numpy as np
import pytest

from cacheproxy.commands import chart, picture
from cacheproxy.commands.traffic import requests
from cacheproxy.core.model import Unfit
from cacheproxy.engine import alike as alike_module
from cacheproxy.engine import replaying
from cacheproxy.engine.alike import Alike, question_of
from cacheproxy.engine.replaying import Tally
from cacheproxy.engine.traffic import BadLine, Line, read
from cacheproxy.settings import resolve
from cacheproxy.wiring import terms
from cacheproxy.wiring.imagined import imagined
from tests.commands import Commands
from tests.fakes.embedder import Chosen
from tests.rig import BODY, CHAT, Client, until


def settings(**values):
    named = {name.replace("__", "."): value for name, value in values.items()}
    return resolve({"upstreams": ["http://backend"], "semantic.mode": "off", **named}, None, {}).settings


def asked(body=None, *, path=CHAT, key="A", at=None, latency=None, tokens=None, status=200, **headers) -> Line:
    lines = {"Authorization": f"Bearer {key}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Line(1, path, tuple(lines.items()), json.dumps(body or BODY).encode(), at, latency, tokens, status)


def fates(*all_asked: Line, **values) -> list[str]:
    replayed = imagined(settings(**values))
    met = [replayed.meet(replayed.pose(one)) for one in all_asked]
    return [fate.reason or fate.layer for fate in met]


# --- the imagined proxy ----------------------------------------------------------------------------------------------


def test_the_same_request_is_a_hit_whatever_does_not_matter():
    assert fates(asked(), asked({**BODY, "user": "u"}), asked({**BODY, "stream": True})) == ["absent", "exact", "exact"]


def test_another_key_namespace_version_or_path_is_another_request():
    others = [
        asked(key="B"), asked(X_Cache_Namespace="n"), asked(X_Cache_KB="faq"), asked({**BODY, "seed": 1}),
        asked({"model": "m", "prompt": "x"}, path="/v1/completions"),
    ]  # fmt: skip
    assert fates(asked(), *others) == ["absent"] * 6
    assert fates(asked(), asked(key="B"), access__scope="shared") == ["absent", "exact"]


def test_an_answer_lives_as_long_as_it_would():
    def course(*times, **values):
        return fates(*[asked(at=at) for at in times], **values)

    assert course(0, 3599, 3601) == ["absent", "exact", "expired"]
    assert course(0, 9, 11, 20, exact__ttl=10) == ["absent", "exact", "expired", "exact"]
    assert fates(asked(at=0, X_Cache_TTL="5"), asked(at=4), asked(at=6)) == ["absent", "exact", "expired"]
    assert fates(asked(at=0), asked(at=9, Cache_Control="max-age=5")) == ["absent", "too_old"]
    rules = [{"match": {"model": "m"}, "set": {"ttl": 1}}]
    assert course(0, 2, rules=rules) == ["absent", "expired"]


def test_an_answer_that_has_not_come_yet_is_no_hit():
    three = [asked(at=at, latency=5.0) for at in (0, 4, 5.5)]
    assert fates(*three) == ["absent", "absent", "exact"]


@pytest.mark.parametrize(
    ("first", "values", "why"),
    [
        ({"Cache_Control": "no-store"}, {}, "no_store"), ({"status": 500}, {}, "absent"),
        ({"path": "/v1/other"}, {}, "uncacheable_path"), ({"X_Cache_TTL": "junk"}, {}, "invalid_header"),
        ({}, {"exact__mode": "off"}, "cache_off"), ({}, {"exact__mode": "read-only"}, "absent"),
        ({}, {"exact__mode": "write-only"}, "write_only"), ({"Cache_Control": "only-if-cached"}, {}, "absent"),
        ({}, {"exact__ttl": 0}, "absent"), ({"X_Cache_TTL": "0"}, {}, "absent"),
    ],
)  # fmt: skip
def test_what_is_not_kept_is_no_hit(first, values, why):
    assert fates(asked(**first), asked(**first), **values) == [why, why]


def test_errors_that_would_come_again_are_kept_if_they_are_to_be():
    assert fates(asked(status=404), asked(status=404)) == ["absent", "absent"]
    assert fates(asked(status=404), asked(status=404), exact__negative_ttl=30) == ["absent", "exact"]
    assert fates(asked(status=500), asked(status=500), exact__negative_ttl=30) == ["absent", "absent"]


def test_what_is_served_nowhere_yet_is_a_miss_of_its_own_kind():
    assert fates(asked(), asked(), exact__mode="shadow") == ["absent", "shadow"]
    assert fates(asked(), asked(Cache_Control="no-cache")) == ["absent", "no_cache"]


def test_several_answers_in_turn_are_as_many_misses():
    assert fates(*[asked()] * 5, exact__variants=2) == ["absent", "absent", "exact", "exact", "exact"]


def test_a_batch_is_a_hit_once_all_its_parts_are():
    def batch(*texts):
        return asked({"model": "m", "input": list(texts)}, path="/v1/embeddings")

    assert fates(batch("a", "b"), batch("b"), batch("a", "c"), batch("c", "a")) == [
        "absent",
        "exact",
        "absent",
        "exact",
    ]


async def test_it_says_what_a_proxy_does(client: Client, backend):
    """The same requests at a real one."""
    bodies = [{**BODY, "seed": seed % 3, "user": str(seed)} for seed in range(9)] + [{**BODY, "temperature": 0}] * 2
    real = [(await client.chat(body)).cache for body in bodies]
    told = fates(*[asked(body) for body in bodies])
    assert ["HIT" if fate == "exact" else "MISS" for fate in told] == real


def test_what_is_spared_is_counted():
    replayed, tally = imagined(settings()), Tally()
    for one in [
        asked(tokens=(10, 5), latency=2.0),
        asked(tokens=(10, 6), latency=3.0),
        asked(Cache_Control="no-store"),
    ]:
        tally.add(replayed.meet(replayed.pose(one)))
    assert (tally.tokens, tally.known_tokens, tally.seconds, tally.known_seconds) == (16, 31, 3.0, 5.0)
    assert tally.layers == {"exact": 1, "miss": 1, "bypass": 1}
    assert (tally.misses, tally.bypasses) == ({"absent": 1}, {"no_store": 1})


# --- by meaning ------------------------------------------------------------------------------------------------------


NEAR = {
    "how do I reset my password": 1.0, "how do I reset my password please": 0.95,
    "how do I reset 2 passwords": 1.0, "how do I reset 3 passwords": 0.99,
}  # fmt: skip


async def alike(*all_asked: Line, **values) -> list[str]:
    told = settings(semantic__mode="on", **values)
    replayed, matching = imagined(told), terms.matching(told)
    posed = [replayed.pose(one) for one in all_asked]
    embedder = Chosen()
    for text, similarity in NEAR.items():
        embedder.near(text, similarity)
    texts = [q.text for one in posed if one.bound and (q := question_of(replayed.binder, matching, one.bound))]
    replayed.likeness = Alike(replayed.binder, matching, {text: await embedder.embed(text, b"") for text in texts})
    return [fate.reason or fate.layer for fate in map(replayed.meet, posed)]


def question(text: str, **fields):
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


async def test_a_like_question_is_a_hit_by_meaning():
    one, other, far = "how do I reset my password", "how do I reset my password please", "what does shipping cost"
    told = [asked(question(text), at=at) for at, text in enumerate((one, other, far, one, other))]
    assert await alike(*told, semantic__threshold=0.9) == ["absent", "semantic", "absent", "exact", "semantic"]
    assert await alike(*told, semantic__threshold=1) == ["absent", "absent", "absent", "exact", "exact"]
    late = [asked(question(one), at=0), asked(question(other), at=4000)]
    assert await alike(*late, semantic__threshold=0.9) == ["absent", "absent"]


async def test_guards_scopes_frames_and_wishes_hold():
    one, other = "how do I reset 2 passwords", "how do I reset 3 passwords"
    assert await alike(asked(question(one)), asked(question(other)), semantic__threshold=0.5) == ["absent", "absent"]
    one, other = "how do I reset my password", "how do I reset my password please"
    for second in (
        asked(question(other), key="B"), asked(question(other, temperature=0.5)),
        asked(question(other), X_Cache_Semantic="off"), asked(question(other), X_Cache_Semantic="1.0"),
    ):  # fmt: skip
        assert await alike(asked(question(one)), second, semantic__threshold=0.9) == ["absent", "absent"]
    rules = [{"match": {"model": "m"}, "set": {"semantic": False}}]
    told = (asked(question(one)), asked(question(other)))
    assert await alike(*told, semantic__threshold=0.9, rules=rules) == ["absent", "absent"]


async def test_it_says_what_a_proxy_does_by_meaning(start, session):
    """The same questions at a real one, one after the other."""
    embedder = Chosen()
    for text, similarity in NEAR.items():
        embedder.near(text, similarity)
    proxy = await start(embedder=embedder)
    client, texts = Client(proxy.base, session), [*NEAR, *NEAR, "what does shipping cost"]
    real = []
    for text in texts:
        before = len(proxy.house.meaning.index._index)
        answer = await client.chat(question(text))
        real.append(answer.get("x-cache-tier") or "absent")
        if answer.cache == "MISS":
            await until(lambda before=before: len(proxy.house.meaning.index._index) > before)
    assert await alike(*[asked(question(text)) for text in texts]) == real
    assert {"exact", "semantic", "absent"} == set(real)


def test_a_question_without_a_vector_is_found_by_nobody():
    told = settings(semantic__mode="on")
    replayed = imagined(told)
    replayed.likeness = Alike(replayed.binder, terms.matching(told), {"x": Unfit.EMPTY})
    met = [replayed.meet(replayed.pose(asked(question("x"), key=key))) for key in ("A", "B")]
    assert Counter(fate.layer for fate in met) == {replaying.MISS: 2}


@pytest.mark.parametrize("count", [1, 5, 6, 500])
def test_the_nearest_are_looked_at_the_nearest_first(count):
    near = np.random.default_rng(count).permutation(count).astype(np.float32)
    assert near[alike_module._highest(near, 5)].tolist() == sorted(near.tolist(), reverse=True)[:5]


# --- lines of a file -------------------------------------------------------------------------------------------------


def test_a_line_is_a_body_or_an_envelope():
    assert read(3, b'{"model": "m"}') == Line(3, CHAT, (), b'{"model": "m"}')
    told = {
        "path": "/v1/completions", "headers": {"A": "b", "C": ["d", "e"]}, "body": {"x": 1}, "time": 5, "latency": 0.5,
        "usage": {"prompt_tokens": 1, "total_tokens": 2}, "status": 404, "else": None,
    }  # fmt: skip
    headers = (("A", "b"), ("C", "d"), ("C", "e"))
    assert read(1, json.dumps(told).encode()) == Line(1, "/v1/completions", headers, b'{"x":1}', 5.0, 0.5, (1, 0), 404)
    assert read(1, b'{"body": "{\\"model\\":1.0}"}').body == b'{"model":1.0}'
    assert read(1, b'{"body": {}, "status": 404.0, "usage": {"prompt_tokens": 2.0}}').tokens == (2, 0)
    assert read(1, b'{"body": {}, "time": "2026-01-01T00:00:00Z"}').time == 1767225600.0


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"1", b"{}", b'{"body": 1}', b'{"body": "x"}', b'{"body": "[]"}', b'{"body": {}, "path": 1}',
        b'{"body": {}, "path": "v1"}', b'{"body": {}, "path": "/ x\\r\\ny"}', b'{"body": {}, "headers": []}',
        b'{"body": {}, "headers": {"a": 1}}', b'{"body": {}, "headers": {"a": "b\\r\\nc"}}',
        b'{"body": {}, "headers": {"": "b"}}', b'{"body": {}, "time": "now"}', b'{"body": {}, "time": true}',
        b'{"body": {}, "latency": -1}', b'{"body": {}, "usage": 1}', b'{"body": {}, "usage": {"prompt_tokens": true}}', b'{"body": {}, "status": 200.5}',
        b'{"body": {}, "usage": {"completion_tokens": -1}}', b'{"body": {}, "usage": {"prompt_tokens": "1"}}',
        b'{"body": {}, "status": 99}', b"\xff", b"[" * 10_000,
    ],
)  # fmt: skip
def test_a_line_that_is_none_says_why_and_nothing_of_itself(line):
    found = read(7, line)
    assert isinstance(found, BadLine)
    assert found.number == 7
    assert len(found.why) < 80


def test_empty_lines_count_and_are_passed_over(tmp_path):
    (tmp_path / "f").write_text('\n{"model":"m"}\r\n\n{"model":"n"}')
    assert [one.number for one in requests(str(tmp_path / "f"))] == [2, 4]


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def commands(tmp_path):
    started = Commands(tmp_path)
    yield started
    started.close()


async def test_the_command_and_its_page(commands, tmp_path):
    lines = [{"body": BODY, "time": at, "latency": 1.5, "usage": {"prompt_tokens": 4}} for at in (30, 10, 20)]
    lines.append({"body": BODY, "path": "/v1/<b>"})
    file, page, drawn = tmp_path / "log.jsonl", tmp_path / "page.html", tmp_path / "chart.png"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    call = ("replay", str(file), "--no-semantic")
    done = await commands.run(*call, "--json", "--html", str(page), "--png", str(drawn))
    assert done.code == 0
    assert json.loads(done.out) == {
        "requests": 4, "bad_lines": 0, "timed": True, "hit_rate": 0.5, "exact": {"hits": 2, "rate": 0.5},
        "semantic": None, "misses": {"absent": 1}, "bypasses": {"uncacheable_path": 1},
        "tokens": {"saved": 8, "of": 12}, "seconds": {"saved": 3.0, "of": 4.5},
    }  # fmt: skip
    assert drawn.read_bytes() == picture.png(["miss", "exact", "bypass", "exact"])
    html = page.read_text()
    assert "<svg" in html
    assert not re.search(r"https?:|src=|<script", html)
    with file.open("a") as more:
        more.write("{\n")
    done = await commands.run(*call)
    assert (done.code, done.err.splitlines()[-1]) == (1, "line 5: is not valid JSON")
    assert done.out.startswith("4 requests, 50.0% answered from the cache\n")


@pytest.mark.parametrize("course", [[], ["exact"], ["miss"] * 1000, ["exact", "semantic", "miss"] * 500])
def test_a_drawing_fits_its_frame(course):
    drawn = chart.drawing(course)
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', drawn)
    for x, y, width, height in (map(float, bar) for bar in bars):
        assert x >= 40
        assert x + width <= 40 + chart.WIDTH + 0.2 or y > chart.HEIGHT
        assert 10 <= y + 0.1 <= y + height + 0.1 <= chart.HEIGHT + 40
    if set(course) == {"exact", "semantic", "miss"}:
        assert 'fill="#805ad5"' in drawn


def dots(file: bytes) -> list[list[tuple[int, ...]]]:
    """The dots of a PNG with 3 bytes each and no filter; its checksums are looked at."""
    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(file):
        length, kind = struct.unpack(">I4s", file[at : at + 8])
        content = file[at + 8 : at + 8 + length]
        assert struct.unpack(">I", file[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        chunks[kind], at = content, at + 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    told = zlib.decompress(chunks[b"IDAT"])
    assert len(told) == height * (1 + 3 * width)
    rows = [told[y * (1 + 3 * width) :][1 : 1 + 3 * width] for y in range(height)]
    return [[tuple(row[3 * x : 3 * x + 3]) for x in range(width)] for row in rows]


@pytest.mark.parametrize("course", [[], ["exact"], ["miss"] * 1000, ["exact", "semantic", "miss", "miss"] * 500])
def test_a_picture_shows_the_shares(course):
    blue, purple = (0x2B, 0x6C, 0xB0), (0x80, 0x5A, 0xD5)
    frame = [row[picture.LEFT : picture.LEFT + picture.WIDE] for row in dots(picture.png(course))]
    frame = frame[picture.TOP : picture.TOP + picture.HIGH]
    for layer, colour in (("exact", blue), ("semantic", purple)):
        share = course.count(layer) / len(course) if course else 0
        assert sum(row.count(colour) for row in frame) / (picture.WIDE * picture.HIGH) == pytest.approx(share, abs=0.02)
    if purple in frame[picture.HIGH // 2 + 1]:  # what is by meaning stands on the exact hits
        assert blue in frame[-1]


def test_a_picture_has_letters():
    """The percentages on the left, and the layers below."""
    ink = (0x4A, 0x55, 0x68)
    drawn = dots(picture.png(["exact"]))
    assert sum(row[: picture.LEFT].count(ink) for row in drawn) > 100
    assert sum(row.count(ink) for row in drawn[-30:]) > 50
