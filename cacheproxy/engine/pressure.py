"""Watches whether the urgent get through, and says how much is let in meanwhile (core/overload.py decides).

Looked at with every request that comes to the gate, and four times a second while anything waits or is kept out. A
change is told once, in the log.
"""

import asyncio
import logging
import math
from collections.abc import Callable

from cacheproxy.core.overload import Overload, Signals, Terms
from cacheproxy.core.queues import Level, Queues
from cacheproxy.engine.admission import Places
from cacheproxy.ports import Clock

log = logging.getLogger("cacheproxy.admission")

LOOK_SECONDS = 0.25
LATELY = 10.0
"""How long what was measured counts."""
_SAYS = {
    Level.NORMAL: "everything is let in",
    Level.NO_NEW_P2: "new requests of P2 are refused",
    Level.PAUSE_P1: "new requests of P1 and P2 are refused",
}


class Pressure:
    """`utilisation`: the part of the backends, 0 to 1, that is in use by their own account, None if none says so;
    `listen`: has them asked from now on."""

    def __init__(  # noqa: PLR0913 - its parts, by name
        self, *, terms: Terms, places: Places, queues: Queues, clock: Clock,
        utilisation: Callable[[], float | None] = lambda: None, listen: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._overload = Overload(terms)
        self._late = terms.first_byte
        self._places = places
        self._queues = queues
        self._clock = clock
        self._utilisation = utilisation
        self._listen = listen
        self._first_byte = (0.0, -math.inf)
        self._quiet = False
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Pressure {self._overload!r}>"

    @property
    def now(self) -> Level:
        """The level as it was last found."""
        return self._overload.level

    def level(self) -> Level:
        """The level at this moment."""
        before, waits = self._overload.level, self._queues.waiting(0) > 0
        if self._quiet and not (before or waits):
            return before  # nobody of P0 waits, nor did at the last look, and its streams begin in time
        now = self._clock.monotonic()
        seconds, when = self._first_byte
        oldest = self._queues.oldest(0)
        level = self._overload.look(
            now,
            Signals(
                self._places.used, self._places.slots, self._queues.waiting(0),
                max(0.0, now - oldest) if oldest < math.inf else 0.0, self._utilisation(),
                seconds if now - when <= LATELY else None,
            ),
        )  # fmt: skip
        self._quiet = not waits and seconds <= self._late
        if level is not before:
            cause = f" ({self._overload.cause})" if level > before else ""
            log.warning("overload: %s%s", _SAYS[level], cause)
        if self._queues or level:
            self._listen()
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)
        return level

    def began(self, priority: int, seconds: float) -> None:
        """A stream has begun so long after it was sent."""
        if priority == 0:
            now = self._clock.monotonic()
            mean, when = self._first_byte
            self._quiet = False
            self._first_byte = (0.8 * mean + 0.2 * seconds if now - when <= LATELY else seconds, now)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        self.level()
