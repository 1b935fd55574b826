"""The vector index over a restart: what it knew it finds again, and what was removed it does not."""

import asyncio
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from cacheproxy.core.model import Identity
from cacheproxy.meaning.kept import KeptIndex, name_of
from cacheproxy.stores import sqlite_vectors
from cacheproxy.stores.sqlite_vectors import VectorFile
from tests.contract.index_fixtures import NOW, P, line, row
from tests.rig import until
from tests.stores.entries import Lock, key_of

IDENTITY = Identity("embedder", "1", 4)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "meaning.sqlite3"


@pytest.fixture
async def begin(path):
    """Starts an index on the file, as a process does; the one before is closed first."""
    made: list[KeptIndex] = []

    async def start(identity: Identity = IDENTITY, most: int = 10_000, *, wait: bool = True) -> KeptIndex:
        for one in made:
            await one.close()
        made[:] = [KeptIndex(identity.dim, most, VectorFile(path, name_of(identity), most))]
        made[0].start()
        if wait:
            await until(lambda: made[0].whole)
        return made[0]

    yield start
    for one in made:
        await one.close()


async def found(index, number: int = 0, **where) -> set[bytes]:
    near = await index.search(where.get("partition", P), row(number).vector, "", 100, where.get("now", NOW))
    return {one.key for one in near}


async def test_what_was_known_is_found_again_as_it_was(begin):
    index = await begin()
    rows = [row(n) for n in range(5)] + [row(9, partition=bytes(32), text="\ud800 中文 x")]
    for one in rows:
        await index.add(one)
    before = await index.search(P, row(0).vector, "question number 3", 10, NOW)
    index = await begin()
    after = await index.search(P, row(0).vector, "question number 3", 10, NOW)
    assert [(n.key, n.by_meaning, n.by_words, n.text) for n in after] == [
        (n.key, n.by_meaning, n.by_words, n.text) for n in before
    ]
    assert np.allclose([n.similarity for n in after], [n.similarity for n in before], atol=1e-4)
    assert await found(index, partition=bytes(32)) == {key_of(9)}
    assert index.loaded == 6
    assert "6 rows <VectorFile meaning.sqlite3 6/10000 rows>" in repr(index)


async def test_what_was_removed_before_it_returned_does_not_come_back(begin, path):
    index = await begin()
    for n in range(4):
        await index.add(row(n))
    assert await index.remove([key_of(1), key_of(3), key_of(77)]) == 2
    with sqlite3.connect(path) as file:
        assert {key for (key,) in file.execute("SELECT key FROM question")} <= {key_of(0), key_of(2)}
    file.close()
    assert await found(await begin()) == {key_of(0), key_of(2)}


async def test_the_last_row_of_a_key_counts(begin):
    index = await begin()
    await index.add(row(1, text="old"))
    await index.add(row(2))
    await index.add(row(1, line(1), text="new", partition=bytes(32)))
    index = await begin()
    assert await found(index) == {key_of(2)}
    (near,) = await index.search(bytes(32), line(1), "", 5, NOW)
    assert (near.text, near.similarity) == ("new", pytest.approx(1))
    await index.remove([key_of(2)])
    await index.add(row(2, text="again"))
    assert await found(await begin()) == {key_of(2)}


async def test_what_expired_is_freed_in_the_file_too(begin):
    index = await begin()
    await index.add(row(1, expires_at=NOW - 1))
    await index.add(row(2))
    await index.sweep(NOW)
    index = await begin()
    assert (index.loaded, await found(index, now=0)) == (1, {key_of(2)})


async def test_the_same_bound_holds_and_the_oldest_go_first(begin):
    index = await begin(most=10)
    for n in range(12):
        await index.add(row(n))
    await until(lambda: index._file.count == 10)
    for n in range(12, 25):
        await index.add(row(n))
    await index.remove([])
    await until(lambda: not index._file._pending and not index._file._writing)
    assert index._file.count == 10
    index = await begin(most=10)
    assert (index.loaded, await found(index)) == (10, {key_of(n) for n in range(15, 25)})
    assert index._file.count == 10
    index = await begin(most=3)
    assert await found(index) == {key_of(n) for n in range(22, 25)}


@pytest.mark.parametrize(
    "other",
    [{"name": "x"}, {"revision": "2"}, {"pooling": "cls"}, {"prefix": "q: "}, {"precision": "int8"}, {"dim": 5}],
)
async def test_rows_of_another_embedder_are_dropped(begin, other):
    await (await begin()).add(row(1))
    other = replace(IDENTITY, **other)
    index = await begin(other)
    assert (index.loaded, len(index)) == (0, 0)
    await index.add(row(2, dim=other.dim))
    assert (await begin(other)).loaded == 1
    assert (await begin()).loaded == 0


async def test_a_file_of_another_format_is_set_aside(begin, path):
    await (await begin()).add(row(1))
    await begin()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version=99")
    file.close()
    assert (await begin()).loaded == 0
    assert len(list(path.parent.glob("*.set-aside-*[0-9]"))) == 1


async def test_what_is_removed_while_it_is_loading_is_not_loaded(begin, monkeypatch):
    index = await begin()
    for n in range(40):
        await index.add(row(n))
    monkeypatch.setattr(sqlite_vectors, "AT_ONCE", 10)
    index = await begin(wait=False)
    await index.remove([key_of(n) for n in range(20)])
    await index.add(row(5, text="asked again"))
    await until(lambda: index.whole)
    assert await found(index) == {key_of(n) for n in [5, *range(20, 40)]}
    near = await index.search(P, row(5).vector, "", 1, NOW)
    assert near[0].text == "asked again"


