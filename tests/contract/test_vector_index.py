"""What every `VectorIndex` must do (ports.py), run on each of them."""
# ruff: noqa: F811 - fixtures are imported

import asyncio
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheproxy.core.model import Near, Row
from cacheproxy.errors import Trouble
from cacheproxy.ports import VectorIndex
from tests.contract.index_fixtures import LATER, NOW, P, index, index_kind, index_make, line, row  # noqa: F401
from tests.examples import tries
from tests.redis_fixtures import redis_acl, redis_acl_server  # noqa: F401
from tests.stores.entries import key_of

ODD = [
    bytes(32), b"\xff" * 32, b"{0}" * 10 + b"{}", b"|" * 32, b"@p:{*}|-,.<>[]\"'\\ \n\r\t\0!;:$%^&", b"a" * 32, b"A" * 32,
    b"a" * 31 + b"*", b"*" * 32,
]  # fmt: skip
ODD = [partition[:32].ljust(32, b"-") for partition in ODD]
"""Partitions that would be something else if they were ever read as text."""


async def search(index: VectorIndex, vector, text: str = "", limit: int = 10, **fields) -> list[Near]:
    return await index.search(fields.get("partition", P), vector, text, limit, fields.get("now", NOW))


def keys(found: list[Near]) -> list[bytes]:
    return [near.key for near in found]


# What is near


async def test_a_row_finds_itself_first(index):
    for number in range(20):
        await index.add(row(number))
    for number in range(20):
        found = await search(index, row(number).vector, f"question number {number}")
        assert found[0] == Near(key_of(number), pytest.approx(1, abs=1e-6), 1, 1)


@pytest.mark.parametrize(
    "text",
    ["a question", "", " white \n", "\0", "caf\u00e9 \u5bc6\u7801 \U0001f642", "lone \ud800", "x" * 50_000],
    ids=range(7),
)
async def test_what_is_found_tells_its_question(index, text):
    """Whoever judges it compares the words."""
    await index.add(Row(key_of(1), P, line(1), text, LATER))
    await index.add(row(2, line(0, 1), text="another question"))
    assert {near.key: near.text for near in await search(index, line(1), "question")} == {
        key_of(1): text, key_of(2): "another question",
    }  # fmt: skip


async def test_the_nearest_come_first_and_similarity_is_the_cosine(index):
    numbers = list(range(0, 300, 20))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        await index.add(row(number))
    found = await search(index, line(1), limit=20)
    assert keys(found) == [key_of(number) for number in sorted(numbers)]
    assert [near.by_meaning for near in found] == list(range(1, 16))
    assert [near.similarity for near in found] == pytest.approx([math.cos(n / 100) for n in sorted(numbers)], abs=1e-5)


async def test_similarity_reaches_from_1_to_minus_1_and_is_never_a_distance(index):
    """B70: orthogonal vectors, and such that lie on both sides of a threshold of 0.92."""
    for number, cosine in enumerate((1.0, 0.9201, 0.9199, 0.0, -1.0)):
        await index.add(row(number, line(cosine, math.sqrt(1 - cosine * cosine))))
    found = await search(index, line(1))
    assert keys(found) == [key_of(number) for number in range(5)]
    assert [round(near.similarity, 4) for near in found] == [1.0, 0.9201, 0.9199, 0.0, -1.0]
    assert all(-1.0 <= near.similarity <= 1.0 for near in found)


@pytest.mark.parametrize("length", [10.0, 0.001, 1e30, 1e-30])
async def test_the_length_of_a_vector_does_not_matter(index, length):
    """B70: vectors that are not normalised, here and in the question."""
    await index.add(row(1, line(0.6, 0.8) * np.float32(length)))
    await index.add(row(2, line(0.8, 0.6)))
    for asked in line(1), line(1) * np.float32(length):
        found = await search(index, asked)
        assert keys(found) == [key_of(2), key_of(1)]
        assert [near.similarity for near in found] == pytest.approx([0.8, 0.6], abs=1e-6)


async def test_floats_of_other_sizes_are_taken(index):
    await index.add(row(1, line(1, 1).astype(np.float64) * 1e-200))
    for asked in line(1).astype(np.float16), line(1).astype(np.float64) * 1e200:
        found = await search(index, asked)
        assert found[0].similarity == pytest.approx(math.sqrt(0.5), abs=1e-6)


