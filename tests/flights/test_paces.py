"""A slow reader slows nobody, and one that takes nothing is cut off alone.

A fifth of the full size (``python -m tests.bench.paces``): the stream, what a flight, an answer and all recordings may
hold, and how long a reader may take nothing, all by the same measure. How slow a slow reader is, is measured by the
others' progress, so that nothing hangs on how fast the machine is.
"""

import asyncio
from dataclasses import dataclass, field

from tests import rig
from tests.flights.paces import Long, Pace

SIZE = 4 * 2**20
FIFTH = {
    "flight__bytes": SIZE * 32 // 20, "limits__answer_bytes": SIZE * 16 // 20,
    "limits__recording_bytes": SIZE * 128 // 20, "limits__write_timeout": "1s",
}  # fmt: skip
BEHIND = 5
"""How many times faster the others are."""


@dataclass(eq=False)
class Behind(Pace):
    """Reads a fifth of what all of `others` have read, and the rest when they are done."""

    others: list[Pace] = field(default_factory=list)

    async def rest(self, began: float) -> None:
        while any(not other.ended and other.size < BEHIND * self.size for other in self.others):
            await asyncio.sleep(0.002)


async def test_five_of_fifty_are_slow_and_one_takes_nothing(field_of, backend):
    """B57: 44 are given everything before any slow one has a half, the slow ones are given everything, the one that
    takes nothing is cut off, and the answer is held once, however many read it."""
    backend.script = script = Long(SIZE, each=16_384)
    script.go.clear()
    field = await field_of(**FIFTH)
    fast, stuck = [Pace() for _ in range(44)], Pace(rate=0)
    slow: list[Pace] = [Behind(others=fast) for _ in range(5)]
    most, sizes = 0, [0] * 5
    paces = [*fast, *slow, stuck]
    reading = [asyncio.create_task(pace.read(field.proxy.base)) for pace in paces]
    await field.waiting(50)
    script.go.set()

    def over(some: list[Pace]) -> bool:
        nonlocal most
        most = max(most, field.proxy.house.engine.budget.held)
        return all(pace.ended for pace in some)

    await rig.until(lambda: over(fast), 60, "the end for those who are fast")
    sizes = [pace.size for pace in slow]
    assert not stuck.ended
    await rig.until(lambda: over(paces), 60, "the end for all")
    await asyncio.gather(*reading)
    assert max(sizes) < script.size / 2
    assert all(pace.whole and pace.digest == script.digest for pace in (*fast, *slow))
    assert (stuck.broken, stuck.whole) == (True, False)
    assert script.calls == 1
    assert script.size <= most <= script.size + SIZE * 16 // 20 + 2**16
    await field.empty()
