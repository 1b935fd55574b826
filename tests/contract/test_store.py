"""What every `Store` must do (ports.py), run on each of them."""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from cacheproxy.core.key import entry_id
from cacheproxy.core.model import Census
from cacheproxy.core.removal import Removal, Selector
from cacheproxy.engine.guard import GuardedStore
from cacheproxy.ports import BadCursor, Store
from cacheproxy.stores import redis
from cacheproxy.stores.sqlite import Sqlite
from cacheproxy.stores.tiered import Tiered
from tests.contract.shared import Shared
from tests.rig import until
from tests.stores.entries import entry, felled, key_of, size


def layers(store: Store) -> list[Store]:
    """The stores inside that hold entries."""
    if isinstance(store, Tiered):
        return [store._front, store._back]
    return [store._store] if isinstance(store, GuardedStore) else [store]


async def holds(store: Store, entries: int, total: int | None = None) -> None:
    """Wait until every layer holds just so many: the writing and freeing of the file go on in the background. A shared
    store counts when it is swept, and as packed."""
    if isinstance(store, Shared):
        await store.sweep(0.0)
        census = store.census()
        assert census.entries == entries
        assert (census.bytes > 0) == (entries > 0)
        return

    def met() -> bool:
        return all(c.entries == entries and total in (None, c.bytes) for c in (m.census() for m in layers(store)))

    await until(met, what=f"a census of {entries} entries and {total} bytes")


async def drained(store: Store) -> None:
    """Wait until what was put is written, and what had to go for it is gone."""

    def met() -> bool:
        return not any(layer._pending or layer._writing for layer in layers(store) if isinstance(layer, Sqlite))

    await until(met, what="the writer")


async def found(store: Store, keys: Iterable[bytes]) -> Census:
    """What the store gives back when it is asked for every one of `keys`."""
    there = [got for key in keys if (got := await store.get(key)) is not None]
    return Census(len(there), sum(got.size for got in there))


async def counts_agree(store: Store, keys: list[bytes]) -> Census:
    """Wait until the census is what can be got; what is written in the background may take a moment."""
    if isinstance(store, Shared):
        await store.sweep(0.0)
        reality = await found(store, keys)
        assert store.census().entries == reality.entries
        return reality
    census, reality = store.census(), await found(store, keys)
    deadline = asyncio.get_running_loop().time() + 10
    while census != reality and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
        census, reality = store.census(), await found(store, keys)
    assert census == reality
    return census


async def test_what_was_put_is_got_back_in_every_field(store):
    """When `put` returns, `get` sees the entry: at once, and after it has been written out."""
    wanted = entry(1)
    await store.put(wanted)
    assert await store.get(wanted.key) == wanted
    await holds(store, 1, wanted.size)
    assert await store.get(wanted.key) == wanted


async def test_what_was_not_put_is_not_there(store):
    await store.put(entry(1))
    assert await store.get(key_of(2)) is None


async def test_a_newer_entry_takes_the_place_of_the_older(store):
    await store.put(entry(1, 900))
    await holds(store, 1, size(900))
    newer = entry(1, 300, version=1)
    await store.put(newer)
    assert await store.get(newer.key) == newer
    await holds(store, 1, size(300))
    assert await store.get(newer.key) == newer


async def test_keys_that_share_all_but_one_bit_are_apart(store):
    """B30: an entry is found by its whole key, never by a part of it."""
    first = bytes(32)
    others = [bytes([0x80]) + bytes(31), bytes(31) + bytes([1]), bytes(15) + bytes([1]) + bytes(16)]
    for number, key in enumerate([first, *others]):
        assert await store.get(key) is None
        await store.put(entry(key, 100 + number))
    for number, key in enumerate([first, *others]):
        got = await store.get(key)
        assert got == entry(key, 100 + number)