async def test_no_similarity_is_greater_than_1(index_make):
    """Rounding could make it so."""
    dice = np.random.default_rng(1)
    index = index_make(dim=50)
    for number in range(80):
        vector = dice.standard_normal(50)
        await index.add(row(number, vector))
        for asked in vector, -vector:
            assert all(-1.0 <= near.similarity <= 1.0 for near in await index.search(P, asked, "", 3, NOW))


DEGENERATE = {
    "zero": np.zeros(4, np.float32),
    "NaN": line(1, math.nan),
    "infinite": line(1, math.inf),
    "minus infinite": line(-math.inf, 1),
    "too short": line(1, 1)[:3],
    "too long": np.ones(5, np.float32),
    "empty": np.zeros(0, np.float32),
    "a row of a matrix": np.ones((1, 4), np.float32),
    "a number": np.float32(1),
    "whole numbers": np.ones(4, np.int64),
    "complex": np.ones(4, np.complex64),
    "objects": np.array([1.0, 0.0, 0.0, 0.0], object),
    "a list": [1.0, 0.0, 0.0, 0.0],
    "nothing": None,
}


@pytest.mark.parametrize("name", DEGENERATE)
async def test_a_vector_that_cannot_be_compared_is_refused(index, name):
    """B70: it is trouble to keep one and to look for one; and nothing is kept of it."""
    vector = DEGENERATE[name]
    await index.add(row(1, line(1)))
    with pytest.raises(Trouble):
        await index.add(Row(key_of(2), P, vector, "two", LATER))
    with pytest.raises(Trouble):
        await index.add(Row(key_of(1), P, vector, "one again", LATER))
    with pytest.raises(Trouble):
        await search(index, vector)
    assert keys(await search(index, line(1), "two one again")) == [key_of(1)]


@pytest.mark.parametrize("fields", [
    {"key": b"short"}, {"key": bytes(33)}, {"partition": b""}, {"partition": bytes(31)}, {"expires_at": math.inf},
    {"expires_at": math.nan},
])  # fmt: skip
async def test_a_row_that_is_none_is_refused(index, fields):
    whole = {"key": key_of(1), "partition": P, "vector": line(1), "text": "t", "expires_at": LATER}
    with pytest.raises(Trouble):
        await index.add(Row(**{**whole, **fields}))
    if "partition" in fields:
        with pytest.raises(Trouble):
            await search(index, line(1), **fields)
    assert await search(index, line(1)) == []


@pytest.mark.parametrize("limit", [0, 1, 3, 100])
async def test_no_more_than_asked_for(index, limit):
    for number in range(5):
        await index.add(row(number, text="the same words"))
    found = await search(index, line(1), "the same words", limit)
    assert len(found) == min(limit, 5) == len(set(keys(found)))


async def test_an_empty_index_finds_nothing(index):
    assert await search(index, line(1), "any words") == []


async def test_the_same_question_finds_the_same(index):
    for number in range(30):
        await index.add(row(number, line(1, number % 3), text="alike"))
    first = await search(index, line(1), "alike", 12)
    for _ in range(3):
        assert await search(index, line(1), "alike", 12) == first


# Words


async def test_what_only_words_find_has_its_true_similarity(index):
    for number in range(10):
        await index.add(row(number, text="how do I reset it"))
    await index.add(row(500, text="error code QX7741 on start"))
    found = await search(index, line(1), "what does QX7741 mean", 5)
    (rare,) = [near for near in found if near.key == key_of(500)]
    assert (rare.by_meaning, rare.by_words) == (None, 1)
    assert rare.similarity == pytest.approx(math.cos(5), abs=1e-5)
    assert [near.by_words for near in found if near.key != key_of(500)] == [None] * 4


async def test_the_rarer_and_the_more_words_the_better(index):
    texts = ["red car", "red house", "red boat", "blue car", "green tree with many other words in it and a boat"]
    for number, text in enumerate(texts):
        await index.add(row(number, line(0, 1), text))

    async def order(text: str) -> list[int]:
        found = [near for near in await search(index, line(1), text) if near.by_words]
        return [keys([row(n) for n in range(5)]).index(near.key) for near in sorted(found, key=lambda n: n.by_words)]

    assert (await order("blue boat"))[0] == 3
    assert await order("boat") == [2, 4]
    assert (await order("red car"))[0] == 0
    assert await order("RED, blue!") == [3, *await order("red")]
    assert await order("yellow") == []


