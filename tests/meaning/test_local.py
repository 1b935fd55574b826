"""The vector index in this process: its bound, its memory, its ranking by words, and its sketch."""

import asyncio
import math
import random
from collections import Counter

import numpy as np
import pytest

from cacheproxy.core.model import Row
from cacheproxy.meaning import local
from cacheproxy.meaning import partition as partition_module
from cacheproxy.meaning import postings as postings_module
from cacheproxy.meaning.local import Local
from cacheproxy.meaning.postings import K1, B, Postings
from cacheproxy.meaning.signs import Signs
from tests.contract.index_fixtures import LATER, NOW, P, line, row
from tests.stores.entries import key_of

OTHER = b"\xff" * 32


async def there(index: Local, partition: bytes = P) -> set[bytes]:
    return {near.key for near in await index.search(partition, line(1), "", 10_000, NOW)}


def some(count: int, dim: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)


# The bound


async def test_the_oldest_written_go_first_whatever_their_partition():
    index = Local(4, 10)
    for number in range(20):
        await index.add(row(number, partition=P if number % 2 else OTHER))
        assert len(index) == min(number + 1, 10)
    assert await there(index) == {key_of(n) for n in range(11, 20, 2)}
    assert await there(index, OTHER) == {key_of(n) for n in range(10, 20, 2)}
    await index.add(row(10))
    for number in range(20, 29):
        await index.add(row(number))
    assert await there(index) == {key_of(n) for n in (10, *range(20, 29))}, "written anew is young again"
    assert repr(index) == "<Local 10/10 rows 1 partitions>"


async def test_memory_is_given_back():
    index = Local(64, 10_000)
    for number in range(5000):
        await index.add(row(number, some(1, 64, number)[0]))
    kept = index._partitions[P]
    assert kept.room >= 5000
    await index.remove([key_of(number) for number in range(4990)])
    assert kept.room <= 64
    assert len(kept._postings) <= 12
    (first, *_) = await index.search(P, some(1, 64, 4995)[0], "number 4995", 20, NOW)
    assert (first.key, first.by_meaning, first.by_words) == (key_of(4995), 1, 1)
    await index.remove([key_of(number) for number in range(4990, 5000)])
    assert index._partitions == {}
    await index.sweep(LATER + 1)
    assert index._expiries == []


async def test_places_that_are_left_are_taken_again():
    index = Local(4, 50)
    for number in range(2000):
        await index.add(row(number, text=f"unique{number} common"))
    kept = index._partitions[P]
    assert kept.room <= 128
    assert len(kept._postings) == 51
    assert sum(map(len, kept._postings._lists.values())) < 300 * 8
    assert len(index._expiries) < 2000
    found = await index.search(P, line(1), "unique1999 unique3 common", 50, NOW)
    assert len(found) == 50
    assert [near.key for near in found if near.by_words == 1] == [key_of(1999)]
    await index.close()
    assert len(index) == 0


# Given out and filled in


async def test_what_is_given_out_fills_another():
    one, other = Local(4, 100), Local(4, 100)
    for number in range(30):
        await one.add(row(number, line(3, number), partition=P if number % 3 else OTHER))
    rows = list(one.rows())
    assert [each.key for each in rows] == [key_of(number) for number in reversed(range(30))]
    assert await other.fill(rows) == 30
    for partition in P, OTHER:
        assert await other.search(partition, line(1), "number 3", 30, NOW) == await one.search(
            partition, line(1), "number 3", 30, NOW
        )
    for number in range(30, 110):
        await other.add(row(number))
    assert await there(other) | await there(other, OTHER) == {key_of(n) for n in range(10, 110)}, "age is kept"


