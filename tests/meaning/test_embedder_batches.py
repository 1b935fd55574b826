"""When texts set off, and which go together: on a clock that moves when the test says so."""

import asyncio

import pytest

from cacheproxy.errors import Trouble
from cacheproxy.meaning import batches as rooms
from cacheproxy.meaning.batches import SHORTEST, Batches
from cacheproxy.meaning.tokens import Piece

WINDOW = 0.02


class Slow:
    """A worker whose work is done when the test says so."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = []
        self.pending: list = []

    def do(self, work):
        future = asyncio.get_running_loop().create_future()
        self.pending.append((work, future))
        return future

    async def end(self) -> None:
        """The oldest work is done."""
        work, future = self.pending.pop(0)
        future.set_result(work())
        await turns()


class Rig:
    """`came`: the names that were found, in order."""

    def __init__(self, most: int = 4, most_tokens: int = 100, window: float = WINDOW) -> None:
        self.worker = Slow()
        self.came: list[bytes] = []
        self.sets: list[list[str]] = []
        self.batches = Batches(
            self.worker, self.compute, lambda name, _: self.came.append(name), most=most, most_tokens=most_tokens,
            window=window,
        )  # fmt: skip
        self.asked: list[asyncio.Task] = []
        self.ahead = 0.0
        loop = asyncio.get_running_loop()
        begun = loop.time()
        loop.time = lambda: begun + self.ahead

    def compute(self, pieces):
        return [piece.text for piece in pieces]

    def ask(self, *texts: str, tokens: int = 1) -> list[asyncio.Task]:
        made = [
            asyncio.create_task(self.batches.ask(text.encode(), Piece(text, tuple(range(tokens))))) for text in texts
        ]
        self.asked += made
        return made

    @property
    def under_way(self) -> list[str]:
        """The texts of the batch that is computed now."""
        return [text.decode() for text in self.batches._under_way]

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.ahead += seconds
        # So that the loop looks at its timers once.
        asyncio.get_running_loop().call_soon(lambda: None)
        await turns()


async def turns() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def crowd(rig: Rig, took: float = 0.0) -> None:
    """A batch of two has just been computed."""
    rig.ask("c1", "c2")
    await turns()
    rig.ahead += took - 0.0001
    (leaving,) = rig.ask("c3")  # so that somebody has just been here
    await turns()
    leaving.cancel()
    rig.ahead += 0.0001
    await turns()
    await rig.worker.end()
    assert rig.batches._under_way == {}


async def test_a_text_that_comes_alone_never_waits():
    rig = Rig()
    rig.ask("alone")
    await turns()
    assert rig.under_way == ["alone"]


async def test_texts_one_after_the_other_never_wait():
    """A caller who asks again as soon as he has his answer."""
    rig = Rig()
    for text in "abcdef":
        rig.ask(text)
        await turns()
        assert rig.under_way == [text]
        rig.ahead += 0.004
        await rig.worker.end()


async def test_what_is_ready_at_the_same_moment_goes_together():
    rig = Rig()
    rig.ask("a", "b", "c")
    await turns()
    assert rig.under_way == ["a", "b", "c"]


async def test_what_comes_meanwhile_goes_with_the_next():
    rig = Rig()
    rig.ask("a")
    await turns()
    for text in "bcd":
        rig.ask(text)
        await rig.wait(0.01)
    assert rig.under_way == ["a"]
    await rig.worker.end()
    assert rig.under_way == ["b", "c", "d"]


@pytest.mark.parametrize(("took", "window"), [(0.0005, SHORTEST), (0.008, 0.008), (0.5, WINDOW)])
async def test_after_a_batch_of_several_the_next_waits_for_company(took, window):
    """As long as the last one took, within bounds."""
    rig = Rig()
    await crowd(rig, took)
    rig.ask("a")
    await turns()
    await rig.wait(0.9 * window)
    assert rig.under_way == []
    rig.ask("b")
    await turns()
    await rig.wait(0.11 * window)
    assert rig.under_way == ["a", "b"]


async def test_the_wait_counts_from_the_arrival():
    """Who has waited for a batch to end does not wait again."""
    rig = Rig()
    rig.ask("a", "b")
    await turns()
    rig.ask("c")
    await turns()
    await rig.wait(0.03)
    await rig.worker.end()
    assert rig.under_way == ["c"]


async def test_a_full_batch_does_not_wait():
    rig = Rig(most=4)
    await crowd(rig, 0.5)
    rig.ask("a", "b", "c")
    await turns()
    assert rig.under_way == []
    rig.ask("d", "e")
    await turns()
    assert rig.under_way == ["a", "b", "c", "d"]
    await rig.worker.end()
    await rig.wait(WINDOW)
    assert rig.under_way == ["e"]


async def test_a_batch_full_of_tokens_does_not_wait():
    rig = Rig(most_tokens=100)
    await crowd(rig, 0.5)
    rig.ask("a", tokens=60)
    await turns()
    assert rig.under_way == []
    rig.ask("b", tokens=40)
    await turns()
    assert rig.under_way == ["a", "b"]


async def test_a_batch_has_no_more_tokens_than_it_may():
    rig = Rig(most_tokens=100)
    rig.ask("a")
    await turns()
    rig.ask("b", "c", tokens=60)
    rig.ask("longest", tokens=500)
    rig.ask("d", tokens=40)
    await turns()
    seen = []
    for _ in range(5):
        seen.append(rig.under_way)
        await rig.worker.end() if rig.under_way else None
        await rig.wait(WINDOW)
    assert seen == [["a"], ["b"], ["c"], ["longest"], ["d"]]


async def test_nobody_waits_when_the_load_is_gone():
    rig = Rig()
    await crowd(rig, 0.5)
    await rig.wait(WINDOW * 1.01)
    rig.ask("alone")
    await turns()
    assert rig.under_way == ["alone"]


async def test_who_came_alone_beside_a_batch_does_not_wait_after_it():
    rig = Rig()
    rig.ask("c1", "c2")
    await turns()
    await rig.wait(0.5)
    rig.ask("alone")
    await turns()
    await rig.worker.end()
    assert rig.under_way == ["alone"]


async def test_nobody_waits_after_one_that_waited_in_vain():
    rig = Rig()
    await crowd(rig, 0.5)
    rig.ask("a")
    await turns()
    await rig.wait(WINDOW)
    await rig.worker.end()
    rig.ask("b")
    await turns()
    assert rig.under_way == ["b"]


async def test_without_a_window_nobody_waits():
    rig = Rig(window=0)
    await crowd(rig, 0.5)
    rig.ask("a")
    await turns()
    assert rig.under_way == ["a"]


async def test_all_who_waited_have_left():
    rig = Rig()
    await crowd(rig, 0.5)
    (leaving,) = rig.ask("a")
    await turns()
    leaving.cancel()
    await rig.wait(WINDOW)
    assert (rig.under_way, rig.worker.pending) == ([], [])
    rig.ask("b")
    await turns()
    await rig.wait(WINDOW)
    assert rig.under_way == ["b"]


async def test_who_joins_a_text_that_waits_keeps_it_there():
    rig = Rig()
    rig.ask("a")
    await turns()
    first, _ = rig.ask("b", "b")
    await turns()
    first.cancel()
    await turns()
    await rig.worker.end()
    assert rig.under_way == ["b"]


async def test_every_vector_is_found_and_given_to_all_who_asked():
    rig = Rig()
    one, two, three = rig.ask("a", "a", "b")
    await turns()
    two.cancel()
    await rig.worker.end()
    assert (await one, await three) == ("a", "b")
    assert rig.came == [b"a", b"b"]


async def test_a_caller_who_leaves_as_it_ends():
    rig = Rig()
    leaving, staying = rig.ask("a", "a")
    await turns()
    work, future = rig.worker.pending.pop()
    future.set_result(work())
    leaving.cancel()
    await turns()
    assert leaving.cancelled()
    assert await staying == "a"


async def test_trouble_is_one_each():
    rig = Rig()
    rig.batches._compute = lambda pieces: [Trouble("bad", "vector"), "b"]
    one, two, three = rig.ask("a", "a", "b")
    await turns()
    await rig.worker.end()
    assert await three == "b"
    assert one.exception() is not two.exception()
    assert {one.exception().kind, two.exception().kind} == {"vector"}
    assert rig.came == [b"b"]


async def test_the_shortest_wait_is_no_longer_than_the_longest():
    assert SHORTEST == rooms.SHORTEST < WINDOW
    rig = Rig(window=0.001)
    await crowd(rig, 0)
    rig.ask("a")
    await turns()
    await rig.wait(0.001)
    assert rig.under_way == ["a"]