async def test_an_entry_may_be_empty_or_large_and_of_any_bytes(store):
    for number, length in enumerate([0, 1, 4095, 4096, 4097, 65_536, 2_000_000]):
        wanted = entry(number, length)
        await store.put(wanted)
        assert await store.get(wanted.key) == wanted
    assert (await counts_agree(store, [key_of(n) for n in range(7)])).entries == 7
    assert await store.get(key_of(6)) == entry(6, 2_000_000)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_counts_agree_with_reality_after_any_run_of_operations(store, seed):
    """B78: counters agree with what can be got, after puts, replacements, gets and sweeps in any order."""
    dice = random.Random(seed)
    model: dict[int, float] = {}
    for step in range(600):
        number, act = dice.randrange(60), dice.random()
        if act < 0.7:
            expires_at = float(dice.randrange(100))
            await store.put(entry(number, dice.randrange(3000), version=step, expires_at=expires_at))
            model[number] = expires_at
        elif act < 0.95:
            got = await store.get(key_of(number))
            assert got is None or got.key == key_of(number)
        else:
            await store.sweep(float(dice.randrange(50)))
        if dice.random() < 0.02:
            await drained(store)
    await store.sweep(49.0)
    lasting = {number for number, expires_at in model.items() if expires_at > 49.0}
    assert 5 < len(lasting) < len(model)
    await holds(store, len(lasting))
    census = await counts_agree(store, [key_of(n) for n in range(60)])
    assert census.entries == len(lasting)
    for number in lasting:
        assert await store.get(key_of(number)) is not None


async def test_a_full_store_lets_live_entries_go(bounded):
    """B78, scaled down: twenty times the capacity of answers that are all fresh, then one larger than everything."""
    store = bounded(1_000_000)
    numbers = range(10_000)
    for number in numbers:
        await store.put(entry(number, 976))
        if number % 100 == 0:
            await asyncio.sleep(0)
    newest = key_of(numbers[-1])
    assert await store.get(newest) is not None
    await drained(store)
    assert 800_000 <= store.census().bytes <= 1_000_000, "the bound, and no more goes than has to"
    await store.put(entry(-1, 1_200_000))
    await drained(store)
    assert await store.get(key_of(-1)) is None, "larger than the whole store"
    assert await store.get(newest) is not None, "an oversize entry does not cost the others"
    if not isinstance(store, Tiered):  # there the front may hold what the file has let go
        assert (await counts_agree(store, [key_of(n) for n in numbers])).bytes <= 1_000_000
    assert 800_000 <= store.census().bytes <= 1_000_000
    assert await store.get(key_of(0)) is None, "the oldest went first"


async def test_a_small_store_keeps_what_was_put_last(bounded):
    """B78: only as much goes as has to, also where a few entries fill the store."""
    store = bounded(10 * size(976))
    for number in range(40):
        await store.put(entry(number, 976))
    await drained(store)
    assert 5 <= store.census().entries <= 10
    assert await store.get(key_of(39)) is not None


async def test_a_replacement_in_a_full_store_costs_no_other_entry(bounded):
    store = bounded(10 * size(976))
    for number in range(10):
        await store.put(entry(number, 976))
    await drained(store)
    await store.put(entry(9, 976, version=1))
    await drained(store)
    assert [n for n in range(10) if await store.get(key_of(n)) is not None] == list(range(10))
    assert await store.get(key_of(9)) == entry(9, 976, version=1)


async def test_an_oversize_entry_leaves_no_older_one_of_its_key(make):
    """A newer answer that is too large to keep must not let the one it replaces be served on."""
    store = make(100_000)
    await store.put(entry(1, 500))
    await holds(store, 1)
    # What is shared has a bound of its own for a single entry, as it is packed, however much room there is.
    length = redis.LARGEST if isinstance(store, Shared) else 200_000
    newer = entry(1, version=1)
    await store.put(replace(newer, answer=replace(newer.answer, body=random.Random(1).randbytes(length))))
    got = await store.get(key_of(1))
    assert got is None, f"version of {got.stored_at} after a newer one was put"
    await holds(store, 0, 0)


