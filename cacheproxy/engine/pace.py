"""At which pace a stored stream is replayed: at once, as it came, or so many tokens a second."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from cacheproxy.core.events import split
from cacheproxy.core.model import Entry


@dataclass(frozen=True, slots=True)
class Pace:
    """`recorded`: as it came, `speed` times as fast; else `rate` tokens a second; neither: at once."""

    recorded: bool = False
    speed: float = 1.0
    rate: float = 0.0

    @property
    def instant(self) -> bool:
        return not self.recorded and self.rate <= 0

    def pauses(self, entry: Entry, count: int) -> list[float]:
        """The seconds to wait before each of `count` events of a replay of `entry`."""
        if self.recorded:
            return [pause / self.speed for pause in _as_it_came(entry, count)]
        tokens = entry.answer.tokens[1] or count
        return [tokens / self.rate / max(1, count)] * count


def _as_it_came(entry: Entry, count: int) -> list[float]:
    noted = entry.answer.pace
    pauses = [int.from_bytes(noted[at : at + 2], "big") / 1000 for at in range(0, len(noted), 2)][:count]
    if not pauses:
        return [entry.took / max(1, count)] * count  # it came in one piece, after so long
    pauses[0] += max(0.0, entry.took - sum(pauses))  # the wait for the head of the answer
    return pauses + [0.0] * (count - len(pauses))


async def paced(body: bytes, entry: Entry, pace: Pace) -> AsyncGenerator[bytes, None]:
    """The events of `body`, a replay of `entry`, each at its time."""
    events = split(body)
    loop = asyncio.get_running_loop()
    due = loop.time()
    for event, pause in zip(events, pace.pauses(entry, len(events)), strict=True):
        due += pause
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        yield event.raw
