"""Before a backend that was passed over is tried with a caller's request: whether it answers at all.

It is asked for its list of models, without a credential; any answer that is whole will do. One that hangs costs nobody
anything so.
"""

import asyncio
import contextlib
import logging

from cacheproxy.errors import AnswerError, UpstreamCut, place_of
from cacheproxy.http.balance import Balance
from cacheproxy.http.connection import Dropped
from cacheproxy.http.models import PATH
from cacheproxy.http.probes import ANSWER_SECONDS, Fetch
from cacheproxy.http.station import Station

log = logging.getLogger("cacheproxy.backend")


class Proofs:
    """Asks each backend of `balance` when its time is over."""

    def __init__(self, balance: Balance, fetch: Fetch) -> None:
        self._balance = balance
        self._fetch = fetch
        self._tasks: set[asyncio.Task[None]] = set()
        balance.prove_by(self._begin)

    def __repr__(self) -> str:
        return f"<Proofs {len(self._tasks)} running>"

    async def close(self) -> None:
        """Ask no more."""
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, station: Station) -> None:
        task = asyncio.get_running_loop().create_task(self._ask(station, station.health.era))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, station: Station, era: int) -> None:
        answers = False
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._fetch(station.upstream, PATH)
            answers = True
        except (AnswerError, UpstreamCut, Dropped, OSError) as error:
            log.debug("%s does not answer yet: %s", station.upstream.url, type(error).__name__)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not keep a backend out for ever
            log.error("a look at a backend failed inside the proxy: %s", place_of(error))
        self._balance.proved(station, era, answers=answers)