async def test_sweeping_frees_what_expired_and_nothing_else(store):
    for number in range(30):
        await store.put(entry(number, 100, expires_at=100.0 + number))
    await holds(store, 30)
    await store.sweep(109.0)
    await holds(store, 20, 20 * size(100))
    assert [n for n in range(30) if await store.get(key_of(n)) is not None] == list(range(10, 30))
    await store.sweep(109.0)
    await holds(store, 20, 20 * size(100))


async def test_an_entry_made_anew_is_judged_by_its_new_lifetime(store):
    await store.put(entry(1, expires_at=10.0))
    await store.put(entry(1, version=1, expires_at=1000.0))
    await store.put(entry(2, expires_at=1000.0))
    await store.put(entry(2, version=1, expires_at=10.0))
    await holds(store, 2)
    await store.sweep(500.0)
    await holds(store, 1)
    assert await store.get(key_of(1)) == entry(1, version=1, expires_at=1000.0)
    assert await store.get(key_of(2)) is None


async def test_the_sum_of_all_sweeps_is_what_went(store):
    """The number that `sweep` gives may come a call later where a thread does the work; none is lost or told twice."""
    for number in range(25):
        await store.put(entry(number, 100, expires_at=50.0))
    await holds(store, 25)
    told = await store.sweep(60.0)
    await holds(store, 0)
    if isinstance(store, Shared):
        assert told == 0, "the server frees by itself"
        return
    wanted = 25 * len(layers(store))
    for _ in range(1000):
        told += await store.sweep(60.0)
        await asyncio.sleep(0.001 if told < wanted else 0)
    assert told == wanted


async def test_closing_twice_and_asking_after_is_harmless(store):
    await store.put(entry(1))
    await store.close()
    await store.close()
    await store.put(entry(2))
    assert await store.get(key_of(3)) is None
    assert await store.sweep(2e9) >= 0
    assert not any(layer._writer.is_alive() for layer in layers(store) if isinstance(layer, Sqlite))


async def test_gets_and_puts_at_once_never_see_an_older_entry(store):
    """While each key is written again and again, no reader gets what had been replaced before it asked."""
    written = dict.fromkeys(range(8), -1)
    seen: list[int] = []

    async def write(number: int) -> None:
        for version in range(60):
            await store.put(entry(number, 50 * number + version, version=version))
            written[number] = version
            await (drained(store) if version % 10 == 0 else asyncio.sleep(0))

    async def read(number: int) -> None:
        while written[number] < 59:
            floor = written[number]
            got = await store.get(key_of(number))
            if got is None:
                assert floor == -1
            else:
                version = int(got.stored_at - 1000)
                assert version >= floor
                assert got == entry(number, 50 * number + version, version=version)
                seen.append(version)
            await asyncio.sleep(0)

    await asyncio.gather(*(write(n) for n in written), *(read(n) for n in written for _ in range(3)))
    assert len(set(seen)) > 1
    for number in written:
        assert await store.get(key_of(number)) == entry(number, 50 * number + 59, version=59)


async def test_a_get_cancelled_at_any_point_leaves_the_store_usable(store):
    wanted = entry(1, 20_000)
    await store.put(wanted)
    await holds(store, 1)
    cancelled = 0
    for steps in range(25):
        asked = asyncio.create_task(store.get(wanted.key))
        for _ in range(steps % 5):
            await asyncio.sleep(0)
        asked.cancel()
        result = (await asyncio.gather(asked, return_exceptions=True))[0]
        cancelled += isinstance(result, asyncio.CancelledError)
        assert isinstance(result, asyncio.CancelledError) or result == wanted
    assert cancelled
    assert await store.get(wanted.key) == wanted
    await store.put(entry(2))
    assert await store.get(key_of(2)) == entry(2)


