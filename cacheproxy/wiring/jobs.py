"""The long work of a proxy, put together."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cacheproxy.engine.errand import Errands
from cacheproxy.engine.jobs import Job, Jobs, Work
from cacheproxy.engine.replaying import EMBEDDING, REPLAYING, plain, replay
from cacheproxy.engine.shelf import Shelf
from cacheproxy.engine.traffic import Line
from cacheproxy.http.traffic import REPLAY, WARM, Replay
from cacheproxy.ports import Clock
from cacheproxy.schema import Settings
from cacheproxy.wiring.imagined import alike, imagined, matching

if TYPE_CHECKING:
    from cacheproxy.wiring.house import House

LANES = {WARM: 2, REPLAY: 1}
"""How many of each kind run at once."""
_COUNTS = {EMBEDDING: ("questions", "embedded"), REPLAYING: ("total", "done")}
"""What a replay is at, and how its job counts it."""


def jobs(settings: Settings, clock: Clock) -> Jobs:
    """What knows of them."""
    told = settings.jobs
    return Jobs(lanes=LANES, ttl=told.ttl, most=told.max_jobs, most_bytes=told.max_bytes, clock=clock)


def errands(house: "House") -> Errands:
    """What asks on somebody's behalf."""
    storage, engine = house.storage, house.engine
    shelf = Shelf(house.store, storage.removals, storage.epochs, house.clock)
    return Errands(pipeline=engine.pipeline, binder=engine.binder, shelf=shelf, clock=house.clock)


def replays(house: "House") -> Replay:
    """What replays logs under the settings of `house`, beside the callers whom it serves."""

    def work(lines: Sequence[Line], bad: int, by_meaning: bool | None) -> Work | None:
        if by_meaning and house.meaning is None:
            return None
        return partial(_replay, house, lines, bad, house.meaning is not None and by_meaning is not False)

    return work


async def _replay(house: "House", lines: Sequence[Line], bad: int, by_meaning: bool, job: Job) -> None:
    def starts(what: str, number: int) -> Callable[[int], object]:
        total, name = _COUNTS[what]
        job.counts |= {total: number, name: 0}

        def over(more: int) -> None:
            job.counts[name] += more

        return over

    job.counts = {"total": len(lines), "bad": bad, "done": 0}
    likens = None
    if by_meaning and house.meaning is not None:
        told = matching(house.settings, house.meaning.threshold)
        likens = partial(alike, told=told, embedder=house.meaning.embedder.bare, starts=starts, gently=True)
    tally = await replay(imagined(house.settings), lines, likens, starts=starts, gently=True)
    timed = any(one.time is not None for one in lines)
    job.result = plain(tally, bad, by_meaning=likens is not None, timed=timed)
