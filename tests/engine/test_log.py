"""A running answer and its readers: each at its own pace, whatever the others do, within bounds."""

import asyncio
import gc
import weakref

import pytest

from cacheproxy.core.outcome import Reason
from cacheproxy.engine.log import AT_ONCE, READ_AHEAD, Ending, Head, Log, Reader
from cacheproxy.engine.record import Budget
from cacheproxy.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable

HEAD = Head(200, b"OK", ())
PIECES = [b"event %d;" % number for number in range(40)]
WHOLE = b"".join(PIECES)


def log(most: int = 2**20, *, limit: int = 2**30, whole: bool = True) -> Log:
    return Log(most, Budget(limit), whole=whole)


async def all_of(reader: Reader) -> bytes:
    found = b""
    while data := await reader.read():
        found += data
    return found


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def cancelled(task: asyncio.Task) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("joined", range(len(PIECES) + 2))
async def test_whenever_a_reader_comes_it_reads_all_of_it(joined):
    """Before the head, at any event, and after the end."""
    running = log()
    readers = [running.reader()]
    tasks = [asyncio.create_task(all_of(readers[0]))]
    for number, piece in enumerate([None, *PIECES]):
        if number == joined:
            tasks.append(asyncio.create_task(all_of(running.reader())))
        if piece is None:
            running.begin(HEAD)
        else:
            running.append(piece)
        if number % 3 == 0:
            await turns()
    running.end(Ending())
    if joined > len(PIECES):
        tasks.append(asyncio.create_task(all_of(running.reader())))
    assert await asyncio.gather(*tasks) == [WHOLE] * 2


async def test_readers_are_given_the_pieces_as_they_come():
    """B18: nothing is held back until more comes; what has piled up comes at once."""
    running = log()
    quick, slow = running.reader(), running.reader()
    running.begin(HEAD)
    for piece in PIECES[:20]:
        waiting = asyncio.create_task(quick.read())
        await turns()
        running.append(piece)
        assert await waiting == piece
    assert await slow.read() == b"".join(PIECES[:20])