def test_each_store_tells_what_it_is(store):
    """The representation names the store and what it holds."""
    assert "0 entries" in repr(store)
    assert type(store).__name__ in repr(store)


# --- removal ---------------------------------------------------------------------------------------------------------

LABELS = {1: ("red",), 2: ("red", "blue"), 3: ("blue",), 4: ()}


async def labelled(store) -> None:
    for number, tags in LABELS.items():
        await store.put(replace(entry(number, 3000), tags=tags, knowledge=("handbook@1",)))


async def there(store) -> set[int]:
    return {number for number in LABELS if await store.get(key_of(number)) is not None}


async def test_removed_is_what_was_meant_and_nothing_else(store):
    await labelled(store)
    red = Selector(tags=frozenset({"red"}))
    assert await store.remove(felled(red)) == {key_of(1), key_of(2)}
    assert await there(store) == {3, 4}
    assert await store.remove(felled(red)) == set()
    await holds(store, 2, 2 * size(3000))


async def test_counted_is_not_removed(store):
    await labelled(store)
    red = Selector(tags=frozenset({"red"}))
    assert await store.count(red, 2000.0) == (None if isinstance(store, Shared) else 2)
    assert await there(store) == {1, 2, 3, 4}
    assert (await store.get(key_of(1))).fresh_until > 2000.0


async def test_softly_removed_is_stale_from_now(store):
    """Stale, not gone: it can still stand in when the backend fails, and its absolute expiry stays what it was."""
    await labelled(store)
    assert await store.remove(felled(Selector(kb=frozenset({"handbook"})), Removal.SOFT)) == set(map(key_of, LABELS))
    for number, tags in LABELS.items():
        whole = replace(entry(number, 3000), tags=tags, knowledge=("handbook@1",))
        assert await store.get(key_of(number)) == replace(whole, fresh_until=2000.0)
    # What was past its lifetime already is not made younger by that.
    await store.remove(felled(Selector(everything=True), Removal.SOFT, 3000.0))
    assert (await store.get(key_of(1))).fresh_until == 2000.0
    await holds(store, 4, 4 * size(3000))


async def test_everything_may_be_removed_and_put_again(store):
    await labelled(store)
    assert len(await store.remove(felled(Selector(everything=True)))) == 4
    assert await there(store) == set()
    await holds(store, 0, 0)
    await store.put(entry(1))
    assert await store.get(key_of(1)) == entry(1)


@pytest.mark.parametrize("removal", [Removal.HARD, Removal.SOFT])
async def test_more_than_is_looked_at_at_once_may_be_removed(store, removal):
    """Some written in the middle of it: what is meant and was there before is gone, or stale, at its end."""
    for number in range(2500):
        await store.put(replace(entry(number, 10), tags=("odd",) if number % 2 else ()))
    removing = asyncio.create_task(store.remove(felled(Selector(tags=frozenset({"odd"})), removal)))
    await asyncio.sleep(0)
    await store.put(entry(5000, 10))
    async with asyncio.timeout(60):
        assert await removing == {key_of(number) for number in range(1, 2500, 2)}
    found = [await store.get(key_of(number)) for number in range(2500)]
    fresh = [number for number, one in enumerate(found) if one is not None and one.fresh_until > 2000.0]
    assert fresh == list(range(0, 2500, 2))
    assert sum(one is not None for one in found) == (1250 if removal is Removal.HARD else 2500)
    assert await store.get(key_of(5000)) == entry(5000, 10)


async def test_an_answer_with_many_long_labels_is_found_by_each(store):
    tags = tuple(f"{number:03d}{'x' * 90}" for number in range(64))
    await store.put(replace(entry(1), tags=tags))
    await store.put(entry(2))
    for tag in (tags[0], tags[-1]):
        assert await store.count(Selector(tags=frozenset({tag})), 2000.0) == (None if isinstance(store, Shared) else 1)
    assert await store.remove(felled(Selector(tags=frozenset({tags[-1]})))) == {key_of(1)}
    assert await store.get(key_of(1)) is None