async def test_filling_takes_no_place_from_what_is_there():
    index = Local(4, 10)
    for number in range(6):
        await index.add(row(number, line(0, 1)))
    filled = await index.fill(row(number) for number in range(3, 100))
    assert filled == 4
    assert await there(index) == {key_of(number) for number in range(10)}
    found = await index.search(P, line(0, 1), "", 6, NOW)
    assert {near.key for near in found} == {key_of(number) for number in range(6)}, "the younger row of a key stays"
    await index.add(row(200))
    assert await there(index) == {key_of(number) for number in (*range(9), 200)}, "what was filled in last goes first"


async def test_filling_leaves_the_loop_free_and_what_is_there_is_found(monkeypatch):
    monkeypatch.setattr(local, "TURN", 0.0)  # however fast the machine is, a turn ends
    index = Local(4, 10_000)
    filling = asyncio.create_task(index.fill(row(number) for number in range(1000)))
    turns = 0
    while not filling.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 5:
            assert 0 < len(await there(index)) < 1000
            await index.add(row(2000))
            await index.remove([key_of(3)])
    assert turns >= 15
    assert await filling == 1000
    assert len(await there(index)) == 1000


async def test_rows_that_cannot_be_kept_are_not_filled_in():
    index = Local(4, 10)
    wrong = [row(1, line(0)), row(2, line(1, dim=5)), Row(b"short", P, line(1), "", LATER), row(3)]
    assert await index.fill(wrong) == 1
    assert await there(index) == {key_of(3)}


async def test_rows_may_go_while_they_are_given_out():
    index = Local(4, 100)
    for number in range(10):
        await index.add(row(number))
    rows = index.rows()
    assert next(rows).key == key_of(9)
    await index.remove([key_of(8), key_of(7)])
    await index.add(row(50))
    assert [each.key for each in rows] == [key_of(number) for number in reversed(range(7))]


async def test_what_is_given_out_does_not_change():
    index = Local(4, 1)
    await index.add(row(1, line(1)))
    (given,) = index.rows()
    await index.add(row(2, line(0, 1)))
    assert given.vector.tolist() == line(1).tolist()


# Words


def score(texts: list[list[str]], asked: list[str], at: int) -> float:
    """BM25, as it is written down."""
    mean = sum(map(len, texts)) / len(texts)
    total = 0.0
    for word in asked:
        having = sum(word in text for text in texts)
        count = Counter(texts[at])[word]
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        total += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * len(texts[at]) / mean))
    return total


def test_words_are_ranked_by_the_formula():
    dice = random.Random(3)
    vocabulary = [f"w{n}" for n in range(30)]
    postings, kept = Postings(), {}
    for step in range(600):
        place = dice.randrange(50)
        if place in kept:
            postings.remove(place, kept.pop(place))
        if dice.random() < 0.8:
            kept[place] = [dice.choice(vocabulary[: 1 + step % 30]) for _ in range(dice.randrange(12))]
            postings.add(place, kept[place])
    places = sorted(kept)
    texts = [kept[place] for place in places]
    for _ in range(20):
        asked = dice.sample([*vocabulary, "unknown"], 4)
        found, scores = postings.scores(asked)
        wanted = {p: s for at, p in enumerate(places) if (s := score(texts, asked, at)) > 0}
        assert dict(zip(found.tolist(), scores.tolist(), strict=True)) == pytest.approx(wanted, rel=1e-4)
    assert len(postings) == len({word for text in texts for word in text})


def test_nothing_has_words_where_there_is_nothing():
    found, scores = Postings().scores(["a"])
    assert len(found) == len(scores) == 0


def test_words_that_nearly_all_have_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(postings_module, "MOST_VISITED", 100)
    postings = Postings()
    for place in range(200):
        postings.add(place, ["common", f"pair{place // 2}"])
    assert len(postings.scores(["common"])[0]) == 0
    assert postings.scores(["common", "pair7"])[0].tolist() == [14, 15]


def test_a_word_is_counted_up_to_a_limit():
    postings = Postings()
    postings.add(0, ["a"] * 1000)
    postings.add(1, ["a"] * 999 + ["b"])
    assert postings.scores(["a"])[0].tolist() == [0, 1]
    postings.remove(0, ["a"] * 1000)
    assert postings.scores(["a", "b"])[0].tolist() == [1]