@pytest.mark.parametrize(
    ("kept", "asked"),
    [
        ("如何重置密码？", "密码忘了怎么办"), ("パスワードを忘れました", "パスワード"), ("비밀번호를 재설정", "비밀번호"), ("รีเซ็ตรหัสผ่าน", "รหัสผ่าน"),
        ("पासवर्ड कैसे बदलें", "पासवर्ड"), ("Как сбросить ПАРОЛЬ", "пароль"), ("senha não funciona", "NÃO"), ("STRASSE", "straße"),
        ("cafe\u0301 open", "caf\u00e9"), ("ﬁle", "FILE"), ("１２３４", "1234"), ("don't", "don"), ("order 1043", "1043"),
        ("emoji 🙂 here", "here"),
    ],
)  # fmt: skip
async def test_words_of_every_script_are_found(index, kept, asked):
    await index.add(row(1, line(0, 1), kept))
    await index.add(row(2, line(0, 1), "something else"))
    assert {near.key: near.by_words for near in await search(index, line(1), asked)} == {key_of(1): 1, key_of(2): None}


HARMLESS = [
    "", " ", "\n\t\r", "\0", "-@{}|()*~%$:;!?.,", "@p:{*}", "*", "-word", "~word", "%word%", "(a|b", "a) | (b", '"quoted', '"""',
    "a\\", "=>[KNN 5 @v $q AS d]", "@x:[-inf +inf]", "$q", "a=>{$weight:5}", "inf", "-inf", "+inf", "1e5", "0x1f", "007",
    "as", "AS", "or", "OR", "and not", "within", "contains", "isempty", "ismissing(@w)", "the a of to and is", "w'", "\ud800",
    "\u200b\u200d\ufeff", "e\u0301\u0327", "foo_bar __init__ _", "word " * 10_000, " ".join(f"w{n}" for n in range(10_000)),
    "x" * 100_000, "密" * 10_000, "DIALECT 2", "FT.SEARCH", "\x1b[0m", "İstanbul ß ﬃ", "LIMIT 0 0", "'); DROP INDEX",
]  # fmt: skip


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: ascii(text[:12]))
async def test_no_text_does_harm(index, text):
    """Kept or asked for, it is words and nothing else, and never leaves the partition."""
    await index.add(row(1, line(1, 1), text))
    await index.add(row(2, line(1), "other words", partition=bytes(32)))
    found = await search(index, line(1), text)
    assert keys(found) == [key_of(1)]
    assert found[0].similarity == pytest.approx(math.sqrt(0.5), abs=1e-5)
    assert keys(await search(index, line(1), text, partition=bytes(32))) == [key_of(2)]


async def test_any_text_is_found_by_itself(index):
    loop = asyncio.get_running_loop()
    await index.add(row(-1, line(0, 1), "other words"))

    async def check(text: str) -> None:
        await index.add(row(1, line(1), text))
        found = await search(index, line(1), text)
        assert [near.by_meaning for near in found if near.key == key_of(1)] == [1]
        assert {*keys(found)} == {key_of(1), key_of(-1)}

    @tries(60)
    @given(st.text(max_size=60) | st.text("-@{}|()\"*~%$:;!?.,[]'\\=>\n ab_0", max_size=30))
    def every(text: str) -> None:
        asyncio.run_coroutine_threadsafe(check(text), loop).result(20)

    await asyncio.to_thread(every)


# Partitions


async def test_a_partition_is_never_left(index):
    """B14: whatever its bytes spell."""
    for number, partition in enumerate(ODD):
        await index.add(row(number, line(1), "the same words", partition))
    for number, partition in enumerate(ODD):
        found = await search(index, line(1), "the same words", partition=partition)
        assert found == [Near(key_of(number), pytest.approx(1, abs=1e-6), 1, 1)]
    assert await search(index, line(1), "the same words", partition=b"\x01" * 32) == []