async def test_one_piece_is_no_longer_than_may_go_at_once():
    running = log(2**24)
    reader = running.reader()
    for _ in range(10):
        running.append(bytes(AT_ONCE // 2))
    running.append(bytes(3 * AT_ONCE))
    running.end(Ending())
    sizes = []
    while data := await reader.read():
        sizes.append(len(data))
    assert sizes == [AT_ONCE] * 5 + [3 * AT_ONCE]


async def test_the_head_comes_once_for_each():
    running = log()
    early = asyncio.create_task(running.reader().head())
    await turns()
    assert not early.done()
    running.begin(HEAD)
    assert await early is HEAD
    assert await running.reader().head() is HEAD


async def test_no_head_is_the_producers_error_for_each_reader_its_own():
    """An exception that a thousand raise would hold the frames of all of them."""
    running = log()
    waiting = [asyncio.create_task(running.reader().head()) for _ in range(3)]
    await turns()
    running.end(Ending(Reason.INCOMPLETE, UpstreamTimeout("nothing came")))
    errors = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(error) for error in errors] == [UpstreamTimeout] * 3
    assert {str(error) for error in errors} == {"nothing came"}
    assert len({id(error) for error in errors}) == 3


async def test_an_end_without_head_or_error_is_an_error_too():
    running = log()
    running.end(Ending())
    with pytest.raises(UpstreamUnreachable):
        await running.reader().head()


async def test_a_cut_is_told_after_all_that_came_before_it():
    running = log()
    readers = [running.reader() for _ in range(3)]
    running.begin(HEAD)
    running.append(b"a")
    running.append(b"b")
    running.end(Ending(Reason.INCOMPLETE, UpstreamCut("it broke")))
    for reader in readers:
        assert not reader.ended
        assert await reader.read() == b"ab"
        assert not reader.ended
        for _ in range(2):
            with pytest.raises(UpstreamCut, match="it broke"):
                await reader.read()
        assert (await reader.end()).reason is Reason.INCOMPLETE


async def test_only_the_first_end_counts():
    running = log()
    first = Ending(Reason.STORE_TROUBLE)
    running.end(first)
    running.end(Ending(error=UpstreamCut("late")))
    assert await running.reader().end() is first
    assert await running.reader().read() == b""


# --- who leaves ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits_for", ["head", "read", "end", "settle"])
async def test_cancelled_at_any_wait_a_reader_touches_no_other(waits_for):
    """B57: each waits on a future of its own; the one that was cancelled can go on, too."""
    running = log()
    if waits_for != "head":
        running.begin(HEAD)

    def wait(reader: Reader):
        return reader.settle(60) if waits_for == "settle" else getattr(reader, waits_for)()

    readers = [running.reader() for _ in range(3)]
    tasks = [asyncio.create_task(wait(reader)) for reader in readers]
    await turns()
    await cancelled(tasks[1])
    await turns()
    assert [task.done() for task in tasks] == [False, True, False]
    running.begin(HEAD)
    running.append(b"x")
    running.end(Ending())
    await asyncio.gather(tasks[0], tasks[2])
    readers[1].close()
    readers[1].close()
    assert running.readers == 2
    assert await all_of(readers[1]) == b"x"


async def test_the_producer_cancelled_while_it_waits_for_room():
    running = log(2**24)
    slow = running.reader()
    running.append(bytes(READ_AHEAD + 1))
    held_back = asyncio.create_task(running.room())
    await turns()
    assert not held_back.done()
    await cancelled(held_back)
    running.end(Ending(Reason.CLIENT_GONE, UpstreamCut("given up")))
    assert len(await slow.read()) == READ_AHEAD + 1
    with pytest.raises(UpstreamCut):
        await slow.read()


async def test_a_thousand_readers_and_half_of_them_leave():
    running = log()
    readers = [running.reader() for _ in range(1000)]
    tasks = [asyncio.create_task(all_of(reader)) for reader in readers]
    running.begin(HEAD)
    for number, piece in enumerate(PIECES):
        running.append(piece)
        for left in range(number, 500, len(PIECES)):
            tasks[left].cancel()
            readers[left].close()
        await turns(2)
    running.end(Ending())
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert found[500:] == [WHOLE] * 500
    assert all(isinstance(one, asyncio.CancelledError) for one in found[:500])
    assert running.readers == 500


async def test_the_last_to_leave_is_told_once():
    running = log()
    left = []
    running.on_deserted = lambda: left.append(running.readers)
    one, two, aside = running.reader(), running.reader(), running.listener()
    one.close()
    one.close()
    aside.close()
    assert left == []
    two.close()
    assert left == [0]
    two.close()
    assert left == [0]


# --- backpressure ----------------------------------------------------------------------------------------------------


async def test_the_producer_goes_at_the_pace_of_the_fastest():
    running = log(2**26)
    fast, slow = running.reader(), running.reader()
    await asyncio.wait_for(running.room(), 5)
    running.append(bytes(READ_AHEAD))
    await asyncio.wait_for(running.room(), 5)  # not too far yet
    running.append(b"x")
    held_back = asyncio.create_task(running.room())
    await turns()
    assert not held_back.done()
    await fast.read()
    await asyncio.wait_for(held_back, 5)
    assert slow.offset == 0


@pytest.mark.parametrize("how", ["leaves", "ends"])
async def test_the_producer_is_not_held_back_for_nobody(how):
    running = log(2**26)
    only = running.reader()
    running.append(bytes(READ_AHEAD + 1))
    held_back = asyncio.create_task(running.room())
    await turns()
    if how == "leaves":
        only.close()
    else:
        running.end(Ending())
    await asyncio.wait_for(held_back, 5)
    await asyncio.wait_for(running.room(), 5)


async def test_who_only_listens_holds_nobody_back():
    running = log(2**26)
    aside = running.listener()
    running.append(bytes(READ_AHEAD + 1))
    await asyncio.wait_for(running.room(), 5)
    assert len(await aside.read()) == READ_AHEAD + 1


async def test_who_falls_too_far_behind_is_dropped_alone():
    """The others read all of it, and what is held stays within the bound."""
    most, piece = 10_000, bytes(999) + b"\n"
    running = log(most)
    fast, slow, stuck = running.reader(), running.reader(), running.reader()
    got: dict[Reader, bytes] = {fast: b"", slow: b""}
    written = 0
    for number in range(100):
        running.append(piece)
        written += len(piece)
        got[fast] += await fast.read()
        if number % 5 == 4:
            got[slow] += await slow.read()
        assert running.held <= most
        assert running.whole == (written <= most)
    running.end(Ending())
    for reader in (fast, slow):
        got[reader] += await all_of(reader)
        assert got[reader] == piece * 100
    with pytest.raises(UpstreamCut):
        await stuck.read()
    assert running.held <= most
    stuck.close()
    assert running.held == 0


async def test_a_piece_longer_than_the_log_may_be_is_delivered_to_who_is_there():
    running = log(1000)
    fast, stuck = running.reader(), running.reader()
    running.append(b"a")
    await fast.read()
    running.append(bytes(5000))
    assert await fast.read() == bytes(5000)
    with pytest.raises(UpstreamCut):
        await stuck.read()
    stuck.close()
    assert running.held == 0


async def test_the_fastest_is_never_dropped():
    """A log that may be short holds back its producer the more, and a caller who is alone reads all of it."""
    running = log(1000)
    only = running.reader()
    got = b""
    for piece in PIECES * 20:
        running.append(piece)
        if running.length - only.offset > 1000:
            waiting = asyncio.create_task(running.room())
            await turns()
            assert not waiting.done()
            got += await only.read()
            await asyncio.wait_for(waiting, 5)
        assert running.held <= 1000 + len(piece)
    running.end(Ending())
    assert got + await all_of(only) == WHOLE * 20


async def test_while_memory_is_scarce_who_is_slow_has_less_of_it():
    budget = Budget(3 * READ_AHEAD)
    running = Log(2 * READ_AHEAD, budget, whole=False)
    fast, slow = running.reader(), running.reader()
    running.append(bytes(READ_AHEAD))
    running.append(bytes(READ_AHEAD // 2))
    await fast.read()
    await fast.read()
    assert running.held > READ_AHEAD
    budget.held += 3 * READ_AHEAD
    running.append(b"x")
    assert running.held <= READ_AHEAD
    assert await fast.read() == b"x"
    with pytest.raises(UpstreamCut):
        await slow.read()


async def test_what_nobody_will_come_back_for_is_not_held():
    """An answer that is not shared is let go of as it is read."""
    running = log(whole=False)
    reader = running.reader()
    for piece in PIECES:
        running.append(piece)
        assert await reader.read() == piece
        assert running.held == 0
    running.append(b"more")
    reader.close()
    assert running.held == 0


async def test_all_logs_together_draw_on_one_budget():
    """One that has no room left takes nobody new; who reads it goes on."""
    budget = Budget(10_000)
    first, second = Log(2**20, budget, whole=True), Log(2**20, budget, whole=True)
    reader, other = first.reader(), second.reader()
    first.append(bytes(8_000))
    assert first.whole
    second.append(b"a" * 4_000)
    assert (first.whole, second.whole) == (True, False)
    assert await other.read() == b"a" * 4_000
    assert budget.held == first.held == 8_000
    first.end(Ending())
    assert len(await all_of(reader)) == 8_000
    reader.close()
    assert budget.held == 8_000  # for who comes late
    first.release()
    assert (budget.held, first.held, first.whole) == (0, 0, False)


async def test_released_under_a_reader_it_is_held_until_that_one_has_read_it():
    budget = Budget(2**20)
    running = Log(2**20, budget, whole=True)
    reader, gone = running.reader(), running.reader()
    for piece in PIECES:
        running.append(piece)
    running.end(Ending())
    gone.close()
    running.release()
    assert running.held == len(WHOLE)
    assert await all_of(reader) == WHOLE
    assert budget.held == 0


# --- waiting a while -------------------------------------------------------------------------------------------------


async def test_settle_says_whether_there_is_more():
    running = log()
    reader = running.reader()
    assert not await reader.settle(0.001)
    running.append(b"x")
    assert await reader.settle(60)
    await reader.read()
    waiting = asyncio.create_task(reader.settle(60))
    await turns()
    running.append(b"y")
    assert await waiting
    await reader.read()
    waiting = asyncio.create_task(reader.settle(60))
    await turns()
    running.end(Ending())
    assert await waiting
    assert reader.ended


async def test_names_that_tell_the_state():
    running = log()
    reader = running.reader()
    running.append(b"abc")
    assert repr(running) == "<Log running, 3 bytes, 3 held, 1 readers>"
    assert repr(reader) == "<Reader at 0 of 3 bytes>"
    running.end(Ending())
    assert repr(running).startswith("<Log ended")


async def test_no_reader_is_kept_alive_by_the_log():
    """Who came and went leaves nothing."""
    running = log()
    readers = [running.reader(), running.listener()]
    known = [weakref.ref(reader) for reader in readers]
    for reader in readers:
        reader.close()
    del reader, readers
    gc.collect()
    assert [one() for one in known] == [None, None]


async def test_who_waits_for_the_end_holds_nobody_back():
    """He reads nothing before it, and must not be what the producer waits for."""
    running = log(32 * 2**20)
    reader = running.reader()
    waiting = asyncio.create_task(reader.outlast())
    await turns()
    for _ in range(8):
        running.append(bytes(2**20))
        async with asyncio.timeout(5):
            await running.room()
    running.end(Ending())
    ending = await waiting
    assert ending is not None and ending.error is None
    assert len(await all_of(reader)) == 8 * 2**20


async def test_who_waits_for_the_end_of_what_is_too_long_is_told_so():
    """Nothing is held for him any more, and the reader who reads sets the pace again."""
    running = log(4 * 2**20)
    waits, reads = running.reader(), running.reader()
    waiting = asyncio.create_task(waits.outlast())
    await turns()
    for _ in range(5):
        running.append(bytes(2**20))
    assert await waiting is None
    waits.close()
    held_back = asyncio.create_task(running.room())
    await turns()
    assert not held_back.done()
    while running.behind(reads):
        await reads.read()
    await held_back
    assert running.held == 0


async def test_no_head_is_an_error_that_callers_can_be_told():
    """Also where what ended it is what breaks off an answer that has begun."""
    running = log()
    reader = running.reader()
    running.end(Ending(Reason.INCOMPLETE, UpstreamCut("cut")))
    with pytest.raises(UpstreamUnreachable):
        await reader.head()