# The sketch of very many


@pytest.fixture
def sketched(monkeypatch):
    """Few rows count as very many."""
    monkeypatch.setattr(partition_module, "EXACT", 500)
    monkeypatch.setattr(partition_module, "COMPARED", 60)


async def test_near_ones_are_found_among_very_many(sketched):
    dice = np.random.default_rng(5)
    index, vectors = Local(384, 10_000), some(3000, 384)
    for number in range(3000):
        await index.add(row(number, vectors[number], text=f"w{number}"))
    assert index._partitions[P]._signs is not None
    for number in range(0, 3000, 50):
        asked = vectors[number] + dice.standard_normal(384).astype(np.float32) * np.float32(0.4)
        cosine = float(asked @ vectors[number] / np.linalg.norm(asked) / np.linalg.norm(vectors[number]))
        assert 0.9 < cosine < 0.95
        found = await index.search(P, asked, "w7", 10, NOW)
        assert found[0].key == key_of(number) or found[1].key == key_of(number)
        (near,) = [near for near in found if near.key == key_of(number)]
        assert (near.by_meaning, near.similarity) == (1, pytest.approx(cosine, abs=1e-5))
        (rare,) = [near for near in found if near.key == key_of(7)]
        assert (rare.by_words, rare.similarity) == (1, pytest.approx(
            float(asked @ vectors[7] / np.linalg.norm(asked) / np.linalg.norm(vectors[7])), abs=1e-5
        ))  # fmt: skip


async def test_the_sketch_follows_what_comes_and_goes(sketched):
    index, vectors = Local(128, 2000), some(6000, 128)
    for number in range(6000):
        await index.add(row(number, vectors[number], expires_at=NOW + 10 if number % 2 else LATER))
    for number in 5000, 5500, 5998:
        (found, *_) = await index.search(P, vectors[number], "", 5, NOW)
        assert (found.key, found.similarity) == (key_of(number), pytest.approx(1, abs=1e-6))
    found = await index.search(P, vectors[5999], "", 60, NOW + 20)
    assert len(found) >= 50
    assert {near.key for near in found} <= {key_of(number) for number in range(4000, 6000, 2)}
    assert await index.search(P, vectors[5999], "", 60, LATER + 1) == []
    await index.remove([key_of(number) for number in range(5900)])
    assert index._partitions[P]._signs is None
    (found, *_) = await index.search(P, vectors[5950], "", 5, NOW)
    assert found.key == key_of(5950)


async def test_vectors_of_few_dimensions_are_always_compared(sketched):
    index, vectors = Local(4, 2000), some(1500, 4)
    for number in range(1500):
        await index.add(row(number, vectors[number]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for asked in some(20, 4, seed=2):
        found = await index.search(P, asked, "", 5, NOW)
        assert [near.key for near in found] == [key_of(int(n)) for n in np.argsort(-vectors @ asked)[:5]]


@pytest.mark.parametrize("dim", [128, 130, 384])
def test_a_sketch_counts_the_signs_that_differ(dim):
    vectors = some(300, dim)
    signs = Signs(dim, 100)
    signs.put(0, vectors[:100])
    signs.grow(300)
    signs.put(100, vectors[100:])
    gone = np.zeros(300, np.bool_)
    gone[::7] = True
    apart = ((vectors > 0) != (vectors[5] > 0)).sum(axis=1)
    for many in 1, 10, 100:
        limit = np.sort(apart[~gone])[many - 1]
        assert signs.closest(vectors[5], gone, many).tolist() == np.flatnonzero((apart <= limit) & ~gone).tolist()
    assert signs.closest(vectors[5], gone, 1000).tolist() == np.flatnonzero(~gone).tolist()
    assert signs.closest(vectors[5], np.ones(300, np.bool_), 10).tolist() == []
    assert signs.closest(vectors[5], gone[:0], 10).tolist() == []