async def test_a_crowd_in_another_partition_hides_nothing(index):
    """The partition is a filter of the search itself, not of what it found."""
    for number in range(60):
        await index.add(row(number, line(1, number / 1000), "the same words"))
    await index.add(row(100, line(0.2, 1), "the same words", b"\xff" * 32))
    found = await search(index, line(1), "the same words", 3, partition=b"\xff" * 32)
    assert found == [Near(key_of(100), pytest.approx(0.19611, abs=1e-4), 1, 1)]


# Time, removal, replacement


async def test_what_has_expired_is_not_found(index):
    for number in range(6):
        await index.add(row(number, line(1, number / 10), "words", expires_at=NOW + 50 + 10 * number))
    for now, left in (NOW, 6), (NOW + 49, 6), (NOW + 50.5, 5), (NOW + 80.5, 2), (NOW + 100.5, 0), (NOW + 1e9, 0):
        found = await search(index, line(1), "words", now=now)
        assert keys(found) == [key_of(number) for number in range(6 - left, 6)]


async def test_what_has_expired_takes_no_place(index):
    """The nearest have expired: those after them are found all the same."""
    for number in range(40):
        expires_at = NOW + 10 if number < 30 else LATER
        await index.add(row(number, line(1, number / 100), "words", expires_at=expires_at))
    found = await search(index, line(1), "words", 5, now=NOW + 20)
    assert keys(found) == [key_of(number) for number in range(30, 35)]


async def test_sweeping_frees_what_has_expired_and_nothing_else(index):
    for number in range(20):
        await index.add(row(number, expires_at=NOW + 50 + number))
    await index.add(row(3, expires_at=NOW + 500))
    assert await index.sweep(NOW + 49) == 0
    assert await index.sweep(NOW + 59.5) == 9
    assert await index.sweep(NOW + 59.5) == 0
    assert {*keys(await search(index, line(1), limit=50))} == {key_of(n) for n in (3, *range(10, 20))}
    assert await index.sweep(NOW + 600) == 11
    assert await search(index, line(1)) == []


async def test_what_is_removed_is_gone_and_the_next_is_found(index):
    """A ghost, a row whose payload is gone, is removed by who met it."""
    for number in range(5):
        await index.add(row(number, text="words"))
    assert keys(await search(index, line(1), "words", 1)) == [key_of(0)]
    assert await index.remove([key_of(0), key_of(0), key_of(77)]) == 1
    assert keys(await search(index, line(1), "words", 1)) == [key_of(1)]
    assert await index.remove([key_of(0)]) == 0
    assert await index.remove([]) == 0
    assert await index.remove(iter([key_of(1), key_of(2)])) == 2
    assert keys(await search(index, line(1), "words")) == [key_of(3), key_of(4)]
    await index.add(row(0, text="words"))
    assert keys(await search(index, line(1), "words", 1)) == [key_of(0)]


async def test_many_rows_are_removed_at_once(index):
    for number in range(700):
        await index.add(row(number))
    assert await index.remove([key_of(number) for number in range(1, 800)]) == 699
    assert keys(await search(index, line(1), "question number", 50)) == [key_of(0)]


async def test_a_word_is_that_word_and_no_other_form_of_it(index):
    """Every index ranks alike: none stems, and no word is too common to be looked for."""
    await index.add(row(1, text="running the shoes"))
    for text, rank in ("run", None), ("runs", None), ("shoe", None), ("running", 1), ("the", 1), ("THE a of", 1):
        (found,) = await search(index, line(1), text)
        assert found.by_words == rank


async def test_a_newer_row_takes_the_place_of_the_older(index):
    other = b"\xff" * 32
    await index.add(row(1, line(1), "old words", expires_at=NOW + 10))
    await index.add(row(1, line(0, 1), "new terms"))
    found = await search(index, line(0, 1), "terms", now=NOW + 20)
    assert found == [Near(key_of(1), pytest.approx(1, abs=1e-6), 1, 1)]
    (old,) = await search(index, line(1), "old words")
    assert (old.similarity, old.by_words) == (pytest.approx(0, abs=1e-6), None)
    await index.add(row(1, line(0, 1), "new terms", other))
    assert await search(index, line(0, 1), "new terms") == []
    assert keys(await search(index, line(0, 1), "new terms", partition=other)) == [key_of(1)]
    assert await index.remove([key_of(1)]) == 1