EVERYTHING = Selector(everything=True)


class Listing:
    """All pages of a list, from its beginning to its end."""

    def __init__(self, store: Store, selector: Selector = EVERYTHING, most: int = 7) -> None:
        self._store, self._selector, self._most = store, selector, most

    async def read(self, *, whole: bool = False) -> list:
        rows, cursor = [], ""
        for _ in range(1000):
            page = await self._store.browse(self._selector, 2000.0, cursor, self._most, whole=whole)
            rows += page.rows
            cursor = page.cursor
            if not cursor:
                return rows
        raise AssertionError("a list without end")


async def test_a_list_has_everything_that_is_there_page_by_page(store):
    """At once, and after it has been written out; whole entries where they are asked for."""
    wanted = [entry(number, 300 + number) for number in range(40)]
    for one in wanted:
        await store.put(one)
    for _ in range(2):
        rows = await Listing(store).read(whole=True)
        assert sorted((row.entry for row in rows), key=lambda e: e.key) == sorted(wanted, key=lambda e: e.key)
        assert all(row.bytes > 0 for row in rows)
        assert {row.entry.key for row in await Listing(store, most=1000).read()} == {e.key for e in wanted}
        await drained(store)


async def test_a_list_of_those_that_are_meant(store):
    for number in range(40):
        await store.put(replace(entry(number), tags=("odd",) if number % 2 else (), model=f"m{number % 4}"))
    odd = await Listing(store, Selector(tags=frozenset({"odd"}))).read()
    assert {row.entry.key for row in odd} == {key_of(number) for number in range(1, 40, 2)}
    both = await Listing(store, Selector(tags=frozenset({"odd"}), model="m3")).read()
    assert {row.entry.key for row in both} == {key_of(number) for number in range(3, 40, 4)}
    ids = Selector(entry_ids=frozenset({entry_id(key_of(5)), entry_id(key_of(6)), "0" * 32, "no id"}))
    assert {row.entry.key for row in await Listing(store, ids).read(whole=True)} == {key_of(5), key_of(6)}


async def test_an_empty_store_has_an_empty_list(store):
    assert await Listing(store).read() == []


async def test_a_list_shows_nothing_that_was_removed_and_what_is_there_now(store):
    for number in range(20):
        await store.put(entry(number))
    await drained(store)
    await store.put(entry(3, version=1))
    await store.remove(felled(Selector(entry_ids=frozenset({entry_id(key_of(4))}))))
    rows = {row.entry.key: row.entry for row in await Listing(store).read(whole=True)}
    assert rows.keys() == {key_of(number) for number in range(20)} - {key_of(4)}
    assert rows[key_of(3)] == entry(3, version=1)


async def test_what_stays_is_listed_though_others_come_and_go_between_pages(store):
    staying = [entry(number) for number in range(60)]
    for one in staying:
        await store.put(one)
    seen, cursor, number = set(), "", 100
    for _ in range(1000):
        page = await store.browse(EVERYTHING, 2000.0, cursor, 5)
        seen |= {row.entry.key for row in page.rows}
        cursor, number = page.cursor, number + 3
        if not cursor:
            break
        for more in range(number, number + 3):
            await store.put(entry(more))
        gone = Selector(entry_ids=frozenset({entry_id(key_of(number))}))
        await store.remove(felled(gone))
    assert not cursor
    assert {one.key for one in staying} <= seen


@pytest.mark.parametrize("cursor", ["x", "zz" * 32, "AB" * 32, "-1", "/", "/-1", "/99999999999999999999999", "\u0661"])
async def test_what_is_no_cursor_is_refused(store, cursor):
    with pytest.raises(BadCursor):
        await store.browse(EVERYTHING, 2000.0, cursor, 5)