class Halting:
    """A file that gives one row and then waits."""

    def __init__(self, *rows) -> None:
        self.given, self.go, self.put_rows, self.removed = rows, asyncio.Event(), [], []
        self.left, self.read = False, 0

    def put(self, row) -> None:
        self.put_rows.append(row)

    async def remove(self, keys) -> None:
        self.removed += keys

    async def rows(self):
        try:
            for one in self.given:
                self.read += 1
                yield [one]
                await self.go.wait()
        finally:
            self.left = True

    def sweep(self, now) -> None:
        pass

    async def close(self) -> None:
        pass


def plain(number: int, vector=None):
    one = row(number, vector)
    return one.key, one.partition, one.vector.astype(np.float16).tobytes(), one.text, one.expires_at


async def test_searched_while_it_is_loading_and_a_removal_outruns_what_was_read(begin):
    """The row has been read from the file, and is about to be filled in."""
    file = Halting(plain(1), plain(2), plain(3))
    index = KeptIndex(4, 100, file)
    index.start()
    await until(lambda: index.loaded == 1)
    assert await found(index) == {key_of(1)}
    assert "1 loaded so far" in repr(index)
    await index.remove([key_of(2)])
    file.go.set()
    await until(lambda: index.whole)
    assert await found(index) == {key_of(1), key_of(3)}
    await index.close()


async def test_ended_while_it_is_loading(begin):
    file = Halting(plain(1), plain(2))
    index = KeptIndex(4, 100, file)
    index.start()
    await until(lambda: index.loaded == 1)
    await index.close()
    assert file.left


async def test_nothing_more_is_read_once_it_is_full():
    file = Halting(*(plain(n) for n in range(10)))
    file.go.set()
    index = KeptIndex(4, 2, file)
    index.start()
    await until(lambda: index.whole)
    assert (len(index), file.read, file.left) == (2, 2, True)
    await index.close()


async def test_rows_that_make_no_sense_are_left_out(caplog):
    short = (*plain(1)[:2], b"abc", *plain(1)[3:])
    nothing = (*plain(2)[:2], bytes(8), *plain(2)[3:])
    file = Halting(short, nothing, plain(3))
    file.go.set()
    index = KeptIndex(4, 100, file)
    index.start()
    await until(lambda: index.whole)
    assert await found(index) == {key_of(3)}
    await index.close()


async def test_a_damaged_file_costs_what_was_in_it(begin, path, caplog):
    index = await begin()
    for n in range(3000):
        await index.add(row(n))
    index = await begin()
    content = bytearray(path.read_bytes())
    await index.close()
    content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    index = await begin()
    await until(lambda: list(path.parent.glob("*.set-aside-*[0-9]")))
    await index.add(row(5000))
    index = await begin()
    assert key_of(5000) in await found(index, 5000)
    assert len(list(path.parent.glob("*.set-aside-*[0-9]"))) == 1
    assert sum("set aside" in line.message for line in caplog.records) == 1


async def test_damage_that_only_reading_meets(begin, path, monkeypatch):
    """What was read before it is used, and the file begun anew."""
    await (await begin()).add(row(1))
    await begin()
    damage = sqlite3.DatabaseError("damaged")
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    page, pages = sqlite_vectors._Reader.page, []

    def fail(reader, before):
        pages.append(before)
        if len(pages) == 2:
            raise damage
        return page(reader, before)

    monkeypatch.setattr(sqlite_vectors._Reader, "page", fail)
    index = await begin()
    assert await found(index) == {key_of(1)}
    await until(lambda: list(path.parent.glob("*.set-aside-*[0-9]")))
    await index.add(row(2))
    await index.remove([])
    assert (await begin()).loaded == 1


async def test_for_its_owner_alone_and_never_a_wait_for_the_disk(begin, path):
    index = await begin()
    with Lock(path):
        for n in range(10):
            await index.add(row(n))
        assert len(await found(index)) == 10
        removing = asyncio.create_task(index.remove([key_of(3)]))
        await until(lambda: len(index) == 9)
        assert not removing.done()
    await removing
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await begin()).loaded == 9


async def test_too_much_is_dropped_and_counted(path, monkeypatch):
    monkeypatch.setattr(sqlite_vectors, "MOST_PENDING", 5)
    file = VectorFile(path, "x", 100)
    index = KeptIndex(4, 100, file)
    await until(file._opened.done)
    with Lock(path):
        await index.add(row(0))
        await until(lambda: file._writing)
        for n in range(1, 10):
            await index.add(row(n))
        assert (len(index), file.dropped) == (10, 4)
    await index.close()


async def test_a_place_that_cannot_be_written_costs_nothing_else(begin, path, caplog):
    path.mkdir(parents=True)
    index = await begin()
    await index.add(row(1))
    await index.remove([key_of(2)])
    assert await found(index) == {key_of(1)}
    await until(lambda: index._file.dropped == 1)
    assert sum("not written until" in line.message for line in caplog.records) == 1
    path.rmdir()
    await index.add(row(3))
    assert await found(await begin()) == {key_of(3)}