@pytest.mark.parametrize("seed", [1, 2])
async def test_what_is_found_is_what_is_there_after_any_run_of_operations(index, seed):
    dice, model = random.Random(seed), {}
    for _ in range(400):
        number, act = dice.randrange(40), dice.random()
        if act < 0.6:
            made = row(
                number, np.array([dice.gauss(0, 1) for _ in range(4)], np.float32), f"w{dice.randrange(9)}",
                dice.choice(ODD), NOW + dice.choice([50, 500]),
            )  # fmt: skip
            await index.add(made)
            model[made.key] = made
        elif act < 0.9:
            assert await index.remove([key_of(number)]) == (model.pop(key_of(number), None) is not None)
        else:
            now = NOW + dice.choice([1, 60])
            assert await index.sweep(now) == sum(kept.expires_at <= now for kept in model.values())
            model = {key: kept for key, kept in model.items() if kept.expires_at > now}
    assert len(model) > 5
    for partition in ODD:
        there = {key: kept for key, kept in model.items() if kept.partition == partition}
        asked = line(1, 1, 1, 1)
        found = await search(index, asked, "w1 w2 w3", 50, partition=partition)
        assert {near.key for near in found} == {*there}
        for near in found:
            vector = there[near.key].vector
            assert near.similarity == pytest.approx(vector @ asked / np.linalg.norm(vector) / 2, abs=1e-5)
            assert (near.by_words is not None) == (there[near.key].text in ("w1", "w2", "w3"))


# Company


async def test_two_writers_do_not_disturb_each_other(index_make, index_kind):
    first = index_make()
    second = first if index_kind == "local" else index_make()

    async def write(index: VectorIndex, version: int) -> None:
        for number in range(version, 120, 1 + version % 2):
            await index.add(row(number, text=f"version{version}"))
            if number % 7 == 0:
                await index.remove([key_of(number)])
                await index.add(row(number, text=f"version{version}"))

    await asyncio.gather(write(first, 0), write(second, 1), write(first, 2), write(second, 3))
    for one in first, second:
        assert {*keys(await search(one, line(1), limit=200))} == {key_of(number) for number in range(120)}


async def test_a_call_that_is_cancelled_at_any_point_leaves_the_index_usable(index_make):
    for steps in range(0, 40, 3):
        index = index_make()
        for call in (
            index.add(row(1, text="words")),
            search(index, line(1)),
            index.remove([key_of(2)]),
            index.sweep(NOW),
        ):
            task = asyncio.ensure_future(call)
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        await index.add(row(3, line(0, 1), text="words"))
        found = await search(index, line(0, 1), "words")
        assert found[0].key == key_of(3)
        assert {*keys(found)} <= {key_of(1), key_of(3)}
        await index.remove([key_of(1), key_of(3)])


async def test_closing_twice_is_harmless(index_make):
    index = index_make()
    await index.close()
    await index.add(row(1))
    await index.close()
    await index.close()


# What is there


async def test_what_is_kept_is_told_by_key(index):
    """As it was added: for an export, and for an embedder that comes later."""
    texts = {1: "a question", 2: "", 3: "caf\u00e9 \u5bc6\u7801 \U0001f642", 4: "lone \ud800"}
    for number, text in texts.items():
        await index.add(Row(key_of(number), P, line(3, 4), text, LATER + number))
    found = await index.known([key_of(number) for number in (*texts, 9)])
    assert {key: (row.key, row.partition, row.text) for key, row in found.items()} == {
        key_of(number): (key_of(number), P, text) for number, text in texts.items()
    }
    for number in texts:
        assert found[key_of(number)].vector == pytest.approx(line(0.6, 0.8), abs=1e-6)
        assert found[key_of(number)].expires_at == pytest.approx(LATER + number, abs=0.01)


async def test_what_is_not_there_is_not_told(index):
    assert await index.known([]) == {}
    assert await index.known([key_of(1)]) == {}
    await index.add(row(1))
    await index.add(row(1, line(0, 1), text="another"))
    (found,) = (await index.known([key_of(1)])).values()
    assert (found.text, found.vector[1]) == ("another", 1)
    await index.remove([key_of(1)])
    assert await index.known([key_of(1)]) == {}


async def test_very_many_are_told_at_once(index):
    for number in range(60):
        await index.add(row(number))
    wanted = [key_of(number) for number in range(1200)]
    assert list(await index.known(wanted)) == wanted[:60]
